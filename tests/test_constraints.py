"""Measures under a constraint: what they report, the margin of their thresholds, and warnings where none keeps it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_curve, precision_score, recall_score, roc_curve

from metrimax import (
    CostModel,
    MeasureEnsemble,
    MeasureSVC,
    MeasureSVCCV,
    PrecisionAtRecall,
    RecallAtBudget,
    RecallAtPrecision,
    TPRAtFPR,
)
from metrimax.cli.report import parse_measure
from metrimax.designs import as_design
from metrimax.measure import get_measure, ranking_measure
from metrimax.measure.base_loss import Losses
from metrimax.protocols import Measure
from metrimax.solvers import Auto
from metrimax.training.label import FittedLabel, Frozen, Training, fit_label
from metrimax.training.lockstep import run


def sample(seed: int, n: int = 200, levels: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores with ties."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    return y, np.round((rng.normal(size=n) + 1.5 * y) * levels / 8)


@pytest.mark.parametrize("seed", range(10))
def test_scores_are_the_best_over_all_thresholds(seed):
    y, scores = sample(seed)
    precision, recall, _ = precision_recall_curve(y, scores)
    fpr, tpr, _ = roc_curve(y, scores, drop_intermediate=False)
    for level in (0.5, 0.7, 0.9, 1.0):
        expected = max((r for p, r in zip(precision, recall, strict=True) if p >= level), default=0)
        assert RecallAtPrecision(level).score(y, scores) == pytest.approx(expected)
        expected = max(p for p, r in zip(precision[:-1], recall[:-1], strict=True) if r >= level)
        assert PrecisionAtRecall(level).score(y, scores) == pytest.approx(expected)
        assert TPRAtFPR(1 - level).score(y, scores) == pytest.approx(tpr[fpr <= 1 - level + 1e-12].max())


def test_what_no_threshold_keeps_scores_nothing():
    y = np.array([False, True, False, False])
    assert RecallAtPrecision(0.6).score(y, np.array([4.0, 3.0, 2.0, 1.0])) == 0
    assert RecallAtPrecision(0.5).score(y, np.array([4.0, 3.0, 2.0, 1.0])) == 1


def test_a_budget_is_a_number_or_a_share():
    y, scores = sample(0)
    called = np.argsort(-scores, kind="stable")[:20]
    y[called], scores[called] = np.arange(20) % 2 == 0, scores.max() + 1 + np.arange(20)
    for budget in (20, "10%", 0.1):
        assert RecallAtBudget(budget).score(y, scores) == pytest.approx(10 / y.sum())
    for budget in (0, 1.5, "10", "0%", -0.1, None):
        with pytest.raises(ValueError, match=r"expected k as a whole number of at least 1.*such as '1%'"):
            RecallAtBudget(budget)
    weight = np.where(y, 1.5, 1.0)
    with pytest.raises(ValueError, match="labellings='at_most' takes others"):
        RecallAtBudget("50%").oracle(y, weight)
    assert RecallAtBudget("50%", "at_most").oracle(y, weight).price >= 1


@pytest.mark.parametrize(
    ("measure", "counts"),
    [
        (RecallAtPrecision(0.7, 0.9), lambda y, z: ((y & z).sum(), (~y & z).sum())),
        (PrecisionAtRecall(0.6, 0.9), lambda y, z: ((y & z).sum(), (y & ~z).sum())),
        (TPRAtFPR(0.2, 0.9), lambda y, z: ((~y & ~z).sum(), (~y & z).sum())),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_the_threshold_is_the_best_with_a_margin(measure, counts):
    """By the binomial test written out, over all thresholds."""
    found = 0
    for seed in range(10):
        y, scores = sample(seed)
        best = -1.0
        for at in [*(np.unique(scores) - 0.25), scores.max() + 1]:
            good, bad = counts(y, scores > at)
            if binom.sf(good - 1, good + bad, measure.level) <= 0.1:
                table = [
                    np.asarray(float(t.sum())) for t in (y & (scores > at), ~y & (scores > at), y & (scores <= at))
                ]
                best = max(best, float(measure.value(*table, np.asarray(0.0))))
        threshold = measure.threshold(y, scores)
        calls = scores > threshold
        good, bad = counts(y, calls)
        if best >= 0:
            found += 1
            assert binom.sf(good - 1, good + bad, measure.level) <= 0.1
            rule = y, scores - threshold
            assert measure.shortfall(measure.merit(*rule), measure.reach(*rule)) is None
            reached = recall_score(y, calls) if measure.name != "precision_at_recall" else precision_score(y, calls)
            assert reached == pytest.approx(best)
        # weights of 2 are two examples; equal weights other than 1 say nothing about how many there are
        twice = np.full(len(y), 2.0)
        assert measure.threshold(y, scores, 3.7 * np.ones(len(y))) == threshold
        assert measure.score(y, scores, twice) == pytest.approx(measure.score(y, scores))
    assert found >= 5


def doubts(measure: RecallAtPrecision, y: np.ndarray, scores: np.ndarray) -> dict[float, float]:
    """By the binomial test written out: how likely so many right calls are at the level, for every threshold."""
    calls = {at: y[scores > at] for at in [*(np.unique(scores) - 0.25), scores.max() + 1]}
    return {at: binom.sf(own.sum() - 1, len(own), measure.level) for at, own in calls.items()}


@pytest.mark.parametrize("measure", [RecallAtPrecision(0.7, 0.5), PrecisionAtRecall(0.9, 0.5), TPRAtFPR(0.3, 0.5)])
def test_scores_that_differ_by_rounding_are_equal(measure):
    """Halfway between neighbouring numbers is one of them: the rows there would be on the wrong side."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = rng.integers(5, 80)
        y = np.arange(n) < max(1, n // 3)
        plain = rng.integers(1, 6, n) + np.where(y, rng.integers(0, 3, n), 0)
        scores = plain * (1 + rng.integers(-2, 3, n) * np.finfo(float).eps)
        at, other = measure.threshold(y, scores), measure.threshold(y, plain.astype(float))
        assert ((scores > at) == (plain > other)).all()
        assert measure.score(y, scores) == measure.score(y, plain.astype(float))


def test_where_none_keeps_it_the_likeliest_is_taken_and_said():
    taken = 0
    for seed in range(30):
        y, scores = sample(seed, n=60)
        measure = RecallAtPrecision(0.8, confidence=0.95)
        every, threshold = doubts(measure, y, scores), measure.threshold(y, scores)
        least = min(every.values())
        if least <= 0.05:
            continue
        called = y[scores > threshold]
        warning = measure.shortfall(measure.merit(y, scores - threshold), measure.reach(y, scores)) or ""
        if least > 0.5:  # less likely than not
            assert len(called) == 0
            assert "nothing is called positive" in warning
        else:
            taken += 1
            assert binom.sf(called.sum() - 1, len(called), 0.8) == pytest.approx(least)
            assert f"the one that was taken keeps it with {1 - least:.2g}" in warning
    assert taken > 3


def test_the_warning_says_what_can_be_kept():
    y, scores = sample(3)
    for make in (RecallAtPrecision, lambda level: TPRAtFPR(1 - level)):
        reach = make(0.999).reach(y, scores)
        below, above = make(reach - 1e-3), make(reach + 1e-3)
        assert below.merit(y, scores - below.threshold(y, scores)) >= 0
        assert above.merit(y, scores - above.threshold(y, scores)) < 0
    assert "a false positive rate of 0.5 can be kept" in (TPRAtFPR(0.001).shortfall(-0.6, 0.5) or "")
    assert "a recall of 0.5 can be kept" in (PrecisionAtRecall(0.9).shortfall(-0.6, 0.5) or "")


def test_a_recall_that_no_threshold_is_sure_of_calls_all():
    y = np.array([True, True, False, False])
    measure = PrecisionAtRecall(0.9)
    assert measure.threshold(y, np.array([4.0, 1.0, 3.0, 2.0])) < 1.0


def test_what_breaks_the_constraint_on_training_scores_is_placed_anew():
    """A threshold from folds whose models scored on another scale: all would be called."""
    y, scores = sample(3)
    measure = RecallAtPrecision(0.7)
    own = measure.threshold(y, scores)
    assert measure.confirmed(scores.min() - 5, y, scores) == own
    assert measure.confirmed(own, y, scores) == own
    above = float(np.sort(scores)[-4]) + 0.5  # with few calls, all right: no margin, but the constraint holds
    assert (y[scores > above]).all()
    assert measure.confirmed(above, y, scores) == above
    assert measure.confirmed(scores.max() + 1, y, scores) == scores.max() + 1  # nothing is called: it holds, too


@pytest.mark.parametrize("frozen", [-1e3, 0.3, 1e3])
def test_a_frozen_threshold_of_a_constraint_is_checked_on_the_final_model(frozen):
    X, y = make_classification(200, 4, random_state=0)
    labels, design = y == 1, as_design(X)
    measure, f1 = RecallAtPrecision(0.95), get_measure("f1")

    def fitted(of: Measure) -> FittedLabel:
        training = Training(f1, Auto(), 1e-3, losses=Losses(logistic=1.0), frozen=Frozen(of, frozen))
        [label] = run(design, [fit_label(training, design, labels, None, 1.0)])
        return label

    assert fitted(f1).threshold == frozen
    found = fitted(measure)
    scores = design.matvec(found.solution.w[:, None])[:, 0]
    called = labels[scores > frozen]
    broken = len(called) > 0 and called.mean() < 0.95
    assert found.threshold == (measure.threshold(labels, scores) if broken else frozen)
    assert broken == (frozen < 1e3)


def test_whoever_keeps_the_constraint_is_better_than_who_does_not():
    y, scores = sample(3)
    measure = RecallAtPrecision(0.7)
    kept = scores - measure.threshold(y, scores)
    assert measure.merit(y, kept) == pytest.approx(recall_score(y, kept > 0))
    everyone, half = measure.merit(y, scores - scores.min() + 1), measure.merit(y, scores - np.median(scores))
    assert -1 <= everyone <= half < 0 < measure.merit(y, kept)


def test_all_or_none_of_the_bad_leaves_no_margin_but_can_be_asked_for():
    y = np.arange(20) >= 10
    scores = np.arange(20.0)
    assert RecallAtPrecision(1.0).threshold(y, scores) == 9.5
    assert TPRAtFPR(0.0).threshold(y, scores) == 9.5
    assert PrecisionAtRecall(1.0).threshold(y, scores) == 9.5


def test_the_margin_keeps_its_confidence():
    """On new data the precision is below the level at most as often as the confidence allows, for one fixed rule."""
    rng = np.random.default_rng(0)
    level, fixed, missed = 0.8, 0.5, 0
    for _ in range(300):
        y = rng.random(400) < 0.5
        scores = rng.normal(size=400) + 1.3 * y
        # P(y | s > fixed) of this population, both classes equally frequent
        true = norm.sf(fixed - 1.3) / (norm.sf(fixed - 1.3) + norm.sf(fixed))
        tp, fp = (y & (scores > fixed)).sum(), (~y & (scores > fixed)).sum()
        sure = RecallAtPrecision(level, 0.75).assured(*map(np.asarray, (float(tp), float(fp), 0.0, 0.0)))
        missed += sure > true
    assert missed / 300 <= 0.25 + 2 * np.sqrt(0.25 * 0.75 / 300)


def test_names_hold_the_level_in_python_and_on_the_command_line():
    for name, measure in {
        "recall@precision=0.9": RecallAtPrecision(0.9),
        "Recall@Precision=.8": RecallAtPrecision(0.8),
        "precision@recall=0.8": PrecisionAtRecall(0.8),
        "tpr@fpr=0.01": TPRAtFPR(0.01),
        "recall@budget=100": RecallAtBudget(100),
        "recall@budget=1%": RecallAtBudget("1%"),
    }.items():
        assert get_measure(name) == measure
        assert parse_measure(name) == measure
    assert parse_measure("recall@precision=0.9:confidence=0.9") == RecallAtPrecision(0.9, 0.9)
    with pytest.raises(ValueError, match=r"there are recall@precision=\.\.\., precision@recall=\.\.\."):
        get_measure("recall@specificity=0.9")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RecallAtPrecision(90), r"recall_at_precision: expected precision > 0 and <= 1, got 90"),
        (lambda: RecallAtPrecision("0.9"), r"expected precision > 0 and <= 1, got '0.9'"),
        (lambda: PrecisionAtRecall(0), r"expected recall > 0 and <= 1, got 0"),
        (lambda: TPRAtFPR(1), r"expected fpr >= 0 and < 1, got 1"),
        (lambda: TPRAtFPR(0.1, confidence=1), r"expected a confidence between 0 and 1, got 1"),
        (lambda: ranking_measure("tpr_at_fpr"), r"expected a measure of rankings .* MeasureSVC trains for it"),
        (lambda: CostModel.from_matrix([1, 2]), r"expected a 2 x 2 cost matrix"),
        (lambda: CostModel.from_matrix([[1, 0], [1, 0]]), r"a mistake costs no less than the right call"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_cost_matrix_is_that_of_confusion_matrix():
    assert CostModel.from_matrix([[0, 1], [5, 0]]) == CostModel(fn=5, fp=1)
    assert CostModel.from_matrix([[-1, 1], [5, -20]]) == CostModel(fn=25, fp=2)


@pytest.fixture(scope="module")
def overlapping():
    X, y = make_classification(4000, 10, n_informative=5, weights=[0.8], flip_y=0.05, class_sep=1.2, random_state=0)
    return X[:2000], y[:2000], X[2000:], y[2000:]


@pytest.mark.parametrize("measure", ["recall@precision=0.8", "precision@recall=0.6", "tpr@fpr=0.05"])
def test_models_keep_the_constraint_on_new_data(overlapping, measure):
    a, ya, b, yb = overlapping
    trees = [("trees", ExtraTreesClassifier(50, random_state=0)), ("linear", LogisticRegression())]
    for model in (MeasureSVCCV(measure), MeasureEnsemble(measure, estimators=trees, random_state=0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            calls = model.fit(a, ya).predict(b)
        tp, fp, fn, tn = ((yb == i) & (calls == j) for i, j in ((1, 1), (0, 1), (1, 0), (0, 0)))
        good, bad = get_measure(measure).proportion(*(np.asarray(float(t.sum())) for t in (tp, fp, fn, tn)))
        assert good / (good + bad) >= get_measure(measure).level - 0.05
        assert tp.sum() > 0.15 * yb.sum()
        assert model.score(b, yb) == pytest.approx(get_measure(measure).score(yb == 1, model.decision_function(b)))


def test_a_constraint_out_of_reach_is_said_once(overlapping):
    a, ya, b, _ = overlapping
    noise = np.random.default_rng(0).permutation(ya)
    trees = [("trees", ExtraTreesClassifier(20, random_state=0))]
    measure = RecallAtPrecision(0.95)
    for model in (MeasureSVCCV(measure), MeasureEnsemble(measure, estimators=trees, random_state=0)):
        with pytest.warns(UserWarning, match=r"no threshold keeps a precision of 0\.95 on other data") as caught:
            model.fit(a, noise)
        assert sum("no threshold keeps" in str(one.message) for one in caught) == 1
        assert model.predict(b).shape == (2000,)


def test_one_fit_has_the_margin_of_its_training_scores(overlapping):
    a, ya, _, _ = overlapping
    with pytest.warns(UserWarning, match="on the training scores, .* MeasureSVCCV places it on scores out of fold"):
        svc = MeasureSVC(RecallAtPrecision(0.8), hinge=1).fit(a, ya)
    assert precision_score(ya, svc.predict(a)) > 0.8
    assert svc.gap_ <= 1e-3
