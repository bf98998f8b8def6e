"""The labels of one sample along C, for the choice of C."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from metrimax.estimators._targets import encode, weights_of
from metrimax.estimators.svc import MeasureSVC
from metrimax.io.checkpoints import Checkpoint
from metrimax.measure import get_measure
from metrimax.protocols import Ask, Callback, Oracle, Vector
from metrimax.solvers import side_by_side
from metrimax.training.label import FittedLabel, fit_path, restate
from metrimax.training.lockstep import run

Run = Generator[Ask, Vector, list[FittedLabel]]


class SamplePath:
    """The labels of one sample, trained along C: what does not depend on C is made once.

    ``together`` is the number of samples whose labels run side by side; ``part`` says on the terminal which one it is.
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
        part: str = "",
    ) -> None:
        self.template, self._checkpoint, self._part = template, checkpoint, part
        self._measure = get_measure(template.measure)
        self._n_features = X.shape[1]
        self._kind, self._classes, self._labels = encode(y)
        self._solver = side_by_side(template._solver(), self._labels.shape[1] * together)
        self._weight = weights_of(template.class_weight, y, sample_weight, X)
        self.features = template._features(X)
        self.design = template._with_intercept(self.features)

    def fit(self, Cs: Vector) -> dict[float, list[FittedLabel]]:
        """Every C with its labels; the solutions of a label share cuts, or multipliers."""
        with self.template._progress(self._measure, self.features, self._part) as callback:
            per_label = run(self.design, self.runs(Cs, callback))
        return {float(C): [label[k] for label in per_label] for k, C in enumerate(Cs)}

    def scores(self, Cs: Vector, X: Any) -> list[tuple[list[FittedLabel], Vector]]:
        """For every C its labels, and their scores (n, L) on X before any threshold.

        Weights of all labels for all C may be far more than the data: those of a label go once its scores are there.
        """

        def scored(steps: Run) -> Generator[Ask, Vector, tuple[list[FittedLabel], Vector]]:
            fitted = yield from steps
            model = self.model(self.template.C, fitted)  # the label for each C, side by side
            scores = model._feature_scores(X) + model.trained_intercept_
            return [label.slim() for label in fitted], scores

        with self.template._progress(self._measure, self.features, self._part) as callback:
            per_label = run(self.design, map(scored, self.runs(Cs, callback)))
        found = []
        for k in range(len(Cs)):
            fitted, columns = [label[k] for label, _ in per_label], [scores[:, k] for _, scores in per_label]
            found.append((fitted, np.column_stack(columns)))
        return found

    def runs(self, Cs: Vector, callback: Callback | None) -> Iterator[Run]:
        """One run per label."""
        training = self.template._training(self._measure, self._solver, self._kind, callback, self._checkpoint)
        for one in self._labels.T:
            yield fit_path(training, self.design, one, self._weight, Cs)

    def oracle(self, k: int) -> Oracle:
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
        model._store(self._kind, self._classes, fitted)
        return model


def gap_of(fitted: list[FittedLabel]) -> float:
    return max(label.solution.gap for label in fitted)


def passes_of(fitted: list[FittedLabel]) -> float:
    return sum(label.solution.n_passes for label in fitted)
