"""Measures of several exclusive classes, of which the one with the highest score is called."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from metrimax.measure.classification import ErrorRate
from metrimax.protocols import Labels, Measure, Vector


def highest(scores: Vector) -> Labels:
    """Which class each row of scores (n, L) calls: the highest, whatever its sign, and the first of equals."""
    called: Labels = np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, np.newaxis]
    return called


def score_classes(
    measure: Measure, truth: Labels, scores: Vector, columns: Iterable[int], weight: Vector | None = None
) -> float:
    """The measure of scores (n, L), for truth (n, L): the mean over the classes in ``columns``, each against the rest.

    Measures of rankings look at the scores of a class, the others at who is called. The error rate is that of all
    classes together: its value is the plain accuracy.
    """
    if not measure.ranks:
        called = highest(scores)
        if isinstance(measure, ErrorRate):
            return float(np.average((truth & called).any(axis=1), weights=weight))
        scores = np.where(called, 1.0, -1.0)
    return float(np.mean([measure.score(truth[:, k], scores[:, k], weight) for k in columns]))
