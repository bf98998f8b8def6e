"""A trained SVM as `metrimax.estimates.xi_alpha` sees it: multipliers, slacks, radius, and what leaving out does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels

from metrimax._validation import dense
from metrimax.designs import as_design
from metrimax.designs.kernel import squares as row_squares
from metrimax.measure.hinge_sum import HingeSum
from metrimax.protocols import Hinges, Labels, RowDesign, Solution, Vector
from metrimax.solvers import Bundle
from metrimax.training.lockstep import run

Mask = npt.NDArray[np.bool_]
EXACT = 2000
"""Up to this many examples all pairs are looked at for R2; beyond, the ranges of the features bound it."""

ROUNDS = 40
"""Training goes on for so many looks at the gap, each after at most a thousand epochs."""

TRIES = 5
"""Where an example is left out, coordinate descent has so many of them; then the bundle method decides."""


@dataclass
class Machine:
    """Multipliers ``alpha`` in [0, upper], scores, and the margins to keep, of a machine for two classes."""

    y: Labels
    alpha: Vector
    upper: Vector
    margin: Vector
    scores: Vector

    @cached_property
    def advantage(self) -> Vector:
        """``y_i s_i``: positive where the example is on its side."""
        return np.where(self.y, self.scores, -self.scores)

    @property
    def counted(self) -> Mask:
        """The examples with weight: the others are not in the sample."""
        counted: Mask = self.upper > 0
        return counted

    @property
    def slack(self) -> Vector:
        slack: Vector = np.maximum(0.0, self.margin - self.advantage)
        return slack

    def doubtful(self, rho: float, R2: float) -> Mask:
        """Which examples count against the machine: ``rho alpha_i R2 + xi_i >= m_i``."""
        doubtful: Mask = (rho * R2 * self.alpha + self.slack >= self.margin) & self.counted
        return doubtful

    @property
    def unbounded(self) -> Mask:
        """The support vectors below their upper bound."""
        edge = 1e-8 * self.upper
        unbounded: Mask = (self.alpha > edge) & (self.alpha < self.upper - edge)
        return unbounded

    @property
    def stable(self) -> bool:
        """Whether there is an unbounded support vector."""
        return bool(self.unbounded.any())


@dataclass
class HingeMachine(Machine):
    """A linear machine whose intercept, if any, is a regularised feature: the problem that `DualCD` solves."""

    X: Any
    design: RowDesign
    w: Vector
    bias: float

    def R2(self) -> float:
        """The largest ``K(x, x) - K(x, x')``, raised to what makes rho = 2 a proof; else ``max K(x, x)``."""
        if self.bias == 0:
            return self._largest
        X, squares = self.X, self.squares
        if not self.counted.all():
            X, squares = X[self.counted], squares[self.counted]
        return max(linear_R2(X, squares - self.bias**2), self._largest / 2)

    def proven(self, rho: float, R2: float) -> bool:
        return rho * R2 >= self._largest * (1 - 1e-12)

    @cached_property
    def squares(self) -> Vector:
        return self.design.squares()

    @property
    def _largest(self) -> float:
        return float(self.squares[self.counted].max())

    @cached_property
    def hinges(self) -> Hinges:
        return Hinges(np.where(self.y, 1.0, -1.0), self.margin, self.upper)

    def gap(self, alpha: Vector, upper: Vector, w: Vector, scores: Vector) -> float:
        """Primal minus dual value at ``alpha`` and ``w = X' (y alpha)``."""
        slack = np.maximum(0.0, self.margin - self.hinges.sign * scores)
        return max(0.0, float(w @ w + upper @ slack - self.margin @ alpha))

    def drift(self, R2: float, size: int = 32) -> float:
        """By how much a score falls, per unit of its multiplier, when its example is left out: the mean over a sample.

        The sample is drawn from the support vectors that rho = 1 counts although they are on their right side. The
        bound says at most ``K(x, x)``; what the others make up for is found by a few epochs of retraining on the
        support vectors and what is near. Several are left out at a time where they are few among these.
        """
        counted = np.flatnonzero(self.doubtful(1.0, R2) & (self.advantage > 0) & (self.alpha > 0))
        if not len(counted):
            return R2
        vectors = np.flatnonzero(self.counted & ((self.alpha > 0) | (self.advantage < 1.2 * self.margin)))
        part = self._part(vectors)
        left_out = np.searchsorted(vectors, np.random.default_rng(0).permutation(counted)[:size])
        together = max(1, min(16, len(vectors) // 50))
        falls = []
        for group in np.array_split(left_out, -(-len(left_out) // together)):
            alpha, upper, w = part._without(group)
            part.design.dual_epochs(part.hinges, upper, alpha, w, tol=0.05 * float(self.margin.max()), max_passes=100)
            fallen = (part.scores - part.design.matvec(w))[group] * part.hinges.sign[group]
            falls.append(fallen / part.alpha[group])
        return float(np.concatenate(falls).mean())

    def _part(self, rows: npt.NDArray[np.intp]) -> HingeMachine:
        """The same machine as seen from some of its examples, all support vectors among them."""
        X = self.X[rows]
        design: Any = as_design(X, intercept_scaling=self.bias or None, n_threads=1)
        vectors = {name: getattr(self, name)[rows] for name in ("alpha", "upper", "margin", "scores")}
        return replace(self, y=self.y[rows], **vectors, X=X, design=design)

    def _without(self, left_out: Any) -> tuple[Vector, Vector, Vector]:
        """Multipliers, bounds and weights without an example, or several: where retraining starts."""
        alpha, upper, theirs = self.alpha.copy(), self.upper.copy(), np.zeros(len(self.alpha))
        theirs[left_out] = self.hinges.sign[left_out] * self.alpha[left_out]
        alpha[left_out] = upper[left_out] = 0.0
        return alpha, upper, self.w - self.design.rmatvec(theirs)

    def polish(self) -> None:
        """Go on with the training until the gap moves no score by more than a hundredth of the margin."""
        if self._largest == 0:
            return  # features that are all zero: so are the scores
        most = 0.5 * (0.01 * float(self.margin.max())) ** 2 / self._largest
        accuracy = 0.01 * float(self.margin.max())
        self.alpha, self.w = self.alpha.copy(), self.w.copy()
        for _ in range(ROUNDS):
            if self.gap(self.alpha, self.upper, self.w, self.scores) <= most:
                break
            done = self.design.dual_epochs(self.hinges, self.upper, self.alpha, self.w, tol=accuracy, max_passes=1000)
            self.scores = self.design.matvec(self.w)
            self.__dict__.pop("advantage", None)
            accuracy /= 4 if done.reached else 1

    def settle(self) -> tuple[Mask, Mask]:
        """Which examples are wrong when left out, and which have to be left out to know."""
        self.polish()
        gap = self.gap(self.alpha, self.upper, self.w, self.scores)
        wrong = self.advantage < -np.sqrt(2 * gap * self.squares)
        right = self.advantage > np.sqrt((self.alpha * self.squares) ** 2 + 2 * gap * self.squares)
        return wrong & self.counted, ~wrong & ~right & self.counted

    def score_without(self, t: int, tol: float) -> tuple[float, bool]:
        """The score of example t by the machine trained on the others, and whether the gap decides its sign."""
        alpha, upper, w = self._without(t)
        accuracy = 0.02 * float(self.margin.max())
        for _ in range(TRIES):
            done = self.design.dual_epochs(self.hinges, upper, alpha, w, tol=accuracy, max_passes=1000)
            scores = self.design.matvec(w)
            gap = self.gap(alpha, upper, w, scores)
            if self._decided(t, scores[t], gap):
                return float(scores[t]), True
            if gap <= tol * float(self.margin @ alpha):
                return float(scores[t]), False
            accuracy /= 4 if done.reached else 1
        risk, weight = HingeSum(self.hinges._replace(weight=upper)), float(upper.sum())
        precision = tol * float(self.margin @ alpha) / weight
        [solution] = run(self.design, [Bundle().steps(risk, self.design, weight, tol=precision)])
        if max(0.0, solution.gap) * weight < gap:
            scores, gap = self.design.matvec(solution.w), max(0.0, solution.gap) * weight
        return float(scores[t]), self._decided(t, scores[t], gap)

    def _decided(self, t: int, score: float, gap: float) -> bool:
        """Whether the optimum, so near to a point with this gap, has the sign of the score."""
        return bool(abs(score) > np.sqrt(2 * gap * self.squares[t]))


@dataclass
class KernelMachine(Machine):
    """A machine with a kernel and a free bias: scikit-learn's SVC."""

    X: Any
    model: Any
    weight: Vector

    def R2(self) -> float:
        """The largest ``K(x, x) - K(x, x')``."""
        return self._largest

    def proven(self, rho: float, R2: float) -> bool:
        return rho >= 2 and self.stable and rho * R2 >= 2 * self._largest * (1 - 1e-12)  # the last takes a while

    @cached_property
    def _largest(self) -> float:
        kernel, n = self.model.kernel, self.X.shape[0]
        if n > EXACT and kernel == "linear":
            return linear_R2(self.X)
        if n > EXACT and kernel == "rbf":
            low, high = (as_vector(f(axis=0)) for f in (self.X.min, self.X.max))
            return float(-np.expm1(-self.model._gamma * ((high - low) ** 2).sum()))
        if kernel == "precomputed":
            K = np.asarray(self.X)
            return float((K.diagonal() - K.min(axis=1)).max())
        options = {"gamma": self.model._gamma, "degree": self.model.degree, "coef0": self.model.coef0}
        named = {} if callable(kernel) else {"filter_params": True, **options}
        return _largest_difference(self.X, lambda rows: pairwise_kernels(rows, self.X, metric=kernel, **named))

    def settle(self) -> tuple[Mask, Mask]:
        """Which examples are wrong when left out, and which have to be left out to know.

        Lemma 1 supposes that the machine stays stable without the example, which nobody knows beforehand, so it
        clears no support vector here.
        """
        wrong = self.advantage < 0
        cleared = (self.alpha == 0) & self.stable
        return wrong, ~wrong & ~cleared

    def score_without(self, t: int, tol: float) -> tuple[float, bool]:
        """The score of example t by the machine trained on the others; its sign is as sure as libsvm's tolerance."""
        rest = np.flatnonzero(np.arange(len(self.y)) != t)
        if len(np.unique(self.y[rest])) < 2:
            return (-1.0 if self.y[t] else 1.0), True
        fixed = {} if self.model.kernel in ("linear", "precomputed") else {"gamma": self.model._gamma}
        model = clone(self.model).set_params(**fixed, class_weight=None)
        train, test = self.X[rest], self.X[[t]]
        if self.model.kernel == "precomputed":
            train, test = train[:, rest], test[:, rest]
        model.fit(train, self.y[rest], sample_weight=self.weight[rest])
        return float(model.decision_function(test)[0]), True


def path_machines(
    X: Any, design: RowDesign, hinges: Hinges, weights: Sequence[float], solutions: Sequence[Solution], bias: float
) -> list[HingeMachine]:
    """The machines of a path of `DualCD` over the weights, on the sample X and the design made of it."""
    scores = design.matvec(np.column_stack([solution.w for solution in solutions]))
    machines = []
    for k, (weight, solution) in enumerate(zip(weights, solutions, strict=True)):
        alpha, own = np.abs(cast(Vector, solution.dual_coef)), np.ascontiguousarray(scores[:, k])
        upper = hinges.weight * weight
        machines.append(HingeMachine(hinges.sign > 0, alpha, upper, hinges.margin, own, X, design, solution.w, bias))
    return machines


def linear_R2(X: Any, squares: Vector | None = None) -> float:
    """An upper bound of ``x.x - x.x'`` over the rows of X: the largest itself for small samples. ``squares``: ``x.x``.

    For large ones ``x.x'`` is bounded from below by the ranges of the features and by Cauchy and Schwarz; for
    unit-length, non-negative rows this gives 1.
    """
    if X.shape[0] <= (EXACT // 8 if sparse.issparse(X) else EXACT):  # products of sparse matrices are slow
        return _largest_difference(X, lambda rows: rows @ X.T)
    squares = row_squares(X) if squares is None else squares
    least = -np.sqrt(squares * squares.max())
    if sparse.issparse(X) and X.data.min(initial=0.0) >= 0 and _some_zero(X):
        return float((squares - np.maximum(least, 0.0)).max())  # text: no look at the columns one by one
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


def _largest_difference(X: Any, kernel: Any) -> float:
    """The largest ``K(x, x) - K(x, x')``, block by block; ``kernel`` gives the rows of K for rows of X."""
    largest = 0.0
    for start in range(0, X.shape[0], 256):
        K = np.asarray(dense(kernel(X[start : start + 256])))
        largest = max(largest, float((K[np.arange(len(K)), start + np.arange(len(K))] - K.min(axis=1)).max()))
    return largest


def as_vector(row: Any) -> Vector:
    return np.ravel(np.asarray(dense(row)))
