"""What other values of the solvers' constants would do: passes to a gap of 1e-3, beside those with the values in use.

    python -m benchmarks.constants --data DIR [--quick] [--out benchmarks/results]

The cells are those of `benchmarks.solvers`, with the C found there, and for what helps at w = 0 those of
`benchmarks.at_zero`. Only one constant is changed at a time. Writes constants.csv into the folder given by --out;
`python -m benchmarks.solvers_page` makes the table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

from benchmarks import at_zero
from benchmarks.report import RESULTS
from benchmarks.rows import read_rows, write_rows
from benchmarks.solvers import SETS
from benchmarks.solvers_page import TOL, by_cell
from benchmarks.timing import stamp
from experiments.data import DATA, load
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.solvers import SOLVERS, auto, bundle, cut_model, dual_cd, run_state, starts
from metrimax.training.lockstep import run

COLUMNS = ["data", "measure", "factor", "solver", "constant", "used", "value", "passes", "gap"]
"""And what `stamp` says of the run."""

MOST = 4.0
"""A run is ended after so many times the passes with the values in use, and 40 more."""


class Changed(NamedTuple):
    """A constant, the values to try, and the solver and the cells on which it counts."""

    module: ModuleType
    name: str
    values: tuple[float, ...]
    solver: str = "auto"
    measures: tuple[str, ...] = ()
    overlapping: bool = False


CONSTANTS = (
    Changed(auto, "EASY", (10, 100), measures=("error",)),
    Changed(auto, "MANY", (50, 800)),
    Changed(auto, "TEXT", (250, 4000), measures=("error",)),
    Changed(auto, "LOOSE", (2.0, 50.0)),
    Changed(starts, "EPOCHS", (2, 12)),
    Changed(bundle, "START", (0.03, 0.3), "hybrid"),
    Changed(bundle, "MEMORY", (7, 60), "hybrid"),
    Changed(bundle, "VAIN", (3, 24), "hybrid"),
    Changed(cut_model, "PATIENCE", (4, 36)),
    Changed(run_state, "LITTLE", (0.001, 0.1)),
    Changed(dual_cd, "FALL", (1.5, 10.0), "dual_cd", ("error",)),
    Changed(dual_cd, "SHOW", (30, 300), "dual_cd", ("error",)),
    Changed(auto, "LINGER", (3, 24), measures=("f1", "gmean"), overlapping=True),
    Changed(auto, "LINGER_AT_K", (8, 300), measures=("prbep",), overlapping=True),
    Changed(starts, "ROUNDS", (3, 8), overlapping=True),
    Changed(starts, "BESIDE", (1.3, 6.0), overlapping=True),
)


class Cell(NamedTuple):
    """A problem: data set, measure, C as a multiple of the useful one or as it is; design, oracle, and C kappa n."""

    data: str
    measure: str
    factor: str
    design: Any
    oracle: Any
    weight: float


def separable(data: Path, quick: bool) -> Iterator[Cell]:
    """The cells of `benchmarks.solvers`."""
    known = by_cell(read_rows(RESULTS / "solvers.csv"))
    names = [one for one in SETS if one[0] in {key[0] for key in known}]
    for name, limit, _ in names[:1] if quick else names:
        X, y, _, _ = load(name, data, limit)
        design = as_design(X, intercept_scaling=1.0, n_threads=1)
        for key in (key for key in known if key[0] == name):
            oracle = get_measure(key[1]).oracle(y)
            yield Cell(*key, design, oracle, float(known[key]["auto"]["C"]) * oracle.price * oracle.n)


def overlapping(data: Path, quick: bool) -> Iterator[Cell]:
    """The cells of `benchmarks.at_zero`."""
    for name, X, y in at_zero.problems(data, quick):
        design = as_design(X, intercept_scaling=1.0, n_threads=1)
        for measure in at_zero.MEASURES:
            oracle = get_measure(measure).oracle(y)
            for C in (1.0, 100.0):
                yield Cell(f"{name}, p {X.shape[1]}", measure, f"{C:g}", design, oracle, C * oracle.price * oracle.n)


def solve(cell: Cell, solver: str, most: float) -> tuple[float, float]:
    """Passes and gap; ended after ``most`` passes."""
    stop = lambda record: record.n_passes >= most or record.seconds > at_zero.SECONDS  # noqa: E731
    steps = SOLVERS[solver]().steps(cell.oracle, cell.design, cell.weight, tol=TOL, callback=stop)
    [solution] = run(cell.design, [steps])
    return solution.n_passes, solution.gap


def rows_of(cell: Cell, changed: tuple[Changed, ...]) -> Iterator[dict[str, Any]]:
    """One row for each value of each constant, and one for each solver with the values in use."""
    usual: dict[str, float] = {}
    for one in changed:
        if one.measures and cell.measure not in one.measures:
            continue
        if one.solver not in usual:
            usual[one.solver], gap = solve(cell, one.solver, at_zero.MOST)
            yield dict(zip(COLUMNS, (*cell[:3], one.solver, "", "", "", usual[one.solver], gap), strict=True))
        for value in one.values:
            with mock.patch.object(one.module, one.name, value):
                found = solve(cell, one.solver, MOST * usual[one.solver] + 40)
            numbers = f"{getattr(one.module, one.name):g}", f"{value:g}"
            yield dict(zip(COLUMNS, (*cell[:3], one.solver, one.name, *numbers, *found), strict=True))


def measure(data: Path, quick: bool) -> list[dict[str, Any]]:
    rows, stamped = [], stamp()
    for cells, overlap in ((separable, False), (overlapping, True)):
        mine = tuple(one for one in CONSTANTS if one.overlapping == overlap)
        for cell in cells(data, quick):
            found = rows_of(cell, mine)
            rows += [row | {"passes": f"{row['passes']:.3f}", "gap": f"{row['gap']:.3g}"} | stamped for row in found]
            print(*cell[:3], file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the CSV")
    parser.add_argument("--quick", action="store_true", help="one set of each kind, to see that it runs")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    write_rows(args.out / "constants.csv", measure(args.data, args.quick))


if __name__ == "__main__":
    main()
