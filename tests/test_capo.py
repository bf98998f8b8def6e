"""CAPO: the problem it solves, the auxiliaries it accepts, and that it behaves as a scikit-learn estimator."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from metrimax import CAPOClassifier, MeasureSVC
from metrimax.designs import ExtraColumns, as_design
from metrimax.estimators._auxiliary import AuxiliaryOutputs
from metrimax.estimators._auxiliary import report as report_of
from metrimax.measure import get_measure
from metrimax.protocols import Status
from metrimax.training.threshold import choose_threshold

rng = np.random.default_rng(3)


def ring(n):
    """Positives on the outside, some 15 %, which no linear classifier finds."""
    X = rng.normal(size=(n, 3))
    return X, (X**2).sum(axis=1) + 0.5 * rng.normal(size=n) > 5


X, y = ring(300)
new, y_new = ring(1000)
tree = DecisionTreeClassifier(max_depth=3, random_state=0)
AUX = [("tree", tree), ("svc", SVC(gamma="scale"))]
RISK = {"hinge": 0, "threshold": "trained"}
PAPER = {"outputs": "label", "cv": None, **RISK}


def signs(labels):
    return np.where(labels, 1.0, -1.0)


def test_extra_columns():
    extra = rng.normal(size=(300, 2))
    for base in (X, sparse.csr_matrix(X)):
        design, whole = ExtraColumns(as_design(base), extra), as_design(np.hstack([extra, X]))
        w, W, c, S = (rng.normal(size=s) for s in (5, (5, 3), 300, (300, 3)))
        assert design.shape == whole.shape
        np.testing.assert_allclose(design.matvec(w), whole.matvec(w))
        np.testing.assert_allclose(design.matvec(W), whole.matvec(W))
        np.testing.assert_allclose(design.rmatvec(c), whole.rmatvec(c), atol=1e-12)
        np.testing.assert_allclose(design.rmatvec(S), whole.rmatvec(S), atol=1e-12)
    with pytest.raises(ValueError, match=r"shape \(300, m\), got \(2, 300\)"):
        ExtraColumns(as_design(X), extra.T)


@pytest.mark.parametrize("measure", ["f1", "roc_area"])
@pytest.mark.parametrize("B", [1.0, 0.2])
def test_learned_weights_are_a_linear_problem_on_augmented_rows(measure, B):
    """Eqs. (12) and (13) of Li, Tsang & Zhou."""
    clf = CAPOClassifier(AUX, measure=measure, B=B, tol=1e-9, **PAPER).fit(X, y)
    F = np.column_stack([signs(clone(a).fit(X, y).predict(X)) for _, a in AUX])
    plain = MeasureSVC(measure, C=1.0, tol=1e-9, **RISK).fit(np.hstack([F / np.sqrt(B), X]), y)
    assert clf.objective_ == pytest.approx(plain.objective_, rel=0, abs=1e-9 * clf.price_ * len(y)), "both within tol"
    np.testing.assert_allclose(clf.aux_weights_, plain.coef_[0, :2] / np.sqrt(B), atol=1e-3)
    np.testing.assert_allclose(clf.coef_, plain.coef_[:, 2:], atol=1e-3)
    F_new = np.column_stack([signs(a.predict(new)) for a in clf.estimators_])
    scores = F_new @ clf.aux_weights_ + new @ clf.coef_[0] + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(new), scores)


def test_fixed_weight_against_an_independent_solver():
    """Eq. (9) with the error rate is the hinge loss of f(x) + w.x: solved as a quadratic program by another program."""
    C = 0.05
    clf = CAPOClassifier([("tree", tree)], measure="error", aux_weight="fixed", C=C, tol=1e-8, **PAPER).fit(X, y)
    f, s = signs(clone(tree).fit(X, y).predict(X)), signs(y)
    w, b = cp.Variable(3), cp.Variable()
    hinge = cp.sum(cp.pos(1 - cp.multiply(s, f + X @ w + b)))
    best = cp.Problem(cp.Minimize((cp.sum_squares(w) + cp.square(b)) / 2 + C * hinge)).solve(solver=cp.CLARABEL)
    assert clf.objective_ == pytest.approx(best, rel=1e-5)
    np.testing.assert_allclose(clf.coef_[0], w.value, atol=1e-3)
    np.testing.assert_array_equal(clf.aux_weights_, [1.0])


def test_small_C_leaves_a_fixed_auxiliary_as_it_is():
    clf = CAPOClassifier([("tree", tree)], measure="f1", aux_weight="fixed", C=1e-7, **PAPER).fit(X, y)
    assert clf.status_ is Status.UNCHANGED
    assert clf.status_.ok
    assert clf.report_["flipped"] == {"tree": 0}
    np.testing.assert_array_equal(clf.predict(new), clf.estimators_[0].predict(new))


def test_without_delta_function():
    clf = CAPOClassifier(AUX, measure="f1", delta=None, tol=1e-9, **PAPER).fit(X, y)
    F = np.column_stack([signs(clone(a).fit(X, y).predict(X)) for _, a in AUX])
    plain = MeasureSVC("f1", C=1.0, tol=1e-9, **RISK).fit(F, y)
    assert clf.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    assert not hasattr(clf, "coef_")
    assert len(np.unique(clf.decision_function(new))) <= 4  # two auxiliaries say no more


def test_nonlinear_delta_function():
    """(x.y)^2 as kernel and as explicit features."""
    squares = np.einsum("ij,ik->ijk", X, X).reshape(300, -1)
    F = signs(clone(tree).fit(X, y).predict(X))
    plain = MeasureSVC("f1", C=1.0, tol=1e-9, **RISK).fit(np.column_stack([F, squares]), y)
    options = {"measure": "f1", "delta": "poly", "degree": 2, "gamma": 1.0, "tol": 1e-9} | PAPER
    clf = CAPOClassifier([("tree", tree)], **options).fit(X, y)
    assert clf.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    linear = CAPOClassifier([("tree", tree)], measure="f1", **PAPER).fit(X, y)
    assert clf.score(new, y_new) > linear.score(new, y_new) + 0.1
    thin = CAPOClassifier([("tree", tree)], delta="rbf", n_components=30, random_state=0).fit(X, y)
    assert thin.status_ is Status.APPROXIMATE


@pytest.mark.parametrize("aux_weight", ["learned", "fixed"])
def test_many_features(aux_weight):
    wide = np.hstack([X, 0.01 * rng.normal(size=(300, 1200))])
    clf = CAPOClassifier([("svc", SVC())], measure="error", aux_weight=aux_weight, cv=3).fit(wide, y)
    assert clf.status_.ok
    assert clf.score(wide, y) > 0.9


def test_adaptation_finds_what_a_linear_classifier_cannot():
    linear = MeasureSVC("f1").fit(X, y).score(new, y_new)
    adapted = CAPOClassifier(AUX, measure="f1").fit(X, y)
    assert adapted.score(new, y_new) > linear + 0.3


@pytest.mark.parametrize("outputs", ["label", "score"])
def test_out_of_fold_outputs(outputs):
    """As scikit-learn's cross_val_predict gives them, and the auxiliary kept is trained on all examples."""
    clf = CAPOClassifier([("nb", GaussianNB())], outputs=outputs, cv=4, delta=None, tol=1e-9, **RISK).fit(X, y)
    if outputs == "label":
        f = signs(cross_val_predict(GaussianNB(), X, y, cv=4))
    else:
        f = 2 * cross_val_predict(GaussianNB(), X, y, cv=4, method="predict_proba")[:, 1] - 1
    plain = MeasureSVC("f1", C=1.0, tol=1e-9, **RISK).fit(f[:, None], y)
    assert clf.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    np.testing.assert_array_equal(clf.estimators_[0].predict(new), GaussianNB().fit(X, y).predict(new))
    few = CAPOClassifier([("nb", GaussianNB())], cv=5).fit(X[:30], np.arange(30) < 3)  # three positives: three folds
    assert few.report_ == CAPOClassifier([("nb", GaussianNB())], cv=3).fit(X[:30], np.arange(30) < 3).report_
    one = CAPOClassifier([("nb", GaussianNB())], cv=5).fit(X[:30], np.arange(30) < 1)  # none without its only positive
    assert one.report_ == CAPOClassifier([("nb", GaussianNB())], cv=None).fit(X[:30], np.arange(30) < 1).report_
    with pytest.raises(ValueError, match="a cv that tests every example"):
        clone(clf).set_params(cv=ShuffleSplit(2, random_state=0)).fit(X, y)


@pytest.mark.parametrize(
    ("auxiliary", "score"),
    [
        (SVC(), lambda a: a.decision_function(new)),
        (tree, lambda a: 2 * a.predict_proba(new)[:, 1] - 1),
        (DecisionTreeRegressor(max_depth=3, random_state=0), lambda a: a.predict(new)),
        (make_pipeline(StandardScaler(), LogisticRegression()), lambda a: a.decision_function(new)),
    ],
)
def test_scores_of_all_kinds_of_auxiliaries(auxiliary, score):
    clf = CAPOClassifier([("a", auxiliary)], outputs="score", delta=None, cv=None, measure="roc_area").fit(X, y)
    f = score(clf.named_estimators_["a"])
    scores = clf.aux_weights_[0] * f + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(new), scores)


def test_regressors_learn_signs():
    clf = CAPOClassifier([("ridge", Ridge())], cv=None).fit(X**2, np.where(y, "yes", "no"))
    np.testing.assert_allclose(clf.estimators_[0].coef_, Ridge().fit(X**2, signs(y)).coef_)
    assert set(clf.predict(new**2)) == {"yes", "no"}


def test_precomputed_outputs_as_columns():
    fitted = clone(tree).fit(X, y)
    own = CAPOClassifier([("tree", tree)], cv=None, tol=1e-9).fit(X, y)
    wide = np.column_stack([X[:, 0], signs(fitted.predict(X)), X[:, 1:]])
    wide_new = np.column_stack([new[:, 0], signs(fitted.predict(new)), new[:, 1:]])
    given = CAPOClassifier([("tree", 1)], tol=1e-9).fit(wide, y)
    np.testing.assert_allclose(given.decision_function(wide_new), own.decision_function(new), atol=1e-4)
    thin = CAPOClassifier([("tree", 1)], tol=1e-9).fit(sparse.csr_matrix(wide), y)
    np.testing.assert_allclose(
        thin.decision_function(sparse.csr_matrix(wide_new)), own.decision_function(new), atol=1e-4
    )
    mixed = CAPOClassifier([("tree", 1), ("svc", SVC())]).fit(wide, y)
    assert mixed.estimators_[1].n_features_in_ == 3
    with pytest.raises(ValueError, match=r"from 0 to 3, got \[7\]"):
        CAPOClassifier([("tree", 7)]).fit(wide, y)


def test_tables_keep_their_names():
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    chosen = make_pipeline(make_column_transformer((StandardScaler(), ["a", "c"])), GaussianNB())
    clf = CAPOClassifier([("nb", chosen)], cv=3).fit(table, y)
    assert list(clf.feature_names_in_) == ["a", "b", "c"]
    assert clf.predict(table).shape == (300,)


def test_prefit():
    fitted = clone(tree).fit(X, y)
    clf = CAPOClassifier([("tree", fitted)], prefit=True).fit(new, y_new)
    assert clf.estimators_[0] is fitted
    assert clf.report_["before"]["tree"] == pytest.approx(sklearn.metrics.f1_score(y_new, fitted.predict(new)))
    with pytest.raises(ValueError, match=r"classes that y does not have: \[False, True\]"):
        CAPOClassifier([("tree", fitted)], prefit=True).fit(new, np.where(y_new, 5, 4))


def test_default_losses_and_threshold():
    """The logistic loss beside the risk, scores out of fold, the threshold from these."""
    clf = CAPOClassifier([("svc", SVC())], tol=1e-9).fit(X, y)
    f = cross_val_predict(SVC(), X, y, cv=5, method="decision_function")
    plain = MeasureSVC("f1", C=1.0, logistic=1, risk="even", threshold="trained", tol=1e-9).fit(
        np.column_stack([f, X]), y
    )
    assert clf.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    scores = plain.decision_function(np.column_stack([f, X]))
    assert clf.threshold_[0] == pytest.approx(choose_threshold(get_measure("f1"), y, scores), abs=1e-3)
    assert clf.trained_with_["threshold"] == "folds"
    assert (clf.trained_with_["logistic"], clf.trained_with_["risk"]) == (1, "even")
    given = CAPOClassifier([("svc", SVC())], hinge=0).fit(X, y).trained_with_
    assert (given["logistic"], given["risk"]) == (0, 1)
    error = CAPOClassifier([("svc", SVC())], "error").fit(X, y).trained_with_
    assert (error["logistic"], error["threshold"]) == (0, "trained")
    for measure, target in (("roc_area", y), ("f1", np.digitize(X[:, 0], [-1, 1]))):  # no threshold of their own
        assert CAPOClassifier([("svc", SVC())], measure).fit(X, target).trained_with_["threshold"] == "trained"


@pytest.mark.parametrize("cv", [None, 5])
@pytest.mark.parametrize("auxiliary", [RandomForestClassifier(20, random_state=0), SVC(), GaussianNB()])
def test_overlapping_rare_classes_lose_nothing(auxiliary, cv):
    """The risk alone has its optimum at w = 0 here, and with it F1 = 0."""
    made = np.random.default_rng(0)
    rare = made.random(1500) < 0.06
    Z = made.normal(size=(1500, 4)) + 0.9 * rare[:, None]
    train, test = np.arange(1500) < 750, np.arange(1500) >= 750
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf = CAPOClassifier([("a", auxiliary)], cv=cv).fit(Z[train], rare[train])
    alone = sklearn.metrics.f1_score(rare[test], clf.estimators_[0].predict(Z[test]))
    assert clf.score(Z[test], rare[test]) >= alone - 0.02
    if cv == 5:
        assert clf.score(Z[test], rare[test]) > 0.2


def test_warning_where_nothing_changed():
    forest = RandomForestClassifier(20, random_state=0)  # makes no mistakes on the examples it was trained on
    with pytest.warns(UserWarning, match="changed nothing: .* set cv=5"):
        clf = CAPOClassifier([("forest", forest)], cv=None).fit(X, y)
    assert clf.report_["changed"] is False
    with pytest.warns(UserWarning, match="changed nothing: .* use an auxiliary as it is"):
        CAPOClassifier([("forest", clone(forest).fit(X, y))], prefit=True).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert CAPOClassifier([("nb", GaussianNB())]).fit(X, y).report_["changed"] is True


def test_report():
    clf = CAPOClassifier(AUX, measure="f1", cv=None).fit(X, y)
    report = clf.report_
    assert report["measure"] == "fbeta"
    assert report["n"] == 300
    assert report["after"] == pytest.approx(clf.score(X, y))
    for name, auxiliary in zip(("tree", "svc"), clf.estimators_, strict=True):
        called = auxiliary.predict(X)
        assert report["before"][name] == pytest.approx(sklearn.metrics.f1_score(y, called))
        assert report["flipped"][name] == np.count_nonzero(called != clf.predict(X))


@pytest.mark.parametrize("measure", ["error", "f1", "balanced_error", "roc_area"])
def test_report_measures_as_score_does(measure):
    """The error rate of several classes, too, which is no mean over them."""
    classes = np.digitize((X**2).sum(axis=1), [2, 4])
    Y = np.column_stack([y, X[:, 0] > 0]).astype(int)
    for target in (y, np.array(["a", "b", "c"])[classes], Y, sparse.csr_array(Y)):
        clf = CAPOClassifier([("tree", tree)], measure, cv=None).fit(X, target)
        # but for ties: two classes that both have the score -1, at the margin, are told apart by rounding
        assert clf.report_["after"] == pytest.approx(clf.score(X, target), abs=0.01)
    if measure == "error":
        called = clf.fit(X, classes).estimators_[0].predict(X)
        assert clf.report_["before"]["tree"] == pytest.approx(np.mean(called == classes))


@pytest.mark.parametrize("prefit", [False, True])
@pytest.mark.parametrize("auxiliary", [tree, RidgeClassifier(), OneVsRestClassifier(LogisticRegression())])
def test_sparse_labels(auxiliary, prefit):
    Y = np.column_stack([y, X[:, 0] > 0]).astype(int)
    S = sparse.csr_array(Y)
    given = clone(auxiliary).fit(X, S if isinstance(auxiliary, OneVsRestClassifier) else Y) if prefit else auxiliary
    sparsely, densely = (CAPOClassifier([("a", given)], prefit=prefit).fit(X, target) for target in (S, Y))
    np.testing.assert_array_equal(sparsely.predict(new), densely.predict(new))
    assert sparsely.score(X, S) == densely.score(X, Y)


def test_several_classes_and_labels():
    classes = np.array(["a", "b", "c"])[np.digitize((X**2).sum(axis=1), [2, 4])]
    for outputs in ("label", "score"):
        clf = CAPOClassifier(AUX, outputs=outputs, cv=3).fit(X, classes)
        assert clf.aux_weights_.shape == (3, 6)
        assert clf.score(X, classes) > MeasureSVC("f1").fit(X, classes).score(X, classes) + 0.2
    assert CAPOClassifier(AUX, aux_weight="fixed").fit(X, classes).score(X, classes) > 0.6
    Y = np.column_stack([y, X[:, 0] > 0]).astype(int)
    for outputs in ("label", "score"):
        clf = CAPOClassifier([("tree", tree)], outputs=outputs).fit(X, Y)
        assert clf.predict(new).shape == (1000, 2)
        assert clf.score(X, Y) > 0.7


@pytest.mark.parametrize("centers", [3, 5])
def test_scores_of_pairs_of_classes_are_refused(centers):
    """Three classes have three pairs, so the number of scores does not tell."""
    blobs, classes = make_blobs(90, centers=centers, random_state=0)
    pairs = SVC(decision_function_shape="ovo")
    search = GridSearchCV(make_pipeline(StandardScaler(), pairs), {"svc__C": [1.0]}, cv=2)
    for auxiliary in (pairs, make_pipeline(StandardScaler(), pairs), search):
        with pytest.raises(ValueError, match=f"each of {centers} classes .* set its decision_function_shape='ovr'"):
            CAPOClassifier([("s", auxiliary)], outputs="score").fit(blobs, classes)
    assert CAPOClassifier([("s", pairs)], outputs="label").fit(blobs, classes).score(blobs, classes) > 0.6
    two = classes < 2
    plain = CAPOClassifier([("s", SVC())], outputs="score").fit(blobs[two], classes[two])
    same = CAPOClassifier([("s", pairs)], outputs="score").fit(blobs[two], classes[two])
    np.testing.assert_allclose(same.decision_function(blobs), plain.decision_function(blobs))


def test_report_calls_one_class_of_equal_scores():
    """The first one, as `predict` does."""
    labels = np.eye(3, dtype=bool)
    tied = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    problem = AuxiliaryOutputs(np.arange(3), labels, np.arange(3), False, "score")
    made = report_of(get_measure("error"), problem, ["a"], [tied], 2.0 * labels - 1, None)
    assert made["before"] == {"a": 1.0}
    assert made["flipped"] == {"a": 0}


@pytest.mark.parametrize("delta", ["linear", "rbf"])
def test_refitted_without_delta_function(delta):
    clf = CAPOClassifier(AUX, delta=delta).fit(X, y)
    scores = clf.decision_function(new)
    clf.set_params(delta=None)
    np.testing.assert_array_equal(clf.decision_function(new), scores)  # what was fitted
    clf.fit(X, y)
    fresh = CAPOClassifier(AUX, delta=None).fit(X, y)
    assert vars(clf).keys() == vars(fresh).keys()
    expected = fresh.decision_function(new)
    np.testing.assert_allclose(clf.decision_function(new), expected)
    np.testing.assert_allclose(clf.set_params(delta="linear").decision_function(new), expected)


def test_sample_weight_reaches_the_auxiliaries():
    weight = rng.integers(0, 3, size=300)
    weighted = CAPOClassifier([("nb", GaussianNB())], cv=None, tol=1e-9).fit(X, y, sample_weight=weight)
    repeated = CAPOClassifier([("nb", GaussianNB())], cv=None, tol=1e-9).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(weighted.estimators_[0].theta_, repeated.estimators_[0].theta_)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)


def test_metadata_routing():
    weight = rng.integers(1, 3, size=300)
    with sklearn.config_context(enable_metadata_routing=True):
        plain, asks = (
            GaussianNB().set_fit_request(sample_weight=False),
            GaussianNB().set_fit_request(sample_weight=True),
        )
        clf = CAPOClassifier([("plain", plain), ("asks", asks)])
        clf.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        clf.fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(clf.named_estimators_["plain"].theta_, GaussianNB().fit(X, y).theta_)
        np.testing.assert_allclose(clf.named_estimators_["asks"].theta_, GaussianNB().fit(X, y, weight).theta_)
        GridSearchCV(clf, {"C": [1.0]}, cv=2).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="groups"):
        clf.fit(X, y, groups=np.ones(300))


def test_parameters_of_auxiliaries_and_search():
    clf = CAPOClassifier(AUX, cv=KFold(3))
    assert clf.get_params()["tree__max_depth"] == 3
    clf.set_params(tree__max_depth=2, svc=DecisionTreeClassifier(max_depth=1))
    assert clone(clf).fit(X, y).estimators_[0].max_depth == 2
    search = GridSearchCV(clf, {"tree__max_depth": [1, 4], "C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_["tree__max_depth"] == 4
    assert make_pipeline(StandardScaler(), clf).fit(X, y).predict(new).shape == (1000,)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"estimators": []}, ValueError, "a list of"),
        ({"estimators": tree}, ValueError, "a list of .* got DecisionTreeClassifier"),
        ({"estimators": [tree]}, ValueError, "a list of .* got .DecisionTreeClassifier"),
        ({"estimators": {"a": tree}}, ValueError, "a list of .* got .'a'"),
        ({"estimators": [("a", StandardScaler())]}, TypeError, "a classifier or a regressor, got StandardScaler"),
        ({"estimators": [("a", OneClassSVM())]}, TypeError, "a classifier or a regressor, got OneClassSVM"),
        ({"estimators": [("a", tree), ("a", tree)]}, ValueError, "unique"),
        ({"estimators": [("a", "drop")]}, TypeError, "expected 'a' as an estimator or the number of a column"),
        ({"B": 0.0}, ValueError, "finite B > 0, got 0.0"),
        ({"outputs": "proba"}, ValueError, "outputs as one of label, score, or None, got 'proba'"),
        (
            {"threshold": "auto"},
            ValueError,
            "unknown threshold 'auto': expected one of trained, placed",
        ),
        ({"aux_weight": 2}, ValueError, "aux_weight as one of learned, fixed, got 2"),
        ({"delta": "precomputed"}, ValueError, "the auxiliaries need X"),
        ({"delta": None, "aux_weight": "fixed"}, ValueError, "needs a delta function"),
        ({"delta": "sigmoid"}, ValueError, "unknown kernel 'sigmoid'"),
    ],
)
def test_errors(options, error, message):
    with pytest.raises(error, match=message):
        CAPOClassifier(**{"estimators": AUX, **options}).fit(X, y)


@parametrize_with_checks([CAPOClassifier([("nb", DecisionTreeClassifier(max_depth=3, random_state=0))])])
def test_estimator_checks(estimator, check):
    if "check_sample_weight_equivalence" in str(check):
        pytest.skip("a tree depends on the order of the rows: test_sample_weight_reaches_the_auxiliaries takes another")
    if "check_class_weight_classifiers" in str(check):  # F1 of a class without weight is best where all are called
        estimator.set_params(measure="error")
    check(estimator)


def test_outputs_that_are_no_numbers_are_named_as_such():
    X, y = np.repeat([[0.0, 1.0], [1.0, 1.0]], 5, axis=0), np.arange(10) < 5
    broken = GaussianNB(var_smoothing=0.0)  # of a feature that does not vary it makes 0/0
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="expected finite outputs of the auxiliaries"):
        CAPOClassifier([("bayes", broken)], outputs="score").fit(X, y)
