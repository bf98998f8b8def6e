"""Kernels as designs: the weights are coefficients over examples.

With ``w = sum_j beta_j phi(x_j)`` the scores are ``K beta`` and the pull-back of a slope is the slope itself. Solvers
take inner products as ``<X'c, w> = c.(X w)`` where there are no more examples than weights, so they need no change.
Where the Gram matrix K is too large to keep, a few examples span the map instead (Nystroem), and a product costs n m.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack, solve_triangular

from metrimax._validation import check_positive, check_whole, dense, is_number, is_whole
from metrimax.designs.definite import check_definite
from metrimax.designs.gram_rows import GramRows
from metrimax.designs.linear import Dense, columns, is_sparse
from metrimax.protocols import Array, Vector

KERNELS = ("rbf", "poly", "laplacian", "inverse_distance", "inverse_squared_distance")

BLOCK = 2**22
"""Kernel values computed at a time, so that temporary arrays stay small beside the result."""

MOST_COMPONENTS = 1000
"""Size of the basis of a low-rank map unless the caller says otherwise or the memory allows less.

On a hold-out of IJCNN1 twice as many gain nothing, nor does choosing them by k-means++ (docs/results/capo.md)."""


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters: ``kernel(X, Y)`` is the matrix of its values between rows.

    ======================== =========================================
    rbf                      exp(-gamma d^2), d the Euclidean distance
    poly                     (gamma x.y + coef0)^degree
    laplacian                exp(-sqrt(gamma) d)
    inverse_distance         1 / (sqrt(gamma) d + 1)
    inverse_squared_distance 1 / (gamma d^2 + 1)
    a function               its own values, as an array (rows of X, rows of Y)
    ======================== =========================================

    References
    ----------
    Li, Tsang & Zhou (2013), section 5.3.

    Examples
    --------
    >>> import numpy as np
    >>> Kernel("inverse_squared_distance", gamma=1.0)(np.array([[0.0]]), np.array([[0.0], [3.0]]))
    array([[1. , 0.1]])
    """

    name: str | Callable[..., Any]
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if not callable(self.name) and self.name not in KERNELS:
            raise ValueError(
                f"unknown kernel {self.name!r}: expected linear, {', '.join(KERNELS)}, precomputed or a function"
            )
        check_whole("degree", self.degree)
        if not (is_number(self.coef0) and np.isfinite(self.coef0)):
            raise ValueError(f"expected coef0 as a finite number, got {self.coef0!r}")
        check_positive("gamma", self.gamma)

    @property
    def definite(self) -> bool:
        """Whether it is known to be positive semidefinite."""
        return not callable(self.name) and (self.name != "poly" or self.coef0 >= 0)

    @property
    def falls(self) -> bool:
        """Whether it is a function of the distance, and falls with it."""
        return not callable(self.name) and self.name != "poly"

    def __call__(self, X: Any, Y: Any) -> Vector:
        if callable(self.name):
            values = np.asarray(self.name(X, Y), dtype=np.float64)
            if values.shape != (X.shape[0], Y.shape[0]):
                raise ValueError(
                    f"the kernel must return an array of shape {(X.shape[0], Y.shape[0])}, got {values.shape}"
                )
            return values
        if self.name == "poly":
            return _power(self.gamma * _products(X, Y) + self.coef0, self.degree)
        values = _squared_distances(X, Y)
        values *= self.gamma
        if self.name in ("laplacian", "inverse_distance"):
            np.sqrt(values, out=values)
        if self.name in ("rbf", "laplacian"):
            return np.exp(np.negative(values, out=values), out=values)
        values += 1
        return np.divide(1.0, values, out=values)

    def diagonal(self, X: Any) -> Vector:
        """``kernel(x, x)`` of every row."""
        if callable(self.name):
            return np.concatenate([self(X[i : i + 1], X[i : i + 1])[0] for i in range(X.shape[0])])
        if self.name == "poly":
            return _power(self.gamma * squares(X) + self.coef0, self.degree)
        return np.ones(X.shape[0])


def _power(values: Vector, degree: int) -> Vector:
    result = values.copy()
    for _ in range(degree - 1):  # far faster than a general power
        result *= values
    return result


def _products(X: Any, Y: Any) -> Vector:
    return np.asarray(dense(X @ Y.T), dtype=np.float64)


def _squared_distances(X: Any, Y: Any) -> Vector:
    """``|x|^2 - 2 x.y + |y|^2``, in double precision and about the mean of Y, because large terms cancel.

    Some features at a time, or of sparse Y some rows, so that there is no copy of all of Y in this precision.
    """
    values = np.zeros((X.shape[0], Y.shape[0]))
    if is_sparse(X) or is_sparse(Y):  # these stay about zero
        A = X.astype(np.float64, copy=False)
        for rows in _blocks(Y.shape[0], _width(Y)):
            _add_squared_distances(values[:, rows], A, Y[rows].astype(np.float64, copy=False))
    else:
        centre = Y.sum(axis=0, dtype=np.float64) / max(1, Y.shape[0])
        for some in _blocks(X.shape[1], max(values.shape)):
            _add_squared_distances(values, X[:, some] - centre[some], Y[:, some] - centre[some])
    return np.maximum(values, 0.0, out=values)  # rounding may make a distance negative


def _add_squared_distances(values: Vector, A: Any, B: Any) -> None:
    products = _products(A, B)
    products *= -2
    values += products
    values += squares(A)[:, None]
    values += squares(B)


def squares(X: Any) -> Vector:
    """Squared length of every row, dense or sparse."""
    product = X.multiply(X).sum(axis=1) if is_sparse(X) else np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return np.asarray(product, dtype=np.float64).ravel()


def choose_gamma(gamma: float | str, X: Any) -> float:
    """The number that ``gamma`` stands for on X.

    "scale" is scikit-learn's ``1 / (p var)`` over all entries of X; "mean_distance" is the inverse of the mean squared
    distance between two examples, ``1 / (2 sum of the variances of the features)`` (Li, Tsang & Zhou 2013).
    """
    if is_number(gamma):
        return float(gamma)
    if gamma not in ("scale", "mean_distance"):
        raise ValueError(f"expected gamma as a number, 'scale' or 'mean_distance', got {gamma!r}")
    n, p = X.shape
    centre = np.zeros(p) if is_sparse(X) else X.mean(axis=0, dtype=np.float64)
    if gamma == "scale":
        centre[:] = centre.mean()
    square, total = 0.0, np.zeros(p)
    for rows in _blocks(n, _width(X)):
        part = X[rows].astype(np.float64) if is_sparse(X) else X[rows] - centre
        square += float(squares(part).sum())
        total += np.asarray(part.sum(axis=0)).ravel()
    mean_square, mean = square / n, total / n
    spread = mean_square - p * float(mean.mean() ** 2) if gamma == "scale" else 2 * (mean_square - float(mean @ mean))
    return 1 / spread if spread > 1e-12 * mean_square else 1.0


@dataclass(frozen=True)
class Expansion:
    """A classifier as a sum over examples: ``score(x) = sum_j coefficients[j] K(x, basis[j])``.

    ``support`` are the positions of the basis in the training set. Without a kernel the values are precomputed: x is
    the row ``K(x, training set)``.
    """

    kernel: Kernel | None
    support: npt.NDArray[np.intp]
    basis: Any
    coefficients: Vector

    @classmethod
    def of(cls, kernel: Kernel | None, X: Any, support: npt.NDArray[np.intp], coefficients: Vector) -> Expansion:
        """Over those examples ``support`` of X whose coefficient is not zero throughout."""
        used = np.flatnonzero(coefficients.any(axis=tuple(range(1, coefficients.ndim))))
        support = support[used]
        return cls(kernel, support, None if kernel is None else X[support], coefficients[used])

    def scores(self, X: Any) -> Vector:
        """The scores of new examples, block by block: the matrix of kernel values is never whole in memory."""
        scores = np.empty((X.shape[0], *self.coefficients.shape[1:]))
        for rows in _blocks(X.shape[0], len(self.support)):
            values = X[rows][:, self.support] if self.kernel is None else self.kernel(X[rows], self.basis)
            scores[rows] = values @ self.coefficients
        return scores


class Gram:
    """The exact kernel: the n x n matrix, kept.

    Parameters
    ----------
    K : ndarray (n, n)
        Symmetric (`check_symmetric`) and positive semidefinite; kept, not copied.
    kernel, X
        Where K comes from: K = kernel(X, X); None for a matrix that was given.
    n_threads : int or None
        The most threads a product may use.

    Notes
    -----
    A product costs one multiply-add per entry in the columns where the vector is not zero.

    Examples
    --------
    >>> import numpy as np
    >>> design = Gram(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> design.matvec(np.array([1.0, -1.0]))
    array([ 1., -1.])
    """

    kept = 1.0

    def __init__(self, K: Array, kernel: Kernel | None = None, X: Any = None, n_threads: int | None = None) -> None:
        self._K = Dense(K, n_threads)
        self._kernel, self._X = kernel, X
        self._rounding = 8 * np.finfo(K.dtype).eps * float(np.abs(K.diagonal()).max(initial=0.0))
        if kernel is None or not kernel.definite:
            check_definite(self._K)

    @property
    def shape(self) -> tuple[int, int]:
        return self._K.shape

    def matvec(self, w: Vector) -> Vector:
        """``K w``, as ``K' w``: rows of K where w is zero are not read."""
        scores = self._K.rmatvec(w)
        square, scale = np.sum(w * scores, axis=0), np.sum(np.abs(w * scores), axis=0)
        lost = self._rounding * np.sum(np.abs(w), axis=0) ** 2  # all that is left, where K w is zero but for rounding
        if np.any(square < -1e-6 * scale - lost):
            raise ValueError(
                f"the kernel must be positive semidefinite, but w'Kw = {np.min(square):.3g} for one w: "
                "use another kernel, or other parameters"
            )
        return scores

    def rmatvec(self, slope: Vector) -> Vector:
        """The slope itself: ``sum_i slope_i phi(x_i)``."""
        return columns("slope", slope, self.shape[0])

    @property
    def values(self) -> Array:
        """K itself."""
        return self._K.X

    @cached_property
    def rows(self) -> GramRows:
        """The kernel's values as what coordinate descent needs of rows."""
        return GramRows(self._K, self.matvec)

    def expansion(self, W: Vector) -> Expansion:
        """The classifier with the weights W, (n,) or (n, L)."""
        return Expansion.of(self._kernel, self._X, np.arange(self.shape[0]), W)


class LowRank(Dense):
    """The Nystroem map of a kernel: features ``L^-1 K(basis, x)`` with ``L L' = K(basis, basis)``.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix (n, p)
    basis : ndarray of int
        Examples that span the map. Those that depend on the others (to 1e-9 of the largest diagonal entry) are left
        out.
    dtype : numpy type
        Of the features.
    n_threads : int or None

    Attributes
    ----------
    support : ndarray of int
        The examples of the basis that are used, m of them.
    kept : float
        Share of the kernel's trace that the map keeps, 1 where it is exact on the sample.

    Notes
    -----
    O(n m p + n m^2) time and n m numbers of memory; each product then costs n m.

    References
    ----------
    Williams & Seeger (2001), Using the Nystroem method to speed up kernel machines, NIPS.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        basis: npt.NDArray[np.intp],
        dtype: npt.DTypeLike = np.float64,
        n_threads: int | None = None,
    ) -> None:
        gram = kernel(X[basis], X[basis])
        factor, order, rank, _ = lapack.dpstrf(gram, tol=1e-9 * float(np.diagonal(gram).max()), lower=1)
        self.support = basis[order[:rank] - 1]
        self._factor = np.tril(factor[:rank, :rank])
        self._kernel, self._X = kernel, X
        vectors = X[self.support]
        features = np.empty((X.shape[0], rank), dtype=dtype)
        for rows in _blocks(X.shape[0], rank):
            features[rows] = self._solved(kernel(X[rows], vectors).T).T
        super().__init__(features, n_threads)
        trace = float(kernel.diagonal(X).sum())
        self.kept = min(1.0, float(squares(features).sum()) / trace) if trace > 0 else 1.0

    def expansion(self, W: Vector) -> Expansion:
        """The classifier with the weights W, (m,) or (m, L)."""
        return Expansion.of(self._kernel, self._X, self.support, self._solved(W, "T"))

    def _solved(self, right: Vector, trans: str = "N") -> Vector:
        """The solution of a system with the factor, or its transpose; SciPy before 1.14 refuses one of rank 0."""
        if len(self._factor) == 0:
            return right
        solution: Vector = solve_triangular(self._factor, right, lower=True, trans=trans)
        return solution


def kernel_design(
    kernel: Kernel,
    X: Any,
    *,
    cache_size: float = 1000.0,
    n_components: int | None = None,
    seed: int | None = None,
    n_threads: int | None = None,
) -> Gram | LowRank:
    """The exact design while its Gram matrix fits into ``cache_size`` megabytes, else a low-rank one.

    ``n_components`` random examples span the low-rank map; given, it is used even where the Gram matrix would fit
    (unless there are no more examples than that), and None means as many as fit, at most `MOST_COMPONENTS`.
    """
    n, dtype = X.shape[0], _dtype(X)
    size = basis_size(X, cache_size, n_components)
    if size < n:
        basis = np.random.default_rng(seed).choice(n, size, replace=False)
        return LowRank(kernel, X, basis, dtype, n_threads)
    K = np.empty((n, n), dtype=dtype)
    for rows in _blocks(n, n):
        K[rows] = kernel(X[rows], X)
    return Gram(check_symmetric(K) if callable(kernel.name) else K, kernel, X, n_threads)


def basis_size(X: Any, cache_size: float, n_components: int | None) -> int:
    """How many examples span the features of `kernel_design`; at least n where it keeps the Gram matrix instead."""
    n = X.shape[0]
    if n_components is not None and not is_whole(n_components):
        raise ValueError(f"expected n_components as a whole number or None, got {n_components!r}")
    if not (is_number(cache_size) and cache_size >= 0):
        raise ValueError(f"expected cache_size as a number of megabytes, got {cache_size!r}")
    room = cache_size * 2**20 / (n * _dtype(X).itemsize)  # columns of n values
    size = n_components if n_components is not None else n if n <= room else min(MOST_COMPONENTS, int(room))
    if size < 1:
        raise ValueError(
            f"expected n_components of at least 1 and room for a column of {n} kernel values, "
            f"got n_components={n_components}, cache_size={cache_size} (megabytes)"
        )
    return size


def _dtype(X: Any) -> np.dtype[Any]:
    """The type of the kernel's values."""
    return np.dtype(np.float32 if X.dtype == np.float32 else np.float64)


def check_symmetric(K: Array) -> Array:
    """K itself if it may be a kernel matrix: square and symmetric."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"expected the kernel of the training examples as a square matrix, got shape {K.shape}")
    scale = max(float(np.abs(K).max(initial=0.0)), np.finfo(float).tiny)
    for rows in _blocks(len(K), len(K)):
        apart = float(np.abs(K[rows] - K[:, rows].T).max())
        if not apart <= 1e-5 * scale:
            raise ValueError(
                f"expected a symmetric kernel matrix, got entries (i, j) and (j, i) that differ by {apart:.3g}"
            )
    return K


def _width(X: Any) -> int:
    """How many numbers a row holds."""
    return int(1 + X.nnz // max(1, X.shape[0]) if is_sparse(X) else X.shape[1])


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // max(1, width))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))
