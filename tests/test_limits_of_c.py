"""What the solution is where C is very small, and where it is very large; what scores are where a ratio is 0/0."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, fbeta_score, jaccard_score
from sklearn.svm import SVC

from metrimax import MeasureSVC
from metrimax.measure import FBeta, Jaccard

PAPER = {"hinge": 0, "threshold": "trained"}


@pytest.mark.parametrize("measure", ["roc_area", "balanced_error", "error"])
def test_rocchio_where_c_is_small(measure):
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    X = rng.normal(size=(200, 5)) + y[:, None]
    model = MeasureSVC(measure, C=1e-6, tol=1e-9, fit_intercept=False, **PAPER).fit(X, y)
    positives, negatives = (X[mask].mean(axis=0) if measure == "roc_area" else X[mask].sum(axis=0) for mask in (y, ~y))
    direction = positives - negatives
    w = model.coef_.ravel()
    assert w @ direction == pytest.approx(np.linalg.norm(w) * np.linalg.norm(direction), rel=1e-9)


def test_the_hard_margin_where_c_is_large():
    rng = np.random.default_rng(1)
    y = rng.random(60) < 0.5
    X = rng.normal(size=(60, 3))
    X[:, 0] += np.where(y, 4.0, -4.0)
    lengths = []
    for C in (1e3, 1e5):
        w = MeasureSVC("error", C=C, tol=1e-6 / C, fit_intercept=False, **PAPER).fit(X, y).coef_.ravel()
        assert (np.where(y, 1, -1) * (X @ w)).min() >= 1 - 1e-3
        lengths.append(w @ w)
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-3)
    # scikit-learn's has a free bias: its margin is the wider one
    assert lengths[0] >= (SVC(kernel="linear", C=1e5).fit(X, y).coef_ ** 2).sum() * (1 - 1e-3)


@pytest.mark.parametrize("zero_division", [0, 1, 0.0, 1.0])
def test_zero_division_is_that_of_scikit_learn(zero_division):
    none, some = np.zeros(4, dtype=bool), np.array([False, True, False, False])
    for y, called in ((none, none), (none, some), (some, none), (some, some)):
        scores = np.where(called, 1.0, -1.0)
        for measure, theirs in (
            (FBeta(1.0, zero_division), f1_score(y, called, zero_division=zero_division)),
            (FBeta(2.0, zero_division), fbeta_score(y, called, beta=2, zero_division=zero_division)),
            (Jaccard(zero_division), jaccard_score(y, called, zero_division=zero_division)),
        ):
            assert measure.score(y, scores) == pytest.approx(theirs)


@pytest.mark.parametrize("value", [-0.1, 2, np.nan, "warn"])
def test_zero_division_is_checked(value):
    for make in (lambda: FBeta(1.0, value), lambda: Jaccard(value)):
        with pytest.raises(ValueError, match="expected zero_division from 0 to 1, got"):
            make()
