"""The rule of every linear model is ``X coef_ + intercept_ > 0``, wherever its threshold came from."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import reference as ref
from sklearn.tree import DecisionTreeClassifier
from test_cli import Capture, run, svmlight

from metrimax import CAPOClassifier, MeasureSVC, MeasureSVCCV, path
from metrimax.io.models import load_model
from metrimax.measure import REGISTRY

rng = np.random.default_rng(5)
y = rng.random(80) < 0.3
X = rng.normal(size=(80, 3)) + 0.7 * y[:, None]
new = rng.normal(size=(50, 3))
classes = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.5 * rng.normal(size=80), [-0.3, 0.6])]
several = np.column_stack([y, X[:, 1] > 1, X[:, 2] + rng.normal(size=80) > 1]).astype(int)
MEASURES = sorted(REGISTRY)
PLACED = {"hinge": 1.0, "threshold": "placed"}


def check(model: MeasureSVC) -> None:
    """What any tool for linear models computes from the attributes is what the model itself says."""
    scores = new @ model.coef_.T + model.intercept_
    own = model.decision_function(new)
    np.testing.assert_allclose(own, scores[:, 0] if own.ndim == 1 else scores, rtol=1e-12, atol=1e-12)
    if own.ndim == 1:
        called = model.classes_[(scores[:, 0] > 0).astype(int)]
    elif model._multilabel:
        called = (scores > 0).astype(int)
    else:
        called = model.classes_[scores.argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(new), called)
    np.testing.assert_array_equal(model.intercept_, model.trained_intercept_ - model.threshold_)


@pytest.mark.parametrize("options", [{}, PLACED, {"fit_intercept": False} | PLACED, {"intercept_scaling": 5.0}])
@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure(measure, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for target in (y, classes, several):
            model = MeasureSVC(measure, C=0.3, **options).fit(X, target)
            check(model)
            if not options.get("fit_intercept", True):
                np.testing.assert_array_equal(model.intercept_, -model.threshold_)


@pytest.mark.parametrize("measure", ["f1", "balanced_error", "roc_area", "prbep", "mcc", "error"])
@pytest.mark.parametrize("threshold", [None, "placed", "trained"])
def test_chosen_by_folds(measure, threshold):
    check(MeasureSVCCV(measure, Cs=[0.1, 1.0], threshold=threshold).fit(X, y))


def test_a_threshold_was_placed():
    """Otherwise nothing above shows anything."""
    for model in (MeasureSVC("f1", **PLACED), MeasureSVC("roc_area"), MeasureSVCCV("mcc", threshold="placed")):
        assert model.fit(X, y).threshold_.all()


@pytest.mark.parametrize("measure", ["f1", "roc_area"])
def test_the_certificate_keeps_its_point(measure):
    """J is that of the weights and the intercept that were trained, not of the rule."""
    model = MeasureSVC(measure, C=0.3, tol=1e-6, hinge=0, **({"threshold": "placed"} if measure == "f1" else {})).fit(
        X, y
    )
    assert model.threshold_.all()
    w = np.append(model.coef_, model.trained_intercept_)
    scores = X @ model.coef_[0] + model.trained_intercept_
    case = next((case for case in ref.CASES if case.name == measure), None)
    risk = ref.roc_risk(y, scores) if case is None else ref.risk_by_tables(case, y, scores)
    assert model.objective_ == pytest.approx(w @ w / 2 + 0.3 * model.price_ * len(y) * risk, rel=1e-9)


@pytest.mark.parametrize("measure", ["f1", "prbep", "roc_area"])
def test_kernels_and_adapted_classifiers(measure):
    kernel = MeasureSVC(measure, kernel="rbf", gamma=0.5, **PLACED).fit(X, y)
    distances = ((new[:, None] - X[kernel.support_]) ** 2).sum(axis=2)
    scores = np.exp(-0.5 * distances) @ kernel.kernel_coef_[0] + kernel.intercept_
    np.testing.assert_allclose(kernel.decision_function(new), scores, rtol=1e-10, atol=1e-10)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    adapted = CAPOClassifier([("tree", tree)], measure=measure, prefit=True).fit(X, y)
    f = 2.0 * tree.predict_proba(new)[:, 1] - 1
    scores = f * adapted.aux_weights_ + new @ adapted.coef_[0] + adapted.intercept_
    np.testing.assert_allclose(adapted.decision_function(new), scores, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_paths(fit_intercept):
    found = path(X, y, measure="roc_area", Cs=[0.1, 1.0], fit_intercept=fit_intercept)
    assert found.thresholds.all()
    np.testing.assert_allclose(found.decision_function(new), new @ found.coefs.T + found.intercepts, atol=1e-12)
    for k, C in enumerate(found.Cs):
        model = MeasureSVC("roc_area", C=C, hinge=0, fit_intercept=fit_intercept).fit(X, y)
        assert found.intercepts[k] == pytest.approx(model.intercept_[0], abs=0.1)


@pytest.mark.parametrize("extra", [[], ["--no-intercept"]])
@pytest.mark.parametrize("form", ["metrimax", "svmperf"])
def test_model_files(tmp_path: Path, capsys: Capture, form: str, extra: list[str]) -> None:
    (tmp_path / "data.svm").write_text(svmlight(X, ["1" if v else "-1" for v in y]))
    options = ["--measure", "f1", "--hinge", "1", "--threshold", "placed", "-C", "1", "--model-format", form, "-q"]
    run(capsys, "train", tmp_path / "data.svm", tmp_path / "m", *options, *extra)
    model = load_model(tmp_path / "m")
    python = MeasureSVC("f1", C=1.0, fit_intercept=not extra, **PLACED).fit(X, y)
    assert python.threshold_.all()
    np.testing.assert_allclose(model.scores(new)[:, 0], new @ model.coef[0] + model.intercept, atol=1e-12)
    np.testing.assert_allclose(model.intercept, python.intercept_, atol=1e-3)
    if form == "metrimax":
        np.testing.assert_allclose(model.trained_intercept, python.trained_intercept_, atol=1e-3)


def test_files_of_version_1_are_read_and_predict_as_before():
    """Written and asked by the version of the library that kept intercept and threshold apart."""
    model = load_model(Path(__file__).parent / "data" / "version_1.model")
    rows = np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 2.0], [0.5, 1.5, -0.25], [2.0, 2.0, 2.0]])
    before = [-1.257282839683195, 0.3371458658307964, 0.24438069990721156, 3.714535890990226]
    np.testing.assert_allclose(model.scores(rows)[:, 0], before, rtol=1e-12)
    assert model.threshold[0] != 0


def test_pickles_from_before_are_read():
    model = MeasureSVC("f1", **PLACED).fit(X, y)
    old = pickle.loads(pickle.dumps(model))
    state = old.__getstate__()
    state["intercept_"] = state.pop("trained_intercept_")
    again = MeasureSVC.__new__(MeasureSVC)
    again.__setstate__(state)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    check(again)
