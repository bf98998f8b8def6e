"""Dual coordinate descent, for risks that are a sum over examples."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metrimax import _kernels
from metrimax.protocols import (
    Ask,
    Asking,
    Cuts,
    Hinges,
    Record,
    RowAccess,
    Solution,
    Status,
    Steps,
    Vector,
    Working,
    made,
    required,
)
from metrimax.solvers.cut_model import taken
from metrimax.solvers.run_state import Task, TaskSolver, rows_of

FALL = 3.0
"""Each round divides the violation that the last one left by this. With 1.5 1.00 and with 10 1.10 times the passes."""

SHOW = 100
"""Passes after which the gap is computed at the latest. With 30 0.90 times the passes (1.00 on ten other sets), with
300 as many.
"""


@dataclass(frozen=True)
class DualCD(TaskSolver):
    """Coordinate descent on the dual of the hinge loss, with shrinking; gives a multiplier alpha for every example.

    The primal is ``1/2 |w|^2 + sum_i u_i max(0, m_i - y_i <w, x_i>)`` with ``u_i = weight v_i / n``. The epochs run in
    the design, row by row: a round ends when the projected gradient is within an accuracy, or the gap looks small
    enough. Then the scores are computed, and with them primal and dual value and the gap; where that is within ``tol``,
    from ``w = X' (y alpha)`` afresh, so that they are free of accumulated rounding. The same scores say which examples
    the next round visits: not those at a bound that their gradient keeps there by more than the largest violation. So
    shrunk examples are re-checked at no extra cost.

    Parameters
    ----------
    max_iter : int
        Most passes over the data.
    limit : float
        The run ends with MAX_ITER where it seems to need more passes than this and is not near its end; and after twice
        as many in any case.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi, Sundararajan (2008), Algorithm 3.
    """

    max_iter: int = 10_000
    limit: float = math.inf

    def solve(self, task: Task) -> Steps:
        """A run may start from the multipliers of another C; those at their old bound start at the new one."""
        problem = _Problem.of(task)
        alpha, upper = np.zeros(task.design.shape[0]), problem.upper
        if task.start is not None:
            before, bound = task.start.rows
            alpha = np.where(before >= bound, upper, np.minimum(before, upper))
        return self._solve(task, problem, alpha)

    def _solve(self, task: Task, problem: _Problem, alpha: Vector) -> Steps:
        """From the multipliers ``alpha``, and in place on them."""
        tol, callback = task.tol, task.callback
        began, passes = time.perf_counter(), 0.0
        history: list[Record] = []
        hinges, upper, weight = problem.hinges, problem.upper, problem.weight
        w, now, working = yield from problem.look(alpha)
        passes += now.passes
        at_zero = _kernels.dot(upper, np.maximum(hinges.margin, 0.0))
        largest = float(np.abs(hinges.margin).max(initial=0.0))
        accuracy = largest  # of the projected gradient, tightened until the gap closes
        status = Status.MAX_ITER
        enough, seen = tol * weight, [(passes, at_zero)]
        shown = passes  # when the gap was last computed

        multipliers = Cuts(np.empty(0), np.empty((0, 0)), (alpha, upper))

        while True:
            # epochs, until they reach the accuracy, the gap looks closed, or half as many again as there were
            asked = max(2.0, min(passes / 2, SHOW))
            most = max(1.0, min(asked, self.max_iter - passes))
            visited, reached, gap, working = problem.rows.dual_epochs(
                hinges, upper, alpha, w, tol=accuracy, gap=enough, max_passes=most, working=working
            )
            passes += visited
            seen.append((passes, gap))
            near = gap <= enough
            ended = reached or near or passes >= self.max_iter
            left = 0.0 if ended else _left(seen, tol * weight)
            late = passes + left > self.limit and (left > passes / 4 or passes > 2 * self.limit)
            if not (ended or late) and passes < shown + SHOW:
                continue
            # the true gap, and which examples to visit next; w is computed afresh where this may be the end
            afresh = gap <= tol * weight or late or passes + 1 >= self.max_iter
            w, now, working = yield from problem.look(alpha, None if afresh else w)
            passes += now.passes
            if not afresh and now.gap <= tol * weight:
                w, now, working = yield from problem.look(alpha)
                passes, afresh = passes + now.passes, True
            shown = passes
            seconds = time.perf_counter() - began
            history.append(Record(len(history) + 1, passes, now.objective / weight, now.bound / weight, 1, seconds))
            if task.keep is not None:
                task.keep(history[-1], lambda: multipliers)
            # the end, or a round of more accuracy
            if now.gap <= tol * weight:
                status = Status.reached(w)
            elif callback is not None and callback(history[-1]) in (True,):  # NumPy's True as well
                status = Status.CALLBACK
            elif not late and passes < self.max_iter:
                if reached:
                    accuracy = min(accuracy, now.violation / FALL)
                elif near:  # it looked smaller than it is
                    enough = 0.8 * gap if gap > 0 else -math.inf
                if accuracy >= 1e-15 * largest:
                    continue
                status = Status.STALLED
            break
        if not afresh:  # stopped by the callback, or where nothing moves any more
            w, now, _ = yield from problem.look(alpha)
            passes += now.passes
        return Solution(
            w=w,
            objective=now.objective,
            bound=now.bound,
            gap=now.gap / weight,
            n_iter=len(history),
            n_passes=passes,
            n_support=int(np.count_nonzero(alpha)),
            status=status,
            history=history,
            cuts=multipliers,
            dual_coef=hinges.sign * alpha,
        )


def _left(seen: list[tuple[float, float]], enough: float) -> float:
    """The number of passes left, if the gap keeps falling as it did over the second half of the passes.

    The decrease is taken as linear: most multipliers move towards their bounds, and the dual rises steadily.
    """
    passes, gap = seen[-1]
    before, higher = max(last for last in seen[:-1] if last == seen[0] or 2 * last[0] <= passes)
    return (gap - enough) * (passes - before) / (higher - gap) if gap < higher else math.inf


class _Look(NamedTuple):
    """Primal and dual value, the largest projected gradient, and the passes that it took to see them."""

    objective: float
    bound: float
    violation: float
    passes: float

    @property
    def gap(self) -> float:
        return self.objective - self.bound


class _Problem(NamedTuple):
    """The hinges of a risk with a weight, the upper bounds of their multipliers, and the rows of X."""

    hinges: Hinges
    upper: Vector
    weight: float
    shape: tuple[int, int]
    rows: RowAccess

    @classmethod
    def of(cls, task: Task) -> _Problem:
        hinges = required(
            made(task.oracle.can.hinges),
            "solver 'dual_cd' needs a measure whose mistakes add up over the examples (hinges), such as error, cost or "
            "balanced_error: choose one of them, or solver='bundle'",
        )
        upper = hinges.weight * (task.weight / task.oracle.n)
        return cls(hinges._replace(weight=upper), upper, task.weight, task.design.shape, rows_of(task.design))

    def look(self, alpha: Vector, w: Vector | None = None) -> Asking[tuple[Vector, _Look, Working]]:
        """Primal and dual value of the multipliers, and the examples to visit next.

        With ``w = X' (y alpha)``, which is computed afresh unless it is given.
        """
        hinges, passes = self.hinges, 0.0
        scores = np.zeros(self.shape[0])
        if w is None:
            w = np.zeros(self.shape[1])
            if alpha.any():
                passes += _kernels.rows_read([alpha])
                (w,) = taken((yield Ask("pull", [hinges.sign * alpha])))
        if w.any():
            passes += 1
            (scores,) = taken((yield Ask("scores", [w])))
        found = _kernels.dual_working(hinges.sign, hinges.margin, self.upper, alpha, scores)
        half = self.rows.square(w, hinges.sign * alpha, scores) / 2
        bound = _kernels.dot(hinges.margin, alpha) - half
        return w, _Look(half + found[0], bound, found[1], passes), Working(*found[2:])
