"""Machines with a free bias: scikit-learn's SVC, and `MeasureSVC` with ``intercept_scaling="free"``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from metrimax.estimates.machines import Machine, Mask, difference
from metrimax.estimates.sample import Sample
from metrimax.measure.hinge_sum import HingeSum
from metrimax.protocols import Cuts, Design, Hinges, Solution, Vector
from metrimax.training.free_intercept import PairCD
from metrimax.training.lockstep import run

PRECISE = 1e-7
"""The gap to which a machine is trained before examples are left out, relative to the sum of the upper bounds."""

RETRAINED = 1e-4
"""The gap that is tried first without an example; then a hundredth of it, and so on, until its side is certain."""


@dataclass
class FreeMachine(Machine):
    """A machine with a free bias, and perhaps a kernel."""

    sample: Sample
    bias: float

    def R2(self) -> float:
        """The largest ``K(x, x) - K(x, x')``."""
        return self.sample.part(np.flatnonzero(self.counted)).radius()

    def bounds(self, rho: float, R2: float) -> bool:
        """Whether the count is a bound at the optimum: not in general, so each example is looked at."""
        return False

    def proves(self, doubtful: Mask) -> bool:
        return self.stable and super().proves(doubtful)

    @property
    def optimality(self) -> float:
        """The duality gap ``|w|^2 + sum of upper_i xi_i - sum of m_i alpha_i``, and what rounding may hide of it."""
        signed = np.where(self.y, self.alpha, -self.alpha)
        square = float(signed @ (self.scores - self.bias))
        return difference(square, float(self.upper @ self.slack), float(self.margin @ self.alpha))

    def wrong(self) -> Mask:
        """Which examples are proven to be wrong when left out: with ``upper_t (xi_t - m_t) > gap``.

        Were y_t s_t >= 0 at a solution without t, its objective for the whole sample would be at most the one here
        minus ``upper_t (xi_t - m_t)``, which is less than the least.
        """
        wrong: Mask = -self.advantage * self.upper > self.optimality
        return wrong

    def cleared(self) -> Mask:
        """Which examples provably stay right when left out, however the threshold moves.

        Let (w', b') be a solution without example t, J' its objective and u_t the upper bound of alpha_t. Strong
        convexity gives ``J'(w', b') + |w' - w|^2 / 2 <= J'(w, b)``. The left side, minimised over all (w', b') with
        ``y_t s'_t <= 0``, has a dual problem. One of its points takes the multiplier of t from alpha_t to
        ``alpha_t - d``, for d >= alpha_t, and gives d to the unbounded support vectors j in shares v_j that sum to 1
        and stay within their bounds. With V the squared distance of t from the mean of those, its value is

            J'(w, b) - g - m_t alpha_t + u_t xi_t + d a - d^2 V / 4,    a = y_t (s_t + sum of v_j (m_j y_j - s_j)),

        g being the duality gap. Where that is above J'(w, b), no solution without t has t on its wrong side. For
        ``d = 2 a / V``, g = 0 and margins of 1 it is Lemma 1, ``alpha_t V < y_t s_t``, with the room for d in its
        hypothesis.
        """
        cleared = np.zeros(len(self.y), dtype=bool)
        free = np.flatnonzero(self.unbounded)
        if not len(free):
            return cleared
        # the multiplier of t goes to examples of its class (plus) or is taken off the other class (minus)
        rooms = np.array(
            [np.where(self.y[free] == own, (self.upper - self.alpha)[free], self.alpha[free]) for own in (False, True)]
        )
        totals = rooms.sum(axis=1)
        shares = rooms / totals[:, None]
        mine = self.y.astype(np.intp)
        products, squares = self.sample.mixtures(free, shares)
        sign = np.where(self.y, 1.0, -1.0)
        short = sign * self.margin - self.scores
        k, q, c = (
            products[np.arange(len(mine)), mine],
            np.sum(shares * products[free].T, axis=1)[mine],
            (shares @ short[free])[mine],
        )
        share = np.zeros(len(mine))
        share[free] = shares[mine[free], np.arange(len(free))]  # t itself gets no share
        rest = 1 - share
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = squares - 2 * (k - share * squares) / rest + (q - 2 * share * k + share**2 * squares) / rest**2
            a = self.advantage + sign * (c - share * short) / rest
            distance = np.maximum(distance, 0.0) + 1e-12 * squares
            d = np.clip(2 * a / distance, self.alpha, totals[mine] * rest)
            won = d * a - d**2 * distance / 4 - self.alpha * self.margin + self.upper * self.slack
        cleared[:] = (won > self.optimality) & (d >= self.alpha) & (rest > 1e-9)
        return cleared


@dataclass
class PairMachine(FreeMachine):
    """A `MeasureSVC` with ``intercept_scaling="free"``: the problem that `PairCD` solves."""

    design: Design

    @classmethod
    def trained(
        cls, sample: Sample, design: Design, hinges: Hinges, *, tol: float, start: Vector | None = None
    ) -> PairMachine:
        """The machine for these hinges, whose weights are the upper bounds, to a gap of tol times their sum."""
        oracle = HingeSum(hinges)
        known = None if start is None else Cuts(np.empty(0), np.empty((0, 0)), (start, hinges.weight))
        steps = PairCD().steps(oracle, design, oracle.n, tol=tol, start=known)
        solution: Solution = run(design, [steps])[0]
        alpha = np.abs(np.asarray(solution.dual_coef))
        scores, bias = design.matvec(solution.w), float(solution.w[-1])
        return cls(hinges.sign > 0, alpha, hinges.weight, hinges.margin, scores, sample, bias, design)

    @property
    def hinges(self) -> Hinges:
        return Hinges(np.where(self.y, 1.0, -1.0), self.margin, self.upper)

    def polish(self) -> None:
        """Go on with the training until the gap is a ten-thousandth of what it may be in `MeasureSVC`."""
        if self.optimality > PRECISE * self.upper.sum():
            better = self.trained(self.sample, self.design, self.hinges, tol=PRECISE, start=self.alpha)
            self.alpha, self.scores, self.bias = better.alpha, better.scores, better.bias
            self.__dict__.pop("advantage", None)

    def score_without(self, t: int, tol: float) -> tuple[float, bool]:
        """The score of example t by the machine trained on the others, and whether the gap decides its sign."""
        upper = self.upper.copy()
        upper[t] = 0.0
        if not (upper[self.y].any() and upper[~self.y].any()):
            return (-1.0 if self.y[t] else 1.0), True
        start = self.alpha.copy()  # what t gives up is taken from the other class as well
        start[t] = 0.0
        other = self.y != self.y[t]
        given = start[other].sum()
        start[other] *= max(0.0, 1 - self.alpha[t] / given) if given > 0 else 0.0
        hinges = self.hinges._replace(weight=upper)
        precision = RETRAINED
        while True:
            found = self.trained(self.sample, self.design, hinges, tol=precision, start=start)
            sides = (found, replace(found, y=np.where(np.arange(len(self.y)) == t, ~found.y, found.y)))
            if any(one.cleared()[t] for one in sides):  # on the side where it is, or on the other
                return float(found.scores[t]), True
            if precision <= tol or found.optimality > 2 * precision * upper.sum():
                return float(found.scores[t]), False
            precision, start = max(tol, precision / 100), found.alpha


@dataclass
class SVCMachine(FreeMachine):
    """scikit-learn's SVC."""

    model: Any
    weight: Vector

    def cleared(self) -> Mask:
        if self.model.kernel == "sigmoid":  # rounding: no inner product is negative
            return np.zeros(len(self.y), dtype=bool)
        return super().cleared()

    def score_without(self, t: int, tol: float) -> tuple[float, bool]:
        """The score of example t by the machine trained on the others; its sign is as sure as libsvm's tolerance."""
        rest = np.flatnonzero(np.arange(len(self.y)) != t)
        if len(np.unique(self.y[rest])) < 2:
            return (-1.0 if self.y[t] else 1.0), True
        fixed = {} if self.model.kernel in ("linear", "precomputed") else {"gamma": self.model._gamma}
        model = clone(self.model).set_params(**fixed, class_weight=None)
        X = self.sample.X
        train, test = X[rest], X[[t]]
        if self.model.kernel == "precomputed":
            train, test = train[:, rest], test[:, rest]
        model.fit(train, self.y[rest], sample_weight=self.weight[rest])
        score = float(model.decision_function(test)[0])
        return score, score != 0
