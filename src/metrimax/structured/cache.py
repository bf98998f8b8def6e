"""The constraints found so far, and the problem over them: in two forms.

With fewer weights than examples, all constraints are the rows of one sparse design. The mean over examples of the most
violated one is an oracle of its scores (`CachedRisk`), and the bundle method minimises it (`Pooled`). With more
weights, as features of text have them, constraints are kept by example, and block coordinate ascent solves the dual, an
example at a time (`ByExample`). It touches little memory for a step, and examples that are done cost nothing. But it
is slow where examples share few weights and C is large: multi-class with 110 weights, 600 examples and C = 1000 took
it 35 CPU s, and the bundle method 0.9; tagging with 1.8 million weights and 1,000 sentences 3.8 s, and the bundle
method 38.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from metrimax import _kernels
from metrimax.designs import as_design
from metrimax.measure.sample import SampleOracle
from metrimax.protocols import Cut, Cuts, Line, Vector
from metrimax.solvers import Bundle
from metrimax.structured.problem import Constraints
from metrimax.training.lockstep import run

Indices = npt.NDArray[np.intp]

# Of both forms: `precision` is the share of the gap to which the problem over the cache is solved (a smaller one means
# fewer passes over the examples, but more work between them); `stride` how far the next argmaxes go to its solution.

EPOCHS = 20
"""Most epochs over the examples that are not done, between two over all."""

PATIENCE = 5
"""Constraints that had no multiplier after more than this many solutions in a row are dropped."""

PROGRESS = 1e-11
"""A solution by examples ends where the dual value rises by less than this, relative to it: rounding."""


def cache_of(n: int, p: int, weight: float) -> ByExample | Pooled:
    """An empty cache for ``1/2 |w|^2 + weight R(w)`` with n examples and p weights."""
    return Pooled(n, p, weight) if p < n else ByExample(n, p, weight)


class ByExample:
    """Constraints by example, and their multipliers (`_core/working_sets.hpp`).

    The next argmaxes are asked half-way to the solution: what an early cache says far from where it was filled is of
    little use. Tagging 4,000 sentences then takes 10.0 CPU s and 32 passes instead of 14.8 and 37; parsing takes one
    pass more, 11 instead of 10.

    References
    ----------
    Chang, Srikumar & Roth (2013). Multi-core structural SVM training. ECML.
    """

    stride, precision = 0.5, 0.5

    def __init__(self, n: int, p: int, weight: float) -> None:
        self._sets = _kernels.WorkingSets(n, p, weight / n)
        self._weight = weight

    def __len__(self) -> int:
        return self._sets.size

    @property
    def n_support(self) -> int:
        """Number of constraints with a multiplier."""
        return self._sets.n_support

    def slacks(self, w: Vector) -> Vector:
        """The slack of every example at w by the cached constraints."""
        return self._sets.slacks(w)

    def add(self, found: Constraints, chosen: Indices) -> None:
        """Store the constraints of the chosen examples."""
        rows = sparse.csr_array(found.rows[chosen], dtype=np.float64)
        rows.sum_duplicates()
        indptr, indices = (numbers.astype(np.int64, copy=False) for numbers in (rows.indptr, rows.indices))
        self._sets.append(chosen.astype(np.int64, copy=False), found.losses[chosen], indptr, indices, rows.data)

    def solve(self, precision: float) -> tuple[Vector, float]:
        """Minimise the risk over the cache to a gap of about ``precision``; returns w and a bound of the risk."""
        value = -np.inf
        while True:
            gap = self._sets.ascend(precision, EPOCHS)
            before, value = value, self._sets.settle()
            if gap <= precision or value - before <= PROGRESS * abs(value):
                self._sets.drop(PATIENCE)
                return self._sets.weights(), value / self._weight


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


class Pooled:
    """All constraints as the rows of a design, and a risk over its scores. None is dropped."""

    stride, precision = 1.0, 0.2

    def __init__(self, n: int, p: int, weight: float) -> None:
        self._n, self._weight = n, weight
        self._losses, self._owner = np.empty(0), np.empty(0, dtype=np.intp)
        self._rows = sparse.csr_array((0, p))
        self._cuts: Cuts | None = None
        self.n_support = 0
        self._settle()

    def __len__(self) -> int:
        return len(self._losses)

    def slacks(self, w: Vector) -> Vector:
        """The slack of every example at w by the cached constraints."""
        return self.risk.slacks(self._rows @ w)

    def add(self, found: Constraints, chosen: Indices) -> None:
        """Store the constraints of the chosen examples, and make the cuts of the old risk ones of the new.

        They remain valid, because the new risk is at least the old one everywhere.
        """
        rows, before = found.rows[chosen], self.design
        self._owner = np.concatenate((self._owner, chosen))
        self._losses = np.concatenate((self._losses, found.losses[chosen]))
        self._rows = sparse.csr_array(sparse.vstack((self._rows, rows)))
        self._settle()
        cuts = self._cuts
        if cuts is None or len(cuts.rows) == 1:  # kept by weights
            self._cuts = cuts if cuts is None else replace(cuts, best=None)
            return
        slopes, scores = cuts.rows
        pulled = before.rmatvec(np.ascontiguousarray(slopes.T))
        n, p = self.design.shape
        if n > p:
            self._cuts = Cuts(cuts.losses, cuts.gram, (np.ascontiguousarray(pulled.T),))
            return
        slopes = np.pad(slopes, ((0, 0), (0, len(chosen))))
        self._cuts = Cuts(cuts.losses, cuts.gram, (slopes, np.column_stack((scores, (rows @ pulled).T))))

    def solve(self, precision: float) -> tuple[Vector, float]:
        """Minimise the risk over the cache to a gap of ``precision``; returns w and a bound of the risk."""
        steps = Bundle().steps(self.risk, self.design, self._weight, tol=precision, start=self._cuts)
        solution = run(self.design, [steps])[0]
        self._cuts, self.n_support = solution.cuts, solution.n_support
        return solution.w, solution.bound / self._weight

    def _settle(self) -> None:
        self.risk = CachedRisk(self._n, self._losses, self._owner)
        self.design = as_design(self._rows)
