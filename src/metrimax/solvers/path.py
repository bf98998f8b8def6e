"""A path over C: every solution starts from the cuts of those before it, which hold for every C."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from metrimax import _kernels
from metrimax.protocols import Ask, Callback, Cuts, Design, Oracle, Point, Solution, Solver, Vector
from metrimax.solvers.auto import Auto
from metrimax.solvers.dual_cd import DualCD
from metrimax.solvers.model import kept_by_weights

LARGEST = 1e300
"""The weight of the risk is at most this, and at least its inverse: objectives beyond are no finite numbers."""


def check_weights(weights: Sequence[float] | Vector) -> None:
    """Raise if C, by the weight C kappa n that it gives to the risk, is beyond what can be computed with."""
    for weight in weights:
        if not 1 / LARGEST <= weight <= LARGEST:
            raise ValueError(
                f"expected C such that its product with the size of the sample, C kappa n, is from {1 / LARGEST:g} to "
                f"{LARGEST:g}, got {float(weight):g}: {'lower' if weight > 1 else 'raise'} C"
            )


def along(
    solver: Solver,
    oracle: Oracle,
    design: Design,
    weights: Sequence[float] | Vector,
    *,
    tol: float,
    start: Cuts | None = None,
    callback: Callback | None = None,
) -> Generator[Ask, Vector, list[Solution]]:
    """Solutions for every weight (C kappa n) of R, in the order given; solved from the least to the greatest.

    The first one begins with the cuts of ``start``, if there are any.
    """
    check_weights(weights)
    if isinstance(solver, Auto) and len(weights) > 1:
        solver = solver.for_path(oracle, design)
    if isinstance(solver, DualCD):  # its warm start is the multipliers
        return (yield from solver.along(oracle, design, weights, tol=tol, start=start, callback=callback))
    solutions: dict[int, Solution] = {}
    cuts = [start]  # popped, so that only the solver holds them
    del start
    before: Point | None = None
    for k in sorted(range(len(weights)), key=lambda k: float(weights[k])):
        weight = float(weights[k])
        if cuts[0] is not None and cuts[0].best is not None:
            last, risk = cuts[0].best
            if before is not None:
                cuts = [replace(cuts[0], best=further(oracle, design, 1 / weight, before, last, risk, tol))]
            before = last
            del last
        solution = yield from solver.steps(oracle, design, weight, tol=tol, start=cuts.pop(), callback=callback)
        solutions[k] = replace(solution, cuts=None)
        cuts.append(None if solution.cuts is None else replace(solution.cuts, given=True))
        del solution
    return [solutions[k] for k in range(len(weights))]


def further(
    oracle: Oracle, design: Design, lam: float, before: Point, last: Point, risk: float, tol: float
) -> tuple[Point, float]:
    """Where the next C has its least objective on the line through the last two solutions; only scores move."""
    rep, scores = last.rep - before.rep, last.scores - before.scores
    dual = rep if kept_by_weights(design) else scores
    cross, bend = _kernels.dot(last.rep, dual), _kernels.dot(rep, dual)
    parabola = lam, last.square, cross, bend
    t, risk = _kernels.line_search(oracle.line(last.scores, scores), parabola, risk, None, tol, 1.0)
    square = last.square + 2 * t * cross + t * t * bend
    return Point(last.rep + t * rep, last.scores + t * scores, square), risk
