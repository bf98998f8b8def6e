"""Measures of a fixed number of predicted positives: precision and recall at k, and their break-even point.

Only labellings with the right number of positives are admissible, so these measures say nothing about
a threshold: they look at the top of the ranking. `score` takes the top of the batch it is given; where k is a number,
estimators first change it with the size of the batch (`on_part`). The threshold frozen at fit lies halfway between the
k-th and the next training score.

Where k is not the number of positives, the truth itself is not admissible, and with ``labellings="exact"`` a
constant feature (the intercept, or features with a common mean) lowers the risk of all labellings alike without
learning anything: see the Notes of `PrecisionAtK`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax._validation import is_number, is_whole, warn
from metrimax.measure.contingency import ContingencyMeasure, of_one, ratio
from metrimax.measure.sample import SampleOracle
from metrimax.measure.smoothing import searched_smoothing, top_smoothing
from metrimax.measure.table_oracle import ContingencyOracle
from metrimax.measure.tables import Structure
from metrimax.measure.top import TopRankingOracle, whole_weights
from metrimax.measure.units import split
from metrimax.protocols import Capabilities, Cut, Hinges, Kink, Labels, Line, Measure, Oracle, Rows, Vector

SORTED = 2000
"""Rows that are sorted; of more, halves are compared. With 200: 1.7 times the seconds of fits on 20,000 rows."""


class TopMeasure(ContingencyMeasure):
    """A measure of the ``k`` examples with the highest scores."""

    structure: ClassVar[Structure] = "count"
    ranks: ClassVar[bool] = True
    labellings: str = "exact"

    def number(self, n_pos: float, n_neg: float) -> float:
        """How many examples of a sample are called positive."""
        raise NotImplementedError

    def score(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        """The measure of the top k of this batch; ties at the boundary count by their average over all orders."""
        y = np.asarray(y) > 0
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        n_pos, n_neg = float(weight[y].sum()), float(weight[~y].sum())
        k = self.number(n_pos, n_neg)
        boundary = _boundary(scores, weight, k)[0]
        above, tied = scores > boundary, scores == boundary
        share = (k - weight[above].sum()) / weight[tied].sum()
        tp = float(weight[above & y].sum() + share * weight[tied & y].sum())
        return of_one(self.table_score, *_table(k, tp, n_pos, n_neg))

    def threshold(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        """Halfway between the k-th highest training score and the next one."""
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        k = self.number(float(weight[y].sum()), float(weight[~y].sum()))
        last, following = _boundary(scores, weight, k)
        return (last + following) / 2

    def counts(self, n_pos: float, n_neg: float) -> tuple[float, float]:
        k, n = self.number(n_pos, n_neg), n_pos + n_neg
        return {"exact": (k, k), "at_least": (k, n), "at_most": (0.0, k)}[self.labellings]

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle:
        if self.labellings == "rankings":
            return self._ranking_oracle(y, sample_weight)
        if self.labellings != "exact":
            return TopRangeOracle(self, y, sample_weight)
        made = TopOracle(self, y, sample_weight)
        if made.k >= made.n * (1 - 1e-12):
            warn(f"{self.name}: k is the whole sample, so that all rankings are equally good: choose a smaller k")
        elif abs(made.k - made.n_pos) > 1e-9 * made.n:
            which, other = ("fewer", "at_least") if made.k < made.n_pos else ("more", "at_most")
            # without numbers, so that those of other labels and folds are the same warning
            warn(
                f"{self.name}: labellings with exactly k positives, {which} than there are, let a shift of all scores "
                f"lower the risk without learning anything; give labellings={other!r}, under which none does, or by "
                f"name {self.name.removesuffix('_at_k')}@K:labellings={other}"
            )
        return made

    def _ranking_oracle(self, y: Labels, sample_weight: Vector | None) -> Oracle:
        """The oracle for labellings="rankings": each positive in the first k ranks has the same gain."""
        whole_weights(self.name, sample_weight, len(y))  # or k may be any number
        pos, neg = split(y, sample_weight)
        k = self.number(pos.total, neg.total)
        none, one = (of_one(self.table_loss, *_table(k, tp, pos.total, neg.total)) for tp in (0.0, 1.0))
        gain = none - one
        return TopRankingOracle(self.name, gain * np.asarray(y, dtype=np.float64), np.ones(round(k)), sample_weight)


@dataclass(frozen=True)
class PRBEP(TopMeasure):
    """Precision/recall break-even point: precision (and recall) when as many are called positive as there are.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.measure import PRBEP
    >>> round(PRBEP().score(np.array([1, 1, 0, 0]), np.array([2.0, -1.0, 1.0, -3.0])), 3)
    0.5
    """

    name: ClassVar[str] = "prbep"

    def number(self, n_pos: float, n_neg: float) -> float:
        return n_pos

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return 1 - ratio(tp, tp + fn, 1.0)


@dataclass(frozen=True)
class _AtK(TopMeasure):
    k: float | str = "1p"
    labellings: Literal["exact", "at_least", "at_most", "rankings"] = "exact"
    absolute: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        unit = self._share()[1]
        if not isinstance(self.absolute, bool) or (self.absolute and unit):
            raise ValueError(
                f"expected absolute as True or False, and True only with k as a whole number, got {self.absolute!r} "
                f"with k={self.k!r}"
            )
        if self.labellings not in ("exact", "at_least", "at_most", "rankings"):
            raise ValueError(
                f"expected labellings 'exact', 'at_least', 'at_most' or 'rankings', got {self.labellings!r}"
            )

    def _share(self) -> tuple[float, str]:
        """The number in k, and what it counts: examples, times the positives (p), or hundredths of the sample (%)."""
        match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)([p%])", self.k) if isinstance(self.k, str) else None
        if match and float(match[1]) > 0 and not (match[2] == "%" and float(match[1]) > 100):
            return float(match[1]), match[2]
        number = 0.0 if isinstance(self.k, str) or not is_number(self.k) else float(self.k)
        if is_whole(self.k) and number >= 1:
            return number, ""
        if 0 < number < 1:
            return 100 * number, "%"
        raise ValueError(
            "expected k as a whole number of at least 1, or as in '2p' for twice the positives, or as a share of the "
            f"sample such as '1%' or 0.01, got {self.k!r}"
        )

    def number(self, n_pos: float, n_neg: float) -> float:
        k, n = self.wanted(n_pos, n_neg), n_pos + n_neg
        if k > n and not self._share()[1]:
            raise ValueError(
                f"{self.name}: k = {k:g} is more than the {n:g} examples given; choose a smaller k, or a share such as "
                "'1%'"
            )
        return min(k, n)

    def wanted(self, n_pos: float, n_neg: float) -> float:
        """The number that k stands for, which may be more than there are."""
        k, unit = self._share()
        n = n_pos + n_neg
        of = {"": k, "p": n_pos, "%": n}[unit]
        k = {"": k, "p": k * n_pos, "%": k * n / 100}[unit]
        slack = 1e-12 * of  # sums of weights are rounded: with balanced ones 2p is all of them, or a bit more
        if unit and abs(of - round(of)) <= slack:  # examples, not weights: take whole ones
            k = max(1.0, float(np.floor(k + slack)))
        return k


@dataclass(frozen=True)
class PrecisionAtK(_AtK):
    """Precision among the k examples with the highest scores.

    Parameters
    ----------
    k : int, float or str
        A number, a multiple of the number of positives such as ``"0.5p"``, which is never more than all, or a share of
        the sample such as ``"1%"`` or 0.01.
    labellings : {"exact", "at_least", "at_most", "rankings"}
        Which labellings the training problem compares with the truth: those with exactly k positives, or SVM-perf's
        at least k (for precision). With "rankings" whole rankings are compared, pair by pair as for ROC area.
    absolute : bool, default=False
        By default a number k belongs to the training sample: folds and the ``score`` of an estimator take the same
        share of their rows. True: k rows of every fold and batch, whatever their size.

    Notes
    -----
    With "exact" and k other than the number of positives, every admissible labelling has the same surplus of
    positives over the truth, so a shift of all scores changes the risk by the same amount for all of them: unless C is
    small, the cheapest solution is a shift that learns nothing. "at_least" (k up to the number of positives) admits
    the truth and has no such solution; nor has "at_most" for recall with k from the number of positives up, nor have
    "rankings", for any k: only differences of scores count.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.measure import PrecisionAtK
    >>> round(PrecisionAtK(1).score(np.array([1, 1, 0, 0]), np.array([2.0, -1.0, 1.0, -3.0])), 3)
    1.0
    """

    name: ClassVar[str] = "precision_at_k"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return 1 - ratio(tp, tp + fp, 0.0)


@dataclass(frozen=True)
class RecallAtK(_AtK):
    """Recall among the k examples with the highest scores, relative to the most that k can hold, min(k, n+).

    Parameters
    ----------
    k : int, float or str
        A number, a multiple of the number of positives (``"2p"`` is twice the positives, but never more than all), or a
        share of the sample such as ``"1%"`` or 0.01.
    labellings : {"exact", "at_least", "at_most", "rankings"}
        As for `PrecisionAtK`; SVM-perf's recall at k compares with labellings of at most k positives.
    denominator : {"attainable", "positives"}
        "positives": tp / n+, the plain recall, which the top k cannot raise above k / n+. The same as "attainable"
        where k is at least n+.
    absolute : bool, default=False
        As for `PrecisionAtK`.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.measure import RecallAtK
    >>> round(RecallAtK("2p").score(np.array([1, 1, 0, 0]), np.array([2.0, -1.0, 1.0, -3.0])), 3)
    1.0
    """

    k: float | str = "2p"
    denominator: Literal["attainable", "positives"] = "attainable"
    name: ClassVar[str] = "recall_at_k"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.denominator not in ("attainable", "positives"):
            raise ValueError(f"expected denominator 'attainable' or 'positives', got {self.denominator!r}")

    @property
    def structure(self) -> Structure:  # type: ignore[override]
        # with more than k predicted positives tp may exceed k; the surplus does not count
        return "scan" if self.labellings == "at_least" and self.denominator == "attainable" else "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        n_pos, n_neg = tp + fn, fp + tn
        if self.denominator == "positives":
            return 1 - ratio(tp, n_pos, 1.0)
        k = self.number(float(np.ravel(n_pos)[0]), float(np.ravel(n_neg)[0]))
        return 1 - ratio(np.minimum(tp, k), np.minimum(k, n_pos), 1.0)


@dataclass(frozen=True)
class RecallAtBudget(RecallAtK):
    """Recall where no more than k examples may be called positive: what a budget of k finds.

    `RecallAtK`, but relative to all positives, and trained for whole rankings, so that k may be less than their number.

    Parameters
    ----------
    k : int, float or str
        The budget: a number, or a share of the sample such as ``"1%"`` or 0.01.
    labellings : {"exact", "at_least", "at_most", "rankings"}
        As for `PrecisionAtK`.
    denominator : {"attainable", "positives"}
        As for `RecallAtK`, of the loss that is trained for alone.
    absolute : bool, default=False
        As for `PrecisionAtK`.

    Notes
    -----
    `predict` calls about the same share of other data positive. To call exactly k, take the k highest of
    `decision_function`.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax import RecallAtBudget
    >>> round(RecallAtBudget(1).score(np.array([1, 1, 0, 0]), np.array([2.0, -1.0, 1.0, -3.0])), 3)
    0.5
    """

    k: float | str = "10%"
    labellings: Literal["exact", "at_least", "at_most", "rankings"] = "rankings"
    name: ClassVar[str] = "recall_at_budget"

    def table_score(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return ratio(tp, tp + fn, 1.0)


def on_part(measure: Measure, share: float) -> Measure:
    """The measure for a sample of ``share`` times the size: a k that counts examples changes with it."""
    if isinstance(measure, _AtK) and not measure.absolute and is_whole(measure.k):
        return replace(measure, k=max(1, round(float(measure.k) * share)))
    return measure


class TopOracle(SampleOracle):
    """The most violated labelling with exactly k positives, for a loss linear in tp.

    With ``D = u + v tp`` and s the scores, the best labelling calls positive the k examples with the highest
    ``s_i / n + v [y_i = +1]``: a selection, O(n). With weights the last one counts in part.
    """

    def __init__(self, measure: TopMeasure, y: Labels, sample_weight: Vector | None = None) -> None:
        pos, neg = split(y, sample_weight)
        super().__init__(pos.total + neg.total, len(y))
        self._y = np.ascontiguousarray(y, dtype=bool)
        self._weight = sample_weight
        self.n_pos = pos.total
        self.k = k = measure.number(pos.total, neg.total)
        least, most = max(0.0, k - neg.total), min(k, pos.total)

        low, high = (of_one(measure.table_loss, *_table(k, tp, pos.total, neg.total)) for tp in (least, most))
        self._v = (high - low) / (most - least) if most > least else 0.0
        self._u = low - self._v * least
        self.price = max(1.0, self.n / 2 * -self._v)  # of one swap
        self.compiled = None
        self.smooth = top_smoothing(pos, neg, k, self._u, self._v)
        if sample_weight is None:
            self.compiled = _kernels.TopSearch(self._y, round(k), self._u, self._v)
            self.smooth = searched_smoothing(self.compiled, truth=k == pos.total)
        else:
            used = sample_weight > 0
            self._merit = np.where(used, self._v * self._y, -np.inf)  # where the scores are 0
            reached = np.cumsum(np.sort(sample_weight[used]))
            self._most = min(int(np.searchsorted(reached, k)) + 1, len(reached))  # so many weigh k for sure

    @property
    def can(self) -> Capabilities:
        return Capabilities(
            compiled=self.compiled,
            smooth=lambda: self.smooth,
            mistakes=self.mistakes,
            kink=self.kink,
            at_k=self.k,
        )

    def __call__(self, scores: Vector) -> Cut:
        return self.mean_cut(scores, 0.0)

    def mean_cut(self, scores: Vector, mu: float) -> Cut:
        """Like the cut; without weights, examples of about the merit of the k-th are called positive in part."""
        self.check(scores)
        if self.compiled is not None:
            return Cut(*self.compiled.cut(scores, mu))
        rows, shares = self._called(scores / self.n + self._merit)
        called = np.zeros(self.size)
        called[rows] = shares
        slope = (called - self._y * self._weight) / self.n
        loss = self._u + self._v * float(called[self._y].sum())
        if loss + _kernels.dot(slope, scores) <= 0:
            return Cut(0.0, np.zeros_like(slope))
        return Cut(loss, slope)

    def line(self, scores: Vector, move: Vector) -> Line:
        if self._weight is None:
            return super().line(scores, move)
        start, step, truth = scores / self.n + self._merit, move / self.n, self._y * self._weight
        of_truth = _kernels.dot(truth, scores), _kernels.dot(truth, move)

        def risk(t: float) -> tuple[float, float]:
            rows, shares = self._called(start + t * step)
            rise = (float(shares @ move[rows]) - of_truth[1]) / self.n
            height = (float(shares @ scores[rows]) - of_truth[0]) / self.n + t * rise
            value = self._u + self._v * float(shares[self._y[rows]].sum()) + height
            return (value, rise) if value > 0 else (0.0, 0.0)

        return risk

    def _called(self, merit: Vector) -> tuple[Rows, Vector]:
        """The rows of the greatest merit, and how much of the weight of each is called positive, k in all.

        As long as many rows are left, those above the middle are all called, or the others are not.
        """
        assert self._weight is not None
        rows, left = np.arange(self.size), self.k
        if 2 * self._most < self.size:
            rows = np.flatnonzero(merit >= np.partition(merit, -self._most)[-self._most])
        sure: list[Rows] = []
        while len(rows) > SORTED:
            own = merit[rows]
            middle = np.partition(own, len(own) // 2)[len(own) // 2]
            upper = own > middle if own.max() > middle else own == middle
            if upper.all():  # all are equal
                break
            weight = float(self._weight[rows[upper]].sum())
            if weight <= left:
                sure.append(rows[upper])
                left -= weight
                rows = rows[~upper]
            else:
                rows = rows[upper]
        rows = rows[np.argsort(-merit[rows], kind="stable")]
        weights = self._weight[rows]
        shares = np.clip(left - (np.cumsum(weights) - weights), 0, weights)
        every = np.concatenate([*sure, rows])
        return every, np.concatenate([self._weight[every[: len(every) - len(rows)]], shares])

    def mistakes(self) -> Hinges:
        """The error rate as hinges, from which a solver may start."""
        weight = np.ones(self.size) if self._weight is None else np.asarray(self._weight, dtype=np.float64)
        return Hinges(np.where(self._y, 1.0, -1.0), np.ones(self.size), weight)

    def kink(self) -> Kink | None:
        """Labellings that call k negatives positive, and no positive."""
        sign, _, weight = self.mistakes()
        free = np.flatnonzero(~self._y)
        if self._v >= 0 or self.k > weight[free].sum():
            return None
        return Kink(self._u, sign, weight, free, self.k)


class TopRangeOracle(ContingencyOracle):
    """At least, or at most, k positives; the price is that of a swap, as for exactly k."""

    def __init__(self, measure: TopMeasure, y: Labels, sample_weight: Vector | None = None) -> None:
        super().__init__(measure, y, sample_weight)
        self.price = TopOracle(measure, y, sample_weight).price


def _table(k: float, tp: float, n_pos: float, n_neg: float) -> tuple[float, float, float, float]:
    """``tp, fp, fn, tn`` where k examples are called positive, tp of them rightly."""
    return tp, k - tp, n_pos - tp, n_neg - k + tp


def _boundary(scores: npt.NDArray[np.float64], weight: Vector, k: float) -> tuple[float, float]:
    """The score at which k examples from the top are reached, and the score of the next place; weights are copies."""
    enough = k * (1 - 1e-12)
    if (weight == 1).all():  # a selection, without sorting all of them
        last = min(max(math.ceil(enough), 1), len(scores)) - 1
        ends = [last, last + 1][: len(scores) - last]
        score, *following = (-np.partition(-scores, ends)[ends]).tolist()
        return score, following[0] if following else score - 2.0
    order = np.argsort(-scores, kind="stable")
    order = order[weight[order] > 0]
    reached = np.cumsum(weight[order])
    last = min(int(np.searchsorted(reached, enough)), len(order) - 1)
    score = float(scores[order[last]])
    if reached[last] >= (math.ceil(enough) + 1) * (1 - 1e-12):  # the next place belongs to a copy of the same example
        return score, score
    return score, float(scores[order[last + 1]]) if last + 1 < len(order) else score - 2.0
