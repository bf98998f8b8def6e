"""What each part of `solver="auto"` is worth: passes to a gap of 1e-3 without it, with the rows in several orders.

    python -m benchmarks.ablation --data DIR [--sets NAME ...] [--quick] [--out benchmarks/results]

The cells are those of `benchmarks.solvers`, with the C found there. Writes ablation.csv into the folder given by --out;
`python -m benchmarks.solvers_page` makes the table.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.report import RESULTS
from benchmarks.rows import read_rows, write_rows
from benchmarks.solvers import SETS
from benchmarks.solvers_page import TOL, by_cell
from benchmarks.timing import stamp
from experiments.data import DATA, load
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.solvers import SOLVERS, auto
from metrimax.training.lockstep import run

VARIANTS: dict[str, dict[str, Any]] = {  # what is replaced in `auto`
    "auto": {},
    "no help at w = 0": {"LINGER": math.inf, "LINGER_AT_K": math.inf},
    "no coordinate descent to the end": {"_has_hinges": lambda oracle, design: False},
    "no epochs on nearly separable data": {"LOOSE": math.inf},
}
OTHERS = "hybrid", "bundle"
ORDERS = 3
COLUMNS = ["data", "measure", "factor", "variant", "order", "passes", "seconds", "gap"]
"""And what `stamp` says of the run."""


def solve(variant: str, design: Any, oracle: Any, weight: float, most: float) -> tuple[Any, float]:
    """The solution by one variant, and the CPU seconds that it took."""
    solver = SOLVERS[variant if variant in OTHERS else "auto"]()
    with ExitStack() as patches:
        for name, value in VARIANTS.get(variant, {}).items():
            patches.enter_context(mock.patch.object(auto, name, value))
        began = time.process_time()
        stop = lambda record: record.n_passes >= most or record.seconds > 20  # noqa: E731
        [solution] = run(design, [solver.steps(oracle, design, weight, tol=TOL, callback=stop)])
        return solution, time.process_time() - began


def measure(cells: dict[Any, Any], sets: list[Any], data: Path, orders: int) -> list[dict[str, Any]]:
    rows, stamped = [], stamp()
    for name, limit, _ in sets:
        X, y, _, _ = load(name, data, limit)
        for order in range(orders):
            kept = np.random.default_rng(order).permutation(len(y)) if order else np.arange(len(y))
            design = as_design(X[kept], intercept_scaling=1.0, n_threads=1)
            for key in (key for key in cells if key[0] == name):
                oracle = get_measure(key[1]).oracle(y[kept])
                weight = float(cells[key]["auto"]["C"]) * oracle.price * oracle.n
                most = 4 * float(cells[key]["auto"]["passes"]) + 40
                for variant in (*VARIANTS, *OTHERS):
                    solution, seconds = solve(variant, design, oracle, weight, most)
                    found = f"{solution.n_passes:.3f}", f"{seconds:.6f}", f"{solution.gap:.3g}"
                    rows.append(dict(zip(COLUMNS, (*key, variant, order, *found), strict=True)) | stamped)
        print(name, file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the CSV")
    parser.add_argument("--sets", nargs="+", help="only these; the rows of the others stay as they are")
    parser.add_argument("--quick", action="store_true", help="one set in one order, to see that it runs")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    cells = by_cell(read_rows(RESULTS / "solvers.csv"))
    wanted = {key[0] for key in cells} if args.sets is None else set(args.sets)
    chosen = [one for one in SETS if one[0] in wanted][: 1 if args.quick else None]
    table = args.out / "ablation.csv"
    names, kept = {one[0] for one in chosen}, []
    if table.exists() and args.sets is not None:
        kept = [row for row in read_rows(table) if row["data"] not in names]
    write_rows(table, [*kept, *measure(cells, chosen, args.data, 1 if args.quick else ORDERS)])


if __name__ == "__main__":
    main()
