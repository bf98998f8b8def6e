"""Where the CPU seconds of a fit go: products with X, argmax, quadratic program, and the rest."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

from benchmarks import data
from metrimax import _kernels
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.solvers import SOLVERS
from metrimax.training.lockstep import run

CASES = [
    ("reuters:money-fx", "f1", 1.0),
    ("reuters:money-fx", "roc_area", 1.0),
    ("ijcnn1", "f1", 1.0),
    ("ijcnn1", "roc_area", 1.0),
    ("optdigits:8", "f1", 1.0),
    ("splice", "f1", 1.0),
    ("covtype:2", "f1", 0.1),
    ("covtype:2", "roc_area", 0.1),
]
SMOKE = [("dense:1000", "f1", 1.0), ("sparse:500", "roc_area", 1.0)]
CHOSEN = ("bundle", "auto")
"""One line search and one cut an iteration; and the default: two of each, and fewer passes."""


class Clock:
    """Seconds and calls of wrapped functions, by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)

    def wrap(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            try:
                result = function(*args, **kwargs)
            finally:
                self.seconds[part] += time.process_time() - start
                self.calls[part] += 1
            return self.wrap(part, result) if callable(result) else result  # the risk along a line is a function

        return timed


class Timed:
    """An object whose methods are on the clock. An attribute that is set hides the object's own."""

    def __init__(self, thing: Any, part: str, clock: Clock) -> None:
        self._thing, self._part, self._clock = thing, part, clock

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._thing, name)
        return self._clock.wrap(self._part, found) if callable(found) else found

    def __call__(self, *args: Any) -> Any:
        return self._clock.wrap(self._part, self._thing)(*args)


def shares(
    name: str, measure: str, C: float, solver: str = "auto", tol: float = 1e-3, n_threads: int = 1
) -> dict[str, Any]:
    """One row: the seconds of each part of one run."""
    task = data.load(name)
    clock = Clock()
    began = time.process_time()
    design = as_design(task.X, intercept_scaling=1.0, n_threads=n_threads)
    timed_design = Timed(design, "products", clock)
    timed_design.rows = Timed(design.rows, "products", clock)
    oracle = Timed(get_measure(measure).oracle(task.y), "argmax", clock)
    ready = time.process_time()
    oracle.can = replace(oracle.can, compiled=None)  # or the kernel would be asked behind the clock

    class TimedSteps(_kernels.BundleSteps):
        propose = clock.wrap("qp", _kernels.BundleSteps.propose)

    with mock.patch.object(_kernels, "BundleSteps", TimedSteps):
        steps = SOLVERS[solver]().steps(oracle, timed_design, C * oracle.price * oracle.n, tol=tol)
        (solution,) = run(timed_design, [steps])
    total = time.process_time() - ready
    parts = {part: clock.seconds[part] for part in ("products", "argmax", "qp")}
    return {
        "task": name,
        "measure": measure,
        "C": C,
        "solver": solver,
        "tol": tol,
        "threads": n_threads,
        "n_iter": solution.n_iter,
        "n_passes": solution.n_passes,
        "argmax_calls": clock.calls["argmax"],
        "n_cuts": solution.history[-1].n_cuts,
        "setup_seconds": ready - began,
        "seconds": total,
        **{f"{part}_seconds": seconds for part, seconds in parts.items()},
        "other_seconds": total - sum(parts.values()),
        "argmax_to_products": parts["argmax"] / parts["products"],
        "gap": solution.gap,
    }


def measure(smoke: bool = False, **_: Any) -> list[dict[str, Any]]:
    return [shares(*case, solver) for case in (SMOKE if smoke else CASES) for solver in CHOSEN]
