"""Linear classifiers with their defaults beside logistic regression with a threshold from its folds.

    python -m experiments linear --data DIR [--out DIR] [--quick] [--jobs N] [--page]

`MeasureSVCCV` and `MeasureSVC`, trained for the measure of the table, beside what users do instead: logistic regression
that chooses C by log-loss, with the threshold that is best for the measure on scores out of fold. Tables, imbalanced
sets and categories of text have two classes; collections with several labels are judged by macro-F1. Every collection
is divided in two halves, by name: what was chosen was chosen on the first.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from experiments.data import OHSUMED, WEBKB, Collection, Split, _svm, collection
from experiments.data import load as load_text
from experiments.harness import Options, Program, Row, Task
from experiments.linear_page import HALVES, LOGISTIC, METHODS, page
from metrimax import MeasureSVC, MeasureSVCCV, PrecisionAtK
from metrimax.measure import get_measure

SEED = 23
"""Of the splits of tables, which no choice was made on."""
ROWS = 2000
"""Of an imbalanced set, at most."""
SETS = 4
"""One of so many imbalanced sets is taken."""
FEWEST = 10
"""Positives to train on: logistic regression chooses C by three folds of each of five."""
TEXTS = [
    *(f"webkb:{name}" for name in WEBKB),
    *(f"ohsumed:{name}" for name in OHSUMED),
    *(f"20news:{k}" for k in (3, 8, 15)),
]
MEASURES: dict[str, Any] = {
    "f1": get_measure("f1"),
    "balanced_error": get_measure("balanced_error"),
    "mcc": get_measure("mcc"),
    "prbep": get_measure("prbep"),
    "precision_at_half_p": PrecisionAtK("0.5p", labellings="at_least"),
    "average_precision": get_measure("average_precision"),
    "roc_area": get_measure("roc_area"),
}
FEW = ("f1", "average_precision")
"""The measures of imbalanced sets and text, to keep the run short."""


def tasks(options: Options) -> Iterator[Task]:
    for kind, names in problems(options).items():
        for k, data in enumerate(names):
            for method in METHODS:
                key = {"kind": kind, "data": data, "half": HALVES[k % 2], "method": method}
                if kind == "labels":
                    yield Task(key, partial(labels, method), partial(several, data, options))
                else:
                    measures = tuple(MEASURES) if kind == "tables" else FEW
                    yield Task(key, partial(run, method, measures), partial(read, data, options))


def problems(options: Options) -> dict[str, list[str]]:
    """The names of the problems of every kind."""
    if options.quick:
        made = ["made:0", "made:1"]
        return {"tables": made, "labels": ["made"], "imbalanced": made, "text": made}
    found = {"tables": files(options, "tables20", ".npz")}
    sets = [name for folder in ("imblearn", "keel_imbalanced") for name in files(options, folder, ".svm.xz")]
    found["imbalanced"] = [name for name in sets[::SETS] if read(name, options)[1].sum() >= FEWEST]
    found["text"] = TEXTS
    found["labels"] = ["reuters", *files(options, "multilabel3", ".npz")]
    return found


def files(options: Options, folder: str, suffix: str) -> list[str]:
    paths = (options.data / folder).glob(f"*{suffix}")
    return sorted(f"{folder}/{path.name.removesuffix(suffix)}" for path in paths)


@functools.lru_cache(maxsize=2)
def read(data: str, options: Options) -> Split:
    """60 % to train on and 40 % to test on, standardised; text as it is divided."""
    if data.partition(":")[0] in ("webkb", "ohsumed", "20news"):
        X, y, X_test, y_test = load_text(data, options.data, 3000)
        return X, y, X_test[:10_000], y_test[:10_000]
    if data.startswith("made"):
        X, y = make_classification(240, 5, weights=[0.8], flip_y=0.05, random_state=int(data[-1]))
    elif data.startswith("tables20"):
        table = np.load(options.data / f"{data}.npz")
        X, y = table["X"].astype(float), table["y"]
    else:
        X, y = _svm(options.data / f"{data}.svm.xz")
        X = X.toarray()
    if len(y) > ROWS and not data.startswith("tables20"):
        X, _, y, _ = train_test_split(X, y, train_size=ROWS, stratify=y, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y > 0, test_size=0.4, stratify=y, random_state=SEED)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def run(method: str, measures: tuple[str, ...], split: Split) -> Iterator[Row]:
    """The value of every measure on the test rows, and whether anything was learnt."""
    X, y, X_test, y_test = split
    scores_of = logistic(X, y, X_test) if method == LOGISTIC else None
    for name in measures:
        measure = MEASURES[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is not learnt is counted
            began = time.process_time()
            if scores_of is None:
                model = (MeasureSVCCV if method == "MeasureSVCCV" else MeasureSVC)(measure, n_threads=1).fit(X, y)
                scores, learnt = model.decision_function(X_test), bool(model.coef_.any())
            else:
                out, scores = scores_of
                scores, learnt = scores - (0.0 if measure.ranks else threshold(measure, y, out)), True
            seconds = time.process_time() - began
        value = measure.score(y_test, np.ascontiguousarray(scores, dtype=float))
        row = {"measure": name, "value": float(value), "learnt": learnt, "positives": int(y.sum())}
        yield row | ({} if scores_of is not None else {"cpu_seconds": seconds})


def logistic(X: Any, y: Any, X_test: Any) -> tuple[Any, Any]:
    """Scores out of five folds, and of the test rows; C by log-loss."""

    def model() -> Any:
        return LogisticRegressionCV(Cs=[0.003, 0.03, 0.3, 3], cv=3, scoring="neg_log_loss", max_iter=300)

    out = np.zeros(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for train, test in StratifiedKFold(5, shuffle=True, random_state=SEED).split(X, y):
            out[test] = model().fit(X[train], y[train]).decision_function(X[test])
        return out, model().fit(X, y).decision_function(X_test)


def threshold(measure: Any, y: Any, scores: Any) -> float:
    """The best of at most 400 thresholds between scores."""
    ordered = np.sort(scores)
    places = (ordered[1:] + ordered[:-1]) / 2
    places = places[:: max(1, len(places) // 400)]
    return float(places[int(np.argmax([measure.score(y, scores - at) for at in places]))])


@functools.lru_cache(maxsize=1)
def several(data: str, options: Options) -> Collection:
    """A collection with several labels: tf-idf where it is sparse, standardised where not."""
    if data == "made":
        X, Y = make_multilabel_classification(300, 10, n_classes=4, random_state=0)
        return Collection(X[:150] / 10, Y[:150] > 0, X[150:] / 10, Y[150:] > 0)
    if data == "reuters":
        return collection("reuters", options.data)
    found = np.load(options.data / f"{data}.npz")
    X, X_test = (
        sparse.csr_matrix((found[p + "data"], found[p + "indices"], found[p + "indptr"]), shape=found[p + "shape"])
        for p in ("", "t")
    )
    counts = found["Y"].sum(axis=0)
    some = (counts >= 3) & (counts < len(found["Y"]))
    if X.nnz > 0.3 * X.shape[0] * X.shape[1]:
        scaler = StandardScaler().fit(X.toarray())
        X, X_test = scaler.transform(X.toarray()), scaler.transform(X_test.toarray())
    else:
        weights = TfidfTransformer().fit(X)
        X, X_test = weights.transform(X), weights.transform(X_test)
    return Collection(X.astype(float), found["Y"][:, some] > 0, X_test.astype(float), found["Yt"][:, some] > 0)


def labels(method: str, data: Collection) -> Iterator[Row]:
    """Macro-F1; logistic regression with C = 1 and C = 10, and for every label the threshold of three folds."""
    X, Y, X_test, Y_test = data.X, data.Y.astype(int), data.X_test, data.Y_test.astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method != LOGISTIC:
            model = (MeasureSVCCV if method == "MeasureSVCCV" else MeasureSVC)("f1", n_threads=1).fit(X, Y)
            yield {"measure": "macro_f1", "value": macro(Y_test, model.predict(X_test)), "positives": int(Y.sum())}
            return
        for C in (1.0, 10.0):
            called = np.zeros(Y_test.shape, dtype=int)
            for k, y in enumerate(Y.T):
                called[:, k] = one_label(C, X, y > 0, X_test)
            row = {"measure": "macro_f1", "value": macro(Y_test, called), "positives": int(Y.sum())}
            yield row | {"setting": f"C = {C:g}"}


def one_label(C: float, X: Any, y: Any, X_test: Any) -> Any:
    """What is called by logistic regression with the threshold of the best F1 on scores of three folds."""
    model = LogisticRegression(C=C, solver="liblinear", max_iter=300)
    out = np.full(len(y), -1.0)
    for train, test in KFold(3, shuffle=True, random_state=0).split(y):
        if 0 < y[train].sum() < len(train):
            out[test] = model.fit(X[train], y[train]).decision_function(X[test])
    order = np.argsort(-out)
    best = int(np.argmax(2 * np.cumsum(y[order]) / (np.arange(1, len(y) + 1) + y.sum())))
    at = (out[order[best]] + out[order[min(best + 1, len(y) - 1)]]) / 2
    return model.fit(X, y).decision_function(X_test) > at


def macro(Y: Any, called: Any) -> float:
    return float(f1_score(Y, called, average="macro", zero_division=0))


main = Program("linear", tasks, page).main
