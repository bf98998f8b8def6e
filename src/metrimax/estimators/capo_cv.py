"""`CAPOClassifierCV`: losses, C, B and threshold of an adaptation, chosen on the outputs of one set of folds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import _safe_split

from metrimax._validation import check_flag, check_grid, check_whole
from metrimax.designs import as_design
from metrimax.estimators._auxiliary import AuxiliaryOutputs, Choice, best, folds_of
from metrimax.estimators._base import names_losses
from metrimax.estimators._folds import FoldedSample
from metrimax.estimators.capo import CAPOClassifier
from metrimax.measure import get_measure
from metrimax.protocols import Callback, Measure, Vector
from metrimax.training.choose import ByFolds, explore, mean_score, results
from metrimax.training.defaults import GRID, RISK_ALONE, Family, family
from metrimax.training.folds import Fold, FoldData
from metrimax.training.label import Training

B_GRID: Vector = np.array([0.1, 1.0, 10.0])
"""The values of B among which `CAPOClassifierCV` chooses."""


class CAPOClassifierCV(CAPOClassifier):
    """`CAPOClassifier` with the losses, C, B, threshold and auxiliaries that do best.

    Each auxiliary is trained once per fold, whatever the size of the grid, and once on all rows. The outputs on the
    rows held out are the data of all candidates. For each fold, a candidate is trained on the outputs of the other
    rows, and the measure judges it on the outputs of the fold. The measure chooses as for `metrimax.MeasureSVCCV`, with
    one B for all labels.

    Parameters
    ----------
    estimators, measure
        As for `CAPOClassifier`.
    Cs, Bs : sequence of float or None, default=None
        The grids; None is 0.003, 0.03, 0.3, 3, 30 for C and 0.1, 1, 10 for B.
    keep : int or None, default=None
        How many auxiliaries are adapted: those whose outputs on rows held out have the highest value of the measure.
        None for all. The paper chooses 5 of 50 in this way (Figure 2).
    delta, outputs, prefit
        As for `CAPOClassifier`; ``outputs=None`` is "score".
    cv : int or splitter, default=5
        The folds, for the auxiliaries and for the choice. Every row must be in one test fold.
    extend : bool, default=False
        Whether to extend the grid of C as for `metrimax.MeasureSVCCV`, for each B.
    hinge, logistic, risk, balanced, threshold
        As for `metrimax.MeasureSVCCV`: those that are not given are chosen.
    gamma, degree, coef0, cache_size, n_components, random_state
        Of the kernel of the delta function, as for `metrimax.MeasureSVC`.
    solver, tol, max_iter, fit_intercept, intercept_scaling, class_weight, pos_label, n_threads, verbose, callback
        As for `metrimax.MeasureSVC`.

    Attributes
    ----------
    C_, B_ : float, or ndarray (L,) for C with several labels
        What was chosen.
    trained_with_ : dict, or list of dict
        C, B, the losses and the rule of the threshold.
    best_score_ : float
        The measure on the rows held out with what was chosen, the mean over labels.
    cv_results_ : dict of ndarrays
        One row per candidate as for `metrimax.MeasureSVCCV`, with ``param_B``.
    estimators_, named_estimators_, aux_weights_, report_, ...
        As for `CAPOClassifier`, of the auxiliaries that are adapted.

    Notes
    -----
    While the candidates are compared, the outputs of the training rows come from auxiliaries that were trained on rows
    of the test fold. This is the same for all candidates. But it makes `best_score_` a little too high, as the choice
    itself does.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from metrimax import CAPOClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = (X**2).sum(axis=1) + 0.3 * rng.normal(size=400) > 3
    >>> both = [("tree", DecisionTreeClassifier(max_depth=3, random_state=0)), ("bayes", GaussianNB())]
    >>> model = CAPOClassifierCV(both, "f1", Cs=[0.1, 1.0], Bs=[1.0], keep=1, cv=3).fit(X, y)
    >>> len(model.estimators_), len(model.cv_results_["param_C"])  # 2 C, 2 losses, 2 thresholds
    (1, 8)
    """

    aux_weight = "learned"
    B = C = 1.0  # only for the checks of the base class: both are chosen

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        measure: str | Measure | Callable[..., Any] = "f1",
        *,
        Cs: Sequence[float] | Vector | None = None,
        Bs: Sequence[float] | Vector | None = None,
        keep: int | None = None,
        delta: str | Callable[..., Any] | None = "linear",
        outputs: str | None = None,
        prefit: bool = False,
        cv: Any = 5,
        extend: bool = False,
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
        random_state: Any = 0,
        solver: str = "auto",
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
        self.Cs = Cs
        self.Bs = Bs
        self.keep = keep
        self.delta = delta
        self.outputs = outputs
        self.prefit = prefit
        self.cv = cv
        self.extend = extend
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

    def _selected(
        self, measure: Measure, problem: AuxiliaryOutputs, blocks: list[Vector], weight: Vector | None
    ) -> list[int]:
        return best(measure, problem, blocks, weight, len(blocks) if self.keep is None else int(self.keep))

    def _choice(
        self, training: Training, X: Any, problem: AuxiliaryOutputs, F: Vector, folds: Any, weights: Any
    ) -> Choice:
        """Train all candidates on the out-of-fold outputs, and choose B for all labels and the rest for each label."""
        measure, labels = training.measure, problem.labels
        candidates = self._family(measure, together=training.kind == "multiclass" and not measure.ranks)
        Cs, Bs = (check_grid(own if given is None else given) for given, own in ((self.Cs, GRID), (self.Bs, B_GRID)))
        given, weight = weights
        parts = [Fold(*rows) for rows in folds or folds_of(self.cv, X, problem.y, problem.multilabel) or ()]
        if len(parts) < 2:
            raise ValueError(
                f"expected cv with at least 2 folds, and as many examples of every class, got cv={self.cv!r} and a "
                f"class of {np.unique(problem.y, return_counts=True)[1].min()}: choose another cv, or drop the class"
            )
        scaling = self._scaling(candidates.losses)
        sample = FoldedAdaptation(
            owner=self,
            training=training,
            measure=measure,
            X=X,
            y=problem.y,
            labels=labels,
            given=given,
            weight=weight,
            folds=parts,
            scaling=scaling,
            outputs=F,
        )
        found, rows = [], []
        for B in Bs:
            by = ByFolds(replace(sample, outputs=F / math.sqrt(B)), candidates)
            rows += [{"param_B": float(B)} | row for row in explore(by.rows, Cs, extend=self.extend)]
            found.append((float(B), by.choose()))
            self._warn_of_gaps(by.solutions, "fits that choose C")
        scores = [mean_score(chosen) for _, chosen in found]
        top = max(scores)
        B, chosen = min(
            (pair for pair, score in zip(found, scores, strict=True) if not score < top - 1e-6),
            key=lambda pair: abs(math.log(pair[0])),
        )
        return Choice(B, chosen, top, results(rows))

    def _store_choice(self, choice: Choice) -> None:
        Cs = [one.C for one in choice.chosen]
        self.C_ = np.array(Cs) if self._multilabel else Cs[0]
        self.B_, self.best_score_, self.cv_results_ = choice.B, choice.score, choice.results

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> CAPOClassifierCV:
        """Train the auxiliaries on folds and on all rows (unless ``prefit``), choose, and adapt them.

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
        super().fit(X, y, sample_weight, **params)
        return self

    def _family(self, measure: Measure, *, together: bool) -> Family:
        """The candidates: those that the parameters leave open, and that the solver can train."""
        left_open = family(measure, measure, together=together) if self._sums else RISK_ALONE
        return left_open.given(self.losses() if names_losses(self) else None, self.threshold)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag("extend", self.extend)
        if self.keep is not None:
            check_whole("keep", self.keep)
        self._rule(get_measure(self.measure), "binary")


@dataclass(frozen=True, kw_only=True)
class FoldedAdaptation(FoldedSample):
    """A sample with its folds, and the ``outputs`` (n, m) of auxiliaries on rows that they were not trained on."""

    outputs: Vector

    def _taken_out(self, k: int) -> FoldData:
        train, test = self.folds[k]
        outputs, owner = self.outputs, self.owner
        F, F_test = np.ascontiguousarray(outputs[train]), np.ascontiguousarray(outputs[test])
        m = F.shape[1]
        X_train, _ = _safe_split(owner, self.X, self.y, train)
        X_test, _ = _safe_split(owner, self.X, self.y, test, train)
        features = None if owner.delta is None else owner._features(X_train)
        rest = None if features is None else self._scores(features, X_test)
        design, _ = owner._augmented(features, F, self.labels.shape[1], 1.0)

        def outside(W: Vector) -> Vector:
            scores: Vector = F_test @ W[:m]
            if rest is not None:
                return scores + rest(np.ascontiguousarray(W[m:]))
            return scores if self.scaling is None else scores + self.scaling * W[-1]

        whole = as_design(design, intercept_scaling=self.scaling)
        return FoldData(test, self._training(k), whole, self.labels[train], self._weight_of(train), outside)
