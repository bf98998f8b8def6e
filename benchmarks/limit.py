"""How near a fit comes to the speed of memory: its seconds over those that reading X so many times would take.

    OMP_NUM_THREADS=1 python -m benchmarks.limit [--large] [--page]

A pass reads X once, for X w or X'c. ``bytes`` is the number of passes of a fit times the bytes of X, ``limit`` that
over the bandwidth of reading, measured before in the same process and by as many threads. Seconds are CPU seconds of
all threads, on both sides: other programs that run disturb them least. One more run of the solver alone tells how many
of them are products with X; the rest of a fit are checks of X, searches and sorts over the scores, and the small
programs over the cuts. ``--large`` goes to 10^7 rows, in 4 GB of memory. Writes benchmarks/results/limit.csv;
``--page`` makes docs/results/limit.md of it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.products import bandwidth, least_bytes
from benchmarks.report import RESULTS, replace_text, table
from benchmarks.rows import read_rows, write_rows
from benchmarks.shares import Clock, Timed
from benchmarks.timing import measured, stamp
from metrimax import MeasureSVC
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.solvers import SOLVERS
from metrimax.training.lockstep import run

ROOT = Path(__file__).resolve().parents[1]
CSV = RESULTS / "limit.csv"
PAGE = ROOT / "docs" / "results" / "limit.md"
MEASURES = ("f1", "error", "roc_area")
SIZES = {"dense": (10**5, 10**6), "sparse": (10**5, 10**6)}
LARGE = 10**7  # rows, of so few columns in single precision
COLUMNS = 16
WANTED = 2.0
EXPLAINED = """
What lies above the limit has three causes. The error rate is trained by coordinate descent, which visits single rows in
random order: memory answers that several times slower than one row after another. Searches and sorts go over all n
scores in every pass, however few columns X has; ROC area sorts them. And a fit reads X once or twice more, to check
that its numbers are finite and to score the training rows. On wide or sparse rows products are most of a fit."""


def samples(large: bool) -> Iterator[tuple[str, Any, np.ndarray]]:
    for kind, sizes in SIZES.items():
        for n in sizes:
            task = data.generate(kind, n)
            yield kind, task.X, task.y
    if large:
        rng = np.random.default_rng(0)
        y = rng.random(LARGE) < 0.1
        X = rng.standard_normal((LARGE, COLUMNS), dtype=np.float32)
        X[y] += np.float32(0.7)
        yield "dense", X, y


def fit(X: Any, y: np.ndarray, measure: str, threads: int, repeats: int) -> dict[str, float]:
    """The quickest of several fits."""
    rows = []
    for _ in range(repeats):
        clf = MeasureSVC(measure, hinge=0.0, threshold="trained", C=1000 / len(y), n_threads=threads)
        wall, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf.fit(X, y)
        row = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        rows.append(row | {"passes": float(clf.n_passes_), "gap": float(clf.gap_)})
    return min(rows, key=lambda row: row["cpu"])


def solve(X: Any, y: np.ndarray, measure: str, threads: int) -> dict[str, float]:
    """CPU seconds of the solver alone, per pass: those in products with X, and all others."""
    clock = Clock()
    design = as_design(X, intercept_scaling=1.0, n_threads=threads)
    timed = Timed(design, "products", clock)
    timed.rows = Timed(design.rows, "products", clock)
    oracle = get_measure(measure).oracle(y)
    began = time.process_time()
    weight = 1000 / len(y) * oracle.price * oracle.n
    (solution,) = run(timed, [SOLVERS["auto"]().steps(oracle, timed, weight, tol=1e-3)])
    seconds, products = time.process_time() - began, clock.seconds["products"]
    return {"products": products / solution.n_passes, "searches": (seconds - products) / solution.n_passes}


def measure(large: bool, repeats: int) -> Iterator[dict[str, Any]]:
    speed = {threads: bandwidth(threads, 2 * 10**7, 0.5, time.process_time)["read"] for threads in (1, 2)}
    for kind, X, y in samples(large):
        for name in MEASURES:
            for threads, read in speed.items():
                took = fit(X, y, name, threads, repeats)
                once = (least_bytes(X, 1) - 8 * sum(X.shape)) / read
                limit = took["passes"] * once
                row = {"X": kind, "n": X.shape[0], "p": X.shape[1], "measure": name, "threads": threads, **took}
                row |= {"read": read, "limit": limit, "times": took["cpu"] / limit}
                row |= {part: each / once for part, each in solve(X, y, name, threads).items()}
                print(row, flush=True)
                yield row


def page(rows: list[dict[str, str]]) -> str:
    above = [row for row in rows if float(row["times"]) > WANTED]
    products, searches = ([float(row[part]) for row in above] for part in ("products", "searches"))
    found = [f"{len(above)} of {len(rows)} fits take more than {WANTED:g} times the limit."]
    if above:
        least = sum(one > other for one, other in zip(products, searches, strict=True))
        found.append(
            f"In these, a product with X takes {min(products):.1f} to {max(products):.1f}\ntimes what reading X takes, "
            f"and what there is beside a product {min(searches):.1f} to {max(searches):.1f} times; products take\nmore "
            f"than the rest in {least} of them."
        )
    head = ["X", "n", "p", "measure", "threads", "passes", "CPU s", "limit", "CPU / limit", "products", "searches"]
    lines = []
    for row in rows:
        shown = (row[name] for name in ("X", "n", "p", "measure", "threads"))
        numbers = (f"{float(row[name]):.3g}" for name in ("passes", "cpu", "limit", "times", "products", "searches"))
        lines.append([*shown, *numbers])
    parts = [
        "# Close to the speed of memory",
        "CPU seconds of a fit over those in which memory can be read as often as the fit reads X.",
        " ".join(found),
        f"""The columns `products` and `searches` are of the solver alone, for each pass, in the same unit: its products
with X, and all else, which are searches and sorts over the scores and the programs over the cuts. A fit also checks X
and y.
{EXPLAINED}""",
        measured(rows) + " The rows are in\n[limit.csv](../../benchmarks/results/limit.csv); "
        "`python -m benchmarks.limit` measures them and writes the page.",
        table(head, lines),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="10^7 rows, too")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--page", action="store_true", help="only the page, from the rows that are there")
    arguments = parser.parse_args()
    if not arguments.page:
        stamped = stamp()
        write_rows(CSV, [row | stamped for row in measure(arguments.large, arguments.repeats)])
    replace_text(PAGE, page(read_rows(CSV)))


if __name__ == "__main__":
    main()
