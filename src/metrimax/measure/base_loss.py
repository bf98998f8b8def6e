"""Base losses that are added to a measure's risk: sums of hinge and logistic losses over the examples."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metrimax import _kernels
from metrimax._validation import is_number
from metrimax.measure.classification import ErrorRate
from metrimax.measure.contingency import ContingencyMeasure, ContingencyOracle
from metrimax.measure.sample import SampleOracle
from metrimax.measure.within import CompiledOracle
from metrimax.protocols import (
    Capabilities,
    Cut,
    Hinges,
    Kink,
    Labels,
    Line,
    Measure,
    Oracle,
    Rows,
    Smooth,
    Vector,
    made,
    required,
)


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
    risk : float or "even"
        "even" is 1 / kappa: the risk then weighs as much as one loss of every example. With 1 the risk of a rare class
        outweighs the base losses; if the risk learns nothing, all scores become equal.
    hinge, logistic : float
        The weights, not negative; not all three zero.
    balanced : bool
        Whether both classes weigh the same in the base losses: the weight of an example is then multiplied by that of
        the sample over twice that of its class.
    """

    risk: float | str = 1.0
    hinge: float = 0.0
    logistic: float = 0.0
    balanced: bool = False

    def __post_init__(self) -> None:
        given: dict[str, Any] = {"risk": self.risk, "hinge": self.hinge, "logistic": self.logistic}
        for name, weight in given.items():
            even = name == "risk" and isinstance(weight, str) and weight == "even"
            if not (even or (is_number(weight) and 0 <= weight < np.inf)):
                raise ValueError(f"expected a finite {name} >= 0{' or even' * (name == 'risk')}, got {weight!r}")
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
        risk = 1 / oracle.price if isinstance(self.risk, str) else self.risk
        if not self.base:
            return SumOracle([(risk * oracle.price * oracle.n, oracle)], len(y), oracle.n, risk * oracle.price)
        positive, weight = y > 0, self._weights(y > 0, sample_weight)
        if not (risk or self.logistic):  # a plain SVM: use the oracle of the error rate, which offers more
            errors = ContingencyOracle(ErrorRate(), positive, weight)
            errors.price = self.hinge
            return errors
        size = float(len(y)) if weight is None else float(weight.sum())
        base = BaseOracle(positive, weight, self.hinge, self.logistic)
        at_zero = size * (self.hinge + math.log(2) * self.logistic)
        alike = self._of_shares(positive, weight) or at_zero
        if not risk:
            return SumOracle([(size, base)], len(y), size, at_zero / size, alike)
        of_risk = risk * oracle.price * oracle.n
        return SumOracle([(of_risk, oracle), (size, base)], len(y), oracle.n, of_risk / oracle.n, alike)

    def _of_shares(self, positive: Labels, weight: Vector | None) -> float:
        """The least sum of base losses with one score for all examples; it depends on the class shares alone."""
        weight = np.ones(len(positive)) if weight is None else weight
        size, of_positives = float(weight.sum()), float(weight[positive].sum())
        shares = [share for share in (of_positives / size, 1 - of_positives / size) if share > 0]
        entropy = -sum(share * math.log(share) for share in shares)
        return size * (2 * self.hinge * min(shares) * (len(shares) - 1) + self.logistic * entropy)

    def _weights(self, positive: Labels, weight: Vector | None) -> Vector | None:
        """The weights of the examples in the base losses."""
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
        self._sign, self._weight = np.where(positive, 1.0, -1.0), weight
        self._hinge, self._logistic = hinge, logistic
        self._kernel = self.compiled = _kernels.BaseLosses(
            np.where(positive, weight, -weight) / self.n, hinge, logistic
        )

    def __call__(self, scores: Vector) -> Cut:
        self.check(scores)
        return Cut(*self._kernel.cut(np.ascontiguousarray(scores)))

    @property
    def can(self) -> Capabilities:
        return Capabilities(
            compiled=self.compiled, smooth=lambda: self._smooth, mistakes=self._mistakes, within=self.within
        )

    def within(self, rows: Rows) -> Oracle:
        """The losses of some rows: no loss is negative, so their sum is not above that of all."""
        shares = (self._sign * self._weight)[rows] / self.n
        return CompiledOracle(self.n, len(rows), self.price, _kernels.BaseLosses(shares, self._hinge, self._logistic))

    def _mistakes(self) -> Hinges:
        return Hinges(self._sign, np.ones(self.size), self._weight)

    def _smooth(self, scores: Vector, mu: float) -> tuple[float, Cut]:
        """The hinges as ``max over share in [0, 1] of share slack - prox (2 share - 1)^2``; the logistic is smooth."""
        margin, prox = self._sign * scores, mu / max(self._hinge, 1e-300)
        slack, of_each = 1 - margin, self._weight / self.n
        share = np.clip(0.5 + slack / (8 * prox), 0.0, 1.0)
        log_loss, fall = np.logaddexp(0.0, -margin), 1 / (1 + np.exp(np.minimum(margin, 700.0)))
        value = self._hinge * (share * slack - prox * (2 * share - 1) ** 2) + self._logistic * log_loss
        loss = self._hinge * share + self._logistic * (log_loss + fall * margin)
        slope = -self._sign * of_each * (self._hinge * share + self._logistic * fall)
        return _kernels.dot(of_each, value), Cut(_kernels.dot(of_each, loss), slope)


class SumOracle(SampleOracle):
    """``R(s) = sum_k times_k R_k(s) / (price n)`` over the parts (times_k, R_k).

    ``alike`` is the least sum of the base losses among them with one score for all examples.
    """

    def __init__(
        self, parts: list[tuple[float, Oracle]], size: int, n: float, price: float, alike: float | None = None
    ) -> None:
        super().__init__(n, size)
        self.price = price
        self._alike = None if alike is None else alike / (price * n)
        self._shares = [times / (price * n) for times, _ in parts]
        self._oracles = [oracle for _, oracle in parts]
        kernels = [oracle.can.compiled for oracle in self._oracles]
        if all(kernel is not None for kernel in kernels):
            self.compiled = _kernels.SumOfRisks(kernels, self._shares)

    @property
    def can(self) -> Capabilities:
        """What the first part offers, with the others added; but two hinges of one example are not one hinge."""
        first = self._oracles[0].can
        several = len(self._oracles) > 1
        return replace(
            first,
            compiled=self.compiled,
            smooth=self._smooth,
            hinges=None if several or first.hinges is None else self._hinges,
            kink=None if first.kink is None else self._kink,
            within=self._within if several and all(one.can.within for one in self._oracles) else None,
            base=self._alike,
        )

    def _within(self, rows: Rows) -> Oracle:
        """The sum of the parts on some rows."""
        kernels = [
            required(oracle.can.within, "expected risks of some rows")(rows).can.compiled for oracle in self._oracles
        ]
        return CompiledOracle(self.n, len(rows), self.price, _kernels.SumOfRisks(kernels, self._shares))

    def _hinges(self) -> Hinges:
        hinges = required(made(self._oracles[0].can.hinges), "expected a sum of hinges")
        return hinges._replace(weight=self._shares[0] * hinges.weight)

    def _smooth(self) -> Smooth | None:
        """The sum of the smoothed parts; their errors add up to mu at most."""
        parts: list[Smooth] = []
        for oracle in self._oracles:
            part = made(oracle.can.smooth)
            if part is None:
                return None
            parts.append(part)

        def smooth(scores: Vector, mu: float) -> tuple[float, Cut]:
            values, cuts = zip(*(part(scores, mu / sum(self._shares)) for part in parts), strict=True)
            return float(np.dot(self._shares, values)), self._sum(list(cuts))

        return smooth

    def _kink(self) -> Kink | None:
        """The kink of the first part, plus the cuts of the other parts at s = 0."""
        kink = made(self._oracles[0].can.kink)
        if kink is None:
            return None
        share, zero = self._shares[0], np.zeros(self.size)
        loss, base = share * kink.loss, zero if kink.base is None else share * kink.base
        for other, oracle in zip(self._shares[1:], self._oracles[1:], strict=True):
            cut = oracle(zero)
            loss += other * cut.loss
            base = base - self.n * other * kink.sign * cut.slope
        total = None if kink.total is None else share * kink.total
        return kink._replace(loss=loss, weight=share * kink.weight, total=total, base=base)

    def __call__(self, scores: Vector) -> Cut:
        return self._sum([oracle(scores) for oracle in self._oracles])

    def mean_cut(self, scores: Vector, mu: float) -> Cut:
        """The mean cut of the first part (the measure's risk), plus the cuts of the other parts."""
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


def wants_base_loss(measure: Measure) -> bool:
    """Whether a base loss helps the measure: all but the error rate, whose risk is a sum of hinges already.

    Costs that differ scale the margins of the classes, not their weights: where a rare class overlaps with the other,
    the minimiser of such hinges predicts no positives, as that of the error rate does.
    """
    return measure.ranks or (isinstance(measure, ContingencyMeasure) and not _counts_errors(measure))


def _counts_errors(measure: ContingencyMeasure) -> bool:
    """Whether ``D = cost (fn + fp)``, with all labellings admitted."""
    n_pos, n_neg = 5.0, 7.0  # with fewer examples, or as many of both classes, a measure may look like errors
    fn, fp = (mistakes.ravel() for mistakes in np.mgrid[0 : n_pos + 1, 0 : n_neg + 1])
    table = n_pos - fn, fp, fn, n_neg - fp
    if measure.counts(n_pos, n_neg) is not None or measure.admissible(*table) is not None:
        return False
    loss = measure.table_loss(*table)
    return bool(np.allclose(loss, loss[-1] * (fn + fp) / (n_pos + n_neg)))
