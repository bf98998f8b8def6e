"""Groups of weighted examples, and what `MeasureRanker` refuses in labels and groups."""

from __future__ import annotations

import numpy as np
import pytest

from metrimax import MeasureRanker
from metrimax.designs import as_design
from metrimax.measure import NDCG, PRBEP, Grouped, PrecisionAtK, RecallAtK

AT_K = ("precision_at_k", "recall_at_k")


@pytest.fixture
def sample():
    """Four groups of five examples, with examples of both classes in each."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(4), 5)
    y = np.tile([1.0, 0, 1, 0, 0], 4)
    return rng.normal(size=(20, 2)) + 0.7 * y[:, None], y, groups


@pytest.mark.parametrize("name", AT_K)
def test_weights_count_against_k(name):
    rng = np.random.default_rng(0)
    X, groups, weight = rng.normal(size=(12, 2)), np.repeat(np.arange(4), 3), np.full(12, 2.0)
    y = np.tile([1.0, 0, 0, 1, 1, 0], 2)
    rep = np.repeat(np.arange(12), 2)
    many = MeasureRanker(name, k=5, tol=1e-6).fit(X[rep], y[rep], groups=groups[rep])
    one = MeasureRanker(name, k=5, tol=1e-6).fit(X, y, groups=groups, sample_weight=weight)
    assert one.objective_ == pytest.approx(many.objective_, rel=1e-5)
    expected = many.score(X[rep], y[rep], groups=groups[rep])
    assert many.score(X, y, groups=groups, sample_weight=weight) == pytest.approx(expected)


def beyond(k, y):
    """Whether labels vary and are more than k."""
    first = k if isinstance(k, int) else max(1, int(float(k[:-1]) * y.sum()))
    return 0 < y.sum() < len(y) and first < len(y)


@pytest.mark.parametrize("k", [1, 3, 5, 8, "0.5p", "1p", "2p", "3p"])
@pytest.mark.parametrize("measure", [PrecisionAtK, RecallAtK])
def test_whole_weights_are_repetition(measure, k):
    rng = np.random.default_rng(1)
    for _ in range(20):
        groups = rng.integers(0, 4, size=24)
        y = rng.random(24) < 0.6
        scores = np.round(rng.normal(size=24), 1)
        times = rng.integers(0, 4, size=24)
        rep = np.repeat(np.arange(24), times)
        weighted, repeated = Grouped(measure(k, "rankings"), groups), Grouped(measure(k, "rankings"), groups[rep])
        weight = times.astype(float)
        assert weighted.score(y, scores, weight) == pytest.approx(repeated.score(y[rep], scores[rep]))
        if not any(beyond(k, y[rep][groups[rep] == g]) for g in range(4)):
            for grouped, labels, w in ((weighted, y, weight), (repeated, y[rep], None)):
                with pytest.raises(ValueError, match="no group has more than k examples"):
                    grouped.oracle(labels, w)
            continue
        other = repeated.oracle(y[rep])
        made = weighted.oracle(y, weight)
        assert (made.n, made.price) == pytest.approx((other.n, other.price))
        a, b = made(scores), other(scores[rep])
        assert a.loss + a.slope @ scores == pytest.approx(b.loss + b.slope @ scores[rep])


@pytest.mark.parametrize("name", AT_K)
def test_examples_of_no_weight_are_absent(name, sample):
    X, y, groups = sample
    weight = np.ones(20)
    weight[2:5] = 0
    here = weight > 0
    ranker = MeasureRanker(name, k=3, tol=1e-6).fit(X, y, groups, weight)
    assert ranker.objective_ == pytest.approx(
        MeasureRanker(name, k=3, tol=1e-6).fit(X[here], y[here], groups[here]).objective_, rel=1e-5
    )
    expected = ranker.score(X[here], y[here], groups[here])
    assert ranker.score(X, y, groups, weight) == pytest.approx(expected)


@pytest.mark.parametrize("name", AT_K)
def test_a_multiple_of_the_positives_larger_than_a_group_means_all_of_it(name, sample):
    X, y, groups = sample
    y[:5] = 1, 1, 1, 1, 0
    measure = PrecisionAtK("2p", "rankings") if name == "precision_at_k" else None
    ranker = MeasureRanker(measure or name, k=None, hinge=0).fit(X, y, groups)
    scores = Grouped(ranker._measure(), groups).scores(y > 0, ranker.predict(X))
    assert scores[0] == pytest.approx(0.8 if measure else 1.0)
    assert ranker.score(X, y, groups) == pytest.approx(np.mean(list(scores.values())))
    alone = MeasureRanker(measure or name, k=None, hinge=0).fit(X[5:], y[5:], groups[5:])
    assert ranker.objective_ == pytest.approx(alone.objective_, rel=1e-2)


def test_weights_that_are_not_whole_and_small():
    y, scores, groups = np.array([1, 0, 1, 0]) > 0, np.array([1.0, 2, 3, 4]), np.zeros(4)
    weight = np.array([0.1, 0.3, 0.1, 0.2])
    for k in (1, 3, "9p"):
        assert Grouped(PrecisionAtK(k), groups).score(y, scores, weight) == pytest.approx(2 / 7)
        assert Grouped(RecallAtK(k), groups).score(y, scores, weight) == pytest.approx(1)
    weight = np.array([1.5, 1.5, 0.25, 0.5])  # 3.75 in all, of which not three but all are meant
    assert Grouped(PrecisionAtK(4), groups).score(y, scores, weight) == pytest.approx(1.75 / 3.75)
    assert Grouped(PRBEP(), groups).score(y, scores, weight) == pytest.approx(PRBEP().score(y, scores, weight))
    tenths = np.full(30, 0.1)  # 3 and a rounding error: nothing is beyond the first 3
    y = np.arange(30) < 10
    assert Grouped(PrecisionAtK(3), np.zeros(30)).score(y, np.arange(30.0), tenths) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="no group has more than k examples"):
        Grouped(PrecisionAtK(3), np.zeros(30)).oracle(y, tenths)


# --- what is refused


@pytest.mark.parametrize("name", ["ndcg", "precision_at_k"])
def test_labels_are_checked_in_fit_and_score(name, sample):
    X, y, groups = sample
    ranker = MeasureRanker(name, k=3).fit(X, y, groups)
    assert ranker.score(X, y.astype(object), groups) == ranker.score(X, y, groups)
    assert ranker.score(X, y > 0, groups) == ranker.score(X, y, groups)
    for value in (np.nan, np.inf):
        bad = y.copy()
        bad[3] = value
        for Z in (X, as_design(X)):
            for call in (ranker.score, MeasureRanker(name, k=3).fit):
                for labels in (bad, bad.astype(object)):
                    with pytest.raises(ValueError, match=r"Input (y )?contains"):
                        call(Z, labels, groups)
    words = np.where(y > 0, "good", "bad")
    for Z in (X, as_design(X)):
        for call in (ranker.score, MeasureRanker(name, k=3).fit):
            with pytest.raises(ValueError, match=r"expected y as numbers, .* got <U4 .*: encode the labels as numbers"):
                call(Z, words, groups)


def missing_groups():
    pd = pytest.importorskip("pandas")
    numbers = [float(g) for g in np.repeat(np.arange(4), 5)]
    words = [f"q{g:g}" for g in numbers]
    numbers[7] = np.nan
    yield np.array(numbers)
    yield numbers
    yield pd.Series(numbers)
    yield pd.Series(numbers).astype("Int64")
    for value in (None, np.nan):
        words[7] = value
        yield list(words)
        yield np.array(words, dtype=object)
        yield pd.Series(words)
        yield pd.Series(words, dtype="category")
    dates = np.repeat(np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"), 10)
    dates[7] = "NaT"
    yield dates


def test_missing_groups_are_refused(sample):
    X, y, groups = sample
    ranker = MeasureRanker(k=3).fit(X, y, groups)
    for bad in missing_groups():
        for call in (ranker.score, MeasureRanker(k=3).fit):
            with pytest.raises(
                ValueError,
                match=r"expected groups without missing values, .* at place 7, one of 1: give these examples a group",
            ):
                call(X, y, bad)


def test_groups_of_any_kind_are_taken(sample):
    pd = pytest.importorskip("pandas")
    X, y, groups = sample
    ranker = MeasureRanker(k=3).fit(X, y, groups)
    expected = ranker.score(X, y, groups)
    words = [f"q{g}" for g in groups]
    infinite = np.where(groups == 3, np.inf, groups)
    kinds = [list(groups), words, np.array(words), np.array(words, dtype=object), infinite]
    kinds += [pd.Series(words), pd.Series(words, dtype="category"), pd.Series(groups).astype("Int64")]
    for given in kinds:
        assert ranker.score(X, y, given) == pytest.approx(expected)
    assert ranker.score(X, y, groups > -1) == pytest.approx(ranker.score(X, y))


def test_a_grouped_measure_is_refused(sample):
    X, y, groups = sample
    ranker = MeasureRanker(Grouped(NDCG(3), groups))
    message = r"expected the measure of one group, got Grouped, .*: give NDCG\(k=3.*as groups="
    with pytest.raises(ValueError, match=message):
        ranker.fit(X, y, groups)
