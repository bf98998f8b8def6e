"""Growing n: seconds per pass, seconds in all, and the peak of memory beyond X, each size in a process of its own.

Memory is the peak of the resident set during ``fit`` less what was resident before it (X and y loaded, a small
problem fitted to warm up, what making X left free given back), less the cuts (8 p bytes each where n > p, at their
most), in units of a vector of n float64. Below 10^5 rows a vector is too small to be told from the rest.

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

CASES = [("dense", "f1"), ("dense", "roc_area"), ("sparse", "f1")]
SIZES = (10**4, 10**5, 10**6)


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
    """Fit one size in this process."""
    from benchmarks import data
    from metrimax import MeasureSVC

    small = data.generate(kind, 1000)
    # the useful C falls as examples grow in number; C n is what is kept, from 10^4 rows at C = 1
    svc = MeasureSVC(measure, C=1e4 / n, n_threads=2, max_iter=2000)
    warnings.simplefilter("ignore")
    MeasureSVC(measure, max_iter=50).fit(small.X, small.y)
    task = data.generate(kind, n)
    nbytes = task.X.nbytes if kind == "dense" else task.X.data.nbytes + task.X.indices.nbytes + task.X.indptr.nbytes
    _forget_peak()
    before = _resident("VmRSS")
    cpu, wall = time.process_time(), time.perf_counter()
    svc.fit(task.X, task.y)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    beyond = _resident("VmHWM") - before
    length = min(task.X.shape[1], 2 * n)  # by weights, or by coefficients and scores
    cuts = 8 * length * max(record.n_cuts for record in svc.history_)
    return {
        "kind": kind,
        "measure": measure,
        "n": n,
        "p": task.X.shape[1],
        "X_bytes": nbytes,
        "C": svc.C,
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "n_iter": int(svc.n_iter_),
        "n_passes": int(svc.n_passes_),
        "wall_seconds_per_pass": wall / svc.n_passes_,
        "gap": float(svc.gap_),
        "beyond_X_bytes": beyond,
        "cut_bytes": cuts,
        "vectors": (beyond - cuts) / (8 * n),
    }


def measure(smoke: bool = False, large: bool = False, **_: Any) -> list[dict[str, Any]]:
    rows = []
    sizes = (3000,) if smoke else (*SIZES, 10**7) if large else SIZES
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
