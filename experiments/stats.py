"""Comparing classifiers over many data sets (Demsar 2006): wins, the signed-rank test, average ranks; verdicts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata, wilcoxon


class Comparison(NamedTuple):
    """One method against another, over paired results; higher is better."""

    difference: float  #: of the means
    wins: int
    losses: int
    ties: int
    p: float  #: of the two-tailed Wilcoxon signed-rank test; 1 where all pairs are ties

    @property
    def stars(self) -> str:
        """As in Joachims (2005): two stars at the level 0.95, one at 0.9."""
        return "**" if self.p <= 0.05 else "*" if self.p <= 0.1 else ""


def compare(one: npt.ArrayLike, other: npt.ArrayLike, *, digits: int = 9) -> Comparison:
    """Paired results of two methods. What agrees to ``digits`` decimals is a tie, and is left out of the test.

    The p-value is exact for up to 50 pairs without ties among the differences, and a normal approximation with
    correction for ties otherwise.
    """
    a, b = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    if a.shape != b.shape or a.ndim != 1 or not a.size:
        raise ValueError(f"expected two sequences of the same length, at least 1, got shapes {a.shape} and {b.shape}")
    d = np.round(a - b, digits)
    p = 1.0
    if d.any():
        nonzero = d[d != 0]
        exact = len(nonzero) <= 50 and len(np.unique(abs(nonzero))) == len(nonzero)
        p = float(wilcoxon(nonzero, method="exact" if exact else "approx").pvalue)
    return Comparison(float(a.mean() - b.mean()), int((d > 0).sum()), int((d < 0).sum()), int((d == 0).sum()), p)


def average_ranks(results: npt.ArrayLike, *, digits: int = 9) -> Any:
    """The mean rank of every method (columns) over the data sets (rows): 1 is best, equals share their ranks."""
    values = np.round(np.asarray(results, dtype=float), digits)
    if values.ndim != 2 or not values.size or np.isnan(values).any():
        raise ValueError(f"expected results of shape (data sets, methods) without gaps, got shape {values.shape}")
    return rankdata(-values, axis=1).mean(axis=0)


def verdict(hits: int, of: int) -> str:
    """Whether a finding holds here, from the number of cases in which it does."""
    return "Agrees" if hits >= 0.75 * of else "Agrees in part" if hits > 0.25 * of else "Does not agree"
