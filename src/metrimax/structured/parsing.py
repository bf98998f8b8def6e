"""Weighted context-free parsing: a grammar whose rules get weights, trained for F1 over constituents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer

from metrimax import _kernels
from metrimax.designs import as_design
from metrimax.protocols import Callback, Vector
from metrimax.structured.estimator import StructuredSVM
from metrimax.structured.grammar import Grammar, Parse, Symbols, Tree, constituent_f1, rule_of, walk
from metrimax.structured.problem import StructuredProblem

LOSSES = ("f1", "hamming", "zero_one")


@dataclass(frozen=True)
class Sentence:
    """Words, and the features of their spans of two words or more: CSR, a row for each (start, end) in order."""

    words: Sequence[str]
    spans: Any

    def __len__(self) -> int:
        return len(self.words)


def spans_of(n: int) -> list[tuple[int, int]]:
    """The spans (start, end) of two words or more, in the order of the rows of `Sentence.spans`."""
    return [(start, end) for start in range(n) for end in range(start + 2, n + 1)]


class ParsingProblem(StructuredProblem):
    """Trees of a sentence. The score of a tree is a sum of weights over its nodes.

    An input is a list of words, or a `Sentence` where spans have features; an output is a `Parse`. The score of a node
    with the binary rule r over the span [start, end) is ``w_r + sum_f spans[start, end, f] V[f, r]``. V has a row for
    each feature and a column for each binary rule; it follows the weights of the rules in the vector of all weights.

    Parameters
    ----------
    grammar : Grammar
    n_features : int
        d, the number of features of a span.
    loss : {"f1", "hamming", "zero_one"}
        1 - F1 over constituents; the number of wrong constituents; 1 for a tree with any mistake.

    Notes
    -----
    Constituents are labelled spans of two words or more. In Chomsky normal form every tree over n words has n - 1 of
    them. So precision, recall and F1 are equal, and 1 - F1 is a sum over constituents: 1/(n - 1) for each that is not
    in the true tree. CKY finds the exact argmax in O(n^3 rules). For "zero_one", if the best tree is the true one, the
    second-best tree is needed. It is the best of the trees that lack one of the true nodes or tags; each of these is
    left out in turn, in O(n^4 rules).

    A word that is not in the grammar may have any symbol that stands above words, with score 0.

    References
    ----------
    Tsochantaridis, Joachims, Hofmann & Altun (2005), section 5.4.
    """

    releases_gil: ClassVar[bool] = True

    def __init__(self, grammar: Grammar, n_features: int = 0, loss: str = "f1") -> None:
        self.grammar, self.n_features, self.kind = grammar, n_features, loss

    def size(self, X: Sequence[Any], Y: Sequence[Any]) -> int:
        return len(self.grammar.rules) + self.n_features * self.grammar.n_binary

    def joint_feature(self, x: Any, y: Parse) -> Any:
        """How often the tree uses each rule, and the features of the spans on which it uses each binary rule."""
        grammar = self.grammar
        counts = np.bincount(y.nodes[:, 0], minlength=len(grammar.rules)).astype(np.float64)
        for word, symbol in zip(_words(x), y.words.tolist(), strict=True):
            symbols, rules = grammar.above.get(word, ([], []))
            if symbol in symbols:
                counts[rules[symbols.index(symbol)]] += 1
        if not isinstance(x, Sentence):
            return counts
        n, (rule, start, _, end) = len(x), y.nodes.T.astype(np.int64)
        used = x.spans[start * n - start * (start + 1) // 2 + end - start - 2].tocoo()  # the row of a span
        columns = len(grammar.rules) + used.col.astype(np.int64) * grammar.n_binary + rule[used.row]
        plain = np.flatnonzero(counts)
        entries = np.concatenate((counts[plain], used.data)), np.concatenate((plain, columns))
        return sparse.csr_array(
            (entries[0], (np.zeros(len(entries[1]), dtype=np.int64), entries[1])), shape=(1, self.size([], []))
        )

    def loss(self, y: Parse, z: Parse) -> float:
        gold, nodes = self._gold(y), z.nodes
        if self.kind == "zero_one":
            return float(not (np.array_equal(y.nodes, nodes) and np.array_equal(y.words, z.words)))
        wrong = gold[nodes[:, 1], nodes[:, 3] - 1] != self.grammar.parent[nodes[:, 0]]
        return float(np.count_nonzero(wrong) * self._price(y))

    def loss_augmented_argmax(self, x: Any, y: Parse, w: Vector) -> Parse:
        chart = _Chart(self.grammar, x, w)
        if self.kind != "zero_one":
            _, parse = chart.best(self._gold(y), self._price(y))
        else:
            score, parse = chart.best()
            if parse is not None and not self.loss(y, parse):
                other, second = chart.best_other(y)
                parse = second if other + 1 > score else parse
        if parse is None:
            raise ValueError(f"the grammar has no tree for the sentence {' '.join(map(str, _words(x)))!r}")
        return parse

    def argmax(self, x: Any, w: Vector) -> Parse | None:
        """The tree with the highest score; None if the grammar has no tree for the sentence."""
        return _Chart(self.grammar, x, w).best()[1] if len(x) else None

    def encode(self, words: Sequence[str], tree: Tree, i: int) -> Parse:
        """A tree as a `Parse` of the grammar."""
        grammar = self.grammar
        nodes, above, leaves = [], [], []
        for node, start, split, end in walk(tree, i):
            rule = rule_of(node)
            if rule not in grammar.index:
                raise ValueError(f"tree {i}: its rule {rule[0]} -> {' '.join(rule[1:])} is not in the grammar")
            if len(rule) == 3:
                nodes.append((grammar.index[rule], start, split, end))
            else:
                above.append(grammar.number[rule[0]])
                leaves.append(rule[1])
        if leaves != list(words):
            raise ValueError(f"tree {i}: expected the words of the sentence as its leaves, got {leaves}")
        if tree[0] not in grammar.roots:
            raise ValueError(f"tree {i}: expected {' or '.join(map(repr, grammar.roots))} at the top, got {tree[0]!r}")
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

    def _price(self, y: Parse) -> float:
        """The loss of one wrong constituent."""
        return 1.0 if self.kind == "hamming" else 1 / max(1, len(y.nodes))

    def _gold(self, y: Parse) -> Symbols:
        """The labels of the true constituents by start and last word, -1 for none."""
        n = len(y.words)
        gold = np.full((n, n), -1, dtype=np.int32)
        gold[y.nodes[:, 1], y.nodes[:, 3] - 1] = self.grammar.parent[y.nodes[:, 0]]
        return gold


class _Chart:
    """The scores of a sentence's nodes and tags, from which trees are found by CKY."""

    def __init__(self, grammar: Grammar, x: Any, w: Vector) -> None:
        self.grammar, words = grammar, _words(x)
        self.n = len(words)
        self.lexical = np.full((self.n, len(grammar.symbols)), -np.inf)
        for t, word in enumerate(words):
            if word in grammar.above:
                symbols, rules = grammar.above[word]
                self.lexical[t, symbols] = w[rules]
            else:
                self.lexical[t, grammar.preterminals] = 0.0
        #: of the binary rules: one row for all spans, or one for each at start n + end - 1
        self.weight = np.ascontiguousarray(w[np.newaxis, : grammar.n_binary])
        if isinstance(x, Sentence) and self.n > 1:
            V = np.ascontiguousarray(w[len(grammar.rules) :].reshape(-1, grammar.n_binary))
            rows = np.zeros((self.n * self.n, grammar.n_binary))
            rows[[start * self.n + end - 1 for start, end in spans_of(self.n)]] = as_design(x.spans).matvec(V)
            self.weight = rows + self.weight
        self.binary = _kernels.BinaryRules(grammar.parent, grammar.left, grammar.right, len(grammar.symbols))
        self.roots = np.array([grammar.number[root] for root in grammar.roots], dtype=np.int32)

    def best(self, gold: Symbols | None = None, price: float = 0.0) -> tuple[float, Parse | None]:
        """The tree with the highest score plus a price for every constituent that is not a true one, and that value."""
        gold = np.full((self.n, self.n), -1, dtype=np.int32) if gold is None else gold
        score, nodes, words = _kernels.cky(self.binary, self.weight, self.lexical, self.roots, gold, price)
        return score, Parse(nodes, words) if score > -np.inf else None

    def best_other(self, y: Parse) -> tuple[float, Parse | None]:
        """The tree with the highest score among those that lack a node or tag of y, and its score."""
        found: tuple[float, Parse | None] = (-np.inf, None)
        n, grammar = self.n, self.grammar
        if len(self.weight) == 1:
            self.weight = np.repeat(self.weight, n * n, axis=0)
        places: list[tuple[Vector, Any]] = [
            (self.weight, (start * n + end - 1, grammar.parent == grammar.parent[rule]))
            for rule, start, _, end in y.nodes.tolist()
        ]
        # a node of the same label over the same span by another rule, or split elsewhere, lacks what is below
        places += [(self.lexical, (t, symbol)) for t, symbol in enumerate(y.words.tolist())]
        for scores, place in places:
            kept = scores[place].copy()
            scores[place] = -np.inf
            found = max(found, self.best(), key=lambda pair: pair[0])
            scores[place] = kept
        return found


def _words(x: Any) -> Sequence[str]:
    return x.words if isinstance(x, Sentence) else x


class CFGParser(StructuredSVM):
    """Parses sentences by a context-free grammar with weighted rules, trained for F1 over constituents.

    Parameters
    ----------
    grammar : Grammar or None, default=None
        None for the rules that occur in the training trees.
    features : callable or None, default=None
        ``features(words, start, end)`` returns the features of the span [start, end): a list of names, or a dict of
        names and numbers. Each is combined with each binary rule, so that a rule may weigh more over one span than over
        another. None for weights that depend on the rule alone.
    loss : {"f1", "hamming", "zero_one"}, default="f1"
        The cost of a wrong tree in training: 1 - F1 over constituents, the number of wrong constituents, or 1.
    C, tol, max_iter, solver, n_jobs, verbose, callback
        As in `StructuredSVM`.

    Attributes
    ----------
    grammar_ : Grammar
    vectorizer_ : DictVectorizer or None
        Of the features of spans.
    coef_ : ndarray
        The weight of each of ``grammar_.rules``; then, for each feature of spans, its weight with each binary rule.
    gap_, status_, ...
        As in `StructuredSVM`.

    Notes
    -----
    A sentence is a list of words (or of their parts of speech), a tree a nested tuple: ``(label, left, right)``, and
    ``(label, word)`` above a word. `binarise` brings other trees into this form, `unbinarise` brings them back.

    With d features of spans there are d weights for each binary rule, and a sentence of n words needs n^2 numbers for
    each binary rule while it is parsed.

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
        features: Callable[[Sequence[Any], int, int], Any] | None = None,
        loss: str = "f1",
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 1000,
        solver: str = "cached",
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.grammar = grammar
        self.features = features
        self.loss = loss
        super().__init__(
            C=C, tol=tol, max_iter=max_iter, solver=solver, n_jobs=n_jobs, verbose=verbose, callback=callback
        )

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> CFGParser:
        """Train on sentences X and their trees y.

        Parameters
        ----------
        X : sequence of lists of str
            Sentences.
        y : sequence of trees
            One for each sentence, in Chomsky normal form (`binarise`).

        Returns
        -------
        self
            The fitted estimator.
        """
        return super().fit(X, y)

    def predict(self, X: Sequence[Any]) -> list[Any]:
        """The tree with the highest score for every sentence; None if the grammar has no tree for it.

        Parameters
        ----------
        X : sequence of lists of str
            Sentences.

        Returns
        -------
        list
            Trees, or None.
        """
        parses = super().predict(X)
        return [None if z is None else self.problem_.decode(x, z) for x, z in zip(X, parses, strict=True)]

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Mean F1 over constituents; a sentence without a tree counts 0.

        Parameters
        ----------
        X : sequence of lists of str
            Sentences.
        y : sequence of trees
            One for each sentence.

        Returns
        -------
        float
            From 0 to 1.
        """
        self._check_lengths(X, y)
        return float(np.mean([constituent_f1(tree, z) for tree, z in zip(y, self.predict(X), strict=True)]))

    def _learn(self, X: Sequence[Any], y: Sequence[Any]) -> Sequence[Any]:
        grammar = self.grammar if self.grammar is not None else Grammar.from_trees(y)
        if not isinstance(grammar, Grammar):
            raise TypeError(f"expected grammar as a metrimax.structured.Grammar or None, got {type(grammar).__name__}")
        if self.loss not in LOSSES:
            raise ValueError(f"unknown loss {self.loss!r}: expected one of {', '.join(LOSSES)}")
        if not (self.features is None or callable(self.features)):
            raise TypeError(f"expected features as a function of (words, start, end), or None, got {self.features!r}")
        self.grammar_ = grammar
        self.vectorizer_: Any = None
        n_features = 0
        if self.features is not None:
            self.vectorizer_ = DictVectorizer()
            self.vectorizer_.fit(named for x in X for named in self._named(x))
            n_features = len(self.vectorizer_.feature_names_)
        self.problem_ = ParsingProblem(grammar, n_features, self.loss)
        return self._inputs(X)

    def _inputs(self, X: Sequence[Any]) -> Sequence[Any]:
        if self.vectorizer_ is None:
            return super()._inputs(X)
        return [Sentence(x, self._spans(x)) for x in super()._inputs(X)]

    def _outputs(self, y: Sequence[Any], inputs: Sequence[Any]) -> list[Parse]:
        return [self.problem_.encode(_words(x), tree, i) for i, (x, tree) in enumerate(zip(inputs, y, strict=True))]

    def _spans(self, words: Sequence[Any]) -> Any:
        """The features of all spans, CSR (number of spans, d)."""
        named = self._named(words)
        if not named:
            return sparse.csr_array((0, self.problem_.n_features))
        return sparse.csr_array(self.vectorizer_.transform(named))

    def _named(self, words: Sequence[Any]) -> list[dict[str, Any]]:
        """The features of all spans by name."""
        assert self.features is not None
        found = [self.features(words, start, end) for start, end in spans_of(len(words))]
        for one in found:
            if isinstance(one, str) or not isinstance(one, Iterable):
                raise TypeError(
                    f"expected features(words, start, end) to return a list of names or a dict, got {one!r:.100}"
                )
        return [dict(one) if isinstance(one, Mapping) else dict.fromkeys(one, 1.0) for one in found]
