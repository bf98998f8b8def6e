"""The protocol of Joachims (2005), section 6: settings by a hold-out of one third, for every class on its own.

The parameters are searched on a grid, extended while the setting chosen most often over the classes of a collection is
on its border. All classes of a collection are trained in lockstep on one design.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metrimax.designs import as_design
from metrimax.measure import RecallAtK, get_measure
from metrimax.solvers import Auto
from metrimax.training.label import FittedLabel, Training
from metrimax.training.lockstep import run
from metrimax.training.path import fit_path

MEASURES = {"f1": "F1", "prbep": "PRBEP", "recall_at_2p": "Rec@2p", "roc_area": "ROC area"}
GRID = tuple(2.0**k for k in range(-6, 7))
LARGE = 100_000
"""Beyond this many examples settings are chosen on a sample of this size, with its share of every class."""
STEP = 3
"""A grid is extended by so many of its own steps at a time."""
MOST = 3
"""How often a grid is extended at most, at each end."""


def measure_for(name: str, y: Any) -> Any:
    """The measure to train for. Rec@2p compares with labellings of at most 2p positives, as SVM-perf does."""
    if name != "recall_at_2p":
        return get_measure(name)
    return RecallAtK("2p" if 2 * y.sum() <= len(y) else len(y), labellings="at_most")


def value(name: str, y: Any, scores: Any) -> float:
    """The measure of scores (positive means the positive class); not a number where no example is positive."""
    if not y.any():
        return float("nan")
    if name == "recall_at_2p" and 2 * y.sum() >= len(y):
        return 1.0
    return float(measure_for(name, y).score(y, np.ascontiguousarray(scores, dtype=float)))


def values(y: Any, scores: Any) -> dict[str, float]:
    """All measures of the same scores."""
    return {name: value(name, y, scores) for name in MEASURES}


def best_threshold(y: Any, scores: Any) -> tuple[float, float]:
    """The greatest F1 that a threshold on these scores reaches, and the threshold, halfway between two scores."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    ends = np.flatnonzero(np.diff(ranked, append=-np.inf))  # the last of equal scores
    tp = np.cumsum(y[order])[ends]
    f1 = 2 * tp / (ends + 1 + y.sum())
    k = int(np.argmax(f1))
    following = ranked[ends[k] + 1] if ends[k] + 1 < len(ranked) else ranked[ends[k]] - 1.0
    return float(f1[k]), float((ranked[ends[k]] + following) / 2)


def split(Y: Any, seed: int = 0, share: float = 1 / 3) -> tuple[Any, Any]:
    """Rows to train on and rows held out, a share of every class (the rarest is divided first; Sechidis et al. 2011).

    A class with a single example keeps it for training.
    """
    rng = np.random.default_rng(seed)
    held = np.full(len(Y), -1)
    for y in Y.T[np.argsort(Y.sum(axis=0), kind="stable")]:
        free = rng.permutation(np.flatnonzero(y & (held < 0)))
        wanted = round(share * y.sum()) - int((held[y] == 1).sum())
        held[free] = np.arange(len(free)) < wanted
    free = rng.permutation(np.flatnonzero(held < 0))
    held[free] = np.arange(len(free)) < round(share * len(free))
    return np.flatnonzero(held == 0), np.flatnonzero(held == 1)


class Chosen:
    """For every class the setting with the best value on the held-out part, from a grid that extends itself.

    ``evaluate(settings)`` gives the values (settings, classes); a setting is a tuple of numbers, one per axis. Among
    equals, which are many where few positives are held out, the middle one is taken, axis by axis; a class that was
    never positive on one of the two parts takes what most classes chose.
    """

    def __init__(self, evaluate: Callable[[list[tuple[float, ...]]], Any], *axes: Sequence[float], fixed: Any = ()):
        self.axes = [list(axis) for axis in axes]
        self.table: dict[tuple[float, ...], Any] = {}
        extended = {(k, end): 0 for k in range(len(axes)) for end in (0, -1)}
        while True:
            grid = _product(self.axes)
            new = [setting for setting in grid if setting not in self.table]
            self.table |= dict(zip(new, evaluate(new), strict=True))
            scores = np.array([self.table[setting] for setting in grid])
            usable = np.isfinite(scores).all(axis=0)
            best = [_middle([grid[k] for k in np.flatnonzero(own >= own.max() - 1e-12)]) for own in scores.T[usable]]
            self.most = Counter(best).most_common(1)[0][0] if best else _middle(grid)
            following = iter(best)
            self.settings = [next(following) if ok else self.most for ok in usable]
            borders = [
                (k, end)
                for k, end in extended
                if k not in fixed and self.most[k] == self.axes[k][end] and extended[k, end] < MOST
            ]
            if not borders:
                return
            for k, end in borders:
                extended[k, end] += 1
                axis = self.axes[k]
                ratio = axis[1] / axis[0]
                more = [axis[end] * ratio ** (i if end else -i) for i in range(1, STEP + 1)]
                self.axes[k] = sorted(axis + more)


def _middle(settings: list[tuple[float, ...]]) -> tuple[float, ...]:
    """The middle one by the first axis, of those that share it the middle one by the second, and so on."""
    for k in range(len(settings[0])):
        values = sorted({setting[k] for setting in settings})
        settings = [setting for setting in settings if setting[k] == values[(len(values) - 1) // 2]]
    return settings[0]


def _product(axes: list[list[float]]) -> list[tuple[float, ...]]:
    grid: list[tuple[float, ...]] = [()]
    for axis in axes:
        grid = [(*setting, v) for setting in grid for v in axis]
    return grid


def train(
    name: str,
    X: Any,
    Y: Any,
    Cs: Sequence[Sequence[float]],
    *,
    weights: Sequence[Any] | None = None,
    solver: Any = None,
    tol: float = 1e-3,
    constant: float = 1.0,
) -> list[list[FittedLabel]]:
    """Every class (a column of Y) for each of its own C, in lockstep and in one thread, sharing cuts along C.

    The intercept is the weight of a constant feature.
    """
    design = as_design(X, intercept_scaling=constant, n_threads=1)
    chosen = Auto() if solver is None else solver
    weights = [None] * Y.shape[1] if weights is None else weights
    runs = (
        fit_path(Training(measure_for(name, y), chosen, tol, "multilabel-indicator"), design, y, weight, own)
        for y, own, weight in zip(Y.T, Cs, weights, strict=True)
    )
    return run(design, runs)


def decision(fitted: Sequence[FittedLabel], X: Any, *, constant: float = 1.0) -> Any:
    """Scores (n, classifiers) on other examples; the last weight is that of the constant feature."""
    W = np.column_stack([label.solution.w for label in fitted])
    scores = as_design(X, intercept_scaling=constant, n_threads=1).matvec(np.ascontiguousarray(W))
    return scores - np.array([label.threshold for label in fitted])
