"""Risks and cuts written out from the definitions, in plain NumPy: what verification compares with.

`PlainOracle` takes no number of the compiled search on trust. Of a measure of the contingency table, the search only
suggests which examples flip: loss and slope of the cut are computed here, from the measure's own `table_loss`. Of ROC
area and of hinges the cuts are written out. Of the other measures of rankings the cuts are those of the search.
"""

from __future__ import annotations

import numpy as np

from metrimax.measure.at_k import TopMeasure
from metrimax.measure.base_loss import PAPER, Losses
from metrimax.measure.contingency import ContingencyMeasure, of_one
from metrimax.measure.grouped import Grouped
from metrimax.measure.ranking import ROCArea
from metrimax.protocols import Array, Cut, Measure, Oracle, Vector

MOST_TABLES = 2**24
"""Tables are scanned one by one up to this number: seconds."""

ROUNDING = 1e-12
"""The share of its weight by which what flips of an example may be off."""


class PlainOracle:
    """An oracle whose answers are cuts by definition; ``losses`` says what stands beside the measure's risk.

    Attributes
    ----------
    unit : float
        The unit of the gap, divided by C; the risk of all losses is their sum divided by it.
    price : float
        kappa, of the measure alone.
    """

    def __init__(
        self,
        measure: Measure,
        y: Array,
        sample_weight: Vector | None,
        losses: Losses = PAPER,
        oracle: Oracle | None = None,
    ) -> None:
        self._measure, self._y = measure, y
        self._search = measure.oracle(y, sample_weight) if oracle is None else oracle
        self.n, self.price = self._search.n, self._search.price
        self._weight = np.ones(len(y)) if sample_weight is None else sample_weight
        made = losses.oracle(self._search, y, sample_weight)
        self.unit, self._losses = made.price * made.n, losses
        risk = 1 / self.price if isinstance(losses.risk, str) else losses.risk
        self._share = risk * self.price * self.n / self.unit
        self._groups = None
        if isinstance(measure, Grouped):
            self._groups = [
                (rows, PlainOracle(measure.measure, y[rows], None if sample_weight is None else sample_weight[rows]))
                for rows in measure.ranked(y, sample_weight)
            ]

    @property
    def defined(self) -> bool:
        """Whether the cuts are computed from the definition, not taken from the search."""
        if not self._share:
            return True
        if self._groups is not None:
            return all(own.defined for _, own in self._groups)
        return isinstance(self._measure, ROCArea) or self._of_tables

    @property
    def exhaustive(self) -> bool:
        """Whether `risk` looks at every table, or at every pair; where it does not, it is that of the search."""
        if not self._share:
            return True
        if self._groups is not None:
            return all(own.exhaustive for _, own in self._groups)
        if isinstance(self._measure, ROCArea):
            return True
        positive = self._y > 0
        units = np.array([self._weight[positive].sum() + 1, self._weight[~positive].sum() + 1])
        return self._of_tables and bool((self._weight % 1 == 0).all() and units.prod() <= MOST_TABLES)

    @property
    def _of_tables(self) -> bool:
        measure = self._measure
        rankings = isinstance(measure, TopMeasure) and measure.labellings == "rankings"
        return isinstance(measure, ContingencyMeasure) and not rankings

    def __call__(self, scores: Vector) -> Cut:
        """A plane under the risk; the search finds the one that attains it."""
        cut = self._base(scores)
        if not self._share:
            return cut
        own = self._cut(scores)
        return Cut(cut.loss + self._share * own.loss, cut.slope + self._share * own.slope)

    def risk(self, scores: Vector) -> float:
        """R of all losses at these scores."""
        base = self._base(scores)
        value = base.loss + float(base.slope @ scores)
        return value + self._share * self._risk(scores) if self._share else value

    def _risk(self, scores: Vector) -> float:
        """The measure's risk."""
        if self._groups is not None:
            return float(np.mean([own.risk(np.ascontiguousarray(scores[rows])) for rows, own in self._groups]))
        if self._of_tables and self.exhaustive:
            return self._scan(scores)
        cut = self._cut(scores)
        return cut.loss + float(cut.slope @ scores)

    def _base(self, scores: Vector) -> Cut:
        """The cut of the losses beside it: ``sum_i weight_i (hinge max(0, 1 - m_i) + logistic log(1 + exp(-m_i)))``.

        The margins m are the scores times the signs of the labels.
        """
        losses, positive, weight = self._losses, self._y > 0, self._weight
        if not losses.base:
            return Cut(0.0, np.zeros(len(scores)))
        if losses.balanced:
            of_classes = [max(float(weight[one].sum()), 1e-300) for one in (positive, ~positive)]
            weight = weight * weight.sum() / (2 * np.where(positive, *of_classes))
        sign = np.where(positive, 1.0, -1.0)
        margin = sign * scores
        inside = np.where(margin < 1, losses.hinge, 0.0)
        falls = losses.logistic * np.exp(-np.logaddexp(0.0, margin))  # the slope of log(1 + exp(-m)), turned around
        value = inside + losses.logistic * np.logaddexp(0.0, -margin) + falls * margin
        return Cut(float(weight @ value) / self.unit, -weight * (inside + falls) * sign / self.unit)

    def _cut(self, scores: Vector) -> Cut:
        if self._groups is not None:
            loss, slope = 0.0, np.zeros(len(scores))
            for rows, own in self._groups:
                cut = own(np.ascontiguousarray(scores[rows]))
                loss += cut.loss / len(self._groups)
                slope[rows] = cut.slope / len(self._groups)
            return Cut(loss, slope)
        if isinstance(self._measure, ROCArea):
            return self._pairs(scores)
        cut = self._search(scores)
        return self._redefined(cut) if self._of_tables else cut

    def _redefined(self, cut: Cut) -> Cut:
        """The cut of the labelling that a slope stands for; the zero cut if it is none that is admissible."""
        positive = self._y > 0
        flipped = np.clip(np.abs(cut.slope) * self.n, 0.0, self._weight)
        copies = np.where(self._weight % 1 == 0, np.rint(flipped), 0.0)
        for exact in (copies, self._weight):  # but for rounding, of which a loss such as a root may make much
            flipped = np.where(np.abs(flipped - exact) <= ROUNDING * self._weight, exact, flipped)
        fn, fp = float(flipped[positive].sum()), float(flipped[~positive].sum())
        if not (fn or fp):
            return Cut(0.0, np.zeros(len(flipped)))
        n_pos, n_neg = float(self._weight[positive].sum()), float(self._weight[~positive].sum())
        table = n_pos - fn, fp, fn, n_neg - fp
        if not bool(self._admissible(*map(np.asarray, table))):
            return Cut(0.0, np.zeros(len(flipped)))
        assert isinstance(self._measure, ContingencyMeasure)
        return Cut(of_one(self._measure.table_loss, *table), np.where(positive, -flipped, flipped) / self.n)

    def _admissible(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Array:
        """Which tables the measure admits."""
        assert isinstance(self._measure, ContingencyMeasure)
        admitted = np.ones(np.broadcast(tp, fp, fn, tn).shape, dtype=bool)
        counts = self._measure.counts(float(np.ravel(tp + fn)[0]), float(np.ravel(fp + tn)[0]))
        if counts is not None:
            slack = 1e-9 * self.n
            admitted &= (tp + fp >= counts[0] - slack) & (tp + fp <= counts[1] + slack)
        own = self._measure.admissible(tp, fp, fn, tn)
        return admitted if own is None else admitted & own

    def _scan(self, scores: Vector) -> float:
        """The measure's risk over all tables: of each, the flips of the lowest costs."""
        positive, counts = self._y > 0, self._weight.astype(int)
        pos, neg = (np.repeat(scores[one], counts[one]) for one in (positive, ~positive))
        P = np.concatenate(([0.0], np.cumsum(-np.sort(pos) / self.n)))
        N = np.concatenate(([0.0], np.cumsum(np.sort(neg)[::-1] / self.n)))
        assert isinstance(self._measure, ContingencyMeasure)
        best, fp = 0.0, np.arange(len(N), dtype=np.float64)
        step = max(1, 2**18 // len(N))
        for first in range(0, len(P), step):
            fn = np.arange(first, min(first + step, len(P)), dtype=np.float64)[:, np.newaxis]
            table = np.broadcast_arrays(len(P) - 1 - fn, fp, fn, len(N) - 1 - fp)
            with np.errstate(divide="ignore", invalid="ignore"):
                losses = np.where(self._admissible(*table), self._measure.table_loss(*table), -np.inf)
            best = max(best, float((losses + P[first : first + step, np.newaxis] + N).max()))
        return best

    def _pairs(self, scores: Vector) -> Cut:
        """ROC area: the pairs inside the margin, ``s_i - 1 < s_j``, counted by sorted scores and sums of weights.

        A pair whose difference is 1 but for rounding has to be in both sums or in none.
        """
        positive = self._y > 0
        loss, slope = 0.0, np.zeros(len(scores))
        total = float(self._weight[positive].sum() * self._weight[~positive].sum())
        order = np.argsort(scores[~positive])
        neg = scores[~positive][order]
        above = np.concatenate((np.cumsum(self._weight[~positive][order][::-1])[::-1], [0.0]))
        least = scores[positive] - 1
        inside = above[np.searchsorted(neg, least, side="right")]
        slope[positive] = -inside * self._weight[positive] / total
        loss = float(inside @ self._weight[positive]) / total
        order = np.argsort(least)
        below = np.concatenate(([0.0], np.cumsum(self._weight[positive][order])))
        inside = below[np.searchsorted(least[order], scores[~positive], side="left")]
        slope[~positive] = inside * self._weight[~positive] / total
        return Cut(loss, slope)
