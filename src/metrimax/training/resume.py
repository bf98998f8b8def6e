"""Runs that go on from a checkpoint, and keep their own state in one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np

from metrimax.io.checkpoints import KeptRun
from metrimax.protocols import Array, Ask, Callback, Cuts, Design, Oracle, Record, Solution, Vector
from metrimax.solvers import pack, unpack

PROBED = 0.0, 0.01, 0.1, 1.0, 10.0
"""Sizes of the scores at which the risks of two runs are compared."""


class ResumedRun:
    """A callback that saves the state of a run now and then, and counts on from the run it continues."""

    def __init__(self, run: KeptRun, callback: Callback | None) -> None:
        self._run, self._callback = run, callback
        self._state: Callable[[], Cuts] | None = None
        found = run.load()
        self.start = None if found is None else unpack(found[0])
        self._before = Record(0, 0, np.inf, -np.inf, 0, 0.0) if found is None else found[1]

    def keep(self, state: Callable[[], Cuts]) -> None:
        self._state = state

    @property
    def cuts(self) -> Cuts | None:
        """Those of the state that was offered last."""
        return None if self._state is None else self._state()

    def __call__(self, record: Record) -> Any:
        record = self._on(record)
        if self._run.due and self._state is not None:
            self._run.save(pack(self._state()), record)
        return self._callback(record) if self._callback is not None else None

    def ended(self, solution: Solution, *, save: bool) -> Solution:
        """The solution, counted from the beginning; with ``save``, for others follow, its state is written too."""
        if save and self._state is not None and solution.history:
            self._run.save(pack(self._state()), self._on(solution.history[-1]))
        return replace(
            solution,
            history=[self._on(record) for record in solution.history],
            n_iter=solution.n_iter + self._before.iteration,
            n_passes=solution.n_passes + self._before.n_passes,
        )

    def _on(self, record: Record) -> Record:
        return record._replace(
            iteration=record.iteration + self._before.iteration,
            n_passes=record.n_passes + self._before.n_passes,
            seconds=record.seconds + self._before.seconds,
        )


def identity(
    about: tuple[Any, ...], arrays: tuple[Array | None, ...], oracle: Oracle, design: Design
) -> Generator[Ask, Vector, tuple[str, Vector]]:
    """The name of a run's file, and a probe that tells its rows of X from others.

    Measures of one name may have other parameters, or compare other labellings, so that the cuts of the one do not hold
    for the other: the risk is told by its values too, at scores of all sizes.
    """
    rng = np.random.default_rng(0)
    values = []
    for size in PROBED:
        scores = size * rng.normal(size=design.shape[0])
        cut = oracle(scores)
        values.append(f"{cut.loss + float(cut.slope @ scores):.9g}")
    digest = hashlib.sha256(repr((*about, oracle.price, oracle.n, values, design.shape)).encode())
    for part in arrays:
        digest.update(b"none" if part is None else part.tobytes())
    scores = yield Ask("scores", rng.normal(size=design.shape[1]))
    probe = rng.normal(size=(4, len(scores))) @ scores / max(float(np.linalg.norm(scores)), 1e-300)
    return digest.hexdigest()[:32], probe
