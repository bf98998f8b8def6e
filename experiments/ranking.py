"""Ranking measures: NDCG, average precision and ROC area trained directly, beside LightGBM's lambdarank.

    python -m experiments ranking --data DIR [--out DIR] [--quick] [--jobs N] [--page]

Queries: LightGBM's own example has a test part; MQ2008 and OHSUMED are divided by query into five folds, each tested
once. Settings are chosen on the training queries alone, by three folds of them and by the value that is reported: C of
`MeasureRanker`, the number of leaves and trees of `LGBMRanker`.

Reuters: average precision against ROC area on the rare categories; C by a hold-out of a third of the training
documents (`experiments.holdout`), by average precision for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.data import collection, queries
from experiments.harness import Options, Program, Row, Task
from experiments.holdout import Chosen, decision, split, train
from experiments.ranking_page import page
from metrimax import MeasureRanker, MeasureRankerCV
from metrimax.measure import NDCG, AveragePrecision, Grouped, ROCArea

SETS = ("rank_lightgbm", "rank_mq2008_fold1test", "rank_ohsumed_letor3_fold1test")
TRAINED = {
    "ndcg": NDCG(10),
    "ndcg of all ranks": NDCG(None),
    "average_precision": AveragePrecision(),
    "roc_area": ROCArea(),
}
JUDGED = ("NDCG@10", "AP")
CHOSEN = "MeasureRankerCV"
FOLDS = 5
GRID = tuple(10.0**k for k in range(-3, 3))
ROUGH = 1e-2
"""The gap at which values of C are compared; the rankings themselves are trained to 1e-3."""
LEAVES, TREES = (4, 8, 16, 31), (25, 50, 100, 200, 400)
RARE = range(5, 101)
"""Training documents of a rare category; one in the test part is asked for."""
RANKED = {
    "average_precision": ("average_precision", ROUGH, 1e-3),
    "roc_area": ("roc_area", ROUGH, 1e-3),
    "roc_area to 1e-5": ("roc_area", 1e-5, 1e-5),
}
"""What is trained for the rare categories, to which gap while C is chosen, and at the end.

A thousandth of ROC area is ten of the negatives above every positive: for average precision that may be too coarse.
"""
REUTERS_GRID = tuple(2.0**k for k in range(-6, 7, 2))


class Queries(NamedTuple):
    X: Any
    y: Any
    groups: Any

    def take(self, rows: Any) -> Queries:
        return Queries(self.X[rows], self.y[rows], self.groups[rows])


def tasks(options: Options) -> Iterator[Task]:
    if options.have_data and not options.quick:
        for method, (measure, *gaps) in RANKED.items():
            key = {"data": "reuters", "protocol": "rare", "method": method}
            yield Task(key, partial(rare, measure, *gaps), partial(collection, "reuters", options.data))
    if not options.have_data:
        sets: tuple[str, ...] = ("generated",)
    else:
        sets = ("rank_mq2008_fold1test",) if options.quick else SETS
    for name in sets:
        for fold in range(FOLDS if name != "rank_lightgbm" else 1):
            key = {"data": name, "protocol": "queries", "fold": fold}
            prepare = partial(parts, name, fold, options.data)
            for method, measure in TRAINED.items():
                yield Task(key | {"method": method}, partial(linear, measure, options.quick), prepare)
            yield Task(key | {"method": CHOSEN}, partial(chosen_losses, options.quick), prepare)
            if find_spec("lightgbm"):
                yield Task(key | {"method": "lambdarank"}, partial(boosted, options.quick), prepare)


def parts(name: str, fold: int, data: Path) -> tuple[Queries, Queries]:
    """Training and test queries."""
    if name == "generated":
        whole = generated()
    else:
        whole = Queries(*queries(name, data, "train" if name == "rank_lightgbm" else "test"))
        if name == "rank_lightgbm":
            return whole, Queries(*queries(name, data, "test"))
    at = folds(whole.groups, FOLDS)
    return whole.take(np.flatnonzero(at != fold)), whole.take(np.flatnonzero(at == fold))


def generated() -> Queries:
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(600, 5)), np.repeat(np.arange(30), 20)
    return Queries(X, np.clip(np.round(X[:, 0] + rng.normal(size=600)), 0, 4), groups)


def folds(groups: Any, number: int) -> Any:
    """The fold of every example, whole queries together, in random order."""
    names, codes = np.unique(groups, return_inverse=True)
    return (np.random.default_rng(0).permutation(len(names)) % number)[codes]


def judged(name: str, part: Queries, scores: Any) -> float:
    """The mean over the queries whose labels vary."""
    measure, labels = (NDCG(10), part.y) if name == "NDCG@10" else (AveragePrecision(), part.y > 0)
    return Grouped(measure, part.groups).score(labels, np.asarray(scores, dtype=float))


def choose(fits: Any, data: Queries) -> dict[str, tuple[Any, dict[Any, float]]]:
    """For every value reported the best setting and the means of all, over three folds of the training queries.

    ``fits(train, others)`` yields settings with scores on the others.
    """
    at = folds(data.groups, 3)
    table: dict[str, dict[Any, list[float]]] = {name: {} for name in JUDGED}
    for fold in range(3):
        inside, outside = data.take(np.flatnonzero(at != fold)), data.take(np.flatnonzero(at == fold))
        for setting, scores in fits(inside, outside):
            for name in JUDGED:
                table[name].setdefault(setting, []).append(judged(name, outside, scores))
    means = {name: {setting: float(np.mean(v)) for setting, v in rows.items()} for name, rows in table.items()}
    return {name: (max(rows, key=lambda setting: rows[setting]), rows) for name, rows in means.items()}


def linear(measure: Any, quick: bool, prepared: tuple[Queries, Queries]) -> Iterator[Row]:
    """`MeasureRanker`, C chosen on the training queries."""
    data, test = prepared

    def fit(part: Queries, C: float, tol: float = 1e-3) -> MeasureRanker:
        return MeasureRanker(measure, C=C, hinge=0, tol=tol, n_threads=1).fit(*part)

    def fits(inside: Queries, outside: Queries) -> Iterator[tuple[float, Any]]:
        for C in (0.01, 1.0) if quick else GRID:
            yield C, fit(inside, C, ROUGH).predict(outside.X)

    chosen = choose(fits, data)
    for name, (C, means) in chosen.items():
        ranker = fit(data, C)
        yield {
            "measure": name,
            "value": judged(name, test, ranker.predict(test.X)),
            "training_value": judged(name, data, ranker.predict(data.X)),
            "setting": f"C {C:g}",
            "at_border": C in (min(means), max(means)),
            "queries": len(np.unique(test.groups)),
            "gap": ranker.gap_,
            "n_iter": ranker.n_iter_,
            "status": ranker.status_.name,
        }


def chosen_losses(quick: bool, prepared: tuple[Queries, Queries]) -> Iterator[Row]:
    """`MeasureRankerCV` with its defaults, trained for each value that is reported."""
    data, test = prepared
    for name in JUDGED:
        measure = NDCG(10) if name == "NDCG@10" else AveragePrecision()
        ranker = MeasureRankerCV(measure, Cs=(0.01, 1.0) if quick else None, n_threads=1).fit(*data)
        with_ = {key: ranker.trained_with_[key] for key in ("C", "risk", "logistic", "balanced")}
        yield {
            "measure": name,
            "value": judged(name, test, ranker.predict(test.X)),
            "training_value": judged(name, data, ranker.predict(data.X)),
            "setting": ", ".join(f"{key} {value}" for key, value in with_.items()),
            "queries": len(np.unique(test.groups)),
            "gap": ranker.gap_,
            "n_iter": ranker.n_iter_,
            "status": ranker.status_.name,
            **held_out(ranker.cv_results_),
        }


def held_out(table: dict[str, Any]) -> Row:
    """The best of all C on the training queries held out, for each of the losses."""
    names = {("1.0", 0.0): "risk alone", ("even", 1.0): "risk and logistic", ("0.0", 1.0): "logistic alone"}
    found: dict[str, float] = {}
    for risk, logistic, score in zip(
        table["param_risk"], table["param_logistic"], table["pooled_test_score"], strict=True
    ):
        name = names[str(risk), float(logistic)]
        found[name] = max(float(score), found.get(name, -np.inf))
    return found


def boosted(quick: bool, prepared: tuple[Queries, Queries]) -> Iterator[Row]:
    """`LGBMRanker` (lambdarank), leaves and trees chosen on the training queries."""
    from lightgbm import LGBMRanker

    data, test = prepared
    trees = TREES[:2] if quick else TREES

    def fit(part: Queries, leaves: int, number: int) -> LGBMRanker:
        order = np.argsort(part.groups, kind="stable")
        sizes = np.unique(part.groups, return_counts=True)[1]
        model = LGBMRanker(
            n_estimators=number, num_leaves=leaves, learning_rate=0.05, n_jobs=1, random_state=0, verbose=-1
        )
        return model.fit(part.X[order], part.y[order].astype(int), group=sizes)

    def fits(inside: Queries, outside: Queries) -> Iterator[tuple[tuple[int, int], Any]]:
        for leaves in LEAVES[:1] if quick else LEAVES:
            model = fit(inside, leaves, trees[-1])
            for number in trees:
                yield (leaves, number), model.predict(outside.X, num_iteration=number)

    for name, ((leaves, number), _) in choose(fits, data).items():
        model = fit(data, leaves, number)
        yield {
            "measure": name,
            "value": judged(name, test, model.predict(test.X)),
            "training_value": judged(name, data, model.predict(data.X)),
            "setting": f"{leaves} leaves, {number} trees",
            "queries": len(np.unique(test.groups)),
        }


def rare(measure: str, rough: float, tol: float, data: Any) -> Iterator[Row]:
    """One ranking of documents per rare category, judged by average precision and ROC area."""
    count, tested = data.Y.sum(axis=0), data.Y_test.sum(axis=0)
    labels = np.flatnonzero([c in RARE and t > 0 for c, t in zip(count, tested, strict=True)])
    Y = data.Y[:, labels]
    inside, outside = split(data.Y)
    X, X_held = data.X[inside], data.X[outside]

    def evaluate(settings: list[tuple[float, ...]]) -> Any:
        Cs = [C for (C,) in settings]
        table = np.empty((len(Cs), len(labels)))
        for label, path in enumerate(train(measure, X, Y[inside], [Cs] * len(labels), tol=rough)):
            scores = decision(path, X_held)
            for k in range(len(Cs)):
                table[k, label] = AveragePrecision().score(Y[outside, label], np.ascontiguousarray(scores[:, k]))
        return table

    chosen = Chosen(evaluate, REUTERS_GRID)
    fitted = [path[0] for path in train(measure, data.X, Y, chosen.settings, tol=tol)]
    scores = decision(fitted, data.X_test)
    for k, label in enumerate(labels):
        truth, own = data.Y_test[:, label], np.ascontiguousarray(scores[:, k])
        for name, reported in (("AP", AveragePrecision()), ("ROC area", ROCArea())):
            yield {
                "measure": name,
                "label": int(label),
                "positives": int(count[label]),
                "value": reported.score(truth, own),
                "setting": f"C {chosen.settings[k][0]:g}",
                "gap": fitted[k].solution.gap,
                "n_iter": fitted[k].solution.n_iter,
                "status": fitted[k].solution.status.name,
            }


main = Program("ranking", tasks, page).main

if __name__ == "__main__":
    main()
