"""The state of a fit in a folder, so that one that was killed goes on where it was."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from metrimax._validation import warn
from metrimax.io.files import FileError, Name, check_writable, replacing
from metrimax.io.locks import NameLock
from metrimax.io.npy import read_archive, write_archive
from metrimax.io.sealing import parse_json
from metrimax.protocols import Arrays, Record, Vector

MINUTES = 2.0
"""Between two writings, unless one takes longer than a twentieth of that."""

FORMAT, VERSION = "metrimax-checkpoint", 2

ATTEMPTS = 100
"""To make a file in a folder that others, whose fits end, remove in the same moment."""

CLOSE = 1e-9
"""How far apart, as a share of their size, the products of the same rows may be: the order of sums is not fixed."""


class Checkpoint:
    """A folder in which a fit keeps its cuts and its best point, written every few minutes.

    A file belongs to one run, by its name: a digest of labels, weights, measure, solver and of what X does to fixed
    vectors, and the weight that C gives to the risk. So fits may share a folder, also at the same time; two of the same
    run have a file each. Cuts do not depend on C or tol: a run without a file starts from that of another C, unless
    that one is at work. When a fit ends, its files go; when it is interrupted, by Ctrl-C, SIGTERM or an error, they are
    written first.

    Where a file is damaged, or its cuts are not those of the data, the fit says so in a warning and starts anew. Where
    none can be written it says so once, and goes on.

    Parameters
    ----------
    folder : str or path
        Made if it is not there.
    minutes : float
        Between two writings; 0 for after every iteration.
    """

    def __init__(self, folder: Name, *, minutes: float = MINUTES) -> None:
        self.folder = Path(folder)
        self.minutes = minutes
        self._begun: list[KeptRun] = []
        self._parts: list[Checkpoint] = []

    def part(self, name: str) -> Checkpoint:
        """A place of its own within the folder, for a fit that is a part of this one; it goes when this one goes."""
        self._parts.append(Checkpoint(self.folder / name, minutes=self.minutes))
        return self._parts[-1]

    def begin(self, problem: str, weight: float, probe: Vector) -> KeptRun:
        """The state of one label's run; ``probe`` is what its rows do to fixed vectors."""
        self._begun.append(KeptRun(self.folder, problem, weight, probe, 60 * self.minutes))
        return self._begun[-1]

    def clear(self) -> None:
        """Remove what this fit wrote, and the folder if that was all."""
        for part in self._parts:
            part.clear()
        for run in self._begun:
            run.remove()
        self._begun, self._parts = [], []
        with suppress(OSError):  # there may be something else in it
            self.folder.rmdir()


def as_checkpoint(given: Name | Checkpoint | None) -> Checkpoint | None:
    """A folder by its name, or as it is given; each fit has an object of its own, for it removes what it began."""
    if given is not None and not isinstance(given, (str, os.PathLike, Checkpoint)):
        raise TypeError(f"expected checkpoint as the name of a folder, a Checkpoint or None, got {given!r}")
    if isinstance(given, Checkpoint):
        return Checkpoint(given.folder, minutes=given.minutes)
    return None if given is None else Checkpoint(given)


class KeptRun:
    """The file of one run, which nobody else writes to before `release`."""

    def __init__(self, folder: Path, problem: str, weight: float, probe: Vector, seconds: float) -> None:
        self._folder, self._problem, self._weight = folder, problem, weight
        self._probe, self._seconds = probe, seconds
        self._due = time.monotonic() + seconds
        self._failed = False
        self._lock, self._file = self._take()

    def _take(self) -> tuple[NameLock, Path]:
        """A name that no other run holds: one with a file, if there is one, else the first."""
        free: tuple[NameLock, Path] | None = None
        for number in count(1):
            file = self._folder / f"{self._problem}-{self._weight!r}{'' if number == 1 else f'~{number}'}.npz"
            lock = _lock(file)
            if lock is not None:
                if free is not None and file.exists():
                    free[0].release()
                if free is None or file.exists():
                    free = lock, file
                else:
                    lock.release()
            if free is not None and (free[1].exists() or not _numbered(file, number + 1).exists()):
                break
        assert free is not None
        try:
            check_writable(free[1])  # now, not minutes later
        except FileError:
            free[0].release()
            raise
        return free

    def load(self) -> tuple[Arrays, Record] | None:
        """What an earlier run left, and its last record; None if there is nothing, or nothing of use."""
        return self._read(self._file)

    def others(self) -> Iterator[Arrays]:
        """What is there of runs of the same problem with another C, the nearest first, unless they are at work."""
        pattern = re.compile(re.escape(self._problem) + r"-([0-9.e+-]+)(~\d+)?\.npz")
        found = []
        with suppress(OSError, ValueError, ArithmeticError):
            for path in self._folder.iterdir():
                match = pattern.fullmatch(path.name)
                if match and path != self._file:
                    found.append((abs(math.log(float(match[1]) / self._weight)), path))
        for _, path in sorted(found):
            with suppress(OSError):
                lock = NameLock(_lock_file(path))
                if not lock.take():
                    continue
                try:
                    read = self._read(path)
                finally:
                    lock.release()
                if read is not None:
                    yield read[0]

    def _read(self, path: Path) -> tuple[Arrays, Record] | None:
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            warn(f"{path}: the checkpoint cannot be read ({error.strerror or error}): the fit starts anew")
            return None
        try:
            arrays = read_archive(path, raw)
            record = _open(arrays)
            probe = arrays.pop("probe")
        except (FileError, ValueError, KeyError, TypeError, RecursionError) as error:
            warn(f"{path}: damaged, or no checkpoint of this version ({error}): the fit starts anew")
            return None
        if probe.shape != self._probe.shape or not np.allclose(
            probe, self._probe, rtol=CLOSE, atol=CLOSE * np.abs(self._probe).max()
        ):
            warn(f"{path}: was written for rows of X that differ a little from these: the fit starts anew")
            return None
        return arrays, record

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._due

    def save(self, arrays: Arrays, record: Record) -> None:
        """Write the state, all of it or nothing; a warning, the first time, where that cannot be."""
        began = time.monotonic()
        content = _sealed(arrays | {"probe": self._probe}, record)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with replacing(self._file) as file:
                write_archive(file, content)
        except (OSError, FileError) as error:
            if not self._failed:
                warn(f"{error}: the fit goes on, but there is no checkpoint of it to go on from later")
            self._failed = True
        now = time.monotonic()
        self._due = now + (max(self._seconds, 20 * (now - began)) if self._seconds else 0.0)

    def release(self) -> None:
        """Let another run have the file."""
        self._lock.release()

    def remove(self) -> None:
        """The run is done: its file goes."""
        with suppress(OSError):  # what stays is of use to another
            self._file.unlink()
        self._lock.release()


def _lock_file(file: Path) -> Path:
    return file.parent / f".{file.name}.lock"


def _numbered(file: Path, number: int) -> Path:
    return file.parent / f"{file.name.removesuffix('.npz').partition('~')[0]}~{number}.npz"


def _lock(file: Path) -> NameLock | None:
    """The lock of a file, in a folder that is made; None where another run has it."""
    lock = NameLock(_lock_file(file))
    for attempt in range(ATTEMPTS):
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            return lock if lock.take() else None
        except FileNotFoundError as error:  # another fit has just removed the folder
            if attempt == ATTEMPTS - 1:
                raise _no_folder(file.parent, error) from error
        except OSError as error:
            raise _no_folder(file.parent, error) from error
    raise AssertionError("the last attempt returns or raises")


def _no_folder(folder: Path, error: OSError) -> FileError:
    return FileError(f"{folder}: cannot be a folder for checkpoints: {error.strerror or error}")


def _sealed(arrays: Arrays, record: Record) -> Arrays:
    """The arrays with what they are, and a digest of all of it."""
    counted = [record.iteration, record.n_passes, record.seconds]
    about = {"format": FORMAT, "version": VERSION, "counted": counted, "arrays": _shapes(arrays)}
    text = json.dumps(about | {"sha256": _digest(about, arrays)})
    return {"about": np.array(text), **arrays}


def _open(arrays: Arrays) -> Record:
    """The record of sealed arrays, from which the rest of what seals them is taken; ValueError where they changed."""
    text = arrays.pop("about")
    if text.dtype.kind != "U" or text.shape != ():
        raise ValueError("expected a text that says what it is")
    about = parse_json(str(text))
    if not isinstance(about, dict) or (about.get("format"), about.get("version")) != (FORMAT, VERSION):
        raise ValueError(f"expected {FORMAT}, version {VERSION}")
    digest = about.pop("sha256", None)
    if about.get("arrays") != _shapes(arrays):
        raise ValueError(f"expected the arrays {about.get('arrays')!s:.500}, got {_shapes(arrays)!s:.500}")
    if digest != _digest(about, arrays):
        raise ValueError("its checksum is not that of its content")
    if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("expected finite numbers")
    iteration, n_passes, seconds = about["counted"]
    return Record(int(iteration), float(n_passes), np.inf, -np.inf, 0, float(seconds))


def _shapes(arrays: Arrays) -> dict[str, Any]:
    return {name: [array.dtype.str, list(array.shape)] for name, array in sorted(arrays.items())}


def _digest(about: dict[str, Any], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for _, array in sorted(arrays.items()):
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
