"""A path over C: every solution starts from the cuts of those before it, which hold for every C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from metrimax import _kernels
from metrimax._validation import check_weights
from metrimax.protocols import Asking, Callback, Cuts, Design, Oracle, Point, Solution, Solver, Vector
from metrimax.solvers.auto import Auto
from metrimax.solvers.cut_model import kept_by_weights


def along(
    solver: Solver,
    oracle: Oracle,
    design: Design,
    weights: Sequence[float] | Vector,
    *,
    tol: float,
    start: Cuts | None = None,
    callback: Callback | None = None,
) -> Asking[list[Solution]]:
    """Solutions for every weight C kappa n of R, in the order given; the least is solved first, from ``start``."""
    check_weights(weights)
    if isinstance(solver, Auto) and len(weights) > 1:
        solver = solver.for_path(oracle, design)
    solutions: dict[int, Solution] = {}
    before: Point | None = None
    for k in sorted(range(len(weights)), key=lambda k: float(weights[k])):
        weight = float(weights[k])
        if start is not None and start.best is not None:
            last, risk = start.best
            if before is not None:
                start = replace(start, best=further(oracle, design, 1 / weight, before, last, risk, tol))
            before = last
        steps = solver.steps(oracle, design, weight, tol=tol, start=start, callback=callback)
        start = None  # the run has taken it over: views would keep alive what it has outgrown
        solutions[k], start = (yield from steps).parted()
    return [solutions[k] for k in range(len(weights))]


def further(
    oracle: Oracle, design: Design, lam: float, before: Point, last: Point, risk: float, tol: float
) -> tuple[Point, float]:
    """The point on the line through the last two solutions with the least objective at the next C."""
    rep, scores = last.rep - before.rep, last.scores - before.scores
    dual = rep if kept_by_weights(design) else scores
    cross, bend = _kernels.dot(last.rep, dual), _kernels.dot(rep, dual)
    parabola = lam, last.square, cross, bend
    t, risk = _kernels.line_search(oracle.line(last.scores, scores), parabola, risk, None, tol, 1.0)
    square = last.square + 2 * t * cross + t * t * bend
    return Point(last.rep + t * rep, last.scores + t * scores, square), risk
