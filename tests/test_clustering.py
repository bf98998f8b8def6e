"""Supervised clustering: every argmax against all clusterings; the estimator and its certificates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from structured_reference import highest, value

from metrimax.protocols import Status
from metrimax.structured import (
    SupervisedClustering,
    pair_differences,
)
from metrimax.structured.clustering import ClusteringProblem, correlation_clustering, merge, same

seeds = st.integers(0, 2**32 - 1)


def all_clusterings(m):
    """Restricted growth strings: every clustering of m items once."""

    def grow(start):
        if len(start) == m:
            yield np.array(start, dtype=int)
            return
        for k in range(max(start, default=-1) + 2):
            yield from grow([*start, k])

    return list(grow([]))


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_clusterings_against_all(seed):
    rng = np.random.default_rng(seed)
    m, q = int(rng.integers(1, 6)), 2
    x = rng.normal(size=(m * (m - 1) // 2, q))
    y = same(rng.integers(3, size=m))
    w = rng.normal(size=q) * rng.choice([0.0, 1.0, 5.0])
    outputs = [same(clusters) for clusters in all_clusterings(m)]
    reached = {}
    for method in ("greedy", "relaxed", "exact"):
        problem = ClusteringProblem(method)
        z = problem.loss_augmented_argmax(x, y, w)
        assert z.min(initial=0) >= 0
        assert z.max(initial=0) <= 1
        reached[method] = value(problem, x, y, z, w)
        clusters = problem.argmax(x, w)
        assert len(clusters) == m  # a clustering, whatever the method
    best = highest(ClusteringProblem("exact"), x, y, w, outputs, "margin")
    assert reached["exact"] == pytest.approx(best, abs=1e-6)
    assert reached["relaxed"] >= best - 1e-6
    assert reached["greedy"] <= best + 1e-9
    predicted = same(ClusteringProblem("exact").argmax(x, w)) @ (x @ w)
    assert predicted == pytest.approx(max(z @ (x @ w) for z in outputs), abs=1e-6)


def test_relaxation_may_be_fractional():
    """A hub that three others are drawn to, each of which repels the others: a half everywhere is best."""
    i, _ = np.triu_indices(4, 1)
    similarity = np.where(i == 0, 1.0, -1.0)
    relaxed, exact = (correlation_clustering(similarity, whole=whole) for whole in (False, True))
    assert similarity @ relaxed == pytest.approx(1.5)
    assert similarity @ exact == pytest.approx(1.0)
    problem = ClusteringProblem("relaxed")
    clusters = problem.argmax(similarity[:, None], np.ones(1))
    assert same(clusters) @ similarity == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e21])
def test_the_scale_of_similarities_does_not_matter(scale):
    """The solver's tolerances are absolute."""
    together = np.array([same(clusters) for clusters in all_clusterings(5)])
    for seed in range(30):
        similarity = np.random.default_rng(seed).normal(size=10)
        best = (together @ similarity).max()
        exact, relaxed = (correlation_clustering(scale * similarity, whole=whole) for whole in (True, False))
        assert similarity @ exact == pytest.approx(best, rel=1e-9)
        assert similarity @ relaxed >= best - 1e-6


def test_no_similarity_at_all():
    np.testing.assert_array_equal(correlation_clustering(np.zeros(3), whole=True), np.zeros(3))


def test_greedy_merging():
    assert merge(np.array([1.0, -2.0, -2.0])).tolist() == [0, 0, 1]
    assert merge(np.array([3.0, -2.0, 1.5])).tolist() == [0, 0, 1]  # together they are drawn to 2 by 1.5 - 2 < 0
    assert merge(np.array([3.0, -1.0, 1.5])).tolist() == [0, 0, 0]
    assert merge(np.empty(0)).tolist() == [0]


def clustered_sets(n=15, m=7, seed=0):
    rng = np.random.default_rng(seed)
    y = [rng.integers(3, size=m) for _ in range(n)]
    centres = [rng.normal(size=(3, 2)) * 3 for _ in range(n)]
    X = [c[k] + 0.7 * rng.normal(size=(m, 2)) for c, k in zip(centres, y, strict=True)]
    return [np.column_stack((x, rng.normal(size=m))) for x in X], y


STATUS = {"greedy": Status.UNCERTIFIED, "relaxed": Status.RELAXED, "exact": Status.CONVERGED}


def test_clustering_and_what_its_certificates_mean():
    X, y = clustered_sets()
    models = {name: SupervisedClustering(method=name, C=10.0).fit(X, y) for name in STATUS}
    assert {name: model.status_ for name, model in models.items()} == STATUS
    for model in models.values():
        assert model.score(X, y) > 0.8
        assert model.gap_ <= 1e-3 or model.status_ is Status.UNCERTIFIED
    # a relaxed risk is never below the exact one, and greedy bounds hold for the exact problem
    slack = 1e-6 * models["exact"].objective_
    assert models["relaxed"].objective_ >= models["exact"].dual_bound_ - slack
    assert models["greedy"].dual_bound_ <= models["exact"].objective_ + slack
    assert models["exact"].dual_bound_ <= models["relaxed"].objective_ + slack


def test_clustering_of_pairs_given():
    X, y = clustered_sets(n=5)
    one = SupervisedClustering().fit(X, y)
    two = SupervisedClustering(pairs="precomputed").fit([pair_differences(x) for x in X], y)
    np.testing.assert_allclose(one.coef_, two.coef_)
    assert [z.tolist() for z in one.predict(X)] == [z.tolist() for z in two.predict([pair_differences(x) for x in X])]
    assert one.predict(X)[0][0] == 0
    named = SupervisedClustering().fit(X, [np.array(list("xyz"))[k] for k in y])
    np.testing.assert_allclose(one.coef_, named.coef_)


def test_nothing_to_predict():
    assert SupervisedClustering().fit(*clustered_sets(n=2)).predict([]) == []


def test_clustering_says_what_is_wrong():
    X, y = clustered_sets(n=2)
    with pytest.raises(ValueError, match="unknown method 'best': expected one of greedy, relaxed, exact"):
        SupervisedClustering(method="best").fit(X, y)
    with pytest.raises(ValueError, match="set 1: expected the clusters of its 7 items, got 3"):
        SupervisedClustering().fit(X, [y[0], y[1][:3]])
    with pytest.raises(ValueError, match=r"set 0: expected one cluster for each of its items, got shape \(7, 2\)"):
        SupervisedClustering().fit(X, [np.column_stack((clusters, clusters)) for clusters in y])
    with pytest.raises(ValueError, match=r"set 0: expected the features of all m .* got 7 rows"):
        SupervisedClustering(pairs="precomputed").fit(X, y)
    with pytest.raises(ValueError, match="set 1: expected 4 features of a pair, as in the first set, got 3"):
        SupervisedClustering().fit([X[0], X[1][:, :2]], y)
    with pytest.raises(ValueError, match="set 0: expected finite features"):
        SupervisedClustering().fit([np.full((7, 3), np.nan), X[1]], y)
    for one in (X[0], X[0][:, 0]):  # one set, not a list of them
        with pytest.raises(ValueError, match=r"set 0: expected its items as a matrix .* one matrix for each set"):
            SupervisedClustering().fit(one, np.arange(len(one)))
    with pytest.raises(ValueError, match="set 1: expected at least one item"):
        SupervisedClustering().fit([X[0], np.empty((0, 3))], [y[0], []])
    with pytest.raises(ValueError, match=r"set 0: expected its items as a matrix \(m, d\), got shape \(7,\)"):
        SupervisedClustering().fit([X[0][:, 0]], y[:1])
    with pytest.raises(ValueError, match=r"set 0: .* features of the pairs \(pairs, q\), got shape \(3,\)"):
        SupervisedClustering(pairs=lambda items: np.ones(3)).fit(X, y)
    with pytest.raises(ValueError, match="pairs as a function or \"precomputed\", got 'all'"):
        SupervisedClustering(pairs="all").fit(X, y)


def test_a_fitted_clustering_says_what_is_wrong():
    X, y = clustered_sets(n=3, m=2)
    model = SupervisedClustering(C=10.0).fit(X, y)
    assert model.score(X, y) == np.mean([same(a) == same(b) for a, b in zip(y, model.predict(X), strict=True)])
    with pytest.raises(ValueError, match="set 0: expected the clusters of its 2 items, got 1"):
        model.score(X[:1], [[0]])
    with pytest.raises(ValueError, match="set 1: expected the clusters of its 2 items, got 3"):
        model.score(X[:2], [y[0], [0, 0, 1]])
    with pytest.raises(ValueError, match="set 0: expected 4 features of a pair, as in training, got 6"):
        model.predict([np.ones((3, 5))])
    with pytest.raises(ValueError, match="set 1: expected 4 features of a pair, as in training, got 6"):
        model.score([X[0], np.ones((2, 5))], y[:2])
    with pytest.raises(NotFittedError):
        SupervisedClustering().score(X, y)
    assert len(model.fit([x[:, :1] for x in X], y).coef_) == 2  # another fit may have other features
