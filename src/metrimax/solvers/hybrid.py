"""The bundle method with a quasi-Newton direction: two directions and two cuts for two passes over the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrimax.protocols import Ask, Callback, Cut, Cuts, Design, Oracle, Steps, Vector
from metrimax.solvers.bundle import _Point, _Search
from metrimax.solvers.smooth import START, Progress, QuasiNewton

FOLLOW = 3.0
"""mu follows the gap at this multiple of it: the bound R - mu <= R_mu is seldom met by far."""


@dataclass(frozen=True)
class Hybrid:
    """Bundle method and L-BFGS in one, with one pool of cuts.

    Every iteration reads the data twice, as the bundle method does, but for two vectors at a time. The first pass gives the
    scores of the quasi-Newton direction of L-BFGS and of the minimiser of the model; the exact objective is minimised along
    the one and then towards the other, which costs no pass. The second pulls back two cuts: the gradient
    of the smoothed risk at the point reached, from which the next quasi-Newton direction comes (a smoothed gradient is a
    mean of cuts), and the exact cut a little further towards the minimiser of the model.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    smooth : bool
        Take the gradient of the smoothed risk, where the oracle offers one. Otherwise the exact cut at the point stands for
        the gradient: cheaper, and on few features as good.
    memory : int
        Number of past steps that make up the quasi-Newton matrix.
    stride : float
        The exact cut is taken at ``best + stride (minimiser - best)``.
    accuracy : float
        Of the line searches, relative to the gap.

    References
    ----------
    Franc & Sonnenburg (2009); Zhang, Saha & Vishwanathan (2011); Lewis & Overton (2013) for quasi-Newton steps on risks
    that are not smooth.
    """

    max_iter: int = 10_000
    smooth: bool = True
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
        run = Progress(oracle, design, weight, tol, start, callback)
        lam, model = run.lam, run.model
        smooth = getattr(oracle, "smooth", None) if self.smooth else None

        def gradient_cut(scores: Vector) -> Cut:
            cut: Cut = oracle(scores) if smooth is None else smooth(scores, mu)[1]
            return cut

        mu = START
        here = gradient_cut(run.best.scores)
        pulled, other = _rows((yield Ask("pull", np.column_stack((here.slope, run.cut.slope)))))
        run.n_passes += 1
        model.add(here.loss, pulled)
        model.add(run.cut.loss, other)
        matrix = QuasiNewton(design, self.memory)
        reach = far = 1.0
        for _ in range(self.max_iter):
            w = run.solve()
            point = run.best
            direction = matrix.direction(lam * point.w + pulled, weight)
            move, scores = _rows((yield Ask("scores", np.column_stack((direction, w)))))
            run.n_passes += 1
            point, t = self._search(oracle, design, run, point, point.w + direction, point.scores + move, far)
            far = min(1.0, 2 * t) or far / 2
            point, t = self._search(oracle, design, run, point, w, scores, reach)
            reach = min(1.0, 2 * t) or reach / 2
            before, run.best = run.best, point
            if run.done():
                break
            changed = smooth is not None and FOLLOW * run.gap < mu / 4
            if changed:
                mu = FOLLOW * run.gap
            here = gradient_cut(point.scores)
            ahead = oracle(point.scores + self.stride * (scores - point.scores))
            model.prune()
            last = pulled
            pulled, other = _rows((yield Ask("pull", np.column_stack((here.slope, ahead.slope)))))
            run.n_passes += 1
            model.add(here.loss, pulled)
            model.add(ahead.loss, other)
            if not changed and point is not before:
                step = point.w - before.w
                matrix.update(step, lam * step + pulled - last)
        return run.solution()

    def _search(
        self, oracle: Oracle, design: Design, run: Progress, point: _Point, w: Vector, scores: Vector, reach: float
    ) -> tuple[_Point, float]:
        search = _Search(oracle.line, design, run.lam, point, w, scores)
        return search.minimise(self.accuracy * (point.value - run.model.bound), reach)


def _rows(answer: Vector) -> tuple[Vector, Vector]:
    """The two columns of an answer, each contiguous."""
    rows = np.ascontiguousarray(answer.T)
    return rows[0], rows[1]
