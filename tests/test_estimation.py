"""Lemma 1 and exact leave-one-out against brute force."""

import lzma
from io import BytesIO

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from retraining import draw, mistakes_without, scores_left_out
from scipy import sparse
from scipy.stats import binom
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC, LinearSVC

from metrimax import CostModel, MeasureSVC, leave_one_out, xi_alpha
from metrimax.estimates.dual_view import dual_view
from metrimax.estimates.radius import linear_R2
from metrimax.estimates.resampling import hoeffding_deviation

problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "n": st.integers(6, 25),
        "p": st.integers(1, 6),
        "shift": st.sampled_from([0.0, 0.5, 2.0]),
        "centre": st.sampled_from([0.0, 5.0]),
    }
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(problems, st.sampled_from([0.01, 0.1, 1.0, 10.0]), st.sampled_from([None, 0.3, 1.0, 4.0]))
@example({"seed": 411, "n": 6, "p": 4, "shift": 2.0, "centre": 5.0}, 1.0, 4.0)  # one score is 1.7e-6
@example({"seed": 124, "n": 13, "p": 6, "shift": 0.0, "centre": 5.0}, 10.0, 0.3)  # too slow for coordinate descent
def test_lemma_1_and_exact_leave_one_out(problem, C, intercept):
    X, y = draw(**problem)
    model = MeasureSVC(
        "error",
        C=C,
        solver="dual_cd",
        tol=1e-9,
        max_iter=200_000,
        fit_intercept=intercept is not None,
        intercept_scaling=intercept or 1.0,
    ).fit(X, y)
    truth = ((scores := scores_left_out(clone(model).set_params(solver="bundle"), X, y)) > 0) != y
    bound = xi_alpha(model, X, y, rho=2)
    assert bound.proven
    assert np.count_nonzero(truth & y) <= bound.d_pos
    assert np.count_nonzero(truth & ~y) <= bound.d_neg
    exact = leave_one_out(model, X, y)
    np.testing.assert_array_equal(exact.mistakes, truth)
    assert exact.n_undecided <= np.count_nonzero(np.abs(scores) < 1e-5)
    assert bound.error >= exact.error
    assert bound.recall <= exact.recall
    assert bound.precision <= exact.precision
    assert bound.f1 <= exact.f1
    if intercept is None:  # no bias: rho = 1 is proven as well
        tight = xi_alpha(model, X, y, rho=1)
        assert tight.proven
        assert tight.d_pos >= exact.d_pos
        assert tight.d_neg >= exact.d_neg


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@example({"seed": 1, "n": 19, "p": 1, "shift": 0.5, "centre": 0.0}, 10.0, "linear")
@settings(max_examples=15, deadline=None)
@given(problems, st.sampled_from([0.1, 1.0, 10.0]), st.sampled_from(["linear", "rbf"]))
def test_free_bias_lemma_1_where_all_solutions_are_stable(problem, C, kernel):
    X, y = draw(**problem)
    model = SVC(kernel=kernel, C=C, gamma=0.3, tol=1e-6, max_iter=100_000).fit(X, y)  # at 1e-8 it goes round for ever
    truth = mistakes_without(model, X, y)
    exact = leave_one_out(model, X, y)
    np.testing.assert_array_equal(exact.mistakes, truth)
    bound = xi_alpha(model, X, y, rho=2)
    rests = [np.arange(len(y)) != t for t in range(len(y))]
    slack = 2e-2 * C  # enough room to move the multiplier of the example left out, as the lemma supposes
    if all(_room(clone(model).fit(X[r], y[r]), y[r], C) > C + slack for r in rests):
        assert bound.d_pos >= exact.d_pos
        assert bound.d_neg >= exact.d_neg


def _room(model, y, C):
    """By how much the unbounded support vectors can take up a multiplier, the worse of both signs."""
    alpha = np.abs(np.ravel(model.dual_coef_))
    free = (alpha > 1e-6 * C) & (alpha < (1 - 1e-6) * C)
    up, label = np.where(free, C - alpha, 0.0), y[model.support_]
    down = np.where(free, alpha, 0.0)
    return min(up[label].sum() + down[~label].sum(), up[~label].sum() + down[label].sum())


UNSTABLE = [
    (SVC(kernel="linear", C=0.05), [[0.345], [0.481], [0.549], [-0.797], [-1.866]], [1, 0, 1, 0, 1]),
    (
        SVC(kernel="rbf", C=1.0, gamma=1.0),
        [[2.087, -0.208], [-1.149, -1.054], [-1.39, -0.64], [-0.724, -1.325], [0.53, -2.611]],
        [1, 1, 0, 0, 1],
    ),
]


@pytest.mark.parametrize(("model", "X", "y"), UNSTABLE)
def test_lemma_1_is_not_claimed_where_it_fails(model, X, y):
    """The machine is stable, but not without the example: what Lemma 1 counts is less than the mistakes."""
    X, y = np.array(X), np.array(y) > 0
    bound = xi_alpha(model.fit(X, y), X, y, rho=2)
    assert bound.stable
    assert bound.error < mistakes_without(model, X, y).mean() == 1
    assert not bound.proven
    assert leave_one_out(model, X, y, verbose=0).error == 1


@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.integers(0, 10**6),
    st.integers(5, 14),
    st.sampled_from([0.01, 0.05, 0.3, 1.0, 10.0]),
    st.sampled_from(["linear", "rbf", "poly"]),
    st.sampled_from([0.1, 1.0, 3.0]),
    st.sampled_from([1, 2]),
)
def test_proven_for_a_free_bias_is_never_broken(seed, n, C, kernel, scale, rho):
    X, y = draw(seed, n, 2, 0.7)
    model = SVC(kernel=kernel, C=C, gamma=1.0, max_iter=100_000).fit(scale * X, y)
    bound = xi_alpha(model, scale * X, y, rho=rho)
    truth = mistakes_without(clone(model).set_params(tol=1e-6), scale * X, y)
    if bound.proven:
        assert np.count_nonzero(truth & y) <= bound.d_pos
        assert np.count_nonzero(truth & ~y) <= bound.d_neg
    cleared = dual_view(model, scale * X, y).cleared()
    assert not (cleared & truth).any()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_free_bias_is_proven_where_there_is_room(kernel):
    """With many unbounded support vectors, and most examples are cleared without retraining."""
    X, y = draw(0, 200, 5, 1.5)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    model = SVC(kernel=kernel, C=1.0).fit(X, y)
    bound, exact = xi_alpha(model, X, y, rho=2), leave_one_out(model, X, y, verbose=0)
    assert bound.proven
    assert bound.error < 0.5
    assert exact.n_retrained < 0.25 * len(y)
    np.testing.assert_array_equal(exact.mistakes, mistakes_without(model, X, y))
    assert not xi_alpha(SVC(kernel="sigmoid").fit(X, y), X, y, rho=2).proven  # no inner product, no proof


@pytest.mark.parametrize("weights", [None, {False: 1.0, True: 3.0}])
@pytest.mark.parametrize("measure", ["error", CostModel(2.0, 1.0), "balanced_error"])
def test_leave_one_out_of_weighted_problems(measure, weights):
    """Against a solver that knows nothing of leaving out: the term of the example gets weight zero."""
    X, y = draw(3, 30, 3, 1.0)
    model = MeasureSVC(measure, solver="dual_cd", tol=1e-9, class_weight=weights, C=0.3).fit(X, y)
    m = dual_view(model, X, y)
    truth = np.zeros(len(y), dtype=bool)
    for t in range(len(y)):
        upper = m.upper.copy()
        upper[t] = 0.0
        alpha, w = np.zeros(len(y)), np.zeros(X.shape[1] + 1)
        m.rows.dual_epochs(m.hinges, upper, alpha, w, tol=1e-11, max_passes=20000)
        truth[t] = (X[t] @ w[:-1] + w[-1] > 0) != y[t]
    exact = leave_one_out(model, X, y)
    np.testing.assert_array_equal(exact.mistakes, truth)
    assert exact.n_retrained < len(y)
    bound = xi_alpha(model, X, y, rho=2)
    assert bound.d_pos >= exact.d_pos
    assert bound.d_neg >= exact.d_neg


def test_coordinate_descent_retrains_as_long_as_it_gets_on(monkeypatch):
    """The bundle method, which is slow to a gap of nearly nothing, is not asked where descent decides the sign."""

    def bundle():
        raise AssertionError("the bundle method was asked")

    monkeypatch.setattr("metrimax.estimates.machines.Bundle", bundle)
    X, y = draw(2, n=30, p=60)
    model = MeasureSVC("error", C=10.0, solver="dual_cd", tol=1e-6).fit(X, y)
    scores = scores_left_out(clone(model).set_params(tol=1e-9), X, y)
    exact = leave_one_out(model, X, y)
    np.testing.assert_array_equal(exact.mistakes, (scores > 0) != y)
    assert exact.n_retrained
    assert not exact.n_undecided


def test_multipliers_are_found_for_models_that_keep_none():
    X, y = draw(5, 80, 4, 1.0)
    kept = MeasureSVC("error", C=0.5, solver="dual_cd", tol=1e-7).fit(X, y)
    expected = xi_alpha(kept, X, y)
    for model in (
        MeasureSVC("error", C=0.5, solver="bundle", tol=1e-7),
        LinearSVC(loss="hinge", C=0.5, tol=1e-7, max_iter=10**6),
    ):
        came = xi_alpha(model.fit(X, y), X, y)
        assert abs(came.d_pos - expected.d_pos) <= 1
        assert abs(came.d_neg - expected.d_neg) <= 1
        assert came.R2 == expected.R2


def test_svc_and_hinge_machine_agree_for_a_large_intercept():
    X, y = draw(6, 60, 4, 1.5)
    free = dual_view(SVC(kernel="linear", C=0.5, tol=1e-8).fit(X, y), X, y)
    model = MeasureSVC("error", C=0.5, solver="dual_cd", intercept_scaling=30.0, tol=1e-8).fit(X, y)
    near = dual_view(model, X, y)
    np.testing.assert_allclose(near.alpha, free.alpha, atol=0.05)
    np.testing.assert_allclose(near.slack, free.slack, atol=0.05)


def test_counts_and_formulas():
    X, y = draw(7, 50, 3, 1.0)
    model = MeasureSVC("error", C=0.5, solver="dual_cd", tol=1e-7).fit(X, y)
    estimate = xi_alpha(model, X, y, rho=1.5, R2=0.7)
    alpha = np.abs(model.dual_coef_[0])
    scores = model.decision_function(X)
    counted = 1.5 * alpha * 0.7 + np.maximum(0, 1 - np.where(y, scores, -scores)) >= 1
    d_pos, d_neg, n_pos = (counted & y).sum(), (counted & ~y).sum(), y.sum()
    assert (estimate.d_pos, estimate.d_neg, estimate.R2, estimate.rho) == (d_pos, d_neg, 0.7, 1.5)
    assert estimate.error == pytest.approx((d_pos + d_neg) / 50)
    assert estimate.recall == pytest.approx(1 - d_pos / n_pos)
    assert estimate.precision == pytest.approx((n_pos - d_pos) / (n_pos - d_pos + d_neg))
    assert estimate.f1 == pytest.approx(
        2 * estimate.precision * estimate.recall / (estimate.precision + estimate.recall)
    )
    assert not estimate.proven
    assert "not a bound" in str(estimate)
    assert "proven bound" in str(xi_alpha(model, X, y, rho=2))
    assert "retrained" in str(leave_one_out(model, X, y))


def test_an_unstable_solution_says_so():
    X, y = np.array([[1.0], [1.0], [-1.0], [-1.0]]), np.array([1, 0, 1, 0])
    model = SVC(kernel="linear", C=0.1).fit(X, y)
    estimate = xi_alpha(model, X, y, rho=2)
    assert not estimate.stable
    assert not estimate.proven
    assert "unstable" in str(estimate)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "precomputed", "callable"])
def test_R2_is_the_largest_difference(kernel):
    X, y = draw(8, 40, 3, 1.0)
    function = {
        "linear": lambda A, B: A @ B.T,
        "rbf": lambda A, B: np.exp(-0.2 * ((A[:, None] - B[None]) ** 2).sum(axis=2)),
        "poly": lambda A, B: (0.2 * A @ B.T) ** 3,
    }.get(kernel, lambda A, B: A @ B.T + (A @ B.T) ** 2)
    K = function(X, X)
    data = K if kernel == "precomputed" else X
    model = SVC(kernel=function if kernel == "callable" else kernel, gamma=0.2).fit(data, y)
    radius = xi_alpha(model, data, y).R2
    assert radius == pytest.approx((K.diagonal() - K.min(axis=1)).max())


def test_R2_of_many_examples_is_a_bound(monkeypatch):
    X, y = draw(9, 60, 3, 1.0)
    for data in (X, np.abs(X), X + 4, X - 9):
        exact = linear_R2(data)
        rbf = SVC(gamma=0.1).fit(data, y)
        exact_rbf = xi_alpha(rbf, data, y).R2
        with monkeypatch.context() as patch:
            patch.setattr("metrimax.estimates.radius.EXACT", 10)
            assert exact <= linear_R2(data) + 1e-9
            assert linear_R2(sparse.csr_matrix(data)) == pytest.approx(linear_R2(data))
            assert exact_rbf <= xi_alpha(rbf, data, y).R2 + 1e-12 <= 1 + 1e-9
    unit = np.abs(X) / np.linalg.norm(X, axis=1, keepdims=True)
    unit[0], unit[1] = [1, 0, 0], [0, 1, 0]
    monkeypatch.setattr("metrimax.estimates.radius.EXACT", 10)
    assert linear_R2(unit) == pytest.approx(1.0)


@pytest.mark.shared_data
def test_text_behaves_as_in_table_1(shared_data):
    """Reuters money-fx: rho = 1 a little pessimistic, rho = 2 much more, leave-one-out near the truth."""
    X, y = (part[:2000] for part in _svm(shared_data / "reuters_moneyfx/train.svm.xz"))
    X_test, y_test = _svm(shared_data / "reuters_moneyfx/test.svm.xz", n_features=X.shape[1])
    model = MeasureSVC("error", C=0.5, solver="dual_cd", tol=1e-4).fit(X, y)
    one, two = xi_alpha(model, X, y), xi_alpha(model, X, y, rho=2)
    exact = leave_one_out(model, X, y)
    assert pytest.approx(1.0, abs=1e-3) == one.R2
    assert two.error > 1.5 * one.error > 1.5 * exact.error
    assert two.f1 < one.f1 < exact.f1
    assert exact.n_retrained < 0.1 * len(y)
    assert exact.error == pytest.approx(np.mean(model.predict(X_test) != y_test), abs=0.03)


def _svm(path, n_features=None):
    with lzma.open(path) as file:
        X, y = load_svmlight_file(BytesIO(file.read()), n_features=n_features, zero_based=False)
    return X, y > 0


@pytest.mark.parametrize("model", [MeasureSVC("error", C=0.3, tol=1e-6), LinearSVC(loss="hinge", C=0.3)])
def test_examples_without_weight_are_not_in_the_sample(model):
    """Else the proven bound could lie below the leave-one-out error: nothing that weighs nothing is doubtful."""
    X, y = draw(3, 80, 3, 1.0)
    weight = np.where(np.arange(80) % 2, 1.0, 0.0)
    used = weight > 0
    X[~used] *= 50  # nor do they widen the radius
    fitted = clone(model).fit(X, y, weight)
    bound, exact = (estimate(fitted, X, y, sample_weight=weight) for estimate in (xi_alpha, leave_one_out))
    assert (bound.n_pos, bound.n_neg) == (exact.n_pos, exact.n_neg) == (y[used].sum(), (~y[used]).sum())
    assert not exact.mistakes[~used].any()
    fitted = clone(model).fit(X[used], y[used])
    assert pytest.approx(xi_alpha(fitted, X[used], y[used]).R2) == bound.R2
    assert bound.as_dict() == xi_alpha(fitted, X[used], y[used]).as_dict()
    assert exact.as_dict() == leave_one_out(fitted, X[used], y[used]).as_dict()
    with pytest.raises(ValueError, match="expected weights above zero with scikit-learn's SVC, got 40 that are zero"):
        xi_alpha(SVC().fit(X, y, weight), X, y, sample_weight=weight)


def test_a_radius_that_is_too_small_proves_nothing():
    """Whoever gives R2 may be wrong, for a machine with a kernel as for a linear one."""
    rng = np.random.default_rng(0)
    y = rng.random(100) < 0.4
    X = rng.normal(size=(100, 3)) + y[:, None]
    for model in (SVC(kernel="rbf").fit(X, y), MeasureSVC("error", solver="dual_cd").fit(X, y)):
        radius = xi_alpha(model, X, y, rho=2).R2
        given = {factor: xi_alpha(model, X, y, rho=2, R2=factor * radius) for factor in (0.0, 0.01, 1.0, 2.0)}
        assert [estimate.proven for estimate in given.values()] == [False, False, True, True]


def test_features_that_are_all_zero_are_estimated_too():
    X, y = np.zeros((7, 2)), np.arange(7) < 3
    for solver in ("auto", "dual_cd"):
        model = MeasureSVC("error", fit_intercept=False, solver=solver).fit(X, y)
        exact = leave_one_out(model, X, y, verbose=0)
        assert (exact.d_pos, exact.d_neg) == (3, 0), "a score of 0 is called negative"
        assert xi_alpha(model, X, y).d_pos == 3


@pytest.mark.parametrize("n_test", [5, 50, 500])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_hoeffding_against_the_binomial_distribution(n_test, confidence):
    """The share of hold-outs that are farther off, exactly, for every true error."""
    deviation, mistakes = hoeffding_deviation(n_test, confidence), np.arange(n_test + 1)
    for error in np.linspace(0, 1, 41):
        off = np.abs(mistakes / n_test - error) > deviation + 1e-12
        assert binom.pmf(mistakes, n_test, error)[off].sum() <= 1 - confidence + 1e-12
