"""Ranking measures: their oracles against all rankings, their values against scikit-learn, groups."""

from __future__ import annotations

import numpy as np
import pytest
import reference_rankings as ranked
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle_samples import close, large_sample, value, values
from sklearn.metrics import ndcg_score

from metrimax import _kernels
from metrimax.measure import (
    NDCG,
    AveragePrecision,
    FBeta,
    Grouped,
    PartialAUC,
    PrecisionAtK,
    RecallAtK,
    ROCArea,
    get_measure,
    top,
)
from metrimax.protocols import made

CASES = [pytest.param(case, id=case.name) for case in ranked.RANKINGS]
BINARY = [pytest.param(case, id=case.name) for case in ranked.RANKINGS if not case.graded]
quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@st.composite
def samples(draw, n_max=5, graded=False):
    n = draw(st.integers(2, n_max))
    label = st.integers(0, 3) if graded else st.booleans()
    y = np.array(draw(st.lists(label, min_size=n, max_size=n).filter(lambda z: min(z) < max(z))))
    scores, other = (np.array(draw(st.lists(values, min_size=n, max_size=n))) for _ in range(2))
    return y, scores, other


# --- the most violated ranking


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
@quick
def test_value_and_validity_against_all_rankings(case, data):
    y, scores, other = data.draw(samples(graded=case.graded))
    cut = case.measure.oracle(y)(scores)
    both = np.concatenate((scores, other))
    assert close(value(cut, scores), ranked.ranking_risk(case, y, scores), scores)
    assert value(cut, other) <= ranked.ranking_risk(case, y, other) + 1e-10 * (1 + np.abs(both).max())
    assert abs(cut.slope.sum()) <= 1e-12  # only differences of scores count
    # the loss of the ranking by scores is below the risk, whatever its ties
    lost = 1 - case.measure.score(y, scores) / case.most(y)
    assert lost <= value(cut, scores) + 1e-10 * (1 + np.abs(scores).max())


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
@settings(parent=quick, max_examples=8)
def test_value_on_seven_examples(case, data):
    y, scores, _ = data.draw(samples(n_max=7, graded=case.graded).filter(lambda sample: len(sample[0]) == 7))
    assert close(value(case.measure.oracle(y)(scores), scores), ranked.ranking_risk(case, y, scores), scores)


@pytest.mark.parametrize("scale", [0.0, 1e-6, 0.1, 1.0, 10.0, 300.0])
def test_larger_samples(scale):
    for seed in range(6):
        y, scores = large_sample(seed, scale)
        for positive, s in ((y, scores), (~y, -scores)):
            near = {"rel": 1e-10, "abs": 1e-10 * (1 + scale)}
            found = value(AveragePrecision().oracle(positive)(s), s)
            assert found == pytest.approx(ranked.average_precision_risk(positive, s), **near)
            for alpha, beta in ((0, 0.1), (0, 1), (0.05, 0.5), (0.333, 1.0), (0.2, 0.21)):
                found = value(PartialAUC(alpha, beta).oracle(positive)(s), s)
                assert found == pytest.approx(ranked.partial_auc_risk(alpha, beta, positive, s), **near)


@pytest.mark.parametrize("weight", [None, 3.0])
def test_average_precision_leaves_out_negatives_that_stay_below(weight):
    """One oracle after the other: what it remembers of the last scores must not show."""
    rng = np.random.default_rng(0)
    y = rng.random(3000) < 0.02
    weights = None if weight is None else np.where(y, 1.0, weight)  # equal units of two sizes
    oracle = AveragePrecision().oracle(y, weights)
    for lead in (400.0, 3.0, 0.1, -2.0, 50.0):
        scores, move = rng.normal(size=3000) + lead * y, rng.normal(size=3000)
        moved = scores + 0.7 * move
        cut, risk = oracle(moved), oracle.line(scores, move)(0.7)
        everything = AveragePrecision().oracle(y, weights)
        everything.compiled = None
        true = everything(moved)
        assert value(cut, moved) == pytest.approx(value(true, moved), rel=1e-12)
        np.testing.assert_allclose(cut.slope, true.slope, atol=1e-14)
        assert risk == pytest.approx((value(true, moved), true.slope @ move), rel=1e-10)
    assert (oracle(rng.normal(size=3000) + 400.0 * y).slope[~y] > 0).sum() < 200  # so there was something to leave out


LOOKS = {
    "alike": lambda rng, n: np.zeros(n),
    "few values": lambda rng, n: rng.integers(-2, 3, size=n).astype(float),
    "an outlier": lambda rng, n: np.append(rng.normal(size=n - 1), 1e15),
    "two crowds": lambda rng, n: 1e-9 * rng.normal(size=n) + 1e6 * (rng.random(n) < 0.5),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n) ** 3,
    "tiny": lambda rng, n: 1e-300 * rng.normal(size=n),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("positive", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
def test_roc_area_whatever_the_scores_look_like(look, positive, weighted):
    """The cells of the sorted class, crowded or nearly empty, against all pairs."""
    rng = np.random.default_rng(3)
    n = 400
    y = rng.random(n) < positive
    scores, move, weight = LOOKS[look](rng, n), rng.normal(size=n), rng.random(n) + 0.5 if weighted else np.ones(n)
    oracle = ROCArea().oracle(y, weight if weighted else None)
    shares = np.outer(weight[y], weight[~y]) / (weight[y].sum() * weight[~y].sum())
    for t in (0.0, 0.3, 1e3):
        here = scores + t * move
        slack = 1 - (here[y][:, None] - here[~y])
        risk = (shares * np.maximum(0, slack)).sum()
        cut, along = oracle(here), oracle.line(scores, move)(t)
        assert value(cut, here) == pytest.approx(risk, rel=1e-9, abs=1e-9)
        assert along[0] == pytest.approx(risk, rel=1e-9, abs=1e-9)
        clear = np.abs(slack) > 1e-9 * (1 + np.abs(here).max())  # either way goes for a pair just at the margin
        assert clear.all() or look in ("an outlier", "two crowds", "heavy tails") or t == 0
        if clear.all():
            assert along[1] == pytest.approx(-((shares * (slack > 0)) * (move[y][:, None] - move[~y])).sum(), rel=1e-9)


def test_partial_auc_of_the_whole_range_is_roc_area():
    for seed in range(4):
        y, scores = large_sample(seed, 1.0)
        oracles = PartialAUC(0, 1).oracle(y), ROCArea().oracle(y)
        ours, roc = (oracle(scores) for oracle in oracles)
        assert value(ours, scores) == pytest.approx(value(roc, scores))
        ours, roc = (oracle(np.pi / 3 * scores) for oracle in oracles)  # no pair just at the margin: either way goes
        assert ours.loss == pytest.approx(roc.loss)
        np.testing.assert_allclose(ours.slope, roc.slope, atol=1e-14)


def test_ndcg_of_a_larger_sample_is_at_least_that_of_many_rankings():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, size=30)
    case = next(c for c in ranked.RANKINGS if c.name == "ndcg")
    oracle = NDCG(10).oracle(y)
    for scale in (0.1, 3.0, 30.0):
        scores = scale * rng.normal(size=30)
        cut = oracle(scores)
        gains = 2.0**y
        orders = [np.argsort(-(scores + c * (rng.normal(size=30) - gains))) for c in np.linspace(0, 20 * scale, 100)]
        assert value(cut, scores) >= max(case.term(y, scores, tuple(order)) for order in orders) - 1e-12
        assert 0 <= cut.loss <= 1


# --- weights


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
@quick
def test_whole_weights_are_repetition(case, data):
    y, scores, other = data.draw(samples(graded=case.graded))
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    many, many_scores, many_other = (np.repeat(v, times) for v in (y, scores, other))
    k = getattr(case.measure, "k", None)
    if len(many) == 0 or many.min() == many.max() or (isinstance(k, int) and len(many) < k):
        return
    weighted, repeated = case.measure.oracle(y, times.astype(float)), case.measure.oracle(many)
    assert weighted.n == len(many)
    assert weighted.price == pytest.approx(repeated.price)
    cut = weighted(scores)
    assert close(value(cut, scores), value(repeated(many_scores), many_scores), scores)
    both = np.concatenate((scores, other))
    assert value(cut, other) <= value(repeated(many_other), many_other) + 1e-9 * (1 + np.abs(both).max())
    assert not cut.slope[times == 0].any()
    ours = case.measure.score(y, scores, times.astype(float))
    assert ours == pytest.approx(case.measure.score(many, many_scores), abs=1e-12)


@pytest.mark.parametrize("measure", [AveragePrecision(), PartialAUC(0.1, 0.6), PartialAUC(0, 0.25)], ids=repr)
def test_any_weights_give_valid_cuts_of_a_convex_risk(measure):
    rng = np.random.default_rng(3)
    y = rng.random(30) < 0.3
    for weight in (rng.uniform(0.1, 3, size=30), np.where(y, 50 / 9, 50 / 21), 1e-6 * rng.uniform(0, 1, size=30)):
        oracle = measure.oracle(y, weight)
        assert oracle.n == pytest.approx(weight.sum())
        points = [scale * rng.normal(size=30) for scale in (0, 1e-3, 0.5, 2, 30)]
        cuts = [oracle(s) for s in points]
        for at, cut in zip(points, cuts, strict=True):
            assert value(cut, at) >= -1e-12
            assert abs(cut.slope.sum()) <= 1e-12
            for s, own in zip(points, cuts, strict=True):
                assert value(cut, s) <= value(own, s) + 1e-9 * (1 + np.abs(s).max())
    half = measure.oracle(y, np.full(30, 0.5))(points[3])
    assert value(half, points[3]) == pytest.approx(value(measure.oracle(y)(points[3]), points[3]))


def test_fractional_weights_are_refused_where_examples_are_counted():
    y, weight = np.array([True, False, True]), np.array([1.0, 0.5, 2.0])
    for measure in (NDCG(), PrecisionAtK(1, "rankings")):
        with pytest.raises(ValueError, match="expected whole numbers as sample_weight"):
            measure.oracle(y, weight)
    with pytest.raises(ValueError, match="expected whole numbers as sample_weight"):
        NDCG().score(y, np.zeros(3), weight)
    with pytest.raises(ValueError, match="expected whole numbers as sample_weight"):  # before memory for so many ranks
        PrecisionAtK("20%", "rankings").oracle(y, 1e14 * np.array([1.0, 1 / 3, 1 / 7]))


# --- values


@pytest.mark.parametrize("case", CASES)
def test_loss_of_rankings_without_ties(case):
    rng = np.random.default_rng(2)
    for _ in range(20):
        y = rng.permutation([3, 2, 0, 0, 1, 0]) if case.graded else rng.permutation(np.arange(6) < 2)
        scores = rng.permutation(6).astype(float)
        ranking = tuple(np.argsort(-scores))
        kept = 1 - case.term(y, np.zeros(6), ranking)
        assert case.measure.score(y, scores) == pytest.approx(case.most(y) * kept, abs=1e-12)


def test_price_is_the_greatest_loss_of_one_move_per_swapped_pair():
    y = np.arange(12) < 3
    assert AveragePrecision().oracle(y).price == pytest.approx(9 / 3 * (1 / 2 + 1 / 3 + 1 / 4))
    assert PartialAUC().oracle(y).price == 1
    grades = np.array([3, 2, 2, 1, 1, 0, 0, 0, 0])
    for measure, labels in ((NDCG(4), grades), (NDCG(None), grades), (PrecisionAtK(5, "rankings"), y)):
        ideal = np.sort(labels)[::-1].astype(float)
        n = len(ideal)
        gains = ideal if isinstance(measure, PrecisionAtK) else measure.gains(ideal)
        discount = np.ones(5) if isinstance(measure, PrecisionAtK) else measure.discounts(n)
        D = np.zeros(n)
        D[: len(discount)] = discount
        scale = 5 if isinstance(measure, PrecisionAtK) else gains @ D
        most = 0.0
        for p in range(n):
            for q in range(n):
                moved = np.insert(np.delete(ideal, p), q, ideal[p])
                moved_gains = np.insert(np.delete(gains, p), q, gains[p])
                swapped = sum(a < b for i, a in enumerate(moved) for b in moved[i + 1 :])
                if swapped:
                    most = max(most, (gains @ D - moved_gains @ D) / scale / swapped)
        pairs = sum(a != b for i, a in enumerate(ideal) for b in ideal[i + 1 :])
        assert measure.oracle(labels).price == pytest.approx(max(1.0, pairs * most))


# --- groups


def grouped_sample(seed=0, n=60, n_groups=7, graded=True):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, size=n)
    y = rng.integers(0, 4, size=n) if graded else rng.random(n) < 0.4
    y[groups == 2] = 0
    return y, groups, rng.normal(size=n), rng


@pytest.mark.parametrize(
    "measure",
    [NDCG(3), AveragePrecision(), ROCArea(), PartialAUC(0, 0.5), PrecisionAtK(3, "rankings"), get_measure("prbep")],
    ids=lambda m: m.name,
)
def test_a_grouped_measure_is_the_mean_over_groups(measure):
    y, groups, scores, rng = grouped_sample(graded=isinstance(measure, NDCG))
    names = np.array(["b", "a", "c", "d", "e", "f", "g"])[groups]
    for labels in (groups, names, groups.astype(float)):
        grouped = Grouped(measure, labels)
        parts = [groups == g for g in range(7) if g != 2]
        oracle = grouped.oracle(y)
        singles = [measure.oracle(y[part]) for part in parts]
        cuts = [single(scores[part]) for single, part in zip(singles, parts, strict=True)]
        cut = oracle(scores)
        assert cut.loss == pytest.approx(np.mean([one.loss for one in cuts]))
        for one, part in zip(cuts, parts, strict=True):
            np.testing.assert_allclose(cut.slope[part], one.slope / 6, atol=1e-14)
        assert not cut.slope[groups == 2].any()
        assert oracle.n == sum(single.n for single in singles)
        assert oracle.price == pytest.approx(sum(s.price * s.n for s in singles) / oracle.n)
        assert grouped.score(y, scores) == pytest.approx(
            np.mean([measure.score(y[part], scores[part]) for part in parts])
        )
        assert grouped.loss(y, scores) == pytest.approx(1 - grouped.score(y, scores))
        move = rng.normal(size=len(y))
        line = oracle.line(scores, move)
        for t in (0.0, 0.7, 2.0):
            here = oracle(scores + t * move)
            risk, slope = line(t)
            assert risk == pytest.approx(value(here, scores + t * move))
            assert slope == pytest.approx(float(here.slope @ move))


@pytest.mark.parametrize(
    "measure", [NDCG(3), AveragePrecision(), ROCArea(), get_measure("prbep")], ids=lambda m: m.name
)
def test_the_kernel_of_groups_says_the_same(measure):
    y, groups, scores, rng = grouped_sample(graded=isinstance(measure, NDCG))
    oracle = Grouped(measure, groups).oracle(y)
    kernel, oracle.compiled = oracle.compiled, None
    move = rng.normal(size=len(y))
    for mu, asked in ((0.0, oracle(scores)), (0.01, oracle.mean_cut(scores, 0.01))):
        loss, slope = kernel.cut(scores, mu)
        assert loss == pytest.approx(asked.loss)
        np.testing.assert_allclose(slope, asked.slope, atol=1e-14)
    for t in (0.0, 0.7, 2.0):
        assert _kernels.Line(kernel, scores, move)(t) == pytest.approx(oracle.line(scores, move)(t))


def test_smoothing_of_groups():
    y, groups, scores, _ = grouped_sample(graded=False)
    for measure in (ROCArea(), AveragePrecision()):
        oracle = Grouped(measure, groups).oracle(y)
        risk = value(oracle(scores), scores)
        smoothed, cut = made(oracle.can.smooth)(scores, 0.05)
        assert risk - 0.05 <= smoothed <= risk
        assert value(cut, scores) <= risk + 1e-12
    weight = np.random.default_rng(0).random(len(y)) + 0.5  # with which F1 has no smoothed risk
    assert made(Grouped(FBeta(), groups).oracle(y, weight).can.smooth) is None


def test_groups_smaller_than_k():
    groups = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    y = np.array([1, 0, 1, 0, 1, 0, 0, 0], dtype=bool)
    scores = np.array([4.0, 3, 2, 1, 1, 2, 1, 2])
    for measure in (PrecisionAtK(3, "rankings"), RecallAtK(3, "rankings")):
        grouped = Grouped(measure, groups)
        first = measure.score(y[:4], scores[:4])
        assert grouped.scores(y, scores) == {
            0: pytest.approx(first),
            1: pytest.approx(0.5 if "prec" in measure.name else 1),
        }
        cut = grouped.oracle(y)(scores)
        assert not cut.slope[4:].any()
        assert cut.loss == measure.oracle(y[:4])(scores[:4]).loss
    with pytest.raises(ValueError, match="no group has more than k examples; choose a smaller k"):
        Grouped(PrecisionAtK(4, "rankings"), groups).oracle(y)


def test_weights_of_groups():
    y, groups, scores, rng = grouped_sample()
    times = rng.integers(0, 3, size=len(y)).astype(float)
    many = np.repeat(np.arange(len(y)), times.astype(int))
    a = Grouped(NDCG(3), groups).oracle(y, times)(scores)
    b = Grouped(NDCG(3), groups[many]).oracle(y[many])(scores[many])
    assert value(a, scores) == pytest.approx(value(b, scores[many]))


# --- what is refused


def test_refusals():
    y = np.array([True, False, False])
    for name in ("average_precision", "partial_auc", "ndcg"):
        measure = get_measure(name)
        for bad in (np.zeros(2), np.zeros((3, 1))):
            with pytest.raises(ValueError, match="expected 3 scores"):
                measure.oracle(y)(bad)
        with pytest.raises(ValueError, match="both classes"):
            measure.oracle(np.zeros(3, dtype=bool))
        with pytest.raises(ValueError, match="both classes"):
            measure.score(np.zeros(3, dtype=bool), np.zeros(3))
    with pytest.raises(ValueError, match="both classes"):
        NDCG().oracle(np.full(3, 2))
    for bad in ((-0.1, 0.5), (0.5, 0.5), (0.2, 1.1), (np.nan, 0.5)):
        with pytest.raises(ValueError, match="expected 0 <= alpha < beta <= 1"):
            PartialAUC(*bad)
    for bad in (0, -1, 1.5, True, "3"):
        with pytest.raises(ValueError, match="expected k as a whole number"):
            NDCG(bad)
    with pytest.raises(ValueError, match="expected gain"):
        NDCG(3, "square")
    for bad in (-1, 61, np.nan):
        with pytest.raises(ValueError, match="expected grades from 0 to 60"):
            NDCG().oracle(np.array([0, bad]))
    for bad in (-1, 2.0**61, np.nan, np.inf):
        with pytest.raises(ValueError, match="expected grades from 0 to"):
            NDCG(gain="linear").oracle(np.array([0, bad]))
    with pytest.raises(ValueError, match=r"combinations to search, more than .*; choose a smaller k, or fewer grades"):
        NDCG(None).oracle(np.arange(40))
    with pytest.raises(ValueError, match="expected labels of the 3 examples grouped, got 2"):
        Grouped(ROCArea(), [0, 0, 1]).oracle(y[:2])
    with pytest.raises(ValueError, match="expected a group with different labels, got none"):
        Grouped(ROCArea(), [0, 1, 1]).oracle(y)
    assert top.MOST_STATES == 2**24


def test_kernels_refuse_other_dtypes_and_lengths():
    d, g, gains = np.zeros(3), np.array([0, 1, 1]), np.array([0.0, 1.0])
    with pytest.raises(TypeError):
        _kernels.interleave(d.astype(np.float32), d, 1.0)
    each = np.arange(3)
    with pytest.raises(TypeError):
        _kernels.TopRankingSearch(each, g.astype(np.int32), gains, d, 1.0, 3)
    with pytest.raises(ValueError, match="length"):
        _kernels.TopRankingSearch(each, g[:2].copy(), gains, d, 1.0, 3)
    with pytest.raises(ValueError, match="expected examples from 0 to 1, got 2"):
        _kernels.TopRankingSearch(each, g, gains, d, 1.0, 2)
    for bad in (g - 1, g + 1):
        with pytest.raises(ValueError, match="expected grades from 0 to 1, got"):
            _kernels.TopRankingSearch(each, bad, gains, d, 1.0, 3)
    many = np.arange(30)
    with pytest.raises(ValueError, match="combinations of grades"):
        _kernels.TopRankingSearch(many, many, np.zeros(30), np.zeros(30), 1.0, 30)
    with pytest.raises(ValueError, match="expected length 3, got 2"):
        _kernels.TopRankingSearch(each, g, gains, d, 1.0, 3).cut(d[:2].copy())
    assert len(_kernels.interleave(d, np.zeros(0), 1.0)) == 0
    one, two = np.array([0], dtype=np.uint32), np.array([1, 2], dtype=np.uint32)
    with pytest.raises(TypeError):
        _kernels.PrecisionSearch(one.astype(np.int64), two, 1.0, 3)
    with pytest.raises(ValueError, match="a member or more in each class"):
        _kernels.PrecisionSearch(one, two[:0].copy(), 1.0, 3)
    with pytest.raises(ValueError, match="expected members below 2, the size of the sample, got 2"):
        _kernels.PrecisionSearch(one, two, 1.0, 2)
    search = _kernels.PrecisionSearch(one, two, 1.0, 3)
    with pytest.raises(ValueError, match="expected length 3, got 2"):
        search.cut(d[:2].copy())
    start = np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match="order must hold every example once"):
        _kernels.MeanOfGroups(np.array([0, 1, 1]), start, [search])
    with pytest.raises(ValueError, match="does not lie within the sample"):
        _kernels.MeanOfGroups(np.arange(3), start + 1, [search])
    with pytest.raises(ValueError, match="expected length 2, got 1"):
        _kernels.MeanOfGroups(np.arange(3), start, [search, search])
    with pytest.raises(ValueError, match="expected length 3, got 4"):
        _kernels.SumOfRisks([search, _kernels.PrecisionSearch(one, two, 1.0, 4)], [1.0, 1.0])
    with pytest.raises(ValueError, match="move: expected length 3, got 2"):
        _kernels.Line(search, d, d[:2].copy())


def test_linear_gains_of_any_size():
    """The limit on grades is one on 2^grade; scikit-learn's own takes any."""
    rng = np.random.default_rng(0)
    grades, scores = rng.choice([0.0, 50.0, 100.0], size=20), rng.normal(size=20)
    measure = NDCG(5, gain="linear")
    assert np.isclose(measure.score(grades, scores), ndcg_score([grades], [scores], k=5))
    one, other = (measure.oracle(y)(scores) for y in (grades, grades / 50))
    assert np.isclose(one.loss, other.loss)
    np.testing.assert_allclose(one.slope, other.slope)
