"""How near a fit comes to the speed of memory: its seconds over those that reading X so many times would take.

    python -m benchmarks.limit [--large] [--page]

A pass reads X once, for X w or X'c. ``bytes`` is the number of passes of a fit times the bytes of X, ``limit`` that
over the bandwidth of reading, measured before in the same process and by as many threads. The rest of a fit are checks
of X, searches and sorts over the scores, and the small programs over the cuts.
``--large`` goes to 10^7 rows (4 GB of memory, about five
minutes of two quiet cores). Writes benchmarks/results/limit.csv; ``--page`` makes docs/results/limit.md of it.
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
from benchmarks.rows import read_rows, write_rows
from benchmarks.timing import environment
from metrimax import MeasureSVC

ROOT = Path(__file__).resolve().parents[1]
CSV = ROOT / "benchmarks" / "results" / "limit.csv"
PAGE = ROOT / "docs" / "results" / "limit.md"
MEASURES = ("f1", "error", "roc_area")
SIZES = {"dense": (10**5, 10**6), "sparse": (10**5, 10**6)}
LARGE = 10**7  # rows, of so few columns in single precision
COLUMNS = 16
WANTED = 2.0


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
        row = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        rows.append(row | {"passes": float(clf.n_passes_), "gap": float(clf.gap_)})
    return min(rows, key=lambda row: row["seconds"])


def measure(large: bool, repeats: int) -> Iterator[dict[str, Any]]:
    speed = {threads: bandwidth(threads, 2 * 10**7, 0.5)["read"] for threads in (1, 2)}
    for kind, X, y in samples(large):
        for name in MEASURES:
            for threads, read in speed.items():
                took = fit(X, y, name, threads, repeats)
                moved = took["passes"] * (least_bytes(X, 1) - 8 * sum(X.shape))
                row = {"X": kind, "n": X.shape[0], "p": X.shape[1], "measure": name, "threads": threads, **took}
                row |= {"bytes": moved, "read": read, "limit": moved / read, "times": took["seconds"] * read / moved}
                print(row, flush=True)
                yield row


def page(rows: list[dict[str, str]]) -> str:
    above = [row for row in rows if float(row["times"]) > WANTED]
    lines = [
        "# Close to the speed of memory",
        "",
        "Seconds of a fit over the seconds in which memory can be read as often as the fit reads X. Made by",
        f"`python -m benchmarks.limit --page` of [limit.csv](../../benchmarks/results/limit.csv), measured on "
        f"{rows[0]['date']} ({rows[0]['processor']}, load {rows[0]['load_average']}).",
        "",
        f"Above {WANTED:g} times: {len(above)} of {len(rows)} fits.",
        "",
        "| X | n | p | measure | threads | passes | seconds | limit | times |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        shown = (row[name] for name in ("X", "n", "p", "measure", "threads"))
        numbers = (f"{float(row[name]):.3g}" for name in ("passes", "seconds", "limit", "times"))
        lines.append(f"| {' | '.join((*shown, *numbers))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="10^7 rows, too")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--page", action="store_true", help="only the page, from the rows that are there")
    arguments = parser.parse_args()
    if not arguments.page:
        about = environment()
        kept = {"date": about["date"], "processor": about["cpu"], "load_average": about["load_average"]}
        rows = [row | kept for row in measure(arguments.large, arguments.repeats)]
        write_rows(CSV, rows)
    PAGE.write_text(page(read_rows(CSV)))


if __name__ == "__main__":
    main()
