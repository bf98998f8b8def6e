"""The choice among the solvers, by what was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from metrimax.protocols import Callback, Cuts, Design, Oracle, Record, Solution, Solver, Status, Steps, offer
from metrimax.solvers.bundle import Bundle
from metrimax.solvers.dual_cd import DualCD
from metrimax.solvers.hybrid import MANY, Hybrid

EASY = 40
"""Iterations that the plain bundle method is given before the hybrid takes over with its cuts."""


@dataclass(frozen=True)
class Auto:
    """The choice by passes and seconds (docs/results/solvers.md).

    The hybrid needs the fewest passes, the bundle method does least besides. So the hybrid is taken where a pass costs
    most: on few features, which go with many examples, and where a cut concerns most of the examples, as for ROC area.
    Elsewhere, on text, the bundle method begins; what is not solved after `EASY` iterations is taken over by the
    hybrid, with all cuts but from w = 0, since quasi-Newton steps do not get away from a kink.
    Sums of hinges (error, cost, balanced error) on many features go to dual coordinate descent, and labels side by
    side, which share every pass, to the bundle method.

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
        if chosen is not None:
            return (yield from chosen.steps(oracle, design, weight, tol=tol, start=start, callback=callback))
        easy = Bundle(max_iter=min(EASY, self.max_iter))
        first = yield from easy.steps(oracle, design, weight, tol=tol, start=start, callback=callback)
        if first.status is not Status.MAX_ITER or self.max_iter <= EASY or first.cuts is None:
            return first
        later = None if callback is None else _Later(first, callback)
        rest = Hybrid(max_iter=self.max_iter - EASY)
        from_zero = replace(first.cuts, best=None)
        second = yield from rest.steps(oracle, design, weight, tol=tol, start=from_zero, callback=later)
        best = min(first, second, key=lambda solution: solution.objective)
        bound = max(first.bound, second.bound)
        return replace(
            second,
            w=best.w,
            objective=best.objective,
            bound=bound,
            gap=(best.objective - bound) / weight,
            n_iter=first.n_iter + second.n_iter,
            n_passes=first.n_passes + second.n_passes,
            history=first.history + [_after(first, record) for record in second.history],
        )

    def choose(self, oracle: Oracle, design: Design) -> Solver | None:
        """The one solver for this problem; None for the bundle method followed by the hybrid."""
        n, p = design.shape
        rows = hasattr(getattr(design, "design", design), "dual_epochs")  # of what the intercept was added to
        if p > MANY and rows and hasattr(oracle, "hinges") and cast(Any, oracle).hinges() is not None:
            return DualCD(self.max_iter)
        if self.labels > 1:
            return Bundle(self.max_iter)
        if p <= MANY or 2 * np.count_nonzero(oracle(np.zeros(n)).slope) > n:
            return Hybrid(self.max_iter)
        return None


class _Later:
    """The callback of the second run: counts on from the first."""

    def __init__(self, first: Solution, callback: Callback) -> None:
        self._first, self._callback = first, callback

    def __call__(self, record: Record) -> Any:
        return self._callback(_after(self._first, record))

    def keep(self, state: Callable[[], Cuts]) -> None:
        offer(self._callback, state)


def _after(first: Solution, record: Record) -> Record:
    """A record of the second run, counted on from the first."""
    last = first.history[-1]
    return record._replace(
        iteration=record.iteration + last.iteration,
        n_passes=record.n_passes + first.n_passes,
        objective=min(record.objective, last.objective),
        bound=max(record.bound, last.bound),
        seconds=record.seconds + last.seconds,
    )


def side_by_side(solver: Solver, labels: int) -> Solver:
    """The solver for so many labels at once: only the choice depends on their number."""
    return replace(solver, labels=labels) if isinstance(solver, Auto) else solver
