"""The oracles of weighted samples: repetition, fractions, and units of many sizes."""

from __future__ import annotations

import re

import numpy as np
import pytest
import reference as ref
from hypothesis import given
from hypothesis import strategies as st
from oracle_samples import CASES, close, large_sample, quick, samples, value

from metrimax.measure import (
    FBeta,
    PrecisionAtK,
    RecallAtK,
    ROCArea,
    get_measure,
    table_oracle,
    units,
)


@pytest.mark.parametrize("case", CASES)
@given(sample=samples(n_max=5), data=st.data())
@quick
def test_whole_weights_are_repetition(case, sample, data):
    y, scores, other = sample
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    if not times[y].any() or not times[~y].any():
        with pytest.raises(ValueError, match="both classes"):
            case.measure.oracle(y, times.astype(float))
        return
    many, many_scores = np.repeat(y, times), np.repeat(scores, times)
    if not ref.fits(case, int(many.sum()), int((~many).sum())):
        return
    weighted, repeated = case.measure.oracle(y, times.astype(float)), case.measure.oracle(many)
    assert weighted.n == len(many)
    assert weighted.price == pytest.approx(repeated.price, rel=1e-12)
    cut = weighted(scores)
    assert close(value(cut, scores), value(repeated(many_scores), many_scores), scores)
    assert value(cut, other) <= value(repeated(np.repeat(other, times)), np.repeat(other, times)) + 1e-9 * (
        1 + np.abs(np.concatenate((scores, other))).max()
    )
    assert (cut.slope[times == 0] == 0).all()


@given(sample=samples(n_max=6), data=st.data())
@quick
def test_roc_area_weights_are_repetition(sample, data):
    y, scores, _ = sample
    weight = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0, 1e-6]), min_size=len(y), max_size=len(y)))
    )
    if not weight[y].any() or not weight[~y].any():
        return
    cut = ROCArea().oracle(y, weight)(scores)
    assert close(value(cut, scores), ref.roc_risk(y, scores, weight), scores)


#: measures that do not change when all weights are multiplied (k counts examples; the others add 1/2 to a count)
SCALE_FREE = [
    c
    for c in ref.CASES
    if c.name not in ("kld", "nkld") and (not c.top or isinstance(getattr(c.measure, "k", "p"), str))
]


@pytest.mark.parametrize("factor", [0.25, 1 / 3, 1e-12, 1e9])
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in SCALE_FREE])
def test_equal_weights_are_no_weights(case, factor):
    if case.name == "precision_at_half":
        pytest.skip("half of an odd number of positives is rounded")
    for seed in range(3):
        y, scores = large_sample(seed, 1.0)
        plain, weighted = case.measure.oracle(y), case.measure.oracle(y, np.full(len(y), factor))
        assert weighted.n == pytest.approx(factor * plain.n)
        assert weighted.price == pytest.approx(plain.price, rel=1e-9)
        a, b = plain(scores), weighted(scores)
        assert value(a, scores) == pytest.approx(value(b, scores), rel=1e-9)


@pytest.mark.parametrize("kind", ["random", "tiny", "one_huge", "by_class", "sum_one"])
@pytest.mark.parametrize("case", [*CASES, pytest.param(ref.Case("roc_area", ROCArea(), lambda *t: 0), id="roc_area")])
def test_any_weights_give_valid_cuts_of_a_convex_risk(case, kind):
    rng = np.random.default_rng(3)
    y = rng.random(30) < 0.3
    weight = rng.uniform(0.1, 3, size=30)
    weight = {
        "random": weight,
        "tiny": 1e-12 * weight,
        "one_huge": np.where(np.arange(30) == np.flatnonzero(y)[0], 1e6, weight),
        "by_class": np.where(y, 50 / 9, 50 / 21),
        "sum_one": weight / weight.sum(),
    }[kind]
    if case.top:
        counts = weight[y].sum(), weight[~y].sum()
        k = case.measure.number(counts[0], 1e99)
        if k > sum(counts) and case.name not in ("recall_at_k", "recall_at_most_2p"):  # 2p is cut at n
            with pytest.raises(ValueError, match=re.escape(f"k = {k:g} is more than")):
                case.measure.oracle(y, weight)
            return
    oracle = case.measure.oracle(y, weight)
    assert oracle.n == pytest.approx(weight.sum(), rel=1e-9)
    assert np.isfinite(oracle.price)
    assert oracle.price >= 1
    points = [scale * rng.normal(size=30) for scale in (0, 1e-3, 0.5, 2, 30)]
    cuts = [oracle(s) for s in points]
    for at, cut in zip(points, cuts, strict=True):
        assert value(cut, at) >= -1e-12
        assert -1e-9 <= cut.loss <= 1 + 1e-9 or case.name == "roc_area"
        for s, own in zip(points, cuts, strict=True):
            assert value(cut, s) <= value(own, s) + 1e-8 * (1 + np.abs(s).max())


@pytest.mark.parametrize("name", ["error", "balanced_error", "cost"])
def test_where_mistakes_add_up_fractional_weights_are_those_of_hinges(name):
    """The solvers of cuts then minimise what coordinate descent does, and not what comes of units of weight."""
    rng = np.random.default_rng(0)
    y, scores, weight = rng.random(60) < 0.3, rng.normal(size=60), rng.random(60) ** 3
    oracle = get_measure(name).oracle(y, weight)
    sign, margin, own = oracle.hinges()
    cut = oracle(scores)
    slack = np.maximum(0, margin - sign * scores)
    assert cut.loss + cut.slope @ scores == pytest.approx(own @ slack / weight.sum(), rel=1e-12)
    assert set(np.round(np.abs(cut.slope) * weight.sum() / weight, 9)) == {0.0, 1.0}, "examples flip whole, or not"


def test_fractional_weights_approach_those_of_repetition():
    """Weights (1, 2, 3) / 2 describe nearly the sample that (1, 2, 3) describes."""
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.4
    times = rng.integers(1, 4, size=60).astype(float)
    scores = rng.normal(size=60)
    for name in ("f1", "gmean", "error", "kappa", "mcc", "q"):
        whole, half = get_measure(name).oracle(y, times), get_measure(name).oracle(y, times / 2)
        assert value(whole(scores), scores) == pytest.approx(value(half(scores), scores), rel=0.05), name


def test_large_weights_do_not_make_the_search_endless():
    rng = np.random.default_rng(0)
    y = rng.random(40) < 0.4
    scores = rng.normal(size=40)
    for case in ref.CASES:
        if not ref.fits(case, int(y.sum()), int((~y).sum())):
            continue
        plain = case.measure.oracle(y, np.full(40, 1e6 / 7))
        for weight in (rng.integers(10**4, 10**5, size=40).astype(float), 1e9 * rng.uniform(0.5, 2, size=40)):
            oracle = case.measure.oracle(y, weight)
            assert value(oracle(scores), scores) >= 0
            if getattr(oracle, "structure", None) == "scan":
                assert oracle.pos.count * oracle.neg.count <= 2**22
        assert plain.n == pytest.approx(40e6 / 7)


def test_copies_are_those_of_both_classes_or_of_none():
    rng = np.random.default_rng(0)
    y = np.arange(40) < 10
    weight = np.where(y, rng.integers(500, 1500, size=40), rng.integers(100_000, 300_000, size=40)).astype(float)
    oracle = get_measure("f1").oracle(y, weight)
    assert oracle.neg.total > units.MOST_COPIES > oracle.pos.total > units.MOST_UNITS
    assert max(oracle.pos.count, oracle.neg.count) == units.MOST_UNITS
    assert (oracle.pos.total, oracle.neg.total) == pytest.approx((weight[y].sum(), weight[~y].sum()))
    few = np.where(y, 3.0, weight)  # less than the units there may be, which are copies then
    assert get_measure("f1").oracle(y, few).pos.unit == 1.0


def test_value_with_weights_against_all_tables_of_units():
    """Restrictions on the number of positives hold for unequal weights too."""
    rng = np.random.default_rng(5)
    y = np.arange(12) < 4
    weight = np.where(y, 2.5, 1.5)  # ten and twelve units of weight
    for case in ref.CASES:
        if not case.top or case.name in ("prbep", "precision_at_k"):
            continue
        low, high = case.measure.counts(10.0, 12.0)
        for scores in rng.normal(size=(5, 12)):
            cut = case.measure.oracle(y, weight)(scores)
            called = weight[y].sum() - (-cut.slope[y] * 22).sum() + (cut.slope[~y] * 22).sum()
            if cut.slope.any():
                assert low - 1e-6 <= called <= high + 1e-6, case.name
            fn, fp = (-cut.slope[y] * 22).sum(), (cut.slope[~y] * 22).sum()
            if cut.slope.any():
                expected = float(case.measure.table_loss(*(np.asarray(t) for t in (10 - fn, fp, fn, 12 - fp))))
                assert cut.loss == pytest.approx(expected, abs=1e-9), case.name


@pytest.mark.parametrize("weights", ["by class", "balanced", "fractions"])
@pytest.mark.parametrize(
    "measure", [get_measure("mcc"), FBeta(0.5), PrecisionAtK(9, "at_least"), RecallAtK("1.5p", "at_most")], ids=str
)
def test_weighted_classes_are_counted_in_units_of_one_size_where_there_are_many_tables(measure, weights, monkeypatch):
    monkeypatch.setattr(table_oracle, "SCANNED_UNITS", 4)
    rng = np.random.default_rng(3)
    y = np.arange(70) < 20
    weight = {
        "by class": np.where(y, 2.3, 0.7),
        "balanced": np.where(y, 70 / 40, 70 / 100),
        "fractions": rng.random(70) + 0.1,
    }[weights]
    oracle = measure.oracle(y, weight)
    pos, neg = oracle.pos, oracle.neg
    assert oracle.structure == "count"
    assert pos.unit == neg.unit
    assert min(pos.count - 20, neg.count - 50) >= 0
    assert 0 <= neg.total - neg.count * neg.unit < neg.unit
    assert (pos.total, neg.total) == pytest.approx((weight[y].sum(), weight[~y].sum()))
    fn, fp = pos.unit * np.arange(pos.count + 1)[:, None], neg.unit * np.arange(neg.count + 1)
    D = measure.table_loss(pos.total - fn, fp, fn, neg.total - fp)
    if (counts := measure.counts(pos.total, neg.total)) is not None:
        m = pos.total - fn + fp
        D = np.where((m >= counts[0] - 1e-9) & (m <= counts[1] + 1e-9), D, -np.inf)
    points = [rng.normal(size=70) * scale for scale in (0.0, 0.1, 1.0, 10.0)]
    cuts = [oracle(scores) for scores in points]
    for scores, cut in zip(points, cuts, strict=True):
        given_up = [
            np.concatenate(([0.0], np.cumsum(units.unit_costs(*units.sorted(scores))))) * units.unit / oracle.n
            for units in (pos, neg)
        ]
        best = (D - given_up[0][:, None] - given_up[1]).max()
        assert value(cut, scores) == pytest.approx(max(0.0, best), abs=1e-12)
        assert all(value(cut, s) <= value(own, s) + 1e-9 for s, own in zip(points, cuts, strict=True))


def test_weights_too_unlike_for_one_unit_are_scanned(monkeypatch):
    monkeypatch.setattr(table_oracle, "SCANNED_UNITS", 4)
    y = np.arange(20) < 8
    oracle = get_measure("mcc").oracle(y, np.where(y, 1e9 / 7, 1 / 7))
    assert oracle.structure == "scan"


@pytest.mark.parametrize("weights", ["even", "balanced", "some", "wide", "one"])
@pytest.mark.parametrize("measure", [PrecisionAtK(7), PrecisionAtK(400), RecallAtK("2p"), get_measure("prbep")])
def test_a_weighted_top_is_that_of_all_rows_sorted(measure, weights):
    rng = np.random.default_rng(3)
    n = 6000
    y = np.arange(n) < 700
    weight = {
        "even": rng.random(n) + 0.5,
        "balanced": np.where(y, 4.0, 4 / 7),
        "some": rng.integers(0, 3, n) * 1.0,
        "wide": np.exp(3 * rng.normal(size=n)),
        "one": np.where(np.arange(n) == 60, 100.0, 1.0),
    }[weights]
    oracle = measure.oracle(y, weight)
    for scores in (np.zeros(n), rng.normal(size=n), np.round(30 * rng.normal(size=n)), 300 * rng.normal(size=n)):
        order = np.argsort(-(scores / oracle.n + oracle._v * y), kind="stable")
        called = np.zeros(n)
        called[order] = np.clip(oracle.k - (np.cumsum(weight[order]) - weight[order]), 0, weight[order])
        loss, slope = oracle._u + oracle._v * called[y].sum(), (called - y * weight) / oracle.n
        cut, move = oracle(scores), rng.normal(size=n)
        assert value(cut, scores) == pytest.approx(max(0.0, loss + slope @ scores), abs=1e-9)
        for t in (0.0, 0.7, 20.0):
            there, (risk, rise) = oracle(scores + t * move), oracle.line(scores, move)(t)
            assert risk == pytest.approx(value(there, scores + t * move), abs=1e-9)
            assert rise == pytest.approx(there.slope @ move, abs=1e-9)
