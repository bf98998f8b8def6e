"""The protocol of Joachims (2005): the hold-out, the grid that extends itself, thresholds, and the degenerate cases."""

from __future__ import annotations

import lzma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import dump_svmlight_file
from sklearn.svm import LinearSVC

from experiments import joachims2005_causes as causes
from experiments.baselines import Labels
from experiments.data import FIRST, Collection, collection
from experiments.holdout import Chosen, best_threshold, decision, split, train, value, values
from experiments.joachims2005 import part_for_choice


@given(arrays(bool, st.tuples(st.integers(6, 60), st.integers(1, 4))), st.integers(0, 3))
@settings(max_examples=50, deadline=None)
def test_split_is_a_partition_with_a_share_of_every_class(Y, seed):
    inside, outside = split(Y, seed)
    assert sorted([*inside, *outside]) == list(range(len(Y)))
    rarest = Y.sum(axis=0).argmin()
    assert Y[outside, rarest].sum() == round(Y[:, rarest].sum() / 3)  # the others share examples with it


def test_settings_for_large_sets_are_chosen_on_a_sample_with_its_share_of_every_class(monkeypatch):
    monkeypatch.setattr("experiments.joachims2005.LARGE", 300)
    classes = np.repeat([0, 1, 2], [2900, 60, 40])
    X, Y = np.arange(3000.0)[:, None], classes[:, None] == np.arange(3)
    X_in, Y_in, X_held, Y_held = part_for_choice(Collection(X, Y, X, Y), 0)
    assert Y_in.sum(axis=0).tolist() == [193, 4, 3]
    assert Y_held.sum(axis=0).tolist() == [97, 2, 1]
    rows = np.concatenate([X_in, X_held]).ravel().astype(int)
    assert len(set(rows)) == 300
    np.testing.assert_array_equal(Y[rows], np.concatenate([Y_in, Y_held]))


def test_variants_look_up_what_each_rule_chooses():
    Y = np.ones((9, 3), dtype=bool)
    data = Collection(np.zeros((9, 1)), Y, np.zeros((2, 1)), Y[:2])
    held = np.array([[0.5, 0.2, np.nan], *[[0.9, 0.3, 0.0]] * 3])  # the last class is absent from one of the parts
    test = np.array([[0.0, 0.0, 0.9], [0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.5, np.nan]])
    found = {row["label"]: row["value"] for row in causes.rows(lambda X, *_: test if len(X) == 9 else held, data)}
    assert found == {
        "first": pytest.approx(0.2),
        "middle": pytest.approx(0.5),
        "last": pytest.approx(0.4),
        causes.ONE: pytest.approx(0.2),
        causes.BEST: pytest.approx(0.7),
    }


@pytest.mark.parametrize("features", causes.FEATURES)
def test_features_are_scaled_by_the_training_part(features):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(3, 2, 20), np.full(20, 0.5), rng.random(20)])
    Y = np.ones((20, 1), dtype=bool)
    scaled = causes.scaled(features, Collection(X, Y, X[:5], Y[:5]))
    np.testing.assert_array_equal(scaled.X_test, scaled.X[:5])
    low, high = {"in [0, 1]": (0, 1), "in [-1, 1]": (-1, 1)}.get(features, (None, None))
    if low is not None:
        np.testing.assert_allclose([scaled.X[:, 0].min(), scaled.X[:, 0].max()], [low, high])
    if features == "standardised":
        np.testing.assert_allclose(scaled.X[:, [0, 2]].std(axis=0), 1)
        np.testing.assert_allclose(scaled.X.mean(axis=0), 0, atol=1e-12)
    if features == "of unit length":
        np.testing.assert_allclose((scaled.X**2).sum(axis=1), 1)


def test_labels_are_counted_as_libmultilabel_asks():
    Y = np.random.default_rng(0).random((7, 3)) < 0.4
    labels = Labels(Y.astype(float))
    assert labels.tocsc() is labels
    np.testing.assert_array_equal(np.asarray(np.sum(labels, 2)).ravel(), Y.sum(axis=0))
    np.testing.assert_array_equal(np.asarray(labels.sum(axis=1)).ravel(), Y.sum(axis=1))
    assert labels.sum() == Y.sum()


def f1(y, z):
    return 2 * (y & z).sum() / max(y.sum() + z.sum(), 1)


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=12))
@settings(max_examples=100, deadline=None)
def test_best_threshold_beats_every_other(pairs):
    y, scores = np.array([p[0] for p in pairs]), np.array([float(p[1]) for p in pairs])
    best, at = best_threshold(y, scores)
    assert best == pytest.approx(f1(y, scores > at))
    assert best == pytest.approx(max(f1(y, scores > t) for t in np.arange(-4.5, 4)))


def test_values_of_the_degenerate_cases():
    y = np.array([True, True, False])
    assert value("recall_at_2p", y, np.array([0.0, 1.0, 2.0])) == 1.0  # 2p > n: every ranking has them all
    assert np.isnan(value("f1", ~y & y, np.zeros(3)))
    found = values(np.array([True, False, False, False]), np.array([1.0, 2.0, -1.0, -2.0]))
    assert found == {"f1": pytest.approx(2 / 3), "prbep": 0.0, "recall_at_2p": 1.0, "roc_area": pytest.approx(2 / 3)}


def table_of(function, asked):
    def evaluate(grid):
        asked.append(list(grid))
        return [function(*setting) for setting in grid]

    return evaluate


def test_grid_is_extended_until_the_most_frequent_choice_is_inside():
    asked = []
    chosen = Chosen(table_of(lambda C: [-abs(np.log2(C) - 5)] * 3 + [-abs(np.log2(C))], asked), (0.5, 1.0, 2.0))
    assert chosen.settings == [(32.0,)] * 3 + [(1.0,)]
    assert chosen.most == (32.0,)
    assert asked == [[(0.5,), (1.0,), (2.0,)], [(4.0,), (8.0,), (16.0,)], [(32.0,), (64.0,), (128.0,)]]  # none twice
    down = Chosen(lambda grid: [[-C] for (C,) in grid], (1.0, 2.0))
    assert down.axes[0][0] == 2.0**-9, "three times three steps, and no more"


def test_of_equals_the_middle_is_chosen_and_absent_classes_follow_the_others():
    flat = Chosen(lambda grid: [[1.0, np.nan, float(C == 2.0)] for C, _ in grid], (1.0, 2.0, 4.0), (1.0, 2.0, 4.0))
    assert flat.settings == [(2.0, 2.0)] * 3
    nobody = Chosen(lambda grid: [[np.nan] for _ in grid], (1.0, 2.0, 4.0))
    assert nobody.settings == [(2.0,)]


def test_training_in_lockstep_is_the_soft_margin_svm_with_costs():
    data = collection("digits")
    X, Y = data.X[:200], data.Y[:200, :3]
    weights = [np.where(y, 4.0, 1.0) for y in Y.T]
    fitted = train("error", X, Y, [[0.1], [1.0], [0.5]], weights=weights, tol=1e-6)
    scores = decision([path[0] for path in fitted], data.X_test)
    for k, C in enumerate((0.1, 1.0, 0.5)):
        other = LinearSVC(loss="hinge", C=C, class_weight={True: 4.0}, tol=1e-8, max_iter=1_000_000, random_state=0)
        expected = other.fit(X, Y[:, k]).decision_function(data.X_test)
        np.testing.assert_allclose(scores[:, k], expected, atol=2e-2)


def test_samples_of_covertype(tmp_path):
    rng = np.random.default_rng(0)
    n = FIRST + 300
    y = np.where(np.arange(n) < FIRST, 1 + np.arange(n) % 7, 8)
    X = np.column_stack([np.arange(n), rng.integers(0, 5, n), np.arange(n) == 7])
    path = tmp_path / "covtype" / "covtype.svm.xz"
    path.parent.mkdir()
    with lzma.open(path, "wb", preset=0) as file:
        dump_svmlight_file(X, y, file, zero_based=False)
    data = collection("covtype/first", tmp_path, 1)
    assert data.X.shape == (1000, 3)
    assert data.Y_test.shape == (2000, 7)
    assert abs(data.X).max() == 1.0, "scaled by the training part"
    assert abs(data.X_test).max() < 1.1, "a feature that is zero there stays as it is"
    assert (data.Y.sum(axis=1) == 1).all()
    assert (data.Y.sum(axis=0) + data.Y_test.sum(axis=0)).sum() == FIRST, "every one of the first rows, once"
    assert not np.array_equal(data.X, collection("covtype/first", tmp_path, 2).X)
    assert collection("covtype/1000", tmp_path, 1).Y.shape[1] == 8, "of all rows"
