"""The choice among the solvers, by what was measured (docs/results/solvers.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from metrimax import _kernels
from metrimax.protocols import Cuts, Design, Oracle, Solver, Status, Steps, made, required
from metrimax.solvers.bundle import Bundle
from metrimax.solvers.dual_cd import DualCD
from metrimax.solvers.run_state import Task, TaskSolver
from metrimax.solvers.starts import after_epochs, plane_cut

# What each is worth: passes to a gap of 1e-3, in the geometric mean over cells of the benchmark, relative to this rule
# (`python -m benchmarks.ablation` and `python -m benchmarks.constants`).

LINGER, LINGER_AT_K = 8, 96
"""Iterations at w = 0 after which `leave_zero` is called; where every labelling has k positives, most runs get away by
themselves. Without it, up to 100 times as many (results/at_zero.md). With 3: 0.79 there, 0.95 on 11 sets of KEEL, but
up to 1.7 where the classes can be separated. At k with 8: 1.04 there, and 1.17 on KEEL.
"""

EASY = 30
"""Where coordinate descent on a sum of hinges seems to need more passes than this, the bundle method takes over. With
10 and 100: 1.05 and 1.02. Without the descent: 1.3 for the error rate on 41 to 1,000 features.
"""

MANY, TEXT, LOOSE = 200, 1000, 10.0
"""Data count as nearly separable if they have more than `MANY` features and C |x|^2, the score that an example can give
itself, is more than `LOOSE` times the margin. Then a few epochs of coordinate descent are a good start. Sums of hinges
need more than `TEXT` features: on fewer the descent goes on to the end. Without: 1.6 for F1 on text and 1.5 for the
error rate. With `MANY` of 50 and 800: 1.00; with `TEXT` of 250 and 4000: 1.03 and 1.00; with `LOOSE` of 2 and 50: 0.98
and 1.04.
"""


@dataclass(frozen=True)
class Auto(TaskSolver):
    """The bundle method with the start that suits measure and data.

    * Where the data can nearly be separated: a few epochs of coordinate descent, on the risk if it is a sum of hinges
      and on the mistakes if not (they count as passes and not as iterations).
    * Other sums of hinges (error, cost, balanced error): coordinate descent to the end, unless it seems to take long.
      Then the bundle method takes over, from w = 0, with the plane that the multipliers make up as its first cut.
    * All others begin at w = 0. Coordinate descent helps out where a run does not get away from there.

    Iterations are plain for labels side by side, and on over `MANY` features for base losses and mistakes (F1, PRBEP).

    Parameters
    ----------
    max_iter : int
        Most iterations.
    labels : int
        How many labels are solved side by side.
    """

    max_iter: int = 10_000
    labels: int = 1

    def solve(self, task: Task) -> Steps:
        oracle, design, start = task.oracle, task.design, task.start
        if start is None and self.labels == 1 and _nearly_separable(task):
            return self._after_epochs(task)
        if (start is None or len(start.losses) == 0) and _has_hinges(oracle, design):
            return self._after_descent(task)
        return self._bundle(oracle, design).solve(task)

    def for_path(self, oracle: Oracle, design: Design) -> DualCD | Bundle:
        """The solver for a path over C. Each run starts near its solution, so the cheapest iterations are enough."""
        if design.shape[1] > TEXT and _has_hinges(oracle, design):
            return DualCD(self.max_iter)
        return replace(self._bundle(oracle, design), plain=math.inf)

    def _bundle(self, oracle: Oracle, design: Design) -> Bundle:
        can, in_order = oracle.can, design.rows is not None and design.rows.in_order  # or X would be copied
        linger = LINGER if can.at_k is None else LINGER_AT_K
        patience = linger if in_order and can.kink is not None else math.inf
        plain = design.shape[1] > MANY and (can.base is not None or (can.mistakes is not None and can.hinges is None))
        plain = plain or self.labels > 1  # on text 0.96 of the seconds for F1, 0.92 for PRBEP, of those with directions
        return Bundle(self.max_iter, math.inf if plain else 1, patience)

    def _after_epochs(self, task: Task) -> Steps:
        return (yield from self._from(task, (yield from after_epochs(task))))

    def _from(self, task: Task, start: Cuts) -> Steps:
        """From a plane at w = 0, or from a point beside it."""
        moved = start.best is not None and start.best[0].square > 0
        solver = self._bundle(task.oracle, task.design)
        return (replace(solver, plain=0) if moved else solver).solve(replace(task, start=start))

    def _after_descent(self, task: Task) -> Steps:
        first = yield from DualCD(self.max_iter, EASY).solve(task)
        if first.status is not Status.MAX_ITER or first.n_passes >= self.max_iter:
            return first
        hinges = required(made(task.oracle.can.hinges), "coordinate descent needs a sum of hinges")
        coefficients = required(first.dual_coef, "coordinate descent gives multipliers")
        loss = _kernels.dot(hinges.margin, hinges.sign * coefficients)
        plane = yield from plane_cut(task.design, task.weight, first.w, coefficients, loss, first.n_passes)
        held, history = (first.w, first.objective / task.weight), tuple(first.history)
        plane = replace(plane, history=history, seconds=history[-1].seconds, held=held)
        rest = replace(self, max_iter=self.max_iter - math.ceil(first.n_passes))
        return (yield from rest._from(task, plane))


def _has_hinges(oracle: Oracle, design: Design) -> bool:
    """Whether the risk is a sum over examples and the rows of X are at hand."""
    return oracle.can.hinges is not None and design.rows is not None


def _nearly_separable(task: Task) -> bool:
    """Whether ``C |x|^2``, in the mean, is far above the margin on many features, and hinges or mistakes are known."""
    can, rows = task.oracle.can, task.design.rows
    features = TEXT if can.hinges is not None else MANY if can.mistakes is not None else math.inf
    if rows is None or not rows.in_order or can.base is not None or task.design.shape[1] <= features:
        return False
    return task.weight / (task.oracle.price * task.design.shape[0]) * rows.mean_square() > LOOSE


def side_by_side(solver: Solver, labels: int) -> Solver:
    """The solver for a number of labels that are trained at once; only `Auto` depends on it."""
    return replace(solver, labels=labels) if isinstance(solver, Auto) else solver
