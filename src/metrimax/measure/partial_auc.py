"""Partial area under the ROC curve."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from metrimax._validation import check_positive
from metrimax.measure.envelope import RankingOracle, Slopes
from metrimax.measure.pieces import NONE, ramp_sums, ramp_thresholds
from metrimax.measure.ranking import RankingMeasure
from metrimax.measure.units import split
from metrimax.protocols import Cut, Labels, Oracle, Smooth, Vector


@dataclass(frozen=True)
class PartialAUC(RankingMeasure):
    """Area under the ROC curve for false positive rates from alpha to beta, divided by beta - alpha.

    Parameters
    ----------
    alpha, beta : float
        The range of false positive rates, 0 <= alpha < beta <= 1.

    Notes
    -----
    A tie is a straight piece of the curve, as in scikit-learn. For alpha = 0 and the value v reported here,
    scikit-learn's ``roc_auc_score(max_fpr=beta)`` is ``(1 + (v - beta/2) / (1 - beta/2)) / 2``.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.measure import PartialAUC
    >>> round(PartialAUC(0, 0.5).score(np.array([1, 1, 0, 0]), np.array([2.0, -1.0, 1.0, -3.0])), 3)
    0.5
    """

    alpha: float = 0.0
    beta: float = 0.1
    name: ClassVar[str] = "partial_auc"

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < self.beta <= 1:
            raise ValueError(f"expected 0 <= alpha < beta <= 1, got alpha={self.alpha!r} and beta={self.beta!r}")

    def loss(self, y: Labels, z: npt.ArrayLike, sample_weight: Vector | None = None) -> float:
        """One minus the partial area of the scores ``z``."""
        y, s, weight = self.parts(y, z, sample_weight)
        order = np.argsort(-s, kind="stable")
        ends = np.flatnonzero(np.append(np.diff(s[order]) != 0, True))
        tpr, fpr = (np.concatenate(([0.0], np.cumsum((weight * part)[order])[ends])) for part in (y, ~y))
        tpr, fpr = tpr / tpr[-1], fpr / fpr[-1]
        inside = np.clip(fpr, self.alpha, self.beta)
        width = np.diff(fpr)
        rise = np.divide(np.diff(tpr), width, out=np.zeros_like(width), where=width > 0)
        heights = tpr[:-1] + rise * ((inside[:-1] + inside[1:]) / 2 - fpr[:-1])
        return 1 - float(np.diff(inside) @ heights) / (self.beta - self.alpha)

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle:
        return PartialAUCOracle(self.alpha, self.beta, y, sample_weight)


class PartialAUCOracle(RankingOracle):
    """The most violated ranking. Only the top negatives, up to the share beta, are looked at.

    The negatives, sorted by descending scores t, form a queue of total weight n-. A ranking puts the first x of the
    queue above a positive of score s, with x up to b = beta n-. The part of x beyond a = alpha n- is lost::

        R = 1/(n+ (b - a)) sum over positives of  max over x <= b of  max(0, x - a) - (x s - sum of the first x of t)

    For alpha = 0 that is the hinge ``max(0, 1 - (s - t))`` of every positive with each of the b highest negatives. In
    general the function is concave in x on either side of a, so the maximum is the better of two points: with x <= a,
    all t > s; with x >= a, all t > s - 1. As x falls with s, these x belong to one ranking. The cost is O(n log n), for
    any weights.

    References
    ----------
    Narasimhan & Agarwal (2013). SVMpAUC-tight: a new support vector method for optimizing partial AUC based on a
    tight convex upper bound. KDD.
    """

    def __init__(self, alpha: float, beta: float, y: Labels, sample_weight: Vector | None = None) -> None:
        self._pos, self._neg = pos, neg = split(y, sample_weight)
        super().__init__(pos.total + neg.total, len(y))
        total = float(neg.weight.sum())
        self._a, self._b = alpha * total, beta * total
        self._pairs = float(pos.weight.sum()) * (self._b - self._a)

    def slopes(self) -> Slopes:
        """All negatives together have a slope of at most b; so they are nearer to the share beta than to 1/2."""
        centre, width = np.zeros(self.size), np.zeros(self.size)
        width[self._pos.members] = self._pos.weight * self._b / self._pairs
        width[self._neg.members] = self._neg.weight * self._pos.weight.sum() / self._pairs
        beta = self._b / self._neg.weight.sum()
        share, wide = min(beta, 0.5), float(width[self._neg.members].sum())
        centre[self._pos.members] = -width[self._pos.members] / 2
        centre[self._neg.members] = share * width[self._neg.members]
        reach = float(width[self._pos.members].sum()) / 4 + wide * (share**2 + beta * (1 - 2 * share))
        return Slopes(centre, width, reach)

    @cached_property
    def smooth(self) -> Smooth:
        """For alpha = 0 pairs decouple, so no cuts are needed."""
        return super().smooth if self._a > 0 else self._smooth_from_the_top

    def _smooth_from_the_top(self, scores: Vector, mu: float) -> tuple[float, Cut]:
        """The smoothed risk for alpha = 0.

        The risk itself is a mean over the top negatives, whichever these are::

            R = max over p in [0, 1]^n- with w.p = b of  1/(n+ b) sum_j w_j p_j sum over positives of hinge(s - t_j)

        Half of mu smooths the hinges, as in ROC area, the other half the choice of p, around the share beta. All ramps
        are summed up over sorted scores: O(n log n).
        """
        check_positive("mu", mu)
        scores = scores - scores[self._neg.members].mean()  # squares would lose their digits to a common shift
        s, pos_weight, pos_order = self._pos.sorted(scores)
        costs, neg_weight, neg_order = self._neg.sorted(scores)
        total, b = float(neg_weight.sum()), self._b
        every = b > total * (1 - 1e-12)
        inner = mu if every else mu / 2
        h = 8 * inner
        reach = 1 + h / 2 - costs
        count, gain = ramp_sums(s, reach, np.full(len(costs), h), pos_weight)
        lost = np.minimum.accumulate(gain + reach * count - inner * pos_weight.sum()) / self._pairs
        if every:
            p, value = np.ones(len(costs)), float(neg_weight @ lost)
        else:
            q = np.array([mu / (b * (1 - b / total))])
            t = ramp_thresholds(NONE, -lost, np.zeros(1), np.array([b]), q, neg_weights=neg_weight)
            p = np.clip((t + lost) / q, 0, 1)
            value = float(ramp_sums(-lost, t, q, neg_weight)[1][0] + q[0] * b * b / (2 * total))
        mass = neg_weight * p
        mass *= min(1.0, b / mass.sum())  # or rounding would lift the plane above R
        below = ramp_sums(costs, 1 + h / 2 - s, np.full(len(s), h), mass)[0]
        slope = np.zeros(self.size)
        slope[self._neg.members[neg_order]] = mass * count / self._pairs
        slope[self._pos.members[pos_order]] = -pos_weight * below / self._pairs
        return value, Cut(float(mass @ count) / self._pairs, slope)

    def __call__(self, scores: Vector) -> Cut:
        self.check(scores)
        costs, weight, order = self._neg.sorted(scores)
        t = -costs
        reached = np.minimum(np.concatenate(([0.0], np.cumsum(weight))), self._b)
        gained = np.concatenate(([0.0], np.cumsum(np.diff(reached) * t)))
        s = scores[self._pos.members]

        def queue(margin: float) -> Vector:
            """The weight of the negatives above s - margin."""
            count = np.searchsorted(costs, margin - s, side="left")
            weight: Vector = reached[count]
            return weight

        near, far = np.minimum(queue(0.0), self._a), np.maximum(queue(1.0), self._a)
        values = [np.interp(x, reached, gained) - x * s + np.maximum(x - self._a, 0) for x in (near, far)]
        x = np.where(values[1] > values[0], far, near)
        slope = np.zeros(self.size)
        slope[self._pos.members] = -self._pos.weight * x / self._pairs
        # a negative in the queue stands above the positives whose x lies beyond it
        by_x = np.argsort(x)
        passed = np.concatenate(([0.0], np.cumsum(self._pos.weight[by_x])))
        area = np.concatenate(([0.0], np.cumsum((self._pos.weight * x)[by_x])))
        upto = np.searchsorted(x[by_x], reached, side="right")
        covered = area[upto] + reached * (passed[-1] - passed[upto])
        slope[self._neg.members[order]] = np.diff(covered) / self._pairs
        return Cut(float(self._pos.weight @ np.maximum(x - self._a, 0)) / self._pairs, slope)
