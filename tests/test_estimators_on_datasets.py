"""Estimators other than `MeasureSVC` on rows that they cannot take out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from shard_folders import N, P, make_problem, write_folder
from sklearn.linear_model import LogisticRegression

from metrimax import (
    CAPOClassifier,
    MeasureEnsemble,
    MeasureRanker,
    MeasureSVC,
    MeasureSVCCV,
    open_dataset,
    xi_alpha,
)
from metrimax.io.checkpoints import Checkpoint

CS = [0.01, 0.1, 1.0]


@pytest.fixture(scope="module")
def problem():
    return make_problem()


@pytest.fixture(scope="module")
def dataset(problem, tmp_path_factory):
    return open_dataset(write_folder("npy", tmp_path_factory.mktemp("shards") / "data", *problem), memory=60_000)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"measure": "roc_area"},
        {"measure": "prbep", "selection": "holdout"},
        {"measure": "error", "class_weight": "balanced", "tol": 1e-4},
        {"hinge": 0.0, "threshold": "trained", "scoring": "balanced_error"},
        {"measure": "balanced_error", "extend": True, "fit_intercept": False},
    ],
)
def test_the_choice_of_C_is_that_of_the_matrix(problem, dataset, options):
    X, y = problem
    weight = np.random.default_rng(0).integers(1, 3, size=N).astype(float)
    given = {"Cs": CS, "cv": 3, "tol": 1e-7} | options
    inside = MeasureSVCCV(**given).fit(X, y, weight)
    outside = MeasureSVCCV(**given).fit(dataset, sample_weight=weight)
    assert_allclose(outside.Cs_, inside.Cs_)
    means = outside.cv_results_["mean_test_score"]
    assert_allclose(means, inside.cv_results_["mean_test_score"], atol=0.01)  # ties may fall either way
    assert outside.C_ == inside.C_
    assert outside.objective_ == pytest.approx(inside.objective_, rel=1e-3)
    assert outside.score(dataset) == pytest.approx(inside.score(X, y), abs=0.01)
    assert outside.n_features_in_ == P


def test_several_classes_and_labels_of_ones_own(problem, dataset):
    X, _ = problem
    three = np.digitize(X[:, 0] + 0.3 * X[:, 1], [0.0, 0.7])
    given = {"measure": "error", "Cs": CS, "cv": 2, "tol": 1e-4}
    inside, outside = MeasureSVCCV(**given).fit(X, three), MeasureSVCCV(**given).fit(dataset, three)
    assert_allclose(outside.cv_results_["mean_test_score"], inside.cv_results_["mean_test_score"], atol=0.01)
    assert outside.coef_.shape == (3, P)
    indicator = np.column_stack([three == 0, three == 2]).astype(int)
    assert MeasureSVCCV(**given).fit(dataset, indicator).coef_.shape == (2, P)


def test_a_pass_serves_all_folds(dataset):
    def passes(n_folds):
        before = dataset.bytes_read
        MeasureSVCCV("f1", Cs=[0.1], cv=n_folds, tol=1e-4).fit(dataset)
        return dataset.bytes_read - before

    assert passes(8) < 2 * passes(2)


def test_rows_that_are_out_of_reach(dataset):
    with pytest.raises(TypeError, match=r"got Dataset: selection='xi_alpha' needs the rows; set selection='holdout'"):
        MeasureSVCCV("error", selection="xi_alpha").fit(dataset)
    with pytest.raises(ValueError, match="expected kernel='linear' with Dataset"):
        MeasureSVCCV(kernel="rbf").fit(dataset)
    with pytest.raises(TypeError, match="got Dataset: the auxiliaries need the rows; MeasureSVC trains on datasets"):
        CAPOClassifier([("regression", LogisticRegression())]).fit(dataset, dataset.y)
    with pytest.raises(TypeError, match="got Dataset: the members need the rows; MeasureSVC and MeasureSVCCV train on"):
        MeasureEnsemble().fit(dataset, dataset.y)
    model = MeasureSVC("error").fit(dataset)
    with pytest.raises(TypeError, match="got Dataset: the estimate needs the rows; MeasureSVCCV with"):
        xi_alpha(model, dataset, dataset.y)


class Stop(Exception):
    pass


@pytest.mark.parametrize("kind", ["dataset", "matrix", "xi_alpha"])
def test_a_stopped_choice_of_C_goes_on(problem, dataset, kind, tmp_path):
    X, y = problem
    data = (dataset,) if kind == "dataset" else (X, y)
    # one kind of loss, without thresholds of folds: solutions within the tolerance may turn a tie of candidates
    given = {"measure": "f1", "Cs": CS, "cv": 3, "tol": 1e-6, "logistic": 1, "threshold": "trained"}
    if kind == "xi_alpha":
        given = {"measure": "error", "Cs": CS, "tol": 1e-6, "selection": "xi_alpha"}
    seen = []

    def count(record):
        seen.append(record)
        if len(seen) == stop:
            raise Stop

    stop = 10**9
    whole = MeasureSVCCV(**given, callback=count).fit(*data)
    needed, stop = len(seen), 2 * len(seen) // 3
    seen.clear()
    place = Checkpoint(tmp_path / "kept", minutes=0)
    with pytest.raises(Stop):
        MeasureSVCCV(**given, callback=count, checkpoint=place).fit(*data)
    assert list((tmp_path / "kept").rglob("*.npz"))
    seen.clear()
    stop = 10**9
    again = MeasureSVCCV(**given, callback=count, checkpoint=Checkpoint(tmp_path / "kept", minutes=0)).fit(*data)
    assert len(seen) < 0.75 * needed
    assert again.C_ == whole.C_
    assert again.objective_ == pytest.approx(whole.objective_, rel=1e-5)
    assert_allclose(again.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"], atol=0.01)
    assert not (tmp_path / "kept").exists()


def test_rankings(problem, dataset, tmp_path):
    X, y = problem
    groups = np.arange(N) // 20
    given = {"measure": "roc_area", "C": 0.1, "tol": 1e-7}
    inside = MeasureRanker(**given).fit(X, y, groups=groups)
    outside = MeasureRanker(**given, checkpoint=tmp_path / "kept").fit(dataset, groups=groups)
    assert outside.objective_ == pytest.approx(inside.objective_, rel=1e-6)
    assert outside.score(dataset, groups=groups) == pytest.approx(inside.score(X, y, groups=groups), abs=1e-6)
    assert not (tmp_path / "kept").exists()
    with pytest.raises(ValueError, match="expected groups with 400 entries"):
        MeasureRanker().fit(dataset, groups=groups[:5])
    with pytest.raises(ValueError, match="expected y, the true labels"):
        inside.score(X, groups=groups)
    with pytest.raises(ValueError, match="expected 3 features, got 30"):
        MeasureRanker(**given).fit(X[:, :3], y, groups=groups).predict(dataset)
