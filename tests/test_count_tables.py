"""Losses that are linear in tp for every number of predicted positives: their coefficients, and what they bound."""

from __future__ import annotations

import numpy as np
import pytest

from metrimax import _kernels
from metrimax.measure import get_measure
from metrimax.measure.units import split


def coefficients(rng, size, alike):
    """``u, v`` by count; of those named one number, repeated, as `by_count` may give it."""
    return [
        np.broadcast_to(rng.normal(), size) if name in alike else np.ascontiguousarray(rng.normal(size=size))
        for name in "uv"
    ]


def table_search(pos, neg, u, v, top):
    """Of a sample without weights, for a loss by count of which nothing else is known."""
    n = len(pos) + len(neg)
    sides = (
        _kernels.FlipClass(members, sign=sign, step=1 / n, low=-np.inf, high=np.inf)
        for members, sign in ((pos, 1.0), (neg, -1.0))
    )
    return _kernels.TableSearch(n, *sides, _kernels.TableLoss("count", u, v, m_low=0, top=top, rising=False))


@pytest.mark.parametrize("alike", ["", "u", "v", "uv"])
def test_one_number_for_all_counts_is_as_good_as_a_vector(alike):
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.3
    pos, neg = np.flatnonzero(y).astype(np.uint32), np.flatnonzero(~y).astype(np.uint32)
    u, v = coefficients(rng, 61, alike)
    scores, move = rng.normal(size=(2, 60))
    queues = [_kernels.Queue(np.sort(costs), 0, 0.0, 1 / 60) for costs in (scores[y], -scores[~y])]
    found = []
    for both in ((u, v), (u.copy(), v.copy())):
        search = table_search(pos, neg, *both, top=10.0)
        counts = _kernels.CountLoss(len(pos), 0, *both)
        argmax = _kernels.count_argmax(*queues, counts)
        classes = (_kernels.PairClass(at, sign, np.empty(0)) for at, sign in ((pos, 1.0), (neg, -1.0)))
        values = _kernels.CountSmoothing(60, *classes, 1 / 60, counts).smooth(scores, 0.1)[2]
        loss, slope = search.cut(scores)
        found.append(np.concatenate((argmax, values, [loss], slope, _kernels.Line(search, scores, move)(0.5))))
    np.testing.assert_array_equal(*found)


def test_what_is_the_same_for_all_counts_is_kept_as_one_number():
    y = np.arange(50) < 20
    for name, kept in (("f1", "_u"), ("error", "_v")):
        assert getattr(get_measure(name).oracle(y), kept).strides == (0,)


def test_more_examples_than_can_be_numbered_are_refused():
    with pytest.raises(ValueError, match="at most 4294967295 examples"):
        split(np.broadcast_to(True, 2**32), None)


@pytest.mark.parametrize("size", [(1, 1), (1, 20), (20, 1), (13, 30), (40, 25)])
@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("alike", ["", "u", "v", "uv"])
def test_bounds_of_a_loss_from_every_table(size, some, alike):
    n_pos, n_neg = size
    rng = np.random.default_rng(n_pos)
    low, high = (n_pos // 2, n_pos + n_neg // 2) if some else (0, n_pos + n_neg)
    u, v = coefficients(rng, high - low + 1, alike)
    table = np.full((n_pos + 2, n_neg + 2), np.nan)  # by fn and fp; what cannot be says nothing
    for fn in range(n_pos + 1):
        for fp in range(n_neg + 1):
            if low <= (m := n_pos - fn + fp) <= high:
                table[fn, fp] = u[m - low] + v[m - low] * (n_pos - fn)
    fn_rise, fp_rise = np.diff(table, axis=0), np.diff(table, axis=1)
    top, *rises = _kernels.count_bounds(_kernels.CountLoss(n_pos, low, u, v), n_neg)
    assert top == pytest.approx(np.nanmax(table))
    expected = [f(rise) for rise in (fn_rise, fp_rise) for f in (np.nanmin, np.nanmax)]
    np.testing.assert_allclose(rises, expected, atol=1e-12)


def every_table(u, v, pos, neg):
    """The greatest ``u + v tp`` less the costs of the flips, over all tables; costs are divided by their number."""
    n = len(pos) + len(neg)
    fn, fp = np.ogrid[: len(pos) + 1, : len(neg) + 1]
    m = len(pos) - fn + fp
    sums = [-np.concatenate(([0.0], np.cumsum(np.sort(costs)))) / n for costs in (pos, neg)]
    return float((u[m] + v[m] * (len(pos) - fn) + sums[0][:, None] + sums[1][None]).max())


def shapes(n, n_pos):
    """Coefficients by count: rising less and less, which is searched by ranges of counts, and some that are not."""
    m = np.arange(n + 1.0)
    yield "f1", np.broadcast_to(1.0, n + 1), -2 / (n_pos + m)
    yield "f2", np.broadcast_to(1.0, n + 1), -5 / (4 * n_pos + m)
    yield "f0.1", np.broadcast_to(1.0, n + 1), -1.01 / (0.01 * n_pos + m)
    yield "error", (n_pos + m) / n, np.broadcast_to(-2 / n, n + 1)
    yield "bent", np.sqrt(m / n), -0.3 / np.sqrt(1 + m)
    yield "kink", np.minimum(m / n, 0.4), np.minimum(m - n / 2, 0.0) / n**2
    yield "rising more and more", (m / n) ** 2, -1.5 / n * np.exp(-m / n)
    yield "more and more, by little", np.broadcast_to(1.0, n + 1), (m / n) ** 2 / 30 / n - 1 / n_pos
    yield "falling", 1 - m / n, -m / n**2


@pytest.mark.parametrize("spread", [0.01, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("ties", [False, True])
def test_the_best_table_whatever_the_shape_by_count(spread, share, ties):
    rng = np.random.default_rng(0)
    for n in (2, 3, 17, 150, 400):
        y = rng.random(n) < share
        y[:2] = True, False
        pos, neg = np.flatnonzero(y).astype(np.uint32), np.flatnonzero(~y).astype(np.uint32)
        for name, u, v in shapes(n, len(pos)):
            u, v = (one if one.strides == (0,) else np.ascontiguousarray(one) for one in (u, v))
            search = table_search(pos, neg, u, v, top=9.0)
            for _ in range(3):
                scores = spread * (rng.normal(size=n) + 2 * y - 1)
                if ties:
                    scores = np.round(scores / spread) * spread
                loss, slope = search.cut(scores)
                best = every_table(u, v, scores[y], -scores[~y])
                assert loss + slope @ scores == pytest.approx(max(best, 0.0), rel=1e-11, abs=1e-12), (n, name)
