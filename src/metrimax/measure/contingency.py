"""Measures of the contingency table.

Conventions
-----------
* ``tp, fp, fn, tn`` may be arrays and need not be whole numbers (weights).
* A perfect labelling has loss 0, also where a ratio would be 0/0; every other undefined ratio counts as the worst.
* Ties between scores are broken by position in the argmax (the value does not depend on it), and averaged
  over all orders where a measure is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from metrimax.measure.table_oracle import ContingencyOracle as ContingencyOracle
from metrimax.measure.tables import Fraction, Structure
from metrimax.protocols import Labels, Oracle, Vector


def check_beta(beta: float) -> None:
    """Raise unless beta is from 1e-100 to 1e100, so that beta^2, the weight of recall, is finite and > 0."""
    if not (isinstance(beta, (int, float, np.number)) and 1e-100 <= beta <= 1e100):
        raise ValueError(f"expected a finite beta > 0, from 1e-100 to 1e100, got {beta!r}")


def ratio(numerator: Vector, denominator: Vector, undefined: float) -> Vector:
    """``numerator / denominator``, and ``undefined`` where the denominator is zero."""
    if np.all(denominator):
        return numerator / denominator
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    out = np.full(numerator.shape, float(undefined))
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    return out


def contingency(y: Labels, z: Labels, sample_weight: Vector | None = None) -> tuple[float, float, float, float]:
    """``tp, fp, fn, tn`` of the labelling z against the truth y."""
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    return tuple(float(weight[a & b].sum()) for a, b in ((y, z), (~y, z), (y, ~z), (~y, ~z)))  # type: ignore[return-value]


def of_one(function: Callable[..., Vector], *table: float) -> float:
    """The value of a function of tables for one table, passed as arrays so that 0/0 does not raise."""
    return float(function(*map(np.asarray, table)))


class ContingencyMeasure:
    """A measure that is a function of the contingency table.

    A new one gives its name, its `structure` (see `metrimax.measure.tables`), a docstring whose first line is shown
    by `metrimax.measures`, and `table_loss`.

    Examples
    --------
    >>> from metrimax.measure import ContingencyMeasure
    >>> class Misses(ContingencyMeasure):
    ...     name, structure = "misses", "count"
    ...     def table_loss(self, tp, fp, fn, tn):
    ...         return fn / (tp + fn)
    >>> Misses().score([1, 1, 0, 0], [2.0, -1.0, 1.0, -3.0])
    0.5
    """

    name: ClassVar[str]
    structure: ClassVar[Structure | None] = None  #: None: probe it
    ranks: ClassVar[bool] = False

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        """D in [0, 1], vectorised."""
        raise NotImplementedError

    def table_score(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        """The measure as people report it, higher is better; ``1 - D`` unless said otherwise."""
        score: Vector = 1 - self.table_loss(tp, fp, fn, tn)
        return score

    def loss(self, y: Labels, z: npt.ArrayLike, sample_weight: Vector | None = None) -> float:
        """D of the labelling ``z`` (positive where > 0)."""
        return of_one(self.table_loss, *contingency(np.asarray(y) > 0, np.asarray(z) > 0, sample_weight))

    def score(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        """The measure of the rule ``score > 0``."""
        return of_one(self.table_score, *contingency(np.asarray(y) > 0, np.asarray(scores) > 0, sample_weight))

    def threshold(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        """Zero: the training problem places the intercept."""
        return 0.0

    def admissible(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> npt.NDArray[np.bool_] | None:
        """Which tables a labelling may have; None for all."""
        return None

    def counts(self, n_pos: float, n_neg: float) -> tuple[float, float] | None:
        """Least and greatest number of predicted positives admitted; None for no limit."""
        return None

    def by_count(self, m: Vector, n_pos: float, n_neg: float) -> tuple[Vector | float, Vector | float] | None:
        """``u, v`` with ``D = u + v tp`` for m = tp + fp, of the structure "count"; None: computed from `table_loss`.

        A coefficient that does not depend on m is one number. This is a shortcut that saves time and memory: a class
        that overrides `table_loss` overrides `by_count` too.
        """
        return None

    def fraction(self, n_pos: float, n_neg: float) -> Fraction | None:
        """D as a fraction of linear functions of the mistakes; None if it is none, or not known to be one.

        Like `by_count` a shortcut, used if the units of the two classes have different weights.
        """
        return None

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle:
        return ContingencyOracle(self, y, sample_weight)
