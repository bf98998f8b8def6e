"""Sequence tagging: every argmax against all sequences of tags; the estimator."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from structured_reference import dense, highest, optimum

from metrimax import _kernels
from metrimax.structured import SequenceTagger, StructuredProblem, sequence, word_features
from metrimax.structured.sequence import SequenceProblem, Sequences

seeds = st.integers(0, 2**32 - 1)


def random_sequences(rng, n, K, d, most):
    lengths = rng.integers(0, most + 1, size=n)
    rows = sparse.csr_array(rng.normal(size=(lengths.sum(), d)) * (rng.random((lengths.sum(), d)) < 0.6))
    X = Sequences(rows, np.concatenate(([0], np.cumsum(lengths))).astype(np.int64))
    return X, [rng.integers(K, size=length).astype(np.int32) for length in lengths]


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_tags_against_all_sequences(seed):
    rng = np.random.default_rng(seed)
    K, d = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    X, Y = random_sequences(rng, 4, K, d, 4)
    problem = SequenceProblem(K, d)
    w = rng.normal(size=problem.size(X, Y)) * rng.choice([0.0, 0.3, 3.0])
    for rescaling in ("margin", "slack"):
        found = problem.constraints(X, Y, w, rescaling=rescaling)
        loops = StructuredProblem.constraints(problem, X, Y, w, rescaling=rescaling)
        np.testing.assert_allclose(found.values(w), loops.values(w), atol=1e-10)
        np.testing.assert_allclose(found.losses, loops.losses)
        np.testing.assert_allclose(found.rows.toarray(), loops.rows.toarray(), atol=1e-12)
        for x, y, reached in zip(X, Y, found.values(w), strict=True):
            outputs = [np.array(z, dtype=np.int32) for z in itertools.product(range(K), repeat=len(y))]
            assert reached == pytest.approx(highest(problem, x, y, w, outputs, rescaling), abs=1e-9)
    predicted = problem.outputs(X, w)
    assert [z.tolist() for z in predicted] == [problem.argmax(x, w).tolist() for x in X]
    for x, z in zip(X, predicted, strict=True):
        outputs = [np.array(z, dtype=np.int32) for z in itertools.product(range(K), repeat=x.shape[0])]
        best = max(w @ dense(problem.joint_feature(x, output)) for output in outputs)
        assert w @ dense(problem.joint_feature(x, z)) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("solver", ["cached", "bundle"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_tagger_against_a_conic_solver_over_all_sequences(C, solver):
    rng = np.random.default_rng(2)
    y = [rng.integers(3, size=rng.integers(1, 5)) for _ in range(12)]
    X = [np.eye(3)[tags] + rng.normal(size=(len(tags), 3)) for tags in y]
    tagger = SequenceTagger(C=C, tol=1e-5, solver=solver).fit(X, y)
    inputs = tagger._inputs(X)
    sequences = [[np.array(z) for z in itertools.product(range(3), repeat=len(tags))] for tags in y]
    best = optimum(tagger.problem_, list(zip(inputs, tagger._outputs(y, inputs), sequences, strict=True)), C)
    assert tagger.dual_bound_ <= best * (1 + 1e-6)
    assert tagger.objective_ >= best * (1 - 1e-6)
    assert tagger.objective_ - tagger.dual_bound_ <= 1e-5 * C * len(y)


def test_threads_change_no_path():
    rng = np.random.default_rng(0)
    K, lengths = 12, rng.integers(0, 60, size=400)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    unary, transition, start = rng.normal(size=(offsets[-1], K)), rng.normal(size=(K, K)), rng.normal(size=K)
    one, three = (_kernels.viterbi(unary, transition, start, offsets, threads) for threads in (1, 3))
    np.testing.assert_array_equal(one, three)
    assert one.dtype == np.int32


@pytest.mark.parametrize("block", [1, 3, 7, 1000])
def test_constraints_are_put_together_in_blocks(block, monkeypatch):
    rng = np.random.default_rng(block)
    X, Y = random_sequences(rng, 30, 3, 4, 6)
    problem = SequenceProblem(3, 4)
    monkeypatch.setattr(sequence, "BLOCK", block)
    for w in (np.zeros(problem.size(X, Y)), rng.normal(size=problem.size(X, Y))):
        found, loops = problem.constraints(X, Y, w), StructuredProblem.constraints(problem, X, Y, w)
        np.testing.assert_allclose(found.rows.toarray(), loops.rows.toarray(), atol=1e-12)
        np.testing.assert_array_equal(found.losses, loops.losses)


def test_of_equal_paths_each_tag_is_the_first_from_the_end():
    """The last tag is the first of the highest, and so is each tag before it, given those that follow."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        K, length = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        unary, transition, start = (rng.integers(2, size=shape) / 1.0 for shape in ((length, K), (K, K), K))
        offsets = np.array([0, length], dtype=np.int64)

        def score(z, unary=unary, transition=transition, start=start):
            return start[z[0]] + unary[range(len(z)), z].sum() + sum(transition[a, b] for a, b in itertools.pairwise(z))

        paths = list(itertools.product(range(K), repeat=length))
        best = max(map(score, paths))
        first = min((z for z in paths if score(z) == best), key=lambda z: z[::-1])
        assert tuple(_kernels.viterbi(unary, transition, start, offsets, 1).tolist()) == first


def test_the_best_path_with_so_many_mistakes():
    rng = np.random.default_rng(0)
    K, length = 3, 4
    unary, transition, start = rng.normal(size=(length, K)), rng.normal(size=(K, K)), rng.normal(size=K)
    truth = rng.integers(K, size=length).astype(np.int32)
    scores, paths = _kernels.viterbi_by_mistakes(unary, transition, start, truth)

    def score(z):
        return start[z[0]] + unary[range(length), z].sum() + sum(transition[a, b] for a, b in itertools.pairwise(z))

    for m in range(length + 1):
        best = max(score(z) for z in itertools.product(range(K), repeat=length) if (np.array(z) != truth).sum() == m)
        assert scores[m] == pytest.approx(best)
        assert score(paths[m].tolist()) == pytest.approx(best)
        assert (paths[m] != truth).sum() == m
    alone, _ = _kernels.viterbi_by_mistakes(unary[:, :1].copy(), np.zeros((1, 1)), np.zeros(1), np.zeros(4, np.int32))
    np.testing.assert_array_equal(alone[1:], -np.inf)  # with one tag nothing else can be wrong


@pytest.mark.parametrize(
    "change",
    [
        {"transition": np.zeros((3, 2))},
        {"start": np.zeros(3)},
        {"offsets": np.array([0, 4], dtype=np.int64)},
        {"offsets": np.array([0, 7, 5], dtype=np.int64)},
        {"offsets": np.array([], dtype=np.int64)},
    ],
)
def test_viterbi_checks_its_arguments(change):
    arguments = {
        "unary": np.zeros((5, 2)),
        "transition": np.zeros((2, 2)),
        "start": np.zeros(2),
        "offsets": np.array([0, 2, 5], dtype=np.int64),
        "n_threads": 1,
    }
    assert len(_kernels.viterbi(**arguments)) == 5
    with pytest.raises(ValueError, match="viterbi"):
        _kernels.viterbi(**arguments | change)
    with pytest.raises(TypeError):
        _kernels.viterbi(**arguments | {"unary": np.zeros((5, 2), dtype=np.float32)})


WORDS = [["the", "dog", "barks"], ["A", "cat", "sees", "the", "dog"], ["dogs", "bark"], []]
TAGS = [["D", "N", "V"], ["D", "N", "V", "D", "N"], ["N", "V"], []]


@pytest.mark.parametrize("solver", ["cached", "bundle"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_tagger(solver, rescaling):
    tagger = SequenceTagger(features=word_features, solver=solver, rescaling=rescaling).fit(WORDS, TAGS)
    assert tagger.predict(WORDS) == TAGS
    assert tagger.score(WORDS, TAGS) == 1.0
    assert tagger.gap_ <= 1e-3
    assert tagger.transition_.shape == (3, 3)
    assert tagger.start_.shape == (3,)
    assert tagger.emission_.shape == (len(tagger.vectorizer_.feature_names_), 3)
    unseen = tagger.score([["the", "dog"]], [["D", "UNSEEN"]])
    assert unseen == 0.5  # a tag never seen counts as wrong


def test_tagger_takes_matrices_dense_and_sparse():
    rng = np.random.default_rng(0)
    y = [rng.integers(3, size=6) for _ in range(30)]
    X = [np.eye(3)[tags] + 0.5 * rng.normal(size=(6, 3)) for tags in y]
    dense_fit = SequenceTagger().fit(X, y)
    sparse_fit = SequenceTagger(n_jobs=2).fit([sparse.csr_matrix(x) for x in X], y)
    np.testing.assert_allclose(dense_fit.coef_, sparse_fit.coef_, atol=1e-8)
    assert dense_fit.vectorizer_ is None
    assert dense_fit.score(X, y) == np.mean(np.concatenate(dense_fit.predict(X)) == np.concatenate(y))
    assert dense_fit.score(X, y) > 0.8


def test_nothing_to_predict():
    for tagger in (
        SequenceTagger(features=word_features).fit(WORDS, TAGS),
        SequenceTagger().fit([np.eye(2)], [[0, 1]]),
    ):
        assert tagger.predict([]) == []


def test_tagger_says_what_is_wrong():
    X, y = [np.eye(3), np.ones((2, 3))], [[0, 1, 2], [1, 1]]
    fitted = SequenceTagger().fit(X, y)
    with pytest.raises(ValueError, match=r"sequence 1: expected one tag for each of its 2 tokens, got 1"):
        SequenceTagger().fit(X, [[0, 1, 2], [1]])
    for flat in ([0, 1], np.array([0, 1])):
        with pytest.raises(ValueError, match=r"sequence 0: expected a list of tags, one for each of its tokens, got"):
            SequenceTagger().fit(X, flat)
        with pytest.raises(ValueError, match=r"sequence 0: expected a list of tags, one for each of its tokens, got"):
            fitted.score(X, flat)
    for inputs, outputs, name in ((X, None, "y"), (None, y, "X"), (X, iter(y), "y")):
        with pytest.raises(ValueError, match=f"expected {name} as a sequence, one element for every example, got"):
            SequenceTagger().fit(inputs, outputs)
    with pytest.raises(ValueError, match="expected C such that its product with the size of the sample"):
        SequenceTagger(C=1e308).fit(X, y)
    with pytest.raises(ValueError, match=r"sequence 1: expected a matrix \(length, 3\) .* got shape \(2, 2\)"):
        fitted.predict([np.eye(3), np.ones((2, 2))])
    with pytest.raises(ValueError, match=r"sequence 0: expected a matrix \(length, 3\) .* got list"):
        fitted.predict([[{"a": 1}]])
    with pytest.raises(ValueError, match="sequence 1: expected finite features, got NaN"):
        SequenceTagger().fit([np.eye(3), np.full((2, 3), np.nan)], y)
    with pytest.raises(TypeError, match=r"sequence 0: expected a dict .* got str; for words, .*word_features"):
        SequenceTagger().fit(WORDS, TAGS)
    with pytest.raises(TypeError, match="expected a list of words, got the string 'the dog': split it"):
        SequenceTagger(features=word_features).fit(["the dog"], [["D", "N"]])
    with pytest.raises(ValueError, match="empty sequences only"):
        SequenceTagger().fit([[]], [[]])


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ([[1, 1, 1, 1], ["a", "a", 1, 1]] * 3, r"sequence 0: expected tags .* got 1 \(int\)"),
        ([["a", "a", 1, 1]] * 6, r"sequence 0: expected tags .* got 1 \(int\)"),  # np.unique makes it "1"
        ([[0.0, 1.0, 2, 1], [np.nan, 1.0, 2, 1]] * 3, r"sequence 1: expected tags .* got nan \(float\)"),
        ([["a", "b", "a", np.nan]] * 6, r"sequence 0: expected tags .* got nan \(float\)"),
        ([["a", None, "a", "b"]] * 6, r"expected tags that are all strings .* cannot be put in order .*NoneType"),
        ([np.array([np.nan, 1.0, 2.0, 1.0])] * 6, r"sequence 0: expected tags .* got nan \(float\)"),
    ],
)
def test_tags_that_cannot_be_told_apart(tags, message):
    with pytest.raises(ValueError, match=message):
        SequenceTagger().fit([np.eye(4)] * 6, tags)


@pytest.mark.parametrize(
    "tags", [[1, 2.0, 1, 2], [True, 2, 1, 2], np.array(list("abab")), np.array([1, 2, 1, 2], "f4")]
)
def test_tags_of_any_one_kind(tags):
    X = [np.eye(4)] * 2
    tagger = SequenceTagger(C=10.0).fit(X, [tags] * 2)
    assert tagger.predict(X) == [list(tags)] * 2
    assert tagger.score(X, [tags] * 2) == 1.0


@pytest.mark.parametrize("empty", [[], np.empty((0, 3))])
def test_tags_of_no_tokens(empty):
    with pytest.raises(ValueError, match="expected at least one token, got empty sequences only, with 1 tag"):
        SequenceTagger().fit([empty], [["a"]])
