"""The model of the risk: cuts, their Gram matrix, and the small quadratic program over them.

With cuts ``R(w) >= b_k + a_k.w`` (the zero cut among them, for R >= 0), the model problem and its dual are::

    min over w of  lam/2 |w|^2 + max_k (b_k + a_k.w)
        =  max over the simplex of  b.alpha - 1/(2 lam) |sum alpha_k a_k|^2

so every feasible ``alpha`` gives a true lower bound, and ``w = -1/lam sum alpha_k a_k``.

Every vector the solvers meet is ``w = X' c`` for some c, and ``<X' c, w> = c.(X w)``. So there are two ways to keep it:
by its p weights, or by its n coefficients c together with its scores. `cut_model` takes the smaller one. Either way one
new cut and the model's next minimiser cost one ``X' v`` and one ``X v``.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.protocols import Ask, Cut, Cuts, Design, Point, Product, Solution, Vector

_NONE = np.empty(0)

PATIENCE = 12
"""A cut that had no weight in this many solutions in a row is dropped, where there are more cuts than that."""


class CutModel:
    """A growing and shrinking set of cuts with the solution of its quadratic program; the zero cut stays.

    ``rows`` are the arrays that hold the cuts' vectors, one row per cut; what they mean is up to the subclass.
    """

    def __init__(self, lam: float, widths: tuple[int, ...], start: Cuts | None) -> None:
        self.lam = lam
        self.bound = -np.inf
        self.n_passes = 0
        given = 0 if start is None else len(start.losses)
        self.size = 1 + given
        room = 64 + given
        self._losses, self._alpha, self._gram = np.zeros(room), np.zeros(room), np.zeros((room, room))
        self._idle = np.zeros(room, dtype=np.intp)
        self._rows = [np.empty((room, width)) for width in widths]  # what is not used is not touched
        for mine in self._rows:
            mine[0] = 0.0
        self._alpha[0] = 1.0
        if start is not None:
            self._losses[1 : self.size] = start.losses
            self._gram[1 : self.size, 1 : self.size] = start.gram
            for mine, given_rows in zip(self._rows, start.rows, strict=True):
                mine[1 : self.size] = given_rows

    def add(self, *cuts: Cut) -> Generator[Ask, Vector, list[Point]]:
        """Append cuts, all in one pass; returns their vectors."""
        raise NotImplementedError

    def minimiser(self, tol: float) -> Point:
        """Minimise the model to within ``tol``; returns where, and raises `bound` to what it proves."""
        raise NotImplementedError

    def score(self, *points: Point) -> Generator[Ask, Vector, list[Point]]:
        """The points with their scores, all in one pass where there is need of one."""
        raise NotImplementedError

    def solve(self, tol: float) -> Generator[Ask, Vector, Point]:
        """The minimiser with its scores."""
        return (yield from self.score(self.minimiser(tol)))[0]

    def bare(self, point: Point) -> Point:
        """The point without scores, where the model's vectors have none: to be combined with them."""
        raise NotImplementedError

    def dual(self, point: Point) -> Vector:
        """What a representation is multiplied with for the inner product with this vector."""
        raise NotImplementedError

    def inner(self, a: Point, b: Point) -> float:
        """The inner product of two weight vectors."""
        return _kernels.dot(a.rep, self.dual(b))

    def weights(self, point: Point) -> Generator[Ask, Vector, Vector]:
        """The weights w of a point."""
        raise NotImplementedError

    @property
    def n_support(self) -> int:
        """Number of cuts with weight in the last solution (the zero cut is none)."""
        return int(np.count_nonzero(self._alpha[1 : self.size]))

    def prune(self) -> None:
        """Drop the cuts that have long been without weight; the last ones move into their places."""
        idle = self._idle[: self.size]
        idle[0] = 0
        if self.size <= PATIENCE or idle.max() <= PATIENCE:
            return
        for k in np.flatnonzero(idle > PATIENCE)[::-1]:
            self.size -= 1
            for values in (self._losses, self._alpha, self._idle, self._gram, *self._rows):
                values[k] = values[self.size]
            self._gram[:, k] = self._gram[:, self.size]

    def cuts(self) -> Cuts:
        """The cuts kept, the zero cut aside: no copies, they hold until the model changes."""
        used = slice(1, self.size)
        return Cuts(self._losses[used], self._gram[used, used], tuple(values[used] for values in self._rows))

    def _append(self, loss: float, *rows: Vector) -> None:
        if self.size == len(self._losses):
            self._losses, self._alpha, self._idle = (_grown(v) for v in (self._losses, self._alpha, self._idle))
            for i in range(len(self._rows)):
                self._rows[i] = _grown(self._rows[i])  # the old one goes before the next grows
            self._gram = np.pad(self._gram, (0, len(self._losses) - self.size))
        k = self.size
        self._losses[k], self._alpha[k], self._idle[k] = loss, 0.0, 0
        for values, row in zip(self._rows, rows, strict=True):
            values[k] = row
        self.size += 1

    def _set_gram(self, row: Vector) -> None:
        """Inner products of the newest cut with all of them, finite if each one's with itself is."""
        if not math.isfinite(row[-1]):
            raise ValueError("the features are too large: their inner products overflow; scale them before training")
        self._gram[self.size - 1, : self.size] = self._gram[: self.size, self.size - 1] = row

    def _solve(self, tol: float) -> Vector:
        """Solve the quadratic program; returns the coefficients of w over the cuts."""
        K = self.size
        alpha = self._alpha[:K]
        _kernels.simplex_qp(self._gram, self._losses[:K], 1 / self.lam, alpha, tol, 20 * K + 100)
        idle = self._idle[:K]
        idle += 1
        idle *= alpha == 0
        return alpha / -self.lam

    def _point(self, rep: Vector, scores: Vector) -> Point:
        """The point at the solution, and the bound it proves.

        |w|^2 comes from w itself: in the Gram matrix of long vectors that nearly cancel, rounding could exceed it.
        """
        square = self.inner(point := Point(rep, scores, 0.0), point)
        loss = float(self._alpha[: self.size] @ self._losses[: self.size])
        self.bound = max(self.bound, loss - self.lam / 2 * square)
        return Point(rep, scores, square)

    def _combine(self, coefficients: Vector, rows: Vector) -> Vector:
        return _kernels.dense_rmatvec(rows[: self.size], coefficients, 1)  # reads the rows with weight only


class WeightModel(CutModel):
    """Cuts kept by their p weights: for data with more rows than columns."""

    def __init__(self, design: Design, lam: float, start: Cuts | None = None) -> None:
        super().__init__(lam, (design.shape[1],), start)

    def add(self, *cuts: Cut) -> Generator[Ask, Vector, list[Point]]:
        vectors = yield from _products("pull", [cut.slope for cut in cuts])
        self.n_passes += 1
        for cut, vector in zip(cuts, vectors, strict=True):
            self._append(cut.loss, vector)
            self._set_gram(_kernels.dots(self._rows[0][: self.size], vector))
        return [Point(vector, _NONE) for vector in vectors]

    def minimiser(self, tol: float) -> Point:
        return self._point(self._combine(self._solve(tol), self._rows[0]), _NONE)

    def score(self, *points: Point) -> Generator[Ask, Vector, list[Point]]:
        scores = yield from _products("scores", [point.rep for point in points])
        self.n_passes += 1
        return [Point(point.rep, row, point.square) for point, row in zip(points, scores, strict=True)]

    def bare(self, point: Point) -> Point:
        return Point(point.rep, _NONE, point.square)

    def dual(self, point: Point) -> Vector:
        return point.rep

    def weights(self, point: Point) -> Generator[Ask, Vector, Vector]:
        return point.rep
        yield  # a generator, like the other


class ExampleModel(CutModel):
    """Cuts kept by their slopes and scores: for data with no more rows than columns, and for kernels."""

    def __init__(self, design: Design, lam: float, start: Cuts | None = None) -> None:
        n, self._width = design.shape
        super().__init__(lam, (n, n), start)

    def add(self, *cuts: Cut) -> Generator[Ask, Vector, list[Point]]:
        pulled = yield from _products("pull", [cut.slope for cut in cuts])
        scores = yield from _products("scores", pulled)
        self.n_passes += 2
        for cut, row in zip(cuts, scores, strict=True):
            self._append(cut.loss, cut.slope, row)
            self._set_gram(_kernels.dots(self._rows[1][: self.size], cut.slope))
        return [Point(cut.slope, row) for cut, row in zip(cuts, scores, strict=True)]

    def minimiser(self, tol: float) -> Point:
        coefficients = self._solve(tol)
        rep, scores = (self._combine(coefficients, rows) for rows in self._rows)
        return self._point(rep, scores)

    def score(self, *points: Point) -> Generator[Ask, Vector, list[Point]]:
        return list(points)
        yield  # nothing to ask for: the scores are known

    def bare(self, point: Point) -> Point:
        return point

    def dual(self, point: Point) -> Vector:
        return point.scores

    def weights(self, point: Point) -> Generator[Ask, Vector, Vector]:
        if point.square == 0:
            return np.zeros(self._width)
        self.n_passes += 1
        return (yield Ask("pull", point.rep))


def cut_model(design: Design, lam: float, start: Cuts | None = None) -> CutModel:
    """The model for this design in the smaller space."""
    n, p = design.shape
    return (WeightModel if n > p else ExampleModel)(design, lam, start)


def plane_cut(design: Design, weight: float, solution: Solution) -> Generator[Ask, Vector, tuple[Cuts, int]]:
    """The plane under the risk that the multipliers of a solution make up, as the one cut to start from; and passes."""
    w, multipliers = solution.w, cast(Vector, solution.dual_coef)
    square = _kernels.dot(w, w)
    rows: tuple[Vector, ...]
    if design.shape[0] > design.shape[1]:
        rows, passes = (-w / weight,), 0
    else:
        scores = yield Ask("scores", w)
        rows, passes = (-multipliers / weight, -scores / weight), 1
    loss, gram = (solution.bound + square / 2) / weight, square / weight**2
    return Cuts(np.array([loss]), np.array([[gram]]), tuple(row[np.newaxis] for row in rows)), passes


def combine(*terms: tuple[float, Point]) -> Point:
    """The sum of points, each times a number; its length is left open."""
    shares = [share for share, _ in terms]
    scores = [point.scores for _, point in terms]
    rep = _kernels.combine(shares, [point.rep for _, point in terms])
    return Point(rep, _kernels.combine(shares, scores) if len(scores[0]) else _NONE)


def _products(product: Product, vectors: list[Vector]) -> Generator[Ask, Vector, list[Vector]]:
    """The products with each of the vectors, in one pass."""
    answers = yield Ask(product, vectors)
    mine = list(answers)
    cast(list[Vector], answers).clear()  # so that who sent them does not keep them alive
    return mine


def _grown(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same rows, with room for half as many below."""
    grown = np.empty((len(values) + len(values) // 2, *values.shape[1:]), dtype=values.dtype)
    grown[: len(values)] = values
    return grown
