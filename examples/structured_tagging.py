"""
Tagging sequences
=================

Tag the words of sentences: a Markov model with prefixes, suffixes and more as features, trained for wrong tags."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from metrimax.structured import SequenceTagger, word_features

NOUNS, VERBS = (
    ["dog", "cat", "table", "city", "garden", "number"],
    ["walk", "open", "plant", "number", "paint", "table"],
)
FORMS = {
    "DET": ["the", "a", "every", "no"],
    "ADJ": ["old", "quick", "greenish", "careful", "hopeful", "reddish"],
    "NOUN": [noun + ending for noun in NOUNS for ending in ("", "s")],
    "VERB": [verb + ending for verb in VERBS for ending in ("s", "ed")],
    "ADV": ["slowly", "often", "carefully", "quickly"],
}
NEXT = {
    "DET": {"NOUN": 0.6, "ADJ": 0.4},
    "ADJ": {"NOUN": 0.8, "ADJ": 0.2},
    "NOUN": {"VERB": 0.8, "ADV": 0.2},
    "VERB": {"DET": 0.7, "ADV": 0.3},
    "ADV": {"VERB": 0.5, "DET": 0.5},
}


def sentences(n, rng):
    """Generated sentences; words such as "tables" and "numbers" are nouns or verbs, as their neighbours say."""
    X, y = [], []
    for _ in range(n):
        tags = ["DET"]
        while len(tags) < rng.integers(4, 12):
            following = NEXT[tags[-1]]
            tags.append(str(rng.choice(list(following), p=list(following.values()))))
        X.append([str(rng.choice(FORMS[tag])) for tag in tags])
        y.append(tags)
    return X, y


def main():
    rng = np.random.default_rng(0)
    X, y = sentences(60, rng)
    X_test, y_test = sentences(200, rng)
    tagger = SequenceTagger(features=word_features, C=0.1).fit(X, y)
    print(f"{tagger.status_}: gap {tagger.gap_:.1e} wrong tags per sentence after {tagger.n_passes_} passes")
    print(f"right tags: training {tagger.score(X, y):.3f}, test {tagger.score(X_test, y_test):.3f}")
    sentence = ["the", "gardens", "tables", "no", "numbers"]
    print(list(zip(sentence, tagger.predict([sentence])[0], strict=True)))
    strongest = np.argsort(-tagger.emission_.max(axis=1))[:5]
    for k in strongest:
        name = tagger.vectorizer_.feature_names_[k]
        print(f"{name:>14} says {tagger.classes_[tagger.emission_[k].argmax()]}")

    figure, ax = plt.subplots(layout="constrained")
    image = ax.imshow(tagger.emission_[strongest], cmap="coolwarm", aspect="auto")
    ax.set_xticks(range(len(tagger.classes_)), tagger.classes_)
    ax.set_yticks(range(len(strongest)), [tagger.vectorizer_.feature_names_[k] for k in strongest])
    figure.colorbar(image, label="weight")
    plt.show()


if __name__ == "__main__":
    main()
