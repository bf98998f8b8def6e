"""Labels and weights as users give them (classes, indicator matrices, weights of examples and of classes), and the
measure of scores on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, column_or_1d

from metrimax._validation import dense, is_number, is_whole, refuse_missing
from metrimax.io.labels import WHOLE
from metrimax.measure.at_k import on_part
from metrimax.measure.classes import score_classes
from metrimax.protocols import Array, Labels, Measure, Vector

HEAVIEST = 1e60
"""The largest total weight of all examples; its inverse is the smallest."""


def encode(y: Array, pos_label: Any = None) -> tuple[str, Array, Labels]:
    """The kind of target, the classes, and one boolean column per classifier to train (one for two classes).

    Of two classes the greater is positive, unless ``pos_label`` names one.
    """
    kind, classes, labels = _encode(y)
    if pos_label is not None and (kind != "binary" or pos_label not in classes.tolist()):
        if kind == "multilabel-indicator":
            got, remedy = "several labels", "leave it out, for each label is positive where its column is 1"
        else:
            got, remedy = f"the classes {_few(classes.tolist())}", "give one of them, or None"
        raise ValueError(f"expected pos_label as one of two classes, got {pos_label!r} with {got}: {remedy}")
    return kind, classes, ~labels if turned(classes, pos_label) else labels


def turned(classes: Array, pos_label: Any) -> bool:
    """Whether the first of two classes is positive: scores for the second are then turned around."""
    return pos_label is not None and bool(classes[0] == pos_label)


def positive_last(classes: Array, pos_label: Any) -> Array:
    """The classes with the positive one of two last."""
    return classes[::-1] if turned(classes, pos_label) else classes


def _encode(y: Array) -> tuple[str, Array, Labels]:
    two = _two_numbers(y)
    if two is not None:
        return "binary", *two
    kind: str = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        labels = indicators(np.asarray(dense(y)))
        return kind, np.arange(labels.shape[1]), labels
    if kind not in ("binary", "multiclass"):
        if kind == "unknown":
            refuse_missing(y)  # astype(bool) would turn None into False
            types = sorted({type(label).__name__ for label in np.ravel(y)})
            raise ValueError(
                f"Unknown label type: expected y as numbers, booleans or strings, got objects ({', '.join(types)}): "
                "convert it, as with y.astype(bool), y.astype(int) or y.astype(str)"
            )
        check_classification_targets(y)
        raise ValueError(
            f"expected y as classes or as a label indicator matrix, got {kind}: for several targets, each with classes "
            "of its own, use sklearn.multioutput.MultiOutputClassifier"
        )
    classes, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"expected at least two classes in y, got one class only: {classes.tolist()}")
    positive = [1] if len(classes) == 2 else range(len(classes))
    return kind, classes, np.column_stack([codes == k for k in positive])


def _two_numbers(y: Array) -> tuple[Array, Labels] | None:
    """Classes and labels of a vector y of two different whole numbers, found without sorting; None for any other y."""
    if not (type(y) is np.ndarray and y.ndim == 1 and len(y) and y.dtype.kind in "biuf"):
        return None
    if y.dtype.kind == "b":
        low, high, labels, others = False, True, y, len(y) - np.count_nonzero(y)
    else:
        low, high = y.min(), y.max()
        if y.dtype.kind == "f" and not (-WHOLE < float(low) <= float(high) < WHOLE and low % 1 == high % 1 == 0):
            return None
        labels, others = y == high, np.count_nonzero(y == low)
    if not 0 < others < len(y) or others + np.count_nonzero(labels) != len(y):
        return None
    return np.array([low, high], dtype=y.dtype), labels[:, np.newaxis]


def indicators(Y: Array) -> Labels:
    """An indicator matrix as booleans."""
    if Y.dtype.kind != "b" and not (((Y == 0) | (Y == 1)).all() or ((Y == 1) | (Y == -1)).all()):
        values = np.unique(Y).tolist()
        raise ValueError(
            "expected a label indicator matrix of booleans, of 0 and 1, or of -1 and 1, got the values "
            f"{_few(values)}: compare it with the value that means a label, as in Y == {values[-1]!r}"
        )
    return np.asarray(Y > 0)


def weights_of(class_weight: Any, y: Array, sample_weight: Any, X: Any) -> Vector | None:
    """The weight of every example; None if all weigh 1."""
    if sample_weight is None and class_weight is None:
        return None
    weight = _given_weight(sample_weight, X)
    if class_weight is not None:
        _check_class_weight(class_weight)
        if isinstance(class_weight, str) and class_weight == "balanced" and sample_weight is not None:
            class_weight = _balanced(y, weight)
        weight = weight * compute_sample_weight(class_weight, y)
    if not weight.any():
        raise ValueError(
            "expected sample_weight with values above zero, got none: give the examples to train on a weight"
        )
    _check_total(weight)
    return np.ascontiguousarray(weight)


def check_weight(sample_weight: Any, X: Any) -> Vector | None:
    """The weights of the rows of X, checked; None where none are given."""
    return None if sample_weight is None else _given_weight(sample_weight, X)


def _given_weight(sample_weight: Any, X: Any) -> Vector:
    """Weights as a user gives them, one for each row of X; ones for None."""
    if isinstance(sample_weight, str):
        raise ValueError(
            f"expected sample_weight as a number for each example, got {sample_weight!r}: "
            "'balanced' is for class_weight"
        )
    weight: Vector = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    _check_total(weight)
    return weight


def _check_total(weight: Vector) -> None:
    """Raise for weights so large or small that products of up to four of their sums leave the range of a float."""
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if total and not 1 / HEAVIEST <= total <= HEAVIEST:
        raise ValueError(
            f"expected weights of examples (sample_weight, class_weight) with a sum from {1 / HEAVIEST:g} to "
            f"{HEAVIEST:g}, got {total:g}: divide them by their mean"
        )


def _check_class_weight(class_weight: Any) -> None:
    """Raise for weights that are no finite numbers >= 0; scikit-learn checks the rest."""
    listed = class_weight if isinstance(class_weight, list) else [class_weight]
    if not all(table == "balanced" if isinstance(table, str) else isinstance(table, dict) for table in listed):
        raise ValueError(f"expected class_weight as 'balanced', a dict by classes or None, got {class_weight!r}")
    for table in listed:
        given = table.items() if isinstance(table, dict) else ()
        wrong = {c: w for c, w in given if not (is_number(w) and 0 <= w < np.inf)}
        if wrong:
            raise ValueError(f"expected class_weight as finite numbers that are not negative, got {wrong}")


def _balanced(y: Any, weight: Vector) -> dict[Any, float] | list[dict[Any, float]]:
    """Class weights that balance the total weights of the classes, not their numbers of rows."""
    tables = []
    for column in np.asarray(dense(y)).reshape(len(weight), -1).T:
        classes, codes = np.unique(column, return_inverse=True)
        mass = np.bincount(codes, weight)
        share = weight.sum() / np.count_nonzero(mass)
        tables.append({c: share / m if m else 0.0 for c, m in zip(classes.tolist(), mass.tolist(), strict=True)})
    return tables if len(tables) > 1 else tables[0]


def against(y: Array, positive: Any) -> Labels:
    """One class against the rest."""
    mask: Labels = np.asarray(y == positive)
    return mask


def check_truth(y: Array, scores: Vector, classes: Array | None) -> None:
    """Raise if y has another length than the scores, missing labels, or none of the classes of the model.

    Unknown labels would count as wrong, or as negative. One unknown class alone is accepted, and all predictions are
    wrong: a test fold may consist of a class that the training folds do not have.
    """
    check_consistent_length(scores, y)
    if classes is not None:
        refuse_missing(y)
    if classes is None or any(against(column_or_1d(y), c).any() for c in classes):
        return
    found, known = list(dict.fromkeys(y.ravel().tolist())), classes.tolist()
    if len(found) > 1 or isinstance(found[0], str) != isinstance(known[0], str):
        raise ValueError(
            f"expected y with some of the classes {_few(known)} that the model was fitted on, got {_few(found)}: "
            "give the labels as in fit"
        )


def total_of(weight: Vector | None, rows: Any) -> float:
    """The size of a sample: its total weight, or the number of its rows."""
    return float(len(rows)) if weight is None else float(weight.sum())


def on_batch(measure: Measure, size: float | None, scores: Vector, sample_weight: Any) -> Measure:
    """The measure for a batch, of a model trained on a sample of some size (None: a model of an older version)."""
    if size is None:
        return measure
    return on_part(measure, total_of(check_weight(sample_weight, scores), scores) / size)


def judge(
    measure: Measure, scores: Vector, y: Array, classes: Array, sample_weight: Any, *, several: bool = False
) -> float:
    """The measure of scores: (n,) for two classes, (n, L) for more of them or, with ``several``, for indicators y."""
    weight = check_weight(sample_weight, scores)
    if scores.ndim == 1:
        return measure.score(against(column_or_1d(y), classes[1]), scores, weight)
    if several:
        if y.shape != scores.shape:
            raise ValueError(f"expected a label indicator matrix of shape {scores.shape}, got {y.shape}")
        truth = indicators(y)
    else:
        y = column_or_1d(y)
        truth = np.column_stack([against(y, c) for c in classes])
    columns = _varied(truth, weight) if measure.ranks else range(scores.shape[1])
    if not several:
        return score_classes(measure, truth, scores, columns, weight)
    return float(np.mean([measure.score(truth[:, k], scores[:, k], weight) for k in columns]))


def called(scores: Vector, classes: Array, *, several: bool) -> Array:
    """What scores call each example, by itself: classes, or with ``several`` a matrix of 0 and 1.

    Scores and classes are as for `judge`: those of two classes (n,), with the positive class last.
    """
    if several:
        return (scores > 0).astype(int)
    choice = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    labels: Array = classes[choice]
    return labels


def called_top_k(scores: Vector, k: Any, classes: Array, *, several: bool) -> Array:
    """As `called`, but with exactly ``k`` positives, in each column with ``several``; of equal scores the first."""
    if scores.ndim == 2 and not several:
        raise ValueError(f"predict_top_k needs two classes or a label indicator matrix, got {len(classes)} classes")
    if not (is_whole(k) and 0 <= k <= len(scores)):
        raise ValueError(f"expected k as a whole number from 0 to the {len(scores)} examples, got {k!r}")
    positive = np.zeros(scores.shape, dtype=int)
    np.put_along_axis(positive, np.argsort(-scores, axis=0, kind="stable")[:k], 1, axis=0)
    return positive if several else classes[positive]


def _varied(labels: Labels, weight: Vector | None) -> npt.NDArray[np.intp]:
    """The columns that have positives and negatives; all columns if none has."""
    used = labels if weight is None else labels[weight > 0]
    both = used.any(axis=0) & ~used.all(axis=0)
    return np.flatnonzero(both if both.any() else ~both)


def _few(values: list[Any]) -> str:
    """Some values, for messages."""
    return f"[{', '.join(map(repr, values[:10]))}{', ...' if len(values) > 10 else ''}]"
