"""Data beyond memory and beyond one process, against the same data in memory: objectives, memory, seconds per pass.

OMP_NUM_THREADS=1 python -m benchmarks.outofcore --size 5GB --folder /somewhere/with/room --clean

takes about ten minutes on two quiet cores, 6 GB of disk and 12 GB of memory. Every measurement runs in a process of its
own, so that its peak of memory is its own, and is written to benchmarks/results/outofcore.csv when it ends: after an
interruption ``--resume`` measures the rest. docs/results/scaling.md is made from that file alone (``--page``).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data, outofcore_page, timing
from benchmarks.rows import read_rows, write_rows
from metrimax.io.limits import parse_size
from metrimax.io.writing import ShardWriter

ROOT = Path(__file__).resolve().parents[1]
CSV = ROOT / "benchmarks" / "results" / "outofcore.csv"
PAGE = ROOT / "docs" / "results" / "scaling.md"
BLOCK = 100_000
SETTINGS = {"covtype": {"C": 0.01, "tol": 1e-6, "hinge": 0.0}, "sparse": {"C": 0.01, "tol": 1e-5, "hinge": 0.0}}
JOBS = (  # what is measured, which way, and within a fifth of the data ("fifth") or all kept open ("all")
    ("fit", "memory", "fifth"),
    ("fit", "shards", "fifth"),
    ("fit", "dask:2", "fifth"),
    ("passes", "shards", "fifth"),
    ("passes", "shards", "all"),
    ("workers", "dask", "all"),
)
ROUNDS = 7


def prepare(name: str, folder: Path, size: int, shard_size: int) -> Path:
    """The shards of a set; those that are there are used again."""
    target = folder / (name if name == "covtype" else f"{name}-{size}")
    if target.exists():
        return target
    with ShardWriter(target, shard_size=shard_size) as writer:
        if name == "covtype":
            task = data.load("covtype:2")
            writer.add(task.X, task.y.astype(float))
            writer.add(task.X_test, task.y_test.astype(float))
        else:
            rows, block = 0, 0
            while rows * 752 < size:  # bytes of a row: about 62 non-zeros of 12 bytes, and its start
                task = data.generate("sparse", BLOCK, seed=block)
                writer.add(task.X, task.y.astype(float))
                rows, block = rows + BLOCK, block + 1
        writer.finish()
    return target


def resident(field: str) -> int:
    """Bytes of memory of this process, now (VmRSS) or at most so far (VmHWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"no {field} in /proc/self/status")


def in_memory(folder: Path) -> tuple[Any, np.ndarray]:
    """The whole matrix as a design, and its labels."""
    from metrimax import open_dataset
    from metrimax.designs import CSR, Dense

    dataset: Any = open_dataset(folder, verify=False)
    files = [shard.stem for shard in dataset.shards]
    if dataset.shards[0].parts == ("X",):
        X = np.empty(dataset.shape)
        for k, stem in enumerate(files):
            X[dataset.starts[k] : dataset.starts[k + 1]] = np.load(f"{stem}.X.npy")
        return Dense(X), dataset.labels
    sizes = [len(np.load(f"{stem}.data.npy", mmap_mode="r")) for stem in files]
    ends = np.concatenate(([0], np.cumsum(sizes)))
    kind = np.int32 if ends[-1] < 2**31 else np.int64
    values, indices = np.empty(ends[-1]), np.empty(ends[-1], kind)
    indptr = np.zeros(dataset.shape[0] + 1, kind)
    for k, stem in enumerate(files):
        own = slice(ends[k], ends[k + 1])
        values[own], indices[own] = np.load(f"{stem}.data.npy"), np.load(f"{stem}.indices.npy")
        indptr[dataset.starts[k] + 1 : dataset.starts[k + 1] + 1] = np.load(f"{stem}.indptr.npy")[1:] + ends[k]
    return CSR(values, indices, indptr, dataset.shape[1]), dataset.labels


def opened(way: str, folder: Path, memory: int, verify: bool = False) -> tuple[Any, Any, Any]:
    """Design, labels, and what has to be closed."""
    from metrimax import open_dataset

    if way == "memory":
        return *in_memory(folder), None
    if way == "shards":
        return open_dataset(folder, memory=memory, verify=verify), None, None
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=int(way.partition(":")[2]), threads_per_worker=1, dashboard_address=None)
    return open_dataset(folder, memory=memory, verify=verify, dask=Client(cluster)), None, cluster


def fit(way: str, name: str, folder: Path, memory: int) -> dict[str, Any]:
    """Train F1 one way, in this process."""
    from metrimax import MeasureSVC

    base = resident("VmRSS")
    design, y, cluster = opened(way, folder, memory, verify=True)
    began, cpu = time.perf_counter(), time.process_time()
    clf = MeasureSVC("f1", **SETTINGS[name]).fit(design, y)
    row = {
        "n": design.shape[0],
        "p": design.shape[1],
        "objective": clf.objective_,
        "bound": clf.dual_bound_,
        "gap": clf.gap_,
        "iterations": clf.n_iter_,
        "passes": clf.n_passes_,
        "wall_seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
        "base_bytes": base,
        "peak_bytes": resident("VmHWM"),
        "moved_bytes": getattr(design, "bytes_moved", getattr(design, "bytes_read", 0)),
        "cuts": max(record.n_cuts for record in clf.history_),
    }
    if cluster is not None:
        row["worker_peak_bytes"] = max(design.cluster.client.run(resident, "VmHWM").values())
        cluster.close()
    return row


def passes(way: str, name: str, folder: Path, memory: int) -> dict[str, Any]:
    """Seconds of one X w and one X' slope, the least of several: memory and shards in turn."""
    rounds = {key: Rounds(opened(key, folder, memory)[0]) for key in ("memory", way)}
    for _ in range(ROUNDS):
        for one in rounds.values():
            one.go()
    return rounds["memory"].row("first") | rounds[way].row("second")


def workers(way: str, name: str, folder: Path, memory: int) -> dict[str, Any]:
    """Seconds of one X w and one X' slope, the least of several: one worker process, then two."""
    row = {}
    for key, count in (("first", 1), ("second", 2)):  # one after the other: an idle worker is not quite idle
        design, _, cluster = opened(f"{way}:{count}", folder, memory)
        rounds = Rounds(design)
        for _ in range(ROUNDS):
            rounds.go()
        row |= rounds.row(key)
        cluster.close()
    return row


class Rounds:
    """One X w and one X' slope, again and again: the least wall and CPU seconds, and who spends them on a cluster."""

    def __init__(self, design: Any) -> None:
        rng = np.random.default_rng(0)
        n, p = design.shape
        self._design, self._w, self._slope = design, rng.normal(size=p), rng.normal(size=n)
        self._design.matvec(self._w)  # structure is checked, and the files are in the cache
        self._rounds: list[dict[str, float]] = []

    def go(self) -> None:
        workers = self._workers()
        wall, driver, cpu = time.perf_counter(), time.thread_time(), time.process_time()
        self._design.matvec(self._w)
        self._design.rmatvec(self._slope)
        row = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        if workers:
            driver = time.thread_time() - driver
            busiest = max(after - workers[worker] for worker, after in self._workers().items())
            row |= {"driver": driver, "loop": row["cpu"] - driver, "busiest": busiest}
            row["path"] = row["cpu"] + busiest
        self._rounds.append(row)

    def row(self, key: str) -> dict[str, float]:
        least = {name: min(row[name] for row in self._rounds) for name in ("wall", "cpu")}
        cheapest = min(self._rounds, key=lambda row: row.get("path", 0.0))
        return {f"{key}_{name}": value for name, value in (cheapest | least).items()}

    def _workers(self) -> dict[str, float]:
        """CPU seconds of every worker so far."""
        found: dict[str, float] = {}
        return self._design.cluster.client.run(time.process_time) if hasattr(self._design, "cluster") else found


def child(job: str, way: str, name: str, folder: Path, memory: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.outofcore", "--child", job, way, name, str(folder), str(memory)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All rows; each is on the disk as soon as it is there."""
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    known = {_key(row): row for row in read()} if options.resume else {}
    rows: list[dict[str, Any]] = []
    began = time.perf_counter()
    for name in options.sets:
        target = prepare(name, folder, parse_size(options.size), parse_size(options.shard_size))
        size = sum(file.stat().st_size for file in target.iterdir())
        print(f"{time.perf_counter() - began:.0f} s: {target}, {size / 1e9:.2f} GB", flush=True)
        fifth = max(size // 5, 4 * parse_size(options.shard_size))
        for job, way, limit in JOBS:
            row = {"set": name, "size": size, "job": job, "way": way, "memory": fifth if limit == "fifth" else 2 * size}
            if _key(row) in known:
                rows.append(known[_key(row)])
                continue
            row |= child(job, way, name, target, row["memory"])
            about = timing.environment()
            rows.append(row | {f"env_{key}": about[key] for key in ("cpu", "cores", "date", "load_average")})
            write_rows(CSV, rows)
            print(f"{time.perf_counter() - began:.0f} s: {json.dumps(row)}", flush=True)
        if options.clean:
            shutil.rmtree(target)
    return rows


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[key] for key in ("set", "size", "job", "way", "memory"))


def read() -> list[dict[str, Any]]:
    return [{key: _number(value) for key, value in row.items()} for row in read_rows(CSV)]


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="5GB", help="of the generated sparse set (default: %(default)s)")
    parser.add_argument("--shard-size", default="32MiB")
    parser.add_argument("--folder", default="/tmp/metrimax-outofcore", help="for the shards")
    parser.add_argument("--sets", nargs="+", choices=sorted(SETTINGS), default=sorted(SETTINGS))
    parser.add_argument("--clean", action="store_true", help="remove the shards of a set when it has been measured")
    parser.add_argument("--resume", action="store_true", help="keep what the CSV has of the same sets and size")
    parser.add_argument("--page", action="store_true", help="only write the page again, from the CSV")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        job, way, name, folder, memory = options.child
        print(json.dumps({"fit": fit, "passes": passes, "workers": workers}[job](way, name, Path(folder), int(memory))))
        return
    if not options.page:
        measure(options)
    rows = read()
    PAGE.write_text(outofcore_page.page(rows))
    for verdict in outofcore_page.verdicts(rows):
        print(verdict)


if __name__ == "__main__":
    main()
