"""Check that a kernel matrix is positive semidefinite."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from metrimax.designs.linear import Dense

STEPS = 40
"""Lanczos steps, one product with the matrix each."""

SHARE = 1e-5
"""How negative an eigenvalue may be, relative to the largest: entries may be rounded."""


def check_definite(K: Dense) -> None:
    """Raise if the symmetric K has a negative eigenvalue: the lower bound of the objective would not hold.

    Uses Lanczos's method, whose lowest value approaches the lowest eigenvalue from above.
    """
    n = K.shape[0]
    basis = np.empty((min(n, STEPS), n))
    diagonal: list[float] = []
    beside: list[float] = []
    v = np.random.default_rng(0).normal(size=n)
    for k in range(len(basis)):
        v -= basis[:k].T @ (basis[:k] @ v)
        length = float(np.linalg.norm(v))
        if k and not length > 1e-8 * max(map(abs, diagonal)):
            break  # K maps the span of the basis into itself
        beside.append(length)
        basis[k] = v / length
        v = K.rmatvec(basis[k])
        diagonal.append(float(basis[k] @ v))
        if not np.isfinite(diagonal[k]):
            return  # where products overflow, the solver says so
        v -= basis[: k + 1].T @ (basis[: k + 1] @ v)
    values = eigvalsh_tridiagonal(np.array(diagonal), np.array(beside[1:]))
    if values[0] < -SHARE * abs(values).max():
        raise ValueError(
            f"the kernel must be positive semidefinite, but its matrix has eigenvalues from {values[0]:.3g} to "
            f"{values[-1]:.3g}: use another kernel, or other parameters"
        )
