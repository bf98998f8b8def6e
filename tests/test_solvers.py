"""The solvers against an independent conic solver, and the promises of their certificates."""

from __future__ import annotations

import pickle
import weakref
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
import reference as ref
from scipy import sparse
from sklearn.svm import LinearSVC

from metrimax.designs import Dense, as_design
from metrimax.measure import get_measure
from metrimax.protocols import Ask, Cuts, Status
from metrimax.solvers import SOLVERS, Auto, Bundle, CuttingPlane
from metrimax.training.lockstep import run
from metrimax.training.path import along

#: the solvers that take every measure, to any tolerance (accelerated gradients are slow beyond 1e-2)
GENERAL = {name: solver for name, solver in SOLVERS.items() if name not in ("dual_cd", "agm")}

CASES = [pytest.param(case, id=case.name) for case in [*ref.CASES, ref.Case("roc_area", get_measure("roc_area"), None)]]


def data(seed: int = 0, n: int = 8, p: int = 3, shift: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) < max(1, n // 3)
    return rng.normal(size=(n, p)) + shift * y[:, None], y


def solve(X, y, measure, C, solver, tol, intercept=1.0, **options):
    design = as_design(X, intercept_scaling=intercept)
    oracle = get_measure(measure).oracle(y)
    weight = C * oracle.price * oracle.n
    (solution,) = run(design, [solver.steps(oracle, design, weight, tol=tol, **options)])
    return solution, weight


def optimum(case, X, y, weight):
    """The least J over all labellings as constraints (over all pairs for ROC area), by Clarabel."""
    X1 = np.hstack([X, np.ones((len(X), 1))])
    w = cp.Variable(X1.shape[1])
    xi = cp.Variable(nonneg=True)
    s = X1 @ w
    if case.name == "roc_area":
        pairs = [cp.pos(1 - s[i] + s[j]) for i in np.flatnonzero(y) for j in np.flatnonzero(~y)]
        constraints = [xi >= sum(pairs) / len(pairs)]
    else:
        Z, losses = ref.labelling_losses(case, y)
        constraints = [xi >= losses + (Z.astype(float) - y) @ X1 / len(y) @ w]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + weight * xi), constraints)
    problem.solve(cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.value


@pytest.mark.parametrize("C", [0.05, 2.0])
@pytest.mark.parametrize("case", CASES)
def test_objective_is_that_of_an_independent_solver(case, C):
    X, y = data()
    tol = 1e-7
    best = None
    for solver in (Bundle(), CuttingPlane()):
        solution, weight = solve(X, y, case.measure, C, solver, tol)
        best = optimum(case, X, y, weight) if best is None else best
        assert solution.status.ok
        slack = 1e-6 * weight
        assert solution.bound <= best + slack
        assert best - slack <= solution.objective <= best + 2 * slack
        assert solution.gap == pytest.approx((solution.objective - solution.bound) / weight)
        scores = X @ solution.w[:-1] + solution.w[-1]
        risk = ref.roc_risk(y, scores) if case.name == "roc_area" else ref.risk_by_labellings(case, y, scores)
        assert solution.objective == pytest.approx(solution.w @ solution.w / 2 + weight * risk, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("solver", GENERAL.values(), ids=GENERAL)
@pytest.mark.parametrize("measure", ["f1", "error", "roc_area", "prbep", "gmean", "mcc"])
def test_history_is_a_certificate_at_every_step(measure, solver):
    X, y = data(1, n=60, p=6, shift=1.0)
    solution, weight = solve(X, y, measure, 1.0, solver(), 1e-6)
    bounds = [record.bound for record in solution.history]
    values = [record.objective for record in solution.history]
    assert bounds == sorted(bounds)
    if (measure, solver) != ("error", Auto):  # coordinate descent climbs the dual alone
        assert values == sorted(values, reverse=True)
    assert max(bounds) <= min(values) + 1e-12
    assert solution.objective == pytest.approx(weight * values[-1])
    assert solution.bound == pytest.approx(weight * bounds[-1])
    assert solution.history[-1].gap == pytest.approx(solution.gap)
    assert [record.iteration for record in solution.history] == list(range(1, solution.n_iter + 1))
    assert solution.gap <= 1e-6
    assert 0 < solution.n_support <= len(solution.cuts.losses)
    if (measure, solver) != ("error", Auto):  # epochs are passes, and no iterations
        assert solution.n_passes <= 2 * solution.n_iter + 1
    assert all(a.seconds <= b.seconds for a, b in zip(solution.history, solution.history[1:], strict=False))


def test_cuts_kept_lie_under_the_risk_and_start_a_run_at_another_C():
    X, y = data(2, n=60, p=6)
    first, _ = solve(X, y, "f1", 1.0, Bundle(), 1e-6)
    oracle = get_measure("f1").oracle(y)
    rng = np.random.default_rng(0)
    for w in rng.normal(size=(20, 7)):
        scores = X @ w[:-1] + w[-1]
        cut = oracle(scores)
        assert (first.cuts.losses + first.cuts.rows[0] @ w).max() <= cut.loss + cut.slope @ scores + 1e-12
    cold, _ = solve(X, y, "f1", 1.2, Bundle(), 1e-6)
    warm, _ = solve(X, y, "f1", 1.2, Bundle(), 1e-6, start=first.cuts)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-5)
    assert warm.n_iter < cold.n_iter
    again, _ = solve(X, y, "f1", 1.0, Bundle(), 1e-5, start=first.cuts)
    assert again.n_iter <= 5
    none = Cuts(np.empty(0), np.empty((0, 0)), (np.empty((0, 7)),))
    assert solve(X, y, "f1", 1.0, Bundle(), 1e-6, start=none)[0].objective == pytest.approx(first.objective, rel=1e-5)


@pytest.mark.parametrize("stop", [True, np.True_])
def test_the_callback_sees_every_record_and_stops_the_run(stop):
    X, y = data(3, n=60, p=6)
    seen = []

    def callback(record):
        seen.append(record)
        return stop if len(seen) == 3 else None

    solution, _ = solve(X, y, "f1", 10.0, Bundle(), 1e-9, callback=callback)
    assert solution.status is Status.CALLBACK
    assert solution.n_iter == len(seen) == 3
    assert seen == solution.history
    assert not solution.status.ok


@pytest.mark.parametrize("solver", GENERAL.values(), ids=GENERAL)
def test_max_iter_leaves_a_true_certificate(solver):
    X, y = data(3, n=60, p=6)
    short, weight = solve(X, y, "f1", 10.0, solver(max_iter=3), 1e-9)
    full, _ = solve(X, y, "f1", 10.0, Bundle(), 1e-9)
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 3
    assert short.bound <= full.objective + 1e-9 * weight
    assert short.objective >= full.bound - 1e-9 * weight
    assert short.gap > 1e-9


@pytest.mark.parametrize("measure", ["f1", "prbep"])
def test_a_measure_that_cannot_be_learnt_is_said_so(measure):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.arange(400) < 8
    solution, weight = solve(X, y, measure, 0.01, Bundle(), 1e-3)
    assert solution.status is Status.TRIVIAL
    assert solution.bound >= (1 - 1e-3) * weight
    assert "w = 0" in str(solution.status)
    easy, _ = solve(X + 5 * y[:, None], y, measure, 1.0, Bundle(), 1e-3)
    assert easy.status is Status.CONVERGED


def test_constant_features_and_no_features_to_speak_of():
    y = np.arange(10) < 3
    for X in (np.zeros((10, 2)), np.ones((10, 1))):
        for measure in ("f1", "roc_area", "prbep", "error"):
            solution, _ = solve(X, y, measure, 1.0, Bundle(), 1e-6)
            assert solution.status.ok
            assert np.isfinite(solution.w).all()


def test_two_examples():
    X, y = np.array([[1.0], [-1.0]]), np.array([True, False])
    for case in ref.CASES:
        if ref.fits(case, 1, 1):
            solution, weight = solve(X, y, case.measure, 1.0, Bundle(), 1e-7)
            assert solution.status.ok, case.name
            assert abs(solution.objective - optimum(case, X, y, weight)) <= 1e-6 * weight, case.name


@pytest.mark.parametrize("measure", ["f1", "roc_area", "error", "prbep"])
@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e3, 1e6])
def test_the_scale_of_the_features_is_the_scale_of_C(measure, scale):
    """X scaled by c and C by 1 / c^2 is the same problem: same certificate, scores and risk."""
    X, y = data(4, n=60, p=6, shift=1.0)
    one, weight = solve(X, y, measure, 1.0, Bundle(), 1e-6, intercept=None)
    other, other_weight = solve(scale * X, y, measure, scale**-2, Bundle(), 1e-6, intercept=None)
    assert other.status.ok
    assert other.objective / other_weight == pytest.approx(one.objective / weight, abs=2e-6)


@pytest.mark.parametrize("measure", ["f1", "error", "roc_area", "prbep"])
def test_large_features_leave_the_certificate_true(measure):
    """Where rounding outweighs tol a run may end early, but never with a bound above the objective."""
    X, y = data(5, n=40, p=5, shift=0.5)
    for scale in (1e4, 1e8):
        solution, weight = solve(scale * X, y, measure, 1.0, Bundle(max_iter=400), 1e-3)
        assert np.isfinite(solution.objective)
        assert solution.gap >= -1e-6
        scores = scale * X @ solution.w[:-1] + solution.w[-1]
        cut = get_measure(measure).oracle(y)(scores)
        value = solution.w @ solution.w / 2 + weight * (cut.loss + cut.slope @ scores)
        assert solution.objective == pytest.approx(value, rel=1e-6, abs=1e-6 * weight)


@pytest.mark.parametrize("solver", ["auto", "bundle", "cutting_plane", "lbfgs"])
@pytest.mark.parametrize(("offset", "C"), [(1e4, 100.0), (1e8, 1.0), (1e8, 1000.0)])
def test_features_far_from_the_origin_leave_the_certificate_true(solver, offset, C):
    """With fewer examples than features cuts are kept by their scores, in which all but rounding may cancel."""
    for seed in (54, 2):
        rng = np.random.default_rng(seed)
        y = rng.random(75) < 0.3
        X = rng.normal(size=(75, 222)) + 0.5 * y[:, None] + offset
        solution, weight = solve(X, y, "f1", C, replace(SOLVERS[solver](), max_iter=200), 1e-3)
        assert 0 <= solution.bound <= solution.objective
        scores = X @ solution.w[:-1] + solution.w[-1]
        cut = get_measure("f1").oracle(y)(scores)
        value = (solution.w @ solution.w / 2) / weight + cut.loss + cut.slope @ scores
        assert solution.objective / weight == pytest.approx(value, abs=1e-5 * max(1.0, value))
        assert solution.status.ok == (solution.gap <= 1e-3)
        assert solution.cuts.best[1] == pytest.approx(cut.loss + cut.slope @ scores, rel=1e-5)


def test_more_features_than_examples_and_duplicated_rows():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(12, 200)), np.arange(12) < 4
    twice, y2 = np.vstack([X, X]), np.concatenate([y, y])
    for measure in ("error", "roc_area", "gmean", "balanced_error", "jaccard"):
        one, weight = solve(X, y, measure, 1.0, Bundle(), 1e-6)
        two, weight2 = solve(twice, y2, measure, weight / get_measure(measure).oracle(y2).price / 24, Bundle(), 1e-6)
        assert weight2 == pytest.approx(weight)
        assert one.status.ok
        if measure in ("error", "balanced_error", "roc_area"):  # linear in the sample
            assert two.objective == pytest.approx(one.objective, abs=2e-6 * weight)


def test_many_runs_in_lockstep_equal_separate_runs():
    X, _ = data(7, n=80, p=5)
    rng = np.random.default_rng(7)
    design = as_design(X, intercept_scaling=1.0)
    measures = ["f1", "error", "roc_area", "prbep", "gmean"]
    labels = [np.sum(X[:, :2], axis=1) + rng.normal(size=80) > shift for shift in (0.0, 0.5, 1.0, 1.5, -0.5)]

    def runs():
        for measure, y in zip(measures, labels, strict=True):
            oracle = get_measure(measure).oracle(y)
            yield Bundle().steps(oracle, design, 0.5 * oracle.n * oracle.price, tol=1e-6)

    together = run(design, list(runs()))
    apart = [run(design, [one])[0] for one in runs()]
    for a, b in zip(together, apart, strict=True):
        assert a.status is b.status
        assert a.objective == pytest.approx(b.objective, rel=1e-5)
    assert run(design, []) == []


def test_fewer_runs_are_open_where_vectors_are_long(monkeypatch):
    monkeypatch.setattr("metrimax.training.lockstep.LENGTH", 60)  # of vectors of length 4: 15, or by eights 16
    opened, closed, most = 0, 0, 0

    def steps():
        nonlocal opened, closed, most
        opened += 1
        most = max(most, opened - closed)
        yield Ask("scores", [np.zeros(4)])
        closed += 1

    run(as_design(np.eye(4)), (steps() for _ in range(50)))
    assert most == 16


def test_runs_that_begin_later_fall_into_step():
    served = []

    class Counted(Dense):
        def _products(self, pull, vectors, bias):
            served.append(len(vectors))
            return super()._products(pull, vectors, bias)

    def steps(k):
        for _ in range(3 + 5 * (k % 2)):  # half of them end early and leave their places to others
            yield Ask("pull", [np.ones(4)])
            yield Ask("scores", [np.ones(4)])

    run(Counted(np.eye(4)), (steps(k) for k in range(96)))
    full = [count for count in served if count >= 16]
    assert sum(full) > 0.9 * sum(served)
    assert max(served) == 32


def test_a_path_lets_go_of_the_cuts_that_it_goes_on_from():
    rng = np.random.default_rng(0)
    y = rng.random(80) < 0.3
    design = as_design(rng.normal(size=(80, 3)) + y[:, None], intercept_scaling=1.0)
    oracle = get_measure("f1").oracle(y)
    first = run(design, [Bundle().steps(oracle, design, 80.0, tol=1e-3)])[0].cuts
    kept = weakref.ref(first)
    steps = along(Bundle(), oracle, design, [160.0], tol=1e-3, start=first)
    del first
    next(steps)
    assert kept() is None


def test_runs_that_end_at_once_leave_their_place_to_others():
    def at_once(k):
        return k
        yield

    def later(k):
        (got,) = yield Ask("scores", [np.zeros(3)])
        return k + int(got.sum())

    design = as_design(np.eye(3))
    assert run(design, [*map(at_once, range(200)), later(200), *map(at_once, range(201, 300)), later(300)]) == list(
        range(301)
    )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("C", [0.01, 1.0, 20.0])
def test_error_rate_is_the_linear_svm(form, C):
    """Theorem 3 of Joachims (2005): the same hyperplane as the hinge loss with the same C."""
    rng = np.random.default_rng(8)
    y = rng.random(120) < 0.4
    X = rng.normal(size=(120, 6)) + 0.8 * y[:, None]
    solution, weight = solve(form(X), y, "error", C, Bundle(), 1e-9)
    assert weight == C * 120
    svm = LinearSVC(loss="hinge", C=C, intercept_scaling=1, tol=1e-10, max_iter=10**6).fit(X, y)
    w = np.append(svm.coef_[0], svm.intercept_)
    J = w @ w / 2 + C * np.maximum(0, 1 - np.where(y, 1, -1) * (X @ w[:-1] + w[-1])).sum()
    assert solution.objective == pytest.approx(J, rel=1e-6)
    np.testing.assert_allclose(solution.w, w, atol=2e-3 * np.abs(w).max())


def test_the_first_cut_is_rocchios_difference_of_class_sums():
    X, y = data(9, n=30)
    solution, _ = solve(X, y, "error", 1e-6, CuttingPlane(max_iter=1), 1e-9, intercept=None)
    np.testing.assert_allclose(solution.cuts.rows[0][0], (X[~y].sum(axis=0) - X[y].sum(axis=0)) / 30, atol=1e-12)
    assert solution.cuts.losses[0] == 1
    assert solution.w @ (X[y].sum(axis=0) - X[~y].sum(axis=0)) > 0


def test_a_run_that_cannot_go_on_says_so():
    X, y = data(5, n=40, p=5, shift=0.5)
    solution, _ = solve(1e8 * X, y, "f1", 1e3, Bundle(), 1e-15)
    assert solution.status in (Status.STALLED, Status.CONVERGED)
    assert solution.n_iter < 5000


def test_a_run_that_goes_on_takes_its_time():
    X, y = data(0, n=200, p=20, shift=0.5)
    solution, _ = solve(X, y, "f1", 10.0, CuttingPlane(), 1e-3)
    assert solution.status is Status.CONVERGED
    assert solution.n_iter > 150  # far more than it may go without progress


def test_features_whose_squares_overflow():
    X, y = data()
    for scale in (1e160, 1e300):
        with pytest.raises(ValueError, match="too large: their inner products overflow; scale them"):
            solve(scale * X, y, "f1", 1.0, Bundle(), 1e-3)


class Strided:
    """A design of somebody else's, whose products come in any order of memory."""

    def __init__(self, X):
        self.X, self.shape = X, X.shape

    def matvec(self, w):
        return np.repeat(self.X @ w, 2, axis=0)[::2] if w.ndim == 1 else np.asfortranarray(self.X @ w)

    def rmatvec(self, slope):
        return np.asfortranarray(self.X.T @ slope)


@pytest.mark.parametrize("solver", ["auto", "bundle", "hybrid"])
def test_products_may_come_in_any_order_of_memory(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + rng.normal(size=60) > 1
    oracle = get_measure("f1").oracle(y)
    runs = [
        run(design, [SOLVERS[solver]().steps(oracle, design, oracle.price * oracle.n, tol=1e-6)])[0].objective
        for design in (as_design(Strided(X)), as_design(X))
    ]
    assert runs[0] == pytest.approx(runs[1], rel=1e-5)


def test_cuts_to_start_from_are_copied_unless_they_are_given():
    rng = np.random.default_rng(2)
    y = rng.random(120) < 0.3
    X = rng.standard_normal((120, 6)) + y[:, None]
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure("f1").oracle(y)
    weight = oracle.price * oracle.n

    def solve(at, start=None):
        return run(design, [Bundle().steps(oracle, design, at, tol=1e-5, start=start)])[0]

    first = solve(weight)
    kept = first.cuts.losses.copy()
    once, again = (solve(8 * weight, first.cuts) for _ in range(2))
    assert once.objective == again.objective
    assert once.n_passes == again.n_passes
    np.testing.assert_array_equal(first.cuts.losses, kept)
    given = solve(8 * weight, replace(first.cuts, given=True))
    assert given.objective == pytest.approx(once.objective, abs=2e-5 * 8 * weight)
    assert given.bound <= once.objective
    assert given.n_passes < solve(8 * weight).n_passes
    assert given.cuts.pool is first.cuts.pool
    assert once.cuts.pool is not first.cuts.pool
    stale = solve(8 * weight, replace(first.cuts, given=True))  # which the run before has gone on with: copied
    assert stale.cuts.pool is not first.cuts.pool
    assert pickle.loads(pickle.dumps(once.cuts)).pool is None
