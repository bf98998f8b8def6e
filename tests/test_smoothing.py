"""Smoothed measures: the bound, the gradient, the cuts, and the value against independent solutions."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from smoothed_reference import count_pieces, smoothed_count_risk, smoothed_plane_risk, smoothed_row_risk

from metrimax.measure import FBeta, PrecisionAtK, RecallAtK, TableFunction, get_measure, measures
from metrimax.measure import smoothing as sm
from metrimax.measure.table_oracle import ContingencyOracle

UNSMOOTHED = {"average_precision", "ndcg", "partial_auc", "recall_at_budget"}
NAMES = sorted(set(measures()) - UNSMOOTHED)
MUS = (1.0, 0.1, 1e-3, 1e-6)


def sample(n=40, share=0.3, seed=0, spread=2.0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    y[:2] = True, False
    return y, spread * rng.normal(size=n) + y


def risk(oracle, scores):
    cut = oracle(scores)
    return cut.loss + cut.slope @ scores


def user_loss(tp, fp, fn, tn):  # no structure that the search knows
    return (fn**1.5 + fp) / ((tp + fn) ** 1.5 + fp + tn)


CASES = [
    *(get_measure(name) for name in NAMES),
    FBeta(0.3),
    FBeta(3.0),
    PrecisionAtK(3),
    PrecisionAtK(3, labellings="at_least"),
    RecallAtK("2p", labellings="at_most"),
    TableFunction(user_loss),
    TableFunction(lambda tp, fp, fn, tn: 1 - tp / np.maximum(tp + fn, 1), where=lambda tp, fp, fn, tn: fp == fn),
]


IDS = [f"{k}-{measure.name}" for k, measure in enumerate(CASES)]


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("measure", CASES, ids=IDS)
def test_bound_and_gradient(measure, mu):
    y, s = sample()
    oracle = measure.oracle(y)
    for scale in (0.0, 0.3, 1.0, 30.0):
        scores = scale * s
        value, cut = oracle.smooth(scores, mu)
        exact = risk(oracle, scores)
        assert exact - mu * (1 + 1e-7) - 1e-12 <= value <= exact + 1e-12
        assert cut.loss + cut.slope @ scores <= exact + 1e-12  # a cut touches R from below
        if scale == 1.0:
            step = 1e-6 * min(1.0, mu * 1e3)
            rise = [oracle.smooth(scores + e, mu)[0] - oracle.smooth(scores - e, mu)[0] for e in step * np.eye(len(y))]
            np.testing.assert_allclose(np.array(rise) / (2 * step), cut.slope, atol=1e-6)


@pytest.mark.parametrize("measure", CASES, ids=IDS)
def test_its_cut_is_a_cut(measure):
    """The plane of a smoothed gradient lies under the risk everywhere, as the dual bound needs."""
    y, s = sample(seed=1)
    oracle = measure.oracle(y)
    rng = np.random.default_rng(2)
    for mu in MUS:
        _, cut = oracle.smooth(s, mu)
        for spread in (0.1, 1.0, 10.0):
            for _ in range(10):
                other = spread * rng.normal(size=len(y)) + 3 * rng.random() * y
                assert cut.loss + cut.slope @ other <= risk(oracle, other) + 1e-11


@pytest.mark.parametrize("name", ["f1", "jaccard", "gmean", "error", "prbep", "precision_at_k", "qmean", "q"])
def test_cut_is_a_mixture_of_labellings(name):
    """Brute force: (slope, loss) lies in the convex hull of all 2^n labellings (their loss may only be higher)."""
    y = np.array([True, True, False, False, False, True, False])
    s = np.array([0.4, -0.7, 0.3, -1.0, 0.9, 1.5, 0.2])
    measure = get_measure(name)
    labellings = np.array(list(itertools.product([False, True], repeat=len(y))))
    if name in ("prbep", "precision_at_k"):
        labellings = labellings[labellings.sum(axis=1) == y.sum()]
    losses = np.array([measure.loss(y, z) for z in labellings])
    slopes = (labellings.astype(float) - y) / len(y)
    for mu in (0.5, 0.05, 1e-3):
        _, cut = measure.oracle(y).smooth(s, mu)
        found = linprog(
            -losses,
            A_eq=np.vstack((slopes.T, np.ones(len(losses)))),
            b_eq=np.append(cut.slope, 1.0),
            bounds=(0, None),
        )
        assert found.status == 0
        assert cut.loss <= -found.fun + 1e-8


def by_count(oracle):
    """u and v of D = u[m] + v[m] tp, which is not unique where m leaves tp no choice."""
    return np.broadcast_arrays(oracle._u, oracle._v)


@pytest.mark.parametrize("name", ["f1", "mcc", "kappa"])
def test_count_pieces_against_quadratic_programs(name):
    """Every range of m as a quadratic program of its own, then the entropy over the ranges."""
    y, s = sample(n=9, share=0.4, seed=3)
    oracle = get_measure(name).oracle(y)
    n, n_pos = len(y), int(y.sum())
    u, v = by_count(oracle)
    for mu in (1.0, 0.1, 0.01):
        values = []
        for lo, hi, u_least, v_least in count_pieces(u, v, 0, n_pos, 0.2 * mu):
            centre = (lo + hi) / 2 / n
            farthest = max(m * (1 - centre) ** 2 + (n - m) * centre**2 for m in range(lo, hi + 1))
            called = cp.Variable(n)
            gain = u_least + v_least * cp.sum(called[y]) + (called - y) @ s / n
            prox = 0.5 * mu / max(farthest, 0.5) * cp.sum_squares(called - centre)
            limits = [called >= 0, called <= 1, cp.sum(called) >= lo, cp.sum(called) <= hi]
            values.append(cp.Problem(cp.Maximize(gain - prox), limits).solve(solver=cp.CLARABEL))
        T = 0.3 * mu / np.log(len(values))
        expected = T * np.log(np.exp((np.array(values) - max(values)) / T).sum()) + max(values) - 0.3 * mu
        assert oracle.smooth(s, mu)[0] == pytest.approx(expected, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["f1", "mcc", "kappa", "kld", "rae"]),
    st.integers(8, 60),
    st.integers(0, 10_000),
    st.sampled_from([1.0, 0.1, 1e-2, 1e-3, 1e-4]),
    st.booleans(),
)
def test_compiled_count_smoothing_against_numpy(name, n, seed, mu, tied):
    """From one call to the next the scores move a little, a lot, or not at all: windows must not be believed."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    y[:2] = True, False
    oracle = get_measure(name).oracle(y)
    assume(sm._linear(oracle._loss, oracle.pos.count, oracle.neg.count) is None)  # else one plane
    u, v = by_count(oracle)
    s = rng.normal(size=n) * 10 ** rng.uniform(-1, 1.5) + y
    for move in (0.0, 1e-3, 0.1, 3.0, 0.0, 1e-3):
        s = s + move * rng.normal(size=n)
        if tied:
            s = np.round(s)
        value, cut = oracle.smooth(s, mu)
        expected, loss, slope = smoothed_count_risk(y, s, u, v, 0, mu)
        assert value == pytest.approx(expected, abs=1e-9)
        assert cut.loss == pytest.approx(loss, abs=1e-7)
        np.testing.assert_allclose(cut.slope, slope, atol=1e-7 / n)


def reference(name, y, s, mu):
    """Value, loss and slope of the smoothed risk, with every piece counted."""
    oracle = get_measure(name).oracle(y)
    n_pos, n_neg = int(y.sum()), int((~y).sum())
    if name == "jaccard":
        return smoothed_row_risk(y, s, 1 / n_pos, n_pos / (n_pos + np.arange(n_neg + 1)), mu)
    if name in ("gmean", "qmean", "min_tpr_tnr"):
        return smoothed_plane_risk(y, s, sm._planes(oracle._loss, oracle.structure, n_pos, n_neg)(0.1 * mu), mu)
    return smoothed_count_risk(y, s, *by_count(oracle), 0, mu)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["jaccard", "gmean", "qmean", "min_tpr_tnr"]),
    st.integers(8, 60),
    st.integers(0, 10_000),
    st.sampled_from([1.0, 0.1, 1e-2, 1e-4]),
    st.booleans(),
)
def test_compiled_rows_and_planes_against_numpy(name, n, seed, mu, tied):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    y[:6] = np.arange(6) < 3  # with fewer of a class, more losses have a linear link
    oracle = get_measure(name).oracle(y)
    s = rng.normal(size=n) * 10 ** rng.uniform(-1, 1.5) + y
    for move in (0.0, 1e-3, 0.1, 3.0):
        s = s + move * rng.normal(size=n)
        if tied:
            s = np.round(s)
        value, cut = oracle.smooth(s, mu)
        expected, loss, slope = reference(name, y, s, mu)
        assert value == pytest.approx(expected, abs=1e-9)
        assert cut.loss == pytest.approx(loss, abs=1e-7)
        np.testing.assert_allclose(cut.slope, slope, atol=1e-7 / n)


@pytest.mark.parametrize("scores", ["spread", "tied", "outliers"])
@pytest.mark.parametrize("name", ["f1", "jaccard", "gmean"])
def test_sums_over_cells_are_exact_where_it_matters(name, scores):
    """So many examples that few costs are sorted: where scores crowd, where they lie far apart, and after a leap."""
    rng = np.random.default_rng(1)
    y = rng.random(30_000) < 0.3
    s = rng.normal(size=len(y)) + y - 1
    if scores == "tied":
        s = np.round(4 * s) / 4
    if scores == "outliers":
        s[::1000] *= 1e4
    oracle = get_measure(name).oracle(y)
    for t in (0.0, 1e-3, 2.0):
        at = s + t * y
        value, cut = oracle.smooth(at, 0.2)
        expected, loss, slope = reference(name, y, at, 0.2)
        assert value == pytest.approx(expected, abs=1e-10)
        assert cut.loss == pytest.approx(loss, abs=1e-8)
        np.testing.assert_allclose(cut.slope, slope, atol=1e-8 / len(y))


@pytest.mark.parametrize("seed", range(3))
def test_compiled_smoothing_of_a_large_sample_along_a_path(seed):
    """A search that was asked before gives the same answers as one that was not."""
    rng = np.random.default_rng(seed)
    y = rng.random(20_000) < (0.02, 0.3, 0.8)[seed]
    s, move = rng.normal(size=len(y)) + y - 1, rng.normal(size=len(y)) + 0.3 * y
    for name in ("f1", "mcc", "jaccard", "gmean", "min_tpr_tnr", "prbep", "roc_area"):
        oracle = get_measure(name).oracle(y)
        for mu in (0.1, 1e-3, 1e-4):
            for t in (0.0, 1e-3, 0.03, 1.0, 30.0, 0.0):
                value, cut = oracle.smooth(s + t * move, mu)
                expected, other = get_measure(name).oracle(y).smooth(s + t * move, mu)
                assert value == pytest.approx(expected, abs=1e-11)
                assert cut.loss == pytest.approx(other.loss, abs=1e-9)
                np.testing.assert_allclose(cut.slope, other.slope, atol=2e-7 / len(y) / y.mean())  # sums round


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 40), st.integers(0, 10_000), st.sampled_from([1.0, 0.1, 1e-2, 1e-4]), st.booleans())
def test_compiled_top_against_ramps(n, seed, mu, tied):
    """Without weights by selection, with weights by sorted prefix sums: the same function."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    y[:2] = True, False
    s = rng.normal(size=n) * 10 ** rng.uniform(-1, 1.5) + y
    if tied:
        s = np.round(s)
    measure = PrecisionAtK(int(rng.integers(1, n)))
    value, cut = measure.oracle(y).smooth(s, mu)
    expected, other = measure.oracle(y, np.ones(n)).smooth(s, mu)
    assert value == pytest.approx(expected, abs=1e-9)
    assert cut.loss == pytest.approx(other.loss, abs=1e-6)
    np.testing.assert_allclose(cut.slope, other.slope, atol=1e-6 / n)


def test_roc_area_against_all_pairs():
    y, s = sample(n=60, seed=4)
    weight = np.random.default_rng(5).integers(0, 4, 60).astype(float)
    weight[:2] = 1.0
    for mu in MUS:
        margin = 1 - s[y][:, None] + s[~y][None, :]
        beta = np.clip(margin / (4 * mu), -1, 1)  # the order of a pair: -1 is right, 1 is wrong
        share = (1 + beta) / 2
        both = weight[y][:, None] * weight[~y][None, :] / (weight[y].sum() * weight[~y].sum())
        value, cut = get_measure("roc_area").oracle(y, weight).smooth(s, mu)
        assert value == pytest.approx((both * (share * margin - mu * beta**2)).sum(), rel=1e-9)
        np.testing.assert_allclose(cut.slope[y], -(both * share).sum(axis=1), atol=1e-12)
        np.testing.assert_allclose(cut.slope[~y], (both * share).sum(axis=0), atol=1e-12)


def test_huber_hinge_of_the_error_rate():
    y, s = sample(n=50, seed=6)
    margin = 1 - np.where(y, 1, -1) * s
    for mu in MUS:
        share = np.clip(0.5 + margin / (8 * mu), 0, 1)
        value, _ = get_measure("error").oracle(y).smooth(s, mu)
        assert value == pytest.approx((share * margin - mu * (2 * share - 1) ** 2).mean(), rel=1e-9)


def test_the_gradient_of_a_pair_turns_as_slowly_as_the_bound_allows():
    """Of all convex functions no more than mu below a hinge, the paper's turns by 1 over 8 mu (its section 3.2)."""
    y, mu = np.array([True, False]), 0.1
    oracle = get_measure("roc_area").oracle(y)
    at = np.linspace(-1, 3, 4001)
    slopes = np.array([oracle.smooth(np.array([s, 0.0]), mu)[1].slope[0] for s in at])
    assert np.abs(np.diff(slopes) / np.diff(at)).max() == pytest.approx(1.25, rel=1e-6)


@pytest.mark.parametrize("k", [1, 3, 5, 8])
def test_at_k_against_a_quadratic_program(k):
    """The prox is centred where every example is called positive by the share k / n."""
    y, s = sample(n=9, share=0.4, seed=5)
    n, oracle = len(y), PrecisionAtK(k, labellings="exact").oracle(y)
    truth = k == y.sum()
    for mu in (1.0, 0.1, 0.01):
        own = mu if truth else mu / 2  # the other half is for R >= 0
        called = cp.Variable(n)
        prox = own / (k * (n - k) / n) * cp.sum_squares(called - k / n)
        gain = 1 - cp.sum(called[y]) / k + (called - y) @ s / n - prox
        value = cp.Problem(cp.Maximize(gain), [called >= 0, called <= 1, cp.sum(called) == k]).solve(cp.CLARABEL)
        T = own / np.log(2)
        expected = value if truth else T * np.logaddexp(value / T, 0.0) - own
        assert oracle.smooth(s, mu)[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_integer_weights_mean_repetition(name):
    y, s = sample(n=20, seed=7)
    weight = np.random.default_rng(8).integers(0, 3, 20)
    weight[:2] = 1
    measure = get_measure(name)
    value, cut = measure.oracle(y, weight.astype(float)).smooth(s, 0.05)
    copies = np.repeat(np.arange(20), weight)
    expected, repeated = measure.oracle(y[copies]).smooth(s[copies], 0.05)
    assert value == pytest.approx(expected, abs=1e-10)
    assert cut.loss == pytest.approx(repeated.loss, abs=1e-10)
    np.testing.assert_allclose(cut.slope, np.bincount(copies, repeated.slope, minlength=20), atol=1e-10)


@pytest.mark.parametrize("name", ["prbep", "roc_area", "error", "balanced_error"])
def test_fractional_class_weights(name):
    y, s = sample(n=30, seed=9)
    weight = np.where(y, 2.5, 0.75)
    oracle = get_measure(name).oracle(y, weight)
    for mu in MUS:
        value, cut = oracle.smooth(s, mu)
        exact = risk(oracle, s)
        assert exact - mu - 1e-12 <= value <= exact + 1e-12
        assert cut.loss + cut.slope @ s <= exact + 1e-12


def test_no_smoothing_where_examples_flip_in_part():
    y, _ = sample(n=30, seed=9)
    weight = np.random.default_rng(10).random(30)
    oracle = get_measure("f1").oracle(y, weight)
    assert isinstance(oracle, ContingencyOracle)
    assert oracle.smooth is None


def test_no_smoothing_of_too_many_tables(monkeypatch):
    monkeypatch.setattr(sm, "MOST_TABLES", 100)
    y, _ = sample(n=40)
    assert get_measure(user_loss).oracle(y).smooth is None
    assert get_measure("f1").oracle(y).smooth is not None


@pytest.mark.parametrize("mu", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["f1", "prbep", "roc_area"])
def test_mu_is_checked(name, mu):
    y, s = sample()
    with pytest.raises(ValueError, match="expected a finite mu > 0"):
        get_measure(name).oracle(y).smooth(s, mu)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["f1", "prbep", "mcc", "jaccard", "gmean", "roc_area", "kld", "precision_at_k"]),
    st.integers(2, 25),
    st.integers(0, 10_000),
    st.sampled_from([1.0, 0.03, 1e-4]),
    st.booleans(),
)
def test_bounds_hold_for_any_sample(name, n, seed, mu, tied):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    y[:2] = True, False
    s = rng.normal(size=n) * 10 ** rng.uniform(-2, 2)
    if tied:
        s = np.round(s)
    oracle = get_measure(name).oracle(y)
    value, cut = oracle.smooth(s, mu)
    exact = risk(oracle, s)
    slack = 1e-9 * (1 + abs(exact))
    assert exact - mu - slack <= value <= exact + slack
    assert value <= cut.loss + cut.slope @ s + slack  # the prox term is not negative
    assert cut.loss + cut.slope @ s <= exact + slack


@pytest.mark.parametrize("mu", [1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("name", ["gmean", "qmean", "min_tpr_tnr", "balanced_error"])
def test_planes_stay_under_the_risk_however_small_mu_is(name, mu):
    """Those of the G-mean get steeper as mu falls."""
    rng = np.random.default_rng(0)
    y, s = sample(200, seed=1)
    oracle = get_measure(name).oracle(y)
    for scores in (s, 0.1 * s, s + 3, np.round(s))[: 4 if mu > 1e-9 else 1]:  # planes are as many as 1 / sqrt(mu)
        value, cut = oracle.smooth(scores, mu)
        here = risk(oracle, scores)
        assert here - mu - 1e-13 <= value <= here + 1e-13
        for other in (scores, scores + 1e-6 * rng.normal(size=200), rng.normal(size=200)):
            assert cut.loss + cut.slope @ other <= risk(oracle, other) + 1e-13


@pytest.mark.parametrize(("name", "n"), [("f1", 5), ("nkld", 5), ("mcc", 5), ("jaccard", 8)])
def test_scores_so_large_that_rounding_raises_the_best_piece_above_all(name, n):
    rng = np.random.default_rng(0)
    oracle = get_measure(name).oracle(np.arange(n) < n // 3)
    for scale in 10.0 ** rng.integers(10, 17, size=1000):
        scores = scale * rng.normal(size=n)
        _, cut = oracle.smooth(scores, 1e-7)
        assert cut.loss + cut.slope @ scores <= risk(oracle, scores) + 1e-12 * scale


@pytest.mark.parametrize("name", ["prbep", "roc_area"])
def test_what_all_scores_have_in_common_counts_for_nothing(name):
    """Ramps are narrow, and what rounding does to the shares of flips counts times the score common to all."""
    rng = np.random.default_rng(0)
    y = np.arange(30) < 8
    oracle, scores = get_measure(name).oracle(y), rng.normal(size=30)
    for mu in (1e-2, 1e-4, 1e-6):
        value, cut = oracle.smooth(scores, mu)
        shifted, far = oracle.smooth(scores + 4e5, mu)
        assert shifted == pytest.approx(value, abs=1e-8)
        assert abs(far.slope.sum()) < 1e-15, "or the plane would lie above the risk where scores are large"
        np.testing.assert_allclose(far.slope, cut.slope, atol=1e-3)
        assert far.loss == pytest.approx(cut.loss, abs=1e-3)
