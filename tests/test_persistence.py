"""Estimators on disk: joblib, pickle, skops, and the recipe for ONNX in the documentation."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
import pytest

from metrimax import FBeta, MeasureSVC


@pytest.fixture(params=["f1", "roc_area", "fbeta"])
def fitted(request: pytest.FixtureRequest) -> tuple[MeasureSVC, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    X = rng.normal(size=(200, 4)) + y[:, None]
    return MeasureSVC(FBeta(2.0) if request.param == "fbeta" else request.param).fit(X, y), X


def test_joblib_and_pickle(fitted: tuple[MeasureSVC, np.ndarray], tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    clf, X = fitted
    joblib.dump(clf, tmp_path / "clf.joblib")
    for back in (joblib.load(tmp_path / "clf.joblib"), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(back.decision_function(X), clf.decision_function(X))
        assert back.status_ is clf.status_
        assert back.history_ == clf.history_


def test_skops_trusts_nothing_but_our_own_types(fitted: tuple[MeasureSVC, np.ndarray]) -> None:
    skops = pytest.importorskip("skops.io")
    clf, X = fitted
    raw = skops.dumps(clf)
    types = skops.get_untrusted_types(data=raw)
    assert all(name.startswith("metrimax.") for name in types), types
    back = skops.load(io.BytesIO(raw), trusted=types)
    np.testing.assert_array_equal(back.decision_function(X), clf.decision_function(X))


def test_onnx_recipe(fitted: tuple[MeasureSVC, np.ndarray]) -> None:
    """The recipe of docs/model_format.md: the same line in scikit-learn's own class, which converters know."""
    from sklearn.svm import LinearSVC

    clf, X = fitted
    plain = LinearSVC()
    plain.classes_, plain.coef_ = clf.classes_, clf.coef_
    plain.intercept_ = clf.intercept_
    plain.n_features_in_ = clf.n_features_in_
    np.testing.assert_allclose(plain.decision_function(X), clf.decision_function(X), atol=1e-12)
    np.testing.assert_array_equal(plain.predict(X), clf.predict(X))
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    onnx = skl2onnx.to_onnx(plain, X[:1].astype(np.float32))
    session = runtime.InferenceSession(onnx.SerializeToString())
    labels = session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})[0]
    assert (labels == clf.predict(X)).mean() > 0.99
