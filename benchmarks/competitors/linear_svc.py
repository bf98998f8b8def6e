"""scikit-learn's ``LinearSVC`` with the hinge loss (LIBLINEAR's dual coordinate descent): the error rate, same C."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from benchmarks.competitors import Answer
from benchmarks.data import Task
from benchmarks.timing import version


class _Prepared:
    def __init__(self, task: Task, C: float) -> None:
        from sklearn.svm import LinearSVC

        self.task = task
        self.make = partial(LinearSVC, loss="hinge", C=C, dual=True, random_state=0)

    def fit(self, setting: tuple[float, int]) -> Answer:
        tol, max_iter = setting
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            svc = self.make(tol=tol, max_iter=max_iter).fit(self.task.X, self.task.y)
        return Answer(np.append(svc.coef_[0], svc.intercept_[0]), int(svc.n_iter_), int(svc.n_iter_))


class Adapter:
    """``LinearSVC(loss="hinge")``; a setting is (tol, max_iter)."""

    name = "LinearSVC"
    measures = frozenset({"error"})
    settings = (*((tol, 1000) for tol in (1.0, 0.3, 0.1, 1e-2, 1e-3)), (1e-4, 10_000))
    default = (1e-4, 1000)

    def missing(self) -> str | None:
        return None

    def version(self) -> str:
        return version("scikit-learn")

    def prepare(self, task: Task, measure: str, C: float) -> _Prepared:
        return _Prepared(task, C)


ADAPTER = Adapter()
