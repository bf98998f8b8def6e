"""Measures of a classification's contingency table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from metrimax._validation import is_number
from metrimax.measure.contingency import ContingencyMeasure, check_beta, ratio
from metrimax.measure.tables import Fraction, Structure
from metrimax.protocols import Vector


@dataclass(frozen=True)
class ErrorRate(ContingencyMeasure):
    """Error rate, (fn + fp) / n; reported as accuracy.

    Examples
    --------
    >>> from metrimax.measure import ErrorRate
    >>> round(ErrorRate().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    0.5
    """

    name: ClassVar[str] = "error"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return (fn + fp) / (tp + fp + fn + tn)

    def by_count(self, m: Vector, n_pos: float, n_neg: float) -> tuple[Vector, float]:
        n = n_pos + n_neg
        return (n_pos + m) / n, -2 / n

    def fraction(self, n_pos: float, n_neg: float) -> Fraction:
        return Fraction((0.0, 1.0, 1.0), (n_pos + n_neg, 0.0, 0.0))


@dataclass(frozen=True)
class CostModel(ContingencyMeasure):
    """Linear cost model, (fn_cost fn + fp_cost fp) relative to the cost of getting everything wrong.

    The costs scale the margins that examples have to keep. To weight their slacks instead (SVM-light's ``-j``),
    train ``error`` with ``class_weight``.

    Parameters
    ----------
    fn, fp : float, default=1.0
        What a false negative and a false positive cost; only their ratio matters.

    Examples
    --------
    >>> from metrimax.measure import CostModel
    >>> round(CostModel(fn=5, fp=1).score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    0.5
    """

    fn: float = 1.0
    fp: float = 1.0
    name: ClassVar[str] = "cost"
    structure: ClassVar[Structure] = "count"

    def __post_init__(self) -> None:
        if not (all(is_number(cost) and 0 <= cost < np.inf for cost in (self.fn, self.fp)) and self.fn + self.fp > 0):
            raise ValueError(
                f"expected finite costs, not negative and not both zero, got fn={self.fn!r}, fp={self.fp!r}"
            )

    @classmethod
    def from_matrix(cls, matrix: npt.ArrayLike) -> CostModel:
        """From a 2 x 2 cost matrix, [[tn, fp], [fn, tp]] as scikit-learn's `confusion_matrix` has it.

        The costs are ``fn - tp`` and ``fp - tn``: only these differences matter.

        >>> CostModel.from_matrix([[0, 5], [100, 2]])
        CostModel(fn=98.0, fp=5.0)
        """
        costs = np.asarray(matrix, dtype=np.float64)
        if costs.shape != (2, 2):
            raise ValueError(f"expected a 2 x 2 cost matrix, [[tn, fp], [fn, tp]], got the shape {costs.shape}")
        (tn, fp), (fn, tp) = costs.tolist()
        if not (fn >= tp and fp >= tn):
            raise ValueError(
                "expected a cost matrix [[tn, fp], [fn, tp]] in which a mistake costs no less than the right call, got "
                f"{costs.tolist()}; profits are negative costs"
            )
        return cls(fn=fn - tp, fp=fp - tn)

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return ratio(self.fn * fn + self.fp * fp, self.fn * (tp + fn) + self.fp * (tn + fp), 0.0)

    def fraction(self, n_pos: float, n_neg: float) -> Fraction:
        return Fraction((0.0, self.fn, self.fp), (self.fn * n_pos + self.fp * n_neg, 0.0, 0.0))


@dataclass(frozen=True)
class BalancedError(ContingencyMeasure):
    """Mean of the error rates of the two classes; reported as balanced accuracy.

    Examples
    --------
    >>> from metrimax.measure import BalancedError
    >>> round(BalancedError().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    0.5
    """

    name: ClassVar[str] = "balanced_error"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return (ratio(fn, tp + fn, 0.0) + ratio(fp, tn + fp, 0.0)) / 2

    def fraction(self, n_pos: float, n_neg: float) -> Fraction:
        return Fraction((0.0, 0.5 / n_pos, 0.5 / n_neg), (1.0, 0.0, 0.0))


def check_share(name: str, value: float) -> None:
    """Raise unless a number from 0 to 1."""
    if not (is_number(value) and 0 <= value <= 1):
        raise ValueError(f"expected {name} from 0 to 1, got {value!r}")


@dataclass(frozen=True)
class FBeta(ContingencyMeasure):
    """F_beta, the weighted harmonic mean of precision and recall.

    Parameters
    ----------
    beta : float, default=1.0
        Recall counts beta times as much as precision.
    zero_division : float, default=1.0
        The score of a batch without positives of which none is called positive; 0 as by default in scikit-learn, whose
        ``f1_score`` has a parameter of that name. Training, where both classes are there, never meets it.

    Examples
    --------
    >>> from metrimax.measure import FBeta
    >>> round(FBeta(2).score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    0.5
    """

    beta: float = 1.0
    zero_division: float = 1.0
    name: ClassVar[str] = "fbeta"
    structure: ClassVar[Structure] = "count"

    def __post_init__(self) -> None:
        check_beta(self.beta)
        check_share("zero_division", self.zero_division)

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        b2 = self.beta**2
        hits = (1 + b2) * tp
        return 1 - ratio(hits, hits + fp + b2 * fn, self.zero_division)

    def by_count(self, m: Vector, n_pos: float, n_neg: float) -> tuple[float, Vector]:
        b2 = self.beta**2
        return 1.0, -(1 + b2) / (m + b2 * n_pos)

    def fraction(self, n_pos: float, n_neg: float) -> Fraction:
        b2 = self.beta**2
        return Fraction((0.0, b2, 1.0), ((1 + b2) * n_pos, -1.0, 1.0))


@dataclass(frozen=True)
class Jaccard(ContingencyMeasure):
    """Jaccard index of the positive class, tp / (tp + fp + fn).

    Parameters
    ----------
    zero_division : float, default=1.0
        As for `FBeta`.

    Examples
    --------
    >>> from metrimax.measure import Jaccard
    >>> round(Jaccard().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    0.333
    """

    zero_division: float = 1.0
    name: ClassVar[str] = "jaccard"
    structure: ClassVar[Structure] = "product"

    def __post_init__(self) -> None:
        check_share("zero_division", self.zero_division)

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return 1 - ratio(tp, tp + fp + fn, self.zero_division)


@dataclass(frozen=True)
class GMean(ContingencyMeasure):
    """Geometric mean of the true positive and true negative rates.

    Examples
    --------
    >>> from metrimax.measure import GMean
    >>> round(GMean().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    0.5
    """

    name: ClassVar[str] = "gmean"
    structure: ClassVar[Structure] = "product"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return 1 - np.sqrt(ratio(tp, tp + fn, 1.0) * ratio(tn, tn + fp, 1.0))


@dataclass(frozen=True)
class QMean(ContingencyMeasure):
    """One minus the quadratic mean of the error rates of the two classes.

    Examples
    --------
    >>> from metrimax.measure import QMean
    >>> round(QMean().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    0.5
    """

    name: ClassVar[str] = "qmean"
    structure: ClassVar[Structure] = "hypot"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        rms: Vector = np.hypot(ratio(fn, tp + fn, 0.0), ratio(fp, tn + fp, 0.0)) / np.sqrt(2)
        return rms


@dataclass(frozen=True)
class MinTPRTNR(ContingencyMeasure):
    """The lower of the true positive and true negative rates.

    Examples
    --------
    >>> from metrimax.measure import MinTPRTNR
    >>> round(MinTPRTNR().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    0.5
    """

    name: ClassVar[str] = "min_tpr_tnr"
    structure: ClassVar[Structure] = "max"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return np.maximum(ratio(fn, tp + fn, 0.0), ratio(fp, tn + fp, 0.0))


@dataclass(frozen=True)
class CohenKappa(ContingencyMeasure):
    """Cohen's kappa; its loss is (1 - kappa) / 2.

    Examples
    --------
    >>> from metrimax.measure import CohenKappa
    >>> round(CohenKappa().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    0.0
    """

    name: ClassVar[str] = "kappa"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return (1 - self.table_score(tp, fp, fn, tn)) / 2

    def table_score(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        n = tp + fp + fn + tn
        chance = (tp + fn) * (tp + fp) + (fp + tn) * (fn + tn)
        # divided by n as soon as possible: n^2 times a count would leave the exact integers of a float
        return ratio((tp + tn) - chance / n, n - chance / n, 1.0)

    def fraction(self, n_pos: float, n_neg: float) -> Fraction:
        n = n_pos + n_neg
        more = 2 * (n_neg - n_pos) / n
        return Fraction((0.0, 1.0, 1.0), (4 * n_pos * n_neg / n, -more, more))


@dataclass(frozen=True)
class MCC(ContingencyMeasure):
    """Matthews correlation coefficient; its loss is (1 - MCC) / 2.

    Examples
    --------
    >>> from metrimax.measure import MCC
    >>> round(MCC().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    0.0
    """

    name: ClassVar[str] = "mcc"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return (1 - self.table_score(tp, fp, fn, tn)) / 2

    def table_score(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        margins = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
        perfect = (fp == 0) & (fn == 0)
        return np.where(perfect, 1.0, ratio(tp * tn - fp * fn, margins, 0.0))
