"""The training of one label, as a run for `metrimax.risk.run`: shared by the estimators and the command line."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from metrimax.measure.hinged import Hinged, place
from metrimax.measure.shifted import Shifted
from metrimax.protocols import Ask, Callback, Design, Labels, Measure, Solution, Solver, Status, Vector
from metrimax.solvers import along


class FittedLabel(NamedTuple):
    """What the training of one label leaves."""

    solution: Solution
    price: float
    threshold: float

    def restated(self, old: Status, new: Status) -> FittedLabel:
        """The same, with ``new`` as its status where it was ``old``."""
        if self.solution.status is not old:
            return self
        return self._replace(solution=replace(self.solution, status=new))


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
    offset: Vector | None = None,
    hinge: float = 0.0,
    placed: bool = False,
) -> Generator[Ask, Vector, FittedLabel]:
    """Train one label for one C; the parameters are those of `fit_path`."""
    fitted = yield from fit_path(
        measure,
        solver,
        design,
        labels,
        weight,
        Cs=[C],
        tol=tol,
        callback=callback,
        kind=kind,
        offset=offset,
        hinge=hinge,
        placed=placed,
    )
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
    offset: Vector | None = None,
    hinge: float = 0.0,
    placed: bool = False,
) -> Generator[Ask, Vector, list[FittedLabel]]:
    """Train one label for every C: its oracle, its solutions, their thresholds. The rest goes with the frame.

    Other than for two classes ("binary"), a label may be the same for all examples; its classifier is then a constant.
    With an ``offset`` (n,) what is trained is a correction of these scores; with ``hinge`` the plain hinge loss is
    added to the risk; with ``placed`` the threshold goes where the training scores have it best.
    """
    labels = np.ascontiguousarray(labels)
    used = labels if weight is None else labels[weight > 0]
    if kind != "binary" and (used.all() or not used.any()):
        # all scores are zero, and the threshold lies below them or above; a class never seen is never the highest
        threshold = -1.0 if used.all() else 1.0 if kind.startswith("multilabel") else np.inf
        return [FittedLabel(_constant(design), 1.0, threshold)] * len(Cs)
    oracle = measure.oracle(labels, weight)
    if hinge:
        oracle = Hinged(oracle, labels, weight, hinge)
    if offset is not None:
        oracle = Shifted(oracle, offset)
    weights = [float(C) * oracle.price * oracle.n for C in Cs]
    fitted = []
    for solution in (yield from along(solver, oracle, design, weights, tol=tol, callback=callback)):
        threshold = 0.0
        if measure.ranks or placed:
            scores = yield Ask("scores", solution.w)
            scores = scores if offset is None else scores + offset
            rule = measure.threshold if measure.ranks else partial(place, measure)
            threshold = rule(labels, scores, weight)
        fitted.append(FittedLabel(solution, oracle.price, threshold))
    return fitted


def _constant(design: Design) -> Solution:
    """The solution of a label that does not vary: the threshold says which it is."""
    return Solution(np.zeros(design.shape[1]), 0.0, 0.0, 0.0, 0, 0, 0, Status.ONE_CLASS, [], None)
