"""The parts of which the structural SVM is trained: the program over the constraints found, designs of weights."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from metrimax.solvers import Bundle
from metrimax.structured.cache import ByExample, CachedRisk, Pooled, cache_of
from metrimax.structured.problem import Constraints
from metrimax.structured.training import Weights
from metrimax.training.lockstep import run


def some_constraints(rng, n, p, m, density=0.5):
    """Constraints with the numbers of their examples; some examples have none, some rows no entry."""
    owner, losses = rng.integers(n, size=m), rng.random(m)
    rows = sparse.csr_array(rng.normal(size=(m, p)) * (rng.random((m, p)) < density))
    return owner, losses, rows


def filled(form, n, p, weight, owner, losses, rows):
    """A cache with these constraints, which come in as many parts as an example has of them."""
    cache, left = form(n, p, weight), np.arange(len(owner))
    while len(left):
        _, first = np.unique(owner[left], return_index=True)
        part, left = left[first], np.delete(left, first)
        all_rows, all_losses = sparse.csr_array((n, p)).tolil(), np.zeros(n)
        all_rows[owner[part]], all_losses[owner[part]] = rows[part], losses[part]
        cache.add(Constraints(all_losses, sparse.csr_array(all_rows)), owner[part])
    return cache


def slack_of(w, n, owner, losses, rows):
    return np.array([max([0.0, *(losses + rows @ w)[owner == i]]) for i in range(n)])


@pytest.mark.parametrize("form", [ByExample, Pooled])
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize(("n", "p", "m"), [(12, 30, 60), (12, 3, 60), (1, 4, 30), (5, 4, 1)])
def test_the_problem_over_the_cache_against_a_conic_solver(n, p, m, C, form):
    given = some_constraints(np.random.default_rng(m + p), n, p, m)
    owner, losses, rows = given
    w, slack = cp.Variable(p), cp.Variable(n, nonneg=True)
    limits = [slack[owner] >= losses + rows.toarray() @ w] if m else []
    best = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + C * cp.sum(slack)), limits).solve(solver=cp.CLARABEL)
    cache = filled(form, n, p, C * n, *given)
    assert len(cache) == m
    reached, bound = cache.solve(1e-6)
    slacks = slack_of(reached, n, *given)
    np.testing.assert_allclose(cache.slacks(reached), slacks, atol=1e-12)
    assert bound * C * n <= best + 1e-6 * (1 + abs(best))
    objective = reached @ reached / 2 + C * slacks.sum()
    assert objective == pytest.approx(best, rel=1e-4, abs=1e-6)
    assert objective / (C * n) - bound <= 3e-6
    assert 0 < cache.n_support <= m


def test_a_bound_holds_however_early():
    n, p, weight = 20, 40, 40.0
    given = some_constraints(np.random.default_rng(0), n, p, 200)
    _, done = filled(Pooled, n, p, weight, *given).solve(1e-8)
    cache, bounds = filled(ByExample, n, p, weight, *given), [0.0]
    for _ in range(40):
        cache._sets.ascend(1e-9, 0)
        bounds.append(cache._sets.settle() / weight)
        w = cache._sets.weights()
        assert bounds[-2] - 1e-12 <= bounds[-1] <= done + 1e-8
        assert w @ w / 2 / weight + slack_of(w, n, *given).mean() >= done - 1e-8
    assert bounds[1] < 0.5 * done < 0.9 * done < bounds[-1]


def test_constraints_without_a_multiplier_are_dropped_and_change_nothing():
    n, p = 20, 10
    given = some_constraints(np.random.default_rng(1), n, p, 200)
    cache = filled(ByExample, n, p, 2.0, *given)
    sizes, bounds = [], []
    for _ in range(7):
        bounds.append(cache.solve(1e-9)[1])
        sizes.append(len(cache))
    assert sizes[:5] == [200] * 5
    assert sizes[-1] == cache.n_support < 100
    np.testing.assert_allclose(bounds, bounds[0], atol=1e-8)
    nine = Constraints(np.full(n, 9.0), sparse.csr_array((n, p)))  # what is left still fits together
    cache.add(nine, np.arange(n))
    assert cache.solve(1e-9)[1] == pytest.approx(9.0)


def test_few_weights_are_solved_for_by_cuts():
    assert isinstance(cache_of(10, 9, 1.0), Pooled)
    assert isinstance(cache_of(10, 10, 1.0), ByExample)


def test_rows_that_overflow_are_an_error():
    huge = Constraints(np.ones(1), sparse.csr_array([[1e200, 1e200]]))
    with pytest.raises(ValueError, match="too large: their inner products overflow; scale them"):
        ByExample(1, 2, 1.0).add(huge, np.arange(1))


def test_the_same_column_twice_counts_as_its_sum():
    twice = sparse.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    cache = ByExample(1, 2, 1.0)
    cache.add(Constraints(np.ones(1), twice), np.arange(1))
    np.testing.assert_allclose(cache.slacks(np.array([5.0, 1.0])), [4.0])


def test_cached_risk_against_loops():
    rng = np.random.default_rng(0)
    owner = rng.integers(8, size=25)
    losses = rng.random(25)
    risk = CachedRisk(10, losses, owner)
    for _ in range(20):
        scores, move = rng.normal(size=25), rng.normal(size=25)

        def slacks(s):
            return np.array([max([0.0, *(losses + s)[owner == i]]) for i in range(10)])

        cut = risk(scores)
        assert cut.loss + cut.slope @ scores == pytest.approx(slacks(scores).mean())
        np.testing.assert_allclose(risk.slacks(scores), slacks(scores))
        assert cut.loss + cut.slope @ move <= slacks(move).mean() + 1e-12  # below everywhere
        line = risk.line(scores, move)
        for t in (0.0, 0.3, 1.0):
            value, slope = line(t)
            ahead = line(t + 1e-7)[0]
            assert value == pytest.approx(slacks(scores + t * move).mean())
            assert slope == pytest.approx((ahead - value) / 1e-7, abs=1e-5)


def test_weights_are_a_design():
    design, rng = Weights(4), np.random.default_rng(0)
    w, slope = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    assert design.matvec(w).shape == (5, 2)
    np.testing.assert_allclose(np.sum(design.matvec(w) * slope), np.sum(w * design.rmatvec(slope)))
    assert design.matvec(w[:, 0]).shape == (5,)


@pytest.mark.parametrize(("p", "spaces"), [(100, (2, 2)), (30, (2, 1)), (3, (1, 1))])
def test_cuts_are_carried_over_when_constraints_are_added(p, spaces):
    """In the space of examples (two arrays), from it to the space of weights, and in that (one array)."""
    rng = np.random.default_rng(p)
    cache = Pooled(20, p, 20.0)
    one, two = (Constraints(rng.random(20), sparse.csr_array(rng.normal(size=(20, p)))) for _ in range(2))
    cache.add(one, np.arange(20))
    cache.solve(1e-6)
    before = cache._cuts
    assert len(before.rows) == spaces[0]
    vectors = before.rows[0] if spaces[0] == 1 else cache.design.rmatvec(np.ascontiguousarray(before.rows[0].T)).T
    losses = before.losses.copy()
    cache.add(two, np.sort(rng.choice(20, size=15, replace=False)))
    carried = cache._cuts
    assert len(carried.rows) == spaces[1]
    np.testing.assert_array_equal(carried.losses, losses)
    if spaces[1] == 1:
        np.testing.assert_allclose(carried.rows[0], vectors)
    else:
        slopes, scores = carried.rows
        np.testing.assert_allclose(cache.design.rmatvec(np.ascontiguousarray(slopes.T)).T, vectors)
        np.testing.assert_allclose(cache.design.matvec(np.ascontiguousarray(vectors.T)).T, scores)
    warm, cold = (
        run(cache.design, [Bundle().steps(cache.risk, cache.design, 20.0, tol=1e-8, start=start)])[0]
        for start in (carried, None)
    )
    assert warm.objective == pytest.approx(cold.objective, rel=1e-6)
