"""``metrimax train``: reads data, trains, writes the model and the report. ``metrimax tune`` uses these functions."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax.cli.evaluating import judge, judge_ranking
from metrimax.cli.main import NOT_CONVERGED, NOTHING_LEARNT, OK, UsageError
from metrimax.cli.page import check_report, write_report
from metrimax.cli.report import SHOWN, check_apart, check_threads, emit, note, parse_measure, positive_number, read
from metrimax.designs import as_design
from metrimax.io.checkpoints import Checkpoint, as_checkpoint
from metrimax.io.columns import Learn
from metrimax.io.data import Data, encode, grades
from metrimax.io.files import FileError, check_writable, is_standard_output, write_bytes
from metrimax.io.labels import show
from metrimax.io.models import LinearModel, save_model
from metrimax.io.svmperf_model import format_svmperf_model
from metrimax.measure import Grouped
from metrimax.measure.at_k import on_part
from metrimax.measure.base_loss import Losses
from metrimax.measure.classes import score_classes
from metrimax.measure.constrained import Constrained
from metrimax.measure.positive import doubtful_positive
from metrimax.protocols import Labels, Measure, Status, Vector
from metrimax.solvers import Auto
from metrimax.training.choose import Chosen
from metrimax.training.defaults import (
    DEFAULT_C,
    LOSS_NAMES,
    RANKING_C,
    even_losses,
    losses_without_folds,
    threshold_without_folds,
)
from metrimax.training.label import FittedLabel, Training, fit_label, intercept_scaling
from metrimax.training.lockstep import run
from metrimax.training.progress import ProgressLine


class Task(NamedTuple):
    """What is to be trained: one classifier for every column of labels, or one ranking where rows have groups."""

    measure: Measure
    data: Data
    kind: str
    classes: list[Any]
    labels: Labels
    groups: npt.NDArray[Any] | None = None
    scaling: float | None = None  #: the value of the constant feature; None if there is none

    def with_intercept(self, arguments: argparse.Namespace, losses: Sequence[Losses]) -> Task:
        """The task with the constant feature that suits these losses. It shifts all scores of a ranking alike, so
        that only a base loss needs one there.
        """
        based = [own for own in losses if own.base]
        if arguments.no_intercept or (self.kind == "ranking" and not based):
            return self
        return self._replace(scaling=intercept_scaling(arguments.intercept_scaling, based or losses))

    def on(self, rows: npt.NDArray[Any] | slice) -> Measure:
        """The measure for a part of the rows. The k of a measure at k is scaled to the part, except for groups."""
        if self.groups is not None:
            return Grouped(self.measure, self.groups[rows])
        return on_part(self.measure, len(self.labels[rows]) / len(self.labels))

    @property
    def whole(self) -> Measure:
        return self.on(slice(None))

    @property
    def together(self) -> bool:
        """Whether the scores of all labels decide together: of several classes the highest score is predicted."""
        return self.kind == "multiclass" and not self.measure.ranks

    @property
    def trained_as(self) -> str:
        """The kind of target of the labels, one by one."""
        return "binary" if self.kind == "ranking" else self.kind


def train(arguments: argparse.Namespace) -> int:
    """Train a model and write it."""
    check(arguments)
    if arguments.C is not None:
        positive_number("-C", arguments.C)
    task = load(arguments)
    C = (RANKING_C if task.kind == "ranking" else DEFAULT_C) if arguments.C is None else arguments.C
    ranks, given = task.kind == "ranking", _given(arguments)
    losses = even_losses(**given) if ranks else losses_without_folds(task.measure, **given)
    task = task.with_intercept(arguments, [losses])
    rule = arguments.threshold or threshold_without_folds(task.measure, task.kind)
    chosen = Chosen(losses, C, rule, None, np.nan)
    return finish(arguments, task, [chosen] * task.labels.shape[1], {})


def check(arguments: argparse.Namespace) -> None:
    """Raise for options that are wrong, before the data are read."""
    check_threads(arguments)
    positive_number("--tol", arguments.tol)
    if arguments.intercept_scaling is not None:
        positive_number("--intercept-scaling", arguments.intercept_scaling)
    for name, weight in _given(arguments).items():
        if not (weight == "even" or 0 <= weight < np.inf):
            raise UsageError(f"expected a finite --{name} >= 0, got {weight}")
    if arguments.max_iter < 1:
        raise UsageError(f"expected --max-iter of at least 1, got {arguments.max_iter}")
    if arguments.certificate and arguments.model_format != "metrimax":
        raise UsageError("SVM-perf's files hold no certificate: leave out --certificate, or --model-format svmperf")
    check_writable(arguments.model)
    check_apart("MODEL", arguments.model, DATA=arguments.data)
    check_report(arguments, DATA=arguments.data, MODEL=arguments.model)
    parse_measure(arguments.measure)


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters of the losses that are given."""
    given = {name: getattr(arguments, name) for name in LOSS_NAMES}
    return {name: weight for name, weight in given.items() if weight is not None}


def given_losses(arguments: argparse.Namespace) -> Losses | None:
    """The losses, None if no weight is given; weights that are not given are those of the risk alone."""
    given = _given(arguments)
    return Losses(**given) if given else None


def load(arguments: argparse.Namespace) -> Task:
    """The data, and what is to be trained on them."""
    plain = arguments.model_format == "svmperf"  # its files store no columns
    learning = None if plain else Learn(scale=not arguments.no_scaling)
    data = read(
        arguments, index_base=arguments.index_base, target=arguments.target, columns=learning, drop=arguments.drop
    )
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
        note(arguments, f"{arguments.measure} does not rank: the groups (qid) of {data.name} have no effect")
    kind, classes, labels = encode(data, arguments.positive)
    if arguments.model_format == "svmperf" and kind != "binary":
        raise UsageError(f"SVM-perf's model files hold one classifier, but the data are {kind}: give --positive LABEL")
    named = kind == "binary" and arguments.positive is None
    if named and (doubt := doubtful_positive(measure, classes, labels[:, 0])):
        note(arguments, f"{doubt}; to make that one positive, give --positive {classes[0]}")
    return Task(measure, data, kind, list(classes), labels)


def _ranking(arguments: argparse.Namespace, data: Data) -> Task:
    """One ranking, trained for the mean of the measure over the groups, with grades as labels."""
    if arguments.threshold is not None:
        raise UsageError("--threshold is for classes, not for rankings within groups: leave it out")
    measure = parse_measure(arguments.measure, groups=True)
    labels = Grouped(measure, data.groups).labels(grades(data, arguments.positive))  # type: ignore[arg-type]
    return Task(measure, data, "ranking", [], labels[:, None], data.groups)


def _fit(
    arguments: argparse.Namespace, task: Task, chosen: list[Chosen], checkpoint: Checkpoint | None
) -> list[FittedLabel]:
    X, measure = task.data.X, task.whole
    design = as_design(X, intercept_scaling=task.scaling, n_threads=arguments.threads)
    solver = Auto(max_iter=arguments.max_iter, labels=task.labels.shape[1])
    with ProgressLine(f"training for {arguments.measure}", arguments.tol, X) as line:
        callback = None if arguments.quiet else line
        training = Training(
            measure,
            solver,
            arguments.tol,
            task.trained_as,
            callback=callback,
            certificate=arguments.certificate,
        )
        both = zip(chosen, task.labels.T, strict=True)
        runs = (fit_label(one.training(training, checkpoint), design, y, None, one.C) for one, y in both)
        return run(design, runs)


def finish(
    arguments: argparse.Namespace,
    task: Task,
    chosen: list[Chosen],
    results: dict[str, Any],
    held_out: Vector | None = None,
) -> int:
    """Train each label on all data with its chosen settings, write the model, and report.

    The page shows the scores ``held_out`` (n, L), if there are any, else those of the training data.
    """
    data, classes = task.data, task.classes
    checkpoint = as_checkpoint(arguments.checkpoint)
    fitted = _fit(arguments, task, chosen, checkpoint)
    settings = _settings(task, chosen)
    model = _model(arguments, task, fitted, chosen, {**settings, "tol": arguments.tol, "examples": data.n})
    solutions = [label.solution for label in fitted]
    scores = model.scores(data.X, arguments.threads)  # a pass that may fail, or be ended
    score = judged(task, scores)
    _write(arguments, task, model, solutions[0].n_support)
    if checkpoint is not None:
        checkpoint.clear()
    worst = max(solutions, key=lambda s: (not s.status.ok, s.gap))
    statuses = {solution.status for solution in solutions}
    results = {
        "model": str(arguments.model),
        "measure": arguments.measure,
        **settings,
        "examples": data.n,
        **({} if task.groups is None else {"groups": len(np.unique(task.groups))}),
        "features": model.n_features,
        **({"classes": classes if arguments.json else [show(c) for c in classes]} if classes else {}),
        "objective": [s.objective for s in solutions],
        "bound": [s.bound for s in solutions],
        "gap": worst.gap,
        "iterations": max(s.n_iter for s in solutions),
        "training_score": score,
        "status": str(worst.status) if len(statuses) == 1 or not worst.status.ok else "converged for all labels",
    } | results
    emit(arguments, results, aside=is_standard_output(arguments.model))  # text after the model would damage it
    if arguments.report is not None:
        _report(arguments, data, model, scores, held_out)
    if isinstance(task.measure, Constrained) and arguments.command == "train":
        note(
            arguments,
            "the threshold keeps the constraint on the training scores, which are better than those of other data: "
            "metrimax tune places it on scores out of fold",
        )
    nothing = [k for k, weights in enumerate(model.coef) if not weights.any()]
    if nothing:
        note(arguments, _learnt_nothing(arguments, task, nothing))
    if not worst.status.ok:
        more = "--tol" if worst.status is Status.STALLED else "--max-iter or --tol"
        note(arguments, f"{worst.status}: the gap is {worst.gap:.3g}; raise {more}, lower -C, or scale the features")
        return NOT_CONVERGED
    return NOTHING_LEARNT if len(nothing) == len(solutions) else OK


def _report(
    arguments: argparse.Namespace, data: Data, model: LinearModel, scores: Vector, held_out: Vector | None
) -> None:
    """The page of the data that the model was trained on."""
    if held_out is None:
        remark = "These are the data it was trained on: expect less on others."
    else:
        scores = held_out
        remark = (
            "Each row has the score of a model that was trained without it, on the other folds, with what was chosen. "
            "The choice looked at these scores: expect a little less on others."
        )
    judging = judge_ranking if model.kind == "ranking" else judge
    judged = judging(arguments, data, replace(model, columns=None), scores)
    write_report(arguments, data, model, judged, title=f"{arguments.model} on {arguments.data}", remark=remark)


def _learnt_nothing(arguments: argparse.Namespace, task: Task, labels: list[int]) -> str:
    """The message that all weights of some classifiers are zero, and what to do about it."""
    names = ", ".join(show(task.classes[k]) for k in labels[:SHOWN]) if len(task.classes) > 2 else ""
    of = f" for {len(labels)} of {len(task.classes)} classes ({names})" if names else ""
    if arguments.command == "tune":
        remedy = "try larger values of C (--grid 1:1000:4); the columns may not tell the classes apart"
    elif task.kind == "ranking":
        remedy = "raise -C"
    else:
        remedy = (
            f"try 'metrimax tune {arguments.data} {arguments.model} --measure {arguments.measure}', or a larger -C; "
            "leave out --hinge, --logistic and --risk"
        )
    return f"nothing was learnt{of}: all weights are 0, and every example gets the same score; {remedy}"


def _setting(task: Task, chosen: Chosen) -> dict[str, Any]:
    """The settings of a label, by the names of the report."""
    settings = dict(chosen.settings)
    rule = settings.pop("threshold")
    return settings if task.groups is not None else settings | {"threshold_rule": rule}


def _settings(task: Task, chosen: list[Chosen]) -> dict[str, Any]:
    """The settings of all labels: one value where all have the same, otherwise one for each."""
    rows = [_setting(task, one) for one in chosen]
    found = {name: [row[name] for row in rows] for name in rows[0]}
    return {name: values[0] if len(set(values)) == 1 else values for name, values in found.items()}


def _model(
    arguments: argparse.Namespace,
    task: Task,
    fitted: list[FittedLabel],
    chosen: list[Chosen],
    training: dict[str, Any],
) -> LinearModel:
    """The model to be written, with its settings and its certificate."""
    scale = task.scaling
    threshold = np.array([label.threshold for label in fitted])
    W = np.column_stack([label.solution.w for label in fitted])
    coef = np.ascontiguousarray((W if scale is None else W[:-1]).T)
    settings = [_setting(task, one) for one in chosen]
    several = any(own != settings[0] for own in settings)
    per_label = [
        {
            "positives": int((labels > 0).sum()),
            "price": label.price,
            "objective": label.solution.objective,
            "bound": label.solution.bound,
            "gap": label.solution.gap,
            "iterations": label.solution.n_iter,
            "passes": round(label.solution.n_passes, 1),
            "status": label.solution.status.name.lower(),
        }
        | (own if several else {})
        for label, labels, own in zip(fitted, task.labels.T, settings, strict=True)
    ]
    return LinearModel(
        coef=coef,
        intercept=(0.0 if scale is None else W[-1] * scale) - threshold,
        threshold=threshold,
        classes=task.classes,
        kind=task.kind,
        measure=arguments.measure,
        index_base=task.data.index_base,
        feature_names=task.data.feature_names,
        target=arguments.target,
        training=training | {"intercept_scaling": scale, "positive": arguments.positive, "labels": per_label},
        columns=task.data.columns,
        certificates=[
            None if label.certificate is None else (label.certificate.points, label.certificate.multipliers)
            for label in fitted
        ]
        if arguments.certificate
        else None,
    )


def _write(arguments: argparse.Namespace, task: Task, model: LinearModel, n_cuts: int) -> None:
    if arguments.model_format == "metrimax":
        save_model(arguments.model, model)
        return
    threshold = -float(model.intercept[0])
    highest = model.n_features + 1 + (task.scaling is not None)
    write_bytes(arguments.model, format_svmperf_model(model.coef[0], threshold, highest=highest, n_cuts=n_cuts))


def judged(task: Task, scores: Vector) -> float:
    """The measure of the scores (n, L): the mean over the labels that vary."""
    varied = [k for k, column in enumerate(task.labels.T) if column.min() != column.max()]
    if not varied:
        return 1.0
    if task.kind == "multiclass":
        return score_classes(task.whole, task.labels, scores, varied)
    return float(np.mean([task.whole.score(task.labels[:, k], scores[:, k]) for k in varied]))
