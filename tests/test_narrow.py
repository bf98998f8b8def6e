"""Products with dense rows of a few entries, which have loops of their own: every length of row, against NumPy."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from metrimax.designs import as_design

WIDTHS = [*range(1, 71), 95, 255, 256, 257]


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


def whole(rng, *shape, zeros=0.0):
    """Small whole numbers, so that every order of summation gives the same; none is zero but the share asked for."""
    numbers = rng.integers(1, 9, shape) * rng.choice([-1.0, 1.0], shape)
    return np.where(rng.random(shape) < zeros, 0.0, numbers)


def check(X, rng):
    """All products with one vector and with two, apart and side by side, with slopes in all rows and in some."""
    A, design = X.astype(np.float64), as_design(X)
    W = whole(rng, X.shape[1], 2)
    assert_array_equal(design.matvec(W[:, 0].copy()), A @ W[:, 0])
    assert_array_equal(design.matvec(W), A @ W)
    assert_array_equal(design.rows.products("scores", list(W.T.copy())), (A @ W).T)
    for zeros in (0.0, 0.4, 0.9):
        S = whole(rng, X.shape[0], 2, zeros=zeros)
        assert_array_equal(design.rmatvec(S[:, 0].copy()), A.T @ S[:, 0])
        assert_array_equal(design.rmatvec(S), A.T @ S)
        assert_array_equal(design.rows.products("pull", list(S.T.copy())), (A.T @ S).T)


@pytest.mark.parametrize("p", WIDTHS)
def test_rows_of_every_length(p, dtype):
    rng = np.random.default_rng(p)
    for n in range(1, 41):
        check(whole(rng, n, p).astype(dtype), rng)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 8, 22, 31, 60, 64])
def test_more_rows_than_are_listed_at_once(p, dtype):
    rng = np.random.default_rng(p)
    X = whole(rng, 2500, p)
    check(X.astype(dtype), rng)
    slopes = whole(rng, 2500)  # runs of rows that count, that do not, and of some of both
    slopes[40:300] = slopes[1000:1037] = slopes[1800:2400:3] = 0
    for listed in (slopes, slopes[::-1].copy()):
        assert_array_equal(as_design(X.astype(dtype)).rmatvec(listed), X.T @ listed)


@pytest.mark.parametrize("p", WIDTHS[:70])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_row_and_column(p, bad, dtype):
    rng = np.random.default_rng(p)
    n = 11
    for i, j in ((0, 0), (3, p - 1), (5, p // 2), (n - 1, max(p - 4, 0)), (n - 1, p - 1)):
        X = whole(rng, n, p)
        w, c = np.abs(whole(rng, 2, p)), np.abs(whole(rng, 2, n))
        scores, sums = w @ X.T, c @ X
        X[i, j] = bad
        scores[:, i] = sums[:, j] = bad
        design = as_design(X.astype(dtype))
        assert_array_equal(design.matvec(w[0]), scores[0])
        assert_array_equal(design.rows.products("scores", list(w)), scores)
        assert_array_equal(design.rmatvec(c[0]), sums[0])
        assert_array_equal(design.rows.products("pull", list(c)), sums)
        c[:, i] = 0  # and a row without a slope is not read
        expected = c @ np.where(np.isfinite(X), X, 0.0)
        assert_array_equal(design.rmatvec(c[0]), expected[0])
        assert_array_equal(design.rows.products("pull", list(c)), expected)


@pytest.mark.parametrize(("n", "p"), [(140_003, 3), (60_002, 7), (14_001, 30), (3_999, 131)])
def test_scores_do_not_depend_on_the_number_of_threads(n, p, dtype):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((n, p)).astype(dtype), rng.standard_normal((2, p))
    one = as_design(X, n_threads=1)
    for n_threads in (2, 3):
        several = as_design(X, n_threads=n_threads)
        assert_array_equal(several.matvec(w[0]), one.matvec(w[0]))
        assert_array_equal(several.rows.products("scores", list(w)), one.rows.products("scores", list(w)))


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
@pytest.mark.parametrize("p", WIDTHS)
def test_nothing_outside_the_matrix_is_read(p, dtype):
    """The matrix begins where a page begins, or ends where one ends, and the pages around it must not be touched."""
    rng = np.random.default_rng(p)
    libc = ctypes.CDLL(None, use_errno=True)
    page, size = mmap.PAGESIZE, np.dtype(dtype).itemsize
    for n in (1, 2, 3, 4, 7, 9):
        inside = -(-n * p * size // page) * page
        memory = mmap.mmap(-1, inside + 2 * page)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for fence in (base, base + page + inside):
            assert libc.mprotect(ctypes.c_void_p(fence), ctypes.c_size_t(page), 0) == 0
        for first in (page, page + inside - n * p * size):
            X = np.frombuffer(memory, dtype, n * p, first).reshape(n, p)
            X[:] = whole(rng, n, p)
            assert np.shares_memory(as_design(X).X, X)
            check(X, rng)
