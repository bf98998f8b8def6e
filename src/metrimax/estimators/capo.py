"""CAPO: classifiers of any kind adapted to a measure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, has_fit_parameter

from metrimax._validation import check_flag, check_positive
from metrimax.designs import ExtraColumns, as_design
from metrimax.estimators._auxiliary import (
    AuxiliaryOutputs,
    Choice,
    check_auxiliaries,
    fixed,
    folds_of,
    inputs_of,
    is_column,
    placed,
    report,
    unseen,
    warn_if_unchanged,
    without,
)
from metrimax.estimators._base import check_rule, refuse_design
from metrimax.estimators._checks import check_rows
from metrimax.estimators._composition import Composition
from metrimax.estimators._targets import encode, positive_last, total_of, weights_of
from metrimax.estimators.svc import MeasureSVC
from metrimax.measure import get_measure
from metrimax.measure.base_loss import Losses, wants_base_loss
from metrimax.measure.contingency import ContingencyMeasure
from metrimax.protocols import Callback, Design, Labels, Measure, Solver, Status, Vector
from metrimax.training.choose import Chosen
from metrimax.training.defaults import RULES, even_losses
from metrimax.training.label import FittedLabel, Training, restate


class CAPOClassifier(MeasureSVC, Composition):
    """Auxiliary classifiers of any kind, adapted to the measure they will be judged by.

    Trains ``sign(sum_k a_k f_k(x) + w.phi(x))`` from the outputs f_k of the auxiliary classifiers and a delta function
    that corrects them::

        min over a, w of  1/2 |w|^2 + B/2 |a|^2 + C (n R(a, w) + sum_i log(1 + exp(-y_i s_i)))

    with the risk R of `MeasureSVC` and, beside it, the logistic loss of the scores s. Nonlinear auxiliaries make the
    result nonlinear at the cost of a linear fit. ``CAPOClassifier(estimators, measure, C=C, outputs="label", cv=None,
    hinge=0, threshold="trained")`` is the problem of Li, Tsang & Zhou, which has no logistic loss.

    Parameters
    ----------
    estimators : list of (name, auxiliary)
        An auxiliary is a scikit-learn classifier or regressor (trained on labels +1 and -1), or the number of a column
        of X that holds outputs computed elsewhere. The delta function and the other auxiliaries do not see that column.
    measure
        As in `MeasureSVC`.
    C : float, default=1.0
        Weight of one margin violation, as in `MeasureSVC` (whose default is 4).
    B : float, default=1.0
        Price of the auxiliaries' weights: the larger, the less the result relies on them.
    delta : str, callable or None, default="linear"
        phi: "linear" for x itself, or a kernel of `MeasureSVC` ("rbf", ...) for a nonlinear delta function. With None
        there is no delta function, and the result is a weighted sum of the auxiliaries.
    outputs : {"label", "score"} or None, default=None
        Whether f is the predicted label, +1 or -1, or the score: `decision_function`, else 2 p - 1 from
        `predict_proba`, else the label. Scores are not scaled. None means "label" with ``cv=None``, because scores of
        the examples that an auxiliary was trained on are over-confident, and "score" otherwise.
    aux_weight : {"learned", "fixed"}, default="learned"
        "fixed" gives every auxiliary the weight 1, and only the delta function is learnt. With one auxiliary, the
        result stays as near to it as C allows (eq. 9 of the paper).
    prefit : bool, default=False
        The estimators are fitted already and are used as they are. They should not have been trained on X.
    cv : int, splitter or None, default=5
        With a number or a splitter, the adaptation is trained on out-of-fold outputs: each auxiliary is trained on
        folds, and gives outputs for the examples held out. The auxiliaries in `estimators_` are trained on all
        examples. A number is lowered to the size of the smallest class. With None, the adaptation is trained on
        outputs for the examples that the auxiliaries were trained on, as in the paper. A forest or boosting makes no
        mistakes there, so nothing is left to adapt. Has no effect if ``prefit``.
    hinge, logistic, risk, balanced : float or None, float or None, float, "even" or None, and bool
        The losses, as in `MeasureSVC`. If neither hinge nor logistic is given, logistic is 1 and None means "even" for
        the risk. Otherwise, and always for the error rate, None means 0 for a base loss and 1 for the risk.
    threshold : {"folds", "trained", "placed"} or None, default=None
        "folds" is the best threshold for the training scores, which are out of fold if the outputs are
        (`metrimax.training.threshold`). The others are as in `MeasureSVC`. None means "trained" for the error rate,
        and "folds" otherwise. Of several exclusive classes, the one with the highest score is predicted, whatever the
        threshold.
    gamma, degree, coef0, cache_size, n_components, random_state
        Of the kernel of the delta function, as in `MeasureSVC`.
    solver, tol, max_iter, fit_intercept, intercept_scaling, class_weight, pos_label, n_threads, verbose, callback
        As in `MeasureSVC`.

    Attributes
    ----------
    estimators_ : list
        The fitted auxiliaries (numbers for columns of X); by name in ``named_estimators_``.
    aux_weights_ : ndarray (m,), or (L, m L) with several labels
        a: with L labels, or classes, every auxiliary has L outputs.
    report_ : dict
        What the adaptation changed on the training sample. "measure" is the name of the measure, "before" has its value
        for every auxiliary, "after" the value of the result. "flipped" says for every auxiliary how many of the "n"
        predictions differ from its own. "changed" is False if an auxiliary alone predicts the same with the same
        value; a warning then says so.
    coef_ or kernel_coef_, intercept_, threshold_, objective_, gap_, status_, ...
        As in `MeasureSVC`. ``coef_`` is the delta function. Its scores and `intercept_` are added to
        ``F aux_weights_``.

    Notes
    -----
    ``sample_weight`` is passed to the auxiliaries whose `fit` takes it. With metadata routing, requests decide.

    References
    ----------
    Li, N., Tsang, I. W., & Zhou, Z.-H. (2013). Efficient optimization of performance measures by classifier adaptation.
    IEEE TPAMI 35(6): eqs. (9)-(14).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from metrimax import CAPOClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = (X**2).sum(axis=1) + 0.3 * rng.normal(size=600) > 3
    >>> tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    >>> clf = CAPOClassifier([("tree", tree)], measure="f1").fit(X, y)
    >>> clf.report_["after"] >= clf.report_["before"]["tree"] - 0.01
    True
    """

    _may_be_free: ClassVar[bool] = False

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        measure: str | Measure | Callable[..., Any] = "f1",
        *,
        C: float = 1.0,
        B: float = 1.0,
        delta: str | Callable[..., Any] | None = "linear",
        outputs: str | None = None,
        aux_weight: str = "learned",
        prefit: bool = False,
        cv: Any = 5,
        hinge: float | None = None,
        logistic: float | None = None,
        risk: float | str | None = None,
        balanced: bool = False,
        threshold: str | None = None,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        cache_size: float = 1000.0,
        n_components: int | None = None,
        random_state: Any = None,
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        pos_label: Any = None,
        n_threads: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.estimators = estimators
        self.measure = measure
        self.C = C
        self.B = B
        self.delta = delta
        self.outputs = outputs
        self.aux_weight = aux_weight
        self.prefit = prefit
        self.cv = cv
        self.hinge = hinge
        self.logistic = logistic
        self.risk = risk  # type: ignore[assignment]
        self.balanced = balanced
        self.threshold = threshold
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.cache_size = cache_size
        self.n_components = n_components
        self.random_state = random_state
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.n_threads = n_threads
        self.verbose = verbose
        self.callback = callback

    @property
    def kernel(self) -> Any:  # type: ignore[override]
        """The kernel of the delta function."""
        return self.delta

    @property
    def named_estimators_(self) -> Bunch:
        """The fitted auxiliaries by name."""
        check_is_fitted(self)
        return Bunch(**dict(zip(self._names, self.estimators_, strict=True)))

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> CAPOClassifier:
        """Train the auxiliaries (unless ``prefit``) and adapt them.

        Parameters
        ----------
        X : ndarray, sparse matrix or data frame (n, p)
            The rows.
        y : array (n,), or an indicator matrix (n, L)
            The classes, or labels.
        sample_weight : array (n,) or None, default=None
            How often each row counts.
        **params : object
            Metadata that the auxiliaries request.

        Returns
        -------
        self
            The fitted estimator.
        """
        measure, solver = get_measure(self.measure), self._solver()
        self._check_parameters()
        refuse_design(X, "the auxiliaries need the rows; MeasureSVC trains on datasets, and on arrays of Dask")
        given = X
        checked, X, y = self._check_sample(X, y)
        kind, classes, labels = encode(y, self.pos_label)
        weight = weights_of(self.class_weight, y, sample_weight, X)
        multilabel = kind == "multilabel-indicator"
        y = labels.astype(int) if multilabel else column_or_1d(y)  # few auxiliaries know sparse labels
        folds = None if self.prefit else folds_of(self.cv, X, y, multilabel)
        outputs = self.outputs or ("label" if folds is None and not self.prefit else "score")
        problem = AuxiliaryOutputs(positive_last(classes, self.pos_label), labels, y, multilabel, outputs)
        columns = [int(a) for _, a in self.estimators if is_column(a)]
        rest = without(X, columns)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
        inputs = inputs_of(given, X, rest)
        auxiliaries, blocks = self._train_auxiliaries(inputs, X, problem, folds, sample_weight, params)
        which = self._selected(measure, problem, blocks, weight)
        names = [self.estimators[k][0] for k in which]
        auxiliaries, blocks = [auxiliaries[k] for k in which], [blocks[k] for k in which]
        F = np.column_stack(blocks)
        training = Training(measure, solver, self.tol, kind, self.losses())
        choice = self._choice(training, rest, problem, F, folds, (sample_weight, weight))
        scaling = self._scaling([one.losses for one in choice.chosen])
        features = None if self.delta is None else self._features(rest)
        fitted, scores = self._adapted(training, choice, scaling, features, F, labels, weight)
        self._renew(checked)
        self._store(kind, classes, fitted, scaling, total_of(weight, labels))
        self._store_choice(choice)
        with_ = [one.settings | {"intercept_scaling": scaling, "B": choice.B} for one in choice.chosen]
        self.trained_with_ = with_[0] if all(own == with_[0] for own in with_) else with_
        self._columns = columns
        self._problem = replace(problem, labels=labels[:0], y=y[:0])
        self._names, self.estimators_ = names, auxiliaries
        self._store_mix(features, self._weights(fitted), len(blocks), choice.B)
        self.report_ = report(measure, problem, self._names, blocks, scores - self._turn * self.threshold_, weight)
        self._warn([label.solution for label in fitted])
        warn_if_unchanged(self.report_, in_sample=folds is None and not self.prefit)
        self._warn_of_positive(measure, labels)
        return self

    def decision_function(self, X: Any) -> Vector:
        """Scores: (n,) for two classes, (n, L) otherwise. Positive means the second class, or the label.

        Parameters
        ----------
        X : ndarray, sparse matrix or data frame (n, p)
            The rows.

        Returns
        -------
        ndarray (n,) or (n, L)
            The scores.
        """
        check_is_fitted(self)
        given = X
        X = check_rows(self, X)
        rest = without(X, self._columns)
        F = np.column_stack([self._problem.of(a, inputs_of(given, X, rest), X) for a in self.estimators_])
        scores: Vector = self._turn * (F @ self._mix) + self.intercept_
        if hasattr(self, "kernel_kept_"):  # a delta function was fitted
            scores += self._feature_scores(rest)
        return scores[:, 0] if self._binary else scores

    def _selected(
        self, measure: Measure, problem: AuxiliaryOutputs, blocks: list[Vector], weight: Vector | None
    ) -> list[int]:
        """Which of the auxiliaries are adapted."""
        return list(range(len(blocks)))

    def _choice(
        self, training: Training, X: Any, problem: AuxiliaryOutputs, F: Vector, folds: Any, weights: Any
    ) -> Choice:
        """B, and what every label is trained with."""
        rule = self._rule(training.measure, training.kind)
        return Choice(self.B, [Chosen(training.losses, float(self.C), rule, None, math.nan)] * problem.labels.shape[1])

    def _store_choice(self, choice: Choice) -> None:
        """Set the attributes of a choice; here nothing is left to choose."""

    def _adapted(
        self,
        training: Training,
        choice: Choice,
        scaling: float | None,
        features: Design | None,
        F: Vector,
        labels: Labels,
        weight: Vector | None,
    ) -> tuple[list[FittedLabel], Vector]:
        """The labels trained as chosen, with their thresholds, and the scores (n, L) before these."""
        design, offset = self._augmented(features, F, labels.shape[1], choice.B)
        trainings = [(one.training(training), one.C) for one in choice.chosen]
        fitted = restate(features, self._train(trainings, design, labels, weight, offset))
        whole = as_design(design, intercept_scaling=scaling)
        scores = whole.matvec(np.column_stack([label.solution.w for label in fitted]))
        if offset is not None:  # with fixed weights, w = 0 leaves the auxiliaries as they are
            fitted = [label.restated(Status.TRIVIAL, Status.UNCHANGED) for label in fitted]
            scores += offset
        return placed(training.measure, fitted, choice.chosen, scores, labels, weight), scores

    def _store_mix(self, features: Design | None, W: Vector, n_auxiliaries: int, B: float) -> None:
        """Set the weights of the auxiliaries, the first of W unless they are fixed, and of the delta function."""
        n_labels = W.shape[1]
        learned = 0 if self.aux_weight == "fixed" else n_auxiliaries * n_labels
        self._mix = W[:learned] / math.sqrt(B) if learned else fixed(n_auxiliaries, n_labels)
        self.aux_weights_ = self._mix[:, 0] if self._binary else np.ascontiguousarray(self._mix.T)
        if features is not None:
            self._store_weights(features, W[learned:])

    def _augmented(self, features: Design | None, F: Vector, n_labels: int, B: float) -> tuple[Design, Vector | None]:
        """The design of the adaptation problem and, where the auxiliaries' weights are fixed, their scores (n, L)."""
        offset = None
        if self.aux_weight == "fixed":
            assert features is not None  # _check_parameters
            design, offset = features, F @ fixed(F.shape[1] // n_labels, n_labels)
        elif features is None:
            design = as_design(F / math.sqrt(B), n_threads=self.n_threads)
        else:
            design = ExtraColumns(features, F / math.sqrt(B))
        return design, offset

    def _rule(self, measure: Measure, kind: str) -> str:
        """Where the threshold comes from; measures of rankings have a rule of their own."""
        check_rule(self.threshold, RULES)
        if kind == "multiclass" or measure.ranks or not isinstance(measure, ContingencyMeasure):
            return "trained" if self.threshold in (None, "folds") else self.threshold
        return self.threshold or ("folds" if wants_base_loss(measure) else "trained")

    def losses(self) -> Losses:
        """The losses that these parameters ask for."""
        check_flag("balanced", self.balanced)
        sums = self._sums and wants_base_loss(get_measure(self.measure))
        return even_losses(self.risk, self.hinge, self.logistic, self.balanced, sums=sums)

    def _train_auxiliaries(
        self,
        inputs: Any,
        X: Any,
        problem: AuxiliaryOutputs,
        folds: list[tuple[Any, Any]] | None,
        sample_weight: Any,
        params: dict[str, Any],
    ) -> tuple[list[Any], list[Vector]]:
        """The fitted auxiliaries, and their outputs on the training set: a block (n, L) for each."""
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
        else:
            _raise_for_params(params, self, "fit")
            routed = None
        fitted, blocks = [], []
        for name, auxiliary in self.estimators:
            if is_column(auxiliary) or self.prefit:
                fitted.append(auxiliary)
                blocks.append(problem.of(auxiliary, inputs, X))
                continue
            extra: dict[str, Any] = {}
            if routed is not None:
                extra = routed[name].fit
            elif sample_weight is not None and has_fit_parameter(auxiliary, "sample_weight"):
                extra = {"sample_weight": sample_weight}
            fitted.append(clone(auxiliary).fit(inputs, problem.target(auxiliary), **extra))
            if folds is None:
                blocks.append(problem.output(fitted[-1], inputs))
            else:
                blocks.append(unseen(auxiliary, inputs, problem, folds, extra))
        return fitted, blocks

    def _check_parameters(self) -> None:
        self._check_estimators()
        check_positive("B", self.B)
        if self.outputs not in (None, "label", "score"):
            raise ValueError(f"expected outputs as one of label, score, or None, got {self.outputs!r}")
        if self.aux_weight not in ("learned", "fixed"):
            raise ValueError(f"expected aux_weight as one of learned, fixed, got {self.aux_weight!r}")
        if isinstance(self.delta, str) and self.delta == "precomputed":
            raise ValueError(
                "expected delta as a kernel of X, got 'precomputed': the auxiliaries need X; pass a kernel function"
            )
        if self.delta is None and self.aux_weight == "fixed":
            raise ValueError(
                "aux_weight='fixed' needs a delta function, because it learns nothing else: set delta='linear'"
            )
        check_auxiliaries(self.estimators, prefit=self.prefit)

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata this estimator requests, and which the auxiliaries request in `fit`."""
        router = MetadataRouter(owner=self.__class__.__name__).add_self_request(self)
        for name, auxiliary in self.estimators:
            if hasattr(auxiliary, "fit"):
                router.add(**{name: auxiliary}, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = [get_tags(a) for _, a in self.estimators if hasattr(a, "fit")]
        tags.input_tags.sparse = all(t.input_tags.sparse for t in own)
        tags.classifier_tags.multi_label = all(
            t.classifier_tags.multi_label if t.classifier_tags is not None else t.target_tags.multi_output for t in own
        )
        return tags
