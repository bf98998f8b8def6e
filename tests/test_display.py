"""The displays hold data only, and draw it."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrimax import MeasureSVC, MeasureSVCCV
from metrimax.display import (
    CoefficientDisplay,
    ConvergenceDisplay,
    EstimateDisplay,
    LearningCurveDisplay,
    OperatingPointDisplay,
    PathDisplay,
    ReliabilityDisplay,
    ThresholdDisplay,
)

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
    options = {"selection": "xi_alpha", "scoring": "f1", "tol": 1e-6}  # two fits within 1e-3 may differ by an example
    model = MeasureSVCCV("error", Cs=[0.01, 0.1, 1.0], **options).fit(X[:100], y[:100])
    display = EstimateDisplay.from_estimator(model, X[:100], y[:100], X[100:], y[100:])
    np.testing.assert_array_equal(display.estimate, model.cv_results_["mean_test_score"])
    best = int(np.argmax(display.estimate))
    assert display.holdout[best] == pytest.approx(model.score(X[100:], y[100:]))
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


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    return rng.normal(size=(n, 3)) + y[:, None], np.where(y, "yes", "no")


def test_the_threshold_curve_is_the_measure_at_each_threshold():
    rng = np.random.default_rng(1)
    y, scores, fold = rng.random(60) < 0.4, rng.normal(size=60).round(1), np.arange(60) % 3
    display = ThresholdDisplay.from_predictions(y, scores, measure="f1", threshold=0.3, fold=fold)
    for threshold, value, *folds in zip(display.thresholds, display.values, *display.folds, strict=True):
        assert value == pytest.approx(f1_score(y, scores > threshold, zero_division=0))
        for k, one in enumerate(folds):
            assert one == pytest.approx(f1_score(y[fold == k], scores[fold == k] > threshold, zero_division=0))
    assert marked(display) == [0.3]
    mpl.pyplot.close(display.figure_)
    with pytest.raises(ValueError, match="judges a ranking and knows no threshold"):
        ThresholdDisplay.from_predictions(y, scores, measure="roc_area")


def test_the_curve_passes_through_the_threshold_chosen():
    """Also where a part of all places is drawn."""
    rng = np.random.default_rng(2)
    y = rng.random(3000) < 0.05
    scores = rng.normal(size=3000) + y
    display = ThresholdDisplay.from_predictions(y, scores, threshold=0.8)
    assert len(display.thresholds) < 500
    at = np.flatnonzero(display.thresholds == 0.8)
    assert display.values[at] == pytest.approx(f1_score(y, scores > 0.8))
    mpl.pyplot.close(display.figure_)


def test_the_threshold_of_a_model_and_its_folds():
    X, y = rows()
    model = MeasureSVC("f1", C=1.0).fit(X, y)
    display = ThresholdDisplay.from_estimator(model, X, y, cv=4)
    assert display.folds.shape == (4, len(display.thresholds))
    display = ThresholdDisplay.from_estimator(model, X, y)
    at_zero = display.values[np.searchsorted(display.thresholds, 0.0) - 1 :][:2]
    assert model.score(X, y) in [pytest.approx(value) for value in at_zero]
    theirs = LogisticRegression().fit(X, y)
    assert OperatingPointDisplay.from_estimator(theirs, X, y).point is not None
    mpl.pyplot.close("all")


def test_the_operating_point_is_that_of_predict():
    X, y = rows()
    model = MeasureSVC("f1", C=1.0).fit(X[:100], y[:100])
    display = OperatingPointDisplay.from_estimator(model, X[100:], y[100:])
    called = model.predict(X[100:])
    expected = [score(y[100:], called, pos_label="yes") for score in (recall_score, precision_score)]
    np.testing.assert_allclose(display.point, expected)
    assert any(np.allclose(pair, expected) for pair in zip(display.recall, display.precision, strict=True))
    mpl.pyplot.close(display.figure_)
    with pytest.raises(ValueError, match="expected y with two classes"):
        OperatingPointDisplay.from_predictions([0, 1, 2], [0.1, 0.2, 0.3])


def test_convergence_of_one_label_and_of_several():
    X, y = rows()
    model = MeasureSVC("f1", C=1.0).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model)
    upper, lower = (line.get_ydata() for line in display.ax_.get_lines())
    assert upper[-1] - lower[-1] == pytest.approx(model.history_[-1].gap)
    several = MeasureSVC("f1", C=1.0).fit(X, np.column_stack([y == "yes", X[:, 0] > 1]))
    assert len(ConvergenceDisplay.from_estimator(several).ax_.get_lines()) == 2
    mpl.pyplot.close("all")


def test_the_path_has_every_candidate():
    X, y = rows()
    model = MeasureSVCCV("f1", Cs=[0.1, 1.0], cv=3).fit(X, y)
    display = PathDisplay.from_estimator(model)
    drawn = sorted(score for curve in display.curves.values() for score in curve[:, 1])
    np.testing.assert_allclose(drawn, np.sort(model.cv_results_["pooled_test_score"]))
    assert marked(display) == [model.C_]
    mpl.pyplot.close(display.figure_)


def test_coefficients_carry_their_names():
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = MeasureSVC("f1", C=1.0).fit(frame, y)
    display = CoefficientDisplay.from_estimator(model, largest=2)
    expected = dict(zip("abc", model.coef_[0], strict=True))
    assert dict(zip(display.names, display.coefficients, strict=True)).items() <= expected.items()
    assert min(expected, key=lambda name: abs(expected[name])) not in display.names
    piped = CoefficientDisplay.from_estimator(make_pipeline(StandardScaler(), MeasureSVC(pos_label="no")).fit(frame, y))
    assert sorted(piped.names) == ["a", "b", "c"]
    assert piped.ax_.get_xlabel() == "coefficient, towards yes"  # coef_ is for the second class, whatever pos_label
    several = MeasureSVC("f1").fit(frame, np.where(X[:, 1] > 1, "else", y))
    assert CoefficientDisplay.from_estimator(several, label=1).ax_.get_xlabel() == "coefficient, towards no"
    mpl.pyplot.close("all")
    with pytest.raises(TypeError, match="expected a linear model"):
        CoefficientDisplay.from_estimator(MeasureSVC(kernel="rbf").fit(X, y))


def test_reliability():
    display = ReliabilityDisplay.from_predictions([0, 1, 0, 1, 1, 1], [0.1, 0.3, 0.2, 0.8, 0.9, 0.7], n_bins=2)
    np.testing.assert_allclose([display.predicted, display.observed, display.counts], [[0.2, 0.8], [1 / 3, 1], [3, 3]])
    mpl.pyplot.close(display.figure_)
    X, y = rows()
    model = LogisticRegression().fit(X, y)
    usual, other = (ReliabilityDisplay.from_estimator(model, X, y, pos_label=one) for one in (None, "no"))
    np.testing.assert_allclose(other.observed[::-1], 1 - usual.observed)
    np.testing.assert_allclose(other.predicted[::-1], 1 - usual.predicted)
    mpl.pyplot.close("all")
    with pytest.raises(ValueError, match="expected pos_label among the classes"):
        ReliabilityDisplay.from_estimator(model, X, y, pos_label="none")
    with pytest.raises(TypeError, match="CalibratedClassifierCV"):
        ReliabilityDisplay.from_estimator(MeasureSVC("f1", C=1.0).fit(X, y), X, y)
    with pytest.raises(ValueError, match="expected probabilities from 0 to 1"):
        ReliabilityDisplay.from_predictions([0, 1], [-1.0, 2.0])


def test_the_curve_of_a_constraint_is_zero_where_it_is_broken():
    rng = np.random.default_rng(0)
    y = rng.random(80) < 0.4
    scores = rng.normal(size=80) + y
    display = ThresholdDisplay.from_predictions(y, scores, measure="recall@precision=0.8")
    expected = [
        recall_score(y, scores > t) if precision_score(y, scores > t, zero_division=1) >= 0.8 else 0
        for t in display.thresholds
    ]
    np.testing.assert_allclose(display.values, expected)
    assert 0 < np.count_nonzero(display.values) < len(display.values)


@pytest.mark.parametrize("searched", [False, True])
def test_a_pipeline_is_drawn_as_the_model_inside(searched):
    """With its measure and its positive class."""
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = make_pipeline(StandardScaler(), MeasureSVCCV("mcc", Cs=[0.1, 1.0], cv=3, pos_label="no")).fit(frame, y)
    inside, Z = model[-1], model[0].transform(frame)
    if searched:
        model = GridSearchCV(model, {"measuresvccv__Cs": [[0.1, 1.0]]}, cv=2).fit(frame, y)
    found, expected = (ThresholdDisplay.from_estimator(*two, y) for two in ((model, frame), (inside, Z)))
    assert found.name == "mcc"
    np.testing.assert_array_equal(found.values, expected.values)
    found, expected = (OperatingPointDisplay.from_estimator(*two, y) for two in ((model, frame), (inside, Z)))
    assert found.point == expected.point
    assert found.point[0] == recall_score(y, inside.predict(Z), pos_label="no")
    assert found.name == "MeasureSVCCV"
    assert sorted(CoefficientDisplay.from_estimator(model).names) == ["a", "b", "c"]
    assert len(ConvergenceDisplay.from_estimator(model).histories[0]) == len(inside.history_)
    assert PathDisplay.from_estimator(model).chosen == inside.C_
    mpl.pyplot.close("all")
