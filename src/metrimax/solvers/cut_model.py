"""The model of the risk: cuts, their Gram matrix, and the small quadratic program over them.

With cuts ``R(w) >= b_k + a_k.w`` (the zero cut among them, for R >= 0), the model problem and its dual are::

    min over w of  lam/2 |w|^2 + max_k (b_k + a_k.w)
        =  max over the simplex of  b.alpha - 1/(2 lam) |sum alpha_k a_k|^2

so every feasible ``alpha`` gives a true lower bound, and ``w = -1/lam sum alpha_k a_k``.

Every vector the solvers meet is ``w = X' c`` for some c, and ``<X' c, w> = c.(X w)``. So there are two ways to keep it:
by its p weights, or by its n coefficients c together with its scores, its *image*. The model takes the smaller one.
Either way one new cut and the model's next minimiser cost one ``X' v`` and one ``X v``.
"""

from __future__ import annotations

import numpy as np

from metrimax import _kernels
from metrimax.protocols import Ask, Asking, Cuts, Design, Point, Vector

_NONE = np.empty(0)

PATIENCE = 12
"""A cut without weight in more than this many solutions in a row is dropped, if there are more cuts than this. With 4
and 36: as many passes; what it saves is memory and the time of the small program.
"""


def kept_by_weights(design: Design) -> bool:
    """Whether vectors of weights are shorter than vectors of scores for this design; for kernels they are not."""
    n, p = design.shape
    return n > p


class CutModel:
    """A growing and shrinking set of cuts with the solution of its quadratic program (`_core/cut_pool.hpp`)."""

    def __init__(self, design: Design, lam: float, start: Cuts | None) -> None:
        self.lam, self.images = lam, not kept_by_weights(design)
        self.bound = -np.inf
        self.n_passes = 0.0 if start is None else start.n_passes
        self._shape = design.shape
        self._pool: _kernels.CutPool
        if start is not None and start.given and start.pool.size == len(start.losses) + 1:  # and has not moved on
            self._pool = start.pool
            return
        room = 4 * PATIENCE + (0 if start is None else len(start.losses))  # what is not used is not touched
        self._pool = _kernels.CutPool(min(design.shape), self.images, room)
        if start is not None:
            losses, gram = (np.ascontiguousarray(values) for values in (start.losses, start.gram))
            self._pool.begin(losses, gram, [np.ascontiguousarray(rows) for rows in start.rows])

    def pulled(self, slopes: list[Vector]) -> Asking[tuple[list[Vector], list[Vector]]]:
        """The pull-backs of slopes, in one pass, and their images where vectors are kept by coefficients."""
        self.n_passes += _kernels.rows_read(slopes) + self.images
        vectors = list(slopes)
        pulled = taken((yield Ask("pull", slopes)))
        if not self.images:
            return pulled, []
        return vectors, taken((yield Ask("scores", pulled)))

    def scores(self, vectors: list[Vector]) -> Asking[list[Vector]]:
        """The scores of vectors, in one pass; none where the images are the scores."""
        if self.images:
            return []
        self.n_passes += 1
        return taken((yield Ask("scores", vectors)))

    def add(self, losses: list[float], slopes: list[Vector]) -> Asking[list[Point]]:
        """Append cuts, in one pass, and drop those long without weight; returns the vectors of the new cuts."""
        if not slopes:
            return []
        vectors, images = yield from self.pulled(slopes)
        self._pool.append(losses, vectors, images, PATIENCE)
        return [Point(*both) for both in zip(vectors, images or [_NONE] * len(vectors), strict=True)]

    def score(self, point: Point) -> Asking[Point]:
        """The point with its scores, computed in one pass if they are missing."""
        scores = yield from self.scores([point.rep])
        return Point(point.rep, scores[0], point.square) if scores else point

    def weights(self, point: Point) -> Asking[Vector]:
        """The weights w of a point."""
        if not self.images:
            return point.rep
        if point.square == 0:
            return np.zeros(self._shape[1])
        self.n_passes += _kernels.rows_read([point.rep])
        (w,) = yield Ask("pull", [point.rep])
        return w

    def steps(self, point: Point, risk: float, stride: float, accuracy: float, memory: int) -> _kernels.BundleSteps:
        """The compiled iterations of the bundle method; they move the point in place (`_core/bundle_steps.hpp`)."""
        return _kernels.BundleSteps(self._pool, self.lam, point, risk, stride=stride, accuracy=accuracy, memory=memory)

    def propose(
        self,
        steps: _kernels.BundleSteps,
        losses: list[float],
        slopes: list[Vector],
        precision: float,
        tol: float,
        quasi_newton: bool,
    ) -> Asking[list[Vector]]:
        """Append cuts, free their slopes, and minimise the model to within ``precision``.

        Returns the directions to search; none if the gap is within ``tol``.
        """
        vectors, images = (yield from self.pulled(slopes)) if slopes else ([], [])
        slopes.clear()  # 7 % of the memory of a fit on 1,000,000 x 10
        moves = steps.propose(
            losses, vectors, images, patience=PATIENCE, precision=precision, tol=tol, quasi_newton=quasi_newton
        )
        self.bound = max(self.bound, steps.bound)
        return moves

    def minimiser(self, tol: float) -> Point:
        """Minimise the model to within ``tol``; returns the minimiser and raises `bound` to the dual value."""
        rep, scores, square, bound = self._pool.minimise(self.lam, tol)
        self.bound = max(self.bound, bound)
        return Point(rep, scores, square)

    def bare(self, point: Point) -> Point:
        """The point in the form of the model's vectors, so that it can be combined with them."""
        return point if self.images else Point(point.rep, _NONE, point.square)

    def inner(self, a: Point, b: Point) -> float:
        """The inner product of two weight vectors."""
        return _kernels.dot(a.rep, b.scores if self.images else b.rep)

    @property
    def size(self) -> int:
        """Number of cuts, the zero cut among them."""
        return self._pool.size

    @property
    def n_support(self) -> int:
        """Number of cuts with weight in the last solution (the zero cut is none)."""
        return int(np.count_nonzero(self._pool.alpha[1:]))

    @property
    def lost(self) -> float:
        """An estimate of the rounding error in scores that are sums of the cuts' scores; 0 where they are products.

        The scores of ``w = -1/lam sum alpha_k a_k`` lose about ``eps |scores of a_k| / lam``, if one cut has had all
        the weight; divided by sqrt(n): the mean per example.
        """
        eps = float(np.finfo(np.float64).eps)
        return eps * self._pool.longest / self.lam / float(np.sqrt(self._shape[0])) if self.images else 0.0

    def cuts(self) -> Cuts:
        """The cuts without the zero cut, as views that are valid until the model changes."""
        pool = self._pool
        return Cuts(pool.losses[1:], pool.gram[1:, 1:], tuple(rows[1:] for rows in pool.rows), pool=pool)


def combine(*terms: tuple[float, Point]) -> Point:
    """A linear combination of points; its length is not computed."""
    shares = [share for share, _ in terms]
    scores = [point.scores for _, point in terms]
    rep = _kernels.combine(shares, [point.rep for _, point in terms])
    return Point(rep, _kernels.combine(shares, scores) if len(scores[0]) else _NONE)


def taken(answers: list[Vector]) -> list[Vector]:
    """The products that were sent; empties the sender's list, so that it keeps no vector alive."""
    mine = list(answers)
    answers.clear()  # 3 % of the memory of a fit on 1,000,000 x 10
    return mine
