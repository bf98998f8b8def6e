"""The picture and the sentences at the top of the README, from the rows of the experiments."""

from __future__ import annotations

from textwrap import fill
from typing import NamedTuple

import numpy as np

from experiments.baselines_page import DIRECT, joined
from experiments.figures import plt, save
from experiments.harness import Options, Row, Table

OURS, GREY = "#1f5fa8", "#9aa5b1"
ENSEMBLE, BOOSTING = "MeasureEnsemble", "HistGradientBoosting + threshold"
TEXT, CHOSEN = "MeasureSVC", "MeasureSVCCV"


class Method(NamedTuple):
    """Mean F1 over the labels, in percent, and the CPU seconds of the training of all of them."""

    name: str
    f1: float
    seconds: float

    @property
    def tuned(self) -> bool:
        return self.name.endswith("tuned")


def own_methods(rows: list[Row]) -> list[Method]:
    """Macro-F1 on Reuters of ours with their defaults, from the experiment on linear classifiers."""
    return [
        Method(str(row["method"]), 100 * float(row["value"]), float(row["cpu_seconds"]))
        for row in rows
        if row["data"] == "reuters" and row["method"] in (TEXT, CHOSEN)
    ]


def text_methods(rows: list[Row]) -> list[Method]:
    """Macro-F1 on Reuters of other linear classifiers: as trained, and with tuned thresholds.

    Of a classifier with its default C and with a C by hold-out, the better one on the test documents is taken.
    """
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        own = row["method"] == DIRECT or str(row["method"]).startswith("Measure")
        if row["data"] == "reuters" and row["f1"] != "" and not own:
            found.setdefault((str(row["method"]), str(row["threshold"]), str(row["protocol"])), []).append(row)
    methods: dict[str, Method] = {}
    for (name, threshold, _), own in found.items():
        called = name.removesuffix(" f1") + (", tuned" if threshold == "tuned" else "")
        seconds = float(np.mean([float(row["cpu_seconds"]) for row in own]))
        method = Method(called, 100 * float(np.mean([float(row["f1"]) for row in own])), seconds)
        methods[called] = max(method, methods.get(called, method), key=lambda one: one.f1)
    return sorted(methods.values(), key=lambda method: -method.f1)


def table_pairs(rows: list[Row]) -> dict[str, tuple[float, float]]:
    """F1 on each table of boosting with a tuned threshold and of the ensemble, the mean over splits, in percent."""
    values: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["measure"] == "f1" and row["method"] in (ENSEMBLE, BOOSTING) and not row["variant"]:
            values.setdefault(str(row["data"]), {}).setdefault(str(row["method"]), []).append(float(row["score"]))
    pairs = {
        data: (100 * float(np.mean(own[BOOSTING])), 100 * float(np.mean(own[ENSEMBLE])))
        for data, own in values.items()
        if len(own) == 2
    }
    return dict(sorted(pairs.items(), key=lambda item: item[1][1] - item[1][0]))


def sentences(methods: list[Method], pairs: dict[str, tuple[float, float]]) -> str:
    """What the picture shows."""
    ours, chosen = (next(method for method in methods if method.name == name) for name in (TEXT, CHOSEN))
    tuned = [method for method in methods if method.tuned]
    plain = [method for method in methods if not method.tuned and not method.name.startswith("Measure")]
    cost = sorted(method.seconds for method in tuned)
    gain = np.array([ensemble - boosting for boosting, ensemble in pairs.values()])
    boosting, ensemble = np.mean(list(pairs.values()), axis=0)
    said = (
        f'* **Text with rare labels.** 90 categories of Reuters, most of them rare: `MeasureSVC("f1")` reaches a '
        f"macro-F1 of {ours.f1:.1f} in {ours.seconds:.0f} CPU seconds, and `MeasureSVCCV`, which chooses C, of "
        f"{chosen.f1:.1f} in {chosen.seconds:.0f} ([measured](docs/results/linear.md)). `LinearSVC` and "
        f"`LogisticRegression` reach {plain[0].f1:.1f} at best as they are trained. With thresholds, C and costs tuned "
        f"for every label they reach {tuned[0].f1:.1f} at best, in {cost[0]:.0f} to {cost[-1]:.0f} seconds "
        "([measured](docs/results/baselines.md), in other runs: take the seconds as orders of magnitude).\n"
        f'* **Tables.** On {len(pairs)} imbalanced tables `MeasureEnsemble("f1")` has a mean F1 of {ensemble:.1f}, and '
        f"gradient boosting with a tuned threshold {boosting:.1f}; it is ahead on {int((gain > 0).sum())} of them "
        "([measured](docs/results/ensemble.md)).\n"
    )
    lines = (fill(line, 118, subsequent_indent="  ", break_on_hyphens=False) for line in said.splitlines())
    return "\n".join(lines) + "\n"


def figure(methods: list[Method], pairs: dict[str, tuple[float, float]], options: Options) -> None:
    """Text: macro-F1 over CPU seconds. Tables: from boosting with a tuned threshold to the ensemble."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 5.4), width_ratios=(1.25, 1), layout="constrained")
    shown = [method for method in methods if not method.name.startswith("LibMultiLabel") and method.f1 > 40]
    for method in shown:
        own = method.name.startswith("Measure")
        left.plot(method.seconds, method.f1, "o", color=OURS if own else GREY, markersize=9 if own else 7)
        left.annotate(
            method.name,
            (method.seconds, method.f1),
            xytext=(8, 4) if own else (8, -4),
            textcoords="offset points",
            fontsize=9,
            color=OURS if own else "0.35",
            fontweight="bold" if own else "normal",
        )
    left.set_xscale("log")
    left.set(xlabel="CPU seconds of training, all labels", ylabel="macro-F1 on the test documents")
    left.set_title("Text: 90 categories of Reuters", loc="left", fontsize=11)
    left.set_xlim(None, 4 * max(method.seconds for method in shown))
    for k, (boosting, ensemble) in enumerate(pairs.values()):
        right.plot([boosting, ensemble], [k, k], color="#c9d7e6", linewidth=3, zorder=1)
        right.plot(boosting, k, "o", color=GREY)
        right.plot(ensemble, k, "o", color=OURS)
    top, (boosting, ensemble) = len(pairs) - 1, list(pairs.values())[-1]  # the names stand beside the widest pair
    right.text(boosting - 3, top, "boosting, tuned", color="0.35", fontsize=8, ha="right", va="center")
    right.text(ensemble + 3, top, "MeasureEnsemble", color=OURS, fontsize=8, va="center")
    right.set_yticks(range(len(pairs)), list(pairs), fontsize=8)
    right.set(xlabel="F1 on the test rows")
    right.set_title(f"Tables: {len(pairs)} imbalanced sets", loc="left", fontsize=11)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#eceff2")
        ax.set_axisbelow(True)
    save(fig, options.pages / "figures" / "summary.png")


def draw(options: Options) -> None:
    """The picture, where its rows are there."""
    methods, pairs = measured(options)
    if methods and pairs:
        figure(methods, pairs, options)


def measured(options: Options) -> tuple[list[Method], dict[str, tuple[float, float]]]:
    """What the rows say."""
    names = ("baselines", "joachims2005", "linear", "ensemble")
    tables = {name: Table(options.out / f"{name}.csv").rows for name in names}
    others = joined(tables["baselines"], tables["joachims2005"])
    methods = own_methods(tables["linear"]) + text_methods(others)
    return methods, table_pairs(tables["ensemble"])
