"""What a smoothed risk costs, in cuts: value and gradient against the most violated labelling, on one thread.

Scores move along a line, as in a line search, and both are asked at the same points; ``ratio`` is the CPU time of all
smoothed risks over that of all cuts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from metrimax.measure import get_measure
from metrimax.protocols import Vector

MEASURES = ("prbep", "roc_area", "f1", "kappa", "mcc", "jaccard", "gmean", "error")
MUS = (0.1, 0.01, 0.001)
SHARES = (0.03, 0.3)


def cpu(function: Callable[[Vector], Any], points: list[Vector], repeats: int) -> float:
    """The least CPU seconds of asking at all points."""
    function(points[-1])
    least = np.inf
    for _ in range(repeats):
        start = time.process_time()
        for scores in points:
            function(scores)
        least = min(least, time.process_time() - start)
    return least


def measure(repeats: int = 3, smoke: bool = False, **_: Any) -> list[dict[str, Any]]:
    n = 3_000 if smoke else 300_000
    rows = []
    for share in SHARES:
        rng = np.random.default_rng(0)
        y = rng.random(n) < share
        scores, move = rng.normal(size=n) + 1.5 * y - 1, 0.1 * rng.normal(size=n) + 0.5 * y
        points = [scores + t * move for t in np.linspace(0, 1, 5)]
        for name in MEASURES:
            oracle = get_measure(name).oracle(y)
            smooth = oracle.can.smooth()
            cut = cpu(oracle, points, repeats)
            for mu in MUS:
                smoothed = cpu(lambda s, mu=mu, smooth=smooth: smooth(s, mu), points, repeats)
                rows.append(
                    {"measure": name, "n": n, "positives": share, "mu": mu, "cut_ms": 1e3 * cut / len(points)}
                    | {"smoothed_ms": 1e3 * smoothed / len(points), "ratio": smoothed / cut}
                )
    return rows
