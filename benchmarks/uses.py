"""What users run beyond one measure alone: sums with base losses, weights, CAPO's columns, paths over C, many labels.

    python -m benchmarks.uses --data DIR [--quick] [--out benchmarks/results]

Passes and CPU seconds of `auto`, the bundle method and the hybrid to a gap of 1e-3, with the rows in several orders.
Writes uses.csv into the folder given by --out, and docs/results/uses.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Generator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import RESULTS, replace_text, table
from benchmarks.rows import read_rows, write_rows
from benchmarks.timing import measured, stamp
from experiments.data import DATA, load
from metrimax.designs import as_design
from metrimax.designs.wrappers import ExtraColumns
from metrimax.measure import get_measure
from metrimax.measure.base_loss import Losses
from metrimax.solvers import SOLVERS, side_by_side
from metrimax.training.defaults import GRID
from metrimax.training.lockstep import run
from metrimax.training.path import along

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "uses.md"
SETS = [  # name, rows
    ("moneyfx", None),
    ("reuters:9", None),
    ("20news:3", None),
    ("optdigits:8", None),
    ("imblearn/satimage", None),
    ("ijcnn1", 20_000),
]
RUNS = "auto", "bundle", "hybrid"
LOSSES = {
    "hinge 1": Losses(hinge=1.0),
    "logistic 3": Losses(logistic=3.0),
    "logistic alone": Losses(risk=0.0, logistic=1.0),
}
USES = [*LOSSES, "logistic 3, weights", "logistic 3, CAPO columns", "logistic 3, along C", "logistic 3, 8 labels"]
RULE = """`auto` takes plain iterations for sums on more than 200 features, for labels side by side and along C, and
quasi-Newton directions from the second iteration on otherwise."""
C, TOL, LABELS, SECONDS = 4.0, 1e-3, 8, 30.0
COLUMNS = ["data", "use", "solver", "order", "passes", "seconds", "gap"]


def runs(use: str, solver: Any, X: Any, y: Any, order: int) -> tuple[Any, list[Generator[Any, Any, Any]]]:
    """The design of a use, and what is run over it."""
    rng = np.random.default_rng(order)
    design = as_design(X, intercept_scaling=10.0, n_threads=1)
    losses = LOSSES.get(use, LOSSES["logistic 3"])
    weight = rng.random(len(y)) + 0.5 if "weights" in use else None
    if "CAPO" in use:  # two classifiers that err on a tenth of the examples
        outputs = np.where(rng.random((len(y), 2)) < 0.1, ~y[:, None], y[:, None])
        design = ExtraColumns(design, np.where(outputs, 1.0, -1.0))
    oracle = losses.oracle(get_measure("f1").oracle(y, weight), y, weight)
    unit = oracle.price * oracle.n
    began = time.process_time()

    def late(_: Any) -> bool:
        return time.process_time() - began > SECONDS

    if "along" in use:
        return design, [along(solver, oracle, design, unit * GRID, tol=TOL, callback=late)]
    if "labels" in use:  # the label, with other labels for some of its examples
        several, beside = [], side_by_side(solver, LABELS)
        for k in range(LABELS):
            own = y ^ (rng.random(len(y)) < 0.01 * k * y.mean())
            sample = losses.oracle(get_measure("f1").oracle(own), own, None)
            several.append(beside.steps(sample, design, C * sample.price * sample.n, tol=TOL, callback=late))
        return design, several
    return design, [solver.steps(oracle, design, C * unit, tol=TOL, callback=late)]


def measure(sets: list[tuple[str, int | None]], data: Path, orders: int) -> list[dict[str, Any]]:
    rows, stamped = [], stamp()
    for name, limit in sets:
        X, y, _, _ = load(name, data, limit)
        for order in range(orders):
            kept = np.random.default_rng(order).permutation(len(y)) if order else np.arange(len(y))
            for use in USES:
                for solver in RUNS:
                    design, steps = runs(use, SOLVERS[solver](), X[kept], y[kept], order)
                    began = time.process_time()
                    found = run(design, steps)
                    seconds = time.process_time() - began
                    solutions = [one for some in found for one in (some if isinstance(some, list) else [some])]
                    cell = name, use, solver, order, f"{sum(one.n_passes for one in solutions):.1f}", f"{seconds:.5f}"
                    missed = any(one.status.missed for one in solutions)
                    row = dict(zip(COLUMNS, (*cell, "missed" if missed else "reached"), strict=True))
                    rows.append(row | stamped)
        print(name, flush=True)
    return rows


def page(rows: list[dict[str, str]]) -> str:
    """The finding, and a table of medians over the orders of rows."""
    medians: dict[tuple[str, str], dict[str, tuple[float, float, float]]] = {}
    key = lambda row: (row["data"], row["use"], row["solver"])  # noqa: E731
    for (data, use, solver), some in groupby(sorted(rows, key=key), key):
        own = list(some)
        passes, seconds = ([float(row[unit]) for row in own] for unit in ("passes", "seconds"))
        if all(row["gap"] == "reached" for row in own):
            spread = max(passes) / min(passes)
            medians.setdefault((data, use), {})[solver] = float(np.median(passes)), float(np.median(seconds)), spread
    ratios = {name: _ratios(medians, name) for name in RUNS}
    lines = [
        [use, *(f"{_mean(medians, use, name, 0):.2f} / {_mean(medians, use, name, 1):.2f}" for name in RUNS)]
        for use in USES
    ]
    above = [
        [*cell, f"{own['auto'][0]:.0f}", f"{own['auto'][0] / min(v[0] for v in own.values()):.2f}",
         f"{1e3 * own['auto'][1]:.0f}", f"{own['auto'][1] / min(v[1] for v in own.values()):.2f}",
         f"{own['auto'][2]:.2f}"]
        for cell, own in medians.items()
        if "auto" in own and own["auto"][1] > 1.3 * min(v[1] for v in own.values())
    ]  # fmt: skip
    counted = len({row["order"] for row in rows})
    parts = [
        "# Solvers where users are: sums, weights, CAPO, paths, labels",
        f"`solver=\"auto\"` takes {np.exp(np.mean(np.log([r[0] for r in ratios['auto']]))):.2f} times the passes and "
        f"{np.exp(np.mean(np.log([r[1] for r in ratios['auto']]))):.2f} times the CPU seconds of\nthe best of `auto`, "
        f"`bundle` and `hybrid`, in the geometric mean over {len(ratios['auto'])} cells (medians over {counted} orders "
        "of the rows).",
        RULE,
        measured(rows),
        "A cell is a data set and a use, for F1 at C = 4 and a gap of 1e-3, in one thread. The rows are in\n"
        "[uses.csv](../../benchmarks/results/uses.csv); `python -m benchmarks.uses` measures them and writes the page.",
        "Passes / seconds relative to the best of the cell, geometric means over the data:\n\n"
        + table(["use", *(f"`{name}`" for name in RUNS)], lines),
        "## Cells where `auto` takes more than 1.3 times the seconds of the best\n\n"
        + (table(["data", "use", "passes", "/ best", "ms", "/ best", "most / least passes over orders"], above)
           if above else "None.\n"),
    ]  # fmt: skip
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _ratios(medians: dict[Any, Any], solver: str) -> list[tuple[float, float]]:
    return [
        (own[solver][0] / min(v[0] for v in own.values()), own[solver][1] / min(v[1] for v in own.values()))
        for own in medians.values()
        if solver in own
    ]


def _mean(medians: dict[Any, Any], use: str, solver: str, unit: int) -> float:
    ratios = _ratios({cell: own for cell, own in medians.items() if cell[1] == use}, solver)
    return float(np.exp(np.mean(np.log([one[unit] for one in ratios])))) if ratios else np.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the CSV")
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one set in one order, to see that it runs")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rows = measure(SETS[3:4] if args.quick else SETS, args.data, 1 if args.quick else args.orders)
    write_rows(args.out / "uses.csv", rows)
    text = page(read_rows(args.out / "uses.csv"))
    replace_text(PAGE if args.out == RESULTS else args.out / "uses.md", text)


if __name__ == "__main__":
    main()
