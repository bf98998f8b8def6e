"""The parts of which the structural SVM is trained: the program over the constraints found, designs of weights."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from metrimax import _kernels
from metrimax.structured.problem import Constraints
from metrimax.structured.training import Weights, ascend, store


def some_constraints(rng, n, p, m, density=0.5):
    """Constraints with the numbers of their examples; some examples have none, some rows no entry."""
    owner, losses = rng.integers(n, size=m), rng.random(m)
    rows = sparse.csr_array(rng.normal(size=(m, p)) * (rng.random((m, p)) < density))
    return owner, losses, rows


def filled(n, p, C, owner, losses, rows):
    """Working sets with these constraints, which come in as many parts as an example has of them."""
    sets = _kernels.WorkingSets(n, p, C)
    left = np.arange(len(owner))
    while len(left):
        _, first = np.unique(owner[left], return_index=True)
        part, left = left[first], np.delete(left, first)
        all_rows = sparse.csr_array((n, p)).tolil()
        all_losses = np.zeros(n)
        all_rows[owner[part]], all_losses[owner[part]] = rows[part], losses[part]
        store(sets, Constraints(all_losses, sparse.csr_array(all_rows)), owner[part])
    return sets


def slack_of(w, n, owner, losses, rows):
    return np.array([max([0.0, *(losses + rows @ w)[owner == i]]) for i in range(n)])


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("n", "p", "m"), [(12, 30, 60), (12, 3, 60), (1, 4, 30), (5, 4, 0)])
def test_the_program_over_the_constraints_against_a_conic_solver(n, p, m, C):
    given = some_constraints(np.random.default_rng(m + p), n, p, m)
    owner, losses, rows = given
    w, slack = cp.Variable(p), cp.Variable(n, nonneg=True)
    limits = [slack[owner] >= losses + rows.toarray() @ w] if m else []
    best = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + C * cp.sum(slack)), limits).solve(solver=cp.CLARABEL)
    sets = filled(n, p, C, *given)
    assert sets.size == m
    bound = ascend(sets, 1e-9)
    reached = sets.weights()
    slacks = slack_of(reached, n, *given)
    np.testing.assert_allclose(sets.slacks(reached), slacks, atol=1e-12)
    assert bound <= best + 1e-6 * (1 + abs(best))
    objective = reached @ reached / 2 + C * slacks.sum()
    assert objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert objective - bound <= 1e-8 * C * n


def test_a_bound_holds_however_early():
    n, p, C = 20, 40, 2.0
    given = some_constraints(np.random.default_rng(0), n, p, 200)
    done = ascend(filled(n, p, C, *given), 1e-9)
    sets, bounds = filled(n, p, C, *given), [0.0]
    for _ in range(6):
        sets.ascend(1e-9, 0)
        bounds.append(sets.settle())
        w = sets.weights()
        assert bounds[-2] - 1e-12 <= bounds[-1] <= done + 1e-9
        assert w @ w / 2 + C * slack_of(w, n, *given).sum() >= done - 1e-9
    assert bounds[1] < done * (1 - 1e-4)
    assert bounds[-1] > done * (1 - 1e-2)


def test_constraints_without_a_share_are_dropped_and_change_nothing():
    n, p = 20, 10
    given = some_constraints(np.random.default_rng(1), n, p, 200)
    sets = filled(n, p, 1.0, *given)
    value = ascend(sets, 1e-10)
    support, w = sets.n_support, sets.weights()
    for _ in range(2):
        sets.drop(2)
        assert sets.size == 200
    sets.drop(2)
    assert sets.size == support < 200
    assert sets.settle() == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(sets.weights(), w, atol=1e-12)
    assert ascend(sets, 1e-10) == pytest.approx(value, abs=1e-9)
    store(sets, Constraints(np.full(n, 9.0), sparse.csr_array((n, p))), np.arange(n))  # the rest still fits together
    assert ascend(sets, 1e-10) > value


def test_weights_overflow_is_an_error_and_not_a_number():
    huge = Constraints(np.ones(1), sparse.csr_array([[1e200, 1e200]]))
    with pytest.raises(ValueError, match="too large: their inner products overflow; scale them"):
        store(_kernels.WorkingSets(1, 2, 1.0), huge, np.arange(1))


def test_weights_are_a_design():
    design, rng = Weights(4), np.random.default_rng(0)
    w, slope = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    assert design.matvec(w).shape == (5, 2)
    np.testing.assert_allclose(np.sum(design.matvec(w) * slope), np.sum(w * design.rmatvec(slope)))
    assert design.matvec(w[:, 0]).shape == (5,)
