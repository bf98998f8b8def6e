"""The choice of C by the xi-alpha estimates, without splits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from metrimax._validation import check_positive
from metrimax.designs.kernel import Gram, LowRank
from metrimax.estimates.estimate import Estimate
from metrimax.estimates.machines import path_machines
from metrimax.estimators._base import refuse_design
from metrimax.estimators._sample_path import SamplePath, gap_of, passes_of
from metrimax.estimators.svc import MeasureSVC
from metrimax.io.checkpoints import Checkpoint
from metrimax.measure import get_measure
from metrimax.measure.contingency import ContingencyMeasure, of_one
from metrimax.protocols import Hinges, Measure, RowDesign, Solution, Vector, hinges_of
from metrimax.training.label import FittedLabel

Row = dict[str, Any]
"""One C: its settings and scores, by the names of `cv_results_`."""


class ByXiAlpha:
    """Estimates from the training sample alone; the models of the path are trained on everything, so none is lost.

    Every label, or class against the rest, has its own estimates; their means choose the one C for all.
    """

    def __init__(
        self,
        template: MeasureSVC,
        scoring: Measure,
        rho: float | None,
        X: Any,
        y: Any,
        weight: Vector | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        refuse_design(X, "selection='xi_alpha' needs the rows; selection='holdout' or 'cv' does without them")
        if not isinstance(scoring, ContingencyMeasure):
            raise ValueError(
                f"selection='xi_alpha' estimates measures of the contingency table, and {scoring.name!r} is none: "
                "choose another scoring, or selection='cv'"
            )
        if rho is not None:
            check_positive("rho", rho, ", or None to measure it")
        _check_machine(template)
        self._scoring, self._given = scoring, rho
        kept = None if checkpoint is None else checkpoint.part("path")
        self._path = SamplePath(template, X, y, weight, kept)
        features: Any = self._path.features
        if isinstance(features, Gram):
            raise ValueError(
                "selection='xi_alpha' needs the features themselves, and an exact kernel keeps only their products: "
                "set n_components for Nystroem features, or selection='cv'"
            )
        self._X = features.X if isinstance(features, LowRank) else X
        self._fitted: dict[float, list[FittedLabel]] = {}
        self._hinges: dict[int, Hinges] = {}
        self._rho: dict[int, float] = {}
        self._R2: float | None = None

    def rows(self, Cs: Vector) -> list[Row]:
        began = time.perf_counter()
        along = self._path.fit(Cs)
        self._fitted |= along
        per_label = zip(*along.values(), strict=True)
        estimates = [self._estimates(k, Cs, label) for k, label in enumerate(per_label) if not label[0].constant]
        if not estimates:
            raise ValueError("selection='xi_alpha' needs a label with examples on both sides, got none in y")
        rows = []
        for C, *of_labels in zip(Cs, *estimates, strict=True):
            score = float(np.mean([of_one(self._scoring.table_score, *estimate.table) for estimate in of_labels]))
            row: Row = {"param_C": C, "param_threshold": self._path.template.threshold}
            row |= {"mean_test_score": score, "std_test_score": 0.0}
            named = [estimate.as_dict() for estimate in of_labels]
            row |= {name: float(np.mean([one[name] for one in named])) for name in named[0]}
            rows.append(row | {"max_gap": gap_of(along[C]), "sum_passes": passes_of(along[C])})
        seconds = (time.perf_counter() - began) / len(Cs)
        return [row | {"fit_time": seconds} for row in rows]

    def _estimates(self, k: int, Cs: Vector, fitted: Sequence[FittedLabel]) -> list[Estimate]:
        """The estimates of label k for every C."""
        template, design = self._path.template, cast(RowDesign, self._path.design)
        if k not in self._hinges:
            self._hinges[k] = cast(Hinges, hinges_of(self._path.oracle(k)))  # `_check_machine` has seen that it is one
        bias = float(template.intercept_scaling) if template.fit_intercept else 0.0
        weights = [float(C) * label.price for C, label in zip(Cs, fitted, strict=True)]
        machines = path_machines(self._X, design, self._hinges[k], weights, [f.solution for f in fitted], bias)
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
        """Of every label for every C."""
        return [label.solution for fitted in self._fitted.values() for label in fitted]

    def refit(self, best: Row) -> MeasureSVC:
        C = float(best["param_C"])
        fitted = self._fitted[C]
        model = self._path.model(C, fitted)
        model._warn([label.solution for label in fitted])
        return model


def _check_machine(template: MeasureSVC) -> None:
    """Raise for what xi-alpha says nothing of, before it is trained."""
    measure = get_measure(template.measure)
    if measure.ranks or hinges_of(measure.oracle(np.array([False, True]))) is None:
        raise ValueError(
            "selection='xi_alpha' needs a measure whose mistakes add up over the examples, error, cost or "
            f"balanced_error, got {measure.name}: train for one of these and give {measure.name} as scoring, or choose "
            "selection='cv'"
        )
    if template.losses().base or template.threshold == "placed":
        raise ValueError(
            "selection='xi_alpha' estimates machines with hinge=0 and threshold='trained', got "
            f"hinge={template.hinge!r} and threshold={template.threshold!r}: leave them out, or choose selection='cv'"
        )
