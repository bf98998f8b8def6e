"""Models scored on the rows that they were not trained on: fold by fold, or all folds side by side."""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit, check_cv
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_consistent_length

from metrimax.designs import is_design
from metrimax.estimators._base import labels_of
from metrimax.estimators._sample_path import SamplePath, gap_of, passes_of
from metrimax.estimators._selection import Row
from metrimax.estimators._targets import weights_of
from metrimax.estimators.svc import MeasureSVC
from metrimax.io.checkpoints import Checkpoint
from metrimax.protocols import Solution, Vector
from metrimax.training.choose import choose_column
from metrimax.training.label import FittedLabel
from metrimax.training.lockstep import run

if TYPE_CHECKING:
    from metrimax.estimators.svc_cv import MeasureSVCCV

Rows = npt.NDArray[np.intp]
FoldScores = list[tuple[list[float], list[FittedLabel]]]
"""For every C: the scores of a fold by threshold, and its labels without their weights."""


class BySplits:
    """Scores on the parts that a model was not trained on."""

    def __init__(
        self, owner: MeasureSVCCV, X: Any, y: Any, weight: Vector | None, groups: Any, checkpoint: Checkpoint | None
    ) -> None:
        self._owner, self._X, self._y, self._weight, self._checkpoint = owner, X, y, weight, checkpoint
        self.solutions: list[Solution] = []
        one_thread = not is_design(X) and owner.n_jobs not in (None, 1)
        self._template = owner.plain(checkpoint=None, **({"n_threads": 1} if one_thread else {}))
        if owner.selection == "holdout":
            several = type_of_target(y) == "multilabel-indicator"
            kind = ShuffleSplit if several else StratifiedShuffleSplit
            splitter = kind(n_splits=1, test_size=1 / 3, random_state=owner._random_state)
        else:
            splitter = check_cv(owner.cv, y, classifier=True)
        check_consistent_length(y, groups)
        self._splits = list(splitter.split(np.zeros(len(y)) if is_design(X) else X, y, groups))
        self._check_splits()

    def _check_splits(self) -> None:
        """Raise for folds that nothing can be learnt from, or tested on: what is not there has no mistakes."""
        if not self._splits:
            raise ValueError(f"expected cv with at least one split, got none from {self._owner.cv!r}")
        used = np.ones(self._y.shape[0], dtype=bool) if self._weight is None else self._weight > 0
        varied = self._y.ndim == 1 and len(np.unique(self._y[used])) > 1
        for k, (train, test) in enumerate(self._splits):
            if not used[test].any():
                raise ValueError(
                    f"fold {k}: expected examples of weight above zero to test on, got none: leave those without "
                    "weight out, or shuffle, as in cv=StratifiedKFold(shuffle=True)"
                )
            if varied and len(classes := np.unique(self._y[train][used[train]])) == 1:
                raise ValueError(
                    f"fold {k}: expected at least two classes to train on, got {classes.tolist()} only: "
                    "choose fewer folds, or a splitter that stratifies"
                )

    def rows(self, Cs: Vector) -> list[Row]:
        """One row for every C, with the threshold that does better."""
        began = time.perf_counter()
        parts = self._side_by_side(Cs) if is_design(self._X) else self._one_by_one(Cs)
        seconds = (time.perf_counter() - began) / len(Cs)
        rows = []
        for k, C in enumerate(Cs):
            table = np.array([part[k][0] for part in parts])  # folds by thresholds
            at = choose_column(table, self._owner.slack)
            row: Row = {"param_C": C, "param_threshold": self._owner.thresholds[at]} | _summary(table[:, at])
            fitted = [label for part in parts for label in part[k][1]]
            self.solutions += [label.solution for label in fitted]
            rows.append(row | {"max_gap": gap_of(fitted), "sum_passes": passes_of(fitted), "fit_time": seconds})
        return rows

    def refit(self, best: Row) -> MeasureSVC:
        """A model trained on everything with what was chosen."""
        chosen = {"C": float(best["param_C"]), "threshold": best["param_threshold"]}
        return self._owner.plain(**chosen).fit(self._X, self._y, self._weight)

    def _one_by_one(self, Cs: Vector) -> list[FoldScores]:
        parts: list[FoldScores] = Parallel(n_jobs=self._owner.n_jobs, prefer="threads")(
            delayed(self._fold)(Cs, k, train, test) for k, (train, test) in enumerate(self._splits)
        )
        return parts

    def _fold(self, Cs: Vector, k: int, train: Rows, test: Rows) -> FoldScores:
        """The scores on the test rows of models trained on the others."""
        X_train, y_train = _safe_split(self._template, self._X, self._y, train)
        X_test, _ = _safe_split(self._template, self._X, self._y, test, train)
        checkpoint, part = self._part(f"fold-{k}"), f", fold {k + 1} of {len(self._splits)}"
        path = SamplePath(self._template, X_train, y_train, _of(self._weight, train), checkpoint, part=part)
        return [
            (self._by_threshold(path.judged(fitted), fitted, scores, test), fitted)
            for fitted, scores in path.scores(Cs, X_test)
        ]

    def _side_by_side(self, Cs: Vector) -> list[FoldScores]:
        """The same for all folds of a design, whose rows cannot be taken out.

        Rows held out weigh nothing; so all folds have the same design, and every pass serves them all.
        """
        template, X, y, splits = self._template, self._X, self._y, self._splits
        plain = clone(template).set_params(class_weight=None)  # the classes' weights are those of the training rows
        weights, checkpoint = [self._held_out(train) for train, _ in splits], self._part("folds")
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
                scores = S[test, f * L : (f + 1) * L] + model.trained_intercept_
                values = self._by_threshold(model, fitted[f], scores, test)
                results[f].append((values, [label.slim() for label in fitted[f]]))
        return results

    def _by_threshold(self, model: MeasureSVC, fitted: list[FittedLabel], scores: Vector, test: Rows) -> list[float]:
        """What scores (n, L) of test rows, before any threshold, are worth with each of those to choose from."""
        judge = self._owner.judge(model)
        values, truth = [], labels_of(scores, self._y[test])
        for kind in self._owner.thresholds:
            labels = fitted if kind == self._template.threshold else [label.unplaced() for label in fitted]
            above = scores - np.array([label.threshold for label in labels])
            above = above[:, 0] if judge._binary else above
            values.append(judge._judge_scores(above, truth, _of(self._weight, test)))
        return values

    def _held_out(self, train: Rows) -> Vector:
        """The weights of one fold: zero for the rows held out."""
        inside = self._y[train]
        own = weights_of(self._template.class_weight, inside, _of(self._weight, train), inside)
        weights = np.zeros(len(self._y))
        weights[train] = 1.0 if own is None else own
        return weights

    def _part(self, name: str) -> Checkpoint | None:
        return None if self._checkpoint is None else self._checkpoint.part(name)


def _of(weight: Vector | None, rows: Rows) -> Vector | None:
    """The weights of some rows."""
    return None if weight is None else weight[rows]


def _summary(scores: Vector) -> Row:
    """Mean, standard deviation and the scores of the folds, by scikit-learn's names."""
    row: Row = {"mean_test_score": np.mean(scores), "std_test_score": np.std(scores)}
    return row | {f"split{i}_test_score": score for i, score in enumerate(scores)}
