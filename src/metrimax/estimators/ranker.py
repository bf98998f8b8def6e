"""`MeasureRanker`: linear rankings trained for the measure they are judged by, query by query."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from metrimax._validation import check_flag, refuse_missing, warn
from metrimax.designs import as_design, is_design
from metrimax.estimators._base import CertifiedEstimator, labels_of, trained_with
from metrimax.estimators._checks import OPTIONS
from metrimax.estimators._targets import check_weight
from metrimax.io.checkpoints import Checkpoint, as_checkpoint
from metrimax.measure import NDCG, REGISTRY, Grouped, PrecisionAtK, RecallAtK, canonical, ranking_measure
from metrimax.measure.base_loss import Losses
from metrimax.protocols import Callback, Design, Measure, Solver, Vector
from metrimax.training.defaults import RANKING_C, even_losses
from metrimax.training.label import Training, fit_label, intercept_scaling
from metrimax.training.lockstep import run


class MeasureRanker(CertifiedEstimator):
    """Linear ranking trained for the mean of a measure over query groups.

    Minimises ``J(w) = 1/2 |w|^2 + C (n R(w) + sum_i log(1 + exp(-y_i s_i)))``. R is the mean over the groups of a
    convex upper bound of the loss of the ranking by ``s = X w``: see `metrimax.MeasureSVC` and docs/measures.md. R
    alone may learn nothing; the logistic loss learns from all examples which of them are relevant. Every solution comes
    with a lower bound on the optimum. ``MeasureRanker(measure, C=C, hinge=0)`` has the risk alone, ``C kappa n R``.

    Parameters
    ----------
    measure : str or measure, default="ndcg"
        "ndcg", "average_precision", "precision_at_k", "recall_at_k", "roc_area", "partial_auc", "prbep", or a measure
        of rankings with parameters such as ``NDCG(5, gain="linear")`` (`metrimax.measure`).
    k : int or None, default=10
        Number of ranks that "ndcg", "precision_at_k" and "recall_at_k" look at; in "ndcg@5" it is 5. None means all
        ranks for "ndcg", the number of positives for "precision_at_k", and twice that for "recall_at_k". The other
        measures have no k.
    C : float, default=1.0
        Weight of one margin violation. `MeasureRankerCV` chooses C.
    hinge, logistic, risk, balanced : float or None, float or None, float, "even" or None, and bool
        The losses, as for `metrimax.MeasureSVC`; grades above 0 are positive in base losses. If neither hinge nor
        logistic is given, logistic is 1 and None means "even" for the risk. Otherwise None means 0 for a base loss and
        1 for the risk. With the solver "dual_cd" the risk alone is the default.
    solver, tol, max_iter, n_threads, verbose, callback, checkpoint, certificate
        As for `metrimax.MeasureSVC`.

    Attributes
    ----------
    coef_ : ndarray (p,)
    trained_intercept_ : float
        The intercept of the base losses; 0 without them. It shifts all scores alike, so `decision_function` omits it.
    trained_with_ : dict of C and the losses
    objective_, dual_bound_, gap_, price_ : float
        J at the solution, a proven lower bound of the least J, ``(objective_ - dual_bound_) / (C kappa n)``, and kappa.
    n_iter_, n_support_ : int
    n_passes_ : float
        Passes over the data: the number of rows read (see `Record`) divided by n.
    status_ : Status
        How the fit ended; its value is a sentence.
    history_ : list of Record
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    For NDCG y holds grades from 0 up. For the other measures y > 0 is positive. Groups whose labels do not vary are
    left out of the risk. All other groups count alike in it. ``sample_weight`` means repetition within the group; NDCG
    and the measures at k need whole numbers.

    With the risk alone, w = 0 may be optimal for a small k and large groups whose grades overlap; `status_` says so.
    Then train for all ranks (``NDCG(None)``), for "roc_area", or with a base loss: docs/measures.md says why.

    References
    ----------
    Yue et al. (2007); Chakrabarti et al. (2008); Narasimhan & Agarwal (2013); Joachims (2005).

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax import MeasureRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4))
    >>> groups = np.repeat(np.arange(30), 20)
    >>> y = np.clip(np.round(X @ [1, -1, 0.5, 0] + rng.normal(size=600)), 0, 4)
    >>> ranker = MeasureRanker("ndcg", k=5, C=10.0).fit(X, y, groups=groups)
    >>> ranker.gap_ <= 1e-3
    True
    >>> ranker.score(X, y, groups=groups) > 0.7
    True
    """

    def __init__(
        self,
        measure: str | Measure = "ndcg",
        *,
        k: int | None = 10,
        C: float = RANKING_C,
        hinge: float | None = None,
        logistic: float | None = None,
        risk: float | str | None = None,
        balanced: bool = False,
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        n_threads: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        certificate: bool = False,
    ) -> None:
        self.measure = measure
        self.k = k
        self.C = C
        self.hinge = hinge
        self.logistic = logistic
        self.risk = risk
        self.balanced = balanced
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_threads = n_threads
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.certificate = certificate

    def fit(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
    ) -> MeasureRanker:
        """Train on X (dense, sparse, or a design), labels y, and the group (query) of each example; None for one group.

        A dataset (`metrimax.open_dataset`) brings its labels and groups; any other X needs y.

        Parameters
        ----------
        X : ndarray, sparse matrix, data frame or design (n, p)
            The rows.
        y : array (n,)
            Grades, the higher the better; None for a dataset, which brings them.
        groups : array (n,) or None, default=None
            The query of each row; None for one group, or those that a dataset brings.
        sample_weight : array (n,) or None, default=None
            How often each row counts.
        qid : array (n,) or None, default=None
            Another name for ``groups``, as in XGBoost.
        group : array (number of groups,) or None, default=None
            The sizes of the groups, whose rows follow one another, as in LightGBM.

        Returns
        -------
        self
            The fitted estimator.
        """
        measure, solver, losses = self._measure(), self._solver(), self.losses()
        check_k(self.measure, self.k)
        checked, X, y = self._check_sample(X, y)
        y = _grades(y)
        weight = check_weight(sample_weight, y)
        grouped = _grouped(measure, _groups_of(X, groups, qid, group), y)
        checkpoint = as_checkpoint(self.checkpoint)
        training = Training(grouped, solver, self.tol, losses=losses, checkpoint=checkpoint, certificate=self._proven)
        self._train_and_store(checked, training, self.C, X, grouped.labels(y), weight)
        return self

    @property
    def _proven(self) -> bool:
        check_flag("certificate", self.certificate)
        return bool(self.certificate)

    def losses(self) -> Losses:
        """The losses that these parameters ask for."""
        check_flag("balanced", self.balanced)
        return even_losses(self.risk, self.hinge, self.logistic, self.balanced, sums=self._sums)

    def _train_and_store(
        self,
        checked: MeasureRanker,
        training: Training,
        C: float,
        X: Any,
        labels: npt.NDArray[Any],
        weight: Vector | None,
    ) -> None:
        """Train on all rows and set the fitted attributes."""
        scaling = intercept_scaling(None, [training.losses]) if training.losses.base else None
        design = as_design(self._features(X), intercept_scaling=scaling)
        with self._progress(training.measure, design) as callback:
            steps = fit_label(replace(training, callback=callback), design, labels, weight, C)
            (fitted,) = run(design, [steps])
        if training.checkpoint is not None:
            training.checkpoint.clear()
        self._renew(checked)
        w = fitted.solution.w
        self.coef_, self.trained_intercept_ = (w, 0.0) if scaling is None else (w[:-1], float(w[-1] * scaling))
        self.trained_with_ = trained_with(training, C, scaling)
        self._store_certificate([fitted], single=True)
        self._warn([fitted.solution])

    def _features(self, X: Any, n_threads: int | None = None) -> Design:
        return as_design(X, n_threads=self.n_threads if n_threads is None else n_threads)

    def stated(self, X: Any, y: Any, groups: Any) -> tuple[Grouped, npt.NDArray[Any], Design]:
        """Measure, labels and design of a sample, as in `fit`."""
        y = _grades(labels_of(X, y))
        grouped = _grouped(self._measure(), _groups_of(X, groups), y)
        assert isinstance(self.trained_with_, dict)  # it is fitted
        scaling = self.trained_with_["intercept_scaling"]
        design = as_design(self._features(self._check_rows(X)), intercept_scaling=scaling)
        return grouped, grouped.labels(y), design

    def _check_arrays(self, X: Any, y: Any) -> tuple[Any, Any]:
        made: tuple[Any, Any] = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, **OPTIONS)
        return made

    def decision_function(self, X: Any) -> Vector:
        """Scores (n,). The highest score is the first of its group.

        Parameters
        ----------
        X : ndarray, sparse matrix, data frame or design (n, p)
            The rows.

        Returns
        -------
        ndarray (n,)
            The scores.
        """
        check_is_fitted(self)
        return self._features(self._check_rows(X)).matvec(np.ascontiguousarray(self.coef_))

    def predict(self, X: Any) -> Vector:
        """The scores, as other rankers do.

        Parameters
        ----------
        X : ndarray, sparse matrix, data frame or design (n, p)
            The rows.

        Returns
        -------
        ndarray (n,)
            The scores.
        """
        return self.decision_function(X)

    def score(self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None) -> float:
        """The mean of the measure over the groups whose labels vary; a dataset brings its labels and groups.

        Parameters
        ----------
        X : ndarray, sparse matrix, data frame or design (n, p)
            The rows.
        y : array (n,)
            Grades, the higher the better; None for a dataset, which brings them.
        groups : array (n,) or None, default=None
            The query of each row; None for one group, or those that a dataset brings.
        sample_weight : array (n,) or None, default=None
            How often each row counts.

        Returns
        -------
        float
            The mean of the measure.
        """
        measure = self._scoring()
        scores = self.decision_function(X)
        y = _grades(labels_of(X, y))
        check_consistent_length(scores, y)
        grouped = _grouped(measure, _groups_of(X, groups), y)
        return grouped.score(grouped.labels(y), scores, check_weight(sample_weight, scores))

    def _scoring(self) -> Measure:
        """The measure of one group that `score` reports."""
        return self._measure()

    def _measure(self) -> Measure:
        """The measure of one group."""
        name, own = canonical(self.measure) if isinstance(self.measure, str) else ("", {})
        kind = REGISTRY.get(name)
        takes_k = not own and (kind is NDCG or (kind in (PrecisionAtK, RecallAtK) and self.k is not None))
        made = ranking_measure(self.measure, **({"k": self.k} if takes_k else {}))
        if isinstance(made, Grouped):
            raise ValueError(
                f"expected the measure of one group, got Grouped, {made.name}: give {made.measure!r}, and pass the "
                "groups to fit and score as groups=..."
            )
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def check_k(measure: Any, k: Any) -> None:
    """Raise if the name of the measure and the parameter give different k; 10 is the default."""
    own = canonical(measure)[1] if isinstance(measure, str) else {}
    if "k" in own and k not in (None, 10, own["k"]):
        raise ValueError(f"expected k once, got measure={measure!r} and k={k!r}: leave one of them out")


def _groups_of(X: Any, groups: Any, qid: Any = None, group: Any = None) -> Any:
    """The group of each row, from the one of the three parameters that is given, or else from a dataset."""
    given = {name: value for name, value in (("groups", groups), ("qid", qid), ("group", group)) if value is not None}
    if len(given) > 1:
        raise ValueError(f"expected the groups once, got {' and '.join(given)}: give one of them")
    if qid is not None:
        groups = qid
    if group is not None:
        sizes = np.asarray(group)
        if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any() or sizes.sum() != X.shape[0]:
            raise ValueError(
                f"expected group as sizes of groups, whole numbers that add up to the {X.shape[0]} rows, got "
                f"{group!r:.100}: give the group of each row as groups="
            )
        groups = np.repeat(np.arange(len(sizes)), sizes)
    return getattr(X, "groups", None) if groups is None and is_design(X) else groups


def _grouped(measure: Measure, groups: Any, y: npt.NDArray[Any]) -> Grouped:
    if groups is None:
        warn(
            "no groups are given, so all rows are ranked as one group: give groups=, the query of each row; searches "
            "and pipelines pass them on by metadata routing only"
        )
        return Grouped(measure, np.zeros(len(y), dtype=int))
    refuse_missing(groups, "groups", "the group of each example", "give these examples a group, or drop them")
    if isinstance(groups, str):
        raise ValueError(f"expected groups as the group of each example, got {groups!r}: give the column itself")
    groups = np.asarray(groups)
    if groups.shape not in ((len(y),), (len(y), 1)):
        sizes = groups.dtype.kind in "iu" and groups.sum() == len(y)
        raise ValueError(
            f"expected groups with {len(y)} entries, the group of each example, got shape {groups.shape}"
            + (": make them from sizes by np.repeat(np.arange(len(sizes)), sizes)" if sizes else "")
        )
    return Grouped(measure, groups.ravel())


def _grades(y: Any) -> Vector:
    """The labels as finite numbers."""
    y = column_or_1d(y)
    try:
        made: Vector = y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"expected y as numbers, grades from 0 up or numbers above 0 for positives, got {y.dtype} ({error}): "
            "encode the labels as numbers"
        ) from error
    assert_all_finite(made, input_name="y")
    return made
