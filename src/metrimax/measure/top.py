"""The most violated ranking for measures of the first ranks: NDCG, and precision and recall at k of a ranking."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.measure.envelope import RankingOracle, Slopes
from metrimax.protocols import Cut, Vector

MOST_STATES = 2**24
"""The most combinations of grades in the first ranks that the search stores, with nine bytes each."""


class TopRankingOracle(RankingOracle):
    """``R = max over rankings of  1 - sum over r of D_r gain(r) - 1/P sum over swapped pairs of (s_i - s_j)``.

    The P pairs are those of different gains. A pair is swapped if the lower gain stands above the higher. Examples of
    equal gain are in the order of their scores. So the numbers of examples of each gain determine the first K ranks,
    and the other examples follow in the order of their scores. Dynamic programming over these numbers finds the maximum
    (`TopArgmax` in the kernels). With L different gains the cost is O(n (log n + L)), and O(L²) for each of at most
    (K + L)! / (K! L!) combinations.

    Parameters
    ----------
    name : str
        The name of the measure, for messages.
    gains : ndarray (n,)
        What an example adds at a rank of discount 1.
    discounts : ndarray (K,)
        D of the first ranks.
    sample_weight : ndarray (n,), optional
        Whole numbers: how often each example is repeated.
    """

    compiled: _kernels.TopRankingSearch

    def __init__(self, name: str, gains: Vector, discounts: Vector, sample_weight: Vector | None = None) -> None:
        times = whole_weights(name, sample_weight, len(gains))
        of = np.repeat(np.arange(len(gains)), times)
        levels, grades = np.unique(gains[of], return_inverse=True)
        if len(levels) < 2:
            raise ValueError(f"{name}: expected examples of both classes, or of several grades, got only one")
        super().__init__(float(len(of)), len(gains))
        grades = np.ascontiguousarray(grades, dtype=np.intp)
        ranks = np.ascontiguousarray(discounts[: len(of)])
        sizes = np.bincount(grades)
        states = np.prod(np.minimum(sizes, len(ranks)) + 1.0)
        if states > MOST_STATES or len(sizes) > 100:
            raise ValueError(
                f"{name}: {len(sizes)} grades in the first {len(ranks)} ranks make {states:.2g} "
                f"combinations to search, more than {MOST_STATES}; choose a smaller k, or fewer grades"
            )
        pairs = (len(of) ** 2 - float(sizes @ sizes)) / 2
        lower, higher = np.cumsum(sizes) - sizes, len(of) - np.cumsum(sizes)
        self._swaps = [np.bincount(of, count[grades], len(gains)) / pairs for count in (lower, higher)]
        self.compiled = _kernels.TopRankingSearch(of, grades, levels, ranks, 1 / pairs, self.size)
        self.price = max(1.0, pairs * _greatest_loss_of_a_move(levels[np.sort(grades)[::-1]], discounts))

    def slopes(self) -> Slopes:
        """The slopes from an example below all lower grades to one above all higher grades."""
        return Slopes.between(-self._swaps[0], self._swaps[1])

    def __call__(self, scores: Vector) -> Cut:
        self.check(scores)
        return Cut(*self.compiled.cut(np.ascontiguousarray(scores)))


def whole_weights(name: str, sample_weight: Vector | None, n: int) -> npt.NDArray[np.intp]:
    """How often each example is repeated."""
    if sample_weight is None:
        return np.ones(n, dtype=np.intp)
    if not (sample_weight == np.round(sample_weight)).all():
        at_k = " (labellings='at_most' takes others, where k is not less than the positives)" if "_at_" in name else ""
        raise ValueError(f"{name}: expected whole numbers as sample_weight, for examples that are repeated{at_k}")
    return sample_weight.astype(np.intp)


def _greatest_loss_of_a_move(gains: Vector, discounts: Vector) -> float:
    """The largest loss per swapped pair when one example moves from its place in the ideal ranking ``gains``."""
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
