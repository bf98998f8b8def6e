"""Smoothed measures: a differentiable risk below the risk, no further from it than one asks.

The risk is a maximum over labellings, ``R(s) = max_z D(z) + <slope(z), s>``. Every smoothing here is a maximum over
*mixtures* of labellings minus a term that is never negative and never above ``mu``::

    R_mu(s) = max over mixtures of  loss + <slope, s> - prox,      0 <= prox <= mu

so that ``R - mu <= R_mu <= R`` and, the maximiser being unique, ``R_mu`` is differentiable with gradient ``slope``.
The plane ``loss + <slope, .>`` of the maximiser is a mean of cuts, hence itself a cut: a solver gets its dual bound
from it. ``mu`` is the bound itself, in units of the measure, and means the same for all of them.

The term has two parts. Within one *piece* of the risk, a set of labellings on which the loss is linear, it is
quadratic in the shares ``beta`` of flips (Zhang et al. 2011), which makes every share a ramp of the example's cost.
Between pieces it is the entropy of the piece (Nesterov 2005). The pieces are

* all labellings, where the loss is linear (error, cost, balanced error): the Huber hinge, example by example;
* for ROC area, all rankings: the Huber hinge, pair by pair;
* the labellings with m predicted positives, where the loss is linear in tp once m is given (F_beta, kappa, MCC,
  precision, PRBEP, ...): one multiplier for the one constraint;
* the labellings with j false positives, where the loss is linear in fn once j is given (Jaccard);
* tangent planes, where the loss is the upper hull of planes (G-mean, Q-mean, the lower of TPR and TNR);
* the tables (fn, fp), for any other loss.

The proofs are in docs/smoothing.md.

References
----------
Zhang, X., Saha, A. & Vishwanathan, S. V. N. (2011). Smoothing multivariate performance measures. UAI.
Nesterov, Y. (2005). Smooth minimization of non-smooth functions. Mathematical Programming 103.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from metrimax import _kernels
from metrimax.measure import tables
from metrimax.measure.tables import Structure, TableLoss
from metrimax.measure.units import ClassUnits
from metrimax.protocols import Cut, Vector

Smooth = Callable[[Vector, float], tuple[float, Cut]]
"""(scores, mu) -> the smoothed risk, and the mean of cuts whose slope is its gradient."""

NEGLIGIBLE = 40.0
"""A piece whose value is this many temperatures below the best has a weight below 1e-17."""

MOST_TABLES = 2**22
"""A loss without known structure is smoothed if the sample has no more tables than this."""

_NONE = np.empty(0)


class Ramps(NamedTuple):
    """The shares of flips of one class: the mean over pieces, with weights pi, of ``clip((t - cost) / h, 0, 1)``."""

    pi: Vector
    t: Vector
    h: Vector

    def shares(self, costs: Vector) -> Vector:
        """The share by which an example of each cost flips."""
        if len(self.pi) == 1:
            one: Vector = np.clip((self.t[0] - costs) / self.h[0], 0, 1) * self.pi[0]
            return one
        # piecewise linear in the cost: knots at the two ends of every ramp, where the slope changes by pi / h
        knots = np.concatenate((self.t - self.h, self.t))
        order = np.argsort(knots)
        knots, bends = knots[order], np.concatenate((-self.pi / self.h, self.pi / self.h))[order]
        fall = np.concatenate(([0.0], np.cumsum(np.cumsum(bends)[:-1] * np.diff(knots))))
        total = float(self.pi.sum())
        shares = np.zeros(len(costs))
        shares[costs <= knots[0]] = total
        inside = np.flatnonzero((costs > knots[0]) & (costs < knots[-1]))
        shares[inside] = np.clip(np.interp(costs[inside], knots, total + fall), 0, total)
        return shares


class Mixture(NamedTuple):
    """The maximiser of the smoothed problem: its value, its mean loss, and the shares of flips in either class."""

    value: float
    loss: float
    pos: Ramps
    neg: Ramps


class Family:
    """The pieces of one measure on one sample; costs are those of all units of a class, ascending."""

    def __init__(self, pos: ClassUnits, neg: ClassUnits, n: float) -> None:
        self.n_pos, self.n_neg = pos.count, neg.count
        self.steps = pos.unit / n, neg.unit / n

    def mixture(self, pos: Vector, neg: Vector, mu: float) -> Mixture:
        raise NotImplementedError

    def widths(self, mu: float, fn: float, fp: float) -> tuple[float, float]:
        """Widths of the ramps in proportion to the losses fn and fp of one flip; all flips together cost ``mu``."""
        fn, fp = max(fn, 1e-3 * fp), max(fp, 1e-3 * fn)
        scale = 2 * mu / (fn * self.n_pos + fp * self.n_neg)
        return scale * fn / self.steps[0], scale * fp / self.steps[1]


class PlaneFamily(Family):
    """The loss is the highest of planes ``c + a fn + b fp`` (in units), given as a function of the error allowed."""

    def __init__(
        self, pos: ClassUnits, neg: ClassUnits, n: float, planes: Callable[[float], tuple[Vector, Vector, Vector]]
    ) -> None:
        super().__init__(pos, neg, n)
        self._planes = planes

    def mixture(self, pos: Vector, neg: Vector, mu: float) -> Mixture:
        c, a, b = self._planes(0.1 * mu)
        one = len(c) == 1
        ref_a, ref_b = np.median(a), np.median(b)
        widths = self.widths(mu if one else 0.5 * mu, float(ref_a), float(ref_b))
        t_pos, t_neg = a / self.steps[0], b / self.steps[1]
        h_pos, h_neg = (np.full(len(c), h) for h in widths)
        fn, gain_pos = ramp_sums(pos, t_pos, h_pos)
        fp, gain_neg = ramp_sums(neg, t_neg, h_neg)
        losses = c + a * fn + b * fp
        values = losses + self.steps[0] * gain_pos + self.steps[1] * gain_neg
        value, pi = soften(values, 0.4 * mu, len(c))
        return Mixture(value, _kernels.dot(pi, losses), Ramps(pi, t_pos, h_pos), Ramps(pi, t_neg, h_neg))


class CountFamily(Family):
    """The loss is ``u[m - low] + v[m - low] tp`` for m predicted positives; one piece per m."""

    def __init__(self, pos: ClassUnits, neg: ClassUnits, n: float, low: int, u: Vector, v: Vector) -> None:
        super().__init__(pos, neg, n)
        self._low, self._u, self._v = low, u, v
        m = np.arange(low, low + len(u))
        # the most flips that m allows, times half the price of each, is what the quadratic term can reach
        self._flips = self.n_pos + m - 2.0 * np.maximum(0, m - self.n_neg)

    def mixture(self, pos: Vector, neg: Vector, mu: float) -> Mixture:
        pieces = len(self._u)
        quadratic, entropy = (mu, 0.0) if pieces == 1 else (0.5 * mu, 0.5 * mu)
        at = np.zeros(1, dtype=np.intp)
        if pieces > 1:
            exact = np.empty(pieces)
            _kernels.count_values(pos, neg, self.steps[0], self.n_pos, self._low, self._u, self._v, exact)
            at[0] = np.argmax(exact)
            best = self._solve(pos, neg, quadratic, at)[0][0]
            # smoothing only lowers a value: what is far below the best without it is so with it
            at = np.flatnonzero(exact >= best - NEGLIGIBLE * entropy / np.log(pieces))
        values, losses, t_pos, t_neg, h = self._solve(pos, neg, quadratic, at)
        value, pi = soften(values, entropy, pieces)
        return Mixture(value, _kernels.dot(pi, losses), Ramps(pi, t_pos, h), Ramps(pi, t_neg, h))

    def _solve(
        self, pos: Vector, neg: Vector, mu: float, at: tables.Indices
    ) -> tuple[Vector, Vector, Vector, Vector, Vector]:
        step = self.steps[0]
        h = 2 * mu / (step * np.maximum(self._flips[at], 1.0))
        tau = -self._v[at] / step
        t_neg = ramp_thresholds(pos, neg, tau, (at + (self._low - self.n_pos)).astype(np.float64), h)
        t_pos = tau - t_neg
        fn, gain_pos = ramp_sums(pos, t_pos, h)
        _, gain_neg = ramp_sums(neg, t_neg, h)
        losses = self._u[at] + self._v[at] * (self.n_pos - fn)
        return losses + step * (gain_pos + gain_neg), losses, t_pos, t_neg, h


class RowFamily(Family):
    """The loss is ``1 - g[j] + rise g[j] fn`` for j false positives; one piece per j."""

    def __init__(self, pos: ClassUnits, neg: ClassUnits, n: float, rise: float, g: Vector) -> None:
        super().__init__(pos, neg, n)
        self._rise, self._g = rise, g

    def mixture(self, pos: Vector, neg: Vector, mu: float) -> Mixture:
        # the exact values: hinges of the positives, and the first j negatives
        t = self._rise * self._g / self.steps[0]
        k = np.searchsorted(pos, t)
        hinges = k * t - np.concatenate(([0.0], np.cumsum(pos)))[k]
        exact = 1 - self._g + self.steps[0] * hinges - self.steps[1] * np.concatenate(([0.0], np.cumsum(neg)))
        best = self._solve(pos, neg, mu / 2, np.array([np.argmax(exact)]))[0][0]
        at = np.flatnonzero(exact >= best - NEGLIGIBLE * mu / 2 / np.log(len(self._g)))
        values, losses, *ramps = self._solve(pos, neg, mu / 2, at)
        value, pi = soften(values, mu / 2, len(self._g))
        return Mixture(value, _kernels.dot(pi, losses), Ramps(pi, ramps[0], ramps[2]), Ramps(pi, ramps[1], ramps[3]))

    def _solve(self, pos: Vector, neg: Vector, mu: float, j: tables.Indices) -> tuple[Vector, ...]:
        flips = (self.n_pos + j).astype(np.float64)
        h_pos, h_neg = (2 * mu / (step * flips) for step in self.steps)
        t_pos = self._rise * self._g[j] / self.steps[0]
        t_neg = ramp_thresholds(_NONE, neg, np.zeros(len(j)), j.astype(np.float64), h_neg)
        fn, gain_pos = ramp_sums(pos, t_pos, h_pos)
        _, gain_neg = ramp_sums(neg, t_neg, h_neg)
        losses = 1 - self._g[j] * (1 - self._rise * fn)
        return losses + self.steps[0] * gain_pos + self.steps[1] * gain_neg, losses, t_pos, t_neg, h_pos, h_neg


class TableFamily(Family):
    """Any loss: one piece per table (fn, fp). O(n+ n-)."""

    def __init__(self, pos: ClassUnits, neg: ClassUnits, n: float, loss: TableLoss) -> None:
        super().__init__(pos, neg, n)
        self._D = loss(np.arange(self.n_pos + 1)[:, None], np.arange(self.n_neg + 1)[None, :])
        self._pieces = int(np.isfinite(self._D).sum())

    def mixture(self, pos: Vector, neg: Vector, mu: float) -> Mixture:
        sides = []
        for costs, count, step in ((pos, self.n_pos, self.steps[0]), (neg, self.n_neg, self.steps[1])):
            flips = np.arange(count + 1.0)
            h = np.full(count + 1, mu / (step * (self.n_pos + self.n_neg)))
            t = ramp_thresholds(_NONE, costs, np.zeros(count + 1), flips, h)
            sides.append((t, h, step * ramp_sums(costs, t, h)[1]))
        values = self._D + sides[0][2][:, None] + sides[1][2][None, :]
        value, pi = soften(values, mu / 2, self._pieces)
        loss = float((pi * np.where(pi > 0, self._D, 0.0)).sum())
        ramps = [Ramps(pi.sum(axis=1 - axis), t, h) for axis, (t, h, _) in enumerate(sides)]
        return Mixture(value, loss, *ramps)


class ContingencySmoothing:
    """The smoothed risk of a measure of the contingency table.

    Parameters
    ----------
    truth : bool
        Whether the truth itself is admissible. Where it is not, the plane 0 is one more piece, for R >= 0.
    """

    def __init__(self, pos: ClassUnits, neg: ClassUnits, n: float, family: Family, *, truth: bool) -> None:
        self._units = pos, neg
        self._n = n
        self._family = family
        self._truth = truth

    def __call__(self, scores: Vector, mu: float) -> tuple[float, Cut]:
        check_mu(mu)
        queues = [units.queue(scores) for units in self._units]
        mixture = self._family.mixture(queues[0].costs, queues[1].costs, mu if self._truth else mu / 2)
        value, share = (mixture.value, 1.0) if self._truth else above_zero(mixture.value, mu / 2)
        slope = np.zeros(len(scores))
        for units, ramps in zip(self._units, (mixture.pos, mixture.neg), strict=True):
            units.spread(scores, ramps.shares, self._n, slope)
        return value, Cut(share * mixture.loss, share * slope)


def contingency_smoothing(
    pos: ClassUnits,
    neg: ClassUnits,
    loss: TableLoss,
    structure: Structure,
    count: tuple[int, Vector, Vector] | None,
) -> Smooth | None:
    """The smoothing that fits the loss, or None where there is none that is cheap enough.

    ``count`` holds the least m and the coefficients u and v of the structure "count". With fractional weights, where an
    example may flip in part, none is offered: the tables reached are not all mixtures of flips.
    """
    if not all(units.whole or units.copies for units in (pos, neg)):
        return None
    n = pos.total + neg.total
    truth = bool(np.isfinite(loss(np.zeros(1), np.zeros(1))[0]))
    family: Family | None = None
    if count is not None and (len(count[1]) < pos.count + neg.count + 1 or not _is_linear(loss, pos.count, neg.count)):
        family = CountFamily(pos, neg, n, *count)
        truth = count[0] <= pos.count < count[0] + len(count[1])
    else:
        planes = _planes(loss, structure, pos.count, neg.count)
        if planes is not None:
            family = PlaneFamily(pos, neg, n, planes)
        elif structure == "product":
            i, j = np.arange(pos.count + 1), np.arange(neg.count + 1)
            f, g = 1 - loss(i, 0 * i), 1 - loss(0 * j, j)
            if _is_line(f):
                family = RowFamily(pos, neg, n, 1 - float(f[1]), g)
    if family is None and (pos.count + 1) * (neg.count + 1) <= MOST_TABLES:
        family = TableFamily(pos, neg, n, loss)
    return None if family is None else ContingencySmoothing(pos, neg, n, family, truth=truth)


def _planes(
    loss: TableLoss, structure: Structure, n_pos: int, n_neg: int
) -> Callable[[float], tuple[Vector, Vector, Vector]] | None:
    """Planes ``c, a, b`` under the loss, no further from it than the error asked for; None where no such are known."""
    i, j = np.arange(n_pos + 1), np.arange(n_neg + 1)
    if _is_linear(loss, n_pos, n_neg):
        a, b = loss(np.array([1, 0]), np.array([0, 1]))
        return lambda error: (np.zeros(1), np.array([a]), np.array([b]))
    if structure not in tables.LINKS:
        return None
    A, B = loss(i, 0 * i), loss(0 * j, j)
    if structure == "max" and _is_line(A) and _is_line(B):
        return lambda error: (np.zeros(2), np.array([A[1], 0.0]), np.array([0.0, B[1]]))
    if structure == "hypot" and _is_line(A) and _is_line(B):

        def tangents(error: float) -> tuple[Vector, Vector, Vector]:
            angle = np.linspace(0, np.pi / 2, 1 + int(np.ceil(np.pi / 4 / np.arccos(1 - min(error, 0.1)))))
            return 0 * angle, A[1] * np.cos(angle), B[1] * np.sin(angle)

        return tangents
    x, y = (1 - A) ** 2, (1 - B) ** 2
    if structure == "product" and _is_line(x) and _is_line(y):

        def chords(error: float) -> tuple[Vector, Vector, Vector]:
            error = min(error, 0.1)
            end = -np.log(2 * error)
            t = np.exp(np.linspace(-end, end, 1 + int(np.ceil(end / np.arccosh(1 + error)))))
            return 1 - (t + 1 / t) / 2, t * (1 - x[1]) / 2, (1 - y[1]) / t / 2

        return chords
    return None


def _is_linear(loss: TableLoss, n_pos: int, n_neg: int) -> bool:
    """Whether ``D = a fn + b fp``, from the tables that a probe looks at."""
    rows, columns = tables.draw(n_pos, n_neg, np.random.default_rng(0))
    a, b = loss(np.array([1, 0]), np.array([0, 1]))
    if not np.isfinite(a + b):
        return False
    return bool(np.abs(loss(rows[:, None], columns[None, :]) - a * rows[:, None] - b * columns[None, :]).max() <= 1e-12)


def _is_line(values: Vector) -> bool:
    line = values[0] + (values[-1] - values[0]) * np.linspace(0, 1, len(values))
    return bool(np.abs(values - line).max() <= 1e-12)


def top_smoothing(pos: ClassUnits, neg: ClassUnits, k: float, u: float, v: float) -> Smooth:
    """The smoothed risk over the labellings with exactly k predicted positives and loss ``u + v tp``, for any weights.

    The shares of flips are a box with one equation, ``sum over negatives - sum over positives = k - n+``.
    """
    n = pos.total + neg.total
    flips = pos.total + k - 2 * max(0.0, k - neg.total)
    truth = abs(k - pos.total) <= 1e-9 * n

    def smooth(scores: Vector, mu: float) -> tuple[float, Cut]:
        check_mu(mu)
        h = np.array([2 * (mu if truth else mu / 2) * n / max(flips, 1e-9 * n)])
        tau = np.array([-n * v])
        sides = [
            (units.queue(scores).costs, _NONE) if units.whole and units.unit == 1 else units.sorted(scores)[:2]
            for units in (pos, neg)
        ]
        (pos_costs, pos_weights), (neg_costs, neg_weights) = sides
        target = np.array([k - pos.total])
        t_neg = ramp_thresholds(pos_costs, neg_costs, tau, target, h, pos_weights, neg_weights)
        t = tau - t_neg, t_neg
        (fn, gain_pos), (_, gain_neg) = (ramp_sums(c, at, h, w) for (c, w), at in zip(sides, t, strict=True))
        loss = u + v * (pos.total - float(fn[0]))
        value = loss + float(gain_pos[0] + gain_neg[0]) / n
        value, share = (value, 1.0) if truth else above_zero(value, mu / 2)
        slope = np.zeros(len(scores))
        for units, at in zip((pos, neg), t, strict=True):
            units.spread(scores, Ramps(np.ones(1), at, h).shares, n, slope)
        return value, Cut(share * loss, share * slope)

    return smooth


def pair_smoothing(pos: ClassUnits, neg: ClassUnits) -> Smooth:
    """The smoothed risk of ROC area: the Huber hinge of every pair, summed from sorted prefix sums in O(n log n).

    References
    ----------
    Zhang et al. (2011), section 3.2.
    """
    pairs = pos.total * neg.total

    def smooth(scores: Vector, mu: float) -> tuple[float, Cut]:
        check_mu(mu)
        slope = np.zeros(len(scores))
        queues = [units.sorted(scores) for units in (pos, neg)]
        value = loss = 0.0
        for (own, weight, order), (other, other_weight, _), units in zip(
            queues, reversed(queues), (pos, neg), strict=True
        ):
            # a pair flips by the ramp of 1 - own cost - other cost
            t = 1 - own
            count, gain = ramp_sums(other, t, np.full(len(t), 2 * mu), other_weight)
            slope[units.members[order]] = -units.sign / pairs * weight * count
            value, loss = _kernels.dot(weight, gain + t * count) / pairs, _kernels.dot(weight, count) / pairs
        return value, Cut(loss, slope)

    return smooth


def soften(values: Vector, mu: float, pieces: int) -> tuple[float, Vector]:
    """``max over pi of pi.values - T (sum pi log pi + log pieces)`` and its pi, with ``T log(pieces) = mu``."""
    best = values.max()
    if pieces == 1:
        return float(best), np.ones_like(values)
    T = mu / np.log(pieces)
    pi = np.exp((values - best) / T)
    total = pi.sum()
    return float(best + T * np.log(total) - mu), pi / total


def above_zero(value: float, mu: float) -> tuple[float, float]:
    """A smoothed ``max(value, 0)`` no further below it than mu, and its derivative."""
    smoothed, pi = soften(np.array([value, 0.0]), mu, 2)
    return smoothed, float(pi[0])


def ramp_sums(costs: Vector, t: Vector, h: Vector, weights: Vector = _NONE) -> tuple[Vector, Vector]:
    """Number of flips under each ramp, and what they gain."""
    count, gain = np.empty(len(t)), np.empty(len(t))
    _kernels.ramp_sums(costs, weights, t, h, count, gain)
    return count, gain


def ramp_thresholds(
    pos: Vector,
    neg: Vector,
    tau: Vector,
    target: Vector,
    h: Vector,
    pos_weights: Vector = _NONE,
    neg_weights: Vector = _NONE,
) -> Vector:
    """Thresholds t of the negatives with ``count(neg, t) - count(pos, tau - t) = target``."""
    t = np.empty(len(tau))
    _kernels.ramp_thresholds(pos, pos_weights, neg, neg_weights, tau, target, h, t)
    return t


def check_mu(mu: float) -> None:
    if not 0 < mu < np.inf:
        raise ValueError(f"expected a finite mu > 0, got {mu!r}")
