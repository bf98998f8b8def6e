"""The page of `experiments.baselines`: docs/results/baselines.md."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from experiments.figures import plt, save
from experiments.harness import Options, Row, Table, markdown, select, write
from experiments.holdout import MEASURES
from experiments.joachims2005_page import TITLES
from experiments.stats import average_ranks, compare

DIRECT = "MeasureSVC"
REFERENCES = ("MeasureSVCCV", "MeasureSVC")
"""The first of these with results is compared with every other method, with its defaults."""
Name = tuple[str, str, str]  #: protocol, method, threshold
ENOUGH = 3
"""Positives that a class needs for a threshold to be tuned by three folds."""


def joined(rows: list[Row], other: list[Row]) -> list[Row]:
    """The rows, and beside them those of Joachims (2005) on the same draws, in the same form."""
    drawn = {(row["data"], row["seed"]) for row in rows}
    out = [dict(row) for row in rows]
    for row in out:
        for measure in MEASURES:  # one name for all measures: what is trained differs, not the method
            row["method"] = row["method"].removesuffix(f" {measure}")
    for row in select(other, protocol="hold-out"):
        if (row["data"], row["seed"]) in drawn:
            method, _, threshold = row["method"].partition(", ")
            method = DIRECT if method == "direct" else "SVM with costs"
            found = {name: row["value"] if name == row["measure"] else "" for name in MEASURES}
            kept = {name: row[name] for name in ("data", "seed", "protocol", "label", "positives", "cpu_seconds")}
            out.append(kept | found | {"method": method, "threshold": "tuned" if threshold else "as trained"})
    return out


def results(rows: list[Row], data: str, measure: str) -> dict[Name, Any]:
    """Percent per class, (draws x classes) in one order, for every method that has all of them."""
    found: dict[Name, dict[tuple[str, int], float]] = {}
    for row in select(rows, data=data):
        if measure != "f1" and row["threshold"] == "tuned":  # a threshold does not change a ranking
            continue
        if row[measure] not in ("", "nan"):
            name = (row["protocol"], row["method"], row["threshold"])
            found.setdefault(name, {})[row["seed"], int(row["label"])] = 100 * float(row[measure])
    whole = max(map(len, found.values()), default=0)
    return {name: np.array([own[key] for key in sorted(own)]) for name, own in found.items() if len(own) == whole}


def seconds(rows: list[Row], data: str, name: Name) -> float:
    """CPU seconds per draw, of what is needed for F1."""
    protocol, method, threshold = name
    own = select(rows, data=data, protocol=protocol, method=method, threshold=threshold)
    times = {row["seed"]: float(row["cpu_seconds"]) for row in own if row["f1"] != ""}
    return float(np.mean(list(times.values())))


def macro_table(rows: list[Row], data: str, positives: Any) -> str:
    """All methods, the best F1 first: macro-averages, average rank and wins of default `MeasureSVC` by F1."""
    f1 = results(rows, data, "f1")
    names = sorted(f1, key=lambda name: -f1[name].mean())
    ranks = dict(zip(names, average_ranks(np.column_stack([f1[name] for name in names]), digits=6), strict=True))
    others = {measure: results(rows, data, measure) for measure in MEASURES if measure != "f1"}
    reference = next(method for method in REFERENCES if ("default", method, "as trained") in f1)
    ours = f1["default", reference, "as trained"]
    lines = []
    for name in names:
        against = compare(ours, f1[name], digits=6)
        cells = [f"{found[name].mean():.1f}" if name in found else "" for found in others.values()]
        enough = f1[name][positives >= ENOUGH].mean()
        duel = "" if name[:2] == ("default", reference) else f"{against.wins}/{against.losses}{against.stars}"
        scores = [f"{f1[name].mean():.1f}", f"{enough:.1f}", f"{ranks[name]:.2f}", duel, *cells]
        lines.append([*name, *scores, f"{seconds(rows, data, name):.0f}"])
    header = ["settings", "method", "threshold", "F1", f"F1, n₊ ≥ {ENOUGH}", "rank", f"{reference} won/lost"]
    return markdown([*header, *(MEASURES[m] for m in others), "CPU s"], lines)


def best(found: dict[Name, Any], *, direct: bool, default: bool = False) -> Name:
    own = [n for n in found if n[1].startswith(DIRECT) == direct and (n[0] == "default" or not default)]
    return max(own, key=lambda name: found[name].mean())


def sentence(rows: list[Row], data: str) -> str:
    """Which side is ahead, by what the tables say."""
    parts = []
    for measure, title in MEASURES.items():
        found = results(rows, data, measure)
        one, other = best(found, direct=True), best(found, direct=False)
        result = compare(found[one], found[other], digits=6)
        parts.append(
            f"{title}: {found[one].mean():.1f} ({label(one)}) against {found[other].mean():.1f} ({label(other)}), "
            f"{result.wins}/{result.losses}, p = {result.p:.3f}"
        )
    return "The best of each side. " + ". ".join(parts) + "."


def lost(rows: list[Row], data: str, positives: Any) -> str:
    """On how many classes with enough positives the default `MeasureSVC` finds nothing where a baseline does."""
    found = results(rows, data, "f1")
    ours, name = found["default", DIRECT, "as trained"], best(found, direct=False)
    none = (positives >= ENOUGH) & (ours == 0)
    share = float(np.where(none, found[name] - ours, 0.0).mean())
    if share < 1:
        return ""
    said = (
        f"`MeasureSVC` with its defaults has an F1 of 0 on {none.sum()} of the classes with at least {ENOUGH} "
        f"positives, where {label(name)} has {found[name][none].mean():.1f}: {share:.1f} points of the average. Where "
        "a rare class overlaps the others, w = 0 can be optimal for the risk of F1 or PRBEP whatever C is, and "
        "`status_` says so. The hinges of all examples, `hinge=1`, lead away from there, but do not always lead to a "
        "better classifier."
    )
    return f"\n{textwrap.fill(said, 120)}\n"


def label(name: Name) -> str:
    protocol, method, threshold = name
    settings = {"default": "", "hold-out": ", C by hold-out"}.get(protocol, f", {protocol}")
    return method + settings + (", tuned" if threshold == "tuned" else "")


def figure(rows: list[Row], sets: list[str], options: Options) -> None:
    """F1 against CPU seconds."""
    fig, axes = plt.subplots(1, len(sets), figsize=(4.2 * len(sets), 3.6), squeeze=False)
    for ax, data in zip(axes[0], sets, strict=True):
        found = results(rows, data, "f1")
        times = {name: seconds(rows, data, name) for name in found}
        middle = np.median(list(times.values()))
        named = [name for name in found if name[1].startswith(DIRECT)] + [best(found, direct=False)]
        for name, values in found.items():
            direct = name[1].startswith(DIRECT)
            color = "C3" if direct else "C0" if name[2] == "tuned" else "0.6"
            ax.scatter(times[name], values.mean(), color=color, s=24 if direct else 14, marker="D" if direct else "o")
        for k, name in enumerate(sorted(named, key=lambda name: found[name].mean())):
            right = times[name] > middle
            place = {"xytext": (-5 if right else 5, 4 if k % 2 else -8), "ha": "right" if right else "left"}
            at = times[name], found[name].mean()
            ax.annotate(label(name), at, fontsize=6, textcoords="offset points", **place)
        ax.set_xscale("log")
        ax.margins(x=0.12)
        ax.set_title(TITLES[data], fontsize=7)
        ax.tick_params(labelsize=7)
    axes[0, 0].set_ylabel("macro-F1, percent", fontsize=8)
    fig.supxlabel("CPU seconds, all classes (red: direct; blue: tuned threshold; grey: as trained)", fontsize=8)
    save(fig, options.pages / "figures" / "baselines.png")


def page(rows: list[Row], options: Options) -> None:
    rows = joined(rows, Table(options.out / "joachims2005.csv").rows)
    sets = [data for data in TITLES if any(select(rows, data=data, protocol="default", method=DIRECT))]
    figure(rows, sets, options)
    parts = []
    for data in sets:
        own = {(r["seed"], int(r["label"])): int(r["positives"]) for r in select(rows, data=data) if r["f1"] != "nan"}
        positives = np.array([own[key] for key in sorted(own)])
        remarks = f"{sentence(rows, data)}\n{lost(rows, data, positives)}"
        parts.append(f"## {TITLES[data]}\n\n{macro_table(rows, data, positives)}\n{remarks}")
    without = [TITLES[data] for data in sets if not any(select(rows, data=data, method="MeasureSVCCV"))]
    if without:
        parts.insert(
            0, f"Not computed yet: `MeasureSVCCV`, and what follows it in the program, on {'; '.join(without)}.\n"
        )
    library = any(row["method"].startswith("LibMultiLabel") for row in rows)
    said = "is run with its defaults; its thresholds are for the sum of macro- and micro-F1"
    if not library:
        said = "was not installed for this run"
    write(options.pages / "baselines.md", INTRODUCTION.format(libmultilabel=said) + "\n" + "\n".join(parts))


INTRODUCTION = """# What users do instead

Measured with the defaults before a logistic loss stood beside the risk; those of today: [linear](linear.md).

Made by `python -m experiments baselines --data DIR`; the numbers are in
[baselines.csv](../../experiments/results/baselines.csv), those of C by hold-out with direct training and with costs in
[joachims2005.csv](../../experiments/results/joachims2005.csv).

The collections and splits of [Joachims (2005)](joachims2005.md), one class against the rest. *default*: the settings
with which the estimator comes (max_iter of logistic regression raised to 1000); *tuned*: a threshold for F1 by
`TunedThresholdClassifierCV`, 3 folds, for classes with at least 3 positives (the others keep the threshold they were
trained with). `MeasureSVCCV` chooses C by 5 folds, on Reuters one C for all categories at a time; there it is not
trained for ROC area, and on the whole of Covertype for F1 alone. *hold-out*: C (for "SVM with costs" also j), and where
it says tuned also the threshold, by the paper's hold-out of one third, chosen for F1 where a method is not trained for
a measure; on the whole of Covertype all of these on the same 100,000 of the training examples. The default C of
`MeasureSVC` was chosen by cross-validation on other collections and on training parts; Reuters'
test figures with that C had been seen by then. LibMultiLabel {libmultilabel}.

Macro-averages in percent. The rank is the average over classes (and draws) by F1 among all rows of the table. The
column after it counts the classes on which the classifier named there, with its defaults, was better and worse than
the row, with the stars of a two-tailed Wilcoxon test (* 0.9, ** 0.95; the draws of Covertype share classes, so its
tests are too sure of themselves). A row of direct training was trained for the measure of each column; seconds are
those for F1, measured on a busy machine.

![F1 against CPU seconds](figures/baselines.png)
"""
