"""Weighted context-free parsing: a grammar whose rules get weights, trained for F1 over constituents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from reprlib import repr as repr_of
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.protocols import Callback, Vector
from metrimax.structured.estimator import StructuredSVM
from metrimax.structured.problem import StructuredProblem

Symbols = npt.NDArray[np.int32]
Tree = tuple[Any, ...]
Rule = tuple[str, ...]


class Grammar:
    """A context-free grammar in Chomsky normal form.

    Parameters
    ----------
    rules : iterable of tuples
        ``(parent, left, right)`` for two symbols, ``(parent, word)`` for a word.
    root : str
        The symbol at the top of every tree.

    Examples
    --------
    >>> grammar = Grammar([("S", "NP", "VP"), ("NP", "Det", "N"), ("VP", "V", "NP"), ("N", "dog")], root="S")
    >>> len(grammar.rules), grammar.symbols
    (4, ['Det', 'N', 'NP', 'S', 'V', 'VP'])
    """

    def __init__(self, rules: Iterable[Rule], root: str) -> None:
        known = {tuple(rule) for rule in rules}
        for rule in known:
            if len(rule) not in (2, 3):
                raise ValueError(f"expected rules (parent, left, right) or (parent, word), got {rule!r}")
        self.symbols = sorted({symbol for rule in known for symbol in (rule if len(rule) == 3 else rule[:1])})
        self.root = root
        if root not in self.symbols:
            raise ValueError(f"expected a root among the symbols {', '.join(self.symbols)}, got {root!r}")
        self.number = {symbol: k for k, symbol in enumerate(self.symbols)}
        binary = sorted((rule for rule in known if len(rule) == 3), key=lambda rule: (rule[1], rule[2], rule[0]))
        lexical = sorted(rule for rule in known if len(rule) == 2)
        self.rules: list[Rule] = [*binary, *lexical]
        self.n_binary = len(binary)
        self.index = {rule: k for k, rule in enumerate(self.rules)}
        #: symbols of the binary rules: parents, left and right ones
        self.parent, self.left, self.right = (
            np.array([self.number[rule[k]] for rule in binary], dtype=np.int32) for k in range(3)
        )
        #: for every word, the symbols above it and their rules
        self.above: dict[str, tuple[list[int], list[int]]] = {}
        for k, (parent, word) in enumerate(lexical, self.n_binary):
            symbols, rules_of_word = self.above.setdefault(word, ([], []))
            symbols.append(self.number[parent])
            rules_of_word.append(k)
        self.preterminals = sorted({self.number[rule[0]] for rule in lexical})

    @classmethod
    def from_trees(cls, trees: Iterable[Tree]) -> Grammar:
        """The rules of given trees."""
        trees = list(trees)
        if not trees:
            raise ValueError("expected at least one tree, got none")
        rules = {_rule(node) for i, tree in enumerate(trees) for node, *_ in walk(tree, i)}
        roots = {tree[0] for tree in trees}
        if len(roots) > 1:
            raise ValueError(f"expected trees with the same symbol at the top, got {', '.join(sorted(roots))}")
        return cls(rules, roots.pop())


class Parse(NamedTuple):
    """A tree over n words: n - 1 nodes as (rule, start, split, end) from the top, and the symbols above the words."""

    nodes: Symbols
    words: Symbols


class ParsingProblem(StructuredProblem):
    """Trees of a sentence: the sum of the weights of the rules is the score, 1 - F1 over constituents the loss.

    An input is a list of words, an output a `Parse`.

    Notes
    -----
    Constituents are labelled spans of two words or more. In Chomsky normal form every tree over n words has n - 1 of
    them, so that precision, recall and F1 are all the share of shared ones, and the loss a sum over constituents,
    1/(n - 1) for each that the true tree has not: CKY finds the exact argmax, in O(n^3 rules).

    A word that the grammar does not know may have any symbol that stands above words, at no price.

    References
    ----------
    Tsochantaridis, Joachims, Hofmann & Altun (2005), section 5.4.
    """

    releases_gil: ClassVar[bool] = True

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar

    def size(self, X: Sequence[Any], Y: Sequence[Any]) -> int:
        return len(self.grammar.rules)

    def joint_feature(self, x: Sequence[str], y: Parse) -> Vector:
        """How often the tree uses each rule."""
        counts = np.bincount(y.nodes[:, 0], minlength=len(self.grammar.rules)).astype(np.float64)
        for word, symbol in zip(x, y.words.tolist(), strict=True):
            symbols, rules = self.grammar.above.get(word, ([], []))
            if symbol in symbols:
                counts[rules[symbols.index(symbol)]] += 1
        return counts

    def loss(self, y: Parse, z: Parse) -> float:
        gold, nodes = self._gold(y), z.nodes
        wrong = gold[nodes[:, 1], nodes[:, 3] - 1] != self.grammar.parent[nodes[:, 0]]
        return float(np.count_nonzero(wrong) / max(1, len(nodes)))

    def loss_augmented_argmax(self, x: Sequence[str], y: Parse, w: Vector) -> Parse:
        parse = self._cky(x, w, self._gold(y), 1 / max(1, len(y.nodes)))
        if parse is None:
            raise ValueError(f"the grammar has no tree for the sentence {' '.join(map(str, x))!r}")
        return parse

    def argmax(self, x: Sequence[str], w: Vector) -> Parse | None:
        """The highest tree; None where the grammar has none for the sentence."""
        return self._cky(x, w, np.full((len(x), len(x)), -1, dtype=np.int32), 0.0) if len(x) else None

    def encode(self, words: Sequence[str], tree: Tree, i: int) -> Parse:
        """A tree as a `Parse` of the grammar."""
        grammar = self.grammar
        nodes, above, leaves = [], [], []
        for node, start, split, end in walk(tree, i):
            rule = _rule(node)
            if rule not in grammar.index:
                raise ValueError(f"tree {i}: its rule {rule[0]} -> {' '.join(rule[1:])} is not in the grammar")
            if len(rule) == 3:
                nodes.append((grammar.index[rule], start, split, end))
            else:
                above.append(grammar.number[rule[0]])
                leaves.append(rule[1])
        if leaves != list(words):
            raise ValueError(f"tree {i}: expected the words of the sentence as its leaves, got {leaves}")
        if tree[0] != grammar.root:
            raise ValueError(f"tree {i}: expected {grammar.root!r} at the top, got {tree[0]!r}")
        return Parse(np.array(nodes, dtype=np.int32).reshape(-1, 4), np.array(above, dtype=np.int32))

    def decode(self, words: Sequence[str], parse: Parse) -> Tree:
        """A `Parse` as a tree."""
        # from the bottom, so that depth does not matter: the tree that begins at each word
        built: dict[int, Tree] = {
            t: (self.grammar.symbols[symbol], words[t]) for t, symbol in enumerate(parse.words.tolist())
        }
        for rule, start, split, _ in reversed(parse.nodes.tolist()):
            built[start] = (self.grammar.rules[rule][0], built[start], built.pop(split))
        return built[0]

    def _gold(self, y: Parse) -> Symbols:
        """The labels of the true constituents by start and last word, -1 for none."""
        n = len(y.words)
        gold = np.full((n, n), -1, dtype=np.int32)
        gold[y.nodes[:, 1], y.nodes[:, 3] - 1] = self.grammar.parent[y.nodes[:, 0]]
        return gold

    def _cky(self, x: Sequence[str], w: Vector, gold: Symbols, price: float) -> Parse | None:
        grammar = self.grammar
        lexical = np.full((len(x), len(grammar.symbols)), -np.inf)
        for t, word in enumerate(x):
            if word in grammar.above:
                symbols, rules = grammar.above[word]
                lexical[t, symbols] = w[rules]
            else:
                lexical[t, grammar.preterminals] = 0.0
        weight = np.ascontiguousarray(w[: grammar.n_binary])
        binary = _kernels.BinaryRules(grammar.parent, grammar.left, grammar.right, len(grammar.symbols))
        score, nodes, words = _kernels.cky(binary, weight, lexical, grammar.number[grammar.root], gold, price)
        return Parse(nodes, words) if score > -np.inf else None


class CFGParser(StructuredSVM):
    """Parses sentences by a context-free grammar with weighted rules, trained for F1 over constituents.

    Parameters
    ----------
    grammar : Grammar or None, default=None
        None for the rules that occur in the training trees.
    C, tol, max_iter, solver, n_jobs, verbose, callback
        As in `StructuredSVM`; the loss of a tree is 1 - F1.

    Attributes
    ----------
    grammar_ : Grammar
    coef_ : ndarray
        The weight of each of ``grammar_.rules``.
    gap_, status_, ...
        As in `StructuredSVM`.

    Notes
    -----
    A sentence is a list of words (or of their parts of speech), a tree a nested tuple: ``(label, left, right)``, and
    ``(label, word)`` above a word. `binarise` brings other trees into this form.

    References
    ----------
    Tsochantaridis, Joachims, Hofmann & Altun (2005), section 5.4.

    Examples
    --------
    >>> from metrimax.structured import CFGParser
    >>> tree = ("S", ("NP", ("D", "the"), ("N", "dog")), ("VP", ("V", "saw"), ("NP", ("D", "a"), ("N", "cat"))))
    >>> parser = CFGParser().fit([["the", "dog", "saw", "a", "cat"]], [tree])
    >>> parser.predict([["a", "dog", "saw", "the", "cat"]])[0][1]
    ('NP', ('D', 'a'), ('N', 'dog'))
    """

    problem_: ParsingProblem

    def __init__(
        self,
        *,
        grammar: Grammar | None = None,
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 1000,
        solver: str = "cached",
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.grammar = grammar
        super().__init__(
            C=C, tol=tol, max_iter=max_iter, solver=solver, n_jobs=n_jobs, verbose=verbose, callback=callback
        )

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> CFGParser:
        """Train on sentences X and their trees y."""
        return super().fit(X, y)

    def predict(self, X: Sequence[Any]) -> list[Any]:
        """The highest tree of every sentence; None where the grammar has none for it."""
        parses = super().predict(X)
        return [None if z is None else self.problem_.decode(x, z) for x, z in zip(X, parses, strict=True)]

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Mean F1 over constituents; a sentence without a tree counts 0."""
        self._check_lengths(X, y)
        return float(np.mean([constituent_f1(tree, z) for tree, z in zip(y, self.predict(X), strict=True)]))

    def _learn(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        grammar = self.grammar if self.grammar is not None else Grammar.from_trees(y)
        if not isinstance(grammar, Grammar):
            raise TypeError(f"expected grammar as a metrimax.structured.Grammar or None, got {type(grammar).__name__}")
        self.problem_, self.grammar_ = ParsingProblem(grammar), grammar

    def _outputs(self, y: Sequence[Any], inputs: Sequence[Any]) -> list[Parse]:
        return [self.problem_.encode(words, tree, i) for i, (words, tree) in enumerate(zip(inputs, y, strict=True))]


def walk(tree: Tree, i: int = 0) -> list[tuple[Tree, int, int, int]]:
    """The nodes of a tree in Chomsky normal form from the top, each with its start, split and end; i is for errors."""
    nodes: list[Tree] = []
    todo: list[Any] = [tree]
    while todo:  # no recursion: trees may be deeper than Python's stack
        node = todo.pop()
        if not isinstance(node, tuple) or len(node) not in (2, 3) or (len(node) == 2 and isinstance(node[1], tuple)):
            raise ValueError(
                f"tree {i}: expected nodes (label, left, right) or (label, word), got {repr_of(node)}; "
                f"metrimax.structured.binarise brings other trees into this form"
            )
        nodes.append(node)
        todo += reversed(node[1:]) if len(node) == 3 else ()
    lengths: list[int] = []  # of the subtrees that have no parent yet, the leftmost last
    borders: list[tuple[int, int]] = []
    for node in reversed(nodes):
        left, right = (lengths.pop(), lengths.pop()) if len(node) == 3 else (0, 1)
        lengths.append(left + right)
        borders.append((left, left + right))
    found, start = [], 0
    for node, (left, length) in zip(nodes, reversed(borders), strict=True):
        found.append((node, start, start + left, start + length))
        start += len(node) == 2
    return found


def constituent_f1(tree: Tree, predicted: Tree | None) -> float:
    """F1 over labelled constituents of two words or more; 0 without a prediction, 1 where both trees have none."""
    if predicted is None:
        return 0.0
    true, found = ({(n[0], start, end) for n, start, _, end in walk(t) if len(n) == 3} for t in (tree, predicted))
    return 2 * len(true & found) / (len(true) + len(found)) if true or found else 1.0


def binarise(tree: Tree) -> Tree:
    """A tree with nodes ``(label, child, ...)`` in Chomsky normal form.

    More than two children are grouped from the right, below a new label ``parent|``; a chain of single children
    becomes one node whose labels are joined by ``+``.
    """
    done: list[Tree] = []
    todo: list[Any] = [tree]
    while todo:  # no recursion: trees may be deeper than Python's stack
        node = todo.pop()
        if isinstance(node, _Join):
            right, left = done.pop(), done.pop()
            done.append((node.label, left, right))
            continue
        if not isinstance(node, (tuple, list)) or len(node) < 2:
            raise ValueError(
                f"expected nodes (label, child, ...) or (label, word), got {repr_of(node)}: "
                "a word has a label of its own, and no other words beside it"
            )
        label, *children = node
        first, *rest = children
        if rest:
            new = label if label.endswith("|") else f"{label}|"
            todo += [_Join(label), rest[0] if len(rest) == 1 else (new, *rest), first]
        elif isinstance(first, (tuple, list)):
            todo.append((f"{label}+{first[0]}", *first[1:]) if len(first) > 1 else first)
        else:
            done.append((label, first))
    return done[0]


class _Join(NamedTuple):
    """Where the two trees made last become one."""

    label: str


def _rule(node: Tree) -> Rule:
    return (node[0], node[1]) if len(node) == 2 else (node[0], node[1][0], node[2][0])
