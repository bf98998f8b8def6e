"""A trained SVM for the estimates: multipliers, slacks, and what leaving an example out can change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from metrimax.estimates.sample import Sample
from metrimax.measure.hinge_sum import HingeSum
from metrimax.protocols import Design, Hinges, Labels, RowAccess, Solution, Vector, required
from metrimax.solvers import Bundle
from metrimax.solvers.run_state import rows_of
from metrimax.training.lockstep import run

Mask = npt.NDArray[np.bool_]
ROUNDS = 40
"""How often training on and retraining check the gap, each time after at most a thousand epochs."""


@dataclass
class Machine:
    """A machine for two classes: multipliers ``alpha`` in [0, upper], scores, and the required margins."""

    y: Labels
    alpha: Vector
    upper: Vector
    margin: Vector
    scores: Vector

    @cached_property
    def advantage(self) -> Vector:
        """``y_i s_i``: positive where the example is classified correctly."""
        return np.where(self.y, self.scores, -self.scores)

    @property
    def counted(self) -> Mask:
        """The examples of weight above 0; the others are not in the sample."""
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
        """Which examples provably stay right when left out."""
        raise NotImplementedError

    def wrong(self) -> Mask:
        """Which examples are proven to be wrong when left out."""
        raise NotImplementedError

    def score_without(self, t: int, tol: float) -> tuple[float, bool]:
        """The score of example t by the machine trained on the others, and whether its sign is certain."""
        raise NotImplementedError

    def R2(self) -> float:
        """The radius that `xi_alpha` takes where none is given."""
        raise NotImplementedError

    def bounds(self, rho: float, R2: float) -> bool:
        """Whether the count is a bound where the training has ended at the optimum."""
        raise NotImplementedError

    def proves(self, doubtful: Mask) -> bool:
        """Whether the number of doubtful examples bounds that of mistakes: all others are cleared."""
        return bool((doubtful | self.cleared() | ~self.counted).all())

    def polish(self) -> None:
        """Train on to a smaller gap, if the machine can be trained on."""

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
    """A machine whose intercept, if any, is a regularised feature: the problem that `DualCD` solves."""

    sample: Sample
    design: Design
    w: Vector
    bias: float

    def R2(self) -> float:
        """The largest ``K(x, x) - K(x, x')``, raised if rho = 2 needs it for a proof; without bias ``max K(x, x)``."""
        if self.bias == 0:
            return self._largest
        sample = self.sample if self.counted.all() else self.sample.part(np.flatnonzero(self.counted))
        return max(sample.radius(), self._largest / 2)

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
        """Primal minus dual value at ``alpha`` and ``w = X' (y alpha)``, plus a bound of its rounding error."""
        slack = np.maximum(0.0, self.margin - self.hinges.sign * scores)
        square = self.rows.square(w, self.hinges.sign * alpha, scores)
        return difference(square, float(upper @ slack), float(self.margin @ alpha))

    def drift(self, R2: float, size: int = 32) -> float:
        """How far a score falls per unit of its multiplier when its example is left out: the mean over a sample.

        The sample is drawn from the support vectors that are right but that rho = 1 counts as mistakes. The fall is at
        most ``K(x, x)``. How much of it the other examples make up for is found by a few epochs of retraining on the
        support vectors and the examples near the margin. Several are left out at a time if there are many others.
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
        """The same machine on some of its examples, which include all support vectors."""
        sample = self.sample.part(rows)
        design = sample.design(self.bias, n_threads=1)
        slope = self.hinges.sign[rows] * self.alpha[rows]
        vectors = {name: getattr(self, name)[rows] for name in ("alpha", "upper", "margin", "scores")}
        return replace(self, y=self.y[rows], **vectors, sample=sample, design=design, w=design.rmatvec(slope))

    def _without(self, left_out: Any) -> tuple[Vector, Vector, Vector]:
        """Multipliers, upper bounds and weights without some examples: the start of retraining."""
        alpha, upper, theirs = self.alpha.copy(), self.upper.copy(), np.zeros(len(self.alpha))
        theirs[left_out] = self.hinges.sign[left_out] * self.alpha[left_out]
        alpha[left_out] = upper[left_out] = 0.0
        return alpha, upper, self.w - self.design.rmatvec(theirs)

    def polish(self) -> None:
        """Train on until the gap allows no score to be off by more than a hundredth of the margin."""
        if self._largest == 0:
            return  # all features are zero, and so are the scores
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
        """Which examples provably stay right when left out; `leave_one_out` gives the reason."""
        cleared: Mask = self.advantage > np.sqrt((self.alpha * self.squares) ** 2 + 2 * self.optimality * self.squares)
        return cleared

    def wrong(self) -> Mask:
        """Which examples are proven to be wrong when left out."""
        wrong: Mask = self.advantage < -np.sqrt(2 * self.optimality * self.squares)
        return wrong & self.counted

    def score_without(self, t: int, tol: float) -> tuple[float, bool]:
        """The score of example t by the machine trained on the others, and whether the gap decides its sign.

        Where coordinate descent is too slow to reach its accuracy, the bundle method goes on.
        """
        alpha, upper, w = self._without(t)
        accuracy = 0.02 * float(self.margin.max())
        for _ in range(ROUNDS):
            done = self.rows.dual_epochs(self.hinges, upper, alpha, w, tol=accuracy, max_passes=1000)
            scores = self.design.matvec(w)
            gap = self.gap(alpha, upper, w, scores)
            if self._decided(t, scores[t], gap):
                return float(scores[t]), True
            if gap <= tol * float(self.margin @ alpha):
                return float(scores[t]), False
            if not done.reached:
                break
            accuracy /= 4
        risk, weight = HingeSum(self.hinges._replace(weight=upper)), float(upper.sum())
        precision = tol * float(self.margin @ alpha) / weight
        [solution] = run(self.design, [Bundle().steps(risk, self.design, weight, tol=precision)])
        if max(0.0, solution.gap) * weight < gap:
            scores, gap = self.design.matvec(solution.w), max(0.0, solution.gap) * weight
        return float(scores[t]), self._decided(t, scores[t], gap)

    def _decided(self, t: int, score: float, gap: float) -> bool:
        """Whether the optimum provably gives the score the same sign, because the gap is small enough."""
        return bool(abs(score) > np.sqrt(2 * gap * self.squares[t]))


def difference(square: float, losses: float, dual: float) -> float:
    """``square + losses - dual``, at least 0, plus a bound of its rounding error."""
    return max(0.0, square + losses - dual) + 8 * np.finfo(float).eps * (abs(square) + losses + dual)


def path_machines(
    sample: Sample, design: Design, hinges: Hinges, weights: Sequence[float], solutions: Sequence[Solution], bias: float
) -> list[HingeMachine]:
    """The machines of a path of `DualCD` over the weights, on the sample and the design made of it."""
    scores = design.matvec(np.column_stack([solution.w for solution in solutions]))
    machines = []
    for k, (weight, solution) in enumerate(zip(weights, solutions, strict=True)):
        coefficients = required(solution.dual_coef, "expected solutions of 'dual_cd', which have multipliers")
        alpha, own = np.abs(coefficients), np.ascontiguousarray(scores[:, k])
        upper = hinges.weight * weight
        machines.append(
            HingeMachine(hinges.sign > 0, alpha, upper, hinges.margin, own, sample, design, solution.w, bias)
        )
    return machines
