"""Which class is positive: of two names the greater one, and users are told where it is hardly the one they mean."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from metrimax import CAPOClassifier, CostModel, MeasureSVC, MeasureSVCCV, measures
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
        assert str(one.message).endswith("train on y == 'fraud'")
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
