"""The step of the bundle method: towards the minimiser of the model, and the cut that comes of it."""

from __future__ import annotations

from metrimax import _kernels
from metrimax.protocols import Cut, Oracle, Point
from metrimax.solvers.progress import Progress
from metrimax.solvers.search import Plane, Search, Step, next_reach


class Approach:
    """Moves the best point of a run towards the model's minimiser, and remembers how far that led.

    The next cut is taken a little beyond the point reached: by ``stride`` of the way, or where a search began that
    found no step, if that is nearer.

    As long as w = 0 is the best point it may well be the solution. There the cut is taken first, and its tangent is
    where the line search begins. Mostly it proves that there is no step, and the cut is the next one.

    Parameters
    ----------
    run : Progress
        Its best point moves.
    oracle : Oracle
        The risk.
    stride : float
        The cut is taken at ``best + stride (minimiser - best)``.
    accuracy : float
        Of the line search, relative to the gap.
    """

    def __init__(self, run: Progress, oracle: Oracle, stride: float, accuracy: float) -> None:
        self._run, self._oracle = run, oracle
        self._stride, self._accuracy = stride, accuracy
        self._reach = 1.0
        self._last: tuple[Search, Step, float, Cut | None] | None = None

    def step(self, target: Point, planes: list[Plane]) -> None:
        """Go towards the target, whose vectors are taken over."""
        run = self._run
        at_zero = run.best.point.square == 0
        move = target if at_zero else _way(run.best.point, target)
        search = Search(self._oracle, run.model, run.best, move, planes)
        near = min(self._stride, self._reach)
        ahead = search.cut(self._oracle, near) if at_zero else None
        step = search.minimise(self._accuracy * run.gap, self._reach)
        run.best = search.advance(step)
        self._reach = next_reach(self._reach, step.t)
        self._last = search, step, near, ahead

    def cut(self) -> Cut:
        """The cut that follows from the last step, which is then let go of."""
        assert self._last is not None
        (search, step, near, ahead), self._last = self._last, None
        if step.t == 0 and ahead is not None:
            return ahead
        return self._run.cut(search.beyond(step, self._stride if step.t > 0 else near))


def _way(start: Point, target: Point) -> Point:
    """From a point to the target, whose vectors it takes over."""
    _kernels.axpy(-1.0, start.rep, target.rep)
    _kernels.axpy(-1.0, start.scores, target.scores)
    return Point(target.rep, target.scores)
