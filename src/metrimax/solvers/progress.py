"""What every solver of cuts keeps: the model, the best exact point, the history, and when to stop."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace

import numpy as np

from metrimax import _kernels
from metrimax.protocols import (
    Ask,
    Callback,
    Cut,
    Cuts,
    Design,
    Oracle,
    Point,
    Record,
    Solution,
    Status,
    Steps,
    Vector,
    offer,
)
from metrimax.solvers.model import cut_model, taken

STALL = 100
"""So many iterations without a millionth off the gap are no progress any more."""

DOUBT = 0.01
"""Where scores may have lost more than this share of the tolerance to rounding, the solution's are computed afresh."""

SLOW = 0.01
"""After an iteration that took less than this share off the gap, the next cut is exact."""


class Best:
    """A point with its risk and the objective ``lam/2 |w|^2 + R(w)``."""

    __slots__ = ("point", "risk", "value")

    def __init__(self, point: Point, risk: float, lam: float) -> None:
        self.point, self.risk = point, risk
        self.value = lam / 2 * point.square + risk


class Progress:
    """The state of a run; ``at_zero`` is the risk at w = 0."""

    def __init__(
        self,
        oracle: Oracle,
        design: Design,
        weight: float,
        tol: float,
        at_zero: float,
        start: Cuts | None,
        callback: Callback | None,
    ) -> None:
        self._oracle = oracle
        self._callback = callback
        self._began = time.perf_counter() - (0.0 if start is None else start.seconds)
        self.weight, self.lam, self._given = float(weight), 1 / float(weight), tol
        self.model = cut_model(design, self.lam, start)
        self.best = Best(Point(np.zeros(min(design.shape)), np.zeros(design.shape[0]), 0.0), at_zero, self.lam)
        self._at_zero = self.best.value
        self._base = oracle.can.base
        self._alike = self._at_zero if self._base is None else self._of_equal_scores(design.shape[0])
        if start is not None and start.best is not None:
            (rep, scores, square), risk = start.best
            self.best = Best(Point(rep.copy(), scores.copy(), square), risk, self.lam)  # a search moves its start
        self._milestone, self._idle = np.inf, 0
        self.history: list[Record] = []
        self.status = Status.MAX_ITER

    @property
    def objective(self) -> float:
        """The least that is known: a run may have begun beside w = 0, where that is better."""
        return min(self.best.value, self._at_zero)

    @property
    def gap(self) -> float:
        return self.objective - self.model.bound

    @property
    def tol(self) -> float:
        """The largest gap to end with: as given, in units of the risk; for a sum, relative to what has been gained.

        Beside the risk of a rare class the base losses may be less than that tolerance altogether. So the gap has to be
        small against what training has gained over the best of equal scores, which tell the shares of the classes and
        nothing else. What is small against the base losses of those is no gain.
        """
        if self._base is None:
            return self._given
        return self._given * min(1.0, max(self._alike - self.objective, self._given * self._base))

    def _of_equal_scores(self, n: int) -> float:
        """The least objective if all scores are alike, for a constant feature of 1."""
        zero, ones = np.zeros(n), np.ones(n)
        here, slope = self._oracle.line(zero, ones)(0.0)
        line = self._oracle.line(zero, ones if slope < 0 else -ones)
        accuracy = self._given * (self._base or 1.0)
        t, risk = _kernels.line_search(line, (self.lam, 0.0, 0.0, 1.0), here, None, accuracy, 1.0)
        return min(here, self.lam / 2 * t * t + risk)

    @property
    def gap_before(self) -> float:
        """What the gap was an iteration ago."""
        return self.history[-2].gap if len(self.history) > 1 else np.inf

    @property
    def closed(self) -> bool:
        """Whether the gap is within the tolerance already."""
        return self.gap <= self.tol

    @property
    def precision(self) -> float:
        """How well the quadratic program has to be solved: exactly at first, unless a run starts from several cuts.

        The bound of one plane may be far below the tolerance, and it still says where to go.
        """
        tol = max(self.tol, 1e-15)
        if not self.history:
            return 0.01 * tol if self.model.size > 2 else 1e-15
        return 0.01 * min(self.gap, tol)

    def offer(self, point: Point) -> tuple[float, Cut]:
        """Evaluate the exact objective at a point, and keep it if it is the best; returns the value and the cut."""
        cut = self._oracle(point.scores)
        here = Best(point, cut.loss + _kernels.dot(cut.slope, point.scores), self.lam)
        if here.value < self.best.value:
            self.best = here
        return here.value, cut

    def moved(self, square: float, risk: float) -> None:
        """The best point, whose vectors were moved in place, has this squared length and risk now."""
        rep, scores, _ = self.best.point
        self.best = Best(Point(rep, scores, square), risk, self.lam)

    @property
    def blur(self) -> float:
        """How far the next cut may be below the risk: a mean of cuts within the gap, or the exact one (0).

        A mean stands for many cuts that differ in a few examples, which would otherwise be asked for one by one. But it
        may say nothing new, as the exact one a little beyond the best point always does: that comes where the last mean
        was of little use.
        """
        return 0.0 if self.gap > (1 - SLOW) * self.gap_before else self.gap

    def done(self) -> bool:
        """Write the history; whether to stop."""
        seconds, model, gap = time.perf_counter() - self._began, self.model, self.gap
        number = len(self.history) + 1
        record = Record(number, model.n_passes, self.objective, model.bound, model.size - 1, seconds)
        self.history.append(record)
        if self._callback is not None:
            offer(self._callback, self._state)
        if gap <= self.tol:
            self.status = self._reached
            return True
        if gap > (1 - 1e-6) * self._milestone:
            self._idle += 1
        else:
            self._milestone, self._idle = gap, 0
        if self._idle == STALL:
            self.status = Status.STALLED
            return True
        if self._callback is not None and self._callback(record) in (True,):  # NumPy's True as well
            self.status = Status.CALLBACK
            return True
        return False

    @property
    def _reached(self) -> Status:
        """What a gap within the tolerance means."""
        return Status.TRIVIAL if self._at_zero - self.model.bound <= self.tol else Status.CONVERGED

    def solution(self, *, drifted: bool = False) -> Steps:
        """The best point with its certificate; ``drifted``: its scores may have parted from its weights on the way."""
        w = yield from self.model.weights(self.best.point)
        if (drifted or self.model.lost > DOUBT * self.tol) and w.any():
            yield from self._look_again(w)
        if self.status.missed and self.closed:  # by the last iteration of all
            self.status = self._reached
        if self.status.ok and not self.closed:
            self.status = Status.STALLED
        if self._at_zero < self.best.value:
            rep, scores, _ = self.best.point
            self.best = Best(Point(np.zeros_like(rep), np.zeros_like(scores), 0.0), self._at_zero, self.lam)
            w = np.zeros_like(w)
        return Solution(
            w=w,
            objective=self.weight * self.objective,
            bound=self.weight * self.model.bound,
            gap=self.gap,
            n_iter=len(self.history),
            n_passes=self.model.n_passes,
            n_support=self.model.n_support,
            status=self.status,
            history=self.history,
            cuts=self._state(),
        )

    def _look_again(self, w: Vector) -> Generator[Ask, Vector, None]:
        """What the best point is worth by the scores of its weights, not by those that came of its moves."""
        self.model.n_passes += 1
        (scores,) = taken((yield Ask("scores", [w])))
        rep = self.best.point.rep
        cut = self._oracle(scores)
        risk = cut.loss + _kernels.dot(cut.slope, scores)
        self.best = Best(Point(rep, scores, _kernels.dot(rep, scores)), risk, self.lam)

    def _state(self) -> Cuts:
        """Where the run is, for another to start from it."""
        return replace(self.model.cuts(), best=(self.best.point, self.best.risk))
