"""How long files and commands take: reading svmlight text, starting a command, training from file to file.

    python -m benchmarks.files [--data FOLDER] [--repeats 5] [--page]

Reading is compared with scikit-learn's loader in the same run, on the same bytes in memory. End to end,
``svm_perf_learn`` (parsing included) is set beside the CPU seconds that SVM-perf reported for its training alone.
Writes benchmarks/results/files.csv and docs/results/files.md, with the rows of `benchmarks.from_file`, too; ``--page``
writes the page alone.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks import from_file
from benchmarks.report import RESULTS, replace_text, table
from benchmarks.rows import read_rows, write_rows
from benchmarks.timing import measured, stamp
from metrimax.io.svmlight import parse_svmlight

ROOT = Path(__file__).resolve().parents[1]
CSV = RESULTS / "files.csv"
PAGE = ROOT / "docs" / "results" / "files.md"
SETS = {
    "Reuters-21578, 90 labels": ("reuters21578/tfidf_full_train.svm.xz", True),
    "RCV1 CCAT, small": ("rcv1_ccat_small/train.svm.xz", False),
    "ijcnn1": ("ijcnn1/train.svm.xz", False),
    "covtype": ("covtype/covtype.svm.xz", False),
}


def timed(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Median wall and CPU seconds, child processes included."""
    import resource  # which Windows lacks; the tests read the rest of this file there

    def cpu() -> float:
        usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    walls, cpus = [], []
    for _ in range(repeats):
        wall, used = time.perf_counter(), cpu()
        call()
        walls.append(time.perf_counter() - wall)
        cpus.append(cpu() - used)
    return median(walls), median(cpus)


def reading(data: Path, repeats: int) -> list[dict[str, Any]]:
    rows = []
    for name, (file, multilabel) in SETS.items():
        text = lzma.decompress((data / file).read_bytes())
        buffer = np.frombuffer(text, np.uint8)
        calls = {
            "metrimax, 1 thread": lambda b=buffer: parse_svmlight(b, "x", n_threads=1),
            "metrimax, all cores": lambda b=buffer: parse_svmlight(b, "x"),
            "scikit-learn": lambda t=text, m=multilabel: load_svmlight_file(io.BytesIO(t), multilabel=m),
        }
        for reader, call in calls.items():
            wall, cpu = timed(call, repeats)
            rows.append({"what": f"read {name} ({len(text) / 1e6:.1f} MB)", "by": reader, "wall": wall, "cpu": cpu})
    return rows


def starting(repeats: int) -> list[dict[str, Any]]:
    rows = []
    for arguments in (["--help"], ["measures"]):
        command = [str(Path(sys.executable).parent / "metrimax"), *arguments]
        wall, cpu = timed(lambda c=command: subprocess.run(c, check=True, stdout=subprocess.DEVNULL), repeats)
        rows.append({"what": f"start: metrimax {arguments[0]}", "by": "metrimax", "wall": wall, "cpu": cpu})
    return rows


def end_to_end(data: Path, golden: Path, repeats: int) -> list[dict[str, Any]]:
    categories = [
        line.split("\t")[:2] for line in (data / "reuters21578/categories.tsv").read_text().split("\n") if line
    ]
    label = next(number for number, name in categories if name == "money-fx")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.dat"
        with lzma.open(data / "reuters21578/tfidf_full_train.svm.xz", "rt") as file, open(path, "w") as out:
            for line in file:
                labels, _, rest = line.partition(" ")
                out.write(f"{1 if label in labels.split(',') else -1} {rest}")
        for run in json.loads((golden / "svmperf.json").read_text()):
            if run["task"] != "reuters:money-fx" or run["loss"] != 1:
                continue
            what = f"train Reuters money-fx, F1, -c {run['C_perf']} -e {run['eps_percent']}"
            options = ["-v", "0", "-c", run["C_perf"], "-e", run["eps_percent"], "-l", 1, "-w", 3]
            command = [
                str(Path(sys.executable).parent / "svm_perf_learn"),
                *map(str, options),
                str(path),
                folder + "/m",
            ]
            wall, cpu = timed(lambda c=command: subprocess.run(c, check=True), repeats)
            rows.append({"what": what, "by": "svm_perf_learn of metrimax, from file to file", "wall": wall, "cpu": cpu})
            reported = run["cpu_seconds"]
            rows.append({"what": what, "by": "SVM-perf, training alone, as reported", "wall": None, "cpu": reported})
    return rows


def measure(data: Path, repeats: int) -> None:
    golden = Path(os.environ.get("METRIMAX_GOLDEN") or data.parent / "golden")
    rows = reading(data, repeats) + starting(repeats) + end_to_end(data, golden, repeats)
    write_rows(CSV, [row | {"repeats": repeats} | stamp() for row in rows])


def page(rows: list[dict[str, str]], models: list[dict[str, str]]) -> str:
    """Reading and starting, and before that what there is on the way from a file to a model."""
    lines = [
        [row["what"], row["by"], f"{float(row['wall']):.3f}" if row["wall"] else "", f"{float(row['cpu']):.3f}"]
        for row in rows
    ]
    reads = [row for row in rows if row["what"].startswith("read")]
    ratios = [float(c["cpu"]) / float(a["cpu"]) for a, c in zip(reads[::3], reads[2::3], strict=True)]
    walls = [float(c["wall"]) / float(b["wall"]) for b, c in zip(reads[1::3], reads[2::3], strict=True)]
    parts = [
        "# Files and commands",
        *([from_file.section(models)] if models else []),
        "## Reading and starting",
        f"Reading, scikit-learn over metrimax: CPU seconds of one thread {min(ratios):.1f} to {max(ratios):.1f} times, "
        f"wall seconds on all\ncores {min(walls):.1f} to {max(walls):.1f} times.",
        f"""Medians of {rows[0]["repeats"]} runs. On a busy machine, look at the CPU seconds. The rows are in
[files.csv](../../benchmarks/results/files.csv); `python -m benchmarks.files` measures them and writes the page.""",
        measured(rows),
        table(["what", "by", "wall s", "CPU s"], lines),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("METRIMAX_DATA") or ROOT.parent / "shared" / "data")
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="only the page, from the rows that are there")
    arguments = parser.parse_args()
    if not arguments.page:
        measure(arguments.data, arguments.repeats)
    models = read_rows(from_file.CSV) if from_file.CSV.exists() else []
    replace_text(PAGE, page(read_rows(CSV), models))


if __name__ == "__main__":
    main()
