"""The line search in score space: however many points it tries, X is not touched."""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple, Protocol, TypeAlias

from metrimax import _kernels
from metrimax.protocols import Cut, Line, Oracle, Point, Vector
from metrimax.solvers.model import CutModel

LEAST = 1e-3
"""The least reach; shorter steps are found from there, by tangents."""

Plane: TypeAlias = tuple[float, Point]
"""The loss of a cut and its slope."""


class Risk(Protocol):
    """What is minimised along a line: an oracle, or a smoothed risk."""

    def line(self, scores: Vector, move: Vector) -> Line: ...


class Best:
    """A point with its risk and the objective ``lam/2 |w|^2 + R(w)``."""

    def __init__(self, point: Point, risk: float, lam: float) -> None:
        self.point, self.risk = point, risk
        self.value = lam / 2 * point.square + risk


class Step(NamedTuple):
    """A point on a line, and the risk there."""

    t: float
    risk: float


class Search:
    """Line search in score space: from a point along a move.

    ``phi(t) = lam/2 |w + t d|^2 + R(s + t Xd)`` is a parabola plus a convex function of which every
    evaluation gives value and slope, so two tangents bracket the minimum and bound it from below
    (`_core/line_search.hpp`).

    Vectors of length n are few: `advance` moves the point in place, and `beyond` makes its scores from the move's.
    """

    def __init__(
        self, risk: Risk, model: CutModel, best: Best, move: Point, tangent: tuple[float, float] | None
    ) -> None:
        self._risk = risk
        self._lam = model.lam
        self._best = best
        self._move = move
        self._cross = model.inner(best.point, move) if best.point.square else 0.0
        self._bend = model.inner(move, move)
        self._tangent = tangent
        self._ahead: tuple[float, tuple[float, float]] | None = None

    def minimise(self, accuracy: float, reach: float) -> Step:
        """The least of the points tried, within ``accuracy`` of the minimum unless 30 did not reach it.

        The search begins on [0, reach] and widens that, by more every time, until the minimum is inside. At 0 the risk
        is known, and any plane below it serves as its tangent, where one is given by its value and its rise along the
        move.
        """
        line = self._risk.line(self._best.point.scores, self._move.scores)
        parabola = self._lam, self._best.point.square, self._cross, self._bend
        known = self._tangent, accuracy, *(self._ahead or (reach,))
        return Step(*_kernels.line_search(line, parabola, self._best.risk, *known))

    def cut(self, oracle: Oracle, t: float) -> Cut:
        """The exact cut at t, where the search then begins."""
        scores = t * self._move.scores
        scores += self._best.point.scores
        cut = oracle(scores)
        value = cut.loss + _kernels.dot(cut.slope, scores)
        self._ahead = t, (value, _kernels.dot(cut.slope, self._move.scores))
        return cut

    def advance(self, step: Step) -> Best:
        """Move the best point to a step."""
        if step.t == 0:
            return self._best
        rep, scores, _ = self._best.point
        _kernels.axpy(step.t, self._move.rep, rep)
        _kernels.axpy(step.t, self._move.scores, scores)
        return Best(Point(rep, scores, self._square(step.t)), step.risk, self._lam)

    def beyond(self, step: Step, stride: float) -> Vector:
        """Scores a little further along than the step taken by the best point, up to t = 1; ends the search."""
        scores = self._move.scores
        scores *= stride * (1 - step.t)
        scores += self._best.point.scores
        return scores

    def _square(self, t: float) -> float:
        return self._best.point.square + 2 * t * self._cross + t * t * self._bend


def tangent(model: CutModel, planes: list[Plane], best: Best, move: Point) -> tuple[float, float] | None:
    """Of planes below the risk the one that is highest at a point: its value there and its rise along a move."""
    if not planes:
        return None
    value, highest = max(((loss + model.inner(slope, best.point), slope) for loss, slope in planes), key=itemgetter(0))
    return value, model.inner(highest, move)


def next_reach(reach: float, t: float) -> float:
    """Where the search after one that ended at t begins: at twice that, or half as far if no step was found.

    Not below `LEAST`: after many searches without a step one must still get to t = 1.
    """
    return min(1.0, max(2 * t or reach / 2, LEAST))
