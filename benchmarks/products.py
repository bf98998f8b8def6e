"""Products with X against the memory: X w and X'c, dense and CSR, both precisions, 1 and 2 threads, 1 to 90 vectors.

The yardstick is STREAM's triad ``a = b + s c`` (24 bytes per element), run in the same process just before, in blocks
that fit the cache so that NumPy's two steps cost one trip to memory; and a plain read (``b.c``, 16 bytes per element).
``fraction`` is the bytes a product must move at least, over its seconds and the triad's bandwidth.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import data
from metrimax.designs import as_design

BLOCK = 8192
SIZES = {"dense": (20_000, 200_000, 1_000_000), "sparse": (17_000, 150_000, 500_000)}  # 10^6 to 5 10^7 non-zeros
SMOKE = {"dense": (20_000,), "sparse": (2_000,)}


Clock = Callable[[], float]


def best(function: Callable[[], Any], seconds: float, least: int = 3, clock: Clock = time.perf_counter) -> float:
    """The quickest of at least ``least`` calls, repeated for about ``seconds``."""
    quickest, spent, calls = np.inf, 0.0, 0
    while calls < least or spent < seconds:
        start = clock()
        function()
        took = clock() - start
        quickest, spent, calls = min(quickest, took), spent + took, calls + 1
    return quickest


def bandwidth(threads: int, size: int, seconds: float, clock: Clock = time.perf_counter) -> dict[str, float]:
    """Bytes per second of the triad and of the read, in ``threads`` threads."""
    a, b, c = np.zeros(size), np.ones(size), np.full(size, 0.5)
    starts = [range(k * size // threads, (k + 1) * size // threads, BLOCK) for k in range(threads)]

    def triad(part: range) -> None:
        for start in part:
            own = slice(start, min(start + BLOCK, part.stop))
            np.multiply(c[own], 3.0, out=a[own])
            np.add(a[own], b[own], out=a[own])

    def read(part: range) -> float:
        return sum(float(b[s : s + BLOCK] @ c[s : s + BLOCK]) for s in part)

    with ThreadPoolExecutor(threads) as pool:
        took = {
            name: best(lambda f=function: list(pool.map(f, starts)), seconds, clock=clock)
            for name, function in (("triad", triad), ("read", read))
        }
    return {"triad": 24 * size / took["triad"], "read": 16 * size / took["read"]}


def least_bytes(X: Any, L: int) -> int:
    """What a product has to move: X once, the vectors on both sides once."""
    vectors = 8 * L * sum(X.shape)
    if sparse.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + vectors
    return X.nbytes + vectors


def measure(smoke: bool = False, **_: Any) -> list[dict[str, Any]]:
    rows = []
    seconds = 0.01 if smoke else 0.1
    yardsticks = {t: bandwidth(t, 10**5 if smoke else 2 * 10**7, 5 * seconds) for t in (1, 2)}
    for kind, sizes in (SMOKE if smoke else SIZES).items():
        for n in sizes:
            original = data.generate(kind, n).X
            for dtype in (np.float64, np.float32):
                X = original.astype(dtype)
                for L in _counts(n, smoke):
                    rows += [row | _size(kind, X, L) for row in _products(X, L, yardsticks, seconds)]
            nnz = original.nnz if sparse.issparse(original) else original.size
            print(f"  products {kind} {nnz:.2g} non-zeros", flush=True)
    return rows


def _counts(n: int, smoke: bool) -> tuple[int, ...]:
    """How many vectors at once: one is bound by memory whatever the size, so the others are measured on small X."""
    return (1, 8) if smoke else (1, 8, 90) if n < 10**5 else (1,)


def _size(kind: str, X: Any, L: int) -> dict[str, Any]:
    nnz = X.nnz if sparse.issparse(X) else X.size
    return {"kind": kind, "n": X.shape[0], "p": X.shape[1], "nnz": nnz, "dtype": str(X.dtype), "L": L}


def _products(X: Any, L: int, yardsticks: dict[int, dict[str, float]], seconds: float) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    n, p = X.shape
    shape = (lambda m: (m,)) if L == 1 else (lambda m: (m, L))
    W, S = rng.normal(size=shape(p)), rng.normal(size=shape(n))
    # few slopes are not zero in practice: those of the examples that flip
    tenth = S * (rng.random(n) < 0.1).reshape(-1, *[1] * (S.ndim - 1))
    rows = []
    peer = {"X w": lambda: X @ W, "X'c": lambda: X.T @ S, "X'c, 10% of c": lambda: X.T @ tenth}
    peer_seconds = {name: best(function, seconds) for name, function in peer.items()}
    for threads, yardstick in yardsticks.items():
        design = as_design(X, n_threads=threads)
        own = {
            "X w": lambda d=design: d.matvec(W),
            "X'c": lambda d=design: d.rmatvec(S),
            "X'c, 10% of c": lambda d=design: d.rmatvec(tenth),
        }
        for name, function in own.items():
            took = best(function, seconds)
            moved = least_bytes(X, L)
            rows.append(
                {
                    "product": name,
                    "threads": threads,
                    "seconds": took,
                    "bytes": moved,
                    "bandwidth": moved / took,
                    "triad": yardstick["triad"],
                    "read": yardstick["read"],
                    # rows that are not read move nothing, so a fraction would mean little there
                    "fraction": "" if "10%" in name else moved / took / yardstick["triad"],
                    "peer_seconds": peer_seconds[name],  # SciPy or NumPy, as many threads as they like
                    "speedup": peer_seconds[name] / took,
                }
            )
    return rows
