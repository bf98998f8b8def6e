"""Xi-alpha and leave-one-out of `MeasureSVC` with a kernel, against retraining and against the features themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from retraining import draw, mistakes_without
from sklearn.base import clone

from metrimax import CostModel, MeasureSVC, MeasureSVCCV, leave_one_out, xi_alpha
from metrimax.designs.kernel import LowRank, kernel_design
from metrimax.estimates.dual_view import dual_view


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(6, 20),
    st.sampled_from([0.02, 0.3, 1.0, 10.0]),
    st.sampled_from(["rbf", "poly", "laplacian", "inverse_distance"]),
    st.sampled_from([None, 1.0, 4.0]),
)
def test_against_retraining(seed, n, C, kernel, intercept):
    X, y = draw(seed, n)
    options = {"fit_intercept": intercept is not None, "intercept_scaling": intercept}
    model = MeasureSVC("error", C=C, kernel=kernel, gamma=0.5, tol=1e-9, max_iter=100_000, **options).fit(X, y)
    truth = mistakes_without(clone(model).set_params(solver="bundle"), X, y)
    exact, bound = leave_one_out(model, X, y, verbose=0), xi_alpha(model, X, y, rho=2)
    assert np.count_nonzero(exact.mistakes != truth) <= exact.n_undecided
    assert bound.proven
    assert bound.d_pos >= np.count_nonzero(truth & y)
    assert bound.d_neg >= np.count_nonzero(truth & ~y)
    if intercept is None:
        assert xi_alpha(model, X, y, rho=1).proven


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("measure", ["error", CostModel(2.0, 1.0), "balanced_error"])
def test_a_kernel_is_its_features(measure, free):
    """By the kernel, by its values alone, and by features whose products they are."""
    X, y = draw(1, 60, 3)
    features = np.hstack([X, X**2])
    options = {"C": 0.5, "tol": 1e-9, "hinge": 0, "threshold": "trained"}
    options["intercept_scaling"] = "free" if free else 2.0
    given = {
        "linear": features,
        "precomputed": features @ features.T,
        lambda A, B: A @ B.T: features,
    }
    found = []
    for kernel, data in given.items():
        model = MeasureSVC(measure, kernel=kernel, **options).fit(data, y)
        exact, bounds = leave_one_out(model, data, y, verbose=0), [xi_alpha(model, data, y, rho=r) for r in (1, 2)]
        found.append((exact.mistakes.tolist(), *(one.as_dict() | {"R2": round(one.R2, 6)} for one in bounds)))
    assert found[0] == found[1] == found[2]
    assert 0 < exact.n_retrained < 60


def test_models_that_keep_no_multipliers_and_approximate_ones():
    X, y = draw(2, 80, 3)
    options = {"C": 0.5, "kernel": "rbf", "gamma": 0.5, "tol": 1e-8}
    kept, none = (MeasureSVC("error", solver=solver, **options).fit(X, y) for solver in ("dual_cd", "bundle"))
    assert not hasattr(none, "dual_coef_")
    assert abs(xi_alpha(kept, X, y).error - xi_alpha(none, X, y).error) <= 1 / 80
    low = MeasureSVC("error", n_components=20, random_state=3, **options).fit(X, y)
    features = LowRank(low._expansion.kernel, X, low.support_).X
    plain = MeasureSVC("error", C=0.5, tol=1e-8).fit(features, y)
    assert low.kernel_kept_ < 1
    assert xi_alpha(low, X, y).as_dict() == xi_alpha(plain, features, y).as_dict()
    mine, theirs = leave_one_out(low, X, y, verbose=0), leave_one_out(plain, features, y, verbose=0)
    np.testing.assert_array_equal(mine.mistakes, theirs.mistakes)


def test_only_the_sample_that_was_trained_on():
    X, y = draw(3, 40, 3)
    for options in ({}, {"intercept_scaling": "free"}, {"n_components": 10, "random_state": 0}):
        model = MeasureSVC("error", kernel="rbf", C=0.3, **options).fit(X, y)
        assert xi_alpha(model, X, y).n_pos == y.sum()
        for other in ((X[:20], y[:20]), (X + 1, y)):
            with pytest.raises(ValueError, match=r"trained (on|with)"):
                xi_alpha(model, *other)


def test_the_radius_of_many_examples_is_a_bound(monkeypatch):
    X, y = draw(4, 60, 3)
    for kernel in ("rbf", "laplacian", "inverse_squared_distance"):
        model = MeasureSVC("error", kernel=kernel, gamma=0.1).fit(X, y)
        exact = dual_view(model, X, y).sample.radius()
        with monkeypatch.context() as patch:
            patch.setattr("metrimax.estimates.radius.EXACT", 10)
            assert exact <= dual_view(model, X, y).sample.radius() <= 1


def test_rows_of_a_kernel_matrix():
    """Products, lengths and epochs on K are those of features whose products K holds, the constant included."""
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(30, 4))
    for bias in (0.0, 2.0):
        rows = kernel_design(_products(), Z).rows.with_constant(bias)
        features = np.hstack([Z, np.full((30, 1), bias)])
        slope, other = rng.normal(size=(2, 30))
        w, v = rows.products("pull", [slope, other])
        scores = rows.products("scores", [w, v])
        np.testing.assert_allclose(scores[0], features @ features.T @ slope)
        np.testing.assert_allclose(scores, [rows.products("scores", [one])[0] for one in (w, v)])
        assert rows.square(w, slope, scores[0]) == pytest.approx(np.sum((features.T @ slope) ** 2))
        np.testing.assert_allclose(rows.squares(), (features**2).sum(axis=1))
        assert rows.mean_square() == pytest.approx((features**2).sum() / 30)


def _products():
    from metrimax.designs.kernel import Kernel

    return Kernel("poly", gamma=1.0, degree=1, coef0=0.0)


def test_c_by_xi_alpha_with_an_exact_kernel():
    """As with features that are the same kernel, exactly."""
    X, y = draw(6, 120, 3, 1.2)
    options = {
        "kernel": "rbf",
        "gamma": 0.3,
        "selection": "xi_alpha",
        "Cs": [0.1, 1.0, 10.0],
        "scoring": "f1",
        "rho": 1,
    }
    exact = MeasureSVCCV("error", **options).fit(X, y)
    low = MeasureSVCCV("error", n_components=119, random_state=0, **options).fit(X, y)
    np.testing.assert_allclose(exact.cv_results_["pooled_test_score"], low.cv_results_["pooled_test_score"], atol=0.05)
    assert exact.score(X, y) == pytest.approx(low.score(X, y), abs=0.05)
    measured = MeasureSVCCV("error", **(options | {"rho": None})).fit(X, y)
    assert measured.C_ in (0.1, 1.0, 10.0)
