"""The figures of the pages on speed and on solvers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import verdicts

Row = dict[str, Any]


def save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80, bbox_inches="tight")


def ratios(rows: list[Row]) -> Any:
    """Every comparison as a dot, one line per competitor, measure and what was equalised."""
    from matplotlib.figure import Figure

    groups: dict[str, list[Row]] = {}
    for row in verdicts.ratios(rows):
        groups.setdefault(f"{row['competitor']}, {row['measure']} ({row['mode']})", []).append(row)
    figure = Figure(figsize=(8, 0.32 * len(groups) + 1.2))
    axes = figure.subplots()
    for k, own in enumerate(groups.values()):
        for finished in (True, False):
            values = [row["ratio"] for row in own if row["finished"] is finished]
            axes.plot(values, [k] * len(values), "o" if finished else ">", alpha=0.6, color="C0" if finished else "C3")
    axes.set_yticks(range(len(groups)), groups)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="grey", linewidth=1)
    axes.set_xlabel("its CPU seconds / metrimax's (right of 1: metrimax is faster; a triangle: it did not finish)")
    axes.grid(axis="x", alpha=0.3)
    return figure


def scale(rows: list[Row]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for kind, measure in dict.fromkeys((row["kind"], row["measure"]) for row in rows):
        own = [row for row in rows if (row["kind"], row["measure"]) == (kind, measure)]
        n = [row["n"] for row in own]
        left.plot(n, [1e3 * row["wall_seconds_per_pass"] for row in own], "-o", label=f"{kind}, {measure}")
        middle.plot(n, [row["wall_seconds"] for row in own], "-o")
        right.plot(n, [row["vectors"] for row in own], "-o")
    left.set(xscale="log", yscale="log", xlabel="n", title="ms per pass over X (argmax and QP included)")
    middle.set(xscale="log", yscale="log", xlabel="n", title="seconds in all")
    right.set(xscale="log", xlabel="n", title="memory beyond X and cuts (n-vectors)")
    right.axhline(10, color="grey", linewidth=1)
    for axes in (left, middle, right):
        axes.title.set_fontsize(9)
        axes.grid(alpha=0.3)
    left.legend(fontsize=7)
    return figure


def profiles(found: dict[str, dict[str, list[float]]]) -> Any:
    """For every unit and solver, in which share of the cells it is within a factor of the best."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for axes, (unit, ratios) in zip(figure.subplots(1, len(found), sharey=True), found.items(), strict=True):
        for name, values in ratios.items():
            share = [(k + 1) / len(values) for k in range(len(values))]
            axes.step(sorted(values), share, where="post", label=name, linewidth=2.5 if name == "auto" else 1.2)
        axes.set(xscale="log", xlim=(1, 20), ylim=(0, 1.02), xlabel=f"{unit} / those of the best solver in the cell")
        axes.set_xticks([1, 1.3, 2, 5, 10, 20], ["1", "1.3", "2", "5", "10", "20"])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("share of the cells")
    figure.axes[0].legend(fontsize=8, loc="lower right")
    return figure
