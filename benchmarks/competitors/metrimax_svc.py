"""metrimax itself: ``MeasureSVC``, one thread, to a tolerance or until a target objective is reached."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.competitors import Answer
from benchmarks.data import Task
from benchmarks.judge import LOGISTIC
from benchmarks.timing import version


class _Prepared:
    def __init__(self, task: Task, measure: str, C: float, n_threads: int) -> None:
        self.task, self.measure, self.C, self.n_threads = task, measure, C, n_threads

    def fit(self, setting: float, target: float | None = None, limit: float = 60.0, solver: str = "auto") -> Answer:
        """Train to ``tol=setting``; with ``target``, until the objective (over C kappa n) is at most that."""
        from metrimax import MeasureSVC

        began = time.perf_counter()

        def stop(record: Any) -> bool:
            reached = target is not None and record.objective <= target
            return reached or time.perf_counter() - began > limit

        alone = self.measure != LOGISTIC  # the problem that all competitors solve
        svc = MeasureSVC(
            self.measure if alone else "error",
            C=self.C,
            risk=float(alone),
            hinge=0.0,
            logistic=float(not alone),
            intercept_scaling=1.0,
            threshold="trained",
            tol=setting,
            solver=solver,
            n_threads=self.n_threads,
            max_iter=100_000,
            callback=stop,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            svc.fit(self.task.X, self.task.y)
        w = np.append(svc.coef_[0], svc.trained_intercept_[0])
        return Answer(w, int(svc.n_iter_), int(svc.n_passes_), float(svc.dual_bound_))


class Adapter:
    """``MeasureSVC``."""

    name = "metrimax"
    measures = frozenset({"error", "f1", "prbep", "roc_area", LOGISTIC})
    settings = (1e-3, 3e-4, 1e-4)
    default = 1e-3

    def missing(self) -> str | None:
        return None

    def version(self) -> str:
        return version("metrimax")

    def prepare(self, task: Task, measure: str, C: float, n_threads: int = 1) -> _Prepared:
        return _Prepared(task, measure, C, n_threads)


ADAPTER = Adapter()
