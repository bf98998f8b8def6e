"""The bundle method with a quasi-Newton direction: two directions and two cuts for two passes over the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrimax.protocols import Callback, Cuts, Design, Oracle, Steps
from metrimax.solvers.progress import Progress

START = 0.1
"""mu of the first mean of cuts, at most; it then follows the gap, in steps of a quarter or less."""

GOOD = 0.01
"""A bound that is so much of the objective, after a few iterations, shows that the bundle method does well."""

BRISK = 0.5
"""And so does a gap that falls to this share, or less, in an iteration."""

MOST = 0.6
"""Where the cut at w = 0 concerns such a share of the examples the risk is smooth enough for L-BFGS."""

MEMORY, SHORT, LONG = 30, 10, 1000
"""Past steps that make up the quasi-Newton matrix, and how many where vectors have more than so many entries: there
older ones help no more and cost as much as a product.
"""

VAIN, PAUSE, LONGEST = 8, 16, 64
"""After so many directions in a row that led nowhere so many plain iterations follow; next time twice as many, at most.
"""


@dataclass(frozen=True)
class Hybrid:
    """Bundle method and L-BFGS in one, with one pool of cuts.

    Every iteration reads the data twice, as the bundle method does, but for two vectors at a time. The first pass
    gives the scores of the quasi-Newton direction of L-BFGS and of the minimiser of the model; the exact objective is
    minimised along the one and then towards the other, which costs no pass. The second pulls back two cuts: a mean of
    cuts at the point reached, whose slope stands for the gradient from which the next quasi-Newton direction comes, and
    the cut of the bundle method, a little further towards the minimiser of the model.

    A mean of cuts rather than the cut itself, since the cut of a measure turns on single examples: the flips of about
    the same cost are shared out among them, as far as the risk at the point is missed by no more than mu, which follows
    the gap.

    It may begin with plain iterations of the bundle method, with one direction and one cut each: while the model is
    rough, they get about as far and cost half as much. They go on for as long as w = 0 is the best point known, which
    is a kink that quasi-Newton steps do not get away from, and may go on in an easy problem, where they do well. And
    they come back for a while where the quasi-Newton directions lead nowhere.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    plain : int
        So many plain iterations come first, at least.
    smooth : int or None
        So many instead, where the risk is smooth.
    patient : int
        Up to so many in an easy problem: for as long as the bound is `GOOD` and the gap falls fast.
    brisk : float
        That is, to this share or less of what it was an iteration before (`BRISK` where the risk is smooth).
    memory : int or None
        Number of past steps that make up the quasi-Newton matrix; by default `MEMORY` or `SHORT` of them.
    stride : float
        The cut of the bundle method is taken at ``best + stride (minimiser - best)``, or nearer.
    accuracy : float
        Of the line searches, relative to the gap.

    References
    ----------
    Franc & Sonnenburg (2009); Zhang, Saha & Vishwanathan (2011); Lewis & Overton (2013) for quasi-Newton steps on
    risks that are not smooth.
    """

    max_iter: int = 10_000
    plain: int = 0
    smooth: int | None = None
    patient: int = 0
    brisk: float = BRISK
    memory: int | None = None
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
        zero = oracle(np.zeros(design.shape[0]))
        run = Progress(oracle, design, weight, tol, zero.loss, start, callback)
        del start  # the model has what it needs
        plain, brisk = self.plain, self.brisk
        if self.smooth is not None and np.count_nonzero(zero.slope) >= MOST * design.shape[0]:
            plain, brisk = self.smooth, BRISK
        model, asked = run.model, oracle.can.compiled or oracle
        memory = self.memory or (MEMORY if min(design.shape) <= LONG else SHORT)
        steps = model.steps(run.best.point, run.best.risk, self.stride, self.accuracy, memory)
        mu = min(START, run.best.value)
        losses, slopes = ([zero.loss], [zero.slope]) if model.size == 1 else ([], [])  # else it starts from others
        del zero  # vectors of length n are let go of as soon as they can be
        both = direct = plain == 0  # from when on there are two directions and cuts, and whether there are two now
        if both:
            cut = oracle.mean_cut(run.best.point.scores, mu)
            losses.append(cut.loss)
            slopes.append(cut.slope)
            del cut
        rest, pause = 0, PAUSE
        for k in range(self.max_iter):
            moves = yield from model.propose(steps, losses, slopes, run.precision, run.tol, direct)
            if moves:
                steps.search(asked, (yield from model.scores(moves)))
                moves.clear()
                run.moved(steps.square, steps.risk)
            if run.done() or k + 1 == self.max_iter:
                break
            if not both and k + 1 >= plain and run.best.point.square > 0:
                easy = model.bound > GOOD * run.best.value and run.gap <= brisk * run.gap_before
                both = k + 1 >= self.patient or not easy
            rest = max(rest - 1, 0)
            if direct and steps.in_vain >= VAIN:
                rest, pause = pause, min(2 * pause, LONGEST)
                steps.forget()  # what lies far apart does not compare
            direct = both and rest == 0
            if both and run.gap < mu / 4:
                mu = run.gap
                steps.forget()  # nor do slopes of another mu
            losses, slopes = steps.cuts(asked, run.blur, mu if direct else None)
        return (yield from run.solution())
