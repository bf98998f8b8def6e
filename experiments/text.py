"""Text collections as word counts, and the representation of Joachims: words of at least three training documents,
TFIDF, unit length, everything computed from the training part.

The data folder is METRIMAX_DATA, or what ``--data`` says, by default ``../shared/data``.
"""

from __future__ import annotations

import json
import lzma
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

DATA = Path(os.environ.get("METRIMAX_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


@dataclass(frozen=True)
class Collection:
    """Word counts (documents, words) and, for every category, which documents belong to it."""

    name: str
    counts: Any
    categories: dict[str, Any]


REUTERS = ("earn", "acq", "money-fx", "grain", "crude", "trade", "interest", "ship", "wheat", "corn")
WEBKB = ("course", "faculty", "project", "student")
OHSUMED = {
    "Pathology": "C23",
    "Cardiovascular": "C14",
    "Neoplasm": "C04",
    "Nervous System": "C10",
    "Immunologic": "C20",
}


def load(name: str, data: Path | str | None = None) -> Collection:
    """``reuters`` (ModApte, ten most frequent categories), ``webkb`` (4 classes), ``ohsumed`` (5 categories) or
    ``20news`` (20 groups)."""
    folder = Path(data or DATA)
    if name == "reuters":
        rows = _read(folder / "reuters21578/reuters21578.jsonl.xz")
        rows = [row for row in rows if row["split"] in ("train", "test")]
        texts = [" ".join(row[part] or "" for part in ("title", "dateline", "body")) for row in rows]
        topics = [set(row["topics"]) for row in rows]
        labels = {category: np.array([category in t for t in topics]) for category in REUTERS}
    elif name == "webkb":
        rows = _read(folder / "webkb4/webkb4_stemmed.jsonl.xz")
        texts = [row["text"] for row in rows]
        labels = {category: np.array([row["label"] == category for row in rows]) for category in WEBKB}
    elif name == "ohsumed":
        rows = _read(folder / "ohsumed_single23/ohsumed.jsonl.xz")
        texts = [row["text"] for row in rows]
        labels = {category: np.array([row["label"] == code for row in rows]) for category, code in OHSUMED.items()}
    elif name == "20news":
        rows = _read(folder / "20news/20news_bydate.jsonl.xz")
        texts = [row["text"] for row in rows]
        labels = {g: np.array([row["label"] == g for row in rows]) for g in sorted({row["label"] for row in rows})}
    else:
        raise ValueError(f"unknown collection {name!r}: expected reuters, webkb, ohsumed or 20news")
    words = re.compile(r"[a-z]+")
    counts = CountVectorizer(analyzer=lambda text: words.findall(text.lower()), dtype=np.float64).fit_transform(texts)
    return Collection(name, sparse.csr_matrix(counts), labels)


def tfidf(counts: Any, train: Any, *parts: Any) -> list[Any]:
    """The rows ``train`` and those of every other part, with words and document frequencies from ``train`` alone."""
    frequency = np.bincount(counts[train].indices, minlength=counts.shape[1])
    words = np.flatnonzero(frequency >= 3)
    idf = np.log(len(train) / frequency[words])
    result = []
    for part in (train, *parts):
        X = sparse.csr_matrix(counts[part][:, words].multiply(idf))
        length = np.sqrt(X.multiply(X).sum(axis=1)).A1
        X = sparse.csr_matrix(sparse.diags(1 / np.maximum(length, 1e-300)) @ X)
        result.append(sparse.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape))
    return result


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        raise FileNotFoundError(f"no file {path}: set METRIMAX_DATA, or pass --data, to the folder that holds the data")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
