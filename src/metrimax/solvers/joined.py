"""Two runs as one: the second goes on where the first ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from metrimax.protocols import Callback, Cuts, Record, Solution, offer


class Later:
    """The callback of the second run: counts on from the first."""

    def __init__(self, first: Solution, callback: Callback) -> None:
        self._first, self._callback = first, callback

    def __call__(self, record: Record) -> Any:
        return self._callback(_after(self._first, record))

    def keep(self, state: Callable[[], Cuts]) -> None:
        offer(self._callback, state)


def later(first: Solution, callback: Callback | None) -> Callback | None:
    """The callback for a run after the first."""
    return None if callback is None else Later(first, callback)


def joined(first: Solution, second: Solution, weight: float) -> Solution:
    """Both runs as one, with the better point and the better bound."""
    best = min(second, first, key=lambda solution: solution.objective)
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
