"""The compiled table search looks at few candidates, by what was enough before: it must never miss the best table."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref

from metrimax.measure import get_measure


def compiled(case: ref.Case) -> bool:
    """Others, as user functions of no structure, look at everything every time."""
    return getattr(case.measure.oracle(np.arange(40) < 10), "compiled", None) is not None


CASES = [pytest.param(case, id=case.name) for case in ref.CASES if compiled(case)]


def runs(seed: int):
    """Scores as a solver meets them: from all zero, in small steps and in leaps, at scales that grow and shrink."""
    rng = np.random.default_rng(seed)
    n_pos, n_neg = [(30, 900), (400, 500), (250, 1500)][seed]
    y = rng.permutation(np.repeat([True, False], [n_pos, n_neg]))
    sign = np.where(y, 1.0, -1.0)
    scores = np.zeros(len(y))
    price = len(y) / (2 * n_pos)
    yield y, scores
    for scale in (0.01, 1.0, 0.1, 30.0, 0.3):
        for _ in range(4):
            scores = scores + 0.1 * scale * price * (rng.normal(size=len(y)) + rng.choice([0, 1]) * sign)
            yield y, scores
        scores = scale * price * (rng.normal(size=len(y)) + rng.choice([0, 1, 2]) * sign)
        yield y, np.round(scores)


def value(cut, scores: np.ndarray) -> float:
    return cut.loss + float(cut.slope @ scores)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_what_was_enough_before_does_not_hide_a_better_table(case, seed):
    oracle, before = None, None
    for y, scores in runs(seed):
        oracle = oracle or case.measure.oracle(y)
        expected = value(case.measure.oracle(y)(scores), scores)  # of one that looks at all, having seen none before
        close = {"rel": 1e-9, "abs": 1e-9 * (1 + np.abs(scores).max())}
        assert value(oracle(scores), scores) == pytest.approx(expected, **close)
        mean = oracle.mean_cut(scores, 0.01)
        assert expected - 0.01 - close["abs"] <= value(mean, scores) <= expected + close["abs"]
        if before is not None:
            line = oracle.line(before, scores - before)
            for t in (1.0, 0.5, 0.0, 0.9):
                here = before + t * (scores - before)
                assert line(t)[0] == pytest.approx(value(case.measure.oracle(y)(here), here), **close)
        before = scores


def brute_force(measure, y: np.ndarray, scores: np.ndarray) -> float:
    """The risk, from all tables."""
    n_pos, n_neg = int(y.sum()), int((~y).sum())
    given_up = [-np.concatenate(([0.0], np.cumsum(np.sort(costs)))) / len(y) for costs in (scores[y], -scores[~y])]
    fn, fp = np.arange(n_pos + 1)[:, None], np.arange(n_neg + 1)[None, :]
    values = measure.table_loss(n_pos - fn, fp, fn, n_neg - fp) + given_up[0][:, None] + given_up[1][None, :]
    return max(0.0, float(values.max()))


@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 1e150], ids=str)
@pytest.mark.parametrize("n_neg", [7, 255, 256, 257, 520])  # the passes go by blocks of 256 and groups of 8
@pytest.mark.parametrize("name", ["f1", "error", "gmean", "kappa"])
def test_ties_at_the_last_flip_whatever_the_number_of_examples(name, n_neg, scale):
    rng = np.random.default_rng(n_neg)
    measure = get_measure(name)
    y = rng.permutation(np.repeat([True, False], [20, n_neg]))
    oracle = measure.oracle(y)
    for _ in range(10):
        # Ties everywhere; many costs are zero, or all are positive, and then only some of a tie may flip.
        scores, move = scale * rng.integers(-2, 3, (2, len(y))).astype(float)
        scores += rng.choice([0, 1]) * scale * np.where(y, 40.0, -3.0)
        risk = brute_force(measure, y, scores)
        close = {"rel": 1e-12, "abs": 1e-12 * max(1.0, 40 * scale)}
        cut = oracle(scores)
        assert value(cut, scores) == pytest.approx(risk, **close)
        for members, sign in ((y, 1.0), (~y, -1.0)):
            flipped = cut.slope[members] != 0
            costs = sign * scores[members]
            assert np.all(cut.slope[members][flipped] == -sign / len(y))
            assert not flipped.any() or flipped.all() or costs[flipped].max() <= costs[~flipped].min()
        for along in (move, np.full(len(y), scale)):  # along the second, ties stay ties: their number decides the slope
            line = oracle.line(scores, along)
            for t in (0.0, 0.3, 1.0):
                here, rise = line(t)
                assert here == pytest.approx(brute_force(measure, y, scores + t * along), **close)
                for step in (-1e-3, 1e-3):  # convex: the slope is that of a line below
                    there = brute_force(measure, y, scores + (t + step) * along)
                    assert there >= here + step * rise - close["abs"]


@pytest.mark.parametrize("name", ["f1", "gmean", "kappa"])
@pytest.mark.parametrize("n_pos", [20, 150, 380])  # a small class, one of two alike, and nearly all
def test_costs_that_crowd_and_outliers(name, n_pos):
    """The sort goes by cells of equal width: of one that holds nearly all, and of many with one each."""
    rng = np.random.default_rng(n_pos)
    measure = get_measure(name)
    y = rng.permutation(np.repeat([True, False], [n_pos, 400 - n_pos]))
    oracle = measure.oracle(y)
    for scores in (
        np.append(rng.normal(size=399), 1e9),
        1e-7 * rng.normal(size=400) + 0.5 * (rng.random(400) < 0.5),
        rng.standard_cauchy(400) ** 3,
        1e-300 * rng.normal(size=400),
    ):
        risk = brute_force(measure, y, scores)
        close = {"rel": 1e-12, "abs": 1e-12 * (1 + np.abs(scores).sum())}
        assert value(oracle(scores), scores) == pytest.approx(risk, **close)
        assert oracle.line(0 * scores, scores)(1.0)[0] == pytest.approx(risk, **close)
