"""Joachims (2000), Tables 1-3 and Figures 4-6, and choosing C by xi-alpha: writes CSV files, figures and the page
``docs/results/xi_alpha.md``.

    python -m experiments.xi_alpha --data DIR [--quick] [--only tables curves selection confirm path ...]
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments import text
from experiments.xi_alpha_page import PAPER, RESULTS, write_page
from metrimax import MeasureSVC, MeasureSVCCV, leave_one_out, xi_alpha
from metrimax.estimation import Estimate
from metrimax.resampling import estimator_table

C = 0.5
MEASURES = ("error", "recall", "precision", "f1")
SIZES = (64, 194, 645, 1935, 6451)


def machine(tol: float = 1e-4) -> MeasureSVC:
    return MeasureSVC("error", C=C, solver="dual_cd", tol=tol, n_threads=1)


def halves(n: int, seed: int, size: int | None = None) -> tuple[Any, Any]:
    """A random training and test part, of equal size."""
    order = np.random.default_rng(seed).permutation(n)
    size = n // 2 if size is None else size
    return order[:size], order[size : 2 * size]


def row_of(model: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    """Xi-alpha estimates with rho 1 and 2, and the hold-out's."""
    row = {}
    for rho in (1, 2):
        estimate = xi_alpha(model, X, y, rho=rho)
        row |= {f"{name}_rho{rho}": value for name, value in estimate.as_dict().items()}
    held = Estimate.count(model.predict(X_test) != y_test, y_test)
    return row | {f"{name}_holdout": value for name, value in held.as_dict().items()} | {"stable": int(estimate.stable)}


def tables(data: Path | None, repeats: int) -> Iterator[dict[str, Any]]:
    for name in ("reuters", "webkb", "ohsumed"):
        collection = text.load(name, data)
        for repeat in range(repeats):
            train, test = halves(collection.counts.shape[0], repeat)
            X, X_test = text.tfidf(collection.counts, train, test)
            for category, labels in collection.categories.items():
                model = machine().fit(X, labels[train])
                row = row_of(model, X, labels[train], X_test, labels[test])
                yield {"collection": name, "category": category, "repeat": repeat, "n": len(train)} | row


def curves(data: Path | None, repeats: int) -> Iterator[dict[str, Any]]:
    collection = text.load("reuters", data)
    for size in SIZES:
        for repeat in range(repeats):
            train, test = halves(collection.counts.shape[0], 1000 + repeat, size)
            X, X_test = text.tfidf(collection.counts, train, test)
            for category in ("earn", "acq", "money-fx"):
                labels = collection.categories[category]
                if labels[train].any() and labels[test].any():
                    model = machine().fit(X, labels[train])
                    row = row_of(model, X, labels[train], X_test, labels[test])
                    yield {"category": category, "n": size, "repeat": repeat} | row


WAYS = {
    "xi_alpha": {"selection": "xi_alpha"},
    "xi_alpha, rho = 1": {"selection": "xi_alpha", "rho": 1.0},
    "holdout": {"selection": "holdout"},
    "cv": {"selection": "cv"},
}

FRESH = {"reuters": range(50, 53), "webkb": range(200, 203), "ohsumed": range(200, 203), "20news": range(200, 201)}
"""Splits, and one collection, on which nothing was ever tried while the rule for rho was made."""


def choices(collection: text.Collection, seeds: Iterable[int], ways: Iterable[str]) -> Iterator[dict[str, Any]]:
    """C chosen in several ways: test F1 and processor time, one thread."""
    for repeat in seeds:
        train, test = halves(collection.counts.shape[0], repeat)
        X, X_test = text.tfidf(collection.counts, train, test)
        for category, labels in collection.categories.items():
            for way in ways:
                began = time.process_time()
                model = MeasureSVCCV("error", scoring="f1", n_threads=1, **WAYS[way]).fit(X, labels[train])
                seconds = time.process_time() - began
                row = {"category": category, "repeat": repeat, "selection": way, "C": model.C_}
                yield row | {"f1": model.score(X_test, labels[test]), "seconds": seconds}


def selection(data: Path | None, repeats: int) -> Iterator[dict[str, Any]]:
    """On the Reuters categories, on the splits that the rule for rho was made on."""
    yield from choices(text.load("reuters", data), range(repeats), WAYS)


def confirm(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """The same on what the rule for rho has not seen."""
    for name, seeds in FRESH.items():
        for row in choices(text.load(name, data), seeds[:1] if quick else seeds, ("xi_alpha", "cv")):
            yield {"collection": name} | row


def path(data: Path | None, category: str) -> Iterator[dict[str, Any]]:
    """Estimated and true F1 over C, on one category."""
    collection = text.load("reuters", data)
    train, test = halves(collection.counts.shape[0], 0)
    X, X_test = text.tfidf(collection.counts, train, test)
    y, y_test = (collection.categories[category][part] for part in (train, test))
    ways = {"measured": None, "rho1": 1.0}
    chosen = {
        way: MeasureSVCCV("error", scoring="f1", selection="xi_alpha", rho=rho).fit(X, y) for way, rho in ways.items()
    }
    model = chosen["measured"]
    for k, c in enumerate(model.Cs_):
        held = model.judge(model.plain(C=float(c)).fit(X, y)).score(X_test, y_test)
        estimates = {way: fitted.cv_results_["f1"][k] for way, fitted in chosen.items()}
        yield {"category": category, "C": float(c)} | estimates | {"holdout": held}


def loo(data: Path | None, categories: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Exact leave-one-out: how many are retrained, and what that saves."""
    collection = text.load("reuters", data)
    train, _ = halves(collection.counts.shape[0], 0)
    (X,) = text.tfidf(collection.counts, train)
    for category in categories:
        y = collection.categories[category][train]
        began = time.process_time()
        model = machine().fit(X, y)
        one = time.process_time() - began
        began = time.process_time()
        exact = leave_one_out(model, X, y)
        seconds = time.process_time() - began
        for way, estimate in (("leave-one-out", exact), ("xi-alpha, rho = 1", xi_alpha(model, X, y))):
            yield (
                {"category": category, "n": len(y), "estimator": way}
                | estimate.as_dict()
                | {
                    "n_retrained": exact.n_retrained,
                    "n_undecided": exact.n_undecided,
                    "seconds": seconds,
                    "seconds_one_training": one,
                }
            )


def estimators(data: Path | None, category: str, n_bootstrap: int) -> Iterator[dict[str, Any]]:
    """The generic estimators beside xi-alpha, leave-one-out and the truth, on one category."""
    collection = text.load("reuters", data)
    train, test = halves(collection.counts.shape[0], 0, 1935)
    X, X_test = text.tfidf(collection.counts, train, test)
    labels = collection.categories[category]
    y, y_test = labels[train], labels[test]
    model = machine().fit(X, y)
    yield from estimator_table(model, X, y, n_bootstrap=n_bootstrap, random_state=0)
    held = Estimate.count(model.predict(X_test) != y_test, y_test)
    yield {"estimator": "test set of the same size"} | held.as_dict() | {"seconds": 0.0}


def save(name: str, rows: Iterator[dict[str, Any]]) -> None:
    """Write a CSV file beside the old one, and put it in its place when it is complete."""
    table = list(rows)
    path = RESULTS / f"xi_alpha_{name}.csv"
    partial = path.with_suffix(".partial")
    with partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        for row in table:
            writer.writerow({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()})
    partial.replace(path)
    print(f"{path}: {len(table)} rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="folder of the data sets")
    parser.add_argument("--quick", action="store_true", help="two repeats instead of ten or twenty")
    parts = ["tables", "curves", "selection", "confirm", "path", "loo", "estimators", "page"]
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    options = parser.parse_args()
    quick = options.quick
    runs = {
        "tables": lambda: tables(options.data, 2 if quick else 10),
        "curves": lambda: curves(options.data, 2 if quick else 20),
        "selection": lambda: selection(options.data, 1 if quick else 3),
        "confirm": lambda: confirm(options.data, quick),
        "path": lambda: path(options.data, "money-fx"),
        "loo": lambda: loo(options.data, ("ship",) if quick else ("earn", "money-fx", "ship")),
        "estimators": lambda: estimators(options.data, "money-fx", 5 if quick else 50),
    }
    for part in options.only:
        if part == "page":
            write_page(PAPER)
        else:
            save(part, runs[part]())


if __name__ == "__main__":
    main()
