"""A path over C against its points alone: 2^-6 .. 2^6, the cuts shared."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.timing import timed

CASES = [
    ("reuters:money-fx", "f1"),
    ("reuters:money-fx", "roc_area"),
    ("ijcnn1", "f1"),
    ("optdigits:8", "prbep"),
    ("splice", "f1"),
]
SMOKE = [("dense:1000", "f1")]


def one(name: str, which: str, grid: list[float], repeats: int) -> dict[str, Any]:
    """The path and its points alone, on one task."""
    import metrimax

    task = data.load(name)

    def fit(C: float) -> Any:
        return metrimax.MeasureSVC(which, C=C, hinge=0.0, n_threads=1, max_iter=20_000).fit(task.X, task.y)

    def path() -> Any:
        return metrimax.path(task.X, task.y, measure=which, Cs=grid, n_threads=1).solutions

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = [timed(lambda C=C: fit(C), 1) for C in grid]
        points, timing = timed(path, repeats)
    seconds = [taken.cpu_seconds for _, taken in alone]
    k = int(np.argmax(seconds))
    return {
        "task": name,
        "measure": which,
        "points": len(grid),
        "path_cpu_seconds": timing.cpu_seconds,
        "path_passes": int(sum(point.n_passes for point in points)),
        "hardest_C": grid[k],
        "hardest_cpu_seconds": seconds[k],
        "hardest_passes": int(alone[k][0].n_passes_),
        "all_alone_cpu_seconds": sum(seconds),
        "ratio": timing.cpu_seconds / seconds[k],
        "largest_gap": float(max(point.gap for point in points)),
        # of the objectives, over C kappa n: both are within tol of the optimum, so at most tol
        "largest_difference": float(
            max(
                abs(point.objective - svc.objective_) / (svc.C * svc.price_ * task.n)
                for point, (svc, _) in zip(points, alone, strict=True)
            )
        ),
    }


def measure(smoke: bool = False, repeats: int = 3, **_: Any) -> list[dict[str, Any]]:
    grid = [2.0**k for k in (range(-2, 3) if smoke else range(-6, 7))]
    rows = []
    for name, which in SMOKE if smoke else CASES:
        rows.append(one(name, which, grid, repeats))
        print(f"  path {name} {which}: {rows[-1]['ratio']:.2f} times its hardest point", flush=True)
    return rows
