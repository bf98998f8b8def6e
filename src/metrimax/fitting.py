"""The training of one label, as a run for `metrimax.risk.run`: shared by the estimators and the command line."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from metrimax.protocols import Ask, Callback, Design, Labels, Measure, Solution, Solver, Status, Vector


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
    """Train one label: its oracle, its solution, its threshold. What is not needed afterwards goes with the frame.

    Other than for two classes ("binary"), a label may be the same for all examples; its classifier is then a constant.
    """
    labels = np.ascontiguousarray(labels)
    used = labels if weight is None else labels[weight > 0]
    if kind != "binary" and (used.all() or not used.any()):
        # all scores are zero, and the threshold lies below them or above; a class never seen is never the highest
        threshold = -1.0 if used.all() else 1.0 if kind.startswith("multilabel") else np.inf
        return FittedLabel(_constant(design), 1.0, threshold)
    oracle = measure.oracle(labels, weight)
    solution = yield from solver.steps(oracle, design, C * oracle.price * oracle.n, tol=tol, callback=callback)
    threshold = 0.0
    if measure.ranks:
        threshold = measure.threshold(labels, (yield Ask("scores", solution.w)), weight)
    return FittedLabel(replace(solution, cuts=None), oracle.price, threshold)


def _constant(design: Design) -> Solution:
    """The solution of a label that does not vary: the threshold says which it is."""
    return Solution(np.zeros(design.shape[1]), 0.0, 0.0, 0.0, 0, 0, 0, Status.ONE_CLASS, [], None)
