"""How much memory a file may ask for, by its length and by what the user allows."""

from __future__ import annotations

import os

from metrimax.io.files import FileError, Name

VARIABLE = "METRIMAX_LIMIT"
"""The environment variable with the most bytes that a file may expand to; see `allowance`."""

RATIO = 100
"""A file may expand to this multiple of its length: text compresses 3 to 10 times, tables of zeros 100 times."""

FLOOR = 2**28
"""Bytes that any file may expand to: every machine has them."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30, "t": 10**12, "ti": 2**40}

Limit = int | str | None
"""Bytes, or text such as ``"4GiB"``; None for the environment variable, or else by the length of the file."""


def parse_size(size: int | str) -> int:
    """A number of bytes: whole, or text such as ``"500MB"`` or ``"2GiB"``.

    >>> parse_size("2GiB"), parse_size("64 MB")
    (2147483648, 64000000)
    """
    text = str(size).strip().lower().removesuffix("b")
    digits = text.rstrip("kmgti ")
    try:
        number = float(digits) * _UNITS[text[len(digits) :].strip()]
    except (ValueError, KeyError):
        number = -1.0
    if not 1 <= number < 2**63:
        raise ValueError(f"expected a size of at least one byte, such as '500MB' or '2GiB', got {size!r}")
    return int(number)


def allowance(stored: int, limit: Limit = None) -> int:
    """The most bytes that ``stored`` bytes of a file may expand to."""
    if limit is None:
        limit = os.environ.get(VARIABLE) or None
        if limit is None:
            return max(FLOOR, RATIO * stored)
        try:
            return parse_size(limit)
        except ValueError as error:
            raise ValueError(f"{VARIABLE}: {error}") from None
    return parse_size(limit)


def check_expansion(path: Name, what: str, needed: int, stored: int, limit: Limit = None) -> None:
    """Raise where ``stored`` bytes of a file would expand beyond the limit."""
    allowed = allowance(stored, limit)
    if needed > allowed:
        raise FileError(
            f"{path}: expected at most {allowed} bytes from {stored} bytes of file, got {what}, which takes {needed} "
            f"or more: the file is damaged or made up; if it is meant so, set {VARIABLE} to what it may take, "
            "such as 8GiB"
        )
