"""The data sets of the experiments, by name, from the data folder (METRIMAX_DATA, by default ``../shared/data``).

``load("optdigits:8")`` gives ``X_train, y_train, X_test, y_test`` with boolean labels: a name and, where there are
several classes or topics, the one called positive. Sets without a split of their own are divided at random, always
alike. Features that are not unit-length text are divided by their greatest absolute value in the training part, unless
they are wanted ``raw``. Further on: all classes of a set at once, text as word counts, and queries.
"""

from __future__ import annotations

import functools
import json
import lzma
import os
import re
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits, load_svmlight_file
from sklearn.feature_extraction.text import CountVectorizer

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
    "rcv1": ("rcv1_ccat_small/train", "rcv1_ccat_small/test"),
    "covtype": ("covtype/covtype", None),
}
TEXT = ("reuters", "moneyfx", "sector", "20news", "rcv1")
REUTERS = ("earn", "acq", "money-fx", "grain", "crude", "trade", "interest", "ship", "wheat", "corn")
WEBKB = {category: category for category in ("course", "faculty", "project", "student")}
OHSUMED = {
    "Pathology": "C23",
    "Cardiovascular": "C14",
    "Neoplasm": "C04",
    "Nervous System": "C10",
    "Immunologic": "C20",
}
JSONL = {
    "webkb": "webkb4/webkb4_stemmed.jsonl.xz",
    "ohsumed": "ohsumed_single23/ohsumed.jsonl.xz",
    "20news": "20news/20news_bydate.jsonl.xz",
}
FIRST = 3000
"""The rows at the beginning of covtype, in its original order, that Joachims (2005) seems to have taken."""


def load(name: str, data: Path | str | None = None, rows: int | None = None, *, raw: bool = False) -> Split:
    """``X_train, y_train, X_test, y_test`` of a set such as "ijcnn1", "covtype:3" or "imblearn/letter_img".

    Several classes are positive together in "usps:5+6". "ohsumed:Neoplasm" and "webkb:student" are made of documents,
    and never ``raw``.
    """
    base, _, positive = name.partition(":")
    if base in ("ohsumed", "webkb"):
        counts, categories = documents(base, data)
        train, test = np.array_split(np.random.default_rng(0).permutation(counts.shape[0]), 2)
        (X, X_test), labels = tfidf(counts, train, test), categories[positive]
        y, y_test = labels[train], labels[test]
    else:
        X, labels, X_test, labels_test = _read(base, Path(data or DATA), raw)
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
    with lzma.open(_there(Path(data or DATA) / name / f"{part}.svm.xz")) as file:
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


class Documents(NamedTuple):
    """Word counts (documents, words) and, for every category, which documents belong to it."""

    counts: Any
    categories: dict[str, Any]


@functools.lru_cache(maxsize=1)
def documents(name: str, data: Path | str | None = None) -> Documents:
    """``reuters`` (ModApte, ten most frequent categories), ``webkb`` (4 classes), ``ohsumed`` (5 categories), or
    ``20news`` (20 groups); ``made`` is made up."""
    folder = Path(data or DATA)
    if name == "made":
        rng = np.random.default_rng(0)
        category = rng.permutation(300) % 3
        rates = 0.05 * np.exp(0.4 * rng.normal(size=(3, 400)))
        counts = sparse.csr_matrix(rng.poisson(rates[category]).astype(float))
        return Documents(counts, {"first": category == 0})
    if name == "reuters":
        rows = [row for row in _lines(folder / "reuters21578/reuters21578.jsonl.xz") if row["split"] != "unused"]
        texts = [" ".join(row[part] or "" for part in ("title", "dateline", "body")) for row in rows]
        labels = {category: np.array([category in row["topics"] for row in rows]) for category in REUTERS}
    else:
        rows = _lines(folder / JSONL[name])
        texts = [row["text"] for row in rows]
        codes = {"webkb": WEBKB, "ohsumed": OHSUMED}.get(name) or {g: g for g in sorted({row["label"] for row in rows})}
        labels = {category: np.array([row["label"] == code for row in rows]) for category, code in codes.items()}
    words = re.compile(r"[a-z]+")
    counts = CountVectorizer(analyzer=lambda text: words.findall(text.lower()), dtype=np.float64).fit_transform(texts)
    return Documents(sparse.csr_matrix(counts), labels)


def tfidf(counts: Any, train: Any, *parts: Any) -> list[Any]:
    """The representation of Joachims: words of at least three training documents, TFIDF, unit length.

    The rows ``train`` and those of every other part, with words and document frequencies from ``train`` alone.
    """
    frequency = np.bincount(counts[train].indices, minlength=counts.shape[1])
    words = np.flatnonzero(frequency >= 3)
    idf = np.log(len(train) / frequency[words])
    return [_small(_unit(sparse.csr_matrix(counts[part][:, words].multiply(idf)))) for part in (train, *parts)]


def _lines(path: Path) -> list[dict[str, Any]]:
    with lzma.open(_there(path), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _positive(labels: Any, positive: str) -> Any:
    if not positive:
        return labels > 0
    if labels.dtype == object:  # several topics to a document
        return np.array([float(positive) in topics for topics in labels])
    return np.isin(labels, [float(label) for label in positive.split("+")])


@functools.lru_cache(maxsize=2)
def _read(base: str, data: Path, raw: bool = False) -> Split:
    if base == "faces":
        with np.load(_there(data / "cbcl_faces" / "cbcl.npz")) as faces:
            X, y, X_test, y_test = (faces[key] for key in ("X_train", "y_train", "X_test", "y_test"))
        return _equalised(X), y, _equalised(X_test), y_test
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
    elif base not in TEXT and not raw:
        X, X_test = _scaled(X, X_test)
    if X.nnz > 0.4 * X.shape[0] * X.shape[1]:
        X, X_test = X.toarray(), X_test.toarray()
    return X, y, X_test, y_test


def _equalised(images: Any) -> Any:
    """Every image with its histogram of grey levels flattened: each pixel's rank among the pixels of its image."""
    return np.array([np.bincount(image, minlength=256).cumsum()[image] / len(image) for image in images])


def _scaled(*parts: Any) -> list[Any]:
    """Features divided by their greatest absolute value in the first part."""
    greatest = abs(parts[0]).max(axis=0).toarray().ravel()
    scale = 1 / np.where(greatest > 0, greatest, 1.0)
    return [sparse.csr_matrix(part.multiply(scale)) for part in parts]


@functools.lru_cache(maxsize=2)
def _svm(path: Path, *, several: bool = False, n_features: int | None = None) -> tuple[Any, Any]:
    with lzma.open(_there(path)) as file:
        text = BytesIO(file.read())
    X, y = load_svmlight_file(text, n_features=n_features, zero_based=False, multilabel=several)
    X = _small(X)
    if several:
        labels = np.empty(len(y), dtype=object)
        labels[:] = y
        return X, labels
    return X, y


def _there(path: Path) -> Path:
    if not path.exists():
        raise FileNotFoundError(f"no file {path}: set METRIMAX_DATA, or pass --data, to the folder of the data sets")
    return path


def _small(X: Any) -> Any:
    """With indices of 32 bits, as scikit-learn's linear machines need them."""
    return sparse.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def _unit(X: Any) -> Any:
    length = np.sqrt(X.multiply(X).sum(axis=1)).A1
    return sparse.csr_matrix(sparse.diags(1 / np.maximum(length, 1e-12)) @ X)
