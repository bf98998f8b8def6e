"""The risk of a structured problem, as a design and an oracle for the solvers that train measures.

Two ways lead to the same optimum. With one slack for all examples, the risk is a function of w, and a cut is the mean
of the most violated constraints of all examples (`StructuredRisk`, on the design `Weights`). Any solver that uses cuts
can train it, with one argmax per example for every cut and every point of a line search. The other way stores the
constraints found so far as rows of a sparse design. The mean over examples of the most violated stored constraint is an
oracle of its scores (`CachedRisk`), and the bundle method minimises it without any argmax (`Cached`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from metrimax import _kernels
from metrimax.designs import as_design
from metrimax.measure.sample import SampleOracle
from metrimax.protocols import Callback, Cut, Cuts, Line, Record, Solution, Solver, Status, Vector
from metrimax.solvers import Bundle
from metrimax.structured.problem import Constraints, Rescaling, StructuredProblem
from metrimax.training.lockstep import run

Indices = npt.NDArray[np.intp]

SLOP = 1e-6
"""How far an argmax may stay below a value that is known to be reached, relative to its terms: rounding, and the
tolerance of a linear program."""

ROUNDING = 1e-11
"""A constraint that exceeds the cached ones by less than this, relative to its value, counts as cached."""

PRECISION = 0.2
"""The problem over the cache is solved to this share of the gap. With a smaller share there are fewer passes over the
examples, but more work between them."""


class Weights:
    """The identity as a design: its scores are the weights themselves.

    A row of zeros at the end makes it taller than wide. Cuts are then stored by their weights only, and not also by
    their slopes and scores, which are the same here.
    """

    rows = None

    def __init__(self, p: int) -> None:
        self.shape = (p + 1, p)

    def matvec(self, w: Vector) -> Vector:
        return np.concatenate((w, np.zeros((1, *w.shape[1:]))))

    def rmatvec(self, slope: Vector) -> Vector:
        return np.ascontiguousarray(slope[:-1])


class StructuredRisk(SampleOracle):
    """The mean over examples of the most violated constraint's value: the risk with one slack for all.

    Its "scores" are those of `Weights`, that is w and a zero.

    References
    ----------
    Joachims, Finley & Yu (2009), the 1-slack formulation.
    """

    def __init__(
        self,
        problem: StructuredProblem,
        X: Sequence[Any],
        Y: Sequence[Any],
        *,
        rescaling: Rescaling = "margin",
        n_jobs: int | None = None,
    ) -> None:
        self.p = problem.size(X, Y)
        super().__init__(len(X), self.p + 1)
        self.problem = problem
        self.n_passes = 0
        self._X, self._Y = X, Y
        self._rescaling: Rescaling = rescaling
        self._n_jobs = n_jobs

    def constraints(self, w: Vector, known: Vector | float = 0.0) -> tuple[Constraints, Vector]:
        """The most violated constraints at w, with their values.

        ``known`` are values that outputs of the examples are known to reach; the true output reaches 0. An exact argmax
        that returns less is wrong, and the certificate would be wrong, so it is refused.
        """
        found = self.problem.constraints(self._X, self._Y, w, rescaling=self._rescaling, n_jobs=self._n_jobs)
        self.n_passes += 1
        values = found.values(w)
        missed = values < known - SLOP * (1 + found.losses + abs(found.rows) @ abs(w))
        if self.problem.inference != "approximate" and missed.any():
            i = int(np.flatnonzero(missed)[0])
            known_i = float(np.broadcast_to(known, values.shape)[i])
            which = "the true output has" if known_i == 0 else "an output it returned earlier has"
            raise self._wrong(f"example {i}: ", f"an output of value {values[i]:.6g}, although {which} {known_i:.6g}")
        return found, values

    def check_solution(self, solution: Solution) -> None:
        """Refuse an objective below its own bound: the argmax then returned better outputs earlier than at the end."""
        below = -solution.gap > SLOP * (1 + abs(solution.objective))
        if self.problem.inference != "approximate" and below:
            raise self._wrong("", "outputs that are together worse than others it returned earlier")

    def _wrong(self, where: str, what: str) -> ValueError:
        name = "loss_augmented_argmax" if self._rescaling == "margin" else "slack_rescaled_argmax"
        return ValueError(
            f"{where}{name} returned {what}: it does not find the highest. Correct it (compare it with a search "
            'through all outputs of a small input), or set inference = "approximate", which gives up the certificate'
        )

    def __call__(self, scores: Vector) -> Cut:
        self.check(scores)
        found, values = self.constraints(scores[:-1])
        share = (values > 0) / self.n
        return Cut(float(share @ found.losses), np.append(share @ found.rows, 0.0))


class CachedRisk(SampleOracle):
    """The mean over n examples of ``max(0, losses[k] + scores[k])`` over the constraints k cached for them.

    ``owner`` holds the example of each constraint.
    """

    def __init__(self, n: int, losses: Vector, owner: Indices) -> None:
        super().__init__(n, len(losses))
        self._losses = losses
        self._order = np.argsort(owner, kind="stable")
        self._owner = owner[self._order]
        self._first = np.flatnonzero(np.diff(self._owner, prepend=-1))  # where the constraints of an example begin
        self._group = np.cumsum(np.diff(self._owner, prepend=-1) > 0) - 1

    def __call__(self, scores: Vector) -> Cut:
        self.check(scores)
        k, _ = self._highest(self._losses + scores)
        slope = np.zeros(self.size)
        slope[k] = 1 / self.n
        return Cut(float(self._losses[k].sum() / self.n), slope)

    def line(self, scores: Vector, move: Vector) -> Line:
        """The risk on ``scores + t move``."""
        start = self._losses + scores

        def risk(t: float) -> tuple[float, float]:
            k, values = self._highest(start + t * move)
            return float(values.sum() / self.n), float(move[k].sum() / self.n)

        return risk

    def slacks(self, scores: Vector) -> Vector:
        """The highest value of the cached constraints of every example."""
        slacks = np.zeros(int(self.n))
        if self.size:
            values = (self._losses + scores)[self._order]
            slacks[self._owner[self._first]] = np.maximum.reduceat(values, self._first)
        return np.maximum(slacks, 0.0)

    def _highest(self, values: Vector) -> tuple[Indices, Vector]:
        """The highest constraint of every example that has one above zero, and its value."""
        values = values[self._order]
        highest = np.maximum.reduceat(values, self._first)
        k = np.flatnonzero((values == highest[self._group]) & (values > 0))
        k = k[np.diff(self._group[k], prepend=-1) > 0]  # of equals the first
        return self._order[k], values[k]


class Cache:
    """The constraints found so far: the rows of a design, and a risk over its scores."""

    def __init__(self, n: int, p: int) -> None:
        self._n = n
        self._losses, self._owner = np.empty(0), np.empty(0, dtype=np.intp)
        self._rows = sparse.csr_array((0, p))
        self._settle()

    def __len__(self) -> int:
        return len(self._losses)

    def add(self, found: Constraints, chosen: Indices, cuts: Cuts | None = None) -> Cuts | None:
        """Store the constraints of the chosen examples; return the cuts of the old risk as cuts of the new one.

        They remain valid, because the new risk is at least the old one everywhere.
        """
        rows, before = found.rows[chosen], self.design
        self._owner = np.concatenate((self._owner, chosen))
        self._losses = np.concatenate((self._losses, found.losses[chosen]))
        self._rows = sparse.csr_array(sparse.vstack((self._rows, rows)))
        self._settle()
        if cuts is None or len(cuts.rows) == 1:  # kept by weights
            return cuts if cuts is None else replace(cuts, best=None)
        slopes, scores = cuts.rows
        pulled = before.rmatvec(np.ascontiguousarray(slopes.T))
        n, p = self.design.shape
        if n > p:
            return Cuts(cuts.losses, cuts.gram, (np.ascontiguousarray(pulled.T),))
        slopes = np.pad(slopes, ((0, 0), (0, len(chosen))))
        return Cuts(cuts.losses, cuts.gram, (slopes, np.column_stack((scores, (rows @ pulled).T))))

    def slacks(self, w: Vector) -> Vector:
        """The slack of every example at w by the cached constraints."""
        return self.risk.slacks(self._rows @ w)

    def _settle(self) -> None:
        self.risk = CachedRisk(self._n, self._losses, self._owner)
        self.design = as_design(self._rows)


@dataclass(frozen=True)
class Cached:
    """Solves the problem over cached constraints until no argmax finds better ones.

    Each iteration passes over the examples once and caches the constraints that it finds. The bundle method minimises
    the risk over the cache. That is never above the true risk, so its bound holds for the true problem. The argmaxes of
    the next iteration give the true risk at the minimiser, and so the gap.

    References
    ----------
    Tsochantaridis et al. (2005), Algorithm 1, for working sets by example; Joachims, Finley & Yu (2009), section 3.2,
    for the caching of constraints.
    """

    max_iter: int = 1000

    def solve(self, oracle: StructuredRisk, weight: float, *, tol: float, callback: Callback | None = None) -> Solution:
        """Minimise ``1/2 |w|^2 + weight R(w)``."""
        began = time.perf_counter()
        lam = 1 / weight
        cache = Cache(int(oracle.n), oracle.p)
        w = best_w = np.zeros(oracle.p)
        best = before = np.inf
        bound = 0.0
        cuts: Cuts | None = None
        history: list[Record] = []
        status = Status.MAX_ITER
        n_support = 0
        for iteration in range(1, self.max_iter + 1):
            slacks = cache.slacks(w)
            found, values = oracle.constraints(w, slacks)
            values = np.maximum(values, slacks)
            value = lam / 2 * _kernels.dot(w, w) + float(values.mean())
            if value < best:
                best, best_w = value, w
            gap = best - bound
            history.append(Record(iteration, oracle.n_passes, best, bound, len(cache), time.perf_counter() - began))
            if gap <= tol:
                status = Status.CONVERGED
                break
            if callback is not None and callback(history[-1]) in (True,):
                status = Status.CALLBACK
                break
            better = np.flatnonzero(values > slacks + ROUNDING * (1 + values))
            if len(better):
                cuts = cache.add(found, better, cuts)
            elif not gap < before:  # neither more constraints nor more precision help
                status = Status.STALLED
                break
            before, precision = gap, max(0.4 * tol, PRECISION * gap)  # the rest of tol is for what is not in the cache
            steps = Bundle().steps(cache.risk, cache.design, weight, tol=precision, start=cuts)
            inner = run(cache.design, [steps])[0]
            cuts = inner.cuts
            bound = max(bound, inner.bound / weight)
            w, n_support = inner.w, inner.n_support
        if status is Status.MAX_ITER and best - bound <= tol:  # by the last bound of all
            status = Status.CONVERGED
        if status is Status.CONVERGED:
            status = Status.reached(best_w)
        return Solution(
            w=best_w,
            objective=weight * best,
            bound=weight * bound,
            gap=best - bound,
            n_iter=len(history),
            n_passes=oracle.n_passes,
            n_support=n_support,
            status=status,
            history=history,
            cuts=None,
        )


def solve_cuts(
    solver: Solver, oracle: StructuredRisk, weight: float, *, tol: float, callback: Callback | None = None
) -> Solution:
    """Minimise ``1/2 |w|^2 + weight R(w)`` by averaged cuts, with one of the solvers for measures."""
    design = Weights(oracle.p)
    passes = []

    def counted(record: Record) -> Any:
        passes.append(oracle.n_passes)  # the solver counts products with the identity, not passes
        return callback(record._replace(n_passes=oracle.n_passes)) if callback is not None else None

    solution = run(design, [solver.steps(oracle, design, weight, tol=tol, callback=counted)])[0]
    oracle.check_solution(solution)
    numbers = [*passes, oracle.n_passes][: solution.n_iter]
    history = [record._replace(n_passes=n) for record, n in zip(solution.history, numbers, strict=True)]
    return replace(solution, n_passes=oracle.n_passes, history=history, cuts=None)
