"""The smooth solvers and the hybrid: certificates that are true, the same optimum as the bundle's, and mu."""

from __future__ import annotations

import itertools
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from metrimax import MeasureSVC
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.protocols import Status
from metrimax.solvers import AGM, LBFGS, Bundle, Hybrid
from metrimax.training.lockstep import run

SOLVERS = {"lbfgs": LBFGS(), "agm": AGM(), "hybrid": Hybrid()}


def problem(n=150, p=6, seed=0, share=0.3):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    y[:2] = True, False
    X = rng.normal(size=(n, p)) + 0.8 * y[:, None] * (rng.random(p) < 0.6)
    return X, y


def solve(solver, X, y, measure="f1", C=1.0, tol=1e-3, **kw):
    design = as_design(X, intercept_scaling=1.0)
    oracle = get_measure(measure).oracle(y)
    weight = C * oracle.price * oracle.n
    [solution] = run(design, [solver.steps(oracle, design, weight, tol=tol, **kw)])
    return solution, design, oracle, weight


def objective(w, design, oracle, weight):
    scores = design.matvec(w)
    cut = oracle(scores)
    return w @ w / 2 + weight * (cut.loss + cut.slope @ scores)


@pytest.mark.parametrize("measure", ["f1", "prbep", "roc_area", "error", "gmean", "jaccard"])
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("shape", [(150, 6), (40, 60)], ids=["weights", "examples"])
def test_certificate(name, measure, shape):
    """J is the exact objective at w, and an independent solution lies between the bound and J."""
    X, y = problem(*shape)
    tol = 1e-2 if name == "agm" else 1e-3
    solution, design, oracle, weight = solve(SOLVERS[name], X, y, measure, tol=tol)
    assert solution.status in (Status.CONVERGED, Status.TRIVIAL)
    assert solution.gap <= tol
    assert solution.gap == pytest.approx((solution.objective - solution.bound) / weight)
    assert objective(solution.w, design, oracle, weight) == pytest.approx(solution.objective, rel=1e-7)
    reference, *_ = solve(Bundle(), X, y, measure, tol=1e-6)
    assert reference.objective >= solution.bound - 1e-9 * weight
    assert reference.bound <= solution.objective + 1e-9 * weight


@pytest.mark.parametrize("name", SOLVERS)
def test_history_is_monotone_and_counts_passes(name):
    X, y = problem()
    solution, *_ = solve(SOLVERS[name], X, y, "prbep", C=3.0, tol=1e-2)
    history = solution.history
    assert [r.iteration for r in history] == list(range(1, len(history) + 1))
    assert all(a.objective >= b.objective for a, b in itertools.pairwise(history))
    assert all(a.bound <= b.bound for a, b in itertools.pairwise(history))
    assert history[-1].n_passes <= solution.n_passes <= 2 * len(history) + 1


class Counted:
    """A design that counts how often X is read: of a pull-back the rows whose slope is not zero."""

    def __init__(self, design):
        self.design, self.shape, self.rows, self.n = design, design.shape, None, 0.0

    def matvec(self, w):
        self.n += 1
        return self.design.matvec(w)

    def rmatvec(self, slope):
        self.n += np.any(slope.reshape(len(slope), -1), axis=1).mean()
        return self.design.rmatvec(slope)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("shape", [(150, 6), (40, 60)], ids=["weights", "examples"])
def test_passes_are_those_made(name, shape):
    X, y = problem(*shape)
    design = Counted(as_design(X, intercept_scaling=1.0))
    oracle = get_measure("prbep").oracle(y)
    [solution] = run(design, [SOLVERS[name].steps(oracle, design, oracle.price * oracle.n, tol=1e-2)])
    assert solution.n_passes == pytest.approx(design.n)


@pytest.mark.parametrize("name", SOLVERS)
def test_lockstep_equals_alone(name):
    """Runs that ask for several columns share their products like any other."""
    X, y = problem()
    design = as_design(X, intercept_scaling=1.0)
    oracles = [get_measure(m).oracle(z) for m, z in (("f1", y), ("prbep", ~y), ("roc_area", y))]

    def steps(oracle):
        return SOLVERS[name].steps(oracle, design, oracle.price * oracle.n, tol=1e-2)

    together = run(design, [steps(oracle) for oracle in oracles])
    for oracle, solution in zip(oracles, together, strict=True):
        [alone] = run(design, [steps(oracle)])
        assert solution.objective == pytest.approx(alone.objective, rel=1e-6)
        assert abs(solution.n_iter - alone.n_iter) <= 2


def test_fixed_mu_stays_within_its_bound():
    """With mu fixed, the smoothed problem is solved: J at its solution is no more than mu above the optimum."""
    X, y = problem()
    reference, *_ = solve(Bundle(), X, y, "prbep", tol=1e-6)
    for mu in (0.3, 0.03):
        solution, _, _, weight = solve(LBFGS(mu=mu), X, y, "prbep", tol=1e-5)
        assert solution.status in (Status.STALLED, Status.CONVERGED)
        assert (solution.objective - reference.bound) / weight <= mu + 1e-4


@pytest.mark.parametrize("solver", [LBFGS(mu=0.01, memory=3), AGM(mu=0.05)])
def test_options_of_a_smooth_solver_are_parameters_of_an_estimator(solver):
    """They pass `clone`, `get_params` and `pickle`, and a grid over them is a grid like any other."""
    X, y = problem(200, 5)
    model = clone(MeasureSVC("prbep", solver=solver, hinge=0, threshold="trained", max_iter=500))
    assert model.get_params()["solver"] == solver
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # mu is fixed: the gap need not reach tol
        model = pickle.loads(pickle.dumps(model)).fit(X, y)
    direct, *_ = solve(replace(solver, max_iter=500), X, y, "prbep", C=model.C)
    assert model.objective_ == pytest.approx(direct.objective, rel=1e-9)
    search = GridSearchCV(MeasureSVC("prbep", tol=0.1), {"solver": ["lbfgs", solver]}, cv=2).fit(X, y)
    assert search.best_params_["solver"] in ("lbfgs", solver)


def test_options_of_a_smooth_solver_are_checked():
    for mu in (0.0, -1.0, np.nan, "small"):
        with pytest.raises(ValueError, match="expected a finite mu > 0, or None, got"):
            LBFGS(mu=mu)
        with pytest.raises(ValueError, match="expected a finite mu > 0, or None, got"):
            AGM(mu=mu)
    for memory in (0, 1.5, None):
        with pytest.raises(ValueError, match="expected memory as a whole number of at least 1, got"):
            LBFGS(memory=memory)
    X, y = problem()
    with pytest.raises(ValueError, match=r"unknown solver .*: expected one of auto, .*, or such as LBFGS\(mu=0.001\)"):
        MeasureSVC(solver=LBFGS).fit(X, y)


@pytest.mark.parametrize(("name", "C"), [("prbep", 0.1), ("prbep", 10.0), ("roc_area", 0.1), ("roc_area", 10.0)])
def test_the_bound_on_the_steps_of_the_accelerated_method(name, C):
    """Zhang et al. (2011), (5) and appendix A: within epsilon after sqrt(4 L Delta0 / epsilon) steps, with mu D =
    epsilon / 2, L = |A|^2 / mu and Delta0 = |w*|^2 / 2; with sqrt(D) |A| <= sqrt(2) R for PRBEP and ROC area.
    """
    X, y = problem(400, 8)
    epsilon = 0.02
    solution, _, _, weight = solve(Bundle(), X, y, name, C=C, tol=1e-5)
    radius = np.sqrt((np.hstack((X, np.ones((len(X), 1)))) ** 2).sum(axis=1).max())
    # here the risk is half of the paper's inner product, and the weight 1 / lambda multiplies it
    lipschitz, start = 2 / epsilon * 2 * (radius / 2) ** 2, solution.w @ solution.w / 2
    most = np.sqrt(4 * lipschitz * start / epsilon)
    fixed, *_ = solve(AGM(mu=epsilon / 2, max_iter=int(np.ceil(most))), X, y, name, C=C, tol=1e-9)
    assert fixed.n_iter <= np.ceil(most)
    assert (fixed.objective - solution.bound) / weight <= epsilon


def test_large_C_still_reaches_the_gap():
    X, y = problem(300, 10, seed=1)
    for C in (100.0, 1e4):
        for measure in ("f1", "roc_area"):
            solution, *_ = solve(Hybrid(), X, y, measure, C=C)
            assert solution.status is Status.CONVERGED


def test_hybrid_needs_fewer_passes_than_the_bundle():
    X, y = problem(2000, 30, seed=2)
    passes = {type(s).__name__: solve(s, X, y, "f1", C=10.0)[0].n_passes for s in (Hybrid(), Bundle())}
    assert passes["Hybrid"] < 0.8 * passes["Bundle"]


def test_start_cuts_are_used():
    X, y = problem(400, 12, seed=3)
    cold, *_ = solve(Hybrid(), X, y, C=10.0)
    warm, *_ = solve(Hybrid(), X, y, C=10.0, start=cold.cuts)
    assert warm.n_passes < cold.n_passes / 2
    assert warm.gap <= 1e-3


def test_hybrid_needs_no_smoothing():
    X, y = problem()
    design = as_design(X, intercept_scaling=1.0)
    oracle = get_measure("f1").oracle(y, np.random.default_rng(0).random(len(y)) + 0.1)
    assert oracle.smooth is None
    [solution] = run(design, [Hybrid().steps(oracle, design, oracle.price * oracle.n, tol=1e-3)])
    assert solution.status.ok


@pytest.mark.parametrize("solver", ["lbfgs", "agm"])
def test_error_where_nothing_is_smooth(solver):
    X, y = problem()
    weight = np.random.default_rng(0).random(len(y)) + 0.1
    with pytest.raises(ValueError, match=r"offers no smoothed risk.*use solver='hybrid' or 'bundle'"):
        MeasureSVC("f1", solver=solver).fit(X, y, weight)


@pytest.mark.parametrize("solver", ["auto", "hybrid", "lbfgs", "agm"])
def test_estimator(solver):
    X, y = problem(200, 5)
    model = MeasureSVC("prbep", solver=solver, tol=1e-2).fit(sparse.csr_matrix(X), y)
    assert model.gap_ <= 1e-2
    bundle = MeasureSVC("prbep", solver="bundle", tol=1e-2).fit(X, y)
    assert model.score(X, y) == pytest.approx(bundle.score(X, y), abs=0.1)


def test_callback_stops():
    X, y = problem()
    for solver in SOLVERS.values():
        solution, *_ = solve(solver, X, y, callback=lambda record: record.iteration >= 2)
        assert solution.status is Status.CALLBACK
        assert solution.n_iter == 2


@pytest.mark.parametrize(("solver", "C", "most"), [(LBFGS, 0.01, 1), (AGM, 0.1, 5)])
def test_a_gap_that_the_last_iteration_closes_is_closed(solver, C, most):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), rng.random(40) < 0.4
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure("error").oracle(y)
    (solution,) = run(design, [solver(most).steps(oracle, design, C * oracle.n, tol=1e-3)])
    assert solution.gap <= 1e-3
    assert solution.status.ok


@pytest.mark.parametrize("tol", [1e-8, 1e-10, 1e-14])
def test_bounds_are_true_where_the_tolerance_is_beyond_what_smoothing_can_tell(tol):
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(6, 3)), np.arange(6) < 3
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure("f1").oracle(y)
    weight = 4 * oracle.price * oracle.n
    (solution,), (best,) = (
        run(design, [one.steps(oracle, design, weight, tol=accuracy)])
        for one, accuracy in ((LBFGS(300), tol), (Bundle(), 1e-12))
    )
    assert solution.bound <= best.objective * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_objective_is_that_of_the_weights_where_scores_are_put_together_from_past_ones(seed):
    """Far from the origin all but a little of every product cancels, and quasi-Newton steps multiply what is lost."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(6, 60)) + 1000, np.arange(6) < 4
    for name in ("lbfgs", "agm"):
        solver = replace(SOLVERS[name], max_iter=200)
        solution, design, oracle, weight = solve(solver, X, y, "rae", C=0.1, tol=1e-6)
        true = objective(solution.w, design, oracle, weight)
        assert abs(true - solution.objective) <= 1e-8 * weight
        assert solution.status.ok == (solution.gap <= 1e-6)


@pytest.mark.parametrize("solver", [LBFGS, AGM])
def test_a_run_that_goes_on_has_the_mu_of_the_one_before(solver):
    X, y = problem(n=400, seed=3)

    def last(start, max_iter, mu=None):
        states = []
        keep = lambda _, state: states.append(state())  # noqa: E731
        solve(solver(max_iter, mu), X, y, tol=1e-9, start=start, keep=keep)
        return states[-1]

    state = last(None, 40)
    [mu] = state.schedule["mu"]
    assert mu < 0.1
    assert last(state, 1).schedule["mu"] == [mu]
    assert last(state.elsewhere(), 1).schedule["mu"] == [0.1]  # at another C it begins anew
    assert last(state, 1, 0.05).schedule["mu"] == [0.05]


def test_a_gap_that_closes_as_mu_gets_to_its_least_is_closed():
    X, y = np.array([[0.4], [1.3]]), np.array([True, False])
    for C in (10.0, 30.0, 100.0, 1000.0):
        solution, *_ = solve(LBFGS(), X, y, "f1", C=C, tol=1e-6)
        assert solution.status.ok == (solution.gap <= 1e-6)
