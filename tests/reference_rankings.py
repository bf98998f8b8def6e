"""Plain Python versions of the measures of rankings and of their risks; beside reference.py."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import reference as ref

from metrimax.measure import (
    NDCG,
    PartialAUC,
    PrecisionAtK,
    RecallAtBudget,
    RecallAtK,
    get_measure,
)


def average_precision_loss(grades: list[float]) -> float:
    """Of the labels in the order of a ranking."""
    found, total = 0, 0.0
    for rank, positive in enumerate(grades, start=1):
        if positive:
            found += 1
            total += found / rank
    return 1 - total / found


def ndcg_loss(k: int | None, linear: bool = False) -> Callable[[list[float]], float]:
    def dcg(grades: list[float]) -> float:
        gains = [g if linear else 2**g - 1 for g in grades]
        return sum(gain / math.log2(1 + r) for r, gain in enumerate(gains, start=1) if k is None or r <= k)

    return lambda grades: 1 - dcg(grades) / dcg(sorted(grades, reverse=True))


def top_loss(k: int, recall: bool = False) -> Callable[[list[float]], float]:
    return lambda grades: 1 - sum(grades[:k]) / (min(k, sum(grades)) if recall else k)


class RankingCase(NamedTuple):
    """A measure of rankings, and its loss of the labels in the order of a ranking; all pairs of grades pay alike."""

    name: str
    measure: object
    loss: Callable[[list[float]], float]
    graded: bool = False
    budget: int | None = None  # the score is relative to all positives, the loss to those that so many can hold

    def most(self, y: np.ndarray) -> float:
        """The score of the best ranking."""
        return 1.0 if self.budget is None else min(1.0, self.budget / y.sum())

    def term(self, y: np.ndarray, scores: np.ndarray, ranking: tuple[int, ...]) -> float:
        """Loss of a ranking, minus the mean over all pairs of the swapped differences of scores."""
        grades, s = [float(y[i]) for i in ranking], [float(scores[i]) for i in ranking]
        pairs = [(a, b) for a in range(len(s)) for b in range(a + 1, len(s)) if grades[a] != grades[b]]
        swapped = sum(s[b] - s[a] for a, b in pairs if grades[b] > grades[a])
        return self.loss(grades) - swapped / len(pairs)


class PartialCase(NamedTuple):
    """Partial AUC: the negatives down to the share beta pay, those from alpha on are lost."""

    name: str
    measure: object
    graded: bool = False

    def most(self, y: np.ndarray) -> float:
        return 1.0

    def term(self, y: np.ndarray, scores: np.ndarray, ranking: tuple[int, ...]) -> float:
        n_pos, n_neg = int(y.sum()), int((~y).sum())
        a, b = self.measure.alpha * n_neg, self.measure.beta * n_neg
        total, above = 0.0, []
        for i in ranking:
            if not y[i]:
                above.append(scores[i])
                continue
            total += max(0.0, min(len(above), b) - a)
            total -= sum((scores[i] - t) * min(1.0, max(0.0, b - r)) for r, t in enumerate(above))
        return total / (n_pos * (b - a))


RANKINGS = [
    RankingCase("average_precision", get_measure("average_precision"), average_precision_loss),
    RankingCase("ndcg", get_measure("ndcg"), ndcg_loss(10), True),
    RankingCase("ndcg_at_1", NDCG(1), ndcg_loss(1), True),
    RankingCase("ndcg_at_3", NDCG(3), ndcg_loss(3), True),
    RankingCase("ndcg_linear", NDCG(2, "linear"), ndcg_loss(2, True), True),
    RankingCase("ndcg_all", NDCG(None), ndcg_loss(None), True),
    RankingCase("precision_at_1_rankings", PrecisionAtK(1, "rankings"), top_loss(1)),
    RankingCase("precision_at_2_rankings", PrecisionAtK(2, "rankings"), top_loss(2)),
    RankingCase("recall_at_2_rankings", RecallAtK(2, "rankings"), top_loss(2, recall=True)),
    RankingCase("plain_recall_at_1_rankings", RecallAtK(1, "rankings", "positives"), lambda g: 1 - g[0] / sum(g)),
    RankingCase("recall_at_budget", get_measure("recall_at_budget"), top_loss(1, recall=True), budget=1),
    RankingCase("recall_at_budget_2", RecallAtBudget(2), top_loss(2, recall=True), budget=2),
    PartialCase("partial_auc", get_measure("partial_auc")),
    PartialCase("partial_auc_0_1", PartialAUC(0, 1)),
    PartialCase("partial_auc_third", PartialAUC(0, 1 / 3)),
    PartialCase("partial_auc_middle", PartialAUC(0.3, 0.8)),
    PartialCase("partial_auc_end", PartialAUC(0.5, 1)),
]


def ranking_risk(case: RankingCase | PartialCase, y: np.ndarray, scores: np.ndarray) -> float:
    """R over all n! rankings; beyond 6 examples over those that keep each grade in the order of its scores."""
    if len(y) <= 6:
        return max(case.term(y, scores, ranking) for ranking in itertools.permutations(range(len(y))))
    queues = {g: [i for i in np.argsort(-scores, kind="stable") if y[i] == g] for g in np.unique(y).tolist()}

    def orders(left: dict[float, int]) -> Iterator[tuple[float, ...]]:
        if not any(left.values()):
            yield ()
        for g in left:
            if left[g]:
                yield from ((g, *rest) for rest in orders({**left, g: left[g] - 1}))

    def ranking(grades: tuple[float, ...]) -> tuple[int, ...]:
        queue = {g: iter(members) for g, members in queues.items()}
        return tuple(next(queue[g]) for g in grades)

    return max(case.term(y, scores, ranking(o)) for o in orders({g: len(m) for g, m in queues.items()}))


def average_precision_risk(y: np.ndarray, scores: np.ndarray) -> float:
    """R by trying every place of every negative, as in Yue et al. (2007)."""
    s, t = np.sort(scores[y])[::-1], np.sort(scores[~y])[::-1]
    k = np.arange(1, len(s) + 1)
    total = 0.0
    for j in range(1, len(t) + 1):
        gain = (k / (k + j - 1) - k / (k + j)) / len(s) - (s - t[j - 1]) / (len(s) * len(t))
        total += max(0.0, float(np.cumsum(gain[::-1]).max()))
    return total


def partial_auc_risk(alpha: float, beta: float, y: np.ndarray, scores: np.ndarray) -> float:
    """R by trying every number of negatives above every positive."""
    t = np.sort(scores[~y])[::-1]
    a, b = alpha * len(t), beta * len(t)
    x = np.minimum(np.arange(len(t) + 1), b)
    gained = np.concatenate(([0.0], np.cumsum(np.diff(x) * t)))
    best = (np.maximum(x - a, 0) + gained - np.multiply.outer(scores[y], x)).max(axis=1)
    return float(best.sum()) / (y.sum() * (b - a))


def risk(name: str, y: np.ndarray, scores: np.ndarray) -> float:
    """R of a case by name, or of roc_area, by the plainest way there is."""
    if name == "roc_area":
        return ref.roc_risk(y, scores)
    if (ranking := next((c for c in RANKINGS if c.name == name), None)) is not None:
        return ranking_risk(ranking, y, scores)
    return ref.risk_by_labellings(next(c for c in ref.CASES if c.name == name), y, scores)
