"""Joachims (2000), Tables 1-3 and Figures 4-6, and choosing C by xi-alpha.

    python -m experiments xi_alpha --data DIR [--out DIR] [--quick] [--jobs N] [--page]

The page is written by `experiments.xi_alpha_page`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from experiments.data import documents, tfidf
from experiments.harness import Options, Program, Row, Task
from experiments.xi_alpha_measures import measures
from experiments.xi_alpha_page import EXPONENTS, page
from metrimax import MeasureSVC, MeasureSVCCV, leave_one_out, xi_alpha
from metrimax.estimates.estimate import Estimate
from metrimax.estimates.resampling import estimator_table

C = 0.5
CS = [2.0**k for k in EXPONENTS]
SIZES = (64, 194, 645, 1935, 6451)
WAYS = {
    "xi_alpha": {"selection": "xi_alpha"},
    "xi_alpha, rho = 1": {"selection": "xi_alpha", "rho": 1.0},
    "holdout": {"selection": "holdout"},
    "cv": {"selection": "cv"},
}
FRESH = {"reuters": range(50, 53), "webkb": range(200, 203), "ohsumed": range(200, 203), "20news": range(200, 201)}
"""Splits, and one collection, on which nothing was ever tried while the rule for rho was made."""


class Halves(NamedTuple):
    """A random training and test part of equal size, with the labels of both for every category."""

    X: Any
    X_test: Any
    labels: dict[str, tuple[Any, Any]]


@lru_cache(maxsize=1)
def halves(name: str, options: Options, seed: int, size: int | None = None) -> Halves:
    found = documents(name, options.data)
    order = np.random.default_rng(seed).permutation(found.counts.shape[0])
    size = len(order) // 2 if size is None else size
    train, test = order[:size], order[size : 2 * size]
    labels = {category: (y[train], y[test]) for category, y in found.categories.items()}
    return Halves(*tfidf(found.counts, train, test), labels)


def tasks(options: Options) -> Iterator[Task]:
    """All of them on Reuters, Tables 2 and 3 and the confirmation on further collections."""
    quick = options.quick
    main = "made" if quick else "reuters"
    three, one = (("first",), "first") if quick else (("earn", "acq", "money-fx"), "money-fx")

    def task(protocol: str, run: Any, data: str, seed: int, size: int | None = None, **more: Any) -> Task:
        key = {"data": data, "protocol": protocol, "seed": seed} | more
        return Task(key, run, prepare=partial(halves, data, options, seed, size))

    for data in (main,) if quick else ("reuters", "webkb", "ohsumed"):
        for seed in range(2 if quick else 10):
            yield task("tables", estimates, data, seed)
            yield task("free", partial(estimates, intercept="free"), data, seed)
    for size in (50, 75, 100) if quick else SIZES:  # the page compares the third and later ones
        for seed in range(1000, 1002 if quick else 1020):
            yield task("curves", partial(estimates, categories=three), main, seed, size, n=size)
    for seed in range(1 if quick else 3):  # on the splits that the rule for rho was made on
        yield task("selection", partial(choices, WAYS), main, seed)
    for data, seeds in {main: range(2, 3)}.items() if quick else FRESH.items():
        for seed in seeds:
            yield task("confirm", partial(choices, ("xi_alpha", "cv")), data, seed)
    yield task("path", partial(path, one), main, 0, category=one)
    for category in (one,) if quick else ("earn", "money-fx", "ship"):
        yield task("loo", partial(loo, category), main, 0, category=category)
    few = (("made", "first"),) if quick else (("webkb", "course"), ("reuters", "acq"), ("ohsumed", "Cardiovascular"))
    for data, category in few:
        size = 30 if quick else 120
        yield task("measures", partial(measures, category=category, size=size), data, 0, category=category)
    size = 100 if quick else 1935
    yield task("estimators", partial(estimators, one, 3 if quick else 50), main, 0, size, n=size, category=one)


def machine(intercept: str | None = None) -> MeasureSVC:
    return MeasureSVC("error", C=C, solver="dual_cd", tol=1e-4, n_threads=1, intercept_scaling=intercept)


def estimates(part: Halves, categories: Iterable[str] | None = None, intercept: str | None = None) -> Iterator[Row]:
    """Xi-alpha estimates with rho 1 and 2, and the hold-out's; of the paper's machine with a free intercept."""
    for category in part.labels if categories is None else categories:
        y, y_test = part.labels[category]
        if not (y.any() and y_test.any()):
            continue
        model = machine(intercept).fit(part.X, y)
        found = {f"rho{rho}": xi_alpha(model, part.X, y, rho=rho) for rho in (1, 2)}
        said = {"stable": int(found["rho2"].stable), "proven": int(found["rho2"].proven)}
        found["holdout"] = Estimate.count(model.predict(part.X_test) != y_test, y_test)
        values = {f"{name}_{way}": v for way, one in found.items() for name, v in one.as_dict().items()}
        yield {"category": category, "n": len(y)} | values | said


def choices(ways: Iterable[str], part: Halves) -> Iterator[Row]:
    """C chosen in several ways: test F1 and processor time, one thread."""
    for category, (y, y_test) in part.labels.items():
        for way in ways:
            began = time.process_time()
            model = MeasureSVCCV("error", scoring="f1", Cs=CS, n_threads=1, **WAYS[way]).fit(part.X, y)
            seconds = time.process_time() - began
            row = {"category": category, "method": way, "C": model.C_, "seconds": seconds}
            yield row | {"f1": model.score(part.X_test, y_test)}


def path(category: str, part: Halves) -> Iterator[Row]:
    """Estimated and true F1 over C, on one category."""
    y, y_test = part.labels[category]
    ways = {"measured": None, "rho1": 1.0}
    chosen = {
        way: MeasureSVCCV("error", scoring="f1", Cs=CS, selection="xi_alpha", rho=rho).fit(part.X, y)
        for way, rho in ways.items()
    }
    model = chosen["measured"]
    for k, c in enumerate(model.Cs_):
        fitted = model.plain(C=float(c)).fit(part.X, y)
        held = fitted.set_params(measure="f1").score(part.X_test, y_test)
        yield {"C": float(c), "holdout": held} | {way: one.cv_results_["f1"][k] for way, one in chosen.items()}


def loo(category: str, part: Halves) -> Iterator[Row]:
    """Exact leave-one-out: how many are retrained, and what that saves."""
    y, _ = part.labels[category]
    began = time.process_time()
    model = machine().fit(part.X, y)
    one = time.process_time() - began
    began = time.process_time()
    exact = leave_one_out(model, part.X, y)
    seconds = time.process_time() - began
    counts = {"n_retrained": exact.n_retrained, "n_undecided": exact.n_undecided}
    for way, estimate in (("leave-one-out", exact), ("xi-alpha, rho = 1", xi_alpha(model, part.X, y))):
        row = {"method": way, "n": len(y), "seconds": seconds, "seconds_one_training": one}
        yield row | counts | estimate.as_dict()


def estimators(category: str, n_bootstrap: int, part: Halves) -> Iterator[Row]:
    """The generic estimators beside xi-alpha, leave-one-out and the truth, on one category."""
    y, y_test = part.labels[category]
    model = machine().fit(part.X, y)
    for row in estimator_table(model, part.X, y, n_bootstrap=n_bootstrap, random_state=0):
        yield {"method": row.pop("estimator")} | row
    held = Estimate.count(model.predict(part.X_test) != y_test, y_test)
    yield {"method": "test set of the same size"} | held.as_dict() | {"seconds": 0.0}


main = Program("xi_alpha", tasks, page).main

if __name__ == "__main__":
    main()
