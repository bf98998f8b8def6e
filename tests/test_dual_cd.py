"""Dual coordinate descent: the same optimum as independent solvers, a true certificate, and clear refusals."""

import itertools

import numpy as np
import pytest
from paper import PAPER
from scipy import sparse
from sklearn.svm import LinearSVC

from metrimax import CostModel, MeasureSVC, _kernels
from metrimax.designs import CSR, as_design
from metrimax.measure import get_measure
from metrimax.measure.hinge_sum import HingeSum
from metrimax.protocols import Cuts, Hinges, Status, Working
from metrimax.solvers import Bundle, DualCD
from metrimax.training.lockstep import run


def sample(seed=0, n=150, p=5, shift=1.0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    return rng.normal(size=(n, p)) + shift * y[:, None], y


@pytest.mark.parametrize("measure", ["error", CostModel(3.0, 1.0), CostModel(0.0, 1.0), "balanced_error"])
@pytest.mark.parametrize("weights", [None, "class", "repeats"])
def test_same_optimum_as_the_bundle_method(measure, weights):
    X, y = sample()
    options = {"class_weight": {False: 1.0, True: 2.5}} if weights == "class" else {}
    repeats = np.random.default_rng(1).integers(0, 4, len(y)) if weights == "repeats" else None
    dual = MeasureSVC(measure, solver="dual_cd", tol=1e-7, **options).fit(X, y, repeats)
    bundle = MeasureSVC(measure, solver="bundle", tol=1e-7, **PAPER, **options).fit(X, y, repeats)
    weight = dual.C * dual.price_ * (len(y) if repeats is None else repeats.sum()) * 2
    assert dual.status_ in (Status.CONVERGED, Status.TRIVIAL)
    assert abs(dual.objective_ - bundle.objective_) <= 1e-6 * weight
    assert dual.dual_bound_ <= bundle.objective_ + 1e-9
    assert bundle.dual_bound_ <= dual.objective_ + 1e-9


def test_is_linear_svc():
    X, y = sample(1)
    ours = MeasureSVC("error", C=0.7, solver="dual_cd", tol=1e-9).fit(X, y)
    theirs = LinearSVC(loss="hinge", C=0.7, tol=1e-9, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


def backends(X):
    small = sparse.csr_matrix(X)
    wide = small.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return {
        "C": np.ascontiguousarray(X),
        "F": np.asfortranarray(X),
        "float32": X.astype(np.float32),
        "CSR": small,
        "CSR int64": wide,
        "CSR float32": small.astype(np.float32),
    }


@pytest.mark.parametrize("kind", list(backends(np.eye(2))))
@pytest.mark.parametrize("intercept", [None, 2.0])
def test_every_backend_comes_to_the_same_solution(kind, intercept):
    X, y = sample(2)
    X = np.round(X, 1).astype(np.float32).astype(np.float64)
    hinges = Hinges(np.where(y, 1.0, -1.0), np.ones(len(y)), np.ones(len(y)))
    upper = np.full(len(y), 0.5)
    results = []
    for data in (X, backends(X)[kind]):
        design = as_design(data, intercept_scaling=intercept)
        alpha, w = np.zeros(len(y)), np.zeros(design.shape[1])
        design.rows.dual_epochs(hinges, upper, alpha, w, tol=1e-11, max_passes=5000)
        np.testing.assert_allclose(design.rmatvec(hinges.sign * alpha), w, atol=1e-9)
        np.testing.assert_allclose(design.rows.squares(), (X**2).sum(axis=1) + (intercept or 0.0) ** 2, rtol=1e-12)
        results.append(w)
    np.testing.assert_allclose(results[0], results[1], atol=1e-8)


def test_only_examples_that_may_move_are_visited():
    """The working examples against the rule written out; those left out of them keep their multipliers."""
    rng = np.random.default_rng(5)
    X, y = sample(5)
    n, design = len(y), as_design(X)
    hinges = Hinges(np.where(y, 1.0, -1.0), rng.random(n), np.ones(n))
    upper = rng.random(n)
    alpha = rng.choice([0.0, 0.5, 1.0], n) * upper
    w = design.rmatvec(hinges.sign * alpha)
    gradient = hinges.sign * (X @ w) - hinges.margin
    projected = np.where(
        alpha == 0, np.minimum(gradient, 0), np.where(alpha == upper, np.maximum(gradient, 0), gradient)
    )
    loss, violation, rows, low, high, others = _kernels.dual_working(hinges.sign, hinges.margin, upper, alpha, X @ w)
    assert loss == pytest.approx(upper @ np.maximum(0, -gradient))
    assert violation == pytest.approx(np.abs(projected).max())
    assert (low, high) == pytest.approx((projected.min(), projected.max()))
    aside = ((alpha == 0) & (gradient > high)) | ((alpha == upper) & (gradient < low))
    assert aside.any()
    np.testing.assert_array_equal(rows, np.flatnonzero(~aside))
    assert others == pytest.approx((upper * np.maximum(0, -gradient))[aside].sum())
    before = alpha.copy()
    done = design.rows.dual_epochs(
        hinges, upper, alpha, w, tol=1e-9, max_passes=1000, working=Working(rows, low, high, others)
    )
    assert done.reached
    assert 0 < done.passes < 1000
    assert set(done.left.rows) <= set(rows)
    np.testing.assert_array_equal(alpha[aside], before[aside])
    np.testing.assert_allclose(w, design.rmatvec(hinges.sign * alpha), atol=1e-9)


def test_nothing_is_set_aside_where_nothing_is_violated():
    one = np.ones(3)
    loss, violation, rows, *limits = _kernels.dual_working(one, one, one, np.zeros(3), 2 * one)
    assert (loss, violation, *limits) == (0.0, 0.0, -np.inf, np.inf, 0.0)
    np.testing.assert_array_equal(rows, [0, 1, 2])


@pytest.mark.parametrize("row", [-1, 3])
def test_rows_that_are_not_there_are_refused(row):
    design, one = as_design(np.eye(3)), np.ones(3)
    with pytest.raises(ValueError, match="expected row numbers from 0 to 3 - 1"):
        design.rows.dual_epochs(
            Hinges(one, one, one), one, np.zeros(3), np.zeros(3), tol=0.1, max_passes=1,
            working=Working(np.array([row]), -np.inf, np.inf, 0.0),
        )  # fmt: skip


def test_a_start_at_the_solution_ends_at_once():
    X, y = sample(6)
    design, oracle = as_design(X), get_measure("error").oracle(y)
    (first,) = run(design, [DualCD().steps(oracle, design, oracle.n, tol=1e-9)])
    start = Cuts(np.empty(0), np.empty((0, 0)), (np.abs(first.dual_coef), np.ones(len(y))))
    (second,) = run(design, [DualCD().steps(oracle, design, oracle.n, tol=1e-8, start=start)])
    assert second.n_iter == 1
    assert second.n_passes < first.n_passes


def test_repeated_column_indices_add_up():
    X = CSR(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1], np.int32), np.array([0, 2, 3], np.int32), 2)
    np.testing.assert_array_equal(X.rows.squares(), [9.0, 16.0])
    X = CSR(np.array([1.0, 2.0, 4.0, 3.0]), np.array([0, 1, 0, 1], np.int32), np.array([0, 3, 4], np.int32), 2)
    np.testing.assert_array_equal(
        X.rows.with_constant(1.0).squares(), [30.0, 10.0]
    )  # not in order, and nothing is left for the next


def test_zero_rows_without_intercept_reach_their_bound():
    X = np.array([[1.0], [0.0], [-1.0], [0.0]])
    y = np.array([True, True, False, False])
    model = MeasureSVC("error", C=2.0, solver="dual_cd", fit_intercept=False, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_[0, [1, 3]], [2.0, -2.0])
    assert model.gap_ <= 1e-9


def test_multipliers_make_the_weights():
    X, y = sample(3)
    model = MeasureSVC("error", C=1.0, solver="dual_cd", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_ @ X, model.coef_, atol=1e-10)
    assert np.all(np.where(y, model.dual_coef_[0], -model.dual_coef_[0]) >= 0)
    assert np.abs(model.dual_coef_).max() <= 1.0
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure("error").oracle(y)
    (solution,) = run(design, [DualCD().steps(oracle, design, oracle.n, tol=1e-8)])
    np.testing.assert_array_equal(solution.dual_coef, model.dual_coef_[0])
    assert not hasattr(model.set_params(solver="bundle").fit(X, y), "dual_coef_")


def test_several_labels_and_callback_and_limits():
    X, y = sample(4)
    Y = np.column_stack([y, ~y, X[:, 0] > 0])
    model = MeasureSVC("error", solver="dual_cd").fit(X, Y)
    assert model.dual_coef_.shape == (3, len(y))
    for stop in (True, np.True_):
        stopped = MeasureSVC("error", solver="dual_cd", tol=1e-12, callback=lambda r, stop=stop: stop).fit(X, y)
        assert stopped.status_ is Status.CALLBACK
    with pytest.warns(match="max_iter"):
        assert MeasureSVC("error", solver="dual_cd", tol=1e-12, max_iter=1).fit(X, y).status_ is Status.MAX_ITER


def test_says_what_is_missing():
    X, y = sample()
    for measure in ("f1", "roc_area", "prbep"):
        with pytest.raises(ValueError, match="mistakes add up"):
            MeasureSVC(measure, solver="dual_cd").fit(X, y)

    class Products:
        shape = X.shape
        matvec, rmatvec = (lambda self, v: X @ v), (lambda self, v: X.T @ v)

    oracle = get_measure("error").oracle(y)
    for intercept in (None, 1.0):
        design = as_design(Products(), intercept_scaling=intercept)
        with pytest.raises(ValueError, match="rows of X"):
            run(design, [DualCD().steps(oracle, design, 1.0, tol=1e-3)])


def gap_of(X, hinges, upper, alpha, w):
    """Primal minus dual value, for w made by the multipliers."""
    loss = upper @ np.maximum(0, hinges.margin - hinges.sign * (X @ w))
    return w @ w / 2 + loss - (hinges.margin @ alpha - w @ w / 2)


def test_the_gap_looks_like_what_it_is_once_nothing_moves():
    X, y = sample(7)
    n, design = len(y), as_design(X)
    hinges, upper = Hinges(np.where(y, 1.0, -1.0), np.ones(n), np.ones(n)), np.full(n, 0.3)
    alpha, w = np.zeros(n), np.zeros(X.shape[1])
    seen = []
    for _ in range(400):
        *_, working = hinges_look(hinges, upper, alpha, X @ w)
        done = design.rows.dual_epochs(hinges, upper, alpha, w, tol=0.0, max_passes=1, working=working)
        seen.append((done.gap, gap_of(X, hinges, upper, alpha, w)))
    assert seen[-1][0] == pytest.approx(seen[-1][1], abs=1e-6)
    assert seen[0][0] > 1
    alpha, w = np.zeros(n), np.zeros(X.shape[1])
    done = design.rows.dual_epochs(hinges, upper, alpha, w, tol=0.0, max_passes=1000, gap=1.0)
    assert done.gap <= 1.0
    assert not done.reached
    assert done.passes < 1000


def hinges_look(hinges, upper, alpha, scores):
    loss, violation, *visit = _kernels.dual_working(hinges.sign, hinges.margin, upper, alpha, scores)
    return loss, violation, Working(*visit)


@pytest.mark.parametrize("seed", range(5))
def test_epochs_go_on_where_they_were_interrupted(seed):
    """In pieces as in one: no worse a dual value for about the same visits, and multipliers that make the weights."""
    X, y = sample(seed)
    n, design = len(y), as_design(X)
    hinges, upper = Hinges(np.where(y, 1.0, -1.0), np.ones(n), np.ones(n)), np.full(n, 2.0)

    def dual(pieces, most):
        alpha, w = np.zeros(n), np.zeros(X.shape[1])
        *_, working = hinges_look(hinges, upper, alpha, X @ w)
        for _ in range(pieces):
            done = design.rows.dual_epochs(hinges, upper, alpha, w, tol=0.0, max_passes=most, working=working)
            working = done.left
        np.testing.assert_allclose(w, X.T @ (hinges.sign * alpha), atol=1e-9)
        assert alpha.min() >= 0
        assert np.all(alpha <= upper)
        return alpha.sum() - w @ w / 2

    assert dual(30, 1) == pytest.approx(dual(1, 30), rel=0.02)


def test_a_run_that_looks_like_taking_too_long_ends():
    X, y = sample()
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure("error").oracle(y)

    def solve(weight, **options):
        [solution] = run(design, [DualCD(**options).steps(oracle, design, weight, tol=1e-3)])
        return solution

    easy, hard = 0.01 * oracle.price * oracle.n, 1000.0 * oracle.price * oracle.n
    free, limited = solve(easy), solve(easy, limit=100)
    assert (limited.status, limited.n_passes) == (free.status, free.n_passes)
    assert free.status is Status.CONVERGED
    ended = solve(hard, limit=10)
    assert ended.status is Status.MAX_ITER
    assert ended.n_passes < 20 < solve(hard).n_passes
    assert ended.gap > 1e-3
    exact = solve(hard, max_iter=100_000)
    assert ended.bound <= exact.objective <= ended.objective


def test_a_long_round_shows_itself_on_the_way():
    """Callbacks, and with them checkpoints and limits of time, do not wait for a round to end."""
    X, y = sample()
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure("error").oracle(y)
    records = []

    def stop(record):
        records.append(record)
        return record.n_passes > 1500

    steps = DualCD().steps(oracle, design, 1e5 * oracle.price * oracle.n, tol=1e-9, callback=stop)
    [solution] = run(design, [steps])
    assert solution.status is Status.CALLBACK
    assert len(records) > 5
    passes = [0, *(record.n_passes for record in records)]
    assert all(b - a <= max(210, 0.6 * a) for a, b in itertools.pairwise(passes))
    assert all(a.bound <= b.bound for a, b in itertools.pairwise(records))


@pytest.mark.parametrize("short", [1, 2, 3, 4])
def test_whom_to_visit_needs_arrays_of_one_length(short):
    arrays = [np.ones(5) for _ in range(5)]
    arrays[short] = np.ones(4)
    with pytest.raises(ValueError, match="expected length 5, got 4"):
        _kernels.dual_working(*arrays)


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_the_kernels_refuse_arrays_that_are_no_csr_matrix(part):
    arrays = {"data": np.ones(2), "indices": np.array([0, 1], np.int32), "indptr": np.array([0, 1, 2], np.int32)}
    assert _kernels.row_squares(_kernels.csr_matrix(**arrays, n_cols=2), bias=0.0).tolist() == [1.0, 1.0]
    for trusted in (False, True):
        with pytest.raises(ValueError, match="bad CSR matrix"):
            _kernels.csr_matrix(**arrays | {part: arrays[part][:0]}, n_cols=2, trusted=trusted)


def test_a_sum_of_hinges_as_an_oracle():
    """What coordinate descent solves, for a solver of cuts: values, slopes, and the same optimum."""
    rng = np.random.default_rng(5)
    n, p = 80, 5
    sign, margin, weight = rng.choice([-1.0, 1.0], n), rng.random(n) + 0.5, rng.random(n) * (rng.random(n) < 0.8)
    X = rng.standard_normal((n, p)) + sign[:, None]
    hinges = Hinges(sign, margin, weight)
    risk = HingeSum(hinges)

    def value(scores):
        return (weight * np.maximum(0, margin - sign * scores)).sum() / weight.sum()

    for _ in range(5):
        scores, move = rng.standard_normal((2, n))
        for cut in (risk(scores), risk.mean_cut(scores, 0.1)):
            assert cut.loss + cut.slope @ scores == pytest.approx(value(scores))
            assert cut.loss + cut.slope @ (scores + move) <= value(scores + move) + 1e-12
        for t in (0.0, 0.7):
            here, rise = risk.line(scores, move)(t)
            assert here == pytest.approx(value(scores + t * move))
            assert rise == pytest.approx((value(scores + (t + 1e-7) * move) - here) / 1e-7, abs=1e-5)
    design, upper, alpha, w = as_design(X), 3.0 * weight, np.zeros(n), np.zeros(p)
    design.rows.dual_epochs(hinges, upper, alpha, w, tol=1e-10, max_passes=100_000)
    [solution] = run(design, [Bundle().steps(risk, design, float(upper.sum()), tol=1e-10)])
    np.testing.assert_allclose(solution.w, w, atol=1e-4)
