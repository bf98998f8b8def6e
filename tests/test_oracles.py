"""The oracles against brute force: value, slope, validity of the cut elsewhere, weights as repetition."""

from __future__ import annotations

import re

import numpy as np
import pytest
import reference as ref
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from metrimax import _kernels
from metrimax.measure import (
    PRBEP,
    FBeta,
    PrecisionAtK,
    RecallAtK,
    ROCArea,
    TableFunction,
    contingency,
    get_measure,
    units,
)
from metrimax.measure.base_loss import Losses
from metrimax.measure.grouped import Grouped
from metrimax.measure.shifted import Shifted

CASES = [pytest.param(case, id=case.name) for case in ref.CASES]
quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)

#: whole numbers make ties; the rest are scales at which rounding or pruning could go wrong
values = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-4, 4, allow_subnormal=False),
    st.sampled_from([0.0, -0.0, 1e-12, -1e-9, 1.0, -1.0, 1e8, -1e8, 1e5, 50.0, -50.0]),
)


@st.composite
def samples(draw, n_max=7):
    n = draw(st.integers(2, n_max))
    y = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda z: 0 < sum(z) < len(z))))
    scores, other = (np.array(draw(st.lists(values, min_size=n, max_size=n))) for _ in range(2))
    return y, scores, other


def close(a: float, b: float, scores: np.ndarray) -> bool:
    return abs(a - b) <= 1e-10 * (1 + np.abs(scores).max())


def value(cut, scores: np.ndarray) -> float:
    return cut.loss + float(cut.slope @ scores)


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


def large_sample(seed: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Sizes of classes and scores at many scales, some tied, as a solver meets them."""
    rng = np.random.default_rng(seed)
    n_pos, n_neg = rng.integers(1, 40), rng.integers(40, 120)
    y = rng.permutation(np.repeat([True, False], [n_pos, n_neg]))
    scores = scale * (rng.normal(size=len(y)) + rng.choice([0, 1, 2]) * np.where(y, 1, -1))
    return y, np.round(scores, 1) if seed % 3 == 0 else scores


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


# --- weights


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
    monkeypatch.setattr(contingency, "SCANNED_UNITS", 4)
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
    monkeypatch.setattr(contingency, "SCANNED_UNITS", 4)
    y = np.arange(20) < 8
    oracle = get_measure("mcc").oracle(y, np.where(y, 1e9 / 7, 1 / 7))
    assert oracle.structure == "scan"


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
