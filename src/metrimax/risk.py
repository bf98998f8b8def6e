"""Design x oracles: run solvers over one design, every product with X read once for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metrimax.protocols import Ask, Design, Solution, Steps, Vector


def run(design: Design, runs: Sequence[Steps]) -> list[Solution]:
    """Drive the solvers to their end, in lockstep.

    In each round, those that wait for scores are served by one product ``X W`` and those that wait for a pull-back
    by one ``X' S``, however many there are; a solver that has finished costs nothing more.
    """
    solutions: dict[int, Solution] = {}
    waiting: dict[int, Ask] = {}

    def resume(k: int, answer: Vector | None) -> None:
        try:
            waiting[k] = runs[k].send(answer)  # type: ignore[arg-type]
        except StopIteration as stop:
            solutions[k] = stop.value

    for k in range(len(runs)):
        resume(k, None)
    while waiting:
        asked, waiting = waiting, {}
        for product, multiply in (("scores", design.matvec), ("pull", design.rmatvec)):
            group = [k for k, ask in asked.items() if ask.product == product]
            if len(group) == 1:
                resume(group[0], multiply(asked[group[0]].vector))
            elif group:
                columns = multiply(np.column_stack([asked[k].vector for k in group]))
                for column, k in enumerate(group):
                    resume(k, np.ascontiguousarray(columns[:, column]))
    return [solutions[k] for k in range(len(runs))]
