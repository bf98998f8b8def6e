"""Training on few rows of a common class: what holds for some rows holds for all."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from metrimax import MeasureSVC, verify
from metrimax.designs import Dense, as_design
from metrimax.designs.gram_rows import GramRows
from metrimax.measure import get_measure
from metrimax.measure.base_loss import Losses
from metrimax.measure.shifted import Shifted
from metrimax.protocols import Status
from metrimax.solvers import Auto, Bundle
from metrimax.training import few_rows
from metrimax.training.lockstep import run

COMPILED = [case for case in reference.CASES if case.measure.oracle(np.arange(9) < 3).can.within]


def text(seed=0, n=3000, p=400, positives=15, strays=0.03):
    """Rows of few words; the positives share some, and so do a few of the others."""
    rng = np.random.default_rng(seed)
    X = sparse.random(n, p, density=0.02, format="lil", random_state=rng)
    y = np.zeros(n, dtype=bool)
    y[rng.choice(n, positives, replace=False)] = True
    for i in np.flatnonzero(y | (rng.random(n) < strays)):
        X[i, rng.integers(0, 12, 4 if y[i] else 1)] = 1.0
    X = sparse.csr_array(X)
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)))
    X = sparse.csr_array(sparse.diags_array(1 / np.maximum(lengths, 1e-9)) @ X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


# --- the risk of some rows


def test_measures_that_are_searched_by_the_kernels_offer_it():
    assert {"f1", "jaccard", "qmean", "mcc", "error"} <= {case.name for case in COMPILED}
    assert get_measure("prbep").oracle(np.arange(9) < 3).can.within is None
    assert get_measure("roc_area").oracle(np.arange(9) < 3).can.within is None


@pytest.mark.parametrize("case", COMPILED, ids=lambda case: case.name)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_risk_of_some_rows_is_that_of_the_labellings_that_flip_no_others(case, data):
    n = data.draw(st.integers(4, 8))
    y = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda v: 0 < sum(v) < len(v))))
    rows = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any)))
    values = st.integers(-20, 20).map(lambda k: k / 8)
    scores = np.array(data.draw(st.lists(values, min_size=n, max_size=n)))
    if not (y[rows].any() and (~y[rows]).any()):
        return
    out = np.setdiff1d(np.arange(n), rows)
    Z, losses = reference.labelling_losses(case, y)
    allowed = (Z[:, out] == y[out]).all(axis=1)
    signs = (Z[allowed].astype(float) - y)[:, rows]
    expected = max(0.0, float((losses[allowed] + signs @ scores[rows] / n).max(initial=0.0)))

    oracle = case.measure.oracle(y).can.within(rows)
    cut = oracle(scores[rows])
    assert cut.loss + cut.slope @ scores[rows] == pytest.approx(expected, abs=1e-12)
    value, _ = oracle.line(np.zeros(len(rows)), scores[rows])(1.0)
    assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weights", ["whole", "fractional", "copies"])
@pytest.mark.parametrize("losses", [Losses(), Losses(logistic=3.0), Losses(hinge=1.0, balanced=True)])
@pytest.mark.parametrize("measure", ["f1", "jaccard", "mcc", "gmean", "recall_at_precision", "balanced_error"])
def test_its_cuts_hold_for_all_rows(measure, losses, weights):
    rng = np.random.default_rng(4)
    n = 60
    y = np.arange(n) < 9
    weight = {"whole": None, "fractional": rng.random(n) + 0.5, "copies": rng.integers(0, 4, n).astype(float)}[weights]
    whole = losses.oracle(get_measure(measure).oracle(y, weight), y, weight)
    if whole.can.within is None:
        assert (measure, weights) not in {
            ("f1", "whole"),
            ("f1", "fractional"),
            ("mcc", "copies"),
            ("jaccard", "copies"),
        }
        return
    for _ in range(20):
        rows = np.sort(rng.choice(n, 25, replace=False))
        rows = np.union1d(rows, [0, 1, 50])
        few = whole.can.within(rows)
        assert few.n == whole.n
        assert few.price == whole.price
        scores = rng.normal(size=n) * rng.choice([0.1, 3.0, 30.0])
        for cut in (few(scores[rows]), few.mean_cut(scores[rows], 0.1)):
            for there in (scores, rng.normal(size=n), 20 * rng.normal(size=n)):
                risk = whole(there)
                assert cut.loss + cut.slope @ there[rows] <= risk.loss + risk.slope @ there + 1e-9


def test_the_risk_of_all_rows_is_the_risk():
    rng = np.random.default_rng(1)
    y = np.arange(50) < 7
    for weight in (None, rng.random(50) + 0.5):
        whole = Losses(logistic=1.0).oracle(get_measure("f1").oracle(y, weight), y, weight)
        few = whole.can.within(np.arange(50))
        for _ in range(10):
            scores = 5 * rng.normal(size=50)
            one, other = whole(scores), few(scores)
            assert one.loss + one.slope @ scores == pytest.approx(other.loss + other.slope @ scores, rel=1e-10)


def test_corrections_of_scores_do_not_offer_it():
    y = np.arange(50) < 7
    assert Shifted(get_measure("f1").oracle(y), np.ones(50)).can.within is None


# --- training


@pytest.fixture
def added(monkeypatch):
    """How many rows were in use after each addition."""
    sizes = []
    add = few_rows._FewRows._add

    def counted(self, count):
        add(self, count)
        sizes.append(len(self._rows))

    monkeypatch.setattr(few_rows._FewRows, "_add", counted)
    return sizes


BESIDE = Losses(logistic=3.0)


def solved(X, y, measure="f1", losses=BESIDE, C=4.0, solver=None, max_iter=10_000, tol=1e-3, weight=None, **options):
    design = as_design(X, intercept_scaling=10.0)
    oracle = losses.oracle(get_measure(measure).oracle(y, weight), y, weight)
    risk_weight = C * oracle.price * oracle.n
    if solver is None:
        steps = few_rows.solve(Auto(max_iter), oracle, design, risk_weight, tol=tol, **options)
    else:
        steps = solver.steps(oracle, design, risk_weight, tol=tol, **options)
    return run(design, [steps])[0], oracle, design


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("losses", [Losses(), Losses(logistic=3.0), Losses(hinge=1.0)])
@pytest.mark.parametrize("measure", ["f1", "jaccard", "mcc", "gmean"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_optimum_is_that_of_all_rows(seed, measure, losses, weights, added):
    X, y = text(seed)
    weight = np.random.default_rng(seed).random(len(y)) + 0.5 if weights else None
    found, oracle, design = solved(X, y, measure, losses, weight=weight)
    best, _, _ = solved(X, y, measure, losses, solver=Bundle(), tol=1e-5, weight=weight)
    scale = 4.0 * oracle.price * oracle.n
    assert added or (measure, weights) == ("mcc", True)  # which is not searched by a kernel
    assert max(added, default=0) < len(y) / 2
    assert found.status is Status.CONVERGED
    assert found.bound <= best.objective * (1 + 1e-9)
    assert best.bound <= found.objective * (1 + 1e-9)
    assert found.objective - best.objective <= 1e-3 * scale
    scores = design.matvec(found.w)
    cut = oracle(scores)
    assert found.objective == pytest.approx(found.w @ found.w / 2 + scale * (cut.loss + cut.slope @ scores), rel=1e-9)
    assert found.gap == pytest.approx((found.objective - found.bound) / scale, abs=1e-12)


def test_rows_join_and_cuts_are_taken_over(added, monkeypatch):
    monkeypatch.setattr(few_rows, "FEW", 60)
    X, y = text(positives=25, strays=0.2)
    found, *_ = solved(X, y)
    assert len(added) > 1
    assert added == sorted(added)
    assert found.n_passes < 0.7 * solved(X, y, solver=Bundle())[0].n_passes


def test_a_round_in_which_no_row_joins_is_followed_by_a_more_accurate_one(added):
    """Rows left out matter a little: the same rows, as accurate as before, would change nothing until max_iter."""
    X, y = text()
    found, *_ = solved(X, y, losses=Losses(logistic=1.0), C=0.1)
    alone, *_ = solved(X, y, losses=Losses(logistic=1.0), C=0.1, solver=Bundle())
    assert added
    assert found.status is Status.CONVERGED
    assert found.n_iter <= 3 * alone.n_iter


@pytest.mark.parametrize("order", ["wide", "tall"])
def test_vectors_kept_by_weights(order, added):
    """With more rows than features cuts are kept by weights, of few rows by coefficients."""
    X, y = text(n=6000 if order == "tall" else 1700, p=500 if order == "tall" else 9000, positives=12)
    found, oracle, _ = solved(X, y, tol=1e-4)
    best, *_ = solved(X, y, solver=Bundle(), tol=1e-6)
    assert added
    assert found.status is Status.CONVERGED
    assert found.bound <= best.objective * (1 + 1e-9)
    assert found.objective <= best.objective + 1e-4 * 4 * oracle.price * oracle.n


@pytest.mark.parametrize(("n", "p"), [(3000, 400), (1700, 2500)])
def test_all_rows_where_half_of_them_matter(n, p, added, monkeypatch):
    """The positives are like all others, so that many rows flip: the run goes on with all rows and forgets nothing."""
    rng = np.random.default_rng(0)
    X, _ = text(n=n, p=p)
    y = np.zeros(n, dtype=bool)
    y[rng.choice(n, 15, replace=False)] = True
    monkeypatch.setattr(few_rows, "LONG", 5)
    starts, solve = [], Auto.solve
    monkeypatch.setattr(Auto, "solve", lambda self, task: starts.append(task.start) or solve(self, task))
    found, oracle, _ = solved(X, y, C=0.3)
    [start] = starts
    assert start.held[1] == start.history[-1].objective
    best, *_ = solved(X, y, solver=Bundle(), tol=1e-5, C=0.3)
    assert added
    assert found.cuts is not None  # of the solver
    assert [record.iteration for record in found.history] == list(range(1, found.n_iter + 1))
    assert found.bound <= best.objective * (1 + 1e-9)
    assert best.bound <= found.objective * (1 + 1e-9)
    assert found.objective - best.objective <= 1e-3 * 0.3 * oracle.price * oracle.n


def test_the_history_is_true_of_all_rows():
    X, y = text(positives=25, strays=0.2)
    found, oracle, _ = solved(X, y)
    best, *_ = solved(X, y, solver=Bundle(), tol=1e-6)
    scale = 4.0 * oracle.price * oracle.n
    objectives, bounds = (
        np.array([getattr(record, name) for record in found.history]) for name in ("objective", "bound")
    )
    assert [record.iteration for record in found.history] == list(range(1, found.n_iter + 1))
    assert (np.diff(objectives) <= 0).all()
    assert (np.diff(bounds) >= 0).all()
    assert (np.diff([record.n_passes for record in found.history]) >= 0).all()
    assert (np.diff([record.seconds for record in found.history]) >= 0).all()
    assert (bounds <= best.objective / scale + 1e-9).all()
    assert (objectives >= best.bound / scale - 1e-9).all()
    assert found.history[-1].gap == pytest.approx(found.gap)


def test_a_callback_sees_every_iteration_and_may_stop(added, monkeypatch):
    monkeypatch.setattr(few_rows, "FEW", 60)
    X, y = text(positives=25, strays=0.2)
    seen = []
    found, *_ = solved(X, y, tol=1e-5, callback=seen.append)
    assert len(added) > 1
    assert seen == found.history[:-1]  # as with all rows: a run that is over asks nobody
    seen = []
    found, *_ = solved(X, y, callback=lambda record: seen.append(record) or len(seen) == 7)
    assert found.status is Status.CALLBACK
    assert found.n_iter == len(seen) == 7
    assert [record.iteration for record in seen] == list(range(1, 8))
    assert found.objective >= found.bound


def test_max_iter_counts_all_rounds():
    X, y = text(positives=25, strays=0.2)
    with pytest.warns(UserWarning, match="max_iter"):
        clf = MeasureSVC("f1", max_iter=9).fit(X, y)
    assert clf.n_iter_ == 9
    assert clf.status_ is Status.MAX_ITER


def test_max_iter_counts_the_iterations_on_few_rows_where_all_rows_follow(added, monkeypatch):
    X, y = text(positives=25, strays=0.2)
    monkeypatch.setattr(few_rows, "LONG", 5)
    found, *_ = solved(X, y, max_iter=12, tol=1e-6)
    assert added
    assert found.n_iter == len(found.history) == 12
    assert (np.diff([record.objective for record in found.history]) <= 0).all()
    assert found.status is Status.MAX_ITER


def test_a_run_that_ends_after_a_round_of_few_rows_has_not_converged(monkeypatch):
    """A round may reach its goal with the last iteration: that says nothing about the other rows."""
    X, y = text(positives=25, strays=0.2)
    monkeypatch.setattr(few_rows, "FEW", 60)
    statuses = []
    for most in range(1, 12):
        found, oracle, design = solved(X, y, max_iter=most, tol=1e-4)
        statuses.append(found.status)
        assert found.status.ok == (found.gap <= 1e-4)
        cut = oracle(scores := design.matvec(found.w))  # of the best point, which need not be the last
        objective = found.w @ found.w / 2 + 4 * oracle.price * oracle.n * (cut.loss + cut.slope @ scores)
        assert found.objective == pytest.approx(objective, rel=1e-9)
    assert Status.MAX_ITER in statuses


@pytest.mark.parametrize(("seed", "measure", "logistic"), [(0, "f1", 3.0), (5, "jaccard", 1.0), (9, "jaccard", 30.0)])
def test_no_round_begins_where_the_last_one_ended(seed, measure, logistic, added):
    """No row left out flips, but many cost a little: the tolerance cannot be met without them, however often tried."""
    X, y = text(seed, positives=[8, 15, 25, 40][seed % 4], strays=[0.03, 0.2, 0.5][seed % 3])
    found, *_ = solved(X, y, measure, Losses(logistic=logistic), C=0.1)
    assert added
    assert found.status is Status.CONVERGED
    assert found.n_iter < 200


def test_rows_of_weight_0_are_not_among_the_few(added, monkeypatch):
    """They would take the places of rows that matter."""
    monkeypatch.setattr(few_rows, "FEW", 60)
    X, y = text(positives=20, n=4000)
    weight = np.where(y | (np.arange(4000) % 4 == 0), 1.0, 0.0)
    used = weight > 0
    found, oracle, _ = solved(X, y, weight=weight)
    best, *_ = solved(X[used], y[used], solver=Bundle(), tol=1e-5)
    assert added[0] == 80
    assert found.status is Status.CONVERGED
    assert best.bound <= found.objective * (1 + 1e-9)
    assert found.objective - best.objective <= 1e-3 * 4 * oracle.price * oracle.n
    inside = []
    monkeypatch.setattr(few_rows._FewRows, "_join", lambda self, *_: inside.append(self._rows))
    solved(X, y, weight=weight, tol=1e-6)
    assert used[inside[0]].all()


def test_max_iter_counts_the_iterations_on_all_rows_too(monkeypatch):
    """Half of the rows matter, so that a few iterations on few rows are followed by iterations on all of them."""
    monkeypatch.setattr(few_rows, "LONG", 5)
    X, _ = text()
    y = np.zeros(len(X.indptr) - 1, dtype=bool)
    y[np.random.default_rng(0).choice(len(y), 15, replace=False)] = True
    found, *_ = solved(X, y, C=0.3, max_iter=8)
    assert found.n_iter == 8
    assert found.status is Status.MAX_ITER


@pytest.mark.parametrize(("seed", "tol"), [(0, 5e-4), (0, 2e-4), (1, 5e-4)])
def test_rows_that_matter_a_little_do_not_keep_a_run_from_its_end(seed, tol, added):
    """The logistic losses of the rows left out are a part of the gap, though none of them flips."""
    X, y = text(seed, **({} if seed == 0 else {"p": 300, "positives": 25}))
    losses = Losses("even", logistic=1.0)
    found, *_ = solved(X, y, losses=losses, C=10.0, tol=tol)
    best, *_ = solved(X, y, losses=losses, C=10.0, tol=tol / 100, solver=Bundle())
    assert max(added) < len(y) / 2
    assert found.n_iter < 100
    assert found.status is Status.CONVERGED
    assert found.bound <= best.objective * (1 + 1e-9)
    assert best.bound <= found.objective * (1 + 1e-9)


def test_a_run_that_is_cut_short_does_not_say_that_it_converged():
    """Though it may have come close enough to the solution on few rows."""
    X, y = text(positives=25, strays=0.2)
    whole, *_ = solved(X, y, losses=Losses())
    for most in range(1, whole.n_iter, 2):
        found, *_ = solved(X, y, losses=Losses(), max_iter=most)
        assert found.n_iter == most
        assert found.status is (Status.CONVERGED if found.gap <= 1e-3 else Status.MAX_ITER)


def test_who_is_trained_on_few_rows():
    def offered(X, y, measure="f1", losses=BESIDE):
        design = as_design(X)
        return few_rows._of_classes(losses.oracle(get_measure(measure).oracle(y, None), y, None), design) is not None

    X, y = text()
    assert offered(X, y)
    assert offered(X, ~y)
    assert offered(X.toarray(), y)
    assert offered(X, y, losses=Losses())
    assert not offered(X[:, :100], y)  # few features
    assert not offered(X, np.arange(3000) < 300)  # no class is rare
    assert not offered(X[:1500], np.arange(1500) < 5)  # few rows at all
    assert not offered(X, y, "error", Losses())  # a sum of hinges
    assert not offered(X, y, "roc_area")
    assert not offered(X, y, losses=Losses(risk=0, logistic=1.0))


def test_the_rare_class_may_be_the_negative_one(added):
    X, y = text()
    found, oracle, _ = solved(X, ~y, "gmean")
    best, *_ = solved(X, ~y, "gmean", solver=Bundle(), tol=1e-5)
    assert added
    assert found.objective - best.objective <= 1e-3 * 4 * oracle.price * oracle.n
    assert found.bound <= best.objective * (1 + 1e-9)


def test_a_fit_verifies(added):
    X, y = text(positives=20)
    clf = MeasureSVC("f1").fit(X, y)
    assert added
    assert verify(clf, X, y)
    many = MeasureSVC("f1").fit(X, np.column_stack([y, np.roll(y, 5), np.arange(3000) < 900]).astype(int))
    assert_allclose(many.objective_[0], clf.objective_, rtol=2e-3)


# --- some rows of a matrix


@pytest.mark.parametrize("kind", ["csr", "csr64", "C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_some_rows_of_a_matrix(kind, dtype):
    rng = np.random.default_rng(0)
    X = sparse.random(40, 30, density=0.3, format="csr", dtype=dtype, random_state=rng)
    index = np.int64 if kind == "csr64" else np.int32
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    stored = X if kind.startswith("csr") else np.asarray(X.toarray(), order=kind)
    for rows in (np.array([0, 3, 4, 39]), np.arange(2, 36)):
        part, features = as_design(stored, intercept_scaling=2.5).rows.some(rows)
        assert len(np.unique(features)) == len(features) > min(len(rows), 30)
        w, slope = rng.normal(size=31), rng.normal(size=len(rows))
        dense, pulled = reference.with_intercept(X.toarray(), 2.5)[rows], np.zeros(31)
        assert_allclose(part.products("scores", [w[features]])[0], dense @ w, rtol=1e-6)
        pulled[features] = part.products("pull", [slope])[0]
        assert_allclose(pulled, dense.T @ slope, rtol=1e-6, atol=1e-12)
        assert part.in_order


def test_features_that_some_rows_have_not_are_left_out_and_rows_must_exist():
    X = sparse.random(50, 1000, density=0.01, format="csr", random_state=np.random.default_rng(1))
    rows = as_design(X).rows
    _, features = rows.some(np.arange(20))
    assert len(features) == max(20, np.count_nonzero(X[:20].sum(axis=0))) < 1000
    _, features = rows.some(np.array([7]))
    assert set(X[[7]].indices) <= set(features.tolist())
    _, features = rows.some(np.array([], dtype=np.intp))
    assert len(features) == 0
    alike = as_design(sparse.csr_matrix(np.eye(1, 100, 40).repeat(50, axis=0))).rows  # of one feature, and still wide
    part, features = alike.some(np.arange(30))
    assert len(set(features.tolist())) == len(features) == 30
    assert part.products("scores", [np.where(features == 40, 2.0, 0.0)])[0].tolist() == [2.0] * 30
    for wrong in (-1, 50):
        with pytest.raises(ValueError, match="expected rows of the matrix"):
            rows.some(np.array([wrong]))


def test_a_kernel_matrix_has_no_rows():
    assert GramRows(Dense(np.eye(5)), lambda v: v).some(np.array([0, 1])) is None
