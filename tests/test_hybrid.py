"""When the hybrid takes its quasi-Newton direction: the other iterations are those of the bundle method."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pytest

from metrimax import _kernels
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.protocols import Status
from metrimax.solvers import Bundle, Hybrid
from metrimax.solvers.hybrid import BRISK, LONG, MEMORY, SHORT
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


def test_an_easy_problem_is_left_to_the_bundle_method():
    X, y = sample(shift=2.0)
    plain, asked = solve(Hybrid(plain=2, patient=1000), X, y, C=1e-3)
    bundle, _ = solve(Bundle(), X, y, C=1e-3)
    assert set(asked) == {1}
    assert plain.n_passes == bundle.n_passes
    _, asked = solve(Hybrid(plain=2, patient=1000), X, y, C=1e4)
    assert 2 in asked, "not with a bound that is far from the objective"


def test_an_easy_problem_is_one_whose_gap_falls_fast():
    X, y = sample()
    _, asked = solve(Hybrid(plain=2, patient=1000, brisk=1.0), X, y, C=0.1)
    assert set(asked) == {1}
    solution, asked = solve(Hybrid(plain=2, patient=1000, brisk=0.5), X, y, C=0.1)
    falls = [b.gap / a.gap for a, b in itertools.pairwise(solution.history)]
    slow = next(k for k, fall in enumerate(falls, start=2) if fall > 0.5)
    assert 2 <= slow < solution.n_iter
    assert asked[: 2 * slow] == [1] * (2 * slow)
    assert set(asked[2 * slow : -2]) == {2}


def test_smooth_risks_have_plain_iterations_of_their_own():
    """The cut of ROC area at w = 0 concerns all examples."""
    X, y = sample()
    _, asked = solve(Hybrid(plain=8, smooth=1), X, y, C=1e-2, measure="roc_area", tol=1e-6)
    assert asked[:4] == [1, 1, 2, 2]
    solution, asked = solve(
        Hybrid(plain=8, smooth=1, patient=1000, brisk=1.0), X, y, C=0.1, measure="roc_area", tol=1e-6
    )
    falls = [b.gap / a.gap for a, b in itertools.pairwise(solution.history)]
    slow = next(k for k, fall in enumerate(falls, start=2) if fall > BRISK)
    assert asked[: 2 * slow] == [1] * (2 * slow)
    assert asked[2 * slow] == 2, "they do not wait longer, whatever others do"


def test_weights_that_are_zero_cost_no_pass():
    rng = np.random.default_rng(3)
    X, y = np.zeros((200, 300)), rng.random(200) < 0.1  # more columns than rows, of which three are not empty
    X[:, :3] = rng.standard_normal((200, 3))
    solution, asked = solve(Bundle(), X, y, C=0.01)
    assert solution.status is Status.TRIVIAL
    assert len(asked) == 2 * solution.n_iter
    assert solution.n_passes <= len(asked)
    np.testing.assert_array_equal(solution.w, np.zeros(301))


def test_the_quasi_newton_matrix_remembers_more_where_vectors_are_short():
    made = []

    class Steps(_kernels.BundleSteps):
        def __init__(self, *arguments, memory, **options):
            super().__init__(*arguments, memory=memory, **options)
            made.append(memory)

    rng = np.random.default_rng(0)
    for n, p, memory in ((40, 5, None), (40, LONG + 10, None), (LONG + 10, LONG + 5, None), (40, 5, 3)):
        X, y = rng.standard_normal((n, p)), np.arange(n) < 10
        with mock.patch.object(_kernels, "BundleSteps", Steps):
            design, oracle = as_design(X), get_measure("f1").oracle(y)
            run(design, [Hybrid(max_iter=2, memory=memory).steps(oracle, design, oracle.n, tol=1e-3)])
    assert made == [MEMORY, MEMORY, SHORT, 3]
