"""A way out of w = 0, or a proof that w = 0 is optimal.

F1 and its like have the loss 1 for every labelling that calls no positive positive, whatever it makes of the negatives.
So their risk has a kink at w = 0, where as many planes meet as there are sets of negatives (`Kink`). Where classes
overlap that point may be the minimum, or nearly so, and cuts found one by one take hundreds of iterations to show it.

The means of all these planes are given by shares b_j from 0 to 1 of the negatives. The one with the least slope,

    min over b of  |sum over positives of x_i - sum over negatives of b_j x_j|^2,

decides: if it is zero, w = 0 is optimal for every C; otherwise it is the direction of steepest descent. The problem is
the dual of a sum of hinges with margin 0, so a few epochs of dual coordinate descent come close to its solution.

If these epochs neither prove that w = 0 is optimal nor find a lower objective in their direction, the run still goes on
from a point in that direction, whose objective may be up to `BESIDE` times that of w = 0. Quasi-Newton steps do not get
away from the kink itself; from a point near it they find a lower one, or come back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np

from metrimax import _kernels
from metrimax.protocols import (
    Ask,
    Callback,
    Cuts,
    Design,
    Hinges,
    Kink,
    Oracle,
    Point,
    Record,
    Steps,
    Vector,
    Working,
    made,
    offer,
    rows_of,
)
from metrimax.solvers.bundle import Bundle
from metrimax.solvers.hybrid import Hybrid
from metrimax.solvers.joined import joined, later
from metrimax.solvers.model import kept_by_weights, taken

ROUNDS = 1, 2, 4, 8, 16
"""Epochs of each round, after which a line search looks for a lower objective in the direction found."""

FALL = 0.5
"""The rounds end where one has left more than this share of the squared slope."""

BESIDE = 2.0
"""The objective of the point to go on from, if no lower one was found, at most: so many times that of w = 0."""

FINE = 1e-3
"""Accuracy of that line search, relative to the tolerance: a coarser one would miss a short way down."""


@dataclass(frozen=True)
class FromZero:
    """A solver that is stopped where it does not get away from w = 0; the hybrid goes on from what `leave_zero` finds.

    Parameters
    ----------
    solver : Hybrid or Bundle
        The solver to begin with.
    patience : int
        It is stopped if w = 0 is the best point after so many iterations; fewer than its ``max_iter``.
    """

    solver: Hybrid | Bundle
    patience: int

    def steps(
        self,
        oracle: Oracle,
        design: Design,
        weight: float,
        *,
        tol: float,
        start: Cuts | None = None,
        callback: Callback | None = None,
    ) -> Steps:
        """Minimise ``1/2 |w|^2 + weight R(w)``."""
        watch = _Watch(oracle, design.shape[0], self.patience, callback)
        first = yield from self.solver.steps(oracle, design, weight, tol=tol, start=start, callback=watch)
        del start
        if watch.kink is None:
            return first
        starts = [(yield from leave_zero(oracle, watch.kink, design, weight, tol))]  # popped: only the solver holds it
        rest = Hybrid(self.solver.max_iter - first.n_iter)
        second = yield from rest.steps(
            oracle, design, weight, tol=tol, start=starts.pop(), callback=later(first, callback)
        )
        return joined(first, second, weight)


class _Watch:
    """A callback that stops the run if w = 0 is still the best point after ``patience`` iterations, and a kink."""

    def __init__(self, oracle: Oracle, size: int, patience: int, callback: Callback | None) -> None:
        self._oracle, self._size, self._patience, self._callback = oracle, size, patience, callback
        self.kink: Kink | None = None

    def __call__(self, record: Record) -> bool:
        if self._callback is not None and self._callback(record) in (True,):  # NumPy's True as well
            return True
        if record.iteration == self._patience and record.objective >= self._oracle(np.zeros(self._size)).loss:
            self.kink = made(self._oracle.can.kink)
        return self.kink is not None

    def keep(self, state: Callable[[], Cuts]) -> None:
        offer(self._callback, state)


def leave_zero(oracle: Oracle, kink: Kink, design: Design, weight: float, tol: float) -> Generator[Ask, Vector, Cuts]:
    """The plane at w = 0 with the least slope, as a cut, and a point in its direction to start from.

    No point where the cut proves that w = 0 is optimal within ``tol``. Otherwise the point is better than w = 0, unless
    the epochs found none that is: then it is the farthest of 1, 1/2, 1/4, ... times the direction within `BESIDE`.
    """
    began = time.perf_counter()
    zero = np.zeros(design.shape[0])
    at_zero = oracle(zero).loss
    hinges = Hinges(kink.sign, zero, kink.weight)
    upper = kink.weight * (weight / oracle.n)
    most = float(upper[kink.free].sum())
    total = float(upper.sum()) - most if kink.total is None else kink.total * (weight / oracle.n)
    alpha = upper.copy()
    alpha[kink.free] *= min(1.0, total / most)
    base = 0.0 if kink.base is None else kink.base * (weight / oracle.n)
    (w,), passes = taken((yield Ask("pull", [kink.sign * (alpha + base)]))), 1.0
    t, before = 0.0, np.inf
    for epochs in ROUNDS:
        working = Working(kink.free.copy(), -np.inf, np.inf, 0.0)
        visits = epochs * len(kink.free) / len(zero)
        done = rows_of(design).dual_epochs(
            hinges, upper, alpha, w, tol=0.0, max_passes=visits, gap=tol * weight, working=working
        )
        if kink.total is not None:
            alpha[kink.free] = _with_total(alpha[kink.free], upper[kink.free], total)
        slope = kink.sign * (alpha + base)
        passes += done.passes + _kernels.rows_read([slope]) + 1
        (w,) = taken((yield Ask("pull", [slope])))  # afresh: rounding must not prove anything
        (scores,) = taken((yield Ask("scores", [w])))
        square = _kernels.dot(w, w)
        if proven := square <= tol * weight:
            break
        line, parabola = oracle.line(zero, scores), (1 / weight, 0.0, 0.0, square)
        t, risk = _kernels.line_search(line, parabola, at_zero, None, FINE * tol, 1.0)
        if t > 0 or square > FALL * before:
            break
        before = square
    if not (proven or t > 0):
        t = 1.0
        while (risk := line(t)[0]) + t * t * square / (2 * weight) > BESIDE * at_zero:
            t /= 2
    by_weights = kept_by_weights(design)
    rep = w if by_weights else slope
    vectors = (rep,) if by_weights else (rep, scores)
    return Cuts(
        losses=np.array([kink.loss]),
        gram=np.array([[square / weight**2]]),
        rows=tuple(-vector[np.newaxis] / weight for vector in vectors),
        best=None if proven else (Point(t * rep, t * scores, t * t * square), risk),
        n_passes=passes,
        seconds=time.perf_counter() - began,
    )


def _with_total(shares: Vector, upper: Vector, total: float) -> Vector:
    """Shares that add up to the total: with less of each, or more of what each has left."""
    now, most = float(shares.sum()), float(upper.sum())
    if now >= total or now >= most:  # all that there is may be less than the total by rounding
        return shares * min(1.0, total / now)
    more: Vector = shares + (upper - shares) * ((total - now) / (most - now))
    return more
