"""Binary row shards: plain ``.npy`` files that are mapped into memory, and a manifest that says what belongs together.

A folder of shards holds, for every shard, ``NAME.X.npy`` (dense), or ``NAME.data.npy``, ``NAME.indices.npy`` and
``NAME.indptr.npy`` (CSR), and its labels in ``NAME.y.npy``; where a row may have several labels, those of row i are
``y[y_starts[i] : y_starts[i + 1]]``. Groups of rows, for rankings, are in ``NAME.qid.npy``. The manifest
``metrimax.json`` lists shapes, lengths and checksums.
The format is described in ``docs/scaling.md``.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import shutil
import tempfile
import threading
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax.designs.linear import CSR, Dense
from metrimax.io.files import FileError, write_bytes
from metrimax.io.labels import Truth, join, pack
from metrimax.protocols import Design, Vector

Array = npt.NDArray[Any]

MANIFEST = "metrimax.json"
FORMAT, VERSION = "metrimax-shards", 1
DENSE, SPARSE, LABELS = ("X",), ("data", "indices", "indptr"), ("y", "y_starts", "qid")

_BLOCK = 1 << 24  # bytes looked at together by the checks

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30, "t": 10**12, "ti": 2**40}


def parse_size(size: int | str) -> int:
    """A number of bytes: whole, or text such as ``"500MB"`` or ``"2GiB"``.

    >>> parse_size("2GiB"), parse_size("64 MB")
    (2147483648, 64000000)
    """
    text = str(size).strip().lower().removesuffix("b")
    digits = text.rstrip("kmgti ")
    try:
        number = float(digits) * _UNITS[text[len(digits) :].strip()]
    except (ValueError, KeyError):
        number = -1.0
    if not 1 <= number < 2**63:
        raise ValueError(f"expected a size of at least one byte, such as '500MB' or '2GiB', got {size!r}")
    return int(number)


_PARSER = threading.Lock()


def crc(array: Array) -> int:
    """The checksum of the numbers in an array."""
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).reshape(-1).data)


class Layout(NamedTuple):
    """Where the numbers of an ``.npy`` file are, from its header."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    offset: int

    @classmethod
    def of(cls, path: Path) -> Layout:
        try:
            with open(path, "rb") as file:
                version = np.lib.format.read_magic(file)
                shape, fortran, dtype = _header(file, version)
                offset = file.tell()
        except OSError as error:
            raise FileError(f"{path}: {error.strerror or error}") from error
        except (ValueError, EOFError) as error:
            raise FileError(f"{path}: no NumPy array ({error})") from error
        if dtype.hasobject:
            raise FileError(f"{path}: holds pickled objects, which are not read: expected numbers or strings")
        if path.stat().st_size < offset + math.prod(shape) * dtype.itemsize:
            raise FileError(f"{path}: cut off: {path.stat().st_size} bytes for an array of shape {shape}, {dtype}")
        return cls(dtype, shape, "F" if fortran else "C", offset)


def _header(file: BinaryIO, version: tuple[int, int]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The header of an ``.npy`` file, which NumPy has Python's parser read.

    Up to Python 3.12 the parser may fail with a SystemError where two threads are in it (python/cpython#106905): ours
    take turns, and what collides with others is read again.
    """
    begin = file.tell()
    for attempt in range(10):
        try:
            with _PARSER:
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                return read(file)
        except SystemError:
            if attempt == 9:
                raise
            file.seek(begin)
    raise AssertionError("the last attempt returns or raises")


def map_array(path: Path, layout: Layout | None = None) -> Array:
    """The array of an ``.npy`` file, mapped and not read; its layout, if known, saves a look at its header."""
    dtype, shape, order, offset = layout or Layout.of(path)
    if math.prod(shape) == 0 or dtype.itemsize == 0:
        return np.empty(shape, dtype)
    try:
        with open(path, "rb", buffering=0) as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, dtype, math.prod(shape), offset).reshape(shape, order=order)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be mapped: {error}") from error


@dataclass
class MappedShard:
    """The rows of one binary shard. They are checked the first time; afterwards they must not change.

    Attributes
    ----------
    stem : Path
        The files are ``stem.PART.npy``.
    rows, n_cols : int
    parts : tuple of str
        ("X",), or ("data", "indices", "indptr").
    sums : dict
        Checksums of the parts, where they are known.
    """

    stem: Path
    rows: int
    n_cols: int
    parts: tuple[str, ...]
    sums: dict[str, int] = field(default_factory=dict)
    _seen: tuple[Any, ...] | None = None
    _layouts: dict[str, Layout] | None = None

    def __post_init__(self) -> None:
        self.held = sum(size for size, *_ in self._look())
        self.peak = self.held

    @property
    def name(self) -> str:
        return str(self.stem)

    def load(self, n_threads: int) -> Design:
        seen = self._look()
        if self._seen not in (None, seen):
            raise self._changed()
        files = {part: part_file(self.stem, part) for part in self.parts}
        layouts = self._layouts or {part: Layout.of(file) for part, file in files.items()}
        arrays = {part: map_array(file, layouts[part]) for part, file in files.items()}
        if self._seen is None:
            for part, array in arrays.items():
                if part in self.sums and crc(array) != self.sums[part]:
                    raise FileError(
                        f"{part_file(self.stem, part)}: damaged: its checksum is not the one of {MANIFEST}; "
                        "restore the file, or convert the data again"
                    )
        first = self._seen is None
        try:
            design: Design
            if self.parts == DENSE:
                design = Dense(arrays["X"], n_threads)
            else:
                data, indices, indptr = (arrays[part] for part in SPARSE)
                design = CSR(data, indices, indptr, self.n_cols, n_threads, check=first)
        except (ValueError, TypeError) as error:
            raise FileError(f"{self.stem}: {error}") from error
        if design.shape != (self.rows, self.n_cols):
            raise FileError(f"{self.stem}: expected shape {(self.rows, self.n_cols)}, got {design.shape}")
        if first:
            self._check_finite(arrays)
            self._seen, self._layouts = seen, layouts
        return design

    def prefetch(self) -> None:
        for part in self.parts:
            read_ahead(part_file(self.stem, part))

    def check(self) -> None:
        if self._seen not in (None, self._look()):
            raise self._changed()

    def _changed(self) -> FileError:
        return FileError(f"{self.stem}: has changed since it was opened: files must not be written while in use")

    def _look(self) -> tuple[Any, ...]:
        """Length, time and identity of the files."""
        return tuple(_stat(part_file(self.stem, part)) for part in self.parts)

    def _check_finite(self, arrays: dict[str, Array]) -> None:
        values = arrays[self.parts[0]]
        flat = values.reshape(-1, order="A")
        for start in range(0, flat.size, _BLOCK // 8):
            if np.isfinite(flat[start : start + _BLOCK // 8]).all():
                continue
            bad = start + int(np.flatnonzero(~np.isfinite(flat[start : start + _BLOCK // 8]))[0])
            if self.parts == DENSE:
                row, column = np.unravel_index(bad, values.shape, order="C" if values.flags.c_contiguous else "F")
            else:
                row, column = np.searchsorted(arrays["indptr"], bad, side="right") - 1, arrays["indices"][bad]
            raise FileError(
                f"{self.stem}: row {int(row)}, column {int(column)} (from 0) holds {flat[bad]}: "
                "expected finite numbers; replace it and convert the data again"
            )


def part_file(stem: Path, part: str) -> Path:
    return stem.parent / f"{stem.name}.{part}.npy"


def read_ahead(path: Path) -> None:
    """Have the system read a file into its cache; a hint, which may come to nothing."""
    if not hasattr(os, "posix_fadvise"):
        return
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return  # who reads it will say what is wrong
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(handle)


def _stat(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}: the folder is not complete") from error
    return found.st_size, found.st_mtime_ns, found.st_ino


class ShardWriter:
    """Write a folder of binary shards: complete, or not there at all.

    Rows are collected until they fill a shard. Everything goes to a folder beside the final one, which is renamed when
    the ``with`` block ends well and removed otherwise.

    Parameters
    ----------
    folder : str or path
        Must not exist, or be empty.
    shard_size : int
        Bytes of a shard, about.
    dtype : {"float32", "float64"} or None
        Of the values; None for as they come.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, shard_size: int = 64 * 2**20, dtype: str | None = None
    ) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise FileError(f"{self.folder}: exists already: give the name of a new folder, or remove it")
        self._size = shard_size
        self._dtype = None if dtype is None else np.dtype(dtype)
        self._waiting: list[tuple[dict[str, Array], Truth]] = []
        self._bytes = 0
        self._shards: list[dict[str, Any]] = []
        self.n_cols = 0
        self.n = 0
        self.parts: tuple[str, ...] = ()

    def __enter__(self) -> ShardWriter:
        parent = self.folder.absolute().parent
        try:
            self._beside = Path(tempfile.mkdtemp(dir=parent, prefix=f".{self.folder.name}."))
        except OSError as error:
            raise FileError(f"{self.folder}: cannot be written: {error.strerror or error}") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None:
            shutil.rmtree(self._beside, ignore_errors=True)
        if isinstance(error, OSError):  # no space left, most of all
            raise FileError(f"{self.folder}: cannot be written: {error.strerror or error}") from error

    def add(self, X: Any, labels: Array | list[Vector] | None = None, groups: Array | None = None) -> None:
        """Append rows: an array, or anything with data, indices, indptr and shape; and their labels and groups."""
        arrays: dict[str, Array]
        arrays = {"X": X} if isinstance(X, np.ndarray) else {part: getattr(X, part) for part in SPARSE}
        n, width = X.shape
        if self.parts not in ((), tuple(arrays)) or (self.parts == DENSE and width != self.n_cols):
            raise FileError(
                f"{self.folder}: all rows must be of one kind and, if dense, of one width: got {n} x {width} as "
                f"{'dense' if 'X' in arrays else 'sparse'} after {self.n} x {self.n_cols}"
            )
        self.parts, self.n_cols = tuple(arrays), max(self.n_cols, width)
        own = None if labels is None else list(labels) if isinstance(labels, list) else np.asarray(labels)
        step = max(1, int(n * self._size / max(1, sum(a.nbytes for a in arrays.values()))))
        for start in range(0, n, step):
            rows = slice(start, min(n, start + step))
            block = _take(arrays, rows, self._dtype)
            truth = Truth(None if own is None else own[rows], None if groups is None else groups[rows])
            self._waiting.append((block, truth))
            self._bytes += sum(array.nbytes for array in block.values())
            self.n += rows.stop - rows.start
            if self._bytes >= 0.9 * self._size:
                self._flush()

    def _flush(self) -> None:
        """Write what is waiting as one shard."""
        if not self._waiting:
            return
        blocks, truths = zip(*self._waiting, strict=True)
        self._waiting, self._bytes = [], 0
        arrays = _join(blocks) | pack(join(self.folder, truths))
        name = f"shard-{len(self._shards):05d}"
        files = {}
        for part, array in arrays.items():
            path = part_file(self._beside / name, part)
            np.save(path, array, allow_pickle=False)
            files[part] = {"bytes": path.stat().st_size, "crc32": crc(array)}
        rows = len(arrays["X"]) if "X" in arrays else len(arrays["indptr"]) - 1
        self._shards.append({"name": name, "rows": rows, "files": files})

    def shift_columns(self, by: int) -> None:
        """Move all sparse columns written so far: what the first index is may become known late."""
        self._flush()
        for shard in self._shards:
            path = part_file(self._beside / shard["name"], "indices")
            indices = np.load(path) + np.int32(by)
            np.save(path, indices, allow_pickle=False)
            shard["files"]["indices"]["crc32"] = crc(indices)
        self.n_cols += by

    def finish(self, *, index_base: int | None = None, feature_names: list[str] | None = None) -> dict[str, Any]:
        """Write the last shard and the manifest, and give the folder its name; returns the manifest."""
        self._flush()
        if self.n == 0:
            raise FileError(f"{self.folder}: expected rows to write, got none")
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
        write_bytes(self._beside / MANIFEST, json.dumps(manifest, indent=1).encode())
        self._beside.chmod(0o755)
        os.replace(self._beside, self.folder)  # an empty folder gives way
        return manifest


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
    """Blocks of rows as one; the indices of a shard are int32 wherever that will do."""
    if "X" in blocks[0]:
        return {"X": np.concatenate([block["X"] for block in blocks])}
    before = np.concatenate(([0], np.cumsum([len(block["data"]) for block in blocks])))
    starts = [block["indptr"][:-1] + offset for block, offset in zip(blocks, before[:-1], strict=True)]
    indptr = np.concatenate([*starts, before[-1:]])
    indices = np.concatenate([block["indices"] for block in blocks])
    kind = np.int32 if max(len(indices), int(indices.max(initial=0))) < 2**31 - 1 else np.int64
    data = np.concatenate([block["data"] for block in blocks])
    return {"data": data, "indices": indices.astype(kind), "indptr": indptr.astype(kind)}


def read_truth(stem: Path, rows: int, sums: dict[str, Any]) -> Truth:
    """Labels and groups of a shard, those of its parts that ``sums`` names (with their checksums, or None)."""
    read = {part: np.array(map_array(part_file(stem, part))) for part in LABELS if part in sums}
    for part, array in read.items():
        if sums[part] is not None and crc(array) != sums[part]:
            raise FileError(f"{part_file(stem, part)}: damaged: its checksum is not the one of {MANIFEST}")
        if part != "y_starts" and not (part == "y" and "y_starts" in read) and array.shape != (rows,):
            what = "labels" if part == "y" else "groups"
            raise FileError(f"{part_file(stem, part)}: expected {rows} {what}, one per row, got shape {array.shape}")
    groups = read.get("qid")
    if "y" not in read:
        return Truth(None, groups)
    y = read["y"]
    if "y_starts" in read:
        return Truth(np.split(y, read["y_starts"][1:-1]), groups)
    if y.dtype.kind in "fiub":
        y = y.astype(np.float64)
        if not np.isfinite(y).all():
            row = int(np.flatnonzero(~np.isfinite(y))[0])
            raise FileError(f"{part_file(stem, 'y')}: row {row} (from 0) holds {y[row]}: expected labels")
    return Truth(y, groups)
