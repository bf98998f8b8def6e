"""A warning about the default positive class: the greater of two labels, which may not be the one that is meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metrimax.measure.constrained import Constrained
from metrimax.measure.own import TableFunction
from metrimax.protocols import Labels, Measure


def doubtful_positive(measure: Measure, classes: Sequence[Any], labels: Labels) -> str:
    """A warning if two classes have names, the greater one is the more frequent, and the measure depends on which is
    positive: someone who trains F1 on "fraud" and "legit" means the fraud. Otherwise, and for classes that are numbers,
    an empty string. Examples are counted without their weights, so balanced weights change nothing here.
    """
    if len(classes) != 2 or not all(isinstance(name, str) for name in classes):
        return ""
    if np.mean(labels) <= 0.5 or _alike(measure, labels):
        return ""
    other, positive = classes
    return (
        f"the positive class is {str(positive)!r}, the greater of the two labels, which is also the more frequent one: "
        f"the measure says little about {str(other)!r}"
    )


def _alike(measure: Measure, labels: Labels) -> bool:
    """Whether the measure is the same with the classes exchanged; of a user's function nothing is known."""
    if isinstance(measure, (Constrained, TableFunction)):  # with a constraint both values may be zero
        return False
    scores = np.random.default_rng(0).normal(size=len(labels))
    return bool(np.isclose(measure.score(labels, scores), measure.score(~labels, -scores)))
