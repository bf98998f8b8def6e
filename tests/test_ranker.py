"""`MeasureRanker` as scikit-learn's users meet it."""

from __future__ import annotations

import pickle
from itertools import permutations

import cvxpy as cp
import numpy as np
import pytest
import reference_rankings as ranked
from scipy import sparse
from sklearn import config_context, metrics
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_solvers import solve

from metrimax import MeasureRanker, MeasureRankerCV, MeasureSVC
from metrimax.measure import NDCG, AveragePrecision, Grouped, PartialAUC, PrecisionAtK, ROCArea, get_measure
from metrimax.protocols import Status
from metrimax.solvers import Bundle

NAMES = ("ndcg", "average_precision", "precision_at_k", "recall_at_k", "roc_area", "partial_auc", "prbep")


@pytest.fixture(scope="module")
def queries():
    """Forty queries with shifts of their own, which no ranking within a query sees."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 12)
    X = rng.normal(size=(480, 5))
    y = np.clip(np.round(X[:, :2].sum(axis=1) + 0.7 * rng.normal(size=480)), 0, 4)
    X[:, 2] += 5 * rng.normal(size=40)[groups]
    order = rng.permutation(480)
    return X[order], y[order], groups[order]


@parametrize_with_checks([MeasureRanker()])
def test_scikit_learns_own_checks(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        estimator = clone(estimator).set_params(hinge=0, tol=1e-10)
    check(estimator)


def test_sample_weight_is_repetition(queries):
    X, y, groups = queries
    times = np.random.default_rng(3).integers(0, 3, size=480)
    many = np.repeat(np.arange(480), times)
    for name in ("ndcg", "average_precision"):
        one = MeasureRanker(name, tol=1e-6).fit(X, y, groups, sample_weight=times)
        other = MeasureRanker(name, tol=1e-6).fit(X[many], y[many], groups[many])
        assert one.objective_ == pytest.approx(other.objective_, rel=1e-5)
        assert one.score(X, y, groups, times) == pytest.approx(one.score(X[many], y[many], groups[many]))


@pytest.mark.parametrize(
    ("share", "number"), [("precision@25%", "precision@3"), ("recall@budget=0.25", "recall@budget=3")]
)
def test_k_may_be_a_share_of_every_group(queries, share, number):
    """All groups have 12 rows."""
    X, y, groups = queries
    one, other = (MeasureRanker(name).fit(X, y, groups) for name in (share, number))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.score(X, y, groups) == other.score(X, y, groups)
    assert MeasureRanker("recall_at_budget").fit(X, y, groups).score(X, y, groups) > 0.15  # 10 % are one row


@pytest.mark.parametrize("name", NAMES)
def test_fit_has_a_certificate_and_beats_chance(name, queries):
    X, y, groups = queries
    ranker = MeasureRanker(name, k=3, C=1.0, hinge=0).fit(X, y, groups=groups)
    assert ranker.gap_ <= 1e-3
    assert ranker.status_ is Status.CONVERGED
    assert ranker.dual_bound_ <= ranker.objective_
    assert ranker.price_ >= 1
    assert ranker.coef_.shape == (5,)
    rng = np.random.default_rng(1)
    by_chance = Grouped(ranker._measure(), groups).score(y if name == "ndcg" else y > 0, rng.normal(size=480))
    assert ranker.score(X, y, groups) > by_chance + 0.1
    np.testing.assert_array_equal(ranker.predict(X), ranker.decision_function(X))
    # the certificate can be recomputed
    measure = Grouped(ranker._measure(), groups)
    oracle = measure.oracle(y if name == "ndcg" else y > 0)
    scores = X @ ranker.coef_
    cut = oracle(scores)
    risk = cut.loss + cut.slope @ scores
    weight = ranker.C * ranker.price_ * oracle.n
    assert ranker.objective_ == pytest.approx(ranker.coef_ @ ranker.coef_ / 2 + weight * risk, rel=1e-9)
    assert ranker.gap_ == pytest.approx((ranker.objective_ - ranker.dual_bound_) / weight)


def test_the_measure_trained_for_is_reached_best():
    """One feature tells what is relevant at all, the other what is most relevant."""
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(40), 12)
    y = np.tile([4.0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0], 40)
    X = np.column_stack([2.0 * (y == 1), 3.0 * (y == 4)]) + rng.normal(size=(480, 2))
    scores = {name: MeasureRanker(name, k=3, C=100.0).fit(X, y, groups).predict(X) for name in ("ndcg", "roc_area")}
    for measure, labels, best in ((NDCG(3), y, "ndcg"), (get_measure("roc_area"), y > 0, "roc_area")):
        reached = {name: Grouped(measure, groups).score(labels, s) for name, s in scores.items()}
        assert reached[best] > max(v for name, v in reached.items() if name != best) + 0.01


def test_without_groups_all_examples_are_one(queries):
    X, y, _ = queries
    one = MeasureRanker("roc_area", hinge=0, tol=1e-6).fit(X, y)
    svc = MeasureSVC("roc_area", C=1.0, hinge=0, tol=1e-6, fit_intercept=False).fit(X, y > 0)
    np.testing.assert_allclose(one.coef_, svc.coef_[0], atol=1e-3)
    assert one.objective_ == pytest.approx(svc.objective_, rel=1e-5)
    assert one.score(X, y) == pytest.approx(svc.score(X, y > 0), abs=1e-3)


def test_groups_that_cannot_be_sorted(queries):
    X, y, groups = queries
    mixed = np.array([f"query {g}" if g % 2 else int(g) for g in groups], dtype=object)
    ranker = MeasureRanker(tol=1e-6).fit(X, y, groups)
    other = MeasureRanker(tol=1e-6).fit(X, y, mixed)
    np.testing.assert_allclose(other.coef_, ranker.coef_, atol=1e-2)
    assert ranker.score(X, y, mixed) == pytest.approx(ranker.score(X, y, groups))


def test_parameters(queries):
    X, y, groups = queries
    assert MeasureRanker("ndcg", k=7)._measure() == NDCG(7)
    assert MeasureRanker("ndcg", k=None)._measure() == NDCG(None)  # all ranks
    assert MeasureRanker("precision_at_k", k=3)._measure() == PrecisionAtK(3, "rankings")
    assert MeasureRanker("precision_at_k", k=None)._measure() == PrecisionAtK("1p", "rankings")
    assert MeasureRanker("ndcg@5")._measure() == NDCG(5)
    assert MeasureRanker("map")._measure() == AveragePrecision()
    assert MeasureRanker("roc_area", k=3)._measure().name == "roc_area"
    assert MeasureRanker(PartialAUC(0, 0.5), k=3)._measure() == PartialAUC(0, 0.5)
    for bad, message in (
        (MeasureRanker("f1"), "expected a measure of rankings .* got fbeta: MeasureSVC"),
        (MeasureRanker("mrr"), "unknown measure 'mrr'"),
        (MeasureRanker(k=0), "expected k as a whole number"),
        (MeasureRanker(C=-1), "expected a finite C > 0"),
        (MeasureRanker(solver="none"), "unknown solver"),
    ):
        with pytest.raises(ValueError, match=message):
            bad.fit(X, y, groups)


def test_bad_input(queries):
    X, y, groups = queries
    for wrong, shape in ((groups[1:], r"\(479,\)"), (3, r"\(\)"), (np.column_stack([groups] * 2), r"\(480, 2\)")):
        with pytest.raises(ValueError, match=f"expected groups with 480 entries, .* each example, got shape {shape}"):
            MeasureRanker().fit(X, y, wrong)
    with pytest.raises(ValueError, match="expected a group with different labels"):
        MeasureRanker().fit(X, np.ones(480), groups)
    with pytest.raises(ValueError, match=r"got shape \(24,\): make them from sizes by np.repeat"):
        MeasureRanker().fit(X, y, np.full(24, 20))
    with pytest.raises(ValueError, match="expected grades from 0 to 60 in y, got values from -1 to"):
        MeasureRanker().fit(X, y - 1, groups)
    with pytest.raises(NotFittedError):
        MeasureRanker().predict(X)
    ranker = MeasureRanker().fit(X, y, groups)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        ranker.score(X, y[1:], groups)
    with pytest.raises(ValueError, match="expected groups with 480"):
        ranker.score(X, y, groups[1:])
    with pytest.warns(ConvergenceWarning, match="the gap is"):
        MeasureRanker(max_iter=2, tol=1e-9).fit(X, y, groups)


def test_a_fit_that_is_stopped_changes_nothing(queries):
    X, y, groups = queries
    ranker = MeasureRanker(C=0.1).fit(X, y, groups)
    before = dict(vars(ranker))

    def stop(record):
        raise KeyboardInterrupt

    ranker.callback = before["callback"] = stop
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(X[:, :3], y, groups)
    assert vars(ranker) == before


@pytest.mark.parametrize("form", [sparse.csr_matrix, np.asfortranarray, lambda X: X.astype(np.float32)])
def test_forms_of_x(form, queries):
    X, y, groups = queries
    one, other = (MeasureRanker(tol=1e-7).fit(Z, y, groups) for Z in (X, form(X)))
    np.testing.assert_allclose(other.decision_function(form(X)), one.decision_function(X), atol=0.02)


def test_clone_pickle_and_pipeline(queries):
    X, y, groups = queries
    ranker = MeasureRanker("average_precision", C=0.3)
    assert clone(ranker).get_params() == ranker.get_params()
    ranker.fit(X, y, groups)
    again = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))
    assert again.status_ is ranker.status_
    pipe = make_pipeline(StandardScaler(), MeasureRanker()).fit(X, y, measureranker__groups=groups)
    assert pipe.predict(X).shape == (480,)


def test_groups_are_routed(queries):
    X, y, groups = queries
    with config_context(enable_metadata_routing=True):
        ranker = MeasureRanker(k=3).set_fit_request(groups=True).set_score_request(groups=True)
        pipe = make_pipeline(StandardScaler(), ranker)
        scores = cross_val_score(pipe, X, y, cv=GroupKFold(4), params={"groups": groups})
        search = GridSearchCV(pipe, {"measureranker__C": [1e-4, 1.0]}, cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert len(scores) == 4
    assert scores.mean() > 0.6
    assert search.best_score_ > 0.6


def test_the_experiment_runs_where_there_is_no_data(tmp_path):
    experiment = pytest.importorskip("experiments.ranking", reason="the experiments are not part of the package")
    program = experiment.Program("ranking", lambda o: list(experiment.tasks(o))[:3], experiment.page)
    options = experiment.Options(data=tmp_path / "none", out=tmp_path, pages=tmp_path, quick=True)
    assert program.run(options) == 0
    assert "NDCG@10 trained" in (tmp_path / "ranking.md").read_text(encoding="utf-8")


# --- the optimum, by a conic solver over all rankings


@pytest.mark.parametrize("C", [0.05, 2.0])
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in ranked.RANKINGS])
def test_objective_is_that_of_an_independent_solver(case, C):
    rng = np.random.default_rng(1)
    y = np.array([2, 0, 1, 0, 0]) if case.graded else np.array([True, False, True, False, False])
    X = rng.normal(size=(5, 3)) + 0.7 * np.asarray(y, dtype=float)[:, None]
    fitted, weight = solve(X, y, case.measure, C, Bundle(), 1e-7, intercept=None)
    rows, losses = [], []
    for ranking in permutations(range(5)):
        losses.append(case.term(y, np.zeros(5), ranking))
        rows.append([case.term(y, unit, ranking) - losses[-1] for unit in np.eye(5)])
    w, xi = cp.Variable(3), cp.Variable(nonneg=True)
    constraints = [xi >= np.array(losses) + np.array(rows) @ X @ w]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + weight * xi), constraints)
    problem.solve(cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert fitted.status.ok
    assert fitted.bound <= problem.value + 1e-6 * weight
    assert problem.value - 1e-6 * weight <= fitted.objective <= problem.value + 2e-6 * weight


# --- values


def test_values_are_those_of_scikit_learn_ties_included():
    rng = np.random.default_rng(1)
    for _ in range(25):
        n = rng.integers(2, 20)
        y = rng.permutation(np.arange(n) < rng.integers(1, n))
        scores = np.round(rng.normal(size=n))
        weight = rng.uniform(0.1, 2, size=n)
        for w in (None, weight):
            assert AveragePrecision().score(y, scores, w) == pytest.approx(
                metrics.average_precision_score(y, scores, sample_weight=w), abs=1e-12
            )
            for beta in (0.05, 0.3, 0.999):
                v = PartialAUC(0, beta).score(y, scores, w)
                assert (1 + (v - beta / 2) / (1 - beta / 2)) / 2 == pytest.approx(
                    metrics.roc_auc_score(y, scores, sample_weight=w, max_fpr=beta), abs=1e-12
                )
            assert PartialAUC(0, 1).score(y, scores, w) == pytest.approx(ROCArea().score(y, scores, w))
        both = 0.3 * PartialAUC(0, 0.3).score(y, scores) + 0.7 * PartialAUC(0.3, 1).score(y, scores)
        assert both == pytest.approx(ROCArea().score(y, scores))
        grades = np.append(rng.integers(0, 5, size=n - 1), 1)
        for k in (1, 3, None):
            theirs = metrics.ndcg_score(grades[None], scores[None], k=k)
            assert NDCG(k, "linear").score(grades, scores) == pytest.approx(theirs, abs=1e-12)
            theirs = metrics.ndcg_score(2.0 ** grades[None] - 1, scores[None], k=k)
            assert NDCG(k).score(grades, scores) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("kind", [MeasureRanker, MeasureRankerCV])
def test_groups_by_the_names_of_other_libraries(kind):
    rng = np.random.default_rng(0)
    sizes = np.array([12, 8, 10, 15, 9, 11])
    groups = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(groups), 3))
    y = (X[:, 0] + rng.normal(size=len(groups)) > 0).astype(int)
    own = kind("ndcg").fit(X, y, groups=groups)
    for given in ({"qid": groups}, {"group": sizes}, {"group": sizes.tolist()}):
        np.testing.assert_array_equal(kind("ndcg").fit(X, y, **given).coef_, own.coef_)
    with pytest.raises(ValueError, match="expected the groups once, got groups and qid"):
        kind("ndcg").fit(X, y, groups=groups, qid=groups)
    for wrong in (sizes[:-1], sizes.astype(float), [-1, len(y) + 1], [sizes.tolist()]):
        with pytest.raises(ValueError, match="expected group as sizes of groups"):
            kind("ndcg").fit(X, y, group=wrong)
