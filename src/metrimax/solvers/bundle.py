"""The bundle method, plain and with a quasi-Newton direction; and the cutting-plane algorithm, its reference."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from metrimax.protocols import Arrays, Asking, Kink, Steps, made
from metrimax.solvers.run_state import Run, RunSolver
from metrimax.solvers.starts import leave_zero

START = 0.1
"""mu of the first mean of cuts, at most; it then follows the gap, in steps of a quarter or less. With 0.03 and 0.3:
1.02 and 1.03 times the passes of the hybrid.
"""

MEMORY = 20
"""Past steps that make up the quasi-Newton matrix. With 7 and 60: 1.05 and 1.00 times the passes of the hybrid."""

VAIN = 8
"""After this many directions in a row without a step, twice as many plain iterations follow; next time four times. With
3 and 24: 1.03 and 1.00 times the passes of the hybrid.
"""


@dataclass(frozen=True)
class Bundle(RunSolver):
    """Cutting planes with a line search between the best point and the model's minimiser.

    Per iteration the data are read twice: ``X w`` for the minimiser of the model and ``X' slope`` for one new cut.
    The line search moves only scores, ``s + t X d``, so however many points it tries, X is not touched. The new cut is
    a mean of cuts while the gap comes down (`Run.blur`): the exact one turns on single examples, and on many features
    it would take many of them to say what one mean does.

    After ``plain`` such iterations come those with two directions and two cuts for the same two reads of X (`Hybrid`).
    The first read gives the scores of the quasi-Newton direction of L-BFGS and of the minimiser of the model; the exact
    objective is minimised along the one and then towards the other. The second pulls back two cuts: a mean of cuts
    within mu at the point reached, whose slope stands for the gradient from which the next direction comes, and the cut
    of the plain iteration. mu follows the gap. Plain iterations go on for as long as w = 0 is the best point known, a
    kink that quasi-Newton steps do not get away from, and come back for a while where the directions lead nowhere.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    plain : float
        Plain iterations at the beginning, at least.
    patience : float
        Where w = 0, a kink of the risk, is still the best point after this many iterations, `leave_zero` takes over.
    stride : float
        The new cut is taken at ``best + stride (minimiser - best)``, and nearer after searches that found no step.
    accuracy : float
        Of the line searches, relative to the gap. Below ``stride``, or an exact cut may say nothing new: where the line
        search is exact, that cut is violated by at least ``stride`` times the gap.

    References
    ----------
    Joachims (2005), Algorithm 1; Franc & Sonnenburg (2009), Algorithm 2 (OCAS); Zhang, Saha & Vishwanathan (2011);
    Lewis & Overton (2013) for quasi-Newton steps on risks that are not smooth.
    """

    max_iter: int = 10_000
    plain: float = math.inf
    patience: float = math.inf
    stride: float = 0.1
    accuracy: float = 0.02

    def _solve(self, run: Run) -> Steps:
        first = _Schedule(self.plain, run.best.value, run.schedule)
        kink = yield from self._iterate(run, first, self.patience)
        if kink is not None:
            start = yield from leave_zero(run.oracle, kink, run.design, run.weight, run.tol)
            run.begin(start, run.model.bound, run.model.n_passes)
            yield from self._iterate(run, _Schedule(0, run.best.value, {}, seen=math.inf), math.inf)
        return (yield from run.solution())

    def _iterate(self, run: Run, schedule: _Schedule, patience: float) -> Asking[Kink | None]:
        """Iterate to the end of the run; or return the kink at w = 0, if the run has stayed there for too long."""
        oracle, model = run.oracle, run.model
        asked = oracle.can.compiled or oracle
        steps = model.steps(run.best.point, run.best.risk, self.stride, self.accuracy, MEMORY)
        patience -= schedule.seen
        if "pace" in schedule.kept:
            steps.go_on(schedule.kept["pace"], schedule.kept.get("pairs", np.empty((0, 0))))
        run.scheduled = lambda: schedule.arrays() | steps.kept()
        losses, slopes = run.opening()
        if schedule.both:
            cut = oracle.mean_cut(run.best.point.scores, schedule.mu)
            losses, slopes = [*losses, cut.loss], [*slopes, cut.slope]
        while run.iterations < self.max_iter:
            moves = yield from model.propose(steps, losses, slopes, run.precision, run.tol, schedule.both)
            if moves:
                steps.search(asked, (yield from model.scores(moves)))
                run.moved(steps.square, steps.risk)
            if run.done() or run.iterations == self.max_iter:
                break
            if run.iterations == patience and run.best.point.square == 0:
                kink = made(oracle.can.kink)
                if kink is not None:
                    return kink
            if schedule.next(steps.in_vain, run):
                steps.forget()  # slopes of another mu do not compare, nor do points that lie far apart
            losses, slopes = steps.cuts(asked, run.blur, schedule.mu if schedule.both else None)
        return None


@dataclass(frozen=True)
class Hybrid(Bundle):
    """The bundle method with the quasi-Newton direction from the first iteration on."""

    plain: float = 0


class _Schedule:
    """Which iterations are plain, and which have two directions (``both``); and mu.

    ``kept`` is a schedule as arrays, to go on with. ``seen`` counts its iterations; it is infinite after `leave_zero`.
    """

    def __init__(self, plain: float, value: float, kept: Arrays, seen: float = 0.0) -> None:
        self._plain, self._rest, self._pause = min(plain, 1e18), 0.0, 2.0 * VAIN  # files hold finite numbers
        self.mu, self.both, self.kept, self.seen = min(START, value), plain <= 0, kept, seen
        if "numbers" in kept and kept["numbers"].shape == (5,) and kept["numbers"][3] > 0:
            self._plain, self._rest, self._pause, self.mu, self.seen = kept["numbers"].tolist()
            self.both = self._plain <= 0 and self._rest <= 0

    def arrays(self) -> Arrays:
        return {"numbers": np.array([self._plain, self._rest, self._pause, self.mu, min(self.seen, 1e18)])}

    def next(self, in_vain: int, run: Run) -> bool:
        """Choose the next iteration, after so many directions without a step; returns whether to drop past slopes."""
        forget = False
        self.seen += 1
        self._plain -= 1
        self._rest -= 1
        if self.both and in_vain >= VAIN:
            self._rest, self._pause = self._pause, 2 * self._pause
            forget = True
        moving = self._plain <= 0 and run.best.point.square > 0
        self.both = moving and self._rest <= 0
        if moving and run.gap < self.mu / 4:
            self.mu = run.gap
            forget = True
        return forget


@dataclass(frozen=True)
class CuttingPlane(RunSolver):
    """The plain cutting-plane algorithm: the new cut is taken where the model is least. The reference.

    Parameters
    ----------
    max_iter : int
        Most iterations.

    References
    ----------
    Joachims (2005), Algorithm 1.
    """

    max_iter: int = 10_000

    def _solve(self, run: Run) -> Steps:
        model = run.model
        losses, slopes = run.opening()
        for _ in range(self.max_iter):
            yield from model.add(losses, slopes)
            target = model.minimiser(run.precision)
            if not run.closed:
                target = yield from model.score(target)
                _, cut = run.offer(target)
                losses, slopes = [cut.loss], [cut.slope]
            if run.done():
                break
        return (yield from run.solution())
