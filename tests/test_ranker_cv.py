"""`MeasureRankerCV` and the base losses of `MeasureRanker`."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, cross_validate
from sklearn.utils.estimator_checks import parametrize_with_checks

from metrimax import MeasureRanker, MeasureRankerCV, open_dataset, verify
from metrimax.io.checkpoints import Checkpoint
from metrimax.measure import NDCG, Grouped
from metrimax.training.folds import spread

LOSSES = ("risk", "hinge", "logistic", "balanced")


def queries(n_groups=24, size=12):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(n_groups), size)
    X = rng.normal(size=(n_groups * size, 4))
    y = np.clip(np.round(X[:, :2].sum(axis=1) + rng.normal(size=len(X)) - 0.5), 0, 3)
    order = rng.permutation(len(X))
    return X[order], y[order], groups[order]


X, y, groups = queries()
CS = [0.01, 1.0]


@pytest.mark.parametrize("losses", [{"logistic": 2.0, "risk": 0.5}, {"hinge": 1.0, "risk": 0, "balanced": True}])
def test_base_losses_against_an_independent_solver(losses):
    """ROC area within groups as a sum of hinges of pairs, beside losses of single examples with an intercept."""
    small = groups < 6
    Z, t, q = X[small], y[small] > 0, groups[small]
    ranker = MeasureRanker("roc_area", C=0.3, tol=1e-7, **losses).fit(Z, t, q)
    w, b = cp.Variable(4), cp.Variable()
    risks, kappa = [], []
    for group in np.unique(q):
        own, pos = q == group, t & (q == group)
        neg = own & ~t
        if pos.any() and neg.any():
            pairs = (Z[pos][:, None] - Z[neg][None]).reshape(-1, 4)
            risks.append(cp.sum(cp.pos(1 - pairs @ w)) / len(pairs))
            kappa.append(own.sum())
    n = sum(kappa)  # the price of ROC area is 1
    sign = np.where(t, 1.0, -1.0)
    weight = np.where(t, len(t) / (2 * t.sum()), len(t) / (2 * (~t).sum())) if losses.get("balanced") else 1.0
    margins = cp.multiply(sign, Z @ w + b)
    base = losses.get("logistic", 0) * cp.logistic(-margins) + losses.get("hinge", 0) * cp.pos(1 - margins)
    loss = losses["risk"] * n * sum(risks) / len(risks) + cp.sum(cp.multiply(np.broadcast_to(weight, len(t)), base))
    norm = (cp.sum_squares(w) + cp.square(b / 10)) / 2
    best = cp.Problem(cp.Minimize(norm + 0.3 * loss)).solve(solver=cp.CLARABEL)
    assert ranker.objective_ == pytest.approx(best, rel=1e-5)
    assert ranker.dual_bound_ <= best * (1 + 1e-6)
    np.testing.assert_allclose(ranker.coef_, w.value, atol=2e-3)


def test_default_losses_of_a_ranking():
    assert MeasureRanker().fit(X, y, groups).trained_with_ | {"C": None} == {
        "C": None,
        **dict(zip(LOSSES, ("even", 0.0, 1.0, False), strict=True)),
        "threshold": "trained",
        "intercept_scaling": 10.0,
    }
    alone = MeasureRanker(hinge=0).fit(X, y, groups)
    assert [alone.trained_with_[name] for name in LOSSES] == [1.0, 0.0, 0.0, False]
    assert alone.trained_intercept_ == 0
    assert MeasureRanker("roc_area", solver="lbfgs").fit(X, y, groups).trained_with_["logistic"] == 1
    with pytest.raises(ValueError, match="expected a loss to train"):
        MeasureRanker(risk=0, hinge=0).fit(X, y, groups)
    with pytest.raises(ValueError, match="balanced"):
        MeasureRanker(balanced="yes").fit(X, y, groups)


@pytest.mark.parametrize("options", [{}, {"logistic": 1.0, "risk": 0, "balanced": True}, {"certificate": True}])
def test_rankings_with_base_losses_are_verified(options):
    ranker = MeasureRanker("average_precision", **options).fit(X, y, groups)
    assert verify(ranker, X, y, groups=groups)
    ranker.trained_intercept_ += 1
    assert not verify(ranker, X, y, groups=groups)


def test_the_choice_is_that_of_the_folds():
    model = MeasureRankerCV("ndcg", k=5, Cs=CS, cv=3).fit(X, y, groups)
    table = model.cv_results_
    assert len(table["param_C"]) == 6
    folds = spread(y[:, None] > 0, 3, 0, groups)
    for row in range(6):
        losses = {name: table[f"param_{name}"][row] for name in LOSSES}
        losses["balanced"] = bool(losses["balanced"])
        scores = np.empty(len(y))
        for train, test in folds:
            one = MeasureRanker("ndcg", k=5, C=table["param_C"][row], **losses).fit(X[train], y[train], groups[train])
            scores[test] = one.predict(X[test])
        pooled = Grouped(NDCG(5), groups).score(y, scores)
        assert table["pooled_test_score"][row] == pytest.approx(pooled, abs=0.01)
    best = int(np.argmax(table["pooled_test_score"]))
    assert model.best_score_ == table["pooled_test_score"].max()
    assert model.C_ == table["param_C"][best] == model.trained_with_["C"]
    same = model.plain(C=model.C_, **{name: model.trained_with_[name] for name in LOSSES}).fit(X, y, groups)
    np.testing.assert_allclose(same.coef_, model.coef_, atol=1e-9)
    assert verify(model, X, y, groups=groups)


def test_scoring_and_grid():
    model = MeasureRankerCV("ndcg", Cs=[1.0], cv=3, scoring="average_precision").fit(X, y, groups)
    plain = MeasureRanker("average_precision")
    plain.__dict__.update(coef_=model.coef_, n_features_in_=4)
    assert model.score(X, y, groups) == pytest.approx(plain.score(X, y, groups))
    assert len(MeasureRankerCV(cv=2).fit(X, y, groups).Cs_) == 5
    wide = MeasureRankerCV("ndcg", Cs=[1e-6, 4e-6], cv=2, hinge=0, extend=True).fit(X, y, groups)
    assert len(wide.Cs_) > 2
    assert set(wide.cv_results_["param_logistic"]) == {0.0}
    assert set(
        MeasureRankerCV("roc_area", Cs=CS, cv=2, solver="lbfgs").fit(X, y, groups).cv_results_["param_hinge"]
    ) == {0.0}


@pytest.mark.parametrize("measure", ["ndcg", "average_precision"])
def test_datasets_sparse_rows_and_workers_choose_alike(measure, tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    for name, rows in (("a", slice(None, 150)), ("b", slice(150, None))):
        for what, values in (("X", X), ("y", y), ("qid", groups)):
            np.save(folder / f"{name}.{what}.npy", values[rows])
    dataset = open_dataset(folder)
    options = {"Cs": CS, "cv": 3, "tol": 1e-5, "k": 5}
    one = MeasureRankerCV(measure, **options).fit(X, y, groups)
    for other in (
        MeasureRankerCV(measure, **options).fit(sparse.csr_matrix(X), y, groups),
        MeasureRankerCV(measure, n_jobs=2, **options).fit(X, y, groups),
        MeasureRankerCV(measure, **options).fit(dataset),
    ):
        assert other.C_ == one.C_
        np.testing.assert_allclose(
            other.cv_results_["pooled_test_score"], one.cv_results_["pooled_test_score"], atol=0.02
        )
        assert other.objective_ == pytest.approx(one.objective_, rel=1e-4)


class Stop(Exception):
    pass


def test_a_stopped_choice_goes_on(tmp_path):
    seen = []

    def stop(record):
        seen.append(record)
        if len(seen) == 30:
            raise Stop

    given = {"Cs": CS, "cv": 3, "tol": 1e-6}
    state = Checkpoint(tmp_path / "state", minutes=0)
    with pytest.raises(Stop):
        MeasureRankerCV(checkpoint=state, callback=stop, **given).fit(X, y, groups)
    assert (tmp_path / "state").exists()
    model = MeasureRankerCV(checkpoint=state, **given).fit(X, y, groups)
    whole = MeasureRankerCV(**given).fit(X, y, groups)
    assert model.C_ == whole.C_
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-5)
    assert not (tmp_path / "state").exists()


def test_weights_are_repetitions():
    times = np.random.default_rng(1).integers(0, 3, size=len(y))
    many = np.repeat(np.arange(len(y)), times)
    options = {"Cs": CS, "cv": GroupKFold(3), "tol": 1e-6}
    one = MeasureRankerCV("roc_area", **options).fit(X, y, groups, times)
    other = MeasureRankerCV("roc_area", **options).fit(X[many], y[many], groups[many])
    assert one.C_ in CS
    assert other.C_ in CS
    assert verify(one, X, y, times, groups=groups)


def test_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        model = MeasureRankerCV(Cs=CS, cv=2).set_fit_request(groups=True).set_score_request(groups=True)
        found = cross_validate(clone(model), X, y, cv=GroupKFold(2), params={"groups": groups})
    assert (found["test_score"] > 0.5).all()


def test_grades_without_zeros_can_be_chosen_by():
    """All above zero: for NDCG grades vary nevertheless."""
    model = MeasureRankerCV("ndcg", Cs=CS, cv=2, hinge=0).fit(X, y + 1, groups)
    assert np.isfinite(model.cv_results_["pooled_test_score"]).all()
    assert np.isfinite(model.cv_results_["split0_test_score"]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 1}, "cv from 2 to the number of groups, 24, got 1"),
        ({"cv": 25}, "cv from 2 to the number of groups, 24, got 25"),
        ({"cv": KFold(2)}, "expected every group in training or test, got groups in both: use cv=GroupKFold"),
        ({"cv": []}, "at least one split"),
        ({"Cs": []}, "C"),
        ({"standard_errors": -1}, "standard_errors >= 0"),
        ({"scoring": "f1"}, "a measure of rankings .* got fbeta"),
        ({"measure": "error"}, "a measure of rankings .* got error"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        MeasureRankerCV(**options).fit(X, y, groups)
    with pytest.raises(ValueError, match="fold 0: expected a group with different labels to test on"):
        MeasureRankerCV(cv=24).fit(X, np.where(groups == 3, y, 0), groups)


@parametrize_with_checks([MeasureRankerCV(Cs=CS, cv=2)])
def test_scikit_learns_own_checks(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        pytest.skip("rows that are repeated fall into other folds; test_weights_are_repetitions keeps them together")
    check(estimator)
