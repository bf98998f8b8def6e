"""Models in ONNX say what the estimators say, on examples that neither has seen."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from skl2onnx import to_onnx
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import metrimax.onnx  # noqa: F401 (it registers the converters)
from metrimax import CAPOClassifier, CAPOClassifierCV, MeasureEnsemble, MeasureSVC, MeasureSVCCV


def sample(kind, n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + 3
    grade = np.digitize(X[:, 0] + X[:, 1] - 6 + 0.3 * rng.normal(size=n), [-0.5, 1.0])
    y = {
        "binary": grade == 2,
        "names": np.array(["low", "high"])[(grade == 2).astype(int)],
        "numbers": np.array([-1, 7])[(grade == 2).astype(int)],
        "classes": np.array(["a", "b", "c"])[grade],
        "labels": np.column_stack([grade > 0, grade == 2, X[:, 2] > 3.5]).astype(int),
    }[kind]
    return X, y


def run(model, X, dtype):
    session = onnxruntime.InferenceSession(to_onnx(model, X[:1].astype(dtype)).SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: X.astype(dtype)})


def check(model, kind):
    X, _ = sample(kind, 300, seed=1)
    labels, scores = run(model, X, np.float64)
    expected = model.decision_function(X)
    np.testing.assert_allclose(scores, expected.reshape(len(X), -1), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(labels, model.predict(X))
    labels, scores = run(model, X, np.float32)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(scores, expected.reshape(len(X), -1), atol=1e-4 * scale)


@pytest.mark.parametrize("kind", ["binary", "names", "numbers", "classes", "labels"])
def test_linear_models_agree(kind):
    X, y = sample(kind)
    check(MeasureSVC("f1", C=1.0).fit(X, y), kind)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "inverse_distance", "inverse_squared_distance"])
@pytest.mark.parametrize("kind", ["names", "classes"])
def test_kernels_agree(kernel, kind):
    X, y = sample(kind, 60)
    check(MeasureSVC("f1", C=1.0, kernel=kernel, gamma=0.2, coef0=1.0, degree=2).fit(X, y), kind)


def test_low_rank_kernels_agree():
    X, y = sample("names")
    check(MeasureSVC("f1", C=1.0, kernel="rbf", n_components=15, random_state=0).fit(X, y), "names")


def test_cross_validation_and_pipelines_agree():
    X, y = sample("names")
    check(MeasureSVCCV("f1", Cs=[0.1, 1.0], cv=3).fit(X, y), "names")
    check(make_pipeline(StandardScaler(), MeasureSVC("error", C=1.0)).fit(X, y), "names")


def test_a_kernel_without_a_name_is_refused():
    X, y = sample("binary", 40)
    model = MeasureSVC("f1", C=1.0, kernel=lambda A, B: A @ B.T).fit(X, y)
    with pytest.raises(NotImplementedError, match="expected a kernel with a name"):
        to_onnx(model, X[:1])


def loosely(model, kind, dtypes=(np.float64, np.float32)):
    """Trees of skl2onnx compare and add in float32: scores agree as far as that, and labels away from zero."""
    X, _ = sample(kind, 300, seed=1)
    X = X.astype(np.float32)  # so that no example is on the other side of a split
    expected = model.decision_function(X)
    scale = np.abs(expected).max()
    for dtype in dtypes:
        labels, scores = run(model, X, dtype)
        np.testing.assert_allclose(scores, expected.reshape(len(X), -1), atol=2e-4 * scale)
        clear = np.sort(scores, axis=1)[:, -1] - np.sort(scores, axis=1)[:, -2] if kind == "classes" else np.abs(scores)
        clear = clear.reshape(len(X), -1).min(axis=1) > 1e-3 * scale
        assert clear.mean() > 0.9
        np.testing.assert_array_equal(labels[clear], model.predict(X)[clear])


AUXILIARIES = [("tree", DecisionTreeClassifier(max_depth=3, random_state=0)), ("bayes", GaussianNB())]


@pytest.mark.parametrize("kind", ["binary", "names", "numbers", "classes"])
@pytest.mark.parametrize("delta", [None, "linear", "rbf"])
def test_capo_agrees(kind, delta):
    X, y = sample(kind)
    loosely(CAPOClassifier(AUXILIARIES, "f1", delta=delta).fit(X.astype(np.float32), y), kind)


@pytest.mark.parametrize("kind", ["names", "classes"])
def test_capo_agrees_on_probabilities_regressors_and_columns(kind):
    X, y = sample(kind)
    loosely(CAPOClassifier(AUXILIARIES, "f1", outputs="score").fit(X.astype(np.float32), y), kind)
    if kind == "names":
        given = [("ridge", Ridge()), ("column", 3)]
        for outputs in ("score", "label"):
            loosely(CAPOClassifier(given, "f1", outputs=outputs).fit(X.astype(np.float32), y), kind)


MEMBERS = [
    ("trees", ExtraTreesClassifier(8, max_depth=4)),
    ("forest", RandomForestClassifier(8, max_depth=4)),
    ("linear", make_pipeline(StandardScaler(), LogisticRegression())),
]


@pytest.mark.parametrize("kind", ["binary", "names", "numbers", "classes", "labels"])
def test_ensembles_agree(kind):
    X, y = sample(kind)
    loosely(MeasureEnsemble("f1", MEMBERS, cv=2, random_state=0).fit(X.astype(np.float32), y), kind, (np.float32,))


def test_ensembles_with_gaps_and_regressors_agree():
    X, y = sample("names")
    X = X.astype(np.float32)
    X[::7, 1] = np.nan
    members = [("ridge", Ridge()), ("bayes", GaussianNB())]
    model = MeasureEnsemble("f1", members, cv=2, random_state=0).fit(X, y)
    new = sample("names", 100, seed=1)[0].astype(np.float32)
    new[::5, 1], new[::4, 2] = np.nan, np.nan  # where there were gaps, and where there were none
    _, scores = run(model, new, np.float32)
    np.testing.assert_allclose(scores[:, 0], model.decision_function(new), atol=1e-3)
    whole = MeasureEnsemble("f1", members, cv=2, random_state=0).fit(np.nan_to_num(X), y)
    np.testing.assert_allclose(run(whole, new, np.float32)[1][:, 0], whole.decision_function(new), atol=1e-3)
    forest = MeasureEnsemble("f1", [MEMBERS[1]], cv=2, random_state=0).fit(X, y)
    with pytest.raises(NotImplementedError, match="'forest' was trained on gaps"):
        to_onnx(forest, new[:1])


def test_parts_that_do_not_convert_are_named():
    X, y = sample("names", 60)
    members = [("kernel", make_pipeline(Nystroem("laplacian", n_components=10), LogisticRegression()))]
    with pytest.raises(NotImplementedError, match=r"'kernel'.*does not convert"):
        to_onnx(MeasureEnsemble("f1", members, cv=2).fit(X, y), X[:1].astype(np.float32))
    with pytest.raises(NotImplementedError, match=r"expected members with probabilities.*'svm'"):
        to_onnx(MeasureEnsemble("f1", [("svm", LinearSVC())], cv=2).fit(X, y), X[:1].astype(np.float32))
    scored = CAPOClassifier([("svm", SVC())], "f1", outputs="score").fit(X, y)
    with pytest.raises(NotImplementedError, match=r"'svm' .* decision_function counts, got SVC: .* outputs='label'"):
        to_onnx(scored, X[:1].astype(np.float32))
    X, Y = sample("labels", 60)
    several = CAPOClassifier([("tree", DecisionTreeClassifier())], "f1").fit(X, Y)
    with pytest.raises(NotImplementedError, match="exclusive classes"):
        to_onnx(several, X[:1].astype(np.float32))


@pytest.mark.parametrize("kind", ["names", "numbers", "binary"])
def test_a_positive_class_that_is_the_lesser_agrees(kind):
    X, y = sample(kind)
    X, first = X.astype(np.float32), np.unique(y)[0]
    assert (y == first).any()
    check(MeasureSVC("f1", C=1.0, pos_label=first).fit(X, y), kind)
    for outputs in ("label", "score"):
        auxiliaries = [*AUXILIARIES, ("line", LogisticRegression()), ("ridge", Ridge())]
        loosely(CAPOClassifier(auxiliaries, "f1", outputs=outputs, pos_label=first).fit(X, y), kind)
    members = [*MEMBERS, ("ridge", Ridge())]
    model = MeasureEnsemble("f1", members, cv=2, random_state=0, pos_label=first).fit(X, y)
    loosely(model, kind, (np.float32,))


@pytest.mark.parametrize("pos_label", ["high", "low"])
def test_a_score_of_zero_has_the_label_that_is_not_positive(pos_label):
    X, y = sample("names")
    model = MeasureSVC("f1", C=1.0, pos_label=pos_label).fit(X, y)
    model.intercept_[:] = 0.0
    rows = np.zeros((1, X.shape[1]))
    labels, scores = run(model, rows, np.float64)
    assert scores[0, 0] == 0.0
    assert labels[0] == model.predict(rows)[0] != pos_label


LINES = [
    ("line", LogisticRegression()),
    ("svm", make_pipeline(StandardScaler(), LinearSVC())),
    ("mx", MeasureSVC()),
]


@pytest.mark.parametrize("kind", ["binary", "names", "numbers", "classes"])
@pytest.mark.parametrize("outputs", ["label", "score", None])
def test_capo_agrees_on_linear_auxiliaries_and_boosting(kind, outputs):
    X, y = sample(kind)
    auxiliaries = [*LINES, ("boosting", HistGradientBoostingClassifier(max_iter=10))]
    loosely(CAPOClassifier(auxiliaries, "f1", outputs=outputs).fit(X.astype(np.float32), y), kind)


def test_capo_agrees_on_what_cross_validation_chose():
    X, y = sample("names")
    model = CAPOClassifierCV(LINES, "f1", keep=1, cv=2).fit(X.astype(np.float32), y)
    assert len(model.estimators_) == 1
    loosely(model, "names")


def test_capo_agrees_on_a_class_that_an_auxiliary_does_not_know():
    X, y = sample("classes")
    two = LogisticRegression().fit(X[y != "b"], y[y != "b"])
    three = LogisticRegression().fit(X, y)
    for outputs in ("label", "score"):
        model = CAPOClassifier([("two", two), ("three", three)], "f1", prefit=True, outputs=outputs)
        loosely(model.fit(X.astype(np.float32), y), "classes")
