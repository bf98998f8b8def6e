"""Smoothed rankings: the bound, the gradient, the cuts, and the value against all rankings."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest

from metrimax import MeasureSVC
from metrimax.designs import as_design
from metrimax.measure import NDCG, AveragePrecision, Grouped, PartialAUC, PrecisionAtK, get_measure
from metrimax.measure.envelope import envelope_smoothing
from metrimax.protocols import made
from metrimax.solvers import LBFGS, Bundle
from metrimax.training.lockstep import run

CASES = [
    AveragePrecision(),
    NDCG(3),
    NDCG(None, gain="linear"),
    PartialAUC(0.0, 0.3),
    PartialAUC(0.2, 0.6),
    PrecisionAtK(4, labellings="rankings"),
]
IDS = [f"{k}-{case.name}" for k, case in enumerate(CASES)]


def sample(measure, n=40, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n) if measure.name == "ndcg" else rng.random(n) < 0.3
    y[:2] = 1, 0
    return y, 2 * rng.normal(size=n) + y


def risk(oracle, scores):
    cut = oracle(scores)
    return cut.loss + cut.slope @ scores


@pytest.mark.parametrize("mu", [1.0, 0.1, 1e-3])
@pytest.mark.parametrize("measure", CASES, ids=IDS)
def test_bound_gradient_and_cut(measure, mu):
    y, s = sample(measure)
    rng = np.random.default_rng(1)
    oracle = measure.oracle(y)
    for scale in (0.0, 0.3, 1.0, 30.0):
        scores = scale * s
        value, cut = oracle.smooth(scores, mu)
        exact = risk(oracle, scores)
        assert exact - mu <= value + 1e-12 <= cut.loss + cut.slope @ scores + 2e-12
        for other in (scores, *(spread * rng.normal(size=len(y)) for spread in (0.1, 1.0, 10.0))):
            assert cut.loss + cut.slope @ other <= risk(oracle, other) + 1e-11
        move = rng.normal(size=len(y))
        step = 1e-3 * min(1.0, 10 * mu)
        rise = oracle.smooth(scores + step * move, mu)[0] - oracle.smooth(scores - step * move, mu)[0]
        assert rise / (2 * step) == pytest.approx(cut.slope @ move, abs=2e-3)


@pytest.mark.parametrize("measure", CASES, ids=IDS)
def test_slopes_lie_where_they_are_said_to(measure):
    y, _ = sample(measure)
    oracle, rng = measure.oracle(y), np.random.default_rng(2)
    centre, width, reach = oracle.slopes()
    far = 0.0
    for spread in (0.1, 1.0, 10.0, 1000.0):
        for sign in (-1, 0, 1):
            slope = oracle(spread * (rng.normal(size=len(y)) + 3 * sign * y)).slope
            assert not slope[width == 0].any()
            inside = width > 0
            far = max(far, float(((slope - centre)[inside] ** 2 / width[inside]).sum()))
    assert 0.5 * reach <= far <= reach * (1 + 1e-12)


@pytest.mark.parametrize("name", ["average_precision", "ndcg"])
def test_value_against_all_rankings(name):
    """Every ranking of six examples as a cut of its own: one quadratic program over all 720."""
    measure = get_measure(name)
    y = np.array([1, 0, 0, 1, 0, 0] if name == "average_precision" else [2, 0, 1, 1, 0, 0])
    s = np.array([0.2, 0.5, -0.3, -0.6, 0.1, 0.4])
    n, higher = len(y), y[:, None] > y[None, :]
    losses, slopes = [], []
    for ranking in itertools.permutations(range(n)):
        place = np.argsort(ranking)
        swapped = higher & (place[:, None] > place[None, :])
        losses.append(measure.loss(y, -place.astype(float)))
        slopes.append((swapped.sum(axis=0) - swapped.sum(axis=1)) / higher.sum())
    losses, slopes = np.array(losses), np.array(slopes)
    oracle = measure.oracle(y if name == "ndcg" else y > 0)
    low, high = -higher.sum(axis=1) / higher.sum(), higher.sum(axis=0) / higher.sum()
    for mu in (1.0, 0.1, 0.01):
        alpha = cp.Variable(len(losses), nonneg=True)
        apart = cp.multiply(1 / np.sqrt(high - low), slopes.T @ alpha - (low + high) / 2)
        prox = 4 * mu / (high - low).sum() * cp.sum_squares(apart)
        problem = cp.Problem(cp.Maximize(losses @ alpha + s @ (slopes.T @ alpha) - prox), [cp.sum(alpha) == 1])
        assert oracle.smooth(s, mu)[0] == pytest.approx(problem.solve(solver=cp.CLARABEL), abs=1e-5 * mu + 1e-7)


@pytest.mark.parametrize(("first", "last"), [(0, 2), (1, 3)])
def test_partial_auc_against_all_sets_of_negatives(first, last):
    """For every positive any `last` negatives or fewer stand above it, of which all but `first` are lost."""
    s = np.array([0.2, 0.5, -0.3, 0.4, 0.1, -0.6])
    y = np.array([True, False, False, True, False, False])
    sets = [one for size in range(last + 1) for one in itertools.combinations(np.flatnonzero(~y), size)]
    pairs = 2 * (last - first)
    losses, slopes = [], []
    for above in itertools.product(sets, sets):
        slope = np.zeros(6)
        for positive, negatives in zip(np.flatnonzero(y), above, strict=True):
            slope[positive] -= len(negatives) / pairs
            slope[list(negatives)] += 1 / pairs
        losses.append(sum(max(0, len(negatives) - first) for negatives in above) / pairs)
        slopes.append(slope)
    losses, slopes = np.array(losses), np.array(slopes)
    oracle = PartialAUC(first / 4, last / 4).oracle(y)
    assert risk(oracle, s) == pytest.approx((losses + slopes @ s).max(), abs=1e-12)
    if first == 0:
        return  # its smoothed risk is another one: see the next test
    width, share = np.where(y, last, 2) / pairs, min(last / 4, 0.5)
    centre = width * np.where(y, -0.5, share)
    far = (((slopes - centre) ** 2 / width).sum(axis=1)).max()
    for mu in (1.0, 0.1, 0.01):
        value, cut = oracle.smooth(s, mu)
        alpha = cp.Variable(len(losses), nonneg=True)
        square = cp.sum_squares(cp.multiply(1 / np.sqrt(width), slopes.T @ alpha - centre))
        reach = oracle.slopes().reach
        problem = cp.Problem(
            cp.Maximize(losses @ alpha + s @ (slopes.T @ alpha) - mu / reach * square), [cp.sum(alpha) == 1]
        )
        assert far <= reach * (1 + 1e-12), "or the term would be more than mu"
        assert value == pytest.approx(problem.solve(solver=cp.CLARABEL), abs=1e-5 * mu + 1e-7)
        np.testing.assert_allclose(cut.slope, slopes.T @ alpha.value, atol=1e-3)


@pytest.mark.parametrize("beta", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_partial_auc_from_the_top_against_a_conic_solver(beta, weighted):
    """Over the shares p of the negatives and the shares of their pairs, which are at most p."""
    rng = np.random.default_rng(6)
    y = np.arange(13) < 5
    s, weight = rng.normal(size=13) + 0.5 * y + 100, rng.random(13) + 0.2 if weighted else np.ones(13)
    oracle = PartialAUC(0, beta).oracle(y, weight if weighted else None)
    total = weight[~y].sum()
    b = beta * total
    for mu in (1.0, 0.1, 0.01):
        inner, outer = (mu, 0.0) if beta == 1 else (mu / 2, mu / 2 / (b * (1 - beta)))
        p, pairs = cp.Variable(8, nonneg=True), cp.Variable((5, 8), nonneg=True)
        gain = cp.sum(cp.multiply(np.outer(weight[y], weight[~y]) * (1 - s[y][:, None] + s[~y]), pairs))
        prox = sum(
            u * v * (4 * cp.quad_over_lin(pairs[i, j], p[j]) - 4 * pairs[i, j] + p[j])
            for i, u in enumerate(weight[y])
            for j, v in enumerate(weight[~y])
        )
        apart = cp.sum(cp.multiply(weight[~y], cp.square(p - beta)))
        limits = [p <= 1, weight[~y] @ p == b, *(pairs[i] <= p for i in range(5))]
        problem = cp.Problem(cp.Maximize((gain - inner * prox) / (weight[y].sum() * b) - outer * apart), limits)
        value, cut = oracle.smooth(s, mu)
        assert value == pytest.approx(problem.solve(solver=cp.CLARABEL), abs=1e-5 * mu)
        assert abs(cut.slope.sum()) < 1e-12


@pytest.mark.parametrize("name", ["average_precision", "ndcg", "partial_auc"])
def test_weights_mean_repetition(name):
    measure = get_measure(name)
    y, s = sample(measure, 20)
    weight = np.random.default_rng(3).integers(0, 3, 20)
    weight[:2] = 1
    copies = np.repeat(np.arange(20), weight)
    value, cut = measure.oracle(y, weight.astype(float)).smooth(s, 0.05)
    expected, repeated = measure.oracle(y[copies]).smooth(s[copies], 0.05)
    assert value == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(cut.slope, np.bincount(copies, repeated.slope, minlength=20), atol=2e-3)


def test_roc_area_has_the_same_bound_both_ways():
    """The envelope of ROC area is another function than the paper's, pair by pair, with the same promises."""
    y, s = sample(AveragePrecision(), 200)
    oracle = get_measure("roc_area").oracle(y)
    smooth = envelope_smoothing(oracle, AveragePrecision().oracle(y).slopes())
    for mu in (0.1, 1e-3):
        exact = risk(oracle, s)
        for value, cut in (oracle.smooth(s, mu), smooth(s, mu)):
            assert exact - mu <= value <= cut.loss + cut.slope @ s <= exact + 1e-12


@pytest.mark.parametrize("mu", [0.0, -1.0, np.nan])
def test_mu_is_checked(mu):
    y, s = sample(CASES[0])
    with pytest.raises(ValueError, match="expected a finite mu > 0"):
        CASES[0].oracle(y).smooth(s, mu)


@pytest.mark.parametrize("measure", CASES, ids=IDS)
def test_lbfgs_solves_what_the_bundle_solves(measure):
    rng = np.random.default_rng(4)
    y, _ = sample(measure, 150)
    X = rng.normal(size=(150, 5)) + 0.8 * y[:, None]
    design, oracle = as_design(X, intercept_scaling=1.0), measure.oracle(y)
    weight = oracle.price * oracle.n
    [smooth], [exact] = (
        run(design, [solver.steps(oracle, design, weight, tol=tol)])
        for solver, tol in ((LBFGS(), 1e-3), (Bundle(), 1e-5))
    )
    assert smooth.status.ok
    assert exact.bound <= smooth.objective + 1e-9 * weight
    assert smooth.bound <= exact.objective + 1e-9 * weight


def test_in_estimators_and_groups():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(120, 4)), rng.random(120) < 0.3
    X += y[:, None]
    model = MeasureSVC("average_precision", solver="lbfgs", hinge=0, threshold="trained").fit(X, y)
    assert model.gap_ <= 1e-3
    groups = np.repeat(np.arange(6), 20)
    smooth = made(Grouped(AveragePrecision(), groups).oracle(y).can.smooth)
    assert smooth is not None
