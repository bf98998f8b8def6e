"""One class of a sample as a queue of flips, counted in units of weight.

Without weights a unit is an example. Integer weights mean repetition, so a unit is one copy. For fractional
weights the class's total is divided into at least as many equal units as it has examples, and an example may flip
in part; equal weights give one unit per example. The set of tables reached does not depend on the scores, so the
risk stays convex and its cuts valid whatever the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.protocols import Labels, Vector

MOST_COPIES = 2**22
"""Integer weights are expanded into copies up to this many per class; beyond it, in either, units are larger."""

MOST_UNITS = 2**13
"""Fractional weights are divided into at most so many units per class, or as many as there are examples."""

MOST_EXAMPLES = 2**32 - 1
"""Members are numbered in 32 bits."""


class Queue(NamedTuple):
    """Costs of the units that may flip, ascending; the ``first`` units cost less than ``low`` and do flip."""

    costs: Vector
    first: int = 0
    first_sum: float = 0.0
    low: float = -np.inf

    def last(self, flips: int) -> float:
        """The highest cost among the first ``flips`` units, or what they all lie below."""
        return float(self.costs[flips - self.first - 1]) if flips > self.first else self.low

    def prefix(self, step: float) -> Vector:
        """``-step * sum of the costs of the first i units`` for i from ``first`` on."""
        return -step * np.cumsum(np.concatenate(([self.first_sum], self.costs)))


class ClassUnits:
    """The members of one class; ``sign`` is +1 for positives, -1 for negatives. The cost of a flip is sign * score.

    ``count`` units of weight ``unit`` make up the class, if it is ``complete``; where the unit is given, less than one
    may be left over. ``whole`` says that every example is one unit.
    """

    def __init__(
        self,
        members: npt.NDArray[np.uint32],
        sign: float,
        weight: Vector | None,
        most: int = MOST_COPIES,
        unit: float | None = None,
    ) -> None:
        self.members = members
        self.sign = sign
        self._weight = weight
        self.copies = self.complete = True
        if weight is None:
            self.count, self.unit, self.whole = len(members), 1.0, True
            self.total = float(self.count)
            return
        total = float(weight.sum())
        self.count, self.unit = _units(weight, most) if unit is None else (int(total / unit * (1 + 1e-12)), unit)
        self.complete = unit is None or total - self.count * unit <= 1e-9 * unit
        self.total = self.count * self.unit if self.complete else total  # the same but for rounding, if it is
        self.whole = bool((weight == self.unit).all())
        self.copies = self.unit == 1 and bool((weight == np.round(weight)).all())

    @property
    def alike(self) -> bool:
        """Whether every member has weight 1."""
        return self._weight is None

    @property
    def weight(self) -> Vector:
        """The weights of the members."""
        return np.ones(len(self.members)) if self._weight is None else self._weight

    def queue(self, scores: Vector, low: float = -np.inf, high: float = np.inf) -> Queue:
        """Sort what may flip: costs from ``low`` up to ``high``; what is below flips, what is above does not."""
        if self.whole:
            costs, first, first_sum = _kernels.collect(scores, self.members, self.sign, low, high)
            costs.sort()
            return Queue(costs, first, first_sum, low)
        return Queue(self.unit_costs(*self.sorted(scores)))

    def mark(self, scores: Vector, queue: Queue, flips: int, n: float, slope: Vector) -> None:
        """Write the slopes of the first ``flips`` units: ``-sign * weight / n`` for what flips."""
        if flips == 0:
            return
        if self.whole:
            value = -self.sign * self.unit / n
            _kernels.mark(scores, self.members, self.sign, (flips, queue.last(flips)), value, slope)
            return
        _, weight, order = self.sorted(scores)
        before = np.cumsum(weight) - weight
        slope[self.members[order]] = -self.sign / n * np.clip(flips * self.unit - before, 0, weight)

    def spread(self, scores: Vector, share: Callable[[Vector], Vector], n: float, slope: Vector) -> None:
        """Write the slopes where every member flips by a share that depends on its cost."""
        slope[self.members] = -self.sign / n * self.weight * share(self.sign * scores[self.members])

    def sorted(self, scores: Vector) -> tuple[Vector, Vector, npt.NDArray[np.intp]]:
        """Costs of the members, ascending, with their weights and their positions among the members."""
        costs = self.sign * scores[self.members]
        order = np.argsort(costs, kind="stable")
        return costs[order], self.weight[order], order

    def unit_costs(self, costs: Vector, weight: Vector, order: npt.NDArray[np.intp]) -> Vector:
        """Costs of the units, ascending, from what `sorted` returns."""
        if self.whole:
            return costs
        if self.copies:
            return np.repeat(costs, weight.astype(np.intp))
        reached = np.concatenate(([0.0], np.cumsum(weight)))
        paid = np.concatenate(([0.0], np.cumsum(weight * costs)))
        totals: Vector = np.interp(self.unit * np.arange(self.count + 1), reached, paid)
        return np.diff(totals) / self.unit

    def share_out(
        self, costs: Vector, weight: Vector, order: npt.NDArray[np.intp], values: Vector, slope: Vector
    ) -> None:
        """Write the slopes where every unit, in the order of `unit_costs`, has one of its own."""
        if not self.whole:
            reached = np.concatenate(([0.0], np.cumsum(weight)))
            total = np.concatenate(([0.0], np.cumsum(values)))
            values = np.diff(np.interp(reached, self.unit * np.arange(self.count + 1), total))
        slope[self.members[order]] = values


def _units(weight: Vector, most: int) -> tuple[int, float]:
    """Number of units of a class, copies or otherwise about ``most`` or fewer, and the weight of one."""
    total = float(weight.sum())
    if (weight == np.round(weight)).all() and total <= max(most, len(weight)):
        return round(total), 1.0
    if (weight == weight[0]).all():
        return len(weight), float(weight[0])
    count = max(len(weight), min(round(total), most, MOST_UNITS))
    return count, total / count


def split(
    y: Labels, sample_weight: Vector | None, most: int = MOST_COPIES, unit: float | None = None
) -> tuple[ClassUnits, ClassUnits]:
    """The positives and the negatives of a sample, without what has weight zero."""
    if len(y) > MOST_EXAMPLES:
        raise ValueError(f"expected at most {MOST_EXAMPLES} examples, got {len(y)}: train on a part of them")

    def units(mask: Labels, sign: float, most: int) -> ClassUnits:
        members = np.flatnonzero(mask if sample_weight is None else mask & (sample_weight > 0)).astype(np.uint32)
        if len(members) == 0:
            kind = "positive" if sign > 0 else "negative"
            raise ValueError(f"expected examples of both classes, got no {kind} example (of non-zero weight)")
        return ClassUnits(members, sign, None if sample_weight is None else sample_weight[members], most, unit)

    pos, neg = units(y, +1.0, most), units(~y, -1.0, most)
    whole = sample_weight is not None and bool((sample_weight == np.round(sample_weight)).all())
    if unit is None and whole and pos.copies != neg.copies:
        # one class has too many copies to be expanded, so expanding the copies of the other would gain nothing
        return units(y, +1.0, min(most, MOST_UNITS)), units(~y, -1.0, min(most, MOST_UNITS))
    return pos, neg


def common_unit(pos: ClassUnits, neg: ClassUnits) -> float | None:
    """A size that both classes may be counted in, if that takes no more than `MOST_COPIES` units.

    Each class has at least as many units as examples. The positives are a whole number of units; of the negatives
    less than one unit is left over, which never flips.
    """
    count = math.ceil(pos.total / min(pos.total / len(pos.members), neg.total / len(neg.members)))
    unit = pos.total / count
    return unit if count + neg.total / unit <= MOST_COPIES else None
