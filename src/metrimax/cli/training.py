"""``metrimax train`` and ``metrimax tune``."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from metrimax.cli.main import NOT_CONVERGED, OK, UsageError
from metrimax.cli.report import check_threads, emit, note, parse_measure, positive_number
from metrimax.designs import as_design
from metrimax.fitting import Fit, fit_labels
from metrimax.io.data import Data, encode, load_data, show
from metrimax.io.files import write_bytes
from metrimax.io.models import LinearModel, save_model
from metrimax.io.svmperf_model import format_svmperf_model
from metrimax.progress import ProgressLine
from metrimax.protocols import Cuts, Labels, Measure, Status, Vector
from metrimax.solvers import Bundle


def train(arguments: argparse.Namespace) -> int:
    """Train a model and write it."""
    measure = _checked(arguments)
    positive_number("-C", arguments.C)
    data, kind, classes, labels = _load(arguments)
    return _finish(arguments, measure, data, kind, classes, labels, arguments.C, {})


def tune(arguments: argparse.Namespace) -> int:
    """Choose C by cross-validation, then train on all data."""
    measure = _checked(arguments)
    grid = _grid(arguments.grid)
    if arguments.folds < 2:
        raise UsageError(f"expected --folds of at least 2, got {arguments.folds}")
    data, kind, classes, labels = _load(arguments)
    scores = np.zeros((arguments.folds, len(grid)))
    folds = _folds(labels, arguments.folds, arguments.seed)
    for fold in range(arguments.folds):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        scores[fold] = _scores_along(arguments, measure, grid, data.X, labels, inside, outside)
        note(arguments, f"fold {fold + 1} of {arguments.folds} done")
    mean = scores.mean(axis=0)
    best = int(np.argmax(mean))  # the first of equals: the smallest C
    if best in (0, len(grid) - 1) and len(grid) > 1:
        note(arguments, f"the best C, {grid[best]:g}, is at the end of the grid {arguments.grid}: widen it")
    path = [
        {"C": C, "score": float(m), "std": float(s)} for C, m, s in zip(grid, mean, scores.std(axis=0), strict=True)
    ]
    if not arguments.json:
        path = [f"C {p['C']:g}: {p['score']:.4f} +- {p['std']:.4f}" for p in path]  # type: ignore[misc]
    return _finish(arguments, measure, data, kind, classes, labels, grid[best], {"cross_validation": path})


def _checked(arguments: argparse.Namespace) -> Measure:
    check_threads(arguments)
    positive_number("--tol", arguments.tol)
    positive_number("--intercept-scaling", arguments.intercept_scaling)
    if arguments.max_iter < 1:
        raise UsageError(f"expected --max-iter of at least 1, got {arguments.max_iter}")
    return parse_measure(arguments.measure)


def _load(arguments: argparse.Namespace) -> tuple[Data, str, list[Any], Labels]:
    data = load_data(
        arguments.data,
        kind=arguments.format,
        index_base=arguments.index_base,
        target=arguments.target,
        n_threads=arguments.threads,
    )
    kind, classes, labels = encode(data, arguments.positive)
    if arguments.model_format == "svmperf" and kind != "binary":
        raise UsageError(f"SVM-perf's model files hold one classifier, but the data are {kind}: give --positive LABEL")
    return data, kind, list(classes), labels


def _intercept(arguments: argparse.Namespace) -> float | None:
    return None if arguments.no_intercept else float(arguments.intercept_scaling)


def _fit(arguments: argparse.Namespace, measure: Measure, X: Any, labels: Labels, C: float) -> Fit:
    design = as_design(X, intercept_scaling=_intercept(arguments), n_threads=arguments.threads)
    solver = Bundle(max_iter=arguments.max_iter)
    with ProgressLine(f"training for {arguments.measure}", arguments.tol) as line:
        callback = None if arguments.quiet else line
        return fit_labels(design, labels, measure, solver, C=C, tol=arguments.tol, callback=callback)


def _finish(
    arguments: argparse.Namespace,
    measure: Measure,
    data: Data,
    kind: str,
    classes: list[Any],
    labels: Labels,
    C: float,
    results: dict[str, Any],
) -> int:
    """Train on all data, write the model, report."""
    fit = _fit(arguments, measure, data.X, labels, C)
    scale = _intercept(arguments)
    W = fit.W
    coef = np.ascontiguousarray((W if scale is None else W[:-1]).T)
    intercept = np.zeros(len(coef)) if scale is None else W[-1] * scale
    per_label = [
        {
            "positives": int(labels[:, k].sum()),
            "price": float(fit.prices[k]),
            "objective": solution.objective,
            "bound": solution.bound,
            "gap": solution.gap,
            "iterations": solution.n_iter,
            "passes": solution.n_passes,
            "status": solution.status.name.lower(),
        }
        for k, solution in enumerate(fit.solutions)
    ]
    model = LinearModel(
        coef,
        intercept,
        fit.thresholds,
        classes,
        kind,
        arguments.measure,
        data.index_base,
        data.feature_names,
        arguments.target,
        {"C": C, "tol": arguments.tol, "examples": data.n, "labels": per_label},
    )
    _write(arguments, model, fit)
    worst = max(fit.solutions, key=lambda s: (not s.status.ok, s.gap))
    statuses = {solution.status for solution in fit.solutions}
    results = {
        "model": str(arguments.model),
        "measure": arguments.measure,
        "C": C,
        "examples": data.n,
        "features": model.n_features,
        "classes": classes if arguments.json else [show(c) for c in classes],
        "objective": [s.objective for s in fit.solutions],
        "bound": [s.bound for s in fit.solutions],
        "gap": worst.gap,
        "iterations": max(s.n_iter for s in fit.solutions),
        "training_score": _training_score(measure, model, data.X, labels, arguments.threads),
        "status": str(worst.status) if len(statuses) == 1 or not worst.status.ok else "converged for all labels",
    } | results
    emit(arguments, results)
    trivial = sum(solution.status is Status.TRIVIAL for solution in fit.solutions)
    if trivial:
        note(arguments, f"{trivial} of {len(fit.solutions)} classifiers: {Status.TRIVIAL}")
    if not worst.status.ok:
        note(arguments, f"{worst.status}: the gap is {worst.gap:.3g}; raise --max-iter or --tol, or lower -C")
        return NOT_CONVERGED
    return OK


def _write(arguments: argparse.Namespace, model: LinearModel, fit: Fit) -> None:
    if arguments.model_format == "metrimax":
        save_model(arguments.model, model)
        return
    if model.index_base == 0:
        raise UsageError(
            "SVM-perf's files count features from 1, but the data have a feature 0: use --index-base or another format"
        )
    threshold = float(model.threshold[0] - model.intercept[0])
    highest = model.n_features + 1 + (not arguments.no_intercept)
    n_cuts = len(fit.solutions[0].cuts.losses)
    write_bytes(arguments.model, format_svmperf_model(model.coef[0], threshold, highest=highest, n_cuts=n_cuts))


def _training_score(measure: Measure, model: LinearModel, X: Any, labels: Labels, threads: int | None) -> float:
    scores = model.scores(X, threads)
    varied = [k for k in range(labels.shape[1]) if labels[:, k].any() and not labels[:, k].all()]
    return float(np.mean([measure.score(labels[:, k], scores[:, k]) for k in varied])) if varied else 1.0


def _grid(text: str) -> list[float]:
    """LOW:HIGH:STEPS, geometric; or values with commas between them."""
    try:
        if ":" in text:
            low, high, steps = text.split(":")
            values = np.geomspace(float(low), float(high), int(steps)).tolist()
        else:
            values = sorted(float(value) for value in text.split(","))
    except ValueError:
        values = []
    if not values or not all(0 < value < np.inf for value in values):
        raise UsageError(
            f"expected --grid as LOW:HIGH:STEPS or as positive numbers with commas between them, got {text!r}"
        )
    return [float(value) for value in values]


def _folds(labels: Labels, n_folds: int, seed: int) -> Vector:
    """The fold of each example, each combination of labels spread evenly over the folds."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    keys = labels[order].astype(np.uint8)
    spread = np.lexsort(keys.T)  # stable: examples of equal labels stay in random order
    folds = np.empty(len(labels))
    folds[order[spread]] = np.arange(len(labels)) % n_folds
    return folds


def _scores_along(
    arguments: argparse.Namespace,
    measure: Measure,
    grid: list[float],
    X: Any,
    labels: Labels,
    inside: Vector,
    outside: Vector,
) -> Vector:
    """The measure on the rows ``outside`` of models trained on those ``inside``, along C; cuts are used again."""
    design = as_design(X[inside], intercept_scaling=_intercept(arguments), n_threads=arguments.threads)
    held_out = as_design(X[outside], intercept_scaling=_intercept(arguments), n_threads=arguments.threads)
    start: list[Cuts | None] = [None] * labels.shape[1]
    scores = np.zeros(len(grid))
    for step, C in enumerate(grid):
        fit = fit_labels(
            design,
            labels[inside],
            measure,
            Bundle(max_iter=arguments.max_iter),
            C=C,
            tol=arguments.tol,
            start=start,
        )
        start = [solution.cuts for solution in fit.solutions]
        values = held_out.matvec(fit.W) - fit.thresholds
        truth = labels[outside]
        varied = [k for k in range(labels.shape[1]) if truth[:, k].any() and not truth[:, k].all()]
        if not varied:
            raise UsageError("a fold has examples of one class only: give fewer --folds")
        scores[step] = np.mean([measure.score(truth[:, k], values[:, k]) for k in varied])
    return scores
