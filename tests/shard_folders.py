"""Folders of row shards for the tests: the same rows as every kind of file."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

N, P = 400, 30


def make_problem():
    rng = np.random.default_rng(0)
    y = rng.random(N) < 0.25
    X = (rng.normal(size=(N, P)) + 0.8 * y[:, None]) * (rng.random((N, P)) < 0.4)
    X[:, P - 1] = 0
    X[3, P - 1] = 1.5  # the last column occurs in one shard only
    return X, y.astype(float)


def svmlight(X, y, base=1):
    rows = []
    for x, label in zip(X, y, strict=True):
        rows.append(" ".join([f"{label:g}", *(f"{j + base}:{x[j]!r}" for j in np.flatnonzero(x))]))
    return "\n".join(rows).replace("np.float64(", "").replace(")", "") + "\n"


def write_folder(kind, folder, X, y, pieces=5):
    """The same rows as a folder of each kind."""
    folder.mkdir()
    for k, rows in enumerate(np.array_split(np.arange(len(X)), pieces)):
        stem = folder / f"part-{k}"
        A, S = X[rows], sparse.csr_array(X[rows])
        if kind == "npy":
            np.save(f"{stem}.X.npy", A)
            np.save(f"{stem}.y.npy", y[rows])
        elif kind == "npy-csr":
            for part in ("data", "indices", "indptr"):
                np.save(f"{stem}.{part}.npy", getattr(S, part))
            np.save(f"{stem}.y.npy", y[rows])
        elif kind == "npz":
            np.savez(f"{stem}.npz", data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=y[rows])
        elif kind == "svmlight":
            (folder / f"part-{k}.svm").write_text(svmlight(A, y[rows]))
        elif kind == "parquet":
            pandas = pytest.importorskip("pandas")
            pytest.importorskip("pyarrow")
            pandas.DataFrame(A, columns=[f"f{j}" for j in range(A.shape[1])]).assign(label=y[rows]).to_parquet(
                f"{stem}.parquet"
            )
    return folder


KINDS = ["npy", "npy-csr", "npz", "svmlight", "parquet"]
