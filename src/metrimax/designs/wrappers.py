"""Designs made from designs."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from metrimax import _kernels
from metrimax._validation import is_number
from metrimax.designs.linear import columns
from metrimax.protocols import Design, RowAccess, Vector


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
        if not (is_number(value) and 0 < value < math.inf):
            raise ValueError(
                f"the value of the intercept's feature (intercept_scaling) must be a positive and finite number, "
                f"got {value!r}"
            )
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
        if scores.ndim == 1:
            scores += self.value * w[-1]
        else:
            scores = np.ascontiguousarray(scores)
            _kernels.add_row(scores, self.value * w[-1])
        return scores

    def rmatvec(self, slope: Vector) -> Vector:
        """``X' slope`` followed by ``value * sum(slope)``."""
        slope = columns("slope", slope, self.shape[0])
        total = slope.sum(keepdims=True) if slope.ndim == 1 else _kernels.column_sums(slope)[np.newaxis]
        return np.concatenate([self.design.rmatvec(slope), self.value * total])

    @cached_property
    def rows(self) -> RowAccess | None:
        """Row access of the wrapped design, if it has it, with the constant feature added."""
        inside = self.design.rows
        return None if inside is None else inside.with_constant(self.value)


class Foreign:
    """A user's object with ``shape``, ``matvec`` and ``rmatvec`` as a design without row access."""

    rows = None

    def __init__(self, inside: Any) -> None:
        self.shape: tuple[int, int] = inside.shape
        self.matvec, self.rmatvec = inside.matvec, inside.rmatvec


class ExtraColumns:
    """A design with a few more columns before its own: rows ``[extra_i, x_i]``.

    The weights of the extra columns come first. With the outputs of auxiliary classifiers, divided by sqrt(B), as
    columns this is the augmented data of Li, Tsang & Zhou (2013), eq. (12).

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.designs import as_design
    >>> X = ExtraColumns(as_design(np.array([[1.0], [2.0]])), np.array([[1.0], [-1.0]]))
    >>> X.matvec(np.array([10.0, 1.0]))
    array([11., -8.])
    """

    rows = None

    def __init__(self, design: Design, extra: Vector) -> None:
        extra = np.asarray(extra, dtype=np.float64)
        if extra.ndim != 2 or len(extra) != design.shape[0]:
            raise ValueError(f"expected extra columns of shape ({design.shape[0]}, m), got {extra.shape}")
        self.design = design
        self.extra = extra

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self.design.shape
        return n, self.extra.shape[1] + p

    def matvec(self, w: Vector) -> Vector:
        """``extra w[:m] + X w[m:]``."""
        m = self.extra.shape[1]
        scores: Vector = self.extra @ w[:m] + self.design.matvec(w[m:])
        return scores

    def rmatvec(self, slope: Vector) -> Vector:
        """``extra' slope`` followed by ``X' slope``."""
        return np.concatenate([self.extra.T @ slope, self.design.rmatvec(slope)])
