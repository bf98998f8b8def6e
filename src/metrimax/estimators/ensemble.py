"""`MeasureEnsemble`: classifiers of different kinds, trained on folds, combined, with a threshold for the measure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import Bunch, _safe_indexing, check_random_state
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from metrimax._validation import dense, is_whole, refuse_missing, warn
from metrimax.estimators._base import refuse_design
from metrimax.estimators._composition import Composition
from metrimax.estimators._ensemble_folds import CrossFit, Task, cross_fit, make_splits, tested_parts
from metrimax.estimators._ensemble_members import PRESETS, Member, Target, Views, given_member, preset, weight_parameter
from metrimax.estimators._ensemble_rule import OutOfFold, Rule
from metrimax.estimators._ensemble_table import checked as checked_table
from metrimax.estimators._links import Documented
from metrimax.estimators._refit import Refitted
from metrimax.estimators._remarks import warn_of_shortfall
from metrimax.estimators._targets import (
    called,
    called_top_k,
    check_truth,
    encode,
    judge,
    on_batch,
    positive_last,
    total_of,
    weights_of,
)
from metrimax.measure import get_measure
from metrimax.measure.positive import doubtful_positive
from metrimax.protocols import Array, Measure, Rows, Vector

CHUNK = 50_000
"""How many rows are scored at a time."""


class MeasureEnsemble(Documented, Refitted, ClassifierMixin, Composition):
    """Classifier for tables: members of different kinds, combined, with the threshold that the measure asks for.

    Each member is trained on the folds of a cross-validation. Its log-odds for the rows held out are calibrated by a
    logistic fit, and combined with those of the other members by non-negative weights. The measure places the threshold
    on these out-of-fold scores. The score of a new row is the mean over the models of all folds.

    Parameters
    ----------
    measure : str, measure or callable, default="f1"
        As for `MeasureSVC`: a name (`metrimax.measures` lists them), a measure, or a function of (tp, fp, fn, tn).
    estimators : list of (name, estimator), {"default", "fast", "best"} or None, default=None
        The members. None is "default": gradient boosting, a random forest, extra trees, logistic regression, and
        logistic regression on an approximate kernel. "fast" has neither forest nor kernel. "best" adds four members and
        takes three times as long; it gains little, and only for rankings. A list may have classifiers with
        `predict_proba` or `decision_function`, regressors (trained on 1 and -1), pipelines (which get X unchanged), and
        fitted models in a `sklearn.frozen.FrozenEstimator`, for which `fit` needs ``oof_scores``.
    cv : int, splitter or iterable, default=5
        The folds. Those of a number are stratified and shuffled, and no more than the smaller of two classes has rows;
        a class of few rows among several is missing in some folds.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with ``sample_weight``.
    pos_label : label or None, default=None
        Which of two classes is positive; None means the greater. As for `MeasureSVC`.
    n_jobs : int or None, default=None
        How many fits, over folds and members, run at a time. None is 1, except in a `joblib.parallel_config`.
    random_state : int, RandomState or None, default=None
        The random state of the folds, and of members whose own is None.
    verbose : int, default=0
        1 shows a line with the time left, or a new line every five seconds if standard error is no terminal.

    Attributes
    ----------
    estimators_ : list
        For each member a list over the folds: lists of one model, or of one for each label of an indicator matrix.
        Empty for a member without weight: one below 1 % is set to zero.
    weights_ : ndarray (M,), or (L, M) with several labels
        Weights of the calibrated members.
    threshold_ : ndarray (1,) or (L,)
        Subtracted from the log-odds of the positive class by `decision_function`.
    oof_scores_ : ndarray (n,) or (n, L)
        The scores of the training rows from models that were not trained on them; NaN for rows that no fold tests.
    report_ : dict
        ``measure``, its name; ``score`` and ``std``, the measure on other data and its standard error, estimated with
        weights and threshold from other folds; ``cpu_seconds``; ``members``, with the same for each and ``weight``.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Data frames may have categories, text columns of few values, dates (taken as days) and gaps. Boosting gets them
    unchanged; for other members they are encoded. Arrays may have gaps, too (NaN). X may be sparse; there is no
    boosting if it is too large to be made dense. Each of several classes is judged against the rest, and the one with
    the highest score is predicted.

    ``report_["score"]`` judges models of one fold. The ensemble is the mean over all folds and does better, by about a
    point on average over 30 tables. This is not corrected: each training row is unseen by the models of one fold only,
    so it cannot tell what the mean gains. ``report_["std"]`` allows for the rows that are judged, and for the training
    rows that the folds share. On these tables, test scores were within two standard errors in 95 of 100 splits or more.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax import MeasureEnsemble
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = (X**2).sum(axis=1) + 0.3 * rng.normal(size=400) > 5
    >>> model = MeasureEnsemble("f1", estimators="fast", random_state=0).fit(X, y)
    >>> model.report_["score"] > 0.6
    True
    """

    _learnt = ("_views", "_reader", "_members", "_rule", "_size")
    _size: float | None = None

    def __init__(
        self,
        measure: str | Measure | Callable[..., Any] = "f1",
        estimators: list[tuple[str, Any]] | str | None = None,
        *,
        cv: Any = 5,
        class_weight: dict[Any, float] | str | None = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.measure = measure
        self.estimators = estimators
        self.cv = cv
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        oof_scores: dict[str, Any] | None = None,
        **params: Any,
    ) -> MeasureEnsemble:
        """Train the members on folds, combine them, and place the threshold.

        Parameters
        ----------
        X : data frame, ndarray or sparse matrix (n, p)
            The rows, with gaps as NaN or None.
        y : array (n,), or an indicator matrix (n, L)
            The classes, or labels.
        sample_weight : array (n,), optional
            Only their ratios matter: they are divided by their mean. Members whose `fit` takes no weights get none.
        groups : array (n,), optional
            Rows of one group are in the same fold. A splitter ``cv`` gets them, as `GroupKFold` needs.
        oof_scores : dict, optional
            For each frozen member, by name: scores of these rows from models that were not trained on them. They are
            probabilities of the positive class (of each class or label, in columns) if the member has `predict_proba`,
            else values of its `decision_function`.
        **params
            For the members, by metadata routing.
        """
        measure = get_measure(self.measure)
        checked, X, y = self._check_sample(X, y)
        if groups is not None:
            refuse_missing(groups, "groups", "the group of each row", "give every row a group")
            check_consistent_length(X, groups)
        target, weight = self._target(y, sample_weight)
        views = Views(X)
        members = self._chosen(views, X)
        rng = check_random_state(self.random_state)
        routed = self._routed(members, sample_weight, weight, groups, params)
        splits = make_splits(self.cv, X, target, weight, routed.splitter.split, rng)
        own = not isinstance(self.estimators, (str, type(None)))
        tasks = [
            Task(member, k, train, test, int(rng.randint(2**31 - 1)), _check_method_params(X, given, train), own)
            for k, (train, test) in enumerate(splits)
            for member, given in ((member, routed[member.name].fit) for member in members if not member.frozen)
        ]
        title = f"MeasureEnsemble({_name(self.measure, measure)})" if self.verbose else None
        fits = cross_fit(tasks, views(X, {member.view for member in members}), target, self.n_jobs, title)
        fits |= self._given(members, oof_scores or {}, target)
        scores = np.stack([fits[member.name].scores for member in members], axis=2)  # n, L, M
        seen = OutOfFold(measure, target, scores, np.ones(len(scores)) if weight is None else weight)
        parts = tested_parts(splits, len(scores))
        rule = self._rule_of(seen, np.concatenate(parts), weight)
        trained = float(np.mean([len(train) for train, _ in splits]))
        report = self._report(seen, parts, members, fits, rule, int(rng.randint(2**31 - 1)), trained)
        self._renew(checked)
        self._views, self._reader, self._rule, self._size = views, target.forget(), rule, total_of(weight, scores)
        self._store(members, fits, rule(scores))
        self.report_ = report
        self._warn_of_positive(measure, target)
        return self

    def _check_sample(self, X: Any, y: Any) -> tuple[MeasureEnsemble, Any, Any]:
        """X and y, checked; and before them an unfitted copy with the attributes that the checks set, for `_renew`."""
        if isinstance(y, (list, tuple)):
            refuse_missing(y)  # before NumPy makes a string of a NaN among strings
        if y is None:
            raise ValueError("expected y, the true labels, got None: requires y to be passed, but the target y is None")
        refuse_design(X, "the members need the rows; MeasureSVC and MeasureSVCCV train on datasets")
        checked = self._unfitted()
        X = checked_table(checked, X, reset=True, frames=True)
        check_consistent_length(X, y)
        return checked, X, np.asarray(dense(y))

    def _target(self, y: Array, sample_weight: Any) -> tuple[Target, Vector | None]:
        if y.dtype.kind in "Of":
            refuse_missing(y)
        kind, classes, labels = encode(y, self.pos_label)
        y = labels.astype(np.int64) if kind == "multilabel-indicator" else column_or_1d(y)
        classes = positive_last(classes, self.pos_label)
        weight = weights_of(self.class_weight, y, sample_weight, labels)
        if weight is not None:  # the shrinkage of the stack assumes weights around 1
            weight = weight / weight[weight > 0].mean()
        rates = np.average(labels, axis=0, weights=weight)
        return Target(kind, classes, y, labels, rates), weight

    def _chosen(self, views: Views, X: Any) -> list[Member]:
        given = "default" if self.estimators is None else self.estimators
        if isinstance(given, str):
            if given not in PRESETS:
                raise ValueError(f"unknown estimators {given!r}: expected a list, or one of {', '.join(PRESETS)}")
            return preset(given, X, views.categorical)
        self._check_estimators()
        for name, estimator in given:
            if not hasattr(estimator, "fit"):
                raise TypeError(f"expected {name!r} as an estimator, got {estimator!r}")
        return [given_member(name, estimator, views.categorical) for name, estimator in given]

    def _routed(
        self, members: list[Member], sample_weight: Any, weight: Vector | None, groups: Any, params: dict[str, Any]
    ) -> Bunch:
        """The metadata for the splitter and for each member."""
        if _routing_enabled():
            given = {"sample_weight": weight} if sample_weight is not None else {}
            routed = process_routing(self, "fit", **given, **({} if groups is None else {"groups": groups}), **params)
            known = routed if not isinstance(self.estimators, (list, tuple)) else None
        else:
            _raise_for_params(params, self, "fit")
            routed, known = Bunch(splitter=Bunch(split={} if groups is None else {"groups": groups})), True
        if known is not None:
            for member in members:
                name = None if weight is None else weight_parameter(member.estimator)
                routed[member.name] = Bunch(fit={} if name is None else {name: weight})
        return routed

    def _given(self, members: list[Member], oof_scores: dict[str, Any], target: Target) -> dict[str, CrossFit]:
        """The frozen members, with the scores that the user gives."""
        frozen = {member.name: member for member in members if member.frozen}
        if frozen.keys() != oof_scores.keys():
            raise ValueError(
                f"expected oof_scores of the frozen members {sorted(frozen)}, got those of {sorted(oof_scores)}: call "
                "fit(..., oof_scores={name: scores}) with scores from models that were not trained on these rows"
            )
        return {
            name: CrossFit([[member.estimator]], target.given(name, member.estimator, oof_scores[name]), 0.0)
            for name, member in frozen.items()
        }

    def _rule_of(self, seen: OutOfFold, tested: Rows, weight: Vector | None) -> Rule:
        """The stacks and thresholds that are learnt from the rows that folds have tested."""
        labels = seen.target.labels[tested]
        if not seen.target.separate and len(np.unique(labels, axis=0)) < 2:
            raise ValueError("expected rows of at least two classes in the test folds, got one: shuffle the folds")
        rule = seen.learn(tested)
        above = rule(seen.scores[tested])
        warn_of_shortfall(seen.measure, labels, above, None if weight is None else weight[tested])
        return rule

    def _store(self, members: list[Member], fits: dict[str, CrossFit], above: Vector) -> None:
        """Set the other fitted attributes; ``above`` are the scores (n, L) out of fold less the thresholds."""
        weights = np.array([stack.weights for stack in self._rule.stacks])
        used = np.max([stack.coef for stack in self._rule.stacks], axis=0) > 0
        self._members = [member._replace(estimator=None) for member in members]
        self.classes_, self.threshold_ = np.sort(self._reader.classes), self._rule.thresholds
        self.estimators_ = [fits[m.name].models if use else [] for m, use in zip(members, used, strict=True)]
        single = self._reader.kind == "binary"
        self.weights_ = weights[0] if single else weights
        self.oof_scores_ = self._turn * above[:, 0] if single else above

    def _report(
        self,
        seen: OutOfFold,
        parts: list[Rows],
        members: list[Member],
        fits: dict[str, CrossFit],
        rule: Rule,
        seed: int,
        trained: float,
    ) -> dict[str, Any]:
        """What the ensemble and each of its members are worth on other data, and what they cost."""
        weights = np.mean([stack.weights for stack in rule.stacks], axis=0)
        every = {
            member.name: {
                **seen.estimate(parts, [m], seed, trained)._asdict(),
                "weight": float(weights[m]),
                "cpu_seconds": fits[member.name].cpu_seconds,
            }
            for m, member in enumerate(members)
        }
        return {
            "measure": _name(self.measure, seen.measure),
            **seen.estimate(parts, range(len(members)), seed, trained)._asdict(),
            "cpu_seconds": sum(own["cpu_seconds"] for own in every.values()),
            "members": every,
        }

    def _warn_of_positive(self, measure: Measure, target: Target) -> None:
        if target.kind == "binary" and self.pos_label is None:
            doubt = doubtful_positive(measure, self.classes_.tolist(), target.labels[:, 0])
            if doubt:
                warn(f"{doubt}; to make that one positive, set pos_label={str(self.classes_[0])!r}")

    @property
    def named_estimators_(self) -> Bunch:
        """The models of each member by its name."""
        check_is_fitted(self)
        return Bunch(**{member.name: own for member, own in zip(self._members, self.estimators_, strict=True)})

    def _log_odds(self, X: Any) -> Vector:
        """Scores (n, L) before the threshold."""
        check_is_fitted(self)
        X = checked_table(self, X, reset=False, frames=self._views.table is not None)
        n = _num_samples(X)
        chunks = [slice(first, first + CHUNK) for first in range(0, n, CHUNK)]  # encoded rows may be large
        return np.concatenate([self._chunk_log_odds(_safe_indexing(X, chunk) if n > CHUNK else X) for chunk in chunks])

    def _chunk_log_odds(self, X: Any) -> Vector:
        used = [(m, member) for m, member in enumerate(self._members) if self.estimators_[m]]
        views = self._views(X, {member.view for _, member in used})
        jobs = [(m, member, models) for m, member in used for models in self.estimators_[m]]
        blocks = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._reader.read)(member.name, models, views[member.view]) for _, member, models in jobs
        )
        total = np.tile([stack.intercept for stack in self._rule.stacks], (_num_samples(X), 1))
        for (m, _, _), block in zip(jobs, blocks, strict=True):
            total += block * [stack.coef[m] / len(self.estimators_[m]) for stack in self._rule.stacks]
        return total

    def decision_function(self, X: Any) -> Vector:
        """Log-odds less the threshold: (n,) for two classes, (n, L) otherwise. Positive means the second class."""
        scores = self._log_odds(X) - self.threshold_
        return self._turn * scores[:, 0] if self._reader.kind == "binary" else scores

    @property
    def _turn(self) -> float:
        """-1 if the first class is positive, else 1: scores are for the second class, as in scikit-learn."""
        return 1.0 if self._reader.kind != "binary" or self._reader.classes[1] == self.classes_[1] else -1.0

    def predict_proba(self, X: Any) -> Vector:
        """Calibrated probabilities: of the classes, or of each label of an indicator matrix, (n, L).

        `predict` does not return the more probable class: it compares with the threshold of the measure.
        """
        p: Vector = expit(self._log_odds(X))
        if self._reader.kind == "binary":
            return np.column_stack([1 - p, p][:: int(self._turn)])
        return p if self._reader.separate else p / p.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Array:
        """Classes, or a matrix (n, L) of 0 and 1 for an indicator matrix, by the threshold of the measure."""
        scores = self.decision_function(X)
        return called(self._turn * scores, self._reader.classes, several=self._reader.separate)

    def predict_top_k(self, X: Any, k: int) -> Array:
        """Labels with exactly ``k`` examples of this batch positive: those with the highest scores.

        For two classes, or for every column of a label indicator matrix. Of equal scores the first in X count.
        """
        scores = self.decision_function(X)
        return called_top_k(self._turn * scores, k, self._reader.classes, several=self._reader.separate)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The measure itself on (X, y), higher is better; see `MeasureSVC.score`."""
        scores, y = self.decision_function(X), np.asarray(dense(y))
        check_truth(y, scores, None if self._reader.separate else self.classes_)
        reader, measure = self._reader, on_batch(get_measure(self.measure), self._size, scores, sample_weight)
        return judge(measure, self._turn * scores, y, reader.classes, sample_weight, several=reader.separate)

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata this estimator, the splitter, and the members in `fit` request."""
        router = MetadataRouter(owner=self.__class__.__name__).add_self_request(self)
        splitter = StratifiedGroupKFold() if is_whole(self.cv) else check_cv(self.cv)  # groups: see `make_splits`
        router.add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        for name, member in self.estimators if isinstance(self.estimators, (list, tuple)) else ():
            router.add(**{name: member}, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.classifier_tags.multi_label = True
        return tags


def _name(given: Any, measure: Measure) -> str:
    """The name of a measure, as the user gave it."""
    return given if isinstance(given, str) else measure.name
