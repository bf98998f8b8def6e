"""Passes and seconds of every solver to a certified gap of 1e-3, over data sets x measures x C.

    python -m benchmarks.solvers --data DIR [--quick] [--every N] [--out benchmarks/results]

C is 1, 10 and 100 times the useful one: that of 0.01, 0.1, 1, 10, 100 with the best score on a third of the training
part that is held out. The solvers were developed on the first sets, the choice among them settled on all but the last.
A pass is n rows of X read, by whatever way, once for however many vectors. Writes solvers.csv into the
folder given by --out, and docs/results/solvers.md. ``--every`` draws sets evenly, and drops the rows of the others.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import RESULTS
from benchmarks.rows import read_rows, write_rows
from benchmarks.solvers_page import AIM, PAGE, TOL, build, by_cell, ratio
from benchmarks.timing import STAMP, stamp
from experiments.data import DATA, load
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.solvers import SOLVERS
from metrimax.training.lockstep import run

SETS = [  # name, rows, part (see PARTS)
    ("optdigits:8", None, 1),
    ("splice", None, 1),
    ("moneyfx", None, 1),
    ("ijcnn1", 20_000, 1),
    ("sector:1", None, 1),
    ("20news:0", None, 1),
    ("usps:3", None, 0),
    ("imblearn/letter_img", None, 0),
    ("covtype:1", 20_000, 0),
    ("kdd99:16", 20_000, 0),
    ("reuters:3", None, 0),
    ("imblearn/satimage", None, 0),
    ("imblearn/coil_2000", None, 0),
    ("imblearn/mammography", None, 0),
    ("sector:40", None, 0),
    ("20news:12", None, 0),
    ("imblearn/pen_digits", None, 0),
    ("imblearn/yeast_ml8", None, 0),
    ("usps:6", None, 0),
    ("covtype:2", 20_000, 0),
    ("reuters:11", None, 0),
    ("20news:5", None, 0),
    ("optdigits:3", None, 0),
    ("usps:9", None, 0),
    ("covtype:5", 20_000, 0),
    ("imblearn/wine_quality", None, 0),
    ("imblearn/abalone", None, 0),
    ("reuters:9", None, 0),
    ("sector:70", None, 0),
    ("20news:17", None, 0),
    ("optdigits:5", None, 0),
    ("usps:0", None, 0),
    ("covtype:3", 20_000, 0),
    ("imblearn/car_eval_34", None, 0),
    ("imblearn/oil", None, 0),
    ("reuters:6", None, 0),
    ("sector:20", None, 0),
    ("20news:9", None, 0),
    ("optdigits:0", None, 0),
    ("usps:2", None, 0),
    ("covtype:7", 20_000, 0),
    ("imblearn/libras_move", None, 0),
    ("keel_imbalanced/segment0", None, 0),
    ("reuters:15", None, 0),
    ("sector:60", None, 0),
    ("20news:2", None, 0),
    ("optdigits:6", None, 0),
    ("usps:5", None, 0),
    ("covtype:4", 20_000, 0),
    ("keel_imbalanced/page-blocks0", None, 0),
    ("keel_imbalanced/vehicle0", None, 0),
    ("reuters:13", None, 0),
    ("sector:50", None, 0),
    ("20news:14", None, 0),
    ("optdigits:1", None, 0),
    ("usps:7", None, 0),
    ("covtype:6", 20_000, 0),
    ("keel_imbalanced/yeast3", None, 0),
    ("faces", None, 0),
    ("reuters:30", None, 0),
    ("sector:30", None, 0),
    ("20news:7", None, 0),
    ("rcv1", None, 0),
    ("ohsumed:Neoplasm", None, 0),
    ("webkb:student", None, 0),
    ("ohsumed:Cardiovascular", None, 0),
    ("webkb:faculty", None, 0),
    ("optdigits:2", None, 0),
    ("usps:1", None, 0),
    ("keel_imbalanced/shuttle-c0-vs-c4", None, 0),
    ("keel_imbalanced/winequality-red-4", None, 0),
    ("keel_imbalanced/yeast1", None, 0),
    ("reuters:4", None, 0),
    ("sector:10", None, 0),
    ("20news:15", None, 0),
    ("webkb:course", None, 0),
    ("optdigits:4", None, 0),
    ("usps:8", None, 0),
    ("keel_imbalanced/shuttle-2_vs_5", None, 0),
    ("keel_imbalanced/kr-vs-k-three_vs_eleven", None, 0),
    ("keel_imbalanced/flare-F", None, 0),
    ("reuters:7", None, 0),
    ("sector:80", None, 0),
    ("20news:10", None, 0),
    ("webkb:project", None, 0),
    ("optdigits:9", None, 0),
    ("usps:4", None, 0),
    ("imblearn/optical_digits", None, 0),
    ("keel_imbalanced/vehicle2", None, 0),
    ("keel_imbalanced/yeast4", None, 0),
    ("keel_imbalanced/abalone-17_vs_7-8-9-10", None, 0),
    ("reuters:20", None, 0),
    ("sector:90", None, 0),
    ("20news:18", None, 0),
    ("optdigits:7", None, 0),
    ("usps:5+6", None, 0),
    ("keel_imbalanced/wisconsin", None, 0),
    ("keel_imbalanced/poker-8-9_vs_6", None, 0),
    ("keel_imbalanced/yeast-1-4-5-8_vs_7", None, 0),
    ("reuters:25", None, 0),
    ("sector:15", None, 0),
    ("20news:3", None, 0),
    ("ohsumed:Immunologic", None, 0),
    ("usps:1+7", None, 0),
    ("imblearn/car_eval_4", None, 0),
    ("keel_imbalanced/vowel0", None, 0),
    ("keel_imbalanced/kr-vs-k-zero_vs_eight", None, 0),
    ("keel_imbalanced/winequality-white-3_vs_7", None, 0),
    ("reuters:1", None, 0),
    ("sector:35", None, 0),
    ("20news:11", None, 0),
    ("ohsumed:Nervous System", None, 0),
    ("usps:2+3", None, 0),
    ("optdigits:1+7", None, 0),
    ("kdd99:1", 20_000, 0),
    ("keel_imbalanced/kr-vs-k-zero-one_vs_draw", None, 0),
    ("keel_imbalanced/kddcup-rootkit-imap_vs_back", None, 0),
    ("keel_imbalanced/yeast5", None, 0),
    ("reuters:2", None, 0),
    ("sector:45", None, 0),
    ("20news:16", None, 0),
    ("usps:3+8", None, 2),
    ("optdigits:4+9", None, 2),
    ("covtype:3+6", 20_000, 2),
    ("keel_imbalanced/vehicle1", None, 2),
    ("keel_imbalanced/abalone19", None, 2),
    ("keel_imbalanced/yeast6", None, 2),
    ("reuters:12", None, 2),
    ("sector:55", None, 2),
    ("20news:8", None, 2),
]
MEASURES = ["f1", "prbep", "roc_area", "error"]
FACTORS = [1, 10, 100]
GRID = [0.01, 0.1, 1.0, 10.0, 100.0]
RUNS: dict[str, Any] = {name: solver() for name, solver in SOLVERS.items()}
LIMITS = {"cutting_plane": 200, "lbfgs": 300, "agm": 200}  # passes, of the solvers kept for reference
SECONDS = 20.0
LEAST, ENOUGH, REPEATS = 3, 0.3, 10
"""Every solver has so many turns at least, and until the default took so many seconds or had so many."""
ROW, SHORT = 5, 0.004
"""A turn is so many runs in a row, of runs of up to so many seconds: the first ones after another solver take up to a
tenth longer, since the processor has that one's branches and code in mind.
"""
CLOSE = 4.0
"""Runs that first took more than so many times the least are not repeated."""
CELL = ["data", "part", "n", "p", "positive", "measure", "C", "factor", "solver", "passes", "seconds", "gap"]
COLUMNS = [*CELL, "turns", "sets", *STAMP]
ORDERS = 5
ORDERED = "auto", "bundle", "hybrid", "dual_cd"
"""Solvers that are run with the rows in so many orders: the ones that are ever the best, but for a few cells."""
ORDER_COLUMNS = ["data", "measure", "factor", "solver", "order", "passes", "gap", *STAMP]


def useful(X: Any, y: Any, measure: Any) -> float:
    """The C with the best score on a held-out third."""
    order = np.random.default_rng(1).permutation(len(y))
    fit, held = np.sort(order[: 2 * len(y) // 3]), np.sort(order[2 * len(y) // 3 :])
    design, test = (as_design(X[rows], intercept_scaling=1.0) for rows in (fit, held))
    oracle = measure.oracle(y[fit])
    scores = []
    for C in GRID:
        [solution] = run(design, [RUNS["auto"].steps(oracle, design, C * oracle.price * oracle.n, tol=1e-2)])
        scores.append(measure.score(y[held], test.matvec(solution.w)))
    return GRID[int(np.argmax(scores))]


def measure_cell(design: Any, oracle: Any, C: float, most: int = REPEATS) -> list[dict[str, Any]]:
    """Every solver once; then those that could be the fastest again, in turns, and the least time counts."""
    weight = C * oracle.price * oracle.n
    rows: dict[str, dict[str, Any]] = {}
    times: dict[str, list[float]] = {}

    def once(name: str) -> None:
        stop = _limit(LIMITS.get(name, 1e9))
        began = time.process_time()
        [solution] = run(design, [RUNS[name].steps(oracle, design, weight, tol=TOL, callback=stop)])
        times.setdefault(name, []).append(time.process_time() - began)
        rows[name] = {"solver": name, "passes": f"{solution.n_passes:.3f}", "gap": f"{solution.gap:.3g}"}

    def turn(name: str) -> None:
        for _ in range(ROW if times[name][-1] < SHORT else 1):
            once(name)

    for name in RUNS:
        if not _suits(name, oracle):
            rows[name] = {"solver": name, "passes": 0, "seconds": 0, "gap": np.inf}  # not for this measure
        else:
            once(name)
    reached = [name for name in times if float(rows[name]["gap"]) <= TOL]
    least = min((times[name][0] for name in reached), default=np.inf)
    again = [name for name in reached if name == "auto" or times[name][0] < CLOSE * least]
    turns = 0
    while again and turns < most and (turns < LEAST or (sum(times["auto"]) < ENOUGH and turns < most)):
        turns += 1
        for name in again:
            turn(name)
    for name, taken in times.items():
        rows[name]["seconds"] = f"{min(taken):.6f}"
        rows[name]["turns"] = 1 + turns
    return list(rows.values())


def _limit(passes: float) -> Callable[[Any], bool]:
    """A callback that stops a run after so many passes, or too many seconds."""
    return lambda record: record.n_passes >= passes or record.seconds > SECONDS


def _suits(name: str, oracle: Any) -> bool:
    return name != "dual_cd" or oracle.can.hinges is not None


def measure_again(table: Path, data: Path, threads: int) -> None:
    """The cells above the aim in seconds once more: of all that a solver took the least counts."""
    rows = read_rows(table)
    cells = by_cell(rows)
    for name, limit, _ in SETS:
        above = [key for key, cell in cells.items() if key[0] == name and ratio(cell, "seconds") > AIM]
        if not above:
            continue
        X, y, _, _ = load(name, data, limit)
        design = as_design(X, intercept_scaling=1.0, n_threads=threads)
        for key in above:
            cell = cells[key]
            for row in measure_cell(design, get_measure(key[1]).oracle(y), float(cell["auto"]["C"])):
                before = cell[row["solver"]]
                before["seconds"] = min(before["seconds"], row["seconds"], key=float)
            print(*key, f"{ratio(cell, 'seconds'):.2f}", file=sys.stderr)
        write_rows(table, rows, COLUMNS)


def measure_orders(table: Path, data: Path, path: Path) -> None:
    """The passes for every cell with its rows in several orders, the first of which is theirs."""
    cells, stamped = by_cell(read_rows(table)), stamp()
    rows: list[dict[str, Any]] = []
    for name, limit, _ in SETS:
        keys = [key for key in cells if key[0] == name]
        if not keys:
            continue
        X, y, _, _ = load(name, data, limit)
        for order in range(ORDERS):
            kept = np.random.default_rng(order).permutation(len(y)) if order > 0 else np.arange(len(y))
            design = as_design(X[kept], intercept_scaling=1.0, n_threads=1)
            for key in keys:
                oracle = get_measure(key[1]).oracle(y[kept])
                weight = float(cells[key]["auto"]["C"]) * oracle.price * oracle.n
                for solver in (one for one in ORDERED if _suits(one, oracle)):
                    stop = _limit(4 * float(cells[key]["auto"]["passes"]))  # beyond that it is not the best
                    [solution] = run(design, [RUNS[solver].steps(oracle, design, weight, tol=TOL, callback=stop)])
                    found = {"passes": f"{solution.n_passes:.3f}", "gap": f"{solution.gap:.3g}"}
                    rows.append(dict(zip(ORDER_COLUMNS, (*key, solver, order), strict=False)) | found | stamped)
        print(name, file=sys.stderr)
    write_rows(path, rows, ORDER_COLUMNS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the CSVs")
    parser.add_argument("--sets", nargs="+", help="only these; the rows of the others stay as they are")
    parser.add_argument("--every", type=int, default=1, help="of the sets every so manieth, the last one among them")
    parser.add_argument("--turns", type=int, default=REPEATS, help="turns of every solver at most, after its first")
    parser.add_argument("--quick", action="store_true", help="two sets, to see that it runs")
    parser.add_argument("--report", action="store_true", help="only write the page anew, from the CSV")
    parser.add_argument("--again", action="store_true", help=f"only the cells above {AIM} in seconds, once more")
    parser.add_argument("--orders", action="store_true", help="only the passes with the rows in several orders")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    table, orders = args.out / "solvers.csv", args.out / "solvers_orders.csv"
    if args.again:
        measure_again(table, args.data, args.threads)
    elif args.orders:
        measure_orders(table, args.data, orders)
    elif not args.report:
        chosen = [one for one in SETS[args.every - 1 :: args.every] if args.sets is None or one[0] in args.sets]
        stamped = stamp()
        rows: list[dict[str, Any]] = []
        if args.sets is not None:
            rows = [row for row in read_rows(table) if row["data"] not in args.sets]
        for name, limit, part in chosen[:2] if args.quick else chosen:
            X, y, _, _ = load(name, args.data, limit)
            design = as_design(X, intercept_scaling=1.0, n_threads=args.threads)
            for key in MEASURES:
                measure = get_measure(key)
                oracle, C = measure.oracle(y), useful(X, y, measure)
                for factor in FACTORS:
                    cell = {"data": name, "part": part, "n": X.shape[0], "p": X.shape[1]}
                    cell |= {"positive": f"{y.mean():.4f}", "measure": key, "C": C * factor, "factor": factor}
                    measured = measure_cell(design, oracle, C * factor, args.turns)
                    rows += [cell | row | {"sets": len(SETS)} | stamped for row in measured]
                    print(name, key, factor, [(r["solver"], r["passes"]) for r in rows[-len(RUNS) :]], file=sys.stderr)
            write_rows(table, rows, COLUMNS)
    build(args.out, PAGE if args.out == RESULTS else args.out / "solvers.md")


if __name__ == "__main__":
    main()
