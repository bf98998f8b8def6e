"""Normalised discounted cumulative gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from metrimax._validation import is_whole
from metrimax.measure.ranking import RankingMeasure
from metrimax.measure.top import TopRankingOracle, whole_weights
from metrimax.protocols import Labels, Oracle, Vector


@dataclass(frozen=True)
class NDCG(RankingMeasure):
    """Normalised discounted cumulative gain of the first k ranks, for grades from 0 up.

    ``NDCG = 1/Z sum over ranks r <= k of gain(grade at r) / log2(1 + r)``, with Z the sum for the ideal ranking.

    Parameters
    ----------
    k : int or None
        Number of ranks; None for all. More than there are examples counts as all.
    gain : {"exponential", "linear"}
        2^grade - 1, or the grade itself, as in scikit-learn's ``ndcg_score``. For two grades they are the same.

    Notes
    -----
    Examples with the same score count by the average over their orders.

    Examples
    --------
    >>> from metrimax.measure import NDCG
    >>> round(NDCG(2).score([3, 1, 0, 0], [2.0, -1.0, 1.0, -3.0]), 3)
    0.917
    """

    k: int | None = 10
    gain: Literal["exponential", "linear"] = "exponential"
    name: ClassVar[str] = "ndcg"

    def __post_init__(self) -> None:
        if self.k is not None and not (is_whole(self.k) and self.k >= 1):
            raise ValueError(f"expected k as a whole number of at least 1, or None for all ranks, got {self.k!r}")
        if self.gain not in ("exponential", "linear"):
            raise ValueError(f"expected gain 'exponential' or 'linear', got {self.gain!r}")

    def gains(self, y: npt.ArrayLike) -> Vector:
        """The gain of every example."""
        grades = np.asarray(y, dtype=np.float64)
        most = 60 if self.gain == "exponential" else 2.0**60  # the same gains
        if not ((grades >= 0) & (grades <= most)).all():
            raise ValueError(
                f"ndcg: expected grades from 0 to {most:g} in y, got values from {grades.min():g} to {grades.max():g}: "
                "shift them, so that 0 is the worst grade, or divide them into fewer grades"
            )
        return np.exp2(grades) - 1 if self.gain == "exponential" else grades

    def discounts(self, n: int) -> Vector:
        """``1 / log2(1 + r)`` for the ranks that count."""
        ranks = np.arange(1.0, 1 + (n if self.k is None else min(self.k, n)))
        discounts: Vector = 1 / np.log2(1 + ranks)
        return discounts

    def loss(self, y: Labels, z: npt.ArrayLike, sample_weight: Vector | None = None) -> float:
        """One minus the NDCG of the scores ``z``."""
        gains, s = self.gains(y), np.asarray(z, dtype=np.float64)
        times = whole_weights(self.name, sample_weight, len(gains))
        gains, s = np.repeat(gains, times), np.repeat(s, times)
        ideal = self._ideal(gains)
        order = np.argsort(-s, kind="stable")
        block = np.concatenate(([0], np.cumsum(np.diff(s[order]) != 0)))
        mean = np.bincount(block, gains[order]) / np.bincount(block)
        discounts = self.discounts(len(gains))
        return 1 - float(mean[block][: len(discounts)] @ discounts) / ideal

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle:
        gains = self.gains(y)
        times = whole_weights(self.name, sample_weight, len(gains))
        repeated = np.repeat(gains, times)
        return TopRankingOracle(self.name, gains / self._ideal(repeated), self.discounts(len(repeated)), sample_weight)

    def _ideal(self, gains: Vector) -> float:
        discounts = self.discounts(len(gains))
        ideal = float(np.sort(gains)[::-1][: len(discounts)] @ discounts)
        if not ideal > 0:
            raise ValueError("ndcg: expected examples of both classes, got none of a grade above 0; it is undefined")
        return ideal
