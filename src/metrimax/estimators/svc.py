"""`MeasureSVC`: linear classifiers, or with a kernel, trained for a measure."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from metrimax._validation import check_flag, dense
from metrimax.designs import as_design, is_design
from metrimax.designs.kernel import Gram, Kernel, check_symmetric, choose_gamma, kernel_design
from metrimax.estimators._base import check_rule, trained_with
from metrimax.estimators._classifier import CertifiedClassifier
from metrimax.estimators._remarks import (
    warn_of_constants,
    warn_of_grades,
    warn_of_no_labels,
    warn_of_training_scores,
)
from metrimax.estimators._targets import encode, total_of, weights_of
from metrimax.io.checkpoints import Checkpoint, as_checkpoint
from metrimax.measure import get_measure
from metrimax.measure.base_loss import Losses
from metrimax.protocols import Array, Callback, Design, Labels, Measure, Solver, Vector
from metrimax.solvers import Auto, DualCD, side_by_side
from metrimax.training.defaults import DEFAULT_C, losses_without_folds, threshold_without_folds
from metrimax.training.free_intercept import PairCD
from metrimax.training.label import FittedLabel, Training, fit_label, intercept_scaling, restate
from metrimax.training.lockstep import run

THRESHOLDS = ("trained", "placed", "auto")


class MeasureSVC(CertifiedClassifier):
    """Classifier, linear or with a kernel, trained for the measure it will be judged by.

    Minimises ``J(w) = 1/2 |w|^2 + C (kappa n R(w) + 3 sum_i log(1 + exp(-y_i s_i)))``. The risk R is a convex upper
    bound of the measure's loss on the training sample as a whole. kappa, the price of one mistake, makes C mean the
    same for every measure. Where classes overlap, R alone may learn nothing, but the logistic loss learns from all
    examples. Every solution comes with a lower bound on the optimum.

    ``MeasureSVC(measure, C=C, hinge=0, threshold="trained")`` is the problem of Joachims (2005) exactly, ``1/2 |w|^2 +
    C kappa n R(w)``. For the error rate that is the default: the plain SVM.

    Parameters
    ----------
    measure : str, measure or callable, default="f1"
        A name (`metrimax.measures` lists them), a measure with parameters such as ``FBeta(2)``, or a function of
        (tp, fp, fn, tn) that takes arrays: a score that is 1, or a loss that is 0, for a perfect labelling.
    C : float, default=4.0
        Weight of one margin violation. With ``measure="error"`` it is the C of ``LinearSVC(loss="hinge")``. The default
        suits text of unit length and features of scale 1. `MeasureSVCCV` chooses C.
    solver : {"auto", "hybrid", "bundle", "cutting_plane", "lbfgs", "agm", "dual_cd"} or a solver, default="auto"
        "auto" follows measurements (docs/results/solvers.md). Three solvers are for reference: "cutting_plane" is the
        algorithm of Joachims (2005); "lbfgs" and "agm" solve the smoothed problem of Zhang et al. (2011), and can be
        given as `metrimax.solvers.LBFGS(mu=..., memory=...)` or ``AGM(mu=...)``. "dual_cd" (error, cost and balanced
        error only) also gives the multipliers `dual_coef_`.
    tol, max_iter : float and int, default=1e-3 and 10000
        Largest duality gap, in units of the measure: 1e-3 is a tenth of a percentage point. Largest number of
        iterations, each of which reads the data twice.
    fit_intercept, intercept_scaling : bool and float, "free" or None, default=True and None
        Whether to add a constant feature, and its value; its weight is regularised with the others. None is 1 for the
        measure's risk alone, as in Joachims (2005), and 10 with a base loss: the intercept is then hardly regularised.
        "free": not regularised at all, as in scikit-learn's SVC, for error, cost and balanced error (``solver`` "auto"
        or "dual_cd").
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with ``sample_weight``. "balanced" gives all classes the same total weight.
    pos_label : label or None, default=None
        Which of two classes the measure takes as positive; None is the greater. `classes_` stays sorted, and scores
        above zero mean the second class, as everywhere in scikit-learn.
    hinge, logistic : float or None, default=None
        Weights of base losses beside the risk: ``C hinge sum_i max(0, 1 - y_i s_i)`` and ``C logistic sum_i log(1 +
        exp(-y_i s_i))``. If one is given, even as 0, the other is 0. If neither is given, logistic is 3; it is 0 for
        the error rate, and with ``solver="dual_cd"``, which only solves sums of hinges.
    risk : float or "even", default=1.0
        Weight of the measure's risk. "even" is 1 / kappa: the risk weighs as much as one base loss of every example
        (docs/measures.md). With 0 only a base loss remains: ``risk=0, logistic=1`` is logistic regression, ``risk=0,
        hinge=1`` the usual SVM. The measure then only places the threshold.
    balanced : bool, default=False
        Whether the two classes have the same total weight in the base losses, whatever they weigh in the risk.
    threshold : {"trained", "placed", "auto"} or None, default=None
        "trained": where training puts it. "placed": in the middle of the best places on the training sample, if that
        is better (`metrimax.measure.place`). "auto": placed if that gains more than the cost of one mistake in each
        class. None means "trained" for the error rate, with "dual_cd", and for several exclusive classes, where the
        highest score is predicted; otherwise "auto". Measures of rankings have a rule of their own, see `threshold_`.
    kernel : str or callable, default="linear"
        "linear", "rbf", "poly", "laplacian", "inverse_distance", "inverse_squared_distance" (formulas:
        `metrimax.designs.kernel.Kernel`), "precomputed" (X holds the kernel's values, (n, n) in `fit` and (examples, n)
        elsewhere), or a function of two arrays of examples that returns the matrix of kernel values.
    gamma, degree, coef0 : {"scale", "mean_distance"} or float, int and float, default="scale", 3 and 0.0
        Parameters of the kernel. "scale" is 1 / (p var(X)), "mean_distance" the inverse of the mean squared distance
        between examples. degree and coef0 are for the polynomial kernel.
    cache_size : float, default=1000.0
        Megabytes for kernel values. If the n x n matrix fits, the kernel is exact. Otherwise it is approximated by
        Nystroem features on random examples, and `status_` says so.
    n_components, random_state : int or None, and int, RandomState or None, default=None
        Number of Nystroem features; None for as many as fit, at most 1000. If it is given, they are used even if the
        matrix fits. random_state chooses the examples that span them; with a checkpoint None means 0.
    n_threads : int or None, default=None
        Threads for products with X. None for all cores, or for OMP_NUM_THREADS if that is set, as in joblib's workers.
    verbose : int, default=0
        1 shows a line with the gap during the fit, or a new line every five seconds if standard error is no terminal.
    callback : callable or None, default=None
        Called with a `Record` (iteration, n_passes, objective, bound, n_cuts, seconds) after each iteration. Returning
        True stops the fit.
    checkpoint : str, path, Checkpoint or None, default=None
        A folder in which a long fit saves its state every two minutes. It is removed at the end of the fit. After a
        crash, the same fit on the same data goes on from there. `metrimax.io.checkpoints.Checkpoint` sets other
        intervals.
    certificate : bool, default=False
        Whether to keep the points that prove the bound, for `metrimax.verify`. They take about as long as the fit
        (docs/certificate.md).

    Attributes
    ----------
    coef_ : ndarray (1, p), or (L, p) with L labels
        Linear kernel only.
    kernel_coef_, support_ : ndarray (1, m) or (L, m), and ndarray of int (m,)
        Other kernels only: coefficients of examples, and the positions of these examples in the training set.
    kernel_kept_ : float
        Share of the trace of the kernel matrix that the features keep: 1 for an exact kernel.
    intercept_, trained_intercept_, threshold_ : ndarray (1,) or (L,)
        `decision_function` is ``X coef_ + intercept_``, with ``intercept_ = trained_intercept_ - threshold_``. The
        threshold is zero where training places it. ROC area, PRBEP and the measures at k leave it open: it is then
        halfway between the last of the top k training scores and the next (k = n+ for ROC area and PRBEP).
    objective_, dual_bound_ : float, or ndarray (L,)
        J at the solution, `coef_` with `trained_intercept_`, and a proven lower bound of the least J.
    gap_, price_ : float, or ndarray (L,)
        ``(objective_ - dual_bound_) / (C kappa n)``, and kappa.
    n_iter_, n_support_, n_passes_ : int, int and float, or ndarray (L,)
        Iterations, cuts with a weight above 0 in the solution, and passes over the data: the number of rows read (see
        `Record`) divided by n.
    status_ : Status, or list of them
        How the fit ended; its value is a sentence.
    history_, certificate_ : list of Record, or list of such lists; list of (points, multipliers), or None
    trained_with_ : dict of C, the losses, and the rule of the threshold
    dual_coef_ : ndarray (1, n) or (L, n)
        With a dual solver, the multipliers times the labels: the weights are ``dual_coef_ @ X``.
    label_values_ : ndarray (L,)
        The labels of a dataset whose rows may have several: one for each column.
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    Of two classes the greater is positive: 1 of 0 and 1, "yes" of "no" and "yes". Of several classes each is trained
    against the rest, and the one with the highest score is predicted. A label indicator matrix trains one classifier
    per column. ``sample_weight`` means repetition, for the non-linear measures too.

    References
    ----------
    Joachims, T. (2005). A support vector method for multivariate performance measures. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax import MeasureSVC
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(1000) < 0.1
    >>> X = rng.normal(size=(1000, 5)) + 1.5 * y[:, None]
    >>> clf = MeasureSVC(measure="f1").fit(X, y)
    >>> clf.gap_ <= 1e-3
    True
    >>> clf.score(X, y) > 0.8
    True
    """

    checkpoint: str | os.PathLike[str] | Checkpoint | None = None  # for subclasses without this parameter
    certificate: bool = False
    _may_be_free: ClassVar[bool] = True
    _chooses: ClassVar[bool] = False  # whether folds, or estimates, choose among candidates

    def __init__(
        self,
        measure: str | Measure | Callable[..., Any] = "f1",
        *,
        C: float = DEFAULT_C,
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        fit_intercept: bool = True,
        intercept_scaling: float | str | None = None,
        class_weight: dict[Any, float] | str | None = None,
        pos_label: Any = None,
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
        random_state: Any = None,
        n_threads: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        certificate: bool = False,
    ) -> None:
        self.measure = measure
        self.C = C
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.hinge = hinge
        self.logistic = logistic
        self.risk = risk
        self.balanced = balanced
        self.threshold = threshold
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.cache_size = cache_size
        self.n_components = n_components
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.certificate = certificate

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MeasureSVC:
        """Train on X (dense, sparse, or a design) and y: two classes, several, or a label indicator matrix.

        Of two classes the greater is positive, unless ``pos_label`` names the other. ``sample_weight`` means
        repetition. A dataset (`metrimax.open_dataset`) brings its labels; any other X needs y.

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
        self
            The fitted estimator.
        """
        measure, solver = get_measure(self.measure), self._solver()
        checkpoint = as_checkpoint(self.checkpoint)
        checked, X, y = self._check_sample(X, y)
        kind, classes, labels = encode(y, self.pos_label)
        weight = weights_of(self.class_weight, y, sample_weight, labels)
        features = self._features(X)
        warn_of_grades(measure, kind, classes)
        training = self._training(measure, solver, kind, checkpoint=checkpoint)
        fitted = restate(features, self._train([(training, self.C)] * labels.shape[1], features, labels, weight))
        if checkpoint is not None:
            checkpoint.clear()
        self._renew(checked)
        scaling = self._scaling([training.losses])
        self._store(kind, classes, fitted, scaling, total_of(weight, labels))
        self.trained_with_ = trained_with(training, self.C, "free" if self._is_free else scaling)
        self._store_weights(features, self._weights(fitted))
        self._tell(measure, X, features, labels, weight, fitted)
        warn_of_training_scores(measure)
        return self

    def _tell(
        self,
        measure: Measure,
        X: Any,
        features: Design,
        labels: Labels,
        weight: Vector | None,
        fitted: list[FittedLabel],
    ) -> None:
        """Warn of a gap above tol, of a doubtful positive class, and of rules that call all examples alike."""
        self._warn([label.solution for label in fitted])
        self._warn_of_positive(measure, labels)
        if not (measure.ranks or self._target == "multiclass" or is_design(X)):  # a design would be read once more
            scores = features.matvec(np.ascontiguousarray(self._weights(fitted))) + self._turn * self.intercept_
            solutions = [label.solution for label in fitted]
            warn_of_constants(measure, labels, scores, weight, solutions, chosen=self._chooses)
            warn_of_no_labels(labels)

    def _check_design(self, X: Any, y: Any) -> Array:
        if not self._has_kernel("linear"):
            raise self._out_of_reach(X)
        if y is None and getattr(X, "label_values", None) is not None:
            self.label_values_ = X.label_values
        return super()._check_design(X, y)

    @property
    def _random_state(self) -> Any:
        """The random state. With a checkpoint None means 0: a fit that goes on must draw the same numbers again."""
        return 0 if self.random_state is None and self.checkpoint is not None else self.random_state

    def _has_kernel(self, name: str) -> bool:
        return isinstance(self.kernel, str) and self.kernel == name

    def _features(self, X: Any, n_threads: int | None = None) -> Design:
        """X as the design that the kernel needs. ``n_threads``, if given, replaces the parameter of that name."""
        n_threads = self.n_threads if n_threads is None else n_threads
        if self._has_kernel("linear"):
            return as_design(X, n_threads=n_threads)
        if self._has_kernel("precomputed"):
            return Gram(check_symmetric(np.ascontiguousarray(dense(X))), n_threads=n_threads)
        return kernel_design(
            Kernel(self.kernel, choose_gamma(self.gamma, X), self.degree, self.coef0),
            X,
            cache_size=self.cache_size,
            n_components=self.n_components,
            seed=check_random_state(self._random_state).randint(2**31),
            n_threads=n_threads,
        )

    def _train(
        self,
        trainings: list[tuple[Training, float]],
        design: Design,
        labels: Labels,
        weight: Vector | None,
        offset: Vector | None = None,
    ) -> list[FittedLabel]:
        """Train the labels in lockstep, each with its own training and C, on the design with an intercept.

        An ``offset`` (n, L) holds scores that are added to those of the labels.
        """
        scaling = self._scaling(training.losses for training, _ in trainings)
        whole = as_design(design, intercept_scaling=scaling)
        shifts = repeat(None) if offset is None else offset.T
        solver = side_by_side(trainings[0][0].solver, len(trainings))
        with self._progress(trainings[0][0].measure, design) as callback:
            runs = (
                fit_label(replace(training, solver=solver, callback=callback), whole, one, weight, C, shift)
                for (training, C), one, shift in zip(trainings, labels.T, shifts, strict=False)
            )
            return run(whole, runs)

    def _scaling(self, losses: Iterable[Losses]) -> float | None:
        """The value of the constant feature; None if there is none."""
        check_flag("fit_intercept", self.fit_intercept)
        if not self.fit_intercept:
            return None
        return 1.0 if self._is_free else intercept_scaling(self.intercept_scaling, losses)

    @property
    def _is_free(self) -> bool:
        """Whether there is an intercept that is not regularised."""
        free = isinstance(self.intercept_scaling, str) and self.intercept_scaling == "free"
        if free and not self._may_be_free:
            raise ValueError(
                f"expected a number or None as intercept_scaling of {type(self).__name__}, got 'free': give one, or "
                "search over MeasureSVC(intercept_scaling='free') with scikit-learn's GridSearchCV"
            )
        return bool(self.fit_intercept and free)

    def _solver(self) -> Any:
        solver = super()._solver()
        if not self._is_free:
            return solver
        if not isinstance(solver, (Auto, DualCD)):
            raise ValueError(
                f"expected solver='auto' or 'dual_cd' with intercept_scaling='free', got {self.solver!r}: the others "
                "regularise the intercept"
            )
        if self.certificate:
            raise ValueError(
                "expected certificate=False with intercept_scaling='free', got True: what is kept proves bounds for "
                "regularised intercepts only; give a number as intercept_scaling (dual_bound_ is a bound in any case)"
            )
        return PairCD(solver.max_iter)

    @property
    def _sums(self) -> bool:
        return super()._sums and not self._is_free

    def _training(
        self, measure: Measure, solver: Solver, kind: str, *, checkpoint: Checkpoint | None = None
    ) -> Training:
        """How labels of a kind are trained with these parameters."""
        check_rule(self.threshold, THRESHOLDS)
        threshold = self.threshold or threshold_without_folds(measure, kind, sums=self._sums)
        check_flag("certificate", self.certificate)
        proven = bool(self.certificate)
        return Training(measure, solver, self.tol, kind, self.losses(), threshold, None, checkpoint, proven)

    def losses(self) -> Losses:
        """The losses that these parameters ask for."""
        check_flag("balanced", self.balanced)
        return losses_without_folds(
            get_measure(self.measure),
            risk=self.risk,
            hinge=self.hinge,
            logistic=self.logistic,
            balanced=self.balanced,
            sums=self._sums,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._has_kernel("precomputed")
        tags.classifier_tags.multi_label = True
        return tags
