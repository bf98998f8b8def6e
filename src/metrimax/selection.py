"""What `MeasureSVCCV` chooses C by without splits, the xi-alpha estimates, and the paths over C that it looks at."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.multiclass import type_of_target

from metrimax.designs import as_design
from metrimax.designs.kernel import Gram, LowRank
from metrimax.estimation import Estimate
from metrimax.estimators import MeasureSVC, _encode, _weights, restate
from metrimax.fitting import FittedLabel, fit_path
from metrimax.machine import path_machines
from metrimax.measure import get_measure
from metrimax.measure.contingency import ContingencyMeasure
from metrimax.protocols import Ask, Hinges, Measure, RowDesign, Status, Vector
from metrimax.risk import run
from metrimax.solvers import side_by_side

Row = dict[str, Any]
"""One C: its settings and scores, by the names of `cv_results_`."""

Run = Generator[Ask, Vector, list[FittedLabel]]


class ByXiAlpha:
    """Estimates from the training sample alone; the models of the path are trained on everything, so none is lost.

    Every label, or class against the rest, has its own estimates; their means choose the one C for all.
    """

    def __init__(
        self, template: MeasureSVC, scoring: Measure, rho: float | None, X: Any, y: Any, weight: Vector | None
    ) -> None:
        if not isinstance(scoring, ContingencyMeasure):
            raise ValueError(
                f"selection='xi_alpha' estimates measures of the contingency table, and {scoring.name!r} is none: "
                "choose another scoring, or selection='cv'"
            )
        self._scoring, self._given = scoring, rho
        self._path = LabelPath(template, X, y, weight)
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
        along = dict(self._path.fit(Cs))
        self._fitted |= along
        per_label = zip(*along.values(), strict=True)
        estimates = [self._estimates(k, Cs, label) for k, label in enumerate(per_label) if not _constant(label[0])]
        if not estimates:
            raise ValueError("selection='xi_alpha' needs a label with examples on both sides, got none in y")
        rows = []
        for C, *of_labels in zip(Cs, *estimates, strict=True):
            tables = ([np.asarray(float(v)) for v in estimate.table] for estimate in of_labels)
            score = float(np.mean([self._scoring.table_score(*table) for table in tables]))
            row: Row = {"param_C": C, "param_threshold": self._path.template.threshold}
            row |= {"mean_test_score": score, "std_test_score": 0.0}
            named = [estimate.as_dict() for estimate in of_labels]
            row |= {name: float(np.mean([one[name] for one in named])) for name in named[0]}
            rows.append(row | {"max_gap": gap(along[C]), "sum_passes": passes(along[C])})
        seconds = (time.perf_counter() - began) / len(Cs)
        return [row | {"fit_time": seconds} for row in rows]

    def _estimates(self, k: int, Cs: Vector, fitted: Sequence[FittedLabel]) -> list[Estimate]:
        """The estimates of label k for every C."""
        template, design = self._path.template, cast(RowDesign, self._path.design)
        if k not in self._hinges:
            self._hinges[k] = self._path.oracle(k).hinges()
        bias = float(template.intercept_scaling) if template.fit_intercept else 0.0
        weights = [float(C) * label.price for C, label in zip(Cs, fitted, strict=True)]
        machines = path_machines(self._X, design, self._hinges[k], weights, [f.solution for f in fitted], bias)
        if self._R2 is None:
            self._R2 = machines[0].R2()
        if k not in self._rho:
            at = min(int(np.searchsorted(Cs * self._R2, 4.0)), len(Cs) - 1)
            drift = min(1.0, machines[at].drift(self._R2) / self._R2) if self._given is None else float(self._given)
            self._rho[k] = drift
        return [Estimate.count(m.doubtful(self._rho[k], self._R2), m.y) for m in machines]

    def refit(self, best: Row) -> MeasureSVC:
        C = float(best["param_C"])
        fitted = self._fitted[C]
        model = self._path.model(C, fitted)
        model._warn([label.solution for label in fitted])
        return model


class LabelPath:
    """The labels of one sample, trained along C: what does not depend on C is made once."""

    def __init__(self, template: MeasureSVC, X: Any, y: Any, sample_weight: Any) -> None:
        self.template = template
        self._measure = get_measure(template.measure)
        self._y, self._n_features = y, X.shape[1]
        self._classes, self._labels = _encode(y)
        self._solver = side_by_side(template._solver(), self._labels.shape[1])
        self._weight = _weights(template.class_weight, y, sample_weight, X)
        self.features = template._features(X)
        self.design = as_design(
            self.features, intercept_scaling=template.intercept_scaling if template.fit_intercept else None
        )

    def fit(self, Cs: Vector) -> list[tuple[float, list[FittedLabel]]]:
        """Every C with its labels; the solutions of a label share cuts, or multipliers."""
        per_label = run(self.design, self._runs(Cs))
        return [(float(C), [label[k] for label in per_label]) for k, C in enumerate(Cs)]

    def scores(self, Cs: Vector, X: Any) -> list[tuple[list[FittedLabel], Vector]]:
        """For every C its labels, and their scores (n, L) on X before any threshold.

        Weights of all labels for all C may be far more than the data: those of a label go once its scores are there.
        """

        def scored(steps: Run) -> Generator[Ask, Vector, tuple[list[FittedLabel], Vector]]:
            fitted = yield from steps
            model = self.model(self.template.C, fitted)  # the label for each C, side by side
            scores = model._feature_scores(X) + model.intercept_
            return [label.slim() for label in fitted], scores

        per_label = run(self.design, map(scored, self._runs(Cs)))
        found = []
        for k in range(len(Cs)):
            fitted, columns = [label[k] for label, _ in per_label], [scores[:, k] for _, scores in per_label]
            found.append((fitted, np.column_stack(columns)))
        return found

    def _runs(self, Cs: Vector) -> Iterator[Run]:
        kind = type_of_target(self._y)
        options: dict[str, Any] = {"Cs": Cs, "tol": self.template.tol, "callback": self.template.callback, "kind": kind}
        options |= self.template._extras()
        for one in self._labels.T:
            yield fit_path(self._measure, self._solver, self.design, one, self._weight, **options)

    def oracle(self, k: int) -> Any:
        """The oracle of label k."""
        return self._measure.oracle(np.ascontiguousarray(self._labels[:, k]), self._weight)

    def model(self, C: float, fitted: list[FittedLabel]) -> MeasureSVC:
        """The labels trained with one C as a model."""
        fitted = restate(self.features, fitted)
        model = self.judged(fitted)
        model.C = float(C)
        model._store_weights(self.features, model._weights(fitted))
        model.n_features_in_ = self._n_features
        return model

    def judged(self, fitted: list[FittedLabel]) -> MeasureSVC:
        """A model that knows its classes, so that scores can be judged; it has no weights."""
        model: MeasureSVC = clone(self.template)
        model._store(self._classes, self._y, fitted)
        return model


def _constant(label: FittedLabel) -> bool:
    return label.solution.status is Status.ONE_CLASS


def unplaced(fitted: list[FittedLabel]) -> list[FittedLabel]:
    """The labels with the threshold that training gave them: zero, but for those that do not vary."""
    return [label if _constant(label) else label._replace(threshold=0.0) for label in fitted]


def gap(fitted: list[FittedLabel]) -> float:
    return max(label.solution.gap for label in fitted)


def passes(fitted: list[FittedLabel]) -> int:
    return sum(label.solution.n_passes for label in fitted)
