"""The choice among candidates: labels that are shrunk towards all labels, and candidates that count as equal."""

from __future__ import annotations

import numpy as np
import pytest

from metrimax.training.choose import first_best, shrunk, uncertainty


def test_labels_are_shrunk_towards_what_does_best_over_all():
    """A label with 30 positives has half of the say, and is compared with its own mean, however hard it is."""
    pooled = np.array([[0.9, 0.7], [0.2, 0.3], [0.2, 0.5], [np.nan, np.nan]])[:, :, np.newaxis]
    better = np.array([[0.1, -0.1], [-0.05, 0.05], [-0.15, 0.15]])
    common = better.mean(axis=0)
    found = shrunk(pooled, np.array([1e9, 30.0, 0.0, 5.0]))[:, :, 0]
    np.testing.assert_allclose(found, [better[0], (better[1] + common) / 2, common, common], atol=1e-7)


def test_of_equals_the_C_nearest_to_1_is_taken_and_the_first_of_these():
    Cs = np.array([0.01, 0.1, 10.0, 0.01, 0.1, 10.0])
    values = np.array([[0.5, 0.5]] * 6)
    assert first_best(values, Cs, values[np.newaxis], 0.0) == (1, 0)
    values[[1, 4], 0] = 0.4
    assert first_best(values, Cs, values[np.newaxis], 0.0) == (1, 1)
    values[3, 1] = 0.6
    assert first_best(values, Cs, values[np.newaxis], 0.0) == (3, 1)


def test_what_the_mean_over_the_labels_says_of_rare_labels_is_uncertain():
    """The second candidate is ahead by 0.02 in the mean, with a standard error of 0.03 over three labels."""
    pooled = np.array([[0.5, 0.57], [0.4, 0.44], [0.3, 0.25]])[:, :, np.newaxis]
    assert uncertainty(pooled, 0.0, 1)[:, 0] == pytest.approx([np.std([0.07, 0.04, -0.05]) / np.sqrt(2), 0.0])
    assert uncertainty(pooled, 30.0, 1)[0, 0] == pytest.approx(uncertainty(pooled, 0.0, 1)[0, 0] / 2)
    known = np.concatenate([pooled, np.full_like(pooled[:1], np.nan)])
    np.testing.assert_allclose(uncertainty(known, 0.0, 1), uncertainty(pooled, 0.0, 1))
    assert not uncertainty(pooled[:1], 0.0, 1).any()  # one label, or several that are judged together
    Cs, values = np.array([1.0, 30.0]), shrunk(pooled, np.array([0.0, 1e9, 30.0]))
    doubts = [uncertainty(pooled, positives, 1) for positives in (0.0, 1e9)]
    assert first_best(values[0], Cs, values[:1], 0.0) == (1, 0)
    assert first_best(values[0], Cs, values[:1], 0.0, doubts[0]) == (0, 0)
    assert first_best(values[1], Cs, values[:1], 0.0, doubts[1]) == (1, 0)
