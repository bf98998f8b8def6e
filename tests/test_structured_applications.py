"""Tagging, parsing and clustering: every argmax against a search through all outputs; the estimators."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from metrimax import _kernels
from metrimax.protocols import Status
from metrimax.structured import (
    CFGParser,
    Grammar,
    SequenceTagger,
    StructuredProblem,
    SupervisedClustering,
    binarise,
    constituent_f1,
    pair_differences,
    word_features,
)
from metrimax.structured.clustering import ClusteringProblem, correlation_clustering, merge, same
from metrimax.structured.parsing import Parse, ParsingProblem
from metrimax.structured.sequence import SequenceProblem, Sequences

seeds = st.integers(0, 2**32 - 1)


def highest(problem, x, y, w, outputs, rescaling):
    """The highest value of a constraint, by all outputs."""
    here = w @ dense(problem.joint_feature(x, y))
    margins = [(problem.loss(y, z), w @ dense(problem.joint_feature(x, z)) - here) for z in outputs]
    return max(loss + margin if rescaling == "margin" else loss * (1 + margin) for loss, margin in margins)


def value(problem, x, y, z, w, rescaling="margin"):
    return highest(problem, x, y, w, [z], rescaling)


def dense(feature):
    return feature.toarray().ravel() if sparse.issparse(feature) else feature


# --- sequences


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


def test_threads_change_no_path():
    rng = np.random.default_rng(0)
    K, lengths = 12, rng.integers(0, 60, size=400)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    unary, transition, start = rng.normal(size=(offsets[-1], K)), rng.normal(size=(K, K)), rng.normal(size=K)
    one, three = (_kernels.viterbi(unary, transition, start, offsets, threads) for threads in (1, 3))
    np.testing.assert_array_equal(one, three)
    assert one.dtype == np.int32


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
    X, y = clustered_sets(n=2)
    tree = ("S", ("A", "a"), ("B", "b"))
    tagger = SequenceTagger(features=word_features).fit(WORDS, TAGS)
    fitted = [tagger, SequenceTagger().fit([np.eye(2)], [[0, 1]]), CFGParser().fit([["a", "b"]], [tree])]
    for model in [*fitted, SupervisedClustering().fit(X, y)]:
        assert model.predict([]) == []


def test_tagger_says_what_is_wrong():
    X, y = [np.eye(3), np.ones((2, 3))], [[0, 1, 2], [1, 1]]
    fitted = SequenceTagger().fit(X, y)
    with pytest.raises(ValueError, match=r"sequence 1: expected one tag for each of its 2 tokens, got 1"):
        SequenceTagger().fit(X, [[0, 1, 2], [1]])
    with pytest.raises(ValueError, match=r"sequence 1: expected a matrix \(length, 3\) .* got shape \(2, 2\)"):
        fitted.predict([np.eye(3), np.ones((2, 2))])
    with pytest.raises(ValueError, match=r"sequence 0: expected a matrix \(length, 3\) .* got list"):
        fitted.predict([[{"a": 1}]])
    with pytest.raises(ValueError, match="sequence 1: expected finite features, got NaN"):
        SequenceTagger().fit([np.eye(3), np.full((2, 3), np.nan)], y)
    with pytest.raises(TypeError, match=r"sequence 0: expected a dict .* got str; for words, .*word_features"):
        SequenceTagger().fit(WORDS, TAGS)
    with pytest.raises(ValueError, match="empty sequences only"):
        SequenceTagger().fit([[]], [[]])


# --- trees

RULES = [
    *(("S", a, b) for a, b in itertools.product(["A", "B", "S"], repeat=2)),
    *(("A", a, b) for a, b in [("A", "B"), ("B", "A"), ("S", "B")]),
    ("B", "A", "A"),
    *(("A", "a"), ("B", "a"), ("B", "b"), ("A", "c"), ("S", "c")),
]
GRAMMAR = Grammar(RULES, root="S")


@cache
def all_trees(words, symbol="S"):
    """Every tree of the grammar over the words; those it does not know have any symbol that stands above words."""
    if len(words) == 1:
        known = [rule[0] for rule in GRAMMAR.rules if len(rule) == 2 and rule[1] == words[0]]
        symbols = known or [GRAMMAR.symbols[k] for k in GRAMMAR.preterminals]
        return [(symbol, words[0])] if symbol in symbols else []
    return [
        (symbol, left, right)
        for rule in GRAMMAR.rules
        if len(rule) == 3 and rule[0] == symbol
        for split in range(1, len(words))
        for left in all_trees(words[:split], rule[1])
        for right in all_trees(words[split:], rule[2])
    ]


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_parses_against_all_trees(seed):
    rng = np.random.default_rng(seed)
    words = tuple(rng.choice(["a", "b", "c"], size=rng.integers(1, 6)).tolist())
    problem = ParsingProblem(GRAMMAR)
    w = rng.normal(size=len(GRAMMAR.rules)) * rng.choice([0.0, 0.3, 3.0])
    trees = all_trees(words)
    if not trees:
        assert problem.argmax(words, w) is None
        return
    parses = [problem.encode(words, tree, 0) for tree in trees]
    assert [problem.decode(words, parse) for parse in parses] == trees
    best = problem.argmax(words, w)
    scores = [w @ problem.joint_feature(words, z) for z in parses]
    assert w @ problem.joint_feature(words, best) == pytest.approx(max(scores))
    assert problem.decode(words, best) in trees
    k = int(rng.integers(len(trees)))
    violator = problem.loss_augmented_argmax(words, parses[k], w)
    assert problem.decode(words, violator) in trees
    assert value(problem, words, parses[k], violator, w) == pytest.approx(
        highest(problem, words, parses[k], w, parses, "margin")
    )
    for tree, parse in zip(trees, parses, strict=True):
        assert problem.loss(parses[k], parse) == pytest.approx(1 - constituent_f1(trees[k], tree))


def test_unknown_words_may_be_anything():
    problem = ParsingProblem(GRAMMAR)
    w = np.random.default_rng(0).normal(size=len(GRAMMAR.rules))
    words = ("a", "?", "b")
    best = max((sum(w[GRAMMAR.index[r]] for r in rules(tree) if r in GRAMMAR.index), tree) for tree in all_trees(words))
    assert problem.decode(words, problem.argmax(words, w)) == best[1]


def rules(tree):
    if len(tree) == 2:
        return [tree]
    return [(tree[0], tree[1][0], tree[2][0]), *rules(tree[1]), *rules(tree[2])]


def test_rule_counts_are_the_features():
    tree = ("S", ("A", ("A", "a"), ("B", "a")), ("B", "b"))
    problem = ParsingProblem(GRAMMAR)
    counts = problem.joint_feature(("a", "a", "b"), problem.encode(("a", "a", "b"), tree, 0))
    expected = [("S", "A", "B"), ("A", "A", "B"), ("A", "a"), ("B", "a"), ("B", "b")]
    assert {GRAMMAR.rules[k]: n for k, n in enumerate(counts) if n} == dict.fromkeys(expected, 1.0)


@pytest.mark.parametrize("solver", ["cached", "cutting_plane"])
def test_parser(solver):
    """Two ways to attach a phrase, told apart by the verb's kind: rules alone can tell."""
    np_ = ("NP", ("D", "d"), ("N", "n"))
    pp = ("PP", ("P", "p"), np_)
    high = ("S", np_, ("VP", ("VP", ("V", "v"), np_), pp))
    low = ("S", np_, ("VP", ("U", "u"), ("XP", np_, pp)))
    X = [list("dnvdnpdn"), list("dnudnpdn")]
    grammar = Grammar(
        {rule for tree in (high, low) for rule in rules(tree)} | {("VP", "V", "XP"), ("VP", "U", "NP")}, "S"
    )
    parser = CFGParser(grammar=grammar, C=10.0, solver=solver).fit(X, [high, low])
    assert parser.predict(X) == [high, low]
    assert parser.score(X, [high, low]) == 1.0
    assert parser.gap_ <= 1e-3
    assert CFGParser().fit(X, [high, low]).grammar_.root == "S"
    threads = CFGParser(grammar=grammar, C=10.0, solver=solver, n_jobs=2).fit(X, [high, low])
    np.testing.assert_allclose(threads.coef_, parser.coef_)
    assert parser.predict([["d"]]) == [None]
    assert parser.score([["d", "n"]], [("S", ("D", "d"), ("N", "n"))]) == 0.0


def test_other_trees_become_binary():
    assert binarise(("S", ("NP", ("PRP", "he")), ("VP", ("VBZ", "eats")), (".", "."))) == (
        "S",
        ("NP+PRP", "he"),
        ("S|", ("VP+VBZ", "eats"), (".", ".")),
    )
    assert binarise(("X", ("A", "a"), ("B", "b"), ("C", "c"), ("D", "d"))) == (
        "X",
        ("A", "a"),
        ("X|", ("B", "b"), ("X|", ("C", "c"), ("D", "d"))),
    )
    assert binarise(("S", ("VP", ("A", "a"), ("B", "b")))) == ("S+VP", ("A", "a"), ("B", "b"))


def test_parser_says_what_is_wrong():
    tree = ("S", ("A", "a"), ("B", "b"))
    with pytest.raises(ValueError, match=r"tree 1: its rule S -> B A is not in the grammar"):
        CFGParser(grammar=Grammar([("S", "A", "B"), ("A", "a"), ("B", "b")], "S")).fit(
            [["a", "b"], ["b", "a"]], [tree, ("S", ("B", "b"), ("A", "a"))]
        )
    with pytest.raises(ValueError, match=r"tree 0: expected the words of the sentence as its leaves, got \['a', 'b'\]"):
        CFGParser().fit([["a", "a"]], [tree])
    with pytest.raises(ValueError, match="tree 0: expected 'S' at the top, got 'A'"):
        CFGParser(grammar=GRAMMAR).fit([["a"]], [("A", "a")])
    with pytest.raises(ValueError, match="same symbol at the top, got S, T"):
        CFGParser().fit([["a", "b"], ["a", "b"]], [tree, ("T", *tree[1:])])
    for broken in (("S", ("A", "a")), ("S", ("A", "a"), ("B", "b"), ("B", "b")), "S"):
        with pytest.raises(ValueError, match=r"tree 0: expected nodes .*binarise"):
            CFGParser().fit([["a", "b"]], [broken])
    with pytest.raises(ValueError, match=r"expected rules \(parent, left, right\) or \(parent, word\)"):
        Grammar([("S",)], "S")
    with pytest.raises(ValueError, match="expected a root among the symbols S, got 'T'"):
        Grammar([("S", "a")], "T")
    with pytest.raises(ValueError, match="at least one tree"):
        Grammar.from_trees([])


def cky_arguments():
    return {
        "parent": np.array([0], dtype=np.int32),
        "left": np.array([1], dtype=np.int32),
        "right": np.array([1], dtype=np.int32),
        "weight": np.zeros(1),
        "lexical": np.array([[-np.inf, 0.0]] * 2),
        "root": 0,
        "gold": np.full((2, 2), -1, dtype=np.int32),
        "price": 0.5,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"left": np.array([2], dtype=np.int32)},
        {"right": np.array([-1], dtype=np.int32)},
        {"parent": np.array([0, 0], dtype=np.int32)},
        {name: np.array([1, 0], dtype=np.int32) for name in ("parent", "left", "right")} | {"weight": np.zeros(2)},
        {"weight": np.zeros(2)},
        {"gold": np.full((2, 1), -1, dtype=np.int32)},
        {"root": 2},
        {"lexical": np.zeros((0, 2)), "gold": np.zeros((0, 0), dtype=np.int32)},
    ],
)
def test_cky_checks_its_arguments(change):
    score, nodes, words = _kernels.cky(**cky_arguments())
    assert score == 0.5
    assert nodes.tolist() == [[0, 0, 1, 2]]
    assert words.tolist() == [1, 1]
    with pytest.raises(ValueError, match="cky"):
        _kernels.cky(**cky_arguments() | change)


def test_a_parse_without_constituents_has_no_loss():
    problem = ParsingProblem(GRAMMAR)
    alone = Parse(np.empty((0, 4), dtype=np.int32), np.array([GRAMMAR.number["S"]], dtype=np.int32))
    assert problem.loss(alone, problem.loss_augmented_argmax(["c"], alone, np.zeros(len(GRAMMAR.rules)))) == 0
    assert constituent_f1(("S", "c"), ("S", "c")) == 1.0


# --- clusterings


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


def test_clustering_says_what_is_wrong():
    X, y = clustered_sets(n=2)
    with pytest.raises(ValueError, match="unknown method 'best': expected one of greedy, relaxed, exact"):
        SupervisedClustering(method="best").fit(X, y)
    with pytest.raises(ValueError, match="set 1: expected the clusters of its 7 items, got 3"):
        SupervisedClustering().fit(X, [y[0], y[1][:3]])
    with pytest.raises(ValueError, match=r"set 0: expected the features of all m .* got 7 rows"):
        SupervisedClustering(pairs="precomputed").fit(X, y)
    with pytest.raises(ValueError, match="set 1: expected 4 features of a pair, as in the first set, got 3"):
        SupervisedClustering().fit([X[0], X[1][:, :2]], y)
    with pytest.raises(ValueError, match="set 0: expected finite features"):
        SupervisedClustering().fit([np.full((7, 3), np.nan), X[1]], y)
    with pytest.raises(ValueError, match="set 1: expected at least one item"):
        SupervisedClustering().fit([X[0], np.empty((0, 3))], [y[0], []])
    with pytest.raises(ValueError, match=r"a set of items as a matrix \(m, d\), got shape \(7,\)"):
        SupervisedClustering().fit([X[0][:, 0]], y[:1])
    with pytest.raises(ValueError, match=r"set 0: .* features of the pairs \(pairs, q\), got shape \(3,\)"):
        SupervisedClustering(pairs=lambda items: np.ones(3)).fit(X, y)
    with pytest.raises(ValueError, match="pairs as a function or \"precomputed\", got 'all'"):
        SupervisedClustering(pairs="all").fit(X, y)
