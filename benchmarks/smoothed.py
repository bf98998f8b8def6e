"""What a smoothed risk costs, in cuts: value and gradient against the most violated labelling, on one thread.

Scores move along a line, as in a line search, and both are asked at the same points; ``ratio`` is the CPU time of all
smoothed risks over that of all cuts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from metrimax.measure import PrecisionAtK, get_measure
from metrimax.protocols import Measure, Vector

NAMED = ["error", "cost", "balanced_error", "prbep", "roc_area", "f1", "kappa", "mcc", "jaccard", "gmean", "qmean"]
MEASURES: dict[str, Measure | str] = {
    **{name: name for name in [*NAMED, "min_tpr_tnr", "ae", "kld", "precision_at_k", "partial_auc"]},
    "precision_at_least_k": PrecisionAtK("2p", labellings="at_least"),
}
BY_CUTS: dict[str, Measure | str] = {name: name for name in ("average_precision", "ndcg")}
"""Their smoothed risk is found from some cuts, so they are measured on fewer examples, once."""
MUS = (0.1, 0.01, 0.001, 0.0001)
SHARES = (0.03, 0.3)
LARGE, SMALL = 300_000, 10_000


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
    rows = []
    for names, full, times in ((MEASURES, LARGE, repeats), (BY_CUTS, SMALL, 1)):
        n = full // 100 if smoke else full
        for share in SHARES:
            rng = np.random.default_rng(0)
            y = rng.random(n) < share
            scores, move = rng.normal(size=n) + 1.5 * y - 1, 0.1 * rng.normal(size=n) + 0.5 * y
            points = [scores + t * move for t in np.linspace(0, 1, 5)]
            for name, what in names.items():
                oracle = get_measure(what).oracle(y.astype(int) if name == "ndcg" else y)
                smooth = oracle.can.smooth()
                cut = cpu(oracle, points, repeats)
                for mu in MUS:
                    smoothed = cpu(lambda s, mu=mu, smooth=smooth: smooth(s, mu), points, times)
                    rows.append(
                        {"measure": name, "n": n, "positives": share, "mu": mu, "cut_ms": 1e3 * cut / len(points)}
                        | {"smoothed_ms": 1e3 * smoothed / len(points), "ratio": smoothed / cut}
                    )
    return rows
