"""The bundle method with a quasi-Newton direction: two directions and two cuts for two passes over the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrimax.protocols import Callback, Cuts, Design, Oracle, Steps
from metrimax.solvers.model import combine
from metrimax.solvers.progress import Progress
from metrimax.solvers.quasi_newton import QuasiNewton
from metrimax.solvers.search import Search, towards

START = 0.1
"""mu of the first mean of cuts; it then follows the gap, in steps of a quarter or less."""


@dataclass(frozen=True)
class Hybrid:
    """Bundle method and L-BFGS in one, with one pool of cuts.

    Every iteration reads the data twice, as the bundle method does, but for two vectors at a time. The first pass
    gives the scores of the quasi-Newton direction of L-BFGS and of the minimiser of the model; the exact objective is
    minimised along the one and then towards the other, which costs no pass. The second pulls back two cuts: a mean of
    cuts at the point reached, whose slope stands for the gradient from which the next quasi-Newton direction comes, and
    the exact cut a little further towards the minimiser of the model.

    A mean of cuts rather than the cut itself, since the cut of a measure turns on single examples: the flips of about
    the same cost are shared out among them, as far as the risk at the point is missed by no more than the gap.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    memory : int
        Number of past steps that make up the quasi-Newton matrix.
    stride : float
        The exact cut is taken at ``best + stride (minimiser - best)``.
    accuracy : float
        Of the line searches, relative to the gap.

    References
    ----------
    Franc & Sonnenburg (2009); Zhang, Saha & Vishwanathan (2011); Lewis & Overton (2013) for quasi-Newton steps on
    risks that are not smooth.
    """

    max_iter: int = 10_000
    memory: int = 10
    stride: float = 0.1
    accuracy: float = 0.02

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
        """Minimise ``1/2 |w|^2 + weight R(w)``, inside as ``lam/2 |w|^2 + R(w)`` with ``lam = 1 / weight``."""
        near = oracle(np.zeros(design.shape[0]))
        run = Progress(oracle, design, weight, tol, near.loss, start, callback)
        lam, model = run.lam, run.model
        mu = START
        here = oracle.mean_cut(run.best.point.scores, mu)
        loss = here.loss
        slope, *_ = yield from model.add(here, *([] if start is not None else [near]))
        del here, near  # vectors of length n are let go of as soon as they can be
        matrix = QuasiNewton(model, self.memory)
        reach = far = 1.0
        for _ in range(self.max_iter):
            direction = matrix.direction(combine((lam, model.bare(run.best.point)), (1.0, slope)), weight)
            target, direction = yield from model.score(model.minimiser(run.precision), direction)
            accuracy = self.accuracy * run.gap
            tangent = loss + model.inner(slope, run.best.point), model.inner(slope, direction)
            search = Search(oracle, model, run.best, direction, tangent)
            first = search.minimise(accuracy, far)
            run.best = search.advance(first)
            far = min(1.0, 2 * first.t) or far / 2
            move = towards(run.best, target)
            search = Search(oracle, model, run.best, move, None)
            second = search.minimise(accuracy, reach)
            run.best = search.advance(second)
            reach = min(1.0, 2 * second.t) or reach / 2
            if run.done():
                break
            step = combine((first.t, model.bare(direction)), (second.t, model.bare(move)))
            del direction, target
            follows = run.gap < mu / 4
            if follows:
                mu = run.gap
            near = oracle(search.beyond(second, self.stride))
            del search, move
            here = oracle.mean_cut(run.best.point.scores, mu)
            loss = here.loss
            model.prune()
            last = slope
            slope, _ = yield from model.add(here, near)
            del here, near
            if not follows and (first.t > 0 or second.t > 0):
                matrix.update(step, combine((lam, step), (1.0, slope), (-1.0, last)))
        return (yield from run.solution())
