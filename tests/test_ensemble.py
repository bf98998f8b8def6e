"""`MeasureEnsemble`: what its members are combined to, and what it promises."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from metrimax import FBeta, MeasureEnsemble, PrecisionAtK
from metrimax.estimators._ensemble_members import Target
from metrimax.estimators._ensemble_rule import OutOfFold
from metrimax.estimators._ensemble_stack import fit_stack
from metrimax.estimators._targets import judge


def sample(n=300, seed=0, noise=0.5):
    """A ring around the other class: no linear model finds it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X**2).sum(axis=1) + noise * rng.normal(size=n) > 4.5


def few(**changes):
    """Members that take little time."""
    members = [
        ("tree", DecisionTreeClassifier(max_depth=4)),
        ("extra", ExtraTreesClassifier(10)),
        ("linear", LogisticRegression()),
    ]
    return MeasureEnsemble(**{"estimators": members, "random_state": 0, "cv": 3} | changes)


@pytest.fixture(scope="module")
def fitted():
    X, y = sample()
    return few().fit(X, y), X, y


def test_the_default_is_better_than_its_parts():
    X, y = sample(600)
    model = MeasureEnsemble(random_state=0).fit(X, y)
    assert [member.name for member in model._members] == ["boosting", "forest", "extra_trees", "linear", "kernel"]
    linear, ensemble = model.report_["members"]["linear"], model.report_
    assert ensemble["score"] > linear["score"] + 0.2
    others, truth = sample(4000, seed=1)
    assert model.score(others, truth) == pytest.approx(ensemble["score"], abs=3 * ensemble["std"])
    assert model.score(others, truth) == pytest.approx(f1_score(truth, model.predict(others)))


def test_fast_has_neither_forest_nor_kernel():
    X, y = sample(120)
    model = MeasureEnsemble(estimators="fast", random_state=0).fit(X, y)
    assert [member.name for member in model._members] == ["boosting", "extra_trees", "linear"]


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_best_has_more_members():
    X, y = sample(80)
    model = MeasureEnsemble(estimators="best", cv=2, random_state=0).fit(X, y)
    assert len(model.report_["members"]) == 9
    assert model.decision_function(X).shape == (80,)


def test_scores_are_the_weighted_means_of_the_folds(fitted):
    """By hand, from the attributes and the models alone."""
    model, X, _ = fitted
    total = np.zeros(len(X))
    stack = model._rule.stacks[0]
    rate = model._reader.rates[0]
    for m, folds in enumerate(model.estimators_):
        for models in folds:
            p = 0.99 * models[0].predict_proba(X)[:, 1] + 0.01 * rate
            calibrated = stack.slopes[m] * np.log(p / (1 - p)) + stack.offsets[m]
            total += model.weights_[m] * calibrated / len(folds)
    expected = total + stack.bias - model.threshold_
    np.testing.assert_allclose(model.decision_function(X), expected)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-(expected + model.threshold_))))
    np.testing.assert_array_equal(model.predict(X), expected > 0)


def test_out_of_fold_scores_are_of_models_that_have_not_seen_the_row(fitted):
    model, X, y = fitted
    tree = model.estimators_[0]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    given = few(cv=folds, estimators=[("tree", DecisionTreeClassifier(max_depth=4, random_state=5))]).fit(X, y)
    p = cross_val_predict(DecisionTreeClassifier(max_depth=4, random_state=5), X, y, cv=folds, method="predict_proba")
    p = 0.99 * p[:, 1] + 0.01 * y.mean()
    order = np.argsort(np.log(p / (1 - p)))
    assert (np.diff(given.oof_scores_[order]) >= -1e-12).all()
    assert len(tree) == 3


def test_the_report_is_nested():
    """Members that know nothing: the best threshold in hindsight looks better than it is."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.random(200) < 0.5
    model = few(measure="mcc").fit(X, y)
    hindsight = max(np.corrcoef(y, model.oof_scores_ > t)[0, 1] for t in np.sort(model.oof_scores_)[5:-5])
    assert model.report_["score"] < hindsight
    assert abs(model.report_["score"]) < 2 * model.report_["std"]
    assert set(model.report_["members"]) == {"tree", "extra", "linear"}


def test_the_standard_error_by_hand():
    """The jackknife over 20 rows, one by one; the shared training rows add as much for each row trained on."""
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2 == 0
    scores = (rng.normal(size=20) + y)[:, None, None]
    target = Target("binary", np.array([False, True]), y, y[:, None], np.array([0.5]))
    seen = OutOfFold(FBeta(), target, scores, np.ones(20))
    parts = [np.arange(10), np.arange(10, 20)]
    called = np.empty(20, dtype=bool)
    for part, other in (parts, parts[::-1]):
        called[part] = seen.learn(other)(scores[part])[:, 0] > 0
    without = [f1_score(np.delete(y, k), np.delete(called, k)) for k in range(20)]
    score, std = seen.estimate(parts, [0], seed=0, trained=10.0)
    assert score == pytest.approx(f1_score(y, called))
    assert 0.5 < std / np.sqrt(3 * 19 * np.var(without)) < 2
    assert std == pytest.approx(np.sqrt(3) * seen.estimate(parts, [0], seed=0, trained=np.inf).std)


def test_weights_favour_the_member_that_knows():
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.3
    good, noise = 2 * y - 1 + rng.normal(size=2000), rng.normal(size=2000)
    stack = fit_stack(np.column_stack([good, noise]), y, np.ones(2000))
    assert stack.coef[0] > 10 * stack.coef[1] >= 0
    p = 1 / (1 + np.exp(-stack(np.column_stack([good, noise]))))
    for low in (0.1, 0.3, 0.5, 0.7):  # calibrated
        inside = (p > low) & (p < low + 0.2)
        assert y[inside].mean() == pytest.approx(p[inside].mean(), abs=0.08)


@pytest.mark.parametrize("seed", range(3))
def test_few_examples_give_members_nearly_equal_weights(seed):
    rng = np.random.default_rng(seed)
    y = rng.random(12) < 0.5
    stack = fit_stack(rng.normal(size=(12, 3)) + np.outer(y, [2.0, 0.5, 0.0]), y, np.ones(12))
    assert np.abs(stack.weights - 1 / 3).max() < 0.7


def test_weights_of_examples_mean_repetition_for_the_stack():
    rng = np.random.default_rng(0)
    y, scores = rng.random(60) < 0.4, rng.normal(size=(60, 2))
    scores += y[:, None]
    copies = rng.integers(1, 4, 60)
    repeated = fit_stack(np.repeat(scores, copies, axis=0), np.repeat(y, copies), np.ones(copies.sum()))
    weighted = fit_stack(scores, y, copies.astype(float))
    np.testing.assert_allclose(weighted(scores), repeated(scores), rtol=1e-3, atol=1e-3)


def test_the_same_seed_gives_the_same_model_whatever_the_jobs(fitted):
    model, X, y = fitted
    again = few(n_jobs=2).fit(X, y)
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X))
    other = few(random_state=1).fit(X, y)
    assert not np.allclose(other.decision_function(X), model.decision_function(X))


def test_members_of_all_kinds():
    X, y = sample()
    members = [
        ("pipeline", make_pipeline(StandardScaler(), ExtraTreesClassifier(10))),
        ("scores", LinearSVC()),
        ("regressor", LinearRegression()),
    ]
    model = few(estimators=members).fit(X, y, np.random.default_rng(0).random(len(y)))
    assert model.decision_function(X).shape == (len(X),)
    assert model.report_["members"]["pipeline"]["score"] > model.report_["members"]["scores"]["score"]


def test_a_fitted_member_with_scores_out_of_fold():
    X, y = sample()
    extra = ExtraTreesClassifier(20, random_state=0)
    scores = cross_val_predict(extra, X, y, cv=3, method="predict_proba")[:, 1]
    frozen = FrozenEstimator(extra.fit(X, y))
    members = [("extra", frozen), ("linear", LogisticRegression())]
    model = few(estimators=members).fit(X, y, oof_scores={"extra": scores})
    assert model.named_estimators_["extra"] == [[frozen]]
    assert model.weights_[0] > model.weights_[1]
    others, truth = sample(1000, seed=1)
    assert model.score(others, truth) > 0.6
    with pytest.raises(ValueError, match="expected oof_scores of the frozen members"):
        few(estimators=members).fit(X, y)
    with pytest.raises(ValueError, match="expected out-of-fold probabilities of the member 'extra'"):
        few(estimators=members).fit(X, y, oof_scores={"extra": scores * 7})


@pytest.mark.parametrize("positive", ["fraud", "legit"])
def test_a_column_for_each_of_two_classes_is_as_good_as_the_positive_one(positive):
    X, y = sample()
    names = np.where(y, "fraud", "legit")
    linear = LogisticRegression()
    p = cross_val_predict(linear, X**2, names, cv=3, method="predict_proba")
    frozen = FrozenEstimator(linear.fit(X**2, names))
    model = few(estimators=[("linear", frozen)], pos_label=positive)
    one, two = (clone(model).fit(X**2, names, oof_scores={"linear": s}) for s in (p[:, int(positive == "legit")], p))
    np.testing.assert_array_equal(one.oof_scores_, two.oof_scores_)
    assert two.score(X**2, names) > 0.8


def test_several_classes_and_their_probabilities():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 240, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(240, 2)) + 2 * np.array([[0, 0], [1, 0], [0, 1]])[np.searchsorted(["a", "b", "c"], y)]
    model = few().fit(X, y)
    assert model.decision_function(X).shape == (240, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert set(model.predict(X)) == {"a", "b", "c"}
    assert model.report_["score"] > 0.5
    assert model.score(X, y) == pytest.approx(f1_score(y, model.predict(X), average="macro"))


def test_label_indicators_have_a_model_each():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.5, np.zeros(200)]).astype(int)
    model = few().fit(X, Y)
    assert model.predict(X).shape == model.predict_proba(X).shape == (200, 3)
    assert (model.predict(X)[:, 2] == 0).all()
    assert model.weights_.shape == (3, 3)
    assert (model.predict_top_k(X, 10).sum(axis=0) == 10).all()


def test_the_positive_class_is_the_one_named():
    X, y = sample()
    names = np.where(y, "fraud", "legit")
    model = few(pos_label="fraud").fit(X, names)
    assert model.classes_.tolist() == ["fraud", "legit"]
    plain = few().fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), -plain.decision_function(X))
    assert model.score(X, names) == pytest.approx(plain.score(X, y))
    with pytest.raises(ValueError, match="expected pos_label as one of two classes"):
        few(pos_label="other").fit(X, names)
    with pytest.warns(UserWarning, match="set pos_label='a'"):
        few().fit(X, np.where(y, "a", "b"))


def test_groups_and_any_splitter():
    X, y = sample()
    groups = np.arange(len(y)) // 10
    seen = []

    class Noted(GroupKFold):
        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                seen.append(set(groups[train]) & set(groups[test]))
                yield train, test

    few(cv=Noted(3)).fit(X, y, groups=groups)
    assert seen == [set()] * 3
    repeated = few(cv=RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)).fit(X, y)
    assert len(repeated.estimators_[0]) == 6
    assert np.isfinite(repeated.oof_scores_).all()


def test_folds_as_lists_and_masks():
    X, y = sample(90)
    first, second = np.arange(90) < 45, np.arange(90) >= 45
    rows = [list(np.flatnonzero(part)) for part in (first, second)]
    one, other = (few(cv=folds).fit(X, y) for folds in ([rows, rows[::-1]], [(first, second), (second, first)]))
    np.testing.assert_array_equal(one.oof_scores_, other.oof_scores_)
    assert np.isfinite(one.oof_scores_).all()


def test_a_tiny_class_of_several_does_not_lower_the_number_of_folds():
    X, y = sample(120)
    y = y.astype(int)
    y[:2] = 7
    model = few(cv=5).fit(X, y)
    assert len(model.estimators_[2]) == 5
    assert np.isfinite(model.oof_scores_).all()
    two = few(cv=5).fit(X, np.arange(120) < 3)  # of two classes, each fold has one of three rows
    assert len(two.estimators_[2]) == 3


@pytest.mark.parametrize("estimators", ["fast", [("pipeline", make_pipeline(HistGradientBoostingClassifier()))]])
def test_a_class_with_one_row_in_a_fold_of_many(estimators):
    """From 10,000 rows on boosting holds out rows of every class, unless it is told not to."""
    X, y = sample(10_500)
    y = y.astype(int)
    y[:2] = 7
    folds = [(np.arange(10_002), np.arange(10_002, 10_500))]
    y[1] = y[-1]  # one row to train on
    model = MeasureEnsemble("error", estimators, cv=folds, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8


def test_folds_are_of_rows_with_weight_and_no_more_than_groups():
    X, y = sample(120)
    weight = np.where(np.arange(120) < 40, 0.0, 1.0)
    one, other = few(cv=5).fit(X, y, weight), few(cv=5).fit(X[40:], y[40:])
    np.testing.assert_array_equal(one.oof_scores_[40:], other.oof_scores_)
    assert len(few(cv=5).fit(X, y, groups=np.arange(120) % 2).estimators_[0]) == 2
    with pytest.raises(ValueError, match="expected at least two groups to divide into folds, got one"):
        few().fit(X, y, groups=np.zeros(120))
    with pytest.raises(ValueError, match="expected groups without missing values, the group of each row, got None"):
        few().fit(X, y, groups=[None, *"ab" * 59, "a"])
    with pytest.raises(ValueError, match="expected rows of at least two classes with a weight above zero, got one"):
        few().fit(X, y, y.astype(float))
    with pytest.raises(ValueError, match="a class with one row, or in one group, cannot be trained and tested"):
        few().fit(X, np.arange(120) == 0)


def test_a_member_with_next_to_no_weight_is_out_of_all_scores():
    rng = np.random.default_rng(0)
    y = rng.random(500) < 0.3
    scores = np.column_stack([3 * y - 1 + rng.normal(size=500), rng.normal(size=500) - y])
    stack = fit_stack(scores, y, np.ones(500))
    assert stack.weights[1] == stack.coef[1] == 0 < stack.weights[0]
    p = 1 / (1 + np.exp(-stack(scores)))
    assert p.mean() == pytest.approx(y.mean(), abs=1e-3)


@pytest.mark.parametrize("labels", [1, 2])
def test_a_number_of_folds_keeps_groups_together(labels):
    """The only column is the number of the group: with a group in two folds, a tree would know its label."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 5)
    Y = (rng.random((60, labels)) < 0.4)[groups].astype(int)
    members = [("tree", DecisionTreeClassifier())]
    y, X = Y if labels > 1 else Y[:, 0], groups[:, None]
    apart, together = (few(estimators=members, measure="roc_area").fit(X, y, groups=g) for g in (None, groups))
    assert apart.report_["score"] > 0.9
    assert together.report_["score"] < 0.7


@pytest.mark.parametrize("measure", ["mcc", "balanced_error", "roc_area", "average_precision", "prbep", FBeta(2)])
def test_measures(measure):
    X, y = sample()
    model = few(measure=measure).fit(X, y)
    assert 0 < model.report_["score"] <= 1
    assert model.report_["measure"] == (measure if isinstance(measure, str) else "fbeta")
    assert 0 < model.predict(X).mean() < 1


def test_a_function_and_a_number_of_positives():
    def own(tp, fp, fn, tn):
        return tp / np.maximum(tp + fp + 2 * fn, 1)

    X, y = sample()
    assert few(measure=own).fit(X, y).report_["measure"] == "own"
    model = few(measure=PrecisionAtK(20)).fit(X, y)
    assert model.predict_top_k(X, 20).sum() == 20
    assert 1 <= (model.oof_scores_ > 0).sum() <= 21


def test_weights_and_class_weights_matter():
    X, y = sample(noise=4.0)
    plain = few(measure="error").fit(X, y)
    weighted = few(measure="error", class_weight={True: 10.0, False: 1.0}).fit(X, y)
    assert weighted.predict(X).sum() > plain.predict(X).sum()
    weight = np.where(y, 1e-3, 1e-4)
    np.testing.assert_allclose(few(measure="error").fit(X, y, weight).oof_scores_, weighted.oof_scores_)


def test_rows_without_weight_are_not_there():
    X, y = sample()
    weight = np.ones(len(y))
    weight[:50] = 0
    spoilt = np.where(np.arange(len(y)) < 50, ~y, y)
    folds = list(StratifiedKFold(3).split(X, y))
    one, other = (few(cv=folds).fit(X, labels, weight) for labels in (y, spoilt))
    np.testing.assert_allclose(one.threshold_, other.threshold_)
    assert np.isnan(one.oof_scores_[:50]).all()
    assert np.isfinite(one.oof_scores_[50:]).all()


def test_copies_and_pickles(fitted):
    model, X, _ = fitted
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert clone(model).get_params()["tree__max_depth"] == 4
    assert not vars(clone(model)).keys() & {"estimators_", "report_"}


def test_an_interrupted_fit_changes_nothing(fitted):
    model, X, y = fitted

    class Interrupted(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise KeyboardInterrupt

    twin = pickle.loads(pickle.dumps(model))
    twin.set_params(linear=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        twin.fit(X, y)
    np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))


def test_what_is_wrong_is_said():
    X, y = sample(60)
    with pytest.raises(ValueError, match="unknown estimators 'quick'"):
        few(estimators="quick").fit(X, y)
    with pytest.raises(ValueError, match="expected estimators as a list"):
        few(estimators=[]).fit(X, y)
    with pytest.raises(TypeError, match="expected 'a' as an estimator"):
        few(estimators=[("a", 3)]).fit(X, y)
    with pytest.raises(ValueError, match="expected cv of at least 2 folds"):
        few(cv=1).fit(X, y)
    with pytest.raises(ValueError, match="expected at least two classes in y"):
        few().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="features"):
        few().fit(X, y).predict(X[:, :2])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_of_a_member_names_it(n_jobs):
    X, y = sample(60)
    members = [("linear", LogisticRegression()), ("wrong", DecisionTreeClassifier(max_depth=-3))]
    with pytest.raises(ValueError, match="max_depth") as raised:
        few(estimators=members, n_jobs=n_jobs).fit(X, y)
    folds = range(1, 2) if n_jobs == 1 else range(1, 4)  # side by side, any of them may be the first to fail
    assert raised.value.__notes__[0] in [f"raised by the member 'wrong' in fold {k}" for k in folds]


@pytest.mark.parametrize("seed", range(8))
def test_thresholds_of_exclusive_classes_are_kept_only_where_they_help(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=60)
    labels = y[:, np.newaxis] == np.arange(3)
    target = Target("multiclass", np.arange(3), y, labels, labels.mean(axis=0))
    scores = rng.normal(size=(60, 3, 1)) + labels[:, :, np.newaxis]
    rule = OutOfFold(FBeta(), target, scores, np.ones(60)).learn(np.arange(60))
    found, plain = (
        judge(FBeta(), one(scores), y, np.arange(3), None) for one in (rule, rule._replace(thresholds=np.zeros(3)))
    )
    assert found >= plain
