"""Read tables, CSV and Parquet: find the columns of features, labels and groups, and parse their cells."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metrimax import _kernels
from metrimax.designs.linear import available_threads
from metrimax.io.columns import MISSING, Column, Learn, Raw, apply, feature_names, is_number, learn
from metrimax.io.compressed import Bytes, blocks, read_bytes, stored
from metrimax.io.files import FileError, Name
from metrimax.io.labels import as_groups, as_labels
from metrimax.io.limits import Limit, check_expansion
from metrimax.protocols import Array, Vector

USUAL_TARGETS = ("label", "target", "class", "y")
"""Column names taken for the labels of a table when none is given."""
GROUPS = "qid"
"""The column, or array, taken for the groups of examples."""


class Wanted(NamedTuple):
    """What is to be read of a table: the arguments of `metrimax.io.data.load_data`."""

    target: str | None = None
    names: list[str] | None = None
    n_features: int | None = None
    labelled: bool = True
    limit: Limit = None
    columns: Sequence[Column] | Learn | None = None
    drop: Sequence[str] = ()
    n_threads: int | None = None

    @property
    def known(self) -> Sequence[Column] | None:
        """How a model treats the columns."""
        return None if isinstance(self.columns, Learn) else self.columns


class Table(NamedTuple):
    """Features, labels and groups, each of the latter None where there are none; names where there is a header.

    ``columns`` is how text, gaps and numbers were treated, None where all had to be numbers; ``remarks`` says so.
    """

    X: Vector
    labels: Array | None
    groups: Array | None
    names: list[str] | None
    columns: list[Column] | None = None
    remarks: Sequence[str] = ()


class Columns(NamedTuple):
    """The numbers of the columns of labels and groups, None where there are none, and of the features."""

    label: int | None
    group: int | None
    features: list[int]


def read_csv(path: Name, wanted: Wanted) -> Table:
    """Comma-separated values: plain numbers piece by piece, any other table as a whole."""
    again = path != "-" and Path(path).is_file()  # whether it can be read twice
    raw = None if again else read_bytes(path, limit=wanted.limit)
    table = _read_plain(path, wanted, blocks(path, limit=wanted.limit) if raw is None else iter([raw]))
    return table or _read_any(path, wanted, (read_bytes(path, limit=wanted.limit) if raw is None else raw).tobytes())


def _read_plain(path: Name, wanted: Wanted, pieces: Iterator[Bytes]) -> Table | None:
    """A table of numbers below a plain header or none, whose labels may be names.

    None for any other table, and for one in which something is wrong: `_read_any` says what.
    """
    if wanted.known is not None and any(column.values is not None for column in wanted.known):
        return None
    try:
        first = next(pieces, np.empty(0, np.uint8))
        head = first.tobytes().partition(b"\n")[0]
        row = next(csv.reader([head.decode("utf-8-sig").removesuffix("\r")], strict=True))
        named = _surely_header(row, wanted.target, wanted.names)
        if not row or b"\0" in head or (not named and not all(map(is_number, row))):
            return None
        columns = row if named else [str(k) for k in range(len(row))]
        _check_names(path, columns)
        label, group, taken = _choose(path, columns, wanted)
        if (wanted.drop and not named) or (wanted.names is None and not all(columns[k].strip() for k in taken)):
            return None
        texts = [k for k in range(len(row)) if k not in taken]
        reader = _kernels.NumberReader(
            np.isin(np.arange(len(row)), texts).astype(np.uint8),
            n_threads=available_threads(wanted.n_threads),
            text_size=stored(path),
        )
        begin = len(head) + 1 if named else 3 if head.startswith(b"\xef\xbb\xbf") else 0
        if not all(map(reader.feed, chain([first[begin:]], pieces))):
            return None
        n, numbers, joined, ends = reader.finish()
        if n == 0:
            return None
        X = numbers.reshape(n, len(taken))
        if taken != sorted(taken):
            X = X[:, np.argsort(np.argsort(taken))]
        raw = joined.tobytes()
        own, qid = (None if k is None else _cells(raw, ends, texts.index(k), len(texts)) for k in (label, group))
        truth = _truth(path, wanted, own, qid)
        if wanted.columns is None:
            return Table(X, *truth, [columns[k] for k in taken] if named else None)
        raws = [Raw(columns[k], X[:, at], None, str) for at, k in enumerate(taken)]  # no message names a row of numbers
        return _treated(path, wanted, raws, truth, (n, stored(path) or 8 * X.size), named=named, table=X)
    except (FileError, csv.Error, UnicodeDecodeError):
        return None


def _cells(raw: bytes, ends: Array, column: int, width: int) -> list[str]:
    """One of ``width`` columns of text."""
    places = zip(ends[column:-1:width].tolist(), ends[column + 1 :: width].tolist(), strict=True)
    return [raw[begin:end].decode() for begin, end in places]


def _truth(
    path: Name, wanted: Wanted, labels: list[str] | None, groups: list[str] | None, lines: Sequence[int] | None = None
) -> tuple[Any, Any]:
    """Labels and groups from their cells, where they are wanted."""
    own = None if labels is None or not wanted.labelled else _numbers_or_strings(labels)
    qid = None if groups is None or not wanted.labelled else np.array(groups, dtype=str)
    return as_labels(path, own, lines), as_groups(path, qid, lines)


def _read_any(path: Name, wanted: Wanted, raw: bytes) -> Table:
    """Any table, from all of its text."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path}: expected UTF-8 text, got a bad byte at position {error.start}: save the table as UTF-8"
        ) from error
    if "\0" in text:
        raise FileError(f"{path}: expected UTF-8 text, got characters of value 0, as UTF-16 has them: save it as UTF-8")
    rows, lines = _split(path, text)
    header = rows[0] if _is_header(rows, wanted.target, wanted.names) else None
    if header is not None:
        rows, lines = rows[1:], lines[1:]
        _check_names(path, header)
    width = len(header) if header is not None else len(rows[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise FileError(f"{path}: line {line}: expected {width} values, got {len(row)}")
    columns = header if header is not None else [str(k) for k in range(width)]
    if wanted.drop and header is None:
        raise FileError(f"{path}: --drop needs a header, by whose names later tables are read: give the table one")
    label, group, taken = _choose(path, columns, wanted)
    unnamed = [k for k in taken if not columns[k].strip()]
    if unnamed and wanted.names is None:
        raise FileError(
            f"{path}: expected a name for every column, got none for column {unnamed[0]} (from 0): give it one if it "
            "is a feature; numbers of rows are none (pandas leaves them out with index=False, R with row.names=FALSE): "
            f"leave them out with --drop {unnamed[0]}"
        )
    X: Vector | None
    try:
        X = np.array([[row[k] for k in taken] for row in rows], dtype=np.float64).reshape(len(rows), len(taken))
    except ValueError:
        X = None
    underscored = "_" in text and any("_" in row[k] for row in rows for k in taken)
    numeric = X is not None and not underscored and bool(np.isfinite(X).all())
    own, qid = (None if k is None else [row[k] for row in rows] for k in (label, group))
    truth = _truth(path, wanted, own, qid, lines)
    names = [columns[k] for k in taken] if header is not None else None
    if wanted.columns is None:
        if X is None or not numeric:
            _check_cells(path, rows, lines, taken, columns)
            raise FileError(f"{path}: expected finite numbers")
        return Table(X, *truth, names)
    raws = []
    for at, k in enumerate(taken):
        if X is not None and numeric:
            cells = [row[k].strip() for row in rows] if wanted.known and wanted.known[at].values is not None else None
            raws.append(Raw(columns[k], X[:, at], cells, lambda row: f"line {lines[row]}"))
        else:
            raws.append(_column(path, columns[k], [row[k] for row in rows], lines))
    return _treated(path, wanted, raws, truth, (len(rows), len(raw)), named=header is not None)


def _column(path: Name, name: str, given: list[str], lines: list[int]) -> Raw:
    """A column of CSV: numbers, if all cells that are not empty are some."""
    cells = ["" if cell.strip().lower() in MISSING else cell.strip() for cell in given]
    if not all(not cell or is_number(cell) for cell in cells):
        return Raw(name, None, cells, lambda row: f"line {lines[row]}")
    numbers = np.array([float(cell) if cell else np.nan for cell in cells])
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise FileError(
            f"{path}: line {lines[infinite[0]]}, column {name!r}: expected a finite number, got "
            f"{cells[infinite[0]]!r}: correct it, or leave the cell empty"
        )
    return Raw(name, numbers, cells, lambda row: f"line {lines[row]}")


def _treated(
    path: Name,
    wanted: Wanted,
    raws: list[Raw],
    truth: tuple[Any, Any],
    size: tuple[int, int],
    *,
    named: bool = True,
    table: Vector | None = None,
) -> Table:
    """The columns as features, treated as a model treats them or as the table itself suggests.

    ``size`` is the number of rows, and that of the bytes of the file; ``table`` as for `apply`.
    """
    known = wanted.known
    said: list[str] = []
    if known is None:
        scale = isinstance(wanted.columns, Learn) and wanted.columns.scale
        known, said = learn(path, raws, scale, named)
        kept = {column.name for column in known}
        raws = [raw for raw in raws if raw.name in kept]
    if len(raws) != len(known):
        raise FileError(f"{path}: expected {len(known)} features, those of the model, got {len(raws)}")
    names = feature_names(known)
    rows, stored = size
    check_expansion(path, f"{rows} rows of {len(names)} features", 8 * rows * len(names), stored, wanted.limit)
    X, more = apply(path, known, raws, rows, table)
    if wanted.names is None and wanted.known is not None:  # a model of a table without header
        names = [raw.name for raw in raws]
    return Table(X, *truth, names if named else None, list(known), [*said, *more])


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
    marks = [mark for mark in ";\t|" if mark in rows[0][0]]
    if len(rows[0]) == 1 and marks:
        decimal = ", decimal=','" if marks[0] == ";" else ""
        raise FileError(
            f"{path}: expected comma-separated values, got {rows[0][0]!r:.80} as the first row: write the table with "
            f"commas between the values, and points in numbers, as pandas.read_csv(FILE, sep={marks[0]!r}{decimal}) "
            "and to_csv(FILE, index=False) do"
        )
    return rows, lines


def _is_header(rows: list[list[str]], target: str | None, names: list[str] | None) -> bool:
    """Whether the first row holds names.

    It does where one of them, or all of the model's, is known, where one stands above numbers, or where its numbers are
    those of the columns, from 0, and its names do not occur again.
    """
    first, below = rows[0], rows[1:]
    if _surely_header(first, target, names):
        return True
    others = [k for k, cell in enumerate(first) if not is_number(cell) and cell.strip().lower() not in MISSING]
    if not below or not others:
        return False
    if any(all(k < len(row) and is_number(row[k]) for row in below) for k in others):
        return True
    counted = all(cell == str(k) for k, cell in enumerate(first) if k not in others)
    return counted and not any(first[k] in row[k : k + 1] for row in below for k in others)


def _surely_header(first: list[str], target: str | None, names: list[str] | None) -> bool:
    """Whether the first row holds names, whatever stands below."""
    if not any(map(is_number, first)) or (names and set(names) <= set(first)):
        return True
    return target is not None and target in first and not is_number(target)  # a number may be one of the values


def _check_names(path: Name, columns: list[str]) -> None:
    twice = sorted({one for one, other in pairwise(sorted(columns)) if one == other})
    if twice:
        names = ", ".join(map(repr, twice[:20]))
        raise FileError(f"{path}: expected columns of different names, got {names} more than once: rename them")


def _choose(path: Name, columns: list[str], wanted: Wanted) -> Columns:
    """What the columns are, given the names of the features or, without a header, how many there are."""
    dropped = [_dropped(path, columns, name) for name in wanted.drop]
    label = _label(path, columns, wanted.target, wanted.names, wanted.n_features, dropped)
    if label in dropped:
        raise FileError(f"{path}: the column {columns[label or 0]!r} holds the labels and cannot be dropped")
    group = next((k for k, column in enumerate(columns) if column.strip().lower() == GROUPS and k != label), None)
    if wanted.names is None:
        others = (label, group, *dropped)
        return Columns(label, None if group in dropped else group, [k for k in range(len(columns)) if k not in others])
    missing = [name for name in wanted.names if name not in columns]
    if missing:
        raise FileError(f"{path}: expected the model's columns, but {', '.join(missing[:20])} not there")
    return Columns(label, group, [columns.index(name) for name in wanted.names])


def _dropped(path: Name, columns: list[str], name: str) -> int:
    if name in columns:
        return columns.index(name)
    if name.isdecimal() and int(name) < len(columns):
        return int(name)
    several = "; repeat --drop for several columns" if "," in name else ""
    raise FileError(f"{path}: no column {name!r} to drop: expected one of {', '.join(columns[:50])}{several}")


def _label(
    path: Name,
    columns: list[str],
    target: str | None,
    names: list[str] | None,
    n_features: int | None,
    dropped: list[int],
) -> int | None:
    """The number of the column of labels; None where the features are known and it is missing."""
    named = (k for k, column in enumerate(columns) if column.strip().lower() in USUAL_TARGETS)
    usual = [k for k in named if k not in dropped]
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


def _check_cells(path: Name, rows: list[list[str]], lines: list[int], taken: list[int], columns: list[str]) -> None:
    for row, line in zip(rows, lines, strict=True):
        for k in taken:
            if not is_number(row[k]) or not np.isfinite(float(row[k])):
                raise FileError(
                    f"{path}: line {line}, column {columns[k]!r}: expected a finite number, got {row[k]!r}; "
                    f"leave the column out (--drop {columns[k]!r}), or encode it as numbers; 'metrimax train' and "
                    "'tune' encode text and fill gaps where DATA is a single table"
                )


def _numbers_or_strings(cells: list[str]) -> Array:
    return np.array(cells, dtype=np.float64) if all(map(is_number, cells)) else np.array(cells, dtype=str)


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


def read_parquet(path: Name, wanted: Wanted) -> Table:
    """A Parquet file."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise FileError(f"{path}: Parquet needs the package pyarrow: pip install 'metrimax[parquet]'") from None
    raw = read_bytes(path, limit=wanted.limit).tobytes()
    try:
        about = parquet.read_metadata(io.BytesIO(raw))
        pages = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
        needed = max(8 * about.num_rows * about.num_columns, pages)
        check_expansion(path, f"{about.num_rows} rows of {about.num_columns} columns", needed, len(raw), wanted.limit)
        _check_names(path, [str(name) for name in parquet.read_schema(io.BytesIO(raw)).names])
        table = parquet.read_table(io.BytesIO(raw))
    except FileError:
        raise
    except Exception as error:  # pyarrow has its own kinds, and those of Python: UnicodeDecodeError, MemoryError ...
        raise FileError(f"{path}: damaged, or no Parquet file ({error})") from error
    own = (wanted.target, *(wanted.names or ()))
    index = [name for name in _index_of(table.schema) if name not in own and _is_plain(name)]
    columns = [str(name) for name in table.schema.names if name not in index]
    table = table.select(columns)
    label, group, taken = _choose(path, columns, wanted)
    raws = [_arrow_column(path, columns[k], table.column(k), str(table.schema.types[k])) for k in taken]
    labels, groups = (None if k is None or not wanted.labelled else table.column(k).to_numpy() for k in (label, group))
    truth = as_labels(path, labels), as_groups(path, groups)
    if wanted.columns is not None:
        return _treated(path, wanted, raws, truth, (table.num_rows, len(raw)))
    X = np.empty((table.num_rows, len(taken)))
    for to, column in enumerate(raws):
        if column.numbers is None:
            shown = table.schema.types[taken[to]]
            raise FileError(f"{path}: column {column.name!r}: expected numbers, got {shown}")
        if np.isnan(column.numbers).any():
            raise FileError(f"{path}: column {column.name!r} holds missing or infinite values: replace them first")
        X[:, to] = column.numbers
    return Table(X, *truth, [columns[k] for k in taken])


def _arrow_column(path: Name, name: str, column: Any, kind: str) -> Raw:
    """A column of Parquet: numbers, or text; gaps are null, NaN, or what stands for a missing value."""

    def place(row: int) -> str:
        return f"row {row} (from 0)"

    try:
        values = column.to_numpy()
        if values.dtype.kind in "fiub":
            numbers = values.astype(np.float64)
        elif all(value is None or isinstance(value, str) for value in values):
            cells = ["" if v is None or v.strip().lower() in MISSING else v.strip() for v in values]
            return Raw(name, None, cells, place)
        elif kind == "bool" or kind.startswith("decimal"):
            numbers = np.array([np.nan if value is None else float(value) for value in values])
        else:
            raise TypeError("dates and durations are numbers to NumPy")
    except (ValueError, TypeError) as error:
        raise FileError(
            f"{path}: column {name!r}: expected numbers or text, got {kind}: leave it out with --drop {name!r}"
        ) from error
    if np.isinf(numbers).any():
        raise FileError(f"{path}: column {name!r} holds missing or infinite values: replace them first")
    return Raw(name, numbers, None, place)
