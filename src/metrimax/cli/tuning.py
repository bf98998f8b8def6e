"""``metrimax tune``: C and threshold by cross-validation, without scikit-learn."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt

from metrimax.cli.main import UsageError
from metrimax.cli.report import note
from metrimax.cli.training import Task, check, design_of, finish, judged, load
from metrimax.designs import CSR
from metrimax.io.data import take_rows
from metrimax.measure.base_loss import Losses
from metrimax.protocols import Labels, Measure, Solver, Vector
from metrimax.solvers import Auto
from metrimax.training.choose import choose_C, choose_column, defaults, standard_error
from metrimax.training.label import FittedLabel, Training, fit_path
from metrimax.training.lockstep import run
from metrimax.training.progress import ProgressLine

Folds = npt.NDArray[np.intp]


def tune(arguments: argparse.Namespace) -> int:
    """Choose C by cross-validation, then train on all data."""
    check(arguments)
    grid = _grid(arguments.grid)
    if arguments.folds < 2:
        raise UsageError(f"expected --folds of at least 2, got {arguments.folds}")
    if arguments.seed < 0:
        raise UsageError(f"expected --seed of at least 0, got {arguments.seed}")
    task = load(arguments)
    folds = _folds(task, arguments.folds, arguments.seed)
    rows_at_hand = isinstance(task.data.X, (np.ndarray, CSR))
    scores = (_fold_by_fold if rows_at_hand else _side_by_side)(arguments, task, grid, folds)
    slack = defaults(task.measure).slack
    chosen = [choose_column(of_c, slack) for of_c in scores.transpose(1, 0, 2)]
    columns = [scores[:, c, at] for c, at in enumerate(chosen)]
    means, thresholds = [float(own.mean()) for own in columns], [_thresholds(arguments, task)[at] for at in chosen]
    best = choose_C(grid, means, [standard_error(own) for own in columns], slack)
    if best in (0, len(grid) - 1) and len(grid) > 1:
        note(arguments, f"the best C, {grid[best]:g}, is at the end of the grid {arguments.grid}: widen it")
    steps = [
        {"C": C, "threshold_rule": name, "score": mean, "std": float(own.std())}
        for C, name, mean, own in zip(grid, thresholds, means, columns, strict=True)
    ]
    shown = steps if arguments.json else [f"C {p['C']:g}: {p['score']:.4f} +- {p['std']:.4f}" for p in steps]
    return finish(arguments, task, grid[best], thresholds[best], {"cross_validation": shown})


def _grid(text: str) -> list[float]:
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
    return sorted(values)


def _folds(task: Task, n_folds: int, seed: int) -> Folds:
    """The fold of each example: each combination of labels spread evenly over the folds, or whole groups at random."""
    rng = np.random.default_rng(seed)
    if task.groups is not None:
        names, codes = np.unique(task.groups, return_inverse=True)
        of_groups: Folds = (rng.permutation(len(names)) % n_folds)[codes]
        return of_groups
    labels = task.labels
    order = rng.permutation(len(labels))
    spread = np.lexsort(labels[order].astype(np.uint8).T)  # stable: examples of equal labels stay in random order
    folds = np.empty(len(labels), dtype=np.intp)
    folds[order[spread]] = np.arange(len(labels)) % n_folds
    return folds


def _fold_by_fold(arguments: argparse.Namespace, task: Task, grid: list[float], folds: Folds) -> Vector:
    """The measure on each fold of models trained on the others, for every C and threshold; the mean over labels."""
    X: Any = task.data.X
    thresholds = _thresholds(arguments, task)
    scores = np.zeros((arguments.folds, len(grid), len(thresholds)))
    solver = Auto(max_iter=arguments.max_iter)
    for fold, varied in enumerate([_varied(task.labels, folds, fold) for fold in range(arguments.folds)]):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        design, others = (design_of(arguments, take_rows(X, rows)) for rows in (inside, outside))
        measure, judge = task.on(inside), task.on(outside)
        missed: list[float] = []
        values = np.empty((*scores.shape[1:], len(outside), task.labels.shape[1] if task.together else 0))
        with ProgressLine(f"fold {fold + 1} of {arguments.folds}", arguments.tol) as line:
            training = _training(arguments, task, measure, solver, line)
            for k in _trained(task, varied):
                labels = np.ascontiguousarray(task.labels[inside, k])
                (along,) = run(design, [fit_path(training, design, labels, None, grid)])
                missed += _missed(along)
                own = others.matvec(np.column_stack([fitted.solution.w for fitted in along])).T
                for t in range(len(thresholds)):
                    above = own - _placed(along, t)[:, np.newaxis]
                    if task.together:
                        values[:, t, :, k] = above
                    else:  # at once: labels may be many
                        truth = task.labels[outside, k]
                        scores[fold, :, t] += np.array([judge.score(truth, of_c) for of_c in above]) / len(varied)
        if task.together:
            scores[fold] = [[judged(task, outside, own, varied) for own in of_c] for of_c in values]
        note(arguments, f"fold {fold + 1} of {arguments.folds} done")
        _note_missed(arguments, missed)
    return scores


def _side_by_side(arguments: argparse.Namespace, task: Task, grid: list[float], folds: Folds) -> Vector:
    """The same for rows that cannot be taken out: those held out weigh nothing, and a pass serves all folds."""
    X, labels, measure = task.data.X, task.labels, task.whole
    design = design_of(arguments, X)
    varied = [_varied(labels, folds, fold) for fold in range(arguments.folds)]
    runs = [(fold, k) for fold, own in enumerate(varied) for k in _trained(task, own)]
    solver = Auto(max_iter=arguments.max_iter, labels=len(runs))
    with ProgressLine(f"{arguments.folds} folds", arguments.tol, X) as line:
        training = _training(arguments, task, measure, solver, line)
        weights = [(folds != fold).astype(np.float64) for fold in range(arguments.folds)]
        fitted = run(design, (fit_path(training, design, labels[:, k], weights[fold], grid) for fold, k in runs))
    _note_missed(arguments, [gap for along in fitted for gap in _missed(along)])
    scores = np.zeros((arguments.folds, len(grid), len(_thresholds(arguments, task))))
    for c in range(len(grid)):
        fitted_c = [along[c] for along in fitted]
        values = design.matvec(np.column_stack([label.solution.w for label in fitted_c]))
        for fold, t in np.ndindex(arguments.folds, scores.shape[2]):
            outside = np.flatnonzero(folds == fold)
            at = {k: column for column, (other, k) in enumerate(runs) if other == fold}
            own = np.zeros((len(outside), labels.shape[1]))
            columns = list(at.values())
            own[:, list(at)] = values[outside[:, np.newaxis], columns] - _placed(fitted_c, t)[columns]
            scores[fold, c, t] = judged(task, outside, own, varied[fold])
    return scores


def _missed(fitted: list[FittedLabel]) -> list[float]:
    """The gaps above the tolerance."""
    return [label.solution.gap for label in fitted if label.solution.status.missed]


def _note_missed(arguments: argparse.Namespace, gaps: list[float]) -> None:
    if gaps:
        note(arguments, f"{len(gaps)} of these fits did not reach --tol: the largest gap is {max(gaps):.3g}")


def _thresholds(arguments: argparse.Namespace, task: Task) -> tuple[str, ...]:
    """Those to choose from, the one preferred among equals first."""
    return defaults(task.measure).thresholds if arguments.threshold is None else (arguments.threshold,)


def _placed(fitted: list[FittedLabel], at: int) -> Vector:
    """The thresholds of labels: as they were fitted for the first to choose from, as training left them for another."""
    return np.array([(label.unplaced() if at else label).threshold for label in fitted])


def _training(
    arguments: argparse.Namespace, task: Task, measure: Measure, solver: Solver, line: ProgressLine
) -> Training:
    kind = "multiclass" if task.together else "binary"  # a class that a fold has no example of is never the highest
    placed, callback = _thresholds(arguments, task)[0] == "placed", None if arguments.quiet else line
    return Training(measure, solver, arguments.tol, kind, Losses(hinge=arguments.hinge), placed, callback)


def _trained(task: Task, varied: list[int]) -> list[int]:
    """The labels to train on a fold: those judged, or all where the highest score is called."""
    return list(range(task.labels.shape[1])) if task.together else varied


def _varied(labels: Labels, folds: Folds, fold: int) -> list[int]:
    """The labels that vary both in a fold and outside it."""
    parts = (labels[folds == fold], labels[folds != fold])
    varied = [k for k in range(labels.shape[1]) if all(len(p) and p[:, k].min() != p[:, k].max() for p in parts)]
    if not varied:
        raise UsageError("a fold has examples of one class only: give fewer --folds")
    return varied
