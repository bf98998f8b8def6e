"""From a file to a model: ``metrimax train`` beside ``liblinear-train`` and Vowpal Wabbit, parsing included.

    python -m benchmarks.from_file [--sizes 105MB 1GB] [--repeats 3] [--folder FOLDER]

The files are generated (seeded): svmlight text like tf-idf of documents, and a table of 30 columns of numbers. All
programs minimise the same sum of hinges with an intercept that is a feature: ``--measure error -C 1`` here, ``-s 3 -c 1
-B 1`` in LIBLINEAR. Vowpal Wabbit makes one pass of its own updates, so it is a reference for reading and streaming,
not for the optimum. Programs that read no CSV take the same table as svmlight text. Seconds of CPU are those of the
process, memory is its peak; the programs take turns, and the least counts. Where there are several turns, a first one
is left out: it fills the cache of files, and Python's of bytecode. Writes benchmarks/results/from_file.csv;
`python -m benchmarks.files --page` makes docs/results/files.md of it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import RESULTS, table
from benchmarks.rows import read_rows, write_rows
from benchmarks.timing import measured, stamp
from metrimax.io.limits import parse_size

CSV = RESULTS / "from_file.csv"
OWN, PEER = "metrimax, 1 thread", "liblinear-train"
FIELDS = "cpu", "wall", "peak_mb"
WANTED = 0.4, 1.2  # times the CPU seconds, and the peak of memory, of LIBLINEAR
BLOCK = 5000  # rows generated at a time
WORDS, PER_ROW, COLUMNS = 50_000, 75, 30
VOWPAL = "import sys, vowpalwabbit as vw; vw.Workspace(sys.argv[1]).finish()"


def documents(rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Blocks of svmlight text, and the same for Vowpal Wabbit."""
    order = rng.permutation(WORDS)
    weights = np.where(rng.random(WORDS) < 0.05, rng.normal(size=WORDS), 0.0)
    while True:
        words = order[np.minimum(rng.zipf(1.3, size=(BLOCK, PER_ROW)) - 1, WORDS - 1)]
        lines, others = [], []
        for row in words:
            features, counts = np.unique(row, return_counts=True)
            values = np.log1p(counts) * (1 + features % 7)
            values /= np.sqrt(values @ values)
            y = 1 if weights[features] @ values + 0.1 * rng.normal() > 0 else -1
            text = " ".join(f"{j + 1}:{v:.6g}" for j, v in zip(features.tolist(), values.tolist(), strict=True))
            lines.append(f"{y} {text}\n")
            others.append(f"{y} | {text}\n")
        yield "".join(lines), "".join(others)


def tables(rng: np.random.Generator) -> Iterator[tuple[str, str, str]]:
    """Blocks of CSV, the same as svmlight text, and the same for Vowpal Wabbit."""
    weights = rng.normal(size=COLUMNS)
    while True:
        X = np.round(rng.normal(size=(BLOCK, COLUMNS)), 5)
        y = np.where(X @ weights + 2 * rng.normal(size=BLOCK) > 0, 1, -1)
        rows, lines, others = [], [], []
        for label, row in zip(y.tolist(), X.tolist(), strict=True):
            rows.append(f"{label},{','.join(map(repr, row))}\n")
            text = " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row))
            lines.append(f"{label} {text}\n")
            others.append(f"{label} | {text}\n")
        yield "".join(rows), "".join(lines), "".join(others)


def generate(kind: str, size: int, folder: Path) -> list[Path]:
    """Files of about ``size`` bytes, the first of them the one that metrimax reads."""
    blocks: Any = (documents if kind == "svmlight" else tables)(np.random.default_rng(0))
    endings = ("svm", "vw") if kind == "svmlight" else ("csv", "svm", "vw")
    paths = [folder / f"train.{ending}" for ending in endings]
    files = [path.open("w") for path in paths]
    if kind == "csv":
        files[0].write("label," + ",".join(f"x{j}" for j in range(COLUMNS)) + "\n")
    while files[0].tell() < size:
        for file, text in zip(files, next(blocks), strict=True):
            file.write(text)
    for file in files:
        file.close()
    return paths


def used(command: list[str]) -> dict[str, float]:
    """Seconds and peak memory of a command. An installed package has its bytecode, so Python may write it here."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=variables)
    said = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"{command[0]} failed: {said[-300:].decode(errors='replace')}")
    return {"cpu": usage.ru_utime + usage.ru_stime, "wall": wall, "peak_mb": usage.ru_maxrss / 1024}


def commands(paths: list[Path], folder: Path) -> dict[str, list[str]]:
    own = [str(Path(sys.executable).parent / "metrimax"), "train", str(paths[0]), str(folder / "model"), "--quiet"]
    own += ["--measure", "error", "-C", "1", "--no-scaling"] if paths[0].suffix == ".csv" else ["--measure", "error"]
    own += [] if "-C" in own else ["-C", "1"]
    found = {OWN: [*own, "--threads", "1"], "metrimax, 2 threads": [*own, "--threads", "2"]}
    if shutil.which(PEER):
        options = ["-s", "3", "-c", "1", "-B", "1", "-q"]
        found[PEER] = [PEER, *options, str(paths[-2]), str(folder / "liblinear")]
    if importlib.util.find_spec("vowpalwabbit"):
        options_vw = f"--loss_function hinge --data {paths[-1]} --final_regressor {folder / 'vw'} -b 18 --quiet"
        found["Vowpal Wabbit, one pass"] = [sys.executable, "-c", VOWPAL, options_vw]
    return found


def measure(kind: str, size: int, repeats: int, parent: Path | None) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(dir=parent) as name:
        folder = Path(name)
        paths = generate(kind, size, folder)
        programs = commands(paths, folder)
        runs: dict[str, list[dict[str, float]]] = {who: [] for who in programs}
        for _ in range(repeats + (repeats > 1)):
            for who, command in programs.items():
                runs[who].append(used(command))
        for who, own in runs.items():
            least = {field: min(run[field] for run in own[-repeats:]) for field in own[0]}
            row = {"file": kind, "mb": paths[0].stat().st_size / 1e6, "by": who, **least, "repeats": repeats}
            print(row, flush=True)
            yield row


def section(rows: list[dict[str, str]]) -> str:
    """The part of a page: the finding, and a table."""
    found, lines = [], []
    files = {(row["file"], row["mb"]): None for row in rows}
    for kind, mb in files:
        own = {row["by"]: row for row in rows if (row["file"], row["mb"]) == (kind, mb)}
        peer = own.get(PEER)
        for by, row in own.items():
            numbers = [float(row[field]) for field in FIELDS]
            ratios = [one / float(peer[field]) for one, field in zip(numbers, FIELDS, strict=True)] if peer else []
            shown = [f"{one:.3g}" for one in numbers] + [f"{one:.2f}" for one in ratios] + [""] * (3 - len(ratios))
            lines.append([kind, f"{float(mb):.0f}", by, *shown, row["repeats"]])
            if by == OWN and ratios:
                met = "as wanted" if ratios[0] <= WANTED[0] and ratios[2] <= WANTED[1] else "**more than wanted**"
                found.append(
                    f"* {kind}, {float(mb):.0f} MB: {ratios[0]:.2f} times the CPU seconds and {ratios[2]:.2f} times "
                    f"the peak of memory, {met}."
                )
    head = ["file", "MB", "by", "CPU s", "wall s", "peak MB", "CPU / its", "wall / its", "peak / its", "runs"]
    parts = [
        "## From a file to a model",
        f"`metrimax train` in one thread beside `{PEER}`, parsing included, for the same sum of hinges. Wanted are\n"
        f"{WANTED[0]:g} times the CPU seconds and {WANTED[1]:g} times the peak of memory:",
        "\n".join(found),
        """Both stop by their own rule: `metrimax` at a certified gap of 1e-3, LIBLINEAR at its default accuracy. Where
the file is a table, `metrimax` reads it as CSV, the others as svmlight text. Vowpal Wabbit makes one pass of its own
updates: it shows what reading costs, and minimises nothing to an accuracy. Each number is the least of the runs; where
there are several, one before them is not counted. The rows are in
[from_file.csv](../../benchmarks/results/from_file.csv); `python -m benchmarks.from_file` measures them.""",
        measured(rows),
        table(head, lines),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["105MB", "1GB"])
    parser.add_argument("--kinds", nargs="+", default=["svmlight", "csv"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the files are made, and removed again")
    arguments = parser.parse_args()
    rows = [
        row | stamp()
        for size in arguments.sizes
        for kind in arguments.kinds
        for row in measure(kind, parse_size(size), arguments.repeats, arguments.folder)
    ]
    measured_now = {(row["file"], round(row["mb"])) for row in rows}
    before = read_rows(CSV) if CSV.exists() else []
    rows += [row for row in before if (row["file"], round(float(row["mb"]))) not in measured_now]
    rows.sort(key=lambda row: (row["file"], float(row["mb"])))
    write_rows(CSV, rows)


if __name__ == "__main__":
    main()
