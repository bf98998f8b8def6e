"""The training of one label, as a run for `lockstep.run`: shared by the estimators and the command line."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from metrimax.io.checkpoints import Checkpoint, KeptRun
from metrimax.measure.base_loss import PAPER, Losses
from metrimax.measure.place import place
from metrimax.measure.shifted import Shifted
from metrimax.protocols import (
    Ask,
    Callback,
    Cuts,
    Design,
    Labels,
    Measure,
    Oracle,
    Record,
    Solution,
    Solver,
    Status,
    Vector,
)
from metrimax.solvers import along, pack, unpack

PROBED = 0.0, 0.01, 0.1, 1.0, 10.0
"""Sizes of the scores at which the risk of a kept run is compared."""


class FittedLabel(NamedTuple):
    """What the training of one label leaves."""

    solution: Solution
    price: float
    threshold: float

    def slim(self) -> FittedLabel:
        """The same without what is as long as the data; of the weights the last is left, the intercept's."""
        solution = replace(self.solution, w=self.solution.w[-1:].copy(), history=[], cuts=None, dual_coef=None)
        return self._replace(solution=solution)

    @property
    def constant(self) -> bool:
        """Whether the label does not vary, and so neither does its prediction."""
        return self.solution.status is Status.ONE_CLASS

    def unplaced(self) -> FittedLabel:
        """The same with the threshold that training gave it: zero, unless the label does not vary."""
        return self if self.constant else self._replace(threshold=0.0)

    def restated(self, old: Status, new: Status) -> FittedLabel:
        """The same, with ``new`` as its status where it was ``old``."""
        if self.solution.status is not old:
            return self
        return self._replace(solution=replace(self.solution, status=new))


def restate(features: Design | None, fitted: list[FittedLabel]) -> list[FittedLabel]:
    """What was trained on features that approximate their kernel, with a status that says so."""
    if kept(features) == 1:
        return fitted
    return [label.restated(Status.CONVERGED, Status.APPROXIMATE) for label in fitted]


def kept(features: Design | None) -> float:
    """The share of the kernel that the features keep; what rounding took off an exact one does not count."""
    share: float = getattr(features, "kept", 1.0)
    return 1.0 if share > 1 - 1e-9 else share


@dataclass(frozen=True)
class Training:
    """How labels are trained.

    Parameters
    ----------
    measure, solver, tol
        What for, by whom, and to which gap.
    kind : str
        Other than for two classes ("binary"), a label may be the same for all examples; its classifier is then a
        constant.
    losses : Losses
        The measure's risk and what stands beside it.
    placed : bool
        Whether the threshold is the best one on the training scores.
    callback : callable or None
    checkpoint : Checkpoint or None
        Runs go on from the states kept there, and keep their own.
    """

    measure: Measure
    solver: Solver
    tol: float
    kind: str = "binary"
    losses: Losses = PAPER
    placed: bool = False
    callback: Callback | None = None
    checkpoint: Checkpoint | None = None


def fit_label(
    training: Training, design: Design, labels: Labels, weight: Vector | None, C: float, offset: Vector | None = None
) -> Generator[Ask, Vector, FittedLabel]:
    """Train one label for one C, as `fit_path` does for several."""
    [fitted] = yield from fit_path(training, design, labels, weight, [C], offset)
    return fitted


def fit_path(
    training: Training,
    design: Design,
    labels: Labels,
    weight: Vector | None,
    Cs: Sequence[float] | Vector,
    offset: Vector | None = None,
) -> Generator[Ask, Vector, list[FittedLabel]]:
    """Train one label for every C: its oracle, its solutions, their thresholds.

    With an ``offset`` (n,) what is trained is a correction of these scores.
    """
    measure, kind, losses, checkpoint = training.measure, training.kind, training.losses, training.checkpoint
    labels = np.ascontiguousarray(labels)
    used = labels if weight is None else labels[weight > 0]
    if kind != "binary" and (used.all() or not used.any()):
        # all scores are zero, and the threshold lies below them or above; a class never seen is never the highest
        threshold = -1.0 if used.all() else 1.0 if kind.startswith("multilabel") else np.inf
        return [FittedLabel(_constant(design), 1.0, threshold)] * len(Cs)
    own = measure.oracle(labels, weight)
    oracle = losses.oracle(own, labels, weight)
    if offset is not None:
        oracle = Shifted(oracle, offset)
    weights = [float(C) * oracle.price * oracle.n for C in Cs]
    solve = partial(along, training.solver, oracle, design, tol=training.tol)
    if checkpoint is None:
        solutions = yield from solve(weights, callback=training.callback)
    else:
        name, probe = yield from _identity(measure, training.solver, oracle, design, labels, weight, offset, losses)
        several = len(weights) > 1
        # the cuts hold for every C, but a path drops those that serve no more: each of its solutions has its file
        names = [f"{name}-{one!r}" for one in weights] if several else [name]
        begin = [partial(checkpoint.begin, one, probe) for one in names]
        # where others are still to come the process may be killed before it ends
        to_the_end = several or kind != "binary"
        solutions = yield from _along_kept(solve, weights, begin, training.callback, to_the_end=to_the_end)
    rule = measure.threshold if measure.ranks else partial(place, measure) if training.placed else None
    fitted = []
    for solution in solutions:
        threshold = 0.0
        if rule is not None:
            scores = yield Ask("scores", solution.w)
            threshold = rule(labels, scores if offset is None else scores + offset, weight)
        fitted.append(FittedLabel(solution, own.price, threshold))
    return fitted


def _along_kept(
    solve: Callable[..., Generator[Ask, Vector, list[Solution]]],
    weights: list[float],
    begin: Sequence[Callable[[], KeptRun]],
    callback: Callback | None,
    *,
    to_the_end: bool,
) -> Generator[Ask, Vector, list[Solution]]:
    """Solutions for every weight, each begun from what was kept of it, or from the cuts of the one before.

    With ``to_the_end`` the state at the end of each is saved too.
    """
    solutions: dict[int, Solution] = {}
    cuts = None
    for k in sorted(range(len(weights)), key=lambda k: weights[k]):
        run = _Kept(begin[k](), callback)
        (one,) = yield from solve([weights[k]], start=cuts if run.start is None else run.start, callback=run)
        if to_the_end:
            run.keep_last(one)
        solutions[k], cuts = run.counted(one), run.cuts
    return [solutions[k] for k in range(len(weights))]


class _Kept:
    """A callback that saves the state of the run now and then, and counts on from the run it continues."""

    def __init__(self, run: KeptRun, callback: Callback | None) -> None:
        self._run, self._callback = run, callback
        self._state: Callable[[], Cuts] | None = None
        found = run.load()
        self.start = None if found is None else unpack(found[0])
        self._before = Record(0, 0, np.inf, -np.inf, 0, 0.0) if found is None else found[1]

    def keep(self, state: Callable[[], Cuts]) -> None:
        self._state = state

    @property
    def cuts(self) -> Cuts | None:
        """Those of the state that was offered last."""
        return None if self._state is None else self._state()

    def __call__(self, record: Record) -> Any:
        record = self._on(record)
        if self._run.due and self._state is not None:
            self._run.save(pack(self._state()), record)
        return self._callback(record) if self._callback is not None else None

    def keep_last(self, solution: Solution) -> None:
        """Save the state at the end of the run."""
        if self._state is not None and solution.history:
            self._run.save(pack(self._state()), self._on(solution.history[-1]))

    def counted(self, solution: Solution) -> Solution:
        """The solution, counted from the beginning."""
        return replace(
            solution,
            history=[self._on(record) for record in solution.history],
            n_iter=solution.n_iter + self._before.iteration,
            n_passes=solution.n_passes + self._before.n_passes,
        )

    def _on(self, record: Record) -> Record:
        return record._replace(
            iteration=record.iteration + self._before.iteration,
            n_passes=record.n_passes + self._before.n_passes,
            seconds=record.seconds + self._before.seconds,
        )


def _identity(
    measure: Measure,
    solver: Solver,
    oracle: Oracle,
    design: Design,
    labels: Labels,
    weight: Vector | None,
    offset: Vector | None,
    losses: Losses,
) -> Generator[Ask, Vector, tuple[str, Vector]]:
    """What the state of this label of this problem is known by, and what tells its rows of X from others.

    Measures of one name may have other parameters, or compare other labellings, so that the cuts of the one do not hold
    for the other: the risk is told by its values too, at scores of all sizes.
    """
    rng = np.random.default_rng(0)
    values = []
    for size in PROBED:
        scores = size * rng.normal(size=len(labels))
        cut = oracle(scores)
        values.append(f"{cut.loss + float(cut.slope @ scores):.9g}")
    told = type(solver).__name__, measure.name, oracle.price, oracle.n, values, design.shape, losses
    digest = hashlib.sha256(repr(told).encode())
    for part in (labels, weight, offset):
        digest.update(b"none" if part is None else part.tobytes())
    scores = yield Ask("scores", rng.normal(size=design.shape[1]))
    probe = rng.normal(size=(4, len(scores))) @ scores / max(float(np.linalg.norm(scores)), 1e-300)
    return digest.hexdigest()[:32], probe


def _constant(design: Design) -> Solution:
    """The solution of a label that does not vary: the threshold says which it is."""
    return Solution(np.zeros(design.shape[1]), 0.0, 0.0, 0.0, 0, 0, 0, Status.ONE_CLASS, [], None)
