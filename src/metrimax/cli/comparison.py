"""The main job on data that comes with scikit-learn: F1 trained directly, against a plain SVM and a tuned threshold."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedShuffleSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from metrimax.estimators.svc import MeasureSVC
from metrimax.io.files import replacing
from metrimax.protocols import Labels, Vector

METHODS = ("plain SVM", "plain SVM, threshold tuned", "SVM trained for F1")
SPLITS = 5


@dataclass(frozen=True)
class Row:
    """One data set: F1 on the test halves of several splits, one column per method of `METHODS`."""

    name: str
    positives: float
    f1: Vector
    certificate: str


def tasks() -> list[tuple[str, Vector, Labels]]:
    """Three sets with a rare or a hard positive class."""
    diabetes, progression = load_diabetes(return_X_y=True)
    cancer, benign = load_breast_cancer(return_X_y=True)
    digits, digit = load_digits(return_X_y=True)
    return [
        ("diabetes: the fastest tenth", diabetes, progression >= np.quantile(progression, 0.9)),
        ("breast cancer by three features", cancer[:, [1, 4, 9]], benign == 0),
        ("digits: is it an 8?", digits, digit == 8),
    ]


def run(C: float = 1.0, splits: int = SPLITS) -> list[Row]:
    """Train the three methods at the same C on half of each set; F1 on the other half, over several splits."""
    rows = []
    for name, X, y in tasks():
        f1 = []
        for a, b in StratifiedShuffleSplit(splits, test_size=0.5, random_state=0).split(X, y):
            row, direct = _compare(X[a], y[a], X[b], y[b], C)
            f1.append(row)
        rows.append(Row(name, float(y.mean()), np.array(f1), certificate(direct)))
    return rows


def certificate(model: MeasureSVC) -> str:
    """What is known of a solution, in one line."""
    return (
        f"objective {model.objective_:.4f}, no classifier has less than {model.dual_bound_:.4f}: "
        f"gap {model.gap_:.1e} in units of F1, after {model.n_passes_:.0f} passes over the data"
    )


def _compare(X: Vector, y: Labels, X_test: Vector, y_test: Labels, C: float) -> tuple[list[float], MeasureSVC]:
    plain = make_pipeline(StandardScaler(), LinearSVC(loss="hinge", C=C, max_iter=100_000)).fit(X, y)
    # scores of examples that the classifier has not seen: tuned on its own training scores, a threshold misleads
    unseen = cross_val_predict(plain, X, y, cv=5, method="decision_function")
    direct = make_pipeline(StandardScaler(), MeasureSVC("f1", C=C)).fit(X, y)
    scores = plain.decision_function(X_test)
    calls = scores > 0, scores > best_threshold(y, unseen), direct.predict(X_test)
    return [float(f1_score(y_test, called)) for called in calls], direct[-1]


def best_threshold(y: Labels, scores: Vector) -> float:
    """The threshold of the highest F1 on these scores: halfway between two of them."""
    order = np.argsort(-scores)
    hits = np.cumsum(y[order])
    called = np.arange(1, len(y) + 1)
    k = int(np.argmax(2 * hits / (called + y.sum())))
    following = scores[order[k + 1]] if k + 1 < len(y) else scores[order[k]] - 2
    return float(scores[order[k]] + following) / 2


def table(rows: list[Row]) -> str:
    """The results as text, the best mean of each line marked, and the certificates of the last split's solutions."""
    lines = [f"{'F1 on the test half, mean +- std':<34}{'positives':>10}" + "".join(f"{m:>28}" for m in METHODS)]
    for row in rows:
        mean, std = row.f1.mean(axis=0), row.f1.std(axis=0)
        cells = [f"{m:.3f} +- {s:.3f}{' *' if m == mean.max() else '  '}" for m, s in zip(mean, std, strict=True)]
        lines.append(f"{row.name:<34}{row.positives:>10.1%}" + "".join(f"{cell:>28}" for cell in cells))
    lines += ["", "The certificate of what was trained for F1 (on the last split):"]
    lines += [f"{row.name:<34}{row.certificate}" for row in rows]
    return "\n".join(lines)


def plot(rows: list[Row], path: str | os.PathLike[str]) -> None:
    """The results as bars, written to a file. Needs matplotlib."""
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes: Any = figure.subplots()
    at = np.arange(len(rows))
    for k, (method, colour) in enumerate(zip(METHODS, ("0.75", "0.5", "tab:blue"), strict=True)):
        means, stds = [row.f1[:, k].mean() for row in rows], [row.f1[:, k].std() for row in rows]
        bars = axes.bar(at + 0.27 * (k - 1), means, 0.25, yerr=stds, label=method, color=colour)
        axes.bar_label(bars, fmt="%.2f", padding=2, fontsize=8)
    axes.set_xticks(at, [f"{row.name}\n({row.positives:.0%} positive)" for row in rows])
    axes.set_ylabel("F1 on the test half")
    axes.set_ylim(0, 1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.15))
    kind = Path(path).suffix.removeprefix(".") or "png"  # given, or a name without ending would get one
    with replacing(path) as file:
        figure.savefig(file, dpi=120, format=kind)
