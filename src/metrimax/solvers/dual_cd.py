"""Dual coordinate descent, for risks that are a sum over examples."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metrimax import _kernels
from metrimax.protocols import (
    Ask,
    Callback,
    Cuts,
    Design,
    Hinges,
    Oracle,
    Record,
    RowAccess,
    Solution,
    Status,
    Steps,
    Vector,
    Working,
    made,
    offer,
    required,
    rows_of,
)
from metrimax.solvers.model import taken

FINE = 1e-4
"""Within a round the gap is only estimated: where the tolerance is below this, the estimate does not end it."""

FIRST, FALL = 0.3, 3.0
"""Accuracy of the first round, relative to the largest margin; each round divides what the last one left by `FALL`."""

SHOW = 100
"""The gap is computed after so many passes at the latest, or after a quarter more than the last time."""

NEAR, RENEW = 2.0, 40
"""w is computed afresh where the gap looks like at most `NEAR` times the tolerance, and else each time that the passes
have doubled, and `RENEW` more.
"""

MORE = 1.5
"""Whether `limit` will be enough is estimated each time that the passes have grown to so many times what they were."""


@dataclass(frozen=True)
class DualCD:
    """Coordinate descent on the dual of the hinge loss, with shrinking; gives a multiplier alpha for every example.

    The primal is ``1/2 |w|^2 + sum_i u_i max(0, m_i - y_i <w, x_i>)`` with ``u_i = weight v_i / n``. The epochs run in
    the design, row by row: a round ends when the projected gradient is within an accuracy, or the gap looks small
    enough. Then the scores are computed, and with them primal and dual value and the gap; where that is within ``tol``,
    from ``w = X' (y alpha)`` afresh, so that they are free of accumulated rounding. The same scores say which examples
    the next round visits: not those at a bound that their gradient keeps there by more than the largest violation. So
    what was set aside is looked at again for nothing, and a round costs little more than the epochs on the examples in
    question.

    Parameters
    ----------
    max_iter : int
        Most passes over the data.
    limit : float
        The run ends with MAX_ITER where it looks like needing more passes than that, unless it looks like being near
        its end, and after twice as many.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi, Sundararajan (2008), Algorithm 3.
    """

    max_iter: int = 10_000
    limit: float = math.inf

    def steps(
        self,
        oracle: Oracle,
        design: Design,
        weight: float,
        *,
        tol: float,
        start: Cuts | None = None,
        callback: Callback | None = None,
    ) -> Steps:
        """Minimise ``1/2 |w|^2 + weight R(w)``. A run starts from multipliers: ``start`` holds no cuts."""
        (solution,) = yield from self.along(oracle, design, [weight], tol=tol, start=start, callback=callback)
        return solution

    def along(
        self,
        oracle: Oracle,
        design: Design,
        weights: Sequence[float] | Vector,
        *,
        tol: float,
        start: Cuts | None = None,
        callback: Callback | None = None,
    ) -> Generator[Ask, Vector, list[Solution]]:
        """Solutions for every weight, in the order given; each starts from the multipliers of the one before."""
        hinges = required(
            made(oracle.can.hinges),
            "solver 'dual_cd' needs a measure whose mistakes add up over the examples (hinges), such as error, cost or "
            "balanced_error: choose one of them, or solver='bundle'",
        )
        rows = rows_of(design)
        solutions: dict[int, Solution] = {}
        alpha, before = np.zeros(design.shape[0]), np.array(np.inf)
        if start is not None:
            (alpha,) = start.rows
        for k in sorted(range(len(weights)), key=lambda k: float(weights[k])):
            upper = hinges.weight * (float(weights[k]) / oracle.n)
            if len(weights) == 1:
                hinges = hinges._replace(weight=upper)  # which is not needed any more: vectors of length n are few
            alpha = np.where(alpha >= before, upper, np.minimum(alpha, upper))  # what was at its bound goes on with it
            solutions[k] = yield from self._solve(hinges, design, rows, float(weights[k]), upper, alpha, tol, callback)
            before = upper
        return [solutions[k] for k in range(len(weights))]

    def _solve(
        self,
        hinges: Hinges,
        design: Design,
        rows: RowAccess,
        weight: float,
        upper: Vector,
        alpha: Vector,
        tol: float,
        callback: Callback | None,
    ) -> Steps:
        """From the multipliers ``alpha``, and in place on them."""
        began = time.perf_counter()
        if alpha.any():
            w, now, working = yield from _look(hinges, design, upper, alpha)
            passes = now.passes
        else:
            w, passes = np.zeros(design.shape[1]), 0.0
            working = _chosen(hinges, upper, alpha, np.zeros(design.shape[0]))[2]
        at_zero = _kernels.dot(upper, np.maximum(hinges.margin, 0.0))
        largest = float(hinges.margin.max(initial=0.0))
        accuracy = FIRST * largest  # of the projected gradient, tightened until the gap closes
        history: list[Record] = []
        status = Status.MAX_ITER
        enough, seen = tol * weight if tol >= FINE else -math.inf, [(passes, at_zero)]
        shown = renewed = 0.0  # the passes when the gap was last computed, and w
        while True:
            # epochs, until they reach the accuracy, the gap looks closed, or something is to be looked at
            asked = max(2.0, min((MORE - 1) * passes, max(SHOW, shown / 4)))
            most = max(1.0, min(asked, self.max_iter - passes))
            done = rows.dual_epochs(hinges, upper, alpha, w, tol=accuracy, gap=enough, max_passes=most, working=working)
            visited, reached, gap, working = done
            del done
            passes += visited
            seen.append((passes, gap))
            ended = reached or gap <= enough or passes >= self.max_iter
            left = 0.0 if ended else _left(seen, tol * weight)
            late = passes + left > self.limit and (left > passes / 4 or passes > 2 * self.limit)
            if not (ended or late) and passes < shown + max(SHOW, shown / 4):
                continue
            # the true gap, and whom to visit next; from w afresh where that may be the end
            near = late or gap <= NEAR * tol * weight or passes + 1 >= self.max_iter
            afresh = near or passes >= 2 * renewed + RENEW
            del working  # others are chosen
            w, now, working = yield from _look(hinges, design, upper, alpha, None if afresh else w)
            passes += now.passes
            if not afresh and now.gap <= tol * weight:
                del working
                w, now, working = yield from _look(hinges, design, upper, alpha)
                passes, afresh = passes + now.passes, True
            shown, renewed = passes, passes if afresh else renewed
            history.append(
                Record(
                    len(history) + 1,
                    passes,
                    now.objective / weight,
                    now.bound / weight,
                    1,
                    time.perf_counter() - began,
                )
            )
            offer(callback, lambda: Cuts(np.empty(0), np.empty((0, 0)), (alpha,)))
            # the end, or a round of more accuracy
            if now.gap <= tol * weight:
                status = Status.TRIVIAL if at_zero - now.bound <= tol * weight else Status.CONVERGED
            elif callback is not None and callback(history[-1]) in (True,):  # NumPy's True as well
                status = Status.CALLBACK
            elif not late and passes < self.max_iter:
                if reached:
                    accuracy = min(accuracy, now.violation / FALL)
                elif gap <= enough:  # it looked smaller than it is
                    enough = 0.8 * gap if gap > 0 else -math.inf
                if accuracy >= 1e-15 * largest:
                    continue
                status = Status.STALLED
            break
        del working
        if not afresh:  # stopped by the callback, or where nothing moves any more
            w, now, _ = yield from _look(hinges, design, upper, alpha)
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
            cuts=None,
            dual_coef=hinges.sign * alpha,
        )


def _left(seen: list[tuple[float, float]], enough: float) -> float:
    """How many passes are left, if the gap goes on to fall as since half the passes.

    By as much, not by the same share: most multipliers are on their way to their bounds, and the dual rises steadily.
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


def _look(
    hinges: Hinges, design: Design, upper: Vector, alpha: Vector, w: Vector | None = None
) -> Generator[Ask, Vector, tuple[Vector, _Look, Working]]:
    """What the multipliers amount to, and whom to visit next.

    With ``w = X' (y alpha)``, which is computed afresh unless it is given.
    """
    passes = 1.0
    if w is None:
        passes += _kernels.rows_read([alpha])
        (w,) = taken((yield Ask("pull", [hinges.sign * alpha])))
    (scores,) = taken((yield Ask("scores", [w])))
    half = _kernels.dot(w, w) / 2
    loss, violation, working = _chosen(hinges, upper, alpha, scores)
    return w, _Look(half + loss, _kernels.dot(hinges.margin, alpha) - half, violation, passes), working


def _chosen(hinges: Hinges, upper: Vector, alpha: Vector, scores: Vector) -> tuple[float, float, Working]:
    """The sum of the hinges, the largest projected gradient, and the examples to visit next."""
    found = _kernels.dual_working(hinges.sign, hinges.margin, upper, alpha, scores)
    return found[0], found[1], Working(*found[2:])
