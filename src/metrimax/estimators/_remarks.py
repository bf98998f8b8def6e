"""Warnings of fits that the user may not want: another positive class, or a rule that labels all examples alike."""

from __future__ import annotations

import numpy as np

from metrimax._validation import warn
from metrimax.measure.constrained import Constrained
from metrimax.measure.positive import doubtful_positive
from metrimax.protocols import Array, Labels, Measure, Solution, Vector


def warn_of_positive(measure: Measure, classes: Array, labels: Labels) -> None:
    """Warn where the user may want the other of two classes to be positive."""
    if doubt := doubtful_positive(measure, classes.tolist(), labels):
        warn(f"{doubt}; to make that one positive, set pos_label={str(classes[0])!r}")


def warn_of_shortfall(measure: Measure, labels: Labels, above: Vector, weight: Vector | None) -> None:
    """Warn where thresholds may not keep a measure's constraint; ``above`` are scores (n, L) less thresholds."""
    if isinstance(measure, Constrained):
        rules = [(y, scores, weight) for y, scores in zip(labels.T, above.T, strict=True)]
        texts = [measure.shortfall(measure.merit(*rule), measure.reach(*rule)) for rule in rules]
        for text in filter(None, texts):
            warn(text)


def warn_of_training_scores(measure: Measure) -> None:
    """Warn where the constraint of a measure is kept on training scores alone."""
    if isinstance(measure, Constrained):
        warn(
            f"{measure.name}: the threshold keeps {measure.what(measure.level)} on the training scores, which are "
            "better than those of other data: MeasureSVCCV places it on scores out of fold"
        )


def warn_of_grades(measure: Measure, kind: str, classes: Array) -> None:
    """Warn where grades of relevance are trained as classes, one against the rest."""
    if measure.name == "ndcg" and kind == "multiclass" and np.asarray(classes).dtype.kind in "iuf":
        warn(
            f"{measure.name}: the {len(classes)} values of y are trained as classes, one against the rest; if they are "
            "grades of relevance, train MeasureRanker, which orders them"
        )


def warn_of_constants(
    measure: Measure, labels: Labels, scores: Vector, weight: Vector | None, solutions: list[Solution], *, chosen: bool
) -> None:
    """Warn of classifiers that give all training examples one label, with a loss of 0.5 or more.

    ``chosen``: folds have chosen them.
    """
    used = slice(None) if weight is None else weight > 0
    constant = [
        # w = 0 was already warned about, or the label does not vary
        solution.w.any() and bool((z[used] == z[used][0]).all()) and measure.loss(y, z, weight) >= 0.5
        for solution, y, z in zip(solutions, labels.T, scores.T > 0, strict=True)
    ]
    if any(constant):
        some = "" if len(solutions) == 1 else f" ({sum(constant)} of {len(solutions)} labels)"
        if not np.ptp(scores[used][:, np.array(constant)], axis=0).any():
            remedy = "all have the same score, so see whether the columns of X vary"
        elif chosen:
            remedy = "the columns of X may not tell the classes apart, or there are too few positives to learn from"
        else:
            remedy = "where classes overlap leave hinge, logistic and threshold at their defaults"
            remedy += ", or let MeasureSVCCV choose"
        warn(f"all training examples get the same label{some}, and the loss of the measure is 0.5 or more: {remedy}")


def warn_of_no_labels(labels: Labels) -> None:
    """Warn where no label of an indicator matrix varies."""
    if labels.shape[1] > 1 and (labels == labels[:1]).all():
        warn(
            f"none of the {labels.shape[1]} labels varies in y, so nothing can be learnt: each is predicted as the "
            "constant it is"
        )
