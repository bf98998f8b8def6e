"""The parts of which the structural SVM is trained: cached constraints, their risk, designs of weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from metrimax.solvers import Bundle
from metrimax.structured.training import Cache, CachedRisk, Constraints, Weights
from metrimax.training.lockstep import run


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


def test_cache_keeps_constraints_by_example():
    cached = Cache(3, 2)
    assert len(cached) == 0
    np.testing.assert_array_equal(cached.slacks(np.zeros(2)), np.zeros(3))
    one = Constraints(np.array([1.0, 2.0, 3.0]), sparse.csr_array([[1.0, 0], [0, 1.0], [1.0, 1.0]]))
    two = Constraints(np.array([0.5, 0.0, 0.0]), sparse.csr_array([[3.0, 0], [0, 0], [0, 0]]))
    cached.add(one, np.array([0, 2]))
    cached.add(two, np.array([0]))
    assert len(cached) == 3
    np.testing.assert_allclose(cached.slacks(np.array([1.0, -5.0])), [3.5, 0.0, 0.0])
    np.testing.assert_allclose(cached.slacks(np.array([-2.0, 1.0])), [0.0, 0.0, 2.0])


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
    cached = Cache(20, p)
    one, two = (Constraints(rng.random(20), sparse.csr_array(rng.normal(size=(20, p)))) for _ in range(2))
    cached.add(one, np.arange(20))
    solution = run(cached.design, [Bundle().steps(cached.risk, cached.design, 20.0, tol=1e-6)])[0]
    assert len(solution.cuts.rows) == spaces[0]
    before = solution.cuts
    vectors = before.rows[0] if spaces[0] == 1 else cached.design.rmatvec(np.ascontiguousarray(before.rows[0].T)).T
    carried = cached.add(two, np.sort(rng.choice(20, size=15, replace=False)), before)
    assert len(carried.rows) == spaces[1]
    np.testing.assert_array_equal(carried.losses, before.losses)
    if spaces[1] == 1:
        np.testing.assert_allclose(carried.rows[0], vectors)
    else:
        slopes, scores = carried.rows
        np.testing.assert_allclose(cached.design.rmatvec(np.ascontiguousarray(slopes.T)).T, vectors)
        np.testing.assert_allclose(cached.design.matvec(np.ascontiguousarray(vectors.T)).T, scores)
    warm, cold = (
        run(cached.design, [Bundle().steps(cached.risk, cached.design, 20.0, tol=1e-8, start=start)])[0]
        for start in (carried, None)
    )
    assert warm.objective == pytest.approx(cold.objective, rel=1e-6)
