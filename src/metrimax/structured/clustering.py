"""Supervised clustering: learns similarities of pairs for which correlation clustering gives the true clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from metrimax.protocols import Callback, Vector
from metrimax.structured.estimator import StructuredSVM
from metrimax.structured.problem import Inference, StructuredProblem

Numbers = npt.NDArray[np.intp]

INFERENCE: dict[str, Inference] = {"greedy": "approximate", "relaxed": "relaxed", "exact": "exact"}
MOST_TRIANGLES = 5000
"""How many triangle inequalities are added at a time."""


class ClusteringProblem(StructuredProblem):
    """Clusterings of a set of items. The score is the sum of the similarities of the pairs in the same cluster.

    An input holds the features of all pairs (pairs, q). An output holds a number from 0 to 1 for every pair: 1 if both
    items are in the same cluster. The loss is the share of pairs that are together in one clustering and apart in the
    other.

    Parameters
    ----------
    method : {"greedy", "relaxed", "exact"}
        "greedy" merges the two clusters with the highest sum of similarities as long as it is positive; "relaxed"
        solves the linear program over all triangle inequalities, whose solutions may be fractional; "exact" asks for
        whole numbers as well, which takes exponential time in the worst case.

    References
    ----------
    Finley & Joachims (2005). Supervised clustering with support vector machines. ICML.
    """

    def __init__(self, method: str) -> None:
        self.method = method
        self.inference = INFERENCE[method]

    def joint_feature(self, x: Vector, y: Vector) -> Vector:
        return np.asarray(y @ x / max(1, len(y)))

    def loss(self, y: Vector, z: Vector) -> float:
        return float(np.abs(y - z).sum() / max(1, len(y)))

    def loss_augmented_argmax(self, x: Vector, y: Vector, w: Vector) -> Vector:
        return self._together(x @ w + 1 - 2 * y)  # joining a pair that is apart costs as much as parting one together

    def argmax(self, x: Vector, w: Vector) -> Numbers:
        """The clusters' numbers."""
        similarity = x @ w
        together = self._together(similarity)
        if np.abs(together - np.round(together)).max(initial=0.0) < 1e-6:
            return _clusters(together > 0.5)
        # fractional: of two clusterings, made from the similarities and from the solution, the better
        rounded = [merge(similarity), merge(together - 0.5)]
        return max(rounded, key=lambda clusters: float(same(clusters) @ similarity))

    def _together(self, similarity: Vector) -> Vector:
        if self.method == "greedy":
            return same(merge(similarity))
        return correlation_clustering(similarity, whole=self.method == "exact")


class SupervisedClustering(StructuredSVM):
    """Learns from clustered sets of items how to cluster new sets.

    Parameters
    ----------
    pairs : callable or "precomputed", default=`pair_differences`
        Turns the items of a set (m, d) into features of its pairs (m (m - 1) / 2, q), in the order of
        ``numpy.triu_indices(m, 1)``; "precomputed" if X holds these.
    method : {"greedy", "relaxed", "exact"}, default="relaxed"
        How the best clustering is found, in training and prediction (`ClusteringProblem`).
    C, tol, max_iter, solver, n_jobs, verbose, callback
        As in `StructuredSVM`; the loss of a clustering is the share of pairs on which it is wrong.

    Attributes
    ----------
    coef_ : ndarray (q,)
        The similarity of a pair is its features times these.
    gap_, status_, ...
        As in `StructuredSVM`. With "relaxed" the certificate is one of the relaxed problem, whose objective is at least
        the exact one at every w; with "greedy" there is none, as `status_` says.

    References
    ----------
    Finley & Joachims (2005). Supervised clustering with support vector machines. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.structured import SupervisedClustering
    >>> rng = np.random.default_rng(0)
    >>> y = [rng.integers(3, size=8) for _ in range(20)]
    >>> X = [np.column_stack((3 * clusters + rng.normal(size=8) / 2, rng.normal(size=8))) for clusters in y]
    >>> model = SupervisedClustering(C=100.0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        *,
        pairs: Callable[[Any], Any] | str | None = None,
        method: str = "relaxed",
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 1000,
        solver: str = "cached",
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.pairs = pairs
        self.method = method
        super().__init__(
            C=C, tol=tol, max_iter=max_iter, solver=solver, n_jobs=n_jobs, verbose=verbose, callback=callback
        )

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> SupervisedClustering:
        """Train on sets of items X and the numbers or names of their clusters y, one array per set.

        Parameters
        ----------
        X : sequence of arrays (m, d)
            The items of each set.
        y : sequence of arrays (m,)
            The cluster of each item.

        Returns
        -------
        self
            The fitted estimator.
        """
        return super().fit(X, y)

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Mean over the sets of the share of pairs that are rightly together or apart (the Rand index).

        Parameters
        ----------
        X : sequence of arrays (m, d)
            The items of each set.
        y : sequence of arrays (m,)
            The cluster of each item.

        Returns
        -------
        float
            From 0 to 1.
        """
        return 1 - float(self._losses(X, y).mean())

    def _compared(self, outputs: list[Any]) -> list[Any]:
        return [same(clusters) for clusters in outputs]

    def _learn(self, X: Sequence[Any], y: Sequence[Any]) -> Sequence[Any]:
        if self.method not in INFERENCE:
            raise ValueError(f"unknown method {self.method!r}: expected one of {', '.join(INFERENCE)}")
        self.problem_ = ClusteringProblem(self.method)
        return self._inputs(X)

    def _inputs(self, X: Sequence[Any]) -> list[Vector]:
        inputs: list[Vector] = []
        for i, items in enumerate(X):
            features = np.asarray(items, dtype=np.float64)
            if features.ndim == 0 or (self.pairs is None and features.ndim != 2):
                raise ValueError(
                    f"set {i}: expected its items as a matrix (m, d), got shape {features.shape}: X is a list with one "
                    "matrix for each set"
                )
            if not isinstance(self.pairs, str) and not len(features):
                raise ValueError(f"set {i}: expected at least one item, got none")
            if not isinstance(self.pairs, str):
                features = np.asarray((self.pairs or pair_differences)(features), dtype=np.float64)
            elif self.pairs != "precomputed":
                raise ValueError(f'expected pairs as a function or "precomputed", got {self.pairs!r}')
            if features.ndim != 2:
                raise ValueError(f"set {i}: expected features of the pairs (pairs, q), got shape {features.shape}")
            if hasattr(self, "coef_") and features.shape[1] != len(self.coef_):
                raise ValueError(
                    f"set {i}: expected {len(self.coef_)} features of a pair, as in training, "
                    f"got {features.shape[1]}; give items with the features that the model was fitted on"
                )
            if features.shape[1] != (inputs[0] if inputs else features).shape[1]:
                raise ValueError(
                    f"set {i}: expected {inputs[0].shape[1]} features of a pair, as in the first set, "
                    f"got {features.shape[1]}"
                )
            if not np.isfinite(features).all():
                raise ValueError(f"set {i}: expected finite features, got NaN or infinity")
            _items(len(features), i)
            inputs.append(features)
        return inputs

    def _outputs(self, y: Sequence[Any], inputs: Sequence[Any]) -> list[Vector]:
        outputs = []
        for i, (clusters, features) in enumerate(zip(y, inputs, strict=True)):
            numbers = np.asarray(clusters)
            if numbers.ndim != 1:
                raise ValueError(f"set {i}: expected one cluster for each of its items, got shape {numbers.shape}")
            if len(numbers) * (len(numbers) - 1) // 2 != len(features):
                m = _items(len(features), i)
                raise ValueError(f"set {i}: expected the clusters of its {m} items, got {len(numbers)}")
            outputs.append(same(numbers))
        return outputs


def pair_differences(items: Vector) -> Vector:
    """Features of all pairs of items (m, d): a constant 1, and the absolute differences of their features.

    Parameters
    ----------
    items : ndarray (m, d)
        The items of one set.

    Returns
    -------
    ndarray (m (m - 1) / 2, d + 1)
        The features of each pair.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.structured import pair_differences
    >>> pair_differences(np.array([[1.0], [4.0]]))
    array([[1., 3.]])
    """
    if items.ndim != 2:
        raise ValueError(f"expected a set of items as a matrix (m, d), got shape {items.shape}")
    i, j = np.triu_indices(len(items), 1)
    return np.column_stack((np.ones(len(i)), np.abs(items[i] - items[j])))


def same(clusters: npt.NDArray[Any]) -> Vector:
    """For all pairs in the order of ``triu_indices``: 1.0 if both are in the same cluster, otherwise 0.0."""
    i, j = np.triu_indices(len(clusters), 1)
    return np.asarray(clusters[i] == clusters[j], dtype=np.float64)


def merge(similarity: Vector) -> Numbers:
    """Clusters by greedy merging: from single items, always the two clusters with the highest sum of similarities.

    Ends when no sum is positive. O(m^3) for m items.
    """
    m = _items(len(similarity), 0)
    S = np.full((m, m), -np.inf)
    S[np.triu_indices(m, 1)] = similarity
    S = np.maximum(S, S.T)
    clusters = np.arange(m)
    while m > 1:
        i, j = sorted(np.unravel_index(int(np.argmax(S)), S.shape))
        if not S[i, j] > 0:
            break
        S[i] += S[j]
        S[:, i] = S[i]
        S[j] = S[:, j] = S[i, i] = -np.inf
        clusters[clusters == j] = i
    return _numbered(clusters)


def correlation_clustering(similarity: Vector, *, whole: bool) -> Vector:
    """The maximiser of ``similarity @ together`` over 0 <= together <= 1 with all triangle inequalities.

    ``together[ij] + together[jk] - together[ik] <= 1`` makes being together transitive. Violated inequalities are added
    until the solution violates none. With ``whole`` numbers the solution is the best clustering; without them its value
    is an upper bound.
    """
    m = _items(len(similarity), 0)
    number = np.zeros((m, m), dtype=np.intp)
    number[np.triu_indices(m, 1)] = np.arange(len(similarity))
    number = np.maximum(number, number.T)
    i, j, k = (axis.ravel() for axis in np.meshgrid(*[np.arange(m)] * 3, indexing="ij"))
    corners = (i < k) & (j != i) & (j != k)
    first, second, third = number[i, j][corners], number[j, k][corners], number[i, k][corners]
    chosen = np.zeros(len(first), dtype=bool)
    scale = float(np.abs(similarity).max(initial=0.0))
    if scale > 0:
        similarity = similarity / scale  # the solver's tolerances are absolute
    together = (similarity > 0).astype(np.float64)
    while True:
        excess = np.where(chosen, -np.inf, together[first] + together[second] - together[third] - 1)
        violated = np.flatnonzero(excess > 1e-7)
        if not len(violated):
            return np.asarray(np.round(together) if whole else np.clip(together, 0.0, 1.0))
        chosen[violated[np.argsort(-excess[violated], kind="stable")[:MOST_TRIANGLES]]] = True
        used = np.flatnonzero(chosen)
        rows = np.repeat(np.arange(len(used)), 3)
        columns = np.column_stack((first[used], second[used], third[used])).ravel()
        A = sparse.csr_array(
            (np.tile([1.0, 1.0, -1.0], len(used)), (rows, columns)), shape=(len(used), len(similarity))
        )
        result = milp(
            -similarity,
            integrality=np.full(len(similarity), int(whole)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(A, ub=1.0),
            options={"mip_rel_gap": 0.0},
        )
        if result.x is None:
            raise RuntimeError(f"the linear program of a set of {m} items was not solved: {result.message}")
        together = result.x


def _clusters(together: npt.NDArray[np.bool_]) -> Numbers:
    """The clusters of a transitive relation, given for all pairs."""
    m = _items(len(together), 0)
    relation = np.eye(m, dtype=bool)
    relation[np.triu_indices(m, 1)] = together
    return _numbered(np.argmax(relation | relation.T, axis=0))


def _numbered(clusters: npt.NDArray[Any]) -> Numbers:
    """Cluster numbers in the order of first appearance."""
    _, first, inverse = np.unique(clusters, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.intp)
    order[np.argsort(first)] = np.arange(len(first))
    return np.asarray(order[inverse])


def _items(pairs: int, i: int) -> int:
    """The number of items that have this number of pairs."""
    m = (1 + int(np.sqrt(1 + 8 * pairs) + 0.5)) // 2
    if m * (m - 1) // 2 != pairs:
        raise ValueError(f"set {i}: expected the features of all m (m - 1) / 2 pairs of m items, got {pairs} rows")
    return m
