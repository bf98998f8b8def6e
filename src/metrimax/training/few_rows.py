"""Train on few rows where one class is rare, and let all rows judge.

Of a rare class and a common one hardly any row of the common one matters: on text, 20 positives and some hundred of
10,000 negatives make up the solution. A labelling that flips none of the other rows is a labelling all the same, and no
base loss is negative. So the risk of some rows is never above that of all, and every cut and every bound found on some
rows holds for the whole sample. The point found on them is judged on all rows. Where it misses the tolerance, the rows
that the whole risk flips there join the others, the cuts are taken over, and the next round begins.

Features that are zero in all rows in use are left out of a round: on text most are, and products go through short
vectors.

The rows to begin with are those of the rare class, and as many of the others as look most like them: by their scores
for the direction of steepest descent at w = 0. If half of the rows matter, the solver goes on with all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metrimax import _kernels
from metrimax.protocols import (
    Ask,
    Asking,
    Callback,
    Cuts,
    Design,
    Oracle,
    Point,
    Record,
    RowAccess,
    Rows,
    Solution,
    Solver,
    Status,
    Steps,
    Vector,
    made,
    required,
)
from metrimax.solvers import Auto, Bundle
from metrimax.solvers.cut_model import kept_by_weights, taken
from metrimax.solvers.run_state import Run, Task
from metrimax.training import lockstep

FEW = 400
"""Rows of the common class to begin with, at least; half as many join in a round, and twice those that flip. Passes
with 100 and with 1600: 1.58 and 1.42 times as many on Reuters (90 labels), 0.98 and 1.00 on bibtex (53).
"""

RARE = 0.02
"""The share of the rare class, at most. CPU seconds of all labels, relative to 1 %: Reuters (90) 0.92 at 2 %, 0.95 at
3 % and 5 %; bibtex (159), with `LEFT` changed as well, 1.01 at 2 % and 1.04 at 3 %.
"""

FEATURES = 200
"""With fewer features more rows matter. Passes on few rows relative to all rows, 0.5 to 1.5 % positives: 256 features
0.39 and 0.90 (USPS), 64 features 0.48 and 0.80 (optdigits), 54 features 0.56 to 1.13 (covtype).
"""

SHARE = 0.05
"""Of the gap, to which a round is trained: the rows that join after it change the problem. Passes with 0.01 and with
0.3: 0.97 and 1.17 on Reuters, 0.98 and 1.00 on bibtex.
"""

LEFT = 0.85
"""Of the tolerance, to which the last round is trained: rows left out rarely need the rest. With 0.5, 90 labels of
Reuters take 4,724 iterations instead of 4,182.
"""

LONG = 200
"""Iterations after which a round is given up, and the solver takes all rows: it knows more ways out of w = 0. No round
takes as many on Reuters and bibtex. With 50 some do at C = 100, and the passes are 1.12 times as many.
"""

FLIPS = 0.01
"""Of the largest slope, from which on a row counts as flipped. From 0.0001 to 0.5 the passes differ by 1 %."""


@dataclass(frozen=True)
class Part:
    """Some rows of a design, as a design of their own, with those features that they have."""

    rows: RowAccess
    features: Rows
    size: int
    n_features: int  # of the whole

    @property
    def shape(self) -> tuple[int, int]:
        return self.size, len(self.features)

    def whole(self, w: Vector) -> Vector:
        """Weights for all features."""
        weights = np.zeros(self.n_features)
        weights[self.features] = w
        return weights

    def matvec(self, w: Vector) -> Vector:
        """``X w``."""
        return self.rows.products("scores", [w])[0]

    def rmatvec(self, slope: Vector) -> Vector:
        """``X' slope``."""
        return self.rows.products("pull", [slope])[0]


def solve(
    solver: Solver, oracle: Oracle, design: Design, weight: float, *, tol: float, callback: Callback | None = None
) -> Steps:
    """Minimise ``1/2 |w|^2 + weight R(w)``, on few rows if the solver may choose how and one class is rare."""
    if isinstance(solver, Auto) and (sign := _of_classes(oracle, design)) is not None:
        return _on_few_rows(solver, Task(oracle, design, weight, tol, callback=callback), sign)
    return solver.steps(oracle, design, weight, tol=tol, callback=callback)


def _on_few_rows(solver: Auto, task: Task, sign: Vector) -> Steps:
    """On few rows; and then on all of them, if too many matter or a round takes too long."""
    few = _FewRows(task, sign, solver.max_iter)
    solution = yield from few.rounds()
    if solution is not None:
        return solution
    start = yield from few.everything()
    left = replace(solver, max_iter=solver.max_iter - len(start.history))
    return (yield from left.solve(replace(task, start=start)))


def _of_classes(oracle: Oracle, design: Design) -> Vector | None:
    """The sign of each row's class, if one class is rare and the risk of some rows can be had; None otherwise."""
    n, p = design.shape
    rows, can = design.rows, oracle.can
    if can.within is None or can.hinges is not None or rows is None or not rows.in_order or p <= FEATURES:
        return None  # coordinate descent sets rows aside by itself where the risk is a sum of hinges
    hinges = required(made(can.mistakes), "expected an oracle that tells the classes")
    rare = min(int(np.count_nonzero(hinges.sign > 0)), int(np.count_nonzero(hinges.sign < 0)))
    return hinges.sign if rare <= RARE * n and n >= 4 * FEW else None


class _FewRows:
    """One problem on some of its rows: the cuts found on them, the last point, and what all rows make of it."""

    def __init__(self, task: Task, sign: Vector, max_iter: int) -> None:
        self._task, self._oracle, self._design, self._max_iter = task, task.oracle, task.design, max_iter
        self._run = Run(task)
        self._run.model.bound = 0.0  # no risk is negative
        self._history: list[Record] = []
        positives, negatives = sign > 0, sign < 0
        self._inside = positives if positives.sum() <= negatives.sum() else negatives
        self._sign = sign  # times the score: what a flip gives up
        self._rows: Rows = np.empty(0, dtype=np.intp)
        self._part: Part
        self._risk: Oracle  # of the rows
        self._cuts: Cuts | None = None
        self._w, self._scores = np.zeros(self._design.shape[1]), np.zeros(self._design.shape[0])
        self._best = self._w
        self._missing = 0.0  # of the risk at the last point, in the rows that did not join after it

    def rounds(self) -> Asking[Solution | None]:
        """The solution; None if too many rows matter, or a round takes too long."""
        task, run, model = self._task, self._run, self._run.model
        yield from self._begin()
        while True:
            found = self._round()
            self._w = self._part.whole(found.w)
            (self._scores,) = taken((yield Ask("scores", [self._w])))
            model.n_passes += 1
            value, cut = run.offer(Point(np.empty(0), self._scores, _kernels.dot(found.w, found.w)))
            if run.best.value == value:
                self._best = self._w
            last = self._history[-1]
            self._history[-1] = last._replace(objective=run.objective, bound=model.bound, n_passes=model.n_passes)
            if run.closed:
                status = Status.reached(self._best)
                break
            if self._is_stopped(found.status):
                status = Status.CALLBACK
                break
            if len(self._history) == self._max_iter:
                status = Status.MAX_ITER
                break
            if found.status.missed or not self._join(cut.slope, value - found.objective / task.weight, found.gap):
                return None
        return Solution(
            w=self._best,
            objective=task.weight * run.objective,
            bound=task.weight * model.bound,
            gap=run.gap,
            n_iter=len(self._history),
            n_passes=model.n_passes,
            n_support=found.n_support,
            status=status,
            history=self._history,
            cuts=None,
        )

    def _round(self) -> Solution:
        """The solution on the rows in use, to a part of the gap on all rows."""
        task, run, model, history = self._task, self._run, self._run.model, self._history
        share, before = len(self._rows) / len(self._scores), history[-1].seconds if history else 0.0

        def of_all(record: Record) -> Record:
            """What a record says about all rows."""
            passes, bound = model.n_passes + record.n_passes * share, max(model.bound, record.bound)
            number, seconds = len(history) + record.iteration, before + record.seconds
            return Record(number, passes, run.objective, bound, record.n_cuts, seconds)

        def callback(record: Record) -> Any:
            return task.callback is not None and task.callback(of_all(record))

        solver, start = Bundle(min(LONG, self._max_iter - len(history))), self._cuts
        steps = solver.steps(self._risk, self._part, task.weight, tol=self._goal, start=start, callback=callback)
        [found] = lockstep.run(self._part, [steps])
        history += [of_all(record) for record in found.history]
        model.bound = max(model.bound, found.bound / task.weight)
        model.n_passes += found.n_passes * share
        self._cuts = replace(required(found.cuts, "expected the cuts of a bundle method").elsewhere(), given=True)
        return found

    def _is_stopped(self, status: Status) -> bool:
        """Whether the callback ends the run. A round that reaches its goal has not told it of its last iteration."""
        callback = self._task.callback
        if status.ok and callback is not None:
            return callback(self._history[-1]) in (True,)
        return status is Status.CALLBACK

    @property
    def _goal(self) -> float:
        """The gap on the rows in use to which a round is trained; what they miss is a part of the whole gap."""
        return max(LEFT * (self._run.tol - self._missing), SHARE * self._run.gap)

    def _begin(self) -> Asking[None]:
        """The rows to begin with."""
        zero = np.zeros(len(self._scores))
        steepest = self._oracle.mean_cut(zero, self._run.objective)
        (direction,) = taken((yield Ask("pull", [np.ascontiguousarray(steepest.slope)])))
        (scores,) = taken((yield Ask("scores", [direction])))
        self._scores = -scores
        self._run.model.n_passes += 2
        self._add(FEW)

    def _join(self, slope: Vector, missing: float, gap: float) -> bool:
        """Let the rows join that the risk of all flips; whether the next round is worth while.

        ``missing`` is how far the risk of the rows in use is below that of all, and ``gap`` the gap on these rows.
        """
        flipped = int(np.count_nonzero(np.abs(slope[~self._inside]) > FLIPS * np.abs(slope).max()))
        if not flipped:  # with the same rows only a smaller gap helps; or many rows matter a little
            self._missing = missing
            return missing <= self._run.gap / 2 and self._goal < gap
        joining = FEW // 2 + 2 * flipped
        if 2 * (len(self._rows) + joining) > len(slope):
            return False
        self._add(joining)
        return True

    def _add(self, count: int) -> None:
        """Add the rows whose flips give up least, and take over the cuts."""
        out = np.flatnonzero(~self._inside)
        sign = self._sign[out]
        cost = np.where(sign == 0, np.inf, sign * self._scores[out])  # rows of weight 0 come last
        self._inside[out[np.argpartition(cost, count - 1)[:count]]] = True
        rows = np.flatnonzero(self._inside)
        some = required(self._design.rows, "expected a design with rows").some(rows)
        matrix, features = required(some, "expected rows in memory")
        part = Part(matrix, features, len(rows), self._design.shape[1])
        risk = required(self._oracle.can.within, "expected an oracle of some rows")(rows)
        if self._cuts is not None:
            if kept_by_weights(part):  # with all features
                self._cuts = self._by_weights(risk, rows)
            else:
                slopes = self._slopes(rows)
                images = matrix.products("scores", matrix.products("pull", list(slopes)))
                self._run.model.n_passes += 2 * len(rows) / len(self._scores)
                self._cuts = self._by_slopes(risk, rows, slopes, images)
        self._rows, self._part, self._risk, self._missing = rows, part, risk, 0.0

    def everything(self) -> Asking[Cuts]:
        """A start for all rows: the cuts, the last point, and the run so far."""
        rows, passes = np.arange(len(self._scores)), self._run.model.n_passes
        if kept_by_weights(self._design):
            start = self._by_weights(self._oracle, rows)
        else:
            images = taken((yield Ask("scores", self._vectors())))
            passes += 1
            start = self._by_slopes(self._oracle, rows, self._slopes(rows), images)
        last, held = self._history[-1], (self._best, self._run.best.value)
        return replace(start, n_passes=passes, seconds=last.seconds, history=tuple(self._history), held=held)

    def _vectors(self) -> list[Vector]:
        """The cuts as weights for all features."""
        kept = list(required(self._cuts, "expected cuts").rows[0])
        vectors = kept if kept_by_weights(self._part) else self._part.rows.products("pull", kept)
        return [self._part.whole(vector) for vector in vectors]

    def _slopes(self, rows: Rows) -> Vector:
        """The slopes of the cuts, with zeros for the rows that are new among these."""
        kept = required(self._cuts, "expected cuts").rows[0]
        slopes = np.zeros((len(kept), len(rows)))
        slopes[:, np.searchsorted(rows, self._rows)] = kept
        return slopes

    def _by_weights(self, risk: Oracle, rows: Rows) -> Cuts:
        """The cuts and the last point on more rows, by weights."""
        return self._carried(risk, rows, self._w, (np.array(self._vectors()),))

    def _by_slopes(self, risk: Oracle, rows: Rows, slopes: Vector, images: list[Vector]) -> Cuts:
        """The cuts and the last point on more rows, by coefficients and scores."""
        rep = np.zeros(len(rows))
        best = required(required(self._cuts, "expected cuts").best, "expected the last point")
        rep[np.searchsorted(rows, self._rows)] = best[0].rep
        return self._carried(risk, rows, rep, (slopes, np.array(images)))

    def _carried(self, risk: Oracle, rows: Rows, rep: Vector, arrays: tuple[Vector, ...]) -> Cuts:
        cuts, scores = required(self._cuts, "expected cuts"), self._scores[rows]
        here = risk(scores)
        best = Point(rep, scores, _kernels.dot(self._w, self._w)), here.loss + _kernels.dot(here.slope, scores)
        return Cuts(cuts.losses.copy(), np.ascontiguousarray(cuts.gram), arrays, best=best)
