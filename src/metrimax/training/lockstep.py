"""Run the solvers of all labels over one design, so that each product reads X once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from metrimax import _kernels
from metrimax.protocols import Ask, Design, Product, Vector

Result = TypeVar("Result")

OPEN = 32
"""Most runs open at a time: enough to read X once for many."""
TOGETHER = 8
"""Vectors that a product takes side by side: runs are open by so many, or by a multiple."""
LENGTH = 2**17
"""Numbers in one cut of each open run, about: with long vectors fewer runs are open, down to `TOGETHER`."""


def run(design: Design, runs: Iterable[Generator[Ask, Vector, Result]]) -> list[Result]:
    """Drive solver runs to their end, in lockstep, and return their results in order.

    In each round one product ``X W`` serves all runs that wait for scores. Where none does, one ``X' S`` serves all
    that wait for a pull-back: so a run that begins later falls into step with the others. A finished run makes room for
    the next, which is taken from ``runs`` only then. If a run or a product fails, the others are closed, so that they
    can save their checkpoints.
    """
    begun: dict[int, Generator[Ask, Vector, Result]] = {}
    try:
        return _drive(design, runs, begun)
    finally:
        for steps in begun.values():
            steps.close()


def _drive(
    design: Design, runs: Iterable[Generator[Ask, Vector, Result]], begun: dict[int, Generator[Ask, Vector, Result]]
) -> list[Result]:
    """Drive the runs; ``begun`` holds those that have not ended."""
    most = min(OPEN, TOGETHER * max(1, round(LENGTH / max(1, min(design.shape)) / TOGETHER)))
    pending = enumerate(runs)
    results: dict[int, Result] = {}
    waiting: list[tuple[int, Generator[Ask, Vector, Result], Ask]] = []

    def resume(k: int, steps: Generator[Ask, Vector, Result], answer: Vector | list[Vector] | None) -> None:
        begun[k] = steps
        try:
            waiting.append((k, steps, steps.send(answer)))  # type: ignore[arg-type]
        except StopIteration as stop:
            results[k] = stop.value
            del begun[k]

    while True:
        while len(waiting) < most and (following := next(pending, None)) is not None:
            resume(*following, None)  # it may end at once and leave its place to the next
        if not waiting:
            return [results[k] for k in range(len(results))]
        if len(waiting) == 1:  # the last one, or the only one
            k, steps, ask = waiting.pop()
            results[k] = _to_its_end(design, steps, ask)
            del begun[k]
            continue
        product: Product = "scores" if any(ask.product == "scores" for _, _, ask in waiting) else "pull"
        group = [one for one in waiting if one[2].product == product]
        waiting[:] = [one for one in waiting if one[2].product != product]
        for k, steps, answer in _answers(design, product, group):
            resume(k, steps, answer)


def _to_its_end(design: Design, steps: Generator[Ask, Vector, Result], ask: Ask) -> Result:
    """Drive a single run, with as few calls as possible: on small data they take most of the time."""
    multiply = _multiplier(design)
    while True:
        product, vector = ask
        del ask  # what it gave is let go of as soon as the product is made
        answer: Any
        if isinstance(vector, list):
            answer = multiply(product, vector)
        else:
            (answer,) = multiply(product, [vector])
        del vector
        try:
            ask = steps.send(answer)
        except StopIteration as stop:
            result: Result = stop.value
            return result


def _answers(
    design: Design, product: Product, group: list[tuple[int, Generator[Ask, Vector, Result], Ask]]
) -> Iterator[tuple[int, Generator[Ask, Vector, Result], Vector | list[Vector]]]:
    """The products that the runs of a group asked for, by one pass; vectors are freed as soon as they are used."""
    vectors = [one for _, _, ask in group for one in _listed(ask.vector)]
    runs = [(k, steps, isinstance(ask.vector, list), len(_listed(ask.vector))) for k, steps, ask in group]
    group.clear()
    rows = _multiplier(design)(product, vectors)[::-1]
    vectors.clear()
    for k, steps, several, count in runs:
        mine = [rows.pop() for _ in range(count)]
        yield k, steps, mine if several else mine.pop()


def _listed(vector: Vector | list[Vector]) -> list[Vector]:
    return vector if isinstance(vector, list) else [vector]


def _multiplier(design: Design) -> Callable[[Product, list[Vector]], list[Vector]]:
    """A function that multiplies several vectors in one pass: the design's own, or a product with a matrix."""
    if design.rows is not None:
        return design.rows.products

    def products(product: Product, vectors: list[Vector]) -> list[Vector]:
        multiply = design.matvec if product == "scores" else design.rmatvec
        if len(vectors) == 1:
            return [np.ascontiguousarray(multiply(vectors[0]))]
        return list(_kernels.transpose(np.ascontiguousarray(multiply(_kernels.as_columns(vectors)))))

    return products
