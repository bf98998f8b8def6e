"""Datasets whose rows may have several labels: which column stands for which label."""

from __future__ import annotations

import numpy as np
import pytest

from metrimax import MeasureSVC, MeasureSVCCV, open_dataset


def write(folder, labels, X):
    """Rows as svmlight text, each with its list of labels."""
    folder.mkdir()
    rows = []
    for own, x in zip(labels, X, strict=True):
        rows.append(" ".join([",".join(map(str, own)), *(f"{j + 1}:{v:.6f}" for j, v in enumerate(x))]))
    (folder / "part.svm").write_text("\n".join(rows) + "\n")
    return open_dataset(folder)


def sample(values, seed=0, n=90):
    """Every row has one of the labels for certain, and the others by chance."""
    rng = np.random.default_rng(seed)
    has = rng.random((n, len(values))) < 0.4
    has[np.arange(n), rng.integers(0, len(values), n)] = True
    X = rng.normal(size=(n, 5))
    X[:, : len(values)] += 2 * has
    return [[v for v, own in zip(values, row, strict=True) if own] for row in has], X, has


@pytest.fixture
def training(tmp_path):
    labels, X, _ = sample([1, 2, 3])
    return write(tmp_path / "train", labels, X)


def test_a_dataset_knows_its_labels(training):
    np.testing.assert_array_equal(training.label_values, [1, 2, 3])
    np.testing.assert_array_equal(training.indicators(np.array([1.0, 2.0, 3.0])), training.y)
    wider = training.indicators(np.array([0.0, 1.0, 2.0, 2.5, 3.0]))
    np.testing.assert_array_equal(wider[:, [1, 2, 4]], training.y)
    assert not wider[:, [0, 3]].any()


@pytest.mark.parametrize("make", [MeasureSVC, lambda: MeasureSVCCV(Cs=[1.0], cv=2)])
def test_labels_are_judged_by_their_values(training, tmp_path, make):
    svc = make().fit(training)
    np.testing.assert_array_equal(svc.label_values_, [1, 2, 3])
    assert svc.score(training) == svc.score(training, training.y)
    labels, X, has = sample([1, 3], seed=1)  # the label 2 does not occur
    X[:, 2], X[:, 1] = X[:, 1].copy(), X[:, 2].copy()
    test = write(tmp_path / "test", labels, X)
    assert test.y.shape == (90, 2)
    expected = np.column_stack([has[:, 0], np.zeros(90), has[:, 1]]).astype(int)
    assert svc.score(test) == svc.score(X.round(6), expected)
    one = write(tmp_path / "one", [[3]] * 45 + [[1]] * 45, X)  # one label per row is no less
    assert one.label_values is None
    assert svc.score(one) == svc.score(X.round(6), np.repeat([[0, 0, 1], [1, 0, 0]], 45, axis=0))


def test_labels_that_the_model_does_not_know(training, tmp_path):
    labels, X, _ = sample([1, 2, 4], seed=1)
    svc = MeasureSVC().fit(training)
    with pytest.raises(ValueError, match=r"expected labels among 1, 2, 3, those .* fitted on, got 4 as well: leave"):
        svc.score(write(tmp_path / "test", labels, X))
    (tmp_path / "none").mkdir()
    np.save(tmp_path / "none" / "rows.X.npy", X)
    with pytest.raises(ValueError, match="expected labels, got none"):
        svc.score(open_dataset(tmp_path / "none"))


def test_labels_given_are_columns(training):
    Y = training.y
    svc = MeasureSVC().fit(training)
    again = svc.fit(training, Y)  # what the columns stand for is not known
    assert not hasattr(again, "label_values_")
    assert again.score(training) == again.score(training, Y)
