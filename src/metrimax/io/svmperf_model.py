"""SVM-perf's model files (the text format of SVM-light V6.20), read and written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from metrimax.io.data import csr
from metrimax.io.files import FileError, Name
from metrimax.io.models import LinearModel
from metrimax.io.svmlight import Svmlight, parse_svmlight
from metrimax.protocols import Vector

VERSION = "SVM-light Version V6.20"
HIGHEST = 99_999_999
"""The largest feature index of SVM-light."""
LARGEST_DEGREE = 2**31 - 1

_KERNELS = ("linear", "polynomial", "rbf", "sigmoid", "user")
_HEADER = (
    ("kernel type", int),
    ("kernel parameter -d", int),
    ("kernel parameter -g", float),
    ("kernel parameter -s", float),
    ("kernel parameter -r", float),
    ("kernel parameter -u", str),
    ("highest feature index", int),
    ("number of training documents", int),
    ("number of support vectors plus 1", int),
    ("threshold b, each following line is a SV (starting with alpha*y)", float),
)


@dataclass(frozen=True)
class SvmperfModel:
    """The content of a model file: ``score = sum_j alphas[j] K(vectors[j], x) - b``."""

    name: Name
    kernel: int
    d: int
    g: float
    s: float
    r: float
    highest: int
    b: float
    alphas: Vector
    vectors: Svmlight

    def linear(self) -> LinearModel:
        """As weights; an error for a kernel."""
        if self.kernel != 0:
            raise FileError(
                f"{self.name}: the model has a {_KERNELS[self.kernel]} kernel: only svm_perf_classify reads such models"
            )
        row = np.repeat(np.arange(self.vectors.n), np.diff(self.vectors.indptr))
        w: Vector = np.zeros(max(self.vectors.highest, 1))
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(w, self.vectors.indices - 1, self.alphas[row] * self.vectors.values)
        wrong = np.flatnonzero(~np.isfinite(w))
        if len(wrong):
            raise FileError(
                f"{self.name}: expected finite weights, got {w[wrong[0]]} for feature {wrong[0] + 1}: alpha*y times "
                "the support vectors is too large for a float; scale the features, and train again"
            )
        return LinearModel(w[None, :], np.array([-self.b]), np.zeros(1), [-1.0, 1.0], index_base=1)

    def scores(self, rows: Svmlight) -> Vector:
        """Scores of examples with features from 1 on. Features above `highest` are left out."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            values = self._scores(rows)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise FileError(
                f"{self.name}: expected finite scores, got {values[wrong[0]]} for example {wrong[0] + 1}: the "
                f"{_KERNELS[self.kernel]} kernel's values are too large for a float; check the parameters of the "
                "kernel and the values of the features, scale the features, and train again"
            )
        return values

    def _scores(self, rows: Svmlight) -> Vector:
        if self.kernel == 0:
            w = self.linear().coef[0]
            return csr(rows, 1, len(w)).matvec(w) - self.b
        from scipy import sparse  # slow to import, and only needed here

        S, X = (
            sparse.csr_matrix((A.data, A.indices, A.indptr), shape=A.shape)
            for A in (csr(part, 1, self.highest) for part in (self.vectors, rows))
        )
        values = np.empty(X.shape[0])
        block = max(1, 2**24 // max(1, S.shape[0]))  # 128 MB of kernel values at a time
        for first in range(0, X.shape[0], block):
            part = X[first : first + block]
            inner = (part @ S.T).toarray()
            values[first : first + block] = self._kernel(inner, part, S) @ self.alphas - self.b
        return values

    def _kernel(self, inner: Vector, X: Any, S: Any) -> Vector:
        if self.kernel == 1:
            power: Vector = (self.s * inner + self.r) ** self.d
            return power
        if self.kernel == 2:
            squares = [np.asarray(A.multiply(A).sum(axis=1)).ravel() for A in (X, S)]
            distances: Vector = squares[0][:, None] - 2 * inner + squares[1][None, :]
            return np.exp(-self.g * distances)
        if self.kernel == 3:
            return np.tanh(self.s * inner + self.r)
        raise FileError(f"{self.name}: the model has a user-defined kernel, which is not known here")


def parse_svmperf_model(name: Name, raw: bytes) -> SvmperfModel:
    """Read a model file of SVM-perf (or SVM-light V6.20) from memory."""
    lines = raw.split(b"\n", len(_HEADER) + 1)
    first = lines[0].decode("ascii", "replace").rstrip("\r")
    if first != VERSION:
        raise FileError(f"{name}: line 1: expected '{VERSION}', got '{first[:60]}'")
    if len(lines) < len(_HEADER) + 2:
        raise FileError(f"{name}: the file ends inside its header, after {len(lines) - 1} lines: it was cut off")
    values: list[Any] = []
    for number, ((what, kind), line) in enumerate(zip(_HEADER, lines[1:], strict=False), start=2):
        text, mark, _ = line.decode("utf-8", "replace").partition("#")
        try:
            value: Any = kind(text.strip()) if kind is not str else text
            if not mark or (kind is float and not math.isfinite(value)):
                raise ValueError
        except (ValueError, OverflowError):
            raise FileError(
                f"{name}: line {number}: expected '<{kind.__name__}> # {what}', got {text.strip()[:60]!r}"
            ) from None
        values.append(value)
    kernel, d, g, s, r, _, highest, _, count, b = values
    if not 0 <= kernel < len(_KERNELS):
        raise FileError(f"{name}: line 2: expected a kernel type from 0 to {len(_KERNELS) - 1}, got {kernel}")
    if abs(d) > LARGEST_DEGREE:
        raise FileError(
            f"{name}: line 3: expected a kernel parameter -d from {-LARGEST_DEGREE} to {LARGEST_DEGREE}, got "
            f"{str(d)[:20]}... ({len(str(abs(d)))} digits): correct the line, or train again"
        )
    if not 0 <= highest <= HIGHEST + 2:
        raise FileError(f"{name}: line 8: expected a highest feature index from 0 to {HIGHEST + 2}, got {highest}")
    vectors = parse_svmlight(
        np.frombuffer(lines[-1], np.uint8),
        name,
        light_tags=True,
        least=1,
        most=HIGHEST + 2,
        lines_before=len(_HEADER) + 1,
    )
    if vectors.n != count - 1 or len(vectors.labels) != vectors.n:
        raise FileError(
            f"{name}: line 10 promises {count - 1} support vectors, got {vectors.n}: the file was cut off or is damaged"
        )
    return SvmperfModel(name, kernel, d, g, s, r, highest, b, vectors.labels, vectors)


def format_svmperf_model(
    w: Vector, b: float, *, highest: int, n_cuts: int, indices: npt.NDArray[np.integer[Any]] | None = None
) -> bytes:
    """A linear model as SVM-perf writes it: one vector, zero weights left out; ``score = w.x - b``.

    Parameters
    ----------
    w : ndarray (p,)
        Weights without that of the bias.
    b : float
        Threshold.
    highest : int
        What line 8 says: the largest training index, plus 1 for the bias, plus 1.
    n_cuts : int
        What line 9 says: the number of cuts of the last quadratic program.
    indices : ndarray (p,), optional
        The features' indices, ascending; 1, 2, ... by default.
    """
    largest = float(np.abs(w).max(initial=0.0))
    single = np.finfo(np.float32)
    if largest and not single.tiny <= largest <= single.max:
        raise ValueError(
            f"expected weights that 32-bit floats can hold, which SVM-perf's model files are made of, got "
            f"{largest:.3g} as the largest: scale the features, and train again"
        )
    w = w.astype(np.float32)
    kept = np.flatnonzero(w)
    numbers = kept + 1 if indices is None else indices[kept]
    pairs = "".join(f"{j}:{value:.8g} " for j, value in zip(numbers.tolist(), w[kept].tolist(), strict=True))
    lines = [
        VERSION,
        "0 # kernel type",
        "3 # kernel parameter -d ",
        "1 # kernel parameter -g ",
        "1 # kernel parameter -s ",
        "1 # kernel parameter -r ",
        "empty# kernel parameter -u ",
        f"{highest} # highest feature index ",
        f"{n_cuts} # number of training documents ",
        "2 # number of support vectors plus 1 ",
        f"{b:.8g} # threshold b, each following line is a SV (starting with alpha*y)",
        f"1 {pairs}#",
    ]
    return ("\n".join(lines) + "\n").encode("ascii")
