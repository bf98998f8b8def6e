"""Pipelines in ONNX: scaled numbers, text, data frames with categories, and the options of skl2onnx."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from skl2onnx import to_onnx
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import metrimax.onnx  # noqa: F401 (it registers the converters)
from metrimax import CAPOClassifier, MeasureEnsemble, MeasureRanker, MeasureSVC, MeasureSVCCV

MODELS = [
    MeasureSVC("f1"),
    MeasureSVCCV("f1", cv=2),
    MeasureSVC("f1", kernel="rbf"),
    CAPOClassifier([("line", LogisticRegression())], "f1"),
    MeasureEnsemble("f1", "fast", cv=2, random_state=0),
]


def session_of(model, **given):
    return onnxruntime.InferenceSession(to_onnx(model, **given).SerializeToString())


def frame(n=240, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)).astype(dtype), columns=["height", "weight"])
    X["town"] = rng.choice(["Aix", "Bonn", "Cork"], n)
    y = np.where(X["height"] + (X["town"] == "Bonn") + 0.2 * rng.normal(size=n) > 0.8, "yes", "no")
    return X, y


def columns(X):
    return {name: X[[name]].to_numpy() for name in X}


def numbered(X):
    """With a code for each town, that is numbers alone."""
    return X.assign(town=X["town"].map({"Aix": 0, "Bonn": 1, "Cork": 2}))


def agree(model, session, feed, X):
    labels, scores = session.run(None, feed)
    expected = model.decision_function(X)
    size = np.abs(expected).max()
    np.testing.assert_allclose(scores.reshape(expected.shape), expected, atol=2e-5 * size)
    clear = (np.abs(expected) > 1e-3 * size).reshape(len(X), -1).all(axis=1)
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(labels[clear], model.predict(X)[clear])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(("dtype", "kind"), [(np.float32, FloatTensorType), (np.float64, DoubleTensorType)])
def test_a_frame_with_categories_converts_in_a_pipeline(model, dtype, kind):
    X, y = frame(dtype=dtype)
    towns = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    table = ColumnTransformer([("numbers", StandardScaler(), ["height", "weight"]), ("towns", towns, ["town"])])
    pipeline = make_pipeline(table, model).fit(X, y)
    types = [("height", kind([None, 1])), ("weight", kind([None, 1])), ("town", StringTensorType([None, 1]))]
    new = frame(150, seed=1, dtype=dtype)[0]
    new.loc[:3, "town"] = "Delft"  # not in the rows of fit
    feed = {name: new[[name]].to_numpy(dtype=str if name == "town" else dtype) for name in new}
    agree(pipeline, session_of(pipeline, initial_types=types), feed, new)


def test_a_frame_with_gaps_converts_in_float32():
    """The runtime fills gaps of float32 only; docs/onnx.md says so."""
    X, y = frame()
    X.loc[::7, "weight"] = np.nan
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    table = ColumnTransformer([("numbers", numbers, ["height", "weight"]), ("towns", OneHotEncoder(), ["town"])])
    pipeline = make_pipeline(table, MeasureSVC("f1", pos_label="no")).fit(X, y)
    new = frame(150, seed=1)[0]
    new.loc[::5, "height"] = np.nan
    agree(pipeline, session_of(pipeline, X=new[:1]), columns(new), new)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_frame_of_numbers_is_an_input_for_each_column(model):
    X, y = frame(dtype=np.float64)
    model.fit(numbered(X), y)
    new = numbered(frame(150, seed=1)[0].astype({"height": np.float64, "weight": np.float64}))
    new[["height", "weight"]] = new[["height", "weight"]].astype(np.float32).astype(np.float64)
    session = session_of(model, X=new[:1])
    assert [column.name for column in session.get_inputs()] == list(new)
    assert [column.type for column in session.get_inputs()] == ["tensor(double)", "tensor(double)", "tensor(int64)"]
    agree(model, session, columns(new), new)


def test_a_ranker_of_a_frame_is_an_input_for_each_column():
    X, y = frame()
    model = MeasureRanker("roc_area", C=1.0).fit(numbered(X), y == "yes", groups=np.arange(len(X)) // 8)
    new = numbered(frame(50, seed=1)[0])
    (scores,) = session_of(model, X=new[:1]).run(None, columns(new))
    np.testing.assert_allclose(scores[:, 0], model.predict(new), atol=1e-5)


def test_text_outside_a_pipeline_is_refused_with_a_remedy():
    X, y = frame()
    model = MeasureEnsemble("f1", "fast", cv=2, random_state=0).fit(X, y)
    with pytest.raises(NotImplementedError, match=r"categories in \['town'\]: train a pipeline .*ColumnTransformer"):
        to_onnx(model, X[:1])
    model = MeasureSVC("f1").fit(numbered(X), y)
    with pytest.raises(NotImplementedError, match=r"numbers in the input 'town' of MeasureSVC.*ColumnTransformer"):
        to_onnx(model, X[:1])


def texts(n, seed):
    rng = np.random.default_rng(seed)
    words = np.array([a + b for a in "abCd" for b in "xyZ"])
    drawn = rng.choice(words, (n, 8))
    return [" ".join(row) for row in drawn], (drawn == "ax").any(axis=1), (drawn == "Cy").any(axis=1)


@pytest.mark.parametrize("model", [MeasureSVC("f1"), MeasureSVCCV("f1", cv=2)], ids=["MeasureSVC", "MeasureSVCCV"])
@pytest.mark.parametrize("labels", ["names", "indicators"])
def test_text_agrees(model, labels):
    documents, spam, urgent = texts(200, 0)
    y = np.where(spam, "spam", "ham") if labels == "names" else np.column_stack([spam, urgent]).astype(int)
    vectorizer = TfidfVectorizer()
    pipeline = make_pipeline(vectorizer, model).fit(documents, y)
    # the runtime makes letters small by a locale of the system, by default one that a machine need not have
    options = {id(vectorizer): {"locale": "C"}}
    session = session_of(pipeline, initial_types=[("text", StringTensorType([None, 1]))], options=options)
    new = texts(100, 1)[0]
    agree(pipeline, session, {"text": np.array(new)[:, None]}, new)


def test_options_of_classifiers_are_taken_and_outputs_have_names():
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.repeat([0, 1], 25)
    model = make_pipeline(StandardScaler(), MeasureSVC("f1", C=1.0)).fit(X, y)
    for options in ({"zipmap": False}, {id(model[-1]): {"zipmap": False}}, {id(model[0]): {"div": "div"}}):
        session = session_of(model, X=X[:1], options=options)
        assert [output.name for output in session.get_outputs()] == ["label", "scores"]
        assert session.run(None, {"X": X})[1].shape == (50, 1)
