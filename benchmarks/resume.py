"""What it costs to be interrupted: iterations and passes of a fit that was stopped and goes on, over those of one run.

    OMP_NUM_THREADS=1 python -m benchmarks.resume [--smoke] [--page]

Every fit is stopped by an error after a share of the iterations that it takes in one run, and goes on from its
checkpoint. Generated data, dense and sparse; all iterations are counted, those before the stop too. Writes
benchmarks/results/resume.csv; ``--page`` makes docs/results/resume.md of it.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from benchmarks.report import replace_text
from benchmarks.rows import read_rows, write_rows
from benchmarks.timing import measured, stamp
from metrimax import CAPOClassifier, MeasureSVC, MeasureSVCCV
from metrimax.io.checkpoints import Checkpoint

ROOT = Path(__file__).resolve().parents[1]
CSV = ROOT / "benchmarks" / "results" / "resume.csv"
PAGE = ROOT / "docs" / "results" / "resume.md"
STOPS = (0.25, 0.5, 0.75, 0.9)
LIMIT = 1.1
PLAIN = {"hinge": 0.0, "threshold": "trained"}  # the measure's risk alone
# data, what is trained, its parameters, tolerances
CASES: list[tuple[str, str, dict[str, Any], tuple[float, ...]]] = [
    ("dense 8000 x 40", "MeasureSVC", {"measure": "f1", **PLAIN}, (1e-3, 1e-5)),
    ("dense 8000 x 40", "MeasureSVC", {"measure": "f1", "solver": "bundle", **PLAIN}, (1e-3,)),
    ("dense 8000 x 40", "MeasureSVC", {"measure": "prbep", "solver": "hybrid", **PLAIN}, (1e-3, 1e-5)),
    ("dense 8000 x 40", "MeasureSVC", {"measure": "roc_area", **PLAIN}, (1e-3, 1e-5)),
    ("dense 8000 x 40", "MeasureSVC", {"measure": "roc_area", "solver": "lbfgs", **PLAIN}, (1e-3,)),
    ("dense 8000 x 40", "MeasureSVC", {"measure": "f1", "solver": "cutting_plane", "C": 0.03, **PLAIN}, (1e-3,)),
    ("dense 8000 x 40", "MeasureSVC", {"measure": "error", "solver": "dual_cd", **PLAIN}, (1e-3, 1e-6)),
    ("dense 8000 x 40", "MeasureSVC", {"measure": "error", **PLAIN}, (1e-3, 1e-6)),
    ("dense 8000 x 40", "MeasureSVC", {"measure": "f1"}, (1e-3, 1e-5)),
    ("dense 8000 x 40", "MeasureSVC", {"measure": "roc_area"}, (1e-3,)),
    ("sparse 4000 x 5000", "MeasureSVC", {"measure": "f1", **PLAIN}, (1e-3, 1e-5)),
    ("sparse 4000 x 5000", "MeasureSVC", {"measure": "f1", "C": 30.0, **PLAIN}, (1e-3, 1e-5)),
    ("sparse 4000 x 5000", "MeasureSVC", {"measure": "prbep", "solver": "bundle", **PLAIN}, (1e-3,)),
    ("sparse 4000 x 5000", "MeasureSVC", {"measure": "roc_area", "solver": "hybrid", **PLAIN}, (1e-3,)),
    ("sparse 4000 x 5000", "MeasureSVC", {"measure": "error", **PLAIN}, (1e-3, 1e-6)),
    ("sparse 4000 x 5000", "MeasureSVC", {"measure": "f1"}, (1e-3, 1e-5)),
    ("dense 2000 x 20", "MeasureSVCCV", {"measure": "f1", "Cs": [0.1, 1.0], "cv": 3}, (1e-3,)),
    ("dense 2000 x 20", "CAPOClassifier", {"measure": "f1"}, (1e-3,)),
]
CLASSES = {"MeasureSVC": MeasureSVC, "MeasureSVCCV": MeasureSVCCV, "CAPOClassifier": CAPOClassifier}


class Stop(Exception):
    """Ends a fit."""


def generated(name: str) -> tuple[Any, np.ndarray]:
    kind, n, _, p = name.split()
    rows, features = int(n), int(p)
    rng = np.random.default_rng(0)
    if kind == "dense":
        y = rng.random(rows) < 0.1
        return rng.normal(size=(rows, features)) + 0.3 * y[:, None] * rng.normal(size=features), y
    X = sparse.random(rows, features, 40 / features, "csr", random_state=0, data_rvs=lambda k: rng.random(k) + 0.5)
    scores = X @ (rng.normal(size=features) * (rng.random(features) < 0.2)) + rng.normal(size=rows)
    return X, scores > np.quantile(scores, 0.9)


def counted(clf: Any, X: Any, y: np.ndarray, stop: float = np.inf) -> tuple[Any, int]:
    """The fitted estimator, None if it was stopped, and the iterations that its callback saw: all but the last ones."""
    done = 0

    def callback(record: Any) -> None:
        nonlocal done
        done += 1
        if done >= stop:
            raise Stop

    fitted = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(Stop):
            fitted = clone(clf).set_params(callback=callback).fit(X, y)
    return fitted, done


def measure(cases: Any, stops: tuple[float, ...]) -> Iterator[dict[str, Any]]:
    for name, estimator, given, tols in cases:
        X, y = generated(name)
        for tol in tols:
            clf = CLASSES[estimator](**{"C": 1.0, "tol": tol, **given} if "Cs" not in given else {"tol": tol, **given})
            whole, n_iter = counted(clf, X, y)
            n_iter = max(n_iter, 1)
            for stop in stops:
                at = max(1, round(stop * n_iter))
                with tempfile.TemporaryDirectory() as folder:
                    kept = clone(clf).set_params(checkpoint=Checkpoint(Path(folder) / "state", minutes=0))
                    _, before = counted(kept, X, y, at)
                    again, after = counted(kept, X, y)
                if estimator == "MeasureSVC":
                    one, both = whole.n_iter_, again.n_iter_
                else:  # of all candidates and folds
                    one, both = n_iter, before + after
                row = {
                    "data": name,
                    "estimator": estimator,
                    "measure": given["measure"],
                    "solver": given.get("solver", "auto") + ("" if "hinge" in given else ", sum with logistic"),
                    "C": given.get("C", 1.0) if "Cs" not in given else "",
                    "tol": tol,
                    "stopped_after": before,
                    "one_run": one,
                    "resumed": both,
                    "ratio": both / one,
                }
                print(row, flush=True)
                yield row


def page(rows: list[dict[str, str]]) -> str:
    ratios = [float(row["ratio"]) for row in rows]
    above = [row for row in rows if float(row["ratio"]) > LIMIT]
    single = [row for row in above if int(row["resumed"]) == int(row["one_run"]) + 1]
    lines = [
        "# Resuming a fit",
        "",
        "Iterations of a fit that was stopped by an error and went on from its checkpoint, those before the stop",
        "included, over the iterations of a fit in one run. Made by `python -m benchmarks.resume --page` of",
        "[resume.csv](../../benchmarks/results/resume.csv).",
        "",
        measured(rows),
        "",
        f"* {len(rows)} interruptions: the median ratio is {median(ratios):.2f}, the greatest {max(ratios):.2f}.",
        f"* Above {LIMIT}: {len(above)} of {len(rows)}. {len(single)} of these take a single iteration more, the one",
        "  that was under way at the stop.",
        "",
        "A row has all stops of one fit, after a quarter, a half, three quarters and nine tenths of its iterations.",
        "",
        "| data | estimator | measure | solver | C | tol | iterations, one run | ratio, median | greatest |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("data", "estimator", "measure", "solver", "C", "tol", "one_run"))
        groups.setdefault(key, []).append(row)
    for key, own in groups.items():
        found = [float(row["ratio"]) for row in own]
        lines.append(f"| {' | '.join(key)} | {median(found):.2f} | {max(found):.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--smoke", action="store_true", help="two cases and one stop, nothing kept")
    what.add_argument("--page", action="store_true", help="only the page, from the rows that are there")
    arguments = parser.parse_args()
    if arguments.smoke:
        list(measure(CASES[-2:], (0.5,)))
        return
    if not arguments.page:
        stamped = stamp()
        write_rows(CSV, [row | stamped for row in measure(CASES, STOPS)])
    replace_text(PAGE, page(read_rows(CSV)))


if __name__ == "__main__":
    main()
