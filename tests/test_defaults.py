"""What `MeasureSVC` trains where hinge, logistic and threshold are left to the library."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from paper import PAPER

from metrimax import CostModel, FBeta, MeasureSVC, MeasureSVCCV, PrecisionAtK, verify
from metrimax.measure import REGISTRY, ContingencyMeasure, get_measure
from metrimax.measure.base_loss import wants_base_loss
from metrimax.measure.table_oracle import ContingencyOracle

rng = np.random.default_rng(1)
y = np.arange(300) < 40
X = rng.normal(size=(300, 4)) + 0.5 * y[:, None]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("measure", [*sorted(REGISTRY), CostModel(fn=3), PrecisionAtK(20, labellings="at_least")])
def test_a_logistic_loss_stands_beside_every_risk_but_that_of_the_error_rate(measure):
    model = MeasureSVC(measure, C=0.5).fit(X, y)
    plain = measure in ("error", "cost")  # equal costs count errors
    assert model.trained_with_["logistic"] == (0 if plain else 3)
    assert model.trained_with_["hinge"] == 0
    assert model.trained_with_["intercept_scaling"] == (1 if plain else 10)
    assert model.coef_.any()
    ranks = not isinstance(measure, CostModel) and (not isinstance(measure, str) or REGISTRY[measure].ranks)
    assert model.trained_with_["threshold"] == ("trained" if plain or ranks else "auto")
    assert verify(model, X, y)
    again = MeasureSVC(measure, **model.trained_with_).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("given", [{"hinge": 0}, {"logistic": 0}, {"hinge": 0, "logistic": 0}])
@pytest.mark.parametrize("measure", ["f1", "balanced_error", "roc_area", "prbep"])
def test_a_weight_that_is_given_leaves_the_other_at_zero(measure, given):
    model = MeasureSVC(measure, threshold="trained", **given).fit(X, y)
    assert (model.trained_with_["hinge"], model.trained_with_["logistic"]) == (0, 0)
    np.testing.assert_array_equal(model.coef_, MeasureSVC(measure, **PAPER).fit(X, y).coef_)
    assert MeasureSVC(measure, hinge=2.0).fit(X, y).trained_with_["logistic"] == 0


@pytest.mark.parametrize("solver", ["bundle", "hybrid", "cutting_plane", "lbfgs", "agm"])
@pytest.mark.parametrize("measure", ["f1", "balanced_error", "roc_area"])
def test_the_solver_does_not_change_the_problem(measure, solver):
    model, other = (MeasureSVC(measure, solver=name, tol=1e-4).fit(X, y) for name in ("auto", solver))
    assert other.trained_with_ == model.trained_with_
    assert other.dual_bound_ <= model.objective_ * (1 + 1e-12)
    assert model.dual_bound_ <= other.objective_ * (1 + 1e-12)


def test_coordinate_descent_solves_sums_of_hinges_only():
    model = MeasureSVC("balanced_error", solver="dual_cd").fit(X, y)
    assert model.trained_with_.items() >= {"hinge": 0, "logistic": 0, "threshold": "trained"}.items()
    assert model.dual_coef_.shape == (1, 300)
    with pytest.raises(ValueError, match="mistakes add up"):
        MeasureSVC("f1", solver="dual_cd").fit(X, y)


def test_of_several_classes_the_highest_score_is_called_and_no_threshold_is_placed():
    classes = np.digitize(X[:, 0], [-0.5, 0.8])
    assert MeasureSVC("f1").fit(X, classes).trained_with_["threshold"] == "trained"
    assert MeasureSVC("f1").fit(X, np.column_stack([y, classes == 1]).astype(int)).trained_with_["threshold"] == "auto"


def test_weights_are_repetition():
    times = rng.integers(0, 4, 300)
    weighted = MeasureSVC("f1", tol=1e-6).fit(X, y, times)
    repeated = MeasureSVC("f1", tol=1e-6).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    assert weighted.threshold_ == pytest.approx(repeated.threshold_, abs=1e-2)
    balanced = MeasureSVC("f1", class_weight="balanced").fit(X, y)
    assert balanced.score(X, y) > 0.3
    assert verify(balanced, X, y)


def test_the_risk_left_out_is_logistic_regression():
    """With risk=0 alone the default loss stays."""
    from sklearn.linear_model import LogisticRegression

    model = MeasureSVC("f1", C=0.1, risk=0.0, fit_intercept=False, tol=1e-8, threshold="trained").fit(X, y)
    other = LogisticRegression(C=0.3, fit_intercept=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="expected a loss to train"):
        MeasureSVC("error", risk=0.0).fit(X, y)


def test_no_rule_of_another_name():
    with pytest.raises(ValueError, match="unknown threshold 'folds': expected one of trained, placed, auto, or None"):
        MeasureSVC("f1", threshold="folds").fit(X, y)


@pytest.mark.parametrize(("estimator", "samples"), [(MeasureSVC, 1), (MeasureSVCCV, 6)])
def test_one_oracle_of_the_measure_for_each_sample_trained_on(estimator, samples, monkeypatch):
    """All rows, and for the choice the five folds: none more, whatever the losses and C, and none to look at F1."""
    made = []

    class Counted(FBeta):
        def oracle(self, y, sample_weight=None):
            made.append(len(y))
            return super().oracle(y, sample_weight)

    class Probe(ContingencyOracle):
        def __init__(self, *sample):
            built.append(sample)
            super().__init__(*sample)

    built = []
    for module in ("contingency", "base_loss"):
        monkeypatch.setattr(f"metrimax.measure.{module}.ContingencyOracle", Probe, raising=False)
    estimator(Counted()).fit(X, y)
    assert len(made) == len(built) == samples
    assert made[-1] == len(y)


@pytest.mark.parametrize("measure", [*sorted(REGISTRY), CostModel(fn=3), CostModel(fn=2, fp=2), FBeta(0.1)])
def test_a_measure_that_counts_errors_is_known_by_its_table(measure):
    measure = get_measure(measure)
    if measure.ranks or not isinstance(measure, ContingencyMeasure):
        return
    margins = ContingencyOracle(measure, np.arange(12) < 5).margins
    assert wants_base_loss(measure) == (margins is None or not np.isclose(*margins))
