"""Runs that go on from a checkpoint, and keep their own state in one: now and then, and when they are interrupted."""

from __future__ import annotations

import hashlib
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np

from metrimax._validation import warn
from metrimax.io.checkpoints import KeptRun
from metrimax.protocols import Array, Ask, Asking, Callback, Cuts, Design, Oracle, Record, Solution, Steps, Vector
from metrimax.training.trust import above, believed, pack, risk_at

PROBED = 0.0, 0.01, 0.1, 1.0, 10.0
"""Sizes of the scores at which the risks of two runs are compared."""

DIGITS = 8
"""Digits of the products with X that go into a file's name: further ones depend on the order of sums."""

_NOTHING = Record(0, 0, np.inf, -np.inf, 0, 0.0)


class ResumedRun:
    """A callback that saves the state of a run now and then, and counts on from the run it continues."""

    def __init__(self, run: KeptRun, callback: Callback | None) -> None:
        self._run, self._callback = run, callback
        self._state: Callable[[], Cuts] | None = None
        self._before = self._last = _NOTHING
        self._saved, self._doubted = 0, False

    def solve(
        self, steps: Callable[..., Steps], oracle: Oracle, design: Design, start: Cuts | None = None, *, save: bool
    ) -> Asking[Solution]:
        """The solution of a run that goes on from its saved state, counted from its beginning; else from ``start``.

        ``steps`` takes ``start``, ``callback`` and ``keep``. With ``save`` the last state is written too, for the runs
        that follow.
        """
        try:
            with _terminated_by_exit(self):
                found = yield from self._restored(oracle, design, others=start is None)
                try:
                    solution = yield from self._solve(steps, start if found is None else found, found is not None)
                except BaseException:  # including GeneratorExit: the caller that drives the run was interrupted
                    self._save()
                    raise
                if save and solution.history:
                    self._last, self._saved = self._on(solution.history[-1]), 0
                    self._save()
        finally:
            self._run.release()
        return replace(
            solution,
            history=[self._on(record) for record in solution.history],
            n_iter=solution.n_iter + self._before.iteration,
            n_passes=solution.n_passes + self._before.n_passes,
        )

    def _restored(self, oracle: Oracle, design: Design, *, others: bool) -> Asking[Cuts | None]:
        """The saved state, or with ``others`` that of a run at another C; None where there is none."""
        found = self._run.load()
        if found is not None:
            start = yield from believed(found[0], oracle, design)
            if start is not None:
                self._before = self._last = found[1]
                self._saved = found[1].iteration
                return start
        if others:
            for arrays in self._run.others():
                start = yield from believed(arrays, oracle, design)
                return None if start is None else start.elsewhere()
        return None

    def _solve(self, steps: Callable[..., Steps], start: Cuts | None, doubted: bool) -> Asking[Solution]:
        """Solve from the saved state; if its bound is above the objective, which is impossible, start anew."""
        self._doubted = doubted
        try:
            solution = yield from steps(start=start, callback=self, keep=self.keep)
            if not (doubted and above(solution.bound, solution.objective)):
                return solution
        except _FalseBound:
            pass
        warn(
            "the state that a checkpoint kept proves a bound above the objective, so that it is of other data or was "
            "changed: the fit starts anew"
        )
        self._before = self._last = _NOTHING
        self._state, self._saved = None, 0
        return (yield from self._solve(steps, None, doubted=False))

    def keep(self, record: Record, state: Callable[[], Cuts]) -> None:
        self._state = state

    @property
    def cuts(self) -> Cuts | None:
        """The cuts of the last state."""
        return None if self._state is None else self._state().elsewhere()

    def __call__(self, record: Record) -> Any:
        if self._doubted and above(record.bound, record.objective):
            raise _FalseBound
        self._last = record = self._on(record)
        if self._run.due:
            self._save()
        return self._callback(record) if self._callback is not None else None

    def _save(self) -> None:
        if self._state is not None and self._last.iteration > self._saved:
            self._run.save(pack(self._state()), self._last)
            self._saved = self._last.iteration

    def _on(self, record: Record) -> Record:
        return record._replace(
            iteration=record.iteration + self._before.iteration,
            n_passes=record.n_passes + self._before.n_passes,
            seconds=record.seconds + self._before.seconds,
        )


class _FalseBound(Exception):
    """A bound above the objective."""


def identity(
    about: tuple[Any, ...], arrays: tuple[Array | None, ...], oracle: Oracle, design: Design
) -> Asking[tuple[str, Vector]]:
    """A name for the problem, and a probe of X: its products with fixed vectors, in one pass.

    Two measures of one name may differ in parameters, or in the labellings they compare, and then the cuts of one do
    not hold for the other. So the name depends on values of the risk too, at scores of several sizes.
    """
    rng = np.random.default_rng(0)
    values = [f"{risk_at(oracle, size * rng.normal(size=design.shape[0])):.9g}" for size in PROBED]
    (scores,) = yield Ask("scores", [rng.normal(size=design.shape[1])])
    probe = np.append(rng.normal(size=(4, len(scores))) @ scores, np.linalg.norm(scores))
    rows = [f"{value:.{DIGITS}g}" for value in probe]
    told = *about, float(oracle.price), float(oracle.n), values, rows, design.shape
    digest = hashlib.sha256(repr(told).encode())
    for part in arrays:
        digest.update(b"none" if part is None else part.tobytes())
    return digest.hexdigest()[:32], probe


_open: list[ResumedRun] = []
"""Runs in the main thread that have not ended."""


@contextmanager
def _terminated_by_exit(run: ResumedRun) -> Generator[None, None, None]:
    """Make SIGTERM raise SystemExit in the main thread, unless it has another handler, so that states are saved."""
    if threading.current_thread() is not threading.main_thread() or not (
        _open or signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    ):
        yield
        return
    _open.append(run)
    signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        _open.remove(run)
        if not _open:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
