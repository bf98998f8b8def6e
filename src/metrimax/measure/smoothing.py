"""Smoothed measures: a differentiable risk below the risk, no further from it than one asks.

The risk is a maximum over labellings, ``R(s) = max_z D(z) + <slope(z), s>``. Every smoothing here is a maximum over
*mixtures* of labellings minus a term that is never negative and never above ``mu``::

    R_mu(s) = max over mixtures of  loss + <slope, s> - prox,      0 <= prox <= mu

so that ``R - mu <= R_mu <= R`` and, the maximiser being unique, ``R_mu`` is differentiable with gradient ``slope``.
The plane ``loss + <slope, .>`` of the maximiser is a mean of cuts, hence itself a cut: a solver gets its dual bound
from it. ``mu`` is the bound itself, in units of the measure, and means the same for all of them.

The term has two parts. Within one *piece* of the risk, a set of labellings on which the loss is linear, it is
quadratic in the shares ``beta`` of flips (Zhang et al. 2011), which makes every share a ramp of the example's cost. Its
centre is the middle of the piece, from which all labellings of the piece are about as far: at the same bound the
gradient turns two to four times as slowly as with the truth for a centre. Between pieces it is the entropy of the piece
(Nesterov 2005). The pieces are

* all labellings, where the loss is linear (error, cost, balanced error): the Huber hinge, example by example;
* for ROC area, all rankings: the Huber hinge, pair by pair (Zhang et al. 2011, section 3.2); for partial AUC from the
  rate 0 with one multiplier for the negatives that count (`metrimax.measure.partial_auc`);
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

import numpy as np

from metrimax import _kernels
from metrimax._validation import check_positive
from metrimax.measure import tables
from metrimax.measure.pieces import (
    NONE,
    Ramps,
    TablePieces,
    ramp_sums,
    ramp_thresholds,
    soften,
)
from metrimax.measure.tables import Structure, TableLoss
from metrimax.measure.units import ClassUnits
from metrimax.protocols import Cut, Smooth, Vector

MOST_TABLES = 2**22
"""A loss without known structure is smoothed if the sample has no more tables than this."""


class TableSmoothing:
    """The smoothed risk of a measure of the contingency table whose loss has no structure that is known.

    Parameters
    ----------
    truth : bool
        Whether the truth itself is admissible. Where it is not, the plane 0 is one more piece, for R >= 0.
    """

    def __init__(self, pos: ClassUnits, neg: ClassUnits, n: float, pieces: TablePieces, *, truth: bool) -> None:
        self._units = pos, neg
        self._n = n
        self._pieces = pieces
        self._truth = truth

    def __call__(self, scores: Vector, mu: float) -> tuple[float, Cut]:
        check_positive("mu", mu)
        queues = [units.queue(scores) for units in self._units]
        mixture = self._pieces.mixture(queues[0].costs, queues[1].costs, mu if self._truth else mu / 2)
        value, share = (mixture.value, 1.0) if self._truth else above_zero(mixture.value, mu / 2)
        slope = np.zeros(len(scores))
        for units, ramps in zip(self._units, (mixture.pos, mixture.neg), strict=True):
            units.spread(scores, ramps.shares, self._n, slope)
        return value, Cut(share * mixture.loss, share * slope)


def contingency_smoothing(
    size: int,
    pos: ClassUnits,
    neg: ClassUnits,
    loss: TableLoss,
    structure: Structure,
    count: tuple[int, Vector, Vector] | None,
) -> Smooth | None:
    """The smoothing that fits the loss on a sample of that size, or None where there is none that is cheap enough.

    ``count`` holds the least m and the coefficients u and v of the structure "count". With fractional weights, where an
    example may flip in part, none is offered: the tables reached are not all mixtures of flips.
    """
    if not all(units.whole or units.copies for units in (pos, neg)):
        return None
    n = pos.total + neg.total
    steps = pos.unit / n, neg.unit / n
    truth = bool(np.isfinite(loss(np.zeros(1), np.zeros(1))[0]))
    flips, called = (_kernels.PairClass(one.members, one.sign, NONE if one.whole else one.weight) for one in (pos, neg))
    linear = _linear(loss, pos.count, neg.count)
    if count is not None and (len(count[1]) < pos.count + neg.count + 1 or linear is None):
        low, u, v = count
        by_count = _kernels.CountLoss(pos.count, low, u, v)
        search = _kernels.CountSmoothing(size, flips, called, steps[0], by_count)
        return searched_smoothing(search, truth=low <= pos.count < low + len(u))
    if linear is not None:
        return searched_smoothing(_kernels.LinearSmoothing(size, flips, called, steps, linear))
    planes = _planes(loss, structure, pos.count, neg.count)
    if planes is not None:
        return _plane_smoothing(_kernels.PlaneSmoothing(size, flips, called, steps), planes)
    if structure == "product":
        i, j = np.arange(pos.count + 1), np.arange(neg.count + 1)
        f, g = 1 - loss(i, 0 * i), 1 - loss(0 * j, j)
        if _is_line(f):
            return searched_smoothing(_kernels.RowSmoothing(size, flips, called, steps, 1 - float(f[1]), g))
    if (pos.count + 1) * (neg.count + 1) > MOST_TABLES:
        return None
    return TableSmoothing(pos, neg, n, TablePieces(pos, neg, n, loss), truth=truth)


def _planes(
    loss: TableLoss, structure: Structure, n_pos: int, n_neg: int
) -> Callable[[float], tuple[Vector, Vector, Vector]] | None:
    """Planes ``c - a tp - b tn`` under the loss, no further from it than the error asked for: c, a and b.

    None where no such are known.
    """
    i, j = np.arange(n_pos + 1), np.arange(n_neg + 1)
    if structure not in tables.LINKS:
        return None
    A, B = loss(i, 0 * i), loss(0 * j, j)
    if structure == "max" and _is_line(A) and _is_line(B):
        return lambda error: (np.array([A[-1], B[-1]]), np.array([A[1], 0.0]), np.array([0.0, B[1]]))
    if structure == "hypot" and _is_line(A) and _is_line(B):

        def tangents(error: float) -> tuple[Vector, Vector, Vector]:
            angle = np.linspace(0, np.pi / 2, 1 + int(np.ceil(np.pi / 4 / np.arccos(1 - min(error, 0.1)))))
            x, y = np.cos(angle), np.sin(angle)
            return A[-1] * x + B[-1] * y, A[1] * x, B[1] * y

        return tangents
    x, y = (1 - A) ** 2, (1 - B) ** 2
    if structure == "product" and _is_line(x) and _is_line(y):

        def chords(error: float) -> tuple[Vector, Vector, Vector]:
            error = min(error, 0.1)
            end = -np.log(2 * error)
            t = np.exp(np.linspace(-end, end, 1 + int(np.ceil(end / np.arccosh(1 + error)))))
            a, b = (1 - x[-1]) / n_pos, (1 - y[-1]) / n_neg
            return 1 - (t * x[-1] + y[-1] / t) / 2, t * a / 2, b / t / 2

        return chords
    return None


def _linear(loss: TableLoss, n_pos: int, n_neg: int) -> tuple[float, float] | None:
    """The a and b of ``D = a fn + b fp``; None if it is not so at the tables that a probe looks at."""
    rows, columns = tables.draw(n_pos, n_neg, np.random.default_rng(0))
    a, b = loss(np.array([1, 0]), np.array([0, 1])).tolist()
    if not np.isfinite(a + b):
        return None
    off = np.abs(loss(rows[:, None], columns[None, :]) - a * rows[:, None] - b * columns[None, :]).max()
    return (a, b) if off <= 1e-12 else None


def _is_line(values: Vector) -> bool:
    line = values[0] + (values[-1] - values[0]) * np.linspace(0, 1, len(values))
    return bool(np.abs(values - line).max() <= 1e-12)


Search = (
    _kernels.PairSearch
    | _kernels.TopSearch
    | _kernels.CountSmoothing
    | _kernels.RowSmoothing
    | _kernels.LinearSmoothing
)


def searched_smoothing(search: Search, *, truth: bool = True) -> Smooth:
    """The smoothed risk of a compiled search that has one; where the truth is not admissible, with R >= 0 beside it."""

    def smooth(scores: Vector, mu: float) -> tuple[float, Cut]:
        check_positive("mu", mu)
        value, loss, slope = search.smooth(scores, mu if truth else mu / 2)
        if truth:
            return value, Cut(loss, slope)
        value, share = above_zero(value, mu / 2)
        return value, Cut(share * loss, share * slope)

    return smooth


def _plane_smoothing(
    search: _kernels.PlaneSmoothing, planes: Callable[[float], tuple[Vector, Vector, Vector]]
) -> Smooth:
    """The smoothed risk of planes that miss no more than a tenth of mu."""

    def smooth(scores: Vector, mu: float) -> tuple[float, Cut]:
        check_positive("mu", mu)
        value, loss, slope = search.smooth(scores, mu, *planes(0.1 * mu))
        return value, Cut(loss, slope)

    return smooth


def top_smoothing(pos: ClassUnits, neg: ClassUnits, k: float, u: float, v: float) -> Smooth:
    """The smoothed risk over the labellings with exactly k predicted positives and loss ``u + v tp``, for any weights.

    The shares of flips are a box with one equation, ``sum over negatives - sum over positives = k - n+``.
    """
    n = pos.total + neg.total
    reach = max(k * (1 - k / n), 1e-6 * n)  # twice the prox of every labelling
    truth = abs(k - pos.total) <= 1e-9 * n

    def smooth(scores: Vector, mu: float) -> tuple[float, Cut]:
        check_positive("mu", mu)
        shift = _level(scores, neg)
        scores = scores - shift
        h = np.array([2 * (mu if truth else mu / 2) * n / reach])
        tau = h - n * v
        sides = [
            (units.queue(scores).costs, NONE) if units.whole and units.unit == 1 else units.sorted(scores)[:2]
            for units in (pos, neg)
        ]
        (pos_costs, pos_weights), (neg_costs, neg_weights) = sides
        target = np.array([k - pos.total])
        t_neg = ramp_thresholds(pos_costs, neg_costs, tau, target, h, pos_weights, neg_weights)
        t = tau - t_neg, t_neg
        (fn, gain_pos), (_, gain_neg) = (ramp_sums(c, at, h, w) for (c, w), at in zip(sides, t, strict=True))
        loss = u + v * (pos.total - float(fn[0]))
        centre = h[0] * (float(fn[0]) + (k * k / n - pos.total) / 2)
        value = loss + (float(gain_pos[0] + gain_neg[0]) + centre) / n + shift * (k - pos.total) / n
        value, share = (value, 1.0) if truth else above_zero(value, mu / 2)
        slope = np.zeros(len(scores))
        for units, at in zip((pos, neg), t, strict=True):
            units.spread(scores, Ramps(np.ones(1), at, h).shares, n, slope)
        return value, Cut(share * loss, share * _balanced(slope, (k - pos.total) / n))

    return smooth


def _level(scores: Vector, units: ClassUnits) -> float:
    """A common shift of all scores, subtracted before sums of squares: they would lose their digits to it."""
    return float(scores[units.members].mean())


def _balanced(slope: Vector, total: float) -> Vector:
    """The slope, corrected so that its sum is exactly ``total``: its error is multiplied by a shift of all scores.

    The correction is divided equally among the examples that flip.
    """
    flips = np.flatnonzero(slope)
    slope[flips] += (total - slope.sum()) / max(1, len(flips))
    return slope


def above_zero(value: float, mu: float) -> tuple[float, float]:
    """A smoothed ``max(value, 0)`` no further below it than mu, and its derivative."""
    smoothed, pi = soften(np.array([value, 0.0]), mu, 2)
    return smoothed, float(pi[0])
