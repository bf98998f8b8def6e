"""The threshold for scores of examples that a model was not trained on.

The best threshold of a sample with few positives depends on single examples. Two things steady it:

* Labels are shrunk towards what the scores say: each becomes ``(1 - share) y + share p(score)``. p is a logistic curve
  fitted to the sample, and ``share = prior / (prior + m)`` with m the number of examples of the smaller class; weighted
  ones are as many as have the same spread, (sum w)^2 / sum w^2. The curve alone is not enough: MCC of an expected table
  has an edge that a small error of the curve falls off.
* All thresholds count as equal that are behind the best by no more, relatively, than one mistake in each class costs
  a perfect labelling. The middle of them is taken.

**The bias.** With few examples of the smaller class, the threshold is that of a logistic curve, whether or not it fits:
with 10 positives the curve has 91 % of the weight, with 100 half, with 1000 9 %.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from metrimax.measure.contingency import ContingencyMeasure
from metrimax.measure.place import admitted, descents
from metrimax.protocols import Labels, Measure, Vector

PRIOR = 100.0
"""How many examples of the smaller class weigh as much as the curve.

Scores of boosting, of logistic regression and of their stack on 10 tables, the threshold from m positives, judged on
the other rows, in points beside the middle of the best thresholds without a curve (F1, balanced accuracy, MCC):
m = 30: +0.7, +0.2, +0.9; m = 100: +0.3, +0.2, +0.5; m = 400: +0.1, 0.0, +0.2. With 30 in place of 100 half of that. The
best threshold as it is: -0.5, -0.3, -0.8; 0.0, -0.1, 0.0; -0.1, 0.0, -0.1.
"""

ROUNDING = 1e-12
"""Values of a measure that differ by no more are equal; so are steps of the curve that are no longer."""


def choose_threshold(
    measure: Measure, y: Labels, scores: Vector, sample_weight: Vector | None = None, *, prior: float = PRIOR
) -> float:
    """The threshold that the measure asks for: examples with a score above it are called positive.

    Parameters
    ----------
    measure : Measure
        One of the contingency table; a measure of rankings has a rule of its own, `Measure.threshold`.
    y : ndarray of bool (n,)
        True for the positive class.
    scores : ndarray (n,)
        Of a model that has not seen these labels, such as out-of-fold scores. Best on the scale of
        log-odds, any multiple and shift of them: on that scale a logistic curve fits.
    sample_weight : ndarray (n,), optional
        Only their ratios matter.
    prior : float, default=PRIOR
        How many examples of the smaller class weigh as much as the curve.

    Returns
    -------
    float
        Halfway between two scores that follow one another. Where all scores are equal, or one class is missing, a
        number just below or above all of them: all are called positive, or none, whichever is better.
    """
    if measure.ranks or not isinstance(measure, ContingencyMeasure):
        return measure.threshold(y, scores, sample_weight)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    used = weight > 0
    y, scores, weight = np.asarray(y)[used], np.asarray(scores, dtype=np.float64)[used], weight[used]
    if not len(y):
        raise ValueError("expected scores of examples with weight above zero to place a threshold, got none")
    order = np.argsort(-scores, kind="stable")
    positive, scores, weight = y[order].astype(np.float64), scores[order], weight[order]
    last = descents(scores)
    counts = tuple(_effective(weight[positive == label]) for label in (1.0, 0.0))
    if len(last) and min(counts) > 0:
        share = prior / (prior + min(counts))
        shrunk = (1 - share) * positive + share * _curve(scores, positive, weight, counts)
        for labels in (shrunk, positive):  # a constraint may hold for the labels but not for the shrunk labels
            place = _best_place(measure, labels, scores, weight, last, counts)
            if place is not None:
                return place
    return _all_or_none(measure, positive, scores, weight)


def _best_place(
    measure: ContingencyMeasure,
    labels: Vector,
    scores: Vector,
    weight: Vector,
    last: npt.NDArray[np.intp],
    counts: tuple[float, ...],
) -> float | None:
    """The place nearest to the mean of those that are equal to the best, so that a constraint holds there as well.

    Places are halfway between the score of one of ``last`` and the next, all in descending order. None where the
    measure admits no table of them.
    """
    tp = np.cumsum(weight * labels)
    fp = np.cumsum(weight) - tp
    n_pos, n_neg = float(tp[-1]), float(fp[-1])
    tp, fp = tp[last], fp[last]
    values = admitted(measure, tp, fp, n_pos, n_neg)
    best = float(np.max(values))
    if best == -np.inf:
        return None
    slack = max(best, 0.0) * _one_mistake_each(measure, n_pos, n_neg, counts)  # relative: the best may be small
    equals = last[values >= best - slack - ROUNDING]
    places = (scores[equals] + scores[equals + 1]) / 2
    return float(places[np.argmin(np.abs(places - places.mean()))])


def _one_mistake_each(measure: ContingencyMeasure, n_pos: float, n_neg: float, counts: tuple[float, ...]) -> float:
    """What one mistake in each class costs beside a perfect labelling; of a tiny class, a quarter of its weight."""
    fn, fp = (np.array([0.0, n / max(count, 4.0)]) for n, count in zip((n_pos, n_neg), counts, strict=True))
    perfect, less = measure.table_score(n_pos - fn, fp, fn, n_neg - fp)
    return max(0.0, float(perfect - less))


def _effective(weight: Vector) -> float:
    """The number of equal examples with the spread of weighted ones."""
    return float(weight.sum()) ** 2 / float(weight @ weight) if len(weight) else 0.0


def _all_or_none(measure: ContingencyMeasure, positive: Vector, scores: Vector, weight: Vector) -> float:
    """A threshold below all scores or above them."""
    n_pos = float(weight @ positive)
    n_neg = float(weight.sum()) - n_pos
    none, everyone = admitted(measure, np.array([0.0, n_pos]), np.array([0.0, n_neg]), n_pos, n_neg)
    if none == everyone == -np.inf:
        raise ValueError(
            f"the measure {measure.name!r} admits no threshold on these scores: expected a table that it admits with "
            f"{n_pos:g} positives and {n_neg:g} negatives; ease its constraint, or give more examples"
        )
    # if both are equal, predict the class of more weight
    call = everyone > none or (everyone == none and n_pos > n_neg)
    return float(scores[-1]) - 1.0 if call else float(scores[0]) + 1.0


def _curve(scores: Vector, positive: Vector, weight: Vector, counts: tuple[float, ...]) -> Vector:
    """The logistic curve ``p(s) = 1 / (1 + exp(-a s - b))``, a >= 0, that fits the labels best, at the scores.

    Targets are pulled in by one example of each class (Platt 1999), so that classes that the scores separate have a
    finite curve. Newton's method, halving steps that lead up.
    """
    target = np.where(positive > 0, (counts[0] + 1) / (counts[0] + 2), 1 / (counts[1] + 2))
    weight = weight / weight.mean()
    centre, scale = float(np.median(scores)), float(np.std(scores))
    s = (scores - centre) / (scale or 1.0)
    rate = float(weight @ target) / float(weight.sum())
    a, b = 0.0, float(np.log(rate / (1 - rate)))

    def loss(a: float, b: float) -> float:
        u = a * s + b
        return float(weight @ (np.logaddexp(0.0, u) - target * u))

    value = loss(a, b)
    for _ in range(50):
        p = _logistic(a * s + b)
        miss, bend = weight * (p - target), weight * p * (1 - p)
        slope = float(miss @ s), float(miss.sum())
        aa, ab, bb = float(bend @ s**2) + ROUNDING, float(bend @ s), float(bend.sum()) + ROUNDING
        det = aa * bb - ab**2
        if det <= 0:
            break
        step = (bb * slope[0] - ab * slope[1]) / det, (aa * slope[1] - ab * slope[0]) / det
        while loss(a - step[0], b - step[1]) > value and max(map(abs, step)) > ROUNDING:
            step = step[0] / 2, step[1] / 2
        new = loss(a - step[0], b - step[1])
        if not new < value - 1e-10 * abs(value):
            break
        a, b, value = a - step[0], b - step[1], new
    return _logistic(a * s + b) if a > 0 else np.full(len(s), rate)


def _logistic(u: Vector) -> Vector:
    p: Vector = 0.5 * (1 + np.tanh(0.5 * u))
    return p
