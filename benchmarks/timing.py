"""One way to time everything: CPU seconds of the process (all its threads), wall seconds, the least of several runs."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple


class Timing(NamedTuple):
    """The least CPU and wall seconds of ``repeats`` runs, and the slowest CPU run over the quickest."""

    cpu_seconds: float
    wall_seconds: float
    repeats: int
    cpu_spread: float


def timed(function: Callable[[], Any], repeats: int = 3, enough: float = 0.5, most: int = 15) -> tuple[Any, Timing]:
    """Run ``function`` ``repeats`` times, short ones until ``enough`` seconds have passed; returns its last result."""
    cpu: list[float] = []
    wall: list[float] = []
    result = None
    while len(cpu) < repeats or (repeats > 1 and sum(wall) < enough and len(cpu) < most):
        gc.collect()
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        result = function()
        cpu.append(time.process_time() - cpu_start)
        wall.append(time.perf_counter() - wall_start)
        if sum(wall) > 20:
            break
    return result, Timing(min(cpu), min(wall), len(cpu), max(cpu) / max(min(cpu), 1e-9))


def version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def revision() -> str:
    """The commit of the sources that are measured, marked where they differ from it; empty outside a repository."""
    source = Path(__file__).resolve().parents[1]

    def git(*arguments: str) -> str:
        ran = subprocess.run(["git", *arguments], cwd=source, capture_output=True, text=True, check=False)
        return ran.stdout.strip()

    try:
        commit = git("rev-parse", "--short=7", "HEAD")
        return f"{commit}+" if commit and git("status", "--porcelain", "src") else commit
    except OSError:  # there is no git
        return ""


STAMP = "date", "revision", "processor", "load"


def stamp() -> dict[str, str]:
    """What every recorded row says of its run: the day, the revision, the processor and how busy the machine was."""
    about = environment()
    return dict(zip(STAMP, (about["date"], revision(), about["cpu"], about["load_average"]), strict=True))


def measured(rows: Sequence[Mapping[str, str]]) -> str:
    """A sentence for a page: when its rows were measured, at which revision, and how busy the machine was."""
    runs = sorted({(row["date"], row["revision"], row["processor"]) for row in rows})
    loads = [float(row["load"]) for row in rows if row["load"]]
    said = "; ".join(f"on {date} at revision `{commit}` ({cpu})" for date, commit, cpu in runs)
    busy = f", at load averages of {min(loads):.1f} to {max(loads):.1f}" if loads else ""
    return f"Measured {said}{busy}."


def environment() -> dict[str, str]:
    """The machine and the versions, for the record."""
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    packages = ("metrimax", "numpy", "scipy", "scikit-learn", "dlib", "daqp", "piqp")
    return {
        "cpu": cpu,
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "system": platform.system(),
        "python": platform.python_version(),
        "load_average": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "",
        "date": time.strftime("%Y-%m-%d"),
        **{package: found for package in packages if (found := version(package))},
    }
