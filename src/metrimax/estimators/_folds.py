"""The folds of an estimator's sample: copies of the rows of X, or weights of zero for the rows held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit, check_cv
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import check_consistent_length

from metrimax._validation import dense, is_whole
from metrimax.designs import as_design, is_design
from metrimax.designs.kernel import Gram, LowRank
from metrimax.estimators._targets import weights_of
from metrimax.io.checkpoints import Checkpoint
from metrimax.measure.at_k import on_part
from metrimax.protocols import Array, Design, Labels, Measure, Rows, Vector
from metrimax.solvers import side_by_side
from metrimax.training.folds import Fold, FoldData, spread
from metrimax.training.label import Training


@dataclass(frozen=True, kw_only=True)
class FoldedSample:
    """The sample on which `metrimax.training` chooses (`metrimax.training.folds.Sample`).

    Parameters
    ----------
    owner : MeasureSVC or MeasureRanker
        It has the kernel, the intercept and the class weights.
    training : Training
        How its labels are trained.
    measure : Measure
        The measure that chooses.
    X, y, labels, folds
        The sample.
    given : ndarray or None
        The ``sample_weight`` of the user.
    weight : ndarray or None
        ``given`` multiplied with the class weights; the measure judges with these weights.
    scaling : float or None
        The value of the constant feature; None if there is none.
    one_thread : bool
        Whether products use one thread only, because several folds are trained at the same time.
    checkpoint : Checkpoint or None
    """

    owner: Any
    training: Training
    measure: Measure
    X: Any
    y: Array
    labels: Labels
    given: Vector | None
    weight: Vector | None
    folds: list[Fold]
    scaling: float | None
    one_thread: bool = False
    checkpoint: Checkpoint | None = None

    @property
    def together(self) -> bool:
        return self.training.kind == "multiclass" and not self.measure.ranks

    def scoring(self, rows: Rows) -> Measure:
        return on_part(self.measure, len(rows) / len(self.y))

    @cached_property
    def batches(self) -> list[list[int]]:
        every = range(len(self.folds))
        return [list(every)] if is_design(self.X) else [[k] for k in every]

    @contextmanager
    def parts(self, batch: list[int]) -> Iterator[list[FoldData]]:
        solver = side_by_side(self.training.solver, self.labels.shape[1] * len(batch))
        if is_design(self.X):  # rows held out get weight 0, so that all folds share one design and each pass over it
            shown, told, name = self.X, "", "folds"
            design = as_design(self.owner._features(self.X), intercept_scaling=self.scaling)
            made = [
                FoldData(self.folds[k].test, self._training(k), design, self.labels, self._held_out(k)) for k in batch
            ]
        else:
            shown, told, name = None, f", fold {batch[0] + 1} of {len(self.folds)}", f"fold-{batch[0]}"
            made = [self._taken_out(k) for k in batch]
        checkpoint = None if self.checkpoint is None else self.checkpoint.part(name)
        with self.owner._progress(self.training.measure, shown, told) as callback:
            changes: Any = {"solver": solver, "callback": callback, "checkpoint": checkpoint}
            yield [part._replace(training=replace(part.training, **changes)) for part in made]

    def _training(self, k: int) -> Training:
        """The training of one fold. The k of a measure at k is scaled to the size of the fold."""
        share = len(self.folds[k].train) / len(self.y)
        return replace(self.training, measure=on_part(self.training.measure, share))

    def _taken_out(self, k: int) -> FoldData:
        train, test = self.folds[k]
        X_train, _ = _safe_split(self.owner, self.X, self.y, train)
        X_test, _ = _safe_split(self.owner, self.X, self.y, test, train)
        weight = self._weight_of(train)
        features = self.owner._features(X_train, 1 if self.one_thread else None)
        design = as_design(features, intercept_scaling=self.scaling)
        outside = self._scores(features, X_test)
        return FoldData(test, self._training(k), design, self.labels[train], weight, outside)

    def _scores(self, features: Design, X: Any) -> Callable[[Vector], Vector]:
        """A function that turns weights of the features and the intercept into scores of the rows of X."""
        owner = self.owner
        if not isinstance(features, (Gram, LowRank)):
            n_threads = 1 if self.one_thread else owner.n_threads
            return as_design(X, intercept_scaling=self.scaling, n_threads=n_threads).matvec

        def scores(W: Vector) -> Vector:
            if self.scaling is None:
                return features.expansion(W).scores(X)
            found: Vector = features.expansion(W[:-1]).scores(X) + self.scaling * W[-1]
            return found

        return scores

    def _weight_of(self, train: Rows) -> Vector | None:
        """The weights of the training rows. Balanced class weights are computed from these rows."""
        y = self.y[train]
        return weights_of(self.owner.class_weight, y, of_rows(self.given, train), y)

    def _held_out(self, k: int) -> Vector:
        """The weights of all rows for one fold: zero for the rows held out."""
        train = self.folds[k].train
        own = self._weight_of(train)
        weights = np.zeros(len(self.y))
        weights[train] = 1.0 if own is None else own
        return weights


def workers_of(n_jobs: int | None, X: Any) -> int:
    """How many folds are trained at a time: 1 where all share one design."""
    if not (n_jobs is None or is_whole(n_jobs)):
        raise ValueError(f"expected n_jobs as a whole number, -1 for all cores, or None, got {n_jobs!r}")
    return 1 if n_jobs is None or is_design(X) else int(effective_n_jobs(n_jobs))


def split(cv: Any, X: Any, y: Array, weight: Vector | None, groups: Any, *, several: bool) -> list[Fold]:
    """The folds of scikit-learn's ``cv``, checked."""
    check_consistent_length(y, groups)
    if several and is_whole(cv) and cv > 1 and groups is None:  # scikit-learn does not stratify indicator matrices
        folds = spread(np.asarray(dense(y)) > 0, int(cv), 0)
    else:
        splitter = check_cv(cv, y, classifier=True)
        try:
            folds = [Fold(*rows) for rows in splitter.split(np.zeros(len(y)) if is_design(X) else X, y, groups)]
        except ValueError as error:
            if groups is None and "groups" in str(error):
                error.add_note("Give the group of each row to fit: fit(X, y, groups=...).")
            raise
    if not folds:
        raise ValueError(f"expected cv with at least one split, got none from {cv!r}")
    _check(folds, y, weight)
    return folds


def hold_out(y: Array, weight: Vector | None, *, several: bool, seed: Any) -> list[Fold]:
    """Two thirds to train on and the rest to test on, as one fold."""
    kind = ShuffleSplit if several else StratifiedShuffleSplit
    folds = [Fold(*rows) for rows in kind(n_splits=1, test_size=1 / 3, random_state=seed).split(np.zeros(len(y)), y)]
    _check(folds, y, weight)
    return folds


def _check(folds: list[Fold], y: Array, weight: Vector | None) -> None:
    """Raise for folds without two classes to train on, or without examples to test on."""
    used = np.ones(y.shape[0], dtype=bool) if weight is None else weight > 0
    varied = y.ndim == 1 and len(np.unique(y[used])) > 1
    for k, (train, test) in enumerate(folds):
        if not used[test].any():
            raise ValueError(
                f"fold {k}: expected examples of weight above zero to test on, got none: drop examples of weight zero, "
                "or shuffle, as in cv=StratifiedKFold(shuffle=True)"
            )
        if varied and len(classes := np.unique(y[train][used[train]])) == 1:
            raise ValueError(
                f"fold {k}: expected at least two classes to train on, got {classes.tolist()} only: "
                "choose fewer folds, or a splitter that stratifies"
            )


def of_rows(weight: Vector | None, rows: Rows) -> Vector | None:
    """The weights of some rows."""
    return None if weight is None else weight[rows]
