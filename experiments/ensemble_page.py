"""docs/results/ensemble.md, from the rows of experiments/results/ensemble.csv."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from experiments.harness import Options, Row, markdown, write
from experiments.stats import compare

ENSEMBLE, FAST = "MeasureEnsemble", 'MeasureEnsemble, "fast"'
REPORT, REPORT_FAST = "report_", 'report_, "fast"'
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

DEAR = (
    "tuned LightGBM (40 settings) + threshold",
    "StackingClassifier + threshold",
    "AutoGluon medium_quality",
    "AutoGluon good_quality",
)
IMBALANCED = "imbalanced"  #: what stands in place of a half for these sets
MEASURES = {
    "f1": "F1",
    "balanced_error": "balanced accuracy",
    "mcc": "MCC",
    "average_precision": "AP",
    "roc_area": "ROC area",
}
PRESETS = {REPORT: "Default members", REPORT_FAST: 'Members of "fast"'}
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
    told = [row for row in rows if row["method"] in (REPORT, REPORT_FAST)]
    rows = [row for row in rows if row["method"] not in (REPORT, REPORT_FAST)]
    ours = [row for row in rows if row["half"] != IMBALANCED]
    halves = {row["data"]: row["half"] for row in ours if row["method"] == ENSEMBLE}
    others = [row for row in rows if row["half"] == IMBALANCED]
    write(
        options.pages / "ensemble.md",
        "\n".join([*_tables(ours, halves), *_imbalanced(others), *_estimates(told)]) + "\n",
    )


def _tables(rows: list[Row], halves: dict[str, str]) -> Iterable[str]:
    names = sorted(halves)
    yield f"""# Tables that are not linear: `MeasureEnsemble`

Made by `python -m experiments ensemble` from [ensemble.csv](../../experiments/results/ensemble.csv): {len(names)}
imbalanced tables, 60 % of each for training, one core. How it works: `help(metrimax.MeasureEnsemble)`.

**The gain is the ensemble's, not the training's.** No way of training trees, or their stack, for the measure itself was
better than log-loss. The measure places the threshold; the rest of the gain comes from members that differ, weights on
calibrated log-odds, and the mean over the models of the folds.

## Means

Percent, and CPU seconds of a fit for F1, on average. The seconds are those of a busy machine, method by method: they
are good to a fifth or so. Methods that ran on some of the tables only are in the next section.
"""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    whole = [method for method in methods if results(rows, method, "f1").keys() >= set(names)]
    yield _means(rows, whole, names)
    yield """
## How far ahead

Points by which `MeasureEnsemble` is ahead of each method on the tables that it ran on, tables won and lost, and p of
the signed-rank test; a minus says that the other is better. CPU: the seconds of the method, as a multiple of the
ensemble's. Thresholds of the others are tuned by `TunedThresholdClassifierCV`. "tuned LightGBM" is the best of 20
random settings by 3 folds, unless 40 are named. AutoGluon runs for F1, on one core, with a limit of 120 CPU seconds.
"""
    yield _ahead(rows, [method for method in methods if method != ENSEMBLE], names)
    missing = [method for method in DEAR if method not in methods]
    if missing:
        yield f"Not run so far, for the time that they take: {', '.join(missing)}.\n"
    yield """
Members and constants of the ensemble were chosen on the development half, with other splits of each table, among some
eighty variants; only the smoothing of probabilities, and what makes tables of more than 4,000 rows cheaper, were set
with a look at the other half. By halves, ahead of boosting with a tuned threshold:
"""
    table = []
    for half in dict.fromkeys(halves.values()):
        those = [name for name in names if halves[name] == half]
        table.append([half, *(" p ".join(found) for found in _compared(rows, BASE, those))])
    yield markdown(["half", *MEASURES.values()], table)
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
    yield "\n## By table\n\nPoints ahead of boosting with a tuned threshold.\n"
    table = [
        [name, halves[name][:3], *(f"{_difference(rows, name, measure):+.1f}" for measure in MEASURES)]
        for name in names
    ]
    yield markdown(["table", "half", *MEASURES.values()], table)


def _means(rows: list[Row], methods: list[str], names: list[str]) -> str:
    table = []
    for method in methods:
        values = [results(rows, method, measure) for measure in MEASURES]
        means = [f"{np.mean([own[name] for name in names]):.1f}" if own.keys() >= set(names) else "" for own in values]
        table.append([method, *means, f"{_seconds(rows, method, names) / len(names):.1f}"])
    return markdown(["method", *MEASURES.values(), "CPU s"], table)


def _ahead(rows: list[Row], methods: list[str], names: list[str]) -> str:
    table = []
    for method in methods:
        those = [name for name in names if name in results(rows, method, "f1")]
        if those:
            ratio = _seconds(rows, method, those) / _seconds(rows, ENSEMBLE, those)
            cells = [" p ".join(found) for found in _compared(rows, method, those)]
            table.append([method, str(len(those)), *cells, f"{ratio:.1f}"])
    return markdown(["method", "tables", *MEASURES.values(), "CPU"], table)


def _compared(rows: list[Row], method: str, names: list[str]) -> Iterable[list[str]]:
    """For each measure, how far the ensemble is ahead of a method; nothing where that was not run for it."""
    for measure in MEASURES:
        theirs = results(rows, method, measure)
        yield ahead(results(rows, ENSEMBLE, measure), theirs, names) if set(names) <= theirs.keys() else []


def _difference(rows: list[Row], name: str, measure: str) -> float:
    return results(rows, ENSEMBLE, measure)[name] - results(rows, BASE, measure)[name]


def _seconds(rows: list[Row], method: str, names: list[str]) -> float:
    own = {
        row["data"]: float(row["cpu_seconds"])
        for row in rows
        if row["method"] == method and row["measure"] == "f1" and not row.get("variant")
    }
    return float(np.sum([own.get(name, np.nan) for name in names]))


def _imbalanced(rows: list[Row]) -> Iterable[str]:
    names = sorted(results(rows, ENSEMBLE, "f1").keys() & results(rows, BASE, "f1").keys())
    if names:
        methods = list(dict.fromkeys(row["method"] for row in rows))
        whole = [method for method in methods if set(names) <= results(rows, method, "f1").keys()]
        yield f"""
## Imbalanced sets

{len(names)} sets of imbalanced-learn's collection, which had no part in any choice; 24 to 626 positives, 60 % of them
for training. With so few, single sets say little.
"""
        yield _means(rows, whole, names)
        yield "\nPoints by which `MeasureEnsemble` is ahead, as above, on the sets that each method ran on:\n"
        yield _ahead(rows, [method for method in methods if method != ENSEMBLE], names)


def _estimates(rows: list[Row]) -> Iterable[str]:
    """What `report_` says, beside the test rows."""
    if not rows:
        return
    yield """
## What `report_` says

The measure as the fit itself estimates it, and on the test rows, means over tables and splits. Two things are behind
the difference:

* **The ensemble is better than what is estimated.** Each training row is unseen by the models of one fold only, so
  `report_` judges these ("a fold's models"). The ensemble is the mean over the folds: that gains most where the models
  of the folds differ much. So `report_` is low rather than high.
* **The models of the folds share most of their training rows.** A jackknife over the rows that are judged takes the
  models as they are. `std` adds the chance in the training rows: with five folds 1.25 times that variance (Nadeau and
  Bengio, 2003), hence 1.5 times the jackknife. No constant in it was chosen.

"Error" is the root mean square of the difference from the ensemble on the test rows, in standard errors, those of the
test rows included: 1 is honest. "Within two": how often it is at most two of them.
"""
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        table = []
        for half in dict.fromkeys(row["half"] for row in own):
            for measure, title in MEASURES.items():
                table.append([half, title, *_told([r for r in own if (r["half"], r["measure"]) == (half, measure)])])
        splits = len({(row["data"], row["seed"]) for row in own})
        yield f"\n{PRESETS[method]}, {splits} splits of {len({row['data'] for row in own})} tables:\n"
        heads = ["half", "measure", "`report_`", "a fold's models", "ensemble", "`std`", "error, jackknife alone",
                 "error", "within two, jackknife alone", "within two"]  # fmt: skip
        yield markdown(heads, table)


def _told(rows: list[Row]) -> Iterable[str]:
    keys = ("estimate", "fold_score", "score", "error", "jackknife", "test_error")
    estimate, fold, score, error, jackknife, test = (100 * np.array([float(row[key]) for row in rows]) for key in keys)
    yield from (f"{values.mean():.1f}" for values in (estimate, fold, score, error))
    away = [np.abs(score - estimate) / np.maximum(np.hypot(own, test), 1e-9) for own in (jackknife, error)]
    yield from (f"{np.sqrt(np.mean(z**2)):.2f}" for z in away)
    yield from (f"{int((z <= 2).sum())} of {len(z)}" for z in away)
