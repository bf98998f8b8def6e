"""The comparisons of ``metrimax demo``: rare labels of text and a table, with this library and with scikit-learn.

The text is on every machine that runs Python: the docstrings of its own library. The table comes with scikit-learn.
"""

from __future__ import annotations

import argparse
import ast
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from metrimax.cli.evaluating import judge
from metrimax.cli.page import page
from metrimax.estimators.ensemble import MeasureEnsemble
from metrimax.estimators.svc_cv import MeasureSVCCV
from metrimax.io.data import Data
from metrimax.io.models import LinearModel
from metrimax.protocols import Labels, Vector

MODULES = [
    *("asyncio", "argparse", "codecs", "collections", "datetime", "difflib", "doctest", "email", "enum", "http"),
    *("imaplib", "inspect", "ipaddress", "logging", "multiprocessing", "pathlib", "ssl", "statistics", "tarfile"),
    *("threading", "typing", "unittest", "urllib", "xml", "zipfile"),
]
SHOWN = "threading"
"""The label that the page shows."""
SHORTEST = 60
"""Shorter docstrings, in characters, are left out."""


@dataclass(frozen=True)
class Result:
    """F1 on the test rows, and the CPU seconds of the training."""

    method: str
    f1: float
    seconds: float


@dataclass(frozen=True)
class Text:
    """Docstrings as words, one half to train on and the other to test on, and the modules they come from."""

    X: Any
    Y: Labels
    X_test: Any
    Y_test: Labels
    words: list[str]
    labels: list[str]


def docstrings(root: Path | None = None) -> tuple[list[str], list[str]]:
    """The docstrings of functions and classes of Python's own library, and the modules they are from."""
    root = Path(sysconfig.get_paths()["stdlib"]) if root is None else root
    texts, labels = [], []
    for module in MODULES:
        # that of datetime is in _pydatetime.py since Python 3.12
        files = sorted((root / module).rglob("*.py")) or [root / f"{module}.py", root / f"_py{module}.py"]
        for file in files:
            if not file.is_file():  # some systems have only the bytecode of the library
                continue
            for node in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    text = ast.get_docstring(node) or ""
                    if len(text) >= SHORTEST:
                        texts.append(text)
                        labels.append(module)
    return texts, labels


def text_sample(texts: list[str], labels: list[str]) -> Text:
    """Weighted words, and a column of labels for every module."""
    names, codes = np.unique(labels, return_inverse=True)
    Y = codes[:, None] == np.arange(len(names))
    train, test = train_test_split(np.arange(len(texts)), test_size=0.5, random_state=0, stratify=codes)
    words = TfidfVectorizer(sublinear_tf=True)
    X = words.fit_transform([texts[i] for i in train])
    X_test = words.transform([texts[i] for i in test])
    return Text(X, Y[train], X_test, Y[test], words.get_feature_names_out().tolist(), names.tolist())


def compare_text(text: Text) -> tuple[list[Result], MeasureSVCCV]:
    """Macro-F1 of three ways to label text, and the classifier trained for it."""
    Y = text.Y.astype(int)
    plain = OneVsRestClassifier(LinearSVC())

    def tuned() -> Labels:
        """Thresholds from out-of-fold scores: a threshold tuned on training scores is too optimistic."""
        unseen = cross_val_predict(plain, text.X, Y, cv=5, method="decision_function")
        places = [best_threshold(own, scores) for own, scores in zip(text.Y.T, unseen.T, strict=True)]
        called: Labels = plain.fit(text.X, Y).decision_function(text.X_test) > np.array(places)
        return called

    ours = MeasureSVCCV("f1")
    ways: dict[str, Callable[[], Any]] = {
        "LinearSVC": lambda: plain.fit(text.X, Y).predict(text.X_test),
        "LinearSVC, a threshold tuned for every label": tuned,
        "MeasureSVCCV('f1')": lambda: ours.fit(text.X, Y).predict(text.X_test),
    }
    return [_timed(way, call, text.Y_test, average="macro") for way, call in ways.items()], ours


def compare_table() -> list[Result]:
    """F1 of three ways to classify tumours by three measurements, a problem that is far from linear."""
    X, benign = load_breast_cancer(return_X_y=True)
    X, y = X[:, [1, 4, 9]], (benign == 0).astype(int)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    ways = {
        "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression()),
        "HistGradientBoostingClassifier": HistGradientBoostingClassifier(random_state=0),
        "MeasureEnsemble('f1', 'fast')": MeasureEnsemble("f1", "fast", n_jobs=1, random_state=0),
    }
    return [_timed(way, lambda own=own: own.fit(X, y).predict(X_test), y_test) for way, own in ways.items()]  # type: ignore[misc]


def _timed(method: str, call: Callable[[], Any], truth: Any, average: str = "binary") -> Result:
    with threadpool_limits(1):  # on so little data several threads only wait for each other
        began = time.process_time()
        called = call()
        seconds = time.process_time() - began
    return Result(method, float(f1_score(truth, called, average=average, zero_division=0)), seconds)


def best_threshold(y: Labels, scores: Vector) -> float:
    """The threshold of the highest F1 on these scores: halfway between two of them."""
    order = np.argsort(-scores)
    hits = np.cumsum(y[order])
    called = np.arange(1, len(y) + 1)
    k = int(np.argmax(2 * hits / (called + y.sum())))
    following = scores[order[k + 1]] if k + 1 < len(y) else scores[order[k]] - 2
    return float(scores[order[k]] + following) / 2


def report(text: Text, ours: MeasureSVCCV) -> str:
    """The page of one label."""
    k = text.labels.index(SHOWN)
    told = {"objective": ours.objective_[k], "bound": ours.dual_bound_[k], "gap": ours.gap_[k]}
    settings = {"iterations": int(ours.n_iter_[k]), "status": "converged"}
    model = LinearModel(
        coef=ours.coef_[[k]],
        intercept=ours.intercept_[[k]],
        threshold=np.zeros(1),
        classes=["other", SHOWN],
        measure="f1",
        index_base=None,
        feature_names=text.words,
        training={"labels": [{name: float(value) for name, value in told.items()} | settings]},
    )
    truth = text.Y_test[:, k]
    data = Data("docstrings", text.X_test, np.where(truth, SHOWN, "other"))
    arguments = argparse.Namespace(positive=None, quiet=True, command="demo")
    judged = judge(arguments, data, model, model.scores(text.X_test))
    return page(
        data,
        model,
        judged,
        title=f"Which docstrings are from the module {SHOWN}?",
        remark="The half of the docstrings of Python's own library that was not trained on.",
    )
