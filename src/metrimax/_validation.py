"""Checks of what users give (parameters, labels, groups), and warnings that point at the user's own line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt


def check_positive(name: str, value: Any, or_else: str = "") -> None:
    """Raise unless finite and > 0; ``or_else`` says what else is allowed."""
    if not (is_number(value) and 0 < value < np.inf):
        raise ValueError(f"expected a finite {name} > 0{or_else}, got {value!r}")


def check_whole(name: str, value: Any, or_else: str = "") -> None:
    """Raise unless a whole number >= 1; ``or_else`` says what else is allowed."""
    if not (is_whole(value) and value >= 1):
        raise ValueError(f"expected {name} as a whole number of at least 1{or_else}, got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Raise unless True or False; a string would count as true."""
    if not (isinstance(value, (bool, np.bool_)) or (is_number(value) and value in (0, 1))):
        raise ValueError(f"expected {name} as True or False, got {value!r}")


def check_grid(Cs: Any) -> npt.NDArray[np.float64]:
    """The values of C as an array."""
    try:
        grid = np.asarray(Cs, dtype=np.float64)
    except (TypeError, ValueError):
        grid = np.empty(0)
    if grid.ndim != 1 or grid.size == 0 or not (np.isfinite(grid).all() and (grid > 0).all()):
        raise ValueError(f"expected Cs as finite numbers > 0, at least one, got {Cs!r}")
    return grid


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line that called this library, skipping its frames, and those of pipelines and searches."""
    frame, depth, outermost = sys._getframe(), 1, 1
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in ("metrimax", "sklearn"):
            outermost = depth
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
    warnings.warn(text, category, stacklevel=outermost + 1)


def is_frame(X: Any) -> bool:
    """Whether X is a data frame."""
    return hasattr(X, "dtypes") and hasattr(X, "columns") and hasattr(X, "iloc")


def is_number(value: Any) -> bool:
    """Whether it is a real number (strings are not)."""
    return isinstance(value, (int, float, np.number))


def is_whole(value: Any) -> bool:
    """Whether it is a whole number (True and False are not)."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def dense(values: Any) -> Any:
    """A sparse matrix as an array, anything else as it is."""
    return values.toarray() if hasattr(values, "toarray") else values


def refuse_missing(
    given: Any, name: str = "y", what: str = "the label of each example", remedy: str = "leave these examples out"
) -> None:
    """Raise for NaN, None, NaT or pandas' NA, which are neither a class nor a group."""
    # a list may hold anything, and of strings and NaN NumPy would make strings
    values = (np.asarray(given) if hasattr(given, "dtype") else np.asarray(given, dtype=object)).ravel()
    if values.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in values], dtype=bool)
    else:
        missing = values != values
    if missing.any():
        first = int(np.argmax(missing))
        raise ValueError(
            f"expected {name} without missing values, {what}, got {values[first]} at place {first}, "
            f"one of {int(missing.sum())}: {remedy}"
        )


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":
        return True
    return not hasattr(value, "__len__") and bool(value != value)  # neither a string nor an array is


LARGEST = 1e300
"""The weight of the risk is at most this, and at least its inverse: objectives beyond are no finite numbers."""


def check_weights(weights: Iterable[float]) -> None:
    """Raise if C, by the weight C kappa n that it gives to the risk, is beyond what can be computed with."""
    for weight in weights:
        if not 1 / LARGEST <= weight <= LARGEST:
            raise ValueError(
                f"expected C such that its product with the size of the sample, C kappa n, is from {1 / LARGEST:g} to "
                f"{LARGEST:g}, got {float(weight):g}: {'lower' if weight > 1 else 'raise'} C"
            )
