"""The risk of a structured problem, as a design and an oracle for the solvers that train measures.

Two ways lead to the same optimum. With one slack for all examples, the risk is a function of w, and a cut is the mean
of the most violated constraints of all examples (`StructuredRisk`, on the design `Weights`). Any solver that uses cuts
can train it, with one argmax per example for every cut and every point of a line search. The other way keeps all
constraints found so far, and solves the problem over them without any argmax (`Cached`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metrimax import _kernels
from metrimax.measure.sample import SampleOracle
from metrimax.protocols import Callback, Cut, Record, Solution, Solver, Status, Vector
from metrimax.structured.cache import cache_of
from metrimax.structured.problem import Constraints, Rescaling, StructuredProblem
from metrimax.training.lockstep import run

SLOP = 1e-6
"""How far an argmax may stay below a value that is known to be reached, relative to its terms: rounding, and the
tolerance of a linear program."""

ROUNDING = 1e-11
"""A constraint that exceeds the cached ones by less than this, relative to its value, counts as cached."""


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
        known = np.broadcast_to(known, values.shape)
        lower = np.flatnonzero(values < known)  # few, and only by rounding
        terms = 1 + found.losses[lower] + abs(found.rows[lower]) @ abs(w)
        missed = lower[values[lower] < known[lower] - SLOP * terms]
        if self.problem.inference != "approximate" and len(missed):
            i = int(missed[0])
            known_i = float(known[i])
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


@dataclass(frozen=True)
class Cached:
    """Solves the problem over cached constraints until no argmax finds better ones.

    Each iteration passes over the examples once and caches the constraints that it finds. The problem over the cache is
    solved without any argmax. Its risk is never above the true one, so a bound of it holds for the true problem. The
    argmaxes of the next iteration give the true risk at the w that was found, and so the gap.

    References
    ----------
    Tsochantaridis et al. (2005), Algorithm 1, for working sets by example; Joachims, Finley & Yu (2009), section 3.2,
    for the caching of constraints.
    """

    max_iter: int = 1000

    def solve(self, oracle: StructuredRisk, weight: float, *, tol: float, callback: Callback | None = None) -> Solution:
        """Minimise ``1/2 |w|^2 + weight R(w)``."""
        began = time.perf_counter()
        cache = cache_of(int(oracle.n), oracle.p, weight)
        w = best_w = np.zeros(oracle.p)
        best = before = np.inf
        bound = 0.0
        history: list[Record] = []
        status = Status.MAX_ITER
        arrived = True
        for iteration in range(1, self.max_iter + 1):
            slacks = cache.slacks(w)
            found, values = oracle.constraints(w, slacks)
            values = np.maximum(values, slacks)
            value = _kernels.dot(w, w) / (2 * weight) + float(values.mean())
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
                cache.add(found, better)
            elif arrived and not gap < before:  # neither more constraints nor more precision help
                status = Status.STALLED
                break
            before = gap
            # a part of tol is left for what is not in the cache
            target, reached = cache.solve(max(0.4 * tol, cache.precision * gap))
            bound = max(bound, reached)
            arrived = not len(better)
            w = target if arrived else w + cache.stride * (target - w)
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
            n_support=cache.n_support,
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
