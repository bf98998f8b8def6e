"""The threshold that suits the training scores best."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from metrimax.measure.contingency import ContingencyMeasure
from metrimax.protocols import Labels, Measure, Vector

ROUNDING = 1e-12
"""Scores that differ by no more than this share are equal: where nothing but the intercept is learnt, their order is
that of rounding.
"""


def place(measure: Measure, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
    """The threshold that is best on these scores: the middle of all that are about as good.

    Places lie halfway between two scores that follow one another. The best one of a sample with few positives depends
    on single examples. So all places count as equal that are behind it by no more than one mistake in each class costs,
    and their mean is taken. Places below or above all scores are not considered, nor those whose table the measure does
    not admit. Zero unless that mean is better.
    """
    if not isinstance(measure, ContingencyMeasure):
        return measure.threshold(y, scores, sample_weight)
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    if not weight.all():  # rows of weight zero do not define places
        used = weight > 0
        y, scores, weight = y[used], scores[used], weight[used]
    order = np.argsort(-scores, kind="stable")
    ordered, positive = scores[order], np.where(y, weight, 0.0)[order]
    last = descents(ordered)
    if not len(last):
        return 0.0
    tp = np.cumsum(positive)
    fp = np.cumsum(weight[order]) - tp
    n_pos, n_neg = float(tp[-1]), float(fp[-1])
    tp, fp = tp[last], fp[last]
    values = admitted(measure, tp, fp, n_pos, n_neg)
    best = float(np.max(values))
    trained = value_at(measure, y, scores, weight)
    if trained >= best - 1e-12:
        return 0.0
    equals = last[values >= best - one_mistake_each(measure, n_pos, n_neg) - 1e-12]
    threshold = float(((ordered[equals] + ordered[equals + 1]) / 2).mean())
    return threshold if value_at(measure, y, scores - threshold, weight) > trained else 0.0


def descents(ordered: Vector) -> npt.NDArray[np.intp]:
    """After which of the scores, in descending order, a lower one follows."""
    size = np.abs(ordered)
    return np.flatnonzero(ordered[:-1] - ordered[1:] > ROUNDING * np.maximum(size[:-1], size[1:]))


def admitted(measure: ContingencyMeasure, tp: Vector, fp: Vector, n_pos: float, n_neg: float) -> Vector:
    """The measure of every table, and -inf for those that no labelling may have."""
    table = tp, fp, n_pos - tp, n_neg - fp
    values = np.asarray(measure.table_score(*table), dtype=np.float64)
    allowed, counts = measure.admissible(*table), measure.counts(n_pos, n_neg)
    if allowed is not None:
        values = np.where(allowed, values, -np.inf)
    if counts is not None:
        called, slack = tp + fp, 1e-9 * (n_pos + n_neg)
        values = np.where((called >= counts[0] - slack) & (called <= counts[1] + slack), values, -np.inf)
    return values


def value_at(measure: ContingencyMeasure, y: Labels, scores: Vector, weight: Vector) -> float:
    """The measure of the rule ``score > 0``; -inf if it does not admit the table."""
    tp, fp, n_pos, n_neg = (float(weight[of].sum()) for of in ((scores > 0) & y, (scores > 0) & ~y, y, ~y))
    return float(admitted(measure, np.array([tp]), np.array([fp]), n_pos, n_neg)[0])


def place_if_it_pays(measure: Measure, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
    """The threshold of `place`, if it is better than zero by more than one mistake in each class costs; otherwise 0."""
    threshold = place(measure, y, scores, sample_weight)
    if not (threshold and isinstance(measure, ContingencyMeasure)):
        return threshold
    n_pos, n_neg = (float(np.sum(of if sample_weight is None else sample_weight[of])) for of in (y, ~y))
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    gain = value_at(measure, y, scores - threshold, weight) - value_at(measure, y, scores, weight)
    return threshold if gain > one_mistake_each(measure, n_pos, n_neg) else 0.0


def one_mistake_each(measure: ContingencyMeasure, n_pos: float, n_neg: float) -> float:
    """What one mistake in each class costs beside a perfect labelling; of a tiny class, a quarter of its weight."""
    one = min(1.0, n_pos / 4, n_neg / 4)
    wrong = np.array([0.0, one])
    perfect, less = measure.table_score(n_pos - wrong, wrong, wrong, n_neg - wrong)
    return float(perfect - less)
