"""The one function that says how good an answer is, whoever gave it."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.data import Task
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.measure.base_loss import Losses

LOGISTIC = "logistic"
"""In the place of a measure: the sum of the logistic losses. Its answers are tested by their error rate."""


class Judge:
    """Recomputes ``J(w) = 1/2 |w|^2 + C kappa n R(w)`` of one task and measure, and keeps the best lower bounds.

    ``w`` has the weight of the intercept (a constant feature of value 1, regularised) last.
    """

    def __init__(self, task: Task, measure: str) -> None:
        self.task = task
        self.measure = get_measure("error" if measure == LOGISTIC else measure)
        self.name = measure
        self._design = as_design(task.X, intercept_scaling=1.0)
        self._oracle = self.measure.oracle(task.y)
        if measure == LOGISTIC:
            self._oracle = Losses(risk=0.0, logistic=1.0).oracle(self._oracle, task.y, None)
        self._bounds: dict[float, float] = {}

    def weight(self, C: float) -> float:
        """``C kappa n``."""
        return C * self._oracle.price * self._oracle.n

    def C_of_svmperf(self, c: float) -> float:
        """The C that is SVM-perf's ``-c``."""
        return 100 * c / (self._oracle.n * self._oracle.price)

    def objective(self, w: np.ndarray, C: float) -> float:
        scores = self._design.matvec(np.ascontiguousarray(w, dtype=np.float64))
        cut = self._oracle(scores)
        return 0.5 * float(w @ w) + self.weight(C) * (cut.loss + float(cut.slope @ scores))

    def raise_bound(self, C: float, bound: float) -> None:
        self._bounds[C] = max(bound, self.bound(C))

    def bound(self, C: float) -> float:
        """The best lower bound of the optimum known so far (0 at worst)."""
        return self._bounds.get(C, 0.0)

    def gap(self, w: np.ndarray, C: float) -> float:
        """How far ``w`` may be from the optimum, in units of the measure."""
        return (self.objective(w, C) - self.bound(C)) / self.weight(C)

    def test_score(self, w: np.ndarray, threshold: float = 0.0) -> float:
        """The measure on the test rows; nan where the set has none."""
        if self.task.X_test is None:
            return float("nan")
        scores: Any = self.task.X_test @ w[:-1] + w[-1] - threshold
        return self.measure.score(self.task.y_test, np.asarray(scores))
