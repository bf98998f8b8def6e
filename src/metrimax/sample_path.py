"""The labels of one sample along C, for the choice of C."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.multiclass import type_of_target

from metrimax.designs import as_design
from metrimax.estimators import MeasureSVC, _encode, _weights, restate
from metrimax.fitting import FittedLabel, fit_path
from metrimax.io.checkpoints import Checkpoint
from metrimax.measure import get_measure
from metrimax.protocols import Ask, Callback, Vector
from metrimax.risk import run
from metrimax.solvers import side_by_side


class SamplePath:
    """The labels of one sample, trained along C: what does not depend on C is made once.

    ``together`` is the number of samples whose labels run side by side.
    """

    def __init__(
        self,
        template: MeasureSVC,
        X: Any,
        y: Any,
        sample_weight: Any,
        checkpoint: Checkpoint | None = None,
        *,
        together: int = 1,
    ) -> None:
        self.template, self._checkpoint = template, checkpoint
        self._measure = get_measure(template.measure)
        self._y, self._n_features = y, X.shape[1]
        self._classes, self._labels = _encode(y)
        self._solver = side_by_side(template._solver(), self._labels.shape[1] * together)
        self._weight = _weights(template.class_weight, y, sample_weight, X)
        self.features = template._features(X)
        self.design = as_design(
            self.features, intercept_scaling=template.intercept_scaling if template.fit_intercept else None
        )

    def fit(self, Cs: Vector) -> list[tuple[float, list[FittedLabel]]]:
        """Every C with its labels; the solutions of a label share cuts, or multipliers."""
        per_label = run(self.design, self.runs(Cs, self.template.callback))
        return [(float(C), [label[k] for label in per_label]) for k, C in enumerate(Cs)]

    def runs(self, Cs: Vector, callback: Callback | None) -> Iterator[Generator[Ask, Vector, list[FittedLabel]]]:
        """One run per label."""
        options: dict[str, Any] = {"Cs": Cs, "tol": self.template.tol, "callback": callback}
        options |= {"kind": type_of_target(self._y), "checkpoint": self._checkpoint, **self.template._extras()}
        for one in self._labels.T:
            yield fit_path(self._measure, self._solver, self.design, one, self._weight, **options)

    def oracle(self, k: int) -> Any:
        """The oracle of label k."""
        return self._measure.oracle(np.ascontiguousarray(self._labels[:, k]), self._weight)

    def model(self, C: float, fitted: list[FittedLabel]) -> MeasureSVC:
        """The labels trained with one C as a model."""
        model: MeasureSVC = clone(self.template).set_params(C=float(C))
        fitted = restate(self.features, fitted)
        model._store(self._classes, self._y, fitted)
        model._store_weights(self.features, model._weights(fitted))
        model.n_features_in_ = self._n_features
        return model


def gap_of(fitted: list[FittedLabel]) -> float:
    return max(label.solution.gap for label in fitted)


def passes_of(fitted: list[FittedLabel]) -> int:
    return sum(label.solution.n_passes for label in fitted)
