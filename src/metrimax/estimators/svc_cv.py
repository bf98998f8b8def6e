"""`MeasureSVCCV`: the C that does best, by cross-validation, by one hold-out, or by the xi-alpha estimates."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.multiclass import check_classification_targets

from metrimax._validation import check_grid, is_number
from metrimax.designs import is_design
from metrimax.estimators._base import stated
from metrimax.estimators._folds import FoldedSample, hold_out, split
from metrimax.estimators._selection import ByXiAlpha
from metrimax.estimators._targets import encode, weights_of
from metrimax.estimators.svc import MeasureSVC
from metrimax.io.checkpoints import Checkpoint, as_checkpoint
from metrimax.measure import get_measure
from metrimax.protocols import Measure, Vector
from metrimax.training.choose import PLAIN, ByFolds, Defaults, choose_row, defaults, explore, results
from metrimax.training.path import GRID

SELECTIONS = ("cv", "holdout", "xi_alpha")


class MeasureSVCCV(MeasureSVC):
    """`MeasureSVC` with the C that does best.

    Solves for all C at once on each training part: a cut found for one C is valid for every C, so they share their
    cuts. The classifier is then trained on everything with the C chosen.

    Parameters
    ----------
    measure : str, measure or callable, default="f1"
        What to train for; see `MeasureSVC`.
    Cs : sequence of float, default=2^-6 .. 2^6
        The grid.
    cv : int, splitter or iterable, default=5
        The folds of ``selection="cv"``, as everywhere in scikit-learn.
    selection : {"cv", "holdout", "xi_alpha"}, default="cv"
        "cv" goes by the mean over the folds. "holdout" trains on two thirds and tests on the rest.
        "xi_alpha" trains once per C on everything and looks at the xi-alpha estimates, so it needs neither folds nor
        a test set, but the rows of X, which a dataset does not give; for a measure whose mistakes add up (error, cost,
        balanced_error) and a kernel with features (linear, or Nystroem's). With several labels, or classes each
        against the rest, the mean of their estimates chooses one C for all. The estimates count examples, whatever
        ``sample_weight`` or ``class_weight`` make them weigh; those without weight are left out.
    scoring : str, measure, callable or None, default=None
        The measure that chooses C; None for the one trained for. With ``selection="xi_alpha"`` any measure of the
        contingency table.
    standard_errors : float or None, default=None
        All C whose mean over the folds is behind the best by no more than so many standard errors count as equal, and
        the one nearest to 1 is taken. With few positives the best of a grid is mostly the luckiest, and a worse choice
        than C = 1 (docs/results/imbalanced.md). 0 takes the best, and the least C among equals. None is 0 for the error
        rate, the measures of the top k and those of rankings, and 1 for all others, such as F1.
    extend : bool, default=False
        Whether to go on beyond the grid, by its own ratio, while the best C is on its border. With
        ``selection="holdout"`` this is the protocol of Joachims (2005).
    rho : float or None, default=None
        For ``selection="xi_alpha"``. With 1, a multiplier of 1/R2 alone counts as a mistake, which rules out larger C
        whatever they are worth. None measures it for every label: at the first C of the grid with ``C R2 >= 4``, by
        how much the scores of a few support vectors fall when they are left out, relative to what the bound allows.
    random_state : int, RandomState or None, default=0
        Of the hold-out, and of Nystroem features. None is 0 with a checkpoint.
    n_jobs : int or None, default=None
        Folds trained at a time, each then in one thread. Those of a dataset (`metrimax.open_dataset`), or of what Dask
        holds, are always trained side by side: each pass over the rows serves them all.
    hinge, logistic : float or None, default=None
    risk, balanced
        As for `MeasureSVC`, but where both hinge and logistic are None.
    threshold : {"trained", "placed"} or None, default=None
        As for `MeasureSVC`. A hinge of None is 0 for the error rate and the measures of rankings, and 1 for all others.
        A threshold of None is "trained" where ``standard_errors=None`` is 0; otherwise it is, for every C, the one that
        does better in the folds ("placed" among equals). With ``hinge=0, threshold="trained", standard_errors=0`` this
        is the method of Joachims (2005). That is also the default with ``selection="xi_alpha"`` and with the solvers
        "lbfgs", "agm" and "dual_cd", which have no such hinges.
    tol, max_iter, solver, fit_intercept, intercept_scaling, class_weight, n_threads, verbose, callback, checkpoint
        As for `MeasureSVC`.
    kernel, gamma, degree, coef0, cache_size, n_components
        As for `MeasureSVC`; the kernel's values are computed once per training part.

    Attributes
    ----------
    C_ : float
        The C chosen.
    Cs_ : ndarray
        The grid, with its extensions.
    best_score_ : float
        Mean over the folds with this C.
    cv_results_ : dict of ndarrays
        The whole path, one row per C, for ``pandas.DataFrame``: ``param_C``, ``param_threshold`` (the better one for
        this C), ``mean_test_score``, ``std_test_score``,
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

    def __init__(
        self,
        measure: Any = "f1",
        *,
        Cs: Sequence[float] | Vector | None = None,
        cv: Any = 5,
        selection: str = "cv",
        scoring: Any = None,
        standard_errors: float | None = None,
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
        hinge: float | None = None,
        logistic: float | None = None,
        risk: float | str = 1.0,
        balanced: bool = False,
        threshold: str | None = None,
        kernel: str | Callable[..., Any] = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        cache_size: float = 1000.0,
        n_components: int | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
        callback: Any = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        certificate: bool = False,
    ) -> None:
        self.measure = measure
        self.Cs = Cs
        self.cv = cv
        self.selection = selection
        self.scoring = scoring
        self.standard_errors = standard_errors
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
        self.hinge = hinge
        self.logistic = logistic
        self.risk = risk
        self.balanced = balanced
        self.threshold = threshold  # type: ignore[assignment]
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.cache_size = cache_size
        self.n_components = n_components
        self.n_threads = n_threads
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.certificate = certificate

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> MeasureSVCCV:
        """Choose C, then train on X and y with it; a dataset (`metrimax.open_dataset`) brings its labels.

        ``groups`` (n,) go to the splitter ``cv``, such as scikit-learn's `GroupKFold`.
        """
        if self.selection not in SELECTIONS:
            raise ValueError(f"unknown selection {self.selection!r}: expected one of {', '.join(SELECTIONS)}")
        grid = check_grid(GRID if self.Cs is None else self.Cs)
        given = self.standard_errors
        if given is not None and not (is_number(given) and 0 <= given < np.inf):
            raise ValueError(f"expected finite standard_errors >= 0, or None, got {given!r}")
        if groups is not None and self.selection != "cv":
            raise ValueError(
                f"expected groups with selection='cv' alone, got selection={self.selection!r}, which has no use for "
                "them: leave them out, or set selection='cv' and a splitter such as cv=GroupKFold()"
            )
        if self.certificate and self.selection == "xi_alpha":
            raise ValueError("certificate=True needs selection='cv' or 'holdout': with 'xi_alpha' call metrimax.verify")
        measure, scoring = get_measure(self.measure), self._scoring()
        left_open = self._defaults(measure)
        slack = left_open.slack if given is None else float(given)
        thresholds = left_open.thresholds if self.threshold is None else (self.threshold,)
        dual = {"solver": "dual_cd"} if self.selection == "xi_alpha" else {}
        hinge = left_open.hinge if self.hinge is None and self.logistic is None else self.hinge
        plain = self.plain(hinge=hinge, threshold=thresholds[0], **dual)
        solver, checkpoint = plain._solver(), as_checkpoint(self.checkpoint)
        checked, X, y = self._check_sample(X, y)
        check_classification_targets(y)
        kind, classes, labels = encode(y)
        weight = weights_of(None, y, sample_weight, y)
        training = plain._training(measure, solver, kind)
        weighted = weights_of(self.class_weight, y, weight, y)
        by: ByXiAlpha | ByFolds
        if self.selection == "xi_alpha":
            path = None if checkpoint is None else checkpoint.part("path")
            by = ByXiAlpha(self, replace(training, checkpoint=path), scoring, self.rho, X, labels, weighted)
        else:
            if self.selection == "cv":
                folds = split(self.cv, X, y, weight, groups)
            else:
                folds = hold_out(y, weight, several=kind == "multilabel-indicator", seed=self._random_state)
            workers = 1 if self.n_jobs is None or is_design(X) else effective_n_jobs(self.n_jobs)
            sample = FoldedSample(self, training, scoring, X, y, labels, weight, folds, workers > 1, checkpoint)
            by = ByFolds(sample, thresholds, slack, workers)
        rows = explore(by.rows, grid, extend=self.extend)
        best = choose_row(rows, slack)
        C = float(best["param_C"])
        self._warn_of_gaps(by.solutions, "fits that choose C")
        if isinstance(by, ByXiAlpha):
            features, fitted = by.features, by.fitted(C)
        else:
            features = self._features(X)
            training = replace(training, placed=best["param_threshold"] == "placed", checkpoint=checkpoint)
            fitted = self._train(training, C, features, features, labels, weighted)
        if checkpoint is not None:
            checkpoint.clear()
        self._renew(checked)
        self._store(kind, classes, fitted)
        self.trained_with_ = stated(training, C)
        self._store_weights(features, self._weights(fitted))
        self.C_, self.best_score_ = C, float(best["mean_test_score"])
        self.cv_results_ = results(rows)
        self.Cs_ = self.cv_results_["param_C"]
        self._tell(measure, X, features, labels, weighted, fitted)
        if self.scoring is not None:  # of the measure trained for it was said
            self._warn_of_positive(scoring, labels)
        return self

    def plain(self, **changes: Any) -> MeasureSVC:
        """A `MeasureSVC` with the parameters that both have; ``changes`` give the others, such as C."""
        names = MeasureSVC().get_params(deep=False).keys() & self.get_params(deep=False).keys()
        given = {name: getattr(self, name) for name in names} | {"random_state": self._random_state} | changes
        without = given["hinge"] is None and given["logistic"] is None
        if without or given["threshold"] is None:
            left_open = self._defaults(get_measure(self.measure))
            given["hinge"] = left_open.hinge if without else given["hinge"]
            given["threshold"] = left_open.thresholds[0] if given["threshold"] is None else given["threshold"]
        return MeasureSVC(**given)

    def _defaults(self, measure: Measure) -> Defaults:
        """What serves the measure best, as far as what chooses and what solves know hinges beside the risk."""
        able = self.selection != "xi_alpha" and self.solver in ("auto", "hybrid", "bundle", "cutting_plane")
        return defaults(measure) if able else PLAIN

    def _scoring(self) -> Measure:
        """The measure that chooses, and that `score` reports."""
        return get_measure(self.measure if self.scoring is None else self.scoring)
