"""Every data backend against plain NumPy; what as_design keeps, converts and refuses."""

from __future__ import annotations

import functools
import os
import pickle

import numpy as np
import pytest
import reference
from design_samples import coefficients, random_matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from metrimax.designs import CSR, Dense, WithIntercept, as_design


def csr(X, index):
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


BACKENDS = {
    "dense-C": np.ascontiguousarray,
    "dense-F": np.asfortranarray,
    "csr-int32": lambda X: csr(X, np.int32),
    "csr-int64": lambda X: csr(X, np.int64),
}
# The second size is large enough for the kernels to start threads; the third is wide, the fourth has more rows
# than a block of the kernels and a number of columns that no block size divides.
SHAPES = [(7, 5), (900, 701), (5, 9001), (4001, 131)]


@pytest.fixture(params=sorted(BACKENDS))
def backend(request):
    return BACKENDS[request.param]


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


@functools.cache
def sample(backend, n, p, dtype):
    X = random_matrix(np.random.default_rng([n, p]), n, p, dtype)
    return X, backend(X)


# --- products


@pytest.mark.parametrize("L", [None, 1, 3, 13])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("intercept", [None, 2.5])
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_products(backend, dtype, n, p, intercept, n_threads, L):
    X, stored = sample(backend, n, p, dtype)
    design = as_design(stored, intercept_scaling=intercept, n_threads=n_threads)
    rng = np.random.default_rng(0)
    if intercept is not None:
        X = reference.with_intercept(X, intercept)
    many = () if L is None else (L,)
    w, slope = rng.standard_normal((X.shape[1], *many)), coefficients(rng, n, *many)

    assert design.shape == X.shape
    for product, expected in (
        (design.matvec(w), reference.matvec(X, w)),
        (design.rmatvec(slope), reference.rmatvec(X, slope)),
    ):
        assert product.dtype == np.float64
        assert product.shape == expected.shape
        assert product.flags.c_contiguous
        assert_allclose(product, expected, rtol=1e-12, atol=1e-12 * max(n, p))


@pytest.mark.parametrize("n_threads", [2, 3, 7])
def test_scores_do_not_depend_on_the_number_of_threads(backend, dtype, n_threads):
    X, stored = sample(backend, 3 * 1024 * 3 + 3, 131, dtype)
    w = np.random.default_rng(0).standard_normal(131)
    one, several = as_design(stored, n_threads=1).matvec(w), as_design(stored, n_threads=n_threads).matvec(w)
    assert_array_equal(one, several)
    assert_allclose(one, reference.matvec(X, w), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("intercept", [None, 2.5])
def test_lengths_of_rows(backend, dtype, intercept):
    X, stored = sample(backend, 900, 701, dtype)
    expected = (X.astype(np.float64) ** 2).sum(axis=1) + (intercept or 0.0) ** 2
    for first in ("squares", "mean_square"):
        design = as_design(stored, intercept_scaling=intercept)
        getattr(design.rows, first)()  # the one is taken from the other, where that is there
        assert_allclose(design.rows.squares(), expected, rtol=1e-12)
        assert design.rows.mean_square() == pytest.approx(expected.mean(), rel=1e-12)
    assert design.rows.in_order == (backend is not np.asfortranarray)


def test_several_vectors_agree_with_one_at_a_time(backend, dtype):
    rng = np.random.default_rng(1)
    X = as_design(backend(random_matrix(rng, 40, 30, dtype)), intercept_scaling=1.0)
    W, S = rng.standard_normal((31, 11)), coefficients(rng, 40, 11)
    assert_allclose(X.matvec(W), np.column_stack([X.matvec(w) for w in W.T]), rtol=1e-12, atol=1e-13)
    assert_allclose(X.rmatvec(S), np.column_stack([X.rmatvec(s) for s in S.T]), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("L", [1, 2, 3, 6, 9, 17])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("intercept", [None, 2.5])
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_products_with_vectors_that_lie_apart(backend, dtype, n, p, intercept, n_threads, L):
    X, stored = sample(backend, n, p, dtype)
    design = as_design(stored, intercept_scaling=intercept, n_threads=n_threads)
    rng = np.random.default_rng(0)
    if intercept is not None:
        X = reference.with_intercept(X, intercept)
    for product, A, vectors in (
        ("scores", X, list(rng.standard_normal((L, X.shape[1])))),
        ("pull", X.T, [coefficients(rng, n) for _ in range(L)]),
        ("pull", X.T, [np.where(rng.random(n) < 0.3 * (k % 3), coefficients(rng, n), 0.0) for k in range(L)]),
    ):
        for _ in range(3):  # CSR: many vectors are pulled back by a copy of X by columns from the third time on
            results = design.rows.products(product, vectors)
        assert len(results) == L
        for vector, result in zip(vectors, results, strict=True):
            assert (result.dtype, result.shape) == (np.float64, (A.shape[0],))
            assert_allclose(result, reference.matvec(A, vector), rtol=1e-12, atol=1e-12 * max(n, p))


@pytest.mark.parametrize("product", ["scores", "pull"])
@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (4, 3)])
def test_products_with_no_vectors_and_of_no_rows_or_columns(backend, shape, product):
    design = as_design(backend(np.ones(shape)))
    assert design.rows.products(product, []) == []
    given, answered = shape[::-1] if product == "scores" else shape
    for L in (1, 2, 9):
        for result in design.rows.products(product, [np.ones(given)] * L):
            assert_array_equal(result, np.full(answered, float(given)))


@pytest.mark.parametrize("product", ["scores", "pull"])
def test_vectors_that_lie_apart_must_have_the_length_of_the_design(backend, product):
    design = as_design(backend(np.ones((5, 3))), intercept_scaling=1.0)
    with pytest.raises(ValueError, match=f"vectors: expected length {4 if product == 'scores' else 5}, got 7"):
        design.rows.products(product, [np.ones(7)])


def test_a_design_without_rows_has_none_with_an_intercept():
    X = sparse.linalg.aslinearoperator(np.eye(3))
    assert as_design(X).rows is None
    assert as_design(X, intercept_scaling=1.0).rows is None


def test_float32_is_accumulated_in_double(backend):
    X = np.full((2, 100_000), 0.1, dtype=np.float32)
    expected = 100_000 * float(np.float32(0.1))
    assert_allclose(as_design(backend(X)).matvec(np.ones(100_000)), expected, rtol=1e-13)
    assert_allclose(as_design(backend(X.T)).rmatvec(np.ones(100_000)), expected, rtol=1e-13)


@pytest.mark.parametrize("make", [np.ascontiguousarray, lambda X: csr(X, np.int32)], ids=["dense-C", "csr"])
@pytest.mark.parametrize("L", [None, 3])
def test_rows_of_slope_zero_are_not_read(make, L):
    X = np.ones((6, 4))
    X[2] = np.nan
    slope = np.ones(6 if L is None else (6, L))
    slope[2] = 0
    assert_allclose(as_design(make(X)).rmatvec(slope), 5.0)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_products_of_any_shape(data):
    n, p, L = (data.draw(st.integers(low, 9)) for low in (1, 0, 0))
    numbers = st.floats(-8, 8, width=32)
    X = data.draw(hnp.arrays(data.draw(st.sampled_from([np.float32, np.float64])), (n, p), elements=numbers))
    if data.draw(st.booleans()):
        X[data.draw(st.integers(0, n - 1))] = 0
    W = data.draw(hnp.arrays(np.float64, (p, L), elements=numbers))
    S = data.draw(hnp.arrays(np.float64, (n, L), elements=numbers))
    for name, make in BACKENDS.items():
        design = as_design(make(X), n_threads=2)
        assert_allclose(design.matvec(W), reference.matvec(X, W), atol=1e-9, err_msg=name)
        assert_allclose(design.rmatvec(S), reference.rmatvec(X, S), atol=1e-9, err_msg=name)
        for w, s in zip(W.T, S.T, strict=True):
            assert_allclose(design.matvec(w), reference.matvec(X, w), atol=1e-9, err_msg=name)
            assert_allclose(design.rmatvec(s), reference.rmatvec(X, s), atol=1e-9, err_msg=name)


def test_no_rows(backend):
    design = as_design(backend(np.zeros((0, 3))))
    assert design.matvec(np.ones(3)).shape == (0,)
    assert design.matvec(np.ones((3, 2))).shape == (0, 2)
    assert_array_equal(design.rmatvec(np.ones(0)), np.zeros(3))
    assert_array_equal(design.rmatvec(np.ones((0, 2))), np.zeros((3, 2)))


# --- as_design: what is kept, what is copied, what is refused


@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_arrays_are_not_copied(dtype, order):
    X = np.ones((5, 4), dtype=dtype, order=order)
    assert as_design(X).X is X


def test_csr_arrays_are_not_copied(dtype):
    X = csr(np.eye(4, dtype=dtype), np.int32)
    design = as_design(X)
    assert np.shares_memory(design.data, X.data)
    assert np.shares_memory(design.indices, X.indices)
    assert np.shares_memory(design.indptr, X.indptr)


def aside(array):
    """The same numbers, one byte beside where their type wants them, as a mapped file may have them."""
    order = "F" if array.ndim == 2 and not array.flags.c_contiguous else "C"
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
    moved = memory.view(array.dtype).reshape(array.shape, order=order)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_that_are_not_aligned_are_copied(dtype, order, tmp_path):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.normal(size=(7, 5)), dtype=dtype, order=order)
    w, slope = rng.normal(size=5), rng.normal(size=7)
    for design in (as_design(aside(X)), Dense(aside(X))):
        assert design.X.flags.aligned
        np.testing.assert_allclose(design.matvec(aside(w)), X @ w, rtol=1e-6)
        np.testing.assert_allclose(design.rmatvec(aside(slope)), X.T @ slope, rtol=1e-6, atol=1e-6)
    S = csr(X, np.int64)
    design = CSR(aside(S.data), aside(S.indices), aside(S.indptr), 5)
    np.testing.assert_allclose(design.matvec(w), X @ w, rtol=1e-6)
    # a header whose length is odd, as other programs may write it
    with open(tmp_path / "X.npy", "wb") as file:
        header = f"{{'descr': '{X.dtype.str}', 'fortran_order': {order == 'F'}, 'shape': (7, 5), }}".encode()
        header += b" " * (1 - len(header) % 2) + b"\n"
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + X.tobytes(order))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert not mapped.flags.aligned
    np.testing.assert_allclose(as_design(mapped).matvec(w), X @ w, rtol=1e-6)


def test_read_only_data_is_used():
    X = np.eye(3)
    X.flags.writeable = False
    assert_array_equal(as_design(X).matvec(np.arange(3.0)), np.arange(3.0))


@pytest.mark.parametrize(
    "X",
    [
        np.arange(12).reshape(4, 3),
        np.arange(12, dtype=np.uint8).reshape(4, 3),
        np.ones((4, 3), dtype=bool),
        np.ones((4, 3), dtype=np.float16),
        np.ones((4, 3), dtype=np.longdouble),
        np.arange(12, dtype=">f8").reshape(4, 3),
        np.arange(12, dtype=">f4").reshape(4, 3),
        np.arange(24.0).reshape(8, 3)[::2],
        np.arange(24.0).reshape(4, 6)[:, ::-2],
        np.arange(12.0).reshape(4, 3).astype(object),
        np.ma.masked_array(np.ones((4, 3))),
    ],
    ids=lambda X: f"{type(X).__name__}-{X.dtype}-{X.strides}",
)
def test_other_dense_input_is_converted(X):
    assert_array_equal(as_design(X).matvec(np.array([1, 2, 3])), np.asarray(X, dtype=float) @ [1, 2, 3])


@pytest.mark.parametrize("make", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("values", [np.float32, np.float64, np.int32, bool])
def test_sparse_formats(make, kind, values):
    X = np.array([[0, 1, 0], [2, 0, 0], [0, 0, 0], [3, 4, 0]]).astype(values)
    design = as_design(getattr(sparse, f"{make}_{kind}")(X))
    assert isinstance(design, CSR)
    assert design.dtype == (values if values == np.float32 else np.float64)
    assert_array_equal(design.matvec(np.array([1.0, 10.0, 100.0])), X @ [1.0, 10.0, 100.0])


@pytest.mark.parametrize(("indices", "indptr"), [(np.int32, np.int64), (np.int64, np.int32), (np.int16, np.uint8)])
def test_mixed_index_types(indices, indptr):
    X = sparse.csr_array(np.eye(4))
    X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indptr)
    design = as_design(X)
    assert design.indices.dtype == design.indptr.dtype
    assert_array_equal(design.matvec(np.arange(4.0)), np.arange(4.0))


def test_repeated_and_unsorted_indices_are_summed():
    X = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    assert_array_equal(as_design(X).matvec(np.array([1.0, 0.0, 10.0])), [52.0])
    assert_array_equal(as_design(X).rmatvec(np.array([1.0])), [2.0, 0.0, 5.0])


def test_room_behind_the_last_entry_is_ignored():
    X = sparse.csr_array(np.eye(2))
    X.data, X.indices = np.append(X.data, 9.0), np.append(X.indices, np.int32(99))
    assert_array_equal(as_design(X).matvec(np.ones(2)), [1.0, 1.0])


def test_a_design_is_returned_as_it_is():
    design = Dense(np.eye(2))
    assert as_design(design) is design
    wrapped = as_design(design, intercept_scaling=2.0)
    assert isinstance(wrapped, WithIntercept)
    assert wrapped.design is design


def test_anything_with_the_two_products_is_a_design():
    X = np.arange(6.0).reshape(3, 2)
    design = as_design(sparse.linalg.aslinearoperator(X), intercept_scaling=2.0)
    assert_array_equal(design.matvec(np.ones(3)), reference.with_intercept(X, 2.0).sum(axis=1))
    assert_array_equal(design.rmatvec(np.ones(3)), reference.with_intercept(X, 2.0).sum(axis=0))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[1.0, 2.0]], TypeError, r"got list: convert it"),
        (np.ones(3), ValueError, r"two dimensions.*\(3,\)"),
        (np.ones((2, 2, 2)), ValueError, "two dimensions"),
        (np.ones((2, 2), dtype=complex), TypeError, "real numbers.*complex"),
        (sparse.csr_array(np.ones((2, 2), dtype=complex)), TypeError, "real numbers.*complex"),
        (np.array([["a", "b"]]), TypeError, "real numbers"),
        (object(), TypeError, "or a design"),
    ],
)
def test_other_input_is_refused(X, error, message):
    with pytest.raises(error, match=message):
        as_design(X)


@pytest.mark.parametrize("n_threads", [0, -1, 1.5, "all"])
def test_bad_n_threads(n_threads):
    with pytest.raises(ValueError, match=f"at least 1.*got {n_threads!r}"):
        as_design(np.eye(2), n_threads=n_threads)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_bad_intercept(value):
    with pytest.raises(ValueError, match="positive and finite"):
        as_design(np.eye(2), intercept_scaling=value)


def test_threads_default_to_the_cores_of_the_process(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # Dask sets it when a test has started workers
    expected = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert as_design(np.eye(2)).n_threads == expected


@pytest.mark.parametrize("intercept", [None, 1.0])
@pytest.mark.parametrize("shape", [(3,), (6,), (3, 2), (5, 1, 1), ()])
def test_vectors_of_the_wrong_shape(backend, intercept, shape):
    design = as_design(backend(np.eye(5)), intercept_scaling=intercept)
    with pytest.raises(ValueError, match="must have"):
        design.rmatvec(np.ones(shape))
    if intercept is None or shape != (6,):
        with pytest.raises(ValueError, match="must have"):
            design.matvec(np.ones(shape))


def test_vectors_of_other_types(backend):
    design = as_design(backend(np.eye(3)))
    assert_array_equal(design.matvec(np.arange(3, dtype=np.float32)), np.arange(3.0))
    assert_array_equal(design.rmatvec(np.arange(6)[::2]), [0.0, 2.0, 4.0])
    assert_array_equal(design.matvec(np.asfortranarray(np.arange(6.0).reshape(3, 2))), np.arange(6.0).reshape(3, 2))
    with pytest.raises(TypeError, match="real numbers"):
        design.matvec(np.ones(3, dtype=complex))


def test_pickle(backend, dtype):
    design = as_design(backend(np.eye(4, dtype=dtype)), intercept_scaling=2.0, n_threads=2)
    again = pickle.loads(pickle.dumps(design))
    w = np.arange(5.0)
    assert_array_equal(again.matvec(w), design.matvec(w))
