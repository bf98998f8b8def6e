"""The choice among the solvers, by what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from metrimax.protocols import Callback, Cuts, Design, Oracle, Solver, Steps
from metrimax.solvers.bundle import Bundle
from metrimax.solvers.dual_cd import DualCD
from metrimax.solvers.hybrid import MANY, Hybrid


@dataclass(frozen=True)
class Auto:
    """The solver with the fewest passes over the data, where a pass is what costs (docs/results/solvers.md).

    That is the hybrid, but for two cases. On many features sums of hinges (error, cost, balanced error) go to dual
    coordinate descent. Of several labels side by side, which share every pass, none but the work per label counts,
    and the plain bundle method does least of it.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    labels : int
        How many labels are solved side by side.
    """

    max_iter: int = 10_000
    labels: int = 1

    def steps(
        self,
        oracle: Oracle,
        design: Design,
        weight: float,
        *,
        tol: float,
        start: Cuts | None = None,
        callback: Callback | None = None,
    ) -> Steps:
        """Minimise ``1/2 |w|^2 + weight R(w)`` with the solver chosen."""
        chosen = self.choose(oracle, design)
        return (yield from chosen.steps(oracle, design, weight, tol=tol, start=start, callback=callback))

    def choose(self, oracle: Oracle, design: Design) -> Solver:
        """The solver for this problem."""
        rows = hasattr(getattr(design, "design", design), "dual_epochs")  # of what the intercept was added to
        hinges = rows and hasattr(oracle, "hinges") and cast(Any, oracle).hinges() is not None
        if design.shape[1] > MANY and hinges:
            return DualCD(self.max_iter)
        return Hybrid(self.max_iter) if self.labels == 1 else Bundle(self.max_iter)
