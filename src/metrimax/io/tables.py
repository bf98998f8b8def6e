"""Read tables, CSV and Parquet: find the columns of features, labels and groups, and parse their cells."""

from __future__ import annotations

import csv
import io
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from metrimax.io.compressed import read_bytes
from metrimax.io.files import FileError, Name
from metrimax.io.labels import as_groups, as_labels
from metrimax.io.limits import Limit, check_expansion
from metrimax.protocols import Array, Vector

USUAL_TARGETS = ("label", "target", "class", "y")
"""Column names taken for the labels of a table when none is given."""
GROUPS = "qid"
"""The column, or array, taken for the groups of examples."""

_MISSING = ("", "?", "-", "na", "n/a", "nan", "null", "none")
"""What stands for a missing value, and is no name of a column."""


class Table(NamedTuple):
    """Features, labels and groups, each of the latter None where there are none; names where there is a header."""

    X: Vector
    labels: Array | None
    groups: Array | None
    names: list[str] | None


class Columns(NamedTuple):
    """The numbers of the columns of labels and groups, None where there are none, and of the features."""

    label: int | None
    group: int | None
    features: list[int]


def read_csv(
    path: Name,
    target: str | None,
    names: list[str] | None,
    n_features: int | None,
    labelled: bool,
    limit: Limit = None,
) -> Table:
    """Comma-separated values; see `metrimax.io.data.load_data`."""
    try:
        text = read_bytes(path, limit=limit).tobytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path}: expected UTF-8 text, got a bad byte at position {error.start}: save the table as UTF-8"
        ) from error
    if "\0" in text:
        raise FileError(f"{path}: expected UTF-8 text, got characters of value 0, as UTF-16 has them: save it as UTF-8")
    rows, lines = _split(path, text)
    header = rows[0] if _is_header(rows, target, names) else None
    if header is not None:
        rows, lines = rows[1:], lines[1:]
        _check_names(path, header)
    width = len(header) if header is not None else len(rows[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise FileError(f"{path}: line {line}: expected {width} values, got {len(row)}")
    columns = header if header is not None else [str(k) for k in range(width)]
    label, group, taken = _choose(path, columns, target, names, n_features)
    unnamed = [k for k in taken if not columns[k].strip()]
    if unnamed and names is None:
        raise FileError(
            f"{path}: expected a name for every column, got none for column {unnamed[0]} (from 0): give it one if it "
            "is a feature; numbers of rows are none (pandas leaves them out with index=False, R with row.names=FALSE)"
        )
    X: Vector | None
    try:
        X = np.array([[row[k] for k in taken] for row in rows], dtype=np.float64).reshape(len(rows), len(taken))
    except ValueError:
        X = None
    underscored = "_" in text and any("_" in row[k] for row in rows for k in taken)
    if X is None or underscored or not np.isfinite(X).all():
        _check_cells(path, rows, lines, taken, columns)
    if X is None:
        raise FileError(f"{path}: expected finite numbers")
    labels = None if label is None or not labelled else _numbers_or_strings([row[label] for row in rows])
    groups = None if group is None or not labelled else np.array([row[group] for row in rows], dtype=str)
    own = [columns[k] for k in taken] if header is not None else None
    return Table(X, as_labels(path, labels, lines), as_groups(path, groups, lines), own)


def _split(path: Name, text: str) -> tuple[list[list[str]], list[int]]:
    """The rows that are not blank, and the lines they end on."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows, lines = [], []
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise FileError(f"{path}: line {reader.line_num}: {error}") from error
    if not rows:
        raise FileError(f"{path}: expected rows of comma-separated values, got an empty file")
    if len(rows[0]) == 1 and any(mark in rows[0][0] for mark in ";\t|"):
        raise FileError(
            f"{path}: expected comma-separated values, got {rows[0][0]!r:.80} as the first row: write the table with "
            "commas between the values, and points in numbers"
        )
    return rows, lines


def _is_header(rows: list[list[str]], target: str | None, names: list[str] | None) -> bool:
    """Whether the first row holds names.

    It does where one of them, or all of the model's, is known, where one stands above numbers, or where its numbers are
    those of the columns, from 0, and its names do not occur again.
    """
    first, below = rows[0], rows[1:]
    if not any(map(_is_number, first)) or (names and set(names) <= set(first)):
        return True
    if target is not None and target in first and not _is_number(target):  # a number may be one of the values
        return True
    others = [k for k, cell in enumerate(first) if not _is_number(cell) and cell.strip().lower() not in _MISSING]
    if not below or not others:
        return False
    if any(all(k < len(row) and _is_number(row[k]) for row in below) for k in others):
        return True
    counted = all(cell == str(k) for k, cell in enumerate(first) if k not in others)
    return counted and not any(first[k] in row[k : k + 1] for row in below for k in others)


def _check_names(path: Name, columns: list[str]) -> None:
    twice = sorted({one for one, other in pairwise(sorted(columns)) if one == other})
    if twice:
        names = ", ".join(map(repr, twice[:20]))
        raise FileError(f"{path}: expected columns of different names, got {names} more than once: rename them")


def _choose(
    path: Name, columns: list[str], target: str | None, names: list[str] | None, n_features: int | None
) -> Columns:
    """What the columns are, given the names of the features or, without a header, how many there are."""
    label = _label(path, columns, target, names, n_features)
    group = next((k for k, column in enumerate(columns) if column.strip().lower() == GROUPS and k != label), None)
    if names is None:
        return Columns(label, group, [k for k in range(len(columns)) if k not in (label, group)])
    missing = [name for name in names if name not in columns]
    if missing:
        raise FileError(f"{path}: expected the model's columns, but {', '.join(missing[:20])} not there")
    return Columns(label, group, [columns.index(name) for name in names])


def _label(
    path: Name, columns: list[str], target: str | None, names: list[str] | None, n_features: int | None
) -> int | None:
    """The number of the column of labels; None where the features are known and it is missing."""
    usual = [k for k, column in enumerate(columns) if column.strip().lower() in USUAL_TARGETS]
    if names is None and len(columns) == n_features and not usual and (target is None or target.isdecimal()):
        return None
    if target is None:
        if len(usual) == 1:
            return usual[0]
        if names is not None:
            return None
        raise FileError(
            f"{path}: which column holds the labels? Give --target NAME (or its number, from 0); the columns are "
            + ", ".join(columns[:50])
        )
    if target in columns:
        return columns.index(target)
    at = int(target) if target.isdecimal() and int(target) < len(columns) else None
    if names is not None:
        return None if at is None or columns[at] in names else at  # in another order that number may be a feature's
    if at is None:
        raise FileError(f"{path}: no column {target!r}: expected one of {', '.join(columns)}, or a number from 0")
    return at


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # which Python allows between digits: 1_2 is a name


def _check_cells(path: Name, rows: list[list[str]], lines: list[int], taken: list[int], columns: list[str]) -> None:
    for row, line in zip(rows, lines, strict=True):
        for k in taken:
            if not _is_number(row[k]) or not np.isfinite(float(row[k])):
                raise FileError(
                    f"{path}: line {line}, column {columns[k]!r}: expected a finite number, got {row[k]!r}; "
                    "remove the column, or encode it as numbers"
                )


def _numbers_or_strings(cells: list[str]) -> Array:
    return np.array(cells, dtype=np.float64) if all(map(_is_number, cells)) else np.array(cells, dtype=str)


def _is_plain(column: str) -> bool:
    """Whether a column name stands for neither labels nor groups."""
    return column.strip().lower() not in (*USUAL_TARGETS, GROUPS)


def _index_of(schema: Any) -> list[str]:
    """The columns that were the index of a frame of pandas: numbers of rows, as a rule, and never features."""
    try:
        about = schema.pandas_metadata
    except ValueError:  # no JSON: another program's
        return []
    names = about.get("index_columns") if isinstance(about, dict) else None
    return [name for name in names if name in schema.names] if isinstance(names, list) else []


def read_parquet(
    path: Name,
    target: str | None,
    names: list[str] | None,
    n_features: int | None,
    labelled: bool,
    limit: Limit = None,
) -> Table:
    """A Parquet file; the arguments are those of `read_csv`."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise FileError(f"{path}: Parquet needs the package pyarrow: pip install 'metrimax[parquet]'") from None
    raw = read_bytes(path, limit=limit).tobytes()
    try:
        about = parquet.read_metadata(io.BytesIO(raw))
        pages = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
        needed = max(8 * about.num_rows * about.num_columns, pages)
        check_expansion(path, f"{about.num_rows} rows of {about.num_columns} columns", needed, len(raw), limit)
        _check_names(path, [str(name) for name in parquet.read_schema(io.BytesIO(raw)).names])
        table = parquet.read_table(io.BytesIO(raw))
    except FileError:
        raise
    except Exception as error:  # pyarrow has its own kinds, and those of Python: UnicodeDecodeError, MemoryError ...
        raise FileError(f"{path}: damaged, or no Parquet file ({error})") from error
    index = [name for name in _index_of(table.schema) if name not in (target, *(names or ())) and _is_plain(name)]
    columns = [str(name) for name in table.schema.names if name not in index]
    table = table.select(columns)
    label, group, taken = _choose(path, columns, target, names, n_features)
    X = np.empty((table.num_rows, len(taken)))
    for to, k in enumerate(taken):
        try:
            values = table.column(k).to_numpy()
            if values.dtype.kind in "mM":
                raise TypeError("dates and durations are numbers to NumPy")
            X[:, to] = values
        except (ValueError, TypeError) as error:
            raise FileError(f"{path}: column {columns[k]!r}: expected numbers, got {table.schema.types[k]}") from error
        if not np.isfinite(X[:, to]).all():
            raise FileError(f"{path}: column {columns[k]!r} holds missing or infinite values: replace them first")
    labels, groups = (None if k is None or not labelled else table.column(k).to_numpy() for k in (label, group))
    return Table(X, as_labels(path, labels), as_groups(path, groups), [columns[k] for k in taken])
