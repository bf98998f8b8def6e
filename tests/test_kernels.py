"""Input that is wrong or hostile: nothing is converted silently, and nothing out of bounds is touched."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from metrimax import _kernels
from metrimax.designs import CSR, Dense, as_design

# --- hostile CSR structures


HOSTILE = {
    "indptr starts late": ([0, 1], [1, 2], 3, "start at 0, got 1"),
    "indptr starts below zero": ([0, 1], [-1, 2], 3, "start at 0, got -1"),
    "indptr decreases": ([0, 1], [0, 2, 1, 2], 3, "not decrease.*after row 1"),
    "indptr leaps and returns": ([0, 1], [0, 99, 2], 3, "not decrease.*after row 1"),
    "indptr ends early": ([0, 1], [0, 1], 3, "end at the number of non-zeros 2, got 1"),
    "indptr ends late": ([0, 1], [0, 9], 3, "end at the number of non-zeros 2, got 9"),
    "indptr is empty": ([], [], 3, "at least one entry"),
    "negative index": ([0, -1], [0, 2], 3, "column index -1 is outside"),
    "index out of range": ([0, 3], [0, 2], 3, "column index 3 is outside"),
    "no columns": ([0], [0, 1], 0, "column index 0 is outside"),
}


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_csr(case, index):
    indices, indptr, n_cols, message = HOSTILE[case]
    indices, indptr = np.array(indices, dtype=index), np.array(indptr, dtype=index)
    with pytest.raises(ValueError, match=message):
        CSR(np.ones(len(indices)), indices, indptr, n_cols)
    if case not in ("indptr is empty", "indptr ends early"):  # SciPy allows room behind the last entry
        X = sparse.csr_array((len(indptr) - 1, n_cols))
        X.data, X.indices, X.indptr = np.ones(len(indices)), indices, indptr
        with pytest.raises(ValueError, match=r"bad CSR|same length"):
            as_design(X)


@settings(deadline=None, max_examples=200)
@given(
    indices=st.lists(st.integers(-2, 4), max_size=5),
    indptr=st.lists(st.integers(-1, 6), max_size=5),
    n_cols=st.integers(0, 4),
)
def test_csr_check_accepts_the_sound_and_only_the_sound(indices, indptr, n_cols):
    arrays = np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)
    if reference.csr_is_sound(indices, indptr, n_cols):
        _kernels.csr_matrix(np.ones(len(indices)), *arrays, n_cols)
    else:
        with pytest.raises(ValueError, match="bad CSR"):
            _kernels.csr_matrix(np.ones(len(indices)), *arrays, n_cols)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n_cols", [1, 1000, 2**31 - 1, 2**31, 2**40])
def test_one_bad_index_among_many_is_found(index, n_cols):
    """The indices are looked at many at a time."""
    most = np.iinfo(index).max
    indptr, sound = np.array([0, 1003], dtype=index), np.zeros(1003, dtype=index)
    sound[500] = min(n_cols - 1, most)
    _kernels.csr_matrix(np.ones(1003), sound, indptr, n_cols)
    for at in (0, 517, 999, 1002):
        for bad in (-1, -most - 1, n_cols, most):
            if bad <= most and not 0 <= bad < n_cols:
                indices = sound.copy()
                indices[at] = bad
                with pytest.raises(ValueError, match=f"column index {bad} is outside"):
                    _kernels.csr_matrix(np.ones(1003), indices, indptr, n_cols)


def test_int64_overflow_is_caught():
    big = np.array([0, 2**62], dtype=np.int64)
    with pytest.raises(ValueError, match="end at"):
        CSR(np.ones(1), np.zeros(1, dtype=np.int64), big, 3)


@pytest.mark.parametrize(
    ("data", "indices", "indptr", "error"),
    [
        (np.ones(2, dtype=int), np.zeros(2, np.int32), np.array([0, 2], np.int32), TypeError),
        (np.ones(2), np.zeros(2, np.int32), np.array([0, 2], np.int64), TypeError),
        (np.ones(2), np.zeros(2, np.int16), np.array([0, 2], np.int16), TypeError),
        (np.ones(3), np.zeros(2, np.int32), np.array([0, 2], np.int32), ValueError),
    ],
)
def test_csr_of_the_wrong_types(data, indices, indptr, error):
    with pytest.raises(error, match="must"):
        CSR(data, indices, indptr, 3)


@pytest.mark.parametrize(
    ("X", "error"), [(np.ones(3), ValueError), (np.ones((2, 2), int), TypeError), (np.eye(4)[::2, ::2], ValueError)]
)
def test_dense_of_the_wrong_types(X, error):
    with pytest.raises(error, match="must"):
        Dense(X)


# --- the kernels themselves: no silent conversion


def kernel_calls():
    X = np.eye(3)
    S = sparse.csr_array(X)  # int32 indices
    w, V = np.ones(3), np.ones((3, 2))
    matrices = {"dense": _kernels.dense_matrix(X), "csr": _kernels.csr_matrix(S.data, S.indices, S.indptr, 3)}
    calls = {
        "dense_matrix": (_kernels.dense_matrix, [X, False]),
        "csr_matrix": (_kernels.csr_matrix, [S.data, S.indices, S.indptr, 3]),
    }
    for kind, matrix in matrices.items():
        for pull in (False, True):
            calls[f"{kind} columns {pull}"] = matrix.columns, [pull, V, 1]
            calls[f"{kind} products {pull}"] = matrix.products, [pull, [w], 0.0, 1]
    return calls


def changed(arg, change):
    """An array, or that in a list of one, after a change."""
    return [change(arg[0])] if isinstance(arg, list) else change(arg)


SPOILS = {
    "complex": lambda a: a.astype(complex),
    "int16": lambda a: a.astype(np.int16),
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
    "extra dimension": lambda a: a[None],
    "list": lambda a: a.tolist(),
    "None": lambda a: None,
}


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("name", list(kernel_calls()))
def test_kernels_convert_nothing(name, spoil):
    kernel, args = kernel_calls()[name]
    kernel(*args)
    for k, arg in enumerate(args):
        if isinstance(arg, (np.ndarray, list)):
            with pytest.raises(TypeError, match="incompatible function arguments"):
                kernel(*args[:k], changed(arg, SPOILS[spoil]), *args[k + 1 :])


def test_rows_read_are_those_where_any_slope_is_not_zero():
    slopes = list(np.array([[0.0, 1.0, 0.0, -2.0, -0.0], [0.0, 0.0, 3.0, 1e-300, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]]))
    assert [_kernels.rows_read(slopes[:k]) for k in (1, 2, 3)] == [0.4, 0.6, 0.8]
    assert _kernels.rows_read([np.empty(0)]) == 0
    with pytest.raises(ValueError, match="rows_read: expected at least one vector, got none"):
        _kernels.rows_read([])
    with pytest.raises(ValueError, match="rows_read: expected length 5, got 4"):
        _kernels.rows_read([np.zeros(5), np.zeros(4)])


def test_combine_sums_vectors_each_times_its_share():
    u, v = np.arange(5.0), np.ones(5)
    np.testing.assert_allclose(_kernels.combine([2.0, -1.0], [u, v]), 2 * u - v)


@pytest.mark.parametrize(
    ("shares", "vectors", "message"),
    [
        ([], [], "combine: expected at least one vector, got none"),
        ([1.0, 2.0], [np.ones(3)], "combine: expected length 2, got 1"),
        ([1.0, 2.0], [np.ones(3), np.ones(4)], "combine: expected length 3, got 4"),
    ],
)
def test_combine_says_what_does_not_fit(shares, vectors, message):
    with pytest.raises(ValueError, match=message):
        _kernels.combine(shares, vectors)
