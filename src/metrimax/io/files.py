"""Write files completely or not at all, so that they survive a power failure."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tokenize import TokenError
from typing import IO

from metrimax.io.locks import leads_to, lock, locks_work

Name = str | os.PathLike[str]

_STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

_MARK = "metrimax-part"
"""Ending of the names of unfinished files; no other program uses it."""

BAD_HEADER = (ValueError, EOFError, TypeError, SyntaxError, TokenError, RecursionError)
"""Exceptions that the header of a damaged NumPy array may raise: it is parsed as a Python literal."""


class FileError(ValueError):
    """A file that does not hold what it should; the message names the file, the place and the problem."""


def files_in(folder: Path) -> list[Path]:
    """The files of a folder by name, hidden ones left out."""
    try:
        return sorted(entry for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    except OSError as error:
        raise FileError(
            f"{folder}: expected a folder to read, got an error ({error.strerror or error}): check its permissions"
        ) from error


def write_bytes(path: Name, data: bytes) -> None:
    """Write a file so that nobody sees it half-written: write a temporary file beside it, then rename that.

    Pipes and devices (``/dev/null``) are written to directly. ``"-"`` and ``"/dev/stdout"`` are standard output: a file
    that a shell has opened there must not be replaced.
    """
    if is_standard_output(path):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with replacing(path) as file:
        file.write(data)


def is_standard_output(path: Name) -> bool:
    """Whether `write_bytes` writes this name to standard output."""
    return os.fspath(path) in _STANDARD_OUTPUT


@contextmanager
def replacing(path: Name) -> Iterator[IO[bytes]]:
    """Yield a temporary file that replaces ``path`` when the block succeeds and is removed when it fails.

    The content reaches the disk before the file gets its name, and the name before the block is left.
    """
    try:
        if Path(path).exists() and not Path(path).is_file():
            with open(path, "wb") as special:  # not its real path: what /dev/fd/3 leads to has none
                yield special
            return
        target = Path(os.path.realpath(path))
        beside, handle = _file_beside(target)
        try:
            with open(handle, "wb") as file:
                yield file
                settle(file)
                if locks_work():  # still locked: otherwise another process would sweep it away
                    os.replace(beside, target)
            if not locks_work():
                os.replace(beside, target)
        except BaseException:
            with suppress(OSError):  # if it has its name already, the first error is the one to raise
                os.unlink(beside)
            raise
        settle_folder(target.parent)
    except OSError as error:
        raise unwritable(path, error) from error


def settle(file: IO[bytes]) -> None:
    """Flush a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def settle_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the system can do so."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_writable(path: Name) -> None:
    """Raise where `replacing` could not write: create a file beside ``path``, as it would, and remove it."""
    if is_standard_output(path):
        return
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if Path(path).is_file() or not Path(path).exists():  # else a pipe or a device, not touched before its time
            beside, handle = _file_beside(Path(os.path.realpath(path)))
            os.close(handle)
            os.unlink(beside)
    except OSError as error:
        raise unwritable(path, error) from error


def same_file(path: Name, other: Name) -> bool:
    """Whether two names lead to one regular file."""
    return os.path.isfile(path) and os.path.isfile(other) and os.path.samefile(path, other)


def unwritable(path: Name, error: OSError) -> FileError:
    return FileError(f"{path}: cannot be written: {error.strerror or error}")


def _file_beside(target: Path) -> tuple[Path, int]:
    """Create a locked file beside ``path``, with its mode if it exists; returns name and handle."""
    sweep(target)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    while True:
        path = _name_beside(target)
        handle = os.open(path, _FLAGS, 0o666 if mode is None else 0o600)
        if mode is not None:
            os.chmod(path, mode)
        if not lock(handle, wait=True) or leads_to(path, handle):
            return path, handle
        os.close(handle)  # swept away before it was locked


def folder_beside(target: Path) -> tuple[Path, int | None]:
    """Create a locked folder beside ``path``; returns its name and, where folders can be opened, its handle."""
    sweep(target)
    while True:
        path = _name_beside(target)
        os.mkdir(path)
        try:
            handle = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # swept away before it was locked
            continue
        except OSError:  # Windows does not open folders
            return path, None
        if not lock(handle, wait=True) or leads_to(path, handle):
            return path, handle
        os.close(handle)


def sweep(target: Path) -> None:
    """Remove unfinished files beside a target whose process was killed: nobody holds their lock."""
    if not locks_work():
        return
    ours = re.compile(re.escape(_beginning(target)) + r"[0-9a-f]{8}\." + _MARK)
    try:
        left = [entry.path for entry in os.scandir(target.parent) if ours.fullmatch(entry.name)]
    except OSError:  # whoever writes there will say what is wrong
        return
    for path in left:
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY)
            try:
                if lock(handle) and os.path.isdir(path):
                    shutil.rmtree(path, ignore_errors=True)
                elif lock(handle):
                    os.unlink(path)
            finally:
                os.close(handle)


def _name_beside(target: Path) -> Path:
    return target.parent / f"{_beginning(target)}{secrets.token_hex(4)}.{_MARK}"


def _beginning(target: Path) -> str:
    """The beginning of such a name; long names are shortened, as file names have a limit."""
    return f".{target.name[:60]}."
