"""Rows on the workers of a Dask cluster: the driver sends weights and receives scores; X stays on the workers.

Per round the driver sends w to every worker and receives n scores, then sends the slope (each worker its own rows) and
receives p numbers, added up in a tree: on each worker, then among the workers, the last few by the driver.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from metrimax.designs.cluster import Cluster, Share
from metrimax.designs.convert import as_design
from metrimax.designs.linear import CSR, columns
from metrimax.protocols import Design, Vector

FAN_IN = 8
"""Vectors added up by one task of the tree, and by the driver at its root."""


def is_remote(X: Any) -> bool:
    """Whether X is a collection of Dask, or a list of its futures."""
    first = X[0] if isinstance(X, (list, tuple)) and len(X) > 0 else None
    return _from(X, "dask", "dask_expr") or (first is not None and _from(first, "distributed"))


def _from(thing: Any, *packages: str) -> bool:
    return type(thing).__module__.split(".")[0] in packages


def collected(values: Any) -> Any:
    """Compute a Dask collection such as y, with the usual time-out; return anything else unchanged."""
    if not _from(values, "dask", "dask_expr"):
        return values
    try:
        client = import_module("distributed").default_client()
    except (ImportError, ValueError):  # computed by threads of this process
        return values.compute()
    cluster = Cluster(client)
    [found] = cluster.results("labels", lambda: [client.compute(values)])
    return found


class DaskDesign:
    """Row partitions on the workers of a Dask cluster as one design.

    Parameters
    ----------
    X : dask.array, dask.dataframe, or sequence of futures, delayed values or callables
        The partitions: dense or sparse blocks, data frames, or functions without arguments that return one. If a worker
        dies, its partitions are computed again where that is possible.
    client : Client, str, Cluster or None
        A client, the address of a scheduler, or None for the current client or a local cluster of processes.
    timeout : float or None
        Seconds without a message after which a product is given up. None: Dask's setting ``metrimax.timeout``, or 300.

    Attributes
    ----------
    shape : tuple of int
    bytes_sent, bytes_received : int
        Traffic between the driver and the workers so far, headers aside.
    """

    rows = None

    def __init__(self, X: Any, *, client: Any = None, timeout: float | None = None) -> None:
        self.feature_names: list[str] | None = None
        self.bytes_sent = self.bytes_received = 0
        self.cluster = client if isinstance(client, Cluster) else Cluster(client, timeout)
        self.close = self.cluster.close
        try:
            shapes: list[tuple[int, int]] = self.cluster.hold(self._parts(self._blocks(X)), _shape)
            widths = [width for _, width in shapes]
            if len(set(widths)) > 1:
                odd = next(k for k, width in enumerate(widths) if width != widths[0])
                raise ValueError(f"partition {odd}: expected {widths[0]} columns, as in partition 0, got {widths[odd]}")
        except BaseException:
            self.close()
            raise
        self.n_cols = widths[0]
        self.starts = np.concatenate(([0], np.cumsum([rows for rows, _ in shapes], dtype=np.int64)))

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.starts[-1]), self.n_cols

    @property
    def bytes_moved(self) -> int:
        return self.bytes_sent + self.bytes_received

    def matvec(self, w: Vector) -> Vector:
        """``X w``: sends w to every worker and receives the scores."""
        w = columns("w", w, self.n_cols)
        cluster = self.cluster

        def ask() -> list[Any]:
            shared = cluster.broadcast(w)
            self.bytes_sent += w.nbytes * len({share.worker for share in cluster.shares})
            return cluster.each("scores", _scores, cluster.shares, [shared] * len(cluster.shares))

        scores = np.empty((self.shape[0], *w.shape[1:]))
        for part in cluster.results("scores", ask):
            for k, own in part.items():
                scores[self._rows(k)] = own
        self.bytes_received += scores.nbytes
        return scores

    def rmatvec(self, slope: Vector) -> Vector:
        """``X' slope``: sends each worker its rows of the slope and receives its sum; zero partitions are skipped."""
        slope = columns("slope", slope, self.shape[0])
        rows = [slope[self._rows(k)] for k in range(len(self.starts) - 1)]
        wanted = {k for k, own in enumerate(rows) if own.any()}
        if not wanted:
            return np.zeros((self.n_cols, *slope.shape[1:]))
        cluster = self.cluster

        def ask() -> list[Any]:
            shares = [Share(worker, [k for k in parts if k in wanted]) for worker, parts in cluster.shares]
            shares = [share for share in shares if share.parts]
            packed = [{k: _pack(rows[k]) for k in share.parts} for share in shares]
            self.bytes_sent += sum(array.nbytes for share in packed for sent in share.values() for array in sent)
            sums = cluster.each("pull", _pull, shares, cluster.send(packed, shares))
            while len(sums) > FAN_IN:
                sums = cluster.map("add", _add, [sums[k : k + FAN_IN] for k in range(0, len(sums), FAN_IN)])
            return sums

        sums = cluster.results("pull", ask)
        self.bytes_received += sum(part.nbytes for part in sums)
        return np.ascontiguousarray(_add(sums))

    def _rows(self, k: int) -> slice:
        return slice(int(self.starts[k]), int(self.starts[k + 1]))

    def _blocks(self, X: Any) -> list[Any]:
        """The partitions, in order, as arguments of tasks."""
        kind = type(X)
        if not _from(X, "dask", "dask_expr"):
            blocks = list(X)
        elif {"rechunk", "columns"} & set(dir(kind)):
            if "columns" in dir(kind):
                self.feature_names = [str(name) for name in X.columns]
            elif X.ndim == 2:
                X = X.rechunk({1: -1})
            else:
                raise ValueError(f"X must have two dimensions, (examples, features), got shape {X.shape}")
            blocks = np.asarray(X.to_delayed()).ravel().tolist()
        else:
            raise TypeError(f"expected a dask.array or a dask.dataframe, got {kind.__name__}")
        if not blocks:
            raise ValueError("expected at least one partition, got none")
        return blocks

    def _parts(self, blocks: list[Any]) -> list[Any]:
        """Partitions as designs on the workers; Dask keeps the recipe."""
        if not _from(blocks[0], "dask"):
            return self.cluster.map("part", _part, blocks, range(len(blocks)))
        delayed = import_module("dask").delayed(_part, pure=False)
        named = [delayed(block, k, dask_key_name=self.cluster.key("part")) for k, block in enumerate(blocks)]
        parts: list[Any] = self.cluster.client.compute(named)
        return parts


def _part(block: Any, k: int) -> Design:
    """A partition as a design, on its worker. Errors name it."""
    if callable(block):
        return block()  # type: ignore[no-any-return]
    for name in ("to_scipy_sparse", "to_numpy"):  # arrays of other libraries, data frames
        if hasattr(block, name):
            block = getattr(block, name)()
    try:
        design: Any = as_design(block, n_threads=1)
    except (TypeError, ValueError) as error:
        raise type(error)(f"partition {k}: {error}") from error
    values = design.data if isinstance(design, CSR) else design.X
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values.ravel()))[0])
        row = (
            np.searchsorted(design.indptr, bad, side="right") - 1 if isinstance(design, CSR) else bad // values.shape[1]
        )
        raise ValueError(f"partition {k}: row {int(row)} (from 0) holds NaN or infinite values: replace them first")
    made: Design = design
    return made


def _shape(part: Design) -> tuple[int, int]:
    return part.shape


def _scores(parts: dict[int, Design], w: Vector) -> dict[int, Vector]:
    return {k: part.matvec(w) for k, part in parts.items()}


def _pull(parts: dict[int, Design], slope: dict[int, tuple[npt.NDArray[Any], ...]]) -> Vector:
    return _add([part.rmatvec(_unpack(slope[k], part.shape[0])) for k, part in parts.items()])


def _add(parts: list[Vector]) -> Vector:
    total = parts[0].copy()  # those sent by others are theirs
    for part in parts[1:]:
        total += part
    return total


def _pack(slope: Vector) -> tuple[npt.NDArray[Any], ...]:
    """A slope packed for sending: only its non-zero rows, where they are few."""
    rows = np.flatnonzero(slope if slope.ndim == 1 else slope.any(axis=1))
    return (slope,) if 2 * len(rows) > len(slope) else (rows.astype(np.int32), slope[rows])


def _unpack(sent: tuple[npt.NDArray[Any], ...], n: int) -> Vector:
    if len(sent) == 1:
        return sent[0]
    rows, values = sent
    slope = np.zeros((n, *values.shape[1:]))
    slope[rows] = values
    return slope
