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
        cut = self._oracle(scores + self._offset)
        return Cut(cut.loss + float(cut.slope @ self._offset), cut.slope)

    def line(self, scores: Vector, move: Vector, until: float) -> Line:
        return self._oracle.line(scores + self._offset, move, until)
