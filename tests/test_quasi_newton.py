"""The limited-memory BFGS matrix against the update formula written out."""

import itertools

import numpy as np
import pytest

from metrimax import _kernels


def inverse(pairs, size):
    """The BFGS approximation of the inverse Hessian from pairs (step, change), oldest first."""
    step, change = pairs[-1]
    H = np.eye(size) * (step @ change) / (change @ change)
    for step, change in pairs:
        rho = 1 / (step @ change)
        V = np.eye(size) - rho * np.outer(change, step)
        H = V.T @ H @ V + rho * np.outer(step, step)
    return H


@pytest.mark.parametrize("images", [False, True], ids=["weights", "images"])
def test_direction_is_that_of_the_last_pairs(images):
    rng = np.random.default_rng(0)
    size, memory, lam = 7, 3, 0.5
    X = rng.normal(size=(size, size + 4))
    K = X @ X.T if images else np.eye(size)
    root = np.linalg.cholesky(K)  # <a, b> = a'Kb is the usual product of root' a and root' b
    A = rng.normal(size=(size, size))
    matrix = _kernels.QuasiNewton(lam, memory)
    none, past = np.empty(0), []
    for k in range(8):
        point = rng.normal(size=size)
        slope = np.linalg.solve(K, A @ A.T @ point)  # a risk with the Hessian A A'
        gradient = lam * point + slope
        if past:
            assert (point - past[-1][0]) @ K @ (gradient - past[-1][1]) > 0
        past.append((point, gradient))
        pairs = [
            (root.T @ (now[0] - before[0]), root.T @ (now[1] - before[1])) for before, now in itertools.pairwise(past)
        ][-memory:]
        H = inverse(pairs, size) if pairs else np.eye(size) / lam
        expected = -np.linalg.solve(root.T, H @ root.T @ gradient)
        given = (point, K @ point, slope, K @ slope) if images else (point, none, slope, none)
        direction, image = matrix.direction(*given)
        assert direction == pytest.approx(expected, rel=1e-8, abs=1e-10), k
        assert image == pytest.approx(K @ expected if images else none, rel=1e-8, abs=1e-10)


def test_what_is_forgotten_or_curved_the_wrong_way_is_not_learnt():
    rng = np.random.default_rng(0)
    none = np.empty(0)
    point, slope = rng.normal(size=4), rng.normal(size=4)
    matrix = _kernels.QuasiNewton(1.0, 5)
    matrix.direction(point, none, slope, none)
    matrix.forget()
    again = rng.normal(size=4)
    assert matrix.direction(again, none, slope, none)[0] == pytest.approx(-(again + slope))  # still scaled by 1 / lam
    assert matrix.direction(again, none, slope, none)[0] == pytest.approx(-(again + slope))  # no step: nothing learnt
    concave = slope - 3 * again
    assert matrix.direction(2 * again, none, concave, none)[0] == pytest.approx(-(2 * again + concave))


def test_vectors_that_do_not_fit_are_refused():
    none, three, four = np.empty(0), np.zeros(3), np.zeros(4)
    with pytest.raises(ValueError, match="memory"):
        _kernels.QuasiNewton(1.0, 0)
    matrix = _kernels.QuasiNewton(1.0, 2)
    for given in ((three, none, four, none), (three, four, three, four), (three, three, three, none)):
        with pytest.raises(ValueError, match=r"expected length|as long as"):
            matrix.direction(*given)
    matrix.direction(three, none, three, none)
    with pytest.raises(ValueError, match="expected length 3"):
        matrix.direction(four, none, four, none)
    with pytest.raises(ValueError, match="expected length 0"):
        matrix.direction(three, three, three, three)
