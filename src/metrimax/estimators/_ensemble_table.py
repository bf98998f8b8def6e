"""Tables with categories, text and gaps, in the forms that the members of an ensemble take.

A table has three views. "codes", for trees, has one float column for each column: categories are whole numbers, dates
are days, gaps are NaN. "matrix", for other members, has a column of zeros and ones for each category, and no gaps.
"given" is the user's X, for pipelines, which may use the names of its columns.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from metrimax._validation import is_frame, warn
from metrimax.protocols import Labels, Vector

MOST_CATEGORIES = 254
"""How many values of a column, the most frequent ones, are categories of their own. All others are one more category:
scikit-learn's boosting takes up to 255.
"""

MOST_COLUMNS = 30
"""How many categories of a column, the most frequent ones, have a column of their own in the matrix: a bound for its
memory. Boosting and the forests see the others, too.
"""

DENSE_ENTRIES = 2e7
"""A sparse X with at most this many entries, zeros included (160 MB), is made dense for members that need it."""


def checked(estimator: Any, X: Any, *, reset: bool, frames: bool) -> Any:
    """X as a data frame, or as a float matrix in which NaN is a gap, with the columns of `fit`.

    A model of data frames (``frames``) takes arrays with the same columns, too, and one of arrays takes data frames.
    """
    if not is_frame(X) and hasattr(X, "to_pandas"):  # Polars, Arrow
        X = X.to_pandas()
    if frames and is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if 0 in X.shape:
            raise ValueError(f"expected at least one row and one column in X, got a data frame of shape {X.shape}")
        return X
    if frames and not reset:
        from pandas import DataFrame  # there is a model of data frames

        X = validate_data(estimator, X, reset=False, dtype=None, ensure_all_finite=False)
        return DataFrame(X, columns=vars(estimator).get("feature_names_in_"))
    kinds: Any = [np.float64, np.float32]
    try:
        X = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=kinds, ensure_all_finite="allow-nan")
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(f"{error}: give a table with text as a pandas data frame, in fit as in predict") from None
        raise
    if sparse.issparse(X) and np.isnan(X.data).any():
        raise ValueError("expected a sparse X without NaN, got some: convert it by toarray() to have them as gaps")
    return X


class Table:
    """The categories of the columns of a data frame, learnt from the rows of `fit`."""

    def __init__(self, frame: Any) -> None:
        self.categories: list[list[Any] | None] = [_categories(frame.iloc[:, j]) for j in range(frame.shape[1])]
        for name, values in zip(frame.columns, self.categories, strict=True):
            if values is not None and len(values) > MOST_CATEGORIES:
                values[MOST_CATEGORIES:] = []
                warn(
                    f"the column {name!r} has more than {MOST_CATEGORIES} different values: all but the "
                    f"{MOST_CATEGORIES} most frequent ones are one category; drop a column that only names the rows, "
                    "and convert dates with pandas.to_datetime"
                )
            elif values is not None and 1 < len(values) == len(frame):
                warn(f"the column {name!r} has another value in every row: drop a column that only names the rows")

    @property
    def categorical(self) -> Labels:
        """Which columns hold categories."""
        return np.array([values is not None for values in self.categories], dtype=bool)

    def codes(self, frame: Any) -> Vector:
        """One column of floats for each column: categories by their rank, the most frequent first; gaps are NaN."""
        columns = [_coded(frame.iloc[:, j], values) for j, values in enumerate(self.categories)]
        return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def _categories(column: Any) -> list[Any] | None:
    """The values of a column of categories or text, the most frequent first; None for numbers, dates and times."""
    if _kind(_typed(column)) in "biufmM":
        return None
    try:
        counts = dict(column.value_counts().items())  # without gaps
    except (TypeError, NotImplementedError) as error:
        raise _no_category(column, error) from None
    return [value for value, count in counts.items() if count > 0]


def _no_category(column: Any, error: Exception) -> ValueError:
    return ValueError(
        f"expected numbers, dates, or values that can be categories in the column {column.name!r}, got others "
        f"({error}): drop it, or make columns of what it holds"
    )


def _kind(column: Any) -> str:
    return getattr(column.dtype, "kind", "O")


def _typed(column: Any) -> Any:
    """The column. One of Python objects that are all numbers, or all dates, becomes a column of these."""
    if _kind(column) != "O" or hasattr(column, "cat"):
        return column
    objects = column.astype(object)
    known = objects.dropna()
    if len(known) and all(isinstance(value, (Real, Decimal, np.bool_)) for value in known):
        return objects.where(objects.notna(), np.nan).astype(np.float64)
    if len(known) and all(isinstance(value, datetime.date) and _zone(value) is None for value in known):
        return objects.astype("datetime64[s]")
    return column


def _zone(value: datetime.date) -> Any:
    return value.tzinfo if isinstance(value, datetime.datetime) else None


def _coded(column: Any, values: list[Any] | None) -> Vector:
    if values is None:
        column = _typed(column)
        kind = _kind(column)
        if kind in "mM":  # days; dates count from 1970, in UTC if they have a time zone
            days: Vector = column.to_numpy(dtype=f"{kind}8[s]").astype(np.float64) / 86_400
            days[column.isna().to_numpy()] = np.nan
            return days
        try:
            numbers: Vector = column.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"expected numbers or dates in the column {column.name!r}, as in the rows of fit, got others: {error}. "
                "Convert it, as with pandas.to_numeric or pandas.to_datetime"
            ) from None
        if np.isinf(numbers).any():
            raise ValueError(
                f"expected finite numbers or gaps in the column {column.name!r}, got infinity: make it a gap, as with "
                "column.replace([np.inf, -np.inf], np.nan)"
            )
        return numbers
    if _kind(column) in "biuf" and values and all(isinstance(value, str) for value in values) and column.notna().any():
        raise ValueError(
            f"expected text in the column {column.name!r}, as in the rows of fit, got numbers: convert it by "
            "astype(str), or read it as text"
        )
    ranks = {value: float(k) for k, value in enumerate(values)}
    # a value that was not in the rows of `fit` counts as one of the rare values
    missing = column.isna().to_numpy()
    try:
        codes = np.array([ranks.get(value, float(len(values))) for value in column.astype(object)], dtype=np.float64)
    except TypeError as error:
        raise _no_category(column, error) from None
    codes[missing] = np.nan
    return codes


class MatrixEncoder:
    """Codes as a matrix for members that take neither categories nor gaps.

    A gap in a column of numbers becomes the median. If `fit` saw gaps in it, another column marks them. Each category
    becomes a column of zeros and ones; a gap is zero in all of them.
    """

    def __init__(self, codes: Vector, categorical: Labels) -> None:
        self._categorical = categorical
        numbers = codes[:, ~categorical]
        self._medians = np.array([_median(column) for column in numbers.T])
        self._gapped = np.flatnonzero(np.isnan(numbers).any(axis=0))
        self._widths = [
            (int(j), int(min(MOST_COLUMNS, np.nanmax(codes[:, j], initial=0.0) + 1)))
            for j in np.flatnonzero(categorical)
        ]

    def __call__(self, codes: Vector) -> Vector:
        numbers = codes[:, ~self._categorical]
        missing = np.isnan(numbers)
        if not missing.any() and not len(self._gapped) and not self._widths:
            return codes
        numbers = np.where(missing, self._medians, numbers)
        blocks = [numbers, missing[:, self._gapped].astype(np.float64)]
        blocks += [(codes[:, [j]] == np.arange(width)).astype(np.float64) for j, width in self._widths]
        return np.hstack(blocks)


def _median(column: Vector) -> float:
    known = column[~np.isnan(column)]
    return float(np.median(known)) if len(known) else 0.0
