"""``metrimax train`` and ``metrimax tune``."""

from __future__ import annotations

import argparse
import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax.choice import choose_C, choose_column, standard_error
from metrimax.cli.main import NOT_CONVERGED, OK, UsageError
from metrimax.cli.report import check_threads, check_writable, emit, note, parse_measure, positive_number, read
from metrimax.designs import CSR, as_design
from metrimax.fitting import FittedLabel, fit_label, fit_path
from metrimax.io.checkpoints import Checkpoint, as_checkpoint
from metrimax.io.data import Data, encode, grades, show, take_rows
from metrimax.io.files import FileError, write_bytes
from metrimax.io.models import LinearModel, save_model
from metrimax.io.svmperf_model import format_svmperf_model
from metrimax.measure import Grouped
from metrimax.measure.classes import score_classes
from metrimax.measure.hinged import wants_hinges, wants_places
from metrimax.progress import ProgressLine
from metrimax.protocols import Labels, Measure, Status, Vector
from metrimax.risk import run
from metrimax.solvers import Auto

Folds = npt.NDArray[np.intp]


class Task(NamedTuple):
    """What is to be trained: one classifier for every column of labels, or one ranking where rows have groups."""

    measure: Measure
    data: Data
    kind: str
    classes: list[Any]
    labels: Labels
    groups: npt.NDArray[Any] | None = None

    def on(self, rows: npt.NDArray[Any] | slice) -> Measure:
        """The measure of some of the rows."""
        return self.measure if self.groups is None else Grouped(self.measure, self.groups[rows])

    @property
    def whole(self) -> Measure:
        return self.on(slice(None))

    @property
    def together(self) -> bool:
        """Whether the scores of all labels decide together what is called: that of the highest of several classes."""
        return self.kind == "multiclass" and not self.measure.ranks


def train(arguments: argparse.Namespace) -> int:
    """Train a model and write it."""
    _check(arguments)
    if arguments.C is not None:
        positive_number("-C", arguments.C)
    task = _load(arguments)
    default = 1.0 if task.kind == "ranking" else 4.0  # those of the estimators, which are not imported here
    return _finish(arguments, task, default if arguments.C is None else arguments.C, arguments.threshold, {})


def tune(arguments: argparse.Namespace) -> int:
    """Choose C by cross-validation, then train on all data."""
    _check(arguments)
    grid = _grid(arguments.grid)
    if arguments.folds < 2:
        raise UsageError(f"expected --folds of at least 2, got {arguments.folds}")
    if arguments.seed < 0:
        raise UsageError(f"expected --seed of at least 0, got {arguments.seed}")
    task = _load(arguments)
    folds = _folds(task, arguments.folds, arguments.seed)
    rows_at_hand = isinstance(task.data.X, (np.ndarray, CSR))
    scores = (_fold_by_fold if rows_at_hand else _side_by_side)(arguments, task, grid, folds)
    slack = 1.0 if wants_places(task.measure) else 0.0  # as `MeasureSVCCV` has it, and so are the thresholds
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
    return _finish(arguments, task, grid[best], thresholds[best], {"cross_validation": shown})


def _check(arguments: argparse.Namespace) -> None:
    check_threads(arguments)
    positive_number("--tol", arguments.tol)
    positive_number("--intercept-scaling", arguments.intercept_scaling)
    if arguments.hinge is not None and not 0 <= arguments.hinge < np.inf:
        raise UsageError(f"expected a finite --hinge >= 0, got {arguments.hinge}")
    if arguments.max_iter < 1:
        raise UsageError(f"expected --max-iter of at least 1, got {arguments.max_iter}")
    check_writable(arguments.model)
    data, model = arguments.data, arguments.model
    if os.path.isfile(data) and os.path.isfile(model) and os.path.samefile(data, model):
        raise UsageError(f"{model} would take the place of DATA: give MODEL another name")
    parse_measure(arguments.measure)  # what cannot be meant is said before anything is read


def _load(arguments: argparse.Namespace) -> Task:
    data = read(arguments, index_base=arguments.index_base, target=arguments.target)
    if data.n == 0:
        raise FileError(f"{data.name}: expected examples to train on, got none")
    if data.X.shape[1] == 0:
        taken = "" if data.index_base is None else "; it was read as svmlight text: for a table give --format csv"
        raise FileError(f"{data.name}: expected features, got none{taken}")
    measure = parse_measure(arguments.measure)
    if arguments.model_format == "svmperf" and data.index_base == 0:
        raise UsageError(
            "SVM-perf's files count features from 1, but the data have a feature 0: use --index-base or another format"
        )
    if data.groups is not None and not arguments.no_groups:
        if measure.ranks:
            return _ranking(arguments, data)
        note(
            arguments, f"{arguments.measure} is no measure of rankings: the groups (qid) of {data.name} have no effect"
        )
    if arguments.hinge is None:
        arguments.hinge = 1.0 if wants_hinges(measure) else 0.0
    kind, classes, labels = encode(data, arguments.positive)
    if arguments.model_format == "svmperf" and kind != "binary":
        raise UsageError(f"SVM-perf's model files hold one classifier, but the data are {kind}: give --positive LABEL")
    return Task(measure, data, kind, list(classes), labels)


def _ranking(arguments: argparse.Namespace, data: Data) -> Task:
    """One ranking, trained for the mean of the measure over the groups: no intercept, and grades as labels."""
    if arguments.hinge or arguments.threshold == "placed":
        raise UsageError("--hinge and --threshold are for classes, not for rankings within groups: leave them out")
    arguments.no_intercept, arguments.hinge = True, 0.0
    measure = parse_measure(arguments.measure, groups=True)
    labels = Grouped(measure, data.groups).labels(grades(data, arguments.positive))  # type: ignore[arg-type]
    return Task(measure, data, "ranking", [], labels[:, None], data.groups)


def _intercept(arguments: argparse.Namespace) -> float | None:
    return None if arguments.no_intercept else float(arguments.intercept_scaling)


def _fit(
    arguments: argparse.Namespace, task: Task, C: float, threshold: str, checkpoint: Checkpoint | None
) -> list[FittedLabel]:
    X, measure = task.data.X, task.whole
    design = as_design(X, intercept_scaling=_intercept(arguments), n_threads=arguments.threads)
    solver = Auto(max_iter=arguments.max_iter, labels=task.labels.shape[1])
    kind = "binary" if task.kind == "ranking" else task.kind
    options: dict[str, Any] = {"C": C, "tol": arguments.tol, "kind": kind, "checkpoint": checkpoint}
    options |= {"hinge": arguments.hinge, "placed": threshold == "placed"}
    with ProgressLine(f"training for {arguments.measure}", arguments.tol, X) as line:
        options["callback"] = None if arguments.quiet else line
        return run(design, (fit_label(measure, solver, design, y, **options) for y in task.labels.T))


def _finish(arguments: argparse.Namespace, task: Task, C: float, threshold: str, results: dict[str, Any]) -> int:
    """Train on all data, write the model, report."""
    _, data, kind, classes, labels, groups = task
    checkpoint = as_checkpoint(arguments.checkpoint)
    fitted = _fit(arguments, task, C, threshold, checkpoint)
    solutions = [label.solution for label in fitted]
    scale = _intercept(arguments)
    W = np.column_stack([solution.w for solution in solutions])
    coef = np.ascontiguousarray((W if scale is None else W[:-1]).T)
    intercept = np.zeros(len(coef)) if scale is None else W[-1] * scale
    per_label = [
        {
            "positives": int((labels[:, k] > 0).sum()),
            "price": fitted[k].price,
            "objective": solution.objective,
            "bound": solution.bound,
            "gap": solution.gap,
            "iterations": solution.n_iter,
            "passes": round(solution.n_passes, 1),
            "status": solution.status.name.lower(),
        }
        for k, solution in enumerate(solutions)
    ]
    extras = {} if groups is not None else {"hinge": arguments.hinge, "threshold_rule": threshold}
    model = LinearModel(
        coef,
        intercept,
        np.array([label.threshold for label in fitted]),
        classes,
        kind,
        arguments.measure,
        data.index_base,
        data.feature_names,
        arguments.target,
        {"C": C, **extras, "tol": arguments.tol, "examples": data.n, "labels": per_label},
    )
    _write(arguments, model, solutions[0].n_support)
    if checkpoint is not None:
        checkpoint.clear()
    worst = max(solutions, key=lambda s: (not s.status.ok, s.gap))
    statuses = {solution.status for solution in solutions}
    results = {
        "model": str(arguments.model),
        "measure": arguments.measure,
        "C": C,
        **extras,
        "examples": data.n,
        **({} if groups is None else {"groups": len(np.unique(groups))}),
        "features": model.n_features,
        **({"classes": classes if arguments.json else [show(c) for c in classes]} if classes else {}),
        "objective": [s.objective for s in solutions],
        "bound": [s.bound for s in solutions],
        "gap": worst.gap,
        "iterations": max(s.n_iter for s in solutions),
        "training_score": _judged(task, slice(None), model.scores(data.X, arguments.threads)),
        "status": str(worst.status) if len(statuses) == 1 or not worst.status.ok else "converged for all labels",
    } | results
    emit(arguments, results)
    trivial = sum(solution.status is Status.TRIVIAL and not solution.w.any() for solution in solutions)
    if trivial:
        note(arguments, f"{trivial} of {len(solutions)} classifiers: {Status.TRIVIAL}")
    if not worst.status.ok:
        more = "--tol" if worst.status is Status.STALLED else "--max-iter or --tol"
        note(arguments, f"{worst.status}: the gap is {worst.gap:.3g}; raise {more}, lower -C, or scale the features")
        return NOT_CONVERGED
    return OK


def _write(arguments: argparse.Namespace, model: LinearModel, n_cuts: int) -> None:
    if arguments.model_format == "metrimax":
        save_model(arguments.model, model)
        return
    threshold = float(model.threshold[0] - model.intercept[0])
    highest = model.n_features + 1 + (not arguments.no_intercept)
    write_bytes(arguments.model, format_svmperf_model(model.coef[0], threshold, highest=highest, n_cuts=n_cuts))


def _judged(task: Task, rows: npt.NDArray[Any] | slice, scores: Vector, varied: list[int] | None = None) -> float:
    """The measure of the scores (n, L) of some rows: the mean over the labels that vary, or over those given."""
    measure, labels = task.on(rows), task.labels[rows]
    if varied is None:
        varied = [k for k, column in enumerate(labels.T) if column.min() != column.max()]
    if not varied:
        return 1.0
    if task.kind == "multiclass":
        return score_classes(measure, labels, scores, varied)
    return float(np.mean([measure.score(labels[:, k], scores[:, k]) for k in varied]))


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
        design, others = (
            as_design(take_rows(X, rows), intercept_scaling=_intercept(arguments), n_threads=arguments.threads)
            for rows in (inside, outside)
        )
        measure, judge = task.on(inside), task.on(outside)
        missed: list[float] = []
        values = np.empty((*scores.shape[1:], len(outside), task.labels.shape[1] if task.together else 0))
        with ProgressLine(f"fold {fold + 1} of {arguments.folds}", arguments.tol) as line:
            options = _path_options(arguments, task, grid, line)
            for k in _trained(task, varied):
                labels = np.ascontiguousarray(task.labels[inside, k])
                (along,) = run(design, [fit_path(measure, solver, design, labels, **options)])
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
            scores[fold] = [[_judged(task, outside, own, varied) for own in of_c] for of_c in values]
        note(arguments, f"fold {fold + 1} of {arguments.folds} done")
        _note_missed(arguments, missed)
    return scores


def _side_by_side(arguments: argparse.Namespace, task: Task, grid: list[float], folds: Folds) -> Vector:
    """The same for rows that cannot be taken out: those held out weigh nothing, and a pass serves all folds."""
    X, labels, measure = task.data.X, task.labels, task.whole
    design = as_design(X, intercept_scaling=_intercept(arguments), n_threads=arguments.threads)
    varied = [_varied(labels, folds, fold) for fold in range(arguments.folds)]
    runs = [(fold, k) for fold, own in enumerate(varied) for k in _trained(task, own)]
    solver = Auto(max_iter=arguments.max_iter, labels=len(runs))
    with ProgressLine(f"{arguments.folds} folds", arguments.tol, X) as line:
        options = _path_options(arguments, task, grid, line)
        fitted = run(
            design,
            (
                fit_path(measure, solver, design, labels[:, k], (folds != fold).astype(np.float64), **options)
                for fold, k in runs
            ),
        )
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
            scores[fold, c, t] = _judged(task, outside, own, varied[fold])
    return scores


def _missed(fitted: list[FittedLabel]) -> list[float]:
    """The gaps above the tolerance."""
    return [label.solution.gap for label in fitted if label.solution.status.missed]


def _note_missed(arguments: argparse.Namespace, gaps: list[float]) -> None:
    if gaps:
        note(arguments, f"{len(gaps)} of these fits did not reach --tol: the largest gap is {max(gaps):.3g}")


def _thresholds(arguments: argparse.Namespace, task: Task) -> tuple[str, ...]:
    """Those to choose from, the one preferred among equals first."""
    if arguments.threshold is not None:
        return (arguments.threshold,)
    return ("placed", "trained") if wants_places(task.measure) else ("trained",)


def _placed(fitted: list[FittedLabel], at: int) -> Vector:
    """The thresholds of labels: as they were fitted for the first to choose from, as training left them for another."""
    return np.array([(label.unplaced() if at else label).threshold for label in fitted])


def _path_options(arguments: argparse.Namespace, task: Task, grid: list[float], line: ProgressLine) -> dict[str, Any]:
    kind = "multiclass" if task.together else "binary"  # a class that a fold has no example of is never the highest
    extras = {"hinge": arguments.hinge, "placed": _thresholds(arguments, task)[0] == "placed"}
    return {"Cs": grid, "tol": arguments.tol, "kind": kind, "callback": None if arguments.quiet else line, **extras}


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
