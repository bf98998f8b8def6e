"""A start for the solvers of cuts: a few epochs of coordinate descent, on mistakes where the measure is another one."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any, cast

import numpy as np

from metrimax import _kernels
from metrimax.protocols import Ask, Cuts, Design, Hinges, Oracle, Point, RowDesign, Vector

EPOCHS, EPOCHS_MISTAKES = 4, 5
"""On the risk itself, and on mistakes."""


def own_score(oracle: Oracle, design: Design, weight: float) -> float:
    """The score that an example would give itself with its multiplier at the upper bound, ``C |x|^2``, in the mean.

    The more it exceeds the margin, the fewer multipliers get to their bounds.
    """
    mean: float = cast(Any, design).mean_square()
    return weight / (oracle.price * design.shape[0]) * mean


def head_start(oracle: Oracle, hinges: Hinges, design: Design, weight: float) -> Generator[Ask, Vector, Cuts]:
    """A few epochs on the risk, which is a sum of hinges: their multipliers make up the cut to start from."""
    alpha, w = _epochs(hinges, design, weight / oracle.n, EPOCHS)
    cuts = yield from plane_cut(design, weight, w, hinges.sign * alpha, _kernels.dot(hinges.margin, alpha))
    return replace(cuts, n_passes=cuts.n_passes + EPOCHS)


def start_with_mistakes(
    oracle: Oracle, mistakes: Hinges, design: Design, weight: float, tol: float
) -> Generator[Ask, Vector, Cuts]:
    """A few epochs on the error rate in the place of the risk: they say nothing about it, but lead in a direction.

    The start is where the exact objective is least in that direction. No cut comes of it.
    """
    n, p = design.shape
    alpha, w = _epochs(mistakes, design, weight / (oracle.n * oracle.price), EPOCHS_MISTAKES)
    scores = np.ascontiguousarray((yield Ask("scores", w)))
    zero, square = np.zeros(n), _kernels.dot(w, w)
    parabola = 1 / weight, 0.0, 0.0, square
    t, risk = _kernels.line_search(oracle.line(zero, scores), parabola, oracle(zero).loss, None, tol, 1.0)
    best = Point(t * (w if n > p else mistakes.sign * alpha), t * scores, t * t * square)
    none = np.empty((0, min(n, p)))
    passes = EPOCHS_MISTAKES + 1
    return Cuts(np.empty(0), np.empty((0, 0)), (none,) if n > p else (none, none), (best, risk), n_passes=passes)


def _epochs(hinges: Hinges, design: Design, share: float, epochs: int) -> tuple[Vector, Vector]:
    """Multipliers, of which the upper bounds are the weights of the hinges times ``share``, and their w."""
    alpha, w = (np.zeros(size) for size in design.shape)
    cast(RowDesign, design).dual_epochs(hinges, hinges.weight * share, alpha, w, tol=0.0, max_passes=epochs)
    return alpha, w


def plane_cut(design: Design, weight: float, w: Vector, dual_coef: Vector, loss: float) -> Generator[Ask, Vector, Cuts]:
    """The plane under a sum of hinges that multipliers make up, of which ``loss`` is the sum times the margins."""
    n, p = design.shape
    rows: tuple[Vector, ...]
    if n > p:
        rows, passes = (-w / weight,), 0
    else:
        scores = yield Ask("scores", w)
        rows, passes = (-dual_coef / weight, -scores / weight), 1
    gram = np.array([[_kernels.dot(w, w) / weight**2]])
    return Cuts(np.array([loss / weight]), gram, tuple(row[np.newaxis] for row in rows), n_passes=passes)
