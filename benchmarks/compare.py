"""Competitors at equal objective: data set x measure x C x competitor.

Each row says in ``mode`` what was equalised:

* ``default``: the competitor at its own default accuracy;
* ``gap``: the loosest of its accuracy settings whose objective, recomputed by `Judge`, is within
  ``1e-3 C kappa n`` of the best lower bound known, or the tightest setting, ``reached`` saying that it was not enough;
* ``match default NAME``, ``match gap NAME``: metrimax, stopped in the first iteration whose objective is at most that
  of NAME's answer in that mode;
* ``recorded``: what SVM-perf answered on another machine (objective, seconds), for orientation, with
  ``match recorded SVM-perf``;
* ``estimated``: SVM-perf where neither program nor record is there: the iterations of the plain cutting-plane algorithm
  to the same gap, times the seconds of its argmax alone, `NS_PER_CELL` for each of the ``(n+ + 1)(n- + 1)`` tables it
  looks at; for ROC area, which it sorts for, times what it took per non-zero in the quickest of its recorded runs, on
  another, busy machine.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Iterator, Set
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.competitors import Answer, registry
from benchmarks.competitors.svm_perf import LOSSES
from benchmarks.judge import LOGISTIC, Judge
from benchmarks.timing import Timing, timed

GAP = 1e-3
NS_PER_CELL = 4.0  # SVM-perf's search over all tables, measured with the original program
ESTIMATED = {("ijcnn1", "f1"), ("ijcnn1", "prbep"), ("ijcnn1", "roc_area")}
ALL = ("f1", "error", "prbep", "roc_area", LOGISTIC)
# task, measures, values of C ("c" means: of SVM-perf's c, those it was recorded at)
CASES: list[tuple[str, tuple[str, ...], tuple[Any, ...]]] = [
    ("reuters:money-fx", ALL, ("c1", "c10", "c100")),
    ("reuters:ship", ALL, ("c1", "c10", "c100")),
    ("svmperf_example1", ALL, ("c1", "c10", "c100")),
    ("optdigits:8", ALL, ("c1", "c10", "c100")),
    ("splice", ALL, ("c1", "c10", "c100")),
    ("ijcnn1", ALL, (0.1, 1.0, 10.0)),
    ("20news:0", ("f1", "error", "roc_area", LOGISTIC), (1.0,)),
    ("sector:1", ("f1", "error", "roc_area", LOGISTIC), (1.0,)),
    ("usps:8", ("f1", "error", "roc_area", LOGISTIC), (0.1,)),
    ("kdd99:normal", ("f1", "error", LOGISTIC), (0.1,)),
    ("covtype:2", ("f1", "error", LOGISTIC), (0.01,)),
]
SMOKE: list[tuple[str, tuple[str, ...], tuple[Any, ...]]] = [
    ("dense:1000", ALL, (1.0,)),
    ("sparse:500", ("error", "roc_area"), (1.0,)),
]
SLOW_FOR = {"dlib": 60_000, "TunedThreshold": 200_000}  # more rows than that take them minutes


def recorded() -> dict[tuple[str, str, float], dict[str, Any]]:
    """What SVM-perf answered elsewhere, by task, measure and c; empty where the record is not there."""
    path = data.golden_folder() / "svmperf.json"
    if not path.exists():
        return {}
    names = {code: name for name, code in LOSSES.items()}
    rows = [row for row in json.loads(path.read_text()) if row["loss"] in names]
    return {(row["task"], names[row["loss"]], float(row["C_perf"])): row for row in rows}


@functools.cache
def ns_per_nonzero(measure: str) -> float:
    """The least nanoseconds that SVM-perf took per iteration and non-zero, of its recorded runs; NaN without any."""
    taken = [float("nan")]
    for (task, name, _), row in recorded().items():
        if name == measure and "cpu_seconds" in row:
            with contextlib.suppress(data.MissingData):
                taken.append(1e9 * row["cpu_seconds"] / (row["iterations"] * nonzeros(data.load(task).X)))
    return float(np.fmin.reduce(taken))


def nonzeros(X: Any) -> int:
    return int(X.nnz if hasattr(X, "nnz") else np.count_nonzero(X))


class Comparison:
    """All competitors on one task, measure and C."""

    def __init__(self, judge: Judge, C: float, repeats: int, limit: float) -> None:
        self.judge, self.C, self.repeats, self.limit = judge, C, repeats, limit
        self.weight = judge.weight(C)
        self.metrimax = registry()["metrimax"].prepare(judge.task, judge.name, C)
        self.others = {
            name: adapter
            for name, adapter in registry().items()
            if name != "metrimax"
            and judge.name in adapter.measures
            and adapter.missing() is None
            and judge.task.n <= SLOW_FOR.get(name, np.inf)
        }

    def settled(self, record: dict[str, Any] | None) -> list[dict[str, Any]]:
        """All rows, their gaps against the best bound that any of the runs proved."""
        rows = list(self.rows(record))
        for row in rows:
            if np.isfinite(row.get("objective", float("nan"))):
                row["gap"] = (row["objective"] - self.judge.bound(self.C)) / self.weight
                if row["mode"].startswith("gap"):
                    row["reached"] = row["gap"] <= GAP
        return rows

    def rows(self, record: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
        # a tight answer first, for the lower bound everybody is held against; not timed
        self.judge.raise_bound(self.C, self.metrimax.fit(GAP / 10, limit=self.limit).bound)
        own = registry()["metrimax"]
        yield self._timed(own, self.metrimax, "gap", own.default)
        yield self._two_threads()
        for name, adapter in self.others.items():
            try:
                prepared = adapter.prepare(self.judge.task, self.judge.name, self.C)
                row = self._timed(adapter, prepared, "default", adapter.default)
            except Exception as error:  # what a competitor cannot do is its result, and does not stop the others
                failure = f"{type(error).__name__}: {error}"
                yield self._head() | {"competitor": name, "mode": "default", "failure": failure}
                continue
            yield row
            if np.isnan(row["objective"]):
                continue
            yield self._match(f"default {name}", row["objective"])
            row = self._to_gap(adapter, prepared)
            yield row
            yield self._match(f"gap {name}", row["objective"])
        if record is not None:
            yield self._record(record)
            if "primal" in record:
                yield self._match("recorded SVM-perf", record["primal"])
        if (self.judge.task.name, self.judge.name) in ESTIMATED and "SVM-perf" not in self.others:
            estimate = self._estimate()
            if np.isfinite(estimate["cpu_seconds"]):  # there is a record to go by
                yield estimate

    def _to_gap(self, adapter: Any, prepared: Any) -> dict[str, Any]:
        for setting in adapter.settings:
            if self.judge.gap(prepared.fit(setting).w, self.C) <= GAP:
                break
        return self._timed(adapter, prepared, "gap", setting)

    def _match(self, name: str, objective: float) -> dict[str, Any]:
        target = objective / self.weight * (1 + 1e-12)

        def fit() -> Answer:
            return self.metrimax.fit(1e-9, target=target, limit=self.limit)

        row = self._row(registry()["metrimax"], f"match {name}", "", *timed(fit, self.repeats))
        return row | {"target": objective, "reached": row["objective"] <= objective * (1 + 1e-6)}

    def _two_threads(self) -> dict[str, Any]:
        own = registry()["metrimax"]
        prepared = own.prepare(self.judge.task, self.judge.name, self.C, n_threads=2)
        return self._timed(own, prepared, "gap, 2 threads", own.default)

    def _timed(self, adapter: Any, prepared: Any, mode: str, setting: Any) -> dict[str, Any]:
        row = self._row(adapter, mode, setting, *timed(lambda: prepared.fit(setting), self.repeats))
        return row | {"reached": row["gap"] <= GAP if mode.startswith("gap") else ""}

    def _row(self, adapter: Any, mode: str, setting: Any, answer: Answer, timing: Timing) -> dict[str, Any]:
        if answer.bound is not None:
            self.judge.raise_bound(self.C, answer.bound)
        known = answer.w is not None
        cpu = timing.cpu_seconds if answer.cpu_seconds is None else answer.cpu_seconds
        test = answer.test_score if answer.test_score is not None else float("nan")
        return self._head() | {
            "competitor": adapter.name,
            "version": adapter.version(),
            "mode": mode,
            "setting": setting,
            "cpu_seconds": cpu,
            "wall_seconds": timing.wall_seconds,
            "repeats": timing.repeats,
            "cpu_spread": timing.cpu_spread,
            "n_iter": answer.n_iter,
            "n_passes": answer.n_passes,
            "objective": self.judge.objective(answer.w, self.C) if known else float("nan"),
            "gap": self.judge.gap(answer.w, self.C) if known else float("nan"),
            "test_score": self.judge.test_score(answer.w) if known else test,
            "target": "",
            "reached": "",
        }

    def _record(self, record: dict[str, Any]) -> dict[str, Any]:
        objective = record.get("primal", float("nan"))
        return self._head() | {
            "competitor": "SVM-perf",
            "version": "3.00",
            "mode": "recorded",
            "setting": record["eps_percent"],
            "cpu_seconds": record.get("cpu_seconds", record.get("not_finished_in_seconds")),
            "n_iter": record.get("iterations"),
            "objective": objective,
            "gap": (objective - self.judge.bound(self.C)) / self.weight,
            "reached": "primal" in record,
        }

    def _estimate(self) -> dict[str, Any]:
        answer = self.metrimax.fit(GAP, limit=self.limit, solver="cutting_plane")
        if self.judge.name == "roc_area":
            unit, price, count = "non-zero", ns_per_nonzero("roc_area"), nonzeros(self.judge.task.X)
        else:
            positives, n = int(self.judge.task.y.sum()), self.judge.task.n
            unit, price, count = "table", NS_PER_CELL, (positives + 1) * (n - positives + 1)
        gap = self.judge.gap(answer.w, self.C)
        return self._head() | {
            "competitor": "SVM-perf",
            "version": "3.00",
            "mode": "estimated",
            "setting": f"{price:.3g} ns/{unit}",
            "cpu_seconds": 1e-9 * price * count * answer.n_iter,
            "n_iter": answer.n_iter,
            "gap": gap,
            "reached": gap <= GAP,  # if not, more iterations were to come and the estimate is too low
        }

    def _head(self) -> dict[str, Any]:
        task = self.judge.task
        return {
            "task": task.name,
            "n": task.n,
            "p": task.X.shape[1],
            "positives": int(task.y.sum()),
            "measure": self.judge.name,
            "C": self.C,
            "c": self.weight / 100,
        }


def measure(
    smoke: bool = False, repeats: int = 3, tasks: Set[str] = frozenset(), measures: Set[str] = frozenset(), **_: Any
) -> list[dict[str, Any]]:
    """The table, of some tasks and measures if given; a data set that is not there is named on standard error."""
    rows: list[dict[str, Any]] = []
    record = {} if smoke else recorded()
    for name, own, values in SMOKE if smoke else CASES:
        if tasks and name.partition(":")[0] not in tasks and name not in tasks:
            continue
        try:
            task = data.load(name)
        except data.MissingData as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        for which in (one for one in own if not measures or one in measures):
            judge = Judge(task, which)
            for value in values:
                c = float(value[1:]) if isinstance(value, str) else None
                C = value if c is None else judge.C_of_svmperf(c)
                comparison = Comparison(judge, C, repeats, limit=1.0 if smoke else 20.0)
                found = comparison.settled(record.get((name, which, c)) if c else None)
                rows += found
                print(f"  {name} {which} C={C:.4g}: " + ", ".join(_brief(row) for row in found), flush=True)
    return rows


def _brief(row: dict[str, Any]) -> str:
    took = f"{row['cpu_seconds']:.3g} s" if "cpu_seconds" in row else row["failure"]
    return f"{row['competitor']} [{row['mode']}] {took}"
