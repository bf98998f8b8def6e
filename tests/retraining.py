"""Small samples, and leave-one-out by the book, for comparison with the estimates."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone


def draw(seed, n, p=2, shift=0.7, centre=0.0, positives=0.4):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < positives
    y[:2], y[2:4] = True, False
    return rng.normal(size=(n, p)) + shift * y[:, None] + centre, y


def scores_left_out(model, X, y):
    """The score of each example by a model trained on all the others."""
    rest = ~np.eye(len(y), dtype=bool)
    return np.array([clone(model).fit(X[rest[t]], y[rest[t]]).decision_function(X[[t]])[0] for t in range(len(y))])


def mistakes_without(model, X, y):
    """Which examples a model trained on all the others gets wrong."""
    return (scores_left_out(model, X, y) > 0) != y
