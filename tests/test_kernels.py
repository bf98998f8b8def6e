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
        _kernels.csr_check(*arrays, n_cols)
    else:
        with pytest.raises(ValueError, match="bad CSR"):
            _kernels.csr_check(*arrays, n_cols)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n_cols", [1, 1000, 2**31 - 1, 2**31, 2**40])
def test_one_bad_index_among_many_is_found(index, n_cols):
    """The indices are looked at many at a time."""
    most = np.iinfo(index).max
    indptr, sound = np.array([0, 1003], dtype=index), np.zeros(1003, dtype=index)
    sound[500] = min(n_cols - 1, most)
    _kernels.csr_check(sound, indptr, n_cols)
    for at in (0, 517, 999, 1002):
        for bad in (-1, -most - 1, n_cols, most):
            if bad <= most and not 0 <= bad < n_cols:
                indices = sound.copy()
                indices[at] = bad
                with pytest.raises(ValueError, match=f"column index {bad} is outside"):
                    _kernels.csr_check(indices, indptr, n_cols)


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
    calls = {"csr_check": [S.indices, S.indptr, 3]}
    for pull in (False, True):
        calls[f"dense_columns {pull}"] = [X, False, pull, V, 1]
        calls[f"csr_columns {pull}"] = [S.data, S.indices, S.indptr, 3, pull, V, 1]
        calls[f"dense_products {pull}"] = [X, False, pull, [w], 0.0, 1]
        calls[f"csr_products {pull}"] = [S.data, S.indices, S.indptr, 3, pull, [w], 0.0, 1]
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
@pytest.mark.parametrize("name", kernel_calls())
def test_kernels_convert_nothing(name, spoil):
    kernel, args = getattr(_kernels, name.split()[0]), kernel_calls()[name]
    kernel(*args)
    for k, arg in enumerate(args):
        if isinstance(arg, (np.ndarray, list)):
            with pytest.raises(TypeError, match="incompatible function arguments"):
                kernel(*args[:k], changed(arg, SPOILS[spoil]), *args[k + 1 :])


@pytest.mark.parametrize("name", kernel_calls())
def test_kernels_check_lengths(name):
    kernel, args = getattr(_kernels, name.split()[0]), kernel_calls()[name]
    data_and_vector = {"dense": [3], "csr": [0, 1, 5]}[name.split("_")[0]] if name != "csr_check" else []
    for k in data_and_vector:
        with pytest.raises(ValueError, match="expected length"):
            kernel(*args[:k], changed(args[k], lambda a: np.concatenate([a, a])), *args[k + 1 :])


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


# --- the searches of the oracles


def test_searches_refuse_other_dtypes_and_lengths():
    d, i = np.zeros(3), np.arange(3, dtype=np.uint32)
    with pytest.raises(TypeError):
        _kernels.collect(d.astype(np.float32), i, 1.0, 0.0, 1.0, d)
    with pytest.raises(TypeError):
        _kernels.collect(d, i.astype(np.int64), 1.0, 0.0, 1.0, d)
    with pytest.raises(TypeError):
        _kernels.collect(d, i, 1.0, 0.0, 1.0, np.zeros(3, dtype=np.float32))
    with pytest.raises(TypeError):
        _kernels.collect(np.zeros(6)[::2], i, 1.0, 0.0, 1.0, d)
    with pytest.raises(ValueError, match="shorter"):
        _kernels.collect(d, i, 1.0, 0.0, 1.0, np.zeros(2))
    with pytest.raises(ValueError, match="length"):
        _kernels.mark(d, i, 1.0, 1, 0.0, 1.0, np.zeros(2))
    with pytest.raises(TypeError):
        _kernels.mark(d, i, 1.0, 1, 0.0, 1.0, np.zeros(3, dtype=np.float32))
    with pytest.raises(ValueError, match="length"):
        _kernels.count_argmax(d, 0, 0.0, d, 0, 0.0, 1.0, 3, 0, np.zeros(7), np.zeros(6))
    with pytest.raises(ValueError, match="too short"):
        _kernels.monge_argmax("max", d, 0, 0.0, 1.0, d, 0, 0.0, 1.0, np.zeros(3), np.zeros(4))
    with pytest.raises(ValueError, match="too short"):
        _kernels.monge_argmax("max", d, 0, 0.0, 1.0, d, 1, 0.0, 1.0, np.zeros(4), np.zeros(4))
    with pytest.raises(ValueError, match="link"):
        _kernels.monge_argmax("sum", d, 0, 0.0, 1.0, d, 0, 0.0, 1.0, np.zeros(4), np.zeros(4))
    with pytest.raises(ValueError, match="length"):
        _kernels.count_bounds(np.zeros(7), np.zeros(6), 3, 3, 0)
    with pytest.raises(ValueError, match="do not fit"):
        _kernels.count_bounds(np.zeros(7), np.zeros(7), 3, 3, 1)
    with pytest.raises(TypeError):
        _kernels.count_bounds(np.zeros(7, dtype=np.float32), np.zeros(7), 3, 3, 0)
    none, far = np.zeros(0), np.array([0, 7, 1], dtype=np.uint32)
    with pytest.raises(ValueError, match="do not fit"):
        _kernels.PairSearch(i, 1.0, d[:2].copy(), i, -1.0, none, 3, 9.0)
    with pytest.raises(ValueError, match="out of range"):
        _kernels.PairSearch(far, 1.0, none, i, -1.0, none, 3, 9.0)
    pairs = _kernels.PairSearch(i, 1.0, none, i, -1.0, none, 3, 9.0)
    with pytest.raises(ValueError, match="length"):
        pairs.cut(np.zeros(4))
    with pytest.raises(ValueError, match="length"):
        _kernels.Line(pairs, d, np.zeros(4))
    with pytest.raises(TypeError):
        pairs.cut(d.astype(np.float32))
    limits = (-np.inf, np.inf)
    with pytest.raises(ValueError, match="out of range"):
        _kernels.TableSearch(far, i, 3, "max", (1.0, 1.0), 6.0, limits, limits, 0, np.zeros(4), np.zeros(4), 1.0, True)
    with pytest.raises(ValueError, match="do not fit"):
        _kernels.TableSearch(i, i, 3, "max", (1.0, 1.0), 6.0, limits, limits, 0, np.zeros(3), np.zeros(4), 1.0, True)
    with pytest.raises(ValueError, match="do not fit"):
        _kernels.TableSearch(i, i, 3, "count", (1.0, 1.0), 6.0, limits, limits, 1, np.zeros(7), np.zeros(7), 1.0, True)
    with pytest.raises(ValueError, match="structure"):
        _kernels.TableSearch(i, i, 3, "sum", (1.0, 1.0), 6.0, limits, limits, 0, np.zeros(4), np.zeros(4), 1.0, True)
    repeated = np.broadcast_to(0.0, 4)
    with pytest.raises(ValueError, match="in one piece"):
        _kernels.TableSearch(i, i, 3, "max", (1.0, 1.0), 6.0, limits, limits, 0, repeated, np.zeros(4), 1.0, True)
    search = _kernels.TableSearch(
        i, i, 3, "max", (1.0, 1.0), 6.0, limits, limits, 0, np.zeros(4), np.zeros(4), 1.0, True
    )
    with pytest.raises(ValueError, match="length"):
        search.cut(np.zeros(2))
    with pytest.raises(ValueError, match="length"):
        _kernels.Line(search, d, np.zeros(2))


def test_the_selection_checks_what_it_gets():
    with pytest.raises(ValueError, match="between 1 and the number"):
        _kernels.TopSearch(np.array([True, False]), 3, 1.0, -0.5)
    search = _kernels.TopSearch(np.array([True, False]), 1, 1.0, -0.5)
    with pytest.raises(ValueError, match="length"):
        search.cut(np.zeros(3))
    with pytest.raises(ValueError, match="length"):
        _kernels.Line(search, np.zeros(2), np.zeros(3))
