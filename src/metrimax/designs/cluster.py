"""Partitions on the workers of a Dask cluster, and tasks on them that survive the loss of a worker.

Dask places tasks, retries them and rebuilds partitions that were lost with a worker. This module adds the rest: one
task per thread of a worker, whatever its number of partitions; what to send again after a loss; when to give up.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

ATTEMPTS = 4
"""Tries for one product: what was sent to a worker is lost with it and has to be sent again."""

TIMEOUT = 300.0
"""Seconds without any message after which a run is given up; Dask's setting ``metrimax.timeout`` overrides it."""

POLL = 2.0
"""Seconds between two checks that scheduler and workers are alive."""

REACH = 3.0
"""Seconds that a worker has to answer the driver directly; otherwise messages go through the scheduler."""


class NoNews(TimeoutError):
    """Neither scheduler nor workers have answered within the time-out."""


class Share(NamedTuple):
    """The partitions that one thread of a worker multiplies."""

    worker: str
    parts: list[int]


def connect(client: Any = None) -> tuple[Any, Callable[[], Any] | None]:
    """A client, and a function that closes it if it was created here.

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
            return made, partial(_close, made, cluster)
    try:
        made = distributed.Client(client, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise ConnectionError(f"no Dask scheduler answers at {client}: {error}") from error
    return made, partial(_close, made)


def _close(*opened: Any) -> None:
    """Close a client, and then its cluster; do not wait for those that do not answer."""
    for one in opened:
        with suppress(TimeoutError):
            one.close(timeout=REACH)


def default_timeout() -> float:
    """Dask's setting ``metrimax.timeout`` (in the environment ``DASK_METRIMAX__TIMEOUT``), a number or as in "5m"."""
    setting = import_module("dask").config.get("metrimax.timeout", TIMEOUT)
    try:
        seconds = float(import_module("dask.utils").parse_timedelta(setting, default="s"))
    except (KeyError, TypeError, ValueError, AttributeError):
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(f"expected Dask's setting metrimax.timeout as seconds > 0, or as in '5m', got {setting!r}")
    return seconds


class Cluster:
    """A client, the partitions on its workers, and which worker multiplies which.

    Parameters
    ----------
    client : Client, str or None
        A client, the address of a scheduler, or None for the current client or a local cluster of processes.
    timeout : float or None
        Seconds without a message after which the run is given up; None: `default_timeout`.
    """

    def __init__(self, client: Any = None, timeout: float | None = None) -> None:
        self.client, close = connect(client)
        self.close = weakref.finalize(self, close if close is not None else int)
        self.timeout = default_timeout() if timeout is None else timeout
        self.parts: list[Any] = []
        self.shares: list[Share] = []
        self._direct = False
        # Dask identifies tasks by name, even after the first was released, so id(self) is not unique enough
        self._name = uuid.uuid4().hex
        self._numbers = itertools.count()  # several threads may ask for products

    def hold(self, parts: list[Any], look: Callable[[Any], Any]) -> list[Any]:
        """Take over partitions, which are futures; returns ``look(partition)`` for each."""
        self.parts = parts
        found = self.results("about", lambda: self.map("about", look, parts))
        self.share_out()
        self._direct = self._answer(self._reached)
        return found

    def threads(self) -> dict[str, int]:
        """The threads of every worker."""
        found: dict[str, int] = self._answer(lambda: self.client.nthreads())
        return found

    def share_out(self) -> None:
        """Divide the partitions evenly among the threads of the workers, most of them where they already are."""
        threads = [worker for worker, count in self.threads().items() for _ in range(count)]
        shares = [Share(worker, []) for worker in threads] or [Share("", [])]
        holders = self._answer(lambda: self.client.who_has(self.parts))
        fair = -(-len(self.parts) // len(shares))
        for k, part in enumerate(self.parts):
            near = [share for share in shares if share.worker in holders.get(part.key, ()) and len(share.parts) < fair]
            min(near or shares, key=lambda share: len(share.parts)).parts.append(k)
        self.shares = [Share(worker, sorted(parts)) for worker, parts in shares if parts]

    def key(self, name: str) -> str:
        """A unique task name; Dask's dashboard groups tasks by the part before the numbers."""
        return f"metrimax-{name}-{self._name}-{next(self._numbers)}"

    def map(self, name: str, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Start a task for each tuple of arguments, on any worker."""
        keys = [self.key(name) for _ in arguments[0]]
        futures: list[Any] = self.client.map(function, *arguments, key=keys, pure=False)
        return futures

    def each(self, name: str, function: Callable[..., Any], shares: list[Share], sent: list[Any]) -> list[Any]:
        """Start a task for each share on its worker: ``function(partitions by number, value sent for the share)``."""
        return [
            self.client.submit(
                function,
                {k: self.parts[k] for k in share.parts},
                value,
                key=self.key(name),
                workers=share.worker or None,
                allow_other_workers=bool(share.worker),
                pure=False,
            )
            for share, value in zip(shares, sent, strict=True)
        ]

    def send(self, values: list[Any], shares: list[Share]) -> list[Any]:
        """Send each value to the worker of its share, in parallel."""

        async def together() -> list[Any]:
            waiting = [
                self.client.scatter(
                    [value],
                    workers=[share.worker] if share.worker else None,
                    direct=self._direct,
                    hash=False,
                    asynchronous=True,
                )
                for value, share in zip(values, shares, strict=True)
            ]
            return [future for (future,) in await asyncio.gather(*waiting)]

        futures: list[Any] = self._answer(together)
        return futures

    def broadcast(self, value: Any) -> Any:
        """Send one value to all workers, which pass it on among themselves."""
        return self._answer(lambda: self.client.scatter(value, broadcast=True, direct=self._direct, hash=False))

    def results(self, name: str, ask: Callable[[], list[Any]]) -> list[Any]:
        """The results of the tasks that ``ask`` starts; started again if the values sent were lost with a worker."""
        distributed = import_module("distributed")
        for attempt in range(1, ATTEMPTS + 1):
            self._check_scheduler()  # a client that was closed fails in many ways
            try:
                futures = ask()
                self._wait(name, futures)
                return self._gather(futures)
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
                    self.share_out()
                except OSError:
                    self._await_scheduler()
                    raise
            except (AttributeError, RuntimeError):
                self._await_scheduler()  # a client that is being closed has lost its parts, or its event loop
                raise
        raise AssertionError("the last attempt returns or raises")

    def _gather(self, futures: list[Any]) -> list[Any]:
        found: list[Any] = self._answer(lambda: self.client.gather(futures, direct=self._direct))
        return found

    def _answer(self, ask: Callable[[], Any]) -> Any:
        """The result of a client call, made in its event loop; an error if the time-out passes first.

        The client's own calls wait forever: a stopped scheduler keeps its connections open.
        """

        async def asked() -> Any:
            answer = ask()
            return await answer if inspect.isawaitable(answer) else answer

        began = time.monotonic()
        try:
            return self.client.sync(asked, asynchronous=False, callback_timeout=self.timeout)
        except TimeoutError as error:
            self._check_scheduler()
            if time.monotonic() - began < self.timeout:
                raise  # a connection that Dask has given up
            raise NoNews(f"no answer for {self.timeout:g} seconds: {self._silent()}") from error

    def _silent(self) -> str:
        """A message that says who does not answer and what to do."""
        remedy = "look at its log, restart it and fit again; Dask's setting metrimax.timeout is how long to wait"
        try:
            known = self.client.sync(self.client.scheduler.identity, asynchronous=False, callback_timeout=REACH)
        except Exception:  # whatever it is, it is no answer
            return f"the Dask scheduler does not respond; {remedy}"
        workers = len(known["workers"])
        return (
            f"the scheduler knows {workers} workers; if one of them hangs, {remedy}"
            if workers
            else "there are no workers"
        )

    async def _reached(self) -> bool:
        """Whether the driver reaches the workers directly, so that data need not go through the scheduler."""
        if self.client.direct_to_workers is not None:
            return bool(self.client.direct_to_workers)
        try:
            for worker in {share.worker for share in self.shares}:
                comm = await asyncio.wait_for(self.client.rpc.connect(worker), REACH)
                self.client.rpc.reuse(worker, comm)
        except (OSError, ValueError):
            return False
        return True

    def _wait(self, name: str, futures: list[Any]) -> None:
        """Wait for all futures, as long as one finishes within each time-out."""
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
                    f"'{name}' to go: {self._silent()}"
                )

    def _check_scheduler(self) -> None:
        if self.client.status != "running":
            raise ConnectionError(
                f"the Dask scheduler has gone away, or its client was closed ({self.client.status}): "
                "start it, and fit again"
            )

    def _await_scheduler(self) -> None:
        """Wait until the client has noticed that its scheduler is gone, if it is, before workers are blamed."""
        for _ in range(25):
            self._check_scheduler()
            time.sleep(0.2)

    def _check_parts(self) -> None:
        lost = [k for k, part in enumerate(self.parts) if part.cancelled()]
        if lost:
            self._await_scheduler()
            raise RuntimeError(
                f"partition {lost[0]} was lost with its worker and cannot be computed again: "
                "make partitions from files or from a Dask collection, not from scattered data"
            )
