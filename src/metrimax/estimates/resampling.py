"""A table of estimators of performance: hold-out, cross-validation, bootstrap, VC bound, xi-alpha, leave-one-out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import column_or_1d

from metrimax._validation import check_whole
from metrimax.estimates.dual_view import dual_view
from metrimax.estimates.estimate import Estimate
from metrimax.estimates.leave_one_out import leave_one_out
from metrimax.estimates.xi_alpha import xi_alpha
from metrimax.protocols import Labels

MEASURES = ("error", "recall", "precision", "f1")

Row = dict[str, Any]


def estimator_table(
    model: Any,
    X: Any,
    y: Any,
    *,
    k: int = 10,
    n_bootstrap: int = 50,
    holdout: float = 1 / 3,
    confidence: float = 0.95,
    exact: bool = True,
    random_state: int | None = 0,
) -> list[Row]:
    """Estimates of error, recall, precision and F1 of a fitted SVM by every method, one row each.

    Parameters
    ----------
    model : a model that `xi_alpha` accepts
        Fitted on X and y. Its clones are trained on parts of them.
    X : array or sparse matrix (n, p)
        The sample.
    y : array (n,)
        Two classes; the greater one is positive.
    k : int
        Folds of the cross-validation.
    n_bootstrap : int
        Bootstrap samples.
    holdout : float
        Share of the sample that the hold-out tests on.
    confidence : float
        The probability with which the bounds of Hoeffding and VC hold.
    exact : bool
        Whether to compute leave-one-out, too.
    random_state : int or None
        The random state of hold-out, folds and bootstrap.

    Returns
    -------
    list of dict
        With the keys ``estimator``, ``error``, ``recall``, ``precision``, ``f1`` and ``seconds``, for
        ``pandas.DataFrame``. nan where a method does not apply.

    Notes
    -----
    The bootstrap corrects the training error by an estimate of its bias. A model is trained on each bootstrap sample;
    the bias is the mean of its error on the sample minus its error on the bootstrap sample. The other measures are
    corrected in the same way.
    The VC bound ``err + 2 sqrt((d (ln(2n/d) + 1) - ln(eta/4)) / n)`` applies to hyperplanes with fewer features than
    examples (d counts the features that occur, and the intercept). Above 1 it is shown, although it says nothing.
    Hoeffding's bound ``err + sqrt(ln(2/eta) / (2k))`` holds for the model of the hold-out, trained on fewer examples,
    with its error on the k others, whatever the data and the learner.

    References
    ----------
    Joachims (2000), section 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from metrimax import MeasureSVC
    >>> from metrimax.estimates.resampling import estimator_table
    >>> X, species = load_iris(return_X_y=True)
    >>> X, y = X[50:], species[50:] == 2
    >>> model = MeasureSVC("error", C=1.0, solver="dual_cd").fit(X, y)
    >>> rows = estimator_table(model, X, y, k=3, n_bootstrap=2, exact=False)
    >>> sorted(rows[0])
    ['error', 'estimator', 'f1', 'precision', 'recall', 'seconds']
    """
    check_whole("n_bootstrap", n_bootstrap)
    X = X if hasattr(X, "shape") else np.asarray(X)
    y = column_or_1d(y)
    dual_view(model, X, y)  # raises, before any training, for models without such estimates
    own = _Estimators(model, X, y, np.asarray(y == model.classes_[1]), holdout, confidence, random_state)
    methods: dict[str, Callable[[], Row]] = {
        "training error": lambda: _judge(model, X, y).as_dict(),
        f"hold-out, {holdout:.0%}": own.hold_out,
        f"Hoeffding bound of the hold-out, {confidence:.0%}": own.hoeffding,
        f"{k}-fold cross-validation": lambda: own.cross_validate(k),
        f"bootstrap, {n_bootstrap} samples": lambda: own.bootstrap(n_bootstrap),
        f"VC bound, {confidence:.0%}": own.vc_bound,
        "xi-alpha, rho = 1": lambda: xi_alpha(model, X, y).as_dict(),
        "xi-alpha, rho = 2": lambda: xi_alpha(model, X, y, rho=2).as_dict(),
    }
    if exact:
        methods["leave-one-out"] = lambda: leave_one_out(model, X, y).as_dict()
    table = []
    for name, method in methods.items():
        began = time.perf_counter()
        estimates = method()
        table.append({"estimator": name} | estimates | {"seconds": time.perf_counter() - began})
    return table


@dataclass
class _Estimators:
    """A fitted model and its sample, with one method for each way to estimate how well it does."""

    model: Any
    X: Any
    y: Any
    truth: Labels
    holdout: float
    confidence: float
    random_state: int | None

    def hold_out(self) -> Row:
        train, test = self._halves()
        return _judge(self._trained(train), *_safe_split(self.model, self.X, self.y, test, train)).as_dict()

    def hoeffding(self) -> Row:
        return _bound(self.hold_out()["error"] + hoeffding_deviation(len(self._halves()[1]), self.confidence))

    def cross_validate(self, k: int) -> Row:
        mistakes = np.zeros(len(self.truth), dtype=bool)
        for train, test in StratifiedKFold(k, shuffle=True, random_state=self.random_state).split(self.X, self.truth):
            X_test, y_test = _safe_split(self.model, self.X, self.y, test, train)
            mistakes[test] = self._trained(train).predict(X_test) != y_test
        return Estimate.count(mistakes, self.truth).as_dict()

    def bootstrap(self, number: int) -> Row:
        n, rng = len(self.truth), np.random.default_rng(self.random_state)
        biases: list[list[float]] = []
        while len(biases) < number:
            sample = rng.integers(0, n, n)
            if self.truth[sample].all() or not self.truth[sample].any():
                continue
            fitted = self._trained(sample)
            parts = (_safe_split(self.model, self.X, self.y, part, sample) for part in (np.arange(n), sample))
            whole, inside = (_judge(fitted, *part).as_dict() for part in parts)
            biases.append([whole[name] - inside[name] for name in MEASURES])
        apparent = _judge(self.model, self.X, self.y).as_dict()
        return {name: apparent[name] + bias for name, bias in zip(MEASURES, np.mean(biases, axis=0), strict=True)}

    def vc_bound(self) -> Row:
        n, d = len(self.truth), _dimension(self.model, self.X)
        if not d < n:
            return _bound(np.nan)
        deviation = (d * (np.log(2 * n / d) + 1) - np.log((1 - self.confidence) / 4)) / n
        return _bound(_judge(self.model, self.X, self.y).error + 2 * float(np.sqrt(deviation)))

    def _trained(self, part: Any) -> Any:
        return clone(self.model).fit(*_safe_split(self.model, self.X, self.y, part))

    def _halves(self) -> Any:
        """The examples to train on, and those held out."""
        every = np.arange(len(self.truth))
        return train_test_split(every, test_size=self.holdout, stratify=self.truth, random_state=self.random_state)


def _bound(error: float) -> Row:
    """A bound of the error; of the other measures nothing is known."""
    return dict.fromkeys(MEASURES, np.nan) | {"error": error}


def hoeffding_deviation(n_test: int, confidence: float) -> float:
    """By how much a hold-out error on so many examples is off at most, with this confidence, whatever the sample is.

    ``Pr(|err - estimate| > d) <= 2 exp(-2 n_test d^2)``: Joachims (2000), eq. (15).
    """
    return float(np.sqrt(np.log(2 / (1 - confidence)) / (2 * n_test)))


def _judge(model: Any, X: Any, y: Any) -> Estimate:
    return Estimate.count(model.predict(X) != y, np.asarray(y == model.classes_[1]))


def _dimension(model: Any, X: Any) -> float:
    """The VC dimension of the hyperplanes that the model chooses from; infinite for a kernel that is not linear."""
    if getattr(model, "kernel", "linear") != "linear":
        return np.inf
    occurs = np.asarray(abs(X).sum(axis=0)).ravel() > 0
    return int(occurs.sum()) + int(getattr(model, "fit_intercept", True))
