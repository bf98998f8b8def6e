"""The step of the bundle method: towards the minimiser of the model, and the cut that comes of it."""

from __future__ import annotations

from metrimax import _kernels
from metrimax.protocols import Cut, Oracle, Point, Vector
from metrimax.solvers.progress import Progress
from metrimax.solvers.search import Planes, Tangent, descend, next_reach


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
        self._last: tuple[Vector, float, Cut | None] | None = None

    def step(self, target: Point, planes: Planes) -> None:
        """Go towards the target, whose vectors are taken over."""
        run, reach = self._run, self._reach
        best, near = run.best.point, min(self._stride, reach)
        ahead, known, begin = None, None, reach
        if best.square > 0:  # the way from there
            _kernels.axpy(-1.0, best.rep, target.rep)
            _kernels.axpy(-1.0, best.scores, target.scores)
        else:
            (ahead, known), begin = self._ahead(target.scores, near), near
        accuracy = self._accuracy * run.gap
        run.best, t = descend(self._oracle, run.model, run.best, target, accuracy, begin, planes=planes, at_reach=known)
        self._reach = next_reach(reach, t)
        self._last = target.scores, (self._stride if t > 0 else near) * (1 - t), ahead if t == 0 else None

    def cut(self) -> Cut:
        """The cut that follows from the last step, which is then let go of."""
        assert self._last is not None
        (scores, share, ahead), self._last = self._last, None
        if ahead is not None:
            return ahead
        _kernels.blend(scores, share, self._run.best.point.scores)
        return self._run.cut(scores)

    def _ahead(self, target: Vector, near: float) -> tuple[Cut, Tangent]:
        """The exact cut a part of the way from w = 0 to the target, and the risk there with its rise along the way."""
        cut = self._oracle(near * target)
        rise = _kernels.dot(cut.slope, target)
        return cut, (cut.loss + near * rise, rise)
