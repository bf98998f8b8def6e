"""A bound that anyone can recompute: points at which the oracle is asked again, and the multipliers of its answers.

The oracle's answer at a point w_k is a cut, ``R(w) >= b_k + slope_k.(X w)``, whatever w_k is. With alpha >= 0 and
sum alpha <= 1 (the rest is the weight of the zero cut, R >= 0) a convex combination of such cuts bounds J from below::

    J(w)  >=  weight sum_k alpha_k b_k  -  1/2 |weight X' sum_k alpha_k slope_k|^2      for all w

So nothing in a stored certificate has to be believed: points and multipliers that were changed give a weaker bound,
never a false one. `certify` finds them by a method of its own, in plain NumPy, which shares no state with the solvers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metrimax.designs import ExtraColumns, WithIntercept
from metrimax.protocols import Ask, Asking, Cut, Design, Product, Vector

Search = Callable[[Vector], Cut]
"""An oracle as a function that returns cuts."""

STRIDES = (0.05, 0.3, 1.0)
"""Where new cuts are computed, between the best point (0) and the minimiser of the model (1); one pass serves all."""

ASIDE = 1e-9
"""How far points are moved, relative to the greatest weight: far beyond rounding, and negligible otherwise."""

RIDGE = 1e-15
"""Added to the squared lengths of cuts, relative to each of them and to the greatest loss: cuts that are alike, or have
no length, leave the system regular.
"""

IDLE = 20
"""A cut that had no multiplier in so many solutions in a row is dropped."""


@dataclass(frozen=True)
class Certificate:
    """Points (K, p) of the space of the weights, and their multipliers (K,).

    Weights are those of the solution, the intercept's last.
    """

    points: Vector
    multipliers: Vector

    def __post_init__(self) -> None:
        sound = (
            self.points.ndim == 2
            and self.multipliers.shape == self.points.shape[:1]
            and np.isfinite(self.points).all()
            and np.isfinite(self.multipliers).all()
            and (self.multipliers >= 0).all()
            and self.multipliers.sum() <= 1 + 1e-9
        )
        if not sound:
            raise ValueError(
                "expected a certificate of finite points, each with a multiplier >= 0, which add up to 1 at most, got "
                f"points of shape {self.points.shape} and multipliers of shape {self.multipliers.shape}, or others"
            )

    def bound(self, search: Search, design: Design, weight: float) -> Asking[float]:
        """The bound on J that it proves: X is read once for the scores of all points, and once for the slope."""
        if not len(self.points):
            return 0.0
        if self.points.shape[1] != design.shape[1]:
            raise ValueError(
                f"expected a certificate of {design.shape[1]} weights, got one of {self.points.shape[1]}: it belongs "
                "to other data"
            )
        scores = yield from _products("scores", list(self.points))
        alpha = self.multipliers / max(1.0, float(self.multipliers.sum()))
        loss, slope = 0.0, np.zeros(design.shape[0])
        for share, own in zip(alpha, scores, strict=True):
            cut = search(own)
            loss += share * cut.loss
            slope += share * cut.slope
        (pulled,) = yield from _products("pull", [slope])
        return weight * loss - 0.5 * weight**2 * (yield from _square(design, pulled))


class Certified(NamedTuple):
    """The result of `certify`: a certificate, its bound, and the least J of the points visited."""

    certificate: Certificate
    bound: float
    least: float


def certify(
    search: Search, design: Design, weight: float, w: Vector, *, goal: float, max_iter: int = 1000
) -> Asking[Certified]:
    """Bound ``min J`` from below by cutting planes around the best point known, w at first.

    Ends when the bound reaches ``goal``, when a point has a J below it, so that no bound does, or after ``max_iter``
    iterations.

    References
    ----------
    Franc & Sonnenburg (2009), Algorithm 2, with exact cuts at several strides in place of the line search.
    """
    lam = 1 / weight
    model = _Model(search, design, lam)
    rng = np.random.default_rng(0)

    def aside(point: Vector) -> Vector:
        """A point slightly off the minimiser of the model, where many examples lie exactly at their margin."""
        moved: Vector = point + ASIDE * float(np.abs(point).max()) * rng.normal(size=len(point))
        return moved

    best = min((yield from model.add([aside(w), np.zeros_like(w)])), key=lambda one: one.value)
    reached = 0.0
    for _ in range(max_iter):
        reached = model.solve(0.01 * (best.value - reached))
        if not reached < lam * goal <= best.value:
            break
        move = model.minimiser() - best.w
        tried = yield from model.add([aside(best.w + t * move) for t in STRIDES])
        best = min(best, *tried, key=lambda one: one.value)
    certificate = model.certificate()
    proven = yield from certificate.bound(search, design, weight)
    return Certified(certificate, proven, weight * best.value)


class _Tried(NamedTuple):
    """A point with its objective ``lam/2 |w|^2 + R(w)``."""

    w: Vector
    value: float


class _Model:
    """Cuts, the points they come from, and the multipliers of the quadratic program over them."""

    def __init__(self, search: Search, design: Design, lam: float) -> None:
        self._search, self._design, self._lam = search, design, lam
        self._points: Vector = np.empty((0, design.shape[1]))
        self._vectors: Vector = np.empty((0, design.shape[1]))  # a_k = X' slope_k
        self._losses, self._gram = np.empty(0), np.empty((0, 0))
        self._alpha, self._idle = np.empty(0), np.empty(0, dtype=int)

    def add(self, points: list[Vector]) -> Asking[list[_Tried]]:
        """Add the cuts at some points, in one pass; returns the objectives of the points."""
        scores = yield from _products("scores", points)
        cuts = [self._search(row) for row in scores]
        new = np.array((yield from _products("pull", [cut.slope for cut in cuts])))
        duals = new
        if not _euclidean(self._design):
            images = yield from _products("scores", list(new))
            duals = np.array([_dual(self._design, a, own) for a, own in zip(new, images, strict=True)])
        self._points = np.vstack([self._points, *points])
        across = self._vectors @ duals.T
        self._gram = np.block([[self._gram, across], [across.T, new @ duals.T]])
        self._vectors = np.vstack([self._vectors, new])
        self._losses = np.append(self._losses, [cut.loss for cut in cuts])
        self._alpha = np.append(self._alpha, np.zeros(len(cuts)))
        self._idle = np.append(self._idle, np.zeros(len(cuts), dtype=int))
        return [
            _Tried(w, self._lam / 2 * float(w @ _dual(self._design, w, row)) + cut.loss + float(cut.slope @ row))
            for w, row, cut in zip(points, scores, cuts, strict=True)
        ]

    def solve(self, tol: float) -> float:
        """Find the multipliers; returns the bound that they prove. Drops cuts that were long without a multiplier."""
        self._alpha = simplex_multipliers(self._gram / self._lam, self._losses, self._alpha, tol)
        self._idle = np.where(self._alpha > 0, 0, self._idle + 1)
        kept = self._idle < IDLE
        self._points, self._vectors, self._losses = self._points[kept], self._vectors[kept], self._losses[kept]
        self._gram, self._alpha, self._idle = self._gram[np.ix_(kept, kept)], self._alpha[kept], self._idle[kept]
        return float(self._losses @ self._alpha - self._alpha @ self._gram @ self._alpha / (2 * self._lam))

    def minimiser(self) -> Vector:
        """The point at which the model is least."""
        w: Vector = -(self._alpha @ self._vectors) / self._lam
        return w

    def certificate(self) -> Certificate:
        used = self._alpha > 0
        return Certificate(self._points[used], self._alpha[used])


def simplex_multipliers(Q: Vector, b: Vector, alpha: Vector, tol: float) -> Vector:
    """Maximise ``b.alpha - 1/2 alpha' Q alpha`` over alpha >= 0, sum alpha <= 1, to within ``tol``, from ``alpha`` on.

    The active-set method of Wolfe (1976): free the multiplier with the largest gain, solve for the free ones, and fix
    those that would turn negative. Any result is feasible; rounding may stop it early.
    """
    size = len(b)
    Q = np.block([[Q, np.zeros((size, 1))], [np.zeros((1, size + 1))]])  # the zero cut takes what is left of 1
    b = np.append(b, 0.0)
    squares = Q.diagonal()[:size]
    Q[np.diag_indices(size)] += RIDGE * (squares + float(np.abs(b).max()))
    alpha = np.append(alpha, 1 - alpha.sum())
    # of rounding: a cut that is free by it alone may keep the one that should enter away
    alpha[alpha * np.maximum(Q.diagonal(), 1.0) < 1e-12] = 0.0
    for _ in range(10 * size + 10):
        gain = b - Q @ alpha
        top = int(np.argmax(gain))
        if gain[top] - gain @ alpha <= tol:
            break
        start, before, free = alpha, alpha, alpha > 0
        free[top] = True
        while True:
            at = np.flatnonzero(free)
            wanted = _equal_gains(Q[np.ix_(at, at)], b[at])
            falls = wanted < 0
            own = before[at]
            steps = own[falls] / (own[falls] - wanted[falls])
            step = float(steps.min(initial=1.0))
            alpha = np.zeros(size + 1)
            alpha[at] = np.maximum(own + step * (wanted - own), 0.0)
            if step == 1.0:
                break
            gone = at[falls][steps <= step]
            alpha[gone], free[gone] = 0.0, False
            before = alpha
        alpha = alpha / alpha.sum()
        if (np.abs(alpha - start) <= 1e-15 * start).all():  # rounding: it leads nowhere
            break
    return alpha[:-1]


def _equal_gains(Q: Vector, b: Vector) -> Vector:
    """The multipliers with sum 1 at which all gains ``b - Q alpha`` are equal."""
    size = len(b)
    rows = np.ones((size + 1, size + 1))
    rows[:size, :size], rows[size, size] = Q, 0.0
    right = np.append(b, 1.0)
    try:
        solution = np.linalg.solve(rows, right)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(rows, right, rcond=None)[0]
    wanted: Vector = solution[:-1]
    return wanted


def _products(product: Product, vectors: list[Vector]) -> Asking[list[Vector]]:
    """The products with several vectors, in one pass."""
    return (yield Ask(product, [np.ascontiguousarray(vector) for vector in vectors]))


def _square(design: Design, w: Vector) -> Asking[float]:
    """The squared length of w."""
    if _euclidean(design):
        return float(w @ w)
    (scores,) = yield from _products("scores", [w])
    return float(w @ _dual(design, w, scores))


def _euclidean(design: Design) -> bool:
    """Whether weights are multiplied entry by entry; those of an exact kernel are coefficients of examples."""
    if isinstance(design, (WithIntercept, ExtraColumns)):
        return _euclidean(design.design)
    return not _is_gram(design)


def _dual(design: Design, w: Vector, scores: Vector) -> Vector:
    """The vector whose entrywise product with weights gives their inner product with w, whose scores are given."""
    if isinstance(design, WithIntercept):
        return np.append(_dual(design.design, w[:-1], scores - design.value * w[-1]), w[-1])
    if isinstance(design, ExtraColumns):
        m = design.extra.shape[1]
        return np.append(w[:m], _dual(design.design, w[m:], scores - design.extra @ w[:m]))
    return scores if _is_gram(design) else w


def _is_gram(design: Design) -> bool:
    from metrimax.designs.kernel import Gram  # with SciPy, which is slow to import, and no part of plain training

    return isinstance(design, Gram)
