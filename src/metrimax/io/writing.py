"""Writing folders of binary row shards; their format is described in `metrimax.io.shards`."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from metrimax.io.files import FileError, Name, folder_beside, settle, settle_folder, unwritable, write_bytes
from metrimax.io.labels import Truth, are_names, check_labelled, given_labels, join, pack, unlabelled
from metrimax.io.limits import parse_size
from metrimax.io.locks import locks_work
from metrimax.io.npy import write_array
from metrimax.io.sealing import sealed
from metrimax.io.shards import DENSE, FORMAT, MANIFEST, SPARSE, VERSION, crc, part_file
from metrimax.protocols import Array


class ShardWriter:
    """Write a folder of binary shards: complete, or not there at all.

    Rows are collected until they fill a shard. Everything is written to a temporary folder, which is renamed when the
    ``with`` block succeeds and removed when it fails; the next writer removes what a killed one left.

    Parameters
    ----------
    folder : str or path
        Must not exist, or be empty.
    shard_size : int or str
        Approximate size of a shard in bytes, or as in ``"64MiB"``.
    dtype : {"float32", "float64"} or None
        Type of the values; None keeps that of the rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from metrimax import open_dataset
    >>> from metrimax.io.writing import ShardWriter
    >>> folder = Path(tempfile.mkdtemp()) / "shards"
    >>> with ShardWriter(folder) as writer:
    ...     writer.add(np.eye(3), [1, -1, 1])
    >>> open_dataset(folder).shape
    (3, 3)
    """

    def __init__(self, folder: Name, *, shard_size: int | str = 64 * 2**20, dtype: str | None = None) -> None:
        self.folder = Path(folder)
        self._place = Path(os.path.realpath(folder))  # of a link, what it leads to
        try:
            exists = self._place.exists() and (not self._place.is_dir() or any(self._place.iterdir()))
        except OSError as error:
            raise unwritable(self.folder, error) from error
        if exists:
            raise FileError(f"{self.folder}: exists already: give the name of a new folder, or remove it")
        if self._place == Path.cwd() or self._place.is_mount():  # which no folder can be renamed to, at the end of all
            raise FileError(
                f"{self.folder}: expected a folder to make, got the current one or a mounted one: name one inside it"
            )
        self._size = parse_size(shard_size)
        self._dtype = None if dtype is None else np.dtype(dtype)
        if self._dtype not in (None, np.float32, np.float64):
            raise ValueError(f"expected dtype as float32, float64 or None, got {dtype!r}")
        self._finished = False
        self._waiting: list[tuple[dict[str, Array], Truth]] = []
        self._bytes = 0
        self._shards: list[dict[str, Any]] = []
        self.n_cols = 0
        self.n = 0
        self.parts: tuple[str, ...] = ()
        self._unlabelled: int | None = None  # the first row without a label
        self._most_labels = 0

    def __enter__(self) -> ShardWriter:
        try:
            self._beside, self._lock = folder_beside(self._place)
        except OSError as error:
            raise unwritable(self.folder, error) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if error is not None:
                self._give_up(error)
            elif not self._finished:
                try:
                    self.finish()
                except BaseException as failure:
                    self._give_up(failure)
                    raise
        finally:
            if self._lock is not None:
                os.close(self._lock)

    def _give_up(self, error: BaseException) -> None:
        shutil.rmtree(self._beside, ignore_errors=True)
        if isinstance(error, OSError):  # no space left, most of all
            raise unwritable(self.folder, error) from error

    def add(self, X: Any, labels: Any = None, groups: Any = None) -> None:
        """Append rows: an array or a sparse matrix; their labels, a list of arrays if rows have several; their groups.

        Any object with data, indices, indptr (by rows) and shape serves as a sparse matrix.

        Parameters
        ----------
        X : ndarray or sparse matrix (n, p)
            The rows.
        labels : array (n,), or list of arrays
            Their labels.
        groups : array (n,) or None, default=None
            Their groups.
        """
        if not hasattr(self, "_beside"):
            raise FileError(
                f"{self.folder}: expected rows inside a with block, which writes the folder as a whole: "
                "with ShardWriter(...) as writer: writer.add(...)"
            )
        X = X.tocsr() if hasattr(X, "tocsr") else X
        arrays: dict[str, Array]
        arrays = {"X": X} if isinstance(X, np.ndarray) else _parts(X)
        kind = next((array.dtype for array in arrays.values()), None)
        if kind is None or kind.kind not in "fiub" or len(X.shape) != 2:
            came = type(X).__name__ if kind is None else f"shape {X.shape} and type {kind}"
            raise FileError(
                f"{self.folder}: expected rows as a matrix of real numbers, a NumPy array or a SciPy sparse matrix, "
                f"got {came}: convert them first, for instance with numpy.asarray"
            )
        n, width = X.shape
        if self.parts not in ((), tuple(arrays)) or (self.parts == DENSE and width != self.n_cols):
            raise FileError(
                f"{self.folder}: all rows must be of one kind and, if dense, of one width: got {n} x {width} as "
                f"{'dense' if 'X' in arrays else 'sparse'} after {self.n} x {self.n_cols}"
            )
        self.parts, self.n_cols = tuple(arrays), max(self.n_cols, width)
        own = None if labels is None else given_labels(self.folder, "labels", labels, n)
        queries: Any = None if groups is None else given_labels(self.folder, "groups", groups, n)
        first, most = unlabelled(own, n)
        if self._unlabelled is None and first is not None:
            self._unlabelled = self.n + first
        self._most_labels = max(self._most_labels, most)
        step = max(1, int(n * self._size / max(1, sum(a.nbytes for a in arrays.values()))))
        for start in range(0, n, step):
            rows = slice(start, min(n, start + step))
            block = _take(arrays, rows, self._dtype)
            truth = Truth(None if own is None else own[rows], None if queries is None else queries[rows])
            self._waiting.append((block, truth))
            self._bytes += sum(array.nbytes for array in block.values())
            self.n += rows.stop - rows.start
            if self._bytes >= 0.9 * self._size:
                self._flush()

    def _flush(self) -> None:
        """Write the collected rows as one shard."""
        if not self._waiting:
            return
        blocks, truths = zip(*self._waiting, strict=True)
        self._waiting, self._bytes = [], 0
        matrix = _join(blocks)
        arrays = matrix | pack(join(self.folder, truths, [_height(block) for block in blocks], whole=False))
        name = f"shard-{len(self._shards):05d}"
        files = {}
        for part, array in arrays.items():
            path = part_file(self._beside / name, part)
            save_array(path, array)
            files[part] = {"bytes": path.stat().st_size, "crc32": crc(array)}
        self._shards.append({"name": name, "rows": _height(matrix), "files": files})

    def shift_columns(self, by: int) -> None:
        """Shift all sparse columns written so far, when the index of the first feature turns out to be another."""
        self._flush()
        for shard in self._shards:
            path = part_file(self._beside / shard["name"], "indices")
            indices = np.load(path) + np.int32(by)
            save_array(path, indices)
            shard["files"]["indices"]["crc32"] = crc(indices)
        self.n_cols += by

    def finish(self, *, index_base: int | None = None, feature_names: list[str] | None = None) -> dict[str, Any]:
        """Write the last shard and the manifest, and give the folder its name; returns the manifest.

        The end of the ``with`` block calls it if nobody did.

        Parameters
        ----------
        index_base : int or None, default=None
            The index of the first feature in svmlight text, for the manifest.
        feature_names : list of str or None, default=None
            The names of the columns, for the manifest.

        Returns
        -------
        dict
            The manifest.
        """
        self._flush()
        if self.n == 0:
            raise FileError(f"{self.folder}: expected rows to write, got none")
        check_labelled(self.folder, self._unlabelled, self._most_labels)
        if feature_names is not None and not are_names(feature_names, self.n_cols):
            raise FileError(
                f"{self.folder}: expected feature_names as a list of {self.n_cols} strings, one per column, "
                f"got {feature_names!r:.100}"
            )
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "rows": self.n,
            "columns": self.n_cols,
            "parts": list(self.parts),
            "index_base": index_base,
            "feature_names": feature_names,
            "shards": self._shards,
        }
        write_bytes(self._beside / MANIFEST, json.dumps(sealed(manifest), indent=1).encode())
        if not locks_work():  # Windows: nothing gives way to a folder
            with suppress(FileNotFoundError):
                self._place.rmdir()
        os.replace(self._beside, self._place)  # an empty folder gives way
        settle_folder(self._place.parent)
        self._finished = True
        return manifest


def save_array(path: Path, array: Array) -> None:
    """Write a ``.npy`` file."""
    with open(path, "wb") as file:
        write_array(file, array)
        settle(file)


def _parts(X: Any) -> dict[str, Array]:
    """The arrays of a CSR matrix by name; none for other objects."""
    return {part: getattr(X, part) for part in SPARSE} if all(hasattr(X, part) for part in SPARSE) else {}


def _height(arrays: dict[str, Array]) -> int:
    return len(arrays["X"]) if "X" in arrays else len(arrays["indptr"]) - 1


def _take(arrays: dict[str, Array], rows: slice, dtype: np.dtype[Any] | None) -> dict[str, Array]:
    if "X" in arrays:
        X = arrays["X"][rows]
        wanted = dtype if dtype is not None else X.dtype if X.dtype == np.float32 else np.dtype(np.float64)
        return {"X": np.ascontiguousarray(X, dtype=wanted)}
    indptr = arrays["indptr"][rows.start : rows.stop + 1].astype(np.int64)
    span = slice(int(indptr[0]), int(indptr[-1]))
    data = arrays["data"][span]
    wanted = dtype if dtype is not None else data.dtype if data.dtype == np.float32 else np.dtype(np.float64)
    return {"data": data.astype(wanted), "indices": arrays["indices"][span].copy(), "indptr": indptr - indptr[0]}


def _join(blocks: tuple[dict[str, Array], ...]) -> dict[str, Array]:
    """Join blocks of rows; the indices of a shard are int32 where that is enough."""
    if "X" in blocks[0]:
        return {"X": np.concatenate([block["X"] for block in blocks])}
    before = np.concatenate(([0], np.cumsum([len(block["data"]) for block in blocks])))
    starts = [block["indptr"][:-1] + offset for block, offset in zip(blocks, before[:-1], strict=True)]
    indptr = np.concatenate([*starts, before[-1:]])
    indices = np.concatenate([block["indices"] for block in blocks])
    kind = np.int32 if max(len(indices), int(indices.max(initial=0))) < 2**31 - 1 else np.int64
    data = np.concatenate([block["data"] for block in blocks])
    return {"data": data, "indices": indices.astype(kind), "indptr": indptr.astype(kind)}
