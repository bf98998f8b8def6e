"""Weights as a sparse matrix: `sparsify` and `densify`."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import metrimax
from metrimax import MeasureSVC, MeasureSVCCV, open_dataset
from metrimax.display import CoefficientDisplay
from metrimax.io.writing import ShardWriter


@pytest.fixture(scope="module")
def text():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 80), density=0.1, rng=rng, format="csr")
    Y = np.stack([(X[:, [k]].toarray().ravel() > 0) | (rng.random(300) < 0.05) for k in range(3)], axis=1).astype(int)
    return X, Y


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, lambda X: X.toarray(), np.float32])
def test_scores_are_those_of_the_weights_that_are_kept(text, form):
    X, Y = text
    X = X.toarray().astype(np.float32) if form is np.float32 else form(X)
    model = MeasureSVC("f1").fit(X, Y)
    W, before = model.coef_, model.decision_function(X)
    assert model.sparsify(below=0.2) is model
    kept = np.where(np.abs(W) < 0.2 * np.abs(W).max(axis=1, keepdims=True), 0.0, W)
    assert sparse.issparse(model.coef_)
    assert 0 < model.coef_.nnz < W.size
    np.testing.assert_array_equal(model.coef_.toarray(), kept)
    np.testing.assert_allclose(model.dropped_, np.linalg.norm(W - kept, axis=1))
    after = model.decision_function(X)
    assert isinstance(after, np.ndarray)
    np.testing.assert_allclose(after, X @ kept.T + model.intercept_, atol=1e-5)
    length = np.sqrt(np.asarray(sparse.csr_array(X).power(2).sum(axis=1)).ravel())
    assert (np.abs(after - before) <= length[:, None] * model.dropped_ * (1 + 1e-5) + 1e-6).all()
    np.testing.assert_array_equal(model.predict(X), (after > 0).astype(int))
    assert isinstance(model.densify().coef_, np.ndarray)
    np.testing.assert_array_equal(model.coef_, kept)


def test_zeros_alone_leave_the_model_as_it_is(text):
    X, Y = text
    wide = sparse.hstack([X, sparse.csr_array((300, 20))], format="csr")
    model = MeasureSVC("f1").fit(wide, Y[:, 0])
    before, rows = model.decision_function(wide), model.coef_.copy()
    model.sparsify()
    assert model.coef_.shape == (1, 100)
    assert model.coef_.nnz <= 80
    np.testing.assert_array_equal(model.dropped_, [0.0])
    np.testing.assert_array_equal(model.coef_.toarray(), rows)
    np.testing.assert_allclose(model.decision_function(wide), before)
    assert metrimax.verify(model, wide, Y[:, 0]).holds
    assert metrimax.xi_alpha(MeasureSVC("error", hinge=0, threshold="trained").fit(X, Y[:, 0]).sparsify(), X, Y[:, 0])


def test_what_was_dropped_adds_up_until_the_next_fit(text):
    X, Y = text
    model = MeasureSVCCV("f1", cv=3).fit(X, Y[:, 0])
    W = model.coef_
    model.sparsify(below=0.1).sparsify(below=0.3)
    np.testing.assert_allclose(model.dropped_, np.linalg.norm(W - model.coef_.toarray(), axis=1))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(TypeError, match=r"sparsify has dropped some.*fit it again"):
        metrimax.verify(model, X, Y[:, 0])
    model.fit(X, Y[:, 0])
    assert isinstance(model.coef_, np.ndarray)
    with pytest.raises(AttributeError, match="sparsify sets it"):
        clone(model).dropped_  # noqa: B018
    assert metrimax.verify(model, X, Y[:, 0]).holds


def test_a_copy_leaves_the_weights_of_the_other_alone(text):
    X, Y = text
    model = MeasureSVC("f1").fit(X, Y).sparsify()
    before, twin = model.coef_.toarray(), copy.copy(model)
    assert twin.sparsify(below=0.2).coef_.nnz < model.coef_.nnz
    np.testing.assert_array_equal(model.coef_.toarray(), before)


def test_estimates_ask_for_all_weights(text):
    X, Y = text
    model = MeasureSVC("error", hinge=0, threshold="trained").fit(X, Y[:, 0]).sparsify(below=0.5)
    with pytest.raises(ValueError, match="if sparsify has dropped weights, fit again"):
        metrimax.xi_alpha(model, X, Y[:, 0])


def test_datasets_and_plots_take_sparse_weights(text, tmp_path):
    X, Y = text
    with ShardWriter(tmp_path / "rows") as writer:
        writer.add(X, Y[:, 0].astype(float))
    rows = open_dataset(tmp_path / "rows")
    model = MeasureSVC("f1").fit(rows)
    before = model.decision_function(rows)
    model.sparsify()
    np.testing.assert_allclose(model.decision_function(rows), before)
    assert len(CoefficientDisplay.from_estimator(model).names) > 0


@pytest.mark.parametrize("below", [-0.1, 1.0, np.nan, "small", None])
def test_a_share_is_expected(text, below):
    X, Y = text
    model = MeasureSVC("f1").fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="expected below as a share of the largest weight"):
        model.sparsify(below)


def test_kernels_have_no_weights(text):
    X, Y = text
    model = MeasureSVC("f1", kernel="rbf").fit(X, Y[:, 0])
    with pytest.raises(AttributeError, match="a kernel has no weights of features; choose kernel='linear'"):
        model.sparsify()
    with pytest.raises(AttributeError, match="a kernel has no weights of features; kernel_coef_"):
        model.set_params(kernel="linear").sparsify()
