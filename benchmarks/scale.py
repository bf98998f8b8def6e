"""Growing n: seconds per pass, seconds in all, and the memory beyond X that grows with n, each size in its own process.

What a fit takes is the peak of the resident set during ``fit`` less what was resident before it (X and y loaded, a
small problem fitted to warm up, what making X left free given back), less the cuts (8 p bytes each where n > p, at
their most). Part of that does not grow with n: libraries, threads, quasi-Newton vectors of length p, the interpreter.
It is measured by a fit on fewer rows of as many columns in the same process, with cuts kept in the same way, and what
is reported is the difference, in vectors of float64 of the length of the difference. Below 10^5 rows a vector is too
small to be told from the rest.

glibc keeps freed blocks of up to 32 MB for itself and cuts them up, so at 10^6 rows the peak depends on the order of
what was freed before, by some 5 vectors. The processes therefore run with a limit of 1 MB to that.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

CASES = [("dense", "f1"), ("dense", "roc_area"), ("sparse", "f1")]
SIZES = (10**4, 10**5, 10**6)
LARGE = 10**7  #: rows from which on X is float32, so that it fits a machine of 16 GB
FEWER = {"dense": 2_000, "sparse": 40_000}  #: rows of the smaller fit: more than columns


def _resident(key: str) -> int:
    """VmRSS or VmHWM in bytes; where there is no /proc, the peak alone is known."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith(key))
        return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _forget_peak() -> None:
    """Give back what is free, and let VmHWM start again from what is resident now (Linux)."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def one(kind: str, measure: str, n: int) -> dict[str, Any]:
    """Fit one size in this process, after a smaller one that tells what does not grow with n."""
    warnings.simplefilter("ignore")
    _fit(kind, measure, 1000)
    fewer = FEWER[kind] if n > 2 * FEWER[kind] else n // 4
    base, row = _fit(kind, measure, fewer), _fit(kind, measure, n)
    grown = [one["beyond_X_bytes"] - one["cut_bytes"] for one in (base, row)]
    return row | {"fixed_bytes": grown[0], "vectors": (grown[1] - grown[0]) / (8 * (n - fewer))}


def _fit(kind: str, measure: str, n: int) -> dict[str, Any]:
    from benchmarks import data
    from metrimax import MeasureSVC

    task = data.generate(kind, n, dtype=np.float32 if n >= LARGE else None)
    nbytes = task.X.nbytes if kind == "dense" else task.X.data.nbytes + task.X.indices.nbytes + task.X.indptr.nbytes
    # the useful C falls as examples grow in number; C n is what is kept, from 10^4 rows at C = 1
    svc = MeasureSVC(measure, C=1e4 / n, hinge=0.0, threshold="trained", n_threads=2, max_iter=2000)
    _forget_peak()
    before = _resident("VmRSS")
    cpu, wall = time.process_time(), time.perf_counter()
    svc.fit(task.X, task.y)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    length = min(task.X.shape[1], 2 * n)  # by weights, or by coefficients and scores
    return {
        "kind": kind,
        "measure": measure,
        "n": n,
        "p": task.X.shape[1],
        "dtype": str(task.X.dtype),
        "X_bytes": nbytes,
        "C": svc.C,
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "n_iter": int(svc.n_iter_),
        "n_passes": int(svc.n_passes_),
        "wall_seconds_per_pass": wall / svc.n_passes_,
        "gap": float(svc.gap_),
        "beyond_X_bytes": _resident("VmHWM") - before,
        "cut_bytes": 8 * length * max(record.n_cuts for record in svc.history_),
    }


def measure(smoke: bool = False, large: bool = False, **_: Any) -> list[dict[str, Any]]:
    rows = []
    sizes = (3000,) if smoke else (*SIZES, LARGE) if large else SIZES
    for kind, which in CASES[:1] if smoke else CASES:
        for n in sizes:
            command = [sys.executable, "-m", "benchmarks.scale", kind, which, str(n)]
            given_back = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(2**20)}
            ran = subprocess.run(command, capture_output=True, text=True, check=False, env=given_back)
            if ran.returncode:
                raise RuntimeError(f"{' '.join(command)} failed:\n{ran.stderr[-2000:]}")
            rows.append(json.loads(ran.stdout.splitlines()[-1]))
            row = rows[-1]
            print(
                f"  scale {kind} {which} n={n:.0e}: {row['wall_seconds']:.3g} s, {row['vectors']:.1f} vectors",
                flush=True,
            )
    return rows


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
