"""Run the solvers of all labels over one design, so that each product reads X once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

import numpy as np

from metrimax import _kernels
from metrimax.protocols import Ask, Asking, Design, Product, Result, Vector

Multiply = Callable[[Product, list[Vector]], list[Vector]]
"""Several products of X in one pass."""

OPEN = 32
"""Most runs open at a time: enough to read X once for many."""
TOGETHER = 8
"""Vectors that a product takes side by side: runs are open by so many, or by a multiple."""
LENGTH = 2**17
"""Numbers in one cut of each open run, about: with long vectors fewer runs are open, down to `TOGETHER`."""


def run(design: Design, runs: Iterable[Asking[Result]]) -> list[Result]:
    """Drive solver runs to their end, in lockstep, and return their results in order.

    In each round one product ``X W`` serves all runs that wait for scores. Where none does, one ``X' S`` serves all
    that wait for a pull-back: so a run that begins later falls into step with the others. A finished run makes room for
    the next, which is taken from ``runs`` only then. If a run or a product fails, the others are closed, so that they
    can save their checkpoints.
    """
    begun: dict[int, Asking[Result]] = {}
    try:
        return _drive(design, runs, begun)
    finally:
        for steps in begun.values():
            steps.close()


def _drive(design: Design, runs: Iterable[Asking[Result]], begun: dict[int, Asking[Result]]) -> list[Result]:
    """Drive the runs; ``begun`` holds those that have not ended."""
    most = min(OPEN, TOGETHER * max(1, round(LENGTH / max(1, min(design.shape)) / TOGETHER)))
    multiply, pending = _multiplier(design), enumerate(runs)
    results: dict[int, Result] = {}
    waiting: list[tuple[int, Asking[Result], Ask]] = []

    def resume(k: int, steps: Asking[Result], answers: list[Vector] | None = None) -> None:
        begun[k] = steps
        try:
            waiting.append((k, steps, next(steps) if answers is None else steps.send(answers)))
        except StopIteration as stop:
            results[k] = stop.value
            del begun[k]

    while True:
        while len(waiting) < most and (following := next(pending, None)) is not None:
            resume(*following)  # it may end at once and leave its place to the next
        if not waiting:
            return [results[k] for k in range(len(results))]
        if len(waiting) == 1:  # the last one, or the only one
            k, steps, ask = waiting.pop()
            results[k] = _to_its_end(multiply, steps, ask)
            del begun[k]
            continue
        product: Product = "scores" if any(ask.product == "scores" for _, _, ask in waiting) else "pull"
        group = [one for one in waiting if one[2].product == product]
        waiting[:] = [one for one in waiting if one[2].product != product]
        answers = iter(multiply(product, [vector for _, _, ask in group for vector in ask.vectors]))
        for k, steps, ask in group:
            resume(k, steps, list(islice(answers, len(ask.vectors))))


def _to_its_end(multiply: Multiply, steps: Asking[Result], ask: Ask) -> Result:
    """Drive a single run, with as few calls as possible: on small data they take most of the time."""
    try:
        while True:
            ask = steps.send(multiply(*ask))
    except StopIteration as stop:
        result: Result = stop.value
        return result


def _multiplier(design: Design) -> Multiply:
    """A function that multiplies several vectors in one pass: the design's own, or a product with a matrix."""
    if design.rows is not None:
        return design.rows.products

    def products(product: Product, vectors: list[Vector]) -> list[Vector]:
        multiply = design.matvec if product == "scores" else design.rmatvec
        if len(vectors) == 1:
            return [np.ascontiguousarray(multiply(vectors[0]))]
        return list(_kernels.transpose(np.ascontiguousarray(multiply(_kernels.as_columns(vectors)))))

    return products
