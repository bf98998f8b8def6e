"""`MeasureRankerCV`: rankings whose losses and C are chosen on groups held out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv

from metrimax._validation import check_grid, is_whole
from metrimax.designs import is_design
from metrimax.estimators._base import check_standard_errors, names_losses
from metrimax.estimators._folds import FoldedSample, of_rows, workers_of
from metrimax.estimators._targets import check_weight
from metrimax.estimators.ranker import MeasureRanker, _grades, _grouped, _groups_of, check_k
from metrimax.io.checkpoints import Checkpoint, as_checkpoint
from metrimax.measure import Grouped
from metrimax.protocols import Callback, Labels, Measure, Rows, Solver, Vector
from metrimax.training.choose import ByFolds, explore, results
from metrimax.training.defaults import RANKING_GRID, RANKINGS, RISK_ALONE, Family
from metrimax.training.folds import Fold, spread
from metrimax.training.label import Training, intercept_scaling


class MeasureRankerCV(MeasureRanker):
    """`MeasureRanker` with the losses and the C that do best on groups held out.

    The candidates are the measure's risk alone, the sum of the risk and a logistic loss, and a balanced logistic loss
    alone, each with every C. All are trained on the same folds of whole groups. The measure itself chooses, by its mean
    over the groups held out. The ranking is then trained on all rows with the best candidate.

    Parameters
    ----------
    measure, k
        What to train for, as for `MeasureRanker`.
    Cs : sequence of float or None, default=None
        The grid; None means 0.0003, 0.003, 0.03, 0.3, 3.
    cv : int, splitter or iterable, default=5
        A number of random folds of whole groups, or of rows if there are no groups. A splitter of scikit-learn gets the
        groups. It must keep the rows of a group together, as `GroupKFold` does.
    scoring : str, measure or None, default=None
        The measure that chooses and that `score` reports; None for the one trained for.
    standard_errors, extend, n_jobs
        As for `metrimax.MeasureSVCCV`.
    hinge, logistic, risk, balanced
        As for `MeasureRanker`. If one of them is given, all candidates have these losses. With ``hinge=0`` that is the
        risk alone, and only C is chosen.
    solver, tol, max_iter, n_threads, verbose, callback, checkpoint, certificate
        As for `metrimax.MeasureSVC`.

    Attributes
    ----------
    C_ : float
        The best C.
    trained_with_ : dict
        ``C``, ``risk``, ``hinge``, ``logistic`` and ``balanced`` of the best candidate.
    Cs_ : ndarray
        The grid, with its extensions.
    best_score_ : float
        The mean of the measure over the groups held out, for the best candidate.
    cv_results_ : dict of ndarrays
        One row per candidate, as for `metrimax.MeasureSVCCV`.
    coef_, ...
        As for `MeasureRanker`, trained on all rows with the best candidate.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax import MeasureRankerCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4))
    >>> groups = np.repeat(np.arange(30), 20)
    >>> y = np.clip(np.round(X @ [1, -1, 0.5, 0] + rng.normal(size=600)), 0, 4)
    >>> ranker = MeasureRankerCV("ndcg", k=5, Cs=[0.01, 1.0], cv=3).fit(X, y, groups=groups)
    >>> ranker.C_ in (0.01, 1.0), len(ranker.cv_results_["pooled_test_score"])  # 2 C, 3 losses
    (True, 6)
    """

    def __init__(
        self,
        measure: str | Measure = "ndcg",
        *,
        k: int | None = 10,
        Cs: Sequence[float] | Vector | None = None,
        cv: Any = 5,
        scoring: str | Measure | None = None,
        standard_errors: float | None = None,
        extend: bool = False,
        n_jobs: int | None = None,
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
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.standard_errors = standard_errors
        self.extend = extend
        self.n_jobs = n_jobs
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
    ) -> MeasureRankerCV:
        """Choose losses and C on folds of whole groups, then train on X, y and groups with them.

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
        grid = check_grid(RANKING_GRID if self.Cs is None else self.Cs)
        check_standard_errors(self.standard_errors)
        measure, scoring, candidates = self._measure(), self._scoring(), self._family()
        solver, checkpoint = self.plain()._solver(), as_checkpoint(self.checkpoint)
        check_k(self.measure, self.k)
        checked, X, y = self._check_sample(X, y)
        y = _grades(y)
        weight = check_weight(sample_weight, y)
        groups = _groups_of(X, groups, qid, group)
        grouped = _grouped(measure, groups, y)
        training = Training(grouped, solver, self.tol, losses=candidates.losses[0])
        codes = np.zeros(len(y), dtype=int) if groups is None else np.asarray(groups).ravel()
        labels = grouped.labels(y)[:, np.newaxis]
        folds = _split(self.cv, labels[:, 0], groups if groups is None else codes, weight)
        base = any(own.base for own in candidates.losses)
        scaling = intercept_scaling(None, candidates.losses[:1]) if base else None
        workers = workers_of(self.n_jobs, X)
        sample = FoldedQueries(
            owner=self,
            training=training,
            measure=scoring,
            X=X,
            y=y,
            labels=labels,
            given=weight,
            weight=weight,
            folds=folds,
            scaling=scaling,
            one_thread=workers > 1,
            checkpoint=checkpoint,
            groups=codes,
        )
        by = ByFolds(sample, candidates, self.standard_errors or 0.0, workers)
        rows = explore(by.rows, grid, extend=self.extend)
        (chosen,) = by.choose()
        self._warn_of_gaps(by.solutions, "fits that choose C")
        training = replace(chosen.training(training, checkpoint), certificate=self._proven)
        self._train_and_store(checked, training, chosen.C, X, labels[:, 0], weight)
        self.C_, self.best_score_ = chosen.C, chosen.score
        self.cv_results_ = results(rows)
        self.Cs_ = np.unique(self.cv_results_["param_C"])
        return self

    def plain(self, **changes: Any) -> MeasureRanker:
        """A `MeasureRanker` with the parameters that both have; ``changes`` give the others, such as C."""
        names = MeasureRanker().get_params(deep=False).keys() & self.get_params(deep=False).keys()
        return MeasureRanker(**({name: getattr(self, name) for name in names} | changes))

    def _family(self) -> Family:
        """The candidates: those that the parameters leave open, and that the solver can train."""
        if names_losses(self):
            return RISK_ALONE.given(self.losses(), None)
        return RANKINGS if self._sums else RISK_ALONE

    def _scoring(self) -> Measure:
        return self._measure() if self.scoring is None else MeasureRanker(self.scoring, k=self.k)._measure()


@dataclass(frozen=True, kw_only=True)
class FoldedQueries(FoldedSample):
    """A sample with folds of whole groups; ``groups`` (n,) has the group of every row."""

    groups: npt.NDArray[Any]

    def scoring(self, rows: Rows) -> Measure:
        return self._grouped(self.measure, rows)

    def _training(self, k: int) -> Training:
        """The training of one fold. Its groups are those of all rows if the rows held out stay in the design."""
        if is_design(self.X):
            return self.training
        whole = self.training.measure
        assert isinstance(whole, Grouped)
        return replace(self.training, measure=self._grouped(whole.measure, self.folds[k].train))

    def _grouped(self, measure: Measure, rows: Rows) -> Grouped:
        return Grouped(measure, self.groups[rows])

    def _weight_of(self, train: Rows) -> Vector | None:
        return of_rows(self.given, train)


def _split(cv: Any, y: Labels | Vector, groups: npt.NDArray[Any] | None, weight: Vector | None) -> list[Fold]:
    """Folds of whole groups. Raise unless the labels of some group vary in each training part and each test part."""
    if is_whole(cv):
        number = len(y) if groups is None else len(np.unique(groups))
        if not 2 <= cv <= number:
            what = "rows" if groups is None else "groups"
            raise ValueError(f"expected cv from 2 to the number of {what}, {number}, got {cv}")
        folds = spread((y > 0)[:, np.newaxis], int(cv), 0, groups)
    else:
        folds = [Fold(*rows) for rows in check_cv(cv, y).split(np.zeros(len(y)), y, groups)]
    if not folds:
        raise ValueError(f"expected cv with at least one split, got none from {cv!r}")
    one = np.zeros(len(y), dtype=int)
    codes = one if groups is None else np.unique(groups, return_inverse=True)[1]
    used = np.ones(len(y), dtype=bool) if weight is None else weight > 0
    for k, fold in enumerate(folds):
        if groups is not None and np.intersect1d(codes[fold.train], codes[fold.test]).size:
            raise ValueError(
                f"fold {k}: expected every group in training or test, got groups in both: use cv=GroupKFold()"
            )
        for rows, to in zip(fold, ("train", "test"), strict=True):
            if not _varies(y[rows][used[rows]], codes[rows][used[rows]]):
                raise ValueError(
                    f"fold {k}: expected a group with different labels to {to} on, got none: choose fewer folds"
                )
    return folds


def _varies(y: Labels | Vector, codes: npt.NDArray[np.intp]) -> bool:
    """Whether the labels of any group vary."""
    order = np.lexsort((y, codes))
    same = codes[order][1:] == codes[order][:-1]
    return bool((same & (y[order][1:] != y[order][:-1])).any())
