"""Quasi-Newton directions in the space of the cut model."""

from __future__ import annotations

import numpy as np

from metrimax import _kernels
from metrimax.protocols import Point, Vector
from metrimax.solvers.model import CutModel, combine


class QuasiNewton:
    """The limited-memory BFGS matrix, in the model's space (Liu & Nocedal 1989).

    The direction is a combination of the past steps, the changes of the gradient over them, and the gradient. So the
    recursion works on coefficients, with the inner products of all these, and the vectors are summed once at the end
    (Chen, Wang & Zhou 2014).
    """

    def __init__(self, model: CutModel, memory: int) -> None:
        self._model = model
        self._memory = memory
        self._pairs = 0
        self._rows: list[Vector] = []  # steps, then changes: by what represents them, and by scores where they have any
        self._gram = np.zeros((2 * memory, 2 * memory))

    def update(self, step: Point, change: Point) -> None:
        """Learn that the gradient changed by ``change`` over ``step``; the oldest pair is forgotten."""
        memory = self._memory
        curvature, square = self._model.inner(step, change), self._model.inner(change, change)
        if not curvature > 1e-12 * square > 0:
            return
        if not self._rows:
            self._rows = [np.zeros((2 * memory, len(part))) for part in (step.rep, step.scores) if len(part)]
        slot = self._pairs % memory
        self._pairs += 1
        both = ((slot, step), (slot + memory, change))
        for at, vector in both:
            for rows, part in zip(self._rows, (vector.rep, vector.scores), strict=False):
                rows[at] = part
        for at, vector in both:
            self._gram[at] = self._gram[:, at] = self._inner(vector)

    def direction(self, gradient: Point, scale: float) -> Point:
        """Minus the inverse Hessian times the gradient; ``scale`` is the inverse Hessian's while nothing is known."""
        if not self._pairs:
            return combine((-scale, gradient))
        shares = np.empty(2 * self._memory)
        own = _kernels.lbfgs_shares(self._gram, self._inner(gradient), self._pairs, shares)
        sums = [_kernels.dense_rmatvec(rows, shares, 1) for rows in self._rows]
        for total, part in zip(sums, (gradient.rep, gradient.scores), strict=False):
            _kernels.axpy(own, part, total)
        return Point(sums[0], sums[1] if len(sums) > 1 else gradient.scores)

    def _inner(self, vector: Point) -> Vector:
        """The inner products of a vector with all steps and changes."""
        return _kernels.dense_matvec(self._rows[0], self._model.dual(vector), 1)
