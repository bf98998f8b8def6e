"""Labels and groups that are not there: they are no class and no group of their own."""

from __future__ import annotations

from typing import Any

import numpy as np


def refuse_missing(
    given: Any, name: str = "y", what: str = "the label of each example", remedy: str = "leave these examples out"
) -> None:
    """Raise for NaN, None, NaT or pandas' NA."""
    # a list may hold anything, and of strings and NaN NumPy would make strings
    values = (np.asarray(given) if hasattr(given, "dtype") else np.asarray(given, dtype=object)).ravel()
    if values.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in values], dtype=bool)
    else:
        missing = values != values
    if missing.any():
        first = int(np.argmax(missing))
        raise ValueError(
            f"expected {name} without missing values, {what}, got {values[first]!r} "
            f"at place {first}, one of {int(missing.sum())}: {remedy}"
        )


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":
        return True
    return not hasattr(value, "__len__") and bool(value != value)  # neither a string nor an array is
