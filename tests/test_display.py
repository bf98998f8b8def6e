"""The displays hold data only, and draw it."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError

from metrimax import MeasureSVC, MeasureSVCCV
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


def marked(display):
    """Where the dotted line is."""
    return [line.get_xdata()[0] for line in display.ax_.get_lines() if line.get_linestyle() == ":"]


def test_the_line_is_at_the_C_chosen():
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.5
    X = rng.normal(size=(60, 2)) + 2 * y[:, None]
    model = MeasureSVCCV(Cs=[0.01, 0.1, 1.0, 10.0]).fit(X, y)
    display = EstimateDisplay.from_estimator(model, X, y, X, y)
    assert display.Cs[np.argmax(display.estimate)] != model.C_  # the choice has a slack
    assert display.chosen == model.C_
    assert marked(display) == [model.C_]
    mpl.pyplot.close(display.figure_)
    with pytest.raises(NotFittedError):
        EstimateDisplay.from_estimator(MeasureSVCCV(), X, y, X, y)


@pytest.mark.parametrize(
    ("estimate", "chosen", "line"),
    [
        ([0.5, 0.9, 0.7], None, [1.0]),
        ([np.nan, 0.6, 0.7], None, [10.0]),
        ([np.nan] * 3, None, []),
        ([0.5, 0.9, 0.7], 0.1, [0.1]),
    ],
)
def test_the_line_without_a_model(estimate, chosen, line):
    display = EstimateDisplay([0.1, 1.0, 10.0], estimate, [0.5, 0.6, 0.7], chosen=chosen).plot()
    assert marked(display) == line
    mpl.pyplot.close(display.figure_)


def test_learning_curves_on_a_grid_of_axes():
    display = LearningCurveDisplay([10, 20], {name: np.full((2, 4), 0.5) for name in "abcd"})
    figure, axes = mpl.pyplot.subplots(2, 2)
    display.plot(axes=axes)
    assert [ax.get_ylabel() for ax in axes.ravel()] == ["a (%)", "b (%)", "c (%)", "d (%)"]
    assert display.figure_ is figure
    mpl.pyplot.close(figure)


def test_every_C_has_the_threshold_that_it_was_judged_by():
    X, y = make_classification(120, 5, weights=[0.7], flip_y=0.1, random_state=1)
    model = MeasureSVCCV(Cs=[0.01, 0.1, 1.0, 10.0], cv=3).fit(X, y)
    display = EstimateDisplay.from_estimator(model, X, y, X, y)
    table, expected = model.cv_results_, []
    for C, estimate in zip(model.Cs_, display.estimate, strict=True):
        best = max(np.flatnonzero(table["param_C"] == C), key=lambda k: table["pooled_test_score"][k])
        assert estimate == table["pooled_test_score"][best]
        kind = "trained" if table["param_threshold"][best] == "trained" else "placed"
        losses = {name: float(table[f"param_{name}"][best]) for name in ("risk", "hinge", "logistic")}
        expected.append(MeasureSVC(C=C, threshold=kind, **losses).fit(X, y))
    np.testing.assert_allclose(display.holdout, [one.score(X, y) for one in expected])
    mpl.pyplot.close(display.figure_)
    with pytest.raises(TypeError, match="expected a fitted MeasureSVCCV, got MeasureSVC"):
        EstimateDisplay.from_estimator(expected[0], X, y, X, y)
