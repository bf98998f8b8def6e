"""Risks and cuts written out from the definitions, beside the references of the tests and the compiled search."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref

from metrimax.measure import Grouped, get_measure
from metrimax.measure.base_loss import Losses
from metrimax.measure.plain import PlainOracle


@pytest.mark.parametrize("case", ref.CASES, ids=lambda case: case.name)
def test_risks_of_tables(case):
    rng = np.random.default_rng(0)
    for n_pos, n_neg in ((2, 5), (4, 4), (5, 3)):
        if not ref.fits(case, n_pos, n_neg):
            continue
        y = rng.permutation(np.arange(n_pos + n_neg) < n_pos)
        plain = PlainOracle(case.measure, y, None)
        assert plain.exhaustive
        assert plain.defined
        for size in (0.0, 0.3, 3.0):
            scores = size * rng.normal(size=len(y))
            assert plain.risk(scores) == pytest.approx(ref.risk_by_labellings(case, y, scores), abs=1e-12)
            cut = plain(scores)
            assert cut.loss + cut.slope @ scores == pytest.approx(plain.risk(scores), abs=1e-12), "it is attained"


@pytest.mark.parametrize(
    "losses",
    [
        Losses(hinge=1.5),
        Losses(0.5, 0.0, 2.0, balanced=True),
        Losses(0.0, 1.0, 1.0),
        Losses(0.0, 2.0),
        Losses(3.0),
        Losses("even", 1.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["f1", "error", "roc_area", "balanced_error", "mcc"])
def test_weights_and_base_losses(name, losses):
    rng = np.random.default_rng(1)
    y = rng.random(40) < 0.3
    weight = rng.integers(0, 4, size=40).astype(float)
    measure = get_measure(name)
    plain = PlainOracle(measure, y, weight, losses)
    search = losses.oracle(measure.oracle(y, weight), y, weight)
    repeated = np.repeat(np.arange(40), weight.astype(int))
    longer = PlainOracle(measure, y[repeated], None, losses)
    for _ in range(5):
        scores = rng.normal(size=40)
        cut = search(scores)
        assert plain.risk(scores) == pytest.approx(cut.loss + cut.slope @ scores, abs=1e-12)
        assert plain.risk(scores) == pytest.approx(longer.risk(scores[repeated]), abs=1e-12)
        own = plain(scores)
        assert own.loss + own.slope @ scores == pytest.approx(plain.risk(scores), abs=1e-12)


@pytest.mark.parametrize("size", [1e-9, 0.3, 1e6])
@pytest.mark.parametrize("name", ["f1", "gmean", "prbep", "jaccard", "precision_at_recall"])
def test_weights_of_any_size(name, size):
    """What flips of an example is 0, all of its weight or a part: none of them is taken for another."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        y = np.arange(30) < 9
        weight = size * rng.uniform(0.1, 1.0, size=30)
        plain, search = PlainOracle(get_measure(name), y, weight), get_measure(name).oracle(y, weight)
        for spread in (0.1, 3.0, 100.0):
            scores = spread * rng.normal(size=30)
            cut = search(scores)
            assert plain.risk(scores) == pytest.approx(cut.loss + cut.slope @ scores, abs=1e-11 * spread)


@pytest.mark.parametrize("name", ["roc_area", "average_precision", "ndcg", "precision_at_k"])
def test_groups(name):
    rng = np.random.default_rng(2)
    groups, y = rng.integers(0, 5, size=50), rng.random(50) < 0.4
    measure = Grouped(get_measure(name, **({"k": 3} if name == "ndcg" else {})), groups)
    plain, search = PlainOracle(measure, y, None), measure.oracle(y, None)
    for _ in range(5):
        scores = rng.normal(size=50)
        cut = search(scores)
        assert plain.risk(scores) == pytest.approx(cut.loss + cut.slope @ scores, abs=1e-12)


def test_pairs_at_the_margin_but_for_rounding():
    """A pair that one class counts as inside and the other as outside would be wrong by a whole score."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        y = np.arange(12) < rng.integers(1, 12)
        level = rng.uniform(-1, 1) * 10.0 ** rng.integers(0, 6)
        scores = level * (1 + rng.integers(-2, 3, size=12) * 1e-16) + y
        plain, search = PlainOracle(get_measure("roc_area"), y, None), get_measure("roc_area").oracle(y)
        cut = search(scores)
        assert plain.risk(scores) == pytest.approx(ref.roc_risk(y, scores), abs=1e-13 * abs(level))
        assert cut.loss + cut.slope @ scores == pytest.approx(ref.roc_risk(y, scores), abs=1e-13 * abs(level))


def test_a_search_that_errs_gives_no_false_cut():
    """A plane that no labelling stands for is not taken over."""
    y = np.arange(12) < 4
    measure = get_measure("f1")
    true = measure.oracle(y, None)

    class Wrong:
        n, price = true.n, true.price

        def __call__(self, scores):
            cut = true(scores)
            return cut._replace(loss=cut.loss + 0.3, slope=1.5 * cut.slope)

    plain = PlainOracle(measure, y, None, oracle=Wrong())
    rng = np.random.default_rng(3)
    for _ in range(20):
        cut, other = plain(rng.normal(size=12)), 3 * rng.normal(size=12)
        assert cut.loss + cut.slope @ other <= ref.risk_by_labellings(ref.CASES[6], y, other) + 1e-12
