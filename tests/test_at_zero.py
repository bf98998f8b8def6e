"""The kink of a risk at w = 0: its planes against all labellings; the way out, and the proof that there is none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference as ref
from hypothesis import given
from hypothesis import strategies as st
from oracle_samples import CASES, quick, samples
from scipy import sparse
from test_head_start import Watched, ask

from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.protocols import Cuts, Point, Status, made
from metrimax.solvers import Auto, Bundle, Hybrid
from metrimax.solvers.starts import _with_total, leave_zero
from metrimax.training.path import along

KINKED = ["f1", "fbeta", "jaccard", "gmean", "min_tpr_tnr", "prbep", "precision_at_k", "recall_at_k"]
SMOOTH = ["error", "cost", "balanced_error", "mcc", "kappa", "qmean", "ae", "rae", "kld", "nkld"]


def overlapping(n=4000, p=60, noise=1.5, rate=0.03, seed=0):
    """Classes of which the smaller one is hidden in the larger: for F1 nothing is better than w = 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    scores = X @ rng.standard_normal(p) / np.sqrt(p) + noise * rng.standard_normal(n)
    return X, scores > np.quantile(scores, 1 - rate)


def parts(X, y, measure="f1", C=1.0):
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure(measure).oracle(y)
    return design, oracle, C * oracle.price * oracle.n


def plane(kink, n, shares):
    """The cut that a kink promises for these shares of the free examples; the total, if it has one, is kept to."""
    weight = kink.weight.copy()
    free = weight[kink.free]
    flips = shares * free
    if kink.total is not None and flips.sum() >= kink.total:
        flips *= kink.total / flips.sum()
    elif kink.total is not None:
        flips += (free - flips) * (kink.total - flips.sum()) / (free - flips).sum()
    weight[kink.free] = flips
    return kink.loss, -kink.sign * weight / n


@pytest.mark.parametrize("case", CASES)
@given(sample=samples(), seed=st.integers(0, 2**32 - 1))
@quick
def test_every_mean_of_labellings_at_the_kink_is_a_plane_under_the_risk(case, sample, seed):
    y, scores, other = sample
    if not ref.fits(case, int(y.sum()), int((~y).sum())):
        return
    oracle = case.measure.oracle(y)
    kink = made(oracle.can.kink)
    if kink is None:
        return
    assert kink.loss == pytest.approx(ref.risk_by_labellings(case, y, np.zeros(len(y))), abs=1e-12)
    rng = np.random.default_rng(seed)
    for shares in (rng.random(len(kink.free)), np.zeros(len(kink.free)), np.ones(len(kink.free))):
        loss, slope = plane(kink, oracle.n, shares)
        for s in (scores, other):
            assert loss + slope @ s <= ref.risk_by_labellings(case, y, s) + 1e-10 * (1 + np.abs(s).max())


@pytest.mark.parametrize("measure", KINKED)
@pytest.mark.parametrize("seed", range(5))
def test_with_weights_the_planes_are_under_the_risk_too(measure, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(9) < 4
    for weight in (rng.integers(0, 4, 9) + (rng.random(9) < 0.5), np.full(9, 0.7), rng.random(9) + 0.1):
        weight = weight.astype(float)
        weight[[0, -1, -2]] = weight.max(), 2 * weight.max(), 3 * weight.max()  # of both classes, and enough for any k
        oracle = get_measure(measure).oracle(y, weight)
        kink = oracle.kink()
        if kink is None:
            continue
        for _ in range(20):
            s = rng.standard_normal(9) * 10.0 ** rng.integers(-2, 2)
            loss, slope = plane(kink, oracle.n, rng.random(len(kink.free)))
            cut = oracle(s)
            assert loss + slope @ s <= cut.loss + cut.slope @ s + 1e-12 * (1 + np.abs(s).max())


def test_who_has_a_kink():
    y = np.arange(40) < 10
    names = {
        name for name in KINKED + SMOOTH if (oracle := get_measure(name).oracle(y)).kink() is not None and oracle.n
    }
    assert names == set(KINKED)
    assert not hasattr(get_measure("roc_area").oracle(y), "kink")


def test_a_class_that_flips_by_parts_of_examples_is_not_free():
    y, weight = np.arange(9) < 4, np.linspace(0.5, 1.7, 9)
    assert get_measure("f1").oracle(y, weight).kink() is None
    weight[4:] = 1.3  # the negatives are alike
    assert get_measure("f1").oracle(y, weight).kink() is not None


@pytest.mark.parametrize("measure", ["f1", "jaccard", "gmean", "min_tpr_tnr"])
@pytest.mark.parametrize("to_X", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
def test_that_nothing_is_better_is_proven_in_a_few_passes(measure, to_X):
    X, y = overlapping(noise=0.9)
    design, oracle, weight = parts(to_X(X), y, measure, C=100.0)
    solution = ask(design, Auto().steps(oracle, design, weight, tol=1e-3))
    assert solution.status is Status.TRIVIAL
    assert not solution.w.any()
    assert solution.n_iter < 20
    assert solution.n_passes < 60
    plain = ask(design, Bundle(60).steps(oracle, design, weight, tol=1e-3))
    assert plain.status is Status.MAX_ITER  # which is what help is for
    assert plain.bound < solution.bound <= plain.objective == solution.objective


def test_prbep_is_proven_too_with_as_many_flips_as_are_called():
    X, y = overlapping(noise=0.7, rate=0.05)
    design, oracle, weight = parts(X, y, "prbep", C=100.0)
    cuts = ask(design, leave_zero(oracle, oracle.kink(), design, weight, 1e-3))
    assert cuts.best is None
    assert cuts.gram[0, 0] * weight / 2 < 1e-3
    assert abs(cuts.rows[0][0, -1]) < 1e-12  # of the constant feature: as many negatives flip as positives


def test_all_that_can_flip_may_add_up_to_less_than_the_total_by_rounding():
    upper = np.full(7, 0.1)
    total = float(np.nextafter(upper.sum(), 1.0))
    np.testing.assert_array_equal(_with_total(upper.copy(), upper, total), upper)


@pytest.mark.parametrize("shape", [(300, 60), (60, 90)], ids=["by weights", "by slopes"])
@pytest.mark.parametrize("measure", ["f1", "gmean", "prbep"])
def test_the_way_out_is_a_cut_and_a_better_point(shape, measure):
    X, y = overlapping(*shape, noise=0.3, rate=0.2)
    design, oracle, weight = parts(X, y, measure)
    watched = Watched(design)
    cuts = ask(watched, leave_zero(oracle, oracle.kink(), watched, weight, 1e-3))
    rep, scores, square = cuts.best[0]
    w = rep if shape[0] > shape[1] else design.rmatvec(rep)
    assert np.allclose(design.matvec(w), scores)
    assert np.isclose(w @ w, square)
    cut = oracle(scores)
    assert cuts.best[1] == pytest.approx(cut.loss + cut.slope @ scores)
    assert square / (2 * weight) + cuts.best[1] < oracle(np.zeros(len(y))).loss
    rng = np.random.default_rng(0)
    for scale in (0.01, 1.0, 100.0):
        some = scale * rng.standard_normal(design.shape[1])
        s = design.matvec(some)
        below = cuts.rows[0][0] @ (some if shape[0] > shape[1] else s)
        other = oracle(s)
        assert cuts.losses[0] + below <= other.loss + other.slope @ s + 1e-9 * (1 + np.abs(s).max())
    if shape[0] <= shape[1]:
        assert np.allclose(design.matvec(design.rmatvec(cuts.rows[0][0])), cuts.rows[1][0])
    assert cuts.n_passes == pytest.approx(watched.read + watched.epochs)
    assert cuts.gram[0, 0] * weight**2 == pytest.approx(
        float(np.sum((cuts.rows[0] if shape[0] > shape[1] else [design.rmatvec(cuts.rows[0][0])])[0] ** 2)) * weight**2
    )


def lingering():
    """A problem with a minimum that the bundle method does not see from w = 0 for a while."""
    X, y = overlapping(20_000, 40, noise=0.7, rate=0.05, seed=3)
    return parts(X, y, "f1")


def test_a_run_that_was_helped_out_ends_at_the_same_optimum_and_counts_on():
    design, oracle, weight = lingering()
    records = []
    watched = Watched(design)
    solution = ask(watched, Auto().steps(oracle, watched, weight, tol=1e-3, callback=records.append))
    assert solution.status is Status.CONVERGED
    assert solution.w.any()
    plain = ask(design, Bundle().steps(oracle, design, weight, tol=1e-4))
    assert solution.bound <= plain.objective * (1 + 1e-12)
    assert plain.bound <= solution.objective * (1 + 1e-12)
    assert solution.n_passes < 0.7 * ask(design, Bundle().steps(oracle, design, weight, tol=1e-3)).n_passes
    assert [record.iteration for record in records] == list(range(1, solution.n_iter))
    assert records == solution.history[:-1]  # whoever watches is not asked whether to go on at the end
    assert solution.n_passes == solution.history[-1].n_passes == pytest.approx(watched.read + watched.epochs)
    assert all(a.objective >= b.objective and a.bound <= b.bound for a, b in itertools.pairwise(records))
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(records))


@pytest.mark.parametrize("most", [3, 8, 9, 12])  # before the way out is looked for, and after
def test_whoever_stops_the_run_stops_it_at_the_kink_too(most):
    design, oracle, weight = lingering()
    solution = ask(
        design, Auto().steps(oracle, design, weight, tol=1e-3, callback=lambda record: record.iteration == most)
    )
    assert solution.status is Status.CALLBACK
    assert solution.n_iter == most


@pytest.mark.parametrize("most", [3, 8, 9, 11])
def test_no_more_iterations_than_may_be(most):
    design, oracle, weight = lingering()
    solution = ask(design, Auto(most).steps(oracle, design, weight, tol=1e-3))
    assert solution.status is Status.MAX_ITER
    assert solution.n_iter == most


@pytest.mark.parametrize("measure", ["f1", "prbep"])
def test_where_few_epochs_do_not_tell_the_run_goes_on_beside_zero(measure):
    """The minimum is hardly better than w = 0."""
    X, y = overlapping(noise=0.6, rate=0.05)
    design, oracle, weight = parts(X, y, measure, C=100.0)
    cuts = ask(design, leave_zero(oracle, oracle.kink(), design, weight, 1e-3))
    assert cuts.n_passes < 50
    point, risk = cuts.best
    assert 1 < point.square / (2 * weight) + risk <= 2  # worse than w = 0
    records = []
    solution = ask(design, Auto().steps(oracle, design, weight, tol=1e-3, callback=records.append))
    assert solution.status is Status.CONVERGED
    assert 0.998 < solution.objective / weight < 1
    assert max(record.objective for record in records) == 1
    plain = ask(design, Bundle().steps(oracle, design, weight, tol=1e-3))
    assert solution.bound <= plain.objective
    assert plain.bound <= solution.objective
    assert solution.n_passes < 0.5 * plain.n_passes


@pytest.mark.parametrize("shape", [(300, 60), (60, 90)], ids=["by weights", "by slopes"])
def test_a_run_that_began_beside_zero_goes_back_where_that_is_better(shape):
    rng = np.random.default_rng(0)
    X = np.zeros(shape)
    X[:, :2] = rng.standard_normal((shape[0], 2))  # which say nothing of the classes
    design, oracle, weight = parts(X, np.arange(shape[0]) % 10 == 0)
    slope = 1e-4 * rng.standard_normal(shape[0])
    rep = design.rmatvec(slope) if shape[0] > shape[1] else slope
    w = design.rmatvec(slope)
    scores = design.matvec(w)
    cut = oracle(scores)
    start = Cuts(
        np.empty(0), np.empty((0, 0)), (np.empty((0, min(design.shape))),) * (1 if shape[0] > shape[1] else 2),
        best=(Point(rep, scores, float(w @ w)), cut.loss + float(cut.slope @ scores)),
    )  # fmt: skip
    solution = ask(design, Hybrid().steps(oracle, design, weight, tol=1e-3, start=start))
    assert solution.status is Status.TRIVIAL
    assert not solution.w.any()
    assert solution.objective == weight * oracle(np.zeros(shape[0])).loss
    assert solution.gap == pytest.approx((solution.objective - solution.bound) / weight)
    assert solution.cuts.best[0].square == 0


def test_without_a_kink_to_look_into_the_run_goes_on_as_it_was():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 3)), np.arange(300) % 10 == 0  # features that say nothing: w = 0 to the end
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure("f1").oracle(y, rng.random(300))
    weight = oracle.price * oracle.n
    plain = ask(design, Bundle().steps(oracle, design, weight, tol=1e-6))
    helped = ask(design, Bundle(patience=1).steps(oracle, design, weight, tol=1e-6))
    assert plain.n_iter > 1
    assert helped.history[0].objective == oracle(np.zeros(300)).loss
    assert (helped.status, helped.n_iter, helped.n_passes) == (plain.status, plain.n_iter, plain.n_passes)


def test_a_path_along_C_and_labels_side_by_side_are_helped_out():
    X, y = overlapping()
    design, oracle, _ = parts(X, y)
    weights = np.array([0.1, 1.0, 10.0, 100.0]) * oracle.price * oracle.n
    solutions = ask(design, along(Auto(), oracle, design, weights, tol=1e-3))
    assert [solution.status for solution in solutions] == [Status.TRIVIAL] * 4
    assert solutions[-1].n_passes < 60
    both = ask(design, Auto(labels=2).steps(oracle, design, weights[-1], tol=1e-3))
    assert both.status is Status.TRIVIAL
    assert both.n_passes < 60
