"""Many labels over one X: the 90 Reuters categories, and thousands of generated labels.

metrimax trains them in lockstep; the peer is ``OneVsRestClassifier(LinearSVC(loss="hinge"))``, which minimises the
error rate of each. For F1 the two solve different problems, so the time is compared at the same C and each one's
default accuracy, and the macro-F1 is given beside it; for the error rate the objectives are recomputed by one function
and summed over the labels.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.judge import Judge
from benchmarks.timing import timed


def generated(n: int, labels: int, features: int, seed: int = 1) -> tuple[Any, np.ndarray]:
    """Text-like rows; a label is a pair of its own words, one of which a row must have, with Zipf frequencies."""
    X = data.generate("sparse", n, features=features, seed=seed).X
    rng = np.random.default_rng(seed)
    words = rng.integers(50, features, size=(labels, 2))
    present = X != 0
    Y = np.empty((n, labels), dtype=bool)
    for k, own in enumerate(words):
        Y[:, k] = np.asarray(present[:, own].sum(axis=1)).ravel() > 0
    empty = ~Y.any(axis=0)
    Y[0, empty] = True
    return X, Y


def _fit_metrimax(X: Any, Y: np.ndarray, measure: str) -> tuple[np.ndarray, dict[str, Any]]:
    from metrimax import MeasureSVC

    svc = MeasureSVC(measure, C=1.0, hinge=0.0, threshold="trained", n_threads=1).fit(X, Y.astype(int))
    W = np.column_stack([svc.coef_, svc.intercept_])
    return W, {"gap": float(np.max(svc.gap_)), "rounds": int(np.max(svc.n_iter_)), "passes": int(np.sum(svc.n_passes_))}


def _fit_linear_svc(X: Any, Y: np.ndarray, measure: str) -> tuple[np.ndarray, dict[str, Any]]:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ovr = OneVsRestClassifier(LinearSVC(loss="hinge", C=1.0, dual=True, random_state=0)).fit(X, Y.astype(int))
    W = np.array([np.append(svc.coef_.ravel(), svc.intercept_) for svc in ovr.estimators_])
    return W, {"passes": int(sum(svc.n_iter_ for svc in ovr.estimators_))}


def _macro_f1(W: np.ndarray, X: Any, Y: np.ndarray) -> float:
    from sklearn.metrics import f1_score

    called = np.asarray(X @ W[:, :-1].T) + W[:, -1] > 0
    return float(f1_score(Y, called, average="macro", zero_division=0))


def _objective(W: np.ndarray, X: Any, Y: np.ndarray, measure: str) -> float:
    return sum(Judge(data.Task("", X, Y[:, k]), measure).objective(w, 1.0) for k, w in enumerate(W))


def measure(smoke: bool = False, repeats: int = 3, **_: Any) -> list[dict[str, Any]]:
    if smoke:
        problems = {"generated 5": (*generated(500, 5, features=1000), None, None)}
    else:
        problems = {
            "reuters 90": data.reuters(),
            "generated 4000": (*generated(1_000, 4_000, features=1_000), None, None),
        }
    rows = []
    for name, (X, Y, X_test, Y_test) in problems.items():
        for competitor, fit, which in (
            ("metrimax", _fit_metrimax, "f1"),
            ("metrimax", _fit_metrimax, "error"),
            ("OneVsRest(LinearSVC)", _fit_linear_svc, "error"),
        ):
            large = Y.shape[1] > 1000
            if large and which == "error" and competitor == "metrimax":
                continue
            (W, facts), timing = timed(lambda f=fit, m=which, A=X, B=Y: f(A, B, m), 1 if large else min(repeats, 2))
            rows.append(
                {
                    "problem": name,
                    "n": X.shape[0],
                    "p": X.shape[1],
                    "labels": Y.shape[1],
                    "competitor": competitor,
                    "measure": which,
                    "C": 1.0,
                    **timing._asdict(),
                    "objective": float("nan") if large else _objective(W, X, Y, which),
                    "train_macro_f1": _macro_f1(W, X, Y),
                    "test_macro_f1": float("nan") if X_test is None else _macro_f1(W, X_test, Y_test),
                    **facts,
                }
            )
            print(f"  {name} {competitor} {which}: {timing.cpu_seconds:.3g} s", flush=True)
    return rows
