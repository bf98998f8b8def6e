"""``metrimax tune``: C and threshold by cross-validation, without scikit-learn."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metrimax.cli.ensemble import tune_ensemble
from metrimax.cli.main import UsageError
from metrimax.cli.report import note
from metrimax.cli.training import Task, check, finish, given_losses, load
from metrimax.designs import CSR, as_design
from metrimax.io.data import take_rows
from metrimax.protocols import Design, Labels, Measure, Rows, Solution, Vector
from metrimax.solvers import Auto
from metrimax.training.choose import ByFolds, explore, mean_score
from metrimax.training.defaults import GRID, LOSS_NAMES, RANKING_GRID, RANKINGS, Family, family
from metrimax.training.folds import Fold, FoldData, spread, varied
from metrimax.training.label import Training
from metrimax.training.progress import ProgressLine

BEST = 3
"""How many of the candidates are shown."""


def tune(arguments: argparse.Namespace) -> int:
    """Choose C by cross-validation, then train on all data; or train an ensemble."""
    if arguments.folds < 2:
        raise UsageError(f"expected --folds of at least 2, got {arguments.folds}")
    if arguments.seed < 0:
        raise UsageError(f"expected --seed of at least 0, got {arguments.seed}")
    if arguments.kind == "ensemble":
        return tune_ensemble(arguments)
    check(arguments)
    given = None if arguments.grid is None else _grid(arguments.grid)
    task = load(arguments)
    grid = (GRID if task.groups is None else RANKING_GRID) if given is None else given
    folds = spread(task.labels, arguments.folds, arguments.seed, task.groups)
    candidates = candidates_of(arguments, task)
    task = task.with_intercept(arguments, candidates.losses)
    by = chooser(arguments, task, folds, candidates)
    rows = explore(by.rows, grid)
    _note_missed(arguments, by.solutions)
    chosen = by.choose()
    held_out = None if arguments.report is None else by.held_out(chosen)
    Cs = {one.C for one in chosen}
    if len(grid) > 1 and Cs <= {grid.min(), grid.max()}:
        at = ", ".join(f"{C:g}" for C in sorted(Cs))
        note(arguments, f"the best C, {at}, is at the end of the grid: widen it with --grid LOW:HIGH:STEPS")
    names = {name: name for name in ("C", *LOSS_NAMES)} | {"threshold": "threshold_rule"}
    steps = [
        {name: row[f"param_{key}"] for key, name in names.items()}
        | {"score": float(row["pooled_test_score"]), "std": float(row["std_test_score"])}
        for row in rows
    ]
    if arguments.json:
        return finish(arguments, task, chosen, {"cross_validation": steps}, held_out)
    best = sorted(steps, key=lambda step: -step["score"] if np.isfinite(step["score"]) else np.inf)[:BEST]
    for step in best:
        note(arguments, f"on rows held out: {_line(step)}")
    mean = mean_score(chosen)
    return finish(arguments, task, chosen, {"tried": len(steps), "held_out_score": mean}, held_out)


def _line(step: dict[str, Any]) -> str:
    losses = " + ".join(
        name if step[name] == 1 else f"{step[name]} {name}" for name in ("risk", "hinge", "logistic") if step[name]
    )
    balanced = ", balanced" if step["balanced"] else ""
    return f"C {step['C']:g}, {losses}{balanced}, {step['threshold_rule']}: {step['score']:.4f} +- {step['std']:.4f}"


def candidates_of(arguments: argparse.Namespace, task: Task) -> Family:
    """The candidates: those that the options leave open."""
    ranks = task.kind == "ranking"
    candidates = RANKINGS if ranks else family(task.measure, task.measure, together=task.together)
    return candidates.given(given_losses(arguments), arguments.threshold)


def chooser(arguments: argparse.Namespace, task: Task, folds: list[Fold], candidates: Family) -> ByFolds:
    """The `ByFolds` that chooses losses, C and threshold."""
    if not all((varied(task.labels, None, fold.train) & varied(task.labels, None, fold.test)).any() for fold in folds):
        raise UsageError("a fold has examples of one class only: give fewer --folds")
    placed = "placed" if "placed" in candidates.thresholds else "trained"
    return ByFolds(FoldedTask(arguments, task, folds, placed), candidates)


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
    """The data of the command and their folds, a `metrimax.training.folds.Sample`."""

    arguments: argparse.Namespace
    task: Task
    folds: list[Fold]
    threshold: str
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
        return [list(every)] if self._shared else [[k] for k in every]

    @property
    def _shared(self) -> bool:
        """Whether all folds share one design, because the rows are not in memory."""
        return not isinstance(self.task.data.X, (np.ndarray, CSR))

    def _design(self, X: Any) -> Design:
        return as_design(X, intercept_scaling=self.task.scaling, n_threads=self.arguments.threads)

    @contextmanager
    def parts(self, batch: list[int]) -> Iterator[list[FoldData]]:
        arguments, X, L = self.arguments, self.task.data.X, self.labels.shape[1]
        solver = Auto(max_iter=arguments.max_iter, labels=L * len(batch))
        if self._shared:
            title, shown = f"{len(self.folds)} folds", X
        else:
            title, shown = f"fold {batch[0] + 1} of {len(self.folds)}", None
        with ProgressLine(title, arguments.tol, shown) as line:
            callback = None if arguments.quiet else line
            kind = self.task.trained_as
            training = Training(self.task.whole, solver, arguments.tol, kind, rule=self.threshold, callback=callback)
            if self._shared:  # rows held out get weight 0, so that each pass serves all folds
                design = self._design(X)
                yield [
                    FoldData(self.folds[k].test, self._on(training, k), design, self.labels, self._held_out(k))
                    for k in batch
                ]
            else:
                yield [self._taken_out(X, training, k) for k in batch]
        note(arguments, f"{title} done")

    def _taken_out(self, X: Any, training: Training, k: int) -> FoldData:
        train, test = self.folds[k]
        design, others = (self._design(take_rows(X, rows)) for rows in self.folds[k])
        return FoldData(test, self._on(training, k), design, self.labels[train], None, others.matvec)

    def _on(self, training: Training, k: int) -> Training:
        """The training of one fold. Its groups are those of all rows if the rows held out stay in the design."""
        rows = self.folds[k].train
        whole = self._shared and self.task.groups is not None
        return training if whole else replace(training, measure=self.task.on(rows))

    def _held_out(self, k: int) -> Vector:
        weight = np.zeros(len(self.labels))
        weight[self.folds[k].train] = 1.0
        return weight


def _note_missed(arguments: argparse.Namespace, solutions: list[Solution]) -> None:
    """Say how many fits ended with a gap above --tol."""
    gaps = [solution.gap for solution in solutions if solution.status.missed]
    if gaps:
        note(arguments, f"{len(gaps)} of these fits did not reach --tol: the largest gap is {max(gaps):.3g}")
