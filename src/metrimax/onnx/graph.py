"""Operations of ONNX on one input, in one type and one version."""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx.algebra import onnx_ops as ops
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

from metrimax.onnx.classifiers import Type
from metrimax.protocols import Array


class Graph:
    """Operations on one input, in one type and one version of the operators."""

    def __init__(self, X: Any, dtype: Type, version: int) -> None:
        self.X, self.dtype, self.version = X, dtype, version

    def __call__(self, name: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ops, f"Onnx{name}")(*inputs, op_version=self.version, **options)

    def constant(self, value: Any) -> Array:
        return np.atleast_1d(np.asarray(value, dtype=self.dtype))

    def floats(self, value: Any) -> Any:
        return self("Cast", value, to=11 if self.dtype is np.float64 else 1)

    def columns(self, numbers: Any) -> Any:
        return self("Gather", self.X, np.asarray(numbers, dtype=np.int64), axis=1)

    def signs(self, scores: Any) -> Any:
        """+1 where a score is above zero, -1 elsewhere."""
        above = self.floats(self("Greater", scores, self.constant(0.0)))
        return self("Sub", self("Mul", above, self.constant(2.0)), self.constant(1.0))

    def features(self, value: Any, width: int) -> Any:
        """Floats for another estimator, whose converter asks for the type: skl2onnx infers none of a cast."""
        made = self.floats(value)
        kind = DoubleTensorType if self.dtype is np.float64 else FloatTensorType
        made.expected_outputs = [(made.expected_outputs[0][0], kind([None, width]))]
        return made
