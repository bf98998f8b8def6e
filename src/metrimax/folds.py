"""Models scored on the rows that they were not trained on: fold by fold, or all folds side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.metaestimators import _safe_split

from metrimax.base import labels_of
from metrimax.estimators import MeasureSVC
from metrimax.fitting import FittedLabel
from metrimax.io.checkpoints import Checkpoint
from metrimax.labels import weights_of
from metrimax.protocols import Design, Vector
from metrimax.risk import run
from metrimax.sample_path import SamplePath

if TYPE_CHECKING:
    from metrimax.cv import MeasureSVCCV

Array = npt.NDArray[Any]
Split = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]
FoldScores = list[tuple[list[float], list[FittedLabel]]]
"""For every C: the scores of a fold by threshold, and its labels without their weights."""


def fold_scores(
    owner: MeasureSVCCV,
    template: MeasureSVC,
    X: Any,
    y: Any,
    weight: Vector | None,
    Cs: Vector,
    split: Split,
    checkpoint: Checkpoint | None,
) -> FoldScores:
    """For every C, the scores on the test rows of the model trained on the others, and its labels."""
    train, test = split
    (X_train, y_train), (X_test, y_test) = _safe_split(template, X, y, train), _safe_split(template, X, y, test, train)
    path = SamplePath(template, X_train, y_train, None if weight is None else weight[train], checkpoint)
    results = []
    for fitted, scores in path.scores(Cs, X_test):
        judge = owner.judge(path.judged(fitted))
        values = _by_threshold(owner, template, judge, fitted, scores, y_test, None if weight is None else weight[test])
        results.append((values, fitted))
    return results


def _by_threshold(
    owner: MeasureSVCCV,
    template: MeasureSVC,
    judge: MeasureSVC,
    fitted: list[FittedLabel],
    scores: Vector,
    y: Any,
    weight: Vector | None,
) -> list[float]:
    """What scores (n, L) before any threshold are worth with each of those to choose from."""
    values, truth = [], labels_of(scores, y)
    for kind in owner.thresholds:
        labels = fitted if kind == template.threshold else [label.unplaced() for label in fitted]
        above = scores - np.array([label.threshold for label in labels])
        values.append(judge._judge_scores(above[:, 0] if judge._binary else above, truth, weight))
    return values


def side_by_side_scores(
    owner: MeasureSVCCV,
    template: MeasureSVC,
    X: Design,
    y: Array,
    weight: Vector | None,
    Cs: Vector,
    splits: Sequence[Split],
    checkpoint: Checkpoint | None,
) -> list[FoldScores]:
    """The same for all folds of a design, whose rows cannot be taken out.

    Rows held out weigh nothing; so all folds have the same design, and every pass serves them all.
    """
    plain = clone(template).set_params(class_weight=None)  # the weights of the classes are those of the training rows
    weights = [_held_out(template, y, weight, train) for train, _ in splits]
    paths = [SamplePath(plain, X, y, own, checkpoint, together=len(splits)) for own in weights]
    with template._progress(None, X) as callback:
        per_label = run(paths[0].design, chain.from_iterable(path.runs(Cs, callback) for path in paths))
    L = len(per_label) // len(paths)
    results: list[FoldScores] = [[] for _ in paths]
    for k, C in enumerate(Cs):
        fitted = [[label[k] for label in per_label[f * L : (f + 1) * L]] for f in range(len(paths))]
        models = [path.model(float(C), own) for path, own in zip(paths, fitted, strict=True)]
        S = X.matvec(np.ascontiguousarray(np.vstack([model.coef_ for model in models]).T))
        for f, (model, (_, test)) in enumerate(zip(models, splits, strict=True)):
            judge = owner.judge(model)
            scores = S[test, f * L : (f + 1) * L] + model.intercept_
            own_weight = None if weight is None else weight[test]
            values = _by_threshold(owner, template, judge, fitted[f], scores, y[test], own_weight)
            results[f].append((values, [label.slim() for label in fitted[f]]))
    return results


def _held_out(template: MeasureSVC, y: Array, weight: Vector | None, train: npt.NDArray[np.intp]) -> Vector:
    """The weights of one fold: zero for the rows held out."""
    inside = y[train]
    own = weights_of(template.class_weight, inside, None if weight is None else weight[train], inside)
    weights = np.zeros(len(y))
    weights[train] = 1.0 if own is None else own
    return weights
