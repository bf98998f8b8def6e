"""Measures that users write: what they mean on a sample of one class, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from metrimax import MeasureSVC
from metrimax.measure import TableFunction, get_measure
from metrimax.measure.contingency import ContingencyMeasure

Y = np.arange(20) < 6


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


def test_what_a_function_is_has_to_be_seen():
    wrong = np.zeros(3, dtype=bool), np.ones(3)
    for function, value in (
        (lambda tp, fp, fn, tn: tp / 37, "0.081"),
        (lambda tp, fp, fn, tn: fp / 3 / (tp == 0), "nan"),
    ):
        with np.errstate(all="ignore"), pytest.raises(ValueError, match=rf"returned {value}.*perfect labelling.*kind="):
            TableFunction(function).score(*wrong)
    assert TableFunction(lambda tp, fp, fn, tn: tp / 37, kind="score").score(*wrong) == 0


def test_values_of_one_class_are_checked_as_before():
    truth = np.zeros(3, dtype=bool)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="returned nan"):
        TableFunction(lambda tp, fp, fn, tn: tp / (tp + fn)).score(truth, -np.ones(3))
    with pytest.raises(ValueError, match=r"expected values in \[0, 1\]"):
        TableFunction(lambda tp, fp, fn, tn: 7 * fp).score(truth, np.ones(3))


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
