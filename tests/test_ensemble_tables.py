"""Tables as people have them: data frames with categories, text and gaps, arrays with gaps, sparse matrices."""

from __future__ import annotations

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from metrimax import MeasureEnsemble
from metrimax.estimators._ensemble_members import Views

FEW = [
    ("boosting", HistGradientBoostingClassifier(max_iter=10)),
    ("tree", DecisionTreeClassifier(max_depth=3)),
    ("linear", LogisticRegression()),
]


def table(n=300, seed=0):
    """A frame whose text, categories and gaps all tell something of the label."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], n)
    size = rng.choice(["s", "m", "l"], n)
    number, other = rng.normal(size=(2, n))
    y = (colour == "red") & (number > -0.5) | (size == "l") & (other > 0.5)
    frame = pd.DataFrame(
        {
            "number": number,
            "colour": colour,
            "size": pd.Categorical(size, categories=["s", "m", "l", "xl"]),
            "whole": pd.array(rng.integers(0, 9, n), dtype="Int64"),
            "flag": rng.random(n) < 0.5,
            "other": other,
        }
    )
    frame.loc[rng.random(n) < 0.1, "other"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    frame.loc[rng.random(n) < 0.1, "whole"] = pd.NA
    return frame, y


@pytest.mark.parametrize("estimators", [None, "fast", FEW])
def test_a_data_frame_in_one_line(estimators):
    X, y = table()
    model = MeasureEnsemble(estimators=estimators, cv=3, random_state=0).fit(X, y)
    others, truth = table(1000, seed=1)
    assert model.score(others, truth) > 0.7
    assert model.feature_names_in_.tolist() == list(X.columns)


def test_columns_in_another_order_or_missing_are_refused():
    X, y = table(100)
    model = MeasureEnsemble(estimators=FEW, cv=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[X.columns[::-1]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.drop(columns="flag"))


def test_values_that_fit_has_not_seen_are_one_of_the_others():
    X, y = table(200)
    model = MeasureEnsemble(estimators=FEW, cv=2, random_state=0).fit(X, y)
    new = X.assign(colour="violet", size=pd.Categorical(["xl"] * 200, categories=["s", "m", "l", "xl"]))
    assert np.isfinite(model.decision_function(new)).all()


def test_boosting_gets_categories_and_gaps_as_they_are():
    X, y = table(200)
    model = MeasureEnsemble(estimators="fast", cv=2, random_state=0).fit(X, y)
    boosting = model.named_estimators_["boosting"][0][0]
    assert boosting.is_categorical_.tolist() == [False, True, True, False, False, False]


def test_the_views_by_hand():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 5.0], "b": ["x", "y", "y", None]})
    views = Views(frame)(frame, {"codes", "matrix", "given"})
    np.testing.assert_array_equal(views["codes"], [[1, 1], [np.nan, 0], [3, 0], [5, np.nan]])
    # numbers with the median for a gap; where gaps were; y; x
    np.testing.assert_array_equal(views["matrix"], [[1, 0, 0, 1], [3, 1, 1, 0], [3, 0, 1, 0], [5, 0, 0, 0]])
    assert views["given"] is frame


def test_a_gap_that_only_new_rows_have():
    X, y = table(100)
    model = MeasureEnsemble(estimators=FEW, cv=2, random_state=0).fit(X, y)
    assert np.isfinite(model.decision_function(X.assign(number=np.nan, flag=None))).all()


@pytest.mark.parametrize("form", [pd.DataFrame, np.asarray])
def test_a_gap_in_a_table_of_numbers_without_gaps_is_the_median(form):
    X, y = sample_of_numbers()
    X = X.assign(a=X["a"] + 50)  # zero would be far away
    model = MeasureEnsemble(estimators=[("linear", LogisticRegression())], cv=2, random_state=0).fit(form(X), y)
    given = (form(X.assign(a=value)) for value in (np.nan, X["a"].median()))
    np.testing.assert_allclose(*map(model.decision_function, given))


def test_text_does_not_become_numbers_unnoticed():
    X, y = sample_of_numbers()
    model = MeasureEnsemble(estimators=FEW, cv=2, random_state=0).fit(X.assign(code=["007", "12"] * 100), y)
    with pytest.raises(ValueError, match="expected text in the column 'code', as in the rows of fit, got numbers"):
        model.predict(X.assign(code=[7, 12] * 100))
    assert np.isfinite(model.decision_function(X.assign(code=np.nan))).all()


def test_pipelines_get_the_frame_by_its_names():
    X, y = table()
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["colour", "size"]))
    members = [("own", make_pipeline(columns, LogisticRegression())), *FEW[:1]]
    model = MeasureEnsemble(estimators=members, cv=2, random_state=0).fit(X, y, np.ones(len(y)))
    assert model.predict(X).shape == y.shape


def test_many_values_are_cut_and_said():
    X, y = table(518)
    X["name"] = [f"row {k}" for k in range(len(X))]
    with pytest.warns(UserWarning, match="the column 'name' has more than 254 different values"):
        model = MeasureEnsemble(estimators="fast", cv=2, random_state=0).fit(X, y)
    assert model.report_["score"] > 0.6


def test_a_column_that_names_the_rows_of_a_small_table_is_said():
    X, _ = table(80)
    X["name"] = [f"row {k}" for k in range(len(X))]
    with pytest.warns(UserWarning, match="the column 'name' has another value in every row: drop a column that only"):
        Views(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Views(X.assign(name="row 1"))


def test_dates_and_times_are_days():
    days = pd.Series(pd.to_datetime(["2024-01-01 00:00", "2024-01-03 12:00", None]))
    frame = pd.DataFrame({"when": days, "zone": days.dt.tz_localize("UTC"), "long": days - days[0]})
    codes = Views(frame)(frame, {"codes"})["codes"]
    np.testing.assert_allclose(codes - codes[0], np.tile([[0.0], [2.5], [np.nan]], 3))
    np.testing.assert_array_equal(codes[0], [19723, 19723, 0])
    X, y = table()
    X["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.where(y, 300, 0) + np.arange(len(y)) % 7, unit="D")
    model = MeasureEnsemble(estimators="fast", cv=3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.99
    with pytest.raises(ValueError, match="expected numbers or dates in the column 'when', as in the rows of fit"):
        model.predict(X.assign(when="yesterday"))
    with pytest.raises(ValueError, match="expected finite numbers or gaps in the column 'number', got infinity"):
        model.predict(X.assign(number=np.inf))


def test_objects_that_are_numbers_or_dates_are_not_categories():
    day = datetime.date
    frame = pd.DataFrame(
        {
            "number": pd.Series([3, None, 1.5, np.float32(2)], dtype=object),
            "decimal": [Decimal("0.5"), Decimal(2), None, Decimal(1)],
            "flag": pd.Series([True, None, np.False_, True], dtype=object),
            "day": [day(1970, 1, 3), None, datetime.datetime(1970, 1, 1, 12), day(1970, 1, 1)],
            "text": ["3", None, "1.5", "2"],
            "mixed": [3, "three", None, 1.5],
            "empty": pd.Series([None] * 4, dtype=object),
            "code": pd.Categorical([5, 7, 7, None]),
        }
    )
    views = Views(frame)
    assert views.categorical.tolist() == [False] * 4 + [True] * 4
    codes = views(frame, {"codes"})["codes"][:, :4]
    gap = np.nan
    np.testing.assert_array_equal(codes.T, [[3, gap, 1.5, 2], [0.5, 2, gap, 1], [1, gap, 0, 1], [2, gap, 0.5, 0]])
    numbers = frame.assign(number=[1, 2, 3, 4], day=pd.to_datetime(frame["day"]))  # rows of another type are read, too
    np.testing.assert_array_equal(
        views(numbers, {"codes"})["codes"][:, [0, 3]], np.column_stack([[1, 2, 3, 4], codes[:, 3]])
    )
    with pytest.raises(ValueError, match="expected numbers or dates in the column 'decimal'"):
        views(frame.assign(decimal="much"), {"codes"})


def test_a_table_of_objects_is_the_table_of_its_numbers():
    X, y = sample_of_numbers()
    one, other = (MeasureEnsemble(estimators=FEW, cv=2, random_state=0).fit(own, y) for own in (X, X.astype(object)))
    np.testing.assert_array_equal(one.oof_scores_, other.oof_scores_)


def sample_of_numbers(n=200):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    return X, (X**2).sum(axis=1).to_numpy() > 4


@pytest.mark.parametrize("estimators", [None, FEW])
def test_a_column_of_gaps_alone(estimators):
    X, y = table(120)
    X["empty"], X["nearly"] = np.nan, np.where(np.arange(120) == 5, 1.0, np.nan)
    model = MeasureEnsemble(estimators=estimators, cv=2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_a_model_of_one_form_of_table_takes_the_other():
    X, y = sample_of_numbers()
    frames, arrays = (MeasureEnsemble(estimators=FEW, cv=2, random_state=0).fit(own, y) for own in (X, X.to_numpy()))
    expected = frames.decision_function(X)
    np.testing.assert_array_equal(frames.decision_function(X.to_numpy()), expected)
    np.testing.assert_array_equal(frames.decision_function(X.to_numpy().tolist()), expected)
    np.testing.assert_array_equal(arrays.decision_function(X), arrays.decision_function(X.to_numpy()))
    with pytest.raises(TypeError, match="dense data is required"):
        frames.predict(sparse.csr_matrix(X.to_numpy()))
    with pytest.raises(ValueError, match="give a table with text as a pandas data frame, in fit as in predict"):
        arrays.predict(X.assign(a="text"))
    X, y = table(100)
    model = MeasureEnsemble(estimators=FEW, cv=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X.to_numpy()), model.decision_function(X))


@pytest.mark.parametrize("given", [[[1, 2]], [{"a": 1}], [np.zeros(2)]])
def test_columns_of_lists_are_refused_by_name(given):
    X, y = sample_of_numbers()
    with pytest.raises(ValueError, match="values that can be categories in the column 'odd', got others"):
        MeasureEnsemble(estimators=FEW).fit(X.assign(odd=given * len(y)), y)
    model = MeasureEnsemble(estimators=FEW, cv=2, random_state=0).fit(X.assign(odd="x"), y)
    with pytest.raises(ValueError, match="values that can be categories in the column 'odd', got others"):
        model.predict(X.assign(odd=given * len(y)))


def test_a_table_without_rows_or_columns_is_refused():
    X, y = sample_of_numbers()
    model = MeasureEnsemble(estimators=FEW, cv=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"expected at least one row and one column in X, got .* shape \(0, 3\)"):
        model.predict(X[:0])
    with pytest.raises(ValueError, match=r"expected at least one row and one column in X, got .* shape \(200, 0\)"):
        model.fit(X[[]], y)


def test_text_in_an_array_is_told_where_to_go():
    with pytest.raises(ValueError, match="give a table with text as a pandas data frame"):
        MeasureEnsemble(estimators=FEW).fit(np.array([["a", 1.0], ["b", 2.0]] * 10, dtype=object), [0, 1] * 10)


@pytest.mark.parametrize("package", ["pyarrow", "polars"])
def test_tables_of_other_packages(package):
    made = pytest.importorskip(package, reason=f"{package} is not installed; 180 MB for Polars is much for one test")
    X, y = table(120)
    X = X[["number", "colour", "flag"]]
    same = made.from_pandas(X) if package == "polars" else made.Table.from_pandas(X)
    model, other = (MeasureEnsemble(estimators=FEW, cv=2, random_state=0).fit(own, y) for own in (X, same))
    np.testing.assert_allclose(other.decision_function(same), model.decision_function(X))
    assert other.feature_names_in_.tolist() == list(X.columns)


def test_arrays_with_gaps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] > 0.5
    X[rng.random(X.shape) < 0.1] = np.nan
    model = MeasureEnsemble(cv=3, random_state=0).fit(X, y)
    assert model.report_["score"] > 0.7
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.where(np.isnan(X), np.inf, X), y)


def test_gaps_in_a_sparse_matrix_are_told_where_to_go():
    X = sparse.random(60, 5, density=0.3, random_state=0, format="csr")
    X.data[::4] = np.nan
    with pytest.raises(ValueError, match="expected a sparse X without NaN, got some: convert it by toarray"):
        MeasureEnsemble(estimators="fast").fit(X, np.arange(60) % 2)


@pytest.mark.parametrize("estimators", [None, [("extra", ExtraTreesClassifier(10)), ("linear", LogisticRegression())]])
def test_sparse_and_dense_say_the_same(estimators):
    rng = np.random.default_rng(0)
    X = sparse.random(150, 20, density=0.3, random_state=0, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel() + 0.3 * rng.normal(size=150) > 3
    model = MeasureEnsemble(estimators=estimators, cv=2, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), model.decision_function(X.tocsc()))
    if estimators is not None:
        dense = MeasureEnsemble(estimators=estimators, cv=2, random_state=0).fit(X.toarray(), y)
        np.testing.assert_allclose(dense.decision_function(X.toarray()), model.decision_function(X), atol=1e-6)
