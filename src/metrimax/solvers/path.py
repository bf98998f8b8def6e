"""A path over C: every solution starts from the cuts of those before it, which hold for every C."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from metrimax.protocols import Ask, Callback, Cuts, Design, Oracle, Solution, Solver, Vector
from metrimax.solvers.auto import Auto
from metrimax.solvers.dual_cd import DualCD


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
    if isinstance(solver, Auto) and len(weights) > 1:
        solver = solver.for_path(oracle, design)
    if isinstance(solver, DualCD):  # its warm start is the multipliers
        return (yield from solver.along(oracle, design, weights, tol=tol, start=start, callback=callback))
    solutions: dict[int, Solution] = {}
    cuts = [start]  # popped, so that only the solver holds them
    del start
    for k in sorted(range(len(weights)), key=lambda k: float(weights[k])):
        weight = float(weights[k])
        solution = yield from solver.steps(oracle, design, weight, tol=tol, start=cuts.pop(), callback=callback)
        solutions[k] = replace(solution, cuts=None)
        cuts.append(None if solution.cuts is None else replace(solution.cuts, given=True))
        del solution
    return [solutions[k] for k in range(len(weights))]
