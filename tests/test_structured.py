"""The structural SVM: optima against independent solvers, the certificate, the contract of a problem, bad input."""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from metrimax import MeasureSVC
from metrimax.measure import get_measure
from metrimax.protocols import Status
from metrimax.structured import StructuredProblem, StructuredSVM
from metrimax.structured.training import StructuredRisk

SOLVERS = ["cached", "bundle", "cutting_plane"]
K = 4


class MultiClass(StructuredProblem):
    """One of four classes, with losses that differ."""

    price = np.array([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 3, 1, 0]]) / 2

    def joint_feature(self, x, y):
        return np.outer(np.arange(K) == y, x).ravel()

    def loss(self, y, z):
        return self.price[y, z]

    def loss_augmented_argmax(self, x, y, w):
        return int(np.argmax(w.reshape(K, -1) @ x + self.price[y]))

    def slack_rescaled_argmax(self, x, y, w):
        scores = w.reshape(K, -1) @ x
        return int(np.argmax(self.price[y] * (1 + scores - scores[y])))

    def argmax(self, x, w):
        return int(np.argmax(w.reshape(K, -1) @ x))


class SparseMultiClass(MultiClass):
    """The same with sparse features."""

    def joint_feature(self, x, y):
        return sparse.csr_array(super().joint_feature(x, y)[None])


class ZeroOne(MultiClass):
    price = 1.0 - np.eye(K)


class WholeSample(StructuredProblem):
    """A measure of a whole sample as a structured problem with one example: the form of Joachims (2005)."""

    def __init__(self, measure, y):
        self.measure = measure
        self.oracle = measure.oracle(y)

    def joint_feature(self, x, y):
        return x.T @ np.where(y, 0.5, -0.5) / len(y)

    def loss(self, y, z):
        return max(0.0, self.measure.loss(y, z))

    def loss_augmented_argmax(self, x, y, w):
        return y ^ (self.oracle(x @ w).slope != 0)

    def argmax(self, x, w):
        return x @ w > 0


def sample(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    X = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(K, d))[y]
    return np.column_stack((X, np.ones(n))), y


@cache
def optimum(C, rescaling):
    """The least objective on the sample, by a conic solver over all constraints."""
    X, y = sample()
    losses = MultiClass.price[y].ravel()
    onehot = np.eye(K)
    differences = np.array(
        [np.outer(onehot[z] - onehot[c], x).ravel() for x, c in zip(X, y, strict=True) for z in range(K)]
    )
    if rescaling == "slack":
        differences *= losses[:, None]
    w, slack = cp.Variable(differences.shape[1]), cp.Variable(len(y), nonneg=True)
    limits = [np.repeat(np.eye(len(y)), K, axis=0) @ slack >= losses + differences @ w]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + C * cp.sum(slack)), limits)
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_optimum_against_a_conic_solver(C, solver, rescaling):
    X, y = sample()
    svm = StructuredSVM(MultiClass(), C=C, tol=1e-5, solver=solver, rescaling=rescaling).fit(X, y)
    best = optimum(C, rescaling)
    assert svm.dual_bound_ <= best * (1 + 1e-6)
    assert svm.objective_ >= best * (1 - 1e-6)
    assert svm.gap_ == pytest.approx((svm.objective_ - svm.dual_bound_) / (C * len(y)))
    assert svm.gap_ <= 1e-5
    assert svm.status_ is Status.CONVERGED


def test_zero_one_loss_is_the_machine_of_crammer_and_singer():
    X, y = sample(n=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of scikit-learn may
        other = LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=100_000).fit(X, y)
    scores = X @ other.coef_.T
    slack = (scores - scores[np.arange(len(y)), y][:, None] + ZeroOne.price[y]).max(axis=1)
    objective = (other.coef_**2).sum() / 2 + slack.sum()
    svm = StructuredSVM(ZeroOne(), tol=1e-6).fit(X, y)
    assert svm.objective_ == pytest.approx(objective, rel=1e-4)
    np.testing.assert_allclose(svm.coef_, other.coef_.ravel(), atol=0.02)


@pytest.mark.parametrize("name", ["error", "f1", "balanced_error"])
def test_a_measure_is_a_structured_problem_of_one_example(name):
    rng = np.random.default_rng(1)
    y = rng.random(40) < 0.3
    X = rng.normal(size=(40, 3)) + y[:, None]
    svc = MeasureSVC(name, C=0.1, hinge=0, threshold="trained", tol=1e-6, fit_intercept=False).fit(X, y)
    C = 0.1 * svc.price_ * len(y)
    for solver in SOLVERS:
        svm = StructuredSVM(WholeSample(get_measure(name), y), C=C, tol=1e-6, solver=solver).fit([X], [y])
        assert svm.objective_ == pytest.approx(svc.objective_, rel=1e-4), solver


def test_the_risk_is_the_mean_slack_whatever_the_way():
    X, y = sample()
    svm = StructuredSVM(MultiClass()).fit(X, y)
    risk = StructuredRisk(MultiClass(), X, y)
    w = svm.coef_
    W = w.reshape(K, -1)
    slack = [(W @ x + MultiClass.price[c]).max() - W[c] @ x for x, c in zip(X, y, strict=True)]
    cut = risk(np.append(w, 0.0))
    assert cut.loss + cut.slope[:-1] @ w == pytest.approx(np.mean(slack))
    assert svm.objective_ == pytest.approx(w @ w / 2 + np.sum(slack))


def test_risk_bounds_the_loss_and_score_is_minus_the_loss():
    X, y = sample()
    svm = StructuredSVM(MultiClass()).fit(X, y)
    losses = [MultiClass.price[c, z] for c, z in zip(y, svm.predict(X), strict=True)]
    assert -svm.score(X, y) == pytest.approx(np.mean(losses))
    assert np.mean(losses) <= (svm.objective_ - svm.coef_ @ svm.coef_ / 2) / len(y)


def test_sparse_features_and_processes_change_nothing():
    X, y = sample(n=30)
    svm = StructuredSVM(MultiClass()).fit(X, y)
    for problem, n_jobs in ((SparseMultiClass(), None), (MultiClass(), 2)):
        other = StructuredSVM(problem, n_jobs=n_jobs).fit(X, y)
        np.testing.assert_allclose(other.coef_, svm.coef_, atol=1e-10)
        assert other.predict(X) == svm.predict(X)


def test_history_counts_passes_and_its_bound_only_rises():
    X, y = sample()
    seen = []
    for solver in SOLVERS:
        seen.clear()
        svm = StructuredSVM(MultiClass(), solver=solver, callback=seen.append).fit(X, y)
        assert svm.n_iter_ == len(svm.history_)
        assert [r.n_passes for r in svm.history_] == sorted({r.n_passes for r in svm.history_})
        assert svm.history_[-1].n_passes == svm.n_passes_
        assert all(a.bound <= b.bound and a.objective >= b.objective for a, b in pairwise(svm.history_))
        assert svm.history_[: len(seen)] == seen
        assert len(seen) == svm.n_iter_ - 1  # not after the last


def test_few_passes_by_caching():
    X, y = sample(n=80)
    passes = {name: StructuredSVM(MultiClass(), solver=name).fit(X, y).n_passes_ for name in SOLVERS}
    assert passes["cached"] * 3 < min(passes["bundle"], passes["cutting_plane"])


def test_statuses():
    X, y = sample()
    assert StructuredSVM(MultiClass(), C=1e-9).fit(X, y).status_ is Status.TRIVIAL
    stopped = StructuredSVM(MultiClass(), callback=lambda record: True).fit(X, y)
    assert stopped.status_ is Status.CALLBACK
    assert stopped.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter .*: the gap is"):
        assert StructuredSVM(MultiClass(), max_iter=2).fit(X, y).status_ is Status.MAX_ITER


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_gap_that_the_last_bound_closes_is_closed():
    X, y = sample()
    gap = StructuredSVM(MultiClass(), max_iter=3).fit(X, y).gap_
    for tol in gap * np.array([0.9, 1.0, 1.1, 1.5]):
        svm = StructuredSVM(MultiClass(), max_iter=3, tol=tol).fit(X, y)
        assert svm.status_.ok == (svm.gap_ <= tol)


def test_a_tolerance_beyond_floating_point_ends():
    X, y = sample(n=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svm = StructuredSVM(MultiClass(), tol=1e-17).fit(X, y)
    assert svm.n_iter_ < 100
    assert svm.gap_ < 1e-8


def test_tools_of_scikit_learn():
    X, y = sample()
    search = GridSearchCV(StructuredSVM(MultiClass()), {"C": [1e-9, 1.0]}, cv=3).fit(list(X), list(y))
    assert search.best_params_ == {"C": 1.0}
    svm = clone(search.best_estimator_).fit(X, y)
    again = pickle.loads(pickle.dumps(svm))
    assert again.predict(X) == svm.predict(X)
    assert again.status_ is svm.status_
    assert again.history_ == svm.history_
    with pytest.raises(NotFittedError):
        StructuredSVM(MultiClass()).predict(X)


def test_an_interrupted_fit_leaves_the_estimator_as_it_was():
    X, y = sample()
    svm = StructuredSVM(MultiClass()).fit(X, y)
    before = dict(svm.__dict__)

    def interrupt(record):
        if record.iteration == 3:
            raise KeyboardInterrupt

    svm.callback = interrupt
    with pytest.raises(KeyboardInterrupt):
        svm.fit(X[:40], y[:40])
    svm.callback = None
    assert svm.__dict__ == before


# --- the contract of a problem


class Wrong(MultiClass):
    """A problem that goes wrong at one example."""

    def __init__(self, **wrong):
        for name, method in wrong.items():
            setattr(self, name, method)


def truth_only(x, y, w):
    return y


def lowest(x, y, w):
    return int(np.argmin(w.reshape(K, -1) @ x + MultiClass.price[y]))


def later_lowest(x, y, w):
    return lowest(x, y, w) if w.any() else MultiClass().loss_augmented_argmax(x, y, w)


CASES = {
    "negative loss": ({"loss": lambda y, z: -1.0 if y != z else 0.0}, "example 0: .* loss of at least 0, got -1.0"),
    "loss of NaN": ({"loss": lambda y, z: np.nan if y != z else 0.0}, "example 0: .* loss of at least 0, got nan"),
    "no loss": ({"loss": lambda y, z: None}, "example 0: .* loss of at least 0, got None from Wrong.loss"),
    "two losses": ({"loss": lambda y, z: np.zeros(2)}, "example 0: .* loss of at least 0, got array"),
    "loss of the truth": ({"loss": lambda y, z: 1.0}, "example 0: expected a loss of 0 for the true output itself"),
    "length": (
        {"joint_feature": lambda x, y: np.ones(16 + 4 * (x[0] > sample()[0][0, 0]))},
        "example .*: expected .* joint features",
    ),
    "length of some outputs": (
        {"joint_feature": lambda x, y: np.ones(16 + (y == 1))},
        r"example .*: expected joint features of one length for all outputs, got shape",
    ),
    "shape": ({"joint_feature": lambda x, y: np.ones((2, 3))}, r"example 0: .* array \(p,\) .*, got shape \(2, 3\)"),
    "NaN": ({"joint_feature": lambda x, y: np.full(16, np.nan)}, "example 0: expected finite joint features"),
    "argmax below the truth": ({"loss_augmented_argmax": later_lowest}, "loss_augmented_argmax returned .* not find"),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("case", CASES)
def test_broken_problems_are_refused(case, solver):
    wrong, message = CASES[case]
    X, y = sample()
    with pytest.raises(ValueError, match=message):
        StructuredSVM(Wrong(**wrong), solver=solver).fit(X, y)


def test_an_argmax_that_forgets_is_refused():
    """It is never below the truth, but below what it returned before."""
    calls = []

    def forgetful(x, y, w):
        calls.append(1)
        return MultiClass().loss_augmented_argmax(x, y, w) if len(calls) <= 60 else y

    X, y = sample()
    with pytest.raises(ValueError, match=r"example .*: .* although an output it returned earlier has .*approximate"):
        StructuredSVM(Wrong(loss_augmented_argmax=forgetful)).fit(X, y)


@pytest.mark.parametrize("argmax", [truth_only, later_lowest])
@pytest.mark.parametrize("solver", SOLVERS)
def test_an_approximate_argmax_gets_no_certificate(solver, argmax):
    X, y = sample()
    problem = Wrong(loss_augmented_argmax=argmax, inference="approximate")
    svm = StructuredSVM(problem, solver=solver, max_iter=200).fit(X, y)
    assert svm.status_ is Status.UNCERTIFIED
    assert not svm.status_.ok
    assert svm.dual_bound_ <= optimum(1.0, "margin") * (1 + 1e-6)  # it holds nevertheless


def test_an_unknown_kind_of_inference_is_refused():
    with pytest.raises(ValueError, match="inference of Wrong as one of exact, relaxed, approximate, got 'greedy'"):
        StructuredSVM(Wrong(inference="greedy")).fit(*sample())


@pytest.mark.parametrize("kind", [np.uint8, np.int8, bool, list])
def test_features_of_any_kind_of_number(kind):
    """Differences are not taken in bytes, where 0 - 1 is 255, nor of booleans, which have none."""
    X, y = sample()
    X = np.abs(np.rint(60 * X) % 120)
    X = X > 60 if kind is bool else X

    class Narrow(MultiClass):
        def joint_feature(self, x, y):
            features = super().joint_feature(x, y)
            return features.tolist() if kind is list else features.astype(kind)

    one, other = (StructuredSVM(problem, C=1e-4).fit(X, y) for problem in (Narrow(), MultiClass()))
    assert one.objective_ == other.objective_


def test_pandas_is_taken_by_position():
    """Its ``[i]`` is a look at the index, which a split or a shuffle leaves in another order."""
    X, y = sample()
    order = np.random.default_rng(0).permutation(len(y))
    plain = StructuredSVM(MultiClass()).fit(X[order], y[order])
    rows, classes = pd.DataFrame(X).iloc[order], pd.Series(y)[order]
    for inputs, outputs in ((X[order], classes), (rows, y[order]), (rows, classes)):
        svm = StructuredSVM(MultiClass()).fit(inputs, outputs)
        np.testing.assert_array_equal(svm.coef_, plain.coef_)
        assert svm.predict(inputs) == plain.predict(X[order])
        assert svm.score(inputs, outputs) == plain.score(X[order], y[order])


def test_missing_methods_are_named():
    X, y = sample()

    class Empty(StructuredProblem):
        pass

    for name in ("joint_feature", "loss", "loss_augmented_argmax", "argmax", "slack_rescaled_argmax"):
        with pytest.raises(NotImplementedError, match=rf"Empty does not define {name}"):
            getattr(Empty(), name)(*[None] * (2 if name in ("joint_feature", "loss", "argmax") else 3))
    with pytest.raises(TypeError, match=r"subclass of metrimax.structured.StructuredProblem, got None"):
        StructuredSVM().fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "expected a finite C > 0, got 0"),
        ({"tol": np.nan}, "expected a finite tol > 0, got nan"),
        ({"max_iter": 0.5}, "max_iter as a whole number"),
        ({"solver": "magic"}, "unknown solver 'magic': expected one of cached, bundle, cutting_plane"),
        ({"rescaling": "both"}, "unknown rescaling 'both'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(MultiClass(), **parameters).fit(*sample())


def test_bad_lengths():
    X, y = sample()
    svm = StructuredSVM(MultiClass())
    with pytest.raises(ValueError, match="as many outputs as inputs, got 60 inputs and 59 outputs"):
        svm.fit(X, y[:-1])
    with pytest.raises(ValueError, match="at least one example"):
        svm.fit([], [])
    with pytest.raises(ValueError, match="as many outputs as inputs"):
        svm.fit(X, y).score(X, y[:-1])
