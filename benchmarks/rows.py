"""Rows of results in CSV files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def write_rows(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str] | None = None) -> None:
    """Write a file beside and rename it; without ``columns`` it has those of all rows, in order of appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row)) if columns is None else columns
    beside = path.with_name(f"{path.name}.part")
    with beside.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
    beside.replace(path)


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file, as text."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
