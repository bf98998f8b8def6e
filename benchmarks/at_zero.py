"""How long it takes to get away from w = 0, or to prove that nothing is better, for F1 and its like.

    python -m benchmarks.at_zero --data DIR [--quick] [--out docs/results]

Two normal classes that overlap, of which the smaller one is 3 % of the sample, with more and more features and less and
less noise; and standardised data sets of imbalanced-learn. Writes at_zero.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import replace_text
from benchmarks.solvers import TOL
from experiments.data import DATA, load
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.protocols import Solution
from metrimax.solvers import SOLVERS
from metrimax.solvers.auto import LINGER
from metrimax.training.lockstep import run

RUNS = ("auto", "bundle", "cutting_plane", "lbfgs")
MEASURES = ("f1", "gmean", "prbep")
MOST, SECONDS = 3000, 20.0
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--quick", action="store_true", help="one small problem, to see that it runs")
    args = parser.parse_args()
    lines = [
        "# Where w = 0 is optimal, or hardly worse",
        "",
        "Made by `python -m benchmarks.at_zero`: passes / CPU seconds of one thread to a certified gap of 1e-3,",
        f"one run each; `-` where that took more than {MOST} passes or {SECONDS:g} s. The last column is the least",
        "objective relative to that of w = 0: 1 where nothing is better within the tolerance.",
        "",
        f"The default solver takes {LINGER} iterations of the bundle method before it looks into the kink at w = 0,",
        f"and {12 * LINGER} for measures at k like PRBEP ([how](../architecture.md#the-bundle-method)).",
        "",
        "| data | n x p | measure | C | " + " | ".join(RUNS) + " | J / J(0) |",
        "|---" * (5 + len(RUNS)) + "|",
    ]
    for name, X, y in problems(args.data, args.quick):
        design = as_design(X, intercept_scaling=1.0, n_threads=1)
        for measure in MEASURES:
            oracle = get_measure(measure).oracle(y)
            for C in (1.0, 100.0):
                weight = C * oracle.price * oracle.n
                shown, least = [], np.inf
                for solver in RUNS:
                    solution, seconds = solve(solver, oracle, design, weight)
                    least = min(least, solution.objective / weight)
                    reached = solution.gap <= TOL
                    shown.append(f"{solution.n_passes:.0f} / {seconds:.2g}" if reached else "-")
                at_zero = oracle(np.zeros(len(y))).loss
                cells = [name, f"{X.shape[0]} x {X.shape[1]}", measure, f"{C:g}", *shown, f"{least / at_zero:.4f}"]
                lines.append("| " + " | ".join(cells) + " |")
    args.out.mkdir(parents=True, exist_ok=True)
    replace_text(args.out / "at_zero.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
