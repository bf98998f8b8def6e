"""Plain NumPy versions of what the library computes: slow, short, and the standard the fast ones are held to."""

from __future__ import annotations

import itertools

import numpy as np

# --- products


def matvec(X, w):
    """``X w`` for a dense X; w may be (p,) or (p, L)."""
    return np.asarray(X, dtype=np.float64) @ w


def rmatvec(X, slope):
    """``X' slope`` for a dense X; slope may be (n,) or (n, L)."""
    return np.asarray(X, dtype=np.float64).T @ slope


def with_intercept(X, value):
    """X with a last column that is ``value`` throughout."""
    return np.hstack([X, np.full((len(X), 1), value, dtype=X.dtype)])


def csr_is_sound(indices, indptr, n_cols):
    """Whether a CSR structure can be read without leaving its arrays."""
    return (
        len(indptr) > 0
        and indptr[0] == 0
        and indptr[-1] == len(indices)
        and all(a <= b for a, b in itertools.pairwise(indptr))
        and all(0 <= j < n_cols for j in indices)
    )
