"""Quasi-Newton directions in the space of the cut model."""

from __future__ import annotations

from metrimax import _kernels
from metrimax.protocols import Point
from metrimax.solvers.model import CutModel


class QuasiNewton:
    """The limited-memory BFGS matrix of ``lam/2 |w|^2 + R(w)``, in the model's space (`_core/quasi_newton.hpp`).

    It learns from the points and slopes for which directions are asked.
    """

    def __init__(self, model: CutModel, memory: int) -> None:
        self._model = model
        self._matrix = _kernels.QuasiNewton(model.lam, memory)

    def direction(self, point: Point, slope: Point) -> Point:
        """Minus the inverse Hessian times the gradient, at a point where the risk has this slope."""
        point = self._model.bare(point)
        return Point(*self._matrix.direction(point.rep, point.scores, slope.rep, slope.scores))

    def forget(self) -> None:
        """Do not compare the next slope with the last one."""
        self._matrix.forget()
