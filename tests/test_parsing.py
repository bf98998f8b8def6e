"""Parsing: every argmax against all trees; the estimator, and trees as its users have them."""

from __future__ import annotations

import itertools
import sys
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structured_reference import highest, optimum, value

from metrimax import _kernels
from metrimax.protocols import Status
from metrimax.structured import (
    CFGParser,
    Grammar,
    binarise,
    constituent_f1,
    constituents,
    unbinarise,
)
from metrimax.structured.grammar import Parse, walk
from metrimax.structured.parsing import ParsingProblem

seeds = st.integers(0, 2**32 - 1)


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


def lengths(words, start, end):
    """Features of spans: their length, and the word at each end."""
    return {f"length {end - start}": 1.0, f"first {words[start]}": 0.5, f"last {words[end - 1]}": 2.0}


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(["f1", "hamming", "zero_one"]))
def test_losses_and_features_of_spans_against_all_trees(seed, loss):
    rng = np.random.default_rng(seed)
    words = list(rng.choice(["a", "b", "c"], size=rng.integers(2, 6)).tolist())
    trees = all_trees(tuple(words))
    if not trees:
        return
    parser = CFGParser(grammar=GRAMMAR, features=lengths, loss=loss)
    parser._learn([words], [trees[0]])
    problem, (x,) = parser.problem_, parser._inputs([words])
    parses = [problem.encode(words, tree, 0) for tree in trees]
    w = rng.normal(size=problem.size([], [])) * rng.choice([0.0, 0.3, 3.0])
    names = parser.vectorizer_.feature_names_
    weight = dict(zip(names, w[len(GRAMMAR.rules) :].reshape(len(names), -1), strict=True))

    def plain(tree):
        """The score by its definition."""
        total = 0.0
        for node, start, _, end in walk(tree):
            rule = (node[0], node[1]) if len(node) == 2 else (node[0], node[1][0], node[2][0])
            total += w[GRAMMAR.index[rule]]
            if len(rule) == 3:
                given = lengths(words, start, end)
                total += sum(size * weight[name][GRAMMAR.index[rule]] for name, size in given.items())
        return total

    scores = [plain(tree) for tree in trees]
    for score, parse in zip(scores, parses, strict=True):
        assert (problem.joint_feature(x, parse) @ w)[0] == pytest.approx(score)
    assert (problem.joint_feature(x, problem.argmax(x, w)) @ w)[0] == pytest.approx(max(scores))
    k = int(rng.integers(len(trees)))
    spans = [{(n[0], start, end) for n, start, _, end in walk(tree) if len(n) == 3} for tree in trees]
    wrong = np.array([len(own - spans[k]) for own in spans])
    losses = {
        "f1": wrong / max(1, len(words) - 1),
        "hamming": wrong,
        "zero_one": np.array([float(tree != trees[k]) for tree in trees]),
    }[loss]
    assert [problem.loss(parses[k], parse) for parse in parses] == pytest.approx(losses.tolist())
    violator = problem.loss_augmented_argmax(x, parses[k], w)
    reached = problem.loss(parses[k], violator) + (problem.joint_feature(x, violator) @ w)[0]
    assert reached == pytest.approx(np.max(losses + scores))


@pytest.mark.parametrize("features", [None, lengths])
@pytest.mark.parametrize("loss", ["f1", "hamming", "zero_one"])
def test_the_parser_against_a_conic_solver_over_all_trees(loss, features):
    rng = np.random.default_rng(3)
    X = [list(words) for words in itertools.product("abc", repeat=4) if len(all_trees(words)) > 1][::3]
    y = [trees[rng.integers(len(trees))] for trees in map(all_trees, map(tuple, X))]
    parser = CFGParser(grammar=GRAMMAR, features=features, loss=loss, C=1.0, tol=1e-5).fit(X, y)
    problem, inputs = parser.problem_, parser._inputs(X)
    parses = [[problem.encode(words, tree, 0) for tree in all_trees(tuple(words))] for words in X]
    assert len(X) > 10
    best = optimum(problem, list(zip(inputs, parser._outputs(y, inputs), parses, strict=True)), 1.0)
    assert parser.dual_bound_ <= best * (1 + 1e-6)
    assert parser.objective_ >= best * (1 - 1e-6)
    assert parser.objective_ - parser.dual_bound_ <= 1e-5 * len(X)


def test_features_of_spans_tell_what_rules_cannot():
    """The same rules attach a phrase high in short sentences and low in long ones."""
    np_ = ("NP", ("D", "d"), ("N", "n"))
    pp = ("PP", ("P", "p"), np_)
    high = ("VP", ("VP", ("V", "v"), np_), pp)
    low = ("VP", ("V", "v"), ("NP", np_, ("PP", ("P", "p"), ("NP", np_, pp))))
    X, y = [list("vdnpdn"), list("vdnpdnpdn")], [high, low]
    rule_only = CFGParser(C=100.0).fit(X, y)
    parser = CFGParser(C=100.0, features=lambda words, start, end: [f"{len(words)} {end - start}"]).fit(X, y)
    assert parser.predict(X) == y
    assert parser.score(X, y) == 1.0 > rule_only.score(X, y) - 1e-9
    assert parser.gap_ <= 1e-3
    assert parser.predict([["d", "n"], ["v", "d", "n"]])[1] == ("VP", ("V", "v"), np_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "f2"}, "unknown loss 'f2': expected one of f1, hamming, zero_one"),
        ({"features": "length"}, "expected features as a function"),
        ({"features": lambda words, start, end: "length"}, "a list of names or a dict, got 'length'"),
        ({"features": lambda words, start, end: 3}, "a list of names or a dict, got 3"),
    ],
)
def test_parser_refuses_parameters(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        CFGParser(**parameters).fit([["a", "b"]], [("S", ("A", "a"), ("B", "b"))])


def test_sentences_of_one_word_and_several_roots():
    trees = [("S", ("A", "a"), ("B", "b")), ("T", ("B", "b"), ("A", "a")), ("A", "a")]
    X = [["a", "b"], ["b", "a"], ["a"]]
    for features in (None, lambda words, start, end: []):
        parser = CFGParser(features=features, C=10.0).fit(X, trees)
        assert parser.grammar_.roots == ["A", "S", "T"]
        assert parser.predict(X) == trees
    with pytest.raises(ValueError, match="expected a root among the symbols A, B, S, got 'T'"):
        Grammar([("S", "A", "B")], root=["S", "T"])


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_trees_come_back_from_normal_form(seed):
    rng = np.random.default_rng(seed)

    def grow(depth):
        if depth == 0 or rng.random() < 0.3:
            return ("t", str(rng.choice(list("abc"))))
        return (str(rng.choice(["X", "Y", "Z"])), *(grow(depth - 1) for _ in range(rng.integers(1, 5))))

    tree = ("TOP", grow(4), grow(3))
    assert unbinarise(binarise(tree)) == tree

    def spans(node, start):
        if isinstance(node[1], str):
            return [], start + 1
        found, end = [], start
        for child in node[1:]:
            below, end = spans(child, end)
            found += below
        return [(node[0], start, end), *found], end

    assert sorted(constituents(tree).elements()) == sorted(spans(tree, 0)[0])


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
    assert CFGParser().fit(X, [high, low]).grammar_.roots == ["S"]
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


def test_lists_are_nodes_for_binarise():
    tree = ["S", ["NP", ["N", "a"]], ["V", "b"], ["R", "c"]]
    assert binarise(tree) == ("S", ("NP+N", "a"), ("S|", ("V", "b"), ("R", "c")))


@pytest.mark.parametrize("tree", ["S", ("S",), ("S", ("A",)), ("NP", "New", "York"), ("S", "a", ("B", "b"))])
def test_binarise_says_what_is_wrong(tree):
    with pytest.raises(ValueError, match=r"expected nodes \(label, child, ...\) or \(label, word\), got"):
        binarise(tree)


def test_trees_deeper_than_the_stack():
    n = sys.getrecursionlimit() + 100
    wide = binarise(("S", *[("X", "w")] * n))
    nodes = walk(wide)
    assert [(start, split, end) for node, start, split, end in nodes if len(node) == 3] == [
        (k, k + 1, n) for k in range(n - 1)
    ]
    assert constituent_f1(wide, wide) == 1.0
    problem = ParsingProblem(Grammar.from_trees([wide]))
    again = problem.decode(["w"] * n, problem.encode(["w"] * n, wide, 0))
    assert [node[0] for node, *_ in walk(again)] == [node[0] for node, *_ in nodes]
    with pytest.raises(ValueError, match=r"tree 0: expected nodes .*binarise"):
        walk(("S", wide))


def test_nothing_to_predict():
    assert CFGParser().fit([["a", "b"]], [("S", ("A", "a"), ("B", "b"))]).predict([]) == []


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
    for broken in (("S", ("A", "a")), ("S", ("A", "a"), ("B", "b"), ("B", "b")), "S"):
        with pytest.raises(ValueError, match=r"tree 0: expected nodes .*binarise"):
            CFGParser().fit([["a", "b"]], [broken])
    with pytest.raises(ValueError, match=r"expected rules \(parent, left, right\) or \(parent, word\)"):
        Grammar([("S",)], "S")
    with pytest.raises(ValueError, match="expected a root among the symbols S, got 'T'"):
        Grammar([("S", "a")], "T")
    with pytest.raises(ValueError, match="at least one tree"):
        Grammar.from_trees([])
    with pytest.raises(TypeError, match=r"expected grammar as a metrimax.structured.Grammar or None, got list"):
        CFGParser(grammar=[("S", "A", "B")]).fit([["a", "b"]], [tree])
    parser = CFGParser().fit([["a", "b"]], [tree])
    with pytest.raises(ValueError, match="as many outputs as inputs, got 1 inputs and 2 outputs"):
        parser.score([["a", "b"]], [tree, tree])
    with pytest.raises(ValueError, match="at least one example"):
        parser.score([], [])


def cky_arguments():
    return {
        "parent": np.array([0], dtype=np.int32),
        "left": np.array([1], dtype=np.int32),
        "right": np.array([1], dtype=np.int32),
        "weight": np.zeros((1, 1)),
        "lexical": np.array([[-np.inf, 0.0]] * 2),
        "roots": np.array([0], dtype=np.int32),
        "gold": np.full((2, 2), -1, dtype=np.int32),
        "price": 0.5,
    }


def cky(arguments):
    rules = _kernels.BinaryRules(*(arguments.pop(name) for name in ("parent", "left", "right")), symbols=2)
    return _kernels.cky(rules, **arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"price": np.inf},
        {"lexical": np.zeros((2, 3))},
        {"left": np.array([2], dtype=np.int32)},
        {"right": np.array([-1], dtype=np.int32)},
        {"parent": np.array([0, 0], dtype=np.int32)},
        {name: np.array([1, 0], dtype=np.int32) for name in ("parent", "left", "right")} | {"weight": np.zeros((1, 2))},
        {"weight": np.zeros((1, 2))},
        {"gold": np.full((2, 1), -1, dtype=np.int32)},
        {"roots": np.array([2], dtype=np.int32)},
        {"lexical": np.zeros((0, 2)), "gold": np.zeros((0, 0), dtype=np.int32)},
    ],
)
def test_cky_checks_its_arguments(change):
    score, nodes, words = cky(cky_arguments())
    assert score == 0.5
    assert nodes.tolist() == [[0, 0, 1, 2]]
    assert words.tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"cky|BinaryRules"):
        cky(cky_arguments() | change)


def test_a_parse_without_constituents_has_no_loss():
    problem = ParsingProblem(GRAMMAR)
    alone = Parse(np.empty((0, 4), dtype=np.int32), np.array([GRAMMAR.number["S"]], dtype=np.int32))
    assert problem.loss(alone, problem.loss_augmented_argmax(["c"], alone, np.zeros(len(GRAMMAR.rules)))) == 0
    assert constituent_f1(("S", "c"), ("S", "c")) == 1.0


def test_where_there_is_but_one_tree_nothing_is_to_be_learnt_and_nothing_is_wrong():
    tree = ("S", ("D", "a"), ("N", "dog"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parser = CFGParser().fit([["a", "dog"]], [tree])
    assert parser.objective_ == 0
    assert parser.status_ is Status.CONVERGED
    assert parser.predict([["a", "dog"]]) == [tree]
