"""Input and output of the commands: data, tables, JSON, notes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from metrimax.cli.main import UsageError
from metrimax.io.data import Data, file_kind
from metrimax.io.dataset import load
from metrimax.io.files import FileError, same_file
from metrimax.io.folders import would_be_part
from metrimax.io.labels import visible
from metrimax.io.limits import parse_size
from metrimax.measure import get_measure, ranking_measure
from metrimax.protocols import Measure
from metrimax.training.progress import ProgressLine

OTHER_TABLES = (".arff", ".dta", ".feather", ".json", ".jsonl", ".sas7bdat", ".tsv", ".xls", ".xlsx")
"""Endings of tables that are not read."""

SHOWN = 10
"""How many entries of a list are shown on a terminal."""


def emit(arguments: argparse.Namespace, results: dict[str, Any], *, aside: bool = False) -> None:
    """Write results as JSON or as lines ``name: value``, to standard output, or to standard error if ``aside``."""
    stream = sys.stderr if aside else sys.stdout
    if arguments.json:
        stream.write(json.dumps(results, allow_nan=False) + "\n")
        return
    width = max((len(name) for name in results), default=0)
    for name, value in results.items():
        stream.write(visible(f"{name + ':':<{width + 2}}{_plain(value)}") + "\n")


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        shown = ", ".join(map(_plain, value[:SHOWN]))
        return shown if len(value) <= SHOWN else f"{shown}, ... ({len(value)} in all; --json shows them)"
    return str(value)


def note(arguments: argparse.Namespace, text: str) -> None:
    """A remark to standard error."""
    if not arguments.quiet:
        sys.stderr.write(visible(f"metrimax {arguments.command}: {text}", "\n") + "\n")


def read(arguments: argparse.Namespace, **options: Any) -> Data:
    """DATA: a file in memory, or a folder of shards."""
    dask = getattr(arguments, "dask", None)
    if dask is not None:
        if not Path(arguments.data).is_dir():
            raise UsageError(
                f"--dask reads a folder of shards, and {arguments.data} is none: make one with 'metrimax convert'"
            )
        options["dask"] = True if dask == "local" else dask
    if arguments.command == "predict":
        options["labels"] = False  # not needed, and rows to be predicted have none
    memory = size("--memory", arguments.memory)
    with ProgressLine("reading") as line, _hinting(arguments):
        data = load(
            arguments.data,
            memory=memory,
            kind=arguments.format,
            n_threads=arguments.threads,
            progress=None if arguments.quiet else line.show,
            **options,
        )
    for remark in data.remarks:
        note(arguments, remark)
    return data


@contextmanager
def _hinting(arguments: argparse.Namespace) -> Iterator[None]:
    """Add to an error in the first line how the file was read, because its name may not tell its format."""
    try:
        yield
    except FileError as error:
        taken = arguments.format is None and file_kind(arguments.data) == "svmlight"
        if taken and ": line 1, " in str(error) and not Path(arguments.data).is_dir():
            ending = Path(arguments.data).suffix.lower()
            hint = "for a table give --format csv"
            if ending in OTHER_TABLES:
                hint = f"write a table of the kind {ending} as CSV, with to_csv(FILE, index=False) of pandas"
            raise FileError(f"{error}; it was read as svmlight text: {hint}") from error
        raise


def size(option: str, text: str) -> int:
    """The bytes that an option gives."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def check_apart(name: str, output: str, **inputs: str) -> None:
    """Raise if the file to write is one that is read, or would lie in a folder that is read."""
    for what, path in inputs.items():
        if same_file(path, output):
            raise UsageError(f"{output} would take the place of {what}: give {name} another name")
        if would_be_part(Path(output), Path(path)):
            raise UsageError(f"{output} would be one of the files of {what}: give {name} a place outside that folder")


def positive_number(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise UsageError(f"expected a finite {name} > 0, got {value}")


def check_threads(arguments: argparse.Namespace) -> None:
    if arguments.threads is not None and arguments.threads < 1:
        raise UsageError(f"expected --threads of at least 1, got {arguments.threads}")


def parse_measure(text: str, *, groups: bool = False) -> Measure:
    """The measure ``name``, ``name@k`` or ``name:key=value,key=value``; with groups, that of one group."""
    try:
        return (ranking_measure if groups else get_measure)(text)
    except TypeError as error:
        raise UsageError(f"--measure {text}: a parameter has an impossible value ({error})") from None
    except ValueError as error:
        raise UsageError(f"--measure {text}: {error}; 'metrimax measures' lists them") from None
