"""A fitted classifier: its scores, its labels, and the measure of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from metrimax._validation import dense
from metrimax.designs import as_design, is_design
from metrimax.designs.kernel import Expansion, Gram, LowRank
from metrimax.estimators._base import CertifiedEstimator, labels_of
from metrimax.estimators._remarks import warn_of_positive
from metrimax.estimators._sparse import SparseWeights
from metrimax.estimators._targets import called, called_top_k, check_truth, judge, on_batch, turned
from metrimax.measure import get_measure
from metrimax.protocols import Array, Design, Labels, Measure, Vector
from metrimax.training.label import FittedLabel, trace_share

_PROBABILITIES = "scores are not probabilities; fit CalibratedClassifierCV(this estimator), or MeasureEnsemble"
ELSEWHERE = {
    "best_estimator_": "the estimator itself is trained on all rows, with what it chose",
    "best_params_": "C_ and trained_with_ are what was chosen, cv_results_ is the table of all",
    "dropped_": "sparsify sets it",
    "feature_importances_": "coef_ are the weights; sklearn.inspection.permutation_importance is for any model",
    "partial_fit": "fit trains on rows beyond memory with metrimax.open_dataset, and goes on with checkpoint=",
    "plot": "metrimax.display has the plots, such as ThresholdDisplay.from_estimator(this estimator, X, y)",
    "predict_log_proba": _PROBABILITIES,
    "predict_proba": _PROBABILITIES,
    "save": "joblib.dump(this estimator, file) stores it",
    "sparsify": "a kernel has no weights of features; choose kernel='linear'",
    "set_callbacks": "set verbose=1 for progress, or callback=, a function of a record that stops the fit by True",
}
"""What people look for on a classifier, and where it is."""

FITTED = ("C_", "classes_", "coef_", "cv_results_", "gap_", "history_", "intercept_", "status_", "threshold_")
"""Attributes that `fit` sets."""


class CertifiedClassifier(ClassifierMixin, SparseWeights, CertifiedEstimator):
    """A linear classifier or one with a kernel, for two classes, several classes, or several labels."""

    _learnt = ("_target", "_expansion", "_size")
    measure: str | Measure | Callable[..., Any]
    kernel: str | Callable[..., Any]
    fit_intercept: bool
    n_threads: int | None
    pos_label: Any
    classes_: Array
    _target: str
    _turn: float = 1.0  # -1 where the first class is positive: scores are for the second, as in scikit-learn
    _size: float | None = None  # the total weight of the training sample
    _expansion: Expansion | None = None  # with a kernel: the examples and coefficients that give the scores

    def decision_function(self, X: Any) -> Vector:
        """Scores: (n,) for two classes, (n, L) otherwise. Positive means the second class, or the label.

        Parameters
        ----------
        X : ndarray, sparse matrix, data frame or design (n, p)
            The rows.

        Returns
        -------
        ndarray (n,) or (n, L)
            The scores.
        """
        check_is_fitted(self)
        if self._expansion is not None and is_design(X):
            raise self._out_of_reach(X)
        scores = self._feature_scores(self._check_rows(X))
        scores += self.intercept_
        return scores[:, 0] if self._binary else scores

    def _feature_scores(self, X: Any) -> Vector:
        """Scores (n, L) without the intercept."""
        if self._expansion is not None:
            return self._expansion.scores(X)
        if sparse.issparse(self.coef_) and not is_design(X):
            scores: Vector = dense(X @ self.coef_.T)
            return scores
        return as_design(X, n_threads=self.n_threads).matvec(np.ascontiguousarray(dense(self.coef_).T))

    def predict(self, X: Any) -> Array:
        """Labels, for each example by itself; with several labels a matrix (n, L) of 0 and 1.

        Parameters
        ----------
        X : ndarray, sparse matrix, data frame or design (n, p)
            The rows.

        Returns
        -------
        ndarray (n,) or (n, L)
            Classes, or a matrix of 0 and 1.
        """
        return called(self._turn * self.decision_function(X), self._ordered, several=self._multilabel)

    def predict_top_k(self, X: Any, k: int) -> Array:
        """Labels with exactly ``k`` examples of this batch positive: those with the highest scores.

        For two classes, or for every column of a label indicator matrix. Of equal scores the first in X count.

        Parameters
        ----------
        X : ndarray, sparse matrix, data frame or design (n, p)
            The rows.
        k : int
            How many are positive.

        Returns
        -------
        ndarray (n,) or (n, L)
            Classes, or a matrix of 0 and 1.
        """
        return called_top_k(self._turn * self.decision_function(X), k, self._ordered, several=self._multilabel)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The measure itself on (X, y), higher is better; a dataset brings its labels.

        For ``error`` this is the accuracy. With several labels it is the mean over labels. With several classes it is
        the mean over classes, each against the rest; for ``error`` it is the accuracy then, too. A measure of rankings
        is undefined for a label or class that has no positives or no negatives in the batch: these are left out of the
        mean. A k that is a number (`PrecisionAtK(200)`) belongs to the training sample: of (X, y) the same share is
        taken, unless the measure has ``absolute=True``. For a dataset whose rows may have several labels, the labels
        are those of `label_values_`.

        Parameters
        ----------
        X : ndarray, sparse matrix, data frame or design (n, p)
            The rows.
        y : array (n,), or an indicator matrix (n, L)
            The classes, or labels; None for a dataset, which brings them.
        sample_weight : array (n,) or None, default=None
            How often each row counts.

        Returns
        -------
        float
            The value of the measure.
        """
        scores = self.decision_function(X)
        if y is None and hasattr(self, "label_values_") and hasattr(X, "indicators"):
            y = X.indicators(self.label_values_)
        y = labels_of(X, y)
        check_truth(y, scores, None if self._multilabel else self.classes_)
        return self._judge_scores(scores, y, sample_weight)

    def _judge_scores(self, scores: Vector, y: Array, sample_weight: Any) -> float:
        """The measure of scores that `decision_function` gave."""
        measure = on_batch(self._scoring(), self._size, scores, sample_weight)
        return judge(measure, self._turn * scores, y, self._ordered, sample_weight, several=self._multilabel)

    @property
    def _ordered(self) -> Array:
        """The classes with the positive one of two last."""
        return self.classes_[::-1] if self._turn < 0 else self.classes_

    def _scoring(self) -> Measure:
        """The measure that `score` reports."""
        return get_measure(self.measure)

    @property
    def _multilabel(self) -> bool:
        return bool(self._target == "multilabel-indicator")

    @property
    def _binary(self) -> bool:
        return len(self.intercept_) == 1 and not self._multilabel

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError, with a remedy for attributes that people look for."""
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in ELSEWHERE:
            text += f": {ELSEWHERE[name]}"
        elif name in FITTED and "classes_" not in vars(self):
            text += ": it is not fitted yet, call fit first"
        elif name == "coef_" and "kernel_coef_" in vars(self):
            text += ": a kernel has no weights of features; kernel_coef_ are those of the rows support_"
        raise AttributeError(text)

    def _out_of_reach(self, X: Any) -> ValueError:
        return ValueError(
            f"expected kernel='linear' with {type(X).__name__}, got {self.kernel!r}: a kernel needs the rows; set "
            "kernel='linear', or pass X as an array"
        )

    def _warn_of_positive(self, measure: Measure, labels: Labels) -> None:
        if self._binary and self.pos_label is None:
            warn_of_positive(measure, self.classes_, labels[:, 0])

    def _store(self, kind: str, classes: Array, fitted: list[FittedLabel], scaling: float | None, size: float) -> None:
        """Set the fitted attributes; ``size`` is that of the sample.

        Called after training, so that an interrupted fit changes nothing.
        """
        solutions = [label.solution for label in fitted]
        last = np.array([solution.w[-1] for solution in solutions])
        self.classes_ = classes
        self._target, self._size = kind, size
        self._turn = turn = -1.0 if turned(classes, self.pos_label) else 1.0
        self.trained_intercept_ = turn * last * scaling if scaling is not None else np.zeros(len(solutions))
        self.threshold_ = turn * np.array([label.threshold for label in fitted])
        self.intercept_ = self.trained_intercept_ - self.threshold_
        self._store_certificate(fitted, single=kind != "multilabel-indicator" and len(fitted) == 1)
        if all(s.dual_coef is not None for s in solutions):
            self.dual_coef_ = turn * np.array([s.dual_coef for s in solutions])

    def _weights(self, fitted: list[FittedLabel]) -> Vector:
        """The weights of the features for the positive class, (p, L)."""
        W = np.column_stack([label.solution.w for label in fitted])
        return W[:-1] if self.fit_intercept else W

    def _store_weights(self, features: Design, W: Vector) -> None:
        """Set ``coef_``, or the coefficients of a kernel, from weights for the positive class."""
        W = self._turn * W
        self.kernel_kept_ = trace_share(features)
        self._expansion = features.expansion(W) if isinstance(features, (Gram, LowRank)) else None
        if self._expansion is None:
            self.coef_ = np.ascontiguousarray(W.T)
        else:
            self.kernel_coef_ = np.ascontiguousarray(self._expansion.coefficients.T)
            self.support_ = self._expansion.support
