"""Binary row shards: plain ``.npy`` files that are mapped into memory, and a manifest that says what belongs together.

A folder of shards holds, for every shard, ``NAME.X.npy`` (dense), or ``NAME.data.npy``, ``NAME.indices.npy`` and
``NAME.indptr.npy`` (CSR), and its labels in ``NAME.y.npy``; where a row may have several labels, those of row i are
``y[y_starts[i] : y_starts[i + 1]]``. Groups of rows, for rankings, are in ``NAME.qid.npy``. The manifest
``metrimax.json`` lists shapes, lengths and checksums.
The format is described in ``docs/scaling.md``.
"""

from __future__ import annotations

import math
import mmap
import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from metrimax.designs.linear import CSR, Dense
from metrimax.io.files import BAD_HEADER, FileError
from metrimax.io.labels import Truth, as_groups, as_labels
from metrimax.io.npy import read_header
from metrimax.protocols import Array, Design

MANIFEST = "metrimax.json"
FORMAT, VERSION = "metrimax-shards", 2  # the manifest of version 1 has no checksum of its own
DENSE, SPARSE, LABELS = ("X",), ("data", "indices", "indptr"), ("y", "y_starts", "qid")

_BLOCK = 1 << 24  # bytes looked at together by the checks


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
                shape, fortran, dtype = read_header(file)
                offset = file.tell()
        except OSError as error:
            raise FileError(f"{path}: {error.strerror or error}") from error
        except BAD_HEADER as error:
            raise FileError(f"{path}: no NumPy array ({error}): the file is damaged") from error
        if any(size < 0 for size in shape):
            raise FileError(f"{path}: no NumPy array (shape {shape}): the file is damaged")
        if dtype.hasobject:
            raise FileError(f"{path}: holds pickled objects, which are not read: expected numbers or strings")
        if path.stat().st_size < offset + math.prod(shape) * dtype.itemsize:
            raise FileError(f"{path}: cut off: {path.stat().st_size} bytes for an array of shape {shape}, {dtype}")
        return cls(dtype, shape, "F" if fortran else "C", offset)


def map_array(path: Path, layout: Layout | None = None) -> Array:
    """The array of an ``.npy`` file, mapped and not read; its layout, if known, saves a look at its header."""
    dtype, shape, order, offset = layout or Layout.of(path)
    if math.prod(shape) == 0 or dtype.itemsize == 0:
        return np.empty(shape, dtype)
    try:
        with open(path, "rb", buffering=0) as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        array = np.frombuffer(mapped, dtype, math.prod(shape), offset).reshape(shape, order=order)
        return array if array.flags.aligned else array.copy(order)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be mapped: {error}") from error


@dataclass
class MappedShard:
    """The rows of one binary shard. They are checked when first read and must not change afterwards.

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
        return tuple(stat_of(part_file(self.stem, part)) for part in self.parts)

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
    """Ask the system to read a file into its cache; it may ignore this."""
    if not hasattr(os, "posix_fadvise"):
        return
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return  # whatever is wrong, the read that follows says it
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(handle)


def stat_of(path: Path) -> tuple[int, int, int]:
    """Length, time and identity of a file, which tell it from any other."""
    try:
        found = path.stat()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}: the folder is not complete") from error
    return found.st_size, found.st_mtime_ns, found.st_ino


def read_truth(stem: Path, rows: int, sums: dict[str, Any]) -> Truth:
    """Labels and groups of a shard, those of its parts that ``sums`` names (with their checksums, or None)."""
    read = {part: np.array(map_array(part_file(stem, part))) for part in LABELS if part in sums}
    for part, array in read.items():
        if sums[part] is not None and crc(array) != sums[part]:
            raise FileError(f"{part_file(stem, part)}: damaged: its checksum is not the one of {MANIFEST}")
        if part != "y_starts" and not (part == "y" and "y_starts" in read) and array.shape != (rows,):
            what = "labels" if part == "y" else "groups"
            raise FileError(f"{part_file(stem, part)}: expected {rows} {what}, one per row, got shape {array.shape}")
    groups = as_groups(part_file(stem, "qid"), read.get("qid"))
    labels = as_labels(part_file(stem, "y"), read.get("y"))
    if labels is None or "y_starts" not in read:
        return Truth(labels, groups)
    starts = read["y_starts"]
    if not (
        labels.ndim == starts.ndim == 1
        and starts.dtype.kind in "iu"
        and len(starts) == rows + 1
        and starts[0] == 0
        and starts[-1] == len(labels)
        and (starts[1:] >= starts[:-1]).all()
    ):
        raise FileError(
            f"{part_file(stem, 'y_starts')}: expected {rows + 1} whole numbers from 0 up to {len(labels)}, where the "
            f"labels of each row begin in {part_file(stem, 'y').name} and where the last end, got shape "
            f"{starts.shape} and type {starts.dtype}, or other numbers"
        )
    return Truth(np.split(labels, starts[1:-1]), groups)
