"""X and y as the estimators take them: scikit-learn's checks, with a short cut for arrays that they would not change.

A fit of a small problem takes less time than these checks. So arrays of finite numbers are recognised here, by their
types and their sums. Everything else, wrong input included, goes to scikit-learn.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from metrimax._validation import is_frame, refuse_missing

OPTIONS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": None}

SHOWN = 10
"""How many columns an error message names."""

LONGEST = 1000
"""Error messages of more characters are shortened: they quote a whole document, or all labels."""


def check_sample(estimator: BaseEstimator, X: Any, y: Any) -> tuple[Any, Any]:
    """X as a matrix of float32 or float64, dense or CSR, and y as classes or an indicator matrix.

    Sets ``n_features_in_`` and ``feature_names_in_`` of the estimator.
    """
    if _is_plain(X) and type(y) is np.ndarray and y.shape == X.shape[:1] and _is_finite(y, "biuf"):
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
        return X, y
    if X is None:
        raise ValueError("expected X, the rows of features, got None")
    refuse_masks_and_dates(X)
    _refuse_masked("y", y)
    if isinstance(y, str):
        raise ValueError(
            f"expected y as the label of each example, got {y!r}: give the column itself, as in table[{y!r}]"
        )
    if isinstance(y, (list, tuple)):
        refuse_missing(y)  # before NumPy makes a string of a NaN among strings
        _refuse_collections(y)
    try:
        X, y = validate_data(estimator, X, y, multi_output=True, **OPTIONS)
    except (ValueError, TypeError) as error:
        if hasattr(y, "dtype") and np.asarray(y).dtype.kind == "O":  # scikit-learn only says "Input contains NaN"
            refuse_missing(y)
        _add_remedy(error, X)
        raise
    if getattr(getattr(y, "dtype", None), "kind", "") == "O":
        refuse_missing(y)  # None among strings cannot be sorted
    return X, y


def _add_remedy(error: Exception, X: Any = None) -> None:
    """Shorten an error of scikit-learn that quotes a document, and add what to do about it."""
    text = str(error)
    if len(text) > LONGEST:
        at = text.find("\\n")
        error.args = (text[: at if 0 < at < 200 else 200] + " ...",)
    if "feature names should match" in text:
        error.add_note("Give the columns of fit, in its order: X[list(estimator.feature_names_in_)].")
    elif "could not convert string to float" in text or "Cannot cast" in text:
        if re.search(r"'-?\d+,\d+'", text):
            error.add_note("Numbers need points: read the table with pandas.read_csv(..., decimal=',').")
            return
        error.add_note(
            f"X contains text{_columns(X, _is_text)}: encode documents with TfidfVectorizer, encode categories with "
            "OneHotEncoder in a ColumnTransformer, or train MeasureEnsemble, which takes data frames with categories."
        )
        if isinstance(X, str):
            error.add_note("X is the name of a file, perhaps: read it first, as with pandas.read_csv.")
    elif "not 'dict'" in text:
        error.add_note("X contains dictionaries: make them rows with DictVectorizer().fit_transform(X).")
    elif "inhomogeneous shape" in text:
        error.add_note("The rows of X differ in length: give every row the same columns.")
    elif "must be a string or a real number, not" in text:
        error.add_note("expected X as a matrix of numbers, a data frame, or a list of rows.")
    elif "contains NaN" in text and "Input X" in text:
        error.add_note(
            "Fill the gaps, as in make_pipeline(SimpleImputer(), StandardScaler(), MeasureSVCCV()), or train "
            "MeasureEnsemble, which takes them as they are."
        )


def _columns(X: Any, wrong: Callable[[Any], bool]) -> str:
    """Of a data frame, the columns that are wrong, for an error message."""
    if not is_frame(X):
        return ""
    names = [str(name) for j, name in enumerate(X.columns) if wrong(X.iloc[:, j])]
    which = "columns" if len(names) > 1 else "column"
    return f", in the {which} {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''}" if names else ""


def _is_text(column: Any) -> bool:
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return True
    return False


def _is_date(values: Any) -> bool:
    return getattr(values.dtype, "kind", "") in ("M", "m")


def _refuse_collections(y: Any) -> None:
    """Raise for a list of several labels for each row, which is not a matrix."""
    lengths = {len(row) for row in y if isinstance(row, (list, tuple))}
    if len(lengths) > 1 or any(isinstance(row, (set, frozenset)) for row in y):
        raise ValueError(
            "expected y as one label for each example, or as a label indicator matrix, got a collection of labels for "
            "each: make it a matrix with sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)"
        )


def check_rows(estimator: BaseEstimator, X: Any) -> Any:
    """X as a matrix of float32 or float64, dense or CSR, with the columns that the estimator was fitted on."""
    unnamed = not hasattr(estimator, "feature_names_in_")
    if unnamed and _is_plain(X) and X.shape[1] == getattr(estimator, "n_features_in_", None):
        return X
    refuse_masks_and_dates(X)
    try:
        return validate_data(estimator, X, reset=False, **OPTIONS)
    except (ValueError, TypeError) as error:
        _add_remedy(error, X)
        raise


def refuse_masks_and_dates(X: Any) -> None:
    """Raise for masked values and for dates: NumPy would read them as numbers."""
    _refuse_masked("X", X)
    dtypes = getattr(X, "dtypes", getattr(X, "dtype", None))  # a frame has one for each column
    for dtype in np.ravel(np.asarray(dtypes, dtype=object)):
        if getattr(dtype, "kind", "") in ("M", "m"):
            raise ValueError(
                f"expected numbers in X, got {dtype}{_columns(X, _is_date)}: turn dates and times into numbers first, "
                "as in (dates - dates.min()) / np.timedelta64(1, 'D'), or train MeasureEnsemble, which takes data "
                "frames with dates"
            )


def _refuse_masked(name: str, values: Any) -> None:
    if isinstance(values, np.ma.MaskedArray) and (masked := int(np.sum(values.mask))):
        raise ValueError(
            f"expected {name} without masked values, got {masked} of them: leave these rows out, or fill them in, as "
            f"in {name}.filled(0)"
        )


def _is_plain(X: Any) -> bool:
    """Whether X is a matrix that needs no conversion, has rows and columns, and holds finite numbers."""
    if type(X) is np.ndarray:
        values = X
    elif type(X) in (sparse.csr_matrix, sparse.csr_array):
        values = X.data
    else:
        return False
    return X.ndim == 2 and min(X.shape) > 0 and values.dtype.char in "fd" and _is_finite(values, "f")


def _is_finite(values: np.ndarray[Any, Any], kinds: str) -> bool:
    """Whether these are numbers of the kinds given with a finite sum, so that all of them are finite."""
    if values.dtype.kind not in kinds:
        return False
    if values.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))
