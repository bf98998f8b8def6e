"""The choice of C by the xi-alpha estimates, without splits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metrimax._validation import check_positive
from metrimax.designs import as_design
from metrimax.designs.kernel import Gram, LowRank
from metrimax.estimates.estimate import Estimate
from metrimax.estimates.machines import path_machines
from metrimax.estimates.sample import GramSample, LinearSample, Sample
from metrimax.estimators._base import refuse_design
from metrimax.estimators.svc import MeasureSVC
from metrimax.measure.base_loss import PAPER
from metrimax.measure.contingency import ContingencyMeasure, of_one
from metrimax.protocols import Hinges, Labels, Measure, Solution, Vector, required
from metrimax.solvers import side_by_side
from metrimax.training.choose import Chosen, Row
from metrimax.training.label import FittedLabel, Training, restate
from metrimax.training.lockstep import run
from metrimax.training.path import fit_path


class ByXiAlpha:
    """Choice of C by estimates from the training sample, for which the models are trained on all rows.

    Every label, or class against the rest, has its own estimates; their means choose one C for all.
    """

    def __init__(
        self,
        owner: MeasureSVC,
        training: Training,
        scoring: Measure,
        rho: float | None,
        X: Any,
        labels: Labels,
        weight: Vector | None,
    ) -> None:
        refuse_design(X, "selection='xi_alpha' needs the rows; set selection='holdout' or 'cv', which do not")
        if not isinstance(scoring, ContingencyMeasure):
            raise ValueError(
                f"selection='xi_alpha' needs a scoring that is a measure of the contingency table, got "
                f"{scoring.name!r}: choose another scoring, or selection='cv'"
            )
        if rho is not None:
            check_positive("rho", rho, ", or None to measure it")
        _check_machine(training)
        self._owner, self._training, self._scoring, self._given = owner, training, scoring, rho
        self._labels, self._weight = labels, weight
        self.features: Any = owner._features(X)
        self._sample: Sample
        if isinstance(self.features, Gram):
            self._sample = GramSample(self.features.values)
        else:
            self._sample = LinearSample(self.features.X if isinstance(self.features, LowRank) else X)
        self.scaling = owner._scaling([training.losses])
        self._design = as_design(self.features, intercept_scaling=self.scaling)
        self._fitted: dict[float, list[FittedLabel]] = {}
        self._hinges: dict[int, Hinges] = {}
        self._scores: dict[float, float] = {}
        self._rho: dict[int, float] = {}
        self._R2: float | None = None

    def rows(self, Cs: Vector) -> list[Row]:
        """One row for every C."""
        began = time.perf_counter()
        per_label = self._fit(Cs)
        estimates = [self._estimates(k, Cs, label) for k, label in enumerate(per_label) if not label[0].constant]
        if not estimates:
            raise ValueError("selection='xi_alpha' needs a label with examples on both sides, got none in y")
        rows = []
        for C, *of_labels in zip(Cs, *estimates, strict=True):
            score = float(np.mean([of_one(self._scoring.table_score, *estimate.table) for estimate in of_labels]))
            row: Row = {"param_C": C, "param_threshold": "trained", "pooled_test_score": score}
            row |= {"mean_test_score": score, "std_test_score": 0.0}
            named = [estimate.as_dict() for estimate in of_labels]
            row |= {name: float(np.mean([one[name] for one in named])) for name in named[0]}
            solutions = [label.solution for label in self._fitted[C]]
            self._scores[float(C)] = score
            row |= {"max_gap": max(one.gap for one in solutions), "sum_passes": sum(one.n_passes for one in solutions)}
            rows.append(row)
        seconds = (time.perf_counter() - began) / len(Cs)
        return [row | {"fit_time": seconds} for row in rows]

    def _fit(self, Cs: Vector) -> list[list[FittedLabel]]:
        """Every label trained along C; the solutions of a label share their multipliers."""
        design, labels = self._design, self._labels
        with self._owner._progress(self._training.measure, self.features) as callback:
            solver = side_by_side(self._training.solver, labels.shape[1])
            training = replace(self._training, solver=solver, callback=callback)
            per_label = run(design, (fit_path(training, design, one, self._weight, Cs) for one in labels.T))
        self._fitted |= {float(C): [label[k] for label in per_label] for k, C in enumerate(Cs)}
        return per_label

    def _estimates(self, k: int, Cs: Vector, fitted: Sequence[FittedLabel]) -> list[Estimate]:
        """The estimates of label k for every C."""
        design = self._design
        if k not in self._hinges:
            oracle = self._training.measure.oracle(np.ascontiguousarray(self._labels[:, k]), self._weight)
            make = required(oracle.can.hinges, "expected a sum of hinges")  # as `_check_machine` saw
            self._hinges[k] = make()
        bias = 0.0 if self.scaling is None else self.scaling
        weights = [float(C) * label.price for C, label in zip(Cs, fitted, strict=True)]
        machines = path_machines(self._sample, design, self._hinges[k], weights, [f.solution for f in fitted], bias)
        if self._R2 is None:
            self._R2 = machines[0].R2()
        if k not in self._rho:
            at = min(int(np.searchsorted(Cs * self._R2, 4.0)), len(Cs) - 1)
            given = self._given
            self._rho[k] = min(1.0, machines[at].drift(self._R2) / self._R2) if given is None else float(given)
        rho, R2 = self._rho[k], self._R2
        return [Estimate.count(m.doubtful(rho, R2)[m.counted], m.y[m.counted]) for m in machines]

    @property
    def solutions(self) -> list[Solution]:
        """The solutions of every label for every C."""
        return [label.solution for fitted in self._fitted.values() for label in fitted]

    def choose(self) -> list[Chosen]:
        """The C with the best estimate for all labels; of equals the least."""
        C = max(sorted(self._scores), key=self._scores.__getitem__)
        return [Chosen(PAPER, C, "trained", None, self._scores[C])] * self._labels.shape[1]

    def fitted(self, C: float) -> list[FittedLabel]:
        """The labels trained with this C."""
        return restate(self.features, self._fitted[C])


def _check_machine(training: Training) -> None:
    """Raise for problems to which the xi-alpha estimates do not apply."""
    measure = training.measure
    if measure.ranks or measure.oracle(np.array([False, True])).can.hinges is None:
        raise ValueError(
            "selection='xi_alpha' needs a measure whose mistakes add up over the examples, error, cost or "
            f"balanced_error, got {measure.name}: train for one of these and give {measure.name} as scoring, or choose "
            "selection='cv'"
        )
    if training.losses.base or training.rule != "trained":
        raise ValueError(
            "selection='xi_alpha' estimates machines with hinge=0 and threshold='trained', got "
            f"hinge={training.losses.hinge!r} and threshold={training.rule!r}: leave them out, or choose "
            "selection='cv'"
        )
