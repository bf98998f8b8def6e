"""Measures that users write: what they mean on a sample of one class, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metrimax import CostModel, MeasureSVC, TableFunction
from metrimax.measure import get_measure
from metrimax.measure.contingency import ContingencyMeasure

Y = np.arange(20) < 6
TEN = np.arange(10) < 4


def jac(tp, fp, fn, tn):
    return tp / np.maximum(tp + fp + fn, 1)


def jac_loss(tp, fp, fn, tn):
    return 1 - jac(tp, fp, fn, tn)


def specificity(tp, fp, fn, tn):
    return tn / np.maximum(tn + fp, 1)


# --- a sample of one class does not say whether a function is a score or a loss


@pytest.mark.parametrize("size", [1, 3, 10])
@pytest.mark.parametrize("function", [jac, jac_loss, TableFunction(jac, kind="score")])
def test_no_positives(function, size):
    measure, truth = get_measure(function), np.zeros(size, dtype=bool)
    assert measure.score(truth, np.ones(size)) == get_measure("jaccard").score(truth, np.ones(size)) == 0
    assert measure.score(truth, -np.ones(size)) == get_measure("jaccard").score(truth, -np.ones(size)) == 1
    assert measure.loss(truth, np.ones(size)) == 1
    assert measure.loss(truth, -np.ones(size)) == 0


@pytest.mark.parametrize("function", [specificity, lambda *table: 1 - specificity(*table)])
def test_no_negatives(function):
    measure, truth = TableFunction(function), np.ones(3, dtype=bool)
    assert measure.score(truth, -np.ones(3)) == 0
    assert measure.score(truth, np.ones(3)) == 1


def test_light_samples_of_one_class():
    truth, weight = np.zeros(3, dtype=bool), np.full(3, 0.1)
    assert TableFunction(jac).score(truth, np.ones(3), weight) == 0
    assert TableFunction(jac).score(truth, -np.ones(3), weight) == 1


def test_a_guard_that_is_not_quite_zero():
    measure = TableFunction(lambda tp, fp, fn, tn: tp / (tp + fp + fn + 1e-9))
    assert measure.score(np.zeros(10, dtype=bool), np.ones(10)) == 0
    f1 = get_measure(lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn + 1e-10))
    assert f1.oracle(Y).structure == "count"  # its perfect table is left as it is


def test_the_estimator_scores_a_batch_of_one_class(binary):
    X, y = binary
    batch = X[:10] + 5, np.zeros(10, dtype=y.dtype)
    own, named = (MeasureSVC(measure).fit(X, y) for measure in (jac, "jaccard"))
    assert own.predict(batch[0]).any()
    assert own.score(*batch) == named.score(*batch) == 0


def test_nan_is_refused_of_one_class_too():
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="returned nan"):
        TableFunction(lambda tp, fp, fn, tn: tp / (tp + fn)).score(np.zeros(3, dtype=bool), -np.ones(3))


# --- a score or a loss: what the function is, whatever the sample


def capped_recall(tp, fp, fn, tn):
    return np.where(tp + fp <= 150, tp / (tp + fn), 0)


@pytest.mark.parametrize("n_pos", [100, 150, 151, 210, 700])
def test_a_score_stays_one_where_the_truth_is_worth_nothing(n_pos):
    """With more positives than it admits, all right has the value 0, which once made a loss of it."""
    truth = np.arange(1000) < n_pos
    found = np.where(np.arange(1000) < 50, 1.0, -1.0)  # 50 of the positives
    for function, expected in ((capped_recall, 50 / n_pos), (lambda *table: 1 - capped_recall(*table), 50 / n_pos)):
        measure = get_measure(function)
        assert measure.score(truth, found) == pytest.approx(expected)
        assert measure.loss(truth, found) == pytest.approx(1 - expected)


def test_a_truth_that_is_not_the_best_labelling_is_said_so():
    rng = np.random.default_rng(0)
    truth = np.arange(1000) < 210
    X = rng.normal(size=(1000, 3)) + 1.5 * truth[:, None]
    with pytest.warns(UserWarning, match="'capped_recall' has a better value for other labellings .*where="):
        model = MeasureSVC(capped_recall, hinge=1.0, threshold="placed").fit(X, truth)
    assert 0.3 < model.score(X, truth) <= 150 / 210
    assert model.predict(X).sum() <= 150
    with pytest.warns(UserWarning, match="one and the same value for every labelling"):
        TableFunction(lambda tp, fp, fn, tn: np.where(tp > 500, 1.0, 0.0)).oracle(truth)


@pytest.mark.parametrize(
    "function",
    [
        lambda tp, fp, fn, tn: 0 * tp,
        lambda tp, fp, fn, tn: 0.5,
        lambda tp, fp, fn, tn: np.where(tp + fn > 100, tp, fn) / (tp + fn),  # one way here, the other there
    ],
)
def test_what_is_neither_score_nor_loss_has_to_be_stated(function):
    with pytest.raises(ValueError, match=r"cannot tell whether .* a score or a loss: .*kind='score'\) or kind='loss'"):
        get_measure(function).oracle(Y)


def test_the_user_states_it():
    def error(tp, fp, fn, tn):
        return np.where(tp + fn > 100, fn, tp) / (tp + fn)

    table = Y, np.where(np.arange(20) < 5, 1.0, -1.0)
    assert TableFunction(error, kind="loss").score(*table) == pytest.approx(1 / 6)
    assert TableFunction(error, kind="score").score(*table) == pytest.approx(5 / 6)
    with pytest.raises(ValueError, match="expected kind 'score', 'loss' or None, got 'gain'"):
        TableFunction(error, kind="gain")
    with pytest.raises(TypeError, match=r"where as a function of \(tp, fp, fn, tn\), got 3"):
        TableFunction(error, where=3)


def test_a_function_that_knows_its_own_sample_only():
    """Once it is stated what it is, nobody asks for other tables."""
    values = np.linspace(0, 1, 7)
    measure = TableFunction(lambda tp, fp, fn, tn: values[fn.astype(int)] * (fp >= 0), kind="loss")
    assert measure.oracle(Y)(np.zeros(20)).loss == 1
    with pytest.raises(IndexError):
        get_measure(measure.function).oracle(Y)


# --- functions of single numbers


def careful_f1(tp, fp, fn, tn):
    if tp == 0:
        return 0
    return 1 / math.sqrt(((tp + fp) / tp + (tp + fn) / tp) ** 2 / 4)


@pytest.mark.parametrize("weighted", [False, True])
def test_functions_of_numbers_are_called_table_by_table(binary, weighted):
    X, y = binary
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    own, named = (MeasureSVC(m, C=1.0, tol=1e-6).fit(X, y, sample_weight=weight) for m in (careful_f1, "f1"))
    assert own.objective_ == pytest.approx(named.objective_, rel=1e-5)
    assert own.score(X, y, weight) == pytest.approx(named.score(X, y, weight), abs=1e-3)


def test_predicates_of_numbers_are_called_table_by_table():
    few = TableFunction(jac, where=lambda tp, fp, fn, tn: bool(fp == 1 and fn == 1))
    assert few.oracle(Y)(np.zeros(20)).loss == pytest.approx(1 - 5 / 7)


def test_values_that_depend_on_the_other_tables_are_refused():
    with pytest.raises(ValueError, match="other values for arrays of tables than for the same tables one by one"):
        get_measure(lambda tp, fp, fn, tn: tp / np.max(tp + fn)).oracle(Y)


def test_the_error_of_a_function_that_takes_neither_comes_through():
    with pytest.raises(KeyError, match="missing") as raised:
        get_measure(lambda tp, fp, fn, tn: {}["missing"]).oracle(Y)
    assert "np.where in the place of if" in raised.value.__notes__[0]


# --- values of any scale


@pytest.mark.parametrize(
    ("function", "best", "worst"),
    [
        (lambda tp, fp, fn, tn: 50 * tp - 5 * fp, 300, -70),
        (lambda tp, fp, fn, tn: 5 * fp + 50 * fn, 0, 370),
        (lambda tp, fp, fn, tn: 1 - fn, 1, -5),
        (lambda tp, fp, fn, tn: 100 * fn / (tp + fn), 0, 100),
        (lambda tp, fp, fn, tn: tp - (tp - 4) ** 2 * (fp > 3), 6, -16),  # best and worst are not where all is right
    ],
)
def test_values_beyond_0_and_1_are_scaled_by_sample(function, best, worst):
    measure = get_measure(function)
    assert measure.scale(6, 14) == (best, worst)
    grid = np.meshgrid(np.arange(7.0), np.arange(15.0))
    value = function(6 - grid[0], grid[1], grid[0], 14 - grid[1])
    loss = measure.table_loss(6 - grid[0], grid[1], grid[0], 14 - grid[1])
    np.testing.assert_allclose(loss, (value - best) / (worst - best), atol=1e-12)
    assert (loss.min(), loss.max()) == (0, 1)


def test_a_profit_is_trained_for_as_the_costs_that_it_is(binary):
    X, y = binary
    profit = MeasureSVC(lambda tp, fp, fn, tn: 50 * tp - 5 * fp, C=1.0, tol=1e-6).fit(X, y)
    costs = MeasureSVC(CostModel(fn=50, fp=5), C=1.0, tol=1e-6).fit(X, y)
    assert profit.objective_ == pytest.approx(costs.objective_, rel=1e-5)
    assert profit.score(X, y) == pytest.approx(costs.score(X, y), abs=1e-3)
    assert get_measure("f1").oracle(y).price > 1
    assert TableFunction(jac).scale(3, 4) == (1, 0)
    assert TableFunction(jac_loss).scale(3, 4) == (0, 1)


def test_values_outside_the_scale_are_refused():
    odd = TableFunction(lambda tp, fp, fn, tn: np.where(fp == 2, 7.0, tp / (tp + fn)))  # which no probe has seen
    with pytest.raises(ValueError, match=r"values from .* to 7: expected values in \[0, 1\]"):
        odd.oracle(Y)


# --- no certificate from NaN


class Precision(ContingencyMeasure):
    """Precision, 0/0 where nothing is called positive."""

    name = "precision"

    def table_loss(self, tp, fp, fn, tn):
        return 1 - np.divide(tp, tp + fp)


class CountedPrecision(Precision):
    structure = "count"


class AtLeastOne(CountedPrecision):
    """Not asked where it is 0/0."""

    def counts(self, n_pos, n_neg):
        return 1, n_pos + n_neg


class PrecisionByCount(CountedPrecision):
    def table_loss(self, tp, fp, fn, tn):
        return 1 - tp / np.maximum(tp + fp, 1)

    def by_count(self, m, n_pos, n_neg):
        return 1.0, -np.divide(0 * m + 1, m) * np.where(m > 0, 1, 0)


class ConstantNaN(PrecisionByCount):
    def by_count(self, m, n_pos, n_neg):
        return np.nan, -1 / np.maximum(m, 1)


class Linked(ContingencyMeasure):
    name = "linked"
    structure = "product"

    def table_loss(self, tp, fp, fn, tn):
        return 1 - np.divide(tp, tp + fp + fn) * np.divide(tp, tp)


class Masked(CountedPrecision):
    """Excludes tables by itself, which the structure "count" cannot know."""

    def admissible(self, tp, fp, fn, tn):
        return tp + fp > 0


@pytest.mark.parametrize("measure", [Precision(), CountedPrecision(), Linked()])
@pytest.mark.parametrize("weighted", [False, True])
def test_nan_from_a_table(binary, measure, weighted):
    X, y = binary
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match=rf"{measure.name}' returned NaN for tp.*0/0.*ratio"),
    ):
        MeasureSVC(measure).fit(X, y, sample_weight=weight)


def test_nan_in_the_message_says_which_table():
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"tp, fp, fn, tn = \[0.0, 0.0, 6.0, 14.0\]"):
        Precision().oracle(Y)


@pytest.mark.parametrize(("measure", "which"), [(PrecisionByCount(), "v"), (ConstantNaN(), "u"), (Masked(), "u")])
def test_nan_from_coefficients(binary, measure, which):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=f"NaN for the coefficient {which} of 0 predicted"):
        MeasureSVC(measure).fit(*binary)


def test_nan_where_no_labelling_may_be_is_nobodys_business():
    class Named(Masked):
        structure = None

    scores = np.random.default_rng(0).normal(size=20)
    with np.errstate(all="ignore"):
        a, b = (measure.oracle(Y)(scores) for measure in (Named(), AtLeastOne()))
    assert a.loss + a.slope @ scores == pytest.approx(b.loss + b.slope @ scores)


# --- a predicate that admits nothing


@pytest.mark.parametrize("solver", ["auto", "bundle", "cutting_plane"])
def test_no_table_admitted(binary, solver):
    measure = TableFunction(jac, where=lambda tp, fp, fn, tn: tp < 0)
    with pytest.raises(ValueError, match=r"'jac' admits no table of \d+ positives and \d+ negatives.*where"):
        MeasureSVC(measure, solver=solver).fit(*binary)


def test_one_table_admitted():
    measure = TableFunction(jac, where=lambda tp, fp, fn, tn: (fp == 1) & (fn == 1))
    cut = measure.oracle(Y)(np.zeros(20))
    assert cut.loss == pytest.approx(1 - 5 / 7)
    assert np.count_nonzero(cut.slope) == 2


# --- functions that cannot be used, that change their arrays, that are losses


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda tp, fp, fn, tn: np.where(fn > 2, np.nan, 1 - fn / 4), "returned nan .*define the case 0/0"),
        (lambda tp, fp, fn, tn: np.where(fn > 2, np.inf, 1 - fn / 4), "returned inf"),
        (lambda tp, fp, fn, tn: 1.0, "a score or a loss"),
        (lambda tp, fp, fn, tn: (1 - fn / 4).ravel()[:1], "expected the same shape"),
    ],
)
def test_users_functions_that_will_not_do(function, message):
    with pytest.raises(ValueError, match=message):
        get_measure(function).oracle(TEN)(np.zeros(10))


def test_users_function_may_assign_to_its_arrays():
    """Written for arrays, as documented: masks and in-place operations included."""

    def f1(tp, fp, fn, tn):
        bottom = 2 * tp + fp + fn
        out = np.ones_like(tp)
        out[bottom > 0] = 2 * tp[bottom > 0] / bottom[bottom > 0]
        tp += 1  # careless, but the user's own
        return out

    scores = np.linspace(-1, 1, 10)
    own, ours = get_measure(f1).oracle(TEN)(scores), get_measure("f1").oracle(TEN)(scores)
    assert own.loss + own.slope @ scores == pytest.approx(ours.loss + ours.slope @ scores)
    assert get_measure(f1).score(TEN, scores) == pytest.approx(get_measure("f1").score(TEN, scores))
    assert get_measure(f1).loss(TEN, scores > 0) == pytest.approx(get_measure("f1").loss(TEN, scores > 0))


def test_users_function_as_loss_or_as_score_is_the_same():
    scores = np.linspace(-1, 1, 10)
    for pair in (
        (lambda tp, fp, fn, tn: fn / (fn + tp), lambda tp, fp, fn, tn: tp / (fn + tp)),
        (
            lambda tp, fp, fn, tn: (fp + fn) / (tp + fp + fn + tn),
            lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
        ),
    ):
        cuts = [get_measure(f).oracle(TEN)(scores) for f in pair]
        assert cuts[0].loss == pytest.approx(cuts[1].loss)
        assert get_measure(pair[0]).score(TEN, scores) == pytest.approx(get_measure(pair[1]).score(TEN, scores))
