"""A trained SVM as the estimates see it: multipliers, slacks, and which examples leaving out cannot change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels

from metrimax._validation import dense
from metrimax.designs import as_design
from metrimax.estimates import radius
from metrimax.estimates.radius import as_vector, largest_difference, linear_R2
from metrimax.measure.hinge_sum import HingeSum
from metrimax.protocols import Design, Hinges, Labels, RowAccess, Solution, Vector, required, rows_of
from metrimax.solvers import Bundle
from metrimax.training.lockstep import run

Mask = npt.NDArray[np.bool_]
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

    def cleared(self) -> Mask:
        """Which examples are proven to stay on their right side when left out."""
        raise NotImplementedError

    def proves(self, doubtful: Mask) -> bool:
        """Whether the doubtful examples bound the mistakes: all others are cleared."""
        return bool((doubtful | self.cleared() | ~self.counted).all())

    def polish(self) -> None:
        """Go on with the training, where that is possible."""

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
    design: Design
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

    def bounds(self, rho: float, R2: float) -> bool:
        """Whether the count is a bound where the training has ended at the optimum."""
        return rho * R2 >= self._largest * (1 - 1e-12)

    @property
    def rows(self) -> RowAccess:
        return rows_of(self.design)

    @cached_property
    def squares(self) -> Vector:
        return self.rows.squares()

    @property
    def _largest(self) -> float:
        return float(self.squares[self.counted].max())

    @cached_property
    def hinges(self) -> Hinges:
        return Hinges(np.where(self.y, 1.0, -1.0), self.margin, self.upper)

    def gap(self, alpha: Vector, upper: Vector, w: Vector, scores: Vector) -> float:
        """Primal minus dual value at ``alpha`` and ``w = X' (y alpha)``, and what rounding may hide of it."""
        slack = np.maximum(0.0, self.margin - self.hinges.sign * scores)
        return _difference(float(w @ w), float(upper @ slack), float(self.margin @ alpha))

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
            part.rows.dual_epochs(part.hinges, upper, alpha, w, tol=0.05 * float(self.margin.max()), max_passes=100)
            fallen = (part.scores - part.design.matvec(w))[group] * part.hinges.sign[group]
            falls.append(fallen / part.alpha[group])
        return float(np.concatenate(falls).mean())

    def _part(self, rows: npt.NDArray[np.intp]) -> HingeMachine:
        """The same machine as seen from some of its examples, all support vectors among them."""
        X = self.X[rows]
        design = as_design(X, intercept_scaling=self.bias or None, n_threads=1)
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
            done = self.rows.dual_epochs(self.hinges, self.upper, self.alpha, self.w, tol=accuracy, max_passes=1000)
            self.scores = self.design.matvec(self.w)
            self.__dict__.pop("advantage", None)
            accuracy /= 4 if done.reached else 1

    @property
    def optimality(self) -> float:
        """The duality gap of the whole sample."""
        return self.gap(self.alpha, self.upper, self.w, self.scores)

    def cleared(self) -> Mask:
        """Which examples are proven to stay on their right side when left out: `leave_one_out` has the reason."""
        cleared: Mask = self.advantage > np.sqrt((self.alpha * self.squares) ** 2 + 2 * self.optimality * self.squares)
        return cleared

    def wrong(self) -> Mask:
        """Which examples are proven to be wrong when left out."""
        wrong: Mask = self.advantage < -np.sqrt(2 * self.optimality * self.squares)
        return wrong & self.counted

    def score_without(self, t: int, tol: float) -> tuple[float, bool]:
        """The score of example t by the machine trained on the others, and whether the gap decides its sign."""
        alpha, upper, w = self._without(t)
        accuracy = 0.02 * float(self.margin.max())
        for _ in range(TRIES):
            done = self.rows.dual_epochs(self.hinges, upper, alpha, w, tol=accuracy, max_passes=1000)
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

    def bounds(self, rho: float, R2: float) -> bool:
        """Whether more training can make the count a bound: libsvm's is over."""
        return False

    def proves(self, doubtful: Mask) -> bool:
        return self.stable and super().proves(doubtful)

    @cached_property
    def _largest(self) -> float:
        kernel, n = self.model.kernel, self.X.shape[0]
        if n > radius.EXACT and kernel == "linear":
            return linear_R2(self.X)
        if n > radius.EXACT and kernel == "rbf":
            low, high = (as_vector(f(axis=0)) for f in (self.X.min, self.X.max))
            return float(-np.expm1(-self.model._gamma * ((high - low) ** 2).sum()))
        if kernel == "precomputed":
            K = np.asarray(self.X)
            return float((K.diagonal() - K.min(axis=1)).max())
        return largest_difference(self.X, lambda rows: self._kernel(rows, self.X))

    def _kernel(self, rows: Any, others: Any) -> Vector:
        """``K(x, x')`` of rows x and others x', for a kernel that is no matrix."""
        options = {"gamma": self.model._gamma, "degree": self.model.degree, "coef0": self.model.coef0}
        named = {} if callable(self.model.kernel) else {"filter_params": True, **options}
        values: Vector = dense(pairwise_kernels(rows, others, metric=self.model.kernel, **named))
        return values

    @cached_property
    def optimality(self) -> float:
        """The duality gap ``|w|^2 + sum of upper_i xi_i - sum of alpha_i``, and what rounding may hide of it."""
        signed = np.where(self.y, self.alpha, -self.alpha)
        square = float(signed @ (self.scores - self.model.intercept_[0]))
        return _difference(square, float(self.upper @ self.slack), float(self.alpha.sum()))

    def wrong(self) -> Mask:
        """Which examples are proven to be wrong when left out: with ``upper_t (xi_t - 1) > gap``.

        Were y_t s_t >= 0 at a solution without t, its objective for the whole sample would be at most the one here
        minus ``upper_t (xi_t - 1)``, which is less than the least.
        """
        wrong: Mask = -self.advantage * self.upper > self.optimality
        return wrong

    def cleared(self) -> Mask:
        """Which examples are proven to stay on their right side when left out, whatever becomes of the threshold.

        Let (w', b') be a solution without example t, J' its objective and u_t the upper bound of alpha_t. Strong
        convexity gives ``J'(w', b') + |w' - w|^2 / 2 <= J'(w, b)``. The left side, minimised over all (w', b') with
        ``y_t s'_t <= 0``, has a dual problem. One of its points takes the multiplier of t from alpha_t to
        ``alpha_t - d``, for d >= alpha_t, and gives d to the unbounded support vectors j in shares v_j that sum to 1
        and stay within their bounds. With V the squared distance of t from the mean of those, its value is

            J'(w, b) - g - alpha_t + u_t xi_t + d a - d^2 V / 4,    a = y_t (s_t + sum of v_j (y_j - s_j)),

        g being the duality gap. Where that is above J'(w, b), no solution without t has t on its wrong side. For
        ``d = 2 a / V`` and g = 0 it is Lemma 1, ``alpha_t V < y_t s_t``, with the room for d in its hypothesis.
        """
        cleared = np.zeros(len(self.y), dtype=bool)
        if self.model.kernel == "sigmoid":  # which is no inner product
            return cleared
        free = np.flatnonzero(self.unbounded)
        if not len(free):
            return cleared
        # what t gives up is made up for by more of its own class, or by less of the other
        rooms = np.array(
            [np.where(self.y[free] == own, (self.upper - self.alpha)[free], self.alpha[free]) for own in (False, True)]
        )
        totals = rooms.sum(axis=1)
        shares = rooms / totals[:, None]
        mine = self.y.astype(np.intp)
        products, squares = self._products(free, shares)
        sign = np.where(self.y, 1.0, -1.0)
        short = sign - self.scores
        k, q, c = (
            products[np.arange(len(mine)), mine],
            np.sum(shares * products[free].T, axis=1)[mine],
            (shares @ short[free])[mine],
        )
        share = np.zeros(len(mine))
        share[free] = shares[mine[free], np.arange(len(free))]  # t takes no part in making up for itself
        rest = 1 - share
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = squares - 2 * (k - share * squares) / rest + (q - 2 * share * k + share**2 * squares) / rest**2
            a = self.advantage + sign * (c - share * short) / rest
            distance = np.maximum(distance, 0.0) + 1e-12 * squares
            d = np.clip(2 * a / distance, self.alpha, totals[mine] * rest)
            won = d * a - d**2 * distance / 4 - self.alpha + self.upper * self.slack
        cleared[:] = (won > self.optimality) & (d >= self.alpha) & (rest > 1e-9)
        return cleared

    def _products(self, free: npt.NDArray[np.intp], shares: Vector) -> tuple[Vector, Vector]:
        """``sum over j of v_j K(x, x_j)`` of every example for each row v of ``shares``, and ``K(x, x)``."""
        n = len(self.y)
        products, squares = np.empty((n, len(shares))), np.empty(n)
        for start in range(0, n, 256):
            rows = slice(start, min(start + 256, n))
            if self.model.kernel == "precomputed":
                K = np.asarray(self.X)[rows]
                products[rows], squares[rows] = K[:, free] @ shares.T, K[:, rows].diagonal()
            else:
                X = self.X[rows]
                products[rows] = self._kernel(X, self.X[free]) @ shares.T
                squares[rows] = self._kernel(X, X).diagonal()
        return products, squares

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
        score = float(model.decision_function(test)[0])
        return score, score != 0


def _difference(square: float, losses: float, dual: float) -> float:
    """``square + losses - dual``, which is never negative but for rounding, and some units of that."""
    return max(0.0, square + losses - dual) + 8 * np.finfo(float).eps * (abs(square) + losses + dual)


def path_machines(
    X: Any, design: Design, hinges: Hinges, weights: Sequence[float], solutions: Sequence[Solution], bias: float
) -> list[HingeMachine]:
    """The machines of a path of `DualCD` over the weights, on the sample X and the design made of it."""
    scores = design.matvec(np.column_stack([solution.w for solution in solutions]))
    machines = []
    for k, (weight, solution) in enumerate(zip(weights, solutions, strict=True)):
        coefficients = required(solution.dual_coef, "expected solutions of 'dual_cd', which have multipliers")
        alpha, own = np.abs(coefficients), np.ascontiguousarray(scores[:, k])
        upper = hinges.weight * weight
        machines.append(HingeMachine(hinges.sign > 0, alpha, upper, hinges.margin, own, X, design, solution.w, bias))
    return machines
