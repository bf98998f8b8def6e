"""scikit-learn's ``TunedThresholdClassifierCV`` around ``LinearSVC``: the usual way to F1. No common objective."""

from __future__ import annotations

import warnings

from benchmarks.competitors import Answer
from benchmarks.data import Task
from benchmarks.timing import version


class _Prepared:
    def __init__(self, task: Task, C: float) -> None:
        self.task, self.C = task, C

    def fit(self, setting: int) -> Answer:
        from sklearn.metrics import f1_score
        from sklearn.model_selection import TunedThresholdClassifierCV
        from sklearn.svm import LinearSVC

        svc = LinearSVC(loss="hinge", C=self.C, dual=True, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tuned = TunedThresholdClassifierCV(svc, scoring="f1", cv=setting).fit(self.task.X, self.task.y)
        if self.task.X_test is None:
            return Answer(None)
        return Answer(None, test_score=float(f1_score(self.task.y_test, tuned.predict(self.task.X_test))))


class Adapter:
    """``TunedThresholdClassifierCV(LinearSVC(loss="hinge"), scoring="f1")``; a setting is the number of folds."""

    name = "TunedThreshold"
    measures = frozenset({"f1"})
    settings = (5,)
    default = 5

    def missing(self) -> str | None:
        return None

    def version(self) -> str:
        return version("scikit-learn")

    def prepare(self, task: Task, measure: str, C: float) -> _Prepared:
        return _Prepared(task, C)


ADAPTER = Adapter()
