"""An oracle for scores on top of given ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from metrimax.protocols import Capabilities, Cut, Hinges, Line, Oracle, Smooth, Vector, made


class Shifted:
    """``R'(s) = R(s + offset)``: what is learnt is a correction of the scores ``offset``."""

    def __init__(self, oracle: Oracle, offset: Vector) -> None:
        self._oracle = oracle
        self._offset = np.ascontiguousarray(offset)
        self.n, self.price = oracle.n, oracle.price

    @property
    def can(self) -> Capabilities:
        """What the oracle offers, with shifted margins. Its kink is not at s = 0 any more, so none is offered."""
        own = self._oracle.can
        return replace(
            own,
            compiled=None,
            smooth=self._smooth,
            hinges=None if own.hinges is None else partial(self._shifted, own.hinges),
            mistakes=None if own.mistakes is None else partial(self._shifted, own.mistakes),
            kink=None,
            within=None,
        )

    def __call__(self, scores: Vector) -> Cut:
        return self._of_scores(self._oracle(scores + self._offset))

    def mean_cut(self, scores: Vector, mu: float) -> Cut:
        return self._of_scores(self._oracle.mean_cut(scores + self._offset, mu))

    def _of_scores(self, cut: Cut) -> Cut:
        return Cut(cut.loss + float(cut.slope @ self._offset), cut.slope)

    def _shifted(self, make: Callable[[], Hinges]) -> Hinges:
        """The hinges ``margin - sign (s + offset)`` with the offset moved into the margin."""
        hinges = make()
        return hinges._replace(margin=hinges.margin - hinges.sign * self._offset)

    def _smooth(self) -> Smooth | None:
        smooth = made(self._oracle.can.smooth)
        if smooth is None:
            return None

        def shifted(scores: Vector, mu: float) -> tuple[float, Cut]:
            value, cut = smooth(scores + self._offset, mu)
            return value, self._of_scores(cut)

        return shifted

    def line(self, scores: Vector, move: Vector) -> Line:
        return self._oracle.line(scores + self._offset, move)
