"""Any measure, query by query: its mean over groups of examples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.measure.at_k import PrecisionAtK, RecallAtK
from metrimax.measure.contingency import of_one
from metrimax.measure.ndcg import NDCG
from metrimax.measure.sample import SampleOracle
from metrimax.protocols import Capabilities, Cut, Line, Measure, Oracle, Smooth, Vector, made


class Groups(NamedTuple):
    """A sample cut into groups: the examples of group g are ``order[starts[g] : starts[g + 1]]``."""

    order: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]

    @classmethod
    def of(cls, groups: npt.NDArray[Any]) -> Groups:
        """From the group of every example, in any order."""
        try:
            _, codes = np.unique(groups, return_inverse=True)
        except TypeError:  # numbers and strings together cannot be sorted: number the groups by first appearance
            number: dict[Any, int] = {}
            codes = np.array([number.setdefault(group, len(number)) for group in groups])
        return cls(np.argsort(codes, kind="stable"), np.concatenate(([0], np.cumsum(np.bincount(codes)))))

    def split(self, values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """The values of every group."""
        sorted_values = values[self.order]
        return [sorted_values[a:b] for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]


class Grouped:
    """The mean of a measure over the groups of one sample.

    Parameters
    ----------
    measure : Measure
        The measure of each group.
    groups : array-like (n,)
        The group, or query, of every example; equal entries belong together.

    Notes
    -----
    Groups whose labels do not vary have no better or worse ranking: they are left out, of the risk and of the mean. If
    k exceeds the weight of a group it means the whole group, which then counts in the mean and not in the risk.

    Examples
    --------
    >>> from metrimax.measure import Grouped, ROCArea
    >>> Grouped(ROCArea(), groups=["a", "a", "b", "b"]).score([1, 0, 1, 0], [2.0, 1.0, 0.5, 3.0])
    0.5
    """

    ranks = True

    def __init__(self, measure: Measure, groups: npt.ArrayLike) -> None:
        self.measure = measure
        self.name = f"{measure.name} per group"
        self._groups = Groups.of(np.asarray(groups))

    def labels(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What the measure looks at in y: grades for NDCG, otherwise whether a grade is above 0."""
        return np.asarray(y, dtype=np.float64) if isinstance(self.measure, NDCG) else np.asarray(y) > 0

    def loss(self, y: npt.NDArray[Any], z: npt.ArrayLike, sample_weight: Vector | None = None) -> float:
        return 1 - self.score(y, np.asarray(z, dtype=np.float64), sample_weight)

    def score(self, y: npt.NDArray[Any], scores: Vector, sample_weight: Vector | None = None) -> float:
        """The mean of the measure over the groups whose labels vary."""
        return float(np.mean(list(self.scores(y, scores, sample_weight).values())))

    def scores(self, y: npt.NDArray[Any], scores: Vector, sample_weight: Vector | None = None) -> dict[int, float]:
        """The measure of every group whose labels vary, by its place among the sorted groups."""
        parts = self._parts(y, sample_weight)
        of = self._groups.split(np.asarray(scores, dtype=np.float64))
        return {g: self._score(own, of[g], weight) for g, own, weight in parts}

    def oracle(self, y: npt.NDArray[Any], sample_weight: Vector | None = None) -> Oracle:
        parts = self._parts(y, sample_weight)
        made = {g: self.measure.oracle(own, weight) for g, own, weight in parts if self._ranks(own, weight)}
        if not made:
            raise ValueError(f"{self.name}: no group has more than k examples; choose a smaller k")
        return GroupedOracle(self._groups, made, len(y))

    def ranked(self, y: npt.NDArray[Any], sample_weight: Vector | None = None) -> list[npt.NDArray[np.intp]]:
        """The examples of every group that has a part in the risk."""
        members = self._groups.split(np.arange(len(y)))
        return [members[g] for g, own, weight in self._parts(y, sample_weight) if self._ranks(own, weight)]

    def threshold(self, y: npt.NDArray[Any], scores: Vector, sample_weight: Vector | None = None) -> float:
        """Always 0: scores of different groups are not compared, so there is no threshold."""
        return 0.0

    def _parts(
        self, y: npt.NDArray[Any], sample_weight: Vector | None
    ) -> list[tuple[int, npt.NDArray[Any], Vector | None]]:
        """Number, labels and weights of every group whose labels vary."""
        if len(y) != len(self._groups.order):
            raise ValueError(f"expected labels of the {len(self._groups.order)} examples grouped, got {len(y)}")
        labels = self._groups.split(np.asarray(y))
        weights = [None] * len(labels) if sample_weight is None else self._groups.split(sample_weight)
        parts = []
        for g, (own, weight) in enumerate(zip(labels, weights, strict=True)):
            used = own if weight is None else own[weight > 0]
            if len(used) and used.min() != used.max():
                parts.append((g, own, weight))
        if not parts:
            raise ValueError(f"{self.name}: expected a group with different labels, got none: nothing can be ranked")
        return parts

    def _score(self, own: npt.NDArray[Any], scores: Vector, weight: Vector | None) -> float:
        """The measure of one group."""
        if self._ranks(own, weight):
            return self.measure.score(own, scores, weight)
        # all are among the first k, whatever they weigh; "1p" because no group is too small for that k
        whole: Any = replace(self.measure, k="1p")  # type: ignore[type-var]
        return of_one(whole.table_score, *_masses(own, weight), 0.0, 0.0)

    def _ranks(self, own: npt.NDArray[Any], weight: Vector | None) -> bool:
        """Whether a group has an example beyond the first k."""
        if not isinstance(self.measure, (PrecisionAtK, RecallAtK)):
            return True
        n_pos, n_neg = _masses(own, weight)
        return self.measure.wanted(n_pos, n_neg) < (n_pos + n_neg) * (1 - 1e-12)


def _masses(own: npt.NDArray[Any], weight: Vector | None) -> tuple[float, float]:
    """The weight of the positives, and of the negatives, of a group."""
    weight = np.ones(len(own)) if weight is None else weight
    return float(weight[own > 0].sum()), float(weight[own <= 0].sum())


class GroupedOracle(SampleOracle):
    """``R = mean over groups of R_g``: the cut of the sample is put together from the cuts of its groups.

    The price kappa is the mean of theirs, each group counting by its size.
    """

    def __init__(self, groups: Groups, oracles: dict[int, Oracle], size: int) -> None:
        super().__init__(sum(oracle.n for oracle in oracles.values()), size)
        self._groups = groups
        self._oracles = oracles
        self.price = sum(oracle.price * oracle.n for oracle in oracles.values()) / self.n
        kernels = [oracle.can.compiled for oracle in oracles.values()]
        if all(kernel is not None for kernel in kernels):  # for small groups the time goes into Python calls
            starts = groups.starts[list(oracles)].astype(np.int64)
            self.compiled = _kernels.MeanOfGroups(groups.order.astype(np.int64, copy=False), starts, kernels)

    @property
    def can(self) -> Capabilities:
        """The mean of what all groups offer; no hinges, since every group divides by its own size."""
        return Capabilities(compiled=self.compiled, smooth=self._smoothed)

    def __call__(self, scores: Vector) -> Cut:
        self.check(scores)
        if self.compiled is not None:
            return Cut(*self.compiled.cut(np.ascontiguousarray(scores)))
        of = self._groups.split(scores)
        return self._mean({g: oracle(of[g]) for g, oracle in self._oracles.items()})

    def mean_cut(self, scores: Vector, mu: float) -> Cut:
        self.check(scores)
        if self.compiled is not None:
            return Cut(*self.compiled.cut(np.ascontiguousarray(scores), mu))
        of = self._groups.split(scores)
        return self._mean({g: oracle.mean_cut(of[g], mu) for g, oracle in self._oracles.items()})

    def line(self, scores: Vector, move: Vector) -> Line:
        """The mean of the lines of the groups."""
        if self.compiled is not None:
            return super().line(scores, move)
        of, moves = self._groups.split(scores), self._groups.split(move)
        lines = [oracle.line(of[g], moves[g]) for g, oracle in self._oracles.items()]

        def risk(t: float) -> tuple[float, float]:
            values, slopes = zip(*(line(t) for line in lines), strict=True)
            return sum(values) / len(lines), sum(slopes) / len(lines)

        return risk

    def _smoothed(self) -> Smooth | None:
        """The mean of the smoothed risks of the groups, where all have one."""
        parts: dict[int, Smooth] = {}
        for g, oracle in self._oracles.items():
            part = made(oracle.can.smooth)
            if part is None:
                return None
            parts[g] = part

        def smooth(scores: Vector, mu: float) -> tuple[float, Cut]:
            of = self._groups.split(scores)
            made = {g: part(of[g], mu) for g, part in parts.items()}
            cut = self._mean({g: cut for g, (_, cut) in made.items()})
            return sum(value for value, _ in made.values()) / len(made), cut

        return smooth

    def _mean(self, cuts: dict[int, Cut]) -> Cut:
        slope = np.zeros(self.size)
        starts = self._groups.starts
        for g, cut in cuts.items():
            slope[starts[g] : starts[g + 1]] = cut.slope
        whole = np.empty(self.size)
        whole[self._groups.order] = slope
        return Cut(sum(cut.loss for cut in cuts.values()) / len(cuts), whole / len(cuts))
