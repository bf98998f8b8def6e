"""`metrimax.open_dataset`: a folder of row shards as data to train on, X never in memory as a whole."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from metrimax.designs import CSR, as_design
from metrimax.designs.sharded import Shard, Sharded
from metrimax.io.data import Data, encode, file_kind, load_data
from metrimax.io.files import FileError
from metrimax.io.labels import Truth, join
from metrimax.io.shards import (
    DENSE,
    FORMAT,
    LABELS,
    MANIFEST,
    SPARSE,
    VERSION,
    MappedShard,
    map_array,
    parse_size,
    part_file,
    read_ahead,
    read_truth,
)
from metrimax.protocols import Design, Vector

Array = npt.NDArray[Any]
Name = str | os.PathLike[str]

MEMORY = "1GiB"
"""For rows, unless something else is asked for."""


class Labelled:
    """What comes with the rows of a dataset: its name, its labels and groups, and what its columns are called."""

    name: Name
    labels: Array | list[Vector] | None
    groups: Array | None
    feature_names: list[str] | None
    index_base: int | None
    shape: tuple[int, int]

    def describe(self, about: Labelled | dict[str, Any]) -> None:
        known = about if isinstance(about, dict) else vars(about)
        for key in ("name", "labels", "groups", "feature_names", "index_base"):
            setattr(self, key, known.get(key))

    @property
    def y(self) -> Array:
        """The labels as an estimator wants them: (n,), or an indicator matrix (n, L) where a row may have several."""
        if isinstance(self.labels, np.ndarray):
            return self.labels
        _, _, columns = encode(Data(self.name, cast(Any, self), self.labels))
        return columns.astype(int)

    def __repr__(self) -> str:
        n, p = self.shape
        return f"<{type(self).__name__} {self.name}: {n} rows, {p} columns>"


class Dataset(Labelled, Sharded):
    """Rows in files, labels in memory: a design that `MeasureSVC.fit` takes without y. See `open_dataset`.

    Attributes
    ----------
    shape : tuple of int
    labels : ndarray (n,), list of ndarray, or None
        As in the files; a list where a row may have several, None where there are none.
    groups : ndarray (n,) or None
        The group of each row (``qid:``), for `MeasureRanker`.
    feature_names : list of str or None
    index_base : int or None
        The index of the first feature in svmlight text.
    bytes_read : int
        Bytes of the shards that products went through so far.
    """

    def __init__(
        self,
        name: Name,
        shards: Sequence[Shard],
        n_cols: int,
        truth: Truth,
        *,
        memory: int,
        n_threads: int | None = None,
        feature_names: list[str] | None = None,
        index_base: int | None = None,
    ) -> None:
        about = {"name": name, "feature_names": feature_names, "index_base": index_base}
        self.describe(about | truth._asdict())
        super().__init__(shards, n_cols, memory=memory, n_threads=n_threads)


@dataclass
class FileShard:
    """The rows of one data file, decoded whenever they are wanted."""

    path: Path
    rows: int
    held: int
    peak: int
    options: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.path)

    def load(self, n_threads: int) -> Design:
        design = as_design(load_data(self.path, n_threads=n_threads, **self.options).X, n_threads=n_threads)
        if design.shape[0] != self.rows:
            raise FileError(f"{self.path}: has changed since it was opened: {self.rows} rows, now {design.shape[0]}")
        return design

    def prefetch(self) -> None:
        read_ahead(self.path)

    def check(self) -> None:
        """What is held in memory cannot change."""


def open_dataset(
    path: Name,
    *,
    memory: int | str = MEMORY,
    kind: str | None = None,
    target: str | None = None,
    index_base: int | None = None,
    n_features: int | None = None,
    feature_names: list[str] | None = None,
    n_threads: int | None = None,
    verify: bool = True,
    progress: Callable[[str], None] | None = None,
    dask: Any = None,
) -> Labelled:
    """Open a folder of row shards.

    Only labels, scores and weights are kept in memory; of the rows, at most ``memory`` bytes at a time.

    Parameters
    ----------
    path : str or path
        A folder made by ``metrimax convert``; or one of ``NAME.X.npy`` (or ``NAME.data.npy``, ``NAME.indices.npy``,
        ``NAME.indptr.npy``) with ``NAME.y.npy``, and ``NAME.qid.npy`` for groups; or one of data files of one kind:
        svmlight text, CSV, ``.npz``, Parquet. The rows are in the order of the file names.
    memory : int or str
        Most memory for rows, in bytes or as in ``"500MB"``. Mapped files count, though the system may take their
        memory back at any time.
    kind, target, index_base, n_features, feature_names
        As for a single file: how data files are read. Binary shards need none of them.
    n_threads : int or None
        The most threads; None for all cores.
    verify : bool
        Compare the checksums of binary shards when they are first read.
    progress : callable, optional
        Called with a line of text while data files are looked through.
    dask : Client, str, True or None
        Have the shards read by the workers of a Dask cluster, each its own, from the same path: a client, the address
        of a scheduler, or True for the current client or a local cluster of processes. ``memory`` is then for each
        thread of the workers.

    Notes
    -----
    Binary shards are mapped into memory, and read at the speed of memory while the system has them in its cache. Other
    files are looked through once here, for labels and columns, and decoded again in every pass unless they fit into
    ``memory``: convert them first (``metrimax convert``) for more than a few passes. Hidden files are left out.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from metrimax import MeasureSVC, open_dataset
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(3):
    ...         y = rng.random(200) < 0.2
    ...         np.save(f"{folder}/part-{k}.X.npy", rng.normal(size=(200, 4)) + 2 * y[:, None])
    ...         np.save(f"{folder}/part-{k}.y.npy", y.astype(float))
    ...     clf = MeasureSVC("f1").fit(open_dataset(folder))
    >>> clf.status_.name
    'CONVERGED'
    """
    folder, limit = Path(path), parse_size(memory)
    if not folder.is_dir():
        raise FileError(f"{folder}: expected a folder of shards, got {'a file' if folder.exists() else 'nothing'}")
    if dask is not None and dask is not False:
        from metrimax.io.remote import on_workers

        described = open_dataset(
            path,
            memory=memory,
            kind=kind,
            target=target,
            index_base=index_base,
            n_features=n_features,
            feature_names=feature_names,
            verify=verify,
            progress=progress,
        )
        return on_workers(cast(Dataset, described), None if dask is True else dask)
    options = {"memory": limit, "n_threads": n_threads}
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    if MANIFEST in names:
        dataset = _from_manifest(folder, options, verify)
    elif any(name.endswith(".npy") for name in names):
        dataset = _from_arrays(folder, names, options)
    else:
        reading = {"kind": kind, "target": target, "feature_names": feature_names}
        return _from_files(folder, names, options, reading, index_base, n_features, progress)
    if n_features is not None and dataset.n_cols != n_features:
        if dataset.feature_names is not None or dataset.shards[0].parts == DENSE or dataset.n_cols > n_features:  # type: ignore[attr-defined]
            raise FileError(f"{folder}: expected {n_features} features, those of the model, got {dataset.n_cols}")
        return _widened(dataset, n_features, options)
    return dataset


def _from_manifest(folder: Path, options: dict[str, Any], verify: bool) -> Dataset:
    file = folder / MANIFEST
    try:
        manifest = json.loads(file.read_bytes())
        if manifest["format"] != FORMAT or manifest["version"] != VERSION:
            raise FileError(
                f"{file}: expected {FORMAT}, version {VERSION}, got {manifest['format']}, {manifest['version']}"
            )
        parts, width = tuple(manifest["parts"]), int(manifest["columns"])
        entries = [(entry["name"], int(entry["rows"]), dict(entry["files"])) for entry in manifest["shards"]]
        sums = [{part: int(about["crc32"]) for part, about in files.items()} for _, _, files in entries]
        sizes = [{part: int(about["bytes"]) for part, about in files.items()} for _, _, files in entries]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{file}: damaged, or no manifest of shards ({type(error).__name__}: {error})") from error
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
        truths.append(read_truth(stem, rows, checksums))
    return Dataset(
        folder,
        shards,
        width,
        join(folder, truths),
        feature_names=manifest.get("feature_names"),
        index_base=manifest.get("index_base"),
        **options,
    )


def _from_arrays(folder: Path, names: list[str], options: dict[str, Any]) -> Dataset:
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
        first = map_array(part_file(stem, kind[-1]))
        rows = len(first) if kind == DENSE else len(first) - 1
        if kind == DENSE:
            if first.ndim != 2:
                raise FileError(f"{part_file(stem, 'X')}: expected two dimensions, got shape {first.shape}")
            widths.append(first.shape[1])
        else:
            widths.append(int(map_array(part_file(stem, "indices")).max(initial=-1)) + 1)
        shards.append((stem, rows, kind))
        truths.append(read_truth(stem, rows, dict.fromkeys(parts & set(LABELS))))
    if DENSE in kinds and len(set(widths)) > 1:
        odd = next(k for k, width in enumerate(widths) if width != widths[0])
        raise FileError(f"{shards[odd][0]}: expected {widths[0]} columns, as in the first shard, got {widths[odd]}")
    width = max(widths)
    made = [MappedShard(stem, rows, width, kind) for stem, rows, kind in shards]
    return Dataset(folder, made, width, join(folder, truths), **options)


def _from_files(
    folder: Path,
    names: list[str],
    options: dict[str, Any],
    reading: dict[str, Any],
    index_base: int | None,
    n_features: int | None,
    progress: Callable[[str], None] | None,
) -> Dataset:
    """A folder of data files, each of which is looked at once here."""
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
    looks = []
    for number, name in enumerate(names, 1):
        if progress is not None:
            progress(f"looking through file {number} of {len(names)}, {name}")
        data = load_data(folder / name, index_base=0 if text else None, n_threads=options["n_threads"], **reading)
        looks.append(_Look(folder / name, data))
    base = index_base
    if text:
        lowest = min(look.lowest for look in looks)
        base = int(lowest > 0) if base is None else base
        if lowest < base:
            first = next(look for look in looks if look.lowest < base)
            raise FileError(f"{first.path}: expected feature indices from {base}, got {first.lowest}")
    widths = [look.width - (base or 0) if text else look.width for look in looks]
    if not text and len(set(widths)) > 1:
        wrong = next(k for k, width in enumerate(widths) if width != widths[0])
        raise FileError(f"{looks[wrong].path}: expected {widths[0]} columns, as in {names[0]}, got {widths[wrong]}")
    width = max(widths) if n_features is None else n_features
    columns = looks[0].feature_names if reading["feature_names"] is None else reading["feature_names"]
    for look in looks:
        if columns is not None and look.feature_names is not None and set(look.feature_names) != set(columns):
            raise FileError(f"{look.path}: expected the columns of {names[0]}: {', '.join(columns[:50])}")
    rest = {**reading, "feature_names": columns} | ({"index_base": base, "n_features": width} if text else {})
    if not text and n_features is not None and widths[0] != n_features:
        raise FileError(f"{folder}: expected {n_features} features, those of the model, got {widths[0]}")
    shards = [
        FileShard(look.path, look.rows, look.held, 2 * look.path.stat().st_size + 4 * look.held, rest) for look in looks
    ]
    truth = join(folder, [look.truth for look in looks])
    return Dataset(folder, shards, width, truth, feature_names=columns, index_base=base if text else None, **options)


class _Look:
    """What is kept of a file after a first look."""

    def __init__(self, path: Path, data: Data) -> None:
        X = data.X
        self.path = path
        self.rows, self.width = int(X.shape[0]), int(X.shape[1])
        self.truth, self.feature_names = Truth(data.labels, data.groups), data.feature_names
        if isinstance(X, np.ndarray):
            self.held, self.lowest = X.nbytes, 0
        elif isinstance(X, CSR):
            self.held = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
            self.lowest = int(X.indices.min(initial=2**31 - 1))


def _widened(dataset: Dataset, n_features: int, options: dict[str, Any]) -> Dataset:
    """The same sparse rows under a model that knows more columns."""
    shards = [MappedShard(s.stem, s.rows, n_features, s.parts, s.sums) for s in dataset.shards]  # type: ignore[attr-defined]
    truth = Truth(dataset.labels, dataset.groups)
    return Dataset(dataset.name, shards, n_features, truth, index_base=dataset.index_base, **options)


def load(
    path: Name, *, memory: int | str = MEMORY, progress: Callable[[str], None] | None = None, **options: Any
) -> Data:
    """A file in memory, or a folder of shards: `load_data` or `open_dataset`, with the options of the former."""
    if path == "-" or not Path(path).is_dir():
        return load_data(path, **options)
    dataset = open_dataset(path, memory=memory, progress=progress, **options)
    about = (dataset.labels, dataset.index_base, dataset.feature_names, dataset.groups)
    return Data(path, cast(Any, dataset), *about)
