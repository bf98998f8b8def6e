"""Real text with structure: the Penn Treebank sample and CoNLL-2000, with features and scores for both."""

from __future__ import annotations

import lzma
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from metrimax.structured import SequenceTagger, constituents, unbinarise

TREES = "treebank_sample/wsj_sample.trees.xz"
TAGGED = "conll2000/{}.txt.xz"


# --- trees


def read_tree(text: str) -> Any:
    """A bracketed tree of the Penn Treebank without traces and function tags; None if nothing is left."""
    stack: list[list[Any]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            label, *children = done if done and isinstance(done[0], str) else ["TOP", *done]
            children = [child for child in children if child is not None]
            empty = not children or label == "-NONE-"
            plain = label if label.startswith("-") else re.split(r"[-=|]", label)[0]
            stack[-1].append(None if empty else (plain, *children))
        else:
            stack[-1].append(token)
    return stack[0][0]


def over_tags(tree: Any) -> Any:
    """The tree over parts of speech: each word is replaced by its tag."""
    return (tree[0], tree[0]) if isinstance(tree[1], str) else (tree[0], *map(over_tags, tree[1:]))


def leaves(tree: Any) -> list[str]:
    return [tree[1]] if isinstance(tree[1], str) else [leaf for child in tree[1:] for leaf in leaves(child)]


@lru_cache(maxsize=1)
def treebank(folder: Path, longest: int) -> list[Any]:
    """The trees over parts of speech of sentences of at most so many words, in the order of the file."""
    with lzma.open(folder / TREES, "rt", encoding="utf-8") as lines:
        found = (read_tree(line.rstrip("\n").split("\t")[1]) for line in lines)
        trees = [over_tags(tree) for tree in found if tree is not None]
    return [tree for tree in trees if len(leaves(tree)) <= longest]


def span_features(words: Sequence[str], start: int, end: int) -> list[str]:
    """The words at both ends of a span, those beside it, and its length."""
    before = words[start - 1] if start else "<"
    after = words[end] if end < len(words) else ">"
    return [
        f"first {words[start]}",
        f"last {words[end - 1]}",
        f"before {before}",
        f"after {after}",
        f"length {min(end - start, 8)}",
    ]


def bracket_scores(trees: Sequence[Any], parses: Sequence[Any]) -> tuple[float, float]:
    """F1 over all constituents of the original trees, and the share of trees that are right.

    Phrases of one word count; a sentence without a parse has no constituent.
    """
    shared = 0
    true: Counter[Any] = Counter()
    found: Counter[Any] = Counter()
    right = []
    for i, (tree, parse) in enumerate(zip(trees, parses, strict=True)):
        counted = []
        for made in (tree, parse):
            spans = constituents(unbinarise(made)) if made is not None else Counter()
            counted.append(Counter({(i, *key): n for key, n in spans.items() if key[0] != "TOP"}))
        shared += (counted[0] & counted[1]).total()
        true, found = true + counted[0], found + counted[1]
        right.append(tree == parse)
    return 2 * shared / (true.total() + found.total()), float(np.mean(right))


# --- sentences


@lru_cache(maxsize=2)
def tagged(folder: Path, part: str) -> tuple[list[Any], list[Any], list[Any]]:
    """Words, parts of speech and chunk tags of the sentences of a part, "train" or "test"."""
    with lzma.open(folder / TAGGED.format(part), "rt", encoding="utf-8") as file:
        sentences = [block.split("\n") for block in file.read().strip().split("\n\n")]
    rows = [[line.split() for line in sentence] for sentence in sentences]
    words, tags, chunks = ([[token[k] for token in row] for row in rows] for k in range(3))
    return words, tags, chunks


def affixes(words: Sequence[str]) -> list[dict[str, Any]]:
    """The features of the slides (all prefixes and suffixes, length, capitals), and the words beside.

    The longest prefix is the word itself.
    """
    padded = ["<", *words, ">"]
    return [
        {
            "": 1.0,
            "prefix": [word[:k] for k in range(1, len(word) + 1)],
            "suffix": [word[-k:] for k in range(1, len(word) + 1)],
            "length": str(min(len(word), 12)),
            "capital": word[:1].isupper(),
            "capitals": word.isupper(),
            "before": padded[t].lower(),
            "after": padded[t + 2].lower(),
        }
        for t, word in enumerate(words)
    ]


def windows(tokens: Sequence[Any]) -> list[dict[str, Any]]:
    """Words and parts of speech of a token (word, tag) and of two neighbours on each side, alone and in sequences.

    Sequences are of two words with the token's own among them, and of two and three parts of speech.
    """
    padded = [("<", "<")] * 2 + [(word.lower(), tag) for word, tag in tokens] + [(">", ">")] * 2
    found = []
    for t in range(len(tokens)):
        words, tags = zip(*padded[t : t + 5], strict=True)
        names = {f"word {k - 2}": words[k] for k in range(5)} | {f"tag {k - 2}": tags[k] for k in range(5)}
        pairs = {f"words {k - 2}": f"{words[k]} {words[k + 1]}" for k in (1, 2)}
        for length in (2, 3):
            pairs |= {f"tags {k - 2} {length}": " ".join(tags[k : k + length]) for k in range(6 - length)}
        found.append({"": 1.0} | names | pairs)
    return found


def chunk_scores(y: Sequence[Any], z: Sequence[Any]) -> tuple[float, float]:
    """F1 over chunks, and the share of tags that are right."""
    true, found = (Counter(span for i, tags in enumerate(made) for span in _chunks(tags, i)) for made in (y, z))
    right = [np.asarray(a) == np.asarray(b) for a, b in zip(y, z, strict=True)]
    return 2 * (true & found).total() / max(1, true.total() + found.total()), float(np.concatenate(right).mean())


def _chunks(tags: Sequence[str], i: int) -> list[tuple[int, str, int, int]]:
    """The chunks of a sentence: number of the sentence, type, start, end; I after another type begins a chunk."""
    found, start, kind = [], 0, ""
    for t, tag in enumerate([*tags, "O"]):
        position, _, name = tag.partition("-")
        if kind and (position != "I" or name != kind):
            found.append((i, kind, start, t))
            kind = ""
        if position != "O" and not kind:
            start, kind = t, name
    return found


class TokenClassifier:
    """Every token by itself: a linear SVM, one class against the rest, on the features of the tagger."""

    def __init__(self, C: float, features: Any) -> None:
        self.C, self.tagger = C, SequenceTagger(features=features)

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> TokenClassifier:
        inputs = self.tagger._learn(X, y)
        rows = inputs.rows
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
        machine = LinearSVC(loss="hinge", C=self.C, fit_intercept=False, random_state=0, max_iter=2000)
        self.machine = machine.fit(rows, np.concatenate(self.tagger._outputs(y, inputs)))
        return self

    def predict(self, X: Sequence[Any]) -> list[Any]:
        inputs = self.tagger._inputs(X)
        names = self.tagger.classes_[self.machine.predict(inputs.rows)]
        return [part.tolist() for part in np.split(names, inputs.offsets[1:-1])]
