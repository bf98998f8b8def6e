"""The line search in score space: however many points it tries, X is not touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from metrimax import _kernels
from metrimax.protocols import Cut, Line, Oracle, Point, Vector
from metrimax.solvers.model import CutModel

LEAST = 1e-3
"""The least reach; shorter steps are found from there, by tangents."""

Plane: TypeAlias = tuple[float, Point]
"""The loss of a cut and its slope."""

Tangent: TypeAlias = tuple[float, float]
"""A value at the start of a line, and the rise along it."""


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
    (`_core/line_search.hpp`). Of the planes given, which are below the risk, the highest serves as its tangent at the
    start; or the tangent itself is given, where that is known, or it is evaluated.

    Vectors of length n are few: `advance` moves the point in place, and `beyond` makes its scores from the move's.
    """

    def __init__(
        self,
        risk: Risk,
        model: CutModel,
        best: Best,
        move: Point,
        planes: Sequence[Plane] = (),
        tangent: Tangent | None = None,
    ) -> None:
        self._risk = risk
        self._lam = model.lam
        self._best = best
        self._move = move
        vectors = [best.point.rep, move.rep, *(slope.rep for _, slope in planes)]
        (_, self._cross), (_, self._bend), *rises = model.inner_pairs(vectors, best.point, move)
        below = [(loss + there, rise) for (loss, _), (there, rise) in zip(planes, rises, strict=True)]
        self._tangent = max(below) if below else tangent
        self._ahead: tuple[float, Tangent] | None = None

    def minimise(self, accuracy: float, reach: float) -> Step:
        """The least of the points tried, within ``accuracy`` of the minimum unless 30 did not reach it or it is far.

        The search begins on [0, reach] and widens that, by more every time, until the minimum is inside. At 0 the risk
        is known.
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


def next_reach(reach: float, t: float) -> float:
    """Where the search after one that ended at t begins: at twice that, or half as far if no step was found.

    Not below `LEAST`: after many searches without a step one must still get to t = 1.
    """
    return min(1.0, max(2 * t or reach / 2, LEAST))
