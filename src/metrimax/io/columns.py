"""Columns of tables as people have them: text and gaps become numbers, and numbers are standardised.

What was learnt of the columns on the training table is kept with the model, so that other tables are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from metrimax.io.files import FileError, Name
from metrimax.io.labels import show
from metrimax.protocols import Vector

MISSING = ("", "?", "-", "na", "n/a", "nan", "null", "none")
"""What stands for a missing value, in small letters."""
MOST_VALUES = 100
"""Different texts of a column that are encoded; more are names or numbers of things, not categories."""
LARGEST = float(np.finfo(np.float64).max)
SHOWN = 5
"""Columns or texts that a message names."""


class Learn(NamedTuple):
    """Learn how to treat the columns from the table that is read."""

    scale: bool = True


@dataclass(frozen=True)
class Column:
    """How one column of a table becomes features.

    Numbers become (x - center) / scale, with ``fill`` for a gap. Each text of ``values`` becomes a feature that is 1
    where the cell holds it and 0 elsewhere; a text that is none of them is 0 everywhere. With ``marked`` one more
    feature is 1 where the cell is empty.
    """

    name: str
    values: tuple[str, ...] | None = None
    fill: float = 0.0
    center: float = 0.0
    scale: float = 1.0
    marked: bool = False

    @property
    def features(self) -> list[str]:
        """The names of the features made of this column."""
        own = [self.name] if self.values is None else [f"{self.name}={text}" for text in self.values]
        return [*own, f"{self.name} is missing"] if self.marked else own


class Raw(NamedTuple):
    """A column as it was read.

    ``numbers`` has NaN for gaps, and is None where a cell is text; ``cells`` has "" for gaps, and is None where the
    file keeps numbers as such. ``place`` says where in the file a row is.
    """

    name: str
    numbers: Vector | None
    cells: list[str] | None
    place: Callable[[int], str]

    @property
    def gaps(self) -> Any:
        if self.cells is not None:
            return np.array([not cell for cell in self.cells], dtype=bool)
        return np.isnan(np.asarray(self.numbers))

    @property
    def texts(self) -> list[str]:
        if self.cells is not None:
            return self.cells
        return ["" if np.isnan(v) else show(float(v)) for v in np.asarray(self.numbers)]


def feature_names(columns: Sequence[Column]) -> list[str]:
    """The names of all features."""
    return [name for column in columns for name in column.features]


def learn(path: Name, raws: Sequence[Raw], scale: bool, named: bool) -> tuple[list[Column], list[str]]:
    """How to treat the columns of a table, and sentences that say so. Empty columns with names are left out."""
    columns, empty, filled, coded = [], [], [], []
    for raw in raws:
        gaps = int(raw.gaps.sum())
        if gaps == len(raw.gaps) > 0:
            empty.append(raw.name)
            columns += [] if named else [Column(raw.name)]  # others are counted from it
            continue
        marked = gaps > 0
        if raw.numbers is None:
            texts = sorted({text for text in raw.texts if text})
            _check_few(path, raw, texts)
            columns.append(Column(raw.name, tuple(texts), marked=marked))
            coded.append(f"{raw.name} ({len(texts)})")
        else:
            fill = float(np.nanmedian(raw.numbers)) if len(raw.numbers) else 0.0
            center, width = _spread(np.where(np.isnan(raw.numbers), fill, raw.numbers)) if scale else (0.0, 1.0)
            columns.append(Column(raw.name, None, fill, center, width, marked))
        if gaps:
            filled.append(f"{raw.name} ({gaps})")
    said = []
    if coded:
        said.append(f"text became one column of 0 and 1 for each value: {_listed(coded)}")
    if filled:
        said.append(f"gaps were filled (numbers: the median) and marked by a column of their own: {_listed(filled)}")
    if empty:
        said.append(f"empty columns were left out: {_listed(empty)}")
    if scale and any(column.values is None and column.scale != 1 for column in columns):
        said.append("columns of numbers were standardised (mean 0, standard deviation 1; --no-scaling leaves them)")
    names = sorted(feature_names(columns))
    twice = [one for one, other in pairwise(names) if one == other]
    if twice:
        raise FileError(f"{path}: expected columns that make different features, got {twice[0]!r} twice: rename them")
    return columns, said


def apply(
    path: Name, columns: Sequence[Column], raws: Sequence[Raw], n: int, table: Vector | None = None
) -> tuple[Vector, list[str]]:
    """The features of the n rows of a table, and sentences on what its columns had not shown in training.

    ``table`` has the columns as they were read, numbers without gaps: the features take its place where they fit.
    """
    fits = table is not None and all(column.values is None and not column.marked for column in columns)
    X = table if table is not None and fits else np.zeros((n, sum(len(column.features) for column in columns)))
    at, unknown, filled = 0, [], []
    for column, raw in zip(columns, raws, strict=True):
        gaps = raw.gaps
        width = len(column.features)
        if column.values is None:
            X[:, at] = (np.where(gaps, column.fill, _numbers(path, raw)) - column.center) / column.scale
        else:
            places = {text: k for k, text in enumerate(column.values)}
            codes = np.array([places.get(text, -1) for text in raw.texts], dtype=np.intp)
            known = np.flatnonzero(codes >= 0)
            X[known, at + codes[known]] = 1.0
            strange = np.flatnonzero((codes < 0) & ~gaps)
            if len(strange):
                unknown.append(f"{column.name} ({len(strange)}, such as {raw.texts[strange[0]]!r:.60})")
        if column.marked:
            X[:, at + width - 1] = gaps
        elif gaps.any():
            filled.append(f"{column.name} ({int(gaps.sum())})")
        at += width
    said = []
    if unknown:
        said.append(f"texts that the training table did not have count as none of its values: {_listed(unknown)}")
    if filled:
        said.append(
            "gaps in columns that had none in training were filled (numbers: the median, text: none of its values): "
            + _listed(filled)
        )
    if not np.isfinite(X).all():
        raise FileError(f"{path}: expected numbers that can be standardised, got some too large for a float")
    return X, said


def as_json(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """The columns as they are kept in a model file."""
    texts = ({"name": c.name, "values": list(c.values or ()), "marked": c.marked} for c in columns)
    numbers = (
        {"name": c.name, "fill": c.fill, "center": c.center, "scale": c.scale, "marked": c.marked} for c in columns
    )
    return [
        number if column.values is None else text for column, text, number in zip(columns, texts, numbers, strict=True)
    ]


def from_json(entries: Any) -> list[Column]:
    """The columns of a model file; ValueError where an entry does not describe a column."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("expected columns as a list of objects")
    columns = [_column(entry) for entry in entries]
    names = [column.name for column in columns]
    if len(set(names)) != len(names):
        raise ValueError("expected columns of different names, got some twice")
    return columns


def _column(entry: dict[str, Any]) -> Column:
    name, marked = entry.get("name"), entry.get("marked")
    if not isinstance(name, str) or not isinstance(marked, bool):
        raise ValueError(f"expected a column with a name and whether its gaps are marked, got {entry!r:.100}")
    if "values" in entry:
        values = entry["values"]
        if not isinstance(values, list) or not all(isinstance(text, str) and text for text in values):
            raise ValueError(f"expected the values of the column {name!r:.60} as texts, got {values!r:.100}")
        if len(set(values)) != len(values):
            raise ValueError(f"expected different values of the column {name!r:.60}, got some twice")
        return Column(name, tuple(values), marked=marked)
    numbers: list[Any] = [entry.get(key) for key in ("fill", "center", "scale")]
    if not all(type(v) in (int, float) and abs(v) <= LARGEST for v in numbers) or not numbers[2] > 0:
        raise ValueError(f"expected finite numbers fill, center and scale > 0 of the column {name!r:.60}")
    fill, center, scale = map(float, numbers)
    return Column(name, None, fill, center, scale, marked)


def _spread(values: Vector) -> tuple[float, float]:
    """Mean and standard deviation; 1 for a column that does not vary, or whose deviation no float holds."""
    if len(values) == 0:
        return 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        center, width = float(values.mean()), float(values.std())
    if not np.isfinite(center):
        return 0.0, 1.0
    return center, width if 1e-9 * abs(center) < width < np.inf else 1.0


def _numbers(path: Name, raw: Raw) -> Vector:
    if raw.numbers is not None:
        return raw.numbers
    row, text = next((k, text) for k, text in enumerate(raw.texts) if text and not is_number(text))
    raise FileError(
        f"{path}: {raw.place(row)}, column {raw.name!r}: expected a number, as in the table that the model was trained "
        f"on, got {text!r:.60}: correct the cell, or leave it empty"
    )


def _check_few(path: Name, raw: Raw, texts: list[str]) -> None:
    """Raise where a column of text has too many different values for categories."""
    filled = len(raw.gaps) - int(raw.gaps.sum())
    if len(texts) <= MOST_VALUES and (len(texts) <= SHOWN * 2 or 2 * len(texts) <= filled):
        return
    others = [k for k, text in enumerate(raw.texts) if text and not is_number(text)]
    some = ", ".join(repr(text[:40]) for text in texts[:3])
    problem = f"{len(texts)} different texts in {filled} rows, such as {some}"
    if 2 * len(others) < filled:
        problem = f"numbers, but {raw.texts[others[0]][:40]!r} at {raw.place(others[0])}"
        remedy = "make it a number, leave the cell empty, or leave out the column"
    else:
        remedy = "such a column tells rows apart, not kinds of rows; make it numbers, or leave it out"
    raise FileError(
        f"{path}: column {raw.name!r}: expected numbers, or text of at most {MOST_VALUES} different values that occur "
        f"again, got {problem}: {remedy} with --drop {raw.name!r}"
    )


def is_number(cell: str) -> bool:
    """Whether a cell is a number; an infinite one is, too."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # which Python allows between digits: 1_2 is a name


def _listed(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
