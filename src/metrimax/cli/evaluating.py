"""``metrimax evaluate``: the contingency table, and every measure with its interval."""

from __future__ import annotations

import argparse
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metrimax._validation import is_whole
from metrimax.cli.main import OK, UsageError
from metrimax.cli.page import check_report, write_report
from metrimax.cli.report import emit, note, parse_measure
from metrimax.cli.using import read_both, truth_of
from metrimax.io.data import Data, grades, is_label
from metrimax.io.labels import show
from metrimax.io.models import LinearModel
from metrimax.measure import NDCG, REGISTRY, Grouped, get_measure, ranking_measure
from metrimax.measure.at_k import PrecisionAtK, RecallAtK, on_part
from metrimax.measure.classes import highest
from metrimax.measure.classification import ErrorRate
from metrimax.measure.constrained import Constrained
from metrimax.measure.contingency import ContingencyMeasure, ratio
from metrimax.protocols import Labels, Measure, Vector

RANKS = (1, 3, 5, 10)
"""The values of k with which rankings are evaluated."""
LOSSES = ("ae", "cost", "kld", "nkld", "rae")
"""Measures that are reported as losses, as their names say. For all others higher is better."""
NAMES = {"error": "accuracy", "balanced_error": "balanced_accuracy"}
"""Measures that are reported as one minus the error, and under that name."""
TABLES, SAMPLES, ROWS, LEVEL = 2000, 50, 80_000, 0.95
"""Numbers of resampled tables and rankings, the most rows of these over all labels, and the level of intervals."""


@dataclass
class Judged:
    """Measures of scores on labelled data.

    ``values`` and ``intervals`` are by the name of the measure. ``tables`` has a row tp, fp, fn, tn for each of
    ``names``, the labels that were judged; rankings have none. ``counts`` says how many groups there are.
    """

    truth: Labels
    scores: Vector
    tables: Vector
    names: list[str]
    values: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def evaluate(arguments: argparse.Namespace) -> int:
    """Every measure on labelled data."""
    check_report(arguments, DATA=arguments.data, MODEL=arguments.model)
    data, model = read_both(arguments)
    scores = model.scores(data.X, arguments.threads)
    judged = (judge_ranking if model.kind == "ranking" else judge)(arguments, data, model, scores)
    results: dict[str, Any] = {"examples": data.n, **judged.counts}
    if model.kind != "ranking":
        results |= _tables(arguments, judged)
    if arguments.json:
        results |= judged.values | {"intervals": judged.intervals}
    else:
        results |= {name: _with_interval(judged, name) for name in judged.values}
    if arguments.report is not None:
        write_report(arguments, data, model, judged, title=f"{arguments.model} on {arguments.data}")
    emit(arguments, results)
    losses = [name for name in judged.values if is_loss(name)]
    if losses:
        note(arguments, f"in brackets: {LEVEL:.0%} intervals over resampled rows; higher is better, except for "
             f"{', '.join(losses)}")  # fmt: skip
    if judged.skipped:
        note(arguments, f"left out: {'; '.join(judged.skipped)}")
    return OK


def _with_interval(judged: Judged, name: str) -> str:
    low, high = judged.intervals.get(name, (np.nan, np.nan))
    return f"{judged.values[name]:.4g}" + (f"  ({low:.4g} to {high:.4g})" if np.isfinite(low) else "")


def _tables(arguments: argparse.Namespace, judged: Judged) -> dict[str, Any]:
    """The contingency table of one label, or those of several."""
    positives = [int(v) for v in judged.truth.sum(axis=0)]
    tables = [dict(zip(("tp", "fp", "fn", "tn"), map(int, row), strict=True)) for row in judged.tables]
    if len(positives) > 1:
        named = {"labels": dict(zip(judged.names, tables, strict=True))} if arguments.json else {}
        return {"positives": positives, **named}
    [table] = tables
    if arguments.json:
        return {"positives": positives[0], **table}
    said = ("positive, called so", "negative, called positive", "positive, not called so", "negative, called so")
    return {"positives": positives[0]} | {
        name: f"{value}  ({words})" for (name, value), words in zip(table.items(), said, strict=True)
    }


def reported_as(name: str, measure: Measure) -> str:
    """The name of what is reported: accuracy for the error rate, precision@1p for precision at its default k."""
    if name != measure.name:
        return NAMES.get(name, name)
    if isinstance(measure, Constrained):
        return f"{name.replace('_at_', '@')}={1 - measure.level if name == 'tpr_at_fpr' else measure.level:g}"
    if isinstance(measure, (PrecisionAtK, RecallAtK, NDCG)) and measure.k is not None:
        return (
            f"{name.removesuffix('_at_k')}@{measure.k}" if name != "recall_at_budget" else f"recall@budget={measure.k}"
        )
    return NAMES.get(name, name)


def is_loss(name: str) -> bool:
    """Whether a measure is reported as a loss: lower is better."""
    return name.partition(":")[0] in LOSSES


def judge(arguments: argparse.Namespace, data: Data, model: LinearModel, scores: Vector) -> Judged:
    """Every measure of classes, as the mean over the labels that have positives and negatives."""
    truth, called = truth_of(arguments, data, model), scores
    names = [show(name) for name in model.classes]
    if model.kind == "binary":
        names = [names[-1] if arguments.positive is None else arguments.positive]
    together = model.kind == "multiclass" and arguments.positive is None
    if model.kind == "multiclass":
        called = np.where(highest(scores), 1.0, -1.0)
    if model.kind != "binary" and arguments.positive is not None:
        k = _class(model, arguments.positive)
        truth, scores, called, names = truth[:, [k]], scores[:, [k]], called[:, [k]], [names[k]]
    varied = np.flatnonzero(truth.any(axis=0) & ~truth.all(axis=0))
    if not len(varied):
        raise UsageError(
            f"{data.name}: expected examples of two classes, got one, for which no measure is defined: "
            "--positive LABEL names another class"
        )
    if len(varied) < truth.shape[1]:
        left_out = f"{truth.shape[1] - len(varied)} of {truth.shape[1]} labels"
        note(arguments, f"{left_out} have no positives or no negatives here and are left out")
    calls = called > 0
    cells = np.stack([truth & calls, ~truth & calls, truth & ~calls, ~truth & ~calls])
    judged = Judged(truth, scores, cells.sum(axis=1).T.astype(np.float64), names)
    samples = _resampled_tables(cells[:, :, varied])
    for name, own in (("precision", (0, 1)), ("recall", (0, 2))):
        _by_tables(judged, name, lambda t, own=own: ratio(t[own[0]], t[own[0]] + t[own[1]], 0.0), varied, samples)
    right: Labels = np.asarray((truth & calls).any(axis=1))
    for name, measure in _with_own({name: get_measure(name) for name in sorted(REGISTRY)}, model, judged).items():
        try:
            if together and isinstance(measure, ErrorRate):
                judged.values[name] = float(right.mean())
                judged.intervals[name] = _percentiles(_counts(right, TABLES) / len(right))
            elif isinstance(measure, ContingencyMeasure) and not measure.ranks:
                of_table = measure.table_loss if is_loss(name) else measure.table_score
                _by_tables(judged, name, lambda t, of_table=of_table: of_table(*t), varied, samples)
            else:
                _by_rows(judged, name, measure, varied)
        except (ValueError, OverflowError) as error:
            judged.skipped.append(f"{name} ({error})")
    return judged


def _with_own(chosen: dict[str, Measure], model: LinearModel, judged: Judged) -> dict[str, Measure]:
    """These measures by their reported names, and the measure that the model was trained for.

    A k of it that is a number becomes the same share of these rows, and its name says so: precision@8 for
    precision@200. In a ranking, k belongs to each group.
    """
    chosen = {reported_as(name, measure): measure for name, measure in chosen.items() if name != "fbeta"}
    if not model.measure:
        return chosen
    try:
        own = parse_measure(model.measure, groups=model.kind == "ranking")
    except UsageError:  # a name that another program gave
        return chosen
    except OverflowError as error:
        judged.skipped.append(f"{model.measure} ({error})")
        return chosen
    examples = model.training.get("examples", 0)
    if is_whole(examples) and examples >= 1 and model.kind != "ranking":
        scaled = on_part(own, len(judged.truth) / examples)
        if isinstance(own, (PrecisionAtK, RecallAtK)) and isinstance(scaled, (PrecisionAtK, RecallAtK)):
            name = model.measure.replace(str(own.k), str(scaled.k), 1)
            return {reported_as(name, scaled): scaled} | chosen
    return {reported_as(model.measure, own): own} | chosen


def _by_tables(judged: Judged, name: str, value: Any, varied: Any, samples: Vector) -> None:
    """A function of contingency tables: the mean over labels, and its percentiles over resampled tables."""
    judged.values[name] = float(np.mean(value(judged.tables[varied].T)))
    judged.intervals[name] = _percentiles(np.mean(value(samples), axis=-1))


def _by_rows(judged: Judged, name: str, measure: Measure, varied: Any) -> None:
    """A measure of rankings, as the mean over labels; its interval comes from smaller samples of the rows."""
    truth, scores = judged.truth[:, varied], judged.scores[:, varied]
    n, L = truth.shape
    judged.values[name] = float(np.mean([measure.score(truth[:, k], scores[:, k]) for k in range(L)]))
    m = min(n, ROWS // L)
    if m < min(n, 1000):
        return
    rng, found = np.random.default_rng(0), []
    part = on_part(measure, m / n)
    for _ in range(SAMPLES):
        rows = rng.integers(n, size=m)
        y, s = truth[rows], scores[rows]
        own = [part.score(y[:, k], s[:, k]) for k in range(L) if y[:, k].any() and not y[:, k].all()]
        if own:
            found.append(float(np.mean(own)))
    reach = 1.96 * float(np.std(found)) * np.sqrt(m / n)
    judged.intervals[name] = max(judged.values[name] - reach, 0.0), min(judged.values[name] + reach, 1.0)


def _resampled_tables(cells: Any) -> Vector:
    """Contingency tables of resampled rows, (4, number of samples, L).

    The tables of one label have a multinomial distribution. Several labels are resampled together, by rows.
    """
    _, n, L = cells.shape
    rng = np.random.default_rng(0)
    if L == 1:
        made = rng.multinomial(n, cells[:, :, 0].sum(axis=1) / n, size=TABLES)
        return made.T[:, :, np.newaxis].astype(np.float64)
    samples = int(np.clip(2e7 / n, 20, 200))
    flat = np.concatenate(list(cells), axis=1).astype(np.float32)
    made = np.concatenate([np.bincount(rng.integers(n, size=n), minlength=n)[None] @ flat for _ in range(samples)])
    return np.ascontiguousarray(made.reshape(samples, 4, L).transpose(1, 0, 2)).astype(np.float64)


def _counts(right: Labels, samples: int) -> Vector:
    return np.random.default_rng(0).binomial(len(right), right.mean(), size=samples).astype(np.float64)


def _percentiles(values: Vector) -> tuple[float, float]:
    low, high = np.nanquantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return low, high


def judge_ranking(arguments: argparse.Namespace, data: Data, model: LinearModel, scores: Vector) -> Judged:
    """Every measure of rankings, its mean over the groups; intervals over resampled groups."""
    if data.groups is None:
        note(arguments, f"{data.name} has no groups (qid): all examples are ranked as one group")
    groups = np.zeros(data.n) if data.groups is None else data.groups
    labels = grades(data, arguments.positive)
    at_k = ("ndcg", "precision_at_k", "recall_at_k")
    chosen = {f"{name.removesuffix('_at_k')}@{k}": ranking_measure(name, k=k) for name in at_k for k in RANKS}
    for name in sorted(REGISTRY.keys() - {*at_k, "recall_at_budget"}):  # a budget is for all groups together
        with suppress(ValueError):  # of classes, not of rankings
            chosen[name] = ranking_measure(name)
    judged = Judged(labels[:, None] > 0, scores, np.empty((0, 4)), [], counts={"groups": len(np.unique(groups))})
    for name, measure in _with_own(chosen | {"ndcg": ranking_measure("ndcg", k=None)}, model, judged).items():
        grouped = Grouped(measure, groups)
        try:
            values = np.array(list(grouped.scores(grouped.labels(labels), scores[:, 0]).values()))
        except (ValueError, OverflowError) as error:
            judged.skipped.append(f"{name} ({error})")
            continue
        judged.counts.setdefault("groups_judged", len(values))
        judged.values[name] = float(values.mean())
        if len(values) > 1:
            rng = np.random.default_rng(0)
            means = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(500)]
            judged.intervals[name] = _percentiles(np.array(means))
    if not judged.values:
        raise UsageError(
            f"{data.name}: expected a group with examples of different grades, got none: no measure is defined"
        )
    return judged


def _class(model: LinearModel, label: str) -> int:
    """The classifier of a label."""
    found = [k for k, c in enumerate(model.classes) if is_label(c, label)]
    if not found:
        raise UsageError(f"--positive {label}: expected one of the model's: {', '.join(map(show, model.classes[:50]))}")
    return found[0]
