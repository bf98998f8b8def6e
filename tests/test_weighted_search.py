"""The compiled search over examples that weigh unequally, against all labellings and all tables of units."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref

from metrimax.measure.table_oracle import ContingencyOracle
from metrimax.measure.tables import Fraction

WEIGHTS = {
    "fractions": lambda rng, y: rng.random(len(y)) + 0.1,
    "of all sizes": lambda rng, y: rng.random(len(y)) ** 6 + 1e-3,
    "by class": lambda rng, y: np.where(y, 2.3, 0.7),
    "one class": lambda rng, y: np.where(y, 1.0, rng.random(len(y)) + 0.5),
    "copies": lambda rng, y: np.where(np.arange(len(y)) < 2, 1.0, rng.integers(0, 4, len(y))),
}


def weighted(case: ref.Case) -> bool:
    """Whether it is searched in units of weight: mistakes that add up are hinges, others have their own ways."""
    oracle = case.measure.oracle(np.arange(40) < 10, np.linspace(0.5, 1.5, 40))
    return type(oracle) is ContingencyOracle and oracle.margins is None


CASES = [pytest.param(case, id=case.name) for case in ref.CASES if not case.top and weighted(case)]
FRACTIONS = [pytest.param(case, id=case.name) for case in ref.CASES if case.measure.fraction(3.0, 5.0) is not None]


def sample(rng: np.random.Generator, n: int, weights: str) -> tuple[np.ndarray, np.ndarray]:
    y = rng.random(n) < rng.choice([0.1, 0.5, 0.9])
    y[:2] = True, False
    return y, WEIGHTS[weights](rng, y)


def points(rng: np.random.Generator, y: np.ndarray, weight: np.ndarray):
    """Scores as a solver meets them, at scales that grow and shrink, with ties and without."""
    price = weight.sum() / weight[y].sum() / 2
    yield np.zeros(len(y))
    for scale in (0.01, 1.0, 0.1, 10.0, 0.3):
        scores = scale * price * (rng.normal(size=len(y)) + rng.choice([0, 1, 2]) * np.where(y, 1, -1))
        yield scores
        yield np.round(scores)


def risk(oracle: ContingencyOracle, measure, y: np.ndarray, weight: np.ndarray, scores: np.ndarray) -> float:
    """R over all tables of units; of the oracle, only how many there are of what size."""
    given_up = []
    for members, sign, units in ((y, 1, oracle.pos), (~y, -1, oracle.neg)):
        costs, own = sign * scores[members], weight[members]
        order = np.argsort(costs)
        reached = np.concatenate(([0.0], np.cumsum(own[order])))
        paid = np.concatenate(([0.0], np.cumsum((own * costs)[order])))
        given_up.append(np.interp(units.unit * np.arange(units.count + 1), reached, paid) / weight.sum())
    totals = [units.count * units.unit if units.complete else units.total for units in (oracle.pos, oracle.neg)]
    fn = oracle.pos.unit * np.arange(oracle.pos.count + 1)[:, None]
    fp = oracle.neg.unit * np.arange(oracle.neg.count + 1)[None, :]
    table = np.broadcast_arrays(totals[0] - fn, fp, fn, totals[1] - fp)
    losses = measure.table_loss(*table)
    if (allowed := measure.admissible(*table)) is not None:
        losses = np.where(allowed, losses, -np.inf)
    return max(0.0, float((losses - given_up[0][:, None] - given_up[1]).max()))


def value(cut, scores: np.ndarray) -> float:
    return cut.loss + float(cut.slope @ scores)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("case", CASES)
def test_value_validity_means_and_lines_against_all_tables(case, weights):
    rng = np.random.default_rng(5)
    for n in (9, 40, 150):
        y, weight = sample(rng, n, weights)
        oracle, before = case.measure.oracle(y, weight), rng.normal(size=n)
        for scores in points(rng, y, weight):
            close = 1e-11 * (1 + np.abs(scores).max() + np.abs(before).max())
            there = risk(oracle, case.measure, y, weight, before)
            best = risk(oracle, case.measure, y, weight, scores)
            cut, mean = oracle(scores), oracle.mean_cut(scores, 0.01)
            assert value(cut, scores) == pytest.approx(best, abs=close)
            assert best - 0.01 - close <= value(mean, scores) <= best + close
            for plane in (cut, mean):
                assert value(plane, before) <= there + close
                flipped = plane.slope * np.where(y, -1, 1) * weight.sum()
                assert np.all((flipped >= 0) & (flipped <= weight * (1 + 1e-9) + 1e-12))
            line = oracle.line(before, scores - before)
            for t in (0.0, 0.4, 1.0):
                here, rise = line(t)
                at = [before + s * (scores - before) for s in (t, t - 1e-3, t + 1e-3)]
                assert here == pytest.approx(risk(oracle, case.measure, y, weight, at[0]), abs=close)
                for step, point in ((-1e-3, at[1]), (1e-3, at[2])):  # convex: the slope is that of a line below
                    assert risk(oracle, case.measure, y, weight, point) >= here + step * rise - close
            before = scores


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in ref.CASES if not case.top])
def test_weights_that_are_equal_within_a_class_against_all_labellings(case):
    rng = np.random.default_rng(2)
    for y in (np.arange(8) < 3, np.arange(9) < 6):
        weight = np.where(y, 2.5, 1.25)
        oracle, n = case.measure.oracle(y, weight), weight.sum()
        Z = ref.labellings(len(y))
        table = [(weight * part).sum(axis=1) for part in (Z & y, Z & ~y, ~Z & y, ~Z & ~y)]
        losses = np.array(
            [case.loss(*cells) if case.admissible(*cells) else -np.inf for cells in zip(*table, strict=True)]
        )
        for scores in points(rng, y, weight):
            expected = (losses + ((Z * 1.0 - y) * weight) @ scores / n).max()
            cut = oracle(scores)
            close = 1e-12 * (1 + np.abs(scores).max())
            assert value(cut, scores) == pytest.approx(max(0.0, expected), abs=close)
            assert set(np.round(np.abs(cut.slope) * n / weight, 9)) <= {0.0, 1.0}, "examples flip whole, or not"


@pytest.mark.parametrize("size", [(1, 1), (3, 40), (40, 3), (2.5, 30.25)])
@pytest.mark.parametrize("case", FRACTIONS)
def test_fractions_give_the_loss_and_say_whether_they_are_monge(case, size):
    n_pos, n_neg = size
    fn, fp = np.meshgrid(np.linspace(0, n_pos, 31), np.linspace(0, n_neg, 37))
    loss = case.measure.table_loss(n_pos - fn, fp, fn, n_neg - fp)
    fraction = case.measure.fraction(n_pos, n_neg)
    above, below = (c + a * fn + b * fp for c, a, b in fraction)
    np.testing.assert_allclose(above / below, loss, atol=1e-14)
    above, below = (c + a * fn / 0.3 + b * fp / 0.7 for c, a, b in fraction.counted(0.3, 0.7))
    np.testing.assert_allclose(above / below, loss, atol=1e-14)
    cross = np.diff(np.diff(loss, axis=0), axis=1)
    assert fraction.is_monge(n_pos, n_neg) == (cross.max() <= 1e-13)


def test_a_fraction_that_is_not_defined_everywhere_is_not_used():
    assert not Fraction((0.0, 0.0, 1.0), (5.0, -1.0, 1.0)).is_monge(5, 9)  # 1 - precision: 0/0


def test_which_measures_are_fractions():
    assert {param.values[0].measure.name for param in FRACTIONS} == {
        "error", "cost", "balanced_error", "fbeta", "kappa"
    }  # fmt: skip
