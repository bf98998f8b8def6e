"""The state of a fit in a folder, so that one that was killed goes on where it was."""

from __future__ import annotations

import json
import os
import time
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np

from metrimax.io.files import BAD_HEADER, FileError, Name, check_writable, replacing
from metrimax.protocols import Arrays, Record, Vector

try:
    from lzma import LZMAError
except ImportError:  # a Python built without it: zipfile says RuntimeError
    LZMAError = RuntimeError  # type: ignore[assignment,misc]

MINUTES = 2.0
"""Between two writings, unless one takes longer than a twentieth of that."""


class Checkpoint:
    """A folder in which a fit keeps its cuts and its best point, written every few minutes.

    Cuts do not depend on C or tol: a fit with other values of them starts from what is there. A file belongs to one
    label of one problem, by its name (a digest of labels, weights, measure and solver), so several fits may share a
    folder; other rows of X are told by their products with a fixed vector. When a fit ends its files go.

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
        self._begun: list[Path] = []
        self._parts: list[Checkpoint] = []

    def part(self, name: str) -> Checkpoint:
        """A place of its own within the folder, for a fit that is a part of this one; it goes when this one goes."""
        self._parts.append(Checkpoint(self.folder / name, minutes=self.minutes))
        return self._parts[-1]

    def begin(self, problem: str, probe: Vector) -> KeptRun:
        """The state of one label's run; ``probe`` is what tells its rows from others."""
        _make(self.folder)
        file = self.folder / f"{problem}.npz"
        check_writable(file)  # now, not minutes later
        self._begun.append(file)
        return KeptRun(file, probe, 60 * self.minutes)

    def clear(self) -> None:
        """Remove what this fit wrote, and the folder if that was all."""
        for part in self._parts:
            part.clear()
        for file in self._begun:
            with suppress(OSError):  # the fit is done, and what stays is of use to another
                file.unlink()
        self._begun, self._parts = [], []
        with suppress(OSError):  # there may be something else in it
            self.folder.rmdir()


def as_checkpoint(given: Name | Checkpoint | None) -> Checkpoint | None:
    """A folder by its name, or as it is given."""
    if given is not None and not isinstance(given, (str, os.PathLike, Checkpoint)):
        raise TypeError(f"expected checkpoint as the name of a folder, a Checkpoint or None, got {given!r}")
    return Checkpoint(given) if isinstance(given, (str, os.PathLike)) else given


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be a folder for checkpoints: {error.strerror or error}") from error


_DAMAGE = (
    *BAD_HEADER,
    OSError,
    KeyError,
    NotImplementedError,  # of zipfile: another version, another compression
    RuntimeError,  # of zipfile: encrypted
    zipfile.BadZipFile,
    zlib.error,
    LZMAError,
)
"""What reading a damaged archive may end with."""


class KeptRun:
    """The file of one run."""

    def __init__(self, file: Path, probe: Vector, seconds: float) -> None:
        self._file, self._probe, self._seconds = file, probe, seconds
        self._due = time.monotonic() + seconds

    def load(self) -> tuple[Arrays, Record] | None:
        """What an earlier run left, and its last record; None if there is nothing."""
        if not self._file.exists():
            return None
        try:
            with np.load(self._file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            about: dict[str, Any] = json.loads(str(arrays.pop("about")))
            probe, record = arrays.pop("probe"), Record(**about["record"])
            missing = set(about["arrays"]) - arrays.keys()
            if missing:
                raise ValueError(f"expected the arrays {', '.join(about['arrays'])}, got no {min(missing)}")
        except _DAMAGE as error:
            raise FileError(f"{self._file}: damaged, or no checkpoint ({error}): remove it to start anew") from error
        if probe.shape != self._probe.shape or not np.allclose(probe, self._probe, rtol=1e-9, atol=1e-9):
            raise FileError(
                f"{self._file}: was written for other rows of X with the same labels: "
                "name another folder, or remove the file to start anew"
            )
        return arrays, record

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._due

    def save(self, arrays: Arrays, record: Record) -> None:
        """Write the state, all of it or nothing."""
        began = time.monotonic()
        about = json.dumps({"record": record._asdict(), "arrays": list(arrays)})
        _make(self._file.parent)  # another fit in the same folder may have ended and removed it
        with replacing(self._file) as file:
            np.savez(file, about=np.array(about), probe=self._probe, **cast(Any, arrays))
        now = time.monotonic()
        self._due = now + (max(self._seconds, 20 * (now - began)) if self._seconds else 0.0)
