"""What runs start from: a few epochs of coordinate descent, and along C the direction of the last step."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from scipy import sparse

from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.measure.base_loss import Losses
from metrimax.solvers import Auto, Bundle, DualCD, Hybrid
from metrimax.solvers.run_state import Task
from metrimax.solvers.starts import after_epochs
from metrimax.training import path
from metrimax.training.lockstep import run
from metrimax.training.path import along, further

SHAPES = [(60, 8), (40, 90)]  # cuts are kept by weights, and by slopes and scores


def sample(n, p, seed=0, positive=0.2):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < positive
    y[:2] = True, False
    return rng.standard_normal((n, p)) + y[:, None], y


def text(n=300, p=1500, words=40, seed=0):
    """Rows of unit length with few words each, some of which tell the positives."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.15
    X = sparse.random_array((n, p), density=words / p, rng=rng, format="lil")
    for i in np.flatnonzero(y):
        X[i, rng.integers(0, 30, size=6)] = 1.0
    X = sparse.csr_array(X)
    return X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]).tocsr(), y


class Watched:
    """A design that counts how often X is read: of a pull-back the rows whose slope is not zero."""

    def __init__(self, design):
        self._design, self.shape, self.read, self.epochs = design.rows, design.shape, 0.0, 0.0

    rows = property(lambda self: self)

    def products(self, product, vectors):
        self.read += 1.0 if product == "scores" else np.any(vectors, axis=0).mean()
        return self._design.products(product, vectors)

    @property
    def in_order(self):
        return self._design.in_order

    def squares(self):
        return self._design.squares()

    def mean_square(self):
        return self._design.mean_square()

    def square(self, *args):
        return self._design.square(*args)

    def dual_epochs(self, *args, **limits):
        done = self._design.dual_epochs(*args, **limits)
        self.epochs += done.passes
        return done


def ask(design, steps):
    (result,) = run(design, [steps])
    return result


@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize("measure", ["error", "balanced_error"])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_the_plane_is_under_the_risk_and_bounds_the_objective(n, p, measure, C):
    X, y = sample(n, p)
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure(measure).oracle(y)
    weight = C * oracle.price * oracle.n
    cuts = ask(design, after_epochs(Task(oracle, design, weight, 1e-3)))
    assert len(cuts.losses) == 1
    assert cuts.n_passes < 10

    def plane(w):
        return cuts.losses[0] + cuts.rows[0][0] @ (w if n > p else design.matvec(w))

    rng = np.random.default_rng(1)
    for scale in (1e-3, 1.0, 1e3):
        w = scale * rng.standard_normal(design.shape[1])
        cut = oracle(design.matvec(w))
        assert plane(w) <= (cut.loss + cut.slope @ design.matvec(w)) * (1 + 1e-12) + 1e-12
    bound = weight * (cuts.losses[0] - weight * cuts.gram[0, 0] / 2)  # of plane and 1/2 |w|^2, at its minimiser
    best = ask(design, Bundle().steps(oracle, design, weight, tol=1e-9))
    assert 0 < bound <= best.objective * (1 + 1e-9)


@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize("measure", ["f1", "prbep", "precision_at_k"])
def test_mistakes_lead_to_the_least_point_in_their_direction(n, p, measure):
    X, y = sample(n, p)
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure(measure).oracle(y)
    weight = 10 * oracle.price * oracle.n
    cuts = ask(design, after_epochs(Task(oracle, design, weight, 1e-6)))
    assert len(cuts.losses) == 0
    assert cuts.n_passes < 10
    point, risk = cuts.best
    w = point.rep if n > p else design.rmatvec(point.rep)
    np.testing.assert_allclose(design.matvec(w), point.scores, atol=1e-9 * np.abs(point.scores).max())
    assert w @ w == pytest.approx(point.square)

    def objective(t):
        cut = oracle(t * point.scores)
        return t * t * point.square / 2 / weight + cut.loss + cut.slope @ (t * point.scores)

    assert objective(1.0) == pytest.approx(point.square / 2 / weight + risk)
    assert objective(1.0) <= min(map(objective, (0.0, 0.5, 0.9, 1.1, 2.0))) + 1e-6


@pytest.mark.parametrize(("measure", "margins"), [("error", (1.0, 1.0)), ("balanced_error", (1.25, 0.8333333))])
def test_margins_are_what_a_mistake_costs(measure, margins):
    oracle = get_measure(measure).oracle(np.arange(20) < 8)
    assert oracle.margins == pytest.approx(margins)
    assert get_measure("f1").oracle(np.arange(20) < 8).margins is None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", ["f1", "prbep", "mcc", "error"])
def test_mistakes_are_the_error_rate(measure, weighted):
    _, y = sample(30, 2)
    weight = np.random.default_rng(2).integers(0, 4, size=len(y)).astype(float) if weighted else None
    if weighted:
        weight[:2] = 1.0  # one of either class
    mistakes = get_measure(measure).oracle(y, weight).mistakes()
    expected = get_measure("error").oracle(y, weight).hinges()
    counts = expected.weight > 0
    np.testing.assert_array_equal(mistakes.weight, expected.weight)
    np.testing.assert_array_equal(mistakes.sign[counts], expected.sign[counts])
    np.testing.assert_array_equal(mistakes.margin, np.ones(len(y)))


@pytest.mark.parametrize("measure", ["error", "f1", "prbep", "recall_at_k"])
@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
def test_text_is_solved_with_every_pass_counted(measure, C):
    X, y = text()
    design, oracle = Watched(as_design(X, intercept_scaling=1.0)), get_measure(measure).oracle(y)
    weight = C * oracle.price * oracle.n
    solution = ask(design, Auto().steps(oracle, design, weight, tol=1e-3))
    assert solution.gap <= 1e-3
    assert solution.n_passes == pytest.approx(design.read + design.epochs)
    exact = ask(design, Bundle().steps(oracle, design, weight, tol=1e-5))
    assert exact.bound <= solution.objective * (1 + 1e-9)
    assert solution.bound <= exact.objective * (1 + 1e-9)
    cut = oracle(X @ solution.w[:-1] + solution.w[-1])
    risk = cut.loss + cut.slope @ (X @ solution.w[:-1] + solution.w[-1])
    assert solution.w @ solution.w / 2 + weight * risk == pytest.approx(solution.objective, rel=1e-9)


def test_the_start_is_for_text_with_large_c():
    X, y = text()
    oracle = get_measure("f1").oracle(y)

    def epochs(X, C, **settings):
        design = Watched(as_design(X, intercept_scaling=1.0))
        ask(design, Auto(**settings).steps(oracle, design, C * oracle.price * oracle.n, tol=1e-3))
        return design.epochs

    assert epochs(X, 100.0) > 0
    assert epochs(X, 1.0) == 0, "C too small"
    assert epochs(X[:, :150], 100.0) == 0, "too few features"
    assert epochs(X, 100.0, labels=2) == 0, "labels side by side"
    assert epochs(X.toarray(order="C"), 100.0) > 0
    assert epochs(X.toarray(order="F"), 100.0) == 0, "rows would take a copy of X"
    oracle = Losses(hinge=1.0).oracle(oracle, y, None)
    assert epochs(X, 100.0) == 0, "plain iterations are faster for sums with base losses"


def test_sums_of_hinges_begin_by_coordinate_descent():
    X, y = text()
    oracle = get_measure("error").oracle(y)

    def solved(X, C, **settings):
        design = Watched(as_design(X, intercept_scaling=1.0))
        solution = ask(design, Auto(**settings).steps(oracle, design, C * oracle.n, tol=1e-3))
        assert solution.status.ok
        return solution, design.epochs

    solution, epochs = solved(X, 1.0)
    assert solution.dual_coef is not None, "to the end"
    solution, epochs = solved(X, 1e4)
    assert 0 < epochs < 10, "a start for the bundle method"
    assert solution.dual_coef is None
    solution, epochs = solved(X[:, :20].toarray(), 1e4)
    assert epochs > 0
    assert solution.dual_coef is None, "taken over"
    assert solved(X, 1e4, labels=2)[1] > 0


def test_a_run_counts_from_its_start():
    X, y = text()
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure("f1").oracle(y)
    seen = []
    weight = 1e3 * oracle.price * oracle.n
    solution = ask(design, Auto().steps(oracle, design, weight, tol=1e-7, callback=seen.append))
    assert len(seen) > 3
    assert seen == solution.history[:-1], "the last iteration ends the run"
    assert seen[0].n_passes > 3
    assert [record.iteration for record in seen] == list(range(1, len(seen) + 1))
    first = ask(design, after_epochs(Task(oracle, design, weight, 1e-3)))
    assert first.seconds > 0
    later = ask(design, Hybrid().steps(oracle, design, weight, tol=1e-3, start=first))
    assert later.history[0].seconds > first.seconds


def test_a_bound_far_below_the_tolerance_still_says_where_to_go():
    """The plane's own bound is 1e-7 here: a quadratic program solved to the tolerance would stay at w = 0."""
    X, y = text()
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure("error").oracle(y)
    weight = 1e6 * oracle.n
    first = ask(design, DualCD(max_iter=6).steps(oracle, design, weight, tol=1e-3))
    assert first.bound / weight < 1e-6
    cuts = ask(design, after_epochs(Task(oracle, design, weight, 1e-3)))
    solution = ask(design, Hybrid(plain=1).steps(oracle, design, weight, tol=1e-3, start=cuts))
    assert solution.history[0].objective < 0.1


def test_a_design_without_rows_is_solved_without():
    X, y = text()

    class Products:
        shape = X.shape
        matvec, rmatvec = (lambda self, v: X @ v), (lambda self, v: X.T @ v)

    design, oracle = as_design(Products(), intercept_scaling=1.0), get_measure("f1").oracle(y)
    solution = ask(design, Auto().steps(oracle, design, 100 * oracle.price * oracle.n, tol=1e-3))
    assert solution.gap <= 1e-3


@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize("measure", ["f1", "roc_area"])
def test_a_path_goes_on_in_the_direction_of_its_last_step(n, p, measure):
    X, y = sample(n, p)
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure(measure).oracle(y)
    weights = [C * oracle.price * oracle.n for C in (0.01, 0.02, 0.04)]
    points = []
    for weight in weights[:2]:
        solution = ask(design, Bundle().steps(oracle, design, weight, tol=1e-6))
        points.append(solution.cuts.best)
    (before, _), (last, risk) = points
    point, risk_there = further(oracle, design, 1 / weights[2], before, last, risk, 1e-9)
    w, at = (q.rep if n > p else design.rmatvec(q.rep) for q in (point, last))
    np.testing.assert_allclose(design.matvec(w), point.scores, atol=1e-9)
    assert w @ w == pytest.approx(point.square)
    cut = oracle(point.scores)
    assert risk_there == pytest.approx(cut.loss + cut.slope @ point.scores)
    assert point.square / 2 / weights[2] + risk_there <= at @ at / 2 / weights[2] + risk + 1e-12
    with mock.patch.object(path, "further", wraps=further) as asked:
        solutions = ask(design, along(Bundle(), oracle, design, weights, tol=1e-3))
    assert asked.call_count == 1  # of three points the third
    assert max(solution.gap for solution in solutions) <= 1e-3


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_what_coordinate_descent_found_is_held_while_the_bundle_method_begins(C):
    rng = np.random.default_rng(0)
    y = rng.random(400) < 0.4
    design = as_design(rng.normal(size=(400, 30)) + 0.3 * y[:, None], intercept_scaling=1.0)
    oracle = get_measure("error").oracle(y)
    for most in range(5, 13):
        [solution] = run(design, [Auto(most).steps(oracle, design, C * len(y), tol=1e-3)])
        assert solution.objective <= C * len(y) * min(one.objective for one in solution.history) * (1 + 1e-12)
