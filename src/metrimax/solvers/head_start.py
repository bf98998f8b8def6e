"""A start for the solvers of cuts: a few epochs of coordinate descent, on mistakes where the measure is another one."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace

import numpy as np

from metrimax import _kernels
from metrimax.protocols import Ask, Cuts, Design, Hinges, Oracle, Point, Vector, required, rows_of
from metrimax.solvers.model import kept_by_weights

EPOCHS, EPOCHS_MISTAKES = 4, 5
"""Passes of coordinate descent on the risk itself, and on mistakes."""


def own_score(oracle: Oracle, design: Design, weight: float) -> float:
    """The score that an example would give itself with its multiplier at the upper bound, in the mean, over kappa.

    That is ``C |x|^2``. The more it exceeds the margin, about kappa, the fewer multipliers get to their bounds.
    """
    return weight / (oracle.price * design.shape[0]) * rows_of(design).mean_square()


def head_start(oracle: Oracle, hinges: Hinges, design: Design, weight: float) -> Generator[Ask, Vector, Cuts]:
    """A few passes on the risk, which is a sum of hinges: their multipliers make up the cut to start from."""
    began = time.perf_counter()
    alpha, w, passes = _epochs(hinges, design, weight / oracle.n, EPOCHS)
    cuts = yield from plane_cut(design, weight, w, hinges.sign * alpha, _kernels.dot(hinges.margin, alpha))
    return replace(cuts, n_passes=cuts.n_passes + passes, seconds=time.perf_counter() - began)


def start_with_mistakes(oracle: Oracle, design: Design, weight: float, tol: float) -> Generator[Ask, Vector, Cuts]:
    """A few passes on the error rate in the place of the risk: they say nothing about it, but lead in a direction.

    The start is where the exact objective is least in that direction. No cut comes of it.
    """
    began = time.perf_counter()
    by_weights = kept_by_weights(design)
    mistakes = required(oracle.can.mistakes, "this start needs an oracle that knows the error rate of its sample")()
    alpha, w, passes = _epochs(mistakes, design, weight / (oracle.n * oracle.price), EPOCHS_MISTAKES)
    rep = w if by_weights else mistakes.sign * alpha
    del mistakes, alpha  # vectors of length n
    scores = np.ascontiguousarray((yield Ask("scores", w)))
    zero, square = np.zeros(len(scores)), _kernels.dot(w, w)
    parabola = 1 / weight, 0.0, 0.0, square
    t, risk = _kernels.line_search(oracle.line(zero, scores), parabola, oracle(zero).loss, None, tol, 1.0)
    none = np.empty((0, min(design.shape)))
    return Cuts(
        losses=np.empty(0),
        gram=np.empty((0, 0)),
        rows=(none,) if by_weights else (none, none),
        best=(Point(t * rep, t * scores, t * t * square), risk),
        n_passes=passes + 1,
        seconds=time.perf_counter() - began,
    )


def plane_cut(design: Design, weight: float, w: Vector, dual_coef: Vector, loss: float) -> Generator[Ask, Vector, Cuts]:
    """The plane under a sum of hinges that multipliers make up, of which ``loss`` is the sum times the margins."""
    rows: tuple[Vector, ...]
    if kept_by_weights(design):
        rows, passes = (-w / weight,), 0
    else:
        scores = yield Ask("scores", w)
        rows, passes = (-dual_coef / weight, -scores / weight), 1
    gram = np.array([[_kernels.dot(w, w) / weight**2]])
    return Cuts(np.array([loss / weight]), gram, tuple(row[np.newaxis] for row in rows), n_passes=passes)


def _epochs(hinges: Hinges, design: Design, share: float, most: int) -> tuple[Vector, Vector, float]:
    """Multipliers, whose upper bounds are the weights of the hinges times ``share``; their w; and the passes taken."""
    alpha, w = (np.zeros(size) for size in design.shape)
    done = rows_of(design).dual_epochs(hinges, hinges.weight * share, alpha, w, tol=0.0, max_passes=most)
    return alpha, w, done.passes
