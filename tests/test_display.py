"""The displays hold data only, and draw it."""

import matplotlib as mpl
import numpy as np
import pytest

from metrimax import MeasureSVCCV
from metrimax.display import EstimateDisplay, LearningCurveDisplay

mpl.use("agg")


def test_learning_curves():
    sizes = [10, 10, 20, 20]
    display = LearningCurveDisplay.from_repeats(sizes, {"f1": ([0.5, 0.7, 0.8, 0.8], [0.6, 0.8, 0.9, 0.9])}, title="x")
    np.testing.assert_allclose(display.curves["f1"][:, :2], [[0.6, 0.7], [0.8, 0.9]])
    np.testing.assert_allclose(display.curves["f1"][:, 2:], [[np.std([0, 0.2], ddof=1)] * 2, [0, 0]], atol=1e-12)
    drawn = display.plot()
    lines = drawn.axes_[0].get_lines()
    assert len(lines) == 4
    np.testing.assert_allclose(lines[0].get_ydata(), [60, 80])
    assert drawn.axes_[0].get_ylabel() == "F1 (%)"
    mpl.pyplot.close(drawn.figure_)


def test_estimate_over_C():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    X = rng.normal(size=(200, 3)) + y[:, None]
    model = MeasureSVCCV("error", Cs=[0.01, 0.1, 1.0], selection="xi_alpha", scoring="f1").fit(X[:100], y[:100])
    display = EstimateDisplay.from_estimator(model, X[:100], y[:100], X[100:], y[100:])
    np.testing.assert_array_equal(display.estimate, model.cv_results_["mean_test_score"])
    best = int(np.argmax(display.estimate))
    assert display.holdout[best] == pytest.approx(model.score(X[100:], y[100:]), abs=0.05)
    assert display.ax_.get_xscale() == "log"
    assert display.name == "f1"
    mpl.pyplot.close(display.figure_)
