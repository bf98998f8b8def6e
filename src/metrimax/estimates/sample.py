"""A sample as the estimates see it: inner products between its examples, parts of it, and its design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metrimax._validation import dense
from metrimax.designs import as_design
from metrimax.designs.kernel import Gram, Kernel, squares
from metrimax.estimates import radius
from metrimax.estimates.radius import as_vector, largest_difference, linear_R2
from metrimax.protocols import Design, Vector


class Sample:
    """The examples ``X`` of a machine, in the space of its kernel."""

    X: Any

    def between(self, rows: Any, columns: Any) -> Vector:
        """The inner products of some examples with others; ``rows`` and ``columns`` are positions."""
        raise NotImplementedError

    def mixtures(self, columns: Any, shares: Vector) -> tuple[Vector, Vector]:
        """``sum over j of v_j K(x, x_j)`` of every example x, for each row v of ``shares``, and ``K(x, x)``."""
        n = self.X.shape[0]
        products, lengths = np.empty((n, len(shares))), np.empty(n)
        for start in range(0, n, 256):
            rows = np.arange(start, min(start + 256, n))
            products[rows] = self.between(rows, columns) @ shares.T
            lengths[rows] = self.between(rows, rows).diagonal()
        return products, lengths

    def radius(self) -> float:
        """An upper bound of ``K(x, x) - K(x, x')``: the largest itself for small samples."""
        raise NotImplementedError

    def part(self, rows: Any) -> Sample:
        """Some of the examples."""
        raise NotImplementedError

    def design(self, bias: float, n_threads: int | None = None) -> Design:
        """The examples as a design, with a constant feature unless ``bias`` is 0."""
        raise NotImplementedError


@dataclass
class LinearSample(Sample):
    """Examples whose inner products are those of the rows of X."""

    X: Any

    def between(self, rows: Any, columns: Any) -> Vector:
        products: Vector = dense(self.X[rows] @ self.X[columns].T)
        return products

    def mixtures(self, columns: Any, shares: Vector) -> tuple[Vector, Vector]:
        products: Vector = dense(self.X @ (self.X[columns].T @ shares.T))
        return products, squares(self.X)

    def radius(self) -> float:
        return linear_R2(self.X)

    def part(self, rows: Any) -> LinearSample:
        return LinearSample(self.X[rows])

    def design(self, bias: float, n_threads: int | None = None) -> Design:
        return as_design(self.X, intercept_scaling=bias or None, n_threads=n_threads)


@dataclass
class KernelSample(Sample):
    """Examples with a kernel."""

    X: Any
    kernel: Kernel

    def between(self, rows: Any, columns: Any) -> Vector:
        return self.kernel(self.X[rows], self.X[columns])

    def radius(self) -> float:
        if (
            self.kernel.falls and self.X.shape[0] > radius.EXACT
        ):  # no two examples are farther apart than the ranges allow
            low, high = (as_vector(f(axis=0))[np.newaxis] for f in (self.X.min, self.X.max))
            return float(self.kernel(low, low)[0, 0] - self.kernel(low, high)[0, 0])
        return largest_difference(self.X, lambda rows: self.kernel(rows, self.X))

    def part(self, rows: Any) -> KernelSample:
        return KernelSample(self.X[rows], self.kernel)

    def design(self, bias: float, n_threads: int | None = None) -> Design:
        gram = Gram(self.kernel(self.X, self.X), self.kernel, self.X, n_threads)
        return as_design(gram, intercept_scaling=bias or None)


@dataclass
class GramSample(Sample):
    """Examples that are known by the kernel's values alone: ``X`` holds these, (n, n)."""

    X: Any

    def between(self, rows: Any, columns: Any) -> Vector:
        values: Vector = np.asarray(self.X)[rows][:, columns]
        return values

    def radius(self) -> float:
        K = np.asarray(self.X)
        return float((K.diagonal() - K.min(axis=1)).max())

    def part(self, rows: Any) -> GramSample:
        return GramSample(np.ascontiguousarray(np.asarray(self.X)[np.ix_(rows, rows)]))

    def design(self, bias: float, n_threads: int | None = None) -> Design:
        return as_design(Gram(np.ascontiguousarray(self.X), n_threads=n_threads), intercept_scaling=bias or None)
