"""Along C: certified solutions for many C at little more than the price of the hardest one; `metrimax.path`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax._validation import check_grid, check_positive, check_weights, check_whole, refuse_missing, warn
from metrimax.designs import as_design, is_design
from metrimax.designs.linear import is_sparse
from metrimax.measure import get_measure
from metrimax.protocols import Asking, Callback, Cuts, Design, Labels, Measure, Oracle, Point, Solution, Solver, Vector
from metrimax.solvers import Auto, kept_by_weights
from metrimax.training.label import FittedLabel, LabelSample, Training, prepare
from metrimax.training.lockstep import run
from metrimax.training.resume import ResumedRun

PATH_GRID: Vector = np.exp2(np.arange(-6.0, 7.0))
"""The grid of Joachims (2005)."""


def fit_path(
    training: Training, design: Design, labels: Labels, weight: Vector | None, Cs: Sequence[float] | Vector
) -> Asking[list[FittedLabel]]:
    """Train one label for every C."""
    sample = prepare(training, design, labels, weight)
    return (yield from fit_sample(sample, Cs))


def fit_sample(sample: LabelSample | FittedLabel, Cs: Sequence[float] | Vector) -> Asking[list[FittedLabel]]:
    """Train a label that is prepared for every C: one oracle, and solutions that start from those before them."""
    if isinstance(sample, FittedLabel):
        return [sample] * len(Cs)
    training, weights = sample.training, [sample.risk_weight(C) for C in Cs]
    if training.checkpoint is None:
        steps = along(
            training.solver, sample.oracle, sample.design, weights, tol=training.tol, callback=training.callback
        )
    else:
        steps = _resumed(sample, weights)
    fitted = []
    for solution in (yield from steps):
        fitted.append((yield from sample.finished(solution)))
    return fitted


def _resumed(sample: LabelSample, weights: list[float]) -> Asking[list[Solution]]:
    """Solutions for every weight, each begun from what was kept of it, or from the cuts of the one before.

    The cuts hold for every C, but a path drops those that serve no more: each of its solutions has its file.
    """
    training, checkpoint = sample.training, sample.training.checkpoint
    assert checkpoint is not None
    name, probe = yield from sample.identity()
    solutions: dict[int, Solution] = {}
    cuts: Cuts | None = None
    for k in sorted(range(len(weights)), key=lambda k: weights[k]):
        run = ResumedRun(checkpoint.begin(name, weights[k], probe), training.callback)
        steps = partial(training.solver.steps, sample.oracle, sample.design, weights[k], tol=training.tol)
        solutions[k] = yield from run.solve(steps, sample.oracle, sample.design, cuts, save=True)
        cuts = run.cuts
    return [solutions[k] for k in range(len(weights))]


def along(
    solver: Solver,
    oracle: Oracle,
    design: Design,
    weights: Sequence[float] | Vector,
    *,
    tol: float,
    start: Cuts | None = None,
    callback: Callback | None = None,
) -> Asking[list[Solution]]:
    """Solutions for every weight C kappa n of R, in the order given; the least is solved first, from ``start``."""
    check_weights(weights)
    if isinstance(solver, Auto) and len(weights) > 1:
        solver = solver.for_path(oracle, design)
    solutions: dict[int, Solution] = {}
    before: Point | None = None
    for k in sorted(range(len(weights)), key=lambda k: float(weights[k])):
        weight = float(weights[k])
        if start is not None and start.best is not None:
            last, risk = start.best
            if before is not None:
                start = replace(start, best=further(oracle, design, 1 / weight, before, last, risk, tol))
            before = last
        steps = solver.steps(oracle, design, weight, tol=tol, start=start, callback=callback)
        start = None  # the run has taken it over: views would keep alive what it has outgrown
        solutions[k], start = (yield from steps).parted()
    return [solutions[k] for k in range(len(weights))]


def further(
    oracle: Oracle, design: Design, lam: float, before: Point, last: Point, risk: float, tol: float
) -> tuple[Point, float]:
    """The point on the line through the last two solutions with the least objective at the next C."""
    rep, scores = last.rep - before.rep, last.scores - before.scores
    dual = rep if kept_by_weights(design) else scores
    cross, bend = _kernels.dot(last.rep, dual), _kernels.dot(rep, dual)
    parabola = lam, last.square, cross, bend
    t, risk = _kernels.line_search(oracle.line(last.scores, scores), parabola, risk, None, tol, 1.0)
    square = last.square + 2 * t * cross + t * t * bend
    return Point(last.rep + t * rep, last.scores + t * scores, square), risk


@dataclass(frozen=True)
class Path:
    """Solutions along C: row k belongs to ``Cs[k]``.

    The rule is ``X coefs[k] + intercepts[k] > 0``: ``thresholds[k]`` is taken off the intercept that was trained, which
    ``solutions[k].w`` has as its last entry.
    """

    Cs: Vector
    coefs: Vector
    intercepts: Vector
    thresholds: Vector
    price: float
    solutions: list[Solution]

    @property
    def gaps(self) -> Vector:
        return np.array([solution.gap for solution in self.solutions])

    @property
    def objectives(self) -> Vector:
        return np.array([solution.objective for solution in self.solutions])

    def decision_function(self, X: Any) -> Vector:
        """Scores (n, number of C); positive means the positive class."""
        scores = as_design(_matrix(X)).matvec(np.ascontiguousarray(self.coefs.T))
        return scores + self.intercepts


def path(
    X: Any,
    y: npt.ArrayLike,
    *,
    measure: str | Measure | Callable[..., Any] = "f1",
    Cs: Sequence[float] | Vector = PATH_GRID,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
    sample_weight: npt.ArrayLike | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
) -> Path:
    """Train for every C of a grid, each solution with its own certificate.

    A cut found for one C is valid for every C, so each solution starts from the cuts that the one before has kept (sums
    of hinges on many features from its multipliers).

    Parameters
    ----------
    X : array, sparse matrix or data frame (n, p)
        Finite values.
    y : array (n,)
        Two classes; the greater one is positive.
    measure : str, measure or callable, default="f1"
        As for `MeasureSVC`; its risk alone is trained (``hinge=0``).
    Cs : sequence of float
        The grid, in any order; 2^-6 .. 2^6 by default.
    tol, max_iter, fit_intercept, intercept_scaling
        As for `MeasureSVC`.
    sample_weight : array (n,), optional
        As for `MeasureSVC`: repetition.
    n_threads, callback
        As for `MeasureSVC`.

    Returns
    -------
    Path
        ``Cs``, and for each of them one of ``solutions``, with ``w``, ``objective``, ``bound``, ``gap`` and ``status``.
        `decision_function` scores rows by all of them.

    Notes
    -----
    One `UserWarning` for the whole path says where gaps did not reach ``tol``, and the largest of them.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax import path
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(500) < 0.2
    >>> X = rng.normal(size=(500, 4)) + y[:, None]
    >>> result = path(X, y, measure="f1", Cs=[0.1, 1.0, 10.0])
    >>> result.coefs.shape, bool((result.gaps <= 1e-3).all())
    ((3, 4), True)
    """
    grid = check_grid(Cs)
    check_positive("tol", tol)
    check_whole("max_iter", max_iter)
    refuse_missing(y)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) != 2 or codes.ndim != 1:
        raise ValueError(f"expected y of shape (n,) with two classes, got {len(classes)} classes, shape {codes.shape}")
    labels = codes == 1
    weight = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
    design = as_design(_matrix(X), intercept_scaling=intercept_scaling if fit_intercept else None, n_threads=n_threads)
    if design.shape[0] != len(labels) or (weight is not None and weight.shape != labels.shape):
        weights = "" if weight is None else f" and weights of shape {weight.shape}"
        raise ValueError(
            f"expected as many labels and weights as the {design.shape[0]} rows of X, got {len(labels)} labels{weights}"
        )
    tiny = np.full(design.shape[1], 1e-300)  # if X is finite, so are its products
    if not np.isfinite(design.matvec(tiny)).all():
        raise ValueError("expected X with finite values, got NaN or infinity: replace them, or leave these rows out")
    if weight is not None and not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("expected finite sample_weight >= 0, got NaN, infinite or negative values")
    chosen = get_measure(measure)
    oracle = chosen.oracle(labels, weight)
    of_risk = [C * oracle.price * oracle.n for C in grid.tolist()]
    steps = along(Auto(max_iter=max_iter), oracle, design, of_risk, tol=tol, callback=callback)
    solutions = run(design, [steps])[0]
    missed = [(float(C), one) for C, one in zip(grid, solutions, strict=True) if one.status.missed]
    if missed:
        C, worst = max(missed, key=lambda pair: pair[1].gap)
        warn(
            f"{worst.status} for {len(missed)} of {len(grid)} C: the gap is {worst.gap:.3g} at C = {C:g}, tol {tol:g}. "
            "Raise tol or max_iter, scale the features, or leave out the largest C."
        )
    W = np.array([solution.w for solution in solutions])
    scores = design.matvec(np.ascontiguousarray(W.T))
    thresholds = np.array([chosen.threshold(labels, np.ascontiguousarray(s), weight) for s in scores.T])
    return Path(
        Cs=grid,
        coefs=W[:, :-1].copy() if fit_intercept else W,
        intercepts=(W[:, -1] * intercept_scaling if fit_intercept else 0.0) - thresholds,
        thresholds=thresholds,
        price=oracle.price,
        solutions=solutions,
    )


def _matrix(X: Any) -> Any:
    """A data frame, or a list of rows, as an array; what can be multiplied as it is."""
    if is_sparse(X) or is_design(X):
        return X
    values = np.asarray(X)
    return values if values.dtype.kind in "fiub" else values.astype(np.float64)
