"""Labels and weights as users give them: classes, indicator matrices, weights of examples and of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from metrimax.protocols import Labels, Vector

Array = npt.NDArray[Any]
WHOLE = 2.0**53
"""Floating-point numbers below this say exactly which whole number they are."""


def encode(y: Array) -> tuple[str, Array, Labels]:
    """The kind of target, the classes, and one boolean column per classifier to train (one for two classes)."""
    two = _two_numbers(y)
    if two is not None:
        return "binary", *two
    kind: str = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        labels = np.asarray(y.toarray() if hasattr(y, "toarray") else y) > 0
        return kind, np.arange(labels.shape[1]), labels
    if kind not in ("binary", "multiclass"):
        check_classification_targets(y)
        raise ValueError(f"expected y as classes or as a label indicator matrix, got {kind}")
    classes, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"expected at least two classes in y, got one class only: {classes.tolist()}")
    positive = [1] if len(classes) == 2 else range(len(classes))
    return kind, classes, np.column_stack([codes == k for k in positive])


def _two_numbers(y: Array) -> tuple[Array, Labels] | None:
    """Classes and labels, where y is a vector of two different whole numbers: without sorting it."""
    if not (type(y) is np.ndarray and y.ndim == 1 and len(y) and y.dtype.kind in "biuf"):
        return None
    if y.dtype.kind == "b":
        low, high, labels, others = False, True, y, len(y) - np.count_nonzero(y)
    else:
        low, high = y.min(), y.max()
        if y.dtype.kind == "f" and not (-WHOLE < low <= high < WHOLE and low % 1 == high % 1 == 0):
            return None
        labels, others = y == high, np.count_nonzero(y == low)
    if not 0 < others < len(y) or others + np.count_nonzero(labels) != len(y):
        return None
    return np.array([low, high], dtype=y.dtype), labels[:, np.newaxis]


def weights_of(class_weight: Any, y: Array, sample_weight: Any, X: Any) -> Vector | None:
    """The weight of every example; None where all count alike."""
    if sample_weight is None and class_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if class_weight is not None:
        weight = weight * compute_sample_weight(class_weight, y)
    if not weight.any():
        raise ValueError("expected sample_weight with values above zero, got none: no example is left to train on")
    return np.ascontiguousarray(weight)


def against(y: Array, positive: Any) -> Labels:
    """One class against the rest."""
    mask: Labels = np.asarray(y == positive)
    return mask
