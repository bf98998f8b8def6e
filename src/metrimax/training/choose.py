"""What is trained where the user leaves it open, and what the scores of folds choose, C and threshold.

Shared by `MeasureSVCCV` and the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from metrimax.measure.base_loss import wants_hinges
from metrimax.protocols import Measure, Vector


class Defaults(NamedTuple):
    """The hinge, the thresholds to choose from (the one preferred among equals first), and the slack of the choice.

    So many standard errors count as no difference.
    """

    hinge: float
    thresholds: tuple[str, ...]
    slack: float


PLAIN = Defaults(0.0, ("trained",), 0.0)
"""Of the measure's own risk alone, as Joachims (2005) has it."""


def defaults(measure: Measure) -> Defaults:
    """What serves a measure best where C is chosen by folds: docs/results/imbalanced.md."""
    if not wants_hinges(measure):
        return PLAIN
    return PLAIN._replace(hinge=1.0) if measure.ranks else Defaults(1.0, ("placed", "trained"), 1.0)


def standard_error(scores: Vector) -> float:
    """Of the mean over the folds; zero for one fold, which does not say."""
    return float(np.std(scores)) / float(np.sqrt(len(scores) - 1)) if len(scores) > 1 else 0.0


def choose_column(table: Vector, slack: float) -> int:
    """The column of a table (folds by variants) to take: the first, unless another does better.

    By more than ``slack`` standard errors of that one's mean.
    """
    best = 0
    for k in range(1, table.shape[1]):
        if np.mean(table[:, k]) > np.mean(table[:, best]) + slack * standard_error(table[:, k]):
            best = k
    return best


def choose_C(Cs: Sequence[float] | Vector, means: Sequence[float], errors: Sequence[float], slack: float) -> int:
    """Where the best mean is, the first of equals.

    With slack, which C is nearest to 1 of those that are no worse as far as can be told: behind the best by no more
    than so many of its standard errors.
    """
    best = int(np.argmax(means))
    if not slack:
        return best
    least = means[best] - slack * errors[best]
    equals = [k for k, mean in enumerate(means) if mean >= least]
    return min(equals, key=lambda k: abs(np.log(Cs[k])))
