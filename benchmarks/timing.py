"""One way to time everything: CPU seconds of the process (all its threads), wall seconds, the least of several runs."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable
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
