"""The outputs of auxiliary classifiers, as columns, and what their adaptation changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_regressor
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params, check_is_fitted

from metrimax._validation import dense, is_whole, warn
from metrimax.estimators._targets import judge
from metrimax.measure.classes import highest
from metrimax.protocols import Array, Labels, Measure, Vector
from metrimax.training.choose import Chosen
from metrimax.training.label import FittedLabel
from metrimax.training.threshold import choose_threshold


class Choice(NamedTuple):
    """What an adaptation is trained with, and what the folds said of it where there was a choice."""

    B: float
    chosen: list[Chosen]  #: label by label
    score: float = math.nan
    results: dict[str, Any] | None = None


@dataclass(frozen=True)
class AuxiliaryOutputs:
    """How the outputs of an auxiliary classifier are read: one column per label, or one for two classes.

    Parameters
    ----------
    classes, labels, y : ndarray
        The classes, one boolean column per classifier to train, and y itself.
    multilabel : bool
        Whether y is a label indicator matrix.
    outputs : {"label", "score"}
    """

    classes: Array
    labels: Labels
    y: Array
    multilabel: bool
    outputs: str

    def target(self, auxiliary: Any) -> Array:
        """What to train an auxiliary on: y, or +1 and -1 for a regressor."""
        if not is_regressor(auxiliary):
            return self.y
        signs = np.where(self.labels, 1.0, -1.0)
        return signs[:, 0] if signs.shape[1] == 1 else signs

    def shape(self, values: npt.ArrayLike) -> Vector:
        """Outputs as a block (n, L): the scores, or their signs +1 and -1 with ``outputs="label"``."""
        block = _finite(np.asarray(values, dtype=np.float64))
        block = block.reshape(len(block), -1)
        if block.shape[1] != self.labels.shape[1]:
            raise ValueError(f"expected {self.labels.shape[1]} output(s) of an auxiliary, got {block.shape[1]}")
        return block if self.outputs == "score" else np.where(block > 0, 1.0, -1.0)

    def of(self, auxiliary: Any, inputs: Any, X: Any) -> Vector:
        """The outputs of an auxiliary, or of a column of X, for the examples: (n, L)."""
        return self.shape(dense(X[:, [auxiliary]])) if is_column(auxiliary) else self.output(auxiliary, inputs)

    def output(self, auxiliary: Any, X: Any) -> Vector:
        """The outputs of a fitted auxiliary for the examples: (n, L)."""
        if is_regressor(auxiliary):
            return self.shape(auxiliary.predict(X))
        if not hasattr(auxiliary, "predict") or not (self.multilabel or hasattr(auxiliary, "classes_")):
            raise TypeError(f"expected an auxiliary that is a classifier or a regressor, got {auxiliary!r}")
        if not self.multilabel:
            unknown = set(np.asarray(auxiliary.classes_).tolist()) - set(self.classes.tolist())
            if unknown:
                raise ValueError(
                    f"the auxiliary {type(auxiliary).__name__} predicts classes that y does not have: "
                    f"{sorted(unknown, key=str)}; train it on the classes {self.classes.tolist()}"
                )
        if self.outputs == "score":
            if hasattr(auxiliary, "decision_function"):
                return self._scores(auxiliary, auxiliary.decision_function(X), rest=-1.0)
            if hasattr(auxiliary, "predict_proba"):
                return self._scores(auxiliary, auxiliary.predict_proba(X), rest=0.0) * 2 - 1
        return self._labels(auxiliary.predict(X))

    def _labels(self, predicted: Any) -> Vector:
        if self.multilabel:  # an auxiliary that was fitted on sparse labels predicts sparse labels
            return np.where(dense(predicted) > 0, 1.0, -1.0)
        positive = self.classes[1:] if len(self.classes) == 2 else self.classes
        return np.where(np.asarray(predicted)[:, None] == positive, 1.0, -1.0)

    def _scores(self, auxiliary: Any, values: Any, rest: float) -> Vector:
        """Columns in the order of ``self.classes``; ``rest`` for a class that the auxiliary has not seen."""
        if self.multilabel:
            if isinstance(values, list):  # probabilities, label by label
                pairs = zip(values, auxiliary.classes_, strict=True)
                values = np.column_stack([v[:, list(c).index(1)] if 1 in c else 0 * v[:, 0] for v, c in pairs])
            return self.shape(values)
        own, values = np.asarray(auxiliary.classes_), _finite(values)
        if values.ndim == 1:  # two classes, one score
            values = np.column_stack([-values, values])
        elif values.shape[1] != len(own) or (len(own) > 2 and _one_vs_one(auxiliary)):
            raise ValueError(
                f"expected a score for each of {len(own)} classes from the auxiliary {type(auxiliary).__name__}, got "
                f"{values.shape[1]} scores (a one-vs-one classifier scores pairs of classes): set its "
                "decision_function_shape='ovr', or outputs='label'"
            )
        block = np.full((len(values), len(self.classes)), rest)
        order = np.argsort(self.classes)  # they are not sorted where the smaller of two classes is positive
        block[:, order[np.searchsorted(self.classes, own, sorter=order)]] = values
        return block[:, 1:] if len(self.classes) == 2 else block


def _finite(values: Vector) -> Vector:
    """The outputs of an auxiliary. Raise if one is not finite: NaN would count as a negative label."""
    if not np.isfinite(values).all():
        raise ValueError(
            "expected finite outputs of the auxiliaries, got NaN or infinity: give an auxiliary other parameters "
            "(GaussianNB needs var_smoothing where a feature does not vary), or leave it out"
        )
    return values


def _one_vs_one(auxiliary: Any) -> bool:
    """Whether the scores are those of pairs of classes; their number does not tell, for three classes have 3 pairs."""
    auxiliary = getattr(auxiliary, "best_estimator_", auxiliary)
    if hasattr(auxiliary, "steps"):
        return _one_vs_one(auxiliary.steps[-1][1])
    return bool(getattr(auxiliary, "decision_function_shape", "ovr") == "ovo")


def unseen(
    auxiliary: Any, inputs: Any, problem: AuxiliaryOutputs, folds: list[tuple[Any, Any]], extra: dict[str, Any]
) -> Vector:
    """The out-of-fold outputs of an auxiliary: each example has the output of a clone not trained on it. (n, L)."""
    target, block = problem.target(auxiliary), np.full(problem.labels.shape, np.nan)
    for train, test in folds:
        part = _check_method_params(inputs, extra, indices=train)
        fold = clone(auxiliary).fit(_safe_indexing(inputs, train), target[train], **part)
        block[test] = problem.output(fold, _safe_indexing(inputs, test))
    if np.isnan(block).any():
        raise ValueError("expected a cv that tests every example: its test sets leave some out")
    return block


def folds_of(cv: Any, X: Any, y: Array, multilabel: bool) -> list[tuple[Any, Any]] | None:
    """The splits, the same for all auxiliaries; None where each is only trained on all examples."""
    if isinstance(cv, (int, np.integer)):
        cv = min(cv, X.shape[0] if multilabel else np.unique(y, return_counts=True)[1].min())
    if cv is None or (isinstance(cv, (int, np.integer)) and cv < 2):
        return None
    return list(check_cv(cv, y, classifier=True).split(X, y))


def check_auxiliaries(estimators: list[tuple[str, Any]], *, prefit: bool) -> None:
    """Raise for an auxiliary that is neither an estimator nor a column, or that should be fitted and is not."""
    for name, auxiliary in estimators:
        if is_column(auxiliary):
            continue
        if not hasattr(auxiliary, "fit"):
            raise TypeError(f"expected {name!r} as an estimator or the number of a column of X, got {auxiliary!r}")
        if prefit and not hasattr(auxiliary, "classes_"):
            told = f"expected {name!r} as a fitted estimator, for prefit=True, got one that is not fitted"
            check_is_fitted(auxiliary, msg=f"{told}: fit it, or set prefit=False".replace("%", "%%"))


def is_column(auxiliary: Any) -> bool:
    """Whether an auxiliary is the number of a column of X, not an estimator."""
    return is_whole(auxiliary)


def fixed(n_auxiliaries: int, n_labels: int) -> Vector:
    """The weights that sum the auxiliaries, label by label."""
    return np.tile(np.eye(n_labels), (n_auxiliaries, 1))


def inputs_of(given: Any, X: Any, rest: Any) -> Any:
    """What the auxiliaries are given: the user's data frame, with its names, or else the checked array."""
    return given if rest is X and hasattr(given, "columns") else rest


def without(X: Any, columns: list[int]) -> Any:
    """X without the columns that hold outputs."""
    if not columns:
        return X
    p = X.shape[1]
    wrong = [c for c in columns if not 0 <= c < p]
    if wrong:
        raise ValueError(f"expected columns of outputs from 0 to {p - 1}, got {wrong}")
    return X[:, np.setdiff1d(np.arange(p), columns)]


def placed(
    measure: Measure,
    fitted: list[FittedLabel],
    chosen: list[Chosen],
    scores: Vector,
    labels: Labels,
    weight: Vector | None,
) -> list[FittedLabel]:
    """The labels with the thresholds of the folds, or else with the best thresholds for the training scores (n, L)."""
    return [
        one
        if one.constant or with_.rule != "folds" or with_.frozen is not None
        else one._replace(threshold=choose_threshold(measure, y, own, weight))
        for one, with_, y, own in zip(fitted, chosen, labels.T, scores.T, strict=True)
    ]


def warn_if_unchanged(report: dict[str, Any], *, in_sample: bool) -> None:
    """Warn where the adaptation changed nothing."""
    if not report["changed"]:
        more = (
            "the auxiliaries were trained on these examples, so set cv=5" if in_sample else "use an auxiliary as it is"
        )
        warn(f"the adaptation changed nothing: an auxiliary alone predicts the same on the training sample; {more}")


def best(
    measure: Measure, problem: AuxiliaryOutputs, blocks: list[Vector], weight: Vector | None, number: int
) -> list[int]:
    """The ``number`` auxiliaries with the highest value of the measure, in the order in which they were given."""
    names = [str(k) for k in range(len(blocks))]
    values = report(measure, problem, names, blocks, blocks[0], weight)["before"]
    return sorted(sorted(range(len(blocks)), key=lambda k: -values[str(k)])[:number])


def report(
    measure: Measure,
    problem: AuxiliaryOutputs,
    names: list[str],
    blocks: list[Vector],
    scores: Vector,
    weight: Vector | None,
) -> dict[str, Any]:
    """What the adaptation changed, measured as in `score`. The several labels of an example are one prediction."""
    single = not problem.multilabel and len(problem.classes) == 2

    def called(block: Vector) -> Labels:
        return block > 0 if problem.multilabel or single else highest(block)  # as in `predict`

    def value(block: Vector) -> float:
        judged = np.ascontiguousarray(block[:, 0]) if single else block
        return judge(measure, judged, problem.y, problem.classes, weight, several=problem.multilabel)

    before = {name: value(block) for name, block in zip(names, blocks, strict=True)}
    after = value(scores)
    flipped = {
        name: int(np.count_nonzero((called(block) != called(scores)).any(axis=1)))
        for name, block in zip(names, blocks, strict=True)
    }
    same = [name for name in names if flipped[name] == 0 and abs(after - before[name]) < 1e-12]
    return {
        "measure": measure.name,
        "n": len(problem.labels),
        "before": before,
        "after": after,
        "flipped": flipped,
        "changed": not same,
    }
