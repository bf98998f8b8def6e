"""The members of an ensemble: the presets, their training data, and their scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import QuantileTransformer, SplineTransformer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from metrimax._validation import is_frame
from metrimax.estimators._ensemble_stack import log_odds
from metrimax.estimators._ensemble_table import DENSE_ENTRIES, MatrixEncoder, Table
from metrimax.protocols import Array, Labels, Vector

PRESETS = ("default", "fast", "best")


class Member(NamedTuple):
    """An estimator that is part of an ensemble, and the view of the table that it is trained on."""

    name: str
    estimator: Any
    view: str  #: "codes", "matrix" or "given": see `_ensemble_table`

    @property
    def frozen(self) -> bool:
        """Whether it is fitted already and is not trained again."""
        return isinstance(self.estimator, FrozenEstimator)


class Views:
    """The views of a table, one for each kind of member: learnt in `fit`, applied to other rows later."""

    def __init__(self, X: Any) -> None:
        self.table = Table(X) if is_frame(X) else None
        codes = self._codes(X)
        self.categorical = np.zeros(codes.shape[1], dtype=bool) if self.table is None else self.table.categorical
        self._encoder = None if sparse.issparse(codes) else MatrixEncoder(codes, self.categorical)

    def __call__(self, X: Any, wanted: set[str]) -> dict[str, Any]:
        """The ``wanted`` views of the rows of X."""
        views = {"given": X}
        if wanted & {"codes", "matrix"}:
            codes = self._codes(X)
            if "codes" in wanted:
                views["codes"] = codes.toarray() if sparse.issparse(codes) else codes
            if "matrix" in wanted:
                views["matrix"] = codes if self._encoder is None else self._encoder(codes)
        return {name: views[name] for name in wanted}

    def _codes(self, X: Any) -> Any:
        return X if self.table is None else self.table.codes(X)


def preset(name: str, X: Any, categorical: Labels) -> list[Member]:
    """The members of a preset for a table.

    A sparse table gets no kernel member, and no boosting if it is too large to be made dense.

    Tried one by one in place of a member, on eight tables: trees with at least 2, 3 or 5 rows in a leaf; boosting with
    8 or 15 leaves, with half of the features for each split, or with balanced classes. Balanced accuracy changes by
    -0.5 to +0.3 points, ROC area by -0.1 to +0.1, average precision by -0.7 to +0.3.

    Half or twice as many trees of either forest; a kernel four times as wide or as narrow, of 100 or 600 features, with
    C = 1 or 10,000: none of these gains more than 0.1 points of any of five measures on both halves of 20 tables.
    """
    n, is_sparse = X.shape[0], sparse.issparse(X)
    mask = categorical if categorical.any() else None
    trees = "matrix" if is_sparse else "codes"
    members = []
    if not is_sparse or n * X.shape[1] <= DENSE_ENTRIES:
        members.append(Member("boosting", HistGradientBoostingClassifier(categorical_features=mask), "codes"))
    if name != "fast":
        forest = RandomForestClassifier(_fewer(50, n), max_samples=min(0.5, FOREST_ROWS / n))
        members.append(Member("forest", forest, trees))
    few = {"bootstrap": True, "max_samples": FOREST_ROWS / n} if n > FOREST_ROWS else {}
    members.append(Member("extra_trees", ExtraTreesClassifier(_fewer(40 if name == "fast" else 100, n), **few), trees))
    logistic = LogisticRegression(max_iter=200)
    members.append(Member("linear", logistic if is_sparse else make_pipeline(StandardScaler(), logistic), "matrix"))
    if name != "fast" and not is_sparse and n <= KERNEL_ROWS:
        members.append(Member("kernel", _kernel(n, X.shape[1], _fewer(300, n)), "matrix"))
    return members + _further(n, few) if name == "best" and not is_sparse else members


def _further(n: int, few: dict[str, Any]) -> list[Member]:
    """What "best" adds: other trees, and smooth members.

    On 10 tables they gain 0.3 points of ROC area, 0.1 of average precision and nothing of F1, at nearly three times the
    cost of the default.
    """
    half = ExtraTreesClassifier(100, max_features=0.5, **few)
    spline = make_pipeline(
        StandardScaler(),
        SplineTransformer(knots="quantile", extrapolation="constant"),
        LogisticRegression(max_iter=300),
    )
    network = MLPClassifier((64,), alpha=1e-2, learning_rate_init=3e-3, max_iter=30, batch_size=min(64, n // 2))
    neighbours = KNeighborsClassifier(max(1, min(25, n // 4)), weights="distance")
    added = [Member("extra_trees_half", half, "codes"), Member("spline", spline, "matrix")]
    for name, estimator in (("network", network), ("neighbours", neighbours)):
        added.append(Member(name, make_pipeline(_normal_scores(n), estimator), "matrix"))
    return added


def _normal_scores(n: int) -> QuantileTransformer:
    return QuantileTransformer(n_quantiles=max(2, min(200, n // 2)), output_distribution="normal")


def _kernel(n: int, p: int, features: int) -> Pipeline:
    """Logistic regression on an approximate Gaussian kernel of normal scores: a smooth member beside trees.

    Without it the default changes by at most 0.1 points of each of five measures on average over 20 tables. With
    another split of 16 of them it loses 0.2 points of rankings and 0.8 of MCC: little, and mostly noise. It is the only
    member of the default that is neither linear nor made of trees. Whether tables with smooth borders gain by it was
    not measured.
    """
    return make_pipeline(
        _normal_scores(n),
        Nystroem(gamma=0.4 / p, n_components=max(1, min(features, n // 2))),
        LogisticRegression(C=100.0, max_iter=200),
    )


KERNEL_ROWS = 50_000
"""A larger table has no kernel member: its 300 features would take more memory than the table."""

MANY_ROWS = 4_000
"""For a larger table, the forests have fewer trees and the kernel fewer features, down to four tenths: their cost grows
faster than that of boosting. A random forest with twice as many trees, each grown on all rows, gains nothing and costs
four times as much.
"""

FOREST_ROWS = 10_000
"""Each tree of a forest is grown on at most this many rows, because its cost grows faster than that of boosting."""


def _fewer(most: int, n: int) -> int:
    return round(most * max(0.4, min(1.0, MANY_ROWS / n)))


def given_member(name: str, estimator: Any, categorical: Labels) -> Member:
    """A member that the user gives, with the view that suits it."""
    if isinstance(estimator, (Pipeline, FrozenEstimator)):
        return Member(name, estimator, "given")
    view = "codes" if get_tags(estimator).input_tags.allow_nan and not categorical.any() else "matrix"
    return Member(name, estimator, view)


def seeded(estimator: Any, seed: int) -> Any:
    """A clone in which the seed replaces every random state that is None."""
    twin = clone(estimator)
    states = {
        name: seed
        for name, value in twin.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    return twin.set_params(**states) if states else twin


def weight_parameter(estimator: Any) -> str | None:
    """The name of `fit`'s parameter for weights, in a pipeline that of the last step; None if it takes no weights."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        own = None if last is None or last == "passthrough" else weight_parameter(last)
        return None if own is None else f"{name}__{own}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


class Target(NamedTuple):
    """What the members learn, and how their outputs become a block of scores with a column for every label.

    ``y`` holds the classes, or an indicator matrix, whose columns are learnt one by one. ``rates`` are the shares of
    positives of the labels.
    """

    kind: str
    classes: Array
    y: Array
    labels: Labels
    rates: Vector

    @property
    def separate(self) -> bool:
        """Whether every label has a model of its own."""
        return self.kind == "multilabel-indicator"

    def forget(self) -> Target:
        """The same without the training examples."""
        return self._replace(y=self.y[:0], labels=self.labels[:0])

    def fit(self, estimator: Any, X: Any, rows: Array, parameters: dict[str, Any]) -> list[Any]:
        """A list of models trained on the rows: one, or one for every label."""
        if not self.separate and not is_regressor(estimator):
            return [_fitted(estimator, X, self.y[rows], parameters)]
        targets = self.labels[rows].astype(np.int64).T
        if is_regressor(estimator):
            targets = 2 * targets - 1
        return [_fitted(estimator, X, target, parameters) for target in targets]

    def read(self, name: str, models: list[Any], X: Any) -> Vector:
        """The scores (n, L) of the rows of X: log-odds if the models have probabilities."""
        if len(models) == 1 and not self.separate and not is_regressor(models[0]):
            return self._columns(name, models[0], X)
        return np.column_stack([self._column(name, model, X, k) for k, model in enumerate(models)])

    def _columns(self, name: str, model: Any, X: Any) -> Vector:
        values, probable = _answers(name, model, X)
        own = np.asarray(model.classes_)
        known = [int(np.flatnonzero(own == c)[0]) if (own == c).any() else None for c in self.classes]
        if all(k is None for k in known):
            raise ValueError(
                f"expected the member {name!r} to predict some of the classes {self.classes.tolist()}, got "
                f"{own.tolist()}: train it on the classes of y"
            )
        if values.shape[1] != len(own):
            raise ValueError(
                f"expected a score for each of {len(own)} classes from the member {name!r}, got {values.shape[1]}: set "
                "its decision_function_shape='ovr'"
            )
        # a class without examples in a fold gets probability 0 there, or a score below all others
        never = 0.0 if probable else float(values.min()) - 1.0
        block = np.column_stack([np.full(len(values), never) if k is None else values[:, k] for k in known])
        block = block[:, 1:] if len(self.classes) == 2 else block
        return (
            np.column_stack([log_odds(c, r) for c, r in zip(block.T, self.rates, strict=True)]) if probable else block
        )

    def _column(self, name: str, model: Any, X: Any, k: int) -> Vector:
        if is_regressor(model):
            return finite(name, model.predict(X))
        values, probable = _answers(name, model, X)
        one = np.flatnonzero(np.asarray(model.classes_) == 1)
        column = values[:, one[0]] if len(one) else np.zeros(len(values))
        return log_odds(column, float(self.rates[k])) if probable else column

    def given(self, name: str, model: Any, scores: Any) -> Vector:
        """The out-of-fold scores of a frozen member that the user gives, in the form of `read`."""
        block = finite(name, scores)
        block = block.reshape(len(block), -1)
        if self.kind == "binary" and block.shape[1] == 2 and hasattr(model, "predict_proba"):
            # the columns are those of the classes in their order; the positive one need not be the second
            block = block[:, [int(self.classes[1] > self.classes[0])]]
        if block.shape != self.labels.shape:
            raise ValueError(
                f"expected out-of-fold scores of the member {name!r} of shape {self.labels.shape}, got {block.shape}"
            )
        if is_regressor(model) or not hasattr(model, "predict_proba"):
            return block
        if block.min() < 0 or block.max() > 1:
            raise ValueError(
                f"expected out-of-fold probabilities of the member {name!r}, got values from {block.min():g} to "
                f"{block.max():g}: give predict_proba of examples that it was not trained on"
            )
        return np.column_stack([log_odds(c, r) for c, r in zip(block.T, self.rates, strict=True)])


def _fitted(estimator: Any, X: Any, y: Array, parameters: dict[str, Any]) -> Any:
    if is_regressor(estimator):
        return clone(estimator).fit(X, y, **parameters)
    if (y == y[0]).all():  # a fold with one class
        return DummyClassifier(strategy="prior").fit(np.zeros((len(y), 1)), y)
    twin = clone(estimator)
    last = twin.steps[-1][1] if isinstance(twin, Pipeline) else twin
    single = np.unique(y, return_counts=True)[1].min() < 2
    if single and isinstance(last, HistGradientBoostingClassifier) and last.early_stopping == "auto":
        last.set_params(early_stopping=False)  # it would hold out a row of every class
    coded = type(last).__module__.startswith("xgboost.")
    return (Coded(twin) if coded else twin).fit(X, y, **parameters)


class Coded(ClassifierMixin, BaseEstimator):
    """Any classes for a classifier that only takes 0, 1, 2 ..., as XGBoost's do."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Array, **parameters: Any) -> Coded:
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.estimator.fit(X, codes, **parameters)
        return self

    def predict_proba(self, X: Any) -> Vector:
        p: Vector = self.estimator.predict_proba(X)
        return p


def _answers(name: str, model: Any, X: Any) -> tuple[Vector, bool]:
    """A column for every class of the model, and whether the columns are probabilities."""
    if isinstance(model, DummyClassifier):
        return np.asarray(model.predict_proba(np.zeros((X.shape[0], 1)))), True
    if hasattr(model, "predict_proba"):
        return finite(name, model.predict_proba(X)), True
    if hasattr(model, "decision_function"):
        values = finite(name, model.decision_function(X))
        return (np.column_stack([-values, values]) if values.ndim == 1 else values), False
    raise TypeError(
        f"expected {name!r} as a regressor, or as a classifier with predict_proba or decision_function, got "
        f"{type(model).__name__}, which only predicts labels: wrap it in sklearn.calibration.CalibratedClassifierCV"
    )


def finite(name: str, values: Any) -> Vector:
    """Scores as floats. Raise unless they are finite."""
    block = np.asarray(values, dtype=np.float64)
    if not np.isfinite(block).all():
        raise ValueError(
            f"expected finite scores of the member {name!r}, got NaN or infinity: change its parameters or leave it out"
        )
    return block
