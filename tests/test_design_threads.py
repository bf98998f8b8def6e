"""Designs in several threads and processes, and arrays that are very long or not aligned."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import reference
from design_samples import coefficients, random_matrix
from numpy.testing import assert_allclose
from scipy import sparse

from metrimax.designs import CSR, as_design


def test_products_from_several_python_threads():
    rng = np.random.default_rng(3)
    X = as_design(random_matrix(rng, 2000, 300, np.float64), n_threads=2)
    c = coefficients(rng, 2000)
    expected = X.rmatvec(c)
    with ThreadPoolExecutor(4) as pool:
        for product in pool.map(lambda _: X.rmatvec(c), range(16)):
            assert_allclose(product, expected, rtol=1e-12)


def test_the_copy_by_columns_is_made_by_one_of_several_threads():
    rng = np.random.default_rng(3)
    X = random_matrix(rng, 500, 300, np.float64)
    design = as_design(sparse.csr_array(X), n_threads=1)
    vectors = [coefficients(rng, 500) for _ in range(6)]
    with ThreadPoolExecutor(4) as pool:
        for products in pool.map(lambda _: design.rows.products("pull", vectors), range(16)):
            for product, vector in zip(products, vectors, strict=True):
                assert_allclose(product, reference.rmatvec(X, vector), rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_products_after_a_fork():
    code = (
        "import os, numpy as np\n"
        "from metrimax.designs import as_design\n"
        "X = as_design(np.ones((1000, 1000)), n_threads=2)\n"
        "X.matvec(np.ones(1000))\n"
        "child = os.fork()\n"
        "ok = X.matvec(np.ones(1000))[0] == 1000\n"
        "os._exit(0 if ok else 1) if child == 0 else None\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_products_of_shards_after_a_fork(tmp_path):
    """The threads of the parent are not there in the child, which would wait for them."""
    for k in range(4):
        np.save(tmp_path / f"{k}.X.npy", np.ones((10, 3)))
    code = (
        "import os, signal, sys, numpy as np\n"
        "from metrimax import open_dataset\n"
        "X = open_dataset(sys.argv[1], n_threads=2)\n"
        "X.matvec(np.ones(3))\n"
        "child = os.fork()\n"
        "signal.alarm(20)\n"
        "ok = X.matvec(np.ones(3))[0] == 3 and X.rmatvec(np.ones(40))[0] == 40\n"
        "os._exit(0 if ok else 1) if child == 0 else None\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path], timeout=60).returncode == 0


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer notes every 8 bytes of 26 GB")
def test_more_than_2_31_non_zeros():
    """Offsets beyond 32 bits: a row of 2^31 zeros, never written, so that no memory is taken, and one behind it."""
    m = 2**31
    try:
        data, indices = np.zeros(m + 3, dtype=np.float32), np.zeros(m + 3, dtype=np.int64)
    except MemoryError:
        pytest.skip("26 GB of addresses were not granted")
    data[m:], indices[m:] = [1, 2, 3], [0, 1, 2]
    indptr = np.array([0, m, m + 3])
    for n_threads in (1, 2):
        X = CSR(data, indices, indptr, n_cols=3, n_threads=n_threads, check=False)  # the check reads 17 GB of zeros
        np.testing.assert_array_equal(X.rmatvec(np.array([0.0, 1.0])), [1, 2, 3])
        np.testing.assert_array_equal(X.rmatvec(np.array([[0.0, 0.0], [1.0, 2.0]])), [[1, 2], [2, 4], [3, 6]])
    np.testing.assert_array_equal(X.matvec(np.array([1.0, 10.0, 100.0])), [0, 321])


def test_threads_by_default_are_what_the_process_may_use(monkeypatch):
    X = np.eye(3)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = as_design(X).n_threads
    for share, expected in (("1", 1), (str(cores), cores), ("1000", cores), ("0", cores), ("2,1", cores), ("", cores)):
        monkeypatch.setenv("OMP_NUM_THREADS", share)
        assert as_design(X).n_threads == expected
    assert as_design(X, n_threads=cores + 1).n_threads == cores + 1


def unaligned(array):
    """The same array one byte off."""
    raw = np.zeros(array.nbytes + 1, dtype=np.uint8)
    moved = raw[1:].view(array.dtype)[: array.size].reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_design_that_comes_over_a_wire_unaligned(kind):
    X = np.random.default_rng(0).normal(size=(7, 3))
    design = as_design(X if kind == "dense" else sparse.csr_matrix(X))
    state = {n: unaligned(v) if isinstance(v, np.ndarray) else v for n, v in design.__getstate__().items()}
    copy = type(design).__new__(type(design))
    copy.__setstate__(state)
    assert np.allclose(copy.matvec(np.ones(3)), X.sum(axis=1))
