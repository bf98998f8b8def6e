"""The contract of a structured problem: four methods, and the constraints that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse

from metrimax.protocols import Vector

Inference = Literal["exact", "relaxed", "approximate"]
Rescaling = Literal["margin", "slack"]
Row = tuple[npt.NDArray[np.int64], Vector]


class Constraints(NamedTuple):
    """One constraint per example: its slack is at least ``losses[i] + rows[i] @ w``."""

    losses: Vector
    rows: Any  #: CSR (n, p)

    def values(self, w: Vector) -> Vector:
        return np.asarray(self.losses + self.rows @ w)


class StructuredProblem:
    """A structured output problem, for `StructuredSVM`: subclass it and write four methods.

    The score of an output z of x is ``w @ joint_feature(x, z)``; the output with the highest score is predicted.
    Training minimises over w::

        1/2 |w|^2 + C sum_i max over z of [ loss(y_i, z) + w @ (joint_feature(x_i, z) - joint_feature(x_i, y_i)) ]

    Each term of the sum bounds the loss on one training example from above. Inputs and outputs may be any objects that
    the four methods take.

    Notes
    -----
    ``inference`` says what `loss_augmented_argmax` finds: "exact" the best output, "relaxed" the best of a larger set
    (fractional outputs, which `joint_feature` and `loss` must then take), "approximate" some good output. Only with
    "exact" the certificate holds for this problem (docs/structured.md).

    Set ``releases_gil`` to True if the argmax spends its time in compiled code that releases the GIL. ``n_jobs`` then
    means threads, otherwise processes.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.structured import StructuredProblem, StructuredSVM
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
    >>> StructuredSVM(Sign()).fit(X, y).predict(X)
    [1, -1, 1, -1]
    """

    inference: Inference = "exact"
    releases_gil: ClassVar[bool] = False

    def joint_feature(self, x: Any, y: Any) -> Any:
        """The features of x and y together: an array (p,), or a sparse one with one row."""
        raise NotImplementedError(f"{type(self).__name__} does not define joint_feature(x, y)")

    def loss(self, y: Any, z: Any) -> float:
        """The price of z where y is true: at least 0, and 0 for y itself."""
        raise NotImplementedError(f"{type(self).__name__} does not define loss(y, z)")

    def loss_augmented_argmax(self, x: Any, y: Any, w: Vector) -> Any:
        """The output z with the highest ``loss(y, z) + w @ joint_feature(x, z)``."""
        raise NotImplementedError(f"{type(self).__name__} does not define loss_augmented_argmax(x, y, w)")

    def argmax(self, x: Any, w: Vector) -> Any:
        """The output z with the highest ``w @ joint_feature(x, z)``."""
        raise NotImplementedError(f"{type(self).__name__} does not define argmax(x, w)")

    def slack_rescaled_argmax(self, x: Any, y: Any, w: Vector) -> Any:
        """The output z with the highest ``loss(y, z) (1 + w @ (joint_feature(x, z) - joint_feature(x, y)))``.

        Needed only for ``rescaling="slack"``.
        """
        raise NotImplementedError(
            f'{type(self).__name__} does not define slack_rescaled_argmax(x, y, w), which rescaling="slack" needs'
        )

    def difference(self, x: Any, y: Any, z: Any) -> Any:
        """``joint_feature(x, z) - joint_feature(x, y)``; override it if most entries cancel."""
        other, true = _real(self.joint_feature(x, z)), _real(self.joint_feature(x, y))
        if other.shape != true.shape:
            raise ValueError(
                f"expected joint features of one length for all outputs, got shape {true.shape} for the true output "
                f"and {other.shape} for another"
            )
        return other - true

    def size(self, X: Sequence[Any], Y: Sequence[Any]) -> int:
        """Number of features."""
        return _length(self.joint_feature(X[0], Y[0]), 0)

    def constraints(
        self,
        X: Sequence[Any],
        Y: Sequence[Any],
        w: Vector,
        *,
        rescaling: Rescaling = "margin",
        n_jobs: int | None = None,
    ) -> Constraints:
        """The most violated constraint of every example; override it if finding all of them at once is faster."""
        parts = self._chunks(n_jobs, partial(_violators, self, w, rescaling), X, Y)
        losses = np.concatenate([part[0] for part in parts])
        lengths, indices, values = (np.concatenate([part[k] for part in parts]) for k in (1, 2, 3))
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        return Constraints(losses, sparse.csr_array((values, indices, indptr), shape=(len(X), len(w))))

    def outputs(self, X: Sequence[Any], w: Vector, *, n_jobs: int | None = None) -> list[Any]:
        """The predicted output of every example."""
        return [z for part in self._chunks(n_jobs, partial(_outputs, self, w), X) for z in part]

    def losses(self, Y: Sequence[Any], Z: Sequence[Any]) -> Vector:
        """The loss of every pair, checked."""
        return np.array([_loss(self, i, y, z) for i, (y, z) in enumerate(zip(Y, Z, strict=True))])

    def _chunks(self, n_jobs: int | None, work: Callable[..., Any], *data: Sequence[Any]) -> list[Any]:
        """``work(first, *chunk)`` on chunks of the data. There are more chunks than workers, since some take longer."""
        n = len(data[0])
        workers = max(1, min(effective_n_jobs(n_jobs), n))
        borders = np.linspace(0, n, (1 if workers == 1 else min(4 * workers, n)) + 1).astype(int).tolist()
        return list(
            Parallel(n_jobs=workers, prefer="threads" if self.releases_gil else None)(
                delayed(work)(first, *([values[i] for i in range(first, last)] for values in data))
                for first, last in pairwise(borders)
            )
        )


def _violators(
    problem: StructuredProblem, w: Vector, rescaling: Rescaling, first: int, X: list[Any], Y: list[Any]
) -> tuple[Vector, npt.NDArray[np.int64], npt.NDArray[np.int64], Vector]:
    """Losses, number of entries, indices and values of the most violated constraints of a chunk."""
    argmax = problem.loss_augmented_argmax if rescaling == "margin" else problem.slack_rescaled_argmax
    losses = np.empty(len(X))
    rows: list[Row] = []
    for k, (x, y) in enumerate(zip(X, Y, strict=True)):
        z = argmax(x, y, w)
        losses[k] = _loss(problem, first + k, y, z)
        try:
            difference = problem.difference(x, y, z)
        except ValueError as error:
            raise ValueError(f"example {first + k}: {error}") from error
        indices, values = _row(difference, len(w), first + k)
        rows.append((indices, values if rescaling == "margin" else losses[k] * values))
    lengths = np.array([len(values) for _, values in rows], dtype=np.int64)
    return losses, lengths, *(np.concatenate(parts) for parts in zip(*rows, strict=True))  # type: ignore[return-value]


def _outputs(problem: StructuredProblem, w: Vector, first: int, X: list[Any]) -> list[Any]:
    return [problem.argmax(x, w) for x in X]


def _loss(problem: StructuredProblem, i: int, y: Any, z: Any) -> float:
    loss = problem.loss(y, z)
    try:
        price = float(loss)
    except (TypeError, ValueError):  # no number
        price = np.nan
    if not 0 <= price < np.inf:
        raise ValueError(
            f"example {i}: expected a finite loss of at least 0, got {loss!r:.100} from {_name(problem)}.loss"
        )
    return price


def _real(vector: Any) -> Any:
    """Features as float64: differences of unsigned, short or boolean numbers would be wrong."""
    return vector.astype(np.float64, copy=False) if sparse.issparse(vector) else np.asarray(vector, dtype=np.float64)


def _row(vector: Any, p: int, i: int) -> Row:
    """A vector of features as indices and values."""
    length = _length(vector, i)
    if length != p:
        raise ValueError(f"example {i}: expected {p} joint features, as for the first example, got {length}")
    if sparse.issparse(vector):
        entries = vector.reshape((1, p)).tocsr()
        entries.sum_duplicates()
        indices, values = entries.indices.astype(np.int64), entries.data.astype(np.float64)
    else:
        dense = np.asarray(vector, dtype=np.float64)
        indices = np.flatnonzero(dense)  # a NaN is not zero
        values = dense[indices]
    if not np.isfinite(values).all():
        raise ValueError(f"example {i}: expected finite joint features, got NaN or infinity")
    return indices, values


def _length(vector: Any, i: int) -> int:
    shape = vector.shape if sparse.issparse(vector) else np.shape(vector)
    if len(shape) == 1 or (sparse.issparse(vector) and shape[0] == 1):
        return int(shape[-1])
    raise ValueError(
        f"example {i}: expected joint features as an array (p,) or a sparse array with one row, got shape {shape}"
    )


def _name(problem: StructuredProblem) -> str:
    return type(problem).__name__
