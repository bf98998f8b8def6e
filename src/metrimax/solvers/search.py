"""The line search in score space: however many points it tries, X is not touched."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from metrimax import _kernels
from metrimax.protocols import Line, Point, Vector
from metrimax.solvers.model import CutModel

Plane: TypeAlias = tuple[float, Point]
"""The loss of a cut and its slope."""


class Risk(Protocol):
    """What is minimised along a line: an oracle, or a smoothed risk."""

    def line(self, scores: Vector, move: Vector, until: float) -> Line: ...


class Best:
    """A point with its risk and the objective ``lam/2 |w|^2 + R(w)``."""

    def __init__(self, point: Point, risk: float, lam: float) -> None:
        self.point, self.risk = point, risk
        self.value = lam / 2 * point.square + risk


class Step(NamedTuple):
    """A point on a line: the risk and its rise, the objective and its slope."""

    t: float
    risk: float
    rise: float
    value: float
    slope: float


class Search:
    """Line search in score space: from a point along a move.

    ``phi(t) = lam/2 |w + t d|^2 + R(s + t Xd)`` is a parabola plus a convex function of which every
    evaluation gives value and slope, so two tangents bracket the minimum and bound it from below.

    Vectors of length n are few: `advance` moves the point in place, and `beyond` makes its scores from the move's.
    """

    def __init__(
        self, risk: Risk, model: CutModel, best: Best, move: Point, tangent: tuple[float, float] | None
    ) -> None:
        self._risk = risk
        self._lam = model.lam
        self._best = best
        self._move = move
        self._cross = model.inner(best.point, move)
        self._bend = model.inner(move, move)
        self._tangent = tangent

    def minimise(self, accuracy: float, reach: float) -> Step:
        """The least of the points tried, within ``accuracy`` of the minimum unless 30 did not reach it.

        The search begins on [0, reach] and widens that, by more every time, until the minimum is inside. At 0 the risk
        is known, and any plane below it serves as its tangent, where one is given by its value and its rise along the
        move.
        """
        scores, move = self._best.point.scores, self._move.scores
        line = self._risk.line(scores, move, reach)
        value, rise = self._tangent or (self._best.risk, line(0.0)[1])
        start, left = self._step(0.0, (self._best.risk, rise)), self._step(0.0, (value, rise))
        right = self._step(reach, line(reach))
        lowest = min(start, right, key=lambda step: step.value)
        growth = 2.0
        for _ in range(30):
            if right.slope < 0:
                farther, growth = growth * right.t, 1.5 * growth
                line = self._risk.line(scores, move, farther)
                left, right = right, self._step(farther, line(farther))
                lowest = min(lowest, right, key=lambda step: step.value)
                continue
            t, floor = self._least_of_tangents(left, right)
            if lowest.value - floor <= accuracy or not left.t < t < right.t:
                break
            here = self._step(t, line(t))
            lowest = min(lowest, here, key=lambda step: step.value)
            if here.slope < 0:
                left = here
            else:
                right = here
        return lowest

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

    def _step(self, t: float, risk_and_rise: tuple[float, float]) -> Step:
        risk, rise = risk_and_rise
        slope = self._lam * (self._cross + t * self._bend) + rise
        return Step(t, risk, rise, self._parabola(t) + risk, slope)

    def _parabola(self, t: float) -> float:
        return self._lam / 2 * self._square(t)

    def _square(self, t: float) -> float:
        return self._best.point.square + 2 * t * self._cross + t * t * self._bend

    def _least_of_tangents(self, left: Step, right: Step) -> tuple[float, float]:
        """Where the parabola plus the higher of the two tangents to the risk is least, and its value there."""

        def least(step: Step) -> float:
            return -(step.rise / self._lam + self._cross) / self._bend if self._bend > 0 else step.t

        def tangent(step: Step, t: float) -> float:
            return step.risk + step.rise * (t - step.t)

        t = least(left)
        if right.rise > left.rise:
            meet = (tangent(left, 0.0) - tangent(right, 0.0)) / (right.rise - left.rise)
            if t > meet:
                t = max(meet, least(right))
        return t, self._parabola(t) + max(tangent(left, t), tangent(right, t))


def tangent(model: CutModel, planes: list[Plane], best: Best, move: Point) -> tuple[float, float] | None:
    """Of planes below the risk the one that is highest at a point: its value there and its rise along a move."""
    tangents = ((loss + model.inner(slope, best.point), model.inner(slope, move)) for loss, slope in planes)
    return max(tangents, default=None)


def towards(best: Best, target: Point) -> Point:
    """The move from a point to the target, whose vectors it takes over."""
    _kernels.axpy(-1.0, best.point.rep, target.rep)
    _kernels.axpy(-1.0, best.point.scores, target.scores)
    return Point(target.rep, target.scores)
