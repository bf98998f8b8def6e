"""Bounds of the largest ``K(x, x) - K(x, x')`` of a sample, the radius R2 of the xi-alpha estimates."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from metrimax._validation import dense
from metrimax.designs.kernel import squares as row_squares
from metrimax.protocols import Vector

EXACT = 2000
"""Up to this many examples R2 is the largest over all pairs; for more, the ranges of the features bound it."""


def linear_R2(X: Any, squares: Vector | None = None) -> float:
    """An upper bound of ``x.x - x.x'`` over the rows of X, exact for small samples. ``squares`` holds ``x.x``.

    For large samples ``x.x'`` is bounded from below by the ranges of the features and by Cauchy and Schwarz; for
    unit-length, non-negative rows this gives 1.
    """
    if X.shape[0] <= (EXACT // 8 if sparse.issparse(X) else EXACT):  # products of sparse matrices are slow
        return largest_difference(X, lambda rows: rows @ X.T)
    squares = row_squares(X) if squares is None else squares
    least = -np.sqrt(squares * squares.max())
    if sparse.issparse(X) and X.data.min(initial=0.0) >= 0 and _some_zero(X):
        return float((squares - np.maximum(least, 0.0)).max())  # text: the ranges of the columns are not needed
    low = as_vector(X.min(axis=0))
    if low.min() >= 0:
        least = np.maximum(least, X @ low)
    else:
        high = as_vector(X.max(axis=0))
        parts = (X.maximum(0), X.minimum(0)) if sparse.issparse(X) else (np.maximum(X, 0), np.minimum(X, 0))
        least = np.maximum(least, parts[0] @ low + parts[1] @ high)
    return float((squares - least).max())


def _some_zero(X: Any) -> bool:
    """Whether every column of a sparse matrix has a zero."""
    return bool(np.bincount(X.indices, minlength=X.shape[1]).max(initial=0) < X.shape[0])


def largest_difference(X: Any, kernel: Any) -> float:
    """The largest ``K(x, x) - K(x, x')``, block by block; ``kernel`` gives the rows of K for rows of X."""
    largest = 0.0
    for start in range(0, X.shape[0], 256):
        K = np.asarray(dense(kernel(X[start : start + 256])))
        largest = max(largest, float((K[np.arange(len(K)), start + np.arange(len(K))] - K.min(axis=1)).max()))
    return largest


def as_vector(row: Any) -> Vector:
    return np.ravel(np.asarray(dense(row)))
