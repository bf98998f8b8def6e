"""The short cuts past scikit-learn's checks: taken where they may be, and nowhere with another outcome."""

from __future__ import annotations

import warnings
from copy import copy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.utils.validation import validate_data

from metrimax import MeasureSVC
from metrimax.estimators import _checks as checks
from metrimax.estimators import _targets as labels

DENSE = np.random.default_rng(0).normal(size=(6, 3))
Y = np.array([1, 0, 0, 1, 0, 1])


def with_value(X, value):
    X = X.copy()
    (X.data if sparse.issparse(X) else X.ravel())[2] = value
    return X


PLAIN = {
    "C order": DENSE,
    "Fortran order": np.asfortranarray(DENSE),
    "strided": np.repeat(DENSE, 2, axis=0)[::2],
    "float32": DENSE.astype(np.float32),
    "csr_matrix": sparse.csr_matrix(DENSE),
    "csr_array": sparse.csr_array(DENSE),
    "int64 indices": sparse.csr_array(DENSE),
    "all zero": sparse.csr_array((6, 3)),
}
PLAIN["int64 indices"].indices = PLAIN["int64 indices"].indices.astype(np.int64)
PLAIN["int64 indices"].indptr = PLAIN["int64 indices"].indptr.astype(np.int64)
OTHER = {
    "int": (DENSE * 10).astype(int),
    "list": DENSE.tolist(),
    "matrix": np.matrix(DENSE),  # scikit-learn refuses it
    "frame": pd.DataFrame(DENSE, columns=["a", "b", "c"]),
    "csc": sparse.csc_array(DENSE),
    "coo": sparse.coo_matrix(DENSE),
    "half": DENSE.astype(np.float16),
    "complex": DENSE.astype(complex),
    "strings": DENSE.astype(str),
    "one dimension": DENSE[:, 0],
    "three dimensions": DENSE[:, :, None],
    "no rows": DENSE[:0],
    "no columns": DENSE[:, :0],
    "fewer rows": DENSE[:5],
    "nan": with_value(DENSE, np.nan),
    "inf": with_value(DENSE, np.inf),
    "both infinities": with_value(with_value(DENSE, np.inf).T.copy(), -np.inf).T,
    "sparse nan": with_value(sparse.csr_matrix(DENSE), np.nan),
    "overflowing sum": DENSE * 1e308,
}
TARGETS = {
    "int": Y,
    "bool": Y == 1,
    "int8": np.where(Y, 1, -1).astype(np.int8),
    "unsigned": Y.astype(np.uint16),
    "float": Y.astype(float),
    "far apart": np.where(Y, 2**62, -(2**62)),
    "large floats": np.where(Y, 1e300, 0.0),
    "three": np.array([0, 1, 2, 0, 1, 2]),
    "three floats": np.array([0, 1, 0.5, 0, 1, 1]),  # between two whole numbers
    "fractions": np.where(Y, 0.5, 1.5),
    "one class": np.ones(6, dtype=int),
    "one class, bool": np.ones(6, dtype=bool),
    "nan": np.where(Y, np.nan, 0.0),
    "inf": np.where(Y, np.inf, 0.0),
    "strings": np.where(Y, "yes", "no"),
    "objects": np.where(Y, "yes", "no").astype(object),
    "list": Y.tolist(),
    "series": pd.Series(Y),
    "column": Y[:, None],
    "indicators": np.column_stack([Y, 1 - Y]),
    "sparse indicators": sparse.csr_matrix(np.column_stack([Y, 1 - Y])),
    "complex": Y.astype(complex),
    "too short": Y[:5],
    "empty": Y[:0],
    "none": None,
}


def outcome(function, *args):
    """What comes of a call: its result, or the error and its message; and the warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except (ValueError, TypeError) as error:
            result = error
    return result, [str(w.message) for w in seen]


def assert_same(mine, theirs) -> None:
    (a, warned), (b, expected) = mine, theirs
    assert warned == expected
    if isinstance(b, Exception):
        assert (type(a), str(a)) == (type(b), str(b))
        return
    for x, y in zip(a, b, strict=True):
        assert type(x) is type(y)
        dense = [v.toarray() if sparse.issparse(v) else np.asarray(v) for v in (x, y)]
        assert dense[0].dtype == dense[1].dtype
        np.testing.assert_array_equal(*dense)


def scikit_learns(estimator, X, y):
    return validate_data(
        estimator, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order=None, multi_output=True
    )


@pytest.mark.parametrize("X", PLAIN | OTHER)
def test_samples_as_scikit_learn_takes_them(X):
    X = (PLAIN | OTHER)[X]
    mine, theirs = MeasureSVC(), MeasureSVC()
    mine.feature_names_in_ = theirs.feature_names_in_ = np.array(["of", "another", "fit"], dtype=object)
    for y in (Y, Y == 1, None):
        assert_same(outcome(checks.check_sample, mine, X, y), outcome(scikit_learns, theirs, X, y))
        for name in ("n_features_in_", "feature_names_in_"):
            np.testing.assert_array_equal(getattr(mine, name, None), getattr(theirs, name, None))


@pytest.mark.parametrize("y", TARGETS)
def test_targets_as_scikit_learn_takes_them(y, monkeypatch):
    y = TARGETS[y]
    mine, theirs = outcome(checks.check_sample, MeasureSVC(), DENSE, y), outcome(scikit_learns, MeasureSVC(), DENSE, y)
    assert_same(mine, theirs)
    if isinstance(theirs[0], Exception):
        return
    checked = mine[0][1]
    quick = outcome(labels.encode, checked)
    monkeypatch.setattr(labels, "_two_numbers", lambda y: None)
    full = outcome(labels.encode, checked)
    if not isinstance(full[0], Exception):
        assert quick[0][0] == full[0][0]
        quick, full = (quick[0][1:], quick[1]), (full[0][1:], full[1])
    assert_same(quick, full)


@pytest.mark.parametrize("X", PLAIN | OTHER)
@pytest.mark.parametrize("names", [None, ["a", "b", "c"]])
def test_rows_as_scikit_learn_takes_them(X, names):
    X = (PLAIN | OTHER)[X]
    fitted = MeasureSVC().fit(DENSE if names is None else pd.DataFrame(DENSE, columns=names), Y)

    def theirs(estimator, X):
        options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": None}
        return [validate_data(estimator, X, reset=False, **options)]

    assert_same(outcome(lambda *a: [checks.check_rows(*a)], fitted, X), outcome(theirs, fitted, X))
    if hasattr(X, "shape") and len(X.shape) == 2 and X.shape[1] > 1:
        fewer = sparse.csr_array(X)[:, :2] if sparse.issparse(X) else np.asarray(X)[:, :2]
        assert_same(outcome(lambda *a: [checks.check_rows(*a)], fitted, fewer), outcome(theirs, fitted, fewer))


@pytest.mark.parametrize("X", PLAIN)
def test_the_short_cut_is_taken_and_copies_nothing(X, monkeypatch):
    X = PLAIN[X]
    fitted = MeasureSVC().fit(DENSE, Y)
    monkeypatch.setattr(checks, "validate_data", None)
    monkeypatch.setattr(labels, "type_of_target", None)
    for y in ("int", "bool", "int8", "unsigned", "float", "far apart"):
        data, target = checks.check_sample(fitted, X, TARGETS[y])
        assert data is X
        assert target is TARGETS[y]
        labels.encode(target)
    assert checks.check_rows(fitted, X) is X


def test_who_assumes_finite_numbers_is_not_contradicted():
    with config_context(assume_finite=True):
        X, _ = checks.check_sample(MeasureSVC(), OTHER["nan"], Y)
    assert np.isnan(X).any()


def test_a_copy_is_shallow_and_its_own():
    fitted = MeasureSVC().fit(DENSE, Y)
    twin = copy(fitted)
    assert type(twin) is MeasureSVC
    assert vars(twin) == vars(fitted)  # the very same values
    twin.C, twin.n_features_in_ = 7.0, 99
    assert (fitted.C, fitted.n_features_in_) == (4.0, 3)
