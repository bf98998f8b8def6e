"""The pieces of a smoothed measure: sets of labellings on which the loss is linear, and mixtures of them.

Within a piece, the shares of flips are ramps of the examples' costs. The weights of the pieces are smoothed by an
entropy. See `metrimax.measure.smoothing`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from metrimax import _kernels
from metrimax.measure.tables import TableLoss
from metrimax.measure.units import ClassUnits
from metrimax.protocols import Vector

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


class TablePieces:
    """Any loss: one piece per table (fn, fp). O(n+ n-)."""

    def __init__(self, pos: ClassUnits, neg: ClassUnits, n: float, loss: TableLoss) -> None:
        self.n_pos, self.n_neg = pos.count, neg.count
        self.steps = pos.unit / n, neg.unit / n
        self._D = loss(np.arange(self.n_pos + 1)[:, None], np.arange(self.n_neg + 1)[None, :])
        self._number = int(np.isfinite(self._D).sum())

    def mixture(self, pos: Vector, neg: Vector, mu: float) -> Mixture:
        """The maximiser, from the costs of all units of both classes, ascending."""
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
