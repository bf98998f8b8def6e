"""The training of one label, as a run for `lockstep.run`: shared by the estimators and the command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from metrimax._validation import check_weights
from metrimax.designs import Dense
from metrimax.io.checkpoints import Checkpoint
from metrimax.measure.base_loss import PAPER, Losses
from metrimax.measure.constrained import Constrained
from metrimax.measure.place import place, place_if_it_pays
from metrimax.measure.plain import PlainOracle
from metrimax.measure.shifted import Shifted
from metrimax.protocols import Ask, Asking, Callback, Design, Labels, Measure, Oracle, Solution, Solver, Status, Vector
from metrimax.training import few_rows
from metrimax.training.certificate import Certificate, certify
from metrimax.training.resume import ResumedRun, identity


class FittedLabel(NamedTuple):
    """The result of training one label: its threshold, and the threshold that training alone gives it."""

    solution: Solution
    price: float
    threshold: float
    trained: float = 0.0
    certificate: Certificate | None = None

    def slim(self) -> FittedLabel:
        """A copy without the arrays that have one entry per row of the data."""
        return self._replace(solution=replace(self.solution, w=np.empty(0), history=[], cuts=None, dual_coef=None))

    @property
    def constant(self) -> bool:
        """Whether the label does not vary, and so neither does its prediction."""
        return self.solution.status is Status.ONE_CLASS

    def restated(self, old: Status, new: Status) -> FittedLabel:
        """The same, with ``new`` as its status where it was ``old``."""
        if self.solution.status is not old:
            return self
        return self._replace(solution=replace(self.solution, status=new))


def restate(features: Design | None, fitted: list[FittedLabel]) -> list[FittedLabel]:
    """What was trained on features that approximate their kernel, with a status that says so."""
    if trace_share(features) == 1:
        return fitted
    return [label.restated(Status.CONVERGED, Status.APPROXIMATE) for label in fitted]


def trace_share(features: Design | None) -> float:
    """The share of the trace of the kernel matrix that the features keep: 1 where only rounding is lost."""
    share = features.kept if isinstance(features, Dense) else 1.0
    return 1.0 if share > 1 - 1e-9 else share


class Frozen(NamedTuple):
    """A threshold from scores out of fold, and the measure that it was placed for."""

    measure: Measure
    threshold: float

    def confirmed(self, labels: Labels, scores: Vector, weight: Vector | None) -> float:
        """The threshold, or another one if a constraint does not even hold on the final training scores."""
        if isinstance(self.measure, Constrained):
            return self.measure.confirmed(self.threshold, labels, scores, weight)
        return self.threshold


@dataclass(frozen=True)
class Training:
    """How labels are trained.

    Parameters
    ----------
    measure, solver, tol
        The measure to train for, the solver, and the gap to reach.
    kind : str
        The kind of target. Unless it is "binary", a label may be the same for all examples; its classifier is then
        constant.
    losses : Losses
        The measure's risk and the base losses.
    rule : {"trained", "placed", "auto"}
        Where the threshold is: where training puts it, or where the measure is best on the training scores. "auto"
        places it only where that is better by more than one mistake in each class costs. Measures of rankings have a
        rule of their own.
    callback : callable or None
    checkpoint : Checkpoint or None
        Runs go on from the states kept there, and keep their own.
    certificate : bool
        Whether the bound is to be proven once more, by points that are kept with the model.
    frozen : Frozen or None
        A threshold that takes the place of the rule.
    """

    measure: Measure
    solver: Solver
    tol: float
    kind: str = "binary"
    losses: Losses = PAPER
    rule: str = "trained"
    callback: Callback | None = None
    checkpoint: Checkpoint | None = None
    certificate: bool = False
    frozen: Frozen | None = None


LOOSE_INTERCEPT = 10.0
"""The constant feature beside base losses, so that the intercept is hardly regularised: the threshold of fold models
suits the last one then. Logistic regression on 20 tables with the threshold of its folds, F1 and MCC in points beside
scikit-learn's: with 1 -0.5 and -1.2 (one table -14), with 10 +0.2 and +0.15."""


def intercept_scaling(given: float | str | None, losses: Iterable[Losses]) -> float:
    """The value of the constant feature where nobody gives it: 1 for the risk alone, as Joachims (2005) has it."""
    if isinstance(given, str):
        raise ValueError(f"expected intercept_scaling as a positive number, 'free' or None, got {given!r}")
    if given is not None:
        return given
    return LOOSE_INTERCEPT if all(one.base for one in losses) else 1.0


@dataclass(frozen=True)
class LabelSample:
    """One label on one sample, ready to be trained; the oracle of its measure is made once, for all losses and all C.

    With an ``offset`` (n,) what is trained is a correction of these scores.
    """

    training: Training
    design: Design
    labels: Labels
    weight: Vector | None
    offset: Vector | None
    of_measure: Oracle
    oracle: Oracle

    def beside(self, losses: Losses) -> LabelSample:
        """The same sample trained with these losses."""
        if losses == self.training.losses:
            return self
        oracle = _oracle(losses, self.of_measure, self.labels, self.weight, self.offset)
        return replace(self, training=replace(self.training, losses=losses), oracle=oracle)

    def risk_weight(self, C: float) -> float:
        """C kappa n; raises unless it can be computed with."""
        weight = float(C) * self.oracle.price * self.oracle.n
        check_weights([weight])
        return weight

    def identity(self) -> Asking[tuple[str, Vector]]:
        """The name of the file that keeps the state of this label, and a probe of the rows of X."""
        about = type(self.training.solver).__name__, self.training.measure.name, self.training.losses
        return identity(about, (self.labels, self.weight, self.offset), self.oracle, self.design)

    def finished(self, solution: Solution) -> Asking[FittedLabel]:
        """The label with its solution, and the threshold that the measure or the training scores give it."""
        measure, price, frozen = self.training.measure, self.of_measure.price, self.training.frozen
        if frozen is not None and not isinstance(frozen.measure, Constrained):
            return FittedLabel(solution, price, frozen.threshold)
        if frozen is None and not measure.ranks and self.training.rule == "trained":
            return FittedLabel(solution, price, 0.0)
        (scores,) = yield Ask("scores", [solution.w])
        scores = scores if self.offset is None else scores + self.offset
        if frozen is not None:
            return FittedLabel(solution, price, frozen.confirmed(self.labels, scores, self.weight))
        if measure.ranks:
            threshold = measure.threshold(self.labels, scores, self.weight)
            return FittedLabel(solution, price, threshold, threshold)
        rule = place_if_it_pays if self.training.rule == "auto" else place
        return FittedLabel(solution, price, rule(measure, self.labels, scores, self.weight))

    def certified(self, fitted: FittedLabel, C: float) -> Asking[FittedLabel]:
        """The label with a certificate, and the bound that it proves: the solver's, or as much as ``tol`` asks for."""
        training, weight, solution = self.training, self.risk_weight(C), fitted.solution
        plain = PlainOracle(training.measure, self.labels, self.weight, training.losses)
        enough = solution.objective - 0.98 * training.tol * weight  # rounding may take a little off it
        goal = min(solution.bound, enough)
        found = yield from certify(plain, self.design, weight, solution.w, goal=goal)
        gap = (solution.objective - found.bound) / weight
        status = Status.MAX_ITER if solution.status.ok and gap > training.tol else solution.status
        solution = replace(solution, bound=found.bound, gap=gap, status=status)
        return fitted._replace(solution=solution, certificate=found.certificate)


def prepare(
    training: Training, design: Design, labels: Labels, weight: Vector | None, offset: Vector | None = None
) -> LabelSample | FittedLabel:
    """The label ready to be trained, or its constant classifier where it does not vary."""
    labels = np.ascontiguousarray(labels)
    used = labels if weight is None else labels[weight > 0]
    if training.kind != "binary" and (used.all() or not used.any()):
        # all scores are zero, and the threshold lies below them or above; a class never seen is never the highest
        threshold = -1.0 if used.all() else 1.0 if training.kind.startswith("multilabel") else np.inf
        nothing = Solution(np.zeros(design.shape[1]), 0.0, 0.0, 0.0, 0, 0, 0, Status.ONE_CLASS, [], None)
        return FittedLabel(nothing, 1.0, threshold, threshold)
    of_measure = training.measure.oracle(labels, weight)
    oracle = _oracle(training.losses, of_measure, labels, weight, offset)
    return LabelSample(training, design, labels, weight, offset, of_measure, oracle)


def _oracle(losses: Losses, of_measure: Oracle, labels: Labels, weight: Vector | None, offset: Vector | None) -> Oracle:
    oracle = losses.oracle(of_measure, labels, weight)
    return oracle if offset is None else Shifted(oracle, offset)


def fit_label(
    training: Training, design: Design, labels: Labels, weight: Vector | None, C: float, offset: Vector | None = None
) -> Asking[FittedLabel]:
    """Train one label for one C: its oracle, its solution, its threshold."""
    sample = prepare(training, design, labels, weight, offset)
    if isinstance(sample, FittedLabel):
        return sample
    risk_weight = sample.risk_weight(C)
    if training.checkpoint is None:
        solution = yield from few_rows.solve(
            training.solver, sample.oracle, design, risk_weight, tol=training.tol, callback=training.callback
        )
    else:
        steps = partial(training.solver.steps, sample.oracle, design, risk_weight, tol=training.tol)
        name, probe = yield from sample.identity()
        run = ResumedRun(training.checkpoint.begin(name, risk_weight, probe), training.callback)
        solution = yield from run.solve(steps, sample.oracle, design, save=training.kind != "binary")
    fitted = yield from sample.finished(solution)
    return (yield from sample.certified(fitted, C)) if training.certificate else fitted
