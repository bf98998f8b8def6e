"""Locks that end with the process that holds them, however it ends."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: locks are unknown, so unfinished files are never removed
    fcntl = None  # type: ignore[assignment]


def locks_work() -> bool:
    """Whether files can be locked here. Where not, on Windows, an open file can be neither renamed nor removed."""
    return fcntl is not None


def lock(handle: int, *, wait: bool = False) -> bool:
    """Lock an open file or folder until it is closed; False where another process holds it or locks do not work."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # held, or a file system without locks
        return False
    return True


def leads_to(path: Path, handle: int) -> bool:
    """Whether a name still leads to an open file: another process may have removed it before it was locked."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except OSError:
        return False


class NameLock:
    """A lock on a name, held by one run at a time through a hidden file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def take(self) -> bool:
        """Take the lock; True if it is ours now, and always where the system has no locks."""
        while True:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
            if locks_work() and not lock(handle):
                os.close(handle)
                return False
            if not locks_work() or leads_to(self._path, handle):
                self._handle = handle
                return True
            os.close(handle)

    def release(self) -> None:
        """Release the lock."""
        if self._handle is None:
            return
        if not locks_work():
            os.close(self._handle)
        with suppress(OSError):
            self._path.unlink()
        if locks_work():
            os.close(self._handle)  # not before: another run would lock a file that is about to go
        self._handle = None
