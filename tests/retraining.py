"""Leave-one-out by the book, for comparison."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone


def mistakes_without(model, X, y):
    """Which examples the machine trained on all the others gets wrong."""
    mistakes = np.zeros(len(y), dtype=bool)
    for t in range(len(y)):
        rest = np.arange(len(y)) != t
        mistakes[t] = clone(model).fit(X[rest], y[rest]).predict(X[[t]])[0] != y[t]
    return mistakes
