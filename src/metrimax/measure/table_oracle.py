"""The one oracle that serves all measures of the contingency table: which labelling is violated most."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.measure import tables
from metrimax.measure.hinge_sum import HingeSum
from metrimax.measure.sample import SampleOracle
from metrimax.measure.smoothing import contingency_smoothing
from metrimax.measure.tables import Fraction, Structure
from metrimax.measure.units import ClassUnits, Queue, common_unit, split
from metrimax.measure.within import CompiledOracle, fewer_tables, part_of
from metrimax.protocols import Capabilities, Cut, Hinges, Kink, Labels, Oracle, Rows, Smooth, Vector, required

if TYPE_CHECKING:
    from metrimax.measure.contingency import ContingencyMeasure

SCANNED_UNITS = 2**9
"""Most units per class (or examples, if there are more) where the search looks at all pairs of units."""

ROUNDING = 1e-13
"""A loss counts as rising if one more mistake lowers it by no more than this, relative to the greatest loss."""


class ContingencyOracle(SampleOracle):
    """The most violated labelling of a contingency measure, exact, in O(n log n) where the structure allows it.

    References
    ----------
    Joachims (2005), Algorithm 2. Why no search over all tables is needed: `metrimax.measure.tables`.
    """

    def __init__(self, measure: ContingencyMeasure, y: Labels, sample_weight: Vector | None = None) -> None:
        self.pos, self.neg = split(y, sample_weight)
        super().__init__(self.pos.total + self.neg.total, len(y))
        self._measure = measure
        self._counts = measure.counts(self.pos.total, self.neg.total)
        self.structure: Structure | None = None
        self._fraction: Fraction | None = None
        self._find_structure()
        if self.structure == "scan" and sample_weight is not None:  # a scan visits every table: use fewer units
            self.pos, self.neg = split(y, sample_weight, most=SCANNED_UNITS)
            self._count_in_common(y, sample_weight)
        self._limits = _Limits(), _Limits()
        self._rises: tuple[float, float, float, float] | None = None
        self._top, self._rising = 1.0, False
        self._prepare_search()
        self.price = self._price()
        unequal = self.margins is not None and not (self.pos.whole and self.neg.whole)
        self._sum = HingeSum(self.hinges()) if unequal else None  # whole examples flip, where mistakes add up
        self.compiled = None if unequal else self._compile(self.pos, self.neg, self.size)

    def _find_structure(self) -> None:
        """The structure that the measure declares, if it holds for these units; otherwise what `tables.probe` finds."""
        declared, equal_units = self._measure.structure, self.pos.unit == self.neg.unit
        if declared is not None and (equal_units or declared != "count"):
            self.structure = declared
            return
        self._fraction = None if equal_units else self._as_fraction()
        if self._fraction is not None:
            self.structure = "monge"
        else:  # it is None until then, so that `_loss` applies the limits on counts
            self.structure = tables.probe(self._loss, self.pos.count, self.neg.count, equal_units=equal_units)

    def _prepare_search(self) -> None:
        """What the search of this structure looks up: coefficients or marginals of D, and bounds of its rises."""
        n_pos, n_neg = self.pos.count, self.neg.count
        if self.structure == "count":
            self._prepare_counts()
        elif self._fraction is not None:
            marginals = tables.fraction_marginals(self._loss, n_pos, n_neg)
            self._set_bounds(*marginals)
            self._rising = min(marginals) >= -ROUNDING
            self._top = self._loss_of(n_pos, n_neg) if self._rising else 1.0
        elif self.structure == "limited":
            self._inside = tables.limits(self._loss, n_pos, n_neg)
        elif self.structure != "scan":
            i, j = np.arange(n_pos + 1), np.arange(n_neg + 1)
            self._A, self._B = self._loss(i, np.zeros_like(i)), self._loss(np.zeros_like(j), j)
            if self.structure in tables.LINKS:  # which grow with both: all wrong need not be the worst
                self._top = float(tables.LINKS[self.structure](self._A.max(), self._B.max()))
                self._rising = _rises(self._A) and _rises(self._B)
            self._set_bounds(*tables.monge_marginals(self._loss, n_pos, n_neg))

    def _prepare_counts(self) -> None:
        """The coefficients ``D = u + v tp`` of each number of predicted positives that is admitted."""
        unit, low, high = self.pos.unit, 0, self.pos.count + self.neg.count
        if self._counts is not None:  # what lies between
            low = math.ceil(self._counts[0] / unit * (1 - 1e-12))
            high = min(high, math.floor(self._counts[1] / unit * (1 + 1e-12)))
        self._first_count = low
        self._u, self._v = self._coefficients(low, high)
        self._check_coefficients()
        self._top, *rises = _kernels.count_bounds(self._count_loss, self.neg.count)
        if self._counts is None:
            self._set_bounds(*rises)
            self._rising = min(rises) >= -ROUNDING * max(1.0, self._top)

    def _count_in_common(self, y: Labels, sample_weight: Vector) -> None:
        """Count both classes in units of one size, if there are many tables, where D is linear in tp for every m."""
        if self._measure.structure != "count" or self.pos.count * self.neg.count <= SCANNED_UNITS**2:
            return
        if (unit := common_unit(self.pos, self.neg)) is not None:
            self.pos, self.neg = split(y, sample_weight, unit=unit)
            self.structure = "count"

    def __call__(self, scores: Vector) -> Cut:
        self.check(scores)
        if self.compiled is not None:
            return Cut(*self.compiled.cut(scores))
        if self._sum is not None:
            return self._sum(scores)
        queues = [units.queue(scores, *limit) for units, limit in zip((self.pos, self.neg), self._limits, strict=True)]
        value, *flips = self._argmax(*queues)
        slope = np.zeros(self.size)
        if value <= 0:
            return Cut(0.0, slope)
        for units, queue, count in zip((self.pos, self.neg), queues, flips, strict=True):
            units.mark(scores, queue, count, self.n, slope)
        return Cut(self._loss_of(*flips), slope)

    def mean_cut(self, scores: Vector, mu: float) -> Cut:
        """A mean of labellings with the table of the cut, where the search is compiled; otherwise the cut itself."""
        self.check(scores)
        return self(scores) if self.compiled is None else Cut(*self.compiled.cut(scores, mu))

    @cached_property
    def margins(self) -> tuple[float, float] | None:
        """What one more mistake of either class costs, times n, where D is linear in (fn, fp); None where it is not."""
        if self._rises is None or self._counts is not None:
            return None
        least, most, slack = self._rises[::2], self._rises[1::2], 1e-9 * max(map(abs, self._rises))
        if any(b - a > slack for a, b in zip(least, most, strict=True)):  # D is not linear
            return None
        pos, neg = (
            max(0.0, (a + b) / 2) * self.n / units.unit
            for units, a, b in zip((self.pos, self.neg), least, most, strict=True)
        )
        return pos, neg

    @property
    def can(self) -> Capabilities:
        return Capabilities(
            compiled=self.compiled,
            smooth=lambda: self.smooth,
            hinges=None if self.margins is None else self.hinges,
            mistakes=self.mistakes,
            kink=self.kink,
            within=None if self.compiled is None or self._counts is not None else self.within,
        )

    def hinges(self) -> Hinges:
        """The risk as a sum over examples, where mistakes add up (there are `margins`)."""
        if self.margins is None:
            raise ValueError(f"the risk of {self._measure.name!r} is no sum over examples: look at can.hinges first")
        return self.mistakes()._replace(margin=self._by_class(*self.margins))

    def mistakes(self) -> Hinges:
        """The error rate as hinges, from which a solver may start."""
        weight = self._by_class(*(1.0 if units.alike else units.weight for units in (self.pos, self.neg)))
        return Hinges(self._by_class(self.pos.sign, self.neg.sign), np.ones(self.size), weight)

    def kink(self) -> Kink | None:
        """Labellings in which one class is all wrong, if their loss is R(0) whatever becomes of the other class.

        None if there are no such, or if examples of the other class flip by units that are not their own weights: a
        mean of labellings may then have a number of flips that no labelling has.
        """
        if self._counts is not None:  # with a limit on the predicted positives the other class cannot flip freely
            return None
        worst = self(np.zeros(self.size)).loss
        for units, others, order in ((self.pos, self.neg, 1), (self.neg, self.pos, -1)):
            counts = np.full(others.count + 1, units.count), np.arange(others.count + 1)
            loss = float(self._loss(*counts[::order]).min())
            if loss >= worst - ROUNDING and units.complete and (others.whole or others.copies):
                sign, _, weight = self.mistakes()
                return Kink(loss, sign, weight, others.members.astype(np.int64))
        return None

    def _by_class(self, positive: Vector | float, negative: Vector | float) -> Vector:
        """A value for every example, by its class; zero for those without weight, which are in neither."""
        everyone = len(self.pos.members) + len(self.neg.members) == self.size
        if everyone and not isinstance(negative, np.ndarray):
            values = np.full(self.size, negative)  # mostly the larger class
        else:
            values = np.zeros(self.size)
            values[self.neg.members] = negative
        values[self.pos.members] = positive
        return values

    @cached_property
    def smooth(self) -> Smooth | None:
        """The smoothed risk, ``(scores, mu) -> (value, cut)``; None where there is none."""
        count = (self._first_count, self._u, self._v) if self.structure == "count" else None
        return contingency_smoothing(self.size, self.pos, self.neg, self._loss, self.structure or "scan", count)

    def within(self, rows: Rows) -> Oracle:
        """The risk over labellings that flip these rows only (ascending), of their scores."""
        kernel = self._compile(part_of(self.pos, rows), part_of(self.neg, rows), len(rows))
        return CompiledOracle(self.n, len(rows), self.price, required(kernel, "expected a search that is compiled"))

    def _compile(self, pos: ClassUnits, neg: ClassUnits, size: int) -> _kernels.TableSearch | None:
        """The search in one compiled call, for the structures that have one; of both classes, or of a part of them."""
        first, structure = 0, str(self.structure)
        if structure == "count":
            first, u, v = self._first_count, self._u, self._v
        elif structure in tables.LINKS:
            u, v = self._A, self._B
        elif self._fraction is not None:
            structure, (u, v) = "fraction", map(np.array, self._fraction)
        else:
            return None
        if size < self.size:
            u, v = fewer_tables(structure, u, v, (self.pos, self.neg), (pos, neg))
        loss = _kernels.TableLoss(structure, u, v, m_low=first, top=self._top, rising=self._rising)
        flips = [self._flips(*one, size) for one in zip((pos, neg), self._limits, strict=True)]
        return _kernels.TableSearch(size, flips[0], flips[1], loss)

    def _flips(self, units: ClassUnits, limits: _Limits, size: int) -> _kernels.FlipClass:
        step = units.unit / self.n
        if units.whole:
            return _kernels.FlipClass(units.members, sign=units.sign, step=step, low=limits.low, high=limits.high)
        weights = np.zeros(size)
        weights[units.members] = units.weight / units.unit
        return _kernels.FlipClass.weighted(
            units.members, sign=units.sign, step=step, weights=weights, units=units.count
        )

    def _as_fraction(self) -> Fraction | None:
        """D in units, if it is known to be a fraction that is Monge and all tables are admissible."""
        given = self._measure.fraction(self.pos.total, self.neg.total)
        total = map(np.asarray, (self.pos.total, 0.0, 0.0, self.neg.total))
        if given is None or self._counts is not None or self._measure.admissible(*total) is not None:
            return None
        fraction = given.counted(self.pos.unit, self.neg.unit)
        return fraction if fraction.is_monge(self.pos.count, self.neg.count) else None

    @property
    def _count_loss(self) -> _kernels.CountLoss:
        return _kernels.CountLoss(self.pos.count, self._first_count, self._u, self._v)

    def _argmax(self, pos: Queue, neg: Queue) -> tuple[float, int, int]:
        """Value, false negatives and false positives of the best table."""
        steps = self.pos.unit / self.n, self.neg.unit / self.n
        if self.structure == "count" or self.structure in tables.LINKS:
            fn, fp = (_kernels.Queue(*queue[:3], step) for queue, step in zip((pos, neg), steps, strict=True))
            if self.structure == "count":
                return _kernels.count_argmax(fn, fp, self._count_loss)
            return _kernels.monge_argmax(self.structure, fn, fp, self._A, self._B)

        def loss(i: npt.NDArray[np.generic], j: npt.NDArray[np.generic]) -> Vector:
            return self._loss(i + pos.first, j + neg.first)

        P, N = pos.prefix(steps[0]), neg.prefix(steps[1])
        if self.structure == "limited":
            return tables.limited_argmax(loss, P, N, self._inside)
        value, i, j = (tables.monge_argmax if self.structure == "monge" else tables.scan_argmax)(loss, P, N)
        if value == -np.inf and np.isfinite(P[-1] + N[-1]):  # the scores are finite, so the measure is the cause
            raise ValueError(
                f"the measure {self._measure.name!r} admits no table of {self.pos.total:g} positives and "
                f"{self.neg.total:g} negatives: expected one at least; see what its predicate (where, admissible) or "
                "its counts exclude"
            )
        return value, i + pos.first, j + neg.first

    def _loss_of(self, fn: int, fp: int) -> float:
        """D of one admissible table, in units."""
        if self.structure == "count":
            tp = self.pos.count - fn
            at = tp + fp - self._first_count
            return float(self._u[at] + self._v[at] * tp)
        return float(self._loss(np.asarray(fn), np.asarray(fp)))

    def _loss(self, i: npt.NDArray[np.generic], j: npt.NDArray[np.generic]) -> Vector:
        """D of i units of false negatives and j of false positives; -inf where no labelling may have that table."""
        fn, fp = np.asarray(i) * self.pos.unit, np.asarray(j) * self.neg.unit
        table = self.pos.total - fn, fp, fn, self.neg.total - fp
        value = self._measure.table_loss(*table)
        allowed = self._measure.admissible(*table)
        if self._counts is not None and self.structure != "count":
            m, slack = table[0] + fp, 1e-9 * self.n
            inside = (m >= self._counts[0] - slack) & (m <= self._counts[1] + slack)
            allowed = inside if allowed is None else allowed & inside
        value = value if allowed is None else np.where(allowed, value, -np.inf)
        if np.isnan(value).any():
            at = np.flatnonzero(np.isnan(value))[0]
            cells = [float(np.broadcast_to(t, np.shape(value)).flat[at]) for t in table]
            raise ValueError(
                f"the measure {self._measure.name!r} returned NaN for tp, fp, fn, tn = {cells}: expected a loss for "
                "every table; define the case 0/0, as in metrimax.measure.contingency.ratio"
            )
        return value

    def _coefficients(self, low: int, high: int) -> tuple[Vector, Vector]:
        """``u, v`` with ``D = u[m - low] + v[m - low] tp`` for m = tp + fp from low to high, in units."""
        unit = self.pos.unit
        given = self._measure.by_count(
            unit * np.arange(low, high + 1, dtype=np.float64), self.pos.total, self.neg.total
        )
        if given is None:
            return tables.count_coefficients(self._loss, self.pos.count, self.neg.count, low, high)
        u, v = (
            one if isinstance(one, np.ndarray) else np.broadcast_to(one, high + 1 - low)  # a view, not a copy
            for one in (given[0], unit * given[1])
        )
        return u, v

    def _check_coefficients(self) -> None:
        """Refuse NaN, which no comparison in the search would notice."""
        if not np.isnan(self._u.sum() + self._v.sum()):  # the sum needs no temporary vector
            return
        for name, values in (("u", self._u), ("v", self._v)):
            if (bad := np.flatnonzero(np.isnan(values))).size:
                raise ValueError(
                    f"the measure {self._measure.name!r} has NaN for the coefficient {name} of "
                    f"{(self._first_count + bad[0]) * self.pos.unit:g} predicted positives: expected a loss "
                    "D = u + v tp; define the case 0/0, as in metrimax.measure.contingency.ratio, and if it is "
                    "`admissible` that excludes tables, do not declare a structure"
                )

    def _set_bounds(self, fn_least: float, fn_most: float, fp_least: float, fp_most: float) -> None:
        """Set the limits outside which the sign of a flip's gain is known, with a margin for rounding."""
        self._rises = fn_least, fn_most, fp_least, fp_most
        self._limits = (
            _limits(fn_least, fn_most, self.pos.unit / self.n),
            _limits(fp_least, fp_most, self.neg.unit / self.n),
        )

    def _price(self) -> float:
        truth, one_fn, one_fp, swap = map(float, self._loss(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])))
        if np.isfinite(truth):  # zero, except for users' functions
            one_fn, one_fp, swap = one_fn - truth, one_fp - truth, swap - truth
        rise = one_fn / self.pos.unit + one_fp / self.neg.unit
        if not np.isfinite(rise):
            rise = swap / self.pos.unit
        return max(1.0, self.n / 2 * rise)


class _Limits(NamedTuple):
    """Costs below ``low`` flip in every optimum, costs from ``high`` on in none."""

    low: float = -np.inf
    high: float = np.inf


def _rises(losses: Vector) -> bool:
    """Whether the losses are in [0, 1] and never fall with more mistakes; then all links of them rise too."""
    return bool(losses[0] >= 0 and losses[-1] <= 1 and (losses[1:] >= losses[:-1]).all())


def _limits(least: float, most: float, step: float) -> _Limits:
    slack = 1e-9 * max(abs(least), abs(most))
    return _Limits((least - slack) / step, (most + slack) / step)
