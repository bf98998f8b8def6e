"""The small quadratic program over the cuts, against its optimality conditions and an independent solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from metrimax import _kernels


def rounding(A, scale):
    """What rounding alone does to the gradient."""
    return 1e-14 * (1 + scale * float((A**2).sum(axis=1).max()))


def solve(A, b, scale, a=None, tol=0.0, room=0):
    """The solution for G = A A', with spare rows and columns behind it as the model has them."""
    K = len(b)
    tol = max(tol, 10 * rounding(A, scale))
    G = np.full((K + room, K + room), np.nan)
    G[:K, :K] = A @ A.T
    a = np.eye(K)[0].copy() if a is None else a.copy()
    changes = _kernels.simplex_qp(G, b, scale, a, tol, 50 * K + 100)
    assert changes < 50 * K + 100, "the search did not end by itself"
    return a


def objective(A, b, scale, a):
    return scale / 2 * float(np.sum((A.T @ a) ** 2)) - float(b @ a)


def check(A, b, scale, a, tol):
    """Feasible, and no vertex is a better direction: then no point of the simplex is better by more than tol."""
    assert (a >= 0).all()
    assert a.sum() == pytest.approx(1, abs=1e-12)
    gradient = scale * (A @ (A.T @ a)) - b
    assert a @ gradient - gradient.min() <= tol


def independent(A, b, scale):
    a = cp.Variable(len(b), nonneg=True)
    problem = cp.Problem(cp.Minimize(scale / 2 * cp.sum_squares(A.T @ a) - b @ a), [cp.sum(a) == 1])
    problem.solve(cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def problem(kind: str, K: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(K, 2 * K)), rng.random(K)
    if kind == "low_rank":
        A = rng.normal(size=(K, max(1, K // 4))) @ rng.normal(size=(max(1, K // 4), K))
    elif kind == "duplicates":
        pick = rng.integers(0, max(1, K // 3), size=K)
        A, b = A[pick], b[pick] if seed % 2 else b
    elif kind == "zero_matrix":
        A = np.zeros_like(A)
    elif kind == "zero_row":
        A[0], b[0] = 0, 0
    elif kind == "badly_scaled":
        A = A * 10.0 ** rng.uniform(-6, 6, size=(K, 1))
    elif kind == "nearly_parallel":
        A = rng.normal(size=2 * K) + 1e-6 * A
    elif kind == "ties":
        b = np.ones(K)
    return A, b


KINDS = ["full", "low_rank", "duplicates", "zero_matrix", "zero_row", "badly_scaled", "nearly_parallel", "ties"]


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e4, 1e12])
@pytest.mark.parametrize("kind", KINDS)
def test_optimality_conditions(kind, scale):
    for seed, K in enumerate((1, 2, 3, 8, 30, 100)):
        A, b = problem(kind, K, seed)
        a = solve(A, b, scale, room=seed % 3)
        check(A, b, scale, a, 100 * rounding(A, scale))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "badly_scaled"])
def test_objective_is_that_of_an_independent_solver(kind):
    for seed, K in enumerate((3, 12, 40)):
        A, b = problem(kind, K, seed + 10)
        for scale in (0.1, 3.0):
            got = objective(A, b, scale, solve(A, b, scale))
            assert got == pytest.approx(independent(A, b, scale), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_start_does_not_matter(kind):
    A, b = problem(kind, 20, 5)
    rng = np.random.default_rng(0)
    starts = [np.eye(20)[3], np.full(20, 0.05), rng.dirichlet(np.full(20, 0.1)), np.zeros(20)]
    values = [objective(A, b, 1.0, solve(A, b, 1.0, start)) for start in starts]
    np.testing.assert_allclose(values, values[0], atol=1e-12 * (1 + (A**2).sum(axis=1).max()))


def test_a_warm_start_at_the_solution_changes_nothing():
    A, b = problem("full", 40, 1)
    a = solve(A, b, 1.0)
    G = A @ A.T
    again = a.copy()
    assert _kernels.simplex_qp(G, b, 1.0, again, 1e-10, 1000) == 0
    np.testing.assert_allclose(again, a, atol=1e-12)


def test_a_growing_set_of_cuts_as_in_a_run():
    """Add cuts one by one, warm; every solution is optimal and the minimum never rises."""
    rng = np.random.default_rng(2)
    A, b = np.vstack([np.zeros(15), rng.normal(size=(80, 15)) + 1]), np.concatenate([[0], rng.random(80)])
    a, last = np.ones(1), np.inf
    for K in range(1, 81):
        a = solve(A[:K], b[:K], 1e4, np.concatenate([a, np.zeros(K - len(a))]))
        check(A[:K], b[:K], 1e4, a, 1e-8)
        value = objective(A[:K], b[:K], 1e4, a)
        assert value <= last + 1e-9
        last = value


def test_tolerance_is_what_it_says():
    A, b = problem("full", 60, 3)
    best = objective(A, b, 1.0, solve(A, b, 1.0))
    for tol in (1e-1, 1e-3, 1e-6):
        assert objective(A, b, 1.0, solve(A, b, 1.0, tol=tol)) <= best + tol


@pytest.mark.parametrize("seed", range(4))
def test_the_search_ends_where_rounding_hides_the_tolerance(seed):
    """With vectors this long that nearly cancel, cuts would otherwise come and go until the limit."""
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(60, 50)) + 1e6 * rng.normal(size=(60, 1)), rng.random(60)
    A[0], b[0] = 0, 0
    a = np.eye(60)[0].copy()
    assert _kernels.simplex_qp(A @ A.T, b, 100.0, a, 1e-9, 1300) < 200
    assert (a >= 0).all()
    assert a.sum() == pytest.approx(1, abs=1e-12)


def test_what_does_not_fit_is_refused():
    G, b, a = np.eye(3), np.ones(3), np.ones(3) / 3
    for bad in ((G[:2], b, a), (G, b, a[:2]), (np.ascontiguousarray(G[:, :2]), b, a), (G, b[:0], a[:0])):
        with pytest.raises(ValueError, match=r"simplex_qp.*expected"):
            _kernels.simplex_qp(bad[0], bad[1], 1.0, bad[2], 0.0, 10)
    for bad in ((G.astype(np.float32), b, a), (G, b.astype(int), a), (G, b, a.astype(np.float32))):
        with pytest.raises(TypeError):
            _kernels.simplex_qp(bad[0], bad[1], 1.0, bad[2], 0.0, 10)
