"""Designs made from designs."""

from __future__ import annotations

import math

import numpy as np

from metrimax.designs.linear import columns
from metrimax.protocols import Design, Vector


class WithIntercept:
    """A design with one more column, constant, whose weight is the last one.

    The intercept is a feature of value ``value`` like any other, regularised with the rest
    (Joachims 2005, section 6): scores are ``X w[:-1] + value * w[-1]``.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.designs import as_design
    >>> X = WithIntercept(as_design(np.array([[1.0], [2.0]])), 10.0)
    >>> X.matvec(np.array([1.0, 0.5]))
    array([6., 7.])
    >>> X.rmatvec(np.array([1.0, 1.0]))
    array([ 3., 20.])
    """

    def __init__(self, design: Design, value: float = 1.0) -> None:
        if not math.isfinite(value) or value <= 0:
            raise ValueError(f"the value of the intercept's feature must be positive and finite, got {value}")
        self.design = design
        self.value = float(value)

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self.design.shape
        return n, p + 1

    def matvec(self, w: Vector) -> Vector:
        """``X w[:-1] + value w[-1]``."""
        w = columns("w", w, self.shape[1])
        scores = self.design.matvec(w[:-1])
        scores += self.value * w[-1]
        return scores

    def rmatvec(self, slope: Vector) -> Vector:
        """``X' slope`` followed by ``value * sum(slope)``."""
        slope = columns("slope", slope, self.shape[0])
        return np.concatenate([self.design.rmatvec(slope), self.value * slope.sum(axis=0, keepdims=True)])
