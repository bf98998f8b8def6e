"""Measures of the ranking: ROC area."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.measure.at_k import PRBEP
from metrimax.measure.sample import SampleOracle
from metrimax.measure.smoothing import searched_smoothing
from metrimax.measure.units import split
from metrimax.protocols import Capabilities, Cut, Labels, Oracle, Vector


class RankingMeasure:
    """A measure of the order of the scores. A subclass gives the loss and the oracle.

    R is at least the loss of the ranking by scores. That ranking is among those compared, and of all of them it has the
    greatest sum of score differences over its swapped pairs (a lower grade above a higher one).
    """

    name: ClassVar[str]
    ranks: ClassVar[bool] = True

    def loss(self, y: Labels, z: npt.ArrayLike, sample_weight: Vector | None = None) -> float:
        raise NotImplementedError

    def score(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        return 1 - self.loss(y, scores, sample_weight)

    def threshold(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        """A ranking fixes none; this one calls as many training examples positive as there are positives."""
        return PRBEP().threshold(y, scores, sample_weight)

    def parts(
        self, y: npt.ArrayLike, z: npt.ArrayLike, sample_weight: npt.ArrayLike | None
    ) -> tuple[Labels, Vector, Vector]:
        """Labels, scores and weights of the examples with a weight above 0; raises unless both classes are there."""
        positive, s = np.asarray(y) > 0, np.asarray(z, dtype=np.float64)
        weight = np.ones(len(positive)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        positive, s, weight = positive[weight > 0], s[weight > 0], weight[weight > 0]
        if not (positive.any() and not positive.all()):
            raise ValueError(f"{self.name}: expected examples of both classes, got only one; it is undefined")
        return positive, s, weight


@dataclass(frozen=True)
class ROCArea(RankingMeasure):
    """Area under the ROC curve: the share of pairs of a positive and a negative in the right order.

    Notes
    -----
    The measure fixes no threshold; `predict` uses the one that calls as many training examples positive as there are
    (halfway to the next score), where precision and recall break even.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.measure import ROCArea
    >>> round(ROCArea().score(np.array([1, 1, 0, 0]), np.array([2.0, -1.0, 1.0, -3.0])), 3)
    0.75
    """

    name: ClassVar[str] = "roc_area"

    def loss(self, y: Labels, z: npt.ArrayLike, sample_weight: Vector | None = None) -> float:
        """Share of pairs that the scores ``z`` put in the wrong order; a tie counts one half."""
        y, s, weight = self.parts(y, z, sample_weight)
        order = np.argsort(s[y])
        pos, reached = s[y][order], np.concatenate(([0.0], np.cumsum(weight[y][order])))
        below = reached[np.searchsorted(pos, s[~y], side="left")], reached[np.searchsorted(pos, s[~y], side="right")]
        swapped = float((below[0] + below[1]) / 2 @ weight[~y])
        return swapped / float(weight[y].sum() * weight[~y].sum())

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle:
        return ROCOracle(y, sample_weight)


class ROCOracle(SampleOracle):
    """``R = 1/(n+ n-) sum over pairs of max(0, 1 - (s_i - s_j))``, in O(n log n).

    With ``cost = y * score``, a pair is inside the margin if its two costs sum to less than 1. The smaller class is
    sorted, the other one looked up in it.

    References
    ----------
    Joachims (2005), Algorithm 3.
    """

    compiled: _kernels.PairSearch

    def __init__(self, y: Labels, sample_weight: Vector | None = None) -> None:
        pos, neg = split(y, sample_weight)
        super().__init__(pos.total + neg.total, len(y))
        small, large = sorted((pos, neg), key=lambda units: len(units.members))
        weights = [np.empty(0) if sample_weight is None else sample_weight[u.members] for u in (small, large)]
        pairs = pos.total * neg.total
        ordered, other = (
            _kernels.PairClass(u.members, u.sign, w) for u, w in zip((small, large), weights, strict=True)
        )
        self.compiled = _kernels.PairSearch(self.size, ordered, other, pairs)
        self.smooth = searched_smoothing(self.compiled)

    @property
    def can(self) -> Capabilities:
        return Capabilities(compiled=self.compiled, smooth=lambda: self.smooth)

    def __call__(self, scores: Vector) -> Cut:
        self.check(scores)
        return Cut(*self.compiled.cut(scores))
