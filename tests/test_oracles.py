"""The oracles against brute force: value, slope, validity of the cut elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from hypothesis import example, given
from hypothesis import strategies as st
from oracle_samples import CASES, close, large_sample, quick, samples, value

from metrimax import _kernels
from metrimax.measure import (
    PRBEP,
    ROCArea,
    TableFunction,
    get_measure,
)
from metrimax.measure.base_loss import Losses
from metrimax.measure.grouped import Grouped
from metrimax.measure.shifted import Shifted


@pytest.mark.parametrize("case", CASES)
@given(sample=samples())
@quick
def test_value_slope_and_validity_against_all_labellings(case, sample):
    y, scores, other = sample
    if not ref.fits(case, int(y.sum()), int((~y).sum())):
        with pytest.raises(ValueError, match="choose a smaller k"):
            case.measure.oracle(y)
        return
    cut = case.measure.oracle(y)(scores)
    assert close(value(cut, scores), ref.risk_by_labellings(case, y, scores), scores)
    both = np.concatenate((scores, other))
    assert value(cut, other) <= ref.risk_by_labellings(case, y, other) + 1e-10 * (1 + np.abs(both).max())
    # the slope is that of a labelling: every example flips or does not
    flips = cut.slope * len(y) * np.where(y, -1, 1)
    assert set(np.round(flips, 12)) <= {0.0, 1.0}
    if flips.any():
        table = ref.loss_table(case.name, int(y.sum()), int((~y).sum()))
        assert table[round(flips[y].sum()), round(flips[~y].sum())] == pytest.approx(cut.loss, abs=1e-12)


@given(sample=samples(n_max=9))
@quick
def test_roc_area_against_all_pairs(sample):
    y, scores, other = sample
    cut = ROCArea().oracle(y)(scores)
    assert close(value(cut, scores), ref.roc_risk(y, scores), scores)
    both = np.concatenate((scores, other))
    assert value(cut, other) <= ref.roc_risk(y, other) + 1e-10 * (1 + np.abs(both).max())


@pytest.mark.parametrize("scale", [0.0, 1e-6, 0.03, 0.3, 1.0, 3.0, 30.0, 1e4])
@pytest.mark.parametrize("case", CASES)
def test_larger_samples_against_all_tables(case, scale):
    for seed in range(4):
        y, scores = large_sample(seed, scale)
        cut = case.measure.oracle(y)(scores)
        expected = ref.risk_by_tables(case, y, scores)
        assert value(cut, scores) == pytest.approx(expected, rel=1e-10, abs=1e-10 * (1 + scale))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 10.0])
def test_roc_area_larger(scale):
    for seed in range(6):
        y, scores = large_sample(seed, scale)
        assert value(ROCArea().oracle(y)(scores), scores) == pytest.approx(ref.roc_risk(y, scores), rel=1e-12)


def test_scores_of_the_wrong_length():
    y = np.array([True, False, False])
    for name in ("f1", "prbep", "roc_area", "q", "gmean"):
        oracle = get_measure(name).oracle(y)
        for bad in (np.zeros(2), np.zeros(4), np.zeros((3, 1))):
            with pytest.raises(ValueError, match="expected 3 scores"):
                oracle(bad)


def test_one_class_only():
    for name in ("f1", "prbep", "roc_area"):
        for y in (np.ones(3, dtype=bool), np.zeros(3, dtype=bool)):
            with pytest.raises(ValueError, match="both classes"):
                get_measure(name).oracle(y)


def test_predicate_that_admits_nothing_is_refused():
    measure = TableFunction(ref.user_f1, where=lambda tp, fp, fn, tn: tp < 0)
    with pytest.raises(ValueError, match="admits no table of 1 positives and 1 negatives"):
        measure.oracle(np.array([True, False]))(np.array([-1.0, 1.0]))


# --- means of cuts


@pytest.mark.parametrize("case", CASES)
@given(sample=samples(), mu=st.sampled_from([1e-12, 1e-3, 0.1, 1.0, 50.0]))
@quick
@example(sample=(np.array([0, 0, 1, 1, 0, 1], bool), np.array([0, 0, 0, 0, 1e8, 0.0]), np.zeros(6)), mu=0.1)
@example(sample=(np.array([0, 0, 0, 1, 0, 0], bool), np.array([0, 0, 0, 0, 1e8, 1e8]), np.zeros(6)), mu=0.1)
def test_a_mean_of_cuts_is_under_the_risk_and_within_mu_of_it(case, sample, mu):
    y, scores, other = sample
    if not ref.fits(case, int(y.sum()), int((~y).sum())):
        return
    cut = case.measure.oracle(y).mean_cut(scores, mu)
    risk, both = ref.risk_by_labellings(case, y, scores), np.concatenate((scores, other))
    slack = 1e-10 * (1 + np.abs(both).max())
    assert risk - mu - slack <= value(cut, scores) <= risk + slack
    assert value(cut, other) <= ref.risk_by_labellings(case, y, other) + slack
    flips = cut.slope * len(y) * np.where(y, -1, 1)
    assert ((flips >= -1e-12) & (flips <= 1 + 1e-12)).all()


@pytest.mark.parametrize("name", ["f1", "gmean", "qmean", "prbep", "precision_at_k"])
def test_flips_of_about_the_same_cost_are_shared_out(name):
    rng = np.random.default_rng(0)
    y = np.arange(400) < 100
    scores = 5 * np.round(rng.normal(size=400) + np.where(y, 0.7, -0.7), 1)  # ties in plenty
    oracle = get_measure(name).oracle(y)
    exact, mean = oracle(scores), oracle.mean_cut(scores, 0.1)
    assert value(exact, scores) - 0.1 - 1e-12 <= value(mean, scores) <= value(exact, scores) + 1e-12
    shares = np.abs(mean.slope) * len(y)
    assert ((shares > 1e-9) & (shares < 1 - 1e-9)).any()
    for label in (False, True):  # equal costs, equal shares; the cheaper, the more
        order = np.argsort(np.where(label, scores, -scores)[y == label], kind="stable")
        own = shares[y == label][order]
        assert (np.diff(own) <= 1e-12).all()
    for _ in range(50):
        there = scores + 5 * rng.normal(size=len(y))
        assert value(mean, there) <= value(oracle(there), there) + 1e-9
    np.testing.assert_array_equal(oracle.mean_cut(scores, 1e-14).slope, exact.slope)  # too narrow to tell


def test_mean_cuts_of_hinged_shifted_and_grouped_risks_are_put_together():
    y = np.arange(400) < 100
    scores = 5 * (np.random.default_rng(0).normal(size=400) + np.where(y, 0.7, -0.7))
    oracle, offset = get_measure("f1").oracle(y), np.linspace(-1, 1, len(y))
    own = oracle.mean_cut(scores + offset, 0.1)
    shifted = Shifted(oracle, offset).mean_cut(scores, 0.1)
    assert value(shifted, scores) == pytest.approx(value(own, scores + offset))
    for together in (Losses(hinge=2.0).oracle(oracle, y, None), Grouped(PRBEP(), np.arange(len(y)) % 3).oracle(y)):
        exact, cut = together(scores), together.mean_cut(scores, 0.1)
        assert value(exact, scores) - 0.1 <= value(cut, scores) < value(exact, scores)


@pytest.mark.parametrize(
    "scores", [np.full(5, np.nan), np.array([np.inf, np.nan, 0.0, -np.inf, 1.0]), np.full(5, 1e308)], ids=str
)
def test_a_selection_of_values_that_are_no_numbers_comes_to_an_end(scores):
    search = _kernels.TopSearch(np.array([True, False, True, False, False]), 2, 1.0, -0.5)
    for mu in (0.0, 0.1):
        search.cut(scores, mu)
    _kernels.Line(search, scores, scores)(1.0)


def test_labels_may_be_a_column_of_a_matrix():
    Y = np.random.default_rng(0).random((60, 3)) < 0.3
    scores = np.random.default_rng(1).normal(size=60)
    for name in ("prbep", "precision_at_k", "f1", "roc_area", "average_precision", "gmean"):
        measure = get_measure(name)
        one, other = measure.oracle(Y[:, 1])(scores), measure.oracle(Y[:, 1].copy())(scores)
        np.testing.assert_array_equal(one.slope, other.slope)


# --- along a line of scores


@pytest.mark.parametrize("case", [*CASES, pytest.param(ref.Case("roc_area", ROCArea(), lambda *t: 0), id="roc_area")])
def test_the_risk_on_a_line_is_the_risk_at_its_points(case):
    for seed, scale in enumerate((0.1, 1.0, 5.0)):
        y, scores = large_sample(seed, scale)
        move = scale * np.round(np.random.default_rng(seed).normal(size=len(y)), 1)
        oracle = case.measure.oracle(y)
        line = oracle.line(scores, move)
        points = np.linspace(0, 2, 9)
        found = [line(t) for t in points]
        for t, (risk, slope) in zip(points, found, strict=True):
            here = scores + t * move
            assert risk == pytest.approx(value(oracle(here), here), rel=1e-9, abs=1e-9)
            for other, (higher, _) in zip(points, found, strict=True):
                assert higher >= risk + slope * (other - t) - 1e-9 * (1 + scale)


def test_all_wrong_need_not_be_the_worst():
    """A loss of the false negatives alone, worst when half of the positives are missed."""
    measure = TableFunction(lambda tp, fp, fn, tn: 4 * tp * fn / (tp + fn) ** 2, kind="loss")
    rng = np.random.default_rng(0)
    y = np.arange(120) < 40
    oracle, i = measure.oracle(y), np.arange(41)
    for scale in (3.0, 3.0, 1.0, 0.1, 0.01, 0.3, 2.0, 0.05):  # an oracle remembers how far it had to look
        scores = scale * (rng.normal(size=120) + np.where(y, 2, -2))
        P = np.concatenate(([0.0], np.cumsum(-np.sort(scores[y]) / 120)))
        N = np.concatenate(([0.0], np.cumsum(np.sort(scores[~y])[::-1] / 120)))
        expected = max(0.0, (4 * (40 - i) * i / 1600 + P).max() + N.max())
        assert value(oracle(scores), scores) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_an_oracle_asked_many_times(case):
    """What it remembers of earlier scores does not change the answer to later ones."""
    rng = np.random.default_rng(1)
    y = np.arange(90) < 25
    oracle = case.measure.oracle(y)
    for scale in (5.0, 0.01, 5.0, 0.3, 1e3, 1e-6, 1.0, 0.1):
        scores = scale * (rng.normal(size=90) + rng.choice([-1, 0, 2]) * np.where(y, 1, -1))
        assert value(oracle(scores), scores) == pytest.approx(
            ref.risk_by_tables(case, y, scores), rel=1e-10, abs=1e-10 * (1 + scale)
        )
