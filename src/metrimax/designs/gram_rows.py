"""The values of a kernel in the place of rows, for coordinate descent."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.designs.linear import Dense, every_row
from metrimax.protocols import Epochs, Hinges, Product, Rows, Vector, Working


class GramRows:
    """`protocols.RowAccess` for the kernel matrix K of the examples; with a ``bias``, for ``K + bias^2``.

    The weights are coefficients of the examples: those of ``X' (sign * alpha)`` are ``sign * alpha``, followed by
    ``bias`` times their sum where there is a bias. ``matvec`` computes ``K v`` for the coefficients v.
    """

    in_order = False  #: there are no rows in memory

    def __init__(self, K: Dense, matvec: Callable[[Vector], Vector], bias: float = 0.0) -> None:
        self._K, self._matvec, self._bias = K, matvec, bias

    def with_constant(self, value: float) -> GramRows:
        return GramRows(self._K, self._matvec, value)

    def products(self, product: Product, vectors: list[Vector]) -> list[Vector]:
        if product == "pull":
            return [self._weights(vector) for vector in vectors]
        n = self._K.shape[0]
        one = len(vectors) == 1
        found = self._matvec(np.ascontiguousarray(vectors[0][:n]) if one else np.column_stack([v[:n] for v in vectors]))
        each = [found] if one else list(_kernels.transpose(np.ascontiguousarray(found)))
        return [s + self._bias * v[n] for s, v in zip(each, vectors, strict=True)] if self._bias else each

    def some(self, rows: Rows) -> None:
        """There are no rows in memory."""

    def squares(self) -> Vector:
        squares: Vector = self._K.X.diagonal().astype(np.float64) + self._bias**2
        return squares

    def mean_square(self) -> float:
        return float(self.squares().mean())

    def square(self, w: Vector, slope: Vector, scores: Vector) -> float:
        return _kernels.dot(slope, scores)

    def dual_epochs(
        self,
        hinges: Hinges,
        upper: Vector,
        alpha: Vector,
        w: Vector,
        *,
        tol: float,
        max_passes: float,
        gap: float = -np.inf,
        working: Working | None = None,
    ) -> Epochs:
        n = len(alpha)
        visited = working or every_row(n)
        scores = self.products("scores", [w])[0]
        visits, reached, looks, count, *limits = _kernels.dual_cd(
            self._K._compiled, self._bias, self._hinges(hinges, upper), alpha, scores, visited,
            again=working is None, tol=tol, gap=gap, max_visits=math.ceil(max_passes * n), gram=True,
        )  # fmt: skip
        w[:] = self._weights(hinges.sign * alpha)
        return Epochs(visits / n, reached, looks, Working(visited.rows[:count], *limits))

    def pair_epochs(
        self, hinges: Hinges, alpha: Vector, w: Vector, working: npt.NDArray[np.int64], *, tol: float, max_passes: float
    ) -> float:
        n, free = len(alpha), self.with_constant(0.0)
        scores = np.ascontiguousarray(self._matvec(w))
        visits, _, _ = _kernels.pair_cd(
            self._K._compiled, free._hinges(hinges, hinges.weight), alpha, scores, working,
            tol=tol, max_visits=math.ceil(max_passes * n), gram=True,
        )  # fmt: skip
        w[:] = hinges.sign * alpha
        return float(visits / n)

    def _hinges(self, hinges: Hinges, upper: Vector) -> _kernels.HingeSum:
        return _kernels.HingeSum(squares=self.squares(), sign=hinges.sign, margin=hinges.margin, upper=upper)

    def _weights(self, slope: Vector) -> Vector:
        return np.append(slope, self._bias * slope.sum()) if self._bias else slope.copy()
