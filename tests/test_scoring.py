"""What `score` makes of labels, weights and ties; and the checks of what is given with y."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, cross_val_score
from sklearn.tree import DecisionTreeClassifier

from metrimax import MeasureEnsemble, MeasureSVC, MeasureSVCCV, PrecisionAtK, RecallAtBudget, RecallAtK, path


def sample(n=120, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, 4)) + rng.normal(size=(classes, 4))[y], y


REFERENCE = {"roc_area": roc_auc_score, "average_precision": average_precision_score}


@pytest.mark.parametrize("measure", ["f1", "error", "balanced_error"])
def test_of_equal_scores_one_class_is_called_as_predict_does(measure):
    X, y = sample()
    svc = MeasureSVC(measure, C=1e-6).fit(X, y)
    svc.coef_, svc.intercept_, svc.threshold_ = np.zeros((3, 4)), np.zeros(3), np.zeros(3)
    called = svc.predict(X)
    assert (called == 0).all()
    expected = {
        "f1": f1_score(y, called, average="macro", zero_division=0),
        "error": np.mean(y == called),
        "balanced_error": 0.5,  # everything on one side, class by class
    }
    assert svc.score(X, y) == pytest.approx(expected[measure])


def test_trained_scores_that_are_equal():
    X, y = sample()
    svc = MeasureSVC("f1", C=1e-6).fit(X, y)
    assert svc.score(X, y) == pytest.approx(f1_score(y, svc.predict(X), average="macro", zero_division=0))


@pytest.mark.parametrize("measure", REFERENCE)
def test_rankings_of_a_batch_without_a_class(measure):
    X, y = sample()
    svc = MeasureSVC(measure).fit(X, y)
    some = y < 2
    scores = svc.decision_function(X[some])
    expected = np.mean([REFERENCE[measure](y[some] == c, scores[:, c]) for c in (0, 1)])
    assert svc.score(X[some], y[some]) == pytest.approx(expected)
    weight = (y < 2).astype(float)  # what weighs nothing is not there
    assert svc.score(X, y, weight) == pytest.approx(expected)
    with pytest.raises(ValueError, match="expected examples of both classes, got only one"):
        svc.score(X[y == 1], y[y == 1])


@pytest.mark.parametrize("measure", REFERENCE)
def test_rankings_of_a_batch_without_a_label(measure):
    X, y = sample()
    Y = np.column_stack([y == 0, y > 0, np.arange(len(y)) < 2]).astype(int)
    svc = MeasureSVC(measure).fit(X, Y)
    scores = svc.decision_function(X[2:])
    expected = np.mean([REFERENCE[measure](Y[2:, k], scores[:, k]) for k in (0, 1)])
    assert svc.score(X[2:], Y[2:]) == pytest.approx(expected)
    with pytest.raises(ValueError, match="expected examples of both classes, got only one"):
        svc.score(X, np.ones_like(Y))


def test_measures_of_labellings_still_count_every_label():
    X, y = sample()
    Y = np.column_stack([y == 0, np.zeros(len(y))]).astype(int)
    svc = MeasureSVC("error").fit(X, Y)
    assert svc.score(X, Y) == pytest.approx(np.mean(svc.predict(X) == Y))


def test_labels_of_another_kind():
    X, y = sample(classes=2)
    named = np.where(y, "spam", "ham")
    svc = MeasureSVC("f1").fit(X, named)
    with pytest.raises(ValueError, match=r"expected y with some of the classes \['ham', 'spam'\].* got \[.*True.*\]"):
        svc.score(X, y == 1)
    with pytest.raises(ValueError, match="give the labels as in fit"):
        svc.score(X, np.where(y, "eggs", "bacon")[:, None])
    assert svc.score(X[y == 0], named[y == 0]) <= 1  # one of the classes is enough
    X, y = sample()
    with pytest.raises(ValueError, match=r"expected y with some of the classes \[0, 1, 2\].* got \['a'\]"):
        MeasureSVC("error").fit(X, y).score(X, np.full(len(y), "a"))


@pytest.mark.parametrize("measure", ["f1", "error"])
def test_a_fold_of_a_class_that_the_others_lack(measure):
    X, y = sample(n=30, classes=2)
    y[0] = 2
    scores = cross_val_score(MeasureSVC(measure), X, y, cv=LeaveOneOut(), error_score="raise")
    assert scores[0] == 0
    results = MeasureSVCCV(measure, Cs=[1.0], cv=LeaveOneOut()).fit(X, y).cv_results_
    assert np.isfinite(results["pooled_test_score"]).all()


def test_lengths_and_weights():
    for X, y in (sample(classes=2), sample()):
        for measure in ("f1", "error", "roc_area"):
            svc = MeasureSVC(measure).fit(X, y)
            with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[120, 5\]"):
                svc.score(X, y[:5])
            with pytest.raises(ValueError, match="Negative values"):
                svc.score(X, y, np.where(np.arange(len(y)) == 3, -1.0, 1.0))


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
@pytest.mark.parametrize("measure", ["f1", "error", "roc_area"])
def test_an_example_without_a_label_is_not_a_negative_one(measure, missing):
    for X, y in (sample(classes=2), sample()):
        for labels in (y, np.array(["a", "b", "c"])[y]):
            svc = MeasureSVC(measure).fit(X, labels)
            holes = labels.astype(object)
            holes[[3, 5]] = missing
            with pytest.raises(ValueError, match=r"expected y without missing values, .* at place 3, one of 2: leave"):
                svc.score(X, holes)
            for ask in (svc.score, MeasureSVC(measure).fit):  # as a list, of which NumPy would make strings
                with pytest.raises(ValueError, match=r"expected y without missing values, .* at place 3, one of 2"):
                    ask(X, holes.tolist())
    with pytest.raises(ValueError, match="expected y without missing values"):
        MeasureSVC(measure).fit(X, y).score(X, np.where(y == 0, np.nan, y))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
def test_labels_of_any_precision(dtype):
    X, y = sample(classes=2)
    svc = MeasureSVC().fit(X, y.astype(dtype))
    assert svc.classes_.dtype == dtype
    assert svc.score(X, y) == MeasureSVC().fit(X, y).score(X, y)


def test_a_grid_search_whose_folds_lack_a_class():
    X, y = sample()
    order = np.argsort(y, kind="stable")
    for measure in ("f1", "error"):
        search = GridSearchCV(MeasureSVC(measure), {"C": [0.1, 1.0]}, cv=KFold(4), error_score="raise")
        assert np.isfinite(search.fit(X[order], y[order]).cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("values", [(1, 2), (0, 2), (-1, 0)])
def test_an_indicator_matrix_says_what_is_a_label(values):
    X, y = sample()
    Y = np.column_stack([y == 0, y == 1])
    low, high = values
    with pytest.raises(ValueError, match=rf"of 0 and 1, or of -1 and 1, got the values \[{low}, {high}\]: compare"):
        MeasureSVC().fit(X, np.where(Y, high, low))
    svc = MeasureSVC().fit(X, Y)
    with pytest.raises(ValueError, match=rf"got the values \[{low}, {high}\]"):
        svc.score(X, np.where(Y, high, low))
    for usual in (Y.astype(int), Y.astype(float), np.where(Y, 1, -1)):
        assert MeasureSVC().fit(X, usual).score(X, usual) == svc.score(X, Y)


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf, "heavy"])
def test_weights_of_classes_are_not_negative(wrong):
    X, y = sample()
    with pytest.raises(ValueError, match=r"expected class_weight as finite numbers that are not negative, got \{1: "):
        MeasureSVC(class_weight={0: 1.0, 1: wrong, 2: 1.0}).fit(X, y)
    Y = np.column_stack([y == 0, y == 1]).astype(int)
    with pytest.raises(ValueError, match="expected class_weight"):  # two of them would make a positive product
        MeasureSVC(class_weight=[{0: 1.0, 1: wrong}, {0: wrong, 1: 1.0}]).fit(X, Y)


def test_a_path_refuses_what_the_estimator_refuses():
    X, y = sample(classes=2)
    for value in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="expected a finite tol > 0, got"):
            path(X, y, tol=value)
    for value in (0, -1, 2.5):
        with pytest.raises(ValueError, match="expected max_iter as a whole number of at least 1, got"):
            path(X, y, max_iter=value)
    for value in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="expected finite sample_weight >= 0, got NaN, infinite or negative"):
            path(X, y, sample_weight=np.where(np.arange(len(y)) == 3, value, 1.0))
    names = np.array(["a", "b"])[y.astype(int)].tolist()
    for missing in (np.where(y, 1.0, np.nan), np.where(y, "a", None), [*names[1:], np.nan], [*names[1:], pd.NA]):
        with pytest.raises(ValueError, match="expected y without missing values"):
            path(X, missing)
    for value in (np.nan, np.inf, -np.inf):
        wrong = np.where(np.arange(len(y)) == 3, value, 1.0)[:, None] * X
        for given in (wrong, np.asfortranarray(wrong), wrong.astype(np.float32), sparse.csr_matrix(wrong)):
            with pytest.raises(ValueError, match="expected X with finite values, got NaN or infinity"):
                path(given, y)
    for C in (1e-310, 1e308):
        with pytest.raises(ValueError, match="expected C such that its product with the size of the sample"):
            path(X, y, Cs=[1.0, C])
    with pytest.raises(ValueError, match=r"got 120 labels and weights of shape \(5,\)"):
        path(X, y, sample_weight=np.ones(5))


def test_a_path_takes_what_the_estimator_takes():
    X, y = sample(classes=2)
    plain = path(X, y, Cs=[1.0])
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["a"] = frame["a"].astype("Float64")  # columns of several types, as a file may have them
    for given, labels in ((frame, pd.Series(y)), (X.tolist(), y.tolist()), (sparse.csr_array(X), y)):
        found = path(given, labels, Cs=[1.0])
        np.testing.assert_allclose(found.coefs, plain.coefs, rtol=1e-6)
        np.testing.assert_allclose(found.decision_function(given), plain.decision_function(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda y: pd.Series(np.where(y, "yes", "no")).where(np.arange(len(y)) != 7), "got nan at place 7, one of 1"),
        (lambda y: y.astype(bool).astype(object), r"got objects \(bool\): convert it, as with y.astype\(bool\)"),
        (lambda y: np.where(np.arange(len(y)) == 7, None, y.astype(bool)), "got None at place 7, one of 1"),
        (lambda y: np.array([1, "a"] * (len(y) // 2), dtype=object), r"objects \(int, str\)"),
        (lambda y: [["a"] * (1 + k) for k in y], "MultiLabelBinarizer"),
        (lambda y: [{"a", k} for k in y], "MultiLabelBinarizer"),
        (lambda y: np.column_stack([y, y + 1]), "MultiOutputClassifier"),
    ],
)
def test_labels_that_cannot_be_used_say_what_to_do(labels, message):
    X, y = sample(classes=2)
    with pytest.raises(ValueError, match=message):
        MeasureSVC().fit(X, labels(y))


def brute_top(y, scores, k, of):
    """The positives among the k highest scores, over ``of``."""
    return y[np.argsort(-scores)[:k]].sum() / of


def rare(n=300, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 1.3).astype(int)


@pytest.mark.parametrize("kind", [PrecisionAtK, RecallAtBudget])
@pytest.mark.parametrize("rows", [75, 300, 600])
def test_score_takes_the_share_that_k_has_of_the_training_sample(kind, rows):
    X, y = rare()
    X_test, y_test = rare(rows, seed=4)
    for absolute in (False, True):
        svc = MeasureSVC(kind(60, labellings="rankings", absolute=absolute)).fit(X, y)
        k = 60 if absolute else 60 * rows // 300
        scores, of = svc.decision_function(X_test), k if kind is PrecisionAtK else y_test.sum()
        assert svc.score(X_test, y_test) == pytest.approx(brute_top(y_test, scores, k, of))
        assert svc.predict_top_k(X_test, 60).sum() == 60


def test_a_fixed_k_survives_folds_smaller_than_k():
    X, y = rare()
    for model in (
        MeasureSVC(RecallAtBudget(90)),
        MeasureSVCCV(RecallAtBudget(90), Cs=[0.1], cv=2),
        MeasureSVC("recall@budget=90"),
    ):
        found = cross_val_score(model, X, y, cv=5, error_score="raise")
        assert found.shape == (5,)
        assert (found > 0.5).all()
    with pytest.raises(ValueError, match="k = 90 is more than the 60 examples"):
        cross_val_score(MeasureSVC(RecallAtBudget(90, absolute=True)), X, y, cv=5, error_score="raise")


def test_a_weight_counts_as_so_many_rows_for_k():
    X, y = rare()
    twice = np.full(300, 2.0)
    plain = MeasureSVC(PrecisionAtK(60, "rankings")).fit(X, y)
    doubled = MeasureSVC(PrecisionAtK(120, "rankings")).fit(X, y, twice)
    for model in (plain, doubled):
        expected = brute_top(y, model.decision_function(X), 60, 60)
        assert model.score(X, y) == pytest.approx(expected)
        assert model.score(X, y, twice) == pytest.approx(expected)


def test_an_ensemble_takes_the_share_too():
    X, y = rare()
    model = MeasureEnsemble(PrecisionAtK(60), [("tree", DecisionTreeClassifier(max_depth=3))], cv=3).fit(X, y)
    measure = PrecisionAtK(20)
    assert model.score(X[:100], y[:100]) == pytest.approx(measure.score(y[:100], model.decision_function(X[:100])))


@pytest.mark.parametrize(("k", "absolute"), [("1%", True), (0.1, True), (5, 1), (5, "yes")])
def test_only_a_number_can_be_absolute(k, absolute):
    for kind in (PrecisionAtK, RecallAtK, RecallAtBudget):
        with pytest.raises(ValueError, match="expected absolute as True or False"):
            kind(k, absolute=absolute)
