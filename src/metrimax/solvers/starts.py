"""Where a run may start: from a few epochs of dual coordinate descent, or beside w = 0.

*Epochs.* Where the risk is a sum of hinges, multipliers make up a plane under it, the first cut. For other measures of
labellings the epochs go over the error rate: that says nothing about the risk, but where the data can nearly be
separated, whoever does it comes close to the solution. The start is the best point in that direction.

*Beside w = 0.* F1 and its like have the loss 1 for every labelling that calls no positive positive, whatever it makes
of the negatives. So their risk has a kink at w = 0, where as many planes meet as there are sets of negatives (`Kink`).
Where classes overlap that point may be the minimum, or nearly so, and cuts found one by one take hundreds of iterations
to show it. The means of all these planes are given by shares b_j from 0 to 1 of the negatives. The one with the least
slope,

    min over b of  |sum over positives of x_i - sum over negatives of b_j x_j|^2,

decides: if it is zero, w = 0 is optimal for every C; otherwise it is the direction of steepest descent. The problem is
the dual of a sum of hinges with margin 0, so a few epochs come close to its solution. If they neither prove that w = 0
is optimal nor find a lower objective in their direction, the run still goes on from a point in that direction, whose
objective may be up to `BESIDE` times that of w = 0. Quasi-Newton steps do not get away from the kink itself; from a
point near it they find a lower one, or come back.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from metrimax import _kernels
from metrimax.protocols import Ask, Asking, Cuts, Design, Hinges, Kink, Oracle, Point, Vector, Working, made, required
from metrimax.solvers.cut_model import kept_by_weights, taken
from metrimax.solvers.run_state import Task, rows_of

EPOCHS = 5
"""Passes of coordinate descent in a start. With 2 and 12: 1.00 and 1.05 times the passes in all."""

ROUNDS = 5
"""Rounds of 1, 2, 4, ... epochs beside w = 0, after each of which a line search looks for a lower objective. With 3 and
8: 1.03 and 1.01 times the passes where classes overlap.
"""

BESIDE = 2.0
"""If no lower objective was found, the run goes on from a point whose objective is at most this multiple of J(0). With
1.3 and 6: 1.02 and 0.99 times the passes where classes overlap.
"""


def plane_cut(
    design: Design, weight: float, w: Vector, dual_coef: Vector, loss: float, n_passes: float = 0.0
) -> Asking[Cuts]:
    """The cut of a sum of hinges that given multipliers define; ``loss`` is their sum times the margins."""
    vectors = [w]
    if not kept_by_weights(design):
        vectors, n_passes = [dual_coef, *(yield Ask("scores", vectors))], n_passes + 1
    gram = np.array([[rows_of(design).square(w, dual_coef, vectors[-1]) / weight**2]])
    rows = tuple(-vector[np.newaxis] / weight for vector in vectors)
    return Cuts(np.array([loss / weight]), gram, rows, n_passes=n_passes)


def after_epochs(task: Task) -> Asking[Cuts]:
    """A few epochs on the hinges make up a plane; on the mistakes, where the risk is no sum of hinges, a point.

    That is where the exact objective is least in the direction of the epochs; no cut comes of it.
    """
    began, oracle, design, weight = time.perf_counter(), task.oracle, task.design, task.weight
    by_weights, own = kept_by_weights(design), made(oracle.can.hinges)
    hinges = own or required(made(oracle.can.mistakes), "this start needs an oracle with can.hinges or can.mistakes")
    upper = hinges.weight * (weight / (oracle.n if own else oracle.n * oracle.price))
    alpha, w = (np.zeros(size) for size in design.shape)
    passes = rows_of(design).dual_epochs(hinges, upper, alpha, w, tol=0.0, max_passes=EPOCHS).passes
    coefficients = hinges.sign * alpha
    if own:
        cuts = yield from plane_cut(design, weight, w, coefficients, _kernels.dot(hinges.margin, alpha), passes)
        return replace(cuts, seconds=time.perf_counter() - began)
    rep = w if by_weights else coefficients
    (scores,) = yield Ask("scores", [w])
    zero, square = np.zeros(len(scores)), _kernels.dot(w, w)
    parabola = 1 / weight, 0.0, 0.0, square
    t, risk = _kernels.line_search(oracle.line(zero, scores), parabola, oracle(zero).loss, None, task.tol, 1.0)
    none = np.empty((0, min(design.shape)))
    return Cuts(
        losses=np.empty(0),
        gram=np.empty((0, 0)),
        rows=(none,) if by_weights else (none, none),
        best=(Point(t * rep, t * scores, t * t * square), risk),
        n_passes=passes + 1,
        seconds=time.perf_counter() - began,
    )


def leave_zero(oracle: Oracle, kink: Kink, design: Design, weight: float, tol: float) -> Asking[Cuts]:
    """The plane at w = 0 with the least slope, as a cut, and a point in its direction to start from.

    No point where the cut proves that w = 0 is optimal within ``tol``. Otherwise the point is better than w = 0, unless
    the epochs found none that is: then it is the farthest of 1, 1/2, 1/4, ... times the direction within `BESIDE`.
    """
    began = time.perf_counter()
    zero = np.zeros(design.shape[0])
    at_zero = oracle(zero).loss
    hinges = Hinges(kink.sign, zero, kink.weight)
    upper = kink.weight * (weight / oracle.n)
    base = 0.0 if kink.base is None else kink.base * (weight / oracle.n)
    most = float(upper[kink.free].sum())
    total = float(upper.sum()) - most if kink.total is None else kink.total * (weight / oracle.n)
    alpha = upper.copy()
    alpha[kink.free] *= min(1.0, total / most)
    (w,), passes = taken((yield Ask("pull", [kink.sign * (alpha + base)]))), 1.0
    t, before = 0.0, np.inf
    for round_ in range(ROUNDS):
        working = Working(kink.free.copy(), -np.inf, np.inf, 0.0)
        visits = 2**round_ * len(kink.free) / len(zero)
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
        t, risk = _kernels.line_search(line, parabola, at_zero, None, 1e-3 * tol, 1.0)  # a short way down counts
        if t > 0 or square > before / 2:
            break
        before = square
    if not (proven or t > 0):
        t = 1.0
        while (risk := line(t)[0]) + t * t * square / (2 * weight) > BESIDE * at_zero:
            t /= 2
    cuts = yield from plane_cut(design, weight, w, slope, kink.loss * weight, passes)
    rep = w if kept_by_weights(design) else slope
    best = None if proven else (Point(t * rep, t * scores, t * t * square), risk)
    return replace(cuts, best=best, seconds=time.perf_counter() - began)


def _with_total(shares: Vector, upper: Vector, total: float) -> Vector:
    """Shares scaled so that they add up to the total: each reduced, or each raised by a part of what it lacks."""
    now, most = float(shares.sum()), float(upper.sum())
    if now >= total or now >= most:  # all that there is may be less than the total by rounding
        return shares * min(1.0, total / now)
    more: Vector = shares + (upper - shares) * ((total - now) / (most - now))
    return more
