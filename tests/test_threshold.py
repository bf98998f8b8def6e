"""Thresholds for scores of examples that the model has not seen."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from metrimax import MeasureSVCCV
from metrimax.measure import MCC, REGISTRY, BalancedError, FBeta, PrecisionAtK, ROCArea, TableFunction
from metrimax.training.threshold import _curve, choose_threshold

TABLE_MEASURES = sorted(name for name, kind in REGISTRY.items() if not kind().ranks)


def overlapping(n_pos, n_neg, seed=0, shift=2.0):
    """Scores of two normal classes: their log-odds are linear in the score."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_pos + n_neg) < n_pos
    return y, rng.normal(size=len(y)) + shift * y


@pytest.mark.parametrize("measure", [FBeta(), BalancedError(), MCC()])
def test_many_examples_have_nearly_the_best_threshold(measure):
    y, scores = overlapping(20_000, 60_000)
    best = max(measure.score(y, scores - t) for t in np.linspace(-2, 4, 601))
    assert measure.score(y, scores - choose_threshold(measure, y, scores)) > best - 0.002


@pytest.mark.parametrize("measure", [FBeta(), BalancedError(), MCC()])
def test_few_examples_have_a_better_threshold_than_the_best_of_the_sample(measure):
    """Averaged over samples and judged on a large one; the best of the sample is found by trying all."""
    truth, others = overlapping(2_000, 20_000, seed=99)
    chosen, greedy = [], []
    for seed in range(40):
        y, scores = overlapping(15, 150, seed)
        places = np.sort(scores)[:-1] + np.diff(np.sort(scores)) / 2
        greedy.append(measure.score(truth, others - max(places, key=lambda t: measure.score(y, scores - t))))
        chosen.append(measure.score(truth, others - choose_threshold(measure, y, scores)))
    assert np.mean(chosen) > np.mean(greedy) + 0.005
    assert np.min(chosen) >= np.min(greedy)


@pytest.mark.parametrize("name", TABLE_MEASURES)
def test_every_measure_of_the_table_has_one_between_the_scores(name):
    y, scores = overlapping(40, 160, shift=3.0)
    threshold = choose_threshold(REGISTRY[name](), y, scores)
    assert scores.min() < threshold < scores.max()
    assert threshold not in scores


@pytest.mark.parametrize("measure", [FBeta(), MCC()])
def test_weights_are_copies_where_there_are_many(measure):
    y, scores = overlapping(20_000, 60_000)
    copies = np.random.default_rng(1).integers(0, 4, len(y))
    copies[y & (scores < 1)] *= 3
    repeated = choose_threshold(measure, np.repeat(y, copies), np.repeat(scores, copies))
    assert choose_threshold(measure, y, scores, copies.astype(float)) == pytest.approx(repeated, abs=0.02)
    assert abs(choose_threshold(measure, y, scores) - repeated) > 0.1


@pytest.mark.parametrize("measure", [FBeta(), MCC()])
def test_the_scale_of_weights_changes_nothing(measure):
    y, scores = overlapping(20, 60)
    weight = np.random.default_rng(1).random(len(y)) * (np.arange(len(y)) % 3 > 0)
    threshold = choose_threshold(measure, y, scores, weight)
    assert choose_threshold(measure, y, scores, 1e-6 * weight) == pytest.approx(threshold)
    used = weight > 0
    assert choose_threshold(measure, y[used], scores[used], weight[used]) == pytest.approx(threshold)


def test_a_heavy_class_of_few_examples_is_still_few():
    """Balanced weights make the rare class as heavy as the other: it has no more to say for that."""
    truth, others = overlapping(5_000, 50_000, seed=99)
    chosen, greedy = [], []
    for seed in range(40):
        y, scores = overlapping(15, 1500, seed)
        weight = np.where(y, 100.0, 1.0)
        places = np.sort(scores)[:-1] + np.diff(np.sort(scores)) / 2
        best = places[np.argmax([FBeta().score(y, scores - t, weight) for t in places])]
        judged = np.where(truth, 10.0, 1.0)
        greedy.append(FBeta().score(truth, others - best, judged))
        chosen.append(FBeta().score(truth, others - choose_threshold(FBeta(), y, scores, weight), judged))
    assert np.mean(chosen) > np.mean(greedy)


def test_order_scale_and_shift_change_nothing():
    y, scores = overlapping(20, 100)
    threshold = choose_threshold(MCC(), y, scores)
    order = np.random.default_rng(0).permutation(len(y))
    assert choose_threshold(MCC(), y[order], scores[order]) == pytest.approx(threshold)
    assert choose_threshold(MCC(), y, 1e-4 * scores + 7) == pytest.approx(1e-4 * threshold + 7)


def test_equal_scores_are_not_parted():
    y, scores = overlapping(30, 90)
    rounded = np.round(scores)
    threshold = choose_threshold(FBeta(), y, rounded)
    assert threshold % 1 == 0.5
    assert choose_threshold(FBeta(), y, rounded + 1e-15 * scores) == pytest.approx(threshold)


@pytest.mark.parametrize(("positives", "called"), [(30, False), (90, True)])
def test_scores_that_are_all_equal_call_the_greater_class(positives, called):
    y = np.arange(120) < positives
    threshold = choose_threshold(TableFunction(lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn)), y, np.ones(120))
    assert (threshold < 1) == called


def test_classes_that_the_scores_separate():
    y = np.arange(40) < 10
    threshold = choose_threshold(MCC(), y, np.where(y, 5.0, -5.0))
    assert threshold == 0.0


def test_scores_in_the_wrong_order_say_nothing():
    y, scores = overlapping(30, 90, shift=-3.0)
    assert np.isfinite(choose_threshold(FBeta(), y, scores))
    falling = _curve(np.array([3.0, 2.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4), (2.0, 2.0))
    np.testing.assert_allclose(falling, 0.5)  # not the curve that fits best, which falls


@pytest.mark.parametrize(("positives", "rule"), [(9, "trained"), (12, "folds")])
def test_few_examples_of_a_class_leave_the_threshold_to_training(positives, rule):
    rng = np.random.default_rng(0)
    y = np.arange(300) < positives
    X = rng.normal(size=(300, 3)) + 2 * y[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MeasureSVCCV("f1", Cs=[1.0], cv=3, threshold="folds").fit(X, y)
    assert model.trained_with_["threshold"] == rule
    assert (model.threshold_[0] == 0) == (rule == "trained")


def test_one_class_calls_all_or_none():
    scores = np.arange(10.0)
    assert choose_threshold(FBeta(), np.ones(10, dtype=bool), scores) < 0
    assert choose_threshold(FBeta(), np.zeros(10, dtype=bool), scores) > 9


def test_a_constraint_holds_on_the_sample():
    def precise(tp, fp, fn, tn):
        return tp >= 0.9 * (tp + fp)

    recall = TableFunction(lambda tp, fp, fn, tn: tp / np.maximum(tp + fn, 1), kind="score", where=precise)
    y, scores = overlapping(2000, 6000)
    called = scores > choose_threshold(recall, y, scores)
    assert np.mean(y[called]) == pytest.approx(0.9, abs=0.01)
    best = max((scores[y] > t).mean() for t in scores if np.mean(y[scores >= t]) >= 0.9)
    assert called[y].mean() > best - 0.02


def test_a_constraint_that_no_threshold_meets_is_said():
    never = TableFunction(lambda tp, fp, fn, tn: tp / (tp + fn), kind="score", where=lambda tp, fp, fn, tn: tp > 1e6)
    y, scores = overlapping(20, 60)
    with pytest.raises(ValueError, match="admits no threshold on these scores"):
        choose_threshold(never, y, scores)


@pytest.mark.parametrize("measure", [ROCArea(), PrecisionAtK(7)])
def test_measures_of_rankings_have_their_own_rule(measure):
    y, scores = overlapping(20, 60)
    assert choose_threshold(measure, y, scores) == measure.threshold(y, scores)


def test_with_a_great_prior_the_threshold_is_that_of_the_curve():
    """Balanced accuracy calls what is more probable than the rate of the class, by scikit-learn's curve here."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=2000)
    y = rng.random(2000) < 1 / (1 + np.exp(3 - 2 * scores))
    y[(scores > 0.1) & (scores < 0.7)] = True  # no logistic curve has this step
    fitted = LogisticRegression(C=np.inf).fit(scores[:, None], y)
    expected = (np.log(y.mean() / (1 - y.mean())) - fitted.intercept_[0]) / fitted.coef_[0, 0]
    of_curve, of_labels = (choose_threshold(BalancedError(), y, scores, prior=prior) for prior in (1e9, 1e-9))
    assert of_curve == pytest.approx(expected, abs=0.02)
    assert of_labels == pytest.approx(0.1, abs=0.02)
    assert of_curve - of_labels > 0.04
