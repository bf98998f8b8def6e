"""What the displays ask of a classifier and of its labels."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from metrimax.protocols import Labels, Vector


def new_axes(ax: Any) -> Any:
    """The axes given, or those of a new figure."""
    return plt.subplots(layout="constrained")[1] if ax is None else ax


def chosen(model: Any) -> Any:
    """A fitted model; of a search, the best that it found."""
    check_is_fitted(model)
    return getattr(model, "best_estimator_", model)


def last_step(model: Any) -> Any:
    """The fitted model that predicts: of a search the best, of a pipeline its last step."""
    model = chosen(model)
    return last_step(model[-1]) if isinstance(model, Pipeline) else model


def positive_class(model: Any) -> tuple[Any, float]:
    """The positive one of two classes, and the sign of its scores: -1 if it is the first class."""
    first, second = np.asarray(model.classes_).tolist()
    return (first, -1.0) if getattr(last_step(model), "pos_label", None) == first else (second, 1.0)


def scores_of(model: Any, X: Any) -> tuple[Vector, float]:
    """The scores of a fitted classifier for the positive one of two classes, and the threshold above which it calls."""
    check_is_fitted(model)
    classes = model.classes_
    if len(classes) != 2:
        raise ValueError(f"expected a classifier of two classes, got {len(classes)}: draw one class against the rest")
    if hasattr(model, "decision_function"):
        scores, threshold = positive_class(model)[1] * np.asarray(model.decision_function(X), dtype=np.float64), 0.0
    else:
        scores, threshold = np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1], 0.5
    if scores.ndim != 1:
        raise ValueError(f"expected one score for each example, got an array of shape {scores.shape}: draw each label")
    return scores, threshold


def labels_and_scores(y: npt.ArrayLike, scores: npt.ArrayLike, pos_label: Any = None) -> tuple[Labels, Vector]:
    """True for the positive class, and the scores, one for each label."""
    labels, values = positives(y, pos_label), np.asarray(scores, dtype=np.float64)
    if values.shape != labels.shape:
        raise ValueError(f"expected one score for each of the {len(labels)} labels, got the shape {values.shape}")
    return labels, values


def positives(y: npt.ArrayLike, pos_label: Any = None) -> Labels:
    """True for the positive class: the one named, or else the greater of the two."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"expected y as one label for each row, got the shape {y.shape}: draw one column at a time")
    classes = np.unique(y)
    if pos_label is None and len(classes) != 2:
        raise ValueError(f"expected y with two classes, got {classes.tolist()[:5]}: give the labels first, then scores")
    if pos_label is not None and pos_label not in classes:
        raise ValueError(f"expected pos_label among the classes {classes.tolist()[:5]}, got {pos_label!r}")
    return np.asarray(y == (classes[1] if pos_label is None else pos_label))
