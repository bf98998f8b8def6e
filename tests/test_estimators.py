"""The estimator as scikit-learn's users meet it."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import reference as ref
import reference_rankings as ranked
from paper import PAPER
from scipy import sparse
from sklearn import metrics
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from metrimax import CostModel, FBeta, MeasureSVC, MeasureSVCCV, PrecisionAtK, RecallAtK
from metrimax.measure import REGISTRY
from metrimax.protocols import Status


@parametrize_with_checks(
    [MeasureSVC(m) for m in ("f1", "error", "roc_area", "prbep")] + [MeasureSVCCV(Cs=[0.1, 1.0], cv=2)]
)
def test_scikit_learns_own_checks(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        # Ties between copies are broken by position, so the two runs take different ways to the same optimum.
        estimator = clone(estimator).set_params(tol=1e-10, hinge=0.0)  # smooth losses end in rounding before
    check(estimator)


def same(a: MeasureSVC, b: MeasureSVC, X, atol: float = 1e-6) -> None:
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=atol)


# --- the objective


@pytest.mark.parametrize("name", [*REGISTRY, "cost_5_1", "f0.5", "f2", "precision_at_2", "user_wavy"])
def test_objective_recomputed_over_all_labellings(name):
    rng = np.random.default_rng(3)
    y = np.arange(9) < 3
    X = rng.normal(size=(9, 3)) + 0.8 * y[:, None]
    measure = next((c.measure for c in ref.CASES if c.name == name), name)
    for options in ({}, {"fit_intercept": False}, {"intercept_scaling": 3.0}):
        svc = MeasureSVC(measure, C=0.7, tol=1e-6, **PAPER, **options).fit(X, y)
        scores = X @ svc.coef_[0] + svc.trained_intercept_[0]
        bias = 0 if "fit_intercept" in options else svc.trained_intercept_[0] / options.get("intercept_scaling", 1.0)
        norm = svc.coef_[0] @ svc.coef_[0] + bias**2
        weight = 0.7 * svc.price_ * 9
        assert svc.objective_ == pytest.approx(norm / 2 + weight * ranked.risk(name, y, scores), rel=1e-9)
        assert svc.dual_bound_ <= svc.objective_ + 1e-12
        assert svc.gap_ == pytest.approx((svc.objective_ - svc.dual_bound_) / weight, abs=1e-12)
        assert svc.gap_ <= 1e-6
        assert svc.status_.ok
        np.testing.assert_allclose(svc.decision_function(X), scores - svc.threshold_[0], atol=1e-12)


def test_error_rate_is_linear_svc(binary):
    X, y = binary
    ours = MeasureSVC("error", C=0.5, tol=1e-8).fit(X, y)
    theirs = LinearSVC(loss="hinge", C=0.5, intercept_scaling=1, tol=1e-9, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    assert ours.score(X, y) == theirs.score(X, y)


# --- inputs of all kinds


def forms(X):
    wide = sparse.csr_matrix(X)
    long = sparse.csr_array(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    return {
        "fortran": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=0)[::2],
        "csr_matrix": wide,
        "csr_array": sparse.csr_array(X),
        "int64": long,
        "csc": sparse.csc_matrix(X),
        "coo": sparse.coo_array(X),
        "list": X.tolist(),
        "frame": pd.DataFrame(X),
    }


@pytest.mark.parametrize("form", list(forms(np.eye(2))))
def test_every_form_of_X_gives_the_same_classifier(binary, form):
    X, y = binary
    plain = MeasureSVC(tol=1e-7).fit(X, y)
    other = MeasureSVC(tol=1e-7).fit(forms(X)[form], y)
    assert other.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    np.testing.assert_allclose(plain.decision_function(forms(X)[form]), plain.decision_function(X), atol=1e-12)


def test_float32_is_used_as_it_is(binary):
    X, y = binary
    single = X.astype(np.float32)
    for form in (single, sparse.csr_matrix(single)):
        a, b = MeasureSVC(tol=1e-7).fit(form, y), MeasureSVC(tol=1e-7).fit(single.astype(float), y)
        assert a.objective_ == pytest.approx(b.objective_, rel=1e-6)


def test_integers_and_booleans_as_features(binary):
    X, y = binary
    for kind in (int, bool):
        a, b = MeasureSVC().fit((3 * X).astype(kind), y), MeasureSVC().fit((3 * X).astype(kind).astype(float), y)
        assert a.objective_ == b.objective_


def test_feature_names(binary):
    X, y = binary
    frame = pd.DataFrame(X, columns=list("abcdef"))
    svc = MeasureSVC().fit(frame, pd.Series(y))
    assert list(svc.feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        svc.predict(frame[list("fedcba")])


@pytest.mark.parametrize(
    "name", [lambda y: np.where(y == 1, "yes", "no"), lambda y: y == 1, lambda y: 2.0 * y - 1, lambda y: y + 7]
)
def test_labels_of_any_type(binary, name):
    X, y = binary
    plain, named = MeasureSVC().fit(X, y), MeasureSVC().fit(X, name(y))
    np.testing.assert_array_equal(named.predict(X), name(plain.predict(X)))
    assert named.score(X, name(y)) == plain.score(X, y)
    assert named.predict(X).dtype == name(y).dtype
    assert named.classes_[1] == name(np.array([1]))[0]
    objects = MeasureSVC().fit(X, np.asarray(name(y), dtype=object).astype(str))
    assert objects.score(X, np.asarray(name(y)).astype(str)) == plain.score(X, y)


# --- several classes, several labels


def test_several_classes(three):
    X, y = three
    svc = MeasureSVC("f1", tol=1e-4).fit(X, y)
    assert svc.coef_.shape == (3, 6)
    assert svc.decision_function(X).shape == (150, 3)
    np.testing.assert_array_equal(svc.predict(X), svc.decision_function(X).argmax(axis=1))
    for k in range(3):
        alone = MeasureSVC("f1", tol=1e-4).fit(X, y == k)
        assert svc.objective_[k] == pytest.approx(alone.objective_, rel=1e-3)
        assert svc.price_[k] == alone.price_
    assert svc.score(X, y) == pytest.approx(metrics.f1_score(y, svc.predict(X), average="macro"))
    assert MeasureSVC("error").fit(X, y).score(X, y) == pytest.approx(
        metrics.accuracy_score(y, MeasureSVC("error").fit(X, y).predict(X))
    )
    assert all(status.ok for status in svc.status_)
    assert len(svc.history_) == 3
    reference = OneVsRestClassifier(MeasureSVC("f1", tol=1e-4, threshold="trained")).fit(X, y)
    assert (reference.predict(X) == svc.predict(X)).mean() > 0.97
    with pytest.raises(ValueError, match="predict_top_k needs two classes"):
        svc.predict_top_k(X, 3)


def test_several_labels(labels):
    X, Y = labels
    svc = MeasureSVC("f1", tol=1e-4).fit(X, Y)
    assert svc.predict(X).shape == Y.shape
    for k in range(3):
        alone = MeasureSVC("f1", tol=1e-4).fit(X, Y[:, k])
        assert svc.objective_[k] == pytest.approx(alone.objective_, rel=1e-3)
    assert svc.score(X, Y) == pytest.approx(metrics.f1_score(Y, svc.predict(X), average="macro"))
    for form in (sparse.csr_matrix, sparse.csc_array, lambda Y: Y.astype(bool), pd.DataFrame):
        other = MeasureSVC("f1", tol=1e-4).fit(X, form(Y))
        np.testing.assert_array_equal(other.predict(X), svc.predict(X))
        assert other.score(X, form(Y)) == svc.score(X, Y)
    assert (svc.predict_top_k(X, 7).sum(axis=0) == 7).all()
    with pytest.raises(ValueError, match="shape"):
        svc.score(X, Y[:, :2])


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_label_that_never_varies_is_predicted_as_it_is(labels, fit_intercept):
    X, Y = labels
    Y = np.column_stack([Y, np.zeros(90, dtype=int), np.ones(90, dtype=int)])
    svc = MeasureSVC("f1", fit_intercept=fit_intercept).fit(X, Y)
    assert svc.status_[3] is svc.status_[4] is Status.ONE_CLASS
    fresh = 100 * np.random.default_rng(0).normal(size=(50, 5))
    assert not svc.predict(fresh)[:, 3].any()
    assert svc.predict(fresh)[:, 4].all()
    assert (svc.gap_ <= 1e-3).all()
    # examples of no weight do not count
    weight = (Y[:, 0] == 0).astype(float)
    svc = MeasureSVC("f1", fit_intercept=fit_intercept).fit(X, Y, sample_weight=weight)
    assert svc.status_[0] is Status.ONE_CLASS
    assert not svc.predict(fresh)[:, 0].any()


def test_many_labels_most_of_which_never_vary(labels):
    X, Y = labels
    wide = np.zeros((90, 150), dtype=int)
    wide[:, [3, 70, 149]] = Y
    svc = MeasureSVC("f1").fit(X, wide)
    assert svc.coef_.shape == (150, 5)
    alone = MeasureSVC("f1").fit(X, Y)
    np.testing.assert_allclose(svc.objective_[[3, 70, 149]], alone.objective_, rtol=1e-2)
    assert not np.delete(svc.predict(X), [3, 70, 149], axis=1).any()
    with pytest.raises(ValueError, match=r"above zero|[Zz]ero"):
        MeasureSVC("f1").fit(X, Y, sample_weight=np.zeros(90))


def test_a_class_without_weight_is_not_predicted():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 4
    X = rng.normal(size=(120, 6)) + np.eye(4, 6)[y]
    svc = MeasureSVC("f1").fit(X, y, sample_weight=(y != 2).astype(float))
    assert svc.status_[2] is Status.ONE_CLASS
    assert not (svc.predict(50 * rng.normal(size=(500, 6))) == 2).any()
    without = MeasureSVC("f1").fit(X[y != 2], y[y != 2])
    assert svc.objective_[0] == pytest.approx(without.objective_[0], rel=1e-2)


# --- weights


@pytest.mark.parametrize("measure", ["f1", "error", "roc_area", "prbep", "gmean", "mcc", "kld", "q", PrecisionAtK(5)])
def test_sample_weight_is_repetition(binary, measure):
    X, y = binary
    times = np.random.default_rng(0).integers(0, 4, size=len(y))
    weighted = MeasureSVC(measure, tol=1e-6).fit(X, y, sample_weight=times)
    repeated = MeasureSVC(measure, tol=1e-6).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.price_ == pytest.approx(repeated.price_)
    assert weighted.status_.ok
    assert repeated.status_.ok
    allowed = 1e-6 * weighted.C * weighted.price_ * times.sum()  # the gap, in units of the objective
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=0, abs=allowed)
    assert weighted.score(X, y, times) == pytest.approx(
        weighted.score(np.repeat(X, times, axis=0), np.repeat(y, times)), abs=1e-9
    )


@pytest.mark.parametrize("measure", sorted({*REGISTRY} - {"ndcg", "recall_at_budget"}))  # which take whole weights only
def test_class_weight(binary, measure):
    X, y = binary
    for class_weight, factors in (("balanced", len(y) / (2 * np.bincount(y))), ({0: 1.0, 1: 2.5}, np.array([1, 2.5]))):
        by_class = MeasureSVC(measure, class_weight=class_weight).fit(X, y)
        by_example = MeasureSVC(measure).fit(X, y, sample_weight=factors[y])
        assert by_class.objective_ == pytest.approx(by_example.objective_, rel=1e-9)
        assert by_class.status_.ok


@pytest.mark.parametrize("weights", ["balanced", {0: 1.0, 1: 3.0}])
def test_sample_weight_is_repetition_beside_class_weight(binary, labels, weights):
    """The classes are balanced by what they weigh: an example of weight 0 is not there."""
    X, y = binary[0], np.asarray(binary[1]).astype(int)
    weight = np.random.default_rng(0).integers(0, 4, len(y)) * (1 + y)
    rows = np.repeat(np.arange(len(y)), weight)
    for measure in ("error", "f1") if weights != "balanced" else ("error",):  # F1's weights have to be whole for that
        svc = MeasureSVC(measure, class_weight=weights, tol=1e-8)
        weighted = svc.fit(X, y, weight).decision_function(X)
        np.testing.assert_allclose(weighted, svc.fit(X[rows], y[rows]).decision_function(X), atol=1e-3)
    if weights == "balanced":
        X, Y = labels
        weight = np.random.default_rng(0).integers(0, 3, len(X))
        rows = np.repeat(np.arange(len(X)), weight)
        for target in (np.asarray(Y), sparse.csr_array(Y)):
            svc = MeasureSVC("error", class_weight=weights, tol=1e-8, solver="dual_cd")
            weighted = svc.fit(X, target, weight).decision_function(X)
            np.testing.assert_allclose(weighted, svc.fit(X[rows], target[rows]).decision_function(X), atol=1e-3)


@pytest.mark.parametrize("factor", [1e-12, 1 / 150, 1e6])
@pytest.mark.parametrize("measure", ["f1", "error", "roc_area", "gmean", "prbep", "precision_at_k"])
def test_all_weights_times_a_factor_is_C_times_it(binary, measure, factor):
    X, y = binary
    weighted = MeasureSVC(measure, C=0.3 / factor, tol=1e-6, **PAPER).fit(X, y, sample_weight=np.full(len(y), factor))
    plain = MeasureSVC(measure, C=0.3, tol=1e-6, **PAPER).fit(X, y)
    assert weighted.objective_ == pytest.approx(plain.objective_, rel=1e-4)
    same(weighted, plain, X, atol=0.05)


# --- predicting


def test_threshold_is_frozen_at_fit(binary):
    X, y = binary
    for measure in ("roc_area", "prbep"):
        svc = MeasureSVC(measure).fit(X, y)
        assert svc.predict(X).sum() == y.sum()
        np.testing.assert_array_equal(svc.predict(X[:7]), svc.predict(X)[:7])
    svc = MeasureSVC(PrecisionAtK(9)).fit(X, y)
    assert svc.predict(X).sum() == 9
    assert MeasureSVC("f1", threshold="trained").fit(X, y).threshold_ == 0


def test_top_k_of_a_batch(binary):
    X, y = binary
    svc = MeasureSVC("prbep").fit(X, np.where(y, "in", "out"))
    for k in (0, 1, 37, len(y)):
        called = svc.predict_top_k(X, k)
        assert (called == svc.classes_[1]).sum() == k
        if 0 < k < len(y):
            scores = svc.decision_function(X)
            assert scores[called == svc.classes_[1]].min() >= scores[called != svc.classes_[1]].max()
    for bad in (-1, len(y) + 1, 2.5, 3.0, None, "3"):
        with pytest.raises(ValueError, match="expected k as a whole number from 0 to the 150 examples"):
            svc.predict_top_k(X, bad)


def test_scores_are_the_measures(binary):
    X, y = binary
    for measure, expected in {
        "f1": metrics.f1_score,
        "error": metrics.accuracy_score,
        "balanced_error": metrics.balanced_accuracy_score,
        "jaccard": metrics.jaccard_score,
        "kappa": metrics.cohen_kappa_score,
        "mcc": metrics.matthews_corrcoef,
    }.items():
        svc = MeasureSVC(measure).fit(X, y)
        assert svc.score(X, y) == pytest.approx(expected(y, svc.predict(X)))
    svc = MeasureSVC("roc_area").fit(X, y)
    assert svc.score(X, y) == pytest.approx(metrics.roc_auc_score(y, svc.decision_function(X)))


# --- in scikit-learn's company


def test_pipeline_grid_search_clone_and_pickle(binary, tmp_path):
    X, y = binary
    pipe = make_pipeline(StandardScaler(), MeasureSVC())
    grid = {
        "measuresvc__measure": ["f1", FBeta(2), CostModel(5, 1), RecallAtK(9)],
        "measuresvc__C": np.logspace(-1, 1, 2),
    }
    search = GridSearchCV(pipe, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.5
    assert cross_val_score(MeasureSVC("roc_area"), X, y, cv=3).min() > 0.5
    svc = search.best_estimator_[-1]
    assert clone(svc).get_params() == svc.get_params()
    joblib.dump(search, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    copy = pickle.loads(pickle.dumps(svc))
    assert copy.status_ is svc.status_
    assert copy.history_ == svc.history_


def test_a_users_function_trains_and_pickles(binary):
    X, y = binary
    own, ours = MeasureSVC(ref.user_f1, tol=1e-6).fit(X, y), MeasureSVC("f1", tol=1e-6).fit(X, y)
    assert own.objective_ == pytest.approx(ours.objective_, rel=1e-5)
    assert pickle.loads(pickle.dumps(own)).score(X, y) == own.score(X, y)


def test_parameters_are_not_changed_by_fit(binary):
    X, y = binary
    before = X.copy(), y.copy()
    svc = MeasureSVC(FBeta(2), C=3)
    svc.fit(X, y, sample_weight=(weight := np.ones(len(y))))
    assert svc.get_params()["measure"] == FBeta(2)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    assert (weight == 1).all()
