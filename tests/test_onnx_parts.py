"""Rankers, the presets of the ensemble, and the parts that metrimax converts itself, in ONNX."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from scipy.special import ndtri
from scipy.stats import rankdata
from skl2onnx import to_onnx
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

import metrimax.onnx  # noqa: F401 (it registers the converters)
from metrimax import CAPOClassifier, MeasureEnsemble, MeasureRanker, MeasureRankerCV
from metrimax.estimators._ensemble_members import preset
from metrimax.onnx.graph import Graph
from metrimax.onnx.parts import _normal_quantile, _rounded_down


def run(model, X):
    session = onnxruntime.InferenceSession(to_onnx(model, X[:1]).SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: X})


def sample(kind="binary", n=160, seed=0):
    """Entries that are float32, and a column of few values: many rows at one quantile."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    grade = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=n), [0.2, 1.5])
    y = {
        "binary": grade == 2,
        "names": np.array(["low", "high"])[(grade == 2).astype(int)],
        "classes": np.array(["a", "b", "c"])[grade],
        "labels": np.column_stack([grade > 0, grade == 2]).astype(int),
    }[kind]
    return X, y


def agree(model, X, atol=2e-4, clear=0.01):
    """Scores up to rounding, and labels of rows whose label is not a matter of rounding."""
    labels, scores = run(model, X)
    expected = model.decision_function(X).reshape(len(X), -1)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(scores, expected, atol=atol * scale)
    if expected.shape[1] > 1 and labels.ndim == 1:
        ordered = np.sort(expected, axis=1)
        margin = ordered[:, -1] - ordered[:, -2]
    else:
        margin = np.abs(expected).min(axis=1)
    sure = margin > clear * scale
    assert sure.mean() > 0.8
    np.testing.assert_array_equal(labels[sure], model.predict(X)[sure])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cv", [False, True])
def test_rankers_agree(cv, dtype):
    X, _ = sample()
    groups = np.arange(len(X)) // 8
    y = np.digitize(X[:, 0] + X[:, 1], [-1, 0.5])
    model = MeasureRankerCV("ndcg", Cs=[0.1, 1.0], cv=2) if cv else MeasureRanker("roc_area", C=1.0)
    model.fit(X.astype(np.float64), y > 0 if not cv else y, groups=groups)
    new = sample(seed=1)[0].astype(dtype)
    (scores,) = run(model, new)
    assert scores.shape == (len(new), 1)
    assert scores.dtype == dtype
    np.testing.assert_allclose(scores[:, 0], model.predict(new), atol=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize(("name", "kind"), [("default", "names"), ("default", "classes"), ("fast", "labels")])
def test_presets_agree_on_fresh_rows(name, kind):
    X, y = sample(kind)
    model = MeasureEnsemble("f1", name, cv=2, random_state=0).fit(X, y)
    agree(model, sample(kind, 200, seed=1)[0])


@pytest.mark.parametrize(
    ("name", "why"), [("spline", "no converter for Spl"), ("neighbours", "weights='uniform', got")]
)
def test_members_of_the_best_preset_that_do_not_convert_are_named(name, why):
    X, y = sample(n=80)
    (member,) = [(m.name, m.estimator) for m in preset("best", X, np.zeros(4, dtype=bool)) if m.name == name]
    model = MeasureEnsemble("f1", [member], cv=2, random_state=0).fit(X, y)
    with pytest.raises(NotImplementedError, match=f"'{name}' does not convert to ONNX: .*{why}"):
        to_onnx(model, X[:1])


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_boosting_passes_gaps_on(kind):
    X, y = sample(kind)
    X[::5, 0] = np.nan
    new = sample(kind, 200, seed=1)[0]
    new[::3, 0], new[1::3, 1] = np.nan, np.nan  # where there were gaps, and where there were none
    model = MeasureEnsemble("f1", [("boosting", HistGradientBoostingClassifier(max_iter=20))], cv=2, random_state=0)
    agree(model.fit(X, y), new)


@pytest.mark.parametrize("kind", ["binary", "names", "classes"])
def test_capo_takes_the_labels_of_boosting(kind):
    X, y = sample(kind)
    auxiliary = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    agree(CAPOClassifier([("boosting", auxiliary)], "f1", outputs="label").fit(X, y), sample(kind, 200, seed=1)[0])


def test_boosting_with_categories_is_refused():
    X, y = sample()
    X[:, 3] -= X[:, 3].min()
    members = [("boosting", HistGradientBoostingClassifier(categorical_features=[3], max_iter=20))]
    model = MeasureEnsemble("f1", members, cv=2, random_state=0).fit(X, y)
    with pytest.raises(NotImplementedError, match="'boosting' without categorical features"):
        to_onnx(model, X[:1])


def test_a_threshold_in_float32_parts_the_same_floats():
    rng = np.random.default_rng(0)
    thresholds = np.concatenate([rng.normal(size=2000), [np.inf, 0.0, 1.0]])
    near = np.concatenate([np.nextafter(thresholds.astype(np.float32), np.float32(side)) for side in (-9, 9)])
    near = np.concatenate([near, thresholds.astype(np.float32)])
    exact = near.astype(np.float64) <= np.tile(thresholds, 3)
    assert (exact != (near <= np.tile(thresholds.astype(np.float32), 3))).any()  # to the nearest would not do
    np.testing.assert_array_equal(near <= np.tile(_rounded_down(thresholds), 3), exact)


def test_quantiles_and_kernel_features_are_those_of_scikit_learn():
    """In a pipeline whose last step shows the difference; columns with ties, a constant one, and rows out of range."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    X[:, 1], X[:, 2] = np.round(X[:, 1]), 2.0
    y = X[:, 0] + X[:, 3] ** 2 > 1
    new = np.vstack([X, rng.normal(size=(50, 4)), 9 * rng.normal(size=(50, 4))])
    new[150:, 1] = np.round(new[150:, 1])
    new[::7, 2] += 1e-3
    for steps in ([QuantileTransformer(n_quantiles=40, output_distribution="normal")], [Nystroem(n_components=30)]):
        member = make_pipeline(*steps, LogisticRegression(C=100.0))
        model = MeasureEnsemble("f1", [("member", member)], cv=2, random_state=0).fit(X, y)
        _, scores = run(model, new)
        np.testing.assert_allclose(scores[:, 0], model.decision_function(new), rtol=1e-5, atol=1e-5)
    assert (rankdata(X[:, 1]) % 1 == 0.5).any()


def test_quantiles_of_the_normal_distribution_are_exact():
    from skl2onnx.common.data_types import DoubleTensorType

    u = np.concatenate([np.geomspace(1e-10, 0.5, 300), 1 - np.geomspace(1e-10, 0.5, 300), [0.075, 0.925]])[:, None]
    node = _normal_quantile(Graph("u", np.float64, 18), "u")
    model = node.to_onnx({"u": DoubleTensorType([None, 1])}, target_opset=18)
    (z,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"u": u})
    np.testing.assert_allclose(z, ndtri(u), rtol=1e-13, atol=1e-14)
