"""Designs made from designs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from metrimax import _kernels
from metrimax._validation import is_number
from metrimax.designs.linear import columns
from metrimax.protocols import Design, Epochs, Hinges, Product, RowDesign, Vector


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
    def products(self) -> Callable[[Product, list[Vector]], list[Vector]] | None:
        """The products of the design inside, where it has its own for several vectors: see `SeveralDesign`."""
        several = getattr(self.design, "products", None)
        return None if several is None else partial(several, bias=self.value)

    def squares(self) -> Vector:
        """Squared lengths of the rows, the constant feature included."""
        return self._with_rows().squares(self.value)

    def mean_square(self) -> float:
        """The mean of them."""
        return self._with_rows().mean_square(self.value)

    @property
    def by_rows(self) -> bool:
        """As the design inside."""
        return self._with_rows().by_rows

    def dual_epochs(self, hinges: Hinges, upper: Vector, alpha: Vector, w: Vector, **limits: Any) -> Epochs:
        """Dual coordinate descent, in place: see `metrimax.protocols.RowDesign`."""
        return self._with_rows().dual_epochs(hinges, upper, alpha, w, bias=self.value, **limits)

    def _with_rows(self) -> RowDesign:
        if not hasattr(self.design, "dual_epochs"):
            raise TypeError(
                f"dual coordinate descent needs the rows of X, which {type(self.design).__name__} does not give: "
                "pass X as an array or a sparse matrix, or use another solver"
            )
        return cast(RowDesign, self.design)


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
