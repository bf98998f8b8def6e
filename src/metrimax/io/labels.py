"""What comes with rows: their labels and, for rankings, their groups; as files of shards and in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax.io.files import FileError
from metrimax.protocols import Vector

Array = npt.NDArray[Any]


class Truth(NamedTuple):
    """Labels, a list of arrays where a row may have several, and groups of rows; each None where there are none."""

    labels: Array | list[Vector] | None
    groups: Array | None = None


def as_labels(folder: Path, what: str, given: Any, rows: int) -> Array | list[Vector]:
    """Labels or groups as a user gives them, one for each row: an array, or a list of arrays for rows with several."""
    if isinstance(given, list) and any(np.ndim(row) for row in given):
        made: Array | list[Vector] = [np.atleast_1d(row) for row in given]
    else:
        made = np.asarray(given)
        if made.dtype == object and all(isinstance(name, str) for name in made.ravel()):
            made = made.astype(str)
        if made.ndim != 1 or made.dtype == object:
            raise FileError(
                f"{folder}: expected {what} as numbers or strings, one per row, got an array of shape {made.shape} and "
                f"type {made.dtype}"
            )
    if len(made) != rows:
        raise FileError(f"{folder}: expected {rows} {what}, one per row, got {len(made)}")
    return made


def join(folder: Path, parts: Sequence[Truth]) -> Truth:
    """Labels and groups of all shards, or blocks of rows."""
    for what, given in (("labels", [t.labels for t in parts]), ("groups (qid)", [t.groups for t in parts])):
        if any(part is None for part in given) and not all(part is None for part in given):
            raise FileError(f"{folder}: some rows have {what} and some have none")
    _check_alike(folder, parts)
    labels: Array | list[Vector] | None = None
    if any(isinstance(t.labels, list) for t in parts):
        labels = [np.atleast_1d(row) for t in parts if t.labels is not None for row in t.labels]
    elif parts and parts[0].labels is not None:
        labels = np.concatenate([t.labels for t in parts if t.labels is not None])
    groups = [t.groups for t in parts if t.groups is not None]
    return Truth(labels, np.concatenate(groups) if groups else None)


def _check_alike(folder: Path, parts: Sequence[Truth]) -> None:
    """Raise if labels are numbers here and names there: as names, 1 and 1.0 would be two classes."""
    examples: dict[bool, Any] = {}
    for truth in parts:
        rows = truth.labels if isinstance(truth.labels, list) else [] if truth.labels is None else [truth.labels]
        for row in map(np.atleast_1d, rows):
            if row.size:
                examples.setdefault(row.dtype.kind in "US", row.ravel()[0])
    if len(examples) > 1:
        raise FileError(
            f"{folder}: expected labels that are all numbers or all names, got numbers such as {examples[False]} in "
            f"some files and names such as '{examples[True]}' in others: write them alike"
        )


def pack(truth: Truth) -> dict[str, Array]:
    """As the arrays of a shard, by part."""
    arrays: dict[str, Array] = {}
    if isinstance(truth.labels, list):
        starts = np.concatenate(([0], np.cumsum([len(row) for row in truth.labels])))
        arrays |= {"y": np.concatenate([np.empty(0), *truth.labels]), "y_starts": starts.astype(np.int64)}
    elif truth.labels is not None:
        arrays["y"] = truth.labels
    return arrays if truth.groups is None else arrays | {"qid": truth.groups}
