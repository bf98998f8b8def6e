"""What stands beside a measure's risk: hinges and logistic losses, which add up over the examples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from metrimax import _kernels
from metrimax._validation import is_number
from metrimax.measure.classification import ErrorRate
from metrimax.measure.contingency import ContingencyMeasure, ContingencyOracle
from metrimax.measure.sample import SampleOracle
from metrimax.protocols import Cut, Labels, Line, Measure, Oracle, Vector


@dataclass(frozen=True)
class Losses:
    """The losses that are trained, by their weights.

    C multiplies their sum::

        risk kappa n R + sum_i weight_i (hinge max(0, 1 - y_i s_i) + logistic log(1 + exp(-y_i s_i)))

    The risk alone is the problem of Joachims (2005); without it, logistic regression and the plain SVM remain. Where
    classes overlap, the most violated labelling of F1 and its like flips about as many negatives as there are
    positives, so that the measure's risk alone learns from few examples; the base losses take all of them into account.
    With grades, what is above 0 is positive.

    Parameters
    ----------
    risk, hinge, logistic : float
        The weights, not negative and not all zero.
    balanced : bool
        Whether both classes weigh the same in the base losses: the weight of an example is then multiplied by that of
        the sample over twice that of its class.
    """

    risk: float = 1.0
    hinge: float = 0.0
    logistic: float = 0.0
    balanced: bool = False

    def __post_init__(self) -> None:
        for name in ("risk", "hinge", "logistic"):
            weight = getattr(self, name)
            if not (is_number(weight) and 0 <= weight < np.inf):
                raise ValueError(f"expected a finite {name} >= 0, got {weight!r}")
        if not (self.risk or self.base):
            raise ValueError("expected a loss to train, got risk=0, hinge=0 and logistic=0: give one of them a weight")

    @property
    def base(self) -> bool:
        """Whether there is a base loss."""
        return bool(self.hinge or self.logistic)

    def oracle(self, oracle: Oracle, y: Labels, sample_weight: Vector | None) -> Oracle:
        """The oracle of all losses from that of the measure; its price times its n is the unit of the gap.

        A sum of cuts is a cut, and so is a tangent of the logistic loss: bound and gap keep their meaning.
        """
        if self == PAPER:
            return oracle
        if not self.base:
            return SumOracle(
                [(self.risk * oracle.price * oracle.n, oracle)], len(y), oracle.n, self.risk * oracle.price
            )
        positive, weight = y > 0, self._weights(y > 0, sample_weight)
        if not (self.risk or self.logistic):  # a plain SVM: all that is known of the error rate helps
            errors = ErrorRate().oracle(positive, weight)
            errors.price = self.hinge  # type: ignore[misc]
            return errors
        size = float(len(y)) if weight is None else float(weight.sum())
        base = BaseOracle(positive, weight, self.hinge, self.logistic)
        if not self.risk:
            unit = size * (self.hinge + math.log(2) * self.logistic)  # what it is at w = 0
            return SumOracle([(size, base)], len(y), size, unit / size)
        of_risk = self.risk * oracle.price * oracle.n
        return SumOracle([(of_risk, oracle), (size, base)], len(y), oracle.n, of_risk / oracle.n)

    def _weights(self, positive: Labels, weight: Vector | None) -> Vector | None:
        """Those of the examples in the base losses."""
        if not self.balanced:
            return weight
        weight = np.ones(len(positive)) if weight is None else weight
        of_classes = [float(weight[mask].sum()) for mask in (positive, ~positive)]
        of_one = [sum(of_classes) / (2 * own) if own else 0.0 for own in of_classes]
        return weight * np.where(positive, *of_one)


PAPER = Losses()
"""The risk alone: Joachims (2005)."""


class BaseOracle(SampleOracle):
    """``R(s) = 1/n sum_i weight_i (hinge max(0, 1 - y_i s_i) + logistic log(1 + exp(-y_i s_i)))``."""

    def __init__(self, positive: Labels, weight: Vector | None, hinge: float, logistic: float) -> None:
        weight = np.ones(len(positive)) if weight is None else weight
        super().__init__(float(weight.sum()), len(positive))
        self._kernel = self.compiled = _kernels.BaseLosses(
            np.where(positive, weight, -weight) / self.n, hinge, logistic
        )

    def __call__(self, scores: Vector) -> Cut:
        self.check(scores)
        return Cut(*self._kernel.cut(np.ascontiguousarray(scores)))


class SumOracle(SampleOracle):
    """``R(s) = sum_k times_k R_k(s) / (price n)`` over the parts (times_k, R_k)."""

    def __init__(self, parts: list[tuple[float, Oracle]], size: int, n: float, price: float) -> None:
        super().__init__(n, size)
        self.price = price
        self._shares = [times / (price * n) for times, _ in parts]
        self._oracles = [oracle for _, oracle in parts]
        kernels = [oracle.compiled if isinstance(oracle, SampleOracle) else None for oracle in self._oracles]
        if all(kernel is not None for kernel in kernels):
            self.compiled = _kernels.SumOfRisks(kernels, self._shares)

    def __call__(self, scores: Vector) -> Cut:
        return self._sum([oracle(scores) for oracle in self._oracles])

    def mean_cut(self, scores: Vector, mu: float) -> Cut:
        """The flips of the first part, the measure's own, are shared out; the others give the cut that attains them."""
        first, *others = self._oracles
        return self._sum([first.mean_cut(scores, mu / self._shares[0]), *(oracle(scores) for oracle in others)])

    def _sum(self, cuts: list[Cut]) -> Cut:
        both = list(zip(self._shares, cuts, strict=True))
        slope: Vector = sum((share * cut.slope for share, cut in both[1:]), both[0][0] * both[0][1].slope)
        return Cut(sum(share * cut.loss for share, cut in both), slope)

    def line(self, scores: Vector, move: Vector) -> Line:
        if self.compiled is not None:
            return super().line(scores, move)
        lines = [oracle.line(scores, move) for oracle in self._oracles]

        def risk(t: float) -> tuple[float, float]:
            values, slopes = zip(*(line(t) for line in lines), strict=True)
            return float(np.dot(self._shares, values)), float(np.dot(self._shares, slopes))

        return risk


def wants_hinges(measure: Measure) -> bool:
    """Whether the measure is one of the contingency table, other than the error rate, which is the hinges itself.

    Costs that differ scale the margins of the classes, not their weights: where a rare class overlaps with the other,
    the least sum of such hinges calls nobody positive, as that of the error rate does.
    """
    return isinstance(measure, ContingencyMeasure) and (measure.ranks or not _counts_errors(measure))


def _counts_errors(measure: ContingencyMeasure) -> bool:
    sample = np.arange(12) < 5  # with very few examples, or as many of both classes, a measure may look like errors
    margins = ContingencyOracle(measure, sample).margins
    return margins is not None and bool(np.isclose(*margins))
