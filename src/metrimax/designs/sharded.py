"""A matrix in row shards that are opened when a product reaches them, so that X need not fit into memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np

from metrimax.designs.linear import available_threads, columns
from metrimax.protocols import Design, Vector


class Shard(Protocol):
    """Some consecutive rows, wherever they are kept."""

    @property
    def name(self) -> str: ...

    @property
    def rows(self) -> int: ...

    @property
    def held(self) -> int:
        """Bytes of memory it takes while it is open."""

    @property
    def peak(self) -> int:
        """Most bytes of memory it takes while it is being opened."""

    def load(self, n_threads: int) -> Design:
        """The rows as a design; they stay open as long as someone holds it."""

    def prefetch(self) -> None:
        """Ask for the rows without waiting for them."""

    def check(self) -> None:
        """Raise if the files have changed since the rows were loaded."""


class Sharded:
    """Row shards as one design, within a bound on memory.

    Each thread opens one shard at a time, multiplies and closes it, while the next one is prefetched. As many shards as
    the bound allows stay open from one product to the next.

    Parameters
    ----------
    shards : sequence of Shard
    n_cols : int
        The number of columns p.
    memory : int
        Most bytes that the rows may take at any time. Scores and weights come on top.
    n_threads : int or None
        The most threads; None for all cores.

    Notes
    -----
    Shard k always belongs to thread k mod T, and the sums of the threads are added in order, so a product does not
    depend on which thread was quicker. ``bytes_read`` counts the bytes of the shards that products have read;
    in ``X' slope`` shards whose slope is zero are not opened.
    """

    rows = None

    def __init__(self, shards: Sequence[Shard], n_cols: int, *, memory: int, n_threads: int | None = None) -> None:
        self.shards = list(shards)
        self.n_cols = int(n_cols)
        self.memory = int(memory)
        self.starts = np.concatenate(([0], np.cumsum([shard.rows for shard in self.shards], dtype=np.int64)))
        self.bytes_read = 0
        largest = max(self.shards, key=lambda shard: shard.peak, default=None)
        if largest is not None and largest.peak > self.memory:
            raise ValueError(
                f"{largest.name}: needs up to {largest.peak:,} bytes of memory, more than the {self.memory:,} allowed: "
                "raise memory, or make smaller shards with 'metrimax convert --shard-size'"
            )
        threads = available_threads(n_threads)
        each = max(1, largest.peak) if largest is not None else 1
        self._threads = max(1, min(threads, len(self.shards), self.memory // each))
        self._inner = max(1, threads // self._threads)  # where memory admits few shards, the kernels have the threads
        self._room = self.memory - self._threads * each
        self._fresh()

    def _fresh(self) -> None:
        self._open: dict[int, Design] = {}
        self._pool: tuple[int, ThreadPoolExecutor] | None = None  # and its process: a fork has no threads of the pool
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name not in ("_open", "_pool", "_lock")}
        return state | {"_room": self._room + sum(self.shards[k].held for k in self._open)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._fresh()

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.starts[-1]), self.n_cols

    def matvec(self, w: Vector) -> Vector:
        """``X w``."""
        w = columns("w", w, self.n_cols)
        scores = np.empty((self.shape[0], *w.shape[1:]))

        def multiply(_: int, k: int, design: Design) -> None:
            scores[self._rows(k)] = design.matvec(w)

        self._visit(range(len(self.shards)), multiply)
        return scores

    def rmatvec(self, slope: Vector) -> Vector:
        """``X' slope``; shards where the slope is zero are not opened."""
        slope = columns("slope", slope, self.shape[0])
        sums = [np.zeros((self.n_cols, *slope.shape[1:])) for _ in range(self._threads)]

        def multiply(thread: int, k: int, design: Design) -> None:
            sums[thread] += design.rmatvec(slope[self._rows(k)])

        self._visit([k for k in range(len(self.shards)) if slope[self._rows(k)].any()], multiply)
        total = sums[0]
        for part in sums[1:]:
            total += part
        return total

    def _rows(self, k: int) -> slice:
        return slice(int(self.starts[k]), int(self.starts[k + 1]))

    def _visit(self, wanted: Sequence[int], work: Callable[[int, int, Design], None]) -> None:
        """Call ``work(thread, k, rows of shard k)`` for the shards wanted, each in its thread."""
        stop = threading.Event()

        def go(thread: int) -> None:
            mine = [k for k in wanted if k % self._threads == thread]
            for k, following in zip_longest(mine, mine[1:]):
                if stop.is_set():
                    return
                if following is not None and following not in self._open:
                    self.shards[following].prefetch()
                work(thread, k, self._opened(k))

        if self._threads == 1:
            go(0)
            return
        if self._pool is None or self._pool[0] != os.getpid():
            self._pool = os.getpid(), ThreadPoolExecutor(self._threads, thread_name_prefix="metrimax-shards")
        jobs = [self._pool[1].submit(go, thread) for thread in range(self._threads)]
        try:
            wait(jobs, return_when=FIRST_EXCEPTION)
        finally:  # an error in one thread, or Ctrl-C in this one, stops the others after their shard
            stop.set()
            wait(jobs)
        for job in jobs:
            job.result()

    def _opened(self, k: int) -> Design:
        """The rows of a shard, kept open if there is room."""
        shard = self.shards[k]
        design = self._open.get(k)
        if design is None:
            design = shard.load(self._inner)
        else:
            shard.check()
        with self._lock:
            self.bytes_read += shard.held
            if k not in self._open and shard.held <= self._room:
                self._room -= shard.held
                self._open[k] = design
        return design
