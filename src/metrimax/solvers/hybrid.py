"""The bundle method with a quasi-Newton direction: two directions and two cuts for two passes over the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrimax.protocols import Callback, Cut, Cuts, Design, Oracle, Steps, Vector
from metrimax.solvers.model import combine
from metrimax.solvers.progress import Progress
from metrimax.solvers.quasi_newton import QuasiNewton
from metrimax.solvers.search import Search, towards
from metrimax.solvers.smooth import START

FOLLOW = 3.0
"""mu follows the gap at this multiple of it: the bound R - mu <= R_mu is seldom met by far."""

MANY = 1000
"""More features than this, and smoothed gradients save passes (docs/results/solvers.md)."""


@dataclass(frozen=True)
class Hybrid:
    """Bundle method and L-BFGS in one, with one pool of cuts.

    Every iteration reads the data twice, as the bundle method does, but for two vectors at a time. The first pass
    gives the scores of the quasi-Newton direction of L-BFGS and of the minimiser of the model; the exact objective is
    minimised along the one and then towards the other, which costs no pass. The second pulls back two cuts: the
    gradient of the smoothed risk at the point reached, from which the next quasi-Newton direction comes (a smoothed
    gradient is a mean of cuts), and the exact cut a little further towards the minimiser of the model.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    smooth : bool or None
        Take the gradient of the smoothed risk, where the oracle offers one. Otherwise the exact cut at the point stands
        for the gradient: cheaper, and on few features as good. By default on more than `MANY` features.
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
    smooth: bool | None = None
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
        wanted = design.shape[1] > MANY if self.smooth is None else self.smooth
        smooth = getattr(oracle, "smooth", None) if wanted else None
        mu = START

        def gradient_cut(scores: Vector) -> Cut:
            cut: Cut = oracle(scores) if smooth is None else smooth(scores, mu)[1]
            return cut

        here = gradient_cut(run.best.point.scores)
        slope, *_ = yield from model.add(here, *([] if start is not None or smooth is None else [near]))
        del here, near  # vectors of length n are let go of as soon as they can be
        matrix = QuasiNewton(model, self.memory)
        reach = far = 1.0
        for _ in range(self.max_iter):
            direction = matrix.direction(combine((lam, model.bare(run.best.point)), (1.0, slope)), weight)
            target, direction = yield from model.score(model.minimiser(run.precision), direction)
            accuracy = self.accuracy * run.gap
            search = Search(oracle, model, run.best, direction, None)
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
            changed = smooth is not None and FOLLOW * run.gap < mu / 4
            if changed:
                mu = FOLLOW * run.gap
            near = oracle(search.beyond(second, self.stride))
            del search, move
            here = gradient_cut(run.best.point.scores)
            model.prune()
            last = slope
            slope, _ = yield from model.add(here, near)
            del here, near
            if not changed and (first.t > 0 or second.t > 0):
                matrix.update(step, combine((lam, step), (1.0, slope), (-1.0, last)))
        return (yield from run.solution())
