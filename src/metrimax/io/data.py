"""Data files: examples and their labels, from svmlight text, CSV, Parquet or NumPy archives."""

from __future__ import annotations

import csv
import io
import os
import zipfile
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from metrimax.designs.linear import CSR
from metrimax.designs.sharded import Sharded
from metrimax.io.files import FileError, read_bytes
from metrimax.io.svmlight import Svmlight, parse_svmlight
from metrimax.protocols import Labels, Vector

Array = npt.NDArray[Any]
Name = str | os.PathLike[str]

USUAL_TARGETS = ("label", "target", "class", "y")
"""Column names taken for the labels of a table when none is given."""
GROUPS = "qid"
"""The column, or array, taken for the groups of examples."""

_MISSING = ("", "?", "-", "na", "n/a", "nan", "null", "none")
"""What stands for a missing value, and is no name of a column."""


@dataclass(frozen=True)
class Data:
    """Examples and labels.

    ``X`` is an array, a `CSR` design, or the shards of a folder. ``labels`` has one entry per example (numbers or
    strings), or is a list of arrays where an example may have several, or None where the file has none. ``groups`` are
    those of rankings, one entry per example: ``qid:`` in svmlight text, else a column or an array called ``qid``.
    """

    name: Name
    X: Array | CSR | Sharded
    labels: Array | list[Vector] | None
    index_base: int | None = None  #: the index that the first feature has in an svmlight file
    feature_names: list[str] | None = None
    groups: Array | None = None

    @property
    def n(self) -> int:
        return int(self.X.shape[0])


def load_data(
    path: Name,
    *,
    kind: str | None = None,
    index_base: int | None = None,
    n_features: int | None = None,
    feature_names: list[str] | None = None,
    target: str | None = None,
    n_threads: int | None = None,
    labels: bool = True,
) -> Data:
    """Read a data file.

    Parameters
    ----------
    path : str or path
        ``"-"`` is standard input.
    kind : {"svmlight", "csv", "npz", "parquet"}, optional
        What the file is; by default its name says it (``.csv``, ``.npz``, ``.parquet``, else svmlight), compression
        aside.
    index_base : {0, 1}, optional
        The index of the first feature in svmlight text; by default 0 if the index 0 occurs and 1 if not.
    n_features : int, optional
        The number of features of a model: in svmlight text those beyond it are left out, in a table it has to agree.
    feature_names : list of str, optional
        The columns of a table to take, in this order; by default all but the target.
    target : str, optional
        The column of a table that holds the labels: its name, or its number from 0.
    n_threads : int, optional
        The most threads; all cores by default.
    labels : bool
        False where labels are not wanted: those of a table are then left out, and some may be missing.
    """
    kind = kind or file_kind(path)
    if kind == "svmlight":
        least = 0 if index_base is None else index_base
        rows = parse_svmlight(read_bytes(path), path, least=least, n_threads=n_threads)
        return _from_svmlight(path, rows, index_base, n_features, n_threads)
    if kind == "npz":
        data = _from_npz(path, n_threads, labels)
    elif kind == "csv":
        data = _from_csv(path, target, feature_names, labels)
    elif kind == "parquet":
        data = _from_parquet(path, target, feature_names, labels)
    else:
        raise ValueError(f"unknown kind of data {kind!r}: expected svmlight, csv, npz or parquet")
    if n_features is not None and data.X.shape[1] != n_features:
        raise FileError(f"{path}: expected {n_features} features, those of the model, got {data.X.shape[1]}")
    return data


def file_kind(path: Name) -> str:
    """What the name of a file says it is."""
    endings = Path(path).suffixes
    while endings and endings[-1] in (".gz", ".xz", ".bz2", ".zst"):
        endings.pop()
    return {".csv": "csv", ".npz": "npz", ".parquet": "parquet", ".pq": "parquet"}.get(
        endings[-1] if endings else "", "svmlight"
    )


def _from_svmlight(
    path: Name, rows: Svmlight, index_base: int | None, n_features: int | None, n_threads: int | None
) -> Data:
    base = index_base if index_base is not None else int(rows.lowest > 0)
    X = csr(rows, base, n_features, n_threads)
    labels: Array | list[Vector] | None
    if len(rows.labels) == 0:
        labels = None
    elif rows.multilabel:
        labels = np.split(rows.labels, rows.label_starts[1:-1])
    else:
        labels = rows.labels
    return Data(path, X, labels, base, groups=rows.qids if len(rows.qids) else None)


def csr(rows: Svmlight, base: int, n_features: int | None = None, n_threads: int | None = None) -> CSR:
    """The features as a design; the first column has the index ``base``, columns beyond ``n_features`` are left out."""
    values, indptr = rows.values, rows.indptr
    indices = rows.indices - np.int32(base) if base else rows.indices
    width = max(rows.highest - base + 1, 0)
    if n_features is not None and width > n_features:
        kept = indices < n_features
        indptr = np.concatenate(([0], np.cumsum(kept)))[indptr]
        values, indices = values[kept], indices[kept]
    return _csr(values, indices, indptr, width if n_features is None else n_features, n_threads)


def _csr(values: Vector, indices: Array, indptr: Array, width: int, n_threads: int | None) -> CSR:
    kind = np.int32 if len(values) < 2**31 and width < 2**31 else np.int64
    return CSR(values, indices.astype(kind, copy=False), indptr.astype(kind, copy=False), width, n_threads)


def take_rows(X: Array | CSR, rows: npt.NDArray[np.intp]) -> Array | CSR:
    """Some examples, as data of the same kind."""
    if isinstance(X, np.ndarray):
        return X[rows]
    lengths = np.diff(X.indptr)[rows]
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    at = np.repeat(X.indptr[rows] - indptr[:-1], lengths) + np.arange(indptr[-1])
    return CSR(X.data[at], X.indices[at], indptr.astype(X.indptr.dtype), X.n_cols, X.n_threads)


def _from_npz(path: Name, n_threads: int | None, labelled: bool) -> Data:
    try:
        with np.load(io.BytesIO(read_bytes(path).tobytes()), allow_pickle=False) as archive:
            parts = {key: archive[key] for key in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise FileError(f"{path}: no NumPy archive without pickled objects ({error})") from error
    y = parts.get("y") if labelled else None
    given = parts["format"].tolist() if "format" in parts else "csr"  # as SciPy saves it
    form = given.decode(errors="replace") if isinstance(given, bytes) else str(given)
    if "X" in parts:
        X: Array | CSR = parts["X"]
        values: Array = parts["X"]
    elif form not in ("csr", "csc"):
        raise FileError(f"{path}: expected a sparse matrix in CSR or CSC format, got {form:.20}: save matrix.tocsr()")
    elif {"data", "indices", "indptr", "shape"} <= parts.keys():
        values = parts["data"]
        try:
            if values.dtype.kind in "iub":
                values = values.astype(np.float64)
            n, width = parts["shape"].tolist()
            lines, length = (n, width) if form == "csr" else (width, n)  # columns are the rows of the transpose
            X = _csr(values, parts["indices"], parts["indptr"], length, n_threads)
            if X.shape[0] != lines:
                raise ValueError(f"indptr is for {X.shape[0]} lines, shape says {lines}")
            X = X if form == "csr" else _transposed(X)
        except (ValueError, TypeError) as error:
            what = f"data, indices, indptr and shape are no {form.upper()} matrix"
            raise FileError(f"{path}: {what} ({error})") from error
    else:
        raise FileError(
            f"{path}: expected the arrays X and y, or data, indices, indptr, shape and y, "
            f"got {', '.join(parts) or 'none'}"
        )
    if len(X.shape) != 2 or values.dtype.kind not in "fiub":
        raise FileError(f"{path}: expected X as a matrix of real numbers, got shape {X.shape} and dtype {values.dtype}")
    if not np.isfinite(values).all():
        raise FileError(f"{path}: X holds NaN or infinite values: replace them first")
    if y is not None and y.shape != (X.shape[0],):
        raise FileError(f"{path}: expected y with {X.shape[0]} entries, one per row of X, got shape {y.shape}")
    groups = parts.get(GROUPS)
    if groups is not None and groups.shape != (X.shape[0],):
        raise FileError(f"{path}: expected qid with {X.shape[0]} entries, one per row of X, got shape {groups.shape}")
    return Data(path, X, None if y is None else _labels(path, y), groups=groups)


def _transposed(X: CSR) -> CSR:
    """The columns as rows."""
    order = np.argsort(X.indices, kind="stable")
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    indptr = np.concatenate(([0], np.cumsum(np.bincount(X.indices, minlength=X.n_cols))))
    return _csr(X.data[order], row[order], indptr, X.shape[0], X.n_threads)


def _from_csv(path: Name, target: str | None, names: list[str] | None, labelled: bool) -> Data:
    try:
        text = read_bytes(path).tobytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: expected UTF-8 text, got a bad byte at position {error.start}") from error
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
    header = rows[0] if _is_header(rows, target, names) else None
    if header is not None:
        rows, lines = rows[1:], lines[1:]
        _check_names(path, header)
    width = len(header) if header is not None else len(rows[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise FileError(f"{path}: line {line}: expected {width} values, got {len(row)}")
    columns = header if header is not None else [str(k) for k in range(width)]
    label_at, group_at, taken = _choose(path, columns, target, names)
    try:
        X = np.array([[row[k] for k in taken] for row in rows], dtype=np.float64).reshape(len(rows), len(taken))
    except ValueError:
        X = None
    if X is None or not np.isfinite(X).all():
        raise FileError(_bad_cell(path, rows, lines, taken, columns))
    cells = None if label_at is None or not labelled else [row[label_at] for row in rows]
    labels = None if cells is None else _labels(path, _numbers_or_strings(cells), lines)
    groups = None if group_at is None else np.array([row[group_at] for row in rows])
    return Data(path, X, labels, None, [columns[k] for k in taken] if header is not None else None, groups)


def _is_header(rows: list[list[str]], target: str | None, names: list[str] | None) -> bool:
    """Whether the first row holds names: one of them, or all of the model's, is known, or stands above numbers."""
    first = rows[0]
    if not any(map(_is_number, first)) or (names and set(names) <= set(first)):
        return True
    if target is not None and target in first and not _is_number(target):  # a number may be one of the values
        return True
    others = [k for k, cell in enumerate(first) if not _is_number(cell) and cell.strip().lower() not in _MISSING]
    below = rows[1:]
    return bool(below) and any(all(k < len(row) and _is_number(row[k]) for row in below) for k in others)


def _check_names(path: Name, columns: list[str]) -> None:
    twice = sorted({one for one, other in pairwise(sorted(columns)) if one == other})
    if twice:
        names = ", ".join(map(repr, twice[:20]))
        raise FileError(f"{path}: expected columns of different names, got {names} more than once: rename them")


def _choose(
    path: Name, columns: list[str], target: str | None, names: list[str] | None
) -> tuple[int | None, int | None, list[int]]:
    """The positions of label, groups and features; without label where the features are known and it is missing."""
    label: int | None
    if target is not None:
        if target in columns:
            label = columns.index(target)
        elif target.isdecimal() and int(target) < len(columns):
            label = int(target)
        elif names is not None:
            label = None
        else:
            raise FileError(f"{path}: no column {target!r}: expected one of {', '.join(columns)}, or a number from 0")
    else:
        usual = [k for k, column in enumerate(columns) if column.strip().lower() in USUAL_TARGETS]
        if len(usual) != 1 and names is None:
            raise FileError(
                f"{path}: which column holds the labels? Give --target NAME (or its number, from 0); the columns are "
                + ", ".join(columns[:50])
            )
        label = usual[0] if len(usual) == 1 else None
    group = next((k for k, column in enumerate(columns) if column.strip().lower() == GROUPS and k != label), None)
    if names is None:
        return label, group, [k for k in range(len(columns)) if k not in (label, group)]
    missing = [name for name in names if name not in columns]
    if missing:
        raise FileError(f"{path}: expected the model's columns, but {', '.join(missing[:20])} not there")
    return label, group, [columns.index(name) for name in names]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _bad_cell(path: Name, rows: list[list[str]], lines: list[int], taken: list[int], columns: list[str]) -> str:
    for row, line in zip(rows, lines, strict=True):
        for k in taken:
            if not _is_number(row[k]) or not np.isfinite(float(row[k])):
                return (
                    f"{path}: line {line}, column {columns[k]!r}: expected a finite number, got {row[k]!r}; "
                    "remove the column, or encode it as numbers"
                )
    return f"{path}: expected finite numbers"


def _numbers_or_strings(cells: list[str]) -> Array:
    return np.array(cells, dtype=np.float64) if all(map(_is_number, cells)) else np.array(cells, dtype=str)


def _from_parquet(path: Name, target: str | None, names: list[str] | None, labelled: bool) -> Data:
    try:
        parquet = import_module("pyarrow.parquet")
        arrow = import_module("pyarrow")
    except ImportError:
        raise FileError(f"{path}: Parquet needs the package pyarrow: pip install 'metrimax[parquet]'") from None
    raw = read_bytes(path).tobytes()
    try:
        columns = [str(name) for name in parquet.read_schema(io.BytesIO(raw)).names]
        _check_names(path, columns)
        table = parquet.read_table(io.BytesIO(raw))
    except (arrow.ArrowException, OSError) as error:
        raise FileError(f"{path}: {error}") from error
    label_at, group_at, taken = _choose(path, columns, target, names)
    X = np.empty((table.num_rows, len(taken)))
    for to, k in enumerate(taken):
        try:
            X[:, to] = table.column(k).to_numpy()
        except (ValueError, TypeError) as error:
            raise FileError(f"{path}: column {columns[k]!r}: expected numbers, got {table.schema.types[k]}") from error
        if not np.isfinite(X[:, to]).all():
            raise FileError(f"{path}: column {columns[k]!r} holds missing or infinite values: replace them first")
    labels = None if label_at is None or not labelled else _labels(path, table.column(label_at).to_numpy())
    groups = None if group_at is None else table.column(group_at).to_numpy()
    return Data(path, X, labels, None, [columns[k] for k in taken], groups)


def _labels(path: Name, given: Array, lines: list[int] | None = None) -> Array | None:
    """Labels as numbers or strings; None where all are missing, an error where some are."""
    if given.dtype.kind in "fiub":
        labels = given.astype(np.float64)
        missing = ~np.isfinite(labels)
    else:
        labels = np.array([str(label) for label in given])
        missing = np.array([v is None or str(v).strip().lower() in ("", "nan") for v in given], dtype=bool)
    if not missing.any():
        return labels
    if missing.all():
        return None
    row = int(missing.argmax())
    place = f"row {row} (from 0)" if lines is None else f"line {lines[row]}"
    shown = repr(str(given[row])) if isinstance(given[row], str) else given[row]
    raise FileError(f"{path}: {place} holds {shown}: expected labels; fill it in, or remove the row")


def encode(data: Data, positive: str | None = None) -> tuple[str, list[float] | list[str], Labels]:
    """The kind of target, its classes, and one boolean column per classifier to train.

    Two classes make one column, for the class that sorts last; several make one each ("multiclass"); several labels per
    example make one each ("multilabel"). ``positive`` names one class to train against all others.
    """
    if data.labels is None:
        raise FileError(f"{data.name}: expected labels, got none")
    if isinstance(data.labels, list):
        values = np.concatenate(data.labels)
        classes = np.unique(values)
        row = np.repeat(np.arange(len(data.labels)), [len(labels) for labels in data.labels])
        columns = np.zeros((len(data.labels), len(classes)), dtype=bool)
        columns[row, np.searchsorted(classes, values)] = True
        kind = "multilabel"
    else:
        classes, codes = np.unique(data.labels, return_inverse=True)
        columns = codes[:, None] == np.arange(len(classes))
        kind = "multiclass" if len(classes) > 2 else "binary"
    names: list[Any] = classes.tolist()
    if positive is not None:
        chosen = [k for k, name in enumerate(names) if show(name) == positive or str(name) == positive]
        if not chosen:
            raise FileError(f"{data.name}: no label {positive}: expected one of {', '.join(map(show, names[:50]))}")
        return "binary", _pair(names, names[chosen[0]]), columns[:, chosen]
    if len(names) < 2:
        raise FileError(
            f"{data.name}: expected examples of two classes at least, got only {', '.join(map(show, names))}"
        )
    return kind, names, columns[:, 1:] if kind == "binary" else columns


def grades(data: Data, positive: str | None = None) -> Vector:
    """The labels as grades of relevance, from 0 up; with ``positive`` 1 for that label and 0 for all others."""
    if positive is not None:
        return encode(data, positive)[2][:, 0].astype(np.float64)
    if not isinstance(data.labels, np.ndarray) or data.labels.dtype.kind != "f":
        raise FileError(
            f"{data.name}: expected one number per example, its grade, to rank the examples of groups (qid), got "
            + ("none" if data.labels is None else "several" if isinstance(data.labels, list) else "names")
        )
    return data.labels


def _pair(names: list[Any], positive: Any) -> list[Any]:
    """The negative and the positive label of one class against the rest."""
    others = [name for name in names if name != positive]
    if len(others) == 1:
        return [others[0], positive]
    return [f"not {positive}", positive] if isinstance(positive, str) else [-positive if positive else -1.0, positive]


def show(label: float | str) -> str:
    """A label as it is written: whole numbers without a point."""
    return label if isinstance(label, str) else f"{label:.17g}"
