"""`MeasureRanker`: linear rankings trained for the measure they are judged by, query by query."""

from __future__ import annotations

import os
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

from metrimax._validation import refuse_missing
from metrimax.designs import as_design, is_design
from metrimax.estimators._base import CertifiedEstimator, labels_of
from metrimax.estimators._checks import OPTIONS
from metrimax.estimators._targets import check_weight
from metrimax.io.checkpoints import Checkpoint, as_checkpoint
from metrimax.measure import NDCG, REGISTRY, Grouped, PrecisionAtK, RecallAtK, canonical, ranking_measure
from metrimax.protocols import Callback, Design, Measure, Vector
from metrimax.training.label import Training, fit_label
from metrimax.training.lockstep import run


class MeasureRanker(CertifiedEstimator):
    """Linear ranking trained for the mean of a measure over query groups.

    Minimises ``J(w) = 1/2 |w|^2 + C kappa n R(w)``, where R is the mean over the groups of a convex upper bound of the
    loss of the ranking by ``X w``: see `metrimax.MeasureSVC` and docs/measures.md. Every solution comes with a lower
    bound on the optimum.

    Parameters
    ----------
    measure : str or measure, default="ndcg"
        "ndcg", "average_precision", "precision_at_k", "recall_at_k", "roc_area", "partial_auc", "prbep", or a measure
        of rankings with parameters such as ``NDCG(5, gain="linear")`` (`metrimax.measure`).
    k : int or None, default=10
        Number of ranks that "ndcg", "precision_at_k" and "recall_at_k" look at; "ndcg@5" brings its own. None: all
        ranks for "ndcg", the number of positives for "precision_at_k" and twice that for "recall_at_k". The others
        have no k.
    C : float, default=1.0
        Weight of one margin violation.
    solver, tol, max_iter, n_threads, verbose, callback, checkpoint, certificate
        As for `metrimax.MeasureSVC`.

    Attributes
    ----------
    coef_ : ndarray (p,)
    objective_, dual_bound_, gap_, price_ : float
        J at the solution, a proven lower bound of the least J, ``(objective_ - dual_bound_) / (C kappa n)``, and kappa.
    n_iter_, n_support_ : int
    n_passes_ : float
        Passes over the data: rows read (see `Record`), in units of n.
    status_ : Status
        How the fit ended; its value is a sentence.
    history_ : list of Record
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    For NDCG y holds grades from 0 up; for the other measures what is above 0 is positive. There is no intercept: it
    would not change a ranking. Groups whose labels do not vary are left out. ``sample_weight`` means repetition within
    the group, and has to be whole for NDCG and the measures at k; all groups count alike.

    Where `status_` says that w = 0 is optimal, as it may with a small k and large groups whose grades overlap, train
    for all ranks (``NDCG(None)``) or for "roc_area": docs/measures.md says why.

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
        C: float = 1.0,
        solver: str = "auto",
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
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_threads = n_threads
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.certificate = certificate

    def fit(self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None) -> MeasureRanker:
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

        Returns
        -------
        self
            The fitted estimator.
        """
        measure = self._measure()
        solver = self._solver()
        checked, X, y = self._check_sample(X, y)
        y = _grades(y)
        weight = check_weight(sample_weight, y)
        grouped = _grouped(measure, _groups_of(X, groups), y)
        design = as_design(X, n_threads=self.n_threads)
        checkpoint = as_checkpoint(self.checkpoint)
        with self._progress(grouped, design) as callback:
            proven = bool(self.certificate)
            training = Training(grouped, solver, self.tol, callback=callback, checkpoint=checkpoint, certificate=proven)
            (fitted,) = run(design, [fit_label(training, design, grouped.labels(y), weight, self.C)])
        if checkpoint is not None:
            checkpoint.clear()
        self._renew(checked)
        self.coef_ = fitted.solution.w
        self._store_certificate([fitted], single=True)
        self._warn([fitted.solution])
        return self

    def stated(self, X: Any, y: Any, groups: Any) -> tuple[Grouped, npt.NDArray[Any], Design]:
        """The problem of a sample, with the columns that were there in `fit`: measure, labels and design."""
        y = _grades(labels_of(X, y))
        grouped = _grouped(self._measure(), _groups_of(X, groups), y)
        return grouped, grouped.labels(y), as_design(self._check_rows(X), n_threads=self.n_threads)

    def _check_arrays(self, X: Any, y: Any) -> tuple[Any, Any]:
        made: tuple[Any, Any] = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, **OPTIONS)
        return made

    def decision_function(self, X: Any) -> Vector:
        """Scores (n,): the higher, the earlier in its group.

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
        return as_design(self._check_rows(X), n_threads=self.n_threads).matvec(self.coef_)

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
        measure = self._measure()
        scores = self.decision_function(X)
        y = _grades(labels_of(X, y))
        check_consistent_length(scores, y)
        grouped = _grouped(measure, _groups_of(X, groups), y)
        return grouped.score(grouped.labels(y), scores, check_weight(sample_weight, scores))

    def _measure(self) -> Measure:
        """The measure of one group."""
        name, own = canonical(self.measure) if isinstance(self.measure, str) else ("", {})
        kind = REGISTRY.get(name)
        takes_k = not own and (kind is NDCG or (kind in (PrecisionAtK, RecallAtK) and self.k is not None))
        made = ranking_measure(self.measure, **({"k": self.k} if takes_k else {}))
        if isinstance(made, Grouped):
            raise ValueError(
                f"expected the measure of one group, got Grouped, {made.name}: give the measure in it, "
                f"{made.measure!r}, and the groups to fit and score, as groups=..."
            )
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _groups_of(X: Any, groups: Any) -> Any:
    """The groups of a dataset, unless others are given."""
    return getattr(X, "groups", None) if groups is None and is_design(X) else groups


def _grouped(measure: Measure, groups: Any, y: npt.NDArray[Any]) -> Grouped:
    if groups is None:
        return Grouped(measure, np.zeros(len(y), dtype=int))
    refuse_missing(groups, "groups", "the group of each example", "give these examples a group, or leave them out")
    groups = np.asarray(groups)
    if groups.shape not in ((len(y),), (len(y), 1)):
        sizes = groups.dtype.kind in "iu" and groups.sum() == len(y)
        raise ValueError(
            f"expected groups with {len(y)} entries, the group of each example, got shape {groups.shape}"
            + (": of sizes make them by np.repeat(np.arange(len(sizes)), sizes)" if sizes else "")
        )
    return Grouped(measure, groups.ravel())


def _grades(y: Any) -> Vector:
    """The labels as finite numbers."""
    y = column_or_1d(y)
    try:
        made: Vector = y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"expected y as numbers, grades from 0 up or what is above 0 for positives, got {y.dtype} ({error}): "
            "encode the labels as numbers"
        ) from error
    assert_all_finite(made, input_name="y")
    return made
