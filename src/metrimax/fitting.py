"""Training without scikit-learn: one solution per column of labels, over one design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metrimax.protocols import Callback, Cuts, Design, Labels, Measure, Solution, Solver, Status, Steps, Vector
from metrimax.risk import run


@dataclass(frozen=True)
class Fit:
    """What training gives: per label a solution, the threshold frozen on the training scores, and the price kappa."""

    solutions: list[Solution]
    thresholds: Vector
    prices: Vector

    @property
    def W(self) -> Vector:
        """The weights, one column per label."""
        return np.column_stack([solution.w for solution in self.solutions])


def fit_labels(
    design: Design,
    labels: Labels,
    measure: Measure,
    solver: Solver,
    *,
    C: float,
    tol: float,
    start: Sequence[Cuts | None] | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Train one classifier per column of ``labels`` (n, L), every product with X read once for all of them.

    A label that is the same for all examples is not trained: its classifier is that constant.
    """
    L = labels.shape[1]
    columns = [np.ascontiguousarray(labels[:, k]) for k in range(L)]
    oracles = [None if column.all() or not column.any() else measure.oracle(column) for column in columns]
    runs: list[Steps] = []
    for k, oracle in enumerate(oracles):
        if oracle is None:
            runs.append(_constant(design, columns[k]))
        else:
            cuts = None if start is None else start[k]
            weight = C * oracle.price * oracle.n
            runs.append(solver.steps(oracle, design, weight, tol=tol, start=cuts, callback=callback))
    solutions = run(design, runs)
    thresholds = np.zeros(L)
    for k, oracle in enumerate(oracles):
        if oracle is not None:
            thresholds[k] = measure.threshold(columns[k], design.matvec(solutions[k].w))
    return Fit(solutions, thresholds, np.array([1.0 if oracle is None else oracle.price for oracle in oracles]))


def _constant(design: Design, labels: Labels) -> Steps:
    """The run of a label that does not vary: no product is asked for, and the last weight says which it is."""
    w = np.zeros(design.shape[1])
    w[-1:] = 1.0 if labels.any() else -1.0
    nothing = Cuts(np.empty(0), np.empty((0, design.shape[1])))
    return Solution(w, 0.0, 0.0, 0.0, 0, 0, 0, Status.ONE_CLASS, [], nothing)
    yield  # a generator that never waits
