"""Measures of the ranking: ROC area."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.measure.at_k import PRBEP
from metrimax.measure.sample import SampleOracle
from metrimax.measure.smoothing import pair_smoothing
from metrimax.measure.units import split
from metrimax.protocols import Cut, Labels, Oracle, Vector


@dataclass(frozen=True)
class ROCArea:
    """Area under the ROC curve: the share of pairs of a positive and a negative in the right order.

    Notes
    -----
    The measure fixes no threshold; `predict` uses the one that calls as many training examples positive as there are
    (halfway to the next score), where precision and recall break even.
    """

    name: ClassVar[str] = "roc_area"
    ranks: ClassVar[bool] = True

    def loss(self, y: Labels, z: npt.ArrayLike, sample_weight: Vector | None = None) -> float:
        """Share of pairs that the scores ``z`` put in the wrong order; a tie counts one half."""
        y, s = np.asarray(y) > 0, np.asarray(z, dtype=np.float64)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if not weight[y].sum() * weight[~y].sum() > 0:
            raise ValueError("roc_area: expected examples of both classes, got only one; ROC area is undefined")
        order = np.argsort(s[y])
        pos, reached = s[y][order], np.concatenate(([0.0], np.cumsum(weight[y][order])))
        below = reached[np.searchsorted(pos, s[~y], side="left")], reached[np.searchsorted(pos, s[~y], side="right")]
        swapped = float((below[0] + below[1]) / 2 @ weight[~y])
        return swapped / float(weight[y].sum() * weight[~y].sum())

    def score(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        return 1 - self.loss(y, scores, sample_weight)

    def threshold(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        return PRBEP().threshold(y, scores, sample_weight)

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle:
        return ROCOracle(y, sample_weight)


class ROCOracle(SampleOracle):
    """``R = 1/(n+ n-) sum over pairs of max(0, 1 - (s_i - s_j))``, in O(n log n).

    References
    ----------
    Joachims (2005), Algorithm 3.
    """

    def __init__(self, y: Labels, sample_weight: Vector | None = None) -> None:
        pos, neg = split(y, sample_weight)
        super().__init__(pos.total + neg.total, len(y))
        self._members = pos.members, neg.members
        self._weights = None if sample_weight is None else (sample_weight[pos.members], sample_weight[neg.members])
        self._pairs = pos.total * neg.total
        self.smooth = pair_smoothing(pos, neg)

    def __call__(self, scores: Vector) -> Cut:
        self.check(scores)
        s = [scores[members] for members in self._members]
        # only pairs inside the margin count: leave the rest out of the sort
        inside = np.flatnonzero(s[0] < s[1].max() + 1), np.flatnonzero(s[1] > s[0].min() - 1)
        s = [values[i] for values, i in zip(s, inside, strict=True)]
        orders = [np.argsort(values) for values in s]
        none = np.empty(0)
        weights = [none, none]
        if self._weights is not None:
            weights = [w[i][o] for w, i, o in zip(self._weights, inside, orders, strict=True)]
        counts = np.empty(len(s[0])), np.empty(len(s[1]))
        total = _kernels.margin_pairs(s[0][orders[0]], weights[0], s[1][orders[1]], weights[1], *counts)
        slope = np.zeros(self.size)
        for k, sign in ((0, -1.0), (1, 1.0)):
            own = counts[k] if self._weights is None else counts[k] * weights[k]
            slope[self._members[k][inside[k][orders[k]]]] = sign / self._pairs * own
        return Cut(total / self._pairs, slope)
