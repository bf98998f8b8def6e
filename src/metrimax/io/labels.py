"""Column names of a matrix, labels of its rows and, for rankings, their groups."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metrimax.io.files import FileError, Name
from metrimax.protocols import Array, Vector

WHOLE = 2.0**53
"""Below this, float64 represents every whole number exactly."""


class Truth(NamedTuple):
    """Labels, a list of arrays where a row may have several, and groups of rows; each None where there are none."""

    labels: Array | list[Vector] | None
    groups: Array | None = None


def show(label: float | str) -> str:
    """A label as it is written: 1, not 1.0, and 0.1 rather than all of its digits."""
    if isinstance(label, str):
        return label
    return f"{label:.17g}" if float(label).is_integer() else repr(float(label))


def visible(text: str, keep: str = "") -> str:
    r"""A text that is safe to show in a terminal: control characters are escaped, except those to keep.

    >>> visible(chr(27) + "[31m")
    '\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def are_names(names: Any, columns: int) -> bool:
    """Whether these are strings, one for each column."""
    return isinstance(names, list) and len(names) == columns and all(isinstance(name, str) for name in names)


def given_labels(folder: Path, what: str, given: Any, rows: int) -> Array | list[Vector]:
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


def as_labels(path: Name, given: Array | None, lines: Sequence[int] | None = None) -> Array | None:
    """Labels as numbers or strings; None where all are missing, an error where some are."""
    if given is None or _all_missing(path, given, "labels", lines):
        return None
    return given.astype(np.float64) if given.dtype.kind in "fiub" else np.array([_text(label) for label in given])


def as_groups(path: Name, given: Array | None, lines: Sequence[int] | None = None) -> Array | None:
    """Groups as given; None where all are missing, an error where some are."""
    return None if given is None or _all_missing(path, given, "groups (qid)", lines) else given


def _all_missing(path: Name, given: Array, what: str, lines: Sequence[int] | None) -> bool:
    if given.dtype.kind in "fiub":
        missing = ~np.isfinite(given)
    else:
        missing = np.array([v is None or _text(v).strip().lower() in ("", "nan") for v in given], dtype=bool)
    if not missing.any() or missing.all():
        return bool(missing.any())
    row = int(missing.argmax())
    place = f"row {row} (from 0)" if lines is None else f"line {lines[row]}"
    shown = repr(str(given[row])) if isinstance(given[row], str) else given[row]
    raise FileError(f"{path}: {place} holds {shown}: expected {what}; fill it in, or remove the row")


def _text(label: Any) -> str:
    return label.decode(errors="backslashreplace") if isinstance(label, bytes) else str(label)


def join(folder: Path, parts: Sequence[Truth], rows: Sequence[int], *, whole: bool = True) -> Truth:
    """Join the labels and groups of shards, or of blocks of rows, given their numbers of rows.

    Where rows may have several labels, some may have none.
    """
    several = any(isinstance(t.labels, list) for t in parts)
    for what, given in (("labels", [t.labels for t in parts]), ("groups (qid)", [t.groups for t in parts])):
        known = [part for part in given if part is not None]
        if known and len(known) < len(parts) and not (several and what == "labels"):
            raise FileError(f"{folder}: some rows have {what} and some have none")
    labels: Array | list[Vector] | None = None
    if several:
        labels = [row for t, n in zip(parts, rows, strict=True) for row in _rows(t.labels, n)]
        if whole:
            check_labelled(folder, *unlabelled(labels, len(labels)))
    elif parts and parts[0].labels is not None:
        own = [np.asarray(t.labels) for t in parts]
        if any(part.dtype.kind == "U" for part in own):  # among names a number is one, too: 1, not 1.0
            own = [part if part.dtype.kind == "U" else np.array([show(v) for v in part], dtype=str) for part in own]
        labels = np.concatenate(own)
    groups = [t.groups for t in parts if t.groups is not None]
    return Truth(labels, np.concatenate(groups) if groups else None)


def unlabelled(labels: Array | list[Vector] | None, n: int) -> tuple[int | None, int]:
    """The first of n rows without a label, None where all have one, and the most labels of a row."""
    if not isinstance(labels, list):
        return (None, 1) if labels is not None or n == 0 else (0, 0)
    counts = [len(row) for row in labels]
    return counts.index(0) if 0 in counts else None, max(counts, default=0)


def check_labelled(folder: Path, first: int | None, most: int) -> None:
    """Raise where some rows have a label and others none, unless rows may have several."""
    if first is not None and most == 1:
        raise FileError(
            f"{folder}: expected a label for every row, for none has several, got none for row {first} (from 0): "
            "fill it in, or remove the row"
        )


def _rows(labels: Array | list[Vector] | None, n: int) -> list[Vector]:
    """The labels of each of n rows."""
    return [np.empty(0)] * n if labels is None else [np.atleast_1d(row) for row in labels]


def pack(truth: Truth) -> dict[str, Array]:
    """As the arrays of a shard, by part."""
    arrays: dict[str, Array] = {}
    if isinstance(truth.labels, list):
        starts = np.concatenate(([0], np.cumsum([len(row) for row in truth.labels])))
        arrays |= {"y": np.concatenate([np.empty(0), *truth.labels]), "y_starts": starts.astype(np.int64)}
    elif truth.labels is not None:
        arrays["y"] = truth.labels
    return arrays if truth.groups is None else arrays | {"qid": truth.groups}
