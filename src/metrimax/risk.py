"""Design x oracles: run solvers over one design, every product with X read once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

import numpy as np

from metrimax import _kernels
from metrimax.protocols import Ask, Design, Vector

Result = TypeVar("Result")

OPEN = 32
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
        while len(waiting) < OPEN and (following := next(pending, None)) is not None:
            resume(*following, None)  # it may end at once and leave its place to the next
        if not waiting:
            return [results[k] for k in range(len(results))]
        asked, waiting = waiting, {}
        for product, multiply in (("scores", design.matvec), ("pull", design.rmatvec)):
            group = [(k, steps, ask.vector) for k, (steps, ask) in asked.items() if ask.product == product]
            if len(group) == 1:
                k, steps, vector = group[0]
                resume(k, steps, multiply(vector) if vector.ndim == 1 else _products(multiply, vector))
            elif group:
                rows = _products(multiply, np.concatenate([np.atleast_2d(vector) for _, _, vector in group]))
                first = 0
                for k, steps, vector in group:
                    last = first + len(np.atleast_2d(vector))
                    resume(k, steps, rows[first] if vector.ndim == 1 else rows[first:last])
                    first = last


def _products(multiply: Callable[[Vector], Vector], rows: Vector) -> Vector:
    """The products with several vectors, given and returned as rows, in one pass."""
    products: Vector = _kernels.transpose(multiply(_kernels.transpose(np.ascontiguousarray(rows))))
    return products
