"""A sum of hinges as an oracle."""

from __future__ import annotations

import numpy as np

from metrimax.measure.sample import SampleOracle
from metrimax.protocols import Capabilities, Cut, Hinges, Line, Vector


class HingeSum(SampleOracle):
    """``R(s) = 1/n sum_i weight_i max(0, margin_i - sign_i s_i)``; ``n`` is the sum of the weights."""

    def __init__(self, hinges: Hinges) -> None:
        super().__init__(float(hinges.weight.sum()), len(hinges.weight))
        self._hinges = hinges

    @property
    def can(self) -> Capabilities:
        return Capabilities(hinges=lambda: self._hinges)

    def __call__(self, scores: Vector) -> Cut:
        sign, margin, _ = self._hinges
        share = self._active(margin - sign * scores)
        return Cut(float(share @ margin), -share * sign)

    def line(self, scores: Vector, move: Vector) -> Line:
        sign, margin, _ = self._hinges
        start, rate = margin - sign * scores, -sign * move

        def risk(t: float) -> tuple[float, float]:
            slack = start + t * rate
            share = self._active(slack)
            return float(share @ slack), float(share @ rate)

        return risk

    def _active(self, slack: Vector) -> Vector:
        share: Vector = np.where(slack > 0, self._hinges.weight, 0.0) / self.n
        return share
