"""Data sets for the measurements: those of the data folder (METRIMAX_DATA), and generated ones of any size."""

from __future__ import annotations

import functools
import io
import lzma
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Task:
    """A binary problem: training rows, boolean labels, and test rows where the set has them."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any = None
    y_test: np.ndarray | None = None

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def kind(self) -> str:
        return "sparse" if sparse.issparse(self.X) else "dense"


class MissingData(RuntimeError):
    """A file of the data folder is not there."""


def folder() -> Path:
    """The data folder: METRIMAX_DATA, or ``../shared/data`` beside the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("METRIMAX_DATA", beside))


def golden_folder() -> Path:
    """Recorded answers of SVM-perf: METRIMAX_GOLDEN, or ``../golden`` beside the data folder."""
    return Path(os.environ.get("METRIMAX_GOLDEN", folder().parent / "golden"))


def _read(path: str, n_features: int | None = None, multilabel: bool = False) -> tuple[sparse.csr_matrix, Any]:
    from sklearn.datasets import load_svmlight_file

    file = folder() / path
    if not file.exists():
        raise MissingData(f"{file} is not there: set METRIMAX_DATA to the data folder")
    text = io.BytesIO(lzma.decompress(file.read_bytes()))
    X, y = load_svmlight_file(text, n_features=n_features, zero_based=False, multilabel=multilabel)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


@functools.lru_cache(maxsize=2)
def _pair(train: str, test: str, multilabel: bool = False) -> tuple[Any, Any, Any, Any]:
    X, y = _read(train, multilabel=multilabel)
    X_test, y_test = _read(test, n_features=X.shape[1], multilabel=multilabel)
    return X, y, X_test, y_test


def reuters_categories() -> list[str]:
    lines = (folder() / "reuters21578" / "categories.tsv").read_text().splitlines()
    return [line.split("\t")[1] for line in lines[1:]]


def reuters() -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """All 90 categories: X, Y (boolean, one column per category) and the same of the test documents."""
    X, y, X_test, y_test = _pair(
        "reuters21578/tfidf_full_train.svm.xz", "reuters21578/tfidf_full_test.svm.xz", multilabel=True
    )

    def indicator(labels: Any) -> np.ndarray:
        Y = np.zeros((len(labels), 90), dtype=bool)
        for i, own in enumerate(labels):
            Y[i, [int(label) for label in own]] = True
        return Y

    return X, indicator(y), X_test, indicator(y_test)


def _dense(X: Any) -> np.ndarray:
    return np.ascontiguousarray(X.toarray())


def _covtype() -> Task:
    X, y = _read("covtype/covtype.svm.xz")
    X = _dense(X)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:522_911], order[522_911:]
    return Task("covtype:2", X[train], y[train] == 2, X[test], y[test] == 2)


def _kdd99() -> Task:
    X, y = _read("kdd99/train10pct.svm.xz")
    X = sparse.csr_matrix(X @ sparse.diags(1 / np.maximum(np.abs(X).max(axis=0).toarray().ravel(), 1e-12)))
    return Task("kdd99:normal", X, y == 16)


def _text_counts(name: str, positive: int) -> Task:
    X, y, X_test, y_test = _pair("20news/counts_df3_train.svm.xz", "20news/counts_df3_test.svm.xz")
    idf = np.log(X.shape[0] / np.maximum(np.bincount(X.indices, minlength=X.shape[1]), 1))

    def scale(A: Any) -> Any:
        A = sparse.csr_matrix(A @ sparse.diags(idf))
        lengths = np.sqrt(A.multiply(A).sum(axis=1)).A1
        return sparse.csr_matrix(sparse.diags(1 / np.maximum(lengths, 1e-12)) @ A)

    return Task(name, scale(X), y == positive, scale(X_test), y_test == positive)


@functools.lru_cache(maxsize=4)
def load(name: str) -> Task:
    """The task called ``name``: a set of the data folder, ``set:class``, or ``dense:N``, ``sparse:N`` generated."""
    base, _, part = name.partition(":")
    if base in ("dense", "sparse"):
        return generate(base, int(float(part)))
    if base == "reuters":
        X, Y, X_test, Y_test = reuters()
        k = reuters_categories().index(part)
        return Task(name, X, Y[:, k], X_test, Y_test[:, k])
    if base == "covtype":
        return _covtype()
    if base == "kdd99":
        return _kdd99()
    if base == "20news":
        return _text_counts(name, int(part))
    X, y, X_test, y_test = _pair(f"{base}/train.svm.xz", f"{base}/test.svm.xz")
    positive = (lambda labels: labels == int(part)) if part else (lambda labels: labels > 0)
    if base in ("optdigits", "ijcnn1", "splice", "usps"):
        X, X_test = _dense(X), _dense(X_test)
    return Task(name, X, positive(y), X_test, positive(y_test))


def generate(
    kind: str, n: int, *, features: int | None = None, positives: float | None = None, seed: int = 0, dtype: Any = None
) -> Task:
    """Generated rows: ``dense`` 54 Gaussian columns, 7% positive, or ``sparse`` text-like, 4% positive.

    The sparse rows have about 70 distinct words out of 30,000 with Zipf frequencies, in unit length, and the positives
    draw a tenth of theirs from 200 topic words. Made in blocks, so that the peak of memory is that of the result.
    """
    rng = np.random.default_rng(seed)
    dtype = np.float64 if dtype is None else dtype
    if kind == "dense":
        p = features or 54
        y = rng.random(n) < (positives or 0.07)
        X = np.empty((n, p), dtype=dtype)
        direction = rng.normal(size=p) / np.sqrt(p)
        for start in range(0, n, 100_000):
            rows = slice(start, min(n, start + 100_000))
            X[rows] = rng.normal(size=(len(y[rows]), p)) + 2.5 * np.outer(y[rows], direction)
        return Task(f"dense:{n}", X, y)
    p, length, topic = features or 30_000, 70, 200
    first_topic = min(1000, p // 2)
    y = rng.random(n) < (positives or 0.04)
    cumulative = np.cumsum(1 / np.arange(3, p + 3))
    cumulative /= cumulative[-1]
    data, indices, counts = [], [], [np.zeros(1, np.int64)]
    for start in range(0, n, 100_000):
        own = y[start : start + 100_000]
        words = np.searchsorted(cumulative, rng.random((len(own), length))).astype(np.int32)
        swap = (rng.random(words.shape) < 0.1) & own[:, None]
        words[swap] = rng.integers(first_topic, first_topic + topic, size=int(swap.sum()))
        words.sort(axis=1)
        first = np.ones(words.shape, dtype=bool)
        first[:, 1:] = words[:, 1:] != words[:, :-1]
        distinct = first.sum(axis=1)
        indices.append(words[first])
        data.append(np.repeat(1 / np.sqrt(distinct), distinct).astype(dtype))
        counts.append(distinct)
    indptr = np.cumsum(np.concatenate(counts))
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    X = sparse.csr_matrix((np.concatenate(data), np.concatenate(indices), indptr), shape=(n, p))
    return Task(f"sparse:{n}", X, y)
