"""The page and the figures of `experiments.smoothing`: docs/results/smoothing.md."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from pathlib import Path
from statistics import geometric_mean
from typing import NamedTuple

import matplotlib.pyplot as plt

from experiments.figures import save
from experiments.harness import Options, Row, markdown, select, write
from experiments.stats import verdict

EPSILON = 1e-3
POINTS = 0.005
"""Test performances that differ by no more are taken for the same."""
SETS = {
    "reuters:0": "Reuters, acq",
    "20news:0": "20 Newsgroups, alt.atheism",
    "sector:1": "Sector, class 1",
    "ijcnn1": "IJCNN1",
    "covtype:1": "Covertype, class 1",
    "kdd99:16": "KDD99, normal",
}
TITLES = SETS | {"digits:8": "digits of scikit-learn, 8"}
MEASURES = {"prbep": "PRBEP", "roc_area": "ROC area"}


class Method(NamedTuple):
    label: str
    style: str
    factor: float = 0.0  #: mu in units of epsilon/D


METHODS = {
    "cutting plane": Method("cutting plane", "k--"),
    "L-BFGS 1": Method("L-BFGS, µ = ε/D", "C0-", 1),
    "L-BFGS 100": Method("L-BFGS, µ = 100 ε/D", "C1-", 100),
    "L-BFGS 1000": Method("L-BFGS, µ = 1000 ε/D", "C2-", 1000),
    "L-BFGS": Method("L-BFGS, µ follows the gap", "C4-"),
    "auto": Method('solver="auto"', "C3-"),
}
PLANE, FINE, MIDDLE, COARSE, FOLLOWS, AUTO = METHODS
FIGURES = {
    "smoothing_1": ("Figure 1: objective against time, PRBEP", "prbep", "seconds", "excess"),
    "smoothing_1_passes": ("Figure 1 against passes over the data", "prbep", "passes", "excess"),
    "smoothing_2": ("Figure 2: objective against time, ROC area", "roc_area", "seconds", "excess"),
    "smoothing_2_passes": ("Figure 2 against passes over the data", "roc_area", "passes", "excess"),
    "smoothing_3": ("Figure 3: PRBEP on test data against time", "prbep", "seconds", "test"),
    "smoothing_4": ("Figure 4: ROC area on test data against time", "roc_area", "seconds", "test"),
}
AXES = {
    "seconds": "CPU seconds",
    "passes": "passes over the data",
    "excess": "objective above the optimum",
    "test": "on test data, %",
}
HEAD = """# Smoothing against cutting planes (Zhang, Saha & Vishwanathan 2011, Figures 1-4)

Made by `python -m experiments smoothing --data DIR`; the numbers are in
[smoothing.csv](../../experiments/results/smoothing.csv).

The paper compares L-BFGS on the smoothed risk, with µ = 1, 100 and 1000 times ε/D and ε = 0.001, with a cutting-plane
solver (BMRM): objective and test performance against CPU time. Here both are the library's own, on one thread. Two more
curves are `solver="lbfgs"` as it comes, whose µ falls with the gap, each problem started from the last one's solution,
and the default solver. The smoothed ROC area is the paper's function; for PRBEP the quadratic term has the paper's
coefficient, and its centre is the middle of the labellings ([smoothing](../smoothing.md)). Every method also computes
its lower bound on the optimum in every iteration, which the paper's L-BFGS does not, and which counts in its seconds. C
is the one of 0.01, 0.1, 1, 10, 100 that does best on a held-out third of the training part (of 60,000 examples of it,
where there are more).

Of the paper's data sets Covertype (522,910 training examples) and KDD99 (its 10 % sample) are among ours, which class
was the positive one is not said there; the others stand in for its text collections and smaller sets. Points show the
best weights so far, "optimum" is the greatest lower bound that any of the methods proved. A run ends at a gap of ε/10,
where its smoothed problem is solved, or after 60 CPU seconds (a ring marks the end; the grey line is ε). The machine
did other things as well, so that seconds are to be compared within a panel.
"""


class Run:
    """One method on one data set and measure: its points in order, with how far above the optimum they are."""

    def __init__(self, points: list[Row], optimum: float) -> None:
        self.points = [{name: float(p[name]) for name in ("passes", "seconds", "objective", "test")} for p in points]
        for point in self.points:
            point["excess"] = point["objective"] - optimum
        self.end, self.C = self.points[-1], float(points[-1]["C"])

    def first(self, unit: str, condition: Callable[[dict[str, float]], bool]) -> float:
        """Passes or seconds to the first point of which the condition holds."""
        return next((point[unit] for point in self.points if condition(point)), inf)

    def to_optimum(self, unit: str = "passes", within: float = EPSILON) -> float:
        return self.first(unit, lambda point: point["excess"] <= within)

    def to_own_end(self, unit: str = "passes") -> float:
        """Until nothing more than epsilon was gained."""
        return self.first(unit, lambda point: point["objective"] <= self.end["objective"] + EPSILON)

    def to_test(self, cell: Cell) -> float:
        """Seconds to the test performance that cutting planes or L-BFGS end with, less half a point."""
        value = max(cell[method].end["test"] for method in (PLANE, FINE)) - POINTS
        return self.first("seconds", lambda point: point["test"] >= value)


Cell = dict[str, Run]


def page(rows: list[Row], options: Options) -> None:
    cells: dict[tuple[str, str], Cell] = {}
    for data in TITLES:
        for measure in MEASURES:
            mine = list(select(rows, data=data, measure=measure))
            if mine:
                [_] = {row["C"] for row in mine}  # or the objectives could not be compared
                optimum = max(float(row["bound"]) for row in mine)
                runs = {method: list(select(mine, method=method)) for method in METHODS}
                cells[data, measure] = {method: Run(points, optimum) for method, points in runs.items() if points}
    parts = [HEAD]
    for name, (title, measure, x, y) in FIGURES.items():
        panels = {data: cell for (data, own), cell in cells.items() if own == measure}
        if not panels:
            continue
        figure(panels, x, y, MEASURES[measure], options.pages / "figures" / f"{name}.png")
        parts.append(f"## {title}\n\n![{title}](figures/{name}.png)\n")
    complete = {key: cell for key, cell in cells.items() if len(cell) == len(METHODS)}
    parts += [_table(cells), _verdicts(list(complete.values()))]
    if left := [f"{TITLES[data]} ({MEASURES[measure]})" for data, measure in cells if (data, measure) not in complete]:
        parts.append(f"Not counted here, for not all methods were run on them: {', '.join(left)}.\n")
    write(options.pages / "smoothing.md", "\n".join(parts))


def figure(panels: dict[str, Cell], x: str, y: str, measure: str, path: Path) -> None:
    width = min(3, len(panels))
    height = -(-len(panels) // width)
    fig, axes = plt.subplots(height, width, figsize=(3.7 * width, 2.9 * height + 0.7), squeeze=False)
    for ax, (data, cell) in zip(axes.flat, panels.items(), strict=False):
        for method, run in cell.items():
            label, style, _ = METHODS[method]
            if y == "excess":
                values = [max(point[y], EPSILON / 20) for point in run.points]
            else:
                values = [100 * point[y] for point in run.points]
            ax.plot([point[x] for point in run.points], values, style, label=label, lw=1.4, marker=".", ms=4)
            ax.plot(run.end[x], values[-1], style[:-1].rstrip("-") + "o", ms=5, mfc="white")
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter("")
        if y == "excess":
            ax.set_yscale("log")
            ax.axhline(EPSILON, color="0.6", lw=0.9, zorder=0)
        else:
            best = 100 * max(point[y] for run in cell.values() for point in run.points)
            worst = 100 * min(run.end[y] for run in cell.values())
            ax.set_ylim(worst - max(3.0, 2 * (best - worst)), best + 0.3)  # the rise from nothing is the same for all
        ax.set_title(TITLES[data], fontsize=10)
        ax.grid(color="0.92", lw=0.6)
        ax.tick_params(labelsize=8)
        ax.set_xlabel(AXES[x], fontsize=9)
    for ax in axes.flat[len(panels) :]:
        ax.axis("off")
    for ax in axes[:, 0]:
        ax.set_ylabel(AXES[y] if y == "excess" else f"{measure} {AXES[y]}", fontsize=9)
    handles = axes.flat[0].get_legend_handles_labels()
    fig.legend(*handles, loc="lower center", ncols=len(handles[0]), fontsize=9, frameon=False)
    save(fig, path, bottom=0.06 if height > 1 else 0.1, dpi=82)


def _table(cells: dict[tuple[str, str], Cell]) -> str:
    lines = []
    for (data, measure), cell in cells.items():
        line = [TITLES[data], MEASURES[measure], f"{next(iter(cell.values())).C:g}"]
        for method in METHODS:
            run = cell.get(method)
            if run is None:
                line += ["", ""]
                continue
            passes = run.to_optimum()
            reached = (
                f"{passes:.0f} / {run.to_optimum('seconds'):.2g}" if passes < inf else f"- ({run.end['excess']:.4f})"
            )
            line += [reached, f"{100 * run.end['test']:.1f}"]
        lines.append(line)
    header = ["data", "measure", "C", *(cell for method in METHODS.values() for cell in (method.label, "test"))]
    return (
        "## Passes and seconds to within ε of the optimum\n\n"
        "At the points of the curves (every iteration at first, then every 15 % more); `-` where the run ended or was\n"
        "cut before, with how far above the optimum it stayed. Test: at the end, in percent.\n\n"
        + markdown(header, lines)
    )


def _verdicts(cells: list[Cell]) -> str:
    n = len(cells)

    def count(condition: Callable[[Cell], bool]) -> int:
        return sum(condition(cell) for cell in cells)

    def agrees(hits: int) -> str:
        return verdict(hits, n)

    def faster(method: str, than: str, unit: str) -> int:
        return count(lambda c: c[method].to_optimum(unit) < c[than].to_optimum(unit))

    def ratio(value: Callable[[Run], float]) -> tuple[float, int]:
        """Cutting planes to L-BFGS with epsilon/D: the mean over the cases where both come there, and their number."""
        pairs = [(value(c[PLANE]), value(c[FINE])) for c in cells]
        ratios = [a / b for a, b in pairs if max(a, b) < inf and min(a, b) > 0]
        return (geometric_mean(ratios) if ratios else inf), len(ratios)

    def near(method: str) -> int:
        return count(lambda c: c[method].end["excess"] <= EPSILON)

    def as_good(method: str) -> int:
        return count(lambda c: c[method].end["test"] >= c[PLANE].end["test"] - POINTS)

    def alike(c: Cell) -> bool:
        a, b = (c[method].to_optimum(within=10 * EPSILON) for method in (FINE, MIDDLE))
        return max(a, b) < inf and max(a, b) <= 1.25 * min(a, b)

    def first(c: Cell, unit: str) -> bool:
        return c[AUTO].to_optimum(unit) <= min(run.to_optimum(unit) for run in c.values()) < inf

    seconds, passes = (faster(FINE, PLANE, unit) for unit in ("seconds", "passes"))
    slow, more = (ratio(lambda run, unit=unit: run.to_optimum(unit))[0] for unit in ("seconds", "passes"))
    both = ratio(Run.to_optimum)[1]
    price = 1 / ratio(lambda run: run.end["seconds"] / run.end["passes"])[0]
    sooner = count(lambda c: c[COARSE].to_own_end() < c[FINE].to_own_end())
    worse = count(lambda c: c[COARSE].end["excess"] > max(EPSILON, c[FINE].end["excess"]))
    late = [(c[PLANE].to_test(c), c[FINE].to_test(c)) for c in cells]
    tenth = sum(b < inf and a >= 10 * b for a, b in late)
    lines = [
        "*For all µ smoothing converges significantly faster than cutting planes.* "
        f"{agrees(min(seconds, passes))}: L-BFGS with µ = ε/D is within ε of the optimum before cutting planes in "
        f"{passes} of {n} cases by passes and in {seconds} by CPU seconds, with 100 ε/D in "
        f"{faster(MIDDLE, PLANE, 'passes')} and {faster(MIDDLE, PLANE, 'seconds')}. In the {both} cases where cutting "
        f"planes and ε/D both come there, cutting planes take {more:.1f} times the passes and {slow:.1f} times the "
        f"seconds (geometric means): a pass of L-BFGS takes {price:.1f} times as long, for between two passes it "
        "evaluates the smoothed risk wherever its line search goes.",
        f"*µ = ε/D and µ = 100 ε/D end at most ε above the optimum.* {agrees(min(near(FINE), near(MIDDLE)))}: they do "
        f"in {near(FINE)} and {near(MIDDLE)} of {n} cases, cutting planes in {near(PLANE)} (a run may have been cut "
        "at its time limit).",
        f"*The trajectories of the two are nearly identical.* {agrees(count(alike))}: the passes to within 10 ε of "
        f"the optimum differ by no more than a quarter in {count(alike)} of {n} cases.",
        f"*µ = 1000 ε/D converges significantly faster, to a worse solution.* {agrees(min(sooner, worse))}: it is "
        f"within ε of its own end after fewer passes than ε/D in {sooner} of {n} cases, and that end is worse than the "
        f"one of ε/D, and more than ε above the optimum, in {worse}.",
        f"*No loss on test data.* {agrees(min(as_good(FINE), as_good(MIDDLE)))}: at the end L-BFGS is no more than "
        f"half a point below cutting planes in {as_good(FINE)} of {n} cases with ε/D, in {as_good(MIDDLE)} with "
        f"100 ε/D, in {as_good(COARSE)} with 1000 ε/D.",
        f"*The same test performance in orders of magnitude less time.* {agrees(tenth)}: the best test performance at "
        "the end of any of the two, less half a point, is reached by L-BFGS with ε/D in a tenth of the seconds of "
        f"cutting planes, or less, in {tenth} of {n} cases; it is reached sooner in {sum(a > b for a, b in late)}.",
        f"L-BFGS whose µ follows the gap comes within ε in {near(FOLLOWS)} of {n} cases, before cutting planes in "
        f"{faster(FOLLOWS, PLANE, 'passes')} by passes and {faster(FOLLOWS, PLANE, 'seconds')} by seconds, before the "
        f"default in {faster(FOLLOWS, AUTO, 'passes')} and {faster(FOLLOWS, AUTO, 'seconds')}.",
        f'The default, `solver="auto"`, comes within ε in {near(AUTO)} of {n} cases, with the fewest passes of all in '
        f"{count(lambda c: first(c, 'passes'))} and the fewest seconds in {count(lambda c: first(c, 'seconds'))}.",
    ]
    head = "## What agrees with the paper and what does not\n\nThe paper's statements are in italics.\n\n"
    return head + "".join(f"* {line}\n" for line in lines)
