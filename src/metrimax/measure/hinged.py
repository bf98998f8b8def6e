"""A measure's risk with the plain hinge loss beside it, and the threshold that suits the training scores best."""

from __future__ import annotations

import numpy as np

from metrimax import _kernels
from metrimax.measure.classification import ErrorRate
from metrimax.measure.contingency import ContingencyMeasure
from metrimax.protocols import Cut, Labels, Line, Measure, Oracle, Vector

ROUNDING = 1e-12
"""Scores that differ by no more than this share are equal: where nothing but the intercept is learnt, their order is
that of rounding.
"""


class Hinged:
    """``R'(s) = R(s) + hinge / kappa R_error(s)``, so that C kappa n R' counts every hinge with weight C hinge.

    Where classes overlap, the most violated labelling of F1 and its like flips about as many negatives as there are
    positives, so that the measure's risk alone learns from few examples. The hinges of the error rate take all of them
    into account. R' still bounds the measure's loss, and a sum of cuts is a cut: bound and gap keep their meaning.
    """

    def __init__(self, oracle: Oracle, y: Labels, sample_weight: Vector | None, hinge: float) -> None:
        self._oracle, self._errors = oracle, ErrorRate().oracle(y, sample_weight)
        self._share = hinge / oracle.price
        self.n, self.price = oracle.n, oracle.price
        own, errors = (getattr(one, "compiled", None) for one in (oracle, self._errors))
        self.compiled = None if own is None or errors is None else _kernels.SumOfRisks(own, errors, self._share)

    def __call__(self, scores: Vector) -> Cut:
        return self._sum(self._oracle(scores), self._errors(scores))

    def mean_cut(self, scores: Vector, mu: float) -> Cut:
        """The sum of the two, with the flips of the measure's own shared out."""
        return self._sum(self._oracle.mean_cut(scores, mu), self._errors(scores))

    def _sum(self, cut: Cut, errors: Cut) -> Cut:
        return Cut(cut.loss + self._share * errors.loss, cut.slope + self._share * errors.slope)

    def line(self, scores: Vector, move: Vector) -> Line:
        lines = self._oracle.line(scores, move), self._errors.line(scores, move)

        def both(t: float) -> tuple[float, float]:
            (value, slope), (errors, their_slope) = (line(t) for line in lines)
            return value + self._share * errors, slope + self._share * their_slope

        return both


def wants_hinges(measure: Measure) -> bool:
    """Whether the measure is one of the contingency table, other than the error rate, which is the hinges itself.

    Costs that differ scale the margins of the classes, not their weights: where a rare class overlaps with the other,
    the least sum of such hinges calls nobody positive, as that of the error rate does.
    """
    return isinstance(measure, ContingencyMeasure) and (measure.ranks or not _counts_errors(measure))


def _counts_errors(measure: ContingencyMeasure) -> bool:
    sample = np.arange(12) < 5  # with very few examples, or as many of both classes, a measure may look like errors
    margins = getattr(measure.oracle(sample, None), "margins", None)
    return margins is not None and bool(np.isclose(*margins))


def place(measure: Measure, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
    """A threshold in the middle of those that are as good on these scores as can be told.

    Zero if none is better. Otherwise halfway between two scores that follow one another. The best such place of a
    sample with few positives depends on single examples, so all places count as equal that are behind it by no more
    than one mistake in each class costs, and their mean is taken. Beyond the last score on either side is no place:
    nobody would be called positive, or everybody.
    """
    if not isinstance(measure, ContingencyMeasure):
        return measure.threshold(y, scores, sample_weight)
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    if not weight.all():  # rows that are left out have no say in where the places are
        used = weight > 0
        y, scores, weight = y[used], scores[used], weight[used]
    order = np.argsort(-scores, kind="stable")
    ordered, positive = scores[order], np.where(y, weight, 0.0)[order]
    size = np.abs(ordered)
    last = np.flatnonzero(ordered[:-1] - ordered[1:] > ROUNDING * np.maximum(size[:-1], size[1:]))
    if not len(last):
        return 0.0
    tp = np.cumsum(positive)
    fp = np.cumsum(weight[order]) - tp
    n_pos, n_neg = float(tp[-1]), float(fp[-1])
    tp, fp = tp[last], fp[last]
    values = measure.table_score(tp, fp, n_pos - tp, n_neg - fp)
    best = float(np.max(values))
    if measure.score(y, scores, weight) >= best - 1e-12:
        return 0.0
    equals = last[values >= best - _slack(measure, n_pos, n_neg) - 1e-12]
    places = (ordered[equals] + ordered[equals + 1]) / 2
    return float(places.mean())


def _slack(measure: ContingencyMeasure, n_pos: float, n_neg: float) -> float:
    """What one mistake in each class costs beside a perfect labelling; of a tiny class, a quarter of its weight."""
    one = min(1.0, n_pos / 4, n_neg / 4)
    wrong = np.array([0.0, one])
    perfect, less = measure.table_score(n_pos - wrong, wrong, wrong, n_neg - wrong)
    return float(perfect - less)
