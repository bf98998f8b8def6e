"""The choice of losses, C and threshold by the scores of rows held out.

One engine for the estimators and the command line. **The rule.** All candidates are trained on the same folds, and the
measure itself chooses, on the scores that the test rows of all folds have together. A label with few positives says
little: its own result has the weight n+ / (n+ + 30), the mean over all labels the rest. What that mean says is
uncertain, too: a candidate that is behind by no more than its standard error over the labels counts as equal. Of
candidates that are equal the one whose C is nearest to 1 is taken, and the first of these.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax._validation import warn
from metrimax.io.checkpoints import Checkpoint
from metrimax.measure.base_loss import Losses
from metrimax.measure.constrained import Constrained
from metrimax.protocols import Solution, Vector
from metrimax.training.defaults import Family
from metrimax.training.folds import Sample, blocks, train_folds
from metrimax.training.judging import Judged, judge
from metrimax.training.label import Frozen, Training

MOST_EXTENSIONS = 10
"""How often a grid is extended at most."""
SHRINK = 30.0
"""So many positives weigh as much as the mean over all labels."""
EQUAL = 1e-6
"""Results that differ by less are equal."""

Row = dict[str, Any]
"""One candidate: its settings and scores, by the names of `cv_results_`."""


class Chosen(NamedTuple):
    """What a label is trained with; ``frozen`` is the threshold of the folds, None where training gives it."""

    losses: Losses
    C: float
    rule: str
    frozen: Frozen | None
    score: float

    @property
    def settings(self) -> dict[str, Any]:
        """The settings in plain types."""
        return {"C": self.C} | asdict(self.losses) | {"threshold": self.rule}

    def training(self, training: Training, checkpoint: Checkpoint | None = None) -> Training:
        """How the label is trained at the end."""
        rule = "trained" if self.rule == "folds" else self.rule
        return replace(training, losses=self.losses, rule=rule, frozen=self.frozen, checkpoint=checkpoint)


class ByFolds:
    """The choice by the scores of rows held out.

    Parameters
    ----------
    sample : Sample
    family : Family
    slack : float
        So many standard errors count as no difference.
    workers : int
        Folds trained at a time.
    """

    def __init__(self, sample: Sample, family: Family, slack: float = 0.0, workers: int = 1) -> None:
        self._sample, self._family, self._slack, self._workers = sample, family, slack, workers
        self._judged: list[Judged] = []
        self.solutions: list[Solution] = []

    def rows(self, Cs: Vector) -> list[Row]:
        """Train all losses for every C; a row for each of them with each threshold."""
        began = time.perf_counter()
        losses, rules = self._family
        candidates = [(own, float(C)) for own in losses for C in Cs]
        found, solutions = [], []
        for block in blocks(self._sample, len(candidates)):
            held = train_folds(self._sample, losses, Cs, block, self._workers)
            found.append(judge(self._sample, held, block, candidates, rules))
            solutions += [[one.solution for one in label.fitted] for fold in held for label in fold]
        judged = Judged(candidates, *(np.concatenate(parts) for parts in list(zip(*found, strict=True))[1:]))
        self._judged.append(judged)
        self.solutions += [one for of_label in solutions for one in of_label]
        seconds = (time.perf_counter() - began) / len(candidates)
        return [
            {"param_C": C}
            | {f"param_{name}": value for name, value in asdict(own).items()}
            | {"param_threshold": rule}
            | _summary(judged.pooled[:, k, t], judged.splits[:, :, k, t])
            | {
                "max_gap": max(of_label[k].gap for of_label in solutions),
                "sum_passes": sum(of_label[k].n_passes for of_label in solutions),
                "fit_time": seconds,
            }
            for k, (own, C) in enumerate(candidates)
            for t, rule in enumerate(rules)
        ]

    def choose(self) -> list[Chosen]:
        """What to train every label with; labels that are judged together are trained alike."""
        candidates = [one for judged in self._judged for one in judged.candidates]
        pooled = np.concatenate([judged.pooled for judged in self._judged], axis=1)
        splits = np.concatenate([judged.splits for judged in self._judged], axis=2)
        thresholds = np.concatenate([judged.thresholds for judged in self._judged], axis=1)
        reach = np.concatenate([judged.reach for judged in self._judged], axis=1)
        Cs, positives = np.array([C for _, C in candidates]), _positives(self._sample)
        values = shrunk(pooled, positives)
        chosen: list[Chosen] = []
        scoring = self._sample.scoring(np.arange(len(self._sample.labels)))
        rules = self._family.thresholds
        if "folds" in rules and len(rules) > 1:
            values[:, :, rules.index("folds")][np.isnan(thresholds[: len(values)])] = -np.inf
        for label, own in enumerate(values):
            doubt = uncertainty(pooled, positives[label], int(np.argmax(own)))
            k, t = first_best(own, Cs, splits[label], self._slack, doubt)
            rule, frozen = rules[t], None
            if rule == "folds" and np.isnan(thresholds[label, k]):  # asked for, but a class has too few examples
                rule = "trained"
            elif rule == "folds":
                frozen = Frozen(scoring, float(thresholds[label, k]))
                if isinstance(scoring, Constrained):
                    text = scoring.shortfall(float(pooled[label, k, t]), float(reach[label, k]))
                    if text:
                        warn(text)
            chosen.append(Chosen(*candidates[k], rule, frozen, float(pooled[label, k, t])))
        times: int = self._sample.labels.shape[1] // len(chosen)
        return chosen * times

    def held_out(self, chosen: list[Chosen]) -> Vector:
        """The scores (n, L) of rows that were held out, with what was chosen, less the threshold."""
        sample = self._sample
        scores = np.zeros(sample.labels.shape)
        settings = [(one.losses, one.C) for one in chosen]
        for losses, C in dict.fromkeys(settings):  # labels that are trained alike, together
            labels = [k for k, own in enumerate(settings) if own == (losses, C)]
            for fold, held in zip(
                sample.folds, train_folds(sample, (losses,), np.array([C]), labels, self._workers), strict=True
            ):
                for k, own in zip(labels, held, strict=True):
                    [fitted] = own.fitted
                    trained = fitted.threshold if chosen[k].rule == "placed" else fitted.trained
                    given = chosen[k].frozen
                    scores[fold.test, k] = own.scores[:, 0] - (trained if given is None else given.threshold)
        return scores


def mean_score(chosen: list[Chosen]) -> float:
    """The mean over the labels that have a score; nan if none has one."""
    return float(_mean(np.array([one.score for one in chosen]), 0))


def shrunk(pooled: Vector, positives: Vector) -> Vector:
    """How much better each candidate is than others for each label, shrunk towards the mean over labels.

    A label is compared with its own mean over the candidates with the first threshold, so that hard labels count like
    easy ones. The value is -inf where the label has no such threshold. Labels of which nothing is known go by the
    others.
    """
    better = pooled - _mean(pooled[:, :, 0], 1)[:, np.newaxis, np.newaxis]
    common = _mean(better, 0)
    share = (positives / (positives + SHRINK))[: len(pooled), np.newaxis, np.newaxis]
    known = ~np.isnan(pooled).all(axis=(1, 2), keepdims=True)
    both = np.where(known, share * better + (1 - share) * common, common)
    return np.where(np.isnan(both), -np.inf, both)


def uncertainty(pooled: Vector, positives: float, best: int) -> Vector:
    """How uncertain it is, for a label, by how much candidates are behind the best (by its place among all of them).

    It is the standard error, over the labels, of the mean difference, by the weight of that mean. With folds drawn in
    three ways, test macro-F1 on Reuters was 64.1, 63.8 and 62.7 instead of 64.7, 60.1 and 59.4: of C = 3 and C = 30,
    which are equal in the mean over its 90 labels, the larger does not suit the rare ones.
    """
    flat = pooled.reshape(len(pooled), -1)
    behind = flat - flat[:, [best]]
    count = np.maximum((~np.isnan(behind)).sum(axis=0), 1)
    variance = _mean((behind - _mean(behind, 0)) ** 2, 0) / np.maximum(count - 1, 1)
    error = np.sqrt(np.where(np.isnan(variance), 0.0, variance)).reshape(pooled.shape[1:])
    return np.asarray(SHRINK / (positives + SHRINK) * error)


def first_best(
    values: Vector, Cs: Vector, splits: Vector, slack: float, doubt: Vector | float = 0.0
) -> tuple[int, int]:
    """The candidate and the threshold to take: of those that are equal the C nearest to 1, and the first of these.

    Behind the best by no more than its ``doubt``, or ``slack`` standard errors of the best, counts as equal.
    """
    best, rule = divmod(int(np.argmax(values)), values.shape[1])
    error = slack * standard_error(splits[:, best, rule]) if slack else 0.0
    equals = np.argwhere(values >= values[best, rule] - np.maximum(max(EQUAL, error), doubt)).tolist()
    k, t = min(equals, key=lambda pair: (round(abs(float(np.log(Cs[pair[0]]))), 9), pair))
    return k, t


def _positives(sample: Sample) -> Vector:
    """The number of positives of each label, or their weight."""
    weight = np.ones(len(sample.labels)) if sample.weight is None else sample.weight
    return np.asarray(weight @ (sample.labels > 0), dtype=np.float64)


def _mean(values: Vector, axis: int) -> Vector:
    """The mean over the entries that are not nan; nan if there are none."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _summary(pooled: Vector, splits: Vector) -> Row:
    """Scores of one candidate as means over the labels, by scikit-learn's names."""
    of_folds = _mean(splits, 0)
    known = of_folds[~np.isnan(of_folds)]
    row: Row = {"pooled_test_score": float(_mean(pooled, 0))}
    row |= {
        "mean_test_score": known.mean() if len(known) else np.nan,
        "std_test_score": known.std() if len(known) else np.nan,
    }
    return row | {f"split{i}_test_score": score for i, score in enumerate(of_folds)}


def explore(rows_of: Callable[[Vector], list[Row]], grid: Vector, *, extend: bool = False) -> list[Row]:
    """The rows of all C of the grid.

    With ``extend`` it goes on beyond the grid, by its own ratio, while the best C is on its border.
    """
    Cs = np.unique(grid)
    rows = rows_of(Cs)
    for _ in range(MOST_EXTENSIONS if extend and len(Cs) > 1 else 0):
        best = max(rows, key=_goodness)["param_C"]
        if best == Cs[-1]:
            Cs = np.append(Cs, beyond := Cs[-1] * (Cs[-1] / Cs[-2]))
        elif best == Cs[0]:
            Cs = np.insert(Cs, 0, beyond := Cs[0] * (Cs[0] / Cs[1]))
        else:
            break
        rows = sorted(rows + rows_of(np.array([beyond])), key=lambda row: float(row["param_C"]))
    return rows


def _goodness(row: Row) -> tuple[float, float]:
    """Of equals the C nearest to 1 is the better one."""
    score, distance = float(row["pooled_test_score"]), abs(float(np.log(row["param_C"])))
    return (-np.inf if np.isnan(score) else round(score, 9)), -distance


def results(rows: list[Row]) -> dict[str, Any]:
    """The table of all rows, one array for each column, with the ranks of the scores that choose."""
    table = {key: _column([row[key] for row in rows]) for key in rows[0]}
    scores = np.nan_to_num(table["pooled_test_score"], nan=-np.inf)
    table["rank_test_score"] = 1 + np.array([int((scores > score).sum()) for score in scores])
    return table


def _column(values: list[Any]) -> npt.NDArray[Any]:
    """A column as an array of numbers, or of objects if it holds names."""
    mixed = len({isinstance(value, str) for value in values}) > 1
    return np.array(values, dtype=object if mixed else None)


def standard_error(scores: Vector) -> float:
    """The standard error of the mean over the folds; 0 for one fold, which does not show it."""
    known = scores[~np.isnan(scores)]
    return float(np.std(known)) / float(np.sqrt(len(known) - 1)) if len(known) > 1 else 0.0
