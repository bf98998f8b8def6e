"""Rows on the workers of a Dask cluster: weights go out and scores come back, X stays where it is.

Per round the driver sends w to every worker and receives n scores, then sends the slope (each worker its own rows) and
receives p numbers, added up in a tree on the workers. Placement, retries and the rebuilding of what was lost with a
worker are Dask's.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax.designs.convert import as_design
from metrimax.designs.linear import CSR, columns
from metrimax.protocols import Design, Vector

FAN_IN = 8
"""Vectors added up by one task of the tree."""

ATTEMPTS = 4
"""Times that a product is tried: what was sent to a worker is lost with it, and sent again."""

POLL = 2.0
"""Seconds between two looks at whether anyone is still there."""


def is_remote(X: Any) -> bool:
    """Whether X is a collection of Dask, or a list of its futures."""
    first = X[0] if isinstance(X, (list, tuple)) and len(X) > 0 else None
    return _from(X, "dask", "dask_expr") or (first is not None and _from(first, "distributed"))


def _from(thing: Any, *packages: str) -> bool:
    return type(thing).__module__.split(".")[0] in packages


def connect(client: Any = None) -> tuple[Any, Callable[[], Any] | None]:
    """A client, and what closes it if it was made here.

    ``client`` may be a client, the address of a scheduler, or None: then the current client serves, or else a local
    cluster of processes is started.
    """
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise ImportError("Dask needs the package distributed: pip install 'metrimax[dask]'") from None
    if isinstance(client, distributed.Client):
        return client, None
    if client is None:
        try:
            return distributed.default_client(), None
        except ValueError:
            cluster = distributed.LocalCluster(threads_per_worker=1, processes=True, dashboard_address=":0")
            made = distributed.Client(cluster, set_as_default=False)
            return made, lambda: (made.close(), cluster.close())
    try:
        made = distributed.Client(client, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise ConnectionError(f"no Dask scheduler answers at {client}: {error}") from error
    return made, made.close


class DaskDesign:
    """Row partitions on the workers of a Dask cluster as one design.

    Parameters
    ----------
    X : dask.array, dask.dataframe, or sequence of futures, delayed values or callables
        The partitions: dense or sparse blocks, data frames, or functions without arguments that return one. Those that
        can be computed again are, if their worker dies.
    client : Client, str or None
        A client, the address of a scheduler, or None for the current client or a local cluster of processes.
    timeout : float
        Seconds without any news after which a product is given up.

    Attributes
    ----------
    shape : tuple of int
    bytes_sent, bytes_received : int
        Traffic between the driver and the workers so far, headers aside.
    """

    def __init__(self, X: Any, *, client: Any = None, timeout: float = 300.0) -> None:
        self.feature_names: list[str] | None = None
        self.client, close = connect(client)
        self.timeout = timeout
        self.bytes_sent = self.bytes_received = 0
        self._rounds = 0
        self.close = weakref.finalize(self, close if close is not None else int)
        try:
            self._parts = self._prepare(self._blocks(X))
            about: list[_About] = self._results("about", lambda: self._map("about", _about, self._parts))
        except BaseException:
            self.close()
            raise
        widths = [part.width for part in about]
        if len(set(widths)) > 1:
            odd = next(k for k, width in enumerate(widths) if width != widths[0])
            raise ValueError(f"partition {odd}: expected {widths[0]} columns, as in partition 0, got {widths[odd]}")
        self.n_cols = widths[0]
        self.starts = np.concatenate(([0], np.cumsum([part.rows for part in about], dtype=np.int64)))
        self._where = self._places()

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.starts[-1]), self.n_cols

    @property
    def bytes_moved(self) -> int:
        return self.bytes_sent + self.bytes_received

    def matvec(self, w: Vector) -> Vector:
        """``X w``: w to every worker, scores back."""
        w = columns("w", w, self.n_cols)

        def ask() -> list[Any]:
            shared = self.client.scatter(w, broadcast=True, hash=False)
            self.bytes_sent += w.nbytes * len(set(self._where))
            return self._map("scores", _scores, self._parts, [shared] * len(self._parts))

        scores = np.concatenate(self._results("scores", ask))
        self.bytes_received += scores.nbytes
        return scores

    def rmatvec(self, slope: Vector) -> Vector:
        """``X' slope``: to each worker its rows of the slope, p numbers back; partitions without slope are left out."""
        slope = columns("slope", slope, self.shape[0])
        rows = [slope[self.starts[k] : self.starts[k + 1]] for k in range(len(self._parts))]
        wanted = sorted((k for k in range(len(rows)) if rows[k].any()), key=lambda k: (self._where[k], k))
        if not wanted:
            return np.zeros((self.n_cols, *slope.shape[1:]))

        def ask() -> list[Any]:
            sent: list[Any] = []
            for worker in dict.fromkeys(self._where[k] for k in wanted):
                packed = [_pack(rows[k]) for k in wanted if self._where[k] == worker]
                self.bytes_sent += sum(part.nbytes for parts in packed for part in parts)
                sent += self.client.scatter(packed, workers=[worker] if worker else None, hash=False)
            sums = self._map("pull", _pull, [self._parts[k] for k in wanted], sent)
            while len(sums) > 1:  # neighbours are on the same worker, so the lower levels of the tree stay there
                sums = self._map("add", _add, [sums[k : k + FAN_IN] for k in range(0, len(sums), FAN_IN)])
            return sums

        (total,) = self._results("pull", ask)
        self.bytes_received += total.nbytes
        return np.ascontiguousarray(total)

    def _blocks(self, X: Any) -> list[Any]:
        """The partitions, in order, as what a task can be made of."""
        kind = type(X)
        if not _from(X, "dask", "dask_expr"):
            blocks = list(X)
        elif hasattr(kind, "rechunk") or hasattr(kind, "columns"):
            if hasattr(kind, "columns"):
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

    def _prepare(self, blocks: list[Any]) -> list[Any]:
        """Partitions as designs on the workers; Dask keeps the recipe."""
        if _from(blocks[0], "dask"):
            delayed = import_module("dask").delayed(_part, pure=False)
            named = [delayed(block, k, dask_key_name=self._key("part", k)) for k, block in enumerate(blocks)]
            parts: list[Any] = self.client.compute(named)
            return parts
        return self._map("part", _part, blocks, range(len(blocks)))

    def _map(self, name: str, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        futures: list[Any] = self.client.map(
            function, *arguments, key=[self._key(name, k) for k in range(len(arguments[0]))], pure=False
        )
        return futures

    def _key(self, name: str, k: int) -> str:
        """The name of a task: the dashboard groups by what is before the numbers."""
        self._rounds += k == 0
        return f"metrimax-{name}-{id(self):x}-{self._rounds}-{k}"

    def _places(self) -> list[str]:
        """The worker of every partition."""
        found = self.client.who_has(self._parts)
        return [next(iter(found.get(part.key, ())), "") for part in self._parts]

    def _results(self, name: str, ask: Callable[[], list[Any]]) -> list[Any]:
        """The results of the tasks that ``ask`` starts, asked for again if what was sent has been lost."""
        distributed = import_module("distributed")
        for attempt in range(1, ATTEMPTS + 1):
            try:
                futures = ask()
                self._wait(name, futures)
                results: list[Any] = self.client.gather(futures)
                return results
            except distributed.KilledWorker as error:
                raise RuntimeError(
                    f"{error.task}: took its worker with it, several times over: most likely out of memory; "
                    "make smaller partitions, or give the workers more"
                ) from error
            except (distributed.CancelledError, OSError, KeyError) as error:
                # what was sent has gone with its worker; nobody answers (time-outs are OSErrors); an address is unknown
                self._check_scheduler()
                if attempt == ATTEMPTS or isinstance(error, NoNews):
                    raise
                time.sleep(0.2 * attempt)
                self._check_parts()
                try:
                    self._where = self._places() if hasattr(self, "_where") else []
                except OSError:
                    self._await_scheduler()
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _wait(self, name: str, futures: list[Any]) -> None:
        """Wait for all of them, as long as some news comes in time."""
        distributed = import_module("distributed")
        pending, news = list(futures), time.monotonic()
        while pending:
            try:
                with self.client.as_current():  # another client may be the default
                    distributed.wait(pending, timeout=POLL)
            except (TimeoutError, distributed.TimeoutError):
                self._check_scheduler()
            left = [future for future in pending if not future.done()]
            now = time.monotonic()
            news = now if len(left) < len(pending) else news
            pending = left
            if now - news > self.timeout:
                raise NoNews(
                    f"no news from the workers for {self.timeout:g} seconds, {len(pending)} of {len(futures)} tasks "
                    f"'{name}' to go: are there workers ({len(self.client.scheduler_info()['workers'])} known)?"
                )

    def _check_scheduler(self) -> None:
        if self.client.status != "running":
            raise ConnectionError(f"the Dask scheduler has gone away ({self.client.status}): start it, and fit again")

    def _await_scheduler(self) -> None:
        """Before others are blamed: the client may take a while to see that its scheduler has gone."""
        for _ in range(25):
            self._check_scheduler()
            time.sleep(0.2)

    def _check_parts(self) -> None:
        lost = [k for k, part in enumerate(getattr(self, "_parts", [])) if part.cancelled()]
        if lost:
            self._await_scheduler()
            raise RuntimeError(
                f"partition {lost[0]} was lost with its worker and cannot be computed again: "
                "make partitions from files or from a Dask collection, not from scattered data"
            )


class NoNews(TimeoutError):
    """Nobody has answered for too long."""


class _About(NamedTuple):
    rows: int
    width: int


def _part(block: Any, k: int) -> Design:
    """A partition as a design, on its worker. Errors name it."""
    if callable(block):
        return block()  # type: ignore[no-any-return]
    if hasattr(block, "to_scipy_sparse"):
        block = block.to_scipy_sparse()
    elif hasattr(block, "to_numpy"):
        block = block.to_numpy()
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


def _about(part: Design) -> _About:
    return _About(*part.shape)


def _scores(part: Design, w: Vector) -> Vector:
    return part.matvec(w)


def _pull(part: Design, slope: tuple[npt.NDArray[Any], ...]) -> Vector:
    return part.rmatvec(_unpack(slope, part.shape[0]))


def _add(parts: list[Vector]) -> Vector:
    total = parts[0].copy()  # the parts belong to others
    for part in parts[1:]:
        total += part
    return total


def _pack(slope: Vector) -> tuple[npt.NDArray[Any], ...]:
    """A slope as it is sent: only the rows that have one, where they are few."""
    rows = np.flatnonzero(slope if slope.ndim == 1 else slope.any(axis=1))
    return (slope,) if 2 * len(rows) > len(slope) else (rows.astype(np.int32), slope[rows])


def _unpack(sent: tuple[npt.NDArray[Any], ...], n: int) -> Vector:
    if len(sent) == 1:
        return sent[0]
    rows, values = sent
    slope = np.zeros((n, *values.shape[1:]))
    slope[rows] = values
    return slope
