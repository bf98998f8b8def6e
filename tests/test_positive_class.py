"""Which class is positive: of two names the greater one, and users are told where it is hardly the one they mean."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from metrimax import (
    CAPOClassifier,
    CAPOClassifierCV,
    CostModel,
    MeasureEnsemble,
    MeasureSVC,
    MeasureSVCCV,
    measures,
    verify,
    xi_alpha,
)
from metrimax.cli import main

ONE_SIDED = {
    "average_precision",
    "cost",
    "f1",
    "fbeta",
    "jaccard",
    "ndcg",
    "partial_auc",
    "prbep",
    "precision_at_k",
    "precision_at_recall",
    "q",
    "recall_at_budget",
    "recall_at_k",
    "recall_at_precision",
    "tpr_at_fpr",
}


@pytest.mark.parametrize("name", sorted(measures()))
def test_a_positive_class_that_is_hardly_meant_is_said(binary, name):
    """Of two names the greater one is positive, and F1 of the many honest customers says little of the frauds."""
    X, y = binary
    assert y.mean() < 0.5
    measure = CostModel(fn=1, fp=5) if name == "cost" else name
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MeasureSVC(measure).fit(X, np.where(y, "fraud", "legit"))
    told = [warning for warning in caught if "positive class" in str(warning.message)]
    assert len(told) == (name in ONE_SIDED)
    for one in told:
        assert "the positive class is 'legit'" in str(one.message)
        assert str(one.message).endswith("set pos_label='fraud'")
        assert one.filename == __file__


def test_a_positive_class_that_is_meant_is_not_doubted(binary):
    X, y = binary[0], binary[1] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for labels in (~y, np.where(y, 0, 1), np.where(y, "spam", "ham"), np.where(y, "fraud", "legit") == "fraud"):
            MeasureSVC(measure="f1", hinge=1).fit(X, labels)
        MeasureSVC("f1", hinge=1).fit(X, np.column_stack([~y, y]))
        MeasureSVC("f1", hinge=1).fit(X, np.where(X[:, 0] > 1, "fraud", np.where(y, "known", "legit")))


def test_others_say_so_too(binary, capsys, tmp_path):
    X, y = binary
    names = np.where(y, "fraud", "legit")
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    for estimator in (
        MeasureSVCCV("f1", Cs=[1.0], cv=2),
        MeasureSVCCV("error", scoring="f1", selection="xi_alpha", Cs=[1.0]),
        CAPOClassifier([("tree", tree)], "f1"),
        MeasureSVC(_jaccard),
        MeasureSVC("f1", class_weight="balanced"),
    ):
        with pytest.warns(UserWarning, match="positive class is 'legit'") as caught:
            estimator.fit(X, names)
        assert len(caught) == 1
    table = tmp_path / "table.csv"
    pd.DataFrame(X).assign(y=names).to_csv(table, index=False)
    assert main(["train", str(table), str(tmp_path / "model")]) == 0
    assert "to make that one positive, give --positive fraud" in capsys.readouterr().err
    assert main(["train", str(table), str(tmp_path / "model"), "--positive", "legit"]) == 0
    assert "positive class" not in capsys.readouterr().err


def _jaccard(tp, fp, fn, tn):
    return tp / (tp + fp + fn)


def _models(**parameters):
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    return [
        MeasureSVC("f1", logistic=1, **parameters),
        MeasureSVC("f1", kernel="rbf", C=1, **parameters),
        MeasureSVC("prbep", **parameters),
        MeasureSVCCV("f1", Cs=[0.1, 1], cv=3, **parameters),
        CAPOClassifier([("tree", tree)], "f1", **parameters),
        CAPOClassifierCV([("tree", tree)], "f1", Cs=[1.0], Bs=[1.0], cv=2, **parameters),
        MeasureEnsemble("f1", [("tree", tree), ("line", LogisticRegression())], random_state=0, **parameters),
    ]


@pytest.mark.parametrize("k", range(7))
def test_pos_label_trains_as_a_comparison_does(binary, k):
    """The same rule as with y == "fraud", and scikit-learn's order of classes and meaning of scores."""
    X, y = binary[0], np.where(binary[1] > 0, "fraud", "legit")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*positive class")
        named, plain = _models(pos_label="fraud")[k].fit(X, y), _models()[k].fit(X, y == "fraud")
    assert named.classes_.tolist() == ["fraud", "legit"]
    np.testing.assert_allclose(named.decision_function(X), -plain.decision_function(X), atol=1e-9)
    assert ((named.predict(X) == "fraud") == plain.predict(X)).all()
    assert named.score(X, y) == pytest.approx(plain.score(X, y == "fraud"))
    top = named.predict_top_k(X, 5) == "fraud"
    assert top.sum() == 5
    assert (top == plain.predict_top_k(X, 5)).all()
    if hasattr(named, "coef_") and not isinstance(named, CAPOClassifier):
        np.testing.assert_allclose(X @ named.coef_[0] + named.intercept_, named.decision_function(X), atol=1e-9)
    if hasattr(named, "aux_weights_"):
        np.testing.assert_allclose(named.aux_weights_, plain.aux_weights_, atol=1e-9)
    if hasattr(named, "oof_scores_"):
        np.testing.assert_allclose(named.predict_proba(X)[:, 0], plain.predict_proba(X)[:, 1])
        np.testing.assert_allclose(named.oof_scores_, -plain.oof_scores_)
    elif not isinstance(named, CAPOClassifier):
        assert verify(named, X, y)
    other = clone(named).set_params(pos_label="legit").fit(X, y)
    assert other.classes_.tolist() == ["fraud", "legit"]
    assert other.score(X, y) == pytest.approx(clone(named).set_params(pos_label=None).fit(X, y).score(X, y))


@pytest.mark.parametrize("k", [0, 3, 4, 6])
def test_scikit_learn_understands_scores_with_pos_label(binary, k):
    """Its scorers and its calibration take the scores for those of the second class."""
    X, y = binary[0], np.where(binary[1] > 0, "fraud", "legit")
    model = _models(pos_label="fraud")[k]
    assert cross_val_score(model, X, y, scoring="roc_auc", cv=3).mean() > 0.7
    scorer = make_scorer(f1_score, pos_label="fraud")
    fitted = model.fit(X, y)
    assert scorer(fitted, X, y) == pytest.approx(fitted.score(X, y))
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X, y)
    assert roc_auc_score(y == "fraud", calibrated.predict_proba(X)[:, 0]) > 0.7
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model), {f"{type(model).__name__.lower()}__measure": ["f1"]}, cv=2
    )
    assert 0 < search.fit(X, y).best_score_ <= 1


@pytest.mark.parametrize("k", [0, 3, 4, 6])
def test_a_pos_label_that_there_is_not_is_refused(binary, k):
    X, y = binary[0], np.where(binary[1] > 0, "fraud", "legit")
    model = _models(pos_label="frauds")[k]
    for labels in (y, np.where(X[:, 0] > 1, "other", y), np.column_stack([y == "fraud", y == "legit"])):
        with pytest.raises(
            ValueError, match=r"expected pos_label as one of two classes, got 'frauds' with (the|several)"
        ):
            clone(model).fit(X, labels)


def test_estimates_want_the_greater_class(binary):
    X, y = binary[0], np.where(binary[1] > 0, "fraud", "legit")
    model = MeasureSVC("error", pos_label="fraud").fit(X, y)
    with pytest.raises(ValueError, match="expected a model without pos_label, got pos_label='fraud'"):
        xi_alpha(model, X, y)


def test_displays_draw_the_positive_class(binary):
    display = pytest.importorskip("metrimax.display")
    X, y = binary[0], np.where(binary[1] > 0, "fraud", "legit")
    named, plain = MeasureSVC("f1", logistic=1, pos_label="fraud").fit(X, y), MeasureSVC("f1", logistic=1)
    plain.fit(X, y == "fraud")
    one = display.ThresholdDisplay.from_estimator(named, X, y)
    other = display.ThresholdDisplay.from_estimator(plain, X, y == "fraud")
    np.testing.assert_allclose(one.thresholds, other.thresholds, atol=1e-9)
    np.testing.assert_allclose(one.values, other.values, atol=1e-9)
