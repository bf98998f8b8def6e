"""The pieces of a smoothed measure: sets of labellings on which the loss is linear, and mixtures of them.

Within a piece, the shares of flips are ramps of the examples' costs. The weights of the pieces are smoothed by an
entropy. See `metrimax.measure.smoothing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from metrimax import _kernels
from metrimax.measure import tables
from metrimax.measure.tables import TableLoss
from metrimax.measure.units import ClassUnits
from metrimax.protocols import Vector

NEGLIGIBLE = 40.0
"""A piece whose value is this many temperatures below the best has a weight below 1e-17."""

NONE = np.empty(0)


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


class Pieces:
    """The pieces of one measure on one sample; costs are those of all units of a class, ascending."""

    def __init__(self, pos: ClassUnits, neg: ClassUnits, n: float) -> None:
        self.n_pos, self.n_neg = pos.count, neg.count
        self.steps = pos.unit / n, neg.unit / n

    def mixture(self, pos: Vector, neg: Vector, mu: float) -> Mixture:
        raise NotImplementedError

    def widths(self, mu: float, fn: float, fp: float) -> tuple[float, float]:
        """Widths of the ramps in proportion to the losses fn and fp of one flip; the prox at a labelling is ``mu``."""
        fn, fp = max(fn, 1e-3 * fp), max(fp, 1e-3 * fn)
        scale = 8 * mu / (fn * self.n_pos + fp * self.n_neg)
        return scale * fn / self.steps[0], scale * fp / self.steps[1]


class PlanePieces(Pieces):
    """The loss is the highest of planes ``c - a tp - b tn`` (in units), given as a function of the error allowed.

    tp and tn are counted from 0, where all are wrong. The planes of the G-mean are steep; counted from the truth,
    rounding would be as large as tp itself.
    """

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
        h_pos, h_neg = (np.full(len(c), h) for h in widths)
        t_pos, t_neg = a / self.steps[0] + h_pos / 2, b / self.steps[1] + h_neg / 2
        fn, gain_pos = half_sums(pos, t_pos, h_pos)
        fp, gain_neg = half_sums(neg, t_neg, h_neg)
        losses = c - a * (self.n_pos - fn) - b * (self.n_neg - fp)
        values = losses + self.steps[0] * gain_pos + self.steps[1] * gain_neg
        value, pi = soften(values, 0.4 * mu, len(c))
        return Mixture(value, _kernels.dot(pi, losses), Ramps(pi, t_pos, h_pos), Ramps(pi, t_neg, h_neg))


class NumberedPieces(Pieces):
    """About as many pieces as examples. Few of them are near the best, and only these are smoothed."""

    number: int

    def mixture(self, pos: Vector, neg: Vector, mu: float) -> Mixture:
        quadratic, entropy = (mu, 0.0) if self.number == 1 else (0.5 * mu, 0.5 * mu)
        at = np.zeros(1, dtype=np.intp)
        if self.number > 1:
            exact = self.exact(pos, neg)
            at[0] = np.argmax(exact)
            best = min(self.smoothed(pos, neg, quadratic, at)[0][0], exact[at[0]])  # rounding may differ
            # smoothing only lowers values: a piece far below the best without it is also far below with it
            at = np.flatnonzero(exact >= best - NEGLIGIBLE * entropy / np.log(self.number))
        values, losses, t_pos, t_neg, h_pos, h_neg = self.smoothed(pos, neg, quadratic, at)
        value, pi = soften(values, entropy, self.number)
        return Mixture(value, _kernels.dot(pi, losses), Ramps(pi, t_pos, h_pos), Ramps(pi, t_neg, h_neg))

    def exact(self, pos: Vector, neg: Vector) -> Vector:
        """The value of every piece, without smoothing."""
        raise NotImplementedError

    def smoothed(self, pos: Vector, neg: Vector, mu: float, at: tables.Indices) -> tuple[Vector, ...]:
        """Values and losses of the pieces ``at``, and the thresholds and the widths of their ramps in either class."""
        raise NotImplementedError


class RowPieces(NumberedPieces):
    """The loss is ``1 - g[j] + rise g[j] fn`` for j false positives; one piece per j."""

    def __init__(self, pos: ClassUnits, neg: ClassUnits, n: float, rise: float, g: Vector) -> None:
        super().__init__(pos, neg, n)
        self._rise, self._g = rise, g
        self.number = len(g)

    def exact(self, pos: Vector, neg: Vector) -> Vector:
        # hinges of the positives, and the first j negatives
        t = self._rise * self._g / self.steps[0]
        k = np.searchsorted(pos, t)
        hinges = k * t - np.concatenate(([0.0], np.cumsum(pos)))[k]
        return 1 - self._g + self.steps[0] * hinges - self.steps[1] * np.concatenate(([0.0], np.cumsum(neg)))

    def smoothed(self, pos: Vector, neg: Vector, mu: float, at: tables.Indices) -> tuple[Vector, ...]:
        reach = self.n_pos / 4 + at * (1 - at / self.n_neg)
        h_pos, h_neg = (2 * mu / (step * reach) for step in self.steps)
        t_pos = self._rise * self._g[at] / self.steps[0] + h_pos / 2
        fn, gain_pos = half_sums(pos, t_pos, h_pos)
        t_neg, gain_neg = counted_sums(neg, at.astype(np.float64), h_neg)
        losses = 1 - self._g[at] * (1 - self._rise * fn)
        return losses + self.steps[0] * gain_pos + self.steps[1] * gain_neg, losses, t_pos, t_neg, h_pos, h_neg


class TablePieces(Pieces):
    """Any loss: one piece per table (fn, fp). O(n+ n-)."""

    def __init__(self, pos: ClassUnits, neg: ClassUnits, n: float, loss: TableLoss) -> None:
        super().__init__(pos, neg, n)
        self._D = loss(np.arange(self.n_pos + 1)[:, None], np.arange(self.n_neg + 1)[None, :])
        self._number = int(np.isfinite(self._D).sum())

    def mixture(self, pos: Vector, neg: Vector, mu: float) -> Mixture:
        sides = []
        for costs, count, step in ((pos, self.n_pos, self.steps[0]), (neg, self.n_neg, self.steps[1])):
            h = np.full(count + 1, 4 * mu / (step * (self.n_pos + self.n_neg)))
            t, gain = counted_sums(costs, np.arange(count + 1.0), h)
            sides.append((t, h, step * gain))
        values = self._D + sides[0][2][:, None] + sides[1][2][None, :]
        value, pi = soften(values, mu / 2, self._number)
        loss = float((pi * np.where(pi > 0, self._D, 0.0)).sum())
        ramps = [Ramps(pi.sum(axis=1 - axis), t, h) for axis, (t, h, _) in enumerate(sides)]
        return Mixture(value, loss, *ramps)


def soften(values: Vector, mu: float, pieces: int) -> tuple[float, Vector]:
    """``max over pi of pi.values - T (sum pi log pi + log pieces)`` and its pi, with ``T log(pieces) = mu``."""
    best = values.max()
    if pieces == 1:
        return float(best), np.ones_like(values)
    T = mu / np.log(pieces)
    pi = np.exp((values - best) / T)
    total = pi.sum()
    return float(best + T * np.log(total) - mu), pi / total


def ramp_sums(costs: Vector, t: Vector, h: Vector, weights: Vector = NONE) -> tuple[Vector, Vector]:
    """Number of flips under each ramp, and their gain."""
    return _kernels.ramp_sums(_kernels.Ramp(costs, weights), t, h)


def half_sums(costs: Vector, t: Vector, h: Vector) -> tuple[Vector, Vector]:
    """As `ramp_sums`, with the prox ``h/2 (beta - 1/2)^2``."""
    count, gain = ramp_sums(costs, t, h)
    return count, gain + h * (count / 2 - len(costs) / 8)


def counted_sums(costs: Vector, count: Vector, h: Vector) -> tuple[Vector, Vector]:
    """Thresholds at which ``count`` examples flip, and their gain with the prox ``h/2 (beta - count / size)^2``."""
    t = ramp_thresholds(NONE, costs, np.zeros(len(h)), count, h)
    return t, ramp_sums(costs, t, h)[1] + h / 2 * count * count / len(costs)


def ramp_thresholds(
    pos: Vector,
    neg: Vector,
    tau: Vector,
    target: Vector,
    h: Vector,
    pos_weights: Vector = NONE,
    neg_weights: Vector = NONE,
) -> Vector:
    """Thresholds t of the negatives with ``count(neg, t) - count(pos, tau - t) = target``."""
    return _kernels.ramp_thresholds(_kernels.Ramp(pos, pos_weights), _kernels.Ramp(neg, neg_weights), tau, target, h)
