"""Members trained on folds, and their scores of the rows held out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import _routing_enabled
from sklearn.utils.parallel import Parallel, delayed

from metrimax._validation import is_whole
from metrimax.estimators._ensemble_members import Member, Target, seeded
from metrimax.protocols import Labels, Rows, Vector
from metrimax.training.progress import ProgressLine

Splits = list[tuple[Rows, Rows]]
"""The rows to train on and to test on, fold by fold."""


class Fit(NamedTuple):
    """One member trained on one fold: its models, its scores of the rows held out, and its cost."""

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
    parameters: dict[str, Any]  #: for the member's `fit`, cut to the training rows
    routed: bool  #: whether the user gave the member; it may then route metadata itself


class CrossFit(NamedTuple):
    """A member trained on all folds: its models by fold, scores out of fold (n, L), CPU seconds."""

    models: list[list[Any]]
    scores: Vector
    cpu_seconds: float


def make_splits(cv: Any, X: Any, target: Target, weight: Vector | None, given: dict[str, Any], rng: Any) -> Splits:
    """The folds that ``cv`` asks for, without rows of weight 0.

    ``given`` are the parameters of `split`. With groups, a number of folds means folds that divide no group.
    """
    rows = np.arange(len(target.y))
    used = np.ones(len(rows), dtype=bool) if weight is None else weight > 0
    if (target.labels[used] == target.labels[used][0]).all() and not target.separate:
        raise ValueError("expected rows of at least two classes with a weight above zero, got one")
    if is_whole(cv):
        own = {name: np.asarray(values)[used] for name, values in given.items()}
        found = [(rows[used][train], rows[used][test]) for train, test in _numbered(int(cv), target, used, own, rng)]
    else:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            # lists and masks, which splitters may give, become indices
            found = [(rows[a], rows[b]) for a, b in check_cv(cv, target.y, classifier=True).split(X, target.y, **given)]
    splits = [(train[used[train]], test[used[test]]) for train, test in found if used[test].any()]
    if not splits:
        raise ValueError(f"expected cv with at least one split, got none from {cv!r}")
    for k, (train, _) in enumerate(splits):
        if not target.separate and not (target.labels[train] != target.labels[train][:1]).any():
            raise ValueError(
                f"fold {k + 1}: expected at least two classes to train on, got one: choose fewer folds, or a splitter "
                "that stratifies; a class with one row, or in one group, cannot be trained and tested"
            )
    return splits


def _numbered(cv: int, target: Target, used: Labels, given: dict[str, Any], rng: Any) -> Iterable[tuple[Rows, Rows]]:
    """A number of folds of the rows ``used``: no more than there are groups, or rows of the smaller of two classes.

    A tiny class among several may be missing in some folds; `Target` allows for that.
    """
    if cv < 2:
        raise ValueError(f"expected cv of at least 2 folds, got {cv}")
    y = target.y[used]
    if given:  # groups
        kind, most = GroupKFold if target.separate else StratifiedGroupKFold, len(np.unique(given["groups"]))
        if most < 2:
            raise ValueError("expected at least two groups to divide into folds, got one: leave out groups")
    else:
        kind, most = KFold if target.separate else StratifiedKFold, len(y)
    if not target.separate:
        most = min(most, int(np.sort(np.unique(y, return_counts=True)[1])[-2]))
    splitter = kind(max(2, min(cv, most)), shuffle=True, random_state=rng.randint(2**31 - 1))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        return list(splitter.split(np.zeros(len(y)), y, **given))


def tested_parts(splits: Splits, n: int) -> list[Rows]:
    """The rows that each fold tests; a row that several folds test is listed for the first of them."""
    first = np.full(n, -1)
    for k, (_, test) in reversed(list(enumerate(splits))):
        first[test] = k
    parts = [np.flatnonzero(first == k) for k in range(len(splits))]
    return [part for part in parts if len(part)]


def cross_fit(
    tasks: list[Task], views: dict[str, Any], target: Target, n_jobs: int | None, title: str | None
) -> dict[str, CrossFit]:
    """Train every task, and collect the results of each member. With a ``title``, show progress.

    The score of a row that several folds test is the mean of its scores; that of a row that no fold tests is NaN.
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
    with config_context(enable_metadata_routing=task.routed and _routing_enabled()), warnings.catch_warnings():
        if not task.routed:  # members of the presets stop early on purpose
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", message="Using the fractional value max_samples")  # of few rows
        try:
            models = target.fit(estimator, _training_rows(X, task), task.train, task.parameters)
        except Exception as error:
            error.add_note(f"raised by the member {task.member.name!r} in fold {task.fold + 1}")
            raise
    scores = target.read(task.member.name, models, _safe_indexing(X, task.test))
    return Fit(models, scores, time.process_time() - cpu, time.perf_counter() - began)


def _training_rows(X: Any, task: Task) -> Any:
    """The training rows. A column of codes with nothing but gaps in them is set to zero: boosting refuses it."""
    rows = _safe_indexing(X, task.train)
    if task.member.view == "codes":
        empty = np.isnan(rows).all(axis=0)
        if empty.any():
            rows = np.where(empty, 0.0, rows)
    return rows


def _shown(fits: Iterable[Fit], tasks: list[Task], title: str) -> Iterator[Fit]:
    """The fits, with a line on the terminal: how many are done, and how many seconds are left."""
    began, spent = time.monotonic(), dict.fromkeys((task.member.name for task in tasks), 0.0)
    done = dict.fromkeys(spent, 0)
    with ProgressLine(title, lines=True) as line:
        for k, (task, fit) in enumerate(zip(tasks, fits, strict=True), 1):
            yield fit
            spent[task.member.name] += fit.seconds
            done[task.member.name] += 1
            usual = {name: spent[name] / done[name] if done[name] else sum(spent.values()) / k for name in spent}
            rate = (time.monotonic() - began) / max(sum(spent.values()), 1e-9)  # below 1 with several workers
            left = rate * sum(usual[other.member.name] for other in tasks[k:])
            line.show(f"{k} of {len(tasks)} fits, {task.member.name}, fold {task.fold + 1}, about {left:.0f} s left")
