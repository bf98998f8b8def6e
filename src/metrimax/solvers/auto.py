"""The choice among the solvers, by what was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from metrimax.protocols import Callback, Cuts, Design, Oracle, Record, Solution, Solver, Status, Steps, offer
from metrimax.solvers.bundle import Bundle
from metrimax.solvers.dual_cd import DualCD
from metrimax.solvers.hybrid import MANY, Hybrid

EASY = 60
"""Iterations that the plain bundle method is given before the hybrid takes over with its cuts."""


@dataclass(frozen=True)
class Auto:
    """The solver that took the fewest seconds, problem by problem (docs/results/solvers.md).

    Few features go to the bundle method, whose iterations cost least. On many features sums of hinges (error, cost,
    balanced error) go to dual coordinate descent, and all else begins with the bundle method; what is not solved after
    `EASY` iterations is taken over by the hybrid, which needs fewer, with all cuts found so far.
    """

    max_iter: int = 10_000

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
        if first.status is not Status.MAX_ITER or self.max_iter <= EASY:
            return first

        later = None if callback is None else _Later(first, callback)
        rest = Hybrid(max_iter=self.max_iter - EASY)
        second = yield from rest.steps(oracle, design, weight, tol=tol, start=first.cuts, callback=later)
        return replace(
            second,
            bound=max(first.bound, second.bound),
            gap=(second.objective - max(first.bound, second.bound)) / weight,
            n_iter=first.n_iter + second.n_iter,
            n_passes=first.n_passes + second.n_passes,
            history=first.history + [_after(first, record) for record in second.history],
        )

    def choose(self, oracle: Oracle, design: Design) -> Solver | None:
        """The one solver for this problem; None for the bundle method followed by the hybrid."""
        if design.shape[1] <= MANY:
            return Bundle(self.max_iter)
        rows = hasattr(getattr(design, "design", design), "dual_epochs")  # of what the intercept was added to
        if rows and hasattr(oracle, "hinges") and cast(Any, oracle).hinges() is not None:
            return DualCD(self.max_iter)
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
        bound=max(record.bound, last.bound),
        seconds=record.seconds + last.seconds,
    )
