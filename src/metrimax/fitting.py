"""The training of one label, as a run for `metrimax.risk.run`: shared by the estimators and the command line."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from metrimax.protocols import Ask, Callback, Design, Labels, Measure, Solution, Solver, Status, Vector
from metrimax.solvers import along


class FittedLabel(NamedTuple):
    """What the training of one label leaves."""

    solution: Solution
    price: float
    threshold: float


def fit_label(
    measure: Measure,
    solver: Solver,
    design: Design,
    labels: Labels,
    weight: Vector | None = None,
    *,
    C: float,
    tol: float,
    callback: Callback | None = None,
    kind: str = "binary",
) -> Generator[Ask, Vector, FittedLabel]:
    """Train one label for one C; the parameters are those of `fit_path`."""
    fitted = yield from fit_path(measure, solver, design, labels, weight, Cs=[C], tol=tol, callback=callback, kind=kind)
    return fitted[0]


def fit_path(
    measure: Measure,
    solver: Solver,
    design: Design,
    labels: Labels,
    weight: Vector | None = None,
    *,
    Cs: Sequence[float] | Vector,
    tol: float,
    callback: Callback | None = None,
    kind: str = "binary",
) -> Generator[Ask, Vector, list[FittedLabel]]:
    """Train one label for every C: its oracle, its solutions, their thresholds. The rest goes with the frame.

    Other than for two classes ("binary"), a label may be the same for all examples; its classifier is then a constant.
    """
    labels = np.ascontiguousarray(labels)
    used = labels if weight is None else labels[weight > 0]
    if kind != "binary" and (used.all() or not used.any()):
        # all scores are zero, and the threshold lies below them or above; a class never seen is never the highest
        threshold = -1.0 if used.all() else 1.0 if kind.startswith("multilabel") else np.inf
        return [FittedLabel(_constant(design), 1.0, threshold)] * len(Cs)
    oracle = measure.oracle(labels, weight)
    weights = [float(C) * oracle.price * oracle.n for C in Cs]
    fitted = []
    for solution in (yield from along(solver, oracle, design, weights, tol=tol, callback=callback)):
        threshold = 0.0
        if measure.ranks:
            threshold = measure.threshold(labels, (yield Ask("scores", solution.w)), weight)
        fitted.append(FittedLabel(solution, oracle.price, threshold))
    return fitted


def _constant(design: Design) -> Solution:
    """The solution of a label that does not vary: the threshold says which it is."""
    return Solution(np.zeros(design.shape[1]), 0.0, 0.0, 0.0, 0, 0, 0, Status.ONE_CLASS, [], None)
