"""What is trained where the user leaves it open, and what the scores of folds choose: C and threshold.

One engine for `MeasureSVCCV` and the command line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from metrimax.measure.base_loss import wants_hinges
from metrimax.measure.classes import score_classes
from metrimax.protocols import Measure, Solution, Vector
from metrimax.training.folds import Held, Sample, blocks, train_folds, varied

DEFAULT_C = 4.0
"""Where nobody gives one: suits text of unit length and features of scale 1 (docs/results/default_c.md)."""
RANKING_C = 1.0
"""The same for rankings within groups."""
MOST_EXTENSIONS = 10
"""How often a grid is extended at most."""

Row = dict[str, Any]
"""One C: its settings and scores, by the names of `cv_results_`."""


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


@dataclass
class ByFolds:
    """The choice by the scores of rows held out.

    Parameters
    ----------
    sample : Sample
    thresholds : tuple of str
        Those to choose from, the one preferred among equals first; that one is what the parts are trained with.
    slack : float
        So many standard errors count as no difference.
    workers : int
        Folds trained at a time.
    """

    sample: Sample
    thresholds: tuple[str, ...]
    slack: float
    workers: int = 1

    def __post_init__(self) -> None:
        self.solutions: list[Solution] = []

    def rows(self, Cs: Vector) -> list[Row]:
        """One row for every C, with the threshold that does better."""
        began = time.perf_counter()
        tables, fitted = [], []
        for block in blocks(self.sample, len(Cs)):
            held = train_folds(self.sample, Cs, block, self.workers)
            tables.append(self._judged(held, block))
            fitted += [label.fitted for fold in held for label in fold]
        table = _mean_over_labels(np.concatenate(tables))
        seconds = (time.perf_counter() - began) / len(Cs)
        rows = []
        for k, C in enumerate(Cs):
            at = choose_column(table[:, k], self.slack)
            solutions = [along[k].solution for along in fitted]
            self.solutions += solutions
            rows.append(
                {"param_C": C, "param_threshold": self.thresholds[at]}
                | _summary(table[:, k, at])
                | {
                    "max_gap": max(one.gap for one in solutions),
                    "sum_passes": sum(one.n_passes for one in solutions),
                    "fit_time": seconds,
                }
            )
        return rows

    def _judged(self, held: list[list[Held]], labels: range) -> Vector:
        """The measure by label, fold, C and threshold; nan where a fold says nothing of a label."""
        sample, n_Cs = self.sample, held[0][0].scores.shape[1]
        table = np.full((1 if sample.together else len(labels), len(held), n_Cs, len(self.thresholds)), np.nan)
        for f, (fold, own) in enumerate(zip(sample.folds, held, strict=True)):
            measure, truth = sample.scoring(fold.test), sample.labels[fold.test]
            weight = None if sample.weight is None else sample.weight[fold.test]
            tested = varied(sample.labels, sample.weight, fold.test)
            both = tested & varied(sample.labels, sample.weight, fold.train)
            judged = both if both.any() else tested if tested.any() else np.ones_like(both)
            for c, t in np.ndindex(table.shape[2:]):
                if sample.together:
                    above = np.column_stack([_above(one, c, t) for one in own])
                    table[0, f, c, t] = score_classes(measure, truth, above, np.flatnonzero(judged), weight)
                    continue
                for k in range(len(labels)):
                    if judged[labels[k]]:
                        table[k, f, c, t] = measure.score(truth[:, labels[k]], _above(own[k], c, t), weight)
        return table


def _above(held: Held, c: int, t: int) -> Vector:
    """The scores of the test rows above the first threshold to choose from, or above that of the training."""
    label = held.fitted[c]
    return np.ascontiguousarray(held.scores[:, c] - (label.unplaced() if t else label).threshold)


def _mean_over_labels(table: Vector) -> Vector:
    """By fold, C and threshold; every fold has a label that is judged."""
    mean: Vector = np.nanmean(table, axis=0)
    return mean


def _summary(scores: Vector) -> Row:
    """Mean, standard deviation and the scores of the folds, by scikit-learn's names."""
    row: Row = {"mean_test_score": np.mean(scores), "std_test_score": np.std(scores)}
    return row | {f"split{i}_test_score": score for i, score in enumerate(scores)}


def explore(rows_of: Callable[[Vector], list[Row]], grid: Vector, *, extend: bool = False) -> list[Row]:
    """The rows of all C of the grid, in ascending order.

    With ``extend`` it goes on beyond the grid, by its own ratio, while the best C is on its border.
    """
    rows = rows_of(np.unique(grid))
    for _ in range(MOST_EXTENSIONS if extend else 0):
        beyond = _beyond(rows)
        if beyond is None:
            break
        rows = sorted(rows + rows_of(np.array([beyond])), key=lambda row: float(row["param_C"]))
    return rows


def _beyond(rows: list[Row]) -> float | None:
    """The C to try next if the best one is on the border of the grid."""
    Cs = [float(row["param_C"]) for row in rows]
    best = float(max(rows, key=lambda row: float(row["mean_test_score"]))["param_C"])  # the first of equals
    if len(Cs) == 1:
        return None
    if best == Cs[-1]:
        return Cs[-1] * (Cs[-1] / Cs[-2])
    return Cs[0] * (Cs[0] / Cs[1]) if best == Cs[0] else None


def choose_row(rows: list[Row], slack: float) -> Row:
    """The row of the C to take."""
    Cs, means = ([float(row[key]) for row in rows] for key in ("param_C", "mean_test_score"))
    errors = [standard_error(np.array([row[key] for key in row if key.startswith("split")])) for row in rows]
    return rows[choose_C(Cs, means, errors, slack)]


def results(rows: list[Row]) -> dict[str, Any]:
    """The table of all rows, one array for each column, with the ranks of the means."""
    table = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    means = table["mean_test_score"]
    table["rank_test_score"] = 1 + np.array([int((means > mean).sum()) for mean in means])
    return table


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
