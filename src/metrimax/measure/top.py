"""The most violated ranking for measures of the first ranks: NDCG, and precision and recall at k of a ranking."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.measure.sample import SampleOracle
from metrimax.protocols import Cut, Vector

MOST_STATES = 2**24
"""Most combinations of grades in the first ranks that the search keeps, nine bytes each."""


class TopRankingOracle(SampleOracle):
    """``R = max over rankings of  1 - sum over r of D_r gain(r) - 1/P sum over swapped pairs of (s_i - s_j)``.

    The P pairs are those of different gains; one is swapped if the lower gain stands above the higher. Examples of
    equal gain keep the order of their scores, so that the first K ranks are known by how many of each gain they hold,
    and the rest follow in the order of their scores: dynamic programming over these numbers (`TopArgmax` in the
    kernels). With L different gains O(n (log n + L)), and L² for each of at most (K + L)! / (K! L!) combinations.

    Parameters
    ----------
    name : str
        Of the measure, for messages.
    gains : ndarray (n,)
        What an example adds at a rank of discount 1.
    discounts : ndarray (K,)
        D of the first ranks.
    sample_weight : ndarray (n,), optional
        Whole numbers: how often each example is there.
    """

    def __init__(self, name: str, gains: Vector, discounts: Vector, sample_weight: Vector | None = None) -> None:
        times = whole_weights(name, sample_weight, len(gains))
        self._repeated = sample_weight is not None
        self._of = np.repeat(np.arange(len(gains)), times)
        self._levels, grades = np.unique(gains[self._of], return_inverse=True)
        if len(self._levels) < 2:
            raise ValueError(f"{name}: expected examples of both classes, or of several grades, got only one")
        super().__init__(float(len(self._of)), len(gains))
        self._grades = np.ascontiguousarray(grades, dtype=np.intp)
        self._discounts = np.ascontiguousarray(discounts[: len(self._of)])
        sizes = np.bincount(self._grades)
        states = np.prod(np.minimum(sizes, len(self._discounts)) + 1.0)
        if states > MOST_STATES or len(sizes) > 100:
            raise ValueError(
                f"{name}: {len(sizes)} grades in the first {len(self._discounts)} ranks make {states:.2g} "
                f"combinations to search, more than {MOST_STATES}; choose a smaller k, or fewer grades"
            )
        pairs = (len(self._of) ** 2 - float(sizes @ sizes)) / 2
        self._weight = 1 / pairs
        self.price = max(1.0, pairs * _greatest_loss_of_a_move(self._levels[np.sort(self._grades)[::-1]], discounts))

    def __call__(self, scores: Vector) -> Cut:
        self.check(scores)
        slope = np.empty(len(self._of))
        loss = _kernels.top_argmax(
            scores[self._of] if self._repeated else np.ascontiguousarray(scores),
            self._grades,
            self._levels,
            self._discounts,
            self._weight,
            slope,
        )
        if self._repeated:
            slope = np.bincount(self._of, slope, minlength=self.size).astype(np.float64)
        return Cut(loss, slope)


def whole_weights(name: str, sample_weight: Vector | None, n: int) -> npt.NDArray[np.intp]:
    """How often each example is there."""
    if sample_weight is None:
        return np.ones(n, dtype=np.intp)
    if not (sample_weight == np.round(sample_weight)).all():
        raise ValueError(f"{name}: expected whole numbers as sample_weight, for examples that are repeated")
    return sample_weight.astype(np.intp)


def _greatest_loss_of_a_move(gains: Vector, discounts: Vector) -> float:
    """The most that is lost per swapped pair when one example leaves its place in the ideal ranking ``gains``."""
    D = np.zeros(len(gains))
    D[: len(discounts)] = discounts[: len(gains)]
    most = 0.0
    for p in np.flatnonzero(np.diff(gains) < 0):  # the last of its grade moves down, the first of the next one up
        passed = np.arange(p + 1, len(gains))
        down = gains[p] * (D[p] - D[passed]) - np.cumsum(gains[passed] * (D[passed - 1] - D[passed]))
        passed = np.arange(p, -1, -1)
        up = np.cumsum(gains[passed] * (D[passed] - D[passed + 1])) - gains[p + 1] * (D[passed] - D[p + 1])
        most = max(most, *(float((lost / np.arange(1, len(lost) + 1)).max()) for lost in (down, up)))
    return most
