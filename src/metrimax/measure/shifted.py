"""An oracle for scores on top of given ones."""

from __future__ import annotations

import numpy as np

from metrimax.protocols import Cut, Line, Oracle, Vector


class Shifted:
    """``R'(s) = R(s + offset)``: what is learnt is a correction of the scores ``offset``."""

    def __init__(self, oracle: Oracle, offset: Vector) -> None:
        self._oracle = oracle
        self._offset = np.ascontiguousarray(offset)
        self.n, self.price = oracle.n, oracle.price

    def __call__(self, scores: Vector) -> Cut:
        return self._of_scores(self._oracle(scores + self._offset))

    def mean_cut(self, scores: Vector, mu: float) -> Cut:
        return self._of_scores(self._oracle.mean_cut(scores + self._offset, mu))

    def _of_scores(self, cut: Cut) -> Cut:
        return Cut(cut.loss + float(cut.slope @ self._offset), cut.slope)

    def line(self, scores: Vector, move: Vector) -> Line:
        return self._oracle.line(scores + self._offset, move)
