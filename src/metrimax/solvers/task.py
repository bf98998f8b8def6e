"""What a solver is given, in one piece."""

from __future__ import annotations

from dataclasses import dataclass

from metrimax.protocols import Callback, Cuts, Design, Keep, Oracle, Steps


@dataclass(frozen=True)
class Task:
    """Minimise ``1/2 |w|^2 + weight R(w)`` to a gap of ``tol`` times the weight, from ``start``."""

    oracle: Oracle
    design: Design
    weight: float
    tol: float
    start: Cuts | None = None
    callback: Callback | None = None
    keep: Keep | None = None


class TaskSolver:
    """A solver (`protocols.Solver`) that gets its task in one piece."""

    def steps(
        self,
        oracle: Oracle,
        design: Design,
        weight: float,
        *,
        tol: float,
        start: Cuts | None = None,
        callback: Callback | None = None,
        keep: Keep | None = None,
    ) -> Steps:
        """Minimise ``1/2 |w|^2 + weight R(w)``."""
        return self.solve(Task(oracle, design, float(weight), tol, start, callback, keep))

    def solve(self, task: Task) -> Steps:
        """The run: a generator that does not hold the start, which is the run's own."""
        raise NotImplementedError
