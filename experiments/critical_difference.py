"""Several methods over many data sets: Friedman's test, Nemenyi's critical difference, and the plot of both.

References
----------
Demsar, J. (2006). Statistical comparisons of classifiers over multiple data sets. JMLR 7: section 3.2, figure 1.
Iman, R. L., & Davenport, J. M. (1980). Approximations of the critical region of the Friedman statistic.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import f as f_distribution
from scipy.stats import friedmanchisquare, studentized_range

from experiments.stats import average_ranks


class Friedman(NamedTuple):
    """The test of "all methods are alike": ranks, and what they would be worth by chance."""

    ranks: npt.NDArray[np.float64]
    chi2: float  #: Friedman's statistic, corrected for ties
    p: float  #: of Iman and Davenport's F, which is less conservative than chi2
    difference: float  #: Nemenyi's critical difference of two average ranks


def friedman(results: npt.ArrayLike, *, alpha: float = 0.05, digits: int = 9) -> Friedman:
    """Methods in columns, data sets in rows; higher is better, what agrees to ``digits`` decimals is a tie."""
    values = np.round(np.asarray(results, dtype=float), digits)
    ranks = average_ranks(values, digits=digits)
    n, k = values.shape
    if k < 3 or n < 2:
        raise ValueError(f"expected at least 3 methods and 2 data sets, got {k} methods and {n} data sets")
    if (values == values[:, :1]).all():
        return Friedman(ranks, 0.0, 1.0, nemenyi(k, n, alpha=alpha))
    chi2 = float(friedmanchisquare(*values.T).statistic)
    rest = n * (k - 1) - chi2
    p = float(f_distribution.sf((n - 1) * chi2 / rest, k - 1, (k - 1) * (n - 1))) if rest > 1e-9 else 0.0
    return Friedman(ranks, chi2, p, nemenyi(k, n, alpha=alpha))


def nemenyi(k: int, n: int, *, alpha: float = 0.05) -> float:
    """By how much the average ranks of two of ``k`` methods over ``n`` data sets must differ."""
    q = studentized_range.ppf(1 - alpha, k, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(k * (k + 1) / (6 * n)))


def cliques(ranks: npt.ArrayLike, difference: float) -> list[tuple[int, int]]:
    """First and last position, in the order of the ranks, of the largest groups that the test cannot tell apart."""
    ordered = np.sort(np.asarray(ranks, dtype=float))
    last = [int(np.searchsorted(ordered, rank + difference, side="right")) - 1 for rank in ordered]
    return [(i, j) for i, j in enumerate(last) if j > i and (i == 0 or j > last[i - 1])]


def plot(path: Path, names: Sequence[str], test: Friedman, *, title: str = "", emphasis: Sequence[str] = ()) -> None:
    """The average ranks on a line, best to the left; bars join what the test cannot tell apart."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    order = np.argsort(test.ranks, kind="stable")
    k, half = len(order), (len(order) + 1) // 2
    bars = cliques(test.ranks, test.difference)
    top = 0.35 * len(bars) + 0.6  # where the first label stands, below the bars
    figure, axis = plt.subplots(figsize=(9, 0.9 + 0.22 * (top + half)))
    low, high = 1, k
    axis.set(xlim=(low - 0.42 * (k - 1), high + 0.42 * (k - 1)), ylim=(top + 0.55 * half + 0.2, -1.5))
    axis.axis("off")
    axis.plot([low, high], [0, 0], color="black", linewidth=1)
    for tick in range(low, high + 1):
        axis.plot([tick, tick], [0, -0.12], color="black", linewidth=1)
        axis.text(tick, -0.2, str(tick), ha="center", va="bottom", fontsize=8)
    for position, method in enumerate(order):
        rank, left = float(test.ranks[method]), position < half
        height = top + 0.55 * (position if left else k - 1 - position)
        edge = low - 0.04 * (k - 1) if left else high + 0.04 * (k - 1)
        bold: dict[str, Any] = {"fontweight": "bold"} if names[method] in emphasis else {}
        axis.plot([rank, rank, edge], [0, height, height], color="0.35", linewidth=0.8)
        label = f"{names[method]}  {rank:.2f}" if left else f"{rank:.2f}  {names[method]}"
        axis.text(edge, height, f" {label} ", ha="right" if left else "left", va="center", fontsize=8, **bold)
    for row, (i, j) in enumerate(bars):
        ends = [float(test.ranks[order[i]]) - 0.04, float(test.ranks[order[j]]) + 0.04]
        axis.plot(ends, [0.3 + 0.35 * row] * 2, color="black", linewidth=3, solid_capstyle="round")
    axis.plot([low, low + test.difference], [-1.1, -1.1], color="black", linewidth=1.5)
    axis.text(low + test.difference, -1.1, f"  critical difference {test.difference:.2f}", va="center", fontsize=8)
    if title:
        axis.set_title(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)
