"""`metrimax.open_dataset`: a folder of row shards as data to train on, X never in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from metrimax.designs.sharded import Sharded
from metrimax.io.columns import Column, Learn
from metrimax.io.data import Data, encode, indicator_matrix, load_data
from metrimax.io.files import FileError, Name
from metrimax.io.folders import Found, look_into
from metrimax.io.labels import show
from metrimax.io.limits import Limit, parse_size
from metrimax.protocols import Array, Vector

MEMORY = "1GiB"
"""Default memory for rows."""


class Labelled:
    """A dataset's name, labels, groups and column names."""

    name: Name
    labels: Array | list[Vector] | None
    groups: Array | None
    feature_names: list[str] | None
    index_base: int | None
    remarks: Sequence[str]
    shape: tuple[int, int]

    def describe(self, name: Name, about: Found | Labelled) -> None:
        self.name, self.labels, self.groups = name, about.labels, about.groups
        self.feature_names, self.index_base, self.remarks = about.feature_names, about.index_base, about.remarks

    @property
    def y(self) -> Array:
        """The labels as estimators take them: (n,), or an indicator matrix (n, L) where rows may have several."""
        if isinstance(self.labels, np.ndarray):
            return self.labels
        return encode(self)[2].astype(int)

    @property
    def label_values(self) -> Array | None:
        """The label of each column of `y`; None where every row has one label."""
        return np.unique(np.concatenate(self.labels)) if isinstance(self.labels, list) else None

    def indicators(self, values: Array) -> Array:
        """The indicator matrix for the given labels, in ascending order; they must include all labels of the rows.

        A label that no row has is a column of zeros.
        """
        if self.labels is None:
            raise FileError(f"{self.name}: expected labels, got none")
        own = np.concatenate(self.labels) if isinstance(self.labels, list) else self.labels
        unknown = np.setdiff1d(own, values)
        if len(unknown):
            raise FileError(
                f"{self.name}: expected labels among {_names(values)}, those that the model was fitted on, got "
                f"{_names(unknown)} as well: leave out the labels that it does not know, or give y"
            )
        if isinstance(self.labels, list):
            return indicator_matrix(self.labels, values).astype(int)
        return np.asarray(own[:, np.newaxis] == values, dtype=int)

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
    label_values : ndarray (L,) or None
        Where a row may have several labels, those that there are: one for each column of `y`.
    groups : ndarray (n,) or None
        The group of each row (``qid:``), for `MeasureRanker`.
    feature_names : list of str or None
    index_base : int or None
        The index of the first feature in svmlight text.
    bytes_read : int
        Bytes of the shards that products went through so far.
    """

    def __init__(self, name: Name, found: Found, *, memory: int, n_threads: int | None = None) -> None:
        self.describe(name, found)
        super().__init__(found.shards, found.n_cols, memory=memory, n_threads=n_threads)


def open_dataset(
    path: Name,
    *,
    memory: int | str = MEMORY,
    kind: str | None = None,
    target: str | int | None = None,
    index_base: int | None = None,
    n_features: int | None = None,
    feature_names: list[str] | None = None,
    labels: bool = True,
    several: bool = False,
    n_threads: int | None = None,
    verify: bool = True,
    progress: Callable[[str], None] | None = None,
    dask: Any = None,
    limit: Limit = None,
    columns: Sequence[Column] | None = None,
    drop: Sequence[str] = (),
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
    labels : bool
        False where neither labels nor groups are wanted: they are left out, and some may be missing.
    several : bool
        Whether rows may have no label even if no row of the folder has several, as for a multi-label model.
    n_threads : int or None
        The most threads; None for all cores.
    verify : bool
        Compare the checksums of binary shards when they are first read.
    progress : callable, optional
        Called with a line of text while data files are scanned.
    dask : Client, str, True or None
        Have the shards read by the workers of a Dask cluster, each its own, from the same path: a client, the address
        of a scheduler, or True for the current client or a local cluster of processes. ``memory`` is then for each
        thread of the workers.
    limit : int or str, optional
        The most bytes that a file may expand to, such as ``"8GiB"``: decompressed, or as the arrays that its numbers
        ask for. By default what the environment variable METRIMAX_LIMIT says, else 100 times the length of the file,
        and 256 MiB in any case.
    columns : list of Column, optional
        How a model treats the columns of tables; by default every cell has to be a number.
    drop : list of str
        Columns of tables to leave out.

    Returns
    -------
    dataset
        For `fit`, `predict` and `score`: it has a ``shape``, and the labels as ``y``.

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
    reading: dict[str, Any] = {
        "kind": kind,
        "target": target,
        "feature_names": feature_names,
        "labels": labels,
        "several": several,
    }
    reading |= {"limit": limit, "columns": columns, "drop": drop}
    found = look_into(
        Path(path).absolute(),  # absolute: the process may change its folder, and workers run in others
        reading,
        index_base=index_base,
        n_features=n_features,
        n_threads=n_threads,
        verify=verify,
        progress=progress,
    )
    dataset = Dataset(Path(path), found, memory=parse_size(memory), n_threads=n_threads)
    if dask is None or dask is False:
        return dataset
    from metrimax.io.remote import on_workers

    return on_workers(dataset, None if dask is True else dask)


def _names(values: Array) -> str:
    return ", ".join(map(show, values[:20].tolist())) + (", ..." if len(values) > 20 else "")


def load(
    path: Name, *, memory: int | str = MEMORY, progress: Callable[[str], None] | None = None, **options: Any
) -> Data:
    """A file in memory, or a folder of shards: `load_data` or `open_dataset`, with the options of the former."""
    if path == "-" or not Path(path).is_dir():
        return load_data(path, **options)
    if isinstance(options.get("columns"), Learn):  # of one file after the other nothing is learnt
        options["columns"] = None
    dataset = open_dataset(path, memory=memory, progress=progress, **options)
    about = (dataset.labels, dataset.index_base, dataset.feature_names, dataset.groups)
    return Data(path, cast(Any, dataset), *about, options.get("columns"), dataset.remarks)
