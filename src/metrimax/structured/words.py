"""Features of words, for tagging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def word_features(words: Sequence[str], affix: int = 4) -> list[dict[str, Any]]:
    """Features of words for tagging: the word, its prefixes and suffixes, its shape, its neighbours.

    Parameters
    ----------
    words : list of str
        One sentence.
    affix : int
        Length of the longest prefix and suffix.

    Returns
    -------
    list of dict
        The features of each word, by name.

    Examples
    --------
    >>> from metrimax.structured import word_features
    >>> word_features(["the", "dogs"], affix=1)[1]["suffix"]
    ['s']
    """
    if isinstance(words, str):
        raise TypeError(f"expected a list of words, got the string {words!r:.60}: split it into words")
    features = []
    for t, word in enumerate(words):
        lower = word.lower()
        features.append(
            {
                "": 1.0,
                "word": lower,
                "before": words[t - 1].lower() if t else "<",
                "after": words[t + 1].lower() if t + 1 < len(words) else ">",
                "prefix": [lower[:k] for k in range(1, min(affix, len(lower)) + 1)],
                "suffix": [lower[-k:] for k in range(1, min(affix, len(lower)) + 1)],
                "length": str(min(len(word), 10)),
                "capital": word[:1].isupper(),
                "capitals": word.isupper(),
                "digit": any(c.isdigit() for c in word),
                "hyphen": "-" in word,
            }
        )
    return features
