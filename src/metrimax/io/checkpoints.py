"""Checkpoints: the state of a fit in a folder, so that a fit that was killed can resume."""

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
"""Minutes between two saves; more where a save takes longer than a twentieth of that."""

FORMAT, VERSION = "metrimax-checkpoint", 2

ATTEMPTS = 100
"""Tries to create a file. Another fit that ends may remove the folder at the same moment."""

CLOSE = 1e-9
"""Relative tolerance when products of the same rows are compared: the order of summation is not fixed."""


class Checkpoint:
    """A folder in which a fit saves its cuts and its best point every few minutes.

    Each run has a file of its own. The file name is a digest of labels, weights, measure, solver and the products of X
    with fixed vectors, followed by the weight of the risk, C kappa n. So several fits may share a folder, also at the
    same time; two fits of the same run get two files. Cuts depend neither on C nor on tol: a run without a file starts
    from the file of another C, unless a fit is using that file. A fit that ends removes its files. A fit that is
    interrupted, by Ctrl-C, SIGTERM or an error, saves first.

    If a file is damaged, or its cuts do not fit the data, the fit warns and starts from nothing. If no file can be
    written, the fit warns once and goes on.

    Parameters
    ----------
    folder : str or path
        Created if it does not exist.
    minutes : float
        Time between two saves; 0 saves after every iteration.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from metrimax import MeasureSVC
    >>> from metrimax.io.checkpoints import Checkpoint
    >>> X, species = load_iris(return_X_y=True)
    >>> print(MeasureSVC("f1", checkpoint=Checkpoint(tempfile.mkdtemp(), minutes=5)).fit(X, species == 0).status_)
    converged: the duality gap is within tol
    """

    def __init__(self, folder: Name, *, minutes: float = MINUTES) -> None:
        self.folder = Path(folder)
        self.minutes = minutes
        self._begun: list[KeptRun] = []
        self._parts: list[Checkpoint] = []

    def part(self, name: str) -> Checkpoint:
        """A subfolder for a fit that is part of this one; `clear` removes it too."""
        self._parts.append(Checkpoint(self.folder / name, minutes=self.minutes))
        return self._parts[-1]

    def begin(self, problem: str, weight: float, probe: Vector) -> KeptRun:
        """The file of one label's run; ``probe`` holds the products of its rows with fixed vectors."""
        self._begun.append(KeptRun(self.folder, problem, weight, probe, 60 * self.minutes))
        return self._begun[-1]

    def clear(self) -> None:
        """Remove what this fit wrote, and the folder if it is empty then."""
        for part in self._parts:
            part.clear()
        for run in self._begun:
            run.remove()
        self._begun, self._parts = [], []
        with suppress(OSError):  # the folder holds other files
            self.folder.rmdir()


def as_checkpoint(given: Name | Checkpoint | None) -> Checkpoint | None:
    """The checkpoint that a user gave, as an object of this fit alone: a fit removes only the files it wrote."""
    if given is not None and not isinstance(given, (str, os.PathLike, Checkpoint)):
        raise TypeError(f"expected checkpoint as the name of a folder, a Checkpoint or None, got {given!r}")
    if isinstance(given, Checkpoint):
        return Checkpoint(given.folder, minutes=given.minutes)
    return None if given is None else Checkpoint(given)


class KeptRun:
    """The file of one run; no other run writes to it before `release`."""

    def __init__(self, folder: Path, problem: str, weight: float, probe: Vector, seconds: float) -> None:
        self._folder, self._problem, self._weight = folder, problem, weight
        self._probe, self._seconds = probe, seconds
        self._due = time.monotonic() + seconds
        self._failed = False
        self._lock, self._file = self._take()

    def _take(self) -> tuple[NameLock, Path]:
        """A file name that no other run has locked: one whose file exists, if possible, else the first."""
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
        """The arrays of an earlier run and its last record; None if there is no usable file."""
        return self._read(self._file)

    def others(self) -> Iterator[Arrays]:
        """The arrays of runs with another C, the nearest C first; runs that are still going are left out."""
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
        """Write the state completely or not at all; warn the first time that it cannot be written."""
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
        """Unlock the file for other runs."""
        self._lock.release()

    def remove(self) -> None:
        """Remove the file: the run has ended."""
        with suppress(OSError):  # a file that stays can serve another run
            self._file.unlink()
        self._lock.release()


def _lock_file(file: Path) -> Path:
    return file.parent / f".{file.name}.lock"


def _numbered(file: Path, number: int) -> Path:
    return file.parent / f"{file.name.removesuffix('.npz').partition('~')[0]}~{number}.npz"


def _lock(file: Path) -> NameLock | None:
    """Lock a file, and create its folder; None where another run holds the lock."""
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
    """The arrays with a description of them and a digest of everything."""
    counted = [record.iteration, record.n_passes, record.seconds]
    about = {"format": FORMAT, "version": VERSION, "counted": counted, "arrays": _shapes(arrays)}
    text = json.dumps(about | {"sha256": _digest(about, arrays)})
    return {"about": np.array(text), **arrays}


def _open(arrays: Arrays) -> Record:
    """Check sealed arrays, remove the description from them and return its record; ValueError if anything changed."""
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
