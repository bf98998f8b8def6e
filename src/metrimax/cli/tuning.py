"""``metrimax tune``: C and threshold by cross-validation, without scikit-learn."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from metrimax.cli.ensemble import tune_ensemble
from metrimax.cli.main import UsageError
from metrimax.cli.report import note
from metrimax.cli.training import Task, check, design_of, finish, load
from metrimax.designs import CSR
from metrimax.io.data import take_rows
from metrimax.measure.base_loss import Losses
from metrimax.protocols import Array, Labels, Measure, Solution, Vector
from metrimax.solvers import Auto
from metrimax.training.choose import ByFolds, choose_row, defaults, explore
from metrimax.training.folds import Fold, Part, Rows, spread, varied
from metrimax.training.label import Training
from metrimax.training.path import GRID
from metrimax.training.progress import ProgressLine


def tune(arguments: argparse.Namespace) -> int:
    """Choose C by cross-validation, then train on all data; or train an ensemble."""
    if arguments.folds < 2:
        raise UsageError(f"expected --folds of at least 2, got {arguments.folds}")
    if arguments.seed < 0:
        raise UsageError(f"expected --seed of at least 0, got {arguments.seed}")
    if arguments.kind == "ensemble":
        return tune_ensemble(arguments)
    check(arguments)
    grid = GRID if arguments.grid is None else _grid(arguments.grid)
    task = load(arguments)
    folds = spread(task.labels, arguments.folds, arguments.seed, task.groups)
    by = chooser(arguments, task, folds)
    rows = explore(by.rows, grid)
    _note_missed(arguments, by.solutions)
    best = choose_row(rows, by.slack)
    C = float(best["param_C"])
    if C in (grid.min(), grid.max()) and len(rows) > 1:
        note(arguments, f"the best C, {C:g}, is at the end of the grid: widen it with --grid LOW:HIGH:STEPS")
    steps = [
        {
            "C": float(row["param_C"]),
            "threshold_rule": row["param_threshold"],
            "score": float(row["mean_test_score"]),
            "std": float(row["std_test_score"]),
        }
        for row in rows
    ]
    shown = steps if arguments.json else [f"C {p['C']:g}: {p['score']:.4f} +- {p['std']:.4f}" for p in steps]
    return finish(arguments, task, C, best["param_threshold"], {"cross_validation": shown})


def chooser(arguments: argparse.Namespace, task: Task, folds: list[Fold]) -> ByFolds:
    """What chooses C and threshold by the folds."""
    if not all((varied(task.labels, None, fold.train) & varied(task.labels, None, fold.test)).any() for fold in folds):
        raise UsageError("a fold has examples of one class only: give fewer --folds")
    left_open = defaults(task.measure)
    thresholds = left_open.thresholds if arguments.threshold is None else (arguments.threshold,)
    sample = FoldedTask(arguments, task, folds, placed=thresholds[0] == "placed")
    return ByFolds(sample, thresholds, left_open.slack)


def _grid(text: str) -> Vector:
    """LOW:HIGH:STEPS, geometric; or values with commas between them."""
    try:
        if ":" in text:
            low, high, steps = text.split(":")
            values = np.geomspace(float(low), float(high), int(steps)).tolist()
        else:
            values = [float(value) for value in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(0 < value < np.inf for value in values):
        raise UsageError(
            f"expected --grid as LOW:HIGH:STEPS or as positive numbers with commas between them, got {text!r}"
        )
    return np.sort(values)


@dataclass(frozen=True)
class FoldedTask:
    """The data of the command with their folds, as `metrimax.training` takes them."""

    arguments: argparse.Namespace
    task: Task
    folds: list[Fold]
    placed: bool
    weight: None = None

    @property
    def labels(self) -> Labels:
        return self.task.labels

    @property
    def together(self) -> bool:
        return self.task.together

    def scoring(self, rows: Rows) -> Measure:
        return self.task.on(rows)

    @property
    def batches(self) -> list[list[int]]:
        every = range(len(self.folds))
        return [[k] for k in every] if isinstance(self.task.data.X, (np.ndarray, CSR)) else [list(every)]

    @contextmanager
    def parts(self, batch: list[int]) -> Iterator[list[Part]]:
        arguments, X, L = self.arguments, self.task.data.X, self.labels.shape[1]
        solver = Auto(max_iter=arguments.max_iter, labels=L * len(batch))
        if isinstance(X, (np.ndarray, CSR)):
            title, shown = f"fold {batch[0] + 1} of {len(self.folds)}", None
        else:
            title, shown = f"{len(self.folds)} folds", X
        with ProgressLine(title, arguments.tol, shown) as line:
            callback = None if arguments.quiet else line
            training = Training(
                self.task.whole,
                solver,
                arguments.tol,
                self.task.trained_as,
                Losses(hinge=arguments.hinge),
                self.placed,
                callback,
            )
            if isinstance(X, (np.ndarray, CSR)):
                yield [self._taken_out(X, training, k) for k in batch]
            else:  # rows held out weigh nothing, and a pass serves all folds
                design = design_of(arguments, X)
                yield [Part(self.folds[k].test, training, design, self.labels, self._held_out(k)) for k in batch]
        note(arguments, f"{title} done")

    def _taken_out(self, X: Array | CSR, training: Training, k: int) -> Part:
        train, test = self.folds[k]
        design, others = (design_of(self.arguments, take_rows(X, rows)) for rows in self.folds[k])
        training = replace(training, measure=self.task.on(train))
        return Part(test, training, design, self.labels[train], None, others.matvec)

    def _held_out(self, k: int) -> Vector:
        weight = np.zeros(len(self.labels))
        weight[self.folds[k].train] = 1.0
        return weight


def _note_missed(arguments: argparse.Namespace, solutions: list[Solution]) -> None:
    """Say how many fits ended before their gap."""
    gaps = [solution.gap for solution in solutions if solution.status.missed]
    if gaps:
        note(arguments, f"{len(gaps)} of these fits did not reach --tol: the largest gap is {max(gaps):.3g}")
