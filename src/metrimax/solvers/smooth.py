"""Solvers of the smoothed problem: L-BFGS and Nesterov's accelerated method.

They minimise ``J_mu(w) = lam/2 |w|^2 + R_mu(X w)``, where ``R - mu <= R_mu <= R`` (see `metrimax.measure.smoothing`),
and report the exact J. Every smoothed gradient is the slope of a mean of cuts, hence of a cut, so the same small
quadratic program as in the bundle method gives the lower bound. ``mu`` follows the gap: it falls where most of it is
what that cut misses of R at the current point, which is the whole gap at the least of J_mu.

References
----------
Zhang, Saha & Vishwanathan (2011); Nesterov (2005); Liu & Nocedal (1989) for L-BFGS; Beck & Teboulle (2009) for the
estimate of the Lipschitz constant; O'Donoghue & Candes (2015) for the restarts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrimax import _kernels
from metrimax._validation import check_positive, check_whole
from metrimax.protocols import Asking, Point, Status, Steps, Vector, made, required
from metrimax.solvers.bundle import START
from metrimax.solvers.cut_model import combine
from metrimax.solvers.run_state import Best, Run, RunSolver

LEAST = 1e-7
"""mu stays above this, whatever the tolerance: shares are differences of scores over mu, which would be rounding."""


class _Smooth:
    """What L-BFGS and the accelerated method share: mu, and the exact value and bound of the points they visit."""

    def __init__(self, run: Run, mu: float | None) -> None:
        self.run, self.fixed = run, mu is not None
        self._mu = START if mu is None else mu
        kept = run.schedule.get("mu", np.empty(0))  # of the run that this one goes on from
        if mu is None and kept.shape == (1,) and 0 < kept[0] < START:
            self._mu = float(kept[0])
        run.scheduled = lambda: {"mu": np.array([self._mu])}
        self._smooth = required(
            made(run.oracle.can.smooth),
            f"{type(run.oracle).__name__} offers no smoothed risk for this sample (fractional weights, or a loss of "
            "unknown structure with too many tables): expected an oracle with can.smooth; use solver='hybrid' or "
            "'bundle'",
        )
        run.opening()  # the first cut is another one

    def risk(self, scores: Vector) -> float:
        """The smoothed risk at scores; ``cut`` is the mean of cuts that attains it."""
        value, self.cut = self._smooth(scores, self._mu)
        return value

    def error(self, point: Point) -> float:
        """The exact objective at a point less that of the cut last found there: a gap that only a smaller mu closes."""
        risk = self.cut.loss + _kernels.dot(self.cut.slope, point.scores)
        return self.run.offer(point)[0] - (self.run.lam / 2 * point.square + risk)

    def flat(self, point: Point, slope: Point) -> bool:
        """Whether J_mu is within tol / 100 of its least, where mu is fixed."""
        lam, model = self.run.lam, self.run.model
        gradient = combine((lam, model.bare(point)), (1.0, slope))
        if self.fixed and model.inner(gradient, gradient) <= 0.02 * lam * self.run.tol:
            self.run.status = Status.STALLED
            return True
        return False

    def move(self, point: Point, value: float | None = None) -> Asking[tuple[Best, Point]]:
        """The smoothed objective at a point and the slope of its risk, if not yet known; the cut joins the model."""
        value = self.risk(point.scores) if value is None else value
        [slope] = yield from self.run.model.add([self.cut.loss], [self.cut.slope])
        return self.run.at(point, value), slope

    def descend(self, here: Best, direction: Point, descent: float) -> Best:
        """Minimise along a direction; the point itself if no step is found.

        The accuracy is a share of the gap, or of ``descent``, the first-order decrease along the whole direction, where
        that is less. A search that finds no step is repeated, a hundred times more accurately each time.
        """
        lam, images = self.run.lam, self.run.model.images
        rep, scores, square = here.point
        rep, scores = rep.copy(), scores.copy()  # the kernel moves them in place, if there is a step
        last = 0.0

        def line(t: float) -> tuple[float, float]:
            nonlocal last
            last, value = t, self.risk(here.point.scores + t * direction.scores)
            return value, _kernels.dot(self.cut.slope, direction.scores)

        tangent = here.risk, _kernels.dot(self.cut.slope, direction.scores)
        accuracy = 0.05 * min(self.run.gap, descent)
        for _ in range(4):
            point, move = (rep, scores, square), (direction.rep, direction.scores)
            t, risk, moved = _kernels.descend(
                line, lam, point, here.risk, move, images=images, tangent=tangent, accuracy=accuracy
            )
            if t > 0:
                return self.run.at(Point(rep, scores, moved), risk if t == last else self.risk(scores))
            accuracy *= 0.01
        return here

    def sharpen(self, error: float, *, stuck: bool) -> bool:
        """Lower mu if the smoothing error is most of the gap, or if no step was found; returns whether it did."""
        if self.fixed:
            if stuck:
                self.run.status = Status.STALLED
            return stuck
        if not stuck and error <= 0.6 * self.run.gap:
            return False
        self._mu /= 4
        if self._mu < max(LEAST, 1e-4 * self.run.tol):
            self.run.status = Status.STALLED
        return True


@dataclass(frozen=True)
class SmoothSolver(RunSolver):
    """A solver of the smoothed problem: most iterations, and mu, which is fixed or, if None, follows the gap."""

    max_iter: int = 10_000
    mu: float | None = None

    def __post_init__(self) -> None:
        if self.mu is not None:
            check_positive("mu", self.mu, ", or None")


@dataclass(frozen=True)
class LBFGS(SmoothSolver):
    """L-BFGS on the smoothed problem, with the line search in score space.

    Parameters
    ----------
    max_iter : int
        Most iterations; estimators set their own.
    mu : float or None
        Fixed smoothing in units of the measure, which is mu D in Zhang et al. (2011): the run also ends where the
        smoothed problem is solved. None: it follows the gap from 0.1 down, each problem from the last one's solution.
    memory : int
        Number of past steps that make up the quasi-Newton matrix; Zhang et al. (2011) take 6.
    """

    memory: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("memory", self.memory)

    def _solve(self, run: Run) -> Steps:
        state = _Smooth(run, self.mu)
        lam, model = run.lam, run.model
        here, slope = yield from state.move(run.best.point)
        matrix = _kernels.QuasiNewton(lam, self.memory)
        for _ in range(self.max_iter):
            model.minimiser(run.precision)
            if run.done() or state.flat(here.point, slope):
                break
            point = model.bare(here.point)
            gradient = combine((lam, point), (1.0, slope))
            direction = Point(*matrix.direction(point.rep, point.scores, slope.rep, slope.scores))
            descent = -model.inner(gradient, direction)
            direction = yield from model.score(direction)
            moved = state.descend(here, direction, descent)
            changed = state.sharpen(state.error(moved.point), stuck=moved is here)
            if run.status is Status.STALLED:
                break
            here, slope = yield from state.move(moved.point, None if changed else moved.risk)
            if changed:
                matrix.forget()
        return (yield from run.solution(drifted=model.images))


@dataclass(frozen=True)
class AGM(SmoothSolver):
    """Nesterov's accelerated gradient method on the smoothed problem, with an adaptive Lipschitz constant.

    The step from the extrapolated point y goes to ``(L y - a) / (L + lam)``, a the slope of the smoothed risk at y; its
    scores follow from those of y and of a, so that trying another L costs no pass. The momentum restarts where it
    points uphill, and where mu falls. ``max_iter`` and ``mu`` are as in `LBFGS`.
    """

    def _solve(self, run: Run) -> Steps:
        state = _Smooth(run, self.mu)
        lam, model = run.lam, run.model
        here, slope = yield from state.move(run.best.point)  # here is the extrapolated point
        last = here.point
        theta, lipschitz = 1.0, lam
        for _ in range(self.max_iter):
            model.minimiser(run.precision)
            if run.done() or state.flat(here.point, slope):
                break
            slope = yield from model.score(slope)
            lipschitz /= 2
            while True:
                share = 1 / (lipschitz + lam)
                moved = combine((lipschitz * share, here.point), (-share, slope))
                step = combine((1.0, moved), (-1.0, here.point))
                square = model.inner(step, step)
                value = state.risk(moved.scores)
                ahead = here.risk + model.inner(model.bare(slope), model.bare(step)) + lipschitz / 2 * square
                if value <= ahead + 1e-12 * abs(ahead) or lipschitz > 1e20:
                    break
                lipschitz *= 2
            moved = moved._replace(square=model.inner(moved, moved))
            progress = combine((1.0, moved), (-1.0, last))
            changed = state.sharpen(state.error(moved), stuck=square == 0)
            if run.status is Status.STALLED:
                break
            following = (1 + np.sqrt(1 + 4 * theta**2)) / 2
            momentum = (theta - 1) / following
            uphill = model.inner(combine((-1.0, step)), progress) > 0
            theta = following
            if uphill or changed:
                theta, momentum = 1.0, 0.0
            target = combine((1.0, moved), (momentum, progress))
            here, slope = yield from state.move(target._replace(square=model.inner(target, target)))
            last = moved
        return (yield from run.solution(drifted=model.images))
