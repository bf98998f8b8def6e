"""The measures: definitions, conventions, declared structures, prices, and what they refuse."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import reference as ref
import reference_rankings as ranked
from sklearn import metrics

import metrimax
from metrimax import MeasureSVC
from metrimax.cli.report import parse_measure
from metrimax.measure import (
    NDCG,
    REGISTRY,
    CostModel,
    FBeta,
    PrecisionAtK,
    QMeasure,
    RecallAtK,
    TableFunction,
    get_measure,
    ranking_measure,
)
from metrimax.measure import tables as search
from metrimax.measure.contingency import ContingencyMeasure

CASES = [pytest.param(case, id=case.name) for case in ref.CASES]
SIZES = [(1, 1), (1, 6), (6, 1), (5, 12), (9, 9)]


def grid(n_pos: int, n_neg: int) -> list[np.ndarray]:
    """All tables, each of tp, fp, fn, tn as an array (n+ + 1, n- + 1)."""
    fn, fp = np.meshgrid(np.arange(n_pos + 1.0), np.arange(n_neg + 1.0), indexing="ij")
    return [n_pos - fn, fp, fn, n_neg - fp]


def scalars(*cells: float) -> list[np.ndarray]:
    return [np.asarray(float(t)) for t in cells]


def test_every_registered_measure_has_a_reference():
    named = {case.name for case in [*ref.CASES, *ranked.RANKINGS]} | {"roc_area"}
    assert set(REGISTRY) <= named


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES)
def test_loss_of_every_table(case, size):
    if not ref.fits(case, *size):
        pytest.skip("k is more than the examples")
    expected = ref.loss_table(case.name, *size)
    inside = expected > -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # 0/0 has been thought of
        table = case.measure.table_loss(*grid(*size))
    np.testing.assert_allclose(table[inside], expected[inside], atol=1e-12)
    assert table.min() >= -1e-12
    assert table.max() <= 1 + 1e-12
    if inside[0, 0] and not case.name.startswith("recall"):
        assert abs(table[0, 0]) <= 1e-12
    score = case.measure.table_score(*grid(*size))
    np.testing.assert_allclose(score[inside], [case.reported(d) for d in expected[inside]], atol=1e-12)


SKLEARN = {
    "error": lambda y, z: metrics.accuracy_score(y, z),
    "balanced_error": metrics.balanced_accuracy_score,
    "f1": lambda y, z: metrics.f1_score(y, z, zero_division=1),
    "f0.5": lambda y, z: metrics.fbeta_score(y, z, beta=0.5, zero_division=1),
    "f2": lambda y, z: metrics.fbeta_score(y, z, beta=2, zero_division=1),
    "jaccard": lambda y, z: metrics.jaccard_score(y, z, zero_division=1),
    "kappa": metrics.cohen_kappa_score,
    "mcc": metrics.matthews_corrcoef,
}


@pytest.mark.parametrize("name", SKLEARN)
def test_scores_are_those_of_scikit_learn(name):
    measure = next(c for c in ref.CASES if c.name == name).measure
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = rng.integers(2, 12)
        y = rng.permutation(np.arange(n) < rng.integers(1, n))
        scores = np.round(rng.normal(size=n))
        assert measure.score(y, scores) == pytest.approx(SKLEARN[name](y, scores > 0), abs=1e-12)
        weight = rng.integers(1, 4, size=n)
        again = measure.score(np.repeat(y, weight), np.repeat(scores, weight))
        assert measure.score(y, scores, weight.astype(float)) == pytest.approx(again, abs=1e-12)


def test_roc_area_is_that_of_scikit_learn_ties_included():
    measure = get_measure("roc_area")
    rng = np.random.default_rng(1)
    for _ in range(50):
        n = rng.integers(2, 20)
        y = rng.permutation(np.arange(n) < rng.integers(1, n))
        scores = np.round(rng.normal(size=n))
        weight = rng.uniform(0.1, 2, size=n)
        assert measure.score(y, scores) == pytest.approx(metrics.roc_auc_score(y, scores), abs=1e-12)
        assert measure.score(y, scores, weight) == pytest.approx(
            metrics.roc_auc_score(y, scores, sample_weight=weight), abs=1e-12
        )
    with pytest.raises(ValueError, match="both classes"):
        measure.score(np.ones(3, dtype=bool), np.arange(3.0))


def test_measures_at_k_take_the_top_of_the_batch():
    y = np.array([1, 0, 1, 0, 0, 1], dtype=bool)
    scores = np.array([6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    assert PrecisionAtK(2).score(y, scores) == pytest.approx(metrics.precision_score(y, scores >= 5))
    assert RecallAtK(3).score(y, scores) == pytest.approx(metrics.recall_score(y, scores >= 4))
    assert RecallAtK(2).score(y, scores) == pytest.approx(1 / 2)  # of the two that fit in
    plain = RecallAtK(2, denominator="positives")
    assert plain.score(y, scores) == pytest.approx(metrics.recall_score(y, scores >= 5))
    assert plain.oracle(y).price == pytest.approx(len(y) / 2 / y.sum())  # of one swap
    with pytest.raises(ValueError, match="expected denominator 'attainable' or 'positives', got 'all'"):
        RecallAtK(2, denominator="all")
    assert get_measure("prbep").score(y, scores) == pytest.approx(2 / 3)
    assert get_measure("prbep").score(y, -scores) == pytest.approx(1 / 3)


def test_ties_at_the_boundary_count_by_their_average():
    y = np.array([1, 0, 1, 0], dtype=bool)
    scores = np.array([1.0, 1.0, 1.0, 0.0])
    assert PrecisionAtK(1).score(y, scores) == pytest.approx(2 / 3)
    assert PrecisionAtK(2).score(y, scores) == pytest.approx(2 / 3)
    weight = np.array([2.0, 1.0, 1.0, 5.0])
    repeated = np.repeat(np.arange(4), weight.astype(int))
    assert PrecisionAtK(3).score(y, scores, weight) == pytest.approx(
        PrecisionAtK(3).score(y[repeated], scores[repeated])
    )


def test_threshold_lies_between_the_kth_and_the_next_score():
    y = np.array([1, 0, 1, 0, 0], dtype=bool)
    scores = np.array([4.0, 1.0, 3.0, 2.0, 0.0])
    for measure, expected in ((get_measure("prbep"), 2.5), (PrecisionAtK(1), 3.5), (get_measure("roc_area"), 2.5)):
        assert measure.threshold(y, scores) == expected
    assert PrecisionAtK(5).threshold(y, scores) < 0  # all of them
    assert get_measure("f1").threshold(y, scores) == 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in ref.CASES if c.measure.structure is not None])
def test_declared_structure_holds_on_every_table(case, size):
    n_pos, n_neg = size
    if not ref.fits(case, *size):
        pytest.skip("k is more than the examples")
    table = case.measure.table_loss(*grid(*size))
    structure = case.measure.structure
    if structure == "count":
        allowed = ref.loss_table(case.name, *size) > -np.inf
        for m in range(n_pos + n_neg + 1):
            tp = np.arange(max(0, m - n_neg), min(m, n_pos) + 1)
            line = table[n_pos - tp, m - tp][allowed[n_pos - tp, m - tp]]
            assert np.abs(np.diff(line, n=2)).max(initial=0) <= 1e-12, m
    elif structure in search.LINKS:
        joined = search.LINKS[structure](table[:, :1], table[:1, :])
        np.testing.assert_allclose(table, joined, atol=1e-12)
        assert np.diff(np.diff(table, axis=0), axis=1).max() <= 1e-12
    elif structure == "limited":
        for row in table:
            inside = np.count_nonzero(row < 1)
            assert (row[inside:] == 1).all()
            assert np.diff(row[:inside], n=2).max(initial=-1) <= 1e-12
    else:
        assert structure == "scan"


@pytest.mark.parametrize("size", [*SIZES, (2.5, 30.25)])
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in ref.CASES])
def test_coefficients_by_count_give_the_loss(case, size):
    """Where a measure says them itself, for any weights of the classes."""
    n_pos, n_neg = size
    tp, fp = np.meshgrid(np.linspace(0, n_pos, 7), np.linspace(0, n_neg, 9))
    given = case.measure.by_count(tp + fp, n_pos, n_neg)
    if given is None:
        assert case.measure.name not in ("error", "fbeta")
        return
    loss = case.measure.table_loss(tp, fp, n_pos - tp, n_neg - fp)
    np.testing.assert_allclose(given[0] + given[1] * tp, loss, atol=1e-14)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in ref.CASES if not c.top])
def test_probe_finds_a_structure_as_good(case):
    """The same function as a plain Python function is searched as fast, and as exactly."""
    rank = ["count", "product", "hypot", "max", "monge", "scan", "limited"]  # the last is for those who declare it
    function = TableFunction(case.measure.table_loss, kind="loss", where=getattr(case.measure, "where", None))
    y = np.arange(40) < 13
    declared, probed = case.measure.oracle(y), function.oracle(y)
    assert rank.index(probed.structure) <= rank.index(declared.structure)
    scores = np.random.default_rng(0).normal(size=40)
    a, b = declared(scores), probed(scores)
    assert a.loss + a.slope @ scores == pytest.approx(b.loss + b.slope @ scores, abs=1e-10)


def test_structures_probed_for_functions_without_names():
    y = np.arange(60) < 20

    def structure(function):
        return get_measure(function).oracle(y).structure

    assert structure(ref.user_f1) == "count"
    assert structure(ref.monge_only) == "monge"
    assert structure(ref.wavy) == "scan"
    assert structure(lambda tp, fp, fn, tn: (tp / (tp + fn)) * (tn / (tn + fp))) == "product"


# --- prices


@pytest.mark.parametrize(("n_pos", "n_neg"), [(1, 9), (30, 470), (50, 50), (90, 10)])
def test_prices(n_pos, n_neg):
    y, n = np.arange(n_pos + n_neg) < n_pos, n_pos + n_neg

    def price(measure):
        return get_measure(measure).oracle(y).price

    assert price("error") == price("roc_area") == 1
    assert price("f1") == pytest.approx(max(1, 2 * n * n_pos / (4 * n_pos**2 - 1)))
    assert price("prbep") == pytest.approx(max(1, n / (2 * n_pos)))
    assert price("balanced_error") == pytest.approx(max(1, n / 4 * (1 / n_pos + 1 / n_neg)))
    for case in ref.CASES:
        if case.top or case.name == "user_where":
            continue
        table = ref.loss_table(case.name, n_pos, n_neg)
        assert case.measure.oracle(y).price == pytest.approx(max(1, n / 2 * (table[1, 0] + table[0, 1])), rel=1e-9)


def test_price_of_a_swap_where_only_swaps_are_admissible():
    def recall(tp, fp, fn, tn):
        return tp / (tp + fn)

    y = np.arange(100) < 10
    swaps = TableFunction(recall, where=lambda tp, fp, fn, tn: fp == fn)
    assert swaps.oracle(y).price == pytest.approx(get_measure("prbep").oracle(y).price)


# --- names, parameters, and refusals


def test_listing():
    lines = metrimax.measures()
    assert set(lines) == set(REGISTRY)
    assert all(line and "\n" not in line for line in lines.values())
    promised = """error cost balanced_error fbeta f1 jaccard gmean qmean kappa mcc min_tpr_tnr
        precision_at_k recall_at_k prbep roc_area ae rae kld nkld q"""
    assert set(promised.split()) <= set(lines)


def test_measures_are_values():
    assert FBeta(2) == FBeta(2) != FBeta(1)
    assert hash(FBeta(2)) == hash(FBeta(2))
    assert "beta=2" in repr(FBeta(2))
    assert get_measure("f1") == FBeta(1.0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("accuracy", "error"),
        ("balanced_accuracy", "balanced_error"),
        ("roc_auc", "roc_area"),
        ("AUC", "roc_area"),
        ("matthews_corrcoef", "mcc"),
        ("cohen_kappa", "kappa"),
        ("average_precision", "average_precision"),
        ("MAP", "average_precision"),
        ("F1", "f1"),
        ("precision@50", PrecisionAtK(50)),
        ("precision_at_k@50", PrecisionAtK(50)),
        ("recall@2p", RecallAtK("2p")),
        ("NDCG@10", NDCG(10)),
    ],
)
def test_names_that_measures_have_elsewhere(name, expected):
    """The same in Python and on the command line."""
    expected = get_measure(expected)
    assert get_measure(name) == parse_measure(name) == expected
    if expected.ranks:
        assert ranking_measure(name).name == expected.name


def test_get_measure_refuses():
    for bad in ("f1@3", "precision@", "ndcg@2p"):
        with pytest.raises(ValueError, match=r"unknown measure 'f1@3'|expected k as a whole number"):
            get_measure(bad)
    with pytest.raises(ValueError, match=r"unknown measure 'f3': expected one of .*f1"):
        get_measure("f3")
    for name, meant in {
        "roc_auc_score": "'roc_area'",
        "accuracy_score": "'error'",
        "pr_auc": "'average_precision'",
        "precision": "'precision@recall=0.8'",
        "f1_score": "'f1'",
        "average-precision": "'average_precision'",
        "jacard": "'jaccard'",
        "f0.5": "FBeta(0.5)",
    }.items():
        with pytest.raises(ValueError, match=re.escape(f"; perhaps {meant} is meant")):
            get_measure(name)
    with pytest.raises(ValueError, match=r"tpr_at_fpr$"):
        get_measure("something else")
    with pytest.raises(TypeError, match=r"; perhaps 'roc_area' is meant$"):
        get_measure(metrics.roc_auc_score)
    with pytest.raises(TypeError, match=r"call it, as in FBeta\(\)"):
        get_measure(FBeta)
    for bad in (3, None, ["f1"]):
        with pytest.raises(TypeError, match="expected measure as a name"):
            get_measure(bad)


@pytest.mark.parametrize("k", [0, -1, 1.5, "p", "2", "2 p", "0p", "-1p", "nanp", "infp", True, None, ""])
@pytest.mark.parametrize("at", [PrecisionAtK, RecallAtK])
def test_bad_k(at, k):
    with pytest.raises(ValueError, match="expected k as a whole number"):
        at(k)


def test_bad_parameters():
    with pytest.raises(ValueError, match="labellings"):
        PrecisionAtK(1, "about")
    for bad in (0, -1, np.inf, np.nan):
        for make in (FBeta, QMeasure):
            with pytest.raises(ValueError, match="beta > 0"):
                make(bad)
    for bad in ((-1, 1), (0, 0), (1, np.inf), (np.nan, 1)):
        with pytest.raises(ValueError, match="costs"):
            CostModel(*bad)


@pytest.mark.parametrize("labellings", ["exact", "at_least", "at_most"])
def test_k_beyond_the_sample(labellings):
    y = np.array([True, False, False])
    for measure in (PrecisionAtK(4, labellings), RecallAtK(4, labellings)):
        for ask in (lambda m: m.oracle(y), lambda m: m.score(y, np.arange(3.0))):
            with pytest.raises(ValueError, match=r"k = 4 is more than the 3 examples given; choose a smaller k"):
                ask(measure)
    assert RecallAtK("4p", labellings).score(y, np.arange(3.0)) == 1  # a multiple of the positives is cut at all


def test_a_k_of_all_is_said_to_teach_nothing():
    y = np.arange(30) < 20
    X = np.random.default_rng(0).normal(size=(30, 2)) + y[:, None]
    with pytest.warns(UserWarning, match="recall_at_k: k is the whole sample.*choose a smaller k"):
        model = MeasureSVC("recall_at_k").fit(X, y)
    assert model.score(X, y) == 1


@pytest.mark.parametrize("n", range(10, 80))
def test_k_relative_to_sums_of_weights_that_are_rounded(n):
    y = np.arange(n) < 3
    weight = np.where(y, n / 2 / 3, n / 2 / (n - 3))  # balanced: 2p is all there is
    for k, expected in (("2p", n), ("0.5p", n / 4 if n % 2 else n // 4)):
        totals = float(weight[y].sum()), float(weight[~y].sum())
        for n_pos in (totals[0], np.nextafter(n / 2, 0), n / 2, np.nextafter(n / 2, n)):
            assert RecallAtK(k).number(n_pos, totals[1]) == pytest.approx(expected, rel=1e-12)


Y = np.arange(10) < 4


def test_a_new_measure_costs_a_few_lines():
    class Recall(ContingencyMeasure):
        """Recall."""

        name = "recall"

        def table_loss(self, tp, fp, fn, tn):
            return fn / (tp + fn)

    oracle = get_measure(Recall()).oracle(Y)
    assert oracle.structure == "count"
    cut = oracle(np.zeros(10))
    assert cut.loss == 1


def test_large_counts_do_not_overflow():
    """A sample of 10^6 and the tables in its corners."""
    for case in ref.CASES:
        if case.name == "q" or case.top:
            continue
        for cells in (
            (500_000, 0, 0, 500_000),
            (0, 500_000, 500_000, 0),
            (1, 0, 499_999, 500_000),
            (500_000, 1, 0, 499_999),
        ):
            assert float(case.measure.table_loss(*scalars(*cells))) == pytest.approx(
                case.loss(*map(float, cells)), abs=1e-9
            )


def test_exactly_k_positives_warns_where_the_truth_has_another_number():
    y = np.arange(10) < 4
    with pytest.warns(UserWarning, match="exactly k positives, more .* labellings='at_most'"):
        RecallAtK("2p").oracle(y)
    with pytest.warns(UserWarning, match="labellings='at_least'"):
        PrecisionAtK(2).oracle(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrecisionAtK(4).oracle(y)
        RecallAtK("2p", "at_most").oracle(y)
