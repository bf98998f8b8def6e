"""One harness for all experiments: data set x protocol x method -> rows of a CSV file.

A program is a module with a `Program`: its name, a function that lists its tasks, and a function that writes its page
and figures from the rows. This is a whole one::

    from experiments.harness import Options, Program, Task

    def tasks(options: Options) -> Iterator[Task]:
        for data in ("usps:3", "ijcnn1"):
            for method in ("f1", "error"):
                key = {"data": data, "protocol": "split", "method": method, "seed": 0}
                yield Task(key, partial(run, method), prepare=partial(load, data, options.data))

    def run(method: str, split: Any) -> Iterator[Row]:        # in a worker process
        X, y, X_test, y_test = split
        yield {"score": MeasureSVC(method, n_threads=1).fit(X, y).score(X_test, y_test)}

    def page(rows: list[Row], options: Options) -> None:      # what came from the CSV: all values are strings
        write(options.pages / "mine.md", "# Mine\\n" + markdown(["data", "score"], ...))

    main = Program("mine", tasks, page).main                  # and its name in `PROGRAMS` of experiments/__main__.py

A *task* is what is computed, timed and stored as a whole. Its key, the first columns of its rows, says which one it is:
a task with a row in ``<out>/<name>.csv`` is not computed again, so an interrupted run goes on where it was. To compute
something anew, delete its rows (or the file). To every row the harness adds ``cpu_seconds`` and ``wall_seconds`` of
its task (unless the row brings its own), and ``versions``. `prepare` reads the data and is not timed; it is called in
the worker, so let it cache (`functools.lru_cache`), and list tasks on the same data one after the other.

The file is written beside and renamed after every task. A task that fails is reported at the end, with its traceback,
and does not stop the others; the exit status is then 1 and no page is written.
"""

from __future__ import annotations

import argparse
import csv
import functools
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, delayed

from experiments.data import DATA
from metrimax.training.progress import ProgressLine

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
PAGES = ROOT / "docs" / "results"
Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """What is computed, timed and stored as a whole: ``run(prepare())`` gives the rows."""

    key: Mapping[str, Any]
    run: Callable[..., Iterable[Row]]
    prepare: Callable[[], Any] | None = None


class Options(NamedTuple):
    """What the command line said."""

    data: Path = DATA  #: the folder of the data sets; it need not exist with ``quick``
    out: Path = RESULTS  #: where the CSV files are
    pages: Path = PAGES  #: where pages are written, their figures in ``figures/``
    quick: bool = False  #: a run of seconds, on small parts of the data, or on bundled data where there is none
    jobs: int = 1

    @property
    def have_data(self) -> bool:
        return self.data.is_dir()


class Table:
    """The rows of a CSV file, kept on disk after every `add`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        if path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                self.rows = list(csv.DictReader(file))

    def has(self, key: Mapping[str, Any]) -> bool:
        """Whether some row has these values."""
        wanted = {name: text(value) for name, value in key.items()}
        return any(all(row.get(name) == value for name, value in wanted.items()) for row in self.rows)

    def add(self, rows: Iterable[Row]) -> None:
        """Append the rows; the file is replaced by a complete one or not at all."""
        self.rows += [{name: text(value) for name, value in row.items()} for row in rows]
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        part = self.path.with_suffix(".part")
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        part.replace(self.path)


@dataclass(frozen=True)
class Program:
    """A table or figure: its tasks, and the page that is written from their rows."""

    name: str
    tasks: Callable[[Options], Iterable[Task]]
    page: Callable[[list[Row], Options], None]

    def run(self, options: Options, *, page_only: bool = False) -> int:
        """Compute what is missing and write the page; returns the number of tasks that failed."""
        path = options.out / f"{self.name}.csv"
        if options.quick and not page_only:  # a check that all still works, so nothing is taken from an earlier one
            path.unlink(missing_ok=True)
        table = Table(path)
        failed = 0
        if not page_only:
            todo = [task for task in self.tasks(options) if not table.has(task.key)]
            failed = self._compute(todo, table, options.jobs)
        if not failed:
            self.page(table.rows, options)
        return failed

    def _compute(self, todo: list[Task], table: Table, jobs: int) -> int:
        failures: list[tuple[Task, str]] = []
        began = time.monotonic()
        with ProgressLine(self.name) as line:
            done = Parallel(n_jobs=jobs, return_as="generator_unordered")(
                delayed(compute)(k, task) for k, task in enumerate(todo)
            )
            for count, (k, rows, error) in enumerate(done, start=1):
                if error:
                    failures.append((todo[k], error))
                else:
                    table.add(rows)
                minutes = (time.monotonic() - began) / 60
                line.show(f"{count} of {len(todo)} tasks, {len(failures)} failed, {minutes:.1f} min")
        for task, error in failures:
            sys.stderr.write(f"{self.name}: failed: {dict(task.key)}\n{error}\n")
        return len(failures)

    def main(self, argv: Sequence[str] | None = None) -> None:
        """The command line of one program."""
        parser = argparse.ArgumentParser(prog=f"python -m experiments {self.name}")
        add_options(parser)
        parser.add_argument("--page", action="store_true", help="only write the page, from the CSV file")
        args = parser.parse_args(argv)
        options = options_of(args)
        if not (options.quick or args.page or options.have_data):
            parser.error(f"no folder {options.data}: pass --data, or set METRIMAX_DATA, to where the data sets are")
        if failed := self.run(options, page_only=args.page):
            raise SystemExit(f"{self.name}: {failed} tasks failed; run again to repeat them")


def compute(k: int, task: Task) -> tuple[int, list[Row], str]:
    """The number of the task, its rows, and the traceback if it failed."""
    began = cpu_seconds()
    try:
        data = () if task.prepare is None else (task.prepare(),)
        cpu, wall = time.process_time(), time.perf_counter()
        rows = list(task.run(*data))
        spent = {"cpu_seconds": time.process_time() - cpu, "wall_seconds": time.perf_counter() - wall}
    except Exception:  # whatever it was: the others go on, and the user reads it at the end
        return k, [], traceback.format_exc()
    if not rows:
        return k, [], "the task gave no rows, so it could not be told from one that was never run"
    whole = {"task_cpu_seconds": cpu_seconds() - began, "versions": versions()}
    return k, [{**task.key, **spent, **row, **whole} for row in rows], ""


def cpu_seconds() -> float:
    """CPU seconds of this process, and of those that it started and that have ended."""
    return sum(os.times()[:4])


@functools.cache
def versions() -> str:
    names = ("metrimax", "scikit-learn", "numpy", "scipy")
    return " ".join([f"python {platform.python_version()}", *(f"{name} {version(name)}" for name in names)])


def text(value: Any) -> str:
    """A value as it stands in the CSV file."""
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f"{value:.6g}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that all programs share."""
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data sets")
    parser.add_argument("--out", type=Path, help="where CSV files (and, if given, pages) are written")
    parser.add_argument("--quick", action="store_true", help="a run of seconds, written to build/experiments")
    parser.add_argument("--jobs", type=int, default=1, help="tasks at a time")


def options_of(args: argparse.Namespace) -> Options:
    out = args.out or (ROOT / "build" / "experiments" if args.quick else None)
    where = {} if out is None else {"out": out, "pages": out}
    return Options(data=args.data, quick=args.quick, jobs=args.jobs, **where)


def write(path: Path, content: str) -> None:
    """A text file, written beside and renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(content, encoding="utf-8")
    part.replace(path)


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; numbers of a column are aligned to the right by the reader's own means."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def select(rows: Iterable[Row], **values: Any) -> Iterator[Row]:
    """The rows with these values."""
    wanted = {name: text(value) for name, value in values.items()}
    return (row for row in rows if all(row.get(name) == value for name, value in wanted.items()))


class Spent(NamedTuple):
    """What the rows of a program say of its cost."""

    tasks: int
    seconds: float  #: CPU seconds: of whole tasks where they are recorded, or else what the rows say of their own
    whole: int  #: tasks whose whole CPU time is recorded
    unknown: int  #: rows without any record
    clock: float  #: the same where whole tasks are recorded, or else their seconds by the clock, data read before


def spent(rows: Iterable[Row]) -> Spent:
    """How many tasks have written these rows, and their CPU seconds.

    Rows of a task share its wall-clock seconds. Where they have CPU seconds of their own and there is none of the whole
    task, these are added up; what is searched and prepared before a row's own training is then missing. By the clock
    it is not, but on a busy machine that is more than the CPU time.
    """
    whole: dict[str, float] = {}
    parts: dict[str, set[float]] = {}
    unknown = 0
    for row in rows:
        task = row.get("wall_seconds")
        if task and row.get("task_cpu_seconds"):
            whole[task] = float(row["task_cpu_seconds"])
        elif task and row.get("cpu_seconds"):
            parts.setdefault(task, set()).add(float(row["cpu_seconds"]))
        else:
            unknown += 1
    known, own = sum(whole.values()), {task: sum(some) for task, some in parts.items()}
    clock = known + sum(max(float(task), seconds) for task, seconds in own.items())
    return Spent(len(whole) + len(own), known + sum(own.values()), len(whole), unknown, clock)


def data_frame(rows: Iterable[Row], **values: Any) -> Any:
    """The rows with these values as a data frame: numbers are numbers, and columns without a value are left out."""
    import pandas as pd  # which few pages need

    chosen = pd.DataFrame(select(rows, **values)).to_csv(index=False)
    return pd.read_csv(StringIO(chosen)).dropna(axis=1, how="all")
