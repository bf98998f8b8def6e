"""The default C of `MeasureSVC`: which one plain number does well on many collections, by cross-validation.

    python -m experiments default_c --data DIR [--out DIR] [--quick] [--page]

Three folds of training examples alone; no test part of any other experiment is looked at. Every class against the
rest, all C of a grid along one path. Text is TFIDF of unit length (20 Newsgroups: logarithms of counts), pixels are
divided by their greatest value, and the development half of the imbalanced sets is standardised. The page shows
beside these what `experiments.joachims2005` found on the held-out third of the training parts of its collections.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from experiments import imbalanced
from experiments.data import collection, documents, tfidf
from experiments.default_c_page import page
from experiments.harness import Options, Program, Row, Task
from experiments.holdout import decision, train, value
from metrimax.measure import get_measure

GRID = tuple(2.0**k for k in range(-4, 7))
MEASURES = ("f1", "prbep", "roc_area", "error")
FOLDS = 3
AT_A_TIME = 15
"""Classes trained side by side, which bounds the memory for their weights along the path."""


EVERY = 5
"""Of the 105 classes of sector every fifth is taken."""


class Part(NamedTuple):
    """A fold: examples to train on and examples to test on, with boolean labels, one column per class."""

    X: Any
    Y: Any
    X_test: Any
    Y_test: Any


def tasks(options: Options) -> Iterator[Task]:
    sets = ("webkb", "ohsumed", "usps", "imbalanced", "sector", "20news")
    if options.quick:
        sets = ("digits",)
    for fold in range(1 if options.quick else FOLDS):
        for data in sets:
            for measure in MEASURES:
                key = {"data": data, "protocol": f"{FOLDS} folds", "method": "MeasureSVC", "measure": measure}
                grid = (0.25, 1.0, 4.0) if options.quick else GRID
                yield Task(key | {"seed": fold}, partial(run, measure, grid), partial(parts, data, options, fold))


@functools.lru_cache(maxsize=1)
def parts(data: str, options: Options, fold: int) -> list[Part]:
    """The fold of a collection: one part, or one for each of the imbalanced sets."""
    if data == "imbalanced":
        half = [name for name, half in imbalanced.names(options) if half == "development"]
        samples = (imbalanced.load(name, options) for name in half)
        return [_standardised(_part(sample.X, sample.y[:, None], fold)) for sample in samples]
    if data in ("ohsumed", "webkb"):
        found = documents(data, options.data)
        Y = np.column_stack(list(found.categories.values()))
        rows = _rows(Y, fold)
        X, X_test = tfidf(found.counts, *rows)
        return [Part(X, Y[rows[0]], X_test, Y[rows[1]])]
    X, Y, _, _ = collection(data, options.data)
    if data == "sector":
        Y = Y[:, ::EVERY]
    return [_part(X, Y, fold)]


def _part(X: Any, Y: Any, fold: int) -> Part:
    inside, outside = _rows(Y, fold)
    return Part(X[inside], Y[inside], X[outside], Y[outside])


def _rows(Y: Any, fold: int) -> tuple[Any, Any]:
    """Rows to train on and rows to test on; of several labels to an example the first one is spread evenly."""
    first = np.where(Y.any(axis=1), Y.argmax(axis=1), -1)
    rare = np.isin(first, [c for c in np.unique(first) if (first == c).sum() < FOLDS])
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(first, np.where(rare, -1, first))
    return list(folds)[fold]


def _standardised(part: Part) -> Part:
    scaler = StandardScaler().fit(part.X)
    return part._replace(X=scaler.transform(part.X), X_test=scaler.transform(part.X_test))


def run(measure: str, grid: tuple[float, ...], folds: list[Part]) -> Iterator[Row]:
    """The mean over classes (or sets) for every C; classes without positives on one side are left out."""
    values = []
    for part in folds:
        both = np.flatnonzero(part.Y.any(axis=0) & part.Y_test.any(axis=0))
        for some in np.array_split(both, -(-len(both) // AT_A_TIME)):
            for label, path in zip(some, train(measure, part.X, part.Y[:, some], [grid] * len(some)), strict=True):
                scores, y = decision(path, part.X_test), part.Y_test[:, label]
                values.append([_judged(measure, y, scores[:, k]) for k in range(len(grid))])
    for C, mean in zip(grid, np.mean(values, axis=0), strict=True):
        yield {"C": C, "classes": len(values), "value": float(mean)}


def _judged(measure: str, y: Any, scores: Any) -> float:
    if measure == "error":
        return float(get_measure(measure).score(y, np.ascontiguousarray(scores)))
    return value(measure, y, scores)


main = Program("default_c", tasks, page).main
