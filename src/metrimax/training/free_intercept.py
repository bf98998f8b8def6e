"""Pair descent, for risks that are a sum over examples, with an intercept that is not regularised."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.protocols import Ask, Asking, Cuts, Hinges, Record, Solution, Status, Steps, Vector, made, required
from metrimax.solvers.cut_model import taken
from metrimax.solvers.run_state import Task, TaskSolver, rows_of

FALL, MOST = 3.0, 100.0
"""A round of sweeps divides the largest violation by `FALL`, and ends after so many passes at the latest."""

ROUNDING = 1e-14
"""Violations below this, relative to the largest margin, are rounding; so are differences of sums of bounds."""


@dataclass(frozen=True)
class PairCD(TaskSolver):
    """The plain SVM with a free bias: coordinate descent on pairs of multipliers, with shrinking.

    The primal is ``1/2 |w|^2 + sum_i u_i max(0, m_i - y_i (<w, x_i> + b))`` with ``u_i = weight v_i / n``; the last
    feature of the design is a constant 1, and its weight b has no part in ``|w|^2``. In the dual the multipliers obey
    ``sum_i y_i alpha_i = 0``, so they move in pairs. After each round the scores are computed afresh from ``w = X' (y
    alpha)``, and with them the best b for this w (a quantile, by one sort), primal and dual value. So objective and
    bound are those of the point that is returned.

    The next round visits the examples that are part of a violated pair, and those between their bounds.

    Parameters
    ----------
    max_iter : int
        Most passes over the data.

    References
    ----------
    Platt (1999), Fast training of support vector machines using sequential minimal optimization. Keerthi, Shevade,
    Bhattacharyya & Murthy (2001), Improvements to Platt's SMO algorithm. Joachims (2000), Optimization Problem 2.
    """

    max_iter: int = 10_000

    def solve(self, task: Task) -> Steps:
        """A run may start from the multipliers of another C, in proportion to their bounds."""
        problem = FreeHinges.of(task)
        alpha = np.zeros(len(problem.upper))
        if task.start is not None:
            before, bound = task.start.rows
            given = before * np.divide(problem.upper, bound, out=np.zeros_like(bound), where=bound > 0)
            given = np.minimum(given, problem.upper)
            if abs(problem.hinges.sign @ given) <= ROUNDING * len(given) * given.sum():  # or it would bound nothing
                alpha = given
        return self._solve(task, problem, alpha)

    def _solve(self, task: Task, problem: FreeHinges, alpha: Vector) -> Steps:
        """From feasible multipliers ``alpha``, and in place on them."""
        began, passes, weight, rows = time.perf_counter(), 0.0, task.weight, rows_of(task.design)
        history: list[Record] = []
        least = ROUNDING * float(problem.hinges.margin.max(initial=0.0))
        multipliers = Cuts(np.empty(0), np.empty((0, 0)), (alpha, problem.upper))
        status = Status.MAX_ITER
        while True:
            w, now, read = yield from problem.look(task, alpha)
            passes += read
            seconds = time.perf_counter() - began
            history.append(Record(len(history) + 1, passes, now.objective / weight, now.bound / weight, 1, seconds))
            if task.keep is not None:
                task.keep(history[-1], lambda: multipliers)
            if now.objective - now.bound <= task.tol * weight:
                status = Status.reached(w[:-1])
            elif task.callback is not None and task.callback(history[-1]) in (True,):  # NumPy's True as well
                status = Status.CALLBACK
            elif now.violation <= least:
                status = Status.STALLED
            elif passes < self.max_iter:
                passes += rows.pair_epochs(
                    problem.hinges, alpha, w[:-1], now.working,
                    tol=max(least, now.violation / FALL), max_passes=min(MOST, self.max_iter - passes),
                )  # fmt: skip
                continue
            break
        return Solution(
            w=w,
            objective=now.objective,
            bound=now.bound,
            gap=(now.objective - now.bound) / weight,
            n_iter=len(history),
            n_passes=passes,
            n_support=int(np.count_nonzero(alpha)),
            status=status,
            history=history,
            cuts=multipliers,
            dual_coef=problem.hinges.sign * alpha,
        )


class FreePoint(NamedTuple):
    """Multipliers at a look: the best bias, primal and dual value, the largest violation of a pair, whom to visit."""

    bias: float
    objective: float
    bound: float
    violation: float
    working: npt.NDArray[np.int64]


class FreeHinges(NamedTuple):
    """Hinges with the upper bounds of their multipliers, for a machine whose bias is free."""

    hinges: Hinges
    upper: Vector

    @classmethod
    def of(cls, task: Task) -> FreeHinges:
        hinges = required(
            made(task.oracle.can.hinges),
            "intercept_scaling='free' needs a measure whose mistakes add up over the examples (hinges), such as error, "
            "cost or balanced_error, and no base loss beside it: choose one of them with hinge=0, or a number for "
            "intercept_scaling",
        )
        upper = hinges.weight * (task.weight / task.oracle.n)
        return cls(hinges._replace(weight=upper), upper)

    def look(self, task: Task, alpha: Vector) -> Asking[tuple[Vector, FreePoint, float]]:
        """The weights of multipliers, with the best bias as the last one; their `FreePoint`; and the passes read."""
        slope = self.hinges.sign * alpha
        w, scores, passes = np.zeros(task.design.shape[1]), np.zeros(len(alpha)), 0.0
        if alpha.any():
            passes = _kernels.rows_read([alpha]) + 1
            (w,) = taken((yield Ask("pull", [slope])))
            w[-1] = 0.0  # the sum of the slope, but for rounding
            (scores,) = taken((yield Ask("scores", [w])))
        found = self.point(alpha, scores, rows_of(task.design).square(w, slope, scores))
        w[-1] = found.bias
        return w, found, passes

    def point(self, alpha: Vector, scores: Vector, square: float) -> FreePoint:
        """From scores without bias and ``|w|^2``."""
        sign, margin, _ = self.hinges
        leads = sign * margin - scores
        bias = self.bias(leads)
        losses = _kernels.dot(self.upper, np.maximum(0.0, margin - sign * (scores + bias)))
        bound = _kernels.dot(margin, alpha) - square / 2
        up = np.where(sign > 0, alpha < self.upper, alpha > 0)
        down = np.where(sign > 0, alpha > 0, alpha < self.upper)
        top, bottom = leads.max(where=up, initial=-np.inf), leads.min(where=down, initial=np.inf)
        working = np.flatnonzero((up & down) | (up & (leads > bottom)) | (down & (leads < top))).astype(np.int64)
        return FreePoint(bias, square / 2 + losses, bound, max(0.0, float(top - bottom)), working)

    def bias(self, leads: Vector) -> float:
        """The b with the least ``sum_i u_i max(0, y_i (lead_i - b))``; in the middle, where there are several."""
        order = np.argsort(leads)
        below = np.cumsum(self.upper[order])
        half, slack = float(self.upper[self.hinges.sign > 0].sum()), ROUNDING * len(leads) * float(below[-1])
        low, high = (min(int(np.searchsorted(below, at)), len(below) - 1) for at in (half - slack, half + slack))
        return float(leads[order[low]] + leads[order[high]]) / 2
