"""`MeasureSVCCV`: the C that does best, by cross-validation, by one hold-out, or by the xi-alpha estimates."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from metrimax._validation import check_grid
from metrimax.estimators._base import check_rule, check_standard_errors, names_losses
from metrimax.estimators._folds import FoldedSample, hold_out, split, workers_of
from metrimax.estimators._remarks import warn_of_grades
from metrimax.estimators._selection import ByXiAlpha
from metrimax.estimators._targets import encode, total_of, weights_of
from metrimax.estimators.svc import MeasureSVC
from metrimax.io.checkpoints import Checkpoint, as_checkpoint
from metrimax.measure import get_measure
from metrimax.measure.base_loss import Losses
from metrimax.protocols import Array, Measure, Solver, Vector
from metrimax.training.choose import ByFolds, Chosen, Row, explore, mean_score, results
from metrimax.training.defaults import GRID, RISK_ALONE, RULES, Family, family, losses_of
from metrimax.training.folds import Fold
from metrimax.training.label import Training, restate

SELECTIONS = ("cv", "holdout", "xi_alpha")


class MeasureSVCCV(MeasureSVC):
    """`MeasureSVC` with the losses, the C and the threshold that do best.

    The candidates are the sum of the measure's risk and a logistic loss, and the logistic loss alone, which is logistic
    regression. Each is tried with every C, and with the threshold of training or that of the folds. All are trained on
    the same folds. The measure itself chooses, on the scores of the rows held out. The classifier is then trained on
    all rows with the best candidate.

    Every label of an indicator matrix has a choice of its own. It goes by the label's own result with weight
    n+ / (n+ + 30), for n+ positives, and by the mean over all labels for the rest. Several exclusive classes have one
    choice in common.

    Parameters
    ----------
    measure : str, measure or callable, default="f1"
        What to train for; see `MeasureSVC`.
    Cs : sequence of float, default=[0.003, 0.03, 0.3, 3, 30]
        The grid.
    cv : int, splitter or iterable, default=5
        The folds of ``selection="cv"``, as everywhere in scikit-learn. If it is a number, the folds of an indicator
        matrix are stratified too, label by label from the rarest.
    selection : {"cv", "holdout", "xi_alpha"}, default="cv"
        "cv" goes by the test rows of all folds. "holdout" trains on two thirds and tests on the rest. "xi_alpha" trains
        once per C on all rows and goes by the xi-alpha estimates, so it needs neither folds nor a test set. But it
        needs the rows of X, which a dataset does not give, a measure that sums over mistakes (error, cost,
        balanced_error), and a kernel with features (linear, or Nystroem's). With several labels, or classes each
        against the rest, the mean of their estimates chooses one C for all. The estimates count all examples alike,
        whatever their weights; examples of weight 0 are left out.
    scoring : str, measure, callable or None, default=None
        The measure that chooses; None for the one trained for. With ``selection="xi_alpha"`` any measure of the
        contingency table is possible.
    standard_errors : float or None, default=None
        A candidate counts as equal to the best if it is no more than this many standard errors behind; they are those
        of the best one's mean over the folds. Of equal candidates the one whose C is nearest to 1 is taken. None is 0.
    extend : bool, default=False
        Whether to extend the grid by its own ratio while the best C is its first or last. With ``selection="holdout"``
        this is the protocol of Joachims (2005).
    rho : float or None, default=None
        For ``selection="xi_alpha"``. With 1, an example counts as a mistake as soon as its multiplier is 1/R2, which
        rules out larger C however good they are. None measures rho for every label, at the first C of the grid with
        ``C R2 >= 4``: how far the scores of a few support vectors fall when they are left out, relative to the bound.
    random_state : int, RandomState or None, default=0
        Draws the hold-out, and the examples of Nystroem features. With a checkpoint None means 0.
    n_jobs : int or None, default=None
        How many folds are trained at a time, each then in one thread. The folds of a dataset (`metrimax.open_dataset`)
        or of an array of Dask are always trained side by side: each pass over the rows serves all of them.
    solver, tol, max_iter, fit_intercept, intercept_scaling, class_weight, pos_label
        As for `MeasureSVC`.
    hinge, logistic, risk : float or None, default=None
        As for `MeasureSVC`. If one of them is given, or ``balanced``, all candidates have these losses. With
        ``hinge=0, threshold="trained"`` this is the method of Joachims (2005), which is also the default for the error
        rate, with ``selection="xi_alpha"``, and with the solver "dual_cd".
    balanced : bool, default=False
        As for `MeasureSVC`.
    threshold : {"folds", "trained", "placed"} or None, default=None
        "folds" is the best threshold for the scores of all rows, each from the fold that held it out
        (`metrimax.training.threshold`); with fewer than 10 examples of a class it is "trained". The others are as for
        `MeasureSVC`. With None, "trained" and "folds" are both candidates.
    kernel, gamma, degree, coef0, cache_size, n_components
        As for `MeasureSVC`. The kernel's values are computed once for each fold.
    n_threads, verbose, callback, checkpoint
        As for `MeasureSVC`.
    certificate : bool, default=False
        As for `MeasureSVC`; not with ``selection="xi_alpha"``.

    Attributes
    ----------
    C_ : float, or ndarray (L,)
        The best C; with a label indicator matrix one for every label.
    trained_with_ : dict, or list of dict
        ``C``, ``risk``, ``hinge``, ``logistic``, ``balanced``, ``threshold`` and ``intercept_scaling``; with a label
        indicator matrix one dict for every label.
    Cs_ : ndarray
        The grid, with its extensions.
    best_score_ : float
        The measure of the best candidate on the test rows of all folds, the mean over labels.
    cv_results_ : dict of ndarrays
        One row per candidate, for ``pandas.DataFrame``. Parameters: ``param_C``, ``param_risk``, ``param_hinge``,
        ``param_logistic``, ``param_balanced``, ``param_threshold``. Scores, as means over the labels:
        ``pooled_test_score``, which chooses and gives the ``rank_test_score``; ``mean_test_score``, ``std_test_score``,
        and ``split0_test_score`` and so on for each fold. Cost: ``max_gap``, ``sum_passes`` and ``fit_time``. With
        xi-alpha, ``error``, ``recall``, ``precision`` and ``f1`` instead of the folds.
    coef_, intercept_, ...
        As for `MeasureSVC`, trained on all rows with the best candidate.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax import MeasureSVCCV
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(600) < 0.2
    >>> X = rng.normal(size=(600, 5)) + y[:, None]
    >>> model = MeasureSVCCV("f1", Cs=[0.01, 0.1, 1.0], cv=3).fit(X, y)
    >>> model.C_ in (0.01, 0.1, 1.0), len(model.cv_results_["pooled_test_score"])  # 3 C, 2 losses, 2 thresholds
    (True, 12)
    """

    _may_be_free: ClassVar[bool] = False
    _chooses: ClassVar[bool] = True

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
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        pos_label: Any = None,
        hinge: float | None = None,
        logistic: float | None = None,
        risk: float | str | None = None,
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
        self.pos_label = pos_label
        self.hinge = hinge
        self.logistic = logistic
        self.risk = risk  # type: ignore[assignment]
        self.balanced = balanced
        self.threshold = threshold
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
        """Choose losses, C and threshold, then train on X and y; a dataset (`metrimax.open_dataset`) brings its labels.

        ``groups`` (n,) go to the splitter ``cv``, such as scikit-learn's `GroupKFold`.

        Parameters
        ----------
        X : ndarray, sparse matrix, data frame or design (n, p)
            The rows.
        y : array (n,), or an indicator matrix (n, L)
            The classes, or labels; None for a dataset, which brings them.
        sample_weight : array (n,) or None, default=None
            How often each row counts.
        groups : array (n,) or None, default=None
            For the splitter ``cv``.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_selection(groups)
        grid = check_grid(GRID if self.Cs is None else self.Cs)
        measure, scoring = get_measure(self.measure), self._scoring()
        solver, checkpoint = self._plain_solver(), as_checkpoint(self.checkpoint)
        checked, X, y = self._check_sample(X, y)
        check_classification_targets(y)
        kind, classes, labels = encode(y, self.pos_label)
        warn_of_grades(measure, kind, classes)
        weight = weights_of(None, y, sample_weight, y)
        weighted = weights_of(self.class_weight, y, weight, y)
        candidates = self._family(measure, scoring, together=kind == "multiclass" and not scoring.ranks)
        scaling = self._scaling(candidates.losses)
        placed = "placed" if "placed" in candidates.thresholds else "trained"
        training = Training(measure, solver, self.tol, kind, candidates.losses[0], placed)
        by: ByXiAlpha | ByFolds
        if self.selection == "xi_alpha":
            path = None if checkpoint is None else checkpoint.part("path")
            by = ByXiAlpha(self, replace(training, checkpoint=path), scoring, self.rho, X, labels, weighted)
        else:
            workers = workers_of(self.n_jobs, X)
            sample = FoldedSample(
                owner=self,
                training=training,
                measure=scoring,
                X=X,
                y=y,
                labels=labels,
                given=weight,
                weight=weighted,
                folds=self._folds(X, y, weight, groups, several=kind == "multilabel-indicator"),
                scaling=scaling,
                one_thread=workers > 1,
                checkpoint=checkpoint,
            )
            by = ByFolds(sample, candidates, self.standard_errors or 0.0, workers)
        rows = explore(by.rows, grid, extend=self.extend)
        chosen = by.choose()
        self._warn_of_gaps(by.solutions, "fits that choose C")
        if isinstance(by, ByXiAlpha):
            features, fitted = by.features, by.fitted(chosen[0].C)
        else:
            features = self._features(X)
            trainings = [(one.training(training, checkpoint), one.C) for one in chosen]
            fitted = restate(features, self._train(trainings, features, labels, weighted))
        if checkpoint is not None:
            checkpoint.clear()
        self._renew(checked)
        self._store(kind, classes, fitted, scaling, total_of(weighted, labels))
        with_ = [one.settings | {"intercept_scaling": scaling} for one in chosen]
        self.trained_with_ = with_ if self._multilabel else with_[0]
        self._store_weights(features, self._weights(fitted))
        self._store_choice(rows, chosen)
        self._tell(measure, X, features, labels, weighted, fitted)
        if self.scoring is not None:  # the measure trained for was already warned about
            self._warn_of_positive(scoring, labels)
        return self

    def _check_selection(self, groups: Any) -> None:
        """Raise unless the parameters of the choice go together."""
        if self.selection not in SELECTIONS:
            raise ValueError(f"unknown selection {self.selection!r}: expected one of {', '.join(SELECTIONS)}")
        check_standard_errors(self.standard_errors)
        if groups is not None and self.selection != "cv":
            raise ValueError(
                f"expected groups only with selection='cv', got selection={self.selection!r}, which does not use them: "
                "leave them out, or set selection='cv' and a splitter such as cv=GroupKFold()"
            )
        if self.certificate and self.selection == "xi_alpha":
            raise ValueError("certificate=True needs selection='cv' or 'holdout': with 'xi_alpha' call metrimax.verify")

    def _folds(self, X: Any, y: Array, weight: Vector | None, groups: Any, *, several: bool) -> list[Fold]:
        """The folds that the candidates are trained on; for a hold-out there is one."""
        if self.selection == "cv":
            return split(self.cv, X, y, weight, groups, several=several)
        return hold_out(y, weight, several=several, seed=self._random_state)

    def _store_choice(self, rows: list[Row], chosen: list[Chosen]) -> None:
        """Set the table of candidates and the choice: one C, or one for every label."""
        self.C_ = np.array([one.C for one in chosen]) if self._multilabel else chosen[0].C
        self.best_score_ = mean_score(chosen)
        self.cv_results_ = results(rows)
        self.Cs_ = np.unique(self.cv_results_["param_C"])

    def plain(self, **changes: Any) -> MeasureSVC:
        """A `MeasureSVC` with the parameters that both have; ``changes`` give the others, such as C.

        Parameters
        ----------
        **changes : object
            Parameters of the result.

        Returns
        -------
        MeasureSVC
            Not fitted.
        """
        names = MeasureSVC().get_params(deep=False).keys() & self.get_params(deep=False).keys()
        given = {name: getattr(self, name) for name in names} | {"random_state": self._random_state} | changes
        alone = {"risk": 1.0, "hinge": 0.0, "logistic": 0.0, "threshold": "trained"}
        return MeasureSVC(**given | {name: value for name, value in alone.items() if given[name] is None})

    def losses(self) -> Losses:
        """The chosen losses; before `fit`, those that the parameters ask for."""
        with_ = self.trained_with_
        if isinstance(with_, dict):
            return losses_of(with_)
        return self.plain().losses()

    def _family(self, measure: Measure, scoring: Measure, *, together: bool) -> Family:
        """The candidates: those that the parameters leave open, and that the selection and the solver can handle."""
        able = self.selection != "xi_alpha" and self._sums
        left_open = family(measure, scoring, together=together) if able else RISK_ALONE
        check_rule(self.threshold, RULES)
        return left_open.given(self.plain().losses() if names_losses(self) else None, self.threshold)

    def _plain_solver(self) -> Any:
        return self.plain(**({"solver": "dual_cd"} if self.selection == "xi_alpha" else {}))._solver()

    def _scoring(self) -> Measure:
        """The measure that chooses. `score` reports it, too."""
        return get_measure(self.measure if self.scoring is None else self.scoring)
