"""A free intercept: the same optimum as an independent program, a true bound, and estimates against retraining."""

import itertools

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from retraining import mistakes_without
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from metrimax import CAPOClassifier, CostModel, MeasureSVC, MeasureSVCCV, _kernels, leave_one_out, verify, xi_alpha
from metrimax.designs import as_design
from metrimax.estimates.dual_view import dual_view
from metrimax.measure import get_measure
from metrimax.protocols import Cuts, Hinges, Status
from metrimax.solvers.run_state import Task
from metrimax.training.free_intercept import FreeHinges, PairCD
from metrimax.training.lockstep import run

FREE = {"intercept_scaling": "free", "hinge": 0}
MEASURES = ["error", CostModel(2.0, 1.0), "balanced_error"]


def draw(seed, n=60, p=3, shift=1.0, positives=0.3):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < positives
    y[:2], y[2:4] = True, False
    return rng.normal(size=(n, p)) + shift * y[:, None], y


def values(kernel, A, B):
    return A @ B.T if kernel == "linear" else np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def conic(K, y, upper, margin):
    """The least objective, by the primal in coefficients of the examples, with a conic solver."""
    root = np.linalg.cholesky(K + 1e-10 * np.eye(len(K)))
    beta, bias = cvxpy.Variable(len(K)), cvxpy.Variable()
    slack = cvxpy.pos(margin - cvxpy.multiply(np.where(y, 1.0, -1.0), root @ beta + bias))
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(beta) + upper @ slack))
    return problem.solve(solver=cvxpy.CLARABEL)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("weights", [None, {False: 1.0, True: 2.5}])
def test_the_optimum_of_a_conic_solver(measure, kernel, weights):
    X, y = draw(1)
    for C in (0.03, 1.0, 20.0):
        model = MeasureSVC(measure, C=C, kernel=kernel, gamma=0.5, tol=1e-8, class_weight=weights, **FREE).fit(X, y)
        hinges = get_measure(measure).oracle(y, None if weights is None else np.where(y, 2.5, 1.0)).can.hinges()
        upper = C * model.price_ * hinges.weight
        optimum = conic(values(kernel, X, X), y, upper, hinges.margin)
        assert model.status_ is Status.CONVERGED
        assert model.dual_bound_ <= optimum * (1 + 1e-6)
        assert model.objective_ == pytest.approx(optimum, rel=1e-5)
        assert abs(model.dual_coef_.sum()) <= 1e-9 * np.abs(model.dual_coef_).sum()
        assert (np.abs(model.dual_coef_[0]) <= upper * (1 + 1e-12)).all()


@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, np.float32, sparse.csr_array])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_is_the_svc_of_scikit_learn(kernel, form):
    X, y = draw(2, n=150)
    options = {"kernel": kernel, "C": 0.7, "gamma": 0.3}
    ours = MeasureSVC("error", tol=1e-9, **options, **FREE).fit(form(X), y)
    theirs = SVC(tol=1e-8, coef0=0.0, **options).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(form(X)), theirs.decision_function(X), atol=2e-3)
    assert ours.intercept_[0] == pytest.approx(theirs.intercept_[0], abs=2e-3)
    assert ours.trained_with_["intercept_scaling"] == "free"


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 40), st.sampled_from([1, 3, 60]), st.sampled_from([0.01, 1.0, 100.0]))
def test_the_bound_holds_wherever_a_run_ends(seed, n, p, C):
    """Against the best of other points: what scikit-learn finds, and what this solver finds later."""
    X, y = draw(seed, n, p)
    early = [MeasureSVC("error", C=C, max_iter=k, tol=1e-9, **FREE).fit(X, y) for k in (1, 10, 5000)]
    theirs = SVC(kernel="linear", C=C, max_iter=20_000).fit(X, y)
    slack = np.maximum(0, 1 - np.where(y, 1, -1) * theirs.decision_function(X))
    other = 0.5 * np.sum(theirs.coef_**2) + C * slack.sum()
    least = min(other, *(model.objective_ for model in early))
    for model in early:
        scores = model.decision_function(X)
        objective = 0.5 * np.sum(model.coef_**2) + C * np.maximum(0, 1 - np.where(y, 1, -1) * scores).sum()
        assert model.objective_ == pytest.approx(objective, rel=1e-9)
        assert model.dual_bound_ <= least + 1e-9 * (1 + least)


def test_the_best_bias_is_a_quantile():
    """Against all places where the loss can be least."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = rng.integers(2, 9)
        y = rng.random(n) < 0.5
        leads, upper = rng.integers(-3, 4, n).astype(float), rng.integers(0, 4, n).astype(float)
        upper[:1] += 1
        sign = np.where(y, 1.0, -1.0)
        problem = FreeHinges(
            get_measure("error").oracle(np.arange(n) > 0, None).can.hinges()._replace(sign=sign), upper
        )

        def loss(b, upper=upper, sign=sign, leads=leads):
            return upper @ np.maximum(0.0, sign * (leads - b))

        assert loss(problem.bias(leads)) == min(loss(b) for b in leads)


def test_of_several_best_biases_the_middle():
    hinges = get_measure("error").oracle(np.array([True, False]), None).can.hinges()
    assert FreeHinges(hinges, np.ones(2)).bias(np.array([-1.0, 3.0])) == 1.0  # all between cost nothing
    assert FreeHinges(hinges, np.array([1.0, 1.0])).bias(np.array([3.0, -1.0])) == 1.0  # all cost the same


def test_nothing_learnt_is_said_whatever_the_bias():
    """One positive of 2,000 costs less than the tolerance: the best bias alone calls all negative."""
    X, y = draw(0, n=2000, positives=0.0, shift=0.0)
    y[1:2] = False
    with pytest.warns(UserWarning, match="w = 0 is optimal up to tol"):
        model = MeasureSVC("error", tol=2e-3, **FREE).fit(X, y)
    assert model.status_ is Status.TRIVIAL
    assert model.intercept_[0] == pytest.approx(-1)
    assert not model.coef_.any()


def test_a_run_ends_where_rounding_is_all_that_is_left():
    statuses = set()
    for seed in range(6):
        X, y = draw(seed, n=150)
        design, oracle = as_design(X, intercept_scaling=1.0), get_measure("error").oracle(y)
        found = run(design, [PairCD(max_iter=3000).steps(oracle, design, 10 * oracle.n, tol=1e-300)])[0]
        statuses.add(found.status)
        assert found.n_iter < 100
        assert abs(found.objective - found.bound) <= 1e-9 * found.objective
    assert Status.STALLED in statuses <= {Status.STALLED, Status.CONVERGED}


def test_passes_are_products_and_visits(monkeypatch):
    X, y = draw(3)
    design = as_design(X, intercept_scaling=1.0)
    oracle, visited = get_measure("error").oracle(y), []
    pair_epochs = type(design.rows).pair_epochs
    count = lambda *args, **options: visited.append(pair_epochs(*args, **options)) or visited[-1]  # noqa: E731
    monkeypatch.setattr(type(design.rows), "pair_epochs", count)
    found = run(design, [PairCD().steps(oracle, design, oracle.n, tol=1e-6)])[0]
    read = sum(1 + np.count_nonzero(found.dual_coef) / len(y) for _ in visited)  # scores, and rows with a slope
    assert len(visited) == found.n_iter - 1 > 1
    assert sum(visited) + len(visited) < found.n_passes <= sum(visited) + 2 * len(visited)
    assert found.n_passes == pytest.approx(sum(visited) + read, rel=0.05)


def test_pairs_keep_their_sum_and_never_lower_the_dual():
    X, y = draw(4, n=80, p=4)
    sign, one = np.where(y, 1.0, -1.0), np.ones(len(y))
    hinges = get_measure("error").oracle(y, None).can.hinges()
    alpha, w, before = np.zeros(80), np.zeros(4), 0.0
    rows = as_design(X).rows
    for passes in (3, 6, 12, 24):
        read = rows.pair_epochs(hinges, alpha, w, np.arange(80), tol=1e-9, max_passes=passes)
        dual = alpha.sum() - w @ w / 2
        assert dual > before
        assert 1 < read < passes + 3
        assert abs(sign @ alpha) <= 1e-12
        assert ((alpha >= 0) & (alpha <= 1)).all()
        np.testing.assert_allclose(w, X.T @ (sign * alpha), atol=1e-10)
        before = dual
    with pytest.raises(ValueError, match="expected row numbers"):
        rows.pair_epochs(hinges, alpha, w, np.array([80]), tol=1e-9, max_passes=1)
    sums = _kernels.HingeSum(squares=one, sign=sign, margin=one, upper=one)
    with pytest.raises(ValueError, match="expected a square matrix"):
        _kernels.pair_cd(as_design(X)._compiled, sums, alpha, one, np.arange(80), tol=1.0, max_visits=1, gram=True)


def test_a_step_along_a_pair_of_rows_that_are_nearly_alike_is_exact():
    """``2 a - (0.05 a)^2 / 2`` is greatest at a = 800."""
    hinges = Hinges(np.array([1.0, -1.0]), np.ones(2), np.full(2, 2000.0))
    alpha, w = np.zeros(2), np.zeros(1)
    as_design(np.array([[1.0], [1.05]])).rows.pair_epochs(hinges, alpha, w, np.arange(2), tol=1e-9, max_passes=2)
    assert alpha.tolist() == pytest.approx([800.0, 800.0])
    assert w[0] == pytest.approx(-40.0)


def test_repeated_columns_within_a_row_add_up():
    X, y = draw(5, n=40)
    doubled = sparse.csr_array((np.repeat(X.ravel() / 2, 2), np.repeat(np.tile(np.arange(3), 40), 2), range(0, 241, 6)))
    plain, other = (MeasureSVC("error", tol=1e-9, **FREE).fit(form, y) for form in (X, doubled))
    np.testing.assert_allclose(plain.coef_, other.coef_, atol=1e-4)


def test_a_start_that_is_not_feasible_is_not_believed():
    """Its dual value would bound nothing."""
    X, y = draw(6)
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure("error").oracle(y, None)
    cold = run(design, [PairCD().steps(oracle, design, 60.0, tol=1e-6)])[0]
    for start in (np.where(y, 5.0, 0.0), np.abs(cold.dual_coef)):
        cuts = Cuts(np.empty(0), np.empty((0, 0)), (start, np.ones(60)))
        again = run(design, [PairCD().solve(Task(oracle, design, 60.0, 1e-6, cuts))])[0]
        assert again.bound <= cold.objective + 1e-9
        assert again.objective == pytest.approx(cold.objective, rel=1e-4)
    assert again.n_iter < cold.n_iter


def test_several_classes_labels_and_a_grid():
    X, y = draw(7, n=90)
    classes = y + 2 * (X[:, 0] > 1)
    model = MeasureSVC("error", tol=1e-9, **FREE).fit(X, classes)
    for k, label in enumerate(model.classes_):
        one = MeasureSVC("error", tol=1e-9, **FREE).fit(X, classes == label)
        np.testing.assert_allclose(model.decision_function(X)[:, k], one.decision_function(X), atol=1e-2)
    labels = np.column_stack([y, np.ones(90, dtype=bool)])
    assert MeasureSVC("error", **FREE).fit(X, labels).predict(X)[:, 1].all()
    found = GridSearchCV(MeasureSVC("error", hinge=0), {"intercept_scaling": [1.0, "free"]}, cv=2).fit(X, y)
    assert found.best_params_["intercept_scaling"] in (1.0, "free")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MeasureSVC("f1", **FREE), "intercept_scaling='free' needs a measure whose mistakes add up"),
        (MeasureSVC("error", intercept_scaling="free", hinge=1.0), "no base loss beside it"),
        (MeasureSVC("error", solver="bundle", **FREE), "expected solver='auto' or 'dual_cd' .*, got 'bundle'"),
        (MeasureSVC("error", certificate=True, **FREE), "expected certificate=False"),
        (
            MeasureSVC("error", intercept_scaling="Free"),
            "a positive number, 'free' or None, got 'Free'",
        ),
        (MeasureSVCCV("error", intercept_scaling="free"), "expected a number or None .* of MeasureSVCCV, got 'free'"),
        (CAPOClassifier([("a", SVC())], "error", intercept_scaling="free"), "of CAPOClassifier, got 'free'"),
    ],
)
def test_refusals(model, message):
    X, y = draw(8)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_no_intercept_is_no_free_intercept():
    X, y = draw(9)
    model = MeasureSVC("error", fit_intercept=False, **FREE).fit(X, y)
    assert model.intercept_[0] == 0
    with pytest.raises(TypeError, match="whose intercept is regularised"):
        verify(MeasureSVC("error", **FREE).fit(X, y), X, y)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(6, 20),
    st.sampled_from([0.02, 0.3, 1.0, 10.0]),
    st.sampled_from(["linear", "rbf", "poly"]),
    st.sampled_from([1, 2]),
)
def test_free_estimates_against_retraining(seed, n, C, kernel, rho):
    """Leave-one-out is exact but for signs that rounding decides, and what is called proven is."""
    X, y = draw(seed, n, 2, 0.7)
    model = MeasureSVC("error", C=C, kernel=kernel, gamma=0.5, tol=1e-8, **FREE)
    truth = mistakes_without(model, X, y)
    model.fit(X, y)
    exact, bound = leave_one_out(model, X, y, verbose=0), xi_alpha(model, X, y, rho=rho)
    assert np.count_nonzero(exact.mistakes != truth) <= exact.n_undecided
    assert not (dual_view(model, X, y).cleared() & truth).any()
    if bound.proven:
        assert bound.d_pos >= np.count_nonzero(truth & y)
        assert bound.d_neg >= np.count_nonzero(truth & ~y)


@pytest.mark.parametrize("measure", [CostModel(2.0, 1.0), "balanced_error"])
def test_free_estimates_of_other_margins(measure):
    """The term of the example leaves the objective; the others keep their bounds and margins."""
    X, y = draw(11, n=24, p=2)
    model = MeasureSVC(measure, C=0.5, tol=1e-9, **FREE).fit(X, y)
    m = dual_view(model, X, y)
    assert len(set(m.margin)) == 2
    truth = np.zeros(24, dtype=bool)
    for t in range(24):
        rest = np.arange(24) != t
        beta, bias = cvxpy.Variable(2), cvxpy.Variable()
        slack = cvxpy.pos(m.margin[rest] - cvxpy.multiply(np.where(y, 1.0, -1.0)[rest], X[rest] @ beta + bias))
        cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(beta) + m.upper[rest] @ slack)).solve(
            solver=cvxpy.CLARABEL
        )
        truth[t] = (X[t] @ beta.value + bias.value > 0) != y[t]
    exact = leave_one_out(model, X, y, verbose=0)
    np.testing.assert_array_equal(exact.mistakes, truth)
    assert exact.n_undecided == 0
    assert 0 < exact.n_retrained < 24


def test_the_machine_of_an_svc_and_ours_are_one():
    X, y = draw(12, n=150, p=4)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for kernel in ("linear", "rbf"):
        ours = MeasureSVC("error", C=1.0, kernel=kernel, gamma=1.0, tol=1e-8, **FREE).fit(X, y)
        theirs = SVC(C=1.0, kernel=kernel, gamma=1.0, tol=1e-6).fit(X, y)
        for rho in (1, 2):
            mine, other = (xi_alpha(model, X, y, rho=rho) for model in (ours, theirs))
            assert (mine.d_pos, mine.d_neg) == (other.d_pos, other.d_neg)
            assert pytest.approx(other.R2) == mine.R2
        assert mine.proven
        exact = [leave_one_out(model, X, y, verbose=0) for model in (ours, theirs)]
        np.testing.assert_array_equal(exact[0].mistakes, exact[1].mistakes)
        assert exact[0].n_retrained < 75


def test_lemma_1_is_not_claimed_where_it_fails():
    """Stable with the example and not without: rho = 2 counts fewer than the mistakes."""
    X, y = np.array([[0.345], [0.481], [0.549], [-0.797], [-1.866]]), np.array([1, 0, 1, 0, 1]) > 0
    model = MeasureSVC("error", C=0.05, tol=1e-9, **FREE).fit(X, y)
    bound = xi_alpha(model, X, y, rho=2)
    assert bound.stable
    assert bound.error < mistakes_without(model, X, y).mean() == 1
    assert not bound.proven
    assert leave_one_out(model, X, y, verbose=0).error == 1


def test_exhaustively_on_the_smallest_problems():
    """All labellings of five points on a line, at three C: nothing that is cleared or proven fails."""
    X = np.array([-1.3, -0.4, 0.1, 0.5, 1.6])[:, None]
    checked = 0
    for labels, C in itertools.product(itertools.product([False, True], repeat=5), (0.05, 0.7, 8.0)):
        y = np.array(labels)
        if not 2 <= y.sum() <= 3:
            continue
        model = MeasureSVC("error", C=C, tol=1e-9, **FREE)
        truth = mistakes_without(model, X, y)
        model.fit(X, y)
        assert not (dual_view(model, X, y).cleared() & truth).any()
        exact = leave_one_out(model, X, y, verbose=0)
        assert np.count_nonzero(exact.mistakes != truth) <= exact.n_undecided
        checked += 1
    assert checked == 60
