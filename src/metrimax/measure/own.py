"""Measures of one's own: functions of (tp, fp, fn, tn), and what is found out about them before they are trained for.

Whether a function is a score or a loss, whether it takes arrays and whether its values have to be scaled belongs to the
function, not to a sample: it is found out once, from tables of several sizes and class ratios.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax._validation import is_number, warn
from metrimax.measure import tables
from metrimax.measure.contingency import ContingencyMeasure
from metrimax.measure.table_oracle import ContingencyOracle
from metrimax.protocols import Labels, Oracle, Vector

Function = Callable[..., Any]

SIZES = ((1, 1), (3, 7), (7, 3), (5, 995), (995, 5), (50, 50), (210, 790), (790, 210), (2000, 98000))
"""Positives and negatives of the tables looked at: limits on counts and on rates hold for some of them at least."""

SAME = 1e-9
"""Values that differ by no more are equal."""


class _Nature(NamedTuple):
    kind: str
    scaled: bool


@dataclass(frozen=True)
class TableFunction(ContingencyMeasure):
    """A user's function of (tp, fp, fn, tn): a score or a loss of any scale.

    Parameters
    ----------
    function : callable
        Best written with NumPy for arrays, one entry per table. One that only takes single numbers (``if``,
        ``math.sqrt``) is called table by table, which is slower.
    kind : {"score", "loss"}, optional
        What the function is. By default it is a score if its value is higher with all right than with all wrong, on
        tables of several sizes, and a loss if it is lower. If they are equal it must be given.
    where : callable, optional
        Predicate of (tp, fp, fn, tn): which tables a labelling may have. All, by default.

    Notes
    -----
    Values in [0, 1] are taken as they are: the loss is the function, or 1 minus the function. Others, such as a profit
    ``50 tp - 5 fp``, are scaled for each sample: the best value that any labelling of it has becomes 0 and the worst 1.
    `scale` tells these two.

    Examples
    --------
    >>> from metrimax import TableFunction
    >>> profit = TableFunction(lambda tp, fp, fn, tn: 50 * tp - 5 * fp)
    >>> profit.scale(n_pos=20, n_neg=100)
    (1000.0, -500.0)
    """

    function: Function
    kind: Literal["score", "loss"] | None = None
    where: Function | None = None

    def __post_init__(self) -> None:
        if self.kind not in (None, "score", "loss"):
            raise ValueError(f"expected kind 'score', 'loss' or None, got {self.kind!r}")
        for name, function in (("function", self.function), ("where", self.where)):
            if function is not None and not callable(function):
                raise TypeError(f"expected {name} as a function of (tp, fp, fn, tn), got {function!r}")

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def table_loss(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> Vector:
        value = self._values(tp, fp, fn, tn)
        kind, scaled = self._nature
        if scaled:
            best, worst = self.scale(float(np.ravel(tp + fn)[0]), float(np.ravel(fp + tn)[0]))
            loss = (value - best) / (worst - best) if worst != best else np.zeros_like(value)
        else:
            loss = 1 - value if kind == "score" else value
        if loss.size and (loss.min() < -SAME or loss.max() > 1 + SAME):
            raise ValueError(
                f"the measure {self.name!r} returned values from {value.min():g} to {value.max():g}: expected values "
                "in [0, 1], as on the other tables looked at; scale it"
            )
        # one class, no mistakes: loss 0, even if the ratio is 0/0. With both classes the function decides
        perfect = (fp == 0) & (fn == 0) & ((tp == 0) | (tn == 0))
        return np.where(perfect, 0.0, loss) if np.any(perfect) else loss

    def admissible(self, tp: Vector, fp: Vector, fn: Vector, tn: Vector) -> npt.NDArray[np.bool_] | None:
        if self.where is None:
            return None
        return self._call(self.where, self._by_table[1], tp, fp, fn, tn).astype(bool)

    def scale(self, n_pos: float, n_neg: float) -> tuple[float, float]:
        """The values that count as loss 0 and as loss 1 in a sample: its best and its worst, or those of [0, 1].

        Best and worst of all its tables where there are at most 2^17; of about as many, ends included, beyond.
        """
        kind, scaled = self._nature
        if not scaled:
            return (1.0, 0.0) if kind == "score" else (0.0, 1.0)
        if (n_pos, n_neg) not in self._scales:
            fn, fp = _cells(n_pos, n_neg)
            value = self._values(n_pos - fn, fp, fn, n_neg - fp)
            ends = float(value.max()), float(value.min())
            self._scales[n_pos, n_neg] = ends if kind == "score" else ends[::-1]
        return self._scales[n_pos, n_neg]

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle:
        made = ContingencyOracle(self, y, sample_weight)
        self._say_if_unrewarded(made.pos.total, made.neg.total)
        return made

    def _say_if_unrewarded(self, n_pos: float, n_neg: float) -> None:
        """Warn if the true labels are not the best labelling: the risk is then never below their loss."""
        zero = np.zeros(1)
        truth = float(self.table_loss(zero + n_pos, zero, zero, zero + n_neg)[0])
        if truth <= SAME or self.where is not None:
            return
        fn, fp = _cells(n_pos, n_neg)
        losses = self.table_loss(n_pos - fn, fp, fn, n_neg - fp)
        # without numbers, so that those of other labels and folds are the same warning
        if losses.max() - losses.min() <= SAME:
            warn(
                f"the measure {self.name!r} has one and the same value for every labelling of the sample: there is "
                "nothing to learn from it; see whether its conditions can be fulfilled"
            )
        elif truth > losses.min() + SAME:
            warn(
                f"the measure {self.name!r} has a better value for other labellings of the sample than for the true "
                "one, so its risk hardly rewards being right: admit fewer labellings by TableFunction(function, "
                "where=...), take a measure at k, or choose the threshold by MeasureSVCCV"
            )

    def _values(self, *table: Vector) -> Vector:
        """The values of the function; raises unless they are finite."""
        value = self._call(self.function, self._by_table[0], *table).astype(np.float64)
        if not np.isfinite(value).all():
            at = np.flatnonzero(~np.isfinite(value))[0]
            cells = [float(np.broadcast_to(t, value.shape).flat[at]) for t in table]
            raise ValueError(
                f"the measure {self.name!r} returned {value.flat[at]} for tp, fp, fn, tn = {cells}: "
                "expected finite values for every table; define the case 0/0"
            )
        return value

    @cached_property
    def _scales(self) -> dict[tuple[float, float], tuple[float, float]]:
        return {}

    @cached_property
    def _by_table(self) -> tuple[bool, bool]:
        """Whether the function, and the predicate, have to be called table by table."""
        with np.errstate(all="ignore"):
            return self._is_scalar(self.function), self.where is not None and self._is_scalar(self.where)

    def _is_scalar(self, function: Function) -> bool:
        cells = _probes()
        one_by_one = _one_by_one(function, cells)
        try:
            together = np.asarray(function(*(cell.copy() for cell in cells)))
        except Exception:
            return one_by_one is not None  # otherwise `_call` raises the same error, with a note
        if one_by_one is None:
            return False
        if together.shape != one_by_one.shape:
            return True
        if not np.allclose(together.astype(np.float64), one_by_one, rtol=1e-9, atol=1e-12, equal_nan=True):
            raise ValueError(
                f"the measure {self.name!r} has other values for arrays of tables than for the same tables one by one: "
                "expected a function of each table alone; write it with NumPy functions that work entry by entry"
            )
        return False

    @cached_property
    def _nature(self) -> _Nature:
        """Score or loss, and whether values leave [0, 1]: from tables with all right, all wrong and all alike."""
        try:
            with np.errstate(all="ignore"):
                value = self._call(self.function, self._by_table[0], *_probes()).astype(np.float64)
        except Exception:
            if self.kind is None:
                raise
            return _Nature(self.kind, scaled=False)  # it may be defined for the tables of its own sample only
        finite = value[np.isfinite(value)]
        scaled = bool(len(finite) and (finite.min() < -SAME or finite.max() > 1 + SAME))
        if self.kind is not None:
            return _Nature(self.kind, scaled)
        right, wrong = value.reshape(-1, len(SIZES))[:2]
        rise = right - wrong
        better, worse = bool((rise > SAME).any()), bool((rise < -SAME).any())
        if better == worse:  # nan is neither
            shown = ", ".join(f"{a:.3g} and {b:.3g}" for a, b in zip(right[:4], wrong[:4], strict=True))
            raise ValueError(
                f"cannot tell whether the measure {self.name!r} is a score or a loss: with all right and all wrong it "
                f"returned {shown} on samples with {', '.join(f'{p} positives of {p + n}' for p, n in SIZES[:4])}. "
                "Expected a higher value with all right (a score), or a lower one (a loss), wherever they differ; say "
                "which it is by TableFunction(function, kind='score') or kind='loss'"
            )
        return _Nature("score" if better else "loss", scaled)

    def _call(self, function: Function, by_table: bool, *table: Vector) -> npt.NDArray[Any]:
        shape = np.broadcast_shapes(*(np.shape(t) for t in table))
        # fresh vectors, whatever the search asks for: a user's function may index and change them
        vectors = [np.array(np.broadcast_to(t, shape), dtype=np.float64).ravel() for t in table]
        try:
            value = np.array([function(*cells) for cells in zip(*vectors, strict=True)]) if by_table else None
            value = np.asarray(function(*vectors)) if value is None else value
        except Exception as error:
            error.add_note(
                f"The measure {self.name!r} is called with arrays, one entry for each table to look at: write it with "
                "NumPy functions of arrays, and np.where in the place of if."
            )
            raise
        if value.shape != (size := (int(np.prod(shape)),)):
            got = f"{value.item()!r}" if value.dtype.kind in "OU" and not value.shape else ""
            if got:
                raise ValueError(f"the measure {self.name!r} returned {got}: expected numbers, one for each table")
            raise ValueError(
                f"the measure {self.name!r} returned an array of shape {value.shape} for tables of shape "
                f"{size}: expected the same shape; write it with NumPy functions of arrays"
            )
        return value.reshape(shape)


def _probes() -> list[Vector]:
    """tp, fp, fn, tn with all right, all wrong, all called positive and all called negative, for every size."""
    pos, neg = np.array(SIZES, dtype=np.float64).T
    none = np.zeros(len(SIZES))
    rows = ((pos, none, none, neg), (none, neg, pos, none), (pos, neg, none, none), (none, none, pos, neg))
    return [np.concatenate(column) for column in zip(*rows, strict=True)]


def _one_by_one(function: Function, cells: list[Vector]) -> Vector | None:
    """The values of single tables as numbers; None if the function does not take them or returns something else."""
    values = []
    try:
        for table in zip(*cells, strict=True):
            value = function(*table)
            if not (is_number(value) or isinstance(value, (bool, np.bool_)) or getattr(value, "shape", None) == ()):
                return None
            values.append(float(value))
    except Exception:
        return None
    return np.array(values)


def _cells(n_pos: float, n_neg: float) -> tuple[Vector, Vector]:
    """False negatives and false positives of the tables of a sample, as a grid; weights are divided evenly."""
    pos, neg = max(1, round(n_pos)), max(1, round(n_neg))
    rows, columns = tables.draw(pos, neg, np.random.default_rng(0))
    fn: Vector = rows * n_pos / pos
    fp: Vector = columns * n_neg / neg
    return fn[:, None], fp[None, :]
