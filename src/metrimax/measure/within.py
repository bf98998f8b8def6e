"""The risk over labellings that flip some of the rows only, for solvers that begin with few of them.

Such a labelling is one of the whole sample, so this risk is never above that of the whole. Its cuts hold there, with a
slope of zero for the rows left out.
"""

from __future__ import annotations

import numpy as np

from metrimax import _kernels
from metrimax.measure import tables
from metrimax.measure.sample import SampleOracle
from metrimax.measure.units import ClassUnits
from metrimax.protocols import Cut, Rows, Vector


class CompiledOracle(SampleOracle):
    """An oracle that is a kernel and nothing else, for ``size`` rows of a sample of weight ``n``."""

    compiled: _kernels.Risk

    def __init__(self, n: float, size: int, price: float, compiled: _kernels.Risk) -> None:
        super().__init__(n, size)
        self.price, self.compiled = price, compiled

    def __call__(self, scores: Vector) -> Cut:
        return self.mean_cut(scores, 0.0)

    def mean_cut(self, scores: Vector, mu: float) -> Cut:
        """The answer of the kernel."""
        self.check(scores)
        return Cut(*self.compiled.cut(scores, mu))


def part_of(units: ClassUnits, rows: Rows) -> ClassUnits:
    """The members of a class among some rows (ascending), numbered as these are; a unit weighs the same."""
    place = np.searchsorted(rows, units.members)
    here = rows[np.minimum(place, len(rows) - 1)] == units.members
    weight = None if units.alike else units.weight[here]
    return ClassUnits(place[here].astype(np.uint32), units.sign, weight, unit=None if units.alike else units.unit)


def fewer_tables(
    structure: str, u: Vector, v: Vector, whole: tuple[ClassUnits, ClassUnits], part: tuple[ClassUnits, ClassUnits]
) -> tuple[Vector, Vector]:
    """The coefficients of the losses of those tables in which the rows left out are right.

    By count, D = u[m] + v[m] tp, where tp and m count the positives that are left out, too.
    """
    if structure == "count":
        more = whole[0].count - part[0].count
        there = slice(more, more + part[0].count + part[1].count + 1)
        return u[there] + more * v[there], np.ascontiguousarray(v[there])
    if structure in tables.LINKS:
        return u[: part[0].count + 1], v[: part[1].count + 1]
    return u, v
