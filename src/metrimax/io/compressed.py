"""Read files, decompressing them where needed, whole or piece by piece."""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from metrimax.io.files import FileError, Name
from metrimax.io.limits import Limit, allowance, check_expansion

Bytes = npt.NDArray[np.uint8]

_PIECE = 4096  # compressed bytes taken at a time: in no format they make more than 128 MiB

_CHUNK = 1 << 20  # bytes asked for at a time

_KINDS = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}

_PADDED = ("gzip", "xz")
"""Formats that allow zeros behind a member."""


def read_bytes(path: Name, *, limit: Limit = None, begins: tuple[bytes, ...] = ()) -> Bytes:
    """All bytes of a file, decompressed if it is gzip, xz, bzip2 or Zstandard (told by its first bytes).

    Parameters
    ----------
    path : str or path
        ``"-"`` is standard input.
    limit : int, str or None
        The most bytes that compressed data may become; see `metrimax.io.limits.allowance`.
    begins : tuple of bytes
        Accepted beginnings of the content; of any other file only the first bytes are returned.
    """
    try:
        if path == "-":
            raw = _standard_input().read()
        else:
            with open(path, "rb") as file:
                raw = file.read()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    kind = _kind(raw[:6])
    if kind is None:
        return np.frombuffer(raw, dtype=np.uint8)
    out = bytearray()
    with _Members(path, io.BytesIO(raw), kind, limit) as members:
        while piece := members.read(_CHUNK):
            out += piece
            if begins and len(out) >= max(map(len, begins)) and not out.startswith(begins):
                break
    return np.frombuffer(out, dtype=np.uint8)


def blocks(path: Name, size: int = 1 << 22, *, limit: Limit = None) -> Iterator[Bytes]:
    """The lines of a file in pieces of about ``size`` bytes, decompressed."""
    with open_stream(path, limit=limit) as stream:
        rest: list[bytes] = []  # of a line
        while True:
            try:
                piece = stream.read(size)
            except OSError as error:
                raise FileError(f"{path}: {error.strerror or error}") from error
            end = piece.rfind(b"\n") + 1
            if end or not piece:
                lines = b"".join([*rest, piece[:end]])
                rest = [piece[end:]]
                if lines:
                    yield np.frombuffer(lines, dtype=np.uint8)
            else:
                rest.append(piece)
            if not piece:
                return


def stored(path: Name) -> int:
    """The bytes of a file as it is stored, 0 for what is no plain file."""
    try:
        return Path(path).stat().st_size if path != "-" else 0
    except OSError:  # opening it says why
        return 0


@contextmanager
def open_stream(path: Name, *, limit: Limit = None) -> Iterator[IO[bytes]]:
    """Open a file to read piece by piece, decompressing it; ``"-"`` is standard input."""
    with ExitStack() as stack:
        try:
            file: Any = _standard_input() if path == "-" else stack.enter_context(open(path, "rb"))
            if not isinstance(file, io.BufferedReader):  # what stands in for standard input may not look ahead
                file = io.BufferedReader(file)
            kind = _kind(file.peek(6)[:6])
        except OSError as error:
            raise FileError(f"{path}: {error.strerror or error}") from error
        if kind is not None:
            file = stack.enter_context(io.BufferedReader(_Members(path, file, kind, limit)))
        yield file


def _kind(start: bytes) -> str | None:
    return next((kind for magic, kind in _KINDS.items() if start.startswith(magic)), None)


def _standard_input() -> Any:
    if sys.stdin is None:
        raise FileError("-: standard input is closed: give a file, or data to read there")
    return sys.stdin.buffer


class _Members(io.RawIOBase):
    """The members of compressed data, one after the other; a damaged or truncated member is an error.

    Python's readers of xz and bzip2, and the package zstandard, treat a damaged member as the end of the file.
    """

    def __init__(self, path: Name, file: IO[bytes], kind: str, limit: Limit) -> None:
        self._path, self._file, self._kind, self._limit = path, file, kind, limit
        self._begin = _decompressor(path, kind)
        self._member: Any = None
        self._rest, self._ready = b"", memoryview(b"")
        self._taken = self._made = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return self._fill(buffer)
        except (FileError, MemoryError):
            raise
        except Exception as error:  # each format has its own kinds: zlib.error, LZMAError, EOFError, OSError ...
            raise FileError(f"{self._path}: the {self._kind} data are damaged or cut off ({error})") from error

    def _fill(self, buffer: Any) -> int:
        while not self._ready:
            piece = self._rest or self._file.read(_PIECE)
            if self._member is None:  # between two of them
                piece, more = piece.lstrip(b"\0") if self._kind in _PADDED else piece, bool(piece)
                self._rest = piece
                if not piece and more:
                    continue
                if not piece:
                    return 0
            if not piece:
                raise EOFError("the last member is not complete")
            self._next(piece)
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n

    def _next(self, piece: bytes) -> None:
        member = self._member or self._begin()
        made = member.decompress(piece)
        self._member, self._rest = (None, member.unused_data) if member.eof else (member, b"")
        self._taken += len(piece) - len(self._rest)
        self._made += len(made)
        if self._made > allowance(self._taken, self._limit):
            check_expansion(self._path, f"more {self._kind} data", self._made, self._taken, self._limit)
        self._ready = memoryview(made)


def _decompressor(path: Name, kind: str) -> Callable[[], Any]:
    """A new decompressor, for one member."""
    if kind == "gzip":
        return lambda: zlib.decompressobj(31)  # with the header and the checksum of gzip
    if kind == "bzip2":
        made: Callable[[], Any] = import_module("bz2").BZ2Decompressor
        return made
    if kind == "xz":
        lzma = import_module("lzma")
        return lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)
    try:
        decompressor: Callable[[], Any] = import_module("compression.zstd").ZstdDecompressor  # Python 3.14
        return decompressor
    except ImportError:
        pass
    try:
        zstandard = import_module("zstandard")
    except ImportError:
        raise FileError(
            f"{path}: Zstandard data need the package zstandard: pip install 'metrimax[zstd]', or decompress the file"
        ) from None
    return lambda: zstandard.ZstdDecompressor().decompressobj()
