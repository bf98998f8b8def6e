"""The step of the bundle method where w = 0 is the best point, and where cuts are taken."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.protocols import Capabilities, Status
from metrimax.solvers import LBFGS, Bundle, CuttingPlane, Hybrid
from metrimax.training.lockstep import run


class Counted:
    """An oracle that counts what it is asked."""

    def __init__(self, oracle):
        self._oracle, self.cuts, self.means, self.points = oracle, [], 0, 0

    def __getattr__(self, name):
        return getattr(self._oracle, name)

    @property
    def can(self):
        return Capabilities()

    def __call__(self, scores):
        self.cuts.append(scores.copy())
        return self._oracle(scores)

    def mean_cut(self, scores, mu):
        self.means += 1
        return self._oracle.mean_cut(scores, mu)

    def line(self, scores, move):
        risk = self._oracle.line(scores, move)

        def counted(t):
            self.points += 1
            return risk(t)

        return counted


def solve(solver, X, y, measure, C, tol=1e-4):
    design, oracle = as_design(X, intercept_scaling=1.0), Counted(get_measure(measure).oracle(y))
    [solution] = run(design, [solver.steps(oracle, design, C * oracle.price * oracle.n, tol=tol)])
    return solution, oracle


def noise(n=400, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)), rng.random(n) < 0.05


@pytest.mark.parametrize("solver", [Bundle(), Hybrid(plain=3)])
@pytest.mark.parametrize("measure", ["f1", "prbep"])
def test_where_zero_is_the_solution_an_iteration_asks_for_one_cut_and_little_else(solver, measure):
    solution, oracle = solve(solver, *noise(), measure, C=0.1)
    assert solution.status is Status.TRIVIAL
    assert solution.n_iter > 3
    assert len(oracle.cuts) == solution.n_iter  # at w = 0, and one ahead of it each time but the last
    assert oracle.means == 0
    assert oracle.points <= 2


def test_cuts_come_nearer_while_no_step_is_found():
    """Up to a hundredth of what is at first tried of the way to the minimiser of the model."""
    design, oracle = as_design(noise(p=30)[0], intercept_scaling=1.0), Counted(get_measure("f1").oracle(noise()[1]))
    steps = Bundle().steps(oracle, design, 10.0 * oracle.price * oracle.n, tol=1e-6)
    targets = []

    class Watched:
        shape = design.shape
        rows = property(lambda self: self)

        def products(self, product, vectors):
            answers = design.rows.products(product, vectors)
            targets.extend(scores.copy() for scores in answers if product == "scores")
            return answers

    [solution] = run(Watched(), [steps])
    assert solution.status is Status.TRIVIAL
    shares = [tried[0] / target[0] for tried, target in zip(oracle.cuts[1:], targets, strict=True)]
    np.testing.assert_allclose(shares[:4], 0.1)
    np.testing.assert_allclose(shares[4:10], 0.5 ** np.arange(4, 10))
    np.testing.assert_allclose(shares[10:], 1e-3)
    assert len(shares) > 12


def test_a_cut_after_a_search_without_a_step_is_taken_where_that_began():
    """Away from w = 0, and nearer than the stride: at the first point that was tried, not half as far."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((300, 5)), rng.random(300) < 0.3
    X[y] += 0.5
    asked = []  # ("line", scores, move, [t, ...]) and ("cut", scores)

    class Watched(Counted):
        def __call__(self, scores):
            asked.append(("cut", scores.copy()))
            return self._oracle(scores)

        def mean_cut(self, scores, mu):
            asked.append(("cut", scores.copy()))
            return self._oracle.mean_cut(scores, mu)

        def line(self, scores, move):
            risk, tried = self._oracle.line(scores, move), []
            asked.append(("line", scores.copy(), move.copy(), tried))
            return lambda t: tried.append(t) or risk(t)

    design, oracle = as_design(X, intercept_scaling=1.0), Watched(get_measure("f1").oracle(y))
    run(design, [Bundle().steps(oracle, design, 3.0 * oracle.price * oracle.n, tol=1e-7)])
    checked = 0
    for before, after in itertools.pairwise(asked):
        if before[0] == "line" and after[0] == "cut" and before[1].any() and before[3] and before[3][0] < 0.1:
            _, scores, move, tried = before
            if np.allclose(after[1], scores + tried[0] * move, rtol=1e-12, atol=1e-14):
                checked += 1
            assert not np.allclose(after[1], scores + tried[0] / 2 * move, rtol=1e-9, atol=1e-12)
    assert checked >= 2


def test_a_step_away_from_zero_is_found_after_cuts_that_gave_none():
    """Against an exact reference: the objective at the end is the same as from far away."""
    rng = np.random.default_rng(2)
    y = np.arange(60) < 12
    X = rng.standard_normal((60, 3)) + 0.8 * y[:, None]
    for measure in ("f1", "prbep", "roc_area"):
        near, _ = solve(Bundle(), X, y, measure, C=0.3, tol=1e-7)
        far, _ = solve(Bundle(stride=0.9), X, y, measure, C=0.3, tol=1e-7)
        assert near.objective == pytest.approx(far.objective, rel=1e-5)
        assert near.w @ near.w > 0


@pytest.mark.parametrize("solver", [Bundle(), CuttingPlane(), Hybrid(), Hybrid(plain=3), LBFGS()])
@pytest.mark.parametrize("measure", ["error", "f1", "roc_area"])
@pytest.mark.parametrize("tol", [1e-9, 1e-18])
def test_what_is_left_of_a_move_when_all_but_rounding_has_cancelled_is_no_step(solver, measure, tol):
    """Where the model's minimiser is the best point, its last digits are no direction to go far along."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        y = rng.random(20) < 0.5
        y[:2] = True, False
        X = rng.standard_normal((20, 1)) + 5 + 0.5 * y[:, None]
        design, oracle = as_design(X), get_measure(measure).oracle(y)
        weight = oracle.price * oracle.n
        [solution] = run(design, [solver.steps(oracle, design, weight, tol=tol)])
        cut = oracle(scores := X @ solution.w)
        objective = 0.5 * solution.w @ solution.w + weight * (cut.loss + cut.slope @ scores)
        assert solution.objective == pytest.approx(objective, rel=1e-9)
        assert solution.gap > -1e-8


def test_no_pass_after_the_bound_has_closed_the_gap():
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.4
    X = rng.standard_normal((60, 2)) + 2.0 * y[:, None]
    design, oracle = as_design(X), get_measure("error").oracle(y)
    seen = set()
    for solver in (Bundle(), CuttingPlane(), Hybrid()):
        for tol in (0.3, 0.1, 0.03, 0.01):
            [solution] = run(design, [solver.steps(oracle, design, oracle.n, tol=tol)])
            before, last = ([None, *solution.history])[-2:]
            closed = before is not None and before.objective - last.bound <= tol
            assert (last.n_passes - (before.n_passes if before else 0) <= 1) == closed  # the cut, and no scores
            assert last.n_passes == solution.n_passes
            seen.add(closed)
    assert seen == {True, False}
