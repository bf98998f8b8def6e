"""What is learnt from scores out of fold: the stack, the threshold, and an estimate of the measure on other data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from metrimax.estimators._ensemble_members import Target
from metrimax.estimators._ensemble_stack import Stack, fit_stack
from metrimax.estimators._targets import judge
from metrimax.protocols import Labels, Measure, Rows, Vector
from metrimax.training.threshold import choose_threshold

GROUPS = 20
"""Groups of rows that are left out one by one for the standard error, which is then itself uncertain by a sixth,
1 / sqrt(2 x 19).
"""

CURVE = 300.0
"""The ``prior`` of `choose_threshold`. It is more than for other scores, because a stack is a logistic fit to the same
labels. Beside the default of 100, in points of F1, balanced accuracy and MCC: +0.2, +0.1, +0.1 on 20 splits of ten
tables that chose it; +0.5, +0.1, 0.0 on 14 splits of ten others; +0.1, +0.1, +0.4 on 31 imbalanced sets; -0.2, +0.1,
0.0 on another split of these 20 tables. So balanced accuracy gains a little, and the others nothing for certain. With
the curve alone balanced accuracy is 0.1 behind on the imbalanced sets.
"""


class Rule(NamedTuple):
    """For every label a stack, and its threshold."""

    stacks: list[Stack]
    thresholds: Vector

    def __call__(self, scores: Vector) -> Vector:
        """Scores (n, L) of an ensemble from those of its members, (n, L, M): above zero is positive."""
        stacked = [stack(np.ascontiguousarray(scores[:, k])) for k, stack in enumerate(self.stacks)]
        above: Vector = np.column_stack(stacked) - self.thresholds
        return above


class Expectation(NamedTuple):
    """The measure on other data, and its standard error."""

    score: float
    std: float


class OutOfFold(NamedTuple):
    """Scores (n, L, M) of members for rows that they were not trained on, with the measure that judges them."""

    measure: Measure
    target: Target
    scores: Vector
    weight: Vector

    def learn(self, rows: Rows) -> Rule:
        """The stacks and thresholds that are best for these rows."""
        labels, weight = self.target.labels[rows], self.weight[rows]
        stacks = [fit_stack(self.scores[rows, k], labels[:, k], weight) for k in range(labels.shape[1])]
        rule = Rule(stacks, np.zeros(len(stacks)))
        scores = rule(self.scores[rows])
        placed = np.array(
            [
                choose_threshold(self.measure, labels[:, k], scores[:, k], weight, prior=CURVE)
                for k in range(len(stacks))
            ]
        )
        if self.target.kind != "multiclass":
            return rule._replace(thresholds=placed)
        # the highest score is predicted: thresholds that are best for each class may be worse for all together
        better = not self.measure.ranks and self._judge(scores - placed, rows) > self._judge(scores, rows)
        return rule._replace(thresholds=placed) if better else rule

    def estimate(self, parts: list[Rows], members: Sequence[int], seed: int, trained: float) -> Expectation:
        """The measure with only these members. The rule for each part is learnt from the other parts.

        The standard error has two parts. That of the jackknife, which leaves out one group of rows at a time, is the
        chance in the rows that are judged. The models share most of their training rows, so that what these have by
        chance does not average out over the folds: it adds tested / ``trained`` times as much variance, with the number
        of rows that folds test and that a model is trained on (Nadeau & Bengio 2003; 1.25 for five folds).
        """
        own = self._replace(scores=self.scores[:, :, members])
        scores = np.full(self.target.labels.shape, np.nan)
        for k, part in enumerate(parts):
            others = np.concatenate([other for j, other in enumerate(parts) if j != k] or [part])
            scores[part] = own.learn(others)(own.scores[part])
        rows = np.concatenate(parts)
        groups = _groups(self.target.labels[rows], seed)
        left_out = [rows[groups != g] for g in range(groups.max() + 1)]
        without = np.array([self._judge(scores[left], left) for left in left_out])
        spread = np.sqrt((len(without) - 1) * np.var(without) * (1 + len(rows) / trained))
        return Expectation(self._judge(scores[rows], rows), float(spread))

    def _judge(self, scores: Vector, rows: Rows) -> float:
        """The measure of scores (n, L) of rows."""
        target = self.target
        scores = scores[:, 0] if target.kind == "binary" else scores
        return judge(self.measure, scores, target.y[rows], target.classes, self.weight[rows], several=target.separate)


def _groups(labels: Labels, seed: int) -> Rows:
    """A group for each row. Each combination of labels is spread evenly over the groups."""
    order = np.random.default_rng(seed).permutation(len(labels))
    spread = order[np.lexsort(labels[order].astype(np.uint8).T)]
    groups = np.empty(len(labels), dtype=np.intp)
    groups[spread] = np.arange(len(labels)) % min(GROUPS, max(2, len(labels) // 2))
    return groups
