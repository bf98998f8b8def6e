"""The threshold of measures of a ranking: weights count as copies there, too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrimax import MeasureSVC, PrecisionAtK
from metrimax.measure import get_measure

MEASURES = ["prbep", "roc_area", PrecisionAtK(2), PrecisionAtK("0.5p")]
examples = st.lists(st.tuples(st.booleans(), st.integers(-3, 3), st.integers(0, 4)), min_size=2, max_size=8)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@settings(deadline=None)
@given(rows=examples)
def test_weights_are_copies(measure, rows):
    y, scores, weight = (np.array(column) for column in zip([True, 0.5, 1], [False, -0.5, 1], *rows, strict=True))
    scores = scores.astype(float)
    repeated = (np.repeat(part, weight) for part in (y, scores))
    expected = get_measure(measure).threshold(*repeated)
    assert get_measure(measure).threshold(y, scores, weight.astype(float)) == expected


def test_a_place_inside_of_a_heavy_example():
    y, scores = np.array([True, False, True, False]), np.array([4.0, 3.0, 2.0, 1.0])
    prbep = get_measure("prbep")
    assert prbep.threshold(y, scores, np.array([1.0, 5.0, 2.0, 1.0])) == 3.0  # places 3 and 4 are both its own
    assert prbep.threshold(y, scores, np.array([1.0, 2.0, 2.0, 1.0])) == 2.5  # the next place is the next example's
    assert prbep.threshold(y, scores, np.array([0.5, 0.5, 0.5, 0.5])) == 2.5  # what has no copies is one example
    assert prbep.threshold(y[:2], scores[:2], np.array([1.0, 3.0])) == 3.5
    assert prbep.threshold(y, scores, np.array([1.0, 0.0, 5.0, 0.0])) == 1.0  # all of them: below the last one


@pytest.mark.parametrize("measure", ["prbep", "roc_area"])
def test_fitted_thresholds(measure):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 2))
    y, weight = X[:, 0] + rng.normal(size=40) > 0, rng.integers(1, 9, size=40)
    weighted = MeasureSVC(measure, tol=1e-10).fit(X, y, sample_weight=weight)
    repeated = MeasureSVC(measure, tol=1e-10).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.threshold_, repeated.threshold_, atol=1e-4)
