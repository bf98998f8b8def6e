"""When the hybrid takes its quasi-Newton direction: the other iterations are those of the bundle method."""

from __future__ import annotations

import numpy as np
import pytest

from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.protocols import Status
from metrimax.solvers import Bundle, Hybrid
from metrimax.training.lockstep import run


def sample(n=300, p=8, seed=0, shift=1.0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.2
    return rng.standard_normal((n, p)) + shift * y[:, None], y


class Watched:
    """A design that notes how many vectors were asked for at a time."""

    def __init__(self, design):
        self.design, self.shape, self.asked = design, design.shape, []

    rows = property(lambda self: self)  # those methods of them that are asked for

    def products(self, product, vectors):
        self.asked.append(len(vectors))
        return self.design.rows.products(product, vectors)


def solve(solver, X, y, C, measure="f1", tol=1e-4):
    design, oracle = Watched(as_design(X, intercept_scaling=1.0)), get_measure(measure).oracle(y)
    [solution] = run(design, [solver.steps(oracle, design, C * oracle.price * oracle.n, tol=tol)])
    return solution, design.asked


@pytest.mark.parametrize("plain", [1, 3, 6])
def test_plain_iterations_come_first(plain):
    _, asked = solve(Hybrid(plain=plain), *sample(), C=10.0)
    assert asked[: 2 * plain] == [1] * (2 * plain), "two products with one vector each"
    assert set(asked[2 * plain : -2]) == {2}


def test_no_quasi_newton_step_is_tried_from_zero():
    """Features that say nothing: w = 0 is the best point to the end."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((200, 3)), rng.random(200) < 0.1
    solution, asked = solve(Hybrid(plain=1), X, y, C=0.01)
    assert solution.status is Status.TRIVIAL
    assert set(asked) == {1}


def test_without_end_of_the_plain_iterations_it_is_the_bundle_method():
    X, y = sample()
    plain, asked = solve(Hybrid(plain=np.inf), X, y, C=1.0)
    bundle, _ = solve(Bundle(), X, y, C=1.0)
    assert set(asked) == {1}
    assert plain.n_passes == bundle.n_passes
    np.testing.assert_array_equal(plain.w, bundle.w)


def test_weights_that_are_zero_cost_no_pass():
    rng = np.random.default_rng(3)
    X, y = np.zeros((200, 300)), rng.random(200) < 0.1  # more columns than rows, of which three are not empty
    X[:, :3] = rng.standard_normal((200, 3))
    solution, asked = solve(Bundle(), X, y, C=0.01)
    assert solution.status is Status.TRIVIAL
    assert len(asked) == 2 * solution.n_iter
    assert solution.n_passes <= len(asked)
    np.testing.assert_array_equal(solution.w, np.zeros(301))
