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
    several: bool = False,
) -> Generator[Ask, Vector, FittedLabel]:
    """Train one label: its oracle, its solution, its threshold. What is not needed afterwards goes with the frame.

    One of ``several`` labels may be the same for all examples; its classifier is then that constant.
    """
    labels = np.ascontiguousarray(labels)
    used = labels if weight is None else labels[weight > 0]
    if several and (used.all() or not used.any()):
        return FittedLabel(_constant(design, bool(used.any())), 1.0, 0.0)
    oracle = measure.oracle(labels, weight)
    solution = yield from solver.steps(oracle, design, C * oracle.price * oracle.n, tol=tol, callback=callback)
    threshold = 0.0
    if measure.ranks:
        threshold = measure.threshold(labels, (yield Ask("scores", solution.w)), weight)
    return FittedLabel(replace(solution, cuts=None), oracle.price, threshold)


def _constant(design: Design, positive: bool) -> Solution:
    """The solution of a label that does not vary: the last weight, the intercept's, says which it is."""
    w = np.zeros(design.shape[1])
    w[-1:] = 1.0 if positive else -1.0
    return Solution(w, 0.0, 0.0, 0.0, 0, 0, 0, Status.ONE_CLASS, [], None)
