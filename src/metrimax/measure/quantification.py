"""Losses of quantification: how far the predicted share of positives is from the true one.

The formulas are those used with SVM-perf for quantification (Esuli & Sebastiani 2015), with RAE and KLD divided
by the greatest value they can take on the sample, so that all of them lie in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from metrimax.measure.contingency import ContingencyMeasure, check_beta, ratio
from metrimax.measure.tables import Structure
from metrimax.protocols import Vector


@dataclass(frozen=True)
class AbsoluteError(ContingencyMeasure):
    """Absolute error of the predicted share of positives, |fp - fn| / n.

    Examples
    --------
    >>> from metrimax.measure import AbsoluteError
    >>> round(AbsoluteError().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    1.0
    """

    name: ClassVar[str] = "ae"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return np.abs(fp - fn) / (tp + fp + fn + tn)


@dataclass(frozen=True)
class RelativeAbsoluteError(ContingencyMeasure):
    """Relative absolute error of the predicted shares of both classes, divided by its greatest value.

    Before the division it is ``(|fp - fn| / (n+ + 1/2) + |fp - fn| / (n- + 1/2)) / 2``.

    Examples
    --------
    >>> from metrimax.measure import RelativeAbsoluteError
    >>> round(RelativeAbsoluteError().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    1.0
    """

    name: ClassVar[str] = "rae"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return np.abs(fp - fn) / np.maximum(tp + fn, tn + fp)  # the divisor of both terms cancels


@dataclass(frozen=True)
class KLDivergence(ContingencyMeasure):
    """Kullback-Leibler divergence of the predicted from the true shares, divided by its greatest value.

    Shares are smoothed: ``(count + 1/2) / (n + 1)``.

    Examples
    --------
    >>> from metrimax.measure import KLDivergence
    >>> round(KLDivergence().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    1.0
    """

    name: ClassVar[str] = "kld"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        n_pos, n_neg = tp + fn, tn + fp
        worst = np.maximum(divergence(n_pos, n_neg, 0 * n_pos), divergence(n_pos, n_neg, n_pos + n_neg))
        # next to no weight: the smoothed shares are all one half, and there is nothing to lose
        return np.minimum(ratio(divergence(n_pos, n_neg, tp + fp), worst, 0.0), 1.0)


@dataclass(frozen=True)
class NormalisedKLDivergence(ContingencyMeasure):
    """Kullback-Leibler divergence mapped to [0, 1) by 1 - 2 / (1 + exp(KLD)).

    Examples
    --------
    >>> from metrimax.measure import NormalisedKLDivergence
    >>> round(NormalisedKLDivergence().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    1.0
    """

    name: ClassVar[str] = "nkld"
    structure: ClassVar[Structure] = "count"

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return np.tanh(divergence(tp + fn, tn + fp, tp + fp) / 2)


@dataclass(frozen=True)
class QMeasure(ContingencyMeasure):
    """Q_beta, the F_beta of quantification (1 - |fp - fn| / max(n+, n-)) and recall.

    No search structure is known: the argmax looks at every table that a bound does not exclude, O(n+ n-).

    Parameters
    ----------
    beta : float, default=1.0
        Recall counts beta times as much as quantification.

    Examples
    --------
    >>> from metrimax.measure import QMeasure
    >>> round(QMeasure().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    0.667
    """

    beta: float = 1.0
    name: ClassVar[str] = "q"
    structure: ClassVar[Structure] = "scan"

    def __post_init__(self) -> None:
        check_beta(self.beta)

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        share = 1 - np.abs(fp - fn) / np.maximum(tp + fn, tn + fp)
        recall = ratio(tp, tp + fn, 1.0)
        b2 = self.beta**2
        return 1 - ratio((1 + b2) * share * recall, b2 * recall + share, 0.0)


def divergence(n_pos: Vector, n_neg: Vector, predicted: Vector) -> Vector:
    """KLD of the smoothed shares when ``predicted`` of n examples are called positive."""
    n = n_pos + n_neg
    kld: Vector = (n_pos + 0.5) * np.log((n_pos + 0.5) / (predicted + 0.5))
    kld = kld + (n_neg + 0.5) * np.log((n_neg + 0.5) / (n - predicted + 0.5))
    return np.maximum(kld / (n + 1), 0.0)
