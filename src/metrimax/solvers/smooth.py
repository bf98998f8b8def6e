"""Solvers of the smoothed problem: L-BFGS, Nesterov's accelerated method, and their union with the bundle method.

They minimise ``J_mu(w) = lam/2 |w|^2 + R_mu(X w)``, where ``R - mu <= R_mu <= R`` (see `metrimax.measure.smoothing`),
and report the exact J. Every smoothed gradient is the slope of a mean of cuts, hence of a cut, so the same small
quadratic program as in the bundle method gives the lower bound. ``mu`` follows the gap: it falls where the smoothing
error ``J - J_mu`` at the current point has become the larger part of it.

Along a line only scores move, so X is read twice per iteration whatever the line search tries.

References
----------
Zhang, Saha & Vishwanathan (2011); Nesterov (2005); Liu & Nocedal (1989) for L-BFGS; Beck & Teboulle (2009) for the
estimate of the Lipschitz constant; O'Donoghue & Candes (2015) for the restarts.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metrimax import _kernels
from metrimax.protocols import Ask, Callback, Cut, Cuts, Design, Line, Oracle, Record, Solution, Status, Steps, Vector
from metrimax.solvers.bundle import _Point, _Search
from metrimax.solvers.model import CutModel

START = 0.1
"""The first mu: a tenth of the greatest loss."""

SHRINK = 0.25
"""By how much mu falls at a time."""


class Smoothed(NamedTuple):
    """The smoothed risk at one mu."""

    smooth: Callable[[Vector, float], tuple[float, Cut]]
    mu: float

    def __call__(self, scores: Vector) -> tuple[float, Cut]:
        return self.smooth(scores, self.mu)

    def line(self, scores: Vector, move: Vector, until: float) -> Line:
        """The smoothed risk on ``scores + t move``."""

        def risk(t: float) -> tuple[float, float]:
            value, cut = self(scores + t * move)
            return value, _kernels.dot(cut.slope, move)

        return risk


def smoothing(oracle: Oracle) -> Callable[[Vector, float], tuple[float, Cut]]:
    """The oracle's smoothed risk; the error says what is missing where it has none."""
    smooth: Callable[[Vector, float], tuple[float, Cut]] | None = getattr(oracle, "smooth", None)
    if smooth is None:
        raise ValueError(
            f"{type(oracle).__name__} offers no smoothed risk for this sample (fractional weights, or a loss of unknown "
            "structure with too many tables): expected an oracle with smooth(scores, mu); use solver='hybrid' or 'bundle'"
        )
    return smooth


class Progress:
    """What every solver keeps: the cuts, the best exact point, the history, and when to stop."""

    def __init__(
        self, oracle: Oracle, design: Design, weight: float, tol: float, start: Cuts | None, callback: Callback | None
    ) -> None:
        self._oracle = oracle
        self._callback = callback
        self._began = time.perf_counter()
        self.weight, self.lam, self.tol = weight, 1 / weight, tol
        self.model = CutModel(design, self.lam, start)
        n, p = design.shape
        self.cut = oracle(np.zeros(n))
        self.best = _Point(np.zeros(p), np.zeros(n), 0.0, self.cut.loss, self.lam)
        self._at_zero = self.best.value
        self.history: list[Record] = []
        self.n_passes = 0
        self.status = Status.MAX_ITER

    @property
    def gap(self) -> float:
        return self.best.value - self.model.bound

    def offer(self, point: _Point) -> float:
        """Take the exact objective at the point of a smoothed one; returns the objective."""
        self.cut = self._oracle(point.scores)
        risk = self.cut.loss + _kernels.dot(self.cut.slope, point.scores)
        here = _Point(point.w, point.scores, point.square, risk, self.lam)
        if here.value < self.best.value:
            self.best = here
        return here.value

    def solve(self) -> Vector:
        """The minimiser of the model; the bound rises."""
        gap = self.gap if self.history else np.inf
        return self.model.solve(0.01 * min(gap, max(self.tol, 1e-15)))

    def done(self) -> bool:
        """Write the history; whether to stop."""
        seconds = time.perf_counter() - self._began
        self.history.append(
            Record(
                len(self.history) + 1, self.n_passes, self.best.value, self.model.bound, self.model.size - 1, seconds
            )
        )
        if self.gap <= self.tol:
            trivial = self._at_zero - self.model.bound <= self.tol
            self.status = Status.TRIVIAL if trivial else Status.CONVERGED
            return True
        if self._callback is not None and self._callback(self.history[-1]) is True:
            self.status = Status.CALLBACK
            return True
        return False

    def solution(self) -> Solution:
        return Solution(
            w=self.best.w,
            objective=self.weight * self.best.value,
            bound=self.weight * self.model.bound,
            gap=self.gap,
            n_iter=len(self.history),
            n_passes=self.n_passes,
            n_support=self.model.n_support,
            status=self.status,
            history=self.history,
            cuts=self.model.cuts(),
        )


class QuasiNewton:
    """The limited-memory BFGS matrix, in the design's inner product (Liu & Nocedal 1989)."""

    def __init__(self, design: Design, memory: int) -> None:
        self._design = design
        self._pairs: deque[tuple[Vector, Vector, float, float]] = deque(maxlen=memory)

    def _inner(self, u: Vector, v: Vector) -> float:
        return float(self._design.inner(u[None], v)[0])

    def update(self, step: Vector, change: Vector) -> None:
        """Learn that the gradient changed by ``change`` over ``step``."""
        curvature, square = self._inner(step, change), self._inner(change, change)
        if curvature > 1e-12 * square:
            self._pairs.append((step, change, curvature, square))

    def direction(self, gradient: Vector, scale: float) -> Vector:
        """Minus the inverse Hessian times the gradient; ``scale`` is the inverse Hessian's while nothing is known."""
        d = -gradient
        shares = []
        for step, change, curvature, _ in reversed(self._pairs):
            share = self._inner(step, d) / curvature
            shares.append(share)
            d -= share * change
        if self._pairs:
            scale = self._pairs[-1][2] / self._pairs[-1][3]
        d *= scale
        for (step, change, curvature, _), share in zip(self._pairs, reversed(shares), strict=True):
            d += (share - self._inner(change, d) / curvature) * step
        return d


def descend(search: _Search, accuracy: float) -> _Point:
    """The line search, more accurate where the whole way down is less than what was asked for."""
    for _ in range(4):
        point, t = search.minimise(accuracy, 1.0)
        if t > 0:
            break
        accuracy *= 0.01
    return point


@dataclass(frozen=True)
class LBFGS:
    """L-BFGS on the smoothed problem, with the line search in score space.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    mu : float or None
        Fixed smoothing, in units of the measure. By default it follows the gap.
    memory : int
        Number of past steps that make up the quasi-Newton matrix.

    Notes
    -----
    With ``mu`` fixed the gap need not reach ``tol``: the run also ends (STALLED) where the smoothed problem is solved.
    """

    max_iter: int = 10_000
    mu: float | None = None
    memory: int = 10

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
        """Minimise ``1/2 |w|^2 + weight R(w)``."""
        run = Progress(oracle, design, weight, tol, start, callback)
        risk = Smoothed(smoothing(oracle), self.mu or START)
        value, cut = risk(run.best.scores)
        point = _Point(run.best.w, run.best.scores, 0.0, value, run.lam)
        pulled = yield Ask("pull", cut.slope)
        run.n_passes += 1
        run.model.add(cut.loss, pulled)
        matrix = QuasiNewton(design, self.memory)
        for _ in range(self.max_iter):
            run.solve()
            if run.done():
                break
            gradient = run.lam * point.w + pulled
            square = float(design.inner(gradient[None], gradient)[0])
            if square <= 0.02 * run.lam * tol and self.mu is not None:  # J_mu is within 1% of tol of its minimum
                run.status = Status.STALLED
                break
            direction = matrix.direction(gradient, weight)
            move = yield Ask("scores", direction)
            run.n_passes += 1
            descent = -float(design.inner(gradient[None], direction)[0])
            moved = descend(
                _Search(risk.line, design, run.lam, point, point.w + direction, point.scores + move),
                0.05 * min(run.gap, descent),
            )
            objective = run.offer(moved)
            changed = moved is point or (self.mu is None and objective - moved.value > 0.6 * run.gap)
            if changed:
                risk = Smoothed(risk.smooth, risk.mu * SHRINK)
                if self.mu is not None or risk.mu < 1e-4 * tol:
                    run.status = Status.STALLED
                    break
            value, cut = risk(moved.scores)
            moved = _Point(moved.w, moved.scores, moved.square, value, run.lam)
            before, pulled = pulled, (yield Ask("pull", cut.slope))
            run.n_passes += 1
            run.model.prune()
            run.model.add(cut.loss, pulled)
            if not changed:
                step = moved.w - point.w
                matrix.update(step, run.lam * step + pulled - before)
            point = moved
        return run.solution()
