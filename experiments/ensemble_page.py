"""docs/results/ensemble.md, from the rows of experiments/results/ensemble.csv."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from experiments.harness import Options, Row, markdown, write
from experiments.stats import compare

ENSEMBLE, FAST = "MeasureEnsemble", 'MeasureEnsemble, "fast"'
BASE = "HistGradientBoosting + threshold"
ABLATION = {
    "boosting alone": "one member, its folds averaged, the same threshold rule",
    "without forest": "",
    "without extra_trees": "",
    "without linear": "",
    "without kernel": "",
    "equal weights": "the mean of the log-odds as they are: neither calibration nor weights",
    "best threshold as it is": "the best threshold on the out-of-fold scores, not the steadier rule",
}
"""The parts that are left out one at a time, with a word on what is done instead."""

MEASURES = {
    "f1": "F1",
    "balanced_error": "balanced accuracy",
    "mcc": "MCC",
    "average_precision": "AP",
    "roc_area": "ROC area",
}
Results = dict[str, float]  #: percent, by table


def results(rows: Iterable[Row], method: str, measure: str, variant: str = "") -> Results:
    wanted = (method, measure, variant)
    return {
        row["data"]: 100 * float(row["score"])
        for row in rows
        if (row["method"], row["measure"], row.get("variant") or "") == wanted
    }


def ahead(ours: Results, theirs: Results, names: list[str]) -> list[str]:
    """Points ahead with wins and losses, and p."""
    found = compare([ours[name] for name in names], [theirs[name] for name in names])
    return [f"{found.difference:+.1f} ({found.wins}/{found.losses})", f"{found.p:.2g}"]


def page(rows: list[Row], options: Options) -> None:
    halves = {row["data"]: row["half"] for row in rows}
    computed = dict.fromkeys(row["method"] for row in rows)  # those that are not yet there for all tables are left out
    methods = [method for method in computed if results(rows, method, "f1").keys() >= halves.keys()]
    write(options.pages / "ensemble.md", "\n".join(_parts(rows, halves, methods)))


def _parts(rows: list[Row], halves: dict[str, str], methods: list[str]) -> Iterable[str]:
    names = sorted(halves)
    yield f"""# Tables that are not linear: `MeasureEnsemble`

Made by `python -m experiments ensemble` from [ensemble.csv](../../experiments/results/ensemble.csv): {len(names)}
imbalanced tables, 60 % of each for training, one core. How it works: `help(metrimax.MeasureEnsemble)`.

**The gain is the ensemble's, not the training's.** No way of training trees, or their stack, for the measure itself was
better than log-loss. The measure places the threshold; the rest of the gain comes from members that differ, weights on
calibrated log-odds, and the mean over the models of the folds.

## Means

Percent; CPU seconds of a fit for F1, relative to boosting with a tuned threshold. The seconds are those of a busy
machine, method by method: they are good to a fifth or so.
"""
    table = []
    for method in methods:
        values = [results(rows, method, measure) for measure in MEASURES]
        means = [f"{np.mean(list(own.values())):.1f}" if len(own) == len(names) else "" for own in values]
        ratio = _seconds(rows, method, names) / _seconds(rows, BASE, names)
        table.append([method, *means, f"{ratio:.2f}" if np.isfinite(ratio) else ""])
    yield markdown(["method", *MEASURES.values(), "CPU"], table)
    yield """
## Ahead of boosting with a tuned threshold

Points by which a method is ahead, tables won and lost, and p of the signed-rank test. Members and constants of the
ensemble were chosen on the development half, with another split of each table, among some sixty variants; only the
number of trees for more than 4,000 rows was set later, for its cost, with a look at one table of the other half.
"""
    table = []
    for method in methods:
        for half in ("development", "confirmation") if method == ENSEMBLE else ("all",):
            those = [name for name in names if half in (halves[name], "all")]
            if method == BASE or not those:
                continue
            row = [method, half]
            for measure in MEASURES:
                ours = results(rows, method, measure)
                complete = set(those) <= ours.keys()
                row += ahead(ours, results(rows, BASE, measure), those) if complete else ["", ""]
            table.append(row)
    heads = [head for title in MEASURES.values() for head in (title, "p")]
    yield markdown(["method", "tables", *heads], table)
    yield """
## By part

Points that the default loses where one of its parts is left out, all tables.
"""
    table = []
    for variant, what in ABLATION.items():
        row = [variant, what]
        for measure in MEASURES:
            less, full = results(rows, ENSEMBLE, measure, variant), results(rows, ENSEMBLE, measure)
            row.append(ahead(less, full, names)[0] if set(names) <= less.keys() else "")
        table.append(row)
    yield markdown(["part", "what is done", *MEASURES.values()], table)
    yield _estimates(rows)
    yield "\n## By table\n\nPoints ahead of boosting with a tuned threshold.\n"
    table = [
        [name, halves[name][:3], *(f"{_difference(rows, name, measure):+.1f}" for measure in MEASURES)]
        for name in names
    ]
    yield markdown(["table", "half", *MEASURES.values()], table)


def _difference(rows: list[Row], name: str, measure: str) -> float:
    return results(rows, ENSEMBLE, measure)[name] - results(rows, BASE, measure)[name]


def _seconds(rows: list[Row], method: str, names: list[str]) -> float:
    own = {
        row["data"]: float(row["cpu_seconds"])
        for row in rows
        if row["method"] == method and row["measure"] == "f1" and not row.get("variant")
    }
    return float(np.sum([own.get(name, np.nan) for name in names]))


def _estimates(rows: list[Row]) -> str:
    told = [row for row in rows if row["method"] == ENSEMBLE and row.get("estimate")]
    estimate, error, score = (
        100 * np.array([float(row[key]) for row in told]) for key in ("estimate", "error", "score")
    )
    inside = int((np.abs(estimate - score) <= 2 * error).sum())
    return f"""
## What `report_` says

F1 as the fit itself estimates it: {estimate.mean():.1f} on average. On the test rows: {score.mean():.1f}, that is
{(score - estimate).mean():+.1f} points. The estimate is that of models of one fold, and the ensemble is their mean. On
{inside} of {len(told)} tables the two differ by no more than two of the standard errors that `report_` has; those leave
out the chance in the test rows.
"""
