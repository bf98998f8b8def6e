"""Smoothed rankings: the smoothed risk of any oracle, by its cuts alone.

The loss of average precision, NDCG and partial AUC is linear on no set of rankings that is easy to go through, so there
are no pieces (`metrimax.measure.smoothing`). The quadratic term is therefore one of the slope itself::

    R_mu(s) = max over means of cuts of  loss + <slope, s> - q/2 sum_i (slope_i - centre_i)^2 / width_i,

where ``width`` is how far apart the slopes of an example may be, and q such that the term is no more than mu. It is a
Moreau envelope of R: convex, with gradient ``slope``, since the maximiser's slope is unique. It is found by cuts: the
one at ``s - q (slope - centre) / width`` is the best to add to the mean (Frank & Wolfe 1956; fully corrective, with the
quadratic program over all of them).

References
----------
Nesterov (2005). Smooth minimization of non-smooth functions. Mathematical Programming 103.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from metrimax import _kernels
from metrimax._validation import check_positive
from metrimax.measure.sample import SampleOracle
from metrimax.protocols import Capabilities, Cut, Smooth, Vector

ACCURACY = 1e-6
"""The value is found to this share of mu, which the bound includes."""

MOST_CUTS = 300
"""Of a mean; beyond it the value is a bit lower, and its plane still a cut."""


class Slopes(NamedTuple):
    """Where the slopes of all cuts lie: ``sum_i (slope_i - centre_i)^2 / width_i`` is at most ``reach``."""

    centre: Vector
    width: Vector
    reach: float

    @classmethod
    def between(cls, low: Vector, high: Vector) -> Slopes:
        """Anywhere between two bounds, of which the middle is the centre."""
        return cls((low + high) / 2, high - low, float((high - low).sum()) / 4)


class RankingOracle(SampleOracle):
    """The oracle of a measure of rankings that are compared pair by pair. A subclass says where its slopes lie."""

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
    The cost is that of a few cuts, or some tens of them; those of the mean are kept for the next call.
    """
    centre, width, reach = slopes
    inverse = np.divide(1, width, out=np.zeros_like(width), where=width > 0)
    scaled = np.sqrt(inverse)
    apart = float((centre**2 * inverse).sum())
    kept: list[Cut] = []

    def smooth(scores: Vector, mu: float) -> tuple[float, Cut]:
        check_positive("mu", mu)
        nonlocal kept
        q = 2 * mu * (1 - ACCURACY) / reach
        shifted = scores + q * inverse * centre
        cuts = [*kept, oracle(scores)]
        rows = np.array([cut.slope * scaled for cut in cuts])
        gram, alpha = rows @ rows.T, np.eye(len(cuts))[-1]
        gains = np.array([cut.loss + _kernels.dot(cut.slope, shifted) for cut in cuts])
        while True:
            _kernels.simplex_qp(gram, gains, q, alpha, 0.01 * ACCURACY * mu, 1000 + 100 * len(cuts))
            mean = alpha @ rows
            square = _kernels.dot(mean, mean)
            new = oracle(shifted - q * scaled * mean)
            row, gain = new.slope * scaled, new.loss + _kernels.dot(new.slope, shifted)
            # by how much the value can still rise, at most
            short = gain - q * _kernels.dot(row, mean) - float(alpha @ gains) + q * square
            if short <= ACCURACY * mu or len(cuts) >= MOST_CUTS:
                break
            cross = rows @ row
            gram = np.block([[gram, cross[:, None]], [cross[None, :], np.array([[row @ row]])]])
            rows, gains, alpha = np.vstack((rows, row)), np.append(gains, gain), np.append(alpha, 0.0)
            cuts.append(new)
        mixed = [(share, cut) for share, cut in zip(alpha.tolist(), cuts, strict=True) if share > 0]
        kept = [cut for _, cut in mixed]
        slope = np.zeros(len(scores))
        for share, cut in mixed:
            slope += share * cut.slope
        value = float(alpha @ gains) - q / 2 * (square + apart)
        return value, Cut(sum(share * cut.loss for share, cut in mixed), slope)

    return smooth
