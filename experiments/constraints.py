"""How constraints hold on new data: recall at a precision of 0.9, and others, beside logistic regression.

    python -m experiments constraints --data DIR [--out DIR] [--quick] [--jobs N] [--page]

Half of every set is trained on, the other half is new data; two divisions of the 20 tables, and of the imbalanced
sets with 16 positives or more. Logistic regression (C = 1) places its threshold on scores of five folds, by two rules:
that of the measure, with its margin, and the plain one, the best place at which the constraint holds on these scores.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.preprocessing import StandardScaler

from experiments import imbalanced
from experiments.harness import Options, Program, Row, Task, markdown, select, write
from metrimax import MeasureEnsemble, MeasureSVCCV
from metrimax.measure import Constrained, get_measure
from metrimax.measure.contingency import contingency

MEASURES = {
    "recall@precision=0.9": ("precision of at least 0.9", "recall"),
    "precision@recall=0.8": ("recall of at least 0.8", "precision"),
    "tpr@fpr=0.01": ("false positive rate of at most 0.01", "recall"),
    "recall@budget=5%": ("share called of at most 0.05", "recall"),
}
"""What is asked for: the constraint, and what is to be as great as possible."""

POSITIVES = 16
COLLECTIONS = {"tables20": "20 tables", "imbalanced": "imbalanced-learn and KEEL"}
SEEDS = {"tables20": 2, "imbalanced": 2}
"""So many divisions into halves."""
LINEAR = ("MeasureSVCCV", "LogisticRegression, same rule", "LogisticRegression, plain rule")
ENSEMBLE = "MeasureEnsemble"
Split = tuple[Any, Any, Any, Any]


def sets(options: Options) -> Iterator[tuple[str, str, str]]:
    """Collection, name and half of every set."""
    if options.quick:
        yield from (("imbalanced", f"made:{k}", half) for k, half in enumerate(("development", "confirmation")))
        return
    for k, path in enumerate(sorted((options.data / "tables20").glob("*.npz"))):
        yield "tables20", path.stem, ("development", "confirmation")[k % 2]
    for name, half in imbalanced.names(options):
        if imbalanced.load(name, options).y.sum() >= POSITIVES:
            yield "imbalanced", name, half


def tasks(options: Options) -> Iterator[Task]:
    """Linear models first; the ensemble on the tables at the end."""
    found = [{"collection": c, "data": name, "half": half} for c, name, half in sets(options)]
    for seed in range(1 if options.quick else max(SEEDS.values())):
        for measure in MEASURES:
            for key in (own for own in found if seed < SEEDS[own["collection"]]):
                load = partial(read, key["collection"], key["data"], seed, options)
                yield Task(key | {"measure": measure, "kind": "linear", "seed": seed}, partial(linear, measure), load)
    for key in (own for own in found if own["collection"] == "tables20"):
        name = next(iter(MEASURES))
        load = partial(read, key["collection"], key["data"], 0, options)
        yield Task(key | {"measure": name, "kind": "ensemble", "seed": 0}, partial(ensemble, name), load)


@functools.lru_cache(maxsize=2)
def read(collection: str, name: str, seed: int, options: Options) -> Split:
    if name.startswith("made"):
        X, y = make_classification(800, 6, weights=[0.7], flip_y=0.02, random_state=int(name[-1]))
        y = y > 0
    elif collection == "tables20":
        table = np.load(options.data / "tables20" / f"{name}.npz")
        X, y = table["X"].astype(float), table["y"]
    else:
        X, y = imbalanced.load(name, options)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def linear(name: str, split: Split) -> Iterator[Row]:
    """The tables of the linear methods on the new data."""
    X, y, X_test, y_test = split
    measure = get_measure(name)
    logistic = LogisticRegression(max_iter=1000)
    scores = cross_val_predict(logistic, X, y, cv=StratifiedKFold(5), method="decision_function")
    new = logistic.fit(X, y).decision_function(X_test)
    calls: dict[str, Callable[[], Any]] = {
        LINEAR[0]: lambda: MeasureSVCCV(name, n_threads=1).fit(X, y).predict(X_test),
        LINEAR[1]: lambda: new > measure.threshold(y, scores),
        LINEAR[2]: lambda: new > plain_threshold(measure, y, scores),
    }
    yield from (_row(method, y_test, call) for method, call in calls.items())


def ensemble(name: str, split: Split) -> Iterator[Row]:
    X, y, X_test, y_test = split
    model = MeasureEnsemble(name, n_jobs=1, random_state=0)
    yield _row(ENSEMBLE, y_test, lambda: model.fit(X, y).predict(X_test))


def _row(method: str, y: Any, call: Callable[[], Any]) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        called = call()
    table = (int(count) for count in contingency(y, called))
    return {"method": method, **dict(zip(("tp", "fp", "fn", "tn"), table, strict=True))}


def plain_threshold(measure: Any, y: Any, scores: Any) -> float:
    """The best place at which the constraint holds on these very scores; above all of them if it does nowhere."""
    if not isinstance(measure, Constrained):
        return measure.threshold(y, scores)
    values = np.unique(scores)
    places = np.append((values[1:] + values[:-1]) / 2, np.inf)
    ranked = np.sort(scores[y]), np.sort(scores[~y])
    tp, fp = (len(own) - np.searchsorted(own, places, side="right").astype(float) for own in ranked)
    worth = measure.table_score(tp, fp, y.sum() - tp, (~y).sum() - fp)
    return float(places[np.argmax(worth)]) if worth.max() > 0 else float(places[-1])


def _shares(name: str, row: Row) -> tuple[float, float, float]:
    """What the constraint is about, as a part and the whole that it is of; and what is to be great."""
    tp, fp, fn, tn = (float(row[cell]) for cell in ("tp", "fp", "fn", "tn"))
    recall = tp / (tp + fn)
    return {
        "recall@precision=0.9": (tp, tp + fp, recall),
        "precision@recall=0.8": (tp, tp + fn, tp / (tp + fp) if tp + fp else 0.0),
        "tpr@fpr=0.01": (fp, fp + tn, recall),
        "recall@budget=5%": (tp + fp, tp + fp + fn + tn, recall),
    }[name]


def page(rows: list[Row], options: Options) -> None:
    """Write constraints.md."""
    text, missing = HEAD, []
    for name, (constraint, goal) in MEASURES.items():
        lines = []
        for collection, title in COLLECTIONS.items():
            for half in ("development", "confirmation"):
                for method in (*LINEAR, ENSEMBLE):
                    own = list(select(rows, measure=name, collection=collection, half=half, method=method))
                    if own:
                        lines.append([f"{title}, {half}", method, *_line(name, own)])
        what = constraint.split(" of at ")[0]
        if lines:
            text += f"\n## {name}: {goal} at a {constraint}\n\n{_divisions(rows, name)}\n\n"
            head = ["sets", "method", "called on", f"{what}, mean", f"{what}, pooled", f"{goal}, mean"]
            text += markdown(head, lines)
        else:
            missing.append(f"`{name}`")
    if missing:
        text += f"\nThe program has tasks for {', '.join(missing)}, too, which were not run yet.\n"
    write(options.pages / "constraints.md", text)


def _divisions(rows: list[Row], name: str) -> str:
    """How often every set was divided."""
    own = list(select(rows, measure=name, kind="linear"))
    seeds = {c: {row["seed"] for row in own if row["collection"] == c} for c in COLLECTIONS}
    parts = [f"{len(found)} of {COLLECTIONS[c]}" for c, found in seeds.items() if found]
    ensemble = "" if any(select(rows, measure=name, method=ENSEMBLE)) else f" {ENSEMBLE} was not run."
    return f"Divisions: {', '.join(parts)}.{ensemble}"


def _line(name: str, rows: list[Row]) -> list[str]:
    parts, wholes, values = np.array([_shares(name, row) for row in rows]).T
    some = wholes > 0
    shares = parts[some] / wholes[some]
    mean = f"{shares.mean():.3f}" if some.any() else "-"
    pooled = f"{parts.sum() / wholes.sum():.3f}" if some.any() else "-"
    return [f"{some.sum()} of {len(rows)}", mean, pooled, f"{values.mean():.3f}"]


HEAD = """# Constraints on new data

Does a precision of 0.9 that was asked for hold on rows that nothing was fitted to? Written by `python -m experiments
constraints --data DIR`; the rows are in `experiments/results/constraints.csv`.

Half of every set is trained on and the other half is new; features are standardised. "Same rule": the measure's
threshold, with its margin ([constraints.md](../constraints.md)), on scores of five folds of logistic regression with
C = 1. "Plain rule": the best threshold at which the constraint holds on these scores, without a margin; none is called
if it holds nowhere. The mean is over the sets where the share is defined (for a precision, where something is called),
pooled counts all rows together. The last column is the mean over all sets; where nothing is called, recall is 0.

What is done where no threshold has the margin was decided on the first division of both halves. That the final model
has to keep the constraint on its training rows, too, was decided on four sets of the development half.
"""

main = Program("constraints", tasks, page).main

if __name__ == "__main__":
    main()
