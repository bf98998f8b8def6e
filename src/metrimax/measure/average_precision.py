"""Average precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.measure.envelope import RankingOracle, Slopes
from metrimax.measure.ranking import RankingMeasure
from metrimax.measure.units import split
from metrimax.protocols import Cut, Labels, Oracle, Vector


@dataclass(frozen=True)
class AveragePrecision(RankingMeasure):
    """Average precision: the mean, over the positives, of the precision among all that rank as high.

    Notes
    -----
    The definition of scikit-learn's ``average_precision_score``: examples with the same score are reached together.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.measure import AveragePrecision
    >>> round(AveragePrecision().score(np.array([1, 1, 0, 0]), np.array([2.0, -1.0, 1.0, -3.0])), 3)
    0.833
    """

    name: ClassVar[str] = "average_precision"

    def loss(self, y: Labels, z: npt.ArrayLike, sample_weight: Vector | None = None) -> float:
        """One minus the average precision of the scores ``z``."""
        y, s, weight = self.parts(y, z, sample_weight)
        order = np.argsort(-s, kind="stable")
        ends = np.flatnonzero(np.append(np.diff(s[order]) != 0, True))
        found = np.cumsum((weight * y)[order])[ends]
        precision = found / np.cumsum(weight[order])[ends]
        return 1 - float(np.diff(found, prepend=0.0) @ precision) / float(found[-1])

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle:
        return AveragePrecisionOracle(y, sample_weight)


class AveragePrecisionOracle(RankingOracle):
    """``R = max over rankings of  1 - AP - 1/(n+ n-) sum over swapped pairs of (s_i - s_j)``, in O(n log n).

    Of all rankings that are alike as sequences of positives and negatives the best keeps each class in the order of
    its scores. Then every negative has a best place among the positives that does not depend on the other negatives,
    and these places are in order (Yue et al. 2007). They are found by divide and conquer, where the paper tries all
    n+ n-: see `Interleaving` in the kernels. Of the negatives only those are sorted that may stand above a positive
    (`PrecisionRanking` there).

    With weights each class is a queue of equal units (`metrimax.measure.units`), and units are ranked.

    References
    ----------
    Yue, Finley, Radlinski & Joachims (2007). A support vector method for optimizing average precision. SIGIR.
    """

    def __init__(self, y: Labels, sample_weight: Vector | None = None) -> None:
        self._pos, self._neg = pos, neg = split(y, sample_weight)
        super().__init__(pos.total + neg.total, len(y))
        self._ratio = neg.unit / pos.unit
        self._rank = np.arange(1.0, pos.count + 1)
        # per swapped pair nothing costs more than one negative above all positives
        self.price = max(1.0, neg.count / pos.count * float((self._ratio / (self._rank + self._ratio)).sum()))
        if pos.whole and neg.whole:
            self.compiled = _kernels.PrecisionSearch(pos.members, neg.members, self._ratio, self.size)

    def slopes(self) -> Slopes:
        low, high = np.zeros(self.size), np.zeros(self.size)
        low[self._pos.members] = -self._pos.weight / self._pos.weight.sum()
        high[self._neg.members] = self._neg.weight / self._neg.weight.sum()
        return Slopes.between(low, high)

    def __call__(self, scores: Vector) -> Cut:
        self.check(scores)
        if self.compiled is not None:
            return Cut(*self.compiled.cut(np.ascontiguousarray(scores)))
        pos, neg = self._pos.sorted(scores), self._neg.sorted(scores)
        highest_first = (self._pos.unit_costs(*pos)[::-1].copy(), -self._neg.unit_costs(*neg))
        above = _kernels.interleave(*highest_first, self._ratio)
        below = np.searchsorted(above, np.arange(self._pos.count), side="right")  # negatives above each positive
        loss = 1 - float(np.mean(self._rank / (self._rank + below * self._ratio)))
        slope = np.zeros(self.size)
        pairs = float(self._pos.count) * self._neg.count
        self._pos.share_out(*pos, -below[::-1] / pairs, slope)
        self._neg.share_out(*neg, (self._pos.count - above) / pairs, slope)
        return Cut(loss, slope)
