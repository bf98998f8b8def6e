"""Dense and CSR matrices as designs, on the compiled products."""

from __future__ import annotations

import math
import os
import sys
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax._validation import check_whole
from metrimax.protocols import Epochs, Hinges, Product, Rows, Vector, Working


def available_threads(n_threads: int | None) -> int:
    """``n_threads`` itself, or for None the number of cores this process may use.

    That is no more than OMP_NUM_THREADS, by which joblib's workers are told their share, and batch systems their jobs.
    """
    if n_threads is None:
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
        share = os.environ.get("OMP_NUM_THREADS", "")
        return min(cores, int(share)) if share.isdecimal() and int(share) > 0 else cores
    check_whole("n_threads", n_threads, ", or None for all cores")
    return int(n_threads)


def aligned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, or a copy where its entries do not lie at multiples of their size, as in some mapped files."""
    return array if array.flags.aligned else array.copy(order="K")


def is_sparse(X: Any) -> bool:
    """Whether X is a matrix or an array of SciPy's."""
    # importing SciPy takes longer than many a fit: where X is one of its matrices, someone has imported it already
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def columns(name: str, v: npt.ArrayLike, length: int) -> Vector:
    """One vector (length,) or several side by side (length, L), as the kernels want them: float64, C-order."""
    v = np.asarray(v)
    if v.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {v.dtype}")
    if v.ndim not in (1, 2) or v.shape[0] != length:
        raise ValueError(f"{name} must have shape ({length},) or ({length}, L), got {v.shape}")
    return aligned(np.ascontiguousarray(v, dtype=np.float64))


def every_row(n: int) -> Working:
    """All rows, for coordinate descent that is not told which to visit."""
    return Working(np.arange(n, dtype=np.int64), -np.inf, np.inf, 0.0)


class MatrixRows:
    """The rows of a matrix in memory (`protocols.RowAccess`); with a ``bias``, and one more feature of that value."""

    def __init__(self, matrix: _Matrix, bias: float = 0.0) -> None:
        self._matrix, self._bias = matrix, bias
        self._squares: Vector | None = None

    def with_constant(self, value: float) -> MatrixRows:
        return MatrixRows(self._matrix, value)

    def products(self, product: Product, vectors: list[Vector]) -> list[Vector]:
        return self._matrix._products(product == "pull", vectors, self._bias)

    def some(self, rows: Rows) -> tuple[MatrixRows, Rows]:
        matrix, features = self._matrix._some(rows)
        if self._bias:
            features = np.append(features, self._matrix.shape[1])
        return MatrixRows(matrix, self._bias), features

    @property
    def in_order(self) -> bool:
        return self._matrix._in_order

    def squares(self) -> Vector:
        if self._squares is None:
            self._squares = self._matrix._row_squares(self._bias)
        return self._squares

    def mean_square(self) -> float:
        return self._matrix._mean_square + self._bias**2

    def square(self, w: Vector, slope: Vector, scores: Vector) -> float:
        return _kernels.dot(w, w)

    def dual_epochs(
        self,
        hinges: Hinges,
        upper: Vector,
        alpha: Vector,
        w: Vector,
        *,
        tol: float,
        max_passes: float,
        gap: float = -np.inf,
        working: Working | None = None,
    ) -> Epochs:
        n = self._matrix.shape[0]
        again = working is None  # rows that are set aside on the way are looked at again in the end
        visited = working or every_row(n)
        sum_of_hinges = _kernels.HingeSum(squares=self.squares(), sign=hinges.sign, margin=hinges.margin, upper=upper)
        visits, reached, gap, count, *limits = _kernels.dual_cd(
            self._matrix._by_rows, self._bias, sum_of_hinges, alpha, w, visited,
            again=again, tol=tol, gap=gap, max_visits=math.ceil(max_passes * n),
        )  # fmt: skip
        return Epochs(visits / n, reached, gap, Working(visited.rows[:count], *limits))  # those left are at the front

    def pair_epochs(
        self, hinges: Hinges, alpha: Vector, w: Vector, working: npt.NDArray[np.int64], *, tol: float, max_passes: float
    ) -> float:
        n = self._matrix.shape[0]
        sign, margin, upper = hinges
        squares = self.squares() - self._bias**2
        sum_of_hinges = _kernels.HingeSum(squares=squares, sign=sign, margin=margin, upper=upper)
        visits, _, _ = _kernels.pair_cd(
            self._matrix._by_rows, sum_of_hinges, alpha, w, working, tol=tol, max_visits=math.ceil(max_passes * n)
        )
        return float(visits / n)


class _Matrix:
    """What matrices in memory share. A subclass says which arrays the kernels read."""

    n_threads: int
    _in_order = True

    @property
    def shape(self) -> tuple[int, int]:
        raise NotImplementedError

    @cached_property
    def _compiled(self) -> _kernels.Matrix:
        """The matrix as the kernels have it."""
        raise NotImplementedError

    @property
    def _by_rows(self) -> _kernels.Matrix:
        """The same with every row in one piece."""
        return self._compiled

    def _some(self, rows: Rows) -> tuple[_Matrix, Rows]:
        """A copy of some rows, and the features that it has."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """Without the records of the kernels, which are made anew."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_compiled", "_by_rows")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrays that came over a wire may lie at any address; the kernels want them aligned."""
        arrays = {name: aligned(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        self.__dict__.update(state | arrays)

    @cached_property
    def rows(self) -> MatrixRows:
        """The rows, for coordinate descent."""
        return MatrixRows(self)

    def matvec(self, w: Vector) -> Vector:
        """``X w``."""
        return self._product(False, columns("w", w, self.shape[1]))

    def rmatvec(self, slope: Vector) -> Vector:
        """``X' slope``; rows where the slope is zero are not read."""
        return self._product(True, columns("slope", slope, self.shape[0]))

    def _product(self, pull: bool, v: Vector) -> Vector:
        return self._products(pull, [v], 0.0)[0] if v.ndim == 1 else self._compiled.columns(pull, v, self.n_threads)

    def _products(self, pull: bool, vectors: list[Vector], bias: float) -> list[Vector]:
        """The product with each of the vectors, with a feature of value ``bias`` at the end of each row."""
        return self._compiled.products(pull, vectors, bias, self.n_threads)

    def _row_squares(self, bias: float) -> Vector:
        return _kernels.row_squares(self._compiled, bias)

    @cached_property
    def _mean_square(self) -> float:
        """Of the rows without the constant feature."""
        return float(self._row_squares(0.0).mean())


class Dense(_Matrix):
    """A dense matrix, float32 or float64, in C or Fortran order.

    Parameters
    ----------
    X : ndarray (n, p)
        Kept, not copied, unless its entries are not aligned.
    n_threads : int or None
        The most threads a product may use; None for all cores. Small products stay in one thread.

    Notes
    -----
    A product costs n p multiply-adds, done in double precision whatever the dtype of X. A matrix in Fortran order
    is the transpose of one in C order, so the same kernels serve both, with their roles swapped.

    Examples
    --------
    >>> import numpy as np
    >>> X = Dense(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> X.matvec(np.array([1.0, -1.0]))
    array([-1., -1.])
    >>> X.rmatvec(np.array([1.0, 0.0]))
    array([1., 2.])
    """

    kept = 1.0  #: the share of a kernel that these columns keep; below 1 for some approximations

    def __init__(self, X: npt.NDArray[Any], n_threads: int | None = None) -> None:
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}")
        if X.dtype not in (np.float32, np.float64):
            raise TypeError(f"X must be float32 or float64, got {X.dtype}: convert it, or use as_design")
        if not (X.flags.c_contiguous or X.flags.f_contiguous):
            raise ValueError("X must be contiguous, in C or Fortran order: copy it, or use as_design")
        self.X = aligned(X)
        self.n_threads = available_threads(n_threads)

    @cached_property
    def _compiled(self) -> _kernels.Matrix:
        return _kernels.dense_matrix(self.X) if self._in_order else _kernels.dense_matrix(self.X.T, fortran=True)

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.X.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.X.dtype

    @property
    def _in_order(self) -> bool:  # type: ignore[override]
        """Whether the order is C: Fortran order costs a copy, once, where rows are asked for."""
        return self.X.flags.c_contiguous

    def _row_squares(self, bias: float) -> Vector:
        if self._in_order:
            return super()._row_squares(bias)
        squares: Vector = np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)
        squares += bias**2
        return squares

    @cached_property
    def _by_rows(self) -> _kernels.Matrix:
        return self._compiled if self._in_order else _kernels.dense_matrix(np.ascontiguousarray(self.X))

    def _some(self, rows: Rows) -> tuple[Dense, Rows]:
        return Dense(np.ascontiguousarray(self.X[rows]), self.n_threads), np.arange(self.shape[1])


class CSR(_Matrix):
    """A sparse matrix in compressed rows, float32 or float64, with int32 or int64 indices.

    Parameters
    ----------
    data, indices, indptr : ndarray
        As in SciPy; indices and indptr of one integer type. Kept, not copied. Unsorted or repeated column indices
        within a row are fine: a product sums over them.
    n_cols : int
        The number of columns p.
    n_threads : int or None
        The most threads a product may use; None for all cores. Small products stay in one thread.
    check : bool
        False only for arrays that have passed the check before and cannot have changed since.

    Notes
    -----
    The structure is checked once, here: a bad index raises ValueError and can never be read or written.
    Changing the arrays afterwards is not allowed. A product costs one multiply-add per non-zero.

    Examples
    --------
    >>> import numpy as np
    >>> X = CSR(np.array([1.0, 2.0]), np.array([2, 0], np.int32), np.array([0, 1, 2], np.int32), n_cols=3)
    >>> X.matvec(np.array([1.0, 10.0, 100.0]))
    array([100.,   2.])
    """

    def __init__(
        self,
        data: npt.NDArray[Any],
        indices: npt.NDArray[Any],
        indptr: npt.NDArray[Any],
        n_cols: int,
        n_threads: int | None = None,
        *,
        check: bool = True,
    ) -> None:
        if data.dtype not in (np.float32, np.float64):
            raise TypeError(f"data must be float32 or float64, got {data.dtype}: convert it, or use as_design")
        if indices.dtype != indptr.dtype or indices.dtype not in (np.int32, np.int64):
            raise TypeError(
                "indices and indptr must both be int32 or both int64, "
                f"got {indices.dtype} and {indptr.dtype}: convert them, or use as_design"
            )
        if data.shape != indices.shape:
            raise ValueError(f"data and indices must have the same length, got {data.shape} and {indices.shape}")
        self.data, self.indices, self.indptr = aligned(data), aligned(indices), aligned(indptr)
        self.n_cols = int(n_cols)
        self.n_threads = available_threads(n_threads)
        self._compiled = _kernels.csr_matrix(self.data, self.indices, self.indptr, self.n_cols, trusted=not check)

    @cached_property
    def _compiled(self) -> _kernels.Matrix:
        return _kernels.csr_matrix(self.data, self.indices, self.indptr, self.n_cols)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.n_cols

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @cached_property
    def _mean_square(self) -> float:
        """From all entries at once, in a fraction of the time; those of a repeated column are taken one by one."""
        data = self.data
        total = _kernels.dot(data, data) if data.dtype == np.float64 else np.einsum("i,i->", data, data, dtype=float)
        return float(total) / self.shape[0]

    def _some(self, rows: Rows) -> tuple[_SomeRows, Rows]:
        compiled, features = self._compiled.some(rows)
        return _SomeRows(compiled, self.n_threads), features


class _SomeRows(_Matrix):
    """Some rows of a CSR matrix, which the kernels alone have."""

    def __init__(self, compiled: _kernels.Matrix, n_threads: int) -> None:
        self._compiled, self.n_threads = compiled, n_threads

    @property
    def shape(self) -> tuple[int, int]:
        return self._compiled.shape
