"""Data files: examples and their labels, from svmlight text, CSV, Parquet or NumPy archives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from metrimax.designs.linear import CSR
from metrimax.designs.sharded import Sharded
from metrimax.io.columns import Column, Learn
from metrimax.io.compressed import read_bytes
from metrimax.io.files import FileError, Name
from metrimax.io.labels import WHOLE, as_groups, as_labels, show
from metrimax.io.limits import Limit, check_expansion
from metrimax.io.npy import read_archive
from metrimax.io.svmlight import Svmlight, read_svmlight
from metrimax.io.tables import GROUPS, Wanted, read_csv, read_parquet
from metrimax.protocols import Array, Labels, Vector


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
    columns: list[Column] | None = None  #: how text, gaps and numbers of a table were treated
    remarks: Sequence[str] = ()  #: remarks on that

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
    target: str | int | None = None,
    n_threads: int | None = None,
    labels: bool = True,
    several: bool = False,
    limit: Limit = None,
    columns: Sequence[Column] | Learn | None = None,
    drop: Sequence[str] = (),
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
    target : str or int, optional
        The column of a table that holds the labels: its name, or its number from 0.
    n_threads : int, optional
        The most threads; all cores by default.
    labels : bool
        False to read neither labels nor groups; some of them may then be missing.
    several : bool
        Whether other files, or the training data of a model, have rows with several labels. Then a row of svmlight text
        may have no label even if no row of this file has several.
    limit : int or str, optional
        The most bytes that the file may expand to, such as ``"8GiB"``: decompressed, or as the arrays that its numbers
        ask for. By default what the environment variable METRIMAX_LIMIT says, else 100 times the length of the file,
        and 256 MiB in any case.
    columns : list of Column or Learn, optional
        How text, gaps and numbers of a table become features: as a model has it (``model.columns``, beside its
        ``n_features`` and ``feature_names``), or ``Learn()`` to learn it from this table. By default every cell has to
        be a number.
    drop : list of str
        Columns of a table to leave out, by name or by number from 0.

    Returns
    -------
    Data
        With ``X``, ``y`` and what the file says of its columns.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from metrimax.io.data import load_data
    >>> file = Path(tempfile.mkdtemp()) / "small.svm"
    >>> print("1 1:0.5 3:2", "-1 2:1", sep=chr(10), file=file.open("w"))
    >>> load_data(file).X.shape
    (2, 3)
    """
    kind = kind or file_kind(path)
    if drop and kind not in ("csv", "parquet"):
        raise FileError(f"{path}: --drop is for the columns of tables, CSV or Parquet, got {kind}: leave it out")
    if kind == "svmlight":
        least = 0 if index_base is None else index_base
        rows = read_svmlight(path, limit=limit, least=least, n_threads=n_threads, several=several, labels=labels)
        if n_features is None:
            needed = 8 * (rows.highest + 1)
            check_expansion(path, f"a feature index of {rows.highest}", needed, rows.n_bytes, limit)
        data = _from_svmlight(path, rows, index_base, n_features, n_threads)
        return data if labels else replace(data, labels=None, groups=None)
    if kind == "npz":
        data = _from_npz(path, n_threads, labels, limit)
    elif kind in ("csv", "parquet"):
        read = read_csv if kind == "csv" else read_parquet
        wanted = Wanted(
            None if target is None else str(target), feature_names, n_features, labels, limit, columns, drop, n_threads
        )
        if wanted.known is not None:
            names = None if feature_names is None else [column.name for column in wanted.known]
            wanted = wanted._replace(names=names, n_features=len(wanted.known))
        table = read(path, wanted)
        data = Data(path, table.X, table.labels, None, table.names, table.groups, table.columns, table.remarks)
    else:
        raise ValueError(f"unknown kind of data {kind!r}: expected svmlight, csv, npz or parquet")
    if n_features is not None and data.X.shape[1] != n_features:
        raise FileError(f"{path}: expected {n_features} features, those of the model, got {data.X.shape[1]}")
    return data


def file_kind(path: Name) -> str:
    """What the name of a file says it is."""
    endings = [ending.lower() for ending in Path(path).suffixes]
    while endings and endings[-1] in (".gz", ".xz", ".bz2", ".zst"):
        endings.pop()
    return {".csv": "csv", ".npz": "npz", ".parquet": "parquet", ".pq": "parquet"}.get(
        endings[-1] if endings else "", "svmlight"
    )


def _from_svmlight(
    path: Name, rows: Svmlight, index_base: int | None, n_features: int | None, n_threads: int | None
) -> Data:
    base = index_base if index_base is not None else int(rows.lowest > 0)
    labels, groups = rows.truth
    if base:
        np.subtract(rows.indices, np.int32(base), out=rows.indices)  # nobody else has them
        rows = rows._replace(lowest=rows.lowest - base, highest=rows.highest - base)
    return Data(path, csr(rows, 0, n_features, n_threads), labels, base, groups=groups)


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


def _from_npz(path: Name, n_threads: int | None, labelled: bool, limit: Limit) -> Data:
    raw = read_bytes(path, limit=limit).tobytes()
    if raw.startswith(np.lib.format.MAGIC_PREFIX):
        raise FileError(f"{path}: expected an archive of the arrays X and y, got a single array: use np.savez")
    parts = read_archive(path, raw, limit)
    X: Array | CSR = parts["X"] if "X" in parts else _sparse_parts(path, parts, n_threads, len(raw), limit)
    values = X.data if isinstance(X, CSR) else X
    if len(X.shape) != 2 or values.dtype.kind not in "fiub":
        raise FileError(f"{path}: expected X as a matrix of real numbers, got shape {X.shape} and dtype {values.dtype}")
    if not np.isfinite(values).all():
        raise FileError(f"{path}: X holds NaN or infinite values: replace them first")
    y, groups = (parts.get(name) if labelled else None for name in ("y", GROUPS))
    for name, given in (("y", y), (GROUPS, groups)):
        if given is not None and given.shape != (X.shape[0],):
            raise FileError(
                f"{path}: expected {name} with {X.shape[0]} entries, one per row of X, got shape {given.shape}"
            )
    return Data(path, X, as_labels(path, y), groups=as_groups(path, groups))


def _sparse_parts(path: Name, parts: dict[str, Array], n_threads: int | None, stored: int, limit: Limit) -> CSR:
    """The matrix in an archive as SciPy saves it, by rows or by columns."""
    given = parts["format"].tolist() if "format" in parts else "csr"
    form = given.decode(errors="replace") if isinstance(given, bytes) else str(given)
    if form not in ("csr", "csc"):
        raise FileError(f"{path}: expected a sparse matrix in CSR or CSC format, got {form:.20}: save matrix.tocsr()")
    if not {"data", "indices", "indptr", "shape"} <= parts.keys():
        raise FileError(
            f"{path}: expected the arrays X and y, or data, indices, indptr, shape and y, "
            f"got {', '.join(parts) or 'none'}"
        )
    try:
        values = parts["data"].astype(np.float64) if parts["data"].dtype.kind in "iub" else parts["data"]
        _check_counts("shape", parts["shape"], 2**48)  # no machine holds weights for more columns
        n, width = parts["shape"].tolist()
        lines, length = (n, width) if form == "csr" else (width, n)  # columns are the rows of the transpose
        # rows have a pointer each, columns a weight
        check_expansion(path, f"a matrix of shape {(n, width)}", 8 * max(n, width), stored, limit)
        _check_counts("indices", parts["indices"], length)
        _check_counts("indptr", parts["indptr"], len(values))
        X = _csr(values, parts["indices"], parts["indptr"], length, n_threads)
        if X.shape[0] != lines:
            raise ValueError(f"indptr is for {X.shape[0]} lines, shape says {lines}")
        return X if form == "csr" else _transposed(X)
    except FileError:
        raise
    except (ValueError, TypeError) as error:
        what = f"data, indices, indptr and shape are no {form.upper()} matrix"
        raise FileError(f"{path}: {what} ({error})") from error


def _check_counts(name: str, given: Array, most: int) -> None:
    """Raise unless all are whole numbers in range, before a cast to 32 bits could change them."""
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(f"expected {name} as whole numbers, got shape {given.shape} and dtype {given.dtype}")
    if len(given) and not 0 <= given.min() <= given.max() <= most:
        raise ValueError(f"expected {name} from 0 to {most}, got {given.min()} to {given.max()}")


def _transposed(X: CSR) -> CSR:
    """The columns as rows."""
    order = np.argsort(X.indices, kind="stable")
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    indptr = np.concatenate(([0], np.cumsum(np.bincount(X.indices, minlength=X.n_cols))))
    return _csr(X.data[order], row[order], indptr, X.shape[0], X.n_threads)


class Named(Protocol):
    """Data with labels, and a name for error messages."""

    @property
    def name(self) -> Name: ...

    @property
    def labels(self) -> Array | list[Vector] | None: ...


def encode(data: Named, positive: str | None = None) -> tuple[str, list[float] | list[str], Labels]:
    """The kind of target, its classes, and one boolean column per classifier to train.

    Two classes make one column, for the class that sorts last; several make one each ("multiclass"); several labels per
    example make one each ("multilabel"). ``positive`` names one class to train against all others.
    """
    if data.labels is None:
        raise FileError(f"{data.name}: expected labels, got none")
    if isinstance(data.labels, list):
        classes = np.unique(np.concatenate(data.labels))
        columns, kind = indicator_matrix(data.labels, classes), "multilabel"
    else:
        classes, codes = np.unique(data.labels, return_inverse=True)
        columns = codes[:, None] == np.arange(len(classes))
        kind = "multiclass" if len(classes) > 2 else "binary"
    if classes.dtype.kind == "f" and (np.abs(classes) >= WHOLE).any():
        raise FileError(
            f"{data.name}: expected labels that floating-point numbers tell apart, below 2^53, got "
            f"{show(classes[np.abs(classes).argmax()])}: give names, or smaller numbers"
        )
    names: list[Any] = classes.tolist()
    if positive is not None:
        chosen = [k for k, name in enumerate(names) if is_label(name, positive)]
        if not chosen:
            raise FileError(f"{data.name}: no label {positive}: expected one of {', '.join(map(show, names[:50]))}")
        return "binary", _pair(names, names[chosen[0]]), columns[:, chosen]
    if len(names) < 2:
        raise FileError(
            f"{data.name}: expected examples of two classes at least, got only {', '.join(map(show, names))}"
        )
    return kind, names, columns[:, 1:] if kind == "binary" else columns


def indicator_matrix(labels: list[Vector], values: Array) -> Labels:
    """The indicator matrix of rows that may have several labels, all of them among the sorted values."""
    rows = np.repeat(np.arange(len(labels)), [len(row) for row in labels])
    columns = np.zeros((len(labels), len(values)), dtype=bool)
    columns[rows, np.searchsorted(values, np.concatenate(labels))] = True
    return columns


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


def is_label(label: float | str, text: str) -> bool:
    """Whether a text names a label: +1, 1.0 and 1 are one number."""
    if isinstance(label, str):
        return label == text
    try:
        return float(text) == label
    except ValueError:
        return False
