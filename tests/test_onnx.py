"""Models in ONNX say what the estimators say, on examples that neither has seen."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from skl2onnx import to_onnx
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metrimax.onnx  # noqa: F401 (it registers the converters)
from metrimax import MeasureSVC, MeasureSVCCV


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
