"""The losses of SVM-perf and of its quantification patch, by their codes.

They differ from this library's measures in two ways. Not all are scaled to [0, 1]: ``D = Delta / 100``, with Delta in
percent, may exceed 1. And the argmax excludes all labellings without loss, not only the true one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from metrimax.measure import (
    PRBEP,
    AbsoluteError,
    ErrorRate,
    FBeta,
    GMean,
    NormalisedKLDivergence,
    PrecisionAtK,
    RecallAtK,
    RelativeAbsoluteError,
    ROCArea,
)
from metrimax.measure.contingency import ContingencyMeasure, ratio
from metrimax.measure.quantification import divergence
from metrimax.measure.sample import SampleOracle
from metrimax.measure.table_oracle import ContingencyOracle
from metrimax.measure.tables import Structure
from metrimax.measure.units import Queue
from metrimax.protocols import Capabilities, Cut, Labels, Line, Measure, Oracle, Vector


@dataclass(frozen=True)
class ZeroOne(ContingencyMeasure):
    """-l 0: 1 (not in percent) if any example is wrong."""

    name: ClassVar[str] = "zero/one"
    structure: ClassVar[Structure] = "max"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return np.where(fp + fn > 0, 0.01, 0.0)


class OnlyWrongCounts(ContingencyMeasure):
    """A loss that is 0 for every labelling with as many positives as the truth; those are excluded from the search.

    So two ranges are searched: fewer positives than n+, and more.
    """

    structure: ClassVar[Structure] = "count"

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle:
        ranges = (ContingencyOracle(_Range(self, fewer), y, sample_weight) for fewer in (True, False))
        return EitherOracle(*ranges, size=len(y))


@dataclass(frozen=True)
class _Range(ContingencyMeasure):
    """A loss restricted to labellings with fewer positives than the truth, or to those with more."""

    whole: ContingencyMeasure
    fewer: bool
    name: ClassVar[str] = "range"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return self.whole.table_loss(tp, fp, fn, tn)

    def counts(self, n_pos: float, n_neg: float) -> tuple[float, float]:
        return (0.0, n_pos - 1) if self.fewer else (n_pos + 1, n_pos + n_neg)


@dataclass(frozen=True)
class KLD(OnlyWrongCounts):
    """-l 12: the Kullback-Leibler divergence itself (not in percent)."""

    name: ClassVar[str] = "KLD"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return divergence(tp + fn, tn + fp, tp + fp) / 100


class NKLD(OnlyWrongCounts, NormalisedKLDivergence):
    """-l 13."""


class AE(OnlyWrongCounts, AbsoluteError):
    """-l 26."""


@dataclass(frozen=True)
class Milli(OnlyWrongCounts):
    """-l 16: (fp + fn) |fp - fn|, not normalised."""

    name: ClassVar[str] = "MILLI"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return (fp + fn) * np.abs(fp - fn)


class NAE(OnlyWrongCounts, RelativeAbsoluteError):
    """-l 21: |fn - fp| / max(n+, n-)."""


@dataclass(frozen=True)
class RAE(OnlyWrongCounts):
    """-l 27: the mean relative error of the two counts, smoothed by 1/2; may exceed 1."""

    name: ClassVar[str] = "RAE"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        off = np.abs(fn - fp)
        return (off / (tp + fn + 0.5) + off / (tn + fp + 0.5)) / 2


def _recall(tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
    return ratio(tp, tp + fn, 0.0)


def _accuracy(tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
    return (tp + tn) / (tp + fp + fn + tn)


def _f1(tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
    return ratio(2 * tp, 2 * tp + fp + fn, 0.0)


def _gm(tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
    return np.sqrt(ratio(tp, tp + fn, 0.0) * ratio(tn, tn + fp, 0.0))


@dataclass(frozen=True)
class QBeta(ContingencyMeasure):
    """-l 22 to 25: F_beta of quantification and recall, accuracy, F1 or the geometric mean.

    Tables where it is 0/0 are skipped.
    """

    part: Callable[[Vector, Vector, Vector, Vector], Vector] = _recall
    beta: float = 1.0
    name: ClassVar[str] = "Qb"
    structure: ClassVar[Structure] = "scan"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        share, part = self._parts(tp, fp, fn, tn)
        b2 = self.beta**2
        return 1 - ratio((1 + b2) * share * part, b2 * part + share, 0.0)

    def admissible(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> npt.NDArray[np.bool_]:
        share, part = self._parts(tp, fp, fn, tn)
        defined: npt.NDArray[np.bool_] = self.beta**2 * part + share != 0
        return defined

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle:
        return StoredTableOracle(self, y, sample_weight)

    def _parts(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> tuple[Vector, Vector]:
        return 1 - np.abs(fn - fp) / np.maximum(tp + fn, tn + fp), self.part(tp, fp, fn, tn)


class SvmperfPrecisionAtK(PrecisionAtK):
    """-l 4: at least k are predicted positive, and at least one of them is a false positive (else there is no loss)."""

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle:
        return ForcedOracle(self, y, positive=False)


class SvmperfRecallAtK(RecallAtK):
    """-l 5: at most k are predicted positive, and at least one positive is missed (else there is no loss)."""

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle:
        return ForcedOracle(self, y, positive=True)


class EitherOracle(SampleOracle):
    """The more violated of the cuts of two oracles."""

    def __init__(self, *oracles: Oracle, size: int) -> None:
        super().__init__(oracles[0].n, size)
        self._oracles = oracles
        self.price = oracles[0].price

    def __call__(self, scores: Vector) -> Cut:
        return max((oracle(scores) for oracle in self._oracles), key=lambda cut: cut.loss + float(cut.slope @ scores))

    def line(self, scores: Vector, move: Vector) -> Line:
        lines = [oracle.line(scores, move) for oracle in self._oracles]
        return lambda t: max(line(t) for line in lines)


class StoredTableOracle(ContingencyOracle):
    """Scan of a table of D <= 1 that is computed once, if it fits; otherwise the general scan.

    P and N are concave, so the rows and columns that the bound does not exclude are contiguous.
    """

    most = 2**25  #: tables stored, 256 MB
    block = 2**16  #: tables evaluated at a time, so that they stay in the cache

    def __init__(self, measure: ContingencyMeasure, y: Labels, sample_weight: Vector | None = None) -> None:
        super().__init__(measure, y, sample_weight)
        n_pos, n_neg = self.pos.count, self.neg.count
        self._table: Vector | None = None
        if (n_pos + 1) * (n_neg + 1) <= self.most:
            self._table = self._loss(np.arange(n_pos + 1)[:, None], np.arange(n_neg + 1)[None, :])

    def _argmax(self, pos: Queue, neg: Queue) -> tuple[float, int, int]:
        if self._table is None:
            return super()._argmax(pos, neg)
        P, N = pos.prefix(self.pos.unit / self.n), neg.prefix(self.neg.unit / self.n)
        best = float((self._table[::16, ::16] + P[::16, None] + N[None, ::16]).max())  # a start for the bound
        rows, columns = (np.flatnonzero(own + other.max() + 1 >= best) for own, other in ((P, N), (N, P)))
        first, last = columns[0], columns[-1] + 1
        height = max(1, self.block // (last - first))
        best, at = -np.inf, (0, 0)
        for top in range(rows[0], rows[-1] + 1, height):
            under = min(top + height, rows[-1] + 1)
            values = self._table[top:under, first:last] + N[first:last]
            values += P[top:under, None]
            k = int(values.argmax())
            if values.flat[k] > best:
                best = float(values.flat[k])
                i, j = divmod(k, int(last - first))
                at = (int(top) + i, int(first) + j)
        return best, *at


class ForcedOracle(ContingencyOracle):
    """Searches labellings with at least one mistake in a given class: its cheapest flip is always made."""

    def __init__(self, measure: ContingencyMeasure, y: Labels, *, positive: bool) -> None:
        super().__init__(measure, y)
        self.compiled = None  # the compiled search has no such restriction
        self._positive = positive

    @property
    def can(self) -> Capabilities:
        return Capabilities()

    def _argmax(self, pos: Queue, neg: Queue) -> tuple[float, int, int]:
        if self._positive:
            pos = _force(pos)
        else:
            neg = _force(neg)
        return super()._argmax(pos, neg)


def _force(queue: Queue) -> Queue:
    if queue.first > 0:
        return queue
    return Queue(queue.costs[1:], 1, float(queue.costs[0]), queue.low)


def check_share(code: int, p: float) -> None:
    """Raise if ``--p`` is out of range for -l 4 or 5; 0 stands for the default."""
    if code == 4 and p > 1:
        raise ValueError(f"expected --p of at most 1 for Prec@k (-l 4), got {p:g}")
    if code == 5 and 0 != p < 1:
        raise ValueError(f"expected --p of at least 1 for Rec@k (-l 5), got {p:g}")


def at_k(code: int, p: float, n: int, n_pos: int) -> Measure:
    """-l 4 and 5: k = floor(P p), from 1 to n; p = 0 stands for 0.5 (precision) and 2 (recall)."""
    check_share(code, p)
    if code == 4:
        return SvmperfPrecisionAtK(max(1, floor((p or 0.5) * n_pos)), "at_least")
    return SvmperfRecallAtK(max(1, floor(min(n, (p or 2.0) * n_pos))), "at_most")


_PLAIN: dict[int, Callable[[], Measure]] = {
    0: ZeroOne,
    1: FBeta,
    2: ErrorRate,
    3: PRBEP,
    10: ROCArea,
    12: KLD,
    13: NKLD,
    16: Milli,
    20: GMean,
    21: NAE,
    26: AE,
    27: RAE,
}
_Q = {22: _recall, 23: _accuracy, 24: _f1, 25: _gm}


def known(code: int) -> bool:
    """Whether there is a loss with this code."""
    return code in _PLAIN or code in _Q or code in (4, 5)


def loss_for(code: int, *, n: int, n_pos: int, p: float = 0.0, beta: float = 1.0) -> Measure:
    """The loss with SVM-perf's code ``-l``, ``--p`` and the patch's ``-j``, for n examples, n_pos of them positive."""
    if code in _PLAIN:
        return _PLAIN[code]()
    if code in _Q:
        return QBeta(_Q[code], beta)
    if code in (4, 5):
        return at_k(code, p, n, n_pos)
    raise ValueError(f"unknown loss code {code}: expected 0 to 5, 10, 12, 13, 16 or 20 to 27")
