"""The line search in score space: however many points it tries, X is not touched."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from metrimax import _kernels
from metrimax.protocols import Line, Point, Vector
from metrimax.solvers.model import CutModel

LEAST = 1e-3
"""The least reach; shorter steps are found from there, by tangents."""

Tangent: TypeAlias = tuple[float, float]
"""A value at a point of a line, and the rise along it."""


class Risk(Protocol):
    """What is minimised along a line: an oracle, or a smoothed risk."""

    def line(self, scores: Vector, move: Vector) -> Line: ...


class Planes(NamedTuple):
    """Cuts, which are below the risk: their losses, and the representations of their slopes."""

    losses: list[float]
    slopes: list[Vector]


NONE = Planes([], [])


class Best:
    """A point with its risk and the objective ``lam/2 |w|^2 + R(w)``."""

    __slots__ = ("point", "risk", "value")

    def __init__(self, point: Point, risk: float, lam: float) -> None:
        self.point, self.risk = point, risk
        self.value = lam / 2 * point.square + risk


def descend(
    risk: Risk,
    model: CutModel,
    best: Best,
    move: Point,
    accuracy: float,
    reach: float,
    *,
    planes: Planes = NONE,
    tangent: Tangent | None = None,
    at_reach: Tangent | None = None,
) -> tuple[Best, float]:
    """Minimise from a point along a move, and go there; returns where that is and how far along the move.

    ``phi(t) = lam/2 |w + t d|^2 + R(s + t Xd)`` is a parabola plus a convex function of which every evaluation gives
    value and slope, so two tangents bracket the minimum and bound it from below (`_core/line_search.hpp`). The step is
    the least of the points tried, within ``accuracy`` of the minimum unless 30 did not reach it or it is far.

    Parameters
    ----------
    risk : Risk
        R; at the point it is known.
    model : CutModel
        Whose vectors the point and the move are.
    best : Best
        Where to begin. Its vectors are moved in place, where there is a step: vectors of length n are few.
    move : Point
        The move, with its scores.
    accuracy : float
        Of the least value.
    reach : float
        The search begins on [0, reach] and widens that, by more every time, until the minimum is inside.
    planes : Planes
        The highest of them serves as the tangent at the start.
    tangent : Tangent or None
        That tangent itself, where it is known. With neither it is evaluated.
    at_reach : Tangent or None
        The risk at ``reach`` and its rise, where they are known.
    """
    rep, scores, square = best.point
    t, value, square = _kernels.descend(
        risk.line(scores, move.scores), model.lam, rep, scores, square, best.risk, move.rep, move.scores,
        model.images, planes.losses, planes.slopes, tangent, accuracy, reach, at_reach,
    )  # fmt: skip
    return (Best(Point(rep, scores, square), value, model.lam) if t > 0 else best), t


def next_reach(reach: float, t: float) -> float:
    """Where the search after one that ended at t begins: at twice that, or half as far if no step was found.

    Not below `LEAST`: after many searches without a step one must still get to t = 1.
    """
    return min(1.0, max(2 * t or reach / 2, LEAST))
