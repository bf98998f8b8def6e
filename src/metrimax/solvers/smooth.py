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
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from metrimax import _kernels
from metrimax.protocols import (
    Ask,
    Callback,
    Cut,
    Cuts,
    Design,
    Line,
    Oracle,
    Record,
    Solution,
    Status,
    Steps,
    Vector,
    offer,
)
from metrimax.solvers.bundle import STALL, _Best, _Search, _state
from metrimax.solvers.model import CutModel, Point, combine, cut_model

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
            f"{type(oracle).__name__} offers no smoothed risk for this sample (fractional weights, or a loss of unknown"
            " structure with too many tables): expected an oracle with smooth(scores, mu); use solver='hybrid'"
            " or 'bundle'"
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
        self.weight, self.lam, self.tol = float(weight), 1 / float(weight), tol
        self.model = cut_model(design, self.lam, start)
        n = design.shape[0]
        self.cut = oracle(np.zeros(n))
        self.best = _Best(Point(np.zeros(min(design.shape)), np.zeros(n), 0.0), self.cut.loss, self.lam)
        self._at_zero = self.best.value
        if start is not None and isinstance(start.best, _Best):
            last = _Best(start.best.point, start.best.risk, self.lam)
            self.best = min(self.best, last, key=lambda point: point.value)
        self._milestone, self._idle = np.inf, 0
        self.history: list[Record] = []
        self.status = Status.MAX_ITER

    @property
    def gap(self) -> float:
        return self.best.value - self.model.bound

    @property
    def precision(self) -> float:
        """How well the quadratic program has to be solved."""
        return 0.01 * min(self.gap if self.history else np.inf, max(self.tol, 1e-15))

    def offer(self, point: Point) -> float:
        """Evaluate the exact objective at a point and keep the best."""
        self.cut = self._oracle(point.scores)
        here = _Best(point, self.cut.loss + _kernels.dot(self.cut.slope, point.scores), self.lam)
        if here.value < self.best.value:
            self.best = here
        return here.value

    def done(self) -> bool:
        """Write the history; whether to stop."""
        seconds, model = time.perf_counter() - self._began, self.model
        number = len(self.history) + 1
        self.history.append(Record(number, model.n_passes, self.best.value, model.bound, model.size - 1, seconds))
        offer(self._callback, partial(_state, self.model, self.best))
        if self.gap <= self.tol:
            trivial = self._at_zero - model.bound <= self.tol
            self.status = Status.TRIVIAL if trivial else Status.CONVERGED
            return True
        idle = self.gap > (1 - 1e-6) * self._milestone
        self._milestone, self._idle = (self._milestone, self._idle + 1) if idle else (self.gap, 0)
        if self._idle == STALL:
            self.status = Status.STALLED
            return True
        if self._callback is not None and self._callback(self.history[-1]) in (True,):  # NumPy's True as well
            self.status = Status.CALLBACK
            return True
        return False

    def solution(self) -> Steps:
        w = yield from self.model.weights(self.best.point)
        return Solution(
            w=w,
            objective=self.weight * self.best.value,
            bound=self.weight * self.model.bound,
            gap=self.gap,
            n_iter=len(self.history),
            n_passes=self.model.n_passes,
            n_support=self.model.n_support,
            status=self.status,
            history=self.history,
            cuts=_state(self.model, self.best),
        )


class QuasiNewton:
    """The limited-memory BFGS matrix, in the model's space (Liu & Nocedal 1989)."""

    def __init__(self, model: CutModel, memory: int) -> None:
        self._inner = model.inner
        self._pairs: deque[tuple[Point, Point, float, float]] = deque(maxlen=memory)

    def update(self, step: Point, change: Point) -> None:
        """Learn that the gradient changed by ``change`` over ``step``."""
        curvature, square = self._inner(step, change), self._inner(change, change)
        if curvature > 1e-12 * square > 0:
            self._pairs.append((step, change, curvature, square))

    def direction(self, gradient: Point, scale: float) -> Point:
        """Minus the inverse Hessian times the gradient; ``scale`` is the inverse Hessian's while nothing is known."""
        d = combine((-1.0, gradient))
        shares = []
        for step, change, curvature, _ in reversed(self._pairs):
            share = self._inner(step, d) / curvature
            shares.append(share)
            d = combine((1.0, d), (-share, change))
        if self._pairs:
            scale = self._pairs[-1][2] / self._pairs[-1][3]
        d = combine((scale, d))
        for (step, change, curvature, _), share in zip(self._pairs, reversed(shares), strict=True):
            d = combine((1.0, d), (share - self._inner(change, d) / curvature, step))
        return d


def seek(
    oracle: Oracle | Smoothed, model: CutModel, best: _Best, target: Point, cut: Cut, accuracy: float, reach: float
) -> tuple[_Best, float]:
    """The line search, which leaves the points it begins at and aims at as they are; also returns how far it went."""
    start = Point(best.point.rep.copy(), best.point.scores.copy(), best.point.square)
    aim = Point(target.rep.copy(), target.scores.copy(), target.square)
    search = _Search(oracle, model, _Best(start, best.risk, model.lam), aim, cut)  # type: ignore[arg-type]
    step = search.minimise(accuracy, reach)
    return (best, 0.0) if step.t == 0 else (search.advance(step), step.t)


class _Smooth:
    """What L-BFGS and the accelerated method share: mu, and the exact value and bound of the points they visit."""

    def __init__(self, run: Progress, oracle: Oracle, mu: float | None) -> None:
        self.run = run
        self.fixed = mu is not None
        self.risk = Smoothed(smoothing(oracle), START if mu is None else mu)

    def move(self, point: Point) -> Generator[Ask, Vector, tuple[_Best, Point]]:
        """The smoothed objective at a point and the slope of its risk; the cut joins the model."""
        value, cut = self.risk(point.scores)
        self.tangent = Cut(value - _kernels.dot(cut.slope, point.scores), cut.slope)
        [slope] = yield from self.run.model.add(cut)
        return _Best(point, value, self.run.lam), slope

    def descend(self, here: _Best, direction: Point, descent: float) -> _Best:
        """Minimise along a direction, more accurately where the whole way down is less than what was asked for."""
        accuracy = 0.05 * min(self.run.gap, descent)
        aim = combine((1.0, here.point), (1.0, direction))
        for _ in range(4):
            moved, t = seek(self.risk, self.run.model, here, aim, self.tangent, accuracy, 1.0)
            if t > 0:
                break
            accuracy *= 0.01
        return moved

    def sharpen(self, error: float, *, stuck: bool) -> bool:
        """Let mu fall where the smoothing error is most of the gap, or where nothing moves; whether it did."""
        if self.fixed:
            if stuck:
                self.run.status = Status.STALLED
            return stuck
        if not stuck and error <= 0.6 * self.run.gap:
            return False
        self.risk = self.risk._replace(mu=SHRINK * self.risk.mu)
        if self.risk.mu < 1e-4 * self.run.tol:
            self.run.status = Status.STALLED
        return True


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
        """Minimise ``1/2 |w|^2 + weight R(w)``, inside as ``lam/2 |w|^2 + R(w)`` with ``lam = 1 / weight``."""
        run = Progress(oracle, design, weight, tol, start, callback)
        state = _Smooth(run, oracle, self.mu)
        lam, model = run.lam, run.model
        here, slope = yield from state.move(run.best.point)
        matrix = QuasiNewton(model, self.memory)
        for _ in range(self.max_iter):
            model.minimiser(run.precision)
            if run.done():
                break
            point = model.bare(here.point)
            gradient = combine((lam, point), (1.0, slope))
            if state.fixed and model.inner(gradient, gradient) <= 0.02 * lam * tol:
                run.status = Status.STALLED  # J_mu is within tol / 100 of its least
                break
            direction = matrix.direction(gradient, weight)
            descent = -model.inner(gradient, direction)
            [direction] = yield from model.score(direction)
            moved = state.descend(here, direction, descent)
            changed = state.sharpen(run.offer(moved.point) - moved.value, stuck=moved is here)
            if run.status is Status.STALLED:
                break
            model.prune()
            last = slope
            here, slope = yield from state.move(moved.point)
            if not changed:
                step = combine((1.0, model.bare(here.point)), (-1.0, point))
                matrix.update(step, combine((lam, step), (1.0, slope), (-1.0, last)))
        return (yield from run.solution())


@dataclass(frozen=True)
class AGM:
    """Nesterov's accelerated gradient method on the smoothed problem, with an adaptive Lipschitz constant.

    The step from the extrapolated point y goes to ``(L y - a) / (L + lam)``, a the slope of the smoothed risk at y; its
    scores follow from those of y and of a, so that trying another L costs no pass. The momentum restarts where it
    points uphill, and where mu falls.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    mu : float or None
        Fixed smoothing, in units of the measure. By default it follows the gap.

    References
    ----------
    Nesterov (2005, 2007); Beck & Teboulle (2009); O'Donoghue & Candes (2015).
    """

    max_iter: int = 10_000
    mu: float | None = None

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
        """Minimise ``1/2 |w|^2 + weight R(w)``, inside as ``lam/2 |w|^2 + R(w)`` with ``lam = 1 / weight``."""
        run = Progress(oracle, design, weight, tol, start, callback)
        state = _Smooth(run, oracle, self.mu)
        lam, model = run.lam, run.model
        here, slope = yield from state.move(run.best.point)  # here is the extrapolated point
        last = here.point
        theta, lipschitz = 1.0, lam
        for _ in range(self.max_iter):
            model.minimiser(run.precision)
            if run.done():
                break
            if state.fixed:
                gradient = combine((lam, model.bare(here.point)), (1.0, slope))
                if model.inner(gradient, gradient) <= 0.02 * lam * tol:
                    run.status = Status.STALLED
                    break
            [slope] = yield from model.score(slope)
            lipschitz /= 2
            while True:
                share = 1 / (lipschitz + lam)
                moved = combine((lipschitz * share, here.point), (-share, slope))
                step = combine((1.0, moved), (-1.0, here.point))
                square = model.inner(step, step)
                value, _ = state.risk(moved.scores)
                ahead = here.risk + model.inner(model.bare(slope), model.bare(step)) + lipschitz / 2 * square
                if value <= ahead + 1e-12 * abs(ahead) or lipschitz > 1e20:
                    break
                lipschitz *= 2
            moved = moved._replace(square=model.inner(moved, moved))
            error = run.offer(moved) - (lam / 2 * moved.square + value)
            progress = combine((1.0, moved), (-1.0, last))
            changed = state.sharpen(error, stuck=square == 0)
            if run.status is Status.STALLED:
                break
            following = (1 + np.sqrt(1 + 4 * theta**2)) / 2
            momentum = (theta - 1) / following
            uphill = model.inner(combine((-1.0, step)), progress) > 0
            theta = following
            if uphill or changed:
                theta, momentum = 1.0, 0.0
            target = combine((1.0, moved), (momentum, progress))
            model.prune()
            here, slope = yield from state.move(target._replace(square=model.inner(target, target)))
            last = moved
        return (yield from run.solution())
