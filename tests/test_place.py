"""Thresholds placed on the training scores, and what is trained with them by default."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper import PAPER
from sklearn.model_selection import StratifiedKFold

from metrimax import CostModel, MeasureSVC, MeasureSVCCV, RecallAtK, TableFunction, xi_alpha
from metrimax.io.checkpoints import Checkpoint
from metrimax.measure import get_measure
from metrimax.measure.base_loss import wants_base_loss
from metrimax.measure.place import place, place_if_it_pays
from metrimax.training.defaults import RISK_ALONE, family
from metrimax.training.threshold import choose_threshold


def sample(seed=0, n=120, rate=0.2, shift=1.0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < rate
    return rng.normal(size=(n, 3)) + shift * y[:, None], y


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 30), st.booleans(), st.sampled_from(["f1", "gmean", "error", "mcc"]))
def test_the_place_is_the_mean_of_those_within_one_mistake_in_each_class(seed, n, weighted, name):
    rng = np.random.default_rng(seed)
    y = np.arange(n) < rng.integers(1, n)
    scores = rng.integers(-3, 4, n) / 2.0 + y  # ties
    weight = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    measure = get_measure(name)
    n_pos, n_neg = weight[y].sum(), weight[~y].sum()
    one = min(1.0, n_pos / 4, n_neg / 4)
    tables = np.array([[n_pos, 0, 0, n_neg], [n_pos - one, one, one, n_neg - one]]).T
    perfect, mistaken = measure.table_score(*tables)
    ordered = np.unique(scores)
    places = (ordered[1:] + ordered[:-1]) / 2
    values = np.array([measure.score(y, scores - t, weight) for t in places])
    at = place(measure, y, scores, weight if weighted else None)
    trained = measure.score(y, scores, weight)
    if not len(places) or trained >= values.max() - 1e-12:
        assert at == 0
    else:
        middle = places[values >= values.max() - (perfect - mistaken) - 1e-12].mean()
        assert at == pytest.approx(middle) or (at == 0 and measure.score(y, scores - middle, weight) <= trained)
        assert measure.score(y, scores - at, weight) >= trained


def test_rows_without_weight_have_no_say_in_the_place():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    scores, weight = rng.normal(size=200) + y - 1, rng.integers(0, 3, size=200).astype(float)
    used = weight > 0
    expected = place(get_measure("f1"), y[used], scores[used], weight[used])
    assert expected != 0
    assert place(get_measure("f1"), y, scores, weight) == expected


def test_the_place_does_not_hang_on_one_example():
    y = np.arange(40) < 10
    scores = np.r_[np.linspace(1.0, 2.0, 9), 0.2, np.linspace(-2.0, 0.1, 30)] + 3
    least = [place(get_measure("f1"), y, scores + move * (np.arange(40) == 9)) for move in (0.0, -0.3)]
    assert abs(least[0] - least[1]) < 0.25
    assert 3 < min(least) <= max(least) < 4.2


def test_equal_scores_leave_the_threshold_where_it_was():
    assert place(get_measure("f1"), np.array([True, False]), np.array([0.3, 0.3])) == 0.0


def test_the_rule_of_ranking_measures_is_their_own():
    _, y = sample()
    scores = np.random.default_rng(0).normal(size=len(y)) + y
    measure = get_measure("roc_area")
    assert place(measure, y, scores) == measure.threshold(y, scores)


def test_placed_is_at_least_as_good_on_the_training_sample():
    X, y = sample(4, n=300)
    for labels in (y, np.column_stack([y, X[:, 0] > 1]).astype(int)):
        trained = MeasureSVC("f1", C=0.1, hinge=0, threshold="trained").fit(X, labels)
        placed = MeasureSVC("f1", C=0.1, hinge=0, threshold="placed").fit(X, labels)
        np.testing.assert_array_equal(trained.coef_, placed.coef_)
        assert placed.score(X, labels) > trained.score(X, labels)
        assert not trained.threshold_.any()
        assert placed.threshold_.any()


def test_which_measures_take_base_losses_by_default():
    names = "f1", "jaccard", "gmean", "qmean", "kappa", "mcc", "min_tpr_tnr", "balanced_error"
    top = "prbep", "precision_at_k", "recall_at_k"
    for measure in [*map(get_measure, names), CostModel(fn=5), CostModel(fp=2)]:
        assert all(losses.logistic for losses in family(measure, measure).losses)
        assert family(measure, measure).thresholds == ("trained", "folds")
        assert family(measure, measure, together=True).thresholds == ("trained",)
    for name in (*top, "roc_area"):
        assert family(get_measure(name), get_measure(name)).thresholds == ("trained",)
        assert family(get_measure(name), get_measure("f1")).thresholds == ("trained", "folds")
    assert family(get_measure("error"), get_measure("error")) == RISK_ALONE
    assert not any(wants_base_loss(measure) for measure in (get_measure("error"), CostModel(fn=2, fp=2)))


def test_the_top_of_classes_that_overlap_is_learnt_from_hinges():
    measure = RecallAtK(labellings="at_most")
    rng = np.random.default_rng(0)
    y = np.arange(1000) < 50
    X = rng.normal(size=(1000, 4)) + 0.5 * y[:, None]
    with pytest.warns(UserWarning, match="w = 0 is optimal"):
        paper = MeasureSVCCV(measure, Cs=[0.1, 1.0], hinge=0.0).fit(X, y)
    model = MeasureSVCCV(measure, Cs=[0.1, 1.0]).fit(X, y)
    assert model.score(X, y) > paper.score(X, y) + 0.1


@pytest.mark.parametrize("measure", ["balanced_error", CostModel(fn=20)])
def test_costs_of_a_rare_class_that_overlaps_do_not_call_nobody_positive(measure):
    rng = np.random.default_rng(0)
    y = np.arange(1000) < 50
    X = rng.normal(size=(1000, 4)) + 0.7 * y[:, None]
    paper = MeasureSVCCV(measure, Cs=[0.1, 1.0], hinge=0.0, threshold="trained").fit(X, y)
    model = MeasureSVCCV(measure, Cs=[0.1, 1.0]).fit(X, y)
    assert not paper.predict(X).any()  # a larger margin of its own draws no harder than that of a negative
    assert model.score(X, y) > paper.score(X, y) + 0.15
    weighted = MeasureSVC("error", C=1.0, class_weight={True: 20.0, False: 1.0}).fit(X, y)
    assert model.score(X, y) > get_measure(measure).score(y, weighted.decision_function(X)) - 0.05


@pytest.mark.parametrize("other", [{"solver": "dual_cd"}, {"selection": "xi_alpha"}])
def test_what_knows_no_hinges_beside_the_risk_does_without(other):
    X, y = sample(5)
    model = MeasureSVCCV("balanced_error", Cs=[0.1, 1.0], **other).fit(X, y)
    plain = MeasureSVC("balanced_error", C=model.C_, hinge=0, tol=1e-6).fit(X, y)
    assert model.objective_ == pytest.approx(plain.objective_, rel=0.01)
    assert set(model.cv_results_["param_threshold"]) == {"trained"}


def test_no_estimate_for_base_losses_that_cross_validation_took():
    X, y = sample(5)
    with pytest.raises(ValueError, match=r"with logistic=1\.0, for which"):
        xi_alpha(MeasureSVCCV("balanced_error", Cs=[1.0], threshold="trained").fit(X, y), X, y)


def test_the_choice_is_what_is_trained():
    X, y = sample(5)
    chosen = MeasureSVCCV("f1", Cs=[0.1, 1.0], cv=3, threshold="trained").fit(X, y)
    assert chosen.trained_with_["intercept_scaling"] == 10
    same = MeasureSVC("f1", **chosen.trained_with_).fit(X, y)
    np.testing.assert_array_equal(chosen.decision_function(X), same.decision_function(X))
    paper = MeasureSVCCV("f1", Cs=[0.1, 1.0], cv=3, hinge=0.0, threshold="trained").fit(X, y)
    assert paper.trained_with_.items() >= {"risk": 1.0, "hinge": 0.0, "logistic": 0.0}.items()
    same = MeasureSVC("f1", C=paper.C_, hinge=0).fit(X, y)
    np.testing.assert_array_equal(paper.coef_, same.coef_)


def test_the_threshold_of_the_folds_is_that_of_their_scores_together():
    X, y = sample(6, n=200, shift=0.8)
    folds = list(StratifiedKFold(4).split(X, y))
    options = {"hinge": 1.0, "tol": 1e-7}
    model = MeasureSVCCV("f1", Cs=[1.0], cv=folds, threshold="folds", **options).fit(X, y)
    held = np.empty(len(y))
    for train, test in folds:
        held[test] = MeasureSVC("f1", C=1.0, **options).fit(X[train], y[train]).decision_function(X[test])
    assert model.threshold_[0] == pytest.approx(choose_threshold(get_measure("f1"), y, held), abs=0.02)
    (row,) = model.cv_results_["pooled_test_score"]
    assert row == pytest.approx(get_measure("f1").score(y, held - model.threshold_[0]), abs=0.01)


def test_labels_with_few_positives_have_the_threshold_of_training():
    X, y = sample(6, n=300, shift=0.8)
    rare = np.zeros(len(y), dtype=bool)
    rare[np.flatnonzero(y)[:8]] = True
    Y = np.column_stack([y, rare, np.zeros(len(y), dtype=bool)]).astype(int)
    model = MeasureSVCCV("f1", Cs=[0.1, 1.0], cv=3).fit(X, Y)
    assert [one["threshold"] for one in model.trained_with_][1:] == ["trained", "trained"]
    assert model.C_.shape == (3,)
    assert not model.predict(X)[:, 2].any()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"hinge": -1.0}, "finite hinge >= 0, got -1.0"), ({"hinge": "1"}, "hinge"), ({"threshold": "best"}, "'best'")],
)
def test_wrong_values_say_what_was_expected(wrong, says):
    X, y = sample()
    with pytest.raises(ValueError, match=says):
        MeasureSVC("f1", **wrong).fit(X, y)


def test_two_hinges_an_example_are_refused_by_coordinate_descent():
    X, y = sample()
    with pytest.raises(ValueError, match=r"mistakes add up.*solver='bundle'"):
        MeasureSVC("balanced_error", hinge=1.0, solver="dual_cd").fit(X, y)


@pytest.mark.parametrize("measure", ["f1", "balanced_error"])
def test_the_smoothed_sum_has_the_same_solution(measure):
    X, y = sample()
    smooth, bundle = (MeasureSVC(measure, hinge=1.0, solver=name, tol=1e-4).fit(X, y) for name in ("lbfgs", "bundle"))
    assert smooth.status_.ok
    assert smooth.dual_bound_ <= bundle.objective_ * (1 + 1e-12)
    assert bundle.dual_bound_ <= smooth.objective_ * (1 + 1e-12)


def test_a_checkpoint_without_hinges_is_not_used_with_them(tmp_path):
    X, y = sample(7, n=400, shift=0.5)

    def stop(record):
        if record.iteration >= 4:
            raise KeyboardInterrupt

    where = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        MeasureSVC("f1", callback=stop, checkpoint=Checkpoint(where, minutes=0)).fit(X, y)
    fresh = MeasureSVC("f1", hinge=1.0, tol=1e-6).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = MeasureSVC("f1", hinge=1.0, tol=1e-6, checkpoint=Checkpoint(where, minutes=0)).fit(X, y)
    assert again.n_iter_ == fresh.n_iter_
    np.testing.assert_array_equal(again.coef_, fresh.coef_)


@pytest.mark.parametrize("measure", ["balanced_error", "kappa", CostModel(fn=20)])
def test_a_rule_that_calls_all_alike_is_warned_of(measure):
    rng = np.random.default_rng(0)
    y = np.arange(1000) < 50
    X = rng.normal(size=(1000, 4)) + 0.5 * y[:, None]
    with pytest.warns(UserWarning, match="all training examples get the same label, and the loss"):
        MeasureSVC(measure, C=1.0, **PAPER).fit(X, y)
    several = np.column_stack([y, X[:, 0] > 0]).astype(int)
    with pytest.warns(UserWarning, match=r"same label \(1 of 2 labels\)"):
        MeasureSVC(measure, C=1.0, **PAPER).fit(X, several)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MeasureSVC(measure, C=1.0).fit(X, y)
        MeasureSVC(measure, C=1.0, logistic=1.0, risk="even", threshold="placed").fit(X, y)
        MeasureSVC("error", C=1.0).fit(X, y)  # which is right for all but a few


def test_no_threshold_is_placed_between_scores_that_differ_by_rounding():
    """What is learnt without a signal is the intercept, and weights of 1e-16 that would decide all labels."""
    rng = np.random.default_rng(0)
    y = np.arange(30) < 9
    for noise in (0.0, 1e-16, 1e-13):
        assert place(get_measure("mcc"), y, -1.0 + noise * rng.normal(size=30)) == 0.0
    scores = np.concatenate((0.3 + 1e-16 * rng.normal(size=9), 0.1 + 1e-16 * rng.normal(size=21)))
    assert place(get_measure("mcc"), y, scores) == pytest.approx(0.2)


def test_a_table_that_is_not_admitted_is_no_place():
    """Recall alone would call everybody: the function's own constraint holds at the place instead."""
    rng = np.random.default_rng(0)
    y = rng.random(400) < 0.2
    scores = rng.normal(size=400) + 1.5 * y - 3.0
    few = TableFunction(lambda tp, fp, fn, tn: tp / (tp + fn), where=lambda tp, fp, fn, tn: fp <= 40)
    threshold = place(few, y, scores)
    assert 20 <= np.sum((scores > threshold) & ~y) <= 40
    assert place_if_it_pays(few, y, scores) == threshold
    assert place_if_it_pays(few, y, scores + 9) == pytest.approx(threshold + 9), "all are called at zero, too many"
    none = TableFunction(lambda tp, fp, fn, tn: tp / (tp + fn), where=lambda tp, fp, fn, tn: (fp == 0) & (fn == 0))
    assert place(none, y, scores) == 0.0
