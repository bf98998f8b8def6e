"""Members trained on folds, each scored on the rows that it was not trained on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn import config_context
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import _routing_enabled
from sklearn.utils.parallel import Parallel, delayed

from metrimax.estimators._ensemble_members import Member, Target, seeded
from metrimax.protocols import Vector
from metrimax.training.progress import ProgressLine

Rows = npt.NDArray[np.intp]


class Fit(NamedTuple):
    """One member trained on one fold: its models, its scores on the other rows, and what it cost."""

    models: list[Any]
    scores: Vector
    cpu_seconds: float
    seconds: float


class Task(NamedTuple):
    """A member and a fold."""

    member: Member
    fold: int
    train: Rows
    test: Rows
    seed: int
    parameters: dict[str, Any]  #: of `fit`, for the rows to train on
    routed: bool  #: whether the member routes them by itself, as one that the user gives does


class CrossFit(NamedTuple):
    """What training on folds leaves of a member: its models by fold, scores out of fold (n, L), CPU seconds."""

    models: list[list[Any]]
    scores: Vector
    cpu_seconds: float


def cross_fit(
    tasks: list[Task], views: dict[str, Any], target: Target, n_jobs: int | None, title: str | None
) -> dict[str, CrossFit]:
    """Train every task and put the pieces of each member together. ``title`` shows progress.

    A row that several folds test has the mean of its scores, one that no fold tests NaN.
    """
    workers = Parallel(n_jobs=n_jobs, **({"return_as": "generator"} if title else {}))
    fits: Iterable[Fit] = workers(delayed(_fit)(task, views[task.member.view], target) for task in tasks)
    if title is not None:
        fits = _shown(fits, tasks, title)
    found: dict[str, CrossFit] = {}
    counts: dict[str, Vector] = {}
    for task, fit in zip(tasks, fits, strict=True):
        name = task.member.name
        if name not in found:
            found[name], counts[name] = CrossFit([], np.zeros(target.labels.shape), 0.0), np.zeros(len(target.labels))
        found[name].models.append(fit.models)
        found[name].scores[task.test] += fit.scores
        counts[name][task.test] += 1
        found[name] = found[name]._replace(cpu_seconds=found[name].cpu_seconds + fit.cpu_seconds)
    with np.errstate(invalid="ignore"):
        return {name: own._replace(scores=own.scores / counts[name][:, None]) for name, own in found.items()}


def _fit(task: Task, X: Any, target: Target) -> Fit:
    began, cpu = time.perf_counter(), time.process_time()
    estimator = seeded(task.member.estimator, task.seed)
    with config_context(enable_metadata_routing=task.routed and _routing_enabled()):
        models = target.fit(estimator, _safe_indexing(X, task.train), task.train, task.parameters)
    scores = target.read(task.member.name, models, _safe_indexing(X, task.test))
    return Fit(models, scores, time.process_time() - cpu, time.perf_counter() - began)


def _shown(fits: Iterable[Fit], tasks: list[Task], title: str) -> Iterator[Fit]:
    """The fits, with a line on the terminal that says how many are done and how long the others may take."""
    began, spent = time.monotonic(), dict.fromkeys((task.member.name for task in tasks), 0.0)
    done = dict.fromkeys(spent, 0)
    with ProgressLine(title) as line:
        for k, (task, fit) in enumerate(zip(tasks, fits, strict=True), 1):
            yield fit
            spent[task.member.name] += fit.seconds
            done[task.member.name] += 1
            usual = {name: spent[name] / done[name] if done[name] else sum(spent.values()) / k for name in spent}
            rate = (time.monotonic() - began) / max(sum(spent.values()), 1e-9)  # below 1 with several workers
            left = rate * sum(usual[other.member.name] for other in tasks[k:])
            line.show(f"{k} of {len(tasks)} fits, {task.member.name}, fold {task.fold + 1}, about {left:.0f} s left")
