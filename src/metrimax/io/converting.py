"""``metrimax convert``: turn data files into binary shards that can be mapped into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from metrimax.designs.linear import CSR
from metrimax.io.compressed import blocks
from metrimax.io.data import file_kind, load_data
from metrimax.io.dataset import open_dataset
from metrimax.io.files import FileError, Name, files_in
from metrimax.io.limits import Limit, parse_size
from metrimax.io.shards import MANIFEST
from metrimax.io.svmlight import parse_svmlight
from metrimax.io.writing import ShardWriter


def convert(
    source: Name,
    folder: Name,
    *,
    shard_size: int | str = "64MiB",
    dtype: str | None = None,
    kind: str | None = None,
    target: str | int | None = None,
    index_base: int | None = None,
    memory: int | str = "1GiB",
    n_threads: int | None = None,
    progress: Callable[[str], None] | None = None,
    limit: Limit = None,
    drop: Sequence[str] = (),
) -> dict[str, Any]:
    """Write binary shards from a data file or a folder of data files; returns the manifest.

    svmlight text is read piece by piece, however long it is, compressed or not; other files one at a time. The folder
    appears when it is complete.

    Parameters
    ----------
    source : str or path
        ``"-"`` is standard input.
    folder : str or path
        Must not exist, or be empty.
    shard_size : int or str
        Approximate size of a shard; a pass holds one shard per thread in memory.
    dtype : {"float32", "float64"}, optional
        Type of the values; float32 halves dense files. Default: that of the source (text: float64).
    kind, target, index_base, n_threads
        As for a single file.
    memory : int or str
        Most memory for rows, where the folder holds other files than svmlight text.
    progress : callable, optional
        Called with a line of text.
    limit : int or str, optional
        The most bytes that a file may expand to, as for a single file.
    drop : list of str
        Columns of tables to leave out.
    """
    size = parse_size(shard_size)
    tell = progress or (lambda text: None)
    with ShardWriter(folder, shard_size=size, dtype=dtype) as writer:
        texts = _texts(source, kind)
        if texts is not None:
            if drop:
                raise FileError(f"{source}: --drop is for the columns of tables, got svmlight text: leave it out")
            base = _add_texts(writer, texts, size, index_base, n_threads, tell, limit)
            return writer.finish(index_base=base)
        options: dict[str, Any] = {"kind": kind, "target": target, "index_base": index_base, "n_threads": n_threads}
        options |= {"limit": limit, "drop": drop}
        if source != "-" and Path(source).is_dir():
            dataset: Any = open_dataset(source, memory=memory, progress=progress, **options)
            labels, groups = dataset.labels, dataset.groups
            for k, shard in enumerate(dataset.shards):
                tell(f"shard {k + 1} of {len(dataset.shards)}")
                rows: Any = shard.load(1)
                own = slice(dataset.starts[k], dataset.starts[k + 1])
                parts = (None if part is None else part[own] for part in (labels, groups))
                writer.add(rows if isinstance(rows, CSR) else rows.X, *parts)
            writer.n_cols = dataset.n_cols
            return writer.finish(index_base=dataset.index_base, feature_names=dataset.feature_names)
        data = load_data(source, **options)
        writer.add(data.X, data.labels, data.groups)
        return writer.finish(index_base=data.index_base, feature_names=data.feature_names)


def _texts(source: Name, kind: str | None) -> list[Name] | None:
    """The files, if they are svmlight text, else None."""
    if source == "-" or not Path(source).is_dir():
        return [source] if (kind or file_kind(source)) == "svmlight" else None
    files = files_in(Path(source))
    binary = any(file.suffix == ".npy" or file.name == MANIFEST for file in files)
    text = bool(files) and not binary and all((kind or file_kind(file)) == "svmlight" for file in files)
    return list(files) if text else None


def _add_texts(
    writer: ShardWriter,
    texts: list[Name],
    size: int,
    index_base: int | None,
    n_threads: int | None,
    tell: Callable[[str], None],
    limit: Limit,
) -> int:
    """Append all rows of the files; returns the index of the first feature.

    It is assumed to be 1 until the index 0 occurs; the columns written before are then moved.
    """
    base = 1 if index_base is None else index_base
    least = 0 if index_base is None else index_base
    for path in texts:
        lines = 0
        for text in blocks(path, size, limit=limit):
            rows = parse_svmlight(text, path, least=least, n_threads=n_threads, lines_before=lines, several=True)
            lines += int(np.count_nonzero(text == ord("\n")))
            if rows.lowest < base and rows.n and len(rows.values):
                writer.shift_columns(1)
                base = 0
            if not rows.n:
                continue
            X = SimpleNamespace(
                data=rows.values,
                indices=rows.indices - np.int32(base),
                indptr=rows.indptr,
                shape=(rows.n, max(rows.highest - base + 1, 0)),
            )
            writer.add(X, *rows.truth)
            tell(f"{path}: {writer.n} rows")
    return base
