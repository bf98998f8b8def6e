"""The sets of imbalanced-learn's and KEEL's collections: their names, halves and rows."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from experiments.data import _svm
from experiments.harness import Options

COLLECTIONS = ("imblearn", "keel_imbalanced")
ROWS = 4000
"""Larger sets are cut to a stratified sample of this size, the same for all methods."""


class Sample(NamedTuple):
    X: Any
    y: Any


def names(options: Options) -> list[tuple[str, str]]:
    """The data sets and their halves: "development" for every other one by name, "confirmation" for the rest."""
    found = []
    for collection in COLLECTIONS:
        files = sorted(path.name.removesuffix(".svm.xz") for path in (options.data / collection).glob("*.svm.xz"))
        halves = ("development", "confirmation")
        found += [(f"{collection}/{name}", halves[k % 2]) for k, name in enumerate(files)]
    return found


@functools.lru_cache(maxsize=4)
def load(name: str, options: Options) -> Sample:
    if name.startswith("made"):
        X, y = make_classification(200, 6, weights=[0.85], flip_y=0.05, random_state=int(name[-1]))
        return Sample(X, y > 0)
    X, y = _svm(options.data / f"{name}.svm.xz")
    X, y = X.toarray(), y > 0
    if len(y) > ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=ROWS, stratify=y, random_state=0)
    return Sample(X, y)
