"""Adapting an existing machine: its score is one more feature of a structured problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from metrimax._validation import check_positive
from metrimax.protocols import Vector
from metrimax.structured.problem import Constraints, Rescaling, StructuredProblem


class AdaptedProblem(StructuredProblem):
    """A problem whose score includes that of a given machine, such as the logarithm of a likelihood.

    ``score(x, z) = (w + a v) @ joint_feature(x, z)`` with the given weights v; w and the number a are learnt::

        1/2 |w|^2 + B/2 a^2 + C n R(w, a)

    With a small C the result is the given machine. With a larger C it differs from it where that lowers the loss. This
    is classifier adaptation (Li, Tsang & Zhou 2013) for structured outputs.

    Parameters
    ----------
    problem : StructuredProblem
        The problem without the given weights.
    auxiliary : ndarray (p,)
        v, the weights of the given machine on the problem's joint features.
    B : float
        Price of a: the larger, the less the result relies on the given machine.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.structured import AdaptedProblem, StructuredProblem, StructuredSVM
    >>> class Sign(StructuredProblem):
    ...     def joint_feature(self, x, y):
    ...         return x * y
    ...     def loss(self, y, z):
    ...         return float(y != z)
    ...     def argmax(self, x, w):
    ...         return 1 if x @ w > 0 else -1
    ...     def loss_augmented_argmax(self, x, y, w):
    ...         return max((-1, 1), key=lambda z: self.loss(y, z) + x @ w * z)
    >>> X, y = np.array([[1.0, 0.2], [-1.0, 0.3], [0.8, -0.1], [-0.9, 0.0]]), [1, -1, 1, -1]
    >>> given = np.array([1.0, 0.0])  # of another machine
    >>> StructuredSVM(AdaptedProblem(Sign(), given)).fit(X, y).predict(X)
    [1, -1, 1, -1]
    """

    def __init__(self, problem: StructuredProblem, auxiliary: Vector, B: float = 1.0) -> None:
        check_positive("B", B)
        self.problem = problem
        self.auxiliary = np.asarray(auxiliary, dtype=np.float64) / np.sqrt(B)
        if not np.isfinite(self.auxiliary).all():
            raise ValueError("expected finite auxiliary weights, got NaN or infinity")
        self.inference = problem.inference
        self.releases_gil = problem.releases_gil  # type: ignore[misc]

    def weights(self, w: Vector) -> Vector:
        """The learnt weights as weights of ``problem``: w + a v."""
        return np.asarray(w[:-1] + w[-1] * self.auxiliary)

    def joint_feature(self, x: Any, y: Any) -> Any:
        features = self.problem.joint_feature(x, y)
        return self._extended(sparse.csr_array(features if sparse.issparse(features) else np.atleast_2d(features)))

    def loss(self, y: Any, z: Any) -> float:
        return self.problem.loss(y, z)

    def loss_augmented_argmax(self, x: Any, y: Any, w: Vector) -> Any:
        return self.problem.loss_augmented_argmax(x, y, self.weights(w))

    def slack_rescaled_argmax(self, x: Any, y: Any, w: Vector) -> Any:
        return self.problem.slack_rescaled_argmax(x, y, self.weights(w))

    def argmax(self, x: Any, w: Vector) -> Any:
        return self.problem.argmax(x, self.weights(w))

    def size(self, X: Sequence[Any], Y: Sequence[Any]) -> int:
        p = self.problem.size(X, Y)
        if self.auxiliary.shape != (p,):
            raise ValueError(f"expected auxiliary weights for {p} joint features, got shape {self.auxiliary.shape}")
        return p + 1

    def constraints(
        self,
        X: Sequence[Any],
        Y: Sequence[Any],
        w: Vector,
        *,
        rescaling: Rescaling = "margin",
        n_jobs: int | None = None,
    ) -> Constraints:
        found = self.problem.constraints(X, Y, self.weights(w), rescaling=rescaling, n_jobs=n_jobs)
        return Constraints(found.losses, self._extended(found.rows))

    def outputs(self, X: Sequence[Any], w: Vector, *, n_jobs: int | None = None) -> list[Any]:
        return self.problem.outputs(X, self.weights(w), n_jobs=n_jobs)

    def _extended(self, rows: Any) -> Any:
        return sparse.csr_array(sparse.hstack((rows, sparse.csr_array((rows @ self.auxiliary)[:, None]))))
