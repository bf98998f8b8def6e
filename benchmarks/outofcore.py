"""Data beyond memory and beyond one process, against the same data in memory: objectives, memory, seconds per pass.

python -m benchmarks.outofcore --size 5GB --folder /somewhere/with/room

Every way runs in a process of its own, so that its peak of memory is its own. Writes benchmarks/results/outofcore.csv
and docs/results/scaling.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data, timing
from metrimax.io.shards import ShardWriter, parse_size

ROOT = Path(__file__).resolve().parents[1]
CSV = ROOT / "benchmarks" / "results" / "outofcore.csv"
PAGE = ROOT / "docs" / "results" / "scaling.md"
BLOCK = 100_000
SETTINGS = {"covtype": {"C": 0.01, "tol": 1e-6}, "sparse": {"C": 0.01, "tol": 1e-5}}
WAYS = ("memory", "shards", "dask:2")
ROUNDS = 7
VECTORS = 16  # of length n: labels, scores, slopes and what the oracle sorts


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


def opened(way: str, folder: Path, memory: int) -> tuple[Any, Any, Any]:
    """Design, labels, and what has to be closed."""
    from metrimax import open_dataset

    if way == "memory":
        return *in_memory(folder), None
    if way == "shards":
        return open_dataset(folder, memory=memory), None, None
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=int(way.partition(":")[2]), threads_per_worker=1, dashboard_address=None)
    return open_dataset(folder, memory=memory, dask=Client(cluster)), None, cluster


def fit(way: str, name: str, folder: Path, memory: int) -> dict[str, Any]:
    """Train F1 one way, in this process."""
    from metrimax import MeasureSVC

    base = resident("VmRSS")
    design, y, cluster = opened(way, folder, memory)
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
        cluster.close()
    return row


def passes(way: str, name: str, folder: Path, memory: int) -> dict[str, Any]:
    """Seconds of one X w and one X' slope, the least of several: memory and shards in turn, or one worker and two."""
    if way == "shards":
        first, second = opened("memory", folder, memory)[0], opened("shards", folder, memory)[0]
        return _rounds(first=first, second=second)
    row = {}
    for key, workers in (("first", 1), ("second", 2)):  # one after the other: an idle worker is not quite idle
        design, _, cluster = opened(f"dask:{workers}", folder, memory)
        row |= _rounds(**{key: design})
        cluster.close()
    return row


def _rounds(**designs: Any) -> dict[str, float]:
    rng = np.random.default_rng(0)
    row = {}
    for name, design in designs.items():
        design.matvec(np.zeros(design.shape[1]))  # checksums, and the files into the cache
        row |= {f"{name}_wall": np.inf, f"{name}_cpu": np.inf}
        before = _worker_seconds(design)
    n, p = design.shape
    w, slope = rng.normal(size=p), rng.normal(size=n)
    for _ in range(ROUNDS):
        for name, design in designs.items():
            began, used = time.perf_counter(), time.process_time()
            design.matvec(w)
            design.rmatvec(slope)
            row[f"{name}_wall"] = min(row[f"{name}_wall"], time.perf_counter() - began)
            row[f"{name}_cpu"] = min(row[f"{name}_cpu"], time.process_time() - used)
    if before:
        row[f"{name}_busiest"] = max(np.subtract(_worker_seconds(design), before)) / ROUNDS
    return row


def _worker_seconds(design: Any) -> list[float]:
    """CPU seconds of every worker so far."""
    return list(design.client.run(time.process_time).values()) if hasattr(design, "client") else []


def child(job: str, way: str, name: str, folder: Path, memory: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.outofcore", "--child", job, way, name, str(folder), str(memory)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"job": job, "way": way, "set": name, "memory": memory} | row


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in options.sets:
        target = prepare(name, folder, parse_size(options.size), parse_size(options.shard_size))
        size = sum(file.stat().st_size for file in target.iterdir())
        memory = max(size // 5, 4 * parse_size(options.shard_size))
        for way in WAYS:
            rows.append(child("fit", way, name, target, memory) | {"size": size})
            print(json.dumps(rows[-1]), flush=True)
        for way in ("shards", "dask"):
            for limit in (memory, 2 * size) if way == "shards" else (2 * size,):
                rows.append(child("passes", way, name, target, limit) | {"size": size})
                print(json.dumps(rows[-1]), flush=True)
        if options.clean:
            shutil.rmtree(target)
    return rows


def page(rows: list[dict[str, Any]], about: dict[str, str]) -> str:
    """The page, from the rows alone."""
    lines = [
        "# Beyond memory: measured",
        "",
        f"Made by `python -m benchmarks.outofcore` on {about['cores']} cores ({about['cpu']}), {about['date']}, with a "
        f"load average of {about['load_average']} at the end. Every fit ran in a process of its own. On a busy machine "
        "CPU seconds and ratios within one process are the ones to look at.",
        "",
        "F1, the intercept included; `shards` is a folder of mapped binary shards under a limit on memory of a fifth "
        "of the data, or four shards if that is more, `dask:2` the same shards read by two worker processes. Peaks are "
        "of the driver. Where the load is above the number of cores, wall seconds of several processes say little.",
        "",
        "| set | rows | GB | way | objective | bound | iterations | wall s | CPU s | peak GB | limit GB |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    verdicts = []
    for name in dict.fromkeys(row["set"] for row in rows):
        fits = {row["way"]: row for row in rows if row["set"] == name and row["job"] == "fit"}
        for way, row in fits.items():
            held = row["memory"] if way == "shards" else 0
            limit = row["base_bytes"] + held + 8 * (VECTORS * row["n"] + 2 * row["cuts"] * row["p"]) + 64 * 2**20
            shown = f"{limit / 1e9:.2f}" if way != "memory" else ""
            lines.append(
                f"| {name} | {row['n']:,} | {row['size'] / 1e9:.2f} | {way} | {row['objective']:.9g} "
                f"| {row['bound']:.9g} | {row['iterations']} | {row['wall_seconds']:.1f} | {row['cpu_seconds']:.1f} "
                f"| {row['peak_bytes'] / 1e9:.2f} | {shown} |"
            )
            if way == "shards":
                kept = "below" if row["peak_bytes"] <= limit else "ABOVE"
                verdicts.append(f"* {name}: peak memory {row['peak_bytes'] / 1e9:.2f} GB, {kept} the limit stated")
        for way in ("shards", "dask:2"):
            apart = [abs(fits[way][key] / fits["memory"][key] - 1) for key in ("objective", "bound")]
            verdicts.append(
                f"* {name}, {way}: objective and bound differ from those in memory by {max(apart):.1e}, relatively"
            )
        for row in rows:
            if row["set"] == name and row["job"] == "passes":
                wall, cpu = (row[f"second_{kind}"] / row[f"first_{kind}"] for kind in ("wall", "cpu"))
                if row["way"] == "shards":
                    how = (
                        "all kept open" if row["memory"] > row["size"] else f"{row['memory'] / 1e9:.2f} GB open at most"
                    )
                    verdicts.append(
                        f"* {name}, {how}: one X w and one X' slope from mapped shards take {wall:.2f} times the wall "
                        f"and {cpu:.2f} times the CPU seconds of the same in memory ({row['first_wall']:.3f} s)"
                    )
                else:
                    verdicts.append(
                        f"* {name}: two worker processes are {1 / wall:.2f} times as fast as one "
                        f"({row['first_wall']:.3f} s and {row['second_wall']:.3f} s for both products)"
                    )
                    if row.get("first_busiest"):
                        path = [row[f"{k}_busiest"] + row[f"{k}_cpu"] for k in ("first", "second")]
                        verdicts.append(
                            f"* {name}: CPU seconds of driver and scheduler and of the busiest worker, per round: "
                            f"{path[0]:.3f} with one, {path[1]:.3f} with two, a ratio of {path[0] / path[1]:.2f}"
                        )
    return "\n".join([*lines, "", *verdicts, "", LIMIT, ""])


LIMIT = (
    "The limit stated is the interpreter with its packages, the `memory` given for rows (none on the driver of a "
    f"cluster), {VECTORS} vectors of length n, and the cuts twice; 64 MiB for the rest."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="5GB", help="of the generated sparse set (default: %(default)s)")
    parser.add_argument("--shard-size", default="32MiB")
    parser.add_argument("--folder", default="/tmp/metrimax-outofcore", help="for the shards")
    parser.add_argument("--sets", nargs="+", choices=sorted(SETTINGS), default=sorted(SETTINGS))
    parser.add_argument("--clean", action="store_true", help="remove the shards afterwards")
    parser.add_argument("--page", action="store_true", help="only write the page again, from the CSV")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        job, way, name, folder, memory = options.child
        print(json.dumps({"fit": fit, "passes": passes}[job](way, name, Path(folder), int(memory))))
        return
    if options.page:
        with open(CSV, newline="") as file:
            rows: list[dict[str, Any]] = [{k: _number(v) for k, v in row.items()} for row in csv.DictReader(file)]
        about = {key.removeprefix("env_"): str(value) for key, value in rows[0].items() if key.startswith("env_")}
    else:
        rows = measure(options)
        about = timing.environment()
        env = {f"env_{key}": about[key] for key in ("cpu", "cores", "date", "load_average")}
        fields = list(dict.fromkeys(key for row in rows for key in row)) + list(env)
        with open(CSV, "w", newline="") as file:
            writer = csv.DictWriter(file, fields, restval="")
            writer.writeheader()
            writer.writerows(row | env for row in rows)
    PAGE.write_text(page(rows, about))


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


if __name__ == "__main__":
    main()
