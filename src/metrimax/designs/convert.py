"""``as_design``: the one place in the library that looks at the type of X."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from metrimax.designs.linear import CSR, Dense, is_sparse
from metrimax.designs.wrappers import Foreign, WithIntercept
from metrimax.protocols import Design, Multiplies


def as_design(X: Any, *, intercept_scaling: float | None = None, n_threads: int | None = None) -> Design:
    """Return X as a design.

    Parameters
    ----------
    X : ndarray, SciPy sparse matrix or array, a design, dask.array, dask.dataframe, or list of Dask futures
        float32 and float64 are kept, other real types become float64. Dense arrays in C or Fortran order are used
        without a copy, as are CSR matrices; other layouts are copied. A design is used as it is. The partitions of
        Dask stay on its workers.
    intercept_scaling : float or None
        The value of a constant feature to append as the last column; None for no intercept.
    n_threads : int or None
        The most threads a product may use; None for all cores available to the process.

    Returns
    -------
    Design
        With ``shape``, ``matvec`` and ``rmatvec``.

    Examples
    --------
    >>> import numpy as np
    >>> as_design(np.eye(3), intercept_scaling=1.0).shape
    (3, 4)
    """
    design: Design
    if is_sparse(X):
        design = _from_sparse(X, n_threads)
    elif isinstance(X, np.ndarray):
        design = _from_dense(X, n_threads)
    elif isinstance(X, Design):
        design = X
    elif isinstance(X, Multiplies):
        design = Foreign(X)
    elif is_design(X):
        from metrimax.designs.dask import DaskDesign

        design = DaskDesign(X)
    else:
        raise TypeError(
            "X must be a NumPy array, a SciPy sparse matrix or array, or a design (shape, matvec, rmatvec), "
            f"got {type(X).__name__}: convert it first, for instance with numpy.asarray"
        )
    return design if intercept_scaling is None else WithIntercept(design, intercept_scaling)


def is_design(X: Any) -> bool:
    """Whether X is a design or a Dask collection, so that its entries cannot be inspected as those of a matrix."""
    if isinstance(X, Multiplies):
        return True
    if "dask" not in sys.modules:  # where X comes from Dask, someone has imported it
        return False
    from metrimax.designs.dask import is_remote

    return is_remote(X)


def _from_dense(X: npt.NDArray[Any], n_threads: int | None) -> Dense:
    X = _real(np.asarray(X))  # asarray: subclasses such as numpy.matrix multiply otherwise than arrays
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, (examples, features), got shape {X.shape}")
    if not X.flags.f_contiguous:
        X = np.ascontiguousarray(X)
    return Dense(X, n_threads)


def _from_sparse(X: Any, n_threads: int | None) -> CSR:
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, (examples, features), got shape {X.shape}")
    X = X.tocsr()
    nnz = int(X.indptr[-1])  # SciPy allows room behind the last entry
    data = np.ascontiguousarray(_real(X.data[:nnz]))
    indices, indptr = _one_index_type(X.indices[:nnz], X.indptr)
    return CSR(data, indices, indptr, X.shape[1], n_threads)


def _real(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """float32 and float64 as they are, other real numbers as float64."""
    if values.dtype in (np.float32, np.float64):
        return values
    if values.dtype.kind not in "fiubO":
        raise TypeError(f"X must hold real numbers, got dtype {values.dtype}")
    return values.astype(np.float64)


def _one_index_type(indices: npt.NDArray[Any], indptr: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Both arrays with one integer type: that of the indices if it is large enough."""
    small = indices.dtype == np.int32 and indptr[-1] <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64
    return np.ascontiguousarray(indices, dtype=kind), np.ascontiguousarray(indptr, dtype=kind)
