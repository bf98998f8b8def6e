"""What a solver is given, and the state of a run: the model, the best point, the history."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from metrimax import _kernels
from metrimax.protocols import (
    Arrays,
    Ask,
    Asking,
    Callback,
    Cut,
    Cuts,
    Design,
    Keep,
    Oracle,
    Point,
    Record,
    RowAccess,
    Solution,
    Status,
    Steps,
    Vector,
    required,
)
from metrimax.solvers.cut_model import CutModel, taken

STALL = 100
"""A run stops after this many iterations in which the gap fell by less than a millionth."""

LITTLE = 0.01
"""A share that is negligible: of the tolerance, for the accuracy of the small program and for rounding in the scores;
of the gap, for what an iteration has gained, after which the next cut is exact. With 0.001 and 0.1: 1.00 and 0.99 times
the passes.
"""


@dataclass(frozen=True)
class Task:
    """Minimise ``1/2 |w|^2 + weight R(w)`` to a gap of ``tol`` times the weight, from ``start``."""

    oracle: Oracle
    design: Design
    weight: float
    tol: float
    start: Cuts | None = None
    callback: Callback | None = None
    keep: Keep | None = None


def rows_of(design: Design) -> RowAccess:
    """The rows of X, which coordinate descent needs; raises where the design gives none."""
    kind = type(design).__name__
    return required(
        design.rows,
        f"dual coordinate descent needs the rows of X, which {kind} does not give: pass X as an array or a sparse "
        "matrix, or use solver='bundle'",
    )


class TaskSolver:
    """A solver (`protocols.Solver`) whose `solve` gets a `Task`."""

    def steps(
        self,
        oracle: Oracle,
        design: Design,
        weight: float,
        *,
        tol: float,
        start: Cuts | None = None,
        callback: Callback | None = None,
        keep: Keep | None = None,
    ) -> Steps:
        """Minimise ``1/2 |w|^2 + weight R(w)``."""
        return self.solve(Task(oracle, design, float(weight), tol, start, callback, keep))

    def solve(self, task: Task) -> Steps:
        """The run, a generator; it keeps no reference to the start, so that the start can be freed."""
        raise NotImplementedError


class Best(NamedTuple):
    """A point with its risk and the objective ``lam/2 |w|^2 + R(w)``."""

    point: Point
    risk: float
    value: float


class Run:
    """One run: it owns its cuts and its best point, and decides when to stop.

    Problem: minimise ``lam/2 |w|^2 + R(w)``, with ``lam = 1 / weight``. A run that starts from another (``start``) at
    the same C continues its history.
    """

    def __init__(self, task: Task) -> None:
        oracle, design, start = task.oracle, task.design, task.start
        self.oracle, self.design = oracle, design
        self.weight, self.lam, self._given = task.weight, 1 / task.weight, task.tol
        self._callback, self._keep = task.callback, task.keep
        self._zero: Cut | None = oracle(np.zeros(design.shape[0]))
        self._at_zero = self._zero.loss
        self._base = oracle.can.base
        self._alike = self._at_zero if self._base is None else self._of_equal_scores()
        self._held: tuple[Vector | None, float] = None, self._at_zero  # a better point, not continued from; None: w = 0
        self._milestone, self._idle = np.inf, 0
        self._began = time.perf_counter()
        self.iterations = 0
        self.history: list[Record] = []
        self.status = Status.MAX_ITER
        self.schedule: Arrays = {}  # what the solver found of its own state in the start
        self.scheduled: Callable[[], Arrays] = dict  # and what it wants to be kept of it
        self.model: CutModel
        self.best: Best
        if start is not None:
            self.history += start.history
            self.schedule = start.schedule
            self._began -= start.seconds
            if start.held is not None and start.held[1] < self._at_zero:
                self._held = start.held
        self.begin(start, self.history[-1].bound if self.history else -np.inf)

    def begin(self, start: Cuts | None, bound: float = -np.inf, n_passes: float = 0.0) -> None:
        """Take over the cuts and the point of a start; of this run only bound and passes are kept."""
        before = None if start is None else start.best
        self.model = CutModel(self.design, self.lam, start)
        self.model.bound, self.model.n_passes = bound, self.model.n_passes + n_passes
        self.best = self._origin()
        if before is not None:
            (rep, scores, square), risk = before
            self.best = self.at(Point(rep.copy(), scores.copy(), square), risk)  # a search moves its start

    def at(self, point: Point, risk: float) -> Best:
        """A point with its value."""
        return Best(point, risk, self.lam / 2 * point.square + risk)

    def opening(self) -> tuple[list[float], list[Vector]]:
        """The cut at w = 0 (loss and slope) if the model has none yet; the caller takes it over."""
        cut, self._zero = self._zero, None
        return ([cut.loss], [cut.slope]) if cut is not None and self.model.size == 1 else ([], [])

    @property
    def objective(self) -> float:
        """The least objective known: a run may start beside a better point."""
        return min(self.best.value, self._held[1])

    @property
    def gap(self) -> float:
        return self.objective - self.model.bound

    @property
    def tol(self) -> float:
        """The largest gap to end with: as given, in units of the risk; for a sum, relative to what has been gained.

        Where one class is rare, all base losses together may be less than that tolerance. So the gap has to be small
        relative to the gain over the best constant score, which knows only the shares of the classes. A gain that is
        small relative to the base losses of that score does not count.
        """
        if self._base is None:
            return self._given
        return self._given * min(1.0, max(self._alike - self.objective, self._given * self._base))

    @property
    def closed(self) -> bool:
        """Whether the gap is within the tolerance already."""
        return self.gap <= self.tol

    @property
    def precision(self) -> float:
        """The accuracy of the quadratic program: exact at first, unless a run starts from several cuts."""
        tol = max(self.tol, 1e-15)
        if not self.iterations:
            return LITTLE * tol if self.model.size > 2 else 1e-15
        return LITTLE * min(self.gap, tol)

    @property
    def blur(self) -> float:
        """How far the next cut may be below the risk: a mean of cuts within the gap, or 0 for the exact cut.

        A mean replaces many cuts that differ in a few examples. But it may not be violated, as the exact cut beyond the
        best point always is; so the exact cut follows where the last mean was of little use.
        """
        before = self.history[-2].gap if self.iterations > 1 else np.inf
        return 0.0 if self.gap > (1 - LITTLE) * before else self.gap

    def offer(self, point: Point) -> tuple[float, Cut]:
        """Evaluate the exact objective at a point, keep the point if it is the best; returns value and cut."""
        cut = self.oracle(point.scores)
        here = self.at(point, cut.loss + _kernels.dot(cut.slope, point.scores))
        if here.value < self.best.value:
            self.best = here
        return here.value, cut

    def moved(self, square: float, risk: float) -> None:
        """Note the new squared length and risk of the best point, whose vectors were moved in place."""
        rep, scores, _ = self.best.point
        self.best = self.at(Point(rep, scores, square), risk)

    def done(self) -> bool:
        """Append to the history; return whether to stop."""
        model, gap, history = self.model, self.gap, self.history
        number, seconds = history[-1].iteration + 1 if history else 1, time.perf_counter() - self._began
        record = Record(number, model.n_passes, self.objective, model.bound, model.size - 1, seconds)
        history.append(record)
        self.iterations += 1
        if self._keep is not None:
            self._keep(record, self._state)
        if gap <= self.tol:
            self.status = Status.CONVERGED
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

    def solution(self, *, drifted: bool = False) -> Steps:
        """The best point with its certificate; ``drifted``: its scores may differ from X w by accumulated rounding."""
        w = yield from self.model.weights(self.best.point)
        if (drifted or self.model.lost > LITTLE * self.tol) and w.any():
            yield from self._look_again(w)
        if self.status.missed and self.closed:  # by the last iteration of all
            self.status = Status.CONVERGED
        if self.status.ok and not self.closed:
            self.status = Status.STALLED
        if self.status is Status.STALLED and self.gap <= self._given:  # a sum was to go on; floating point cannot
            self.status = Status.CONVERGED
        held, value = self._held
        if value < self.best.value:
            w = np.zeros_like(w) if held is None else held
            if held is None:
                self.best = self._origin()
        if self.status is Status.CONVERGED:
            self.status = Status.reached(w)
        return Solution(
            w=w,
            objective=self.weight * self.objective,
            bound=self.weight * self.model.bound,
            gap=self.gap,
            n_iter=self.history[-1].iteration if self.history else 0,
            n_passes=self.model.n_passes,
            n_support=self.model.n_support,
            status=self.status,
            history=self.history,
            cuts=replace(self.model.cuts(), best=(self.best.point, self.best.risk)),
        )

    def _origin(self) -> Best:
        n, p = self.design.shape
        return self.at(Point(np.zeros(min(n, p)), np.zeros(n), 0.0), self._at_zero)

    def _of_equal_scores(self) -> float:
        """The least objective if all scores are alike, for a constant feature of 1."""
        zero, ones = np.zeros(self.design.shape[0]), np.ones(self.design.shape[0])
        here, slope = self.oracle.line(zero, ones)(0.0)
        line = self.oracle.line(zero, ones if slope < 0 else -ones)
        accuracy = self._given * (self._base or 1.0)
        t, risk = _kernels.line_search(line, (self.lam, 0.0, 0.0, 1.0), here, None, accuracy, 1.0)
        return min(here, self.lam / 2 * t * t + risk)

    def _look_again(self, w: Vector) -> Asking[None]:
        """The objective of the best point from freshly computed scores, free of the rounding of its moves."""
        self.model.n_passes += 1
        (scores,) = taken((yield Ask("scores", [w])))
        rep = self.best.point.rep
        cut = self.oracle(scores)
        risk = cut.loss + _kernels.dot(cut.slope, scores)
        self.best = self.at(Point(rep, scores, _kernels.dot(rep, scores)), risk)

    def _state(self) -> Cuts:
        """The state of the run, from which another can continue."""
        return replace(self.model.cuts(), best=(self.best.point, self.best.risk), schedule=self.scheduled())


class RunSolver(TaskSolver):
    """A solver of cuts: it gets a `Run`, which has taken over the start."""

    def solve(self, task: Task) -> Steps:
        return self._solve(Run(task))

    def _solve(self, run: Run) -> Steps:
        raise NotImplementedError
