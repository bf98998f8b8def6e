"""The page of `experiments.baselines`: docs/results/baselines.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.figures import plt, save
from experiments.harness import Options, Row, Table, markdown, select, write
from experiments.holdout import MEASURES
from experiments.joachims2005_page import TITLES
from experiments.stats import average_ranks, compare

DIRECT = "direct training"
Name = tuple[str, str, str]  #: protocol, method, threshold
REFERENCE: Name = ("hold-out", DIRECT, "as trained")
"""What every other method is compared with."""
ENOUGH = 3
"""Positives that a class needs for a threshold to be tuned by three folds."""


def joined(rows: list[Row], other: list[Row]) -> list[Row]:
    """The rows, and beside them those of Joachims (2005) on the same draws, in the same form."""
    drawn = {(row["data"], row["seed"]) for row in rows}
    out = [dict(row) for row in rows]
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
    """All methods, the best F1 first: macro-averages, average rank and wins of direct training by F1."""
    f1 = results(rows, data, "f1")
    names = sorted(f1, key=lambda name: -f1[name].mean())
    ranks = dict(zip(names, average_ranks(np.column_stack([f1[name] for name in names]), digits=6), strict=True))
    others = {measure: results(rows, data, measure) for measure in MEASURES if measure != "f1"}
    ours = f1[REFERENCE]
    lines = []
    for name in names:
        against = compare(ours, f1[name], digits=6)
        cells = [f"{found[name].mean():.1f}" if name in found else "" for found in others.values()]
        enough = f1[name][positives >= ENOUGH].mean()
        duel = "" if name == REFERENCE else f"{against.wins}/{against.losses}{against.stars}"
        scores = [f"{f1[name].mean():.1f}", f"{enough:.1f}", f"{ranks[name]:.2f}", duel, *cells]
        lines.append([*name, *scores, f"{seconds(rows, data, name):.0f}"])
    header = ["settings", "method", "threshold", "F1", f"F1, n₊ ≥ {ENOUGH}", "rank", f"{DIRECT} won/lost"]
    return markdown([*header, *(MEASURES[m] for m in others), "CPU s"], lines)


def best(found: dict[Name, Any]) -> Name:
    """The best of what users do instead."""
    return max((name for name in found if name != REFERENCE), key=lambda name: found[name].mean())


def sentence(rows: list[Row], data: str) -> str:
    """Which side is ahead, by what the tables say."""
    parts = []
    for measure, title in MEASURES.items():
        found = results(rows, data, measure)
        other = best(found)
        result = compare(found[REFERENCE], found[other], digits=6)
        parts.append(
            f"{title}: {found[REFERENCE].mean():.1f} against {found[other].mean():.1f} ({label(other)}), "
            f"{result.wins}/{result.losses}, p = {result.p:.3f}"
        )
    return "Direct training and the best of the others. " + ". ".join(parts) + "."


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
        named = [REFERENCE, best(found)]
        for name, values in found.items():
            direct = name == REFERENCE
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
    sets = [data for data in TITLES if REFERENCE in results(rows, data, "f1")]
    figure(rows, sets, options)
    parts = []
    for data in sets:
        own = {(r["seed"], int(r["label"])): int(r["positives"]) for r in select(rows, data=data) if r["f1"] != "nan"}
        positives = np.array([own[key] for key in sorted(own)])
        parts.append(f"## {TITLES[data]}\n\n{macro_table(rows, data, positives)}\n{sentence(rows, data)}\n")
    library = any(row["method"].startswith("LibMultiLabel") for row in rows)
    said = "is run with its defaults; its thresholds are for the sum of macro- and micro-F1"
    if not library:
        said = "was not installed for this run"
    write(options.pages / "baselines.md", INTRODUCTION.format(libmultilabel=said) + "\n" + "\n".join(parts))


INTRODUCTION = """# What users do instead

Made by `python -m experiments baselines --data DIR`; the numbers are in
[baselines.csv](../../experiments/results/baselines.csv), those of C by hold-out with direct training and with costs in
[joachims2005.csv](../../experiments/results/joachims2005.csv).

The collections and splits of [Joachims (2005)](joachims2005.md), one class against the rest. *default*: the settings
with which the estimator comes (max_iter of logistic regression raised to 1000); *tuned*: a threshold for F1 by
`TunedThresholdClassifierCV`, 3 folds, for classes with at least 3 positives (the others keep the threshold they were
trained with). *hold-out*: C (for "SVM with costs" also j), and where it says tuned also the threshold, by the paper's
hold-out of one third, chosen for F1 where a method is not trained for a measure; on the whole of Covertype all of these
on the same 100,000 of the training examples. Direct training is that of the paper, the measure's risk alone;
`MeasureSVC` and `MeasureSVCCV` with their defaults are on [a page of their own](linear.md). LibMultiLabel
{libmultilabel}.

Macro-averages in percent. The rank is the average over classes (and draws) by F1 among all rows of the table. The
column after it counts the classes on which direct training was better and worse than the row, with the stars of a
two-tailed Wilcoxon test (* 0.9, ** 0.95; the draws of Covertype share classes, so its tests are too sure of
themselves). Direct training was done for the measure of each column; seconds are those for F1, measured on a busy
machine.

![F1 against CPU seconds](figures/baselines.png)
"""
