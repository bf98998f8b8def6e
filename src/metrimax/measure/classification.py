"""Measures of a classification's contingency table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from metrimax.measure.contingency import ContingencyMeasure, check_beta, ratio
from metrimax.measure.tables import Structure
from metrimax.protocols import Vector


@dataclass(frozen=True)
class ErrorRate(ContingencyMeasure):
    """Error rate, (fn + fp) / n; reported as accuracy."""

    name: ClassVar[str] = "error"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return (fn + fp) / (tp + fp + fn + tn)

    def by_count(self, m: Vector, n_pos: float, n_neg: float) -> tuple[Vector, float]:
        n = n_pos + n_neg
        return (n_pos + m) / n, -2 / n


@dataclass(frozen=True)
class CostModel(ContingencyMeasure):
    """Linear cost model, (fn_cost fn + fp_cost fp) relative to the cost of getting everything wrong.

    The costs scale the margins that examples have to keep. To weight their slacks instead (SVM-light's ``-j``),
    train ``error`` with ``class_weight``.
    """

    fn: float = 1.0
    fp: float = 1.0
    name: ClassVar[str] = "cost"
    structure: ClassVar[Structure] = "count"

    def __post_init__(self) -> None:
        if not (0 <= self.fn < np.inf and 0 <= self.fp < np.inf and self.fn + self.fp > 0):
            raise ValueError(f"expected finite costs, not negative and not both zero, got fn={self.fn}, fp={self.fp}")

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return ratio(self.fn * fn + self.fp * fp, self.fn * (tp + fn) + self.fp * (tn + fp), 0.0)


@dataclass(frozen=True)
class BalancedError(ContingencyMeasure):
    """Mean of the error rates of the two classes; reported as balanced accuracy."""

    name: ClassVar[str] = "balanced_error"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return (ratio(fn, tp + fn, 0.0) + ratio(fp, tn + fp, 0.0)) / 2


@dataclass(frozen=True)
class FBeta(ContingencyMeasure):
    """F_beta, the weighted harmonic mean of precision and recall."""

    beta: float = 1.0
    name: ClassVar[str] = "fbeta"
    structure: ClassVar[Structure] = "count"

    def __post_init__(self) -> None:
        check_beta(self.beta)

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        b2 = self.beta**2
        hits = (1 + b2) * tp
        return 1 - ratio(hits, hits + fp + b2 * fn, 1.0)

    def by_count(self, m: Vector, n_pos: float, n_neg: float) -> tuple[float, Vector]:
        b2 = self.beta**2
        return 1.0, -(1 + b2) / (m + b2 * n_pos)


@dataclass(frozen=True)
class Jaccard(ContingencyMeasure):
    """Jaccard index of the positive class, tp / (tp + fp + fn)."""

    name: ClassVar[str] = "jaccard"
    structure: ClassVar[Structure] = "product"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return 1 - ratio(tp, tp + fp + fn, 1.0)


@dataclass(frozen=True)
class GMean(ContingencyMeasure):
    """Geometric mean of the true positive and true negative rates."""

    name: ClassVar[str] = "gmean"
    structure: ClassVar[Structure] = "product"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return 1 - np.sqrt(ratio(tp, tp + fn, 1.0) * ratio(tn, tn + fp, 1.0))


@dataclass(frozen=True)
class QMean(ContingencyMeasure):
    """One minus the quadratic mean of the error rates of the two classes."""

    name: ClassVar[str] = "qmean"
    structure: ClassVar[Structure] = "hypot"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        rms: Vector = np.hypot(ratio(fn, tp + fn, 0.0), ratio(fp, tn + fp, 0.0)) / np.sqrt(2)
        return rms


@dataclass(frozen=True)
class MinTPRTNR(ContingencyMeasure):
    """The lower of the true positive and true negative rates."""

    name: ClassVar[str] = "min_tpr_tnr"
    structure: ClassVar[Structure] = "max"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return np.maximum(ratio(fn, tp + fn, 0.0), ratio(fp, tn + fp, 0.0))


@dataclass(frozen=True)
class CohenKappa(ContingencyMeasure):
    """Cohen's kappa; its loss is (1 - kappa) / 2."""

    name: ClassVar[str] = "kappa"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return (1 - self.table_score(tp, fp, fn, tn)) / 2

    def table_score(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        n = tp + fp + fn + tn
        chance = (tp + fn) * (tp + fp) + (fp + tn) * (fn + tn)
        # divided by n as soon as possible: n^2 times a count would leave the exact integers of a float
        return ratio((tp + tn) - chance / n, n - chance / n, 1.0)


@dataclass(frozen=True)
class MCC(ContingencyMeasure):
    """Matthews correlation coefficient; its loss is (1 - MCC) / 2."""

    name: ClassVar[str] = "mcc"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return (1 - self.table_score(tp, fp, fn, tn)) / 2

    def table_score(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        margins = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
        perfect = (fp == 0) & (fn == 0)
        return np.where(perfect, 1.0, ratio(tp * tn - fp * fn, margins, 0.0))


@dataclass(frozen=True)
class TableFunction(ContingencyMeasure):
    """A user's function of (tp, fp, fn, tn), vectorised over arrays.

    Parameters
    ----------
    function : callable
        A score that is 1, or a loss that is 0, for a perfect labelling; either way with values in [0, 1].
    kind : {"score", "loss"}, optional
        What the function is. By default it is looked at: its value for a perfect labelling says it.
    where : callable, optional
        Predicate of (tp, fp, fn, tn), vectorised: which tables a labelling may have. All, by default.
    """

    function: Callable[..., Any]
    kind: Literal["score", "loss"] | None = None
    where: Callable[..., Any] | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        value = self._call(self.function, tp, fp, fn, tn).astype(np.float64)
        if not np.isfinite(value).all():
            at = np.flatnonzero(~np.isfinite(value))[0]
            table = [float(np.broadcast_to(t, value.shape).flat[at]) for t in (tp, fp, fn, tn)]
            raise ValueError(
                f"the measure {self.name!r} returned {value.flat[at]} for tp, fp, fn, tn = {table}: "
                "expected finite values for every table; define the case 0/0"
            )
        if value.size and (value.min() < -1e-9 or value.max() > 1 + 1e-9):
            raise ValueError(
                f"the measure {self.name!r} returned values from {value.min():g} to {value.max():g}: "
                "expected values in [0, 1]; scale it"
            )
        loss = 1 - value if self._kind_for(tp, fp, fn, tn) == "score" else value
        # of one class, all right: loss 0, whatever the ratios. With both classes the function itself says so
        perfect = (fp == 0) & (fn == 0) & ((tp == 0) | (tn == 0))
        return np.where(perfect, 0.0, loss) if np.any(perfect) else loss

    def admissible(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> npt.NDArray[np.bool_] | None:
        return None if self.where is None else self._call(self.where, tp, fp, fn, tn).astype(bool)

    def _kind_for(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> str:
        if self.kind is not None:
            return self.kind
        n_pos, n_neg = float(np.ravel(tp + fn)[0]), float(np.ravel(fp + tn)[0])
        if not (n_pos > 0 and n_neg > 0):  # its ratios may be 0/0: one class does not say what the function is
            n_pos = n_neg = max(n_pos, n_neg, 1.0)
        zero = np.zeros(1)
        perfect = float(self._call(self.function, zero + n_pos, zero, zero, zero + n_neg)[0])
        if not (abs(perfect) <= 1e-9 or abs(perfect - 1) <= 1e-9):  # nor NaN
            raise ValueError(
                f"the measure {self.name!r} returned {perfect:g} with tp = {n_pos:g} and tn = {n_neg:g} "
                "for a perfect labelling: expected 1 (a score, higher is better) or 0 (a loss); scale it, or say "
                "which it is by TableFunction(function, kind=...)"
            )
        return "score" if perfect > 0.5 else "loss"

    def _call(self, function: Callable[..., Any], *table: Vector) -> npt.NDArray[Any]:
        shape = np.broadcast_shapes(*(np.shape(t) for t in table))
        # fresh vectors, whatever the search asks for: a user's function may index and change them
        vectors = [np.array(np.broadcast_to(t, shape), dtype=np.float64).ravel() for t in table]
        try:
            value = np.asarray(function(*vectors))
        except Exception as error:
            error.add_note(
                f"The measure {self.name!r} is called with arrays, one entry for each table to look at: write it with "
                "NumPy functions of arrays, and np.where in the place of if."
            )
            raise
        if value.shape != (size := (int(np.prod(shape)),)):
            raise ValueError(
                f"the measure {self.name!r} returned an array of shape {value.shape} for tables of shape "
                f"{size}: expected the same shape; write it with NumPy functions of arrays"
            )
        return value.reshape(shape)
