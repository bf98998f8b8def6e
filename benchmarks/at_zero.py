"""How long it takes to get away from w = 0, or to prove that nothing is better, for F1 and its like.

    python -m benchmarks.at_zero --data DIR [--quick] [--out benchmarks/results]

Two normal classes that overlap, of which the smaller one is 3 % of the sample, with more and more features and less and
less noise; and standardised data sets of imbalanced-learn. Writes at_zero.csv into the folder given by --out, and
docs/results/at_zero.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import RESULTS, replace_text, table
from benchmarks.rows import read_rows, write_rows
from benchmarks.solvers_page import TOL
from benchmarks.timing import measured, stamp
from experiments.data import DATA, load
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.protocols import Solution
from metrimax.solvers import SOLVERS
from metrimax.solvers.auto import LINGER, LINGER_AT_K
from metrimax.training.lockstep import run

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "at_zero.md"
RUNS = ("auto", "bundle", "cutting_plane", "lbfgs")
MEASURES = ("f1", "gmean", "prbep")
MOST, SECONDS = 3000, 2.0
"""A run that takes more passes or seconds is ended."""
SETS = ("coil_2000", "yeast_ml8", "satimage", "wine_quality", "abalone")
GENERATED = [(p, noise) for p in (10, 30, 60, 100) for noise in (1.5, 0.6)]


def generated(n: int, p: int, noise: float) -> tuple[Any, Any]:
    """The 3 % with the highest scores under a linear rule plus noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    scores = X @ rng.standard_normal(p) / np.sqrt(p) + noise * rng.standard_normal(n)
    return X, scores > np.quantile(scores, 0.97)


def problems(data: Path, quick: bool) -> Iterator[tuple[str, Any, Any]]:
    n = 2000 if quick else 20_000
    for p, noise in GENERATED[:1] if quick else GENERATED:
        yield f"generated, noise {noise:g}", *generated(n, p, noise)
    for name in () if quick else SETS:
        X, y, _, _ = load(f"imblearn/{name}", data, None)
        X = np.asarray(X)
        spread = X.std(axis=0)
        yield name, (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y


def solve(solver: str, oracle: Any, design: Any, weight: float) -> tuple[Solution, float]:
    def stop(record: Any) -> bool:
        return record.n_passes >= MOST or record.seconds > SECONDS

    began = time.process_time()
    (solution,) = run(design, [SOLVERS[solver]().steps(oracle, design, weight, tol=TOL, callback=stop)])
    return solution, time.process_time() - began


def measure(data: Path, quick: bool) -> list[dict[str, Any]]:
    rows, stamped = [], stamp()
    for name, X, y in problems(data, quick):
        design = as_design(X, intercept_scaling=1.0, n_threads=1)
        for key in MEASURES:
            oracle = get_measure(key).oracle(y)
            at_zero = oracle(np.zeros(len(y))).loss
            for C in (1.0, 100.0):
                weight = C * oracle.price * oracle.n
                cell = {"data": name, "n": X.shape[0], "p": X.shape[1], "measure": key, "C": f"{C:g}"}
                for solver in RUNS:
                    solution, seconds = solve(solver, oracle, design, weight)
                    found = {"passes": f"{solution.n_passes:.1f}", "seconds": f"{seconds:.5f}"}
                    found |= {"gap": f"{solution.gap:.3g}", "relative": f"{solution.objective / weight / at_zero:.6f}"}
                    rows.append(cell | {"solver": solver} | found | stamped)
        print(name, flush=True)
    return rows


def page(rows: list[dict[str, str]]) -> str:
    """A table with a line for every problem, and a column for every solver."""
    cells: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        cells.setdefault((row["data"], f"{row['n']} x {row['p']}", row["measure"], row["C"]), []).append(row)
    lines = [
        [*cell, *map(_took, own), f"{min(float(row['relative']) for row in own):.4f}"] for cell, own in cells.items()
    ]
    parts = [
        "# Where w = 0 is optimal, or hardly worse",
        f"""Passes / CPU seconds of one thread to a certified gap of 1e-3, one run each; `-` where that took more than
{MOST} passes or {SECONDS:g} s. The last column is the least objective relative to that of w = 0: 1 where nothing is
better within the tolerance. The rows are in [at_zero.csv](../../benchmarks/results/at_zero.csv);
`python -m benchmarks.at_zero` measures them and writes the page.""",
        measured(rows),
        f"""The default solver takes {LINGER} iterations of the bundle method before it looks into the kink at w = 0,
and {LINGER_AT_K} for measures at k like PRBEP ([how](../architecture.md#the-bundle-method)).""",
        table(["data", "n x p", "measure", "C", *RUNS, "J / J(0)"], lines),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _took(row: dict[str, str]) -> str:
    reached = float(row["gap"]) <= TOL
    return f"{float(row['passes']):.0f} / {float(row['seconds']):.2g}" if reached else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the CSV")
    parser.add_argument("--quick", action="store_true", help="one small problem, to see that it runs")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    write_rows(args.out / "at_zero.csv", measure(args.data, args.quick))
    text = page(read_rows(args.out / "at_zero.csv"))
    replace_text(PAGE if args.out == RESULTS else args.out / "at_zero.md", text)


if __name__ == "__main__":
    main()
