"""`CAPOClassifierCV`: one training of each auxiliary per fold, and the choice that the folds make."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from metrimax import CAPOClassifier, CAPOClassifierCV, MeasureSVC
from metrimax.measure import get_measure
from metrimax.training.threshold import choose_threshold

rng = np.random.default_rng(3)
X = rng.normal(size=(300, 3))
y = (X**2).sum(axis=1) + 0.5 * rng.normal(size=300) > 5
AUX = [("tree", DecisionTreeClassifier(max_depth=3, random_state=0)), ("svc", SVC())]


class Counted(ClassifierMixin, BaseEstimator):
    """Counts its fits."""

    fits = 0

    def fit(self, X, y):
        Counted.fits += 1
        self.inner_ = GaussianNB().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)


def test_each_auxiliary_is_trained_once_per_fold():
    Counted.fits = 0
    CAPOClassifierCV([("nb", Counted())], Cs=[0.1, 1.0, 10.0], Bs=[0.1, 1.0], cv=4).fit(X, y)
    assert Counted.fits == 5


@pytest.mark.parametrize("delta", ["linear", None, "rbf"])
def test_the_choice_is_that_of_the_folds(delta):
    """Every row of `cv_results_`, from `MeasureSVC` on the outputs of the folds as columns."""
    cv = StratifiedKFold(3)
    model = CAPOClassifierCV([("svc", SVC())], Cs=[0.1, 1.0], Bs=[0.2, 1.0], cv=cv, delta=delta, tol=1e-6).fit(X, y)
    table = model.cv_results_
    assert len(table["param_B"]) == 2 * 2 * 2 * 2
    f1, f = get_measure("f1"), cross_val_predict(SVC(), X, y, cv=cv, method="decision_function")
    if delta != "rbf":
        for row in range(len(table["param_B"])):
            B, C = (table[f"param_{name}"][row] for name in ("B", "C"))
            losses = {name: float(table[f"param_{name}"][row]) for name in ("risk", "hinge", "logistic")}
            Z = f[:, None] / np.sqrt(B) if delta is None else np.column_stack([f / np.sqrt(B), X])
            scores = np.empty(300)
            for train, test in cv.split(X, y):
                plain = MeasureSVC("f1", C=C, threshold="trained", tol=1e-6, **losses).fit(Z[train], y[train])
                scores[test] = plain.decision_function(Z[test])
            if table["param_threshold"][row] == "folds":
                scores -= choose_threshold(f1, y, scores)
            assert table["pooled_test_score"][row] == pytest.approx(f1.score(y, scores), abs=0.02)
    assert model.best_score_ == pytest.approx(np.max(table["pooled_test_score"]), abs=1e-6)
    chosen = {name: model.trained_with_[name] for name in ("C", "B")}
    assert (chosen["C"], chosen["B"]) == (model.C_, model.B_)
    losses = {name: model.trained_with_[name] for name in ("risk", "hinge", "logistic", "balanced")}
    rule = {"threshold": "trained"}
    same = CAPOClassifier([("svc", SVC())], cv=cv, delta=delta, outputs="score", tol=1e-6, **chosen, **losses, **rule)
    assert model.objective_ == pytest.approx(same.fit(X, y).objective_, rel=1e-6)
    assert model.report_["changed"]


def test_of_equal_values_the_B_nearest_to_1_is_taken():
    easy = X[:, [0]] + 5 * np.where(y, 1.0, -1.0)[:, np.newaxis]  # every candidate scores 1
    model = CAPOClassifierCV([("nb", GaussianNB())], Cs=[1.0], cv=3).fit(easy, y)
    assert model.best_score_ == 1
    assert model.B_ == 1


def test_the_best_auxiliaries_are_kept():
    noise = ("noise", DecisionTreeClassifier(max_depth=1, max_features=1, splitter="random", random_state=1))
    model = CAPOClassifierCV([noise, *AUX], Cs=[1.0], Bs=[1.0], keep=2, cv=3).fit(X, y)
    assert list(model.named_estimators_) == ["tree", "svc"]
    assert set(model.report_["before"]) == {"tree", "svc"}
    out = {n: f1_score(y, cross_val_predict(clone(a), X, y, cv=3)) for n, a in (noise, *AUX)}
    assert sorted(out, key=out.get)[0] == "noise"
    assert model.predict(X).shape == (300,)
    wide = np.column_stack([rng.normal(size=300), np.where(y, 1.0, -1.0), X])
    by_column = CAPOClassifierCV([("bad", 0), ("good", 1)], Cs=[1.0], Bs=[1.0], keep=1).fit(wide, y)
    assert list(by_column.named_estimators_) == ["good"]
    assert by_column.coef_.shape == (1, 3)
    assert by_column.score(wide, y) == 1.0


def test_the_grid_is_extended_while_the_best_is_on_its_border():
    options = {"Bs": [0.5, 2.0], "cv": 3, "hinge": 0, "threshold": "trained"}
    given = CAPOClassifierCV(AUX, Cs=[1e-6, 1e-5], **options).fit(X, y)
    assert set(given.cv_results_["param_C"]) == {1e-6, 1e-5}
    extended = CAPOClassifierCV(AUX, Cs=[1e-6, 1e-5], extend=True, **options).fit(X, y)
    assert extended.best_score_ > given.best_score_
    for B in (0.5, 2.0):
        own = extended.cv_results_["param_B"] == B
        Cs, scores = (extended.cv_results_[name][own] for name in ("param_C", "pooled_test_score"))
        np.testing.assert_allclose(Cs, 10.0 ** np.arange(-6, len(Cs) - 6))
        assert scores.argmax() < len(Cs) - 1 or len(Cs) == 12, "it ends inside, or after ten steps"


def test_several_classes_labels_and_fitted_auxiliaries():
    classes = np.array(["a", "b", "c"])[np.digitize((X**2).sum(axis=1), [2, 4])]
    options = {"Cs": [0.1, 1.0], "Bs": [1.0], "cv": 3}
    many = CAPOClassifierCV(AUX, **options).fit(X, classes)
    assert many.score(X, classes) > 0.6
    assert isinstance(many.C_, float)
    Y = np.column_stack([y, X[:, 0] > 0]).astype(int)
    labels = CAPOClassifierCV([AUX[0]], **options).fit(X, Y)
    assert labels.C_.shape == (2,)
    assert labels.predict(X).shape == (300, 2)
    fitted = clone(AUX[0][1]).fit(X[:150], y[:150])
    prefit = CAPOClassifierCV([("tree", fitted)], prefit=True, **options).fit(X[150:], y[150:])
    assert prefit.estimators_[0] is fitted


def test_rare_classes_that_overlap():
    made = np.random.default_rng(0)
    rare = made.random(1200) < 0.08
    Z = made.normal(size=(1200, 4)) + 0.9 * rare[:, None]
    train, test = np.arange(1200) < 600, np.arange(1200) >= 600
    model = CAPOClassifierCV([("forest", RandomForestClassifier(20, random_state=0))], cv=3).fit(Z[train], rare[train])
    alone = f1_score(rare[test], model.estimators_[0].predict(Z[test]))
    assert model.score(Z[test], rare[test]) > alone + 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": 0}, "keep"),
        ({"Bs": [0.0]}, "0"),
        ({"Cs": []}, "C"),
        ({"extend": "yes"}, "expected extend as True or False"),
        ({"cv": None}, "expected cv with at least 2 folds"),
        ({"threshold": "best"}, "unknown threshold 'best'"),
        ({"outputs": "proba"}, "outputs as one of"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        CAPOClassifierCV([("lr", LogisticRegression())], **options).fit(X, y)


@parametrize_with_checks(
    [CAPOClassifierCV([("tree", DecisionTreeClassifier(max_depth=3, random_state=0))], Cs=[1.0], Bs=[1.0], cv=2)]
)
def test_scikit_learns_own_checks(estimator, check):
    if "check_sample_weight_equivalence" in str(check):
        pytest.skip("rows that are repeated fall into other folds")
    if "check_class_weight_classifiers" in str(check):  # F1 of a class without weight is best where all are called
        estimator.set_params(measure="error")
    check(estimator)
