"""Converters for linear and kernel models, and helpers of all converters: types, labels, kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx.algebra import onnx_ops as ops
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

from metrimax._validation import dense
from metrimax.designs.kernel import Kernel
from metrimax.protocols import Array, Vector

Type = type[np.floating[Any]]


def output_types(operator: Any, classes: Array, n_labels: int, multilabel: bool) -> None:
    """The types of the outputs: labels, and scores in the type of the input."""
    rows = operator.inputs[0].get_first_dimension()
    labels = [rows, n_labels] if multilabel else [rows]
    text = not multilabel and classes.dtype.kind in "UOS"
    operator.outputs[0].type = (StringTensorType if text else Int64TensorType)(labels)
    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    operator.outputs[1].type = (DoubleTensorType if double else FloatTensorType)([rows, n_labels])


def shapes(operator: Any) -> None:
    """The types of the outputs of a fitted classifier."""
    model = operator.raw_operator
    output_types(operator, model.classes_, len(model.intercept_), model._multilabel)


def rows_of(operator: Any, version: int) -> tuple[Any, Type]:
    """The input as floats, and their type."""
    X = operator.inputs[0]
    double = isinstance(X.type, DoubleTensorType)
    if not isinstance(X.type, (DoubleTensorType, FloatTensorType)):
        X = ops.OnnxCast(X, to=1, op_version=version)  # of whole numbers: 1 is float32
    return X, np.float64 if double else np.float32


def feature_scores(model: Any, X: Any, dtype: Type, version: int) -> Any:
    """The scores of a linear function or of a kernel, without the intercept."""
    if model._expansion is None:
        features, W = X, model.coef_.T
    else:
        expansion, W = model._expansion, model._expansion.coefficients
        features, W = kernel_values(X, expansion.kernel, expansion.basis, dtype, version), W.reshape(len(W), -1)
    return ops.OnnxMatMul(features, np.ascontiguousarray(W, dtype=dtype), op_version=version)


def finish(
    scope: Any, operator: Any, container: Any, sum_: Any, constant: Vector, classes: Array, multilabel: bool
) -> None:
    """Set the outputs: the scores, which are a sum and a constant, and the labels as in ``predict``."""
    version, n_labels = container.target_opset, len(constant)
    names = [output.full_name for output in operator.outputs]
    scores = ops.OnnxAdd(sum_, constant, op_version=version, output_names=names[1:])
    positive = ops.OnnxCast(
        ops.OnnxGreater(scores, np.zeros(1, dtype=constant.dtype), op_version=version),
        to=7,  # int64
        op_version=version,
        **({"output_names": names[:1]} if multilabel else {}),
    )
    if multilabel:
        labels = positive
    else:
        choice = positive if n_labels == 1 else ops.OnnxArgMax(scores, axis=1, keepdims=0, op_version=version)
        flat = ops.OnnxReshape(choice, np.array([-1], dtype=np.int64), op_version=version)
        text = classes.dtype.kind in "UOS"
        names_of = np.array(classes, dtype=np.str_ if text else np.int64)
        labels = ops.OnnxGather(names_of, flat, axis=0, op_version=version, output_names=names[:1])
    labels.add_to(scope, container)
    scores.add_to(scope, container)


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Scores as in ``decision_function``, and labels as in ``predict``."""
    model = operator.raw_operator
    X, dtype = rows_of(operator, container.target_opset)
    product = feature_scores(model, X, dtype, container.target_opset)
    finish(scope, operator, container, product, model.intercept_.astype(dtype), model.classes_, model._multilabel)


def ranker_shapes(operator: Any) -> None:
    """The type of the output of a ranker: scores, (n, 1)."""
    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = (DoubleTensorType if double else FloatTensorType)([rows, 1])


def convert_ranker(scope: Any, operator: Any, container: Any) -> None:
    """Scores as ``predict`` has them, in a column."""
    X, dtype = rows_of(operator, container.target_opset)
    w = np.asarray(operator.raw_operator.coef_, dtype=dtype).reshape(-1, 1)
    names = [operator.outputs[0].full_name]
    ops.OnnxMatMul(X, w, op_version=container.target_opset, output_names=names).add_to(scope, container)


def kernel_values(X: Any, kernel: Kernel | None, basis: Any, dtype: Type, version: int) -> Any:
    """The kernel between rows of X and the basis, as in `metrimax.designs.kernel.Kernel`."""
    if kernel is None or callable(kernel.name):
        raise NotImplementedError(
            "expected a kernel with a name to convert to ONNX, got precomputed values or a function: "
            "train with kernel='rbf', 'poly' or another name"
        )
    basis = np.asarray(dense(basis), dtype=np.float64)

    def constant(value: Any) -> Any:
        return np.atleast_1d(np.asarray(value, dtype=dtype))

    def op(name: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ops, f"Onnx{name}")(*inputs, op_version=version, **options)

    if kernel.name == "poly":
        products = op("MatMul", X, constant(kernel.gamma * basis.T))
        return op("Pow", op("Add", products, constant(kernel.coef0)), constant(kernel.degree))
    centre = basis.mean(axis=0)  # squares of large numbers would lose the distances to rounding
    rows, basis = op("Sub", X, constant(centre)), basis - centre
    # |x - b|^2 = |x|^2 - 2 x.b + |b|^2; a matrix of ones sums the squares of each row
    squares = op("MatMul", op("Mul", rows, rows), np.ones((basis.shape[1], 1), dtype=dtype))
    squares = op("Add", squares, op("MatMul", rows, constant(-2 * basis.T)))
    squares = op("Relu", op("Add", squares, constant((basis**2).sum(axis=1))))
    scaled = op("Mul", squares, constant(kernel.gamma))
    if kernel.name in ("laplacian", "inverse_distance"):
        scaled = op("Sqrt", scaled)
    if kernel.name in ("rbf", "laplacian"):
        return op("Exp", op("Neg", scaled))
    return op("Reciprocal", op("Add", scaled, constant(1.0)))
