"""scikit-learn's own checks, metadata routing and stores for `MeasureEnsemble`."""

from __future__ import annotations

import io

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_class_weight_classifiers, parametrize_with_checks

from metrimax import MeasureEnsemble

MEMBERS = [("tree", DecisionTreeClassifier(max_depth=5)), ("linear", LogisticRegression())]

COPIES = "folds are drawn over rows: copies of a row fall into other folds"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": COPIES for kind in ("dense", "sparse")}
EXPECTED["check_class_weight_classifiers"] = "F1 of a class that weighs next to nothing is best where all are called"


def few(**changes):
    return MeasureEnsemble(**{"estimators": MEMBERS, "cv": 3, "random_state": 0} | changes)


def sample(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] ** 2 + X[:, 1] > 1


@parametrize_with_checks([few()], expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_class_weights_by_scikit_learns_check():
    check_class_weight_classifiers("MeasureEnsemble", few(measure="error"))


@pytest.fixture
def routing():
    sklearn.set_config(enable_metadata_routing=True)
    yield
    sklearn.set_config(enable_metadata_routing=False)


class Noted(LogisticRegression):
    """Notes down the weights that it is given."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = sample_weight
        return super().fit(X, y, sample_weight)


def test_routing_of_weights_and_groups(routing):
    X, y = sample()
    weight, groups = np.random.default_rng(0).random(len(y)), np.arange(len(y)) // 5
    asked = Noted().set_fit_request(sample_weight=True)
    spared = Noted().set_fit_request(sample_weight=False)
    model = few(estimators=[("asked", asked), ("spared", spared)], cv=GroupKFold(3))
    model.set_fit_request(sample_weight=True, groups=True).set_score_request(sample_weight=True)
    model.fit(X, y, sample_weight=weight, groups=groups)
    ratio = model.named_estimators_["asked"][0][0].seen_
    train = next(GroupKFold(3).split(X, y, groups))[0]
    np.testing.assert_allclose(ratio / ratio[0], weight[train] / weight[train][0])
    assert model.named_estimators_["spared"][0][0].seen_ is None
    scores = cross_validate(model, X, y, cv=GroupKFold(3), params={"groups": groups, "sample_weight": weight})
    assert np.isfinite(scores["test_score"]).all()


def test_presets_get_weights_with_routing(routing):
    X, y = sample()
    weight = np.where(y, 5.0, 1.0)
    model = MeasureEnsemble("error", estimators="fast", cv=2, random_state=0).set_fit_request(sample_weight=True)
    routed = model.fit(X, y, sample_weight=weight).oof_scores_
    sklearn.set_config(enable_metadata_routing=False)
    plain = MeasureEnsemble("error", estimators="fast", cv=2, random_state=0).fit(X, y, weight)
    np.testing.assert_allclose(routed, plain.oof_scores_)


def test_groups_reach_a_number_of_folds_with_routing(routing):
    X, y = sample()
    groups = np.arange(len(y)) // 5
    routed = few().fit(X, y, groups=groups).oof_scores_
    sklearn.set_config(enable_metadata_routing=False)
    np.testing.assert_array_equal(routed, few().fit(X, y, groups=groups).oof_scores_)
    assert not np.array_equal(routed, few().fit(X, y).oof_scores_)


def test_search_over_the_parameters_of_members():
    X, y = sample()
    search = GridSearchCV(few(), {"tree__max_depth": [1, 5]}, cv=2).fit(X, y)
    assert search.best_params_ == {"tree__max_depth": 5}
    assert search.best_score_ > 0.5


@pytest.mark.parametrize("estimators", [MEMBERS, "fast"])
def test_stores(estimators):
    skops = pytest.importorskip("skops.io")
    X, y = sample()
    model = few(estimators=estimators).fit(X, y)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    np.testing.assert_array_equal(joblib.load(buffer).decision_function(X), model.decision_function(X))
    data = skops.dumps(model)
    unknown = skops.get_untrusted_types(data=data)
    assert all(name.startswith(("metrimax.", "sklearn.")) for name in unknown), unknown
    loaded = skops.loads(data, trusted=unknown)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.report_ == model.report_
