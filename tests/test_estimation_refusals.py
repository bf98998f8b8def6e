"""What the estimates refuse: other machines, other samples, other data."""

from __future__ import annotations

import numpy as np
import pytest
from paper import PAPER
from retraining import draw
from scipy import sparse
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from metrimax import CAPOClassifier, CostModel, MeasureSVC, MeasureSVCCV, leave_one_out, xi_alpha


def test_refusals():
    X, y = draw(10, 30, 3, 1.0)
    model = MeasureSVC("error", solver="dual_cd").fit(X, y)
    with pytest.raises(ValueError, match="finite rho > 0"):
        xi_alpha(model, X, y, rho=0)
    with pytest.raises(ValueError, match="finite R2"):
        xi_alpha(model, X, y, R2=-1)
    for other in (X[:-1], X[::-1].copy()):
        with pytest.raises(ValueError, match=r"trained (on|with)"):
            xi_alpha(model, other, y[: len(other)])
    svc = SVC().fit(X, y)
    for n in (29, 30):
        with pytest.raises(ValueError, match="trained on"):
            xi_alpha(svc, X[:n], ~y[:n])
    with pytest.raises(ValueError, match="one label per row"):
        xi_alpha(model, X, y[:-1])
    with pytest.raises(ValueError, match="labels of both classes"):
        xi_alpha(model, X, np.arange(30))
    with pytest.raises(ValueError, match=r"sample_weight.shape"):
        xi_alpha(model, X, y, sample_weight=[1.0])
    with pytest.raises(ValueError, match="hinge losses"):
        xi_alpha(MeasureSVC("f1").fit(X, y), X, y)
    with pytest.raises(ValueError, match="hinge losses"):
        xi_alpha(LinearSVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="two classes"):
        xi_alpha(MeasureSVC("error", solver="dual_cd").fit(X, np.arange(30) % 3), X, np.arange(30) % 3)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CAPOClassifier([("a", DecisionTreeClassifier())], "error"), "got a CAPOClassifier with auxiliaries"),
        (MeasureSVC("balanced_error"), "got a MeasureSVC with logistic=3.0, .*: train with hinge=0"),
        (MeasureSVC("error", hinge=5.0), "got a MeasureSVC with hinge=5.0, .*: train with hinge=0"),
        (
            MeasureSVC("balanced_error", hinge=0, threshold="placed"),
            "a placed threshold, .*: train with threshold='trained'",
        ),
        (MeasureSVCCV("error", threshold="placed", Cs=[1.0], cv=2), "a placed threshold"),
    ],
)
@pytest.mark.parametrize("estimate", [xi_alpha, leave_one_out])
def test_other_machines_are_refused(estimate, model, message):
    """Not judged as the linear machine on X that they are not."""
    X, y = draw(10, 30, 3, 1.0)
    with pytest.raises(ValueError, match=message):
        estimate(model.fit(X, y), X, y)


def test_a_threshold_moved_at_fit_is_refused_whatever_the_parameter_says_now():
    X, y = draw(10, 60, 3, 0.5, positives=0.1)
    model = MeasureSVC("balanced_error", C=0.01, hinge=0, threshold="placed").fit(X, y)
    assert model.threshold_[0] != 0
    with pytest.raises(ValueError, match="placed threshold"):
        xi_alpha(model.set_params(threshold="trained"), X, y)


@pytest.mark.parametrize("solver", ["auto", "dual_cd"])
@pytest.mark.parametrize("measure", ["error", CostModel(2.0, 1.0), "balanced_error"])
def test_only_the_sample_that_was_trained_on(measure, solver):
    """Whatever else is given, the estimate would be that of another machine."""
    X, y = draw(3, 40, 3, 1.0)
    weight = np.random.default_rng(0).random(40) + 0.5
    model = MeasureSVC(measure, C=0.3, solver=solver, **PAPER).fit(X, y, weight)
    assert xi_alpha(model, X, y, sample_weight=weight).n_pos == y.sum()
    for other in ((X[:20], y[:20], weight[:20]), (X + 1, y, weight), (X, y, None), (X, y, 2 * weight)):
        with pytest.raises(ValueError, match="weights and parameters that the model was trained with"):
            xi_alpha(model, *other[:2], sample_weight=other[2])
    with pytest.raises(ValueError, match="X has 2 features, but MeasureSVC is expecting 3"):
        xi_alpha(model, X[:, :2], y, sample_weight=weight)
    without = MeasureSVC(measure, solver=solver, fit_intercept=False, intercept_scaling=0.0, **PAPER).fit(X, y)
    assert xi_alpha(without, X, y).n_pos == y.sum()
    model.set_params(C=3.0)
    with pytest.raises(ValueError, match="parameters that the model was trained with"):
        leave_one_out(model, X, y, sample_weight=weight)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_only_the_sample_that_an_svc_was_trained_on(form):
    X, y = draw(3, 40, 3, 1.0)
    weight = np.random.default_rng(0).random(40) + 0.5
    model = SVC(C=0.3).fit(form(X), y, weight)
    assert xi_alpha(model, form(X), y, sample_weight=weight).n_pos == y.sum()
    for other in ((X + 1, weight), (X, None), (X, 0.1 * weight)):
        with pytest.raises(ValueError, match="the sample that the model was trained on"):
            xi_alpha(model, form(other[0]), y, sample_weight=other[1])


def test_a_pipeline_is_told_to_give_its_last_step():
    X, y = draw(3, 40, 3, 1.0)
    model = make_pipeline(StandardScaler(), MeasureSVC("error")).fit(X, y)
    with pytest.raises(ValueError, match=r"got a pipeline: give its last step, model\[-1\], and model"):
        xi_alpha(model, X, y)
    assert 0 < xi_alpha(model[-1], model[:-1].transform(X), y).error < 1


@pytest.mark.parametrize("model", [KNeighborsClassifier(), SVR()])
def test_models_that_are_no_dual_view(model):
    X, y = draw(3, 40, 3, 1.0)
    with pytest.raises(ValueError, match=rf"(?s)got {type(model).__name__}.*: the estimate is for hinge losses"):
        xi_alpha(model.fit(X, y), X, y)
