"""A point that moves along a line in score space: however many points are tried, X is not touched."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from metrimax import _kernels
from metrimax.protocols import Line, Point, Vector
from metrimax.solvers.model import CutModel

Tangent: TypeAlias = tuple[float, float]
"""A value at a point of a line, and the rise along it."""


class Risk(Protocol):
    """What is minimised along a line."""

    def line(self, scores: Vector, move: Vector) -> Line: ...


class Best:
    """A point with its risk and the objective ``lam/2 |w|^2 + R(w)``."""

    __slots__ = ("point", "risk", "value")

    def __init__(self, point: Point, risk: float, lam: float) -> None:
        self.point, self.risk = point, risk
        self.value = lam / 2 * point.square + risk


def descend(
    risk: Risk, model: CutModel, best: Best, move: Point, accuracy: float, tangent: Tangent
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
    tangent : Tangent
        The risk at the point, and its rise along the move.
    """
    rep, scores, square = best.point
    t, value, square = _kernels.descend(
        risk.line(scores, move.scores), model.lam, rep, scores, square, best.risk, move.rep, move.scores,
        model.images, tangent, accuracy,
    )  # fmt: skip
    return (Best(Point(rep, scores, square), value, model.lam) if t > 0 else best), t
