"""Joachims (2005), Table 1 and Figure 1, and the slides' tables of iterations and support vectors.

    python -m experiments joachims2005 --data DIR [--out DIR] [--quick] [--jobs N] [--page]

Direct training for F1, PRBEP, Rec@2p and ROC area against a soft-margin SVM with a cost model: C (and j) by
hold-out for every class (`experiments.holdout`). The page is written by `experiments.joachims2005_page`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from experiments import joachims2005_causes, joachims2005_slides
from experiments.data import Collection, collection
from experiments.harness import Options, Program, Row, Task
from experiments.holdout import GRID, LARGE, MEASURES, Chosen, best_threshold, decision, split, train, value
from experiments.joachims2005_page import page
from metrimax.solvers import CuttingPlane, DualCD

SETS = (("reuters", 1), ("optdigits", 1), ("covtype/first", 5), ("covtype/1000", 5))
"""The collections, and how many times a sample of each is drawn."""
TUNED = "f1 with a threshold"
COSTS = tuple(2.0**k for k in range(8))
FEW = (2.0**-3, 1.0, 2.0**3)
"""The C at which iterations and support vectors are counted."""
ROUGH = 1e-2
"""The gap at which settings are compared on the held-out part; the classifiers themselves are trained to 1e-3."""


def tasks(options: Options) -> Iterator[Task]:
    sets = SETS
    if options.quick:
        sets = (("optdigits" if options.have_data else "digits", 1),)
    for data, draws in sets:
        for seed in range(draws):
            prepare = partial(read, data, options, seed)
            key = {"data": data, "protocol": "hold-out", "seed": seed}
            for measure in MEASURES:
                yield Task(key | {"method": "direct", "measure": measure}, partial(direct, measure), prepare)
            yield Task(key | {"method": "cost model"}, cost_model, prepare)
            if seed == 0:
                for measure in (*MEASURES, "error"):
                    counted = {"data": data, "protocol": "cold start", "method": "cutting plane", "measure": measure}
                    yield Task(counted | {"seed": seed}, partial(iterations, measure), prepare)
    if not options.quick:
        prepare = partial(read, "covtype", options, 0)
        key = {"data": "covtype", "protocol": "hold-out", "seed": 0}
        for measure in MEASURES:
            yield Task(key | {"method": "direct", "measure": measure}, partial(direct, measure), prepare)
        yield Task(key | {"method": "cost model"}, cost_model, prepare)
        yield from joachims2005_causes.tasks(options, read)
        yield from joachims2005_slides.tasks(options, read)


def read(data: str, options: Options, seed: int) -> tuple[Collection, bool]:
    """The collection, and whether to be quick about it: 300 training examples and two classes."""
    whole = collection(data, options.data, seed)
    if not options.quick:
        return whole, False
    X, Y, X_test, Y_test = whole
    return Collection(X[:300], Y[:300, 3:5], X_test[:500], Y_test[:500, 3:5]), True


def part_for_choice(data: Collection, seed: int) -> tuple[Any, Any, Any, Any]:
    """Examples to train on and held-out ones, for choosing settings."""
    X, Y = data.X, data.Y
    if len(Y) > LARGE:
        rows = split(Y, seed, LARGE / len(Y))[1]
        X, Y = X[rows], Y[rows]
    inside, outside = split(Y, seed)
    return X[inside], Y[inside], X[outside], Y[outside]


def grids(quick: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return ((0.25, 1.0, 4.0), (1.0, 4.0)) if quick else (GRID, COSTS)


def direct(measure: str, prepared: tuple[Collection, bool]) -> Iterator[Row]:
    """One classifier per class, trained for the measure."""
    data, quick = prepared
    X, Y, X_held, Y_held = part_for_choice(data, 0)

    def evaluate(settings: list[tuple[float, ...]]) -> Any:
        Cs = [C for (C,) in settings]
        paths = train(measure, X, Y, [Cs] * Y.shape[1], tol=ROUGH)
        table = np.empty((len(Cs), Y.shape[1]))
        for label, path in enumerate(paths):
            scores = decision(path, X_held)
            for k in range(len(Cs)):
                table[k, label] = judged(measure, Y[:, label], Y_held[:, label], scores[:, k])
        return table

    chosen = Chosen(evaluate, grids(quick)[0])
    for setting, held in chosen.table.items():  # how much C matters, from training examples alone
        yield {"protocol": "held-out part", "label": "mean", "C": setting[0], "value": float(np.nanmean(held))}
    fitted = [path[0] for path in train(measure, data.X, data.Y, chosen.settings)]
    scores = decision(fitted, data.X_test)
    for label, one in enumerate(fitted):
        yield {
            "label": label,
            "positives": int(data.Y[:, label].sum()),
            "value": value(measure, data.Y_test[:, label], scores[:, label]),
            "C": chosen.settings[label][0],
            "most_C": chosen.most[0],
            "n_iter": one.solution.n_iter,
            "n_support": one.solution.n_support,
            "gap": one.solution.gap,
            "status": one.solution.status.name,
        }


def judged(measure: str, y: Any, y_held: Any, scores: Any) -> float:
    """The value on the held-out part; not a number where the class is absent from one of the parts."""
    return value(measure, y_held, scores) if y.any() else float("nan")


def cost_model(prepared: tuple[Collection, bool]) -> Iterator[Row]:
    """A soft-margin SVM whose positives count j times; C and j chosen for every measure from the same fits.

    For F1 also with a threshold, the one that does best on the held-out part with each C and j.
    """
    data, quick = prepared
    X, Y, X_held, Y_held = part_for_choice(data, 0)
    columns = [*MEASURES, TUNED]
    known: dict[tuple[float, ...], dict[str, Any]] = {}
    thresholds: dict[tuple[float, ...], Any] = {}

    def evaluate(column: str, settings: list[tuple[float, ...]]) -> Any:
        new = [setting for setting in settings if setting not in known]
        for j in sorted({j for _, j in new}):
            own = [setting for setting in new if setting[1] == j]
            for setting in own:
                known[setting] = {name: np.empty(Y.shape[1]) for name in columns}
                thresholds[setting] = np.empty(Y.shape[1])
            Cs = [C for C, _ in own]
            for label, path in enumerate(weighted(X, Y, [Cs] * Y.shape[1], [j] * Y.shape[1], tol=ROUGH)):
                y, scores = Y_held[:, label], decision(path, X_held)
                for k, setting in enumerate(own):
                    for name in MEASURES:
                        known[setting][name][label] = judged(name, Y[:, label], y, scores[:, k])
                    best, thresholds[setting][label] = best_threshold(y, scores[:, k])
                    known[setting][TUNED][label] = best if Y[:, label].any() else np.nan
        return [known[setting][column] for setting in settings]

    for column in columns:
        chosen = Chosen(partial(evaluate, column), *grids(quick))
        Cs, js = zip(*chosen.settings, strict=True)
        fitted = [path[0] for path in weighted(data.X, data.Y, [[C] for C in Cs], js)]
        scores = decision(fitted, data.X_test)
        measure = "f1" if column == TUNED else column
        for label, setting in enumerate(chosen.settings):
            shift = 0.0
            if column == TUNED and np.isfinite(known[setting][TUNED][label]):
                shift = thresholds[setting][label]
            yield {
                "method": "cost model, threshold" if column == TUNED else "cost model",
                "measure": measure,
                "label": label,
                "positives": int(data.Y[:, label].sum()),
                "value": value(measure, data.Y_test[:, label], scores[:, label] - shift),
                "C": setting[0],
                "j": setting[1],
                "most_C": chosen.most[0],
                "most_j": chosen.most[1],
                "gap": fitted[label].solution.gap,
                "status": fitted[label].solution.status.name,
            }


def weighted(X: Any, Y: Any, Cs: Any, js: Any, *, tol: float = 1e-3) -> Any:
    """Soft-margin SVMs with the positives of each class counted j times."""
    weights = [np.where(y, j, 1.0) for y, j in zip(Y.T, js, strict=True)]
    return train("error", X, Y, Cs, weights=weights, tol=tol)


def iterations(measure: str, prepared: tuple[Collection, bool]) -> Iterator[Row]:
    """Iterations and cuts with weight of the paper's algorithm and of ours, each C from scratch."""
    data, quick = prepared
    order = np.argsort(-data.Y.sum(axis=0), kind="stable")
    labels = order[::6] if len(order) > 30 else order
    runs = {"cutting plane": CuttingPlane(), "default": None}
    if measure == "error":
        runs["dual coordinate descent"] = DualCD()
    for solver, made in runs.items():
        for C in FEW[1:2] if quick else FEW:
            for label, path in zip(
                labels, train(measure, data.X, data.Y[:, labels], [[C]] * len(labels), solver=made), strict=True
            ):
                solution = path[0].solution
                yield {
                    "method": solver,
                    "label": label,
                    "C": C,
                    "n_iter": solution.n_iter,
                    "n_support": solution.n_support,
                    "vectors": "" if solution.dual_coef is None else int(np.count_nonzero(solution.dual_coef)),
                    "gap": solution.gap,
                    "status": solution.status.name,
                }


main = Program("joachims2005", tasks, page).main
