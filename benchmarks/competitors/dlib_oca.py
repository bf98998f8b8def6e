"""dlib's cutting-plane trainers: ``svm_rank_trainer`` (ROC area) and ``svm_c_trainer_linear`` (error rate)."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.competitors import Answer
from benchmarks.data import Task
from benchmarks.timing import version


def _rows(X: Any) -> Any:
    """The rows of X as dlib wants them; not timed."""
    import dlib

    if not sparse.issparse(X):
        out = dlib.vectors()
        for row in X:
            out.append(dlib.vector(row.tolist()))
        return out
    out = dlib.sparse_vectors()
    for i in range(X.shape[0]):
        row = dlib.sparse_vector()
        for k in range(X.indptr[i], X.indptr[i + 1]):
            row.append(dlib.pair(int(X.indices[k]), float(X.data[k])))
        out.append(row)
    return out


class _Prepared:
    def __init__(self, task: Task, measure: str, C: float) -> None:
        import dlib

        self.task, self.measure = task, measure
        thin = sparse.issparse(task.X)
        if measure == "roc_area":
            self.trainer = dlib.svm_rank_trainer_sparse() if thin else dlib.svm_rank_trainer()
            pair = dlib.sparse_ranking_pair() if thin else dlib.ranking_pair()
            pair.relevant, pair.nonrelevant = _rows(task.X[task.y]), _rows(task.X[~task.y])
            self.trainer.c = C * task.n
            self.arguments = (pair,)
        else:
            self.trainer = dlib.svm_c_trainer_sparse_linear() if thin else dlib.svm_c_trainer_linear()
            self.arguments = _rows(task.X), dlib.array(np.where(task.y, 1.0, -1.0).tolist())
            self.trainer.set_c(C * task.n)

    def fit(self, setting: float) -> Answer:
        self.trainer.epsilon = setting
        function = self.trainer.train(*self.arguments)
        w = np.zeros(self.task.X.shape[1] + 1)
        if sparse.issparse(self.task.X):
            for index, value in ((pair.first, pair.second) for pair in function.weights):
                w[index] = value
        else:
            weights = np.array(list(function.weights))
            w[: len(weights)] = weights
        w[-1] = 0.0 if self.measure == "roc_area" else -function.bias
        return Answer(w)


class Adapter:
    """dlib's OCA; a setting is ``epsilon``. Its C is ``C kappa n``, for its risks are means."""

    name = "dlib"
    measures = frozenset({"error", "roc_area"})
    settings = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
    default = 1e-3

    def missing(self) -> str | None:
        return None if importlib.util.find_spec("dlib") else "pip install dlib"

    def version(self) -> str:
        return version("dlib")

    def prepare(self, task: Task, measure: str, C: float) -> _Prepared:
        return _Prepared(task, measure, C)


ADAPTER = Adapter()
