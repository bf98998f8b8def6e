"""The base class of all oracles."""

from __future__ import annotations

from metrimax import _kernels
from metrimax.protocols import Capabilities, Cut, Line, Vector


class SampleOracle:
    """An oracle on ``size`` examples of total weight ``n``. A subclass gives the cut that attains the risk."""

    price: float = 1.0
    compiled: _kernels.Risk | None = None
    """The compiled kernel that solvers call instead of this object, or None."""

    def __init__(self, n: float, size: int) -> None:
        self.n = n
        self.size = size

    @property
    def can(self) -> Capabilities:
        """What this oracle offers beyond its protocol."""
        return Capabilities(compiled=self.compiled)

    def __call__(self, scores: Vector) -> Cut:
        raise NotImplementedError

    def mean_cut(self, scores: Vector, mu: float) -> Cut:
        """A mean of cuts that is no more than ``mu`` below the risk at these scores; here the one that attains it."""
        return self(scores)

    def check(self, scores: Vector) -> None:
        """Refuse scores of the wrong shape."""
        if scores.shape != (self.size,):
            raise ValueError(f"expected {self.size} scores, got an array of shape {scores.shape}")

    def line(self, scores: Vector, move: Vector) -> Line:
        """The risk on ``scores + t move`` and its slope there: by the kernel, or by way of cuts."""
        if self.compiled is not None:
            return _kernels.Line(self.compiled, scores, move)

        def risk(t: float) -> tuple[float, float]:
            here = scores + t * move
            cut = self(here)
            return cut.loss + _kernels.dot(cut.slope, here), _kernels.dot(cut.slope, move)

        return risk
