"""The cutting-plane algorithm, and the bundle method that adds a line search in score space."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from metrimax import _kernels
from metrimax.protocols import Callback, Cut, Cuts, Design, Oracle, Record, Solution, Status, Steps, Vector, offer
from metrimax.solvers.model import CutModel, Point, cut_model

STALL = 100
"""So many iterations without a millionth off the gap are no progress any more."""


@dataclass(frozen=True)
class Bundle:
    """Cutting planes with a line search between the best point and the model's minimiser.

    Per iteration the data are read twice: ``X w`` for the minimiser of the model and ``X' slope`` for one new cut.
    The line search moves only scores, ``s + t X d``, so however many points it tries, X is not touched.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    stride : float
        The new cut is taken at ``best + stride (minimiser - best)``.
    accuracy : float
        Of the line search, relative to the gap. Below ``stride``, or a new cut may say nothing new: where the line
        search is exact, the cut is violated by at least ``stride`` times the gap.

    References
    ----------
    Joachims (2005), Algorithm 1; Franc & Sonnenburg (2009), Algorithm 2 (OCAS).
    """

    max_iter: int = 10_000
    stride: float = 0.1
    accuracy: float = 0.02
    line_search: ClassVar[bool] = True

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
        lam = 1 / float(weight)
        began = time.perf_counter()
        model = cut_model(design, lam, start)
        n = design.shape[0]
        cut = oracle(np.zeros(n))
        if start is None:
            yield from model.add(cut)
        best = _Best(Point(np.zeros(min(design.shape)), np.zeros(n), 0.0), cut.loss, lam)
        at_zero = best.value
        if start is not None and isinstance(start.best, _Best):
            known = start.best.point
            known = Point(known.rep.copy(), known.scores.copy(), known.square)  # a search moves its start
            best = min(best, _Best(known, start.best.risk, lam), key=lambda point: point.value)
        history: list[Record] = []
        status = Status.MAX_ITER
        gap = milestone = np.inf
        idle = 0
        reach = 1.0
        for iteration in range(1, self.max_iter + 1):
            target = yield from model.solve(0.01 * min(gap, max(tol, 1e-15)))
            if self.line_search:
                search = _Search(oracle, model, best, target, cut)
                del cut  # its slope is a vector of length n
                step = search.minimise(self.accuracy * (best.value - model.bound), reach)
                best = search.advance(step)
                cut = oracle(search.beyond(step, self.stride))
                reach = min(1.0, 2 * step.t) or reach / 2
            else:
                cut = oracle(target.scores)
                risk = cut.loss + _kernels.dot(cut.slope, target.scores)
                best = min(best, _Best(target, risk, lam), key=lambda point: point.value)
            gap = best.value - model.bound
            seconds = time.perf_counter() - began
            history.append(Record(iteration, model.n_passes, best.value, model.bound, model.size - 1, seconds))
            offer(callback, partial(_state, model, best))
            if gap <= tol:
                status = Status.CONVERGED
                break
            milestone, idle = (gap, 0) if gap < (1 - 1e-6) * milestone else (milestone, idle + 1)
            if idle == STALL:
                status = Status.STALLED
                break
            if callback is not None and callback(history[-1]) in (True,):  # NumPy's True as well
                status = Status.CALLBACK
                break
            model.prune()
            yield from model.add(cut)
        if status is Status.CONVERGED and at_zero - model.bound <= tol:
            status = Status.TRIVIAL
        w = yield from model.weights(best.point)
        return Solution(
            w=w,
            objective=weight * best.value,
            bound=weight * model.bound,
            gap=gap,
            n_iter=len(history),
            n_passes=model.n_passes,
            n_support=model.n_support,
            status=status,
            history=history,
            cuts=_state(model, best),
        )


@dataclass(frozen=True)
class CuttingPlane(Bundle):
    """The plain cutting-plane algorithm: the new cut is taken where the model is least. The reference.

    References
    ----------
    Joachims (2005), Algorithm 1.
    """

    line_search: ClassVar[bool] = False


class _Best:
    """A point with its risk and the objective ``lam/2 |w|^2 + R(w)``."""

    def __init__(self, point: Point, risk: float, lam: float) -> None:
        self.point, self.risk = point, risk
        self.value = lam / 2 * point.square + risk


def _state(model: CutModel, best: _Best) -> Cuts:
    """Where a run is, for another to start from it."""
    return replace(model.cuts(), best=best)


class _Step(NamedTuple):
    """A point on a line: the risk and its rise, the objective and its slope."""

    t: float
    risk: float
    rise: float
    value: float
    slope: float


class _Search:
    """Line search in score space: from a point towards the minimiser of the model.

    ``phi(t) = lam/2 |w + t d|^2 + R(s + t Xd)`` is a parabola plus a convex function of which every
    evaluation gives value and slope, so two tangents bracket the minimum and bound it from below.

    Vectors of length n are few: the target's become the move's, and `advance` and `beyond` work in place.
    """

    def __init__(self, oracle: Oracle, model: CutModel, best: _Best, target: Point, cut: Cut) -> None:
        start, move = best.point, target
        _kernels.axpy(-1.0, start.rep, move.rep)
        _kernels.axpy(-1.0, start.scores, move.scores)
        self._oracle = oracle
        self._lam = model.lam
        self._best = best
        self._move = move
        self._cross = model.inner(start, move)
        self._bend = model.inner(move, move)
        rise = _kernels.dot(cut.slope, move.scores)
        self._start = self._step(0.0, (best.risk, rise))
        self._tangent = self._step(0.0, (cut.loss + _kernels.dot(cut.slope, start.scores), rise))

    def minimise(self, accuracy: float, reach: float) -> _Step:
        """The least of the points tried, within ``accuracy`` of the minimum unless 30 did not reach it.

        The search begins on [0, reach] and doubles that until the minimum is inside. At 0 the risk is known, and the
        newest cut, taken near there, serves as its tangent.
        """
        scores, move = self._best.point.scores, self._move.scores
        line = self._oracle.line(scores, move, reach)
        left, right = self._tangent, self._step(reach, line(reach))
        lowest = min(self._start, right, key=lambda step: step.value)
        for _ in range(30):
            if right.slope < 0:
                line = self._oracle.line(scores, move, 2 * right.t)
                left, right = right, self._step(2 * right.t, line(2 * right.t))
                lowest = min(lowest, right, key=lambda step: step.value)
                continue
            t, floor = self._least_of_tangents(left, right)
            if lowest.value - floor <= accuracy or not left.t < t < right.t:
                break
            here = self._step(t, line(t))
            lowest = min(lowest, here, key=lambda step: step.value)
            if here.slope < 0:
                left = here
            else:
                right = here
        return lowest

    def advance(self, step: _Step) -> _Best:
        """Move the best point to a step."""
        if step.t == 0:
            return self._best
        rep, scores, _ = self._best.point
        _kernels.axpy(step.t, self._move.rep, rep)
        _kernels.axpy(step.t, self._move.scores, scores)
        return _Best(Point(rep, scores, self._square(step.t)), step.risk, self._lam)

    def beyond(self, step: _Step, stride: float) -> Vector:
        """Scores a little further towards the target than the step taken by the best point; ends the search."""
        scores = self._move.scores
        scores *= stride * (1 - step.t)
        scores += self._best.point.scores
        return scores

    def _step(self, t: float, risk_and_rise: tuple[float, float]) -> _Step:
        risk, rise = risk_and_rise
        slope = self._lam * (self._cross + t * self._bend) + rise
        return _Step(t, risk, rise, self._parabola(t) + risk, slope)

    def _parabola(self, t: float) -> float:
        return self._lam / 2 * self._square(t)

    def _square(self, t: float) -> float:
        return self._best.point.square + 2 * t * self._cross + t * t * self._bend

    def _least_of_tangents(self, left: _Step, right: _Step) -> tuple[float, float]:
        """Where the parabola plus the higher of the two tangents to the risk is least, and its value there."""

        def least(step: _Step) -> float:
            return -(step.rise / self._lam + self._cross) / self._bend if self._bend > 0 else step.t

        def tangent(step: _Step, t: float) -> float:
            return step.risk + step.rise * (t - step.t)

        t = least(left)
        if right.rise > left.rise:
            meet = (tangent(left, 0.0) - tangent(right, 0.0)) / (right.rise - left.rise)
            if t > meet:
                t = max(meet, least(right))
        return t, self._parabola(t) + max(tangent(left, t), tangent(right, t))
