"""Make docs/results/speed.md and its figures from the CSVs: ``python -m benchmarks.report``."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks import verdicts
from benchmarks.rows import read_rows
from benchmarks.timing import STAMP, measured

Row = dict[str, Any]
RESULTS = Path(__file__).resolve().parent / "results"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "speed.md"
SLOWER = 0.9
"""Comparisons with a ratio below that are listed one by one."""
COMMAND = "python -m benchmarks --all --out benchmarks/results && python -m benchmarks.report"

SOURCE = f"""Made from the CSVs in [benchmarks/results](../../benchmarks/results), which have all rows and columns, by

```
{COMMAND}
```

Rows are of this day and these versions, when the bundle method and the hybrid were two loops, but for parts below."""

EQUAL = """## At equal objective

Times are CPU seconds of one thread, the least of several runs, with the data in memory. Converting the data to a
competitor's own types is not timed. One function computes the objective for every program. What was made equal:

* *gap*: the competitor runs at the loosest of its settings whose objective is within 1e-3 C kappa n of the best lower
  bound known. metrimax runs with `tol=1e-3`, so it has to prove that gap and not only to reach it.
* *match gap*, *match default*: metrimax stops at the first iteration whose objective is at most the competitor's, in
  its *gap* run or at its default accuracy.
* *match recorded*: the same against the objective that SVM-perf printed. Its seconds were **recorded on another, busy
  machine**, so they tell the order of magnitude only. A run that did not finish counts with the seconds it was given,
  against metrimax with `tol=1e-3`.
* *estimated*: **an estimate, not a run**. It is the number of iterations of the plain cutting-plane algorithm, times
  SVM-perf's argmax alone (4 ns for every table it looks at) or, for ROC area, times its seconds per iteration and
  non-zero in the fastest of its recorded runs.

A ratio is the competitor's seconds over metrimax's: above 1, metrimax is faster.

"""

TUNED = """### F1 by tuning a threshold

`TunedThresholdClassifierCV` around `LinearSVC` minimises another objective, so seconds and test F1 stand side by side.
C is the same for both and was chosen for neither. [Linear classifiers](linear.md) compares with C chosen.

"""


def read(folder: Path, part: str) -> list[Row]:
    """The rows of one CSV, numbers as numbers; none where that part was not measured."""
    path = folder / f"{part}.csv"
    if not path.exists():
        return []

    def value(text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return text

    return [{key: text if key in STAMP else value(text) for key, text in row.items()} for row in read_rows(path)]


def number(value: Any) -> str:
    """Three digits, and nothing for what is not there."""
    if value == "" or value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, float):
        return str(value)
    if value == int(value) and abs(value) < 1e7:
        return str(int(value))
    return f"{value:.3g}"


def table(header: list[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [header, ["---"] * len(header), *[[number(cell) for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def columns(rows: list[Row], wanted: dict[str, str | Callable[[Row], Any]]) -> str:
    """A table of some columns: heading -> name of the field, or a function of the row."""
    cells = [[what(row) if callable(what) else row.get(what, "") for what in wanted.values()] for row in rows]
    return table(list(wanted), cells)


def replace_text(path: Path, text: str) -> None:
    """Write a page beside its place and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(text)
    os.replace(beside, path)


def grouped(rows: list[Row], *fields: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows by the values of some fields, in their order."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[field] for field in fields), []).append(row)
    return groups


def span(values: list[float]) -> list[float]:
    """Median, least and greatest."""
    return [statistics.median(values), min(values), max(values)]


def finding(parts: dict[str, list[Row]]) -> str:
    """The answer in a list: who is faster, by how much, and where not."""
    found = verdicts.ratios(parts["compare"])
    lines = []
    notes = {"SVM-perf": " Its seconds were recorded on another machine or estimated."}
    for (name,), own in grouped(found, "competitor").items():
        middle, least, most = (number(value) for value in span([row["ratio"] for row in own]))
        ahead = sum(row["ratio"] > 1 for row in own)
        lines.append(
            f"* Against {name}, metrimax is faster in {ahead} of {len(own)} comparisons at equal objective: {middle} "
            f"times in the\n  median, {least} to {most} times in all.{notes.get(name, '')}"
        )
    missed = [aim for aim, _, met in verdicts.verdicts(parts) if met not in ("yes", "")]
    lines.append("* Every aim below is met." if not missed else f"* Not met: {'; '.join(missed)}.")
    return "\n".join(lines) + "\n\n"


def compare_section(rows: list[Row]) -> str:
    found = verdicts.ratios(rows)
    head = ["against", "measure", "seconds", "comparisons", "metrimax faster", "median ratio", "least", "greatest"]
    seconds = {"match recorded": "recorded", "estimated": "estimated"}
    rated = [row | {"seconds": seconds.get(row["mode"], "measured")} for row in found]
    lines = [
        [*key, len(own), sum(row["ratio"] > 1 for row in own), *span([row["ratio"] for row in own])]
        for key, own in sorted(grouped(rated, "competitor", "measure", "seconds").items())
    ]
    slower = sorted((row for row in found if row["ratio"] < 1), key=lambda row: row["ratio"])
    listed = [row for row in slower if row["ratio"] < SLOWER]
    unfinished = sum(row["note"] != "" for row in found)
    wanted = {
        "data": "task",
        "measure": "measure",
        "C": "C",
        "against": "competitor",
        "equal": "mode",
        "its s": "other_seconds",
        "metrimax s": "own_seconds",
        "ratio": "ratio",
        "its gap": "other_gap",
        "metrimax gap": "own_gap",
    }
    text = EQUAL + table(head, lines)
    text += f"\nIn {unfinished} of the {len(found)} comparisons a program did not finish or did not reach its gap.\n"
    if slower:
        text += f"metrimax is slower in {len(slower)}. Those with a ratio below {SLOWER}:\n\n{columns(listed, wanted)}"
    return text + _tuned(rows)


def _tuned(rows: list[Row]) -> str:
    """Seconds and test F1 of a tuned threshold, one line per data set."""
    own = {(r["task"], r["measure"], r["C"]): r for r in rows if r["competitor"] == "metrimax" and r["mode"] == "gap"}
    tuned = [row for row in rows if row["competitor"] == "TunedThreshold" and row["cpu_seconds"] != ""]
    lines: list[list[Any]] = []
    for (task,), theirs in grouped(tuned, "task").items():
        mine = [own[row["task"], row["measure"], row["C"]] for row in theirs]
        ratios = [a["cpu_seconds"] / b["cpu_seconds"] for a, b in zip(theirs, mine, strict=True)]
        scores = [", ".join(number(row["test_score"]) for row in runs) for runs in (theirs, mine)]
        lines.append([task, ", ".join(number(row["C"]) for row in theirs), statistics.median(ratios), *scores])
    head = ["data", "C", "tuned s / metrimax s, median", "tuned F1", "metrimax F1"]
    return f"\n{TUNED}{table(head, lines)}" if tuned else ""


def products_section(rows: list[Row]) -> str:
    lines = []
    whole = [row for row in rows if row["fraction"] != ""]
    for key, own in grouped(whole, "kind", "product", "L").items():
        least = min(row["fraction"] for row in own)
        lines.append([*key, len(own), *span([row["speedup"] for row in own]), least])
    head = ["X", "product", "vectors", "settings", "speed-up, median", "least", "greatest", "least share of bandwidth"]
    return f"{PRODUCTS}{table(head, lines)}"


def qp_section(rows: list[Row]) -> str:
    most = max(row["cuts"] for row in rows)
    solved = [row for row in rows if row["cuts"] == most and row["failure"] == ""]
    lines = [
        [
            *key,
            1e3 * statistics.median(row["seconds"] for row in own),
            1e3 * max(row["seconds"] for row in own),
            max(row["accuracy"] for row in own),
        ]
        for key, own in sorted(grouped(solved, "solver", "start").items())
    ]
    head = table(["solver", "start", "ms, median", "ms, most", "worst accuracy"], lines)
    return f"{QP}With {number(most)} cuts, the most measured:\n\n{head}"


def shares_section(rows: list[Row]) -> str:
    own = [row for row in rows if row["solver"] == "auto"]
    wanted: dict[str, Any] = {"data": "task", "measure": "measure", "C": "C", "argmax calls": "argmax_calls"}
    for name in ("products", "argmax", "qp", "other"):
        title = "model and QP" if name == "qp" else name
        wanted[title] = lambda row, name=name: f"{max(0.0, row[f'{name}_seconds']) / row['seconds']:.0%}"
    wanted |= {"seconds": "seconds", "argmax / products": "argmax_to_products"}
    return SHARES + columns(own, wanted)


def labels_section(rows: list[Row]) -> str:
    wanted: dict[str, Any] = {
        "problem": "problem",
        "labels": "labels",
        "who": "competitor",
        "trained for": "measure",
        "CPU s": "cpu_seconds",
        "macro-F1, train": "train_macro_f1",
        "macro-F1, test": "test_macro_f1",
        "largest gap": "gap",
    }
    return LABELS + columns(rows, wanted)


def path_section(rows: list[Row]) -> str:
    alone = [row["all_alone_cpu_seconds"] / row["path_cpu_seconds"] for row in rows]
    ratios = [row["ratio"] for row in rows]
    return (
        "## A path over C\n\n"
        f"`metrimax.path` over 13 values of C, 2^-6 to 2^6, takes {number(min(ratios))} to {number(max(ratios))} times "
        "as long as its most expensive point\n"
        f"alone. Solving every point alone takes {number(min(alone))} to {number(max(alone))} times as long as the path"
        f" ({len(rows)} problems).\n"
    )


def scale_section(rows: list[Row]) -> str:
    most = sorted({row["n"] for row in rows})[-2:]
    wanted: dict[str, Any] = {
        "X": "kind",
        "measure": "measure",
        "n": "n",
        "MB of X": lambda row: row["X_bytes"] / 1e6,
        "wall s": "wall_seconds",
        "passes": "n_passes",
        "ms per pass": lambda row: 1e3 * row["wall_seconds_per_pass"],
        "vectors": "vectors",
    }
    return SCALE + columns([row for row in rows if row["n"] in most], wanted)


def smoothed_section(rows: list[Row]) -> str:
    most = max(row["n"] for row in rows)
    spans, by_cuts = [], []
    for (name, n), own in grouped(rows, "measure", "n").items():
        ratios = [row["ratio"] for row in own]
        if n == most:
            spans.append(f"{name} {min(ratios):.1f} to {max(ratios):.1f}")
        else:
            highest = [max(row["ratio"] for row in same) for same in grouped(own, "mu").values()]
            by_cuts.append(f"{name} {', '.join(map(number, highest))}")
    mus = ", ".join(number(row["mu"]) for (_,), (row, *_) in grouped(rows, "mu").items())
    return f"{SMOOTHED}mu = {mus}: {', '.join(spans)}. {BY_CUTS}{'; '.join(by_cuts)}.\n"


SMOOTHED = """## Smoothed risks

A smoothed value and its gradient in cuts (300,000 examples, 3 % and 30 % of positives, CPU time on one thread), for """
BY_CUTS = "Rankings whose smoothed risk is found from cuts (10,000 examples), the highest for each of these mu: "

SHARES = """## Where the time goes

CPU seconds of one run of the default solver by part, one thread, `tol=1e-3`. Epochs of coordinate descent count as
products, quasi-Newton steps as other.

"""

PRODUCTS = """## Products with X

Settings are sizes, types and 1 or 2 threads. The speed-up is over NumPy or SciPy. The share is the bytes that a product
has to move, over its seconds, relative to the bandwidth of STREAM's triad in the same run. It is above 1 where X fits
the cache. Only a product with one vector is bound by memory; with more, it is bound by arithmetic.

"""

LABELS = """## Many labels

All labels by one `fit`, CPU seconds, one thread, C = 1. `OneVsRestClassifier` minimises the error rate for every label.

"""

SCALE = """## Growing n

Generated data, two threads; C n is constant. Memory is the peak of `fit` beyond X and the cuts, less that of a fit on
fewer rows, in float64 vectors as long as the difference in rows.

"""

QP = """## The quadratic program over the cuts

Gram matrices of three real runs, with no cut dropped, and three made-up ones. Accuracy is the duality gap of the answer
after it was made feasible, in units of the measure. The bundle method asks for 1e-5, a hundredth of `tol`.

"""


SECTIONS: dict[str, Callable[[list[Row]], str]] = {
    "compare": compare_section,
    "shares": shares_section,
    "products": products_section,
    "qp": qp_section,
    "labels": labels_section,
    "path": path_section,
    "smoothed": smoothed_section,
    "scale": scale_section,
}
FIGURES = {
    "compare": ("speed-ratios", "Seconds of other programs over those of metrimax"),
    "scale": ("speed-scale", "Seconds and memory as n grows"),
}


def when(parts: dict[str, list[Row]]) -> str:
    """When the rows of the sections were measured, where they name it."""
    named = {part: [row for row in rows if row.get("revision")] for part, rows in parts.items()}
    lines = [
        f"* `{part}`, {'all' if len(own) == len(parts[part]) else f'{len(own)} of {len(parts[part])}'} rows. "
        f"{measured(own)}"
        for part, own in named.items()
        if own
    ]
    return "\n".join(["", *lines, ""]) if lines else ""


def text(parts: dict[str, list[Row]], environment: dict[str, Any]) -> str:
    """The page from its rows."""
    page = f"# Speed\n\n{finding(parts)}" + _figure("compare") + SOURCE + "\n\n"
    page += table(list(environment), [environment.values()]) + when(parts) + "\n## Against what was aimed at\n\n"
    page += table(["aim", "measured", "met"], verdicts.verdicts(parts)) + "\n"
    for part, section in SECTIONS.items():
        if parts[part]:
            page += section(parts[part]) + "\n" + (_figure(part) if part != "compare" else "")
    return page.rstrip("\n") + "\n"


def _figure(part: str) -> str:
    if part not in FIGURES:
        return ""
    name, title = FIGURES[part]
    return f"![{title}](figures/{name}.png)\n\n"


def load(folder: Path = RESULTS) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """The rows of every part, and where they were measured."""
    return {part: read(folder, part) for part in SECTIONS}, json.loads((folder / "environment.json").read_text())


def build(folder: Path = RESULTS, page: Path = PAGE, draw: bool = True) -> None:
    """Write the page, and the figures beside it."""
    parts, environment = load(folder)
    replace_text(page, text(parts, environment))
    if draw:
        from benchmarks import figures

        figures.save(figures.ratios(parts["compare"]), page.parent / "figures" / "speed-ratios.png")
        figures.save(figures.scale(parts["scale"]), page.parent / "figures" / "speed-scale.png")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the CSVs")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
    options = parser.parse_args()
    build(options.results, options.page)


if __name__ == "__main__":
    main()
