"""Bytes in and out: compressed input, and output that is either complete or not there."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Name = str | os.PathLike[str]

_PIECE = 4096  # bytes of Zstandard data taken at a time: they decompress to 128 MiB at most

_STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")

_COMPRESSED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "lzma", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}


BAD_HEADER = (ValueError, EOFError, TypeError, SyntaxError, TokenError, RecursionError)
"""What the header of a damaged NumPy array may end with: it is a Python literal, and is parsed as one."""


class FileError(ValueError):
    """A file that does not hold what it should; the message names the file, the place and the problem."""


def read_bytes(path: Name) -> Bytes:
    """All bytes of a file, decompressed if it is gzip, xz, bzip2 or Zstandard (told by its first bytes).

    ``"-"`` is standard input.
    """
    try:
        if path == "-":
            raw = np.frombuffer(_standard_input().read(), dtype=np.uint8)
        else:
            with open(path, "rb") as file:
                raw = np.frombuffer(file.read(), dtype=np.uint8)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    start = raw[:6].tobytes()
    for magic, kind in _COMPRESSED.items():
        if start.startswith(magic):
            return _decompress(path, raw, kind)
    return raw


def files_in(folder: Path) -> list[Path]:
    """The files of a folder by name, hidden ones left out."""
    try:
        return sorted(entry for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    except OSError as error:
        raise FileError(
            f"{folder}: expected a folder to read, got an error ({error.strerror or error}): check its permissions"
        ) from error


@contextmanager
def open_stream(path: Name) -> Iterator[IO[bytes]]:
    """A file to read piece by piece, decompressed on the way; ``"-"`` is standard input."""
    with ExitStack() as stack:
        try:
            file: Any = _standard_input() if path == "-" else stack.enter_context(open(path, "rb"))
            start = file.peek(6)[:6]
        except OSError as error:
            raise FileError(f"{path}: {error.strerror or error}") from error
        kind = next((kind for magic, kind in _COMPRESSED.items() if start.startswith(magic)), None)
        if kind == "zstd":
            file = stack.enter_context(_zstd_stream(path, file))
        elif kind is not None:
            file = stack.enter_context(import_module(kind).open(file))
        yield file


def _standard_input() -> Any:
    if sys.stdin is None:
        raise FileError("-: standard input is closed: give a file, or data to read there")
    return sys.stdin.buffer


def _zstd_stream(path: Name, file: Any) -> Any:
    try:
        return import_module("compression.zstd").open(file)  # Python 3.14
    except ImportError:
        pass
    try:
        zstandard = import_module("zstandard")
    except ImportError:
        raise FileError(
            f"{path}: Zstandard data need the package zstandard: pip install 'metrimax[zstd]', or decompress the file"
        ) from None
    return io.BufferedReader(_ZstdFrames(file, zstandard.ZstdDecompressor))


class _ZstdFrames(io.RawIOBase):
    """The frames of Zstandard data, one after the other; one that is cut off is an error.

    The package's own ``stream_reader`` ends there as if that were the end of the data.
    """

    def __init__(self, file: IO[bytes], decompressor: Any) -> None:
        self._file, self._decompressor = file, decompressor
        self._frame: Any = None
        self._rest, self._ready = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            piece = self._rest or self._file.read(_PIECE)
            if not piece and self._frame is None:
                return 0
            if not piece:
                raise EOFError("the last frame is not complete")
            frame = self._frame or self._decompressor().decompressobj()
            self._ready = memoryview(frame.decompress(piece))
            self._frame, self._rest = (None, frame.unused_data) if frame.eof else (frame, b"")
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n


def _decompress(path: Name, raw: Bytes, kind: str) -> Bytes:
    data = raw.tobytes()
    try:
        if kind == "zstd":
            with _zstd_stream(path, io.BytesIO(data)) as stream:
                return np.frombuffer(stream.read(), dtype=np.uint8)
        return np.frombuffer(import_module(kind).decompress(data), dtype=np.uint8)
    except (FileError, ImportError, MemoryError):
        raise
    except Exception as error:  # each format has its own kinds of error: zlib.error, LZMAError, EOFError, OSError ...
        raise FileError(f"{path}: the {kind} data are damaged or cut off ({error})") from error


def write_bytes(path: Name, data: bytes) -> None:
    """Write a file so that it is never seen half-written: beside it first, then renamed.

    What is no regular file (a pipe, ``/dev/null``) is written to directly. ``"-"`` is standard output, and so is
    ``"/dev/stdout"``: a file that a shell has opened there must not be replaced.
    """
    if is_standard_output(path):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with replacing(path) as file:
        file.write(data)


def is_standard_output(path: Name) -> bool:
    """Whether `write_bytes` takes this for standard output."""
    return os.fspath(path) in _STANDARD_OUTPUT


@contextmanager
def replacing(path: Name) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of ``path`` when the block ends well, and is removed otherwise."""
    try:
        if Path(path).exists() and not Path(path).is_file():
            with open(path, "wb") as special:  # by its own name: /dev/fd/3 leads to what has no other
                yield special
            return
        target, handle, beside = _file_beside(path)
        try:
            with open(handle, "wb") as file:
                yield file
            os.chmod(beside, stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~umask())
            os.replace(beside, target)
        except BaseException:
            with suppress(OSError):  # it may have its name already: the error to tell of is the first
                os.unlink(beside)
            raise
    except OSError as error:
        raise unwritable(path, error) from error


def check_writable(path: Name) -> None:
    """Raise for what `replacing` could not write: a file is made beside it, as there, and removed."""
    if is_standard_output(path):
        return
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if Path(path).is_file() or not Path(path).exists():  # else a pipe or a device, not touched before its time
            _, handle, beside = _file_beside(path)
            os.close(handle)
            os.unlink(beside)
    except OSError as error:
        raise unwritable(path, error) from error


def same_file(path: Name, other: Name) -> bool:
    """Whether two names lead to one regular file."""
    return os.path.isfile(path) and os.path.isfile(other) and os.path.samefile(path, other)


def unwritable(path: Name, error: OSError) -> FileError:
    return FileError(f"{path}: cannot be written: {error.strerror or error}")


def _file_beside(path: Name) -> tuple[Path, int, str]:
    """What a path leads to, and a new file in the same folder: its handle and its name."""
    target = Path(os.path.realpath(path))
    return target, *tempfile.mkstemp(dir=target.parent, prefix=beginning(target))


def beginning(target: Path) -> str:
    """How the name of what is written beside a file begins; of a long one a part, or it would be longer than may be."""
    return f".{target.name[:60]}."


def umask() -> int:
    """What new files are not to be allowed."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
