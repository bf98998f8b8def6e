"""The choice among the solvers, by what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from metrimax import _kernels
from metrimax.protocols import (
    Callback,
    Cuts,
    Design,
    Oracle,
    Solver,
    Status,
    Steps,
    made,
    required,
)
from metrimax.solvers.at_zero import FromZero
from metrimax.solvers.bundle import Bundle
from metrimax.solvers.dual_cd import FINE, DualCD
from metrimax.solvers.head_start import head_start, own_score, plane_cut, start_with_mistakes
from metrimax.solvers.hybrid import Hybrid
from metrimax.solvers.joined import joined, later

FEW, MANY = 40, 1000
"""Up to so many features, the constant one included, are few; more than so many are taken for text."""

EASY, EASY_FINE = 30, 50
"""Passes that coordinate descent may look like needing before the hybrid takes over; and where the tolerance is below
`FINE`, since it converges linearly (on text it then goes on to the end).
"""

LOOSE_FEW, LOOSE, LOOSE_TEXT = 0.3, 3000.0, 5000.0
"""Where an example's own score (`own_score`) is more than `LOOSE_FEW` times the margin on few features, or `LOOSE`
times on more, coordinate descent takes long and is not begun. On text it is ended after a few epochs where that is more
than `LOOSE_TEXT` times the share of the smaller class and the root of n / p: the easier it is to tell the class from
the others, the sooner.
"""

SMALL = 1000
"""Nor is it begun for up to so many examples with more than a few features, text aside: the hybrid takes fewer passes
there.
"""

MISTAKES, LOOSE_MISTAKES, RARE = 200, 10.0, 10
"""For other measures a few epochs on mistakes are a good start: on more than `MISTAKES` features, where an example's
own score is more than `LOOSE_MISTAKES` times the margin, and either class has at least `RARE` examples. (Sums of hinges
with fewer are solved by the hybrid, on text, before an epoch has ended.)
"""

MISTAKES_AT_K, RARE_AT_K = 1000, 20
"""The same for measures at k, where the start saves less: no threshold is to be found."""

PLAIN, PLAIN_TEXT, PLAIN_SMOOTH, PLAIN_HINGES = 4, 2, 1, 0
"""Plain iterations that come first in the hybrid: on up to `MANY` features, on text, where the risk is smooth; and for
sums of hinges, smooth as they are, on all but text (where those with a rare class have none either).
"""

PATIENT = 16
"""And in an easy problem, where they do as well and cost less."""

WITH_PLANE = 1, 1
"""And where a plane of coordinate descent is the first cut."""

LINGER, LINGER_FEW, LINGER_LONG, LARGE = 8, 16, 96, 10_000
"""Where w = 0 is the best point after so many iterations the run is helped out (`metrimax.solvers.at_zero`): on more
than a few features; on few of them, but more than so many examples; and on fewer, or for measures at k, with which the
bundle method mostly needs no help.
"""

ALONG = 32
"""Plain iterations that come first at every point of a path, where the model is a good one from the start."""


@dataclass(frozen=True)
class Auto:
    """The choice by passes and seconds (docs/results/solvers.md): the hybrid, after a few plain bundle iterations.

    Labels side by side share every pass, so what an iteration does besides counts for more: they go to the bundle
    method, unless their risk is a sum of hinges.

    Sums of hinges (error, cost, balanced error) are begun by dual coordinate descent, where the rows of X are at hand.
    What does not look like being solved soon is taken over by the hybrid: from w = 0, since quasi-Newton steps do not
    get away from a kink, but with the plane that the multipliers make up as its first cut. On few features that is for
    small C only, on more not for small samples, and on text not for classes of a few examples, which the hybrid solves
    in three passes. (For labels side by side, and tolerances below `FINE`, it always is.)

    For large C the hybrid begins at once. On many features a few epochs of coordinate descent then make its start
    (`metrimax.solvers.head_start`), which count as passes and not as iterations: the data can nearly be separated, and
    whoever does it, for any measure of labellings, comes close to the solution.

    Coordinate descent also helps out where a run does not get away from w = 0 (`metrimax.solvers.at_zero`).

    Parameters
    ----------
    max_iter : int
        Most iterations.
    labels : int
        How many labels are solved side by side.
    """

    max_iter: int = 10_000
    labels: int = 1

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
        """Minimise ``1/2 |w|^2 + weight R(w)`` with the solver chosen."""
        if (start is None or len(start.losses) == 0) and has_rows(design):
            if has_hinges(oracle):
                return self._additive(oracle, design, weight, tol, start, callback)
            features, rare = (MISTAKES, RARE) if oracle.can.at_k is None else (MISTAKES_AT_K, RARE_AT_K)
            may = start is None and self.labels == 1 and oracle.can.mistakes is not None
            may = may and design.shape[1] > features and in_order(design)
            may = may and own_score(oracle, design, weight) > LOOSE_MISTAKES
            if may and oracle.can.smaller >= rare:
                return self._after_mistakes(oracle, design, weight, tol, callback)
        chosen = self._hybrid(design) if self.labels == 1 else Bundle(self.max_iter)
        return self._from_zero(chosen, oracle, design).steps(
            oracle, design, weight, tol=tol, start=start, callback=callback
        )

    def _additive(
        self,
        oracle: Oracle,
        design: Design,
        weight: float,
        tol: float,
        start: Cuts | None,
        callback: Callback | None,
    ) -> Steps:
        """The choice for a risk that is a sum of hinges."""
        n, features = design.shape
        if start is not None or self.labels > 1 or tol < FINE:
            return self._after_descent(oracle, design, weight, tol, start, callback)
        if features <= MANY:
            few = features <= FEW
            if (n <= SMALL and not few) or own_score(oracle, design, weight) > (LOOSE_FEW if few else LOOSE):
                chosen = self._hybrid(design, PLAIN_HINGES)
                return chosen.steps(oracle, design, weight, tol=tol, callback=callback)
        else:
            smaller = oracle.can.smaller
            if smaller < RARE:
                return Hybrid(self.max_iter).steps(oracle, design, weight, tol=tol, callback=callback)
            if own_score(oracle, design, weight) > LOOSE_TEXT * smaller / n * math.sqrt(n / features):
                return self._after_epochs(oracle, design, weight, tol, callback)
        return self._after_descent(oracle, design, weight, tol, start, callback)

    def _after_mistakes(
        self, oracle: Oracle, design: Design, weight: float, tol: float, callback: Callback | None
    ) -> Steps:
        """The hybrid, from where a few epochs on the error rate lead."""
        starts = [(yield from start_with_mistakes(oracle, design, weight, tol))]  # popped: only the solver holds it
        moved = starts[0].best is not None and starts[0].best[0].square > 0
        chosen = Hybrid(self.max_iter) if moved else self._hybrid(design)
        return (yield from chosen.steps(oracle, design, weight, tol=tol, start=starts.pop(), callback=callback))

    def _after_epochs(
        self, oracle: Oracle, design: Design, weight: float, tol: float, callback: Callback | None
    ) -> Steps:
        """The hybrid, with the plane that a few epochs on the risk make up."""
        starts = [
            (
                yield from head_start(
                    oracle, required(made(oracle.can.hinges), "expected a sum of hinges"), design, weight
                )
            )
        ]
        chosen = Hybrid(self.max_iter, *WITH_PLANE)
        return (yield from chosen.steps(oracle, design, weight, tol=tol, start=starts.pop(), callback=callback))

    def _after_descent(
        self,
        oracle: Oracle,
        design: Design,
        weight: float,
        tol: float,
        start: Cuts | None,
        callback: Callback | None,
    ) -> Steps:
        """Coordinate descent, and the hybrid with the plane it got to where that looks like taking long."""
        begun = DualCD(self.max_iter, _limit(design.shape[1], tol))
        first = yield from begun.steps(oracle, design, weight, tol=tol, start=start, callback=callback)
        if first.status is not Status.MAX_ITER or first.n_passes >= self.max_iter:
            return first
        loss = first.bound + _kernels.dot(first.w, first.w) / 2
        starts = [
            (yield from plane_cut(design, weight, first.w, required(first.dual_coef, "expected multipliers"), loss))
        ]
        rest = Hybrid(self.max_iter - math.ceil(first.n_passes), *WITH_PLANE)
        second = yield from rest.steps(
            oracle, design, weight, tol=tol, start=starts.pop(), callback=later(first, callback)
        )
        return joined(first, second, weight)

    def _hybrid(self, design: Design, smooth: int = PLAIN_SMOOTH) -> Hybrid:
        """After plain iterations: so many where the risk is smooth."""
        if design.shape[1] > MANY:  # where a second vector makes an iteration nearly twice as dear
            return Hybrid(self.max_iter, PLAIN_TEXT, smooth, PATIENT, brisk=1.0)
        return Hybrid(self.max_iter, PLAIN, smooth, PATIENT)

    def _from_zero(self, solver: Hybrid | Bundle, oracle: Oracle, design: Design) -> Solver:
        """The solver with help where it stays at w = 0, if measure and design are such that there is any."""
        n, features = design.shape
        patience = LINGER if features > FEW else LINGER_FEW if n > LARGE else LINGER_LONG
        patience = patience if oracle.can.at_k is None else LINGER_LONG
        may = oracle.can.kink is not None and in_order(design)
        if not may or patience >= self.max_iter:
            return solver
        return FromZero(solver, patience)

    def for_path(self, oracle: Oracle, design: Design) -> Solver:
        """The choice for a path over C, each point of which starts near its solution.

        On all but text the cheapest iterations do; on text the multipliers of the last point, where there are any, or
        the cheapest iterations, and for one label the hybrid where they take long.
        """
        if design.shape[1] <= MANY:
            return self._from_zero(Bundle(self.max_iter), oracle, design)
        if has_rows(design) and has_hinges(oracle):
            return DualCD(self.max_iter)
        chosen = Hybrid(self.max_iter, plain=ALONG) if self.labels == 1 else Bundle(self.max_iter)
        return self._from_zero(chosen, oracle, design)


def has_rows(design: Design) -> bool:
    """Whether the design gives its rows, which coordinate descent needs."""
    return design.rows is not None


def in_order(design: Design) -> bool:
    """Whether it also gives them without a copy of X."""
    return design.rows is not None and design.rows.in_order


def has_hinges(oracle: Oracle) -> bool:
    """Whether the risk is a sum over examples."""
    return oracle.can.hinges is not None


def _limit(features: int, tol: float) -> float:
    """Passes that coordinate descent may look like needing."""
    if tol >= FINE:
        return EASY
    return EASY_FINE if features <= MANY else math.inf


def side_by_side(solver: Solver, labels: int) -> Solver:
    """The solver for so many labels at once: only the choice depends on their number."""
    return replace(solver, labels=labels) if isinstance(solver, Auto) else solver
