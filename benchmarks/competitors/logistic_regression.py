"""scikit-learn's ``LogisticRegression``, by three of its solvers: the logistic loss, same C."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.competitors import Answer
from benchmarks.data import Task
from benchmarks.timing import version

MOST_COLUMNS = 3000
"""Newton's method factorises a matrix of all pairs of columns: with more it takes minutes."""


class _Prepared:
    """The intercept is a feature, so that it is regularised as in every other program here."""

    def __init__(self, task: Task, solver: str, C: float) -> None:
        from sklearn.linear_model import LogisticRegression

        ones = np.ones((task.n, 1))
        self.X: Any = sparse.hstack([task.X, ones], "csr") if task.kind == "sparse" else np.hstack([task.X, ones])
        self.y = task.y
        self.make = partial(LogisticRegression, C=C, solver=solver, fit_intercept=False, random_state=0)

    def fit(self, setting: tuple[float, int]) -> Answer:
        tol, max_iter = setting
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = self.make(tol=tol, max_iter=max_iter).fit(self.X, self.y)
        return Answer(fitted.coef_[0], int(fitted.n_iter_[0]))


class Adapter:
    """``LogisticRegression(solver=...)``; a setting is (tol, max_iter)."""

    measures = frozenset({"logistic"})
    settings = tuple((tol, 10_000) for tol in (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-6))
    default = (1e-4, 100)

    def __init__(self, solver: str) -> None:
        self.solver = solver
        self.name = f"LogisticRegression({solver})"

    def missing(self) -> str | None:
        return None

    def version(self) -> str:
        return version("scikit-learn")

    def prepare(self, task: Task, measure: str, C: float) -> _Prepared:
        if self.solver == "newton-cholesky" and task.X.shape[1] > MOST_COLUMNS:
            raise ValueError(f"expected at most {MOST_COLUMNS} columns, got {task.X.shape[1]}")
        return _Prepared(task, self.solver, C)


ADAPTERS = [Adapter(solver) for solver in ("newton-cholesky", "liblinear", "lbfgs")]
