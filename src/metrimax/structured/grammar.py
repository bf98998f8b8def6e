"""Grammars and trees: Chomsky normal form, the way into it and back, constituents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from reprlib import repr as repr_of
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Symbols = npt.NDArray[np.int32]
Tree = tuple[Any, ...]
Rule = tuple[str, ...]


class Grammar:
    """A context-free grammar in Chomsky normal form.

    Parameters
    ----------
    rules : iterable of tuples
        ``(parent, left, right)`` for two symbols, ``(parent, word)`` for a word.
    root : str or iterable of str
        The symbols that may stand at the top of a tree.

    Examples
    --------
    >>> grammar = Grammar([("S", "NP", "VP"), ("NP", "Det", "N"), ("VP", "V", "NP"), ("N", "dog")], root="S")
    >>> len(grammar.rules), grammar.symbols
    (4, ['Det', 'N', 'NP', 'S', 'V', 'VP'])
    """

    def __init__(self, rules: Iterable[Rule], root: str | Iterable[str]) -> None:
        known = {tuple(rule) for rule in rules}
        for rule in known:
            if len(rule) not in (2, 3):
                raise ValueError(f"expected rules (parent, left, right) or (parent, word), got {rule!r}")
        self.symbols = sorted({symbol for rule in known for symbol in (rule if len(rule) == 3 else rule[:1])})
        self.roots = [root] if isinstance(root, str) else sorted(set(root))
        unknown = [symbol for symbol in self.roots if symbol not in self.symbols]
        if unknown or not self.roots:
            raise ValueError(
                f"expected a root among the symbols {', '.join(self.symbols)}, got {unknown[0] if unknown else root!r}"
            )
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
        """The rules of the given trees. The root of each tree may be the root of any tree."""
        trees = list(trees)
        if not trees:
            raise ValueError("expected at least one tree, got none")
        rules = {rule_of(node) for i, tree in enumerate(trees) for node, *_ in walk(tree, i)}
        return cls(rules, {tree[0] for tree in trees})


class Parse(NamedTuple):
    """A tree over n words: n - 1 nodes as (rule, start, split, end) from the top, and the symbols above the words."""

    nodes: Symbols
    words: Symbols


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
    """F1 over labelled constituents of two words or more; 0 without a prediction, 1 where both trees have none.

    Parameters
    ----------
    tree : tuple
        The true tree.
    predicted : tuple or None
        The predicted one.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from metrimax.structured import constituent_f1
    >>> tree = ("S", ("A", "a"), ("T", ("B", "b"), ("C", "c")))
    >>> constituent_f1(tree, ("S", ("T", ("A", "a"), ("B", "b")), ("C", "c")))
    0.5
    """
    if predicted is None:
        return 0.0
    true, found = ({(n[0], start, end) for n, start, _, end in walk(t) if len(n) == 3} for t in (tree, predicted))
    return 2 * len(true & found) / (len(true) + len(found)) if true or found else 1.0


def binarise(tree: Tree) -> Tree:
    """A tree with nodes ``(label, child, ...)`` in Chomsky normal form.

    More than two children are grouped from the right, below a new label ``parent|``; a chain of single children
    becomes one node whose labels are joined by ``+``.

    Parameters
    ----------
    tree : tuple
        ``(label, child, ...)``, where a leaf is ``(label, word)``.

    Returns
    -------
    tuple
        The same tree with one or two children below every node.

    Examples
    --------
    >>> from metrimax.structured import binarise
    >>> binarise(("S", ("A", "a"), ("B", "b"), ("C", "c")))
    ('S', ('A', 'a'), ('S|', ('B', 'b'), ('C', 'c')))
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


def unbinarise(tree: Tree) -> Tree:
    """The tree that `binarise` was given, with its labels, except that chains of single children are written out.

    Parameters
    ----------
    tree : tuple
        What `binarise` returned, or `CFGParser.predict`.

    Returns
    -------
    tuple
        With nodes ``(label, child, ...)``.

    Examples
    --------
    >>> tree = ("S", ("NP", ("D", "the"), ("A", "old"), ("N", "dog")), ("VP", ("V", "slept")))
    >>> binarise(tree)
    ('S', ('NP', ('D', 'the'), ('NP|', ('A', 'old'), ('N', 'dog'))), ('VP+V', 'slept'))
    >>> unbinarise(binarise(tree)) == tree
    True
    """
    built: list[tuple[Any, ...]] = []  # the children that each subtree without a parent contributes
    for node, *_ in reversed(walk(tree)):
        label, *children = node
        below = tuple(children) if len(node) == 2 else (*built.pop(), *built.pop())
        if not (label.endswith("|") and len(node) == 3):
            for name in reversed(label.split("+")):
                below = ((name, *below),)
        built.append(below)
    (made,) = built.pop()
    return tuple(made)


def constituents(tree: Tree) -> Counter[tuple[str, int, int]]:
    """Labelled spans ``(label, start, end)`` of a tree of any form, and how often each occurs; tags of words are none.

    Parameters
    ----------
    tree : tuple
        With nodes ``(label, child, ...)``, where a leaf is ``(label, word)``.

    Returns
    -------
    Counter
        From the span to its number.

    Examples
    --------
    >>> sorted(constituents(("S", ("NP", ("N", "dogs")), ("VP", ("V", "eat"), ("NP", ("N", "fish"))))))
    [('NP', 0, 1), ('NP', 2, 3), ('S', 0, 3), ('VP', 1, 3)]
    """
    nodes: list[Any] = []
    todo: list[Any] = [tree]
    while todo:  # no recursion: trees may be deeper than Python's stack
        nodes.append(todo.pop())
        todo += reversed([child for child in nodes[-1][1:] if isinstance(child, tuple)])
    lengths: list[int] = []
    open_lengths: list[int] = []  # of the subtrees that have no parent yet
    for node in reversed(nodes):
        inner = [open_lengths.pop() for child in node[1:] if isinstance(child, tuple)]
        lengths.append(sum(inner) if inner else 1)
        open_lengths.append(lengths[-1])
    found: Counter[tuple[str, int, int]] = Counter()
    start = 0
    for node, length in zip(nodes, reversed(lengths), strict=True):
        if isinstance(node[1], tuple):
            found[node[0], start, start + length] += 1
        else:
            start += 1
    return found


class _Join(NamedTuple):
    """The instruction that joins the last two trees."""

    label: str


def rule_of(node: Tree) -> Rule:
    """The rule at the top of a node: (parent, left, right) or (parent, word)."""
    return (node[0], node[1]) if len(node) == 2 else (node[0], node[1][0], node[2][0])
