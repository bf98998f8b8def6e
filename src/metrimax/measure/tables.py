"""The best contingency table: several searches, and the choice among them by the structure of the loss.

P and N are the prefix sums of the score changes by flips; they are concave. Find ``max over (i, j) of D(i, j) + P[i] +
N[j]`` over i false negatives and j false positives, counted in units. The structure of D decides the search:

``count``    for a given number m = tp + fp of predicted positives, D is linear in tp (error, cost models, balanced
             error, F_beta for every beta, kappa, MCC, precision, AE, RAE, KLD, NKLD). Each m is a concave problem in
             one variable whose solution is tracked from m to m + 1: O(n).
``product``  1 - D(i, j) = (1 - D(i, 0)) (1 - D(0, j)) (G-mean, Jaccard),
``hypot``    D(i, j)^2 = D(i, 0)^2 + D(0, j)^2 (Q-mean),
``max``      D(i, j) = max(D(i, 0), D(0, j)) (the lower of TPR and TNR): Monge arrays, by divide and conquer,
             O(n log n).
``monge``    any D whose cross-differences are never positive: the same, where D is evaluated level by level, or only
             where it is needed if it is a `Fraction`.
``limited``  for a given i, D is concave in j up to a limit and 1 beyond it (recall at a precision, precision at a
             recall): a bisection for every i, O(n+ log n-).
``scan``     every table that the bound D <= 1 does not exclude: O(n+ n-).

The registered measures state their structure and the tests verify it; a user's function is probed (`probe`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax.protocols import Vector

Structure = Literal["count", "product", "hypot", "max", "monge", "limited", "scan"]
Indices = npt.NDArray[np.intp]
TableLoss = Callable[[npt.NDArray[np.generic], npt.NDArray[np.generic]], Vector]
"""D as a function of (i, j) in units, vectorised; -inf where a table is not admissible."""

LINKS: dict[str, Callable[[Vector, Vector], Vector]] = {
    "product": lambda a, b: 1 - (1 - a) * (1 - b),
    "hypot": np.hypot,
    "max": np.maximum,
}

EXHAUSTIVE = 2**17
"""A probe evaluates all tables up to this number; of more tables, a sample of about this size."""

CELLS = 2**20
"""Tables evaluated at a time by a scan."""

PART = 2**13
"""How many counts' coefficients are computed at a time, so that temporary arrays stay in the cache."""


class Fraction(NamedTuple):
    """``D = above / below``, both linear in the mistakes: the coefficients of 1, fn and fp."""

    above: tuple[float, float, float]
    below: tuple[float, float, float]

    def counted(self, pos_unit: float, neg_unit: float) -> Fraction:
        """This fraction with fn and fp counted in units."""
        above, below = ((c, pos_unit * i, neg_unit * j) for c, i, j in self)
        return Fraction(above, below)

    def is_monge(self, n_pos: float, n_neg: float) -> bool:
        """Whether D is defined on all tables, and no cross-difference is positive.

        The mixed derivative has the sign of ``2 b1 b2 above - (a1 b2 + a2 b1) below``. It is linear: look at the
        corners.
        """
        (_, a1, a2), (_, b1, b2) = self
        for table in ((1, 0, 0), (1, n_pos, 0), (1, 0, n_neg), (1, n_pos, n_neg)):
            above, below = (sum(c * x for c, x in zip(part, table, strict=True)) for part in self)
            terms = 2 * b1 * b2 * above, (a1 * b2 + a2 * b1) * below
            if not (below > 0 and terms[0] - terms[1] <= 1e-12 * max(map(abs, terms))):
                return False
        return True


def probe(loss: TableLoss, n_pos: int, n_neg: int, *, equal_units: bool = True, tol: float = 1e-12) -> Structure:
    """Find the structure of ``loss`` on the tables 0..n_pos x 0..n_neg by looking at it.

    All tables of small samples are evaluated. For large samples rows and columns are drawn, with both ends, and a
    structure that holds on about 10^5 tables is assumed to hold on all.
    """
    rng = np.random.default_rng(0)
    rows, columns = draw(n_pos, n_neg, rng)
    table = loss(rows[:, None], columns[None, :])
    if not np.isfinite(table).all():
        return "scan"
    if equal_units:
        u, v = count_coefficients(loss, n_pos, n_neg, 0, n_pos + n_neg)
        tp = n_pos - rows[:, None]
        m = tp + columns[None, :]
        if np.abs(u[m] + v[m] * tp - table).max() <= tol:
            return "count"
    for name, link in LINKS.items():
        if np.abs(link(table[:, :1], table[:1, :]) - table).max() <= tol and _is_monge(table, tol):
            return name  # type: ignore[return-value]
    # adjacent tables as well: a coarse grid only sees sums of cross-differences
    i, j = rng.integers(0, n_pos, EXHAUSTIVE // 4), rng.integers(0, n_neg, EXHAUSTIVE // 4)
    cross = loss(i + 1, j + 1) - loss(i + 1, j) - loss(i, j + 1) + loss(i, j)
    return "monge" if _is_monge(table, tol) and cross.max() <= tol else "scan"


def draw(n_pos: int, n_neg: int, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """The rows and columns of tables to look at: all of a small sample, otherwise some, with both ends."""
    if (n_pos + 1) * (n_neg + 1) <= EXHAUSTIVE:
        return np.arange(n_pos + 1), np.arange(n_neg + 1)
    rows = np.arange(n_pos + 1) if n_pos < 256 else np.union1d([0, 1, n_pos - 1, n_pos], rng.integers(0, n_pos, 252))
    most = EXHAUSTIVE // len(rows)
    columns = np.arange(n_neg + 1) if n_neg < most else np.union1d([0, 1, n_neg], rng.integers(0, n_neg, most))
    return rows, columns


def _is_monge(table: Vector, tol: float) -> bool:
    return bool(np.diff(np.diff(table, axis=0), axis=1).max(initial=-np.inf) <= tol)


def count_coefficients(loss: TableLoss, n_pos: int, n_neg: int, low: int, high: int) -> tuple[Vector, Vector]:
    """``u, v`` with ``D = u[m - low] + v[m - low] tp`` for m = tp + fp from low to high, by the ends of each m."""
    u, v = np.empty(high - low + 1), np.empty(high - low + 1)
    for first in range(low, high + 1, PART):
        m = np.arange(first, min(first + PART, high + 1), dtype=np.float64)
        part = slice(first - low, first - low + len(m))
        least, most = np.maximum(0, m - n_neg), np.minimum(m, n_pos)
        at_least = loss(n_pos - least, m - least)
        v[part] = (loss(n_pos - most, m - most) - at_least) / np.maximum(most - least, 1)
        u[part] = at_least - v[part] * least
    return u, v


def monge_marginals(loss: TableLoss, n_pos: int, n_neg: int) -> tuple[float, float, float, float]:
    """Least and greatest rise of a Monge array D by one more false negative, and by one more false positive.

    One more mistake of one kind costs most when there are no mistakes of the other kind.
    """
    i, j = np.arange(n_pos + 1), np.arange(n_neg + 1)
    fn_most, fn_least = np.diff(loss(i, np.zeros_like(i))), np.diff(loss(i, np.full_like(i, n_neg)))
    fp_most, fp_least = np.diff(loss(np.zeros_like(j), j)), np.diff(loss(np.full_like(j, n_pos), j))
    return float(fn_least.min()), float(fn_most.max()), float(fp_least.min()), float(fp_most.max())


def fraction_marginals(loss: TableLoss, n_pos: int, n_neg: int) -> tuple[float, float, float, float]:
    """The same for a `Fraction` that is Monge. It is convex or concave in each kind of mistake, so the ends suffice."""
    i, j = np.array([0, 1, n_pos - 1, n_pos]), np.array([0, 1, n_neg - 1, n_neg])
    fn_most, fn_least = (np.diff(loss(i, np.full(4, at)))[::2] for at in (0, n_neg))
    fp_most, fp_least = (np.diff(loss(np.full(4, at), j))[::2] for at in (0, n_pos))
    return float(fn_least.min()), float(fn_most.max()), float(fp_least.min()), float(fp_most.max())


def monge_argmax(loss: TableLoss, P: Vector, N: Vector) -> tuple[float, int, int]:
    """Divide and conquer, all rows of one level at once: O((n+ + n-) log n+) evaluations of ``loss``."""
    size = len(P)
    column = np.zeros(size, dtype=np.intp)  # the best j of every row solved so far; it never grows with the row
    best = (-np.inf, 0, 0)
    stride = 1 << (size.bit_length() - 1)
    while stride:
        rows = np.arange(stride - 1, size, 2 * stride)  # their neighbours at this distance are solved
        last = np.where(rows >= stride, column[rows - stride], len(N) - 1)
        first = np.where(rows + stride < size, column[np.minimum(rows + stride, size - 1)], 0)
        width = last - first + 1
        starts = np.cumsum(width) - width
        i = np.repeat(rows, width)
        j = np.arange(len(i)) - np.repeat(starts - first, width)
        values = loss(i, j) + N[j]
        tops = np.maximum.reduceat(values, starts)
        at = np.flatnonzero(values == np.repeat(tops, width))
        _, winner = np.unique(i[at], return_index=True)
        column[rows] = j[at[winner]]
        totals = tops + P[rows]
        k = int(np.argmax(totals))
        if totals[k] > best[0]:
            best = (float(totals[k]), int(rows[k]), int(column[rows[k]]))
        stride //= 2
    return best


def limits(loss: TableLoss, n_pos: int, n_neg: int) -> Indices:
    """For the structure "limited": for every i the number of j with D(i, j) < 1. These j come first."""
    rows = np.arange(n_pos + 1)
    low, high = np.zeros(n_pos + 1, dtype=np.intp), np.full(n_pos + 1, n_neg + 1)
    while (low < high).any():
        middle = (low + high) // 2
        inside = (low < high) & (loss(rows, np.minimum(middle, n_neg)) < 1)
        low, high = np.where(inside, middle + 1, low), np.where(inside, high, np.minimum(middle, high))
    return low


def limited_argmax(loss: TableLoss, P: Vector, N: Vector, inside: Indices) -> tuple[float, int, int]:
    """The best j of every i: below its limit by bisection, beyond it by N alone."""
    rows = np.arange(len(P))
    low, high = np.zeros(len(P), dtype=np.intp), np.maximum(inside - 1, 0)
    while (low < high).any():
        middle = (low + high) // 2
        following = np.minimum(middle + 1, len(N) - 1)
        rises = (low < high) & (loss(rows, following) + N[following] > loss(rows, middle) + N[middle])
        low, high = np.where(rises, middle + 1, low), np.where(rises, high, np.minimum(middle, high))
    beyond = np.maximum(inside, int(np.argmax(N)))
    columns = np.concatenate((low, np.minimum(beyond, len(N) - 1)))
    possible = np.concatenate((inside > 0, inside < len(N)))
    rows = np.concatenate((rows, rows))
    values = np.where(possible, loss(rows, columns) + P[rows] + N[columns], -np.inf)
    k = int(np.argmax(values))
    return float(values[k]), int(rows[k]), int(columns[k])


def scan_argmax(loss: TableLoss, P: Vector, N: Vector) -> tuple[float, int, int]:
    """Evaluate every table that ``D <= 1`` does not exclude, block by block, beginning with the most promising rows."""
    best = (-np.inf, 0, 0)
    coarse = [np.unique(np.linspace(0, len(v) - 1, 256).astype(np.intp)) for v in (P, N)]
    rows_per_block = max(1, CELLS // len(N))
    order = np.argsort(-P, kind="stable")
    blocks = [coarse[0], *(order[k : k + rows_per_block] for k in range(0, len(P), rows_per_block))]
    for number, rows in enumerate(blocks):
        columns = coarse[1] if number == 0 else np.flatnonzero(best[0] - 1 - P[rows].max() <= N)
        if len(columns) == 0:
            break  # no later row can be better
        values = loss(rows[:, None], columns[None, :]) + P[rows][:, None] + N[columns][None, :]
        k = int(np.argmax(values))
        if values.flat[k] > best[0]:
            i, j = divmod(k, len(columns))
            best = (float(values.flat[k]), int(rows[i]), int(columns[j]))
    return best
