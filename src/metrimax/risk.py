"""Design x oracles: run solvers over one design, every product with X read once for all of them."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import islice
from typing import TypeVar

import numpy as np

from metrimax.protocols import Ask, Design, Vector

Result = TypeVar("Result")

OPEN = 64
"""Most runs open at a time: enough to read X once for many, few enough to bound the memory for their cuts."""


def run(design: Design, runs: Iterable[Generator[Ask, Vector, Result]]) -> list[Result]:
    """Drive solver runs to their end, in lockstep, and return their results in order.

    In each round, those that wait for scores are served by one product ``X W`` and those that wait for a pull-back
    by one ``X' S``, however many there are. A run that has finished makes room for the next one, which is
    not taken from ``runs`` before.
    """
    pending = enumerate(runs)
    results: dict[int, Result] = {}
    waiting: dict[int, tuple[Generator[Ask, Vector, Result], Ask]] = {}

    def resume(k: int, steps: Generator[Ask, Vector, Result], answer: Vector | None) -> None:
        try:
            waiting[k] = steps, steps.send(answer)  # type: ignore[arg-type]
        except StopIteration as stop:
            results[k] = stop.value

    while True:
        for k, steps in islice(pending, OPEN - len(waiting)):
            resume(k, steps, None)
        if not waiting:
            return [results[k] for k in range(len(results))]
        asked, waiting = waiting, {}
        for product, multiply in (("scores", design.matvec), ("pull", design.rmatvec)):
            group = [(k, steps, ask.vector) for k, (steps, ask) in asked.items() if ask.product == product]
            if len(group) == 1:
                k, steps, vector = group[0]
                resume(k, steps, multiply(vector))
            elif group:
                rows = np.ascontiguousarray(multiply(np.column_stack([vector for _, _, vector in group])).T)
                first = 0
                for k, steps, vector in group:
                    last = first + (1 if vector.ndim == 1 else vector.shape[1])
                    resume(k, steps, rows[first] if vector.ndim == 1 else rows[first:last].T)
                    first = last
