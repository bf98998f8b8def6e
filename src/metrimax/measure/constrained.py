"""Measures under a constraint: recall at a precision, precision at a recall, true positives at a false positive rate.

Each asks for the threshold that is best among those that keep a proportion ``good / (good + bad)`` of the table at or
above a level: precision is tp of tp + fp, recall tp of tp + fn, the true negative rate tn of tn + fp.

* Training: ``D = 1 - value`` where the constraint holds, and 1 where it does not. So R(w) bounds the loss of the rule
  ``score > 0``, and with it that of the best threshold.
* `score` looks at the ranking, as precision at k does: the best value over all thresholds on the scores given, 0 where
  the constraint holds for none.
* `threshold` leaves a margin. It is the best place at which the constraint would hold on other data with the
  ``confidence`` asked for: if the true proportion were only the level, this many good ones or more would have a
  probability of at most ``1 - confidence`` (the exact binomial test; Clopper & Pearson 1934). Where there is no such
  place, it is the one that is most likely to keep the level; if even that is less likely than not, and calling nothing
  keeps the constraint, nothing is called. `shortfall` says what was done. Scores of the training rows are better than
  those of others: the margin holds for scores out of fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from metrimax._validation import is_number
from metrimax.measure.contingency import ContingencyMeasure, ratio
from metrimax.measure.place import descents
from metrimax.measure.tables import Structure
from metrimax.protocols import Labels, Vector

ROUNDING = 1e-9
"""A proportion that is below its level by no more than this keeps it: weights are sums of rounded numbers."""

CONFIDENCE = 0.75
"""How sure the margin of a threshold is, unless told otherwise."""

EVEN = 0.5
"""A place whose doubt is greater is taken only if no other keeps the constraint.

Precision of 0.9 asked for, 61 sets: with 0.5 mean precision 0.88, recall 0.24; with 0.75 0.86 and 0.30; with 1 0.75 and
0.31. The 20 tables among them: 0.90 and 0.08, 0.83 and 0.08, 0.72 and 0.09.
"""


class Constrained(ContingencyMeasure):
    """A measure that counts where a proportion of the table keeps a level.

    Examples
    --------
    >>> from metrimax import RecallAtPrecision
    >>> from metrimax.measure import Constrained
    >>> isinstance(RecallAtPrecision(0.8), Constrained), RecallAtPrecision(0.8).level
    (True, 0.8)
    """

    ranks: ClassVar[bool] = True
    structure: ClassVar[Structure] = "limited"
    confidence: float

    @property
    def level(self) -> float:
        """The least value of the proportion that the constraint allows."""
        raise NotImplementedError

    def proportion(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> tuple[Vector, Vector]:
        """The numbers good and bad of the proportion ``good / (good + bad)``."""
        raise NotImplementedError

    def value(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        """The value to maximise."""
        return ratio(tp, tp + fn, 1.0)

    def holds(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> npt.NDArray[np.bool_]:
        """For which tables the constraint holds; it holds if good + bad = 0."""
        good, bad = self.proportion(tp, fp, fn, tn)
        kept: npt.NDArray[np.bool_] = good >= (self.level - ROUNDING) * (good + bad)
        return kept

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return np.where(self.holds(tp, fp, fn, tn), 1 - self.value(tp, fp, fn, tn), 1.0)

    def score(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        """The best value over all thresholds on these scores; 0 where the constraint holds for none of them."""
        _, table, _ = _places(np.asarray(y) > 0, scores, sample_weight)
        return float(np.max(self.table_score(*table)))

    def threshold(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        """The best threshold that keeps the constraint with confidence.

        If there is none, the one with the least `doubt`. If that is above `EVEN` and there is a threshold at which the
        constraint says nothing, that one: the precision says nothing where no example is called positive.
        """
        places, table, copies = _places(np.asarray(y) > 0, scores, sample_weight)
        doubt = self.doubt(*table, copies=copies)
        sure, idle = doubt <= 1 - self.confidence, np.add(*self.proportion(*table)) == 0
        if sure.any():
            return float(places[np.argmax(np.where(sure, self.value(*table), -np.inf))])
        if idle[0] and doubt.min() > EVEN:  # beyond the highest score by as much as they spread: others may be higher
            return float(places[0] + np.ptp(places))
        return float(places[np.argmin(doubt)])

    def confirmed(self, threshold: float, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        """A threshold from scores out of fold, or that of ``scores``, on which it does not even keep the constraint.

        ``scores`` are those of the final model on its training rows. They are better than those of other rows, so what
        breaks the constraint there keeps it nowhere: the models of the folds had scores of another scale. It happens
        where few rows in many columns can be separated in many ways.
        """
        _, table, _ = _places(np.asarray(y) > 0, scores, sample_weight, np.array([threshold]))
        return threshold if self.holds(*table)[0] else self.threshold(y, scores, sample_weight)

    def doubt(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector, copies: float = 1.0) -> Vector:
        """The p-value of the binomial test: the probability of ``good`` or more if the true proportion were the level.

        ``copies`` is the number of equal examples with the same spread as weights with the sum 1.
        """
        good, bad = (part * copies for part in self.proportion(tp, fp, fn, tn))
        if self.level >= 1:  # no finite sample proves a proportion of 1
            return np.where(self.holds(tp, fp, fn, tn), 0.0, 1.0)
        from scipy.special import betainc  # slow to import, and most measures do not need it

        return np.where(good > 0, betainc(np.maximum(good, 1e-300), bad + 1, self.level), 1.0)

    def assured(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector, copies: float = 1.0) -> Vector:
        """A lower confidence bound of the proportion on other data, at the measure's confidence."""
        good, bad = (part * copies for part in self.proportion(tp, fp, fn, tn))
        if self.level >= 1:
            return ratio(good, good + bad, 0.0)
        from scipy.special import betaincinv

        return np.where(good > 0, betaincinv(np.maximum(good, 1e-300), bad + 1, 1 - self.confidence), 0.0)

    def reach(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        """The greatest level that a threshold on these scores keeps with confidence: the best `assured`."""
        _, table, copies = _places(np.asarray(y) > 0, scores, sample_weight)
        return float(np.max(self.assured(*table, copies=copies)))

    def merit(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        """The value of the rule ``score > 0`` if it keeps the constraint with confidence, else ``-doubt``.

        So every rule that keeps the constraint beats every rule that does not, and of these the surer one is better.
        """
        _, table, copies = _places(np.asarray(y) > 0, scores, sample_weight, np.zeros(1))
        doubt = float(self.doubt(*table, copies=copies)[0])
        return float(self.value(*table)[0]) if doubt <= 1 - self.confidence else -doubt

    def shortfall(self, merit: float, reach: float) -> str | None:
        """The warning for a rule with this `merit`, on scores with this `reach`; None if it keeps the constraint."""
        if merit >= 0:
            return None
        done = "nothing is called positive" if merit <= -1 else f"the one that was taken keeps it with {1 + merit:.2g}"
        return (
            f"{self.name}: no threshold keeps {self.what(self.level)} on other data with a confidence of "
            f"{self.confidence:g}; {done}. With that confidence {self.what(reach)} can be kept: ask for that, or for "
            "less confidence, or give more examples"
        )

    def what(self, level: float) -> str:
        """A level in words."""
        raise NotImplementedError

    def _check(self, name: str, value: float, low: bool) -> None:
        """Raise unless the level and the confidence are proportions."""
        inside = is_number(value) and (0 < value <= 1 if low else 0 <= value < 1)
        if not inside:
            percent = f": {value:g} % is {value / 100:g}" if is_number(value) and 1 < value < 100 else ""
            wanted = "> 0 and <= 1" if low else ">= 0 and < 1"
            raise ValueError(f"{self.name}: expected {name} {wanted}, got {value!r}{percent}")
        if not (is_number(self.confidence) and 0 < self.confidence < 1):
            raise ValueError(f"{self.name}: expected a confidence between 0 and 1, got {self.confidence!r}")


@dataclass(frozen=True)
class RecallAtPrecision(Constrained):
    """Recall where the precision is at least a given one.

    Parameters
    ----------
    precision : float
        The least precision, above 0 and at most 1.
    confidence : float
        How sure the threshold is to keep it on other data of the same kind, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    >>> RecallAtPrecision(0.75).score(np.array([True, True, False, True, False]), scores)
    1.0
    """

    precision: float = 0.9
    confidence: float = CONFIDENCE
    name: ClassVar[str] = "recall_at_precision"

    def __post_init__(self) -> None:
        self._check("precision", self.precision, low=True)

    def what(self, level: float) -> str:
        return f"a precision of {level:.3g}"

    @property
    def level(self) -> float:
        return self.precision

    def proportion(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> tuple[Vector, Vector]:
        return tp, fp


@dataclass(frozen=True)
class PrecisionAtRecall(Constrained):
    """Precision where the recall is at least a given one.

    Parameters
    ----------
    recall : float
        The least recall, above 0 and at most 1.
    confidence : float
        As for `RecallAtPrecision`.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax import PrecisionAtRecall
    >>> round(PrecisionAtRecall(0.9).score(np.array([1, 1, 0, 0]), np.array([2.0, -1.0, 1.0, -3.0])), 3)
    0.667
    """

    recall: float = 0.9
    confidence: float = CONFIDENCE
    name: ClassVar[str] = "precision_at_recall"

    def __post_init__(self) -> None:
        self._check("recall", self.recall, low=True)

    def what(self, level: float) -> str:
        return f"a recall of {level:.3g}"

    @property
    def level(self) -> float:
        return self.recall

    def proportion(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> tuple[Vector, Vector]:
        return tp, fn

    def value(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        return ratio(tp, tp + fp, 1.0)


@dataclass(frozen=True)
class TPRAtFPR(Constrained):
    """True positive rate where the false positive rate is at most a given one.

    Parameters
    ----------
    fpr : float
        The greatest false positive rate, at least 0 and below 1.
    confidence : float
        As for `RecallAtPrecision`.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax import TPRAtFPR
    >>> round(TPRAtFPR(0.1).score(np.array([1, 1, 0, 0]), np.array([2.0, -1.0, 1.0, -3.0])), 3)
    0.5
    """

    fpr: float = 0.01
    confidence: float = CONFIDENCE
    name: ClassVar[str] = "tpr_at_fpr"
    structure: ClassVar[Structure] = "max"

    def __post_init__(self) -> None:
        self._check("fpr", self.fpr, low=False)

    def what(self, level: float) -> str:
        return f"a false positive rate of {1 - level:.3g}"

    @property
    def level(self) -> float:
        return 1 - self.fpr

    def proportion(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> tuple[Vector, Vector]:
        return tn, fp


def _places(
    y: Labels, scores: Vector, sample_weight: Vector | None, thresholds: Vector | None = None
) -> tuple[Vector, tuple[Vector, Vector, Vector, Vector], float]:
    """Thresholds from high to low, the tables of all of them, and the number of examples that a weight of 1 stands for.

    They lie halfway between scores that follow one another, and beyond the last on either side, unless given.
    """
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    used = weight > 0
    order = np.argsort(-np.asarray(scores)[used], kind="stable")
    values, weight, positive = np.asarray(scores)[used][order], weight[used][order], y[used][order]
    if thresholds is None:
        last = descents(values)
        ends = np.concatenate(([0], last + 1, [len(values)]))
        between = (values[last] + values[last + 1]) / 2
        thresholds = np.concatenate(([values[0] + 1.0], between, [values[-1] - 1.0]))
    else:
        ends = np.array([np.sum(values > one) for one in thresholds])
    tp, called = (np.concatenate(([0.0], np.cumsum(part)))[ends] for part in (np.where(positive, weight, 0.0), weight))
    n_pos, n = float(weight[positive].sum()), float(weight.sum())
    fp = called - tp
    copies = n / float(weight @ weight)
    return thresholds, (tp, fp, n_pos - tp, n - n_pos - fp), copies
