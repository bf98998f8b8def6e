"""Make docs/results/speed.md and its figures from the CSVs: ``python -m benchmarks.report``."""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks import verdicts

Row = dict[str, Any]
COMMAND = "python -m benchmarks --all --out benchmarks/results && python -m benchmarks.report"


OPENING = f"""# Speed

Made by

```
{COMMAND}
```

from the CSVs in `benchmarks/results`; what each column means is said in the modules of `benchmarks`.

"""

EQUAL = """## At equal objective

CPU seconds of one thread, the least of several runs, data in memory (conversions to a competitor's own types are not
timed). Objectives are recomputed by one function for everybody. What was equalised:

* *gap*: the competitor in the loosest of its accuracy settings whose objective is within 1e-3 C kappa n of the best
  lower bound known, against metrimax with `tol=1e-3`, which has to prove that gap and not only to reach it;
* *match gap*, *match default*: metrimax stopped in the first iteration whose objective is at most that of the
  competitor's answer in the *gap* mode, or at its default accuracy;
* *match recorded*: the same against the objective that SVM-perf printed; its seconds were **recorded on another, busy
  machine** and only say the order of magnitude. An unfinished run counts with the seconds it was given, against
  metrimax with `tol=1e-3`;
* *estimated*: the iterations of the plain cutting-plane algorithm to the same gap (fewer, if that did not finish
  either), times SVM-perf's argmax alone, 4 ns for every table it looks at, or, for ROC area, times its seconds per
  iteration and non-zero in the quickest of its recorded runs, on that other machine: **an estimate, not a run**.

The ratio is the competitor's seconds over metrimax's: above 1, metrimax is faster.

"""

TUNED = """
### F1 by tuning a threshold

`TunedThresholdClassifierCV` around `LinearSVC` has no objective in common with F1's: seconds and test F1 side by side.

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

    with path.open(newline="") as file:
        return [{key: value(text) for key, text in row.items()} for row in csv.DictReader(file)]


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


def compare_section(rows: list[Row]) -> str:
    ratios = verdicts.ratios(rows)
    text = EQUAL
    head = {
        "data": "task",
        "measure": "measure",
        "C": "C",
        "c": "c",
        "against": "competitor",
        "equalised": "mode",
        "its s": "other_seconds",
        "metrimax s": "own_seconds",
        "ratio": "ratio",
        "passes": "n_passes",
        "its gap": "other_gap",
        "metrimax gap": "own_gap",
        "note": "note",
    }
    text += columns(ratios, head)
    tuned = [row for row in rows if row["competitor"] == "TunedThreshold"]
    own = {(r["task"], r["measure"], r["C"]): r for r in rows if r["competitor"] == "metrimax" and r["mode"] == "gap"}
    if tuned:
        text += TUNED

        def mine(field: str) -> Callable[[Row], Any]:
            return lambda row: own[row["task"], row["measure"], row["C"]][field]

        text += columns(
            tuned,
            {
                "data": "task",
                "C": "C",
                "tuned s": "cpu_seconds",
                "metrimax s": mine("cpu_seconds"),
                "tuned F1": "test_score",
                "metrimax F1": mine("test_score"),
                "note": lambda row: row.get("failure", ""),
            },
        )
    text += "\n### metrimax to tol = 1e-3\n\n"
    both = [row for row in rows if row["competitor"] == "metrimax" and row["mode"].startswith("gap")]
    return text + columns(
        both,
        {
            "data": "task",
            "measure": "measure",
            "C": "C",
            "threads": lambda row: 2 if "2" in row["mode"] else 1,
            "CPU s": "cpu_seconds",
            "wall s": "wall_seconds",
            "iterations": "n_iter",
            "passes": "n_passes",
            "objective": "objective",
            "gap": "gap",
        },
    )


def simple(title: str, text: str, wanted: dict[str, Any]) -> Callable[[list[Row]], str]:
    return lambda rows: f"## {title}\n\n{text}\n\n{columns(rows, wanted)}"


SECTIONS: dict[str, Callable[[list[Row]], str]] = {
    "compare": compare_section,
    "shares": simple(
        "Where the time goes",
        "CPU seconds of one run by part, one thread, `tol=1e-3`: of the bundle method, with one line search and one\n"
        "cut an iteration, and of the default, which makes two of each in iterations that are fewer. Epochs of\n"
        "coordinate descent count as products, quasi-Newton steps as other.",
        {
            "data": "task",
            "measure": "measure",
            "C": "C",
            "solver": "solver",
            "iterations": "n_iter",
            "argmax calls": "argmax_calls",
            "products": "products_seconds",
            "argmax": "argmax_seconds",
            "model and QP": "qp_seconds",
            "other": "other_seconds",
            "all": "seconds",
            "argmax / products": "argmax_to_products",
        },
    ),
    "products": simple(
        "Products with X",
        "The bytes a product has to move, over its seconds, as a share of the bandwidth of STREAM's triad measured in\n"
        "the same run with as many threads (above 1 where X fits the cache, or where reading is quicker than the\n"
        "triad's writing). The peer is NumPy or SciPy. Only one vector (L = 1) is bound by memory; with more, the\n"
        "arithmetic is.",
        {
            "X": "kind",
            "type": "dtype",
            "non-zeros": "nnz",
            "L": "L",
            "product": "product",
            "threads": "threads",
            "ms": lambda row: 1e3 * row["seconds"],
            "GB/s": lambda row: row["bandwidth"] / 1e9,
            "triad GB/s": lambda row: row["triad"] / 1e9,
            "share": "fraction",
            "peer ms": lambda row: 1e3 * row["peer_seconds"],
            "speed-up": "speedup",
        },
    ),
    "qp": simple(
        "The quadratic program over the cuts",
        "Gram matrices of real runs (no cut dropped) and made-up ones. Accuracy is the duality gap of the answer made\n"
        "feasible, in units of the measure; the solver asks for a hundredth of `tol`, 1e-5.",
        {
            "program": "program",
            "cuts": "cuts",
            "rank": "rank",
            "solver": "solver",
            "start": "start",
            "ms": lambda row: 1e3 * row["seconds"],
            "accuracy": "accuracy",
            "support": "support",
            "note": "failure",
        },
    ),
    "labels": simple(
        "Many labels",
        "All labels by one `fit`, CPU seconds, one thread, C = 1. `OneVsRestClassifier` minimises the error rate,\n"
        "whatever is reported; objectives are comparable between rows of the same measure.",
        {
            "problem": "problem",
            "labels": "labels",
            "who": "competitor",
            "trained for": "measure",
            "CPU s": "cpu_seconds",
            "wall s": "wall_seconds",
            "sum of objectives": "objective",
            "macro-F1, train": "train_macro_f1",
            "macro-F1, test": "test_macro_f1",
            "largest gap": "gap",
        },
    ),
    "path": simple(
        "A path over C",
        "`metrimax.path` over 2^-6 .. 2^6 against the most expensive of its points alone.",
        {
            "data": "task",
            "measure": "measure",
            "path s": "path_cpu_seconds",
            "hardest C": "hardest_C",
            "alone s": "hardest_cpu_seconds",
            "ratio": "ratio",
            "all points alone s": "all_alone_cpu_seconds",
            "passes, path": "path_passes",
            "passes, hardest": "hardest_passes",
            "largest gap": "largest_gap",
        },
    ),
    "scale": simple(
        "Growing n",
        "Generated data, two threads; C n is kept. Memory is the peak of `fit` beyond X, less the cuts and less what\n"
        "a fit on fewer rows takes as well (it does not grow with n), in vectors of float64 as long as the difference\n"
        "in rows. Below 10^5 rows such a vector is too small to be told from the rest; a figure below zero says that\n"
        "the fit on fewer rows took more, and nothing of the vectors. The rows of 10^7 may be of an earlier version.",
        {
            "X": "kind",
            "measure": "measure",
            "n": "n",
            "dtype": "dtype",
            "MB of X": lambda row: row["X_bytes"] / 1e6,
            "wall s": "wall_seconds",
            "passes": "n_passes",
            "ms per pass": lambda row: 1e3 * row["wall_seconds_per_pass"],
            "gap": "gap",
            "vectors": "vectors",
        },
    ),
}


def build(folder: Path, page: Path, figures: bool = True) -> None:
    """Write the page, and the figures beside it."""
    parts = {part: read(folder, part) for part in SECTIONS}
    environment = json.loads((folder / "environment.json").read_text())
    text = OPENING + table(list(environment), [environment.values()]) + "\n## Against what was aimed at\n\n"
    aims = verdicts.verdicts(parts)
    text += table(["aim", "measured", "met"], aims) + "\n"
    made = []
    if figures:
        from benchmarks import figures as drawing

        made = drawing.draw(parts, page.parent / "figures")
    for part, section in SECTIONS.items():
        if parts[part]:
            text += section(parts[part]) + "\n"
            text += "".join(f"![{name}](figures/{name}.png)\n\n" for owner, name in made if owner == part)
    page.parent.mkdir(parents=True, exist_ok=True)
    beside = page.with_suffix(".part")
    beside.write_text(text.rstrip("\n") + "\n")
    os.replace(beside, page)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results"), help="folder of the CSVs")
    parser.add_argument("--page", type=Path, default=Path("docs/results/speed.md"), help="the page to write")
    options = parser.parse_args()
    build(options.results, options.page)


if __name__ == "__main__":
    main()
