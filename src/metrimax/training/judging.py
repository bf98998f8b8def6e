"""Judge out-of-fold scores by a measure, with the threshold of training or that of the folds."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from metrimax.measure.base_loss import Losses
from metrimax.measure.classes import score_classes
from metrimax.measure.constrained import Constrained
from metrimax.measure.contingency import ContingencyMeasure
from metrimax.protocols import Vector
from metrimax.training.folds import Held, Sample, varied
from metrimax.training.threshold import choose_threshold

FEW = 10
"""With fewer examples of a class no threshold is taken from the folds: it would depend on one or two examples."""

Candidate = tuple[Losses, float]
"""Losses and their C."""


class Judged(NamedTuple):
    """Candidates (losses, C) and their scores by the measure; nan where there is none.

    ``pooled`` is by label, candidate and threshold, on the test rows of all folds together; ``splits`` by label, fold,
    candidate and threshold; ``thresholds`` are those of the folds, by label and candidate; ``reach`` is, for a measure
    with a constraint, the greatest level that a threshold keeps with confidence.
    """

    candidates: list[Candidate]
    pooled: Vector
    splits: Vector
    thresholds: Vector
    reach: Vector


class _Pool:
    """The test rows of all folds, one fold after the other."""

    def __init__(self, sample: Sample) -> None:
        tests = [fold.test for fold in sample.folds]
        rows = np.concatenate(tests)
        ends = np.cumsum([0, *map(len, tests)])
        self.parts = [slice(first, last) for first, last in pairwise(ends)]
        self.sizes = np.diff(ends)
        self.truth = sample.labels[rows]
        self.weight = None if sample.weight is None else sample.weight[rows]
        self.measure, self.in_folds = sample.scoring(rows), [sample.scoring(test) for test in tests]
        self.varied = varied(sample.labels, sample.weight, rows)
        self.varied_in = [varied(sample.labels, sample.weight, test) for test in tests]
        if not self.varied.any():  # for such labels only measures of the table are defined
            self.varied[:] = not self.measure.ranks

    def weights(self, part: slice) -> Vector | None:
        return None if self.weight is None else self.weight[part]

    def threshold(self, label: int, scores: Vector) -> float:
        """The threshold for the scores of all folds; nan where a class has too few examples."""
        y, measure = self.truth[:, label], self.measure
        if isinstance(measure, Constrained) and self.varied[label]:
            return measure.threshold(y, scores, self.weight)
        if measure.ranks or not isinstance(measure, ContingencyMeasure) or min(y.sum(), (~y).sum()) < FEW:
            return np.nan
        return choose_threshold(measure, y, scores, self.weight)

    def reach(self, label: int, scores: Vector) -> float:
        """The greatest level of a constraint that a threshold keeps with confidence; nan where there is none."""
        if not isinstance(self.measure, Constrained):
            return np.nan
        return self.measure.reach(self.truth[:, label], scores, self.weight)


def judge(
    sample: Sample,
    held: list[list[Held]],
    labels: range,
    candidates: list[Candidate],
    rules: tuple[str, ...],
) -> Judged:
    """Judge the out-of-fold scores of some labels, candidate by candidate."""
    pool, shape = _Pool(sample), (len(candidates), len(rules))
    pooled = np.full((1 if sample.together else len(labels), *shape), np.nan)
    splits = np.full((len(pooled), len(held), *shape), np.nan)
    thresholds, reach = np.full((2, len(labels), len(candidates)), np.nan)
    for k in range(len(candidates)):
        above = np.empty((len(rules), len(pool.truth), len(labels)))
        for j, label in enumerate(labels):
            scores = np.concatenate([fold[j].scores[:, k] for fold in held])
            fitted = [fold[j].fitted[k] for fold in held]
            for t, rule in enumerate(rules):
                if rule == "folds":
                    thresholds[j, k] = pool.threshold(label, scores)
                    above[t, :, j] = scores - thresholds[j, k]
                    reach[j, k] = pool.reach(label, scores)
                else:
                    of_fold = [one.threshold if rule == "placed" else one.trained for one in fitted]
                    above[t, :, j] = scores - np.repeat(of_fold, pool.sizes)
        for t, of_rule in enumerate(above):
            if sample.together:
                _judge_classes(pool, of_rule, pooled[0, k, t : t + 1], splits[0, :, k, t])
            elif not (rules[t] == "folds" and np.isnan(thresholds[:, k]).all()):
                _judge_labels(pool, labels, of_rule, pooled[:, k, t], splits[:, :, k, t])
    return Judged(candidates, pooled, splits, thresholds, reach)


def _judge_labels(pool: _Pool, labels: range, above: Vector, pooled: Vector, splits: Vector) -> None:
    """Fill in the scores of each label with each threshold."""
    for j, label in enumerate(labels):
        y, own = np.ascontiguousarray(pool.truth[:, label]), np.ascontiguousarray(above[:, j])
        if not pool.varied[label] or np.isnan(own[0]):
            continue
        worth = pool.measure.merit if isinstance(pool.measure, Constrained) else pool.measure.score
        pooled[j] = worth(y, own, pool.weight)
        for f, part in enumerate(pool.parts):
            if pool.varied_in[f][label]:
                splits[j, f] = pool.in_folds[f].score(y[part], own[part], pool.weights(part))


def _judge_classes(pool: _Pool, above: Vector, pooled: Vector, splits: Vector) -> None:
    """The same for exclusive classes: the class with the highest score is predicted."""
    pooled[0] = score_classes(pool.measure, pool.truth, above, np.flatnonzero(pool.varied), pool.weight)
    for f, part in enumerate(pool.parts):
        columns = np.flatnonzero(pool.varied_in[f])
        if len(columns):
            splits[f] = score_classes(pool.in_folds[f], pool.truth[part], above[part], columns, pool.weights(part))
