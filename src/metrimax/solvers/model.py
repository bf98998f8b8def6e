"""The model of the risk: cuts, their Gram matrix, and the small quadratic program over them.

With cuts ``R(w) >= b_k + a_k.w`` (the zero cut among them, for R >= 0), the model problem and its dual are::

    min over w of  lam/2 |w|^2 + max_k (b_k + a_k.w)
        =  max over the simplex of  b.alpha - 1/(2 lam) |sum alpha_k a_k|^2

so every feasible ``alpha`` gives a true lower bound, and ``w = -1/lam sum alpha_k a_k``.
"""

from __future__ import annotations

import numpy as np

from metrimax import _kernels
from metrimax.protocols import Cuts, Design, Vector

PATIENCE = 30
"""A cut that had no weight in this many solutions in a row is dropped."""


class CutModel:
    """A growing and shrinking set of cuts with the solution of its quadratic program."""

    def __init__(self, design: Design, lam: float, start: Cuts | None = None) -> None:
        self._design = design
        self.lam = lam
        self.bound = -np.inf
        given = 0 if start is None else len(start.losses)
        self.size = 1 + given  # the zero cut is number 0 and stays
        room = 8 + 2 * given
        self._vectors = np.zeros((room, design.shape[1]))
        self._losses = np.zeros(room)
        self._gram = np.zeros((room, room))
        self._idle = np.zeros(room, dtype=np.intp)
        self._alpha = np.zeros(room)
        self._alpha[0] = 1.0
        if start is not None:
            self._vectors[1 : self.size] = start.vectors
            self._losses[1 : self.size] = start.losses
            self._gram[1 : self.size, 1 : self.size] = start.gram

    def add(self, loss: float, vector: Vector) -> None:
        """Append the cut ``R(w) >= loss + vector.w``."""
        if self.size == len(self._losses):
            self._grow()
        k = self.size
        self._vectors[k] = vector
        self._losses[k] = loss
        self.size += 1
        row = self._design.inner(self._vectors[: self.size], vector)
        self._gram[k, : self.size] = self._gram[: self.size, k] = row
        self._alpha[k] = 0.0
        self._idle[k] = 0

    def solve(self, tol: float) -> Vector:
        """Minimise the model to within ``tol``; returns its w and raises `bound` to what it proves."""
        K = self.size
        alpha = self._alpha[:K]
        _kernels.simplex_qp(self._gram, self._losses[:K], 1 / self.lam, alpha, tol, 20 * K + 100)
        active = np.flatnonzero(alpha)
        self._idle[:K] += 1
        self._idle[active] = 0
        share = alpha[active]
        quadratic = share @ self._gram[np.ix_(active, active)] @ share
        self.bound = max(self.bound, float(share @ self._losses[active] - quadratic / (2 * self.lam)))
        return _kernels.dense_rmatvec(self._vectors[:K], alpha / -self.lam, 1)  # reads the active cuts only

    @property
    def n_support(self) -> int:
        """Number of cuts with weight in the last solution (the zero cut is none)."""
        return int(np.count_nonzero(self._alpha[1 : self.size]))

    def prune(self) -> None:
        """Drop the cuts that have long been without weight; the last ones move into their places."""
        self._idle[0] = 0
        for k in np.flatnonzero(self._idle[: self.size] > PATIENCE)[::-1]:
            self.size -= 1
            last = self.size
            for values in (self._vectors, self._losses, self._alpha, self._idle, self._gram):
                values[k] = values[last]
            self._gram[:, k] = self._gram[:, last]

    def cuts(self) -> Cuts:
        """The cuts kept, the zero cut aside."""
        used = slice(1, self.size)
        return Cuts(self._losses[used].copy(), self._vectors[used].copy(), self._gram[used, used].copy())

    def _grow(self) -> None:
        size = 2 * len(self._losses)
        for name in ("_vectors", "_losses", "_alpha", "_idle"):
            old = getattr(self, name)
            new = np.zeros((size, *old.shape[1:]), dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        gram = np.zeros((size, size))
        gram[: len(self._gram), : len(self._gram)] = self._gram
        self._gram = gram
