"""Find the shards of a folder: binary ones, with or without a manifest, or data files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metrimax.designs import CSR, as_design
from metrimax.designs.sharded import Shard
from metrimax.io.data import Data, file_kind, load_data
from metrimax.io.files import FileError, files_in
from metrimax.io.labels import Truth, are_names, join
from metrimax.io.limits import check_expansion
from metrimax.io.sealing import SEAL, parse_json, unsealed
from metrimax.io.shards import (
    DENSE,
    FORMAT,
    LABELS,
    MANIFEST,
    SPARSE,
    VERSION,
    MappedShard,
    map_array,
    part_file,
    read_ahead,
    read_truth,
    stat_of,
)
from metrimax.protocols import Array, Design, Vector


class Found(NamedTuple):
    """The shards of a folder, with labels, groups and column names of their rows."""

    shards: Sequence[Shard]
    n_cols: int
    labels: Array | list[Vector] | None
    feature_names: list[str] | None = None
    index_base: int | None = None
    groups: Array | None = None
    remarks: Sequence[str] = ()  # on cells of tables that a model had not met


def look_into(
    folder: Path,
    reading: dict[str, Any],
    *,
    index_base: int | None = None,
    n_features: int | None = None,
    n_threads: int | None = None,
    verify: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Found:
    """Find the shards of a folder; ``reading`` says how to read data files, the rest is as in `open_dataset`."""
    if not folder.is_dir():
        raise FileError(f"{folder}: expected a folder of shards, got {'a file' if folder.exists() else 'nothing'}")
    names = [file.name for file in files_in(folder)]
    if reading.get("drop") and any(name == MANIFEST or name.endswith(".npy") for name in names):
        raise FileError(f"{folder}: --drop is for tables, not for binary shards: give it to 'metrimax convert'")
    if MANIFEST in names:
        return _from_manifest(folder, reading, index_base, n_features, verify)
    if any(name.endswith(".npy") for name in names):
        return _from_arrays(folder, names, n_features, reading)
    return _from_files(folder, names, reading, index_base, n_features, n_threads, progress)


def holds_tables(path: Path, kind: str | None) -> bool:
    """Whether this is a table, or a folder of tables."""
    if not path.is_dir():
        return (kind or file_kind(path)) in ("csv", "parquet")
    names = [file.name for file in files_in(path)]
    binary = any(name == MANIFEST or name.endswith(".npy") for name in names)
    return not binary and all((kind or file_kind(name)) in ("csv", "parquet") for name in names)


def would_be_part(path: Path, folder: Path) -> bool:
    """Whether a file of this name would count as a shard of its folder."""
    place = Path(os.path.realpath(path))
    if not folder.is_dir() or place.parent != Path(os.path.realpath(folder)) or place.name.startswith("."):
        return False
    return not (folder / MANIFEST).exists() or place.name == MANIFEST or place.suffix == ".npy"


@dataclass
class FileShard:
    """The rows of one data file, decoded each time they are read."""

    path: Path
    rows: int
    held: int
    peak: int
    options: dict[str, Any]
    seen: tuple[int, int, int] | None

    @property
    def name(self) -> str:
        return str(self.path)

    def load(self, n_threads: int) -> Design:
        seen = stat_of(self.path)
        if self.seen not in (None, seen):
            raise FileError(f"{self.path}: has changed since it was opened: files must not be written while in use")
        design = as_design(load_data(self.path, n_threads=n_threads, **self.options).X, n_threads=n_threads)
        if design.shape[0] != self.rows:
            raise FileError(f"{self.path}: has changed since it was opened: {self.rows} rows, now {design.shape[0]}")
        self.seen = seen
        return design

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"seen": None}  # another machine may have a copy of the file, of another time

    def prefetch(self) -> None:
        read_ahead(self.path)

    def check(self) -> None:
        """Nothing to check: rows in memory cannot change."""


def difference(expected: Sequence[str], got: Sequence[str]) -> str:
    """How two lists of column names differ: in length, or in the first name that is not the same."""
    if len(expected) != len(got):
        return f"expected {len(expected)} columns, got {len(got)}"
    j = next(j for j, name in enumerate(expected) if name != got[j])
    return f"expected {expected[j]!r} as column {j} (from 0), got {got[j]!r}"


def _from_manifest(
    folder: Path, reading: dict[str, Any], index_base: int | None, n_features: int | None, verify: bool
) -> Found:
    """A folder that `metrimax.io.writing` wrote; its columns must be the requested ones, where both are known."""
    file, wanted = folder / MANIFEST, reading["feature_names"]
    try:
        manifest = parse_json(file.read_bytes())
        version = manifest["version"]
        if manifest["format"] != FORMAT or type(version) is not int or not 1 <= version <= VERSION:
            raise FileError(f"{file}: expected {FORMAT}, version {VERSION}, got {manifest['format']}, {version}")
        if version > 1 or SEAL in manifest:
            manifest = unsealed(manifest)
        parts, columns = tuple(manifest["parts"]), int(manifest["columns"])
        entries = [(entry["name"], int(entry["rows"]), dict(entry["files"])) for entry in manifest["shards"]]
        sums = [{part: int(about["crc32"]) for part, about in files.items()} for _, _, files in entries]
        sizes = [{part: int(about["bytes"]) for part, about in files.items()} for _, _, files in entries]
        names, base = manifest.get("feature_names"), manifest.get("index_base")
        _check_entries(parts, columns, names, base, entries)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(
            f"{file}: damaged, or no manifest of shards ({type(error).__name__}: {error}): "
            "restore it, or convert the data again"
        ) from error
    if wanted is not None and names is not None and names != list(wanted):
        raise FileError(
            f"{folder}: its columns are not those of the model: {difference(wanted, names)}; convert the data again "
            "with the columns in the model's order, or give data files, whose columns are taken by name"
        )
    if index_base is not None and base is not None and base != index_base:
        raise FileError(
            f"{folder}: expected {index_base} as the index of the first feature, got a folder that counts from {base}: "
            f"convert the text again with --index-base {index_base}"
        )
    width = _width(folder, columns, n_features, fixed=parts == DENSE or names is not None)
    stored = sum(sum(lengths.values()) for lengths in sizes)
    if n_features is None:
        check_expansion(file, f"{columns} columns", 8 * columns, stored, reading["limit"])
    shards, truths = [], []
    for (name, rows, _), checksums, lengths in zip(entries, sums, sizes, strict=True):
        stem = folder / Path(name).name
        for part, length in lengths.items():
            path = part_file(stem, part)
            if not path.is_file():
                raise FileError(f"{path}: missing, though {MANIFEST} lists it: restore it, or convert the data again")
            if path.stat().st_size != length:
                raise FileError(f"{path}: cut off or replaced: {path.stat().st_size} bytes, {length} in {MANIFEST}")
        shards.append(MappedShard(stem, rows, width, parts, checksums if verify else {}))
        truths.append(read_truth(stem, rows, checksums if reading["labels"] else {}))
    labels, groups = join(folder, truths, [rows for _, rows, _ in entries], whole=not reading["several"])
    return Found(shards, width, labels, names, base, groups)


def _check_entries(parts: tuple[Any, ...], columns: int, names: Any, base: Any, entries: list[Any]) -> None:
    """Raise ValueError where a manifest is impossible."""
    if parts not in (DENSE, SPARSE):
        raise ValueError(f"expected the parts {list(DENSE)} or {list(SPARSE)}, got {list(parts)!r:.100}")
    if not 0 <= columns < 2**48:  # no machine can address weights for more of them
        raise ValueError(f"expected a number of columns below 2^48, got {columns}")
    if names is not None and not are_names(names, columns):
        raise ValueError(f"expected feature_names as {columns} strings or null, got {names!r:.100}")
    if base is not None and type(base) is not int:
        raise ValueError(f"expected index_base as a whole number or null, got {base!r:.100}")
    if not entries:
        raise ValueError("expected shards, got none")
    for name, rows, _ in entries:
        plain = isinstance(name, str) and name.isprintable() and Path(name).name == name and 0 < len(name) < 200
        if not plain or not 0 <= rows < 2**63:
            raise ValueError(f"expected the name of a shard and its rows, got {name!r:.100} and {rows}")


def _from_arrays(folder: Path, names: list[str], n_features: int | None, reading: dict[str, Any]) -> Found:
    """A folder of .npy files without manifest."""
    found: dict[str, set[str]] = {}
    for name in names:
        shard, _, part = name.removesuffix(".npy").rpartition(".")
        if not name.endswith(".npy") or not shard or part not in (*DENSE, *SPARSE, *LABELS):
            raise FileError(
                f"{folder / name}: expected NAME.X.npy and NAME.y.npy, or NAME.data.npy, NAME.indices.npy, "
                "NAME.indptr.npy and NAME.y.npy for every shard, and no other files"
            )
        found.setdefault(shard, set()).add(part)
    shards, truths, widths = [], [], []
    kinds = {DENSE if "X" in parts else SPARSE for parts in found.values()}
    for stem, parts in sorted((folder / name, parts) for name, parts in found.items()):
        kind = DENSE if "X" in parts else SPARSE
        missing = [part for part in kind if part not in parts]
        if missing or len(kinds) > 1:
            what = f"{stem.name}.{missing[0]}.npy is missing" if missing else "dense and sparse shards are mixed"
            raise FileError(f"{stem}: {what}")
        if kind == DENSE:
            X = map_array(part_file(stem, "X"))
            if X.ndim != 2:
                raise FileError(f"{part_file(stem, 'X')}: expected two dimensions, got shape {X.shape}")
            rows, width = X.shape
        else:
            rows = len(_whole_numbers(part_file(stem, "indptr"), least=1)) - 1
            indices = _whole_numbers(part_file(stem, "indices"))
            width = int(indices.max()) + 1 if len(indices) else 0
        widths.append(width)
        shards.append((stem, rows, kind))
        truths.append(read_truth(stem, rows, dict.fromkeys(parts & set(LABELS)) if reading["labels"] else {}))
    if DENSE in kinds and len(set(widths)) > 1:
        odd = next(k for k, width in enumerate(widths) if width != widths[0])
        raise FileError(f"{shards[odd][0]}: expected {widths[0]} columns, as in the first shard, got {widths[odd]}")
    width = _width(folder, max(widths), n_features, fixed=DENSE in kinds)
    made = [MappedShard(stem, rows, width, kind) for stem, rows, kind in shards]
    labels, groups = join(folder, truths, [rows for _, rows, _ in shards], whole=not reading["several"])
    return Found(made, width, labels, groups=groups)


def _whole_numbers(path: Path, least: int = 0) -> Array:
    """Map an array of at least ``least`` whole numbers."""
    array = map_array(path)
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) < least:
        raise FileError(
            f"{path}: expected whole numbers in one dimension, got shape {array.shape} and type {array.dtype}"
        )
    return array


def _width(folder: Path, columns: int, n_features: int | None, *, fixed: bool) -> int:
    """The number of columns to use: a model may have more than sparse rows without names show."""
    if n_features is not None and columns != n_features and (fixed or columns > n_features):
        raise FileError(f"{folder}: expected {n_features} features, those of the model, got {columns}")
    return columns if n_features is None else n_features


def _from_files(
    folder: Path,
    names: list[str],
    reading: dict[str, Any],
    index_base: int | None,
    n_features: int | None,
    n_threads: int | None,
    progress: Callable[[str], None] | None,
) -> Found:
    """A folder of data files; each is scanned once here."""
    if not names:
        raise FileError(f"{folder}: expected a folder of shards, got an empty folder")
    kinds = {name: reading["kind"] or file_kind(name) for name in names}
    odd = next((name for name in names if kinds[name] != kinds[names[0]]), None)
    if odd is not None:
        raise FileError(
            f"{folder / odd}: taken for {kinds[odd]}, but {names[0]} for {kinds[names[0]]}: "
            "expected files of one kind; give it (--format) if the names mislead"
        )
    text = kinds[names[0]] == "svmlight"
    sizes = {"index_base": 0} if text else {"n_features": n_features}
    how = reading | sizes | {"several": True, "n_threads": n_threads}
    looks = [_Look.at(folder / name, how, f"{k} of {len(names)}", progress) for k, name in enumerate(names, 1)]
    looks = [look for look in looks if look.rows] or looks  # an empty file has no columns and no labels
    base = _base(looks, index_base) if text else index_base
    widths = [max(0, look.width - (base or 0)) if text else look.width for look in looks]
    if not text and len(set(widths)) > 1:
        wrong = next(k for k, width in enumerate(widths) if width != widths[0])
        raise FileError(
            f"{looks[wrong].path}: expected {widths[0]} columns, as in {looks[0].path.name}, got {widths[wrong]}"
        )
    width = max(widths) if n_features is None else n_features
    columns = looks[0].feature_names if reading["feature_names"] is None else reading["feature_names"]
    for look in looks:
        if columns is not None and look.feature_names is not None and set(look.feature_names) != set(columns):
            raise FileError(f"{look.path}: expected the columns of {looks[0].path.name}: {', '.join(columns[:50])}")
    rest = reading | {"feature_names": columns, "n_features": width, "labels": False}
    if text:
        rest["index_base"] = base
    shards = [
        FileShard(look.path, look.rows, look.held, 2 * look.seen[0] + 4 * look.held, rest, look.seen) for look in looks
    ]
    truths, rows = [look.truth for look in looks], [look.rows for look in looks]
    labels, groups = Truth(None)
    if reading["labels"]:
        labels, groups = join(folder, truths, rows, whole=not reading["several"])
    remarks = [f"{look.path.name}: {remark}" for look in looks for remark in look.remarks]
    return Found(shards, width, labels, columns, base if text else None, groups, remarks)


def _base(looks: list[_Look], index_base: int | None) -> int:
    """The index of the first feature: as given, or 0 if some file has it; none may have a lower one."""
    lowest = min(looks, key=lambda look: look.lowest)
    base = int(lowest.lowest > 0) if index_base is None else index_base
    if lowest.lowest < base:
        raise FileError(f"{lowest.path}: expected feature indices from {base}, got {lowest.lowest}")
    return base


class _Look:
    """The result of scanning one file."""

    @classmethod
    def at(cls, path: Path, how: dict[str, Any], number: str, progress: Callable[[str], None] | None) -> _Look:
        """Scan a file, and tell which one it is."""
        if progress is not None:
            progress(f"looking through file {number}, {path.name}")
        seen = stat_of(path)
        return cls(path, load_data(path, **how), seen)

    def __init__(self, path: Path, data: Data, seen: tuple[int, int, int]) -> None:
        X = data.X
        self.path, self.seen, self.remarks = path, seen, data.remarks
        self.rows, self.width = int(X.shape[0]), int(X.shape[1])
        self.truth, self.feature_names = Truth(data.labels, data.groups), data.feature_names
        if isinstance(X, np.ndarray):
            self.held, self.lowest = X.nbytes, 0
        elif isinstance(X, CSR):
            self.held = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
            self.lowest = int(X.indices.min(initial=2**31 - 1))
