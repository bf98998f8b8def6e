"""Read ``.npy`` headers and ``.npz`` archives without trusting the sizes they state."""

from __future__ import annotations

import io
import math
import threading
import zipfile
from typing import IO, Any

import numpy as np

from metrimax.io.files import FileError, Name
from metrimax.io.limits import Limit, check_expansion
from metrimax.protocols import Array, Arrays

_PARSER = threading.Lock()

Header = tuple[tuple[int, ...], bool, np.dtype[Any]]
"""Shape, whether it is in Fortran's order, and type."""


def read_header(file: Any) -> Header:
    """Read the header of an ``.npy`` file; NumPy calls Python's parser for it.

    Up to Python 3.12 the parser may raise SystemError when two threads use it (python/cpython#106905). Our threads take
    turns, and a header is read again after a collision with other code.
    """
    version = np.lib.format.read_magic(file)
    begin = file.tell()
    for attempt in range(10):
        try:
            with _PARSER:
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                return read(file)
        except SystemError:
            if attempt == 9:
                raise
            file.seek(begin)
    raise AssertionError("the last attempt returns or raises")


def write_array(file: IO[bytes], array: Array) -> None:
    """Write an array as ``.npy``.

    `numpy.save` is not used: it may turn a Ctrl-C into a TypeError, and its error for a full disk gives no reason.
    """
    array = np.ascontiguousarray(array) if array.ndim else array
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    file.write(array.reshape(-1).view(np.uint8).data)


def write_archive(file: IO[bytes], arrays: Arrays) -> None:
    """Write arrays as ``.npz``."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                write_array(member, array)


def read_archive(path: Name, raw: bytes, limit: Limit = None) -> Arrays:
    """The arrays of an ``.npz`` archive, none of them pickled.

    Before memory is allocated, the size of each array is checked against its stored bytes, and the total against the
    limit.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = archive.infolist()
            if len({member.filename for member in members}) < len(members):
                raise ValueError("two members have one name")
            needed = sum(member.file_size for member in members)
            check_expansion(path, f"{len(members)} arrays", needed, len(raw), limit)
            return {member.filename.removesuffix(".npy"): _read_member(archive, member) for member in members}
    except (FileError, MemoryError):
        raise
    except Exception as error:  # zipfile has many kinds, zlib.error among them
        raise FileError(f"{path}: no NumPy archive without pickled objects ({error})") from error


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    file: Any
    with archive.open(member) as file:
        shape, fortran, dtype = read_header(file)
        if dtype.hasobject:
            raise ValueError(f"{member.filename} holds pickled objects")
        if any(size < 0 for size in shape):
            raise ValueError(f"{member.filename} has the shape {shape}")
        left = member.file_size - file.tell()
        if math.prod(shape) * dtype.itemsize != left or max(shape, default=0) > max(left, 1 << 16):
            raise ValueError(f"{member.filename} has the shape {shape} and type {dtype}, but {left} bytes")
        array = np.empty(shape, dtype, order="F" if fortran else "C")
        if left:
            flat = array.reshape(-1, order="A").view(np.uint8).data
            at = 0
            while at < left:
                got = file.readinto(flat[at:])
                if not got:
                    raise EOFError(f"{member.filename} is cut off")
                at += got
        return array
