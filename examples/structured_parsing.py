"""
Parsing: the weights of a grammar
=================================

Learn the weights of a grammar's rules from trees: where does a prepositional phrase belong?"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from metrimax.structured import CFGParser, binarise, constituent_f1


def noun_phrase(rng):
    return ("NP", ("D", str(rng.choice(["the", "a"]))), ("N", str(rng.choice(["man", "dog", "park", "telescope"]))))


def sentence(rng):
    """Generated: "saw" mostly takes a phrase with it ("saw [a dog] [in the park]"), "liked" leaves it to the noun."""
    verb = str(rng.choice(["saw", "liked"]))
    tag, to_verb = ("Vs", 0.9) if verb == "saw" else ("Vl", 0.1)
    subject, thing, place = (noun_phrase(rng) for _ in range(3))
    phrase = ("PP", ("P", str(rng.choice(["in", "with"]))), place)
    if rng.random() < to_verb:
        return ("S", subject, ("VP", (tag, verb), thing, phrase))  # three children: binarise groups the last two
    return ("S", subject, ("VP", (tag, verb), ("NP", thing, phrase)))


def words(tree):
    return [tree[1]] if len(tree) == 2 else words(tree[1]) + words(tree[2])


def main():
    rng = np.random.default_rng(0)
    trees = [binarise(sentence(rng)) for _ in range(300)]
    train, test = trees[:100], trees[100:]
    parser = CFGParser(C=1.0).fit([words(tree) for tree in train], train)
    print(f"{parser.status_}: gap {parser.gap_:.1e} after {parser.n_passes_} passes")
    predicted = parser.predict([words(tree) for tree in test])
    f1 = [constituent_f1(tree, found) for tree, found in zip(test, predicted, strict=True)]
    print(f"test F1 {np.mean(f1):.3f}, whole trees {np.mean(np.array(f1) == 1):.3f}; one in ten cannot be known")
    for rule in (("VP", "Vs", "VP|"), ("VP", "Vs", "NP"), ("VP", "Vl", "VP|"), ("VP", "Vl", "NP")):
        if rule in parser.grammar_.index:
            print(f"{rule[0]} -> {rule[1]} {rule[2]:<4}{parser.coef_[parser.grammar_.index[rule]]:7.2f}")

    figure, ax = plt.subplots()
    order = [k for k in np.argsort(parser.coef_) if parser.coef_[k] != 0]
    names = {position: " ".join(rule) for rule, position in parser.grammar_.index.items()}
    ax.barh([names.get(k, str(k)) for k in order], parser.coef_[order])
    ax.set(xlabel="weight of the rule")
    figure.tight_layout()
    plt.show()


if __name__ == "__main__":
    main()
