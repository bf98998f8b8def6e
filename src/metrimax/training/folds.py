"""Train labels on folds and score the rows held out. Folds are index arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from metrimax.measure.base_loss import Losses
from metrimax.protocols import Ask, Asking, Design, Labels, Measure, Rows, Vector
from metrimax.training.label import FittedLabel, LabelSample, Training, prepare
from metrimax.training.lockstep import run
from metrimax.training.path import fit_sample

AT_ONCE = 2**25
"""Most out-of-fold scores in memory, 256 MB: where there are more, labels are trained block by block."""


LOOSER, LOOSE = 10.0, 0.01
"""Folds train sums with base losses to `LOOSER` times the tolerance, at most `LOOSE`; the last fit has the tolerance.
Fits take half as long. The risk: candidates that are about equal may change places. On Reuters the folds chose another
candidate for a quarter of the 90 labels, and test macro-F1 was 64.62 instead of 64.64; enron 26.56 instead of 26.68,
yeast 47.68 instead of 47.52; on ten tables F1 was 0.0 points higher in the mean (from -2.8 to +0.9).
"""

SEVERAL = 3.0
"""So many times looser still where there are several labels, of which the mean shows what single ones do not. CPU
seconds 0.76 times on Reuters, 0.70 on bibtex; test macro-F1, the mean of three draws of the folds on Reuters, one draw
elsewhere: Reuters 64.2 instead of 63.5, bibtex 42.3 and 42.3, enron 26.5 and 28.4, yeast 48.1 and 47.8. One label gains
7 % of the seconds only, and on 20 tables F1 was 0.3 points lower.
"""


class Fold(NamedTuple):
    """The rows to train on, and those to test on."""

    train: Rows
    test: Rows


class FoldData(NamedTuple):
    """The training data of one fold.

    ``outside`` gives the scores of the test rows for weights (p, m). It is None where rows cannot be taken out of the
    design: the design then has all rows, and those held out have weight 0.
    """

    test: Rows
    training: Training
    design: Design
    labels: Labels
    weight: Vector | None
    outside: Callable[[Vector], Vector] | None = None


class Sample(Protocol):
    """A sample with its folds; the estimators and the command line each implement it."""

    @property
    def labels(self) -> Labels:
        """One column for each label."""

    @property
    def weight(self) -> Vector | None:
        """The weights of the examples where they are tested."""

    @property
    def folds(self) -> Sequence[Fold]: ...

    @property
    def batches(self) -> list[list[int]]:
        """The folds that share one design: each has its own, or all share one where rows cannot be taken out."""

    @property
    def together(self) -> bool:
        """Whether the scores of all labels decide together, as for several exclusive classes."""

    def parts(self, batch: list[int]) -> AbstractContextManager[list[FoldData]]:
        """The training data of the folds of a batch, over one design that is freed when the context ends."""

    def scoring(self, rows: Rows) -> Measure:
        """The measure that judges, on some rows."""


class Held(NamedTuple):
    """One label of one fold: for all losses and C what was trained (without weights), and scores of the test rows."""

    fitted: list[FittedLabel]
    scores: Vector


def train_folds(
    sample: Sample, losses: Sequence[Losses], Cs: Vector, labels: Sequence[int], workers: int = 1
) -> list[list[Held]]:
    """Train the given labels on every fold, with all losses and every C, and score its test rows."""

    def train(batch: list[int]) -> list[list[Held]]:
        with sample.parts(batch) as parts:
            held = run(parts[0].design, (_held_out(part, label, losses, Cs) for part in parts for label in labels))
        return [held[k * len(labels) : (k + 1) * len(labels)] for k in range(len(batch))]

    batches = sample.batches
    if workers == 1 or len(batches) == 1:
        return [fold for batch in batches for fold in train(batch)]
    with ThreadPoolExecutor(workers) as pool:
        return [fold for found in pool.map(train, batches) for fold in found]


def blocks(sample: Sample, variants: int) -> list[range]:
    """The labels in blocks whose scores fit into memory; one block where labels are judged together."""
    L = sample.labels.shape[1]
    scores = variants * sum(len(fold.test) for fold in sample.folds)
    size = L if sample.together else max(1, min(L, AT_ONCE // max(1, scores)))
    return [range(at, min(at + size, L)) for at in range(0, L, size)]


def _held_out(part: FoldData, label: int, losses: Sequence[Losses], Cs: Vector) -> Asking[Held]:
    """Train one label with all losses and every C, and score the rows held out; weights are not kept."""
    sample = prepare(part.training, part.design, part.labels[:, label], part.weight)
    slim, columns = [], []
    for own in losses:
        beside = _compared(sample, own, part.labels.shape[1] > 1) if isinstance(sample, LabelSample) else sample
        fitted = yield from fit_sample(beside, Cs)
        if part.outside is not None:
            columns.append(part.outside(np.column_stack([one.solution.w for one in fitted])))
        else:
            for one in fitted:
                (scores,) = yield Ask("scores", [one.solution.w])
                columns.append(scores[part.test, np.newaxis])
        slim += [one.slim() for one in fitted]
    return Held(slim, np.column_stack(columns))


def _compared(sample: LabelSample, losses: Losses, several: bool) -> LabelSample:
    """The sample with other losses, as loosely as candidates are compared."""
    beside = sample.beside(losses)
    tol, times = beside.training.tol, SEVERAL if several else 1.0
    looser = max(tol, times * min(LOOSER * tol, LOOSE)) if losses.base else tol
    return replace(beside, training=replace(beside.training, tol=looser))


def spread(labels: Labels, n_folds: int, seed: int, groups: npt.NDArray[np.generic] | None = None) -> list[Fold]:
    """Folds stratified by every label, or random folds of whole groups.

    Labels are assigned from the rarest to the most frequent, then the rows without any: each row goes to the fold with
    the fewest rows of its label and, among equals, the fewest rows (after Sechidis et al. 2011).
    """
    rng = np.random.default_rng(seed)
    if groups is not None:
        names, codes = np.unique(groups, return_inverse=True)
        of_row = (rng.permutation(len(names)) % n_folds)[codes]
    else:
        of_row = _dealt(np.asarray(labels > 0), n_folds, rng)
    return [Fold(np.flatnonzero(of_row != k), np.flatnonzero(of_row == k)) for k in range(n_folds)]


def _dealt(labels: Labels, n_folds: int, rng: np.random.Generator) -> Rows:
    """The fold of every row."""
    order, of_row = rng.permutation(len(labels)), np.full(len(labels), -1, dtype=np.intp)
    sizes, having = np.zeros(n_folds, dtype=np.intp), np.zeros((n_folds, labels.shape[1]), dtype=np.intp)
    shuffled = labels[order]
    rarest = np.argsort(labels.sum(axis=0), kind="stable")
    for column in [*rarest, None]:
        rows = order if column is None else order[shuffled[:, column]]
        for row in rows[of_row[rows] < 0]:
            counts = sizes if column is None else having[:, column] * (len(labels) + 1) + sizes
            fold = int(np.argmin(counts))
            of_row[row], sizes[fold] = fold, sizes[fold] + 1
            having[fold] += labels[row]
    return of_row


def varied(labels: Labels, weight: Vector | None, rows: Rows) -> npt.NDArray[np.bool_]:
    """Which labels, or grades, vary among some rows."""
    used = labels[rows] if weight is None else labels[rows][weight[rows] > 0]
    return np.asarray((used != used[:1]).any(axis=0))
