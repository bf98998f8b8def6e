"""Structured problems with the score of a given machine as one more feature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from test_structured import MultiClass, SparseMultiClass, sample
from test_tagging import random_sequences

from metrimax.structured import AdaptedProblem, StructuredProblem, StructuredSVM
from metrimax.structured.sequence import SequenceProblem


class ByHand(MultiClass):
    """What an adapted problem is, spelt out."""

    def __init__(self, auxiliary, B):
        self.auxiliary, self.B = auxiliary, B

    def together(self, w):
        return w[:-1] + w[-1] * self.auxiliary / np.sqrt(self.B)

    def joint_feature(self, x, y):
        features = super().joint_feature(x, y)
        return np.append(features, features @ self.auxiliary / np.sqrt(self.B))

    def loss_augmented_argmax(self, x, y, w):
        return super().loss_augmented_argmax(x, y, self.together(w))

    def slack_rescaled_argmax(self, x, y, w):
        return super().slack_rescaled_argmax(x, y, self.together(w))


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("base", [MultiClass(), SparseMultiClass()])
def test_the_same_as_a_feature_of_ones_own(base, rescaling):
    X, y = sample()
    auxiliary = np.random.default_rng(1).normal(size=4 * X.shape[1])
    options = {"tol": 1e-6, "rescaling": rescaling}
    ours = StructuredSVM(AdaptedProblem(base, auxiliary, B=0.3), **options).fit(X, y)
    by_hand = StructuredSVM(ByHand(auxiliary, 0.3), **options).fit(X, y)
    assert ours.objective_ == pytest.approx(by_hand.objective_, rel=1e-5)
    np.testing.assert_allclose(ours.coef_, by_hand.coef_, atol=1e-2)
    features = ours.problem_.joint_feature(X[0], 1).toarray()[0]
    np.testing.assert_allclose(features, by_hand.problem_.joint_feature(X[0], 1))
    assert ours.problem_.argmax(X[0], ours.coef_) == base.argmax(X[0], ours.problem_.weights(ours.coef_))
    assert ours.score(X, y) == -np.mean([base.loss(c, z) for c, z in zip(y, ours.predict(X), strict=True)])


def test_with_a_small_C_it_is_the_given_machine():
    X, y = sample()
    given = StructuredSVM(MultiClass(), C=1.0).fit(X, y)
    adapted = StructuredSVM(AdaptedProblem(MultiClass(), given.coef_, B=1e-3), C=1e-6, tol=1e-9).fit(X, y)
    assert adapted.coef_[-1] > 0
    assert adapted.predict(X) == given.predict(X)


def test_problems_that_see_all_examples_at_once():
    rng = np.random.default_rng(0)
    X, y = random_sequences(rng, 8, 3, 4, 6)
    problem = SequenceProblem(3, 4)
    adapted = AdaptedProblem(problem, rng.normal(size=problem.size(X, y)))
    w = rng.normal(size=problem.size(X, y) + 1)
    together, apart = adapted.constraints(X, y, w), StructuredProblem.constraints(adapted, X, y, w)
    np.testing.assert_allclose(together.values(w), apart.values(w))
    np.testing.assert_allclose(together.rows.toarray(), apart.rows.toarray(), atol=1e-12)
    for one, other in zip(adapted.outputs(X, w), StructuredProblem.outputs(adapted, X, w), strict=True):
        np.testing.assert_array_equal(one, other)
    assert sparse.issparse(adapted.joint_feature(X[0], y[0]))
    assert adapted.releases_gil


def test_says_what_is_wrong():
    X, y = sample()
    with pytest.raises(ValueError, match=r"expected a finite B > 0, got 0"):
        AdaptedProblem(MultiClass(), np.ones(3), B=0)
    with pytest.raises(ValueError, match="expected finite auxiliary weights"):
        AdaptedProblem(MultiClass(), np.full(4 * X.shape[1], np.nan))
    with pytest.raises(ValueError, match=rf"expected auxiliary weights for {4 * X.shape[1]} joint features, got shape"):
        StructuredSVM(AdaptedProblem(MultiClass(), np.ones(3))).fit(X, y)
