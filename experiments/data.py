"""The data sets of the experiments, by name, from the data folder (METRIMAX_DATA, by default ``../shared/data``).

``load("optdigits:8")`` gives ``X_train, y_train, X_test, y_test`` with boolean labels: a name and, where there are
several classes or topics, the one called positive. Sets without a split of their own are divided at random, always
alike. Features that are not unit-length text are divided by their greatest absolute value in the training part.
"""

from __future__ import annotations

import functools
import lzma
import os
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits, load_svmlight_file

Split = tuple[Any, Any, Any, Any]

DATA = Path(os.environ.get("METRIMAX_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")

SPLITS = {
    "optdigits": ("optdigits/train", "optdigits/test"),
    "usps": ("usps/train", "usps/test"),
    "ijcnn1": ("ijcnn1/train", "ijcnn1/test"),
    "splice": ("splice/train", "splice/test"),
    "reuters": ("reuters21578/tfidf_full_train", "reuters21578/tfidf_full_test"),
    "moneyfx": ("reuters_moneyfx/train", "reuters_moneyfx/test"),
    "kdd99": ("kdd99/train10pct", "kdd99/test_corrected"),
    "20news": ("20news/counts_df3_train", "20news/counts_df3_test"),
    "sector": ("sector/train", "sector/test"),
    "covtype": ("covtype/covtype", None),
}
TEXT = ("reuters", "moneyfx", "sector", "20news")
FIRST = 3000
"""The rows at the beginning of covtype, in its original order, that Joachims (2005) seems to have taken."""


def load(name: str, data: Path | str | None = None, rows: int | None = None) -> Split:
    """``X_train, y_train, X_test, y_test`` of a set such as "ijcnn1", "covtype:3" or "imblearn/letter_img"."""
    base, _, positive = name.partition(":")
    X, labels, X_test, labels_test = _read(base, Path(data or DATA))
    y, y_test = (_positive(part, positive) for part in (labels, labels_test))
    if rows is not None and rows < len(y):
        keep = np.sort(np.random.default_rng(0).permutation(len(y))[:rows])
        X, y = X[keep], y[keep]
    return X, y, X_test, y_test


class Collection(NamedTuple):
    """Several one-against-the-rest problems on the same examples; labels are boolean, one column per class."""

    X: Any
    Y: Any
    X_test: Any
    Y_test: Any


@functools.lru_cache(maxsize=2)
def collection(name: str, data: Path | str | None = None, seed: int = 0) -> Collection:
    """All classes of a set at once: "reuters", "optdigits", "covtype", and small samples "covtype/1000".

    "covtype/1000" has 1000 random examples to train and 2000 to test on, "covtype/first" divides the first 3000 rows
    of the file in the same way; ``seed`` draws them. "digits" comes with scikit-learn.
    """
    base, _, part = name.partition("/")
    if base == "digits":
        X, y = load_digits(return_X_y=True)
        X, y, X_test, y_test = X[:900] / 16, y[:900], X[900:] / 16, y[900:]
    elif part:
        X, y = _svm(Path(data or DATA) / "covtype/covtype.svm.xz")
        chosen = np.random.default_rng(seed).permutation({"1000": len(y), "first": FIRST}[part])[:3000]
        train, test = chosen[:1000], chosen[1000:]
        X, X_test = (scaled.toarray() for scaled in _scaled(X[train], X[test]))
        y, y_test = y[train], y[test]
    else:
        X, y, X_test, y_test = _read(base, Path(data or DATA))
    if y.dtype == object:
        classes = sorted({topic for topics in y for topic in topics})
        return Collection(X, _indicator(y, classes), X_test, _indicator(y_test, classes))
    classes = np.unique(np.concatenate([y, y_test]))
    return Collection(X, y[:, None] == classes, X_test, y_test[:, None] == classes)


def _indicator(topics: Any, classes: list[float]) -> Any:
    return np.array([[c in own for c in classes] for own in map(set, topics)])


@functools.lru_cache(maxsize=4)
def queries(name: str, data: Path | str | None = None, part: str = "train") -> tuple[Any, Any, Any]:
    """Features, grades and queries of a ranking set, "rank_lightgbm", "rank_mq2008_fold1test" or another.

    Features lie in [0, 1]: those of OHSUMED, which come as they are, are brought there query by query, as in LETOR.
    """
    path = Path(data or DATA) / name / f"{part}.svm.xz"
    if not path.exists():
        raise FileNotFoundError(f"no file {path}: set METRIMAX_DATA, or pass --data, to the folder of the data sets")
    with lzma.open(path) as file:
        text = BytesIO(file.read())
    width = {"rank_lightgbm": 300}.get(name)  # the last columns need not occur in both parts
    X, y, groups = load_svmlight_file(text, n_features=width, zero_based=False, query_id=True)
    X = X.toarray()
    if "ohsumed" in name:
        for query in np.unique(groups):
            own = X[groups == query]
            span = np.ptp(own, axis=0)
            X[groups == query] = (own - own.min(axis=0)) / np.where(span > 0, span, 1.0)
    return X, y, groups


def _positive(labels: Any, positive: str) -> Any:
    if not positive:
        return labels > 0
    if labels.dtype == object:  # several topics to a document
        return np.array([float(positive) in topics for topics in labels])
    return labels == float(positive)


@functools.lru_cache(maxsize=2)
def _read(base: str, data: Path) -> Split:
    train, test = SPLITS.get(base, (base, None))
    X, y = _svm(data / f"{train}.svm.xz", several=base == "reuters")
    if test is None:
        order = np.random.default_rng(0).permutation(len(y))
        cut = 9 * len(y) // 10 if base == "covtype" else len(y) // 2
        X, y, X_test, y_test = X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]
    else:
        X_test, y_test = _svm(data / f"{test}.svm.xz", several=base == "reuters", n_features=X.shape[1])
    if base == "20news":  # counts
        X, X_test = (_unit(np.log1p(part)) for part in (X, X_test))
    elif base not in TEXT:
        X, X_test = _scaled(X, X_test)
    if X.nnz > 0.4 * X.shape[0] * X.shape[1]:
        X, X_test = X.toarray(), X_test.toarray()
    return X, y, X_test, y_test


def _scaled(*parts: Any) -> list[Any]:
    """Features divided by their greatest absolute value in the first part."""
    greatest = abs(parts[0]).max(axis=0).toarray().ravel()
    scale = 1 / np.where(greatest > 0, greatest, 1.0)
    return [sparse.csr_matrix(part.multiply(scale)) for part in parts]


@functools.lru_cache(maxsize=2)
def _svm(path: Path, *, several: bool = False, n_features: int | None = None) -> tuple[Any, Any]:
    if not path.exists():
        raise FileNotFoundError(f"no file {path}: set METRIMAX_DATA, or pass --data, to the folder of the data sets")
    with lzma.open(path) as file:
        text = BytesIO(file.read())
    X, y = load_svmlight_file(text, n_features=n_features, zero_based=False, multilabel=several)
    X = sparse.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    if several:
        labels = np.empty(len(y), dtype=object)
        labels[:] = y
        return X, labels
    return X, y


def _unit(X: Any) -> Any:
    length = np.sqrt(X.multiply(X).sum(axis=1)).A1
    return sparse.csr_matrix(sparse.diags(1 / np.maximum(length, 1e-12)) @ X)
