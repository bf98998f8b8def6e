"""Choosing C, and the estimators side by side."""

import io
from unittest import mock

import numpy as np
import pytest
from paper import PAPER
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score, cross_validate

from metrimax import MeasureSVC, MeasureSVCCV, PrecisionAtK, leave_one_out, xi_alpha
from metrimax.designs.kernel import Kernel
from metrimax.estimates.dual_view import dual_view
from metrimax.estimators._folds import FoldedSample
from metrimax.measure import get_measure
from metrimax.measure.base_loss import Losses
from metrimax.measure.contingency import ContingencyMeasure
from metrimax.protocols import Status
from metrimax.training.folds import Fold, spread, train_folds


def sample(seed=0, n=300, p=6, shift=0.8, classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n) if classes > 2 else (rng.random(n) < 0.3).astype(int)
    centres = rng.normal(size=(classes, p)) if classes > 2 else np.outer([0, 1], np.ones(p))
    return rng.normal(size=(n, p)) + shift * centres[y], y


Cs = [0.01, 0.1, 1.0, 10.0]


def test_cross_validation_is_that_of_scikit_learn():
    X, y = sample()
    cv = StratifiedKFold(3, shuffle=True, random_state=1)
    options = {"hinge": 1.0, "threshold": "trained", "tol": 1e-5}
    model = MeasureSVCCV("f1", Cs=Cs, cv=cv, standard_errors=0, **options).fit(X, y)
    expected = [cross_val_score(MeasureSVC("f1", C=C, **options), X, y, cv=cv).mean() for C in Cs]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], expected, atol=0.01)
    assert Cs[int(np.argmax(model.cv_results_["pooled_test_score"]))] == model.C_
    assert model.best_score_ == model.cv_results_["pooled_test_score"].max()
    assert model.cv_results_["rank_test_score"].min() == 1
    assert set(model.cv_results_) >= {
        "param_C",
        "std_test_score",
        "split2_test_score",
        "max_gap",
        "sum_passes",
        "fit_time",
    }
    refit = MeasureSVC("f1", C=model.C_, **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, refit.coef_, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), refit.predict(X))


def test_what_is_within_standard_errors_of_the_best_counts_as_equal():
    X, y = sample(5, n=150, shift=0.4)
    options = {"Cs": [0.004, 0.03, 0.2, 8.0], "cv": 4, "threshold": "placed", "hinge": 1.0, "tol": 1e-4}
    best = MeasureSVCCV("f1", **options).fit(X, y)
    scores = best.cv_results_["pooled_test_score"]
    k = int(scores.argmax())
    assert best.C_ == best.Cs_[k] != 0.2
    error = np.std([best.cv_results_[f"split{i}_test_score"][k] for i in range(4)], ddof=1) / 2
    behind = (scores[k] - scores) / error  # in standard errors
    for count in (*(behind[behind > 0] * 1.01), *(behind[behind > 0] * 0.99)):
        chosen = MeasureSVCCV("f1", standard_errors=count, **options).fit(X, y)
        np.testing.assert_array_equal(chosen.cv_results_["pooled_test_score"], scores)
        assert min(best.Cs_[behind <= count], key=lambda C: abs(np.log(C))) == chosen.C_
        assert chosen.best_score_ == scores[list(best.Cs_).index(chosen.C_)]
    far = MeasureSVCCV("f1", standard_errors=behind.max() * 1.01, **options).fit(X, y)
    assert far.C_ == 0.2  # nearest to 1 by its ratio
    held = MeasureSVCCV("f1", selection="holdout", **options).fit(X, y)  # one part says nothing of its error
    assert held.best_score_ == held.cv_results_["pooled_test_score"].max()


def test_a_fixed_k_is_a_share_of_the_sample_in_folds():
    X, y = sample(4, n=300)
    k = int(y.sum()) - 2  # more than the positives of a training part
    measure = PrecisionAtK(k, labellings="at_least")
    fixed = MeasureSVCCV(measure, Cs=[0.1, 1.0], cv=3).fit(X, y)
    share = MeasureSVCCV(PrecisionAtK(f"{k / y.sum()}p", labellings="at_least"), Cs=[0.1, 1.0], cv=3).fit(X, y)
    np.testing.assert_allclose(
        fixed.cv_results_["split0_test_score"], share.cv_results_["split0_test_score"], atol=0.05
    )


def test_every_label_is_spread_evenly_over_the_folds():
    rng = np.random.default_rng(0)
    Y = rng.random((400, 12)) < np.geomspace(0.01, 0.5, 12)
    counts = np.array([Y[fold.test].sum(axis=0) for fold in spread(Y, 5, 0)])
    assert (counts[:, Y.sum(axis=0) < 20].max(axis=0) - counts[:, Y.sum(axis=0) < 20].min(axis=0) <= 1).all()
    assert np.ptp([len(fold.test) for fold in spread(Y, 5, 0)]) <= 12
    assert np.ptp([len(fold.test) for fold in spread(np.repeat(np.eye(7) > 0, 3, axis=0), 2, 0)]) <= 1
    assert np.array_equal(np.sort(np.concatenate([fold.test for fold in spread(Y, 5, 0)])), np.arange(400))


@pytest.mark.parametrize("wrong", [-1.0, np.inf, "two"])
def test_standard_errors_are_a_number(wrong):
    X, y = sample()
    with pytest.raises(ValueError, match="expected finite standard_errors >= 0, or None, got"):
        MeasureSVCCV("f1", standard_errors=wrong).fit(X, y)


@pytest.mark.parametrize("measure", ["roc_area", "prbep", "error"])
def test_other_measures_and_parallel_folds(measure):
    X, y = sample(1)
    one = MeasureSVCCV(measure, Cs=Cs, cv=3).fit(sparse.csr_matrix(X), y)
    two = MeasureSVCCV(measure, Cs=Cs, cv=3, n_jobs=2).fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    same = MeasureSVC(measure, **one.trained_with_)
    assert one.score(X, y) == pytest.approx(same.fit(X, y).score(X, y), abs=0.01)


def test_holdout_goes_beyond_the_grid_while_the_best_is_on_its_border():
    X, y = sample(2, shift=0.3)
    model = MeasureSVCCV("f1", Cs=[1e-6, 4e-6], selection="holdout", extend=True).fit(X, y)
    assert len(model.Cs_) > 2
    np.testing.assert_allclose(np.diff(np.log(model.Cs_)), np.log(4))
    assert model.Cs_[0] < model.C_ < model.Cs_[-1] or len(model.Cs_) == 12
    assert len(MeasureSVCCV("f1", Cs=[1e-6, 4e-6], selection="holdout").fit(X, y).Cs_) == 2
    assert MeasureSVCCV("f1", Cs=[1.0], extend=True, cv=3).fit(X, y).C_ == 1.0


def test_xi_alpha_trains_once_per_C_and_says_what_xi_alpha_says():
    X, y = sample(3)
    # tight: of two solutions within the default tol each may count an example or two that the other does not
    model = MeasureSVCCV("error", Cs=Cs, selection="xi_alpha", rho=1.0, scoring="f1", tol=1e-6).fit(X, y)
    for k, C in enumerate(Cs):
        plain = MeasureSVC("error", C=C, solver="dual_cd", tol=1e-6).fit(X, y)
        estimate = xi_alpha(plain, X, y)
        assert model.cv_results_["f1"][k] == pytest.approx(estimate.f1, abs=0.02)
        assert model.cv_results_["error"][k] == pytest.approx(estimate.error, abs=0.01)
    np.testing.assert_allclose(model.cv_results_["f1"], model.cv_results_["mean_test_score"], rtol=1e-12)
    assert model.dual_coef_.shape == (1, len(y))
    assert xi_alpha(model, X, y).f1 == pytest.approx(model.best_score_)
    assert 0 < MeasureSVCCV("error", Cs=Cs, selection="xi_alpha").fit(X, y).best_score_ < 1
    held = MeasureSVCCV("error", Cs=Cs, selection="xi_alpha", scoring="f1").fit(X, y)
    exact = leave_one_out(MeasureSVC("error", C=held.C_, solver="dual_cd").fit(X, y), X, y)
    assert held.best_score_ == pytest.approx(exact.f1, abs=0.08)


def test_drift_is_the_fall_of_left_out_scores():
    X, y = sample(4, n=80)
    model = MeasureSVC("error", C=3.0, solver="dual_cd", tol=1e-7).fit(X, y)
    m = dual_view(model, X, y)
    R2 = m.R2()
    counted = np.flatnonzero(m.doubtful(1.0, R2) & (m.advantage > 0) & (m.alpha > 0))
    falls = []
    for t in counted:
        rest = np.arange(len(y)) != t
        without = clone(model).fit(X[rest], y[rest]).decision_function(X[[t]])[0]
        falls.append((m.advantage[t] - (without if y[t] else -without)) / m.alpha[t])
    # a few epochs find most of what the others make up for, and never too much; rho is a share of R2
    assert 0.95 * np.mean(falls) <= m.drift(R2, size=len(counted)) <= np.mean(falls) + 0.02 * R2
    assert np.max(falls) <= m.squares.max() * 1.01


def test_several_classes_and_labels():
    X, y = sample(5, classes=3)
    model = MeasureSVCCV("error", Cs=Cs, cv=3).fit(X, y)
    assert model.coef_.shape == (3, 6)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    Y = np.column_stack([y == 0, y > 0])
    for selection in ("cv", "holdout"):
        labels = MeasureSVCCV("f1", Cs=Cs, cv=3, selection=selection).fit(X, Y)
        assert labels.predict(X).shape == Y.shape


def test_xi_alpha_of_several_labels_is_the_mean_over_them():
    X, y = sample(8, n=200, classes=3)
    Y = np.column_stack([y == 0, y > 0, np.ones(len(y))]).astype(int)  # the last one never varies
    options = {"Cs": Cs, "selection": "xi_alpha", "scoring": "f1", "tol": 1e-6}
    for rho in (None, 1.0):
        alone = [MeasureSVCCV("error", rho=rho, **options).fit(X, Y[:, k]) for k in (0, 1)]
        together = MeasureSVCCV("error", rho=rho, **options).fit(X, Y)
        for name in ("f1", "error", "mean_test_score"):
            expected = np.mean([model.cv_results_[name] for model in alone], axis=0)
            np.testing.assert_allclose(together.cv_results_[name], expected, atol=1e-9)
        assert together.predict(X).shape == Y.shape
    classes = MeasureSVCCV("error", rho=1.0, **options).fit(X, y)
    against = [MeasureSVCCV("error", rho=1.0, **options).fit(X, y == c).cv_results_["f1"] for c in range(3)]
    np.testing.assert_allclose(classes.cv_results_["f1"], np.mean(against, axis=0), atol=1e-9)
    assert Cs[int(np.argmax(np.mean(against, axis=0)))] == classes.C_
    assert np.mean(classes.predict(X) == y) > 0.5
    with pytest.raises(ValueError, match="examples on both sides"):
        MeasureSVCCV("error", **options).fit(X, np.ones((len(y), 2), dtype=int))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_scores_held_out_are_those_of_models_trained_without_these_rows(kernel, fit_intercept):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(90, 4)), (rng.random((90, 3)) < 0.4).astype(int)
    owner = MeasureSVC("f1", kernel=kernel, fit_intercept=fit_intercept, tol=1e-7, **PAPER)
    training = owner._training(get_measure("f1"), owner._solver(), "multilabel-indicator")
    folds = [Fold(np.arange(30, 90), np.arange(30)), Fold(np.arange(60), np.arange(60, 90))]
    scaling = 1.0 if fit_intercept else None
    sample = FoldedSample(
        owner=owner,
        training=training,
        measure=get_measure("f1"),
        X=X,
        y=Y,
        labels=Y > 0,
        given=None,
        weight=None,
        folds=folds,
        scaling=scaling,
    )
    Cs = np.array([0.1, 1.0, 10.0])
    for fold, held in zip(folds, train_folds(sample, [Losses()], Cs, [0, 2]), strict=True):
        for label, (fitted, scores) in zip((0, 2), held, strict=True):
            for k, C in enumerate(Cs):
                alone = clone(owner).set_params(C=C).fit(X[fold.train], Y[fold.train, label])
                found = scores[:, k] - fitted[k].threshold
                np.testing.assert_allclose(found, alone.decision_function(X[fold.test]), atol=1e-2)
                assert fitted[k].solution.w.size == 0
                assert not fitted[k].solution.history


def test_labels_whose_scores_do_not_fit_are_trained_block_by_block(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(90, 4)), (rng.random((90, 5)) < 0.4).astype(int)
    model = MeasureSVCCV("f1", Cs=[0.1, 1.0], cv=3)
    whole = clone(model).fit(X, Y)
    monkeypatch.setattr("metrimax.training.folds.AT_ONCE", 2 * 90 * 8)
    parts = clone(model).fit(X, Y)
    np.testing.assert_allclose(parts.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"], atol=0.03)


def test_a_fit_makes_an_oracle_for_each_sample_and_label(monkeypatch):
    made = []
    oracle = ContingencyMeasure.oracle
    monkeypatch.setattr(
        ContingencyMeasure, "oracle", lambda self, y, *rest: made.append(len(y)) or oracle(self, y, *rest)
    )
    X, y = sample(1)
    MeasureSVCCV("f1", Cs=Cs, cv=3).fit(X, y)
    large = [n for n in made if n >= 200]  # a measure is known by what it makes of a few examples
    assert len(large) == 4  # of three folds and the whole
    assert len(made) - len(large) <= 2


def test_kernels():
    X, y = sample(9, n=150)
    y = ((X - 0.4) ** 2).sum(axis=1) > 6
    cv = StratifiedKFold(3)
    paper = {"tol": 1e-5, "hinge": 0.0, "threshold": "trained"}
    options = {"gamma": 0.2, **paper}
    model = MeasureSVCCV("f1", kernel="rbf", Cs=Cs, cv=cv, **options).fit(X, y)
    expected = [cross_val_score(MeasureSVC("f1", kernel="rbf", C=C, **options), X, y, cv=cv).mean() for C in Cs]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], expected, atol=0.01)
    K = Kernel("rbf", 0.2)(X, X)
    given = MeasureSVCCV("f1", kernel="precomputed", Cs=Cs, cv=cv, **paper).fit(K, y)
    np.testing.assert_allclose(given.cv_results_["mean_test_score"], expected, atol=0.01)
    assert given.C_ == model.C_
    nystroem = {"kernel": "rbf", "gamma": 0.2, "n_components": 40, "random_state": 3, "tol": 1e-8}
    features = MeasureSVCCV("error", Cs=Cs, selection="xi_alpha", scoring="f1", **nystroem).fit(X, y)
    assert features.status_ is Status.APPROXIMATE
    plain = MeasureSVC("error", C=features.C_, **nystroem).fit(X, y)
    np.testing.assert_allclose(features.decision_function(X), plain.decision_function(X), atol=1e-3)
    assert features.score(X, y) > 0.8
    exact = MeasureSVCCV("error", kernel="rbf", gamma=0.2, Cs=Cs, selection="xi_alpha", scoring="f1").fit(X, y)
    assert exact.score(X, y) > 0.8


def test_refusals():
    X, y = sample(6)
    with pytest.raises(ValueError, match="unknown selection"):
        MeasureSVCCV(selection="guess").fit(X, y)
    for grid in ([], [-1.0], [[1.0]], "all", [None]):
        with pytest.raises(ValueError, match="expected Cs"):
            MeasureSVCCV(Cs=grid).fit(X, y)
    with pytest.raises(ValueError, match="continuous"):
        MeasureSVCCV(selection="holdout").fit(X, X[:, 0])
    with pytest.warns(match="max_iter"):
        MeasureSVCCV("error", selection="xi_alpha", max_iter=1, tol=1e-9).fit(X, y)
    with pytest.raises(ValueError, match="contingency table"):
        MeasureSVCCV("error", selection="xi_alpha", scoring="roc_area").fit(X, y)
    for measure in ("f1", "roc_area", "prbep"):
        with pytest.raises(ValueError, match="selection='xi_alpha' needs a measure whose mistakes add up"):
            MeasureSVCCV(measure, selection="xi_alpha", scoring="f1").fit(X, y)
    for other in ({"hinge": 1.0}, {"threshold": "placed"}):
        with pytest.raises(ValueError, match="estimates machines with hinge=0 and threshold='trained', got hinge="):
            MeasureSVCCV("error", selection="xi_alpha", **other).fit(X, y)
    for rho in (0, -1.0, np.nan, np.inf, "1"):
        with pytest.raises(ValueError, match="expected a finite rho > 0, or None to measure it, got"):
            MeasureSVCCV("error", selection="xi_alpha", rho=rho).fit(X, y)


@pytest.mark.parametrize("scoring", [f1_score, make_scorer(f1_score), "roc_curve", 3])
def test_a_scoring_that_is_no_measure_is_refused_before_training(scoring):
    X, y = sample(6)
    with (
        mock.patch("metrimax.estimators._folds.FoldedSample.parts", side_effect=AssertionError("trained")),
        pytest.raises((TypeError, ValueError), match=r"a function of \(tp, fp, fn, tn\)|unknown measure 'roc_curve'"),
    ):
        MeasureSVCCV("error", scoring=scoring).fit(X, y)


def test_folds_that_nothing_can_be_learnt_from_or_tested_on():
    X, y = sample(6, n=60)
    with pytest.raises(ValueError, match="expected cv with at least one split, got none"):
        MeasureSVCCV(cv=[]).fit(X, y)
    half = np.arange(30)
    for cv, weight in (([(half, half[:0])], None), ([(half, half + 30)] * 2, np.where(np.arange(60) < 30, 1.0, 0.0))):
        with pytest.raises(ValueError, match="fold 0: expected examples of weight above zero to test on, got none"):
            MeasureSVCCV(cv=cv).fit(X, y, weight)
    with (
        pytest.warns(match="least populated class"),
        pytest.raises(ValueError, match=r"fold \d: expected at least two classes to train on, got \[0\] only"),
    ):
        MeasureSVCCV(cv=3).fit(X, (np.arange(60) == 7).astype(int))
    with pytest.raises(ValueError, match="expected at least two classes in y, got one class only"):
        MeasureSVCCV(cv=3).fit(X, np.zeros(60))


@pytest.mark.parametrize("measure", ["roc_area", "average_precision"])
def test_folds_that_lack_a_label_or_a_class(measure):
    X, y = sample(10, n=80)
    rng = np.random.default_rng(0)
    Y = np.column_stack([y, rng.random(80) < 0.5, np.arange(80) < 2]).astype(int)
    model = MeasureSVCCV(measure, Cs=[0.1, 1.0], cv=5).fit(X, Y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    classes = np.where(np.arange(80) < 3, 2, y)
    splitter = StratifiedKFold(5)
    with pytest.warns(match="least populated class"):
        several = MeasureSVCCV(measure, Cs=[1.0], cv=splitter, tol=1e-6, hinge=0.0).fit(X, classes)
    with pytest.warns(match="least populated class"):
        expected = cross_val_score(MeasureSVC(measure, C=1.0, tol=1e-6), X, classes, cv=splitter, error_score="raise")
    (row,) = several.cv_results_["mean_test_score"]
    assert row == pytest.approx(expected.mean(), abs=0.01)


def test_nothing_is_left_of_earlier_fits():
    (X, y), (Z, z) = sample(11, n=120), sample(12, n=80)
    model = MeasureSVCCV("error", Cs=[0.1, 1.0], selection="xi_alpha").fit(X, y)
    assert model.dual_coef_.shape == (1, 120)
    assert "f1" in model.cv_results_
    model.set_params(selection="cv", cv=3, solver="bundle").fit(Z, z)
    assert not hasattr(model, "dual_coef_")
    for kernel, there in (("rbf", {"kernel_coef_", "support_"}), ("linear", {"coef_"})):
        model.set_params(kernel=kernel).fit(Z, z)
        fresh = clone(model).fit(Z, z)
        assert vars(model).keys() == vars(fresh).keys()
        assert vars(model).keys() & {"coef_", "kernel_coef_", "support_"} == there
        plain = model.plain().fit(Z, z)
        plain.left_over_ = 1
        assert vars(plain.fit(Z, z)).keys() == vars(model.plain().fit(Z, z)).keys()


def test_an_interrupted_fit_leaves_the_earlier_one():
    X, y = sample(11, n=60)
    model = MeasureSVCCV("error", Cs=[0.1, 1.0], cv=2).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), y)
    assert vars(model) == before


def test_weights_are_those_of_the_estimator():
    X, y = sample(13, n=60)
    options = {"Cs": [0.1, 1.0], "cv": 2, "tol": 1e-6}
    for selection in ("cv", "holdout", "xi_alpha"):
        model = MeasureSVCCV("error", selection=selection, **options)
        scalar, array = (clone(model).fit(X, y, sample_weight=w) for w in (2.0, np.full(60, 2.0)))
        np.testing.assert_array_equal(scalar.coef_, array.coef_)
        with pytest.raises(ValueError, match=r"sample_weight.shape == \(50,\), expected \(60,\)"):
            model.fit(X, y, sample_weight=np.ones(50))
        with pytest.raises(ValueError, match="Negative values"):
            model.fit(X, y, sample_weight=np.where(np.arange(60) == 3, -1.0, 1.0))


def test_groups():
    X, y = sample(14, n=90)
    groups = np.random.default_rng(0).integers(0, 9, 90)
    splits = list(GroupKFold(3).split(X, y, groups))
    options = {"Cs": [0.1, 1.0], "tol": 1e-6}
    model = MeasureSVCCV("f1", cv=GroupKFold(3), **options).fit(X, y, groups=groups)
    given = MeasureSVCCV("f1", cv=splits, **options).fit(X, y)
    for k in range(3):
        name = f"split{k}_test_score"
        np.testing.assert_array_equal(model.cv_results_[name], given.cv_results_[name])
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        MeasureSVCCV(cv=GroupKFold(3)).fit(X, y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[90, 5\]"):
        MeasureSVCCV(cv=GroupKFold(3)).fit(X, y, groups=groups[:5])
    for selection in ("holdout", "xi_alpha"):
        with pytest.raises(ValueError, match=f"got selection='{selection}', which does not use them"):
            MeasureSVCCV("error", selection=selection).fit(X, y, groups=groups)
    with config_context(enable_metadata_routing=True):
        asked = MeasureSVCCV("f1", cv=GroupKFold(3), **options).set_fit_request(groups=True)
        outer = cross_validate(asked, X, y, params={"groups": groups}, cv=2, error_score="raise")
    assert np.isfinite(outer["test_score"]).all()


def test_folds_and_labels_that_warn_of_the_same_say_so_once():
    X, y = sample(1)
    Y = np.column_stack([y, X[:, 0] > 1.5, X[:, 1] > 1]).astype(int)
    with pytest.warns(match="exactly k positives") as caught:
        MeasureSVCCV("recall_at_k", Cs=[1.0], cv=3).fit(X[:, 2:], Y)
    assert len({str(warning.message) for warning in caught}) == 1


def test_progress_of_the_folds(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    X, y = sample(1)
    for options, lines in (  # while choosing, and where there is another training at the end
        ({"cv": 2}, 3),
        ({"selection": "holdout"}, 2),
        ({"measure": "error", "selection": "xi_alpha"}, 1),
    ):
        terminal, pipe = Terminal(), io.StringIO()
        for stream in (terminal, pipe):
            monkeypatch.setattr("sys.stderr", stream)
            MeasureSVCCV(Cs=[0.1, 1.0], verbose=1, **options).fit(X, y)
        assert len(pipe.getvalue().splitlines()) == lines  # the last of each run
        shown = terminal.getvalue()
        assert shown.count(f"MeasureSVCCV({options.get('measure', 'f1')})") >= lines
        assert ("fold 2 of 2: iteration" in shown) == ("cv" in options)
