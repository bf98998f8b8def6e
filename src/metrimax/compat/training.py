"""SVM-perf's training problem, solved by this library.

It is ``1/2 |w|^2 + c xi`` with xi in percent, so the weight of R is 100 c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.compat.losses import loss_for
from metrimax.designs import CSR, as_design
from metrimax.io.files import FileError
from metrimax.io.svmlight import Svmlight, read_svmlight
from metrimax.io.svmperf_model import HIGHEST
from metrimax.protocols import Callback, Labels, Solution, Vector
from metrimax.solvers import Bundle
from metrimax.training.lockstep import run


def read_examples(path: str) -> Svmlight:
    """A file as SVM-perf accepts it: one label per line, indices from 1 to 99999999, no blank lines.

    Values are rounded to 32-bit floats, as in SVM-perf.
    """
    rows = read_svmlight(path, allow_blank=False, light_tags=True, least=1, most=HIGHEST)
    if rows.n == 0:
        raise FileError(f"{path}: expected examples, got none")
    if len(rows.labels) != rows.n or rows.multilabel:
        raise FileError(f"{path}: expected one label on every line")
    with np.errstate(over="ignore"):  # told of below
        values = rows.values.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        k, i = int(wrong[0]), int(np.searchsorted(rows.indptr, wrong[0], side="right"))
        raise FileError(
            f"{path}: example {i}, feature {rows.indices[k]}: expected a value within the range of a 32-bit float, "
            f"got {rows.values[k]:g}: scale the features"
        )
    return rows._replace(values=values.astype(np.float64))


@dataclass(frozen=True)
class Trained:
    """The weights without that of the bias, and the solution."""

    w: Vector
    bias_weight: float
    bias_score: float  #: what the bias adds to every score
    indices: npt.NDArray[np.integer[Any]] | None  #: of the features of w, where they are not 1, 2, ...
    solution: Solution


def train(rows: Svmlight, *, bias: float = 1.0, name: str = "the examples", **problem: Any) -> Trained:
    """Train on the examples of a file, whose name in errors is ``name``; ``problem`` goes to `solve`."""
    positive = rows.labels > 0
    if positive.all() or not positive.any():
        raise FileError(
            f"{name}: expected examples of both classes, labels above 0 and others, got {rows.n} examples of "
            f"{'the positive' if positive.all() else 'the negative'} class only: add some of the other"
        )
    indices, columns, width = _compact(rows)
    X = CSR(rows.values.astype(np.float32), columns, rows.indptr.astype(columns.dtype), width)
    solution = solve(X, positive, bias=bias, **problem)
    w = solution.w if bias == 0 else solution.w[:-1]
    weight = 0.0 if bias == 0 else float(solution.w[-1])
    return Trained(w, weight, weight * bias, indices, solution)


def solve(
    X: Any,
    y: Labels,
    *,
    code: int,
    c: float,
    epsilon: float = 0.1,
    bias: float = 1.0,
    p: float = 0.0,
    beta: float = 1.0,
    callback: Callback | None = None,
) -> Solution:
    """Minimise ``1/2 |w|^2 + c xi`` for the loss with SVM-perf's code."""
    design = as_design(X, intercept_scaling=bias or None)
    loss = loss_for(code, n=len(y), n_pos=int(y.sum()), p=p, beta=beta)
    oracle = loss.oracle(np.ascontiguousarray(y))
    steps = Bundle(max_iter=100_000).steps(oracle, design, 100 * c, tol=epsilon / 100, callback=callback)
    return run(design, [steps])[0]


def _compact(rows: Svmlight) -> tuple[npt.NDArray[Any] | None, npt.NDArray[Any], int]:
    """Column numbers from 0. If few of the indices up to the highest occur, only these get a column."""
    kind = np.int32 if len(rows.indices) < 2**31 else np.int64
    if rows.highest <= 2 * len(rows.indices) + 1000:
        return None, (rows.indices - np.int32(1)).astype(kind, copy=False), max(rows.highest, 1)
    indices, columns = np.unique(rows.indices, return_inverse=True)
    return indices, columns.astype(kind), len(indices)


class Working(NamedTuple):
    """The final working set in SVM-perf's units: dual variables (of sum at most c), slack, and longest vector."""

    alphas: Vector
    slack: float
    longest: float


def working_set(solution: Solution, c: float) -> Working:
    """Solve the quadratic program over the final cuts once more, to full precision."""
    if solution.cuts is None or len(solution.cuts.losses) == 0:
        return Working(np.empty(0), 0.0, 0.0)
    K = len(solution.cuts.losses)
    losses, gram = np.zeros(K + 1), np.zeros((K + 1, K + 1))  # the zero cut first: it stands for xi >= 0
    losses[1:] = solution.cuts.losses
    gram[1:, 1:] = solution.cuts.gram
    alpha = np.zeros(K + 1)
    alpha[0] = 1.0
    _kernels.simplex_qp(gram, losses, 100 * c, alpha, 1e-9, 100 * K + 1000)
    slack = float((losses - 100 * c * (gram @ alpha)).max())
    return Working(c * alpha[1:], 100 * max(slack, 0.0), 100 * float(np.sqrt(gram.diagonal().max())))
