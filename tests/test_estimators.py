"""The estimator as scikit-learn's users meet it."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import reference as ref
from scipy import sparse
from sklearn import metrics
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from metrimax import CostModel, FBeta, MeasureSVC, PrecisionAtK, RecallAtK
from metrimax.measure import REGISTRY, TableFunction, get_measure
from metrimax.protocols import Status


@parametrize_with_checks([MeasureSVC(m) for m in ("f1", "error", "roc_area", "prbep")])
def test_scikit_learns_own_checks(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        # Ties between copies are broken by position, so the two runs take different ways and end at points that agree
        # to tol. Below, test_sample_weight_is_repetition compares what has to be the same.
        pytest.skip("the same optimum, reached to within tol and not to seven digits")
    check(estimator)


@pytest.fixture(scope="module")
def binary():
    X, y = make_classification(n_samples=150, n_features=6, weights=[0.75], class_sep=0.8, random_state=0)
    return X, y


@pytest.fixture(scope="module")
def three():
    return make_classification(n_samples=150, n_features=6, n_informative=4, n_classes=3, random_state=1)


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 5))
    Y = (X[:, :3] + 0.3 * rng.normal(size=(90, 3)) > [0, 0.5, 1]).astype(int)
    return X, Y


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
        svc = MeasureSVC(measure, C=0.7, tol=1e-6, **options).fit(X, y)
        scores = X @ svc.coef_[0] + svc.intercept_[0]
        bias = 0 if "fit_intercept" in options else svc.intercept_[0] / options.get("intercept_scaling", 1.0)
        norm = svc.coef_[0] @ svc.coef_[0] + bias**2
        weight = 0.7 * svc.price_ * 9
        assert svc.objective_ == pytest.approx(norm / 2 + weight * ref.risk(name, y, scores), rel=1e-9)
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
    reference = OneVsRestClassifier(MeasureSVC("f1", tol=1e-4)).fit(X, y)
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
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)
    assert weighted.score(X, y, times) == pytest.approx(
        weighted.score(np.repeat(X, times, axis=0), np.repeat(y, times)), abs=1e-9
    )


@pytest.mark.parametrize("measure", list(REGISTRY))
def test_class_weight(binary, measure):
    X, y = binary
    for class_weight, factors in (("balanced", len(y) / (2 * np.bincount(y))), ({0: 1.0, 1: 2.5}, np.array([1, 2.5]))):
        by_class = MeasureSVC(measure, class_weight=class_weight).fit(X, y)
        by_example = MeasureSVC(measure).fit(X, y, sample_weight=factors[y])
        assert by_class.objective_ == pytest.approx(by_example.objective_, rel=1e-9)
        assert by_class.status_.ok


@pytest.mark.parametrize("factor", [1e-12, 1 / 150, 1e6])
@pytest.mark.parametrize("measure", ["f1", "error", "roc_area", "gmean", "prbep", "precision_at_k"])
def test_all_weights_times_a_factor_is_C_times_it(binary, measure, factor):
    X, y = binary
    weighted = MeasureSVC(measure, C=0.3 / factor, tol=1e-6).fit(X, y, sample_weight=np.full(len(y), factor))
    plain = MeasureSVC(measure, C=0.3, tol=1e-6).fit(X, y)
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
    assert MeasureSVC("f1").fit(X, y).threshold_ == 0


def test_top_k_of_a_batch(binary):
    X, y = binary
    svc = MeasureSVC("prbep").fit(X, np.where(y, "in", "out"))
    for k in (0, 1, 37, len(y)):
        called = svc.predict_top_k(X, k)
        assert (called == svc.classes_[1]).sum() == k
        if 0 < k < len(y):
            scores = svc.decision_function(X)
            assert scores[called == svc.classes_[1]].min() >= scores[called != svc.classes_[1]].max()
    for bad in (-1, len(y) + 1):
        with pytest.raises(ValueError, match="expected k from 0 to the 150 examples"):
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


# --- runs that do not reach their end


def test_a_gap_not_reached_is_said(binary):
    X, y = binary
    svc = MeasureSVC("f1", C=100, max_iter=2, tol=1e-6)
    with pytest.warns(ConvergenceWarning, match="the gap is") as caught:
        svc.fit(X, y)
    assert f"the gap is {svc.gap_:.3g}, tol 1e-06" in str(caught[0].message)
    assert svc.status_ is Status.MAX_ITER
    assert svc.n_iter_ == 2
    assert caught[0].filename == __file__


def test_a_gap_not_reached_for_some_labels_is_said(labels):
    X, Y = labels
    with pytest.warns(ConvergenceWarning, match=r"\(3 of 3 labels\)"):
        MeasureSVC("f1", C=100, max_iter=2, tol=1e-6).fit(X, Y)


@pytest.mark.parametrize("C", [10.0, np.float64(10.0)])
def test_the_callback_stops_the_fit(binary, C):
    X, y = binary
    records = []

    def callback(record):
        records.append(record)
        return record.gap < 0.3

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svc = MeasureSVC("f1", C=C, tol=1e-7, callback=callback).fit(X, y)
    assert svc.status_ is Status.CALLBACK
    assert svc.n_iter_ == len(records)
    assert records[-1].gap < 0.3 <= records[-2].gap
    assert svc.gap_ == pytest.approx(records[-1].gap)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(binary, stop):
    X, y = binary
    svc = MeasureSVC("f1").fit(pd.DataFrame(X, columns=list("abcdef")), y)
    before = {key: value for key, value in vars(svc).items() if key.endswith("_")}

    def interrupt(record):
        raise stop

    svc.set_params(callback=interrupt)
    with pytest.raises(stop):
        svc.fit(X[:, :4], y)
    after = {key: value for key, value in vars(svc).items() if key.endswith("_")}
    assert before.keys() == after.keys()
    assert all(after[key] is value or after[key] == value for key, value in before.items())
    assert svc.predict(pd.DataFrame(X, columns=list("abcdef"))).shape == y.shape
    fresh = MeasureSVC("f1", callback=interrupt)
    with pytest.raises(stop):
        fresh.fit(X, y)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


SCRIPT = """
import numpy as np
from metrimax import MeasureSVC
rng = np.random.default_rng(0)
y = rng.random(500) < 0.2
for verbose in (0, 1):
    MeasureSVC(verbose=verbose).fit(rng.normal(size=(500, 5)) + y[:, None], y)
"""


def test_nothing_is_written_to_a_pipe():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    assert done.stdout == done.stderr == b""


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_progress_is_shown_on_a_terminal():
    import os
    import pty

    leader, follower = pty.openpty()
    done = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    try:
        while piece := os.read(leader, 4096):
            shown += piece
    except OSError:  # Linux says so when the other side has closed
        pass
    os.close(leader)
    assert done.wait() == 0
    assert b"MeasureSVC(fbeta): iteration 1, gap " in shown
    assert shown.endswith(b"\r\x1b[K")  # the line is wiped at the end


# --- bad input: a clear error each

GOOD = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) < 6


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.where(np.eye(20, 3) > 0, np.nan, GOOD[0]), GOOD[1], "NaN"),
        (np.where(np.eye(20, 3) > 0, np.inf, GOOD[0]), GOOD[1], "infinity"),
        (GOOD[0], np.ones(20), "one class"),
        (GOOD[0][:0], GOOD[1][:0], "minimum of 1 is required"),
        (GOOD[0][:, :0], GOOD[1], "0 feature"),
        (GOOD[0], GOOD[1][:7], "inconsistent numbers of samples"),
        (GOOD[0][:, 0], GOOD[1], "Expected 2D array"),
        (GOOD[0][None], GOOD[1], "dim 3"),
        (GOOD[0], np.linspace(0, 1, 20), "continuous"),
        (GOOD[0], np.column_stack([np.arange(20) % 3, np.arange(20) % 2]), "multiclass-multioutput"),
        (GOOD[0], np.where(np.arange(20) == 3, np.nan, 1.0), "NaN"),
        (GOOD[0] + 1j, GOOD[1], "[Cc]omplex"),
        (np.full((20, 2), "a"), GOOD[1], "could not convert"),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        MeasureSVC().fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"C": 0}, ValueError, "C > 0"),
        ({"C": -1.0}, ValueError, "C > 0"),
        ({"C": np.inf}, ValueError, "C > 0"),
        ({"C": np.nan}, ValueError, "C > 0"),
        ({"C": "1"}, ValueError, "C > 0"),
        ({"tol": 0}, ValueError, "tol > 0"),
        ({"tol": -1e-3}, ValueError, "tol > 0"),
        ({"tol": None}, ValueError, "tol > 0"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"max_iter": 1.5}, ValueError, "max_iter"),
        ({"measure": "f7"}, ValueError, "unknown measure 'f7'"),
        ({"measure": 7}, TypeError, "expected measure as a name"),
        ({"measure": FBeta}, TypeError, "call it"),
        ({"measure": PrecisionAtK(21)}, ValueError, "k = 21 is more than the 20 examples"),
        ({"measure": RecallAtK("4p")}, ValueError, "k = 24 is more than the 20 examples"),
        ({"measure": lambda tp, fp, fn, tn: tp * np.nan}, ValueError, "returned nan"),
        ({"measure": lambda tp, fp, fn, tn: np.ones(3)}, ValueError, "expected the same shape"),
        ({"measure": lambda tp, fp, fn, tn: 7 * fn}, ValueError, "expected values in"),
        ({"measure": TableFunction(lambda tp, fp, fn, tn: tp / (tp + fp))}, ValueError, "returned nan"),
        ({"solver": "newton"}, ValueError, "unknown solver 'newton': expected one of auto, bundle, cutting_plane"),
        ({"intercept_scaling": 0.0}, ValueError, "positive and finite"),
        ({"intercept_scaling": -1.0}, ValueError, "positive and finite"),
        ({"n_threads": 0}, ValueError, "n_threads"),
        ({"class_weight": "heavy"}, ValueError, "class_weight"),
        ({"class_weight": {False: -1.0, True: 1.0}}, ValueError, "[Nn]egative"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with np.errstate(all="ignore"), pytest.raises(error, match=message):
        MeasureSVC(**parameters).fit(*GOOD)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.where(np.arange(20) == 3, -1.0, 1.0), "[Nn]egative"),
        (np.where(np.arange(20) == 3, np.nan, 1.0), "NaN"),
        (np.where(np.arange(20) == 3, np.inf, 1.0), "infinity"),
        (np.ones(19), "sample_weight"),
        (np.ones((20, 2)), "1D array"),
        (np.zeros(20), "above zero|[Zz]ero|zero weights"),
        ((~GOOD[1]).astype(float), "no positive example"),
        (GOOD[1].astype(float), "no negative example"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        MeasureSVC().fit(*GOOD, sample_weight=weight)


def test_predicting_with_what_was_not_fitted():
    with pytest.raises(NotFittedError):
        MeasureSVC().predict(GOOD[0])
    svc = MeasureSVC().fit(*GOOD)
    with pytest.raises(ValueError, match="expecting 3 features"):
        svc.predict(GOOD[0][:, :2])
    with pytest.raises(ValueError, match="NaN"):
        svc.predict(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match=r"inconsistent|length|shape"):
        svc.score(GOOD[0], GOOD[1][:5])


def test_a_users_function_that_fails_in_the_middle_of_a_run(binary):
    """The search meets a table that the probe has seen too: NaN anywhere is found before the run begins."""
    X, y = binary
    calls = []

    def sometimes(tp, fp, fn, tn):
        calls.append(1)
        return tp / (tp + fn) if len(calls) < 10 else np.full(np.shape(tp), np.nan)

    svc = MeasureSVC("f1").fit(X, y)
    before = svc.coef_
    svc.set_params(measure=get_measure(sometimes), tol=1e-9)
    with pytest.raises(ValueError, match="returned nan"):
        svc.fit(X, y)
    assert svc.coef_ is before
