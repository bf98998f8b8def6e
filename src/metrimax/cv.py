"""`MeasureSVCCV`: the C that does best, by cross-validation, by one hold-out, or by the xi-alpha estimates."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit, check_cv
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import validate_data

from metrimax.c_path import GRID
from metrimax.designs import as_design
from metrimax.estimation import Estimate
from metrimax.estimators import MeasureSVC, _encode, _weights
from metrimax.fitting import fit_path
from metrimax.machine import machine
from metrimax.measure import get_measure
from metrimax.measure.contingency import ContingencyMeasure
from metrimax.protocols import Vector
from metrimax.risk import run

SELECTIONS = ("cv", "holdout", "xi_alpha")
MOST_EXTENSIONS = 10
"""How often a grid is extended at most."""

Row = dict[str, Any]


class MeasureSVCCV(MeasureSVC):
    """`MeasureSVC` with the C that does best.

    One path over C per training part: a cut found for one C is valid for every C, so along the path all are shared.
    The classifier is then trained on everything with the C chosen.

    Parameters
    ----------
    measure : str, measure or callable, default="f1"
        What to train for; see `MeasureSVC`.
    Cs : sequence of float, default=2^-6 .. 2^6
        The grid.
    cv : int, splitter or iterable, default=5
        The folds of ``selection="cv"``, as everywhere in scikit-learn.
    selection : {"cv", "holdout", "xi_alpha"}, default="cv"
        "cv" takes the C with the best mean over the folds. "holdout" trains on two thirds and tests on the rest.
        "xi_alpha" trains once per C on everything and looks at the xi-alpha estimates, so it needs neither folds nor
        a test set; for two classes and a measure whose mistakes add up (error, cost, balanced_error).
    scoring : str, measure, callable or None, default=None
        The measure that chooses C; None for the one trained for. With ``selection="xi_alpha"`` any measure of the
        contingency table.
    extend : bool, default=False
        Whether to go on beyond the grid, by its own ratio, while the best C is on its border. With
        ``selection="holdout"`` this is the protocol of Joachims (2005).
    rho : float or None, default=None
        For ``selection="xi_alpha"``. With 1, a multiplier of 1/R2 alone counts as a mistake, which rules out larger C
        whatever they are worth. None measures it: at the first C of the grid with ``C R2 >= 2``, by how much the
        scores of a few support vectors fall when they are left out, relative to what the bound allows.
    random_state : int, RandomState or None, default=0
        Of the hold-out.
    n_jobs : int or None, default=None
        Folds trained at a time, each then in one thread.
    tol, max_iter, solver, fit_intercept, intercept_scaling, class_weight, n_threads, verbose, callback
        As for `MeasureSVC`.

    Attributes
    ----------
    C_ : float
        The C chosen: among equals the least.
    Cs_ : ndarray
        The grid, with its extensions.
    best_score_ : float
    cv_results_ : dict of ndarrays
        The whole path, one row per C, for ``pandas.DataFrame``: ``param_C``, ``mean_test_score``, ``std_test_score``,
        ``rank_test_score``, ``split0_test_score`` and so on, ``max_gap``, ``sum_passes`` and ``fit_time``. With
        xi-alpha, ``error``, ``recall``, ``precision`` and ``f1`` instead of the splits.
    coef_, intercept_, ...
        As for `MeasureSVC`, trained on everything with ``C_``.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax import MeasureSVCCV
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(600) < 0.2
    >>> X = rng.normal(size=(600, 5)) + y[:, None]
    >>> model = MeasureSVCCV("f1", Cs=[0.01, 0.1, 1.0], cv=3).fit(X, y)
    >>> model.C_ in (0.01, 0.1, 1.0), len(model.cv_results_["mean_test_score"])
    (True, 3)
    """

    kernel = "linear"  # the only one: a path over C is offered for linear classifiers

    def __init__(
        self,
        measure: Any = "f1",
        *,
        Cs: Sequence[float] | Vector | None = None,
        cv: Any = 5,
        selection: str = "cv",
        scoring: Any = None,
        extend: bool = False,
        rho: float | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
        callback: Any = None,
    ) -> None:
        self.measure = measure
        self.Cs = Cs
        self.cv = cv
        self.selection = selection
        self.scoring = scoring
        self.extend = extend
        self.rho = rho
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.n_threads = n_threads
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MeasureSVCCV:
        """Choose C, then train on X and y with it."""
        if self.selection not in SELECTIONS:
            raise ValueError(f"unknown selection {self.selection!r}: expected one of {', '.join(SELECTIONS)}")
        grid = np.asarray(GRID if self.Cs is None else self.Cs, dtype=np.float64)
        if grid.ndim != 1 or grid.size == 0 or not (np.isfinite(grid).all() and (grid > 0).all()):
            raise ValueError(f"expected Cs as finite numbers > 0, at least one, got {self.Cs!r}")
        checked = copy(self)  # takes what the checks note down, so that an interrupted fit changes nothing
        X, y = validate_data(
            checked, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order=None, multi_output=True
        )
        check_classification_targets(y)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if self.selection == "xi_alpha":
            chooser: _ByXiAlpha | _BySplits = _ByXiAlpha(self, X, y, weight)
        else:
            chooser = _BySplits(self, X, y, weight)
        rows = chooser.rows(np.unique(grid))
        for _ in range(MOST_EXTENSIONS if self.extend else 0):
            beyond = _beyond(rows)
            if beyond is None:
                break
            rows = sorted(rows + chooser.rows(np.array([beyond])), key=lambda row: float(row["param_C"]))
        best = _best(rows)
        model = chooser.refit(best["param_C"])
        self.__dict__ = checked.__dict__
        for name, value in vars(model).items():
            if name.endswith("_") or name == "_target":
                setattr(self, name, value)
        self.C_ = float(best["param_C"])
        self.best_score_ = float(best["mean_test_score"])
        self.cv_results_ = {key: np.array([row[key] for row in rows]) for key in rows[0]}
        means = self.cv_results_["mean_test_score"]
        self.cv_results_["rank_test_score"] = 1 + np.array([int((means > mean).sum()) for mean in means])
        self.Cs_ = self.cv_results_["param_C"]
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The measure that chose C, on (X, y)."""
        return self.judge(self).score(X, y, sample_weight)

    def plain(self, **changes: Any) -> MeasureSVC:
        """A `MeasureSVC` with the parameters that both have; ``changes`` give the others, such as C."""
        names = MeasureSVC().get_params(deep=False).keys() & self.get_params(deep=False).keys()
        return MeasureSVC(**{name: getattr(self, name) for name in names} | changes)

    def judge(self, model: MeasureSVC) -> MeasureSVC:
        """The fitted model as one whose `score` is the measure that chooses."""
        judge = MeasureSVC(self.measure if self.scoring is None else self.scoring, n_threads=model.n_threads)
        for name, value in vars(model).items():
            if name.endswith("_") or name == "_target":
                setattr(judge, name, value)
        return judge


def _best(rows: list[Row]) -> Row:
    return max(rows, key=lambda row: float(row["mean_test_score"]))  # the first of equals


def _beyond(rows: list[Row]) -> float | None:
    """The C to try next if the best one is on the border of the grid."""
    Cs, best = [float(row["param_C"]) for row in rows], float(_best(rows)["param_C"])
    if len(Cs) == 1:
        return None
    if best == Cs[-1]:
        return Cs[-1] * (Cs[-1] / Cs[-2])
    return Cs[0] * (Cs[0] / Cs[1]) if best == Cs[0] else None


class _BySplits:
    """Scores on the parts that a model was not trained on."""

    def __init__(self, owner: MeasureSVCCV, X: Any, y: Any, weight: Vector | None) -> None:
        self._owner, self._X, self._y, self._weight = owner, X, y, weight
        if owner.selection == "holdout":
            several = type_of_target(y) == "multilabel-indicator"
            kind = ShuffleSplit if several else StratifiedShuffleSplit
            splitter = kind(n_splits=1, test_size=1 / 3, random_state=owner.random_state)
        else:
            splitter = check_cv(owner.cv, y, classifier=True)
        self._splits = list(splitter.split(X, y))

    def rows(self, Cs: Vector) -> list[Row]:
        owner = self._owner
        began = time.perf_counter()
        changes = {} if owner.n_jobs in (None, 1) else {"n_threads": 1}
        template = owner.plain(**changes)
        parts = Parallel(n_jobs=owner.n_jobs, prefer="threads")(
            delayed(_split_scores)(owner, template, self._X, self._y, self._weight, Cs, train, test)
            for train, test in self._splits
        )
        seconds = (time.perf_counter() - began) / len(Cs)
        rows = []
        for k, C in enumerate(Cs):
            scores = [part[k][0] for part in parts]
            row: Row = {"param_C": C, "mean_test_score": np.mean(scores), "std_test_score": np.std(scores)}
            row |= {f"split{i}_test_score": score for i, score in enumerate(scores)}
            row |= {"max_gap": max(part[k][1] for part in parts), "sum_passes": sum(part[k][2] for part in parts)}
            rows.append(row | {"fit_time": seconds})
        return rows

    def refit(self, C: float) -> MeasureSVC:
        return self._owner.plain(C=float(C)).fit(self._X, self._y, self._weight)


def _split_scores(
    owner: MeasureSVCCV, template: MeasureSVC, X: Any, y: Any, weight: Vector | None, Cs: Vector, train: Any, test: Any
) -> list[tuple[float, float, int]]:
    """For every C, the score on ``test`` of the model trained on ``train``, its gap and its passes."""
    results = []
    for model in _fit_path(template, X[train], y[train], None if weight is None else weight[train], Cs):
        score = owner.judge(model).score(X[test], y[test], None if weight is None else weight[test])
        results.append((score, float(np.max(model.gap_)), int(np.sum(model.n_passes_))))
    return results


class _ByXiAlpha:
    """Estimates from the training sample alone; the models of the path are trained on everything, so none is lost."""

    def __init__(self, owner: MeasureSVCCV, X: Any, y: Any, weight: Vector | None) -> None:
        self._owner, self._X, self._y, self._weight = owner, X, y, weight
        scoring = get_measure(owner.measure if owner.scoring is None else owner.scoring)
        if not isinstance(scoring, ContingencyMeasure):
            raise ValueError(
                f"selection='xi_alpha' estimates measures of the contingency table, and {scoring.name!r} is none: "
                "choose another scoring, or selection='cv'"
            )
        self._scoring = scoring
        self._models: dict[float, MeasureSVC] = {}
        self._R2: float | None = None
        self._rho = owner.rho

    def rows(self, Cs: Vector) -> list[Row]:
        began = time.perf_counter()
        template = self._owner.plain(solver="dual_cd")
        models = _fit_path(template, self._X, self._y, self._weight, Cs)
        machines: list[Any] = [machine(model, self._X, self._y, self._weight, trusted=True) for model in models]
        self._models |= dict(zip(map(float, Cs), models, strict=True))
        if self._R2 is None:
            self._R2 = machines[0].R2()
        if self._rho is None:
            k = min(int(np.searchsorted(Cs * self._R2, 2.0)), len(Cs) - 1)
            self._rho = min(1.0, machines[k].drift(self._R2) / self._R2)
        rows = []
        for C, model, m in zip(Cs, models, machines, strict=True):
            estimate = Estimate.count(m.doubtful(self._rho, self._R2), m.y)
            table = (np.asarray(float(v)) for v in estimate.table)
            score = float(self._scoring.table_score(*table))
            row: Row = {"param_C": C, "mean_test_score": score, "std_test_score": 0.0}
            row |= estimate.as_dict() | {"max_gap": float(model.gap_), "sum_passes": int(model.n_passes_)}
            rows.append(row)
        seconds = (time.perf_counter() - began) / len(Cs)
        return [row | {"fit_time": seconds} for row in rows]

    def refit(self, C: float) -> MeasureSVC:
        model = self._models[float(C)]
        if not model.status_.ok:
            warnings.warn(
                f"{model.status_.value}: the gap is {model.gap_:.3g}, tol {model.tol:g}. Raise max_iter or tol, or "
                "scale the features.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return model


def _fit_path(template: MeasureSVC, X: Any, y: Any, sample_weight: Any, Cs: Vector) -> list[MeasureSVC]:
    """Models for every C, their solutions sharing cuts."""
    measure, solver = get_measure(template.measure), template._solver()
    classes, labels = _encode(y)
    weight = _weights(template.class_weight, y, sample_weight, X)
    intercept = template.intercept_scaling if template.fit_intercept else None
    design = as_design(X, intercept_scaling=intercept, n_threads=template.n_threads)
    options = {"Cs": Cs, "tol": template.tol, "callback": template.callback, "kind": type_of_target(y)}
    runs = (fit_path(measure, solver, design, one, weight, **options) for one in labels.T)
    per_label = run(design, runs)
    models = []
    for k, C in enumerate(Cs):
        model: MeasureSVC = clone(template).set_params(C=float(C))
        fitted = [label[k] for label in per_label]
        model._store(classes, y, fitted)
        model._store_weights(design, model._weights(fitted))
        model.n_features_in_ = X.shape[1]
        models.append(model)
    return models
