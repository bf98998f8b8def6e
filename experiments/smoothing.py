"""Zhang, Saha & Vishwanathan (2011), Figures 1-4: smoothed L-BFGS against cutting planes, for PRBEP and ROC area.

    python -m experiments smoothing --data DIR [--out DIR] [--quick] [--jobs N] [--page]

Objective (Figures 1 and 2) and test performance (Figures 3 and 4) against CPU time, for cutting planes, L-BFGS at
mu = 1, 100 and 1000 times epsilon/D with epsilon = 0.001, L-BFGS whose mu follows the gap, and the default solver. C is
chosen on a held-out third of the training part. The page is written by `experiments.smoothing_page`.

The library takes mu as the bound of the smoothing error, which for ROC area is the paper's mu times D, and the smoothed
risk is the paper's. For PRBEP the same coefficient of the quadratic term, 2 epsilon / n, has the smaller bound
epsilon n+ n- / n^2 around the centre of the labellings (`scale`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

from benchmarks.solvers import useful
from experiments.data import collection, load
from experiments.harness import Options, Program, Row, Table, Task, select
from experiments.smoothing_page import EPSILON, MEASURES, METHODS, SETS, page
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.protocols import Cuts, Record
from metrimax.solvers import LBFGS, Auto, CuttingPlane
from metrimax.training.lockstep import run

FOR_CHOICE = 60_000
"""Of more training examples than this, a random part of this size chooses C."""
SECONDS = 60.0
"""A run is ended after so many CPU seconds."""
GROWTH = 1.15
"""The number of the iteration grows by this ratio from point to point of a curve."""


class Problem(NamedTuple):
    """A data set and a measure: what the solvers see, how weights are judged, and the C chosen."""

    design: Any
    oracle: Any
    scale: float  #: of mu, from the paper's bound of the smoothing error to the library's
    C: float
    score: Callable[[Any], float]


def tasks(options: Options) -> Iterator[Task]:
    for data, measures in {"digits:8": ("prbep",)}.items() if options.quick else dict.fromkeys(SETS, MEASURES).items():
        for measure in measures:
            key = {"data": data, "protocol": "hold-out", "seed": 0, "measure": measure}
            for method in METHODS:
                yield Task(
                    key | {"method": method},
                    partial(trace, method, 0.2 if options.quick else SECONDS),
                    prepare=partial(problem, data, measure, options),
                )


@lru_cache(maxsize=1)
def problem(data: str, measure: str, options: Options) -> Problem:
    if options.quick:
        X, Y, X_test, Y_test = collection("digits")
        y, y_test = Y[:, 8], Y_test[:, 8]
    else:
        X, y, X_test, y_test = load(data, options.data)
    judge = get_measure(measure)
    known = [row["C"] for row in select(Table(options.out / "smoothing.csv").rows, data=data, measure=measure)]
    if known:  # all methods solve the same problem, whenever they were run
        C = float(known[0])
    else:
        C = useful(*((X, y) if len(y) <= FOR_CHOICE else load(data, options.data, FOR_CHOICE)[:2]), judge)
    design, test = (as_design(rows, intercept_scaling=1.0, n_threads=1) for rows in (X, X_test))
    scale = y.mean() * (1 - y.mean()) if measure == "prbep" else 1.0
    return Problem(design, judge.oracle(y), scale, C, lambda w: judge.score(y_test, test.matvec(w)))


class Curve:
    """A callback that writes down the best point so far; what that takes is not counted."""

    def __init__(self, problem: Problem, most: float) -> None:
        self.points: list[Row] = []
        self._problem, self._most = problem, most
        self._next, self._began = 1.0, time.process_time()

    def keep(self, record: Record, state: Callable[[], Cuts]) -> None:
        self._state = state

    def __call__(self, record: Record) -> bool:
        now = time.process_time()
        if record.iteration >= self._next:
            self._next = GROWTH * record.iteration
            rep, design = self._state().best[0].rep, self._problem.design
            w = rep if len(rep) == design.shape[1] else design.rmatvec(rep)
            self.add(record.iteration, record.n_passes, now, record.objective, record.bound, w)
            self._began += time.process_time() - now
        return now - self._began > self._most

    def add(self, iteration: int, passes: int, now: float, objective: float, bound: float, w: Any) -> None:
        spent = {"iteration": iteration, "passes": passes, "seconds": now - self._began, "C": self._problem.C}
        self.points.append(spent | {"objective": objective, "bound": bound, "test": self._problem.score(w)})


def trace(method: str, most: float, problem: Problem) -> list[Row]:
    """Points of a run to a gap of a tenth of epsilon; the paper's L-BFGS remembers 6 steps."""
    factor = METHODS[method].factor
    solvers = {"cutting plane": CuttingPlane(), "L-BFGS": LBFGS(), "auto": Auto()}
    solver = solvers.get(method) or LBFGS(mu=factor * EPSILON * problem.scale, memory=6)
    oracle, design = problem.oracle, problem.design
    weight = problem.C * oracle.price * oracle.n
    curve = Curve(problem, most)
    [end] = run(design, [solver.steps(oracle, design, weight, tol=0.1 * EPSILON, callback=curve, keep=curve.keep)])
    curve.add(end.n_iter, end.n_passes, time.process_time(), end.objective / weight, end.bound / weight, end.w)
    return curve.points


main = Program("smoothing", tasks, page).main

if __name__ == "__main__":
    main()
