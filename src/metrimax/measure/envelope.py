"""Smoothed rankings: the smoothed risk of any oracle, from its cuts.

The losses of average precision, NDCG and partial AUC are not linear on sets of rankings that are easy to enumerate, so
there are no pieces (`metrimax.measure.smoothing`; partial AUC with alpha = 0 smooths itself). The quadratic term is
therefore a function of the slope::

    R_mu(s) = max over means of cuts of  loss + <slope, s> - q/2 sum_i (slope_i - centre_i)^2 / width_i,

``width`` is the range of an example's slopes, and q makes the term at most mu. This is a Moreau envelope of R: convex,
with gradient ``slope``, since the slope of the maximiser is unique. It is found by cuts: the cut at
``s - q (slope - centre) / width`` is the best one to add to the mean (Frank & Wolfe 1956; fully corrective, with the
quadratic program over all cuts).

References
----------
Nesterov (2005). Smooth minimization of non-smooth functions. Mathematical Programming 103.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax._validation import check_positive
from metrimax.measure.sample import SampleOracle
from metrimax.protocols import Capabilities, Cut, Smooth, Vector

ACCURACY = 1e-6
"""The value is computed with an error of at most this share of mu, which the bound includes."""

MOST_CUTS = 300
"""The most cuts in a mean. If more were needed, the value is slightly too low, and its plane is still a cut."""


class Slopes(NamedTuple):
    """A set that contains the slopes of all cuts: ``sum_i (slope_i - centre_i)^2 / width_i`` is at most ``reach``."""

    centre: Vector
    width: Vector
    reach: float

    @classmethod
    def between(cls, low: Vector, high: Vector) -> Slopes:
        """The set of slopes between two bounds."""
        return cls((low + high) / 2, high - low, float((high - low).sum()) / 4)


class RankingOracle(SampleOracle):
    """The oracle of a measure that compares rankings pair by pair. A subclass states the set of its slopes."""

    def slopes(self) -> Slopes:
        raise NotImplementedError

    @cached_property
    def smooth(self) -> Smooth:
        """The smoothed risk, ``(scores, mu) -> (value, cut)``."""
        return envelope_smoothing(self, self.slopes())

    @property
    def can(self) -> Capabilities:
        return Capabilities(compiled=self.compiled, smooth=lambda: self.smooth)


def envelope_smoothing(oracle: Callable[[Vector], Cut], slopes: Slopes) -> Smooth:
    """The smoothed risk of an oracle, no more than ``mu`` below the risk.

    Notes
    -----
    A call costs from a few cuts to some tens of cuts. The cuts of the mean are stored for the next call.
    """
    centre, width, reach = slopes
    inverse = np.divide(1, width, out=np.zeros_like(width), where=width > 0)
    scaled, unscaled = np.sqrt(inverse), np.sqrt(width)
    pull, apart = inverse * centre, float((centre**2 * inverse).sum())
    kept = _Mean([], [], np.empty((0, 0)), np.empty(0))

    def smooth(scores: Vector, mu: float) -> tuple[float, Cut]:
        check_positive("mu", mu)
        nonlocal kept
        q = 2 * mu * (1 - ACCURACY) / reach
        shifted = scores + q * pull
        mean = kept._replace(alpha=kept.alpha.copy())  # another thread may begin with it, too
        if not mean.cuts:
            first = oracle(scores)
            mean = mean.extended(first, first.slope * scaled)
            mean.alpha[0] = 1.0
        gains = np.array([cut.loss + _kernels.dot(cut.slope, shifted) for cut in mean.cuts])
        while True:
            cuts, _, gram, alpha = mean
            _kernels.simplex_qp(gram, gains, q, alpha, 0.01 * ACCURACY * mu, 1000 + 100 * len(cuts))
            row = mean.row()
            square = _kernels.dot(row, row)
            new = oracle(shifted - q * scaled * row)
            new_row, gain = new.slope * scaled, new.loss + _kernels.dot(new.slope, shifted)
            # an upper bound of how much the value can still rise
            short = gain - q * _kernels.dot(new_row, row) - float(alpha @ gains) + q * square
            if short <= ACCURACY * mu or len(cuts) >= MOST_CUTS:
                break
            mean, gains = mean.extended(new, new_row), np.append(gains, gain)
        kept = mean.used()
        value = float(alpha @ gains) - q / 2 * (square + apart)
        return value, Cut(float(alpha @ np.array([cut.loss for cut in cuts])), row * unscaled)

    return smooth


class _Mean(NamedTuple):
    """Cuts, their scaled slopes with all inner products, and their shares in a mean."""

    cuts: list[Cut]
    rows: list[Vector]
    gram: npt.NDArray[np.float64]
    alpha: Vector

    def extended(self, cut: Cut, row: Vector) -> _Mean:
        """With one cut more, of share zero."""
        cross = np.array([_kernels.dot(other, row) for other in self.rows])
        gram = np.block([[self.gram, cross[:, None]], [cross[None, :], np.array([[_kernels.dot(row, row)]])]])
        return _Mean([*self.cuts, cut], [*self.rows, row], gram, np.append(self.alpha, 0.0))

    def used(self) -> _Mean:
        """Without the cuts of share zero."""
        at = np.flatnonzero(self.alpha > 0)
        cuts, rows = [self.cuts[k] for k in at], [self.rows[k] for k in at]
        return _Mean(cuts, rows, self.gram[np.ix_(at, at)], self.alpha[at])

    def row(self) -> Vector:
        """The scaled slope of the mean."""
        mean: Vector = self.alpha[0] * self.rows[0]
        for share, row in zip(self.alpha[1:], self.rows[1:], strict=True):
            if share > 0:
                mean += share * row
        return mean
