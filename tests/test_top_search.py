"""The compiled selection of the top k, which looks for the boundary by a sample, against a sort of all."""

from __future__ import annotations

import numpy as np
import pytest

from metrimax import _kernels

SIZES = (1, 2, 7, 8, 9, 64, 65, 255, 256, 257, 511, 513, 1000, 4095, 4097, 9001)  # around groups, blocks and samples


def sort_all(y, k, u, v, scores):
    """Loss, slope and value of the labelling with k positives that is most violated."""
    n = len(y)
    merit = np.where(y, scores + n * v, scores)
    called = np.zeros(n)
    called[np.argsort(-merit, kind="stable")[:k]] = 1
    loss, slope = u + v * called[y].sum(), (called - y) / n
    return loss, slope, loss + slope @ scores


def shares(y, k, v, scores, mu):
    """How much of each example is called positive in a mean of labellings, its level found by halving."""
    n = len(y)
    cost = -np.where(y, scores + n * v, scores)
    h = 2 * mu * n / max(1, y.sum() + k - 2 * max(0, k - (~y).sum()))
    low, high = cost.min(), cost.max() + h
    for _ in range(80):
        level = (low + high) / 2
        low, high = (level, high) if np.clip((level - cost) / h, 0, 1).sum() < k else (low, level)
    return np.clip((high - cost) / h, 0, 1)


def runs(n, rng):
    """Scores one after the other, so that what was learned from one is wrong for the next."""
    normal = rng.normal(size=n)
    yield np.zeros(n)
    yield normal
    yield normal + 1e-3 * rng.normal(size=n)
    yield -normal
    yield np.round(normal, 1)  # ties at the boundary
    yield 1e8 + normal
    yield 1e-8 * normal
    yield 1e3 * np.round(normal)
    yield np.sort(normal)
    yield np.sort(normal)[::-1].copy()
    yield np.where(np.arange(n) % max(1, n // 512 + 1) == 0, 5.0, normal)
    yield np.full(n, -2.5)
    yield np.exp(5 * normal)


def cases(n):
    rng = np.random.default_rng(n)
    for k in sorted({1, 2, n // 20, n // 2, n - 1, n} & set(range(1, n + 1))):
        for part in (0.05, 0.5):
            y = rng.random(n) < part
            u = 1.0 + 50 * rng.random()
            v = -1.0 / max(k, y.sum())
            yield rng, y, k, u, v, _kernels.TopSearch(y, k, u, v)


@pytest.mark.parametrize("n", SIZES)
def test_the_cut_is_that_of_a_sort_of_all(n):
    found = 0
    for rng, y, k, u, v, search in cases(n):
        for scores in runs(n, rng):
            loss, slope, value = sort_all(y, k, u, v, scores)
            got_loss, got_slope = search.cut(scores)
            if abs(value) <= 1e-12 * np.abs(scores).max():
                continue  # of either sign, by rounding
            found += value > 0
            np.testing.assert_array_equal(got_slope, slope if value > 0 else 0 * slope)
            assert got_loss == pytest.approx(loss if value > 0 else 0.0, rel=1e-12, abs=1e-12)
    assert found > 20


@pytest.mark.parametrize("n", SIZES)
def test_the_risk_on_a_line_is_that_of_a_sort_of_all(n):
    for rng, y, k, u, v, search in cases(n):
        before = np.zeros(n)
        for scores in runs(n, rng):
            move = scores - before
            for t in (1.0, 0.3, 2.0):
                here = before + t * move
                _, slope, value = sort_all(y, k, u, v, here)
                risk, rise = _kernels.Line(search, before, move)(t)
                size = max(1.0, np.abs(here).max(), np.abs(move).max())
                if value > 1e-12 * size:
                    assert risk == pytest.approx(value, rel=1e-12, abs=1e-12 * size)
                    assert rise == pytest.approx(slope @ move, rel=1e-12, abs=1e-12 * size)
                elif value < -1e-12 * size:
                    assert (risk, rise) == (0.0, 0.0)
            before = scores


@pytest.mark.parametrize("mu", [1e-4, 0.03, 2.0])
@pytest.mark.parametrize("n", SIZES[::3])
def test_a_mean_calls_k_examples_positive_by_their_shares(n, mu):
    for rng, y, k, u, v, search in cases(n):
        for scores in runs(n, rng):
            if np.abs(scores).max() > 1e6:
                continue
            *_, value = sort_all(y, k, u, v, scores)
            loss, slope = search.cut(scores, mu)
            if value <= 1e-9:
                continue
            called = slope * n + y
            assert called.sum() == pytest.approx(k, rel=1e-8)
            np.testing.assert_allclose(called, shares(y, k, v, scores, mu), atol=1e-8)
            assert loss == pytest.approx(u + v * called[y].sum(), rel=1e-12, abs=1e-12)
            slack = 1e-9 * (1 + np.abs(scores).max())
            assert value - mu - slack <= loss + slope @ scores <= value + slack


def test_ties_at_the_boundary_go_by_position():
    y = np.zeros(1000, dtype=bool)
    y[::10] = True
    search = _kernels.TopSearch(y, 100, 1.0, -0.01)
    for scores in (np.zeros(1000), np.where(np.arange(1000) >= 990, 1.0, 0.0)):  # of the latter nine are negatives
        _, slope = search.cut(scores)
        called = np.flatnonzero(slope > 0)
        expected = np.flatnonzero(~y)[: 100 - 9 * int(scores.max())]
        np.testing.assert_array_equal(called[called < 990], expected)
        assert len(called) == 100


def test_a_mean_too_narrow_to_tell_is_the_cut():
    rng = np.random.default_rng(0)
    y = rng.random(700) < 0.2
    scores = 1e5 + rng.normal(size=700)
    search = _kernels.TopSearch(y, int(y.sum()), 1.0, -1 / y.sum())
    for mu in (1e-9, np.inf, np.nan):
        loss, slope = search.cut(scores, mu)
        assert loss == search.cut(scores)[0]
        np.testing.assert_array_equal(slope, search.cut(scores)[1])


@pytest.mark.parametrize("at", [0, 1, 300])
def test_without_a_value_there_is_no_cut(at):
    y = np.arange(600) % 3 == 0
    scores = np.linspace(-1, 1, 600)
    search = _kernels.TopSearch(y, 200, 1.0, -0.005)
    before = search.cut(scores)
    scores[at] = np.nan
    for mu in (0.0, 0.1):
        loss, slope = search.cut(scores, mu)
        assert loss == 0
        assert not slope.any()
    assert _kernels.Line(search, scores, scores)(0.5) == (0.0, 0.0)
    scores[at] = np.linspace(-1, 1, 600)[at]
    np.testing.assert_array_equal(search.cut(scores)[1], before[1])
