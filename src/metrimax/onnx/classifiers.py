"""Converters for linear and kernel models, and helpers of all converters: types, labels, kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx._supported_operators import get_model_alias
from skl2onnx.algebra import onnx_ops as ops
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

from metrimax._validation import dense
from metrimax.designs.kernel import Kernel
from metrimax.protocols import Array, Vector

Type = type[np.floating[Any]]


OPTIONS = {"zipmap": [False, True]}
"""What `options=` may say of a classifier; skl2onnx sets it for the last step of a pipeline. It changes nothing: the
scores are a matrix.
"""


def parse(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """Name the outputs of a classifier; `shapes` knows their types."""
    operator = scope.declare_local_operator(get_model_alias(type(model)), model)
    operator.inputs = inputs
    outputs = (("label", Int64TensorType()), ("scores", FloatTensorType()))
    operator.outputs += [scope.declare_local_variable(name, kind) for name, kind in outputs]
    return list(operator.outputs)


def is_double(operator: Any) -> bool:
    """Whether scores are computed in double precision: where a column of the input has it."""
    return any(isinstance(column.type, DoubleTensorType) for column in operator.inputs)


def output_types(operator: Any, classes: Array, n_labels: int, multilabel: bool) -> None:
    """The types of the outputs: labels, and scores in the type of the input."""
    rows = operator.inputs[0].get_first_dimension()
    labels = [rows, n_labels] if multilabel else [rows]
    text = not multilabel and classes.dtype.kind in "UOS"
    operator.outputs[0].type = (StringTensorType if text else Int64TensorType)(labels)
    operator.outputs[1].type = (DoubleTensorType if is_double(operator) else FloatTensorType)([rows, n_labels])


def shapes(operator: Any) -> None:
    """The types of the outputs of a fitted classifier."""
    model = operator.raw_operator
    output_types(operator, model.classes_, len(model.intercept_), model._multilabel)


def rows_of(operator: Any, version: int) -> tuple[Any, Type]:
    """The input as one matrix of floats, and their type. A data frame has an input for each column."""
    double = is_double(operator)
    wanted, number = (DoubleTensorType, 11) if double else (FloatTensorType, 1)
    columns = []
    for column in operator.inputs:
        if isinstance(column.type, StringTensorType):
            raise NotImplementedError(
                f"expected numbers in the input {column.raw_name!r} of {type(operator.raw_operator).__name__}, got "
                f"text: {ENCODE}"
            )
        same = isinstance(column.type, wanted)
        columns.append(column if same else ops.OnnxCast(column, to=number, op_version=version))
    X = columns[0] if len(columns) == 1 else ops.OnnxConcat(*columns, axis=1, op_version=version)
    return X, np.float64 if double else np.float32


ENCODE = (
    "train a pipeline instead that begins with a ColumnTransformer, with OneHotEncoder(handle_unknown='ignore', "
    "sparse_output=False) for columns of text or categories"
)
"""What to do where columns are no numbers."""


def feature_scores(model: Any, X: Any, dtype: Type, version: int) -> Any:
    """The scores of a linear function or of a kernel, without the intercept."""
    if model._expansion is None:
        features, W = X, dense(model.coef_).T
    else:
        expansion, W = model._expansion, model._expansion.coefficients
        features, W = kernel_values(X, expansion.kernel, expansion.basis, dtype, version), W.reshape(len(W), -1)
    return ops.OnnxMatMul(features, np.ascontiguousarray(W, dtype=dtype), op_version=version)


def finish(scope: Any, operator: Any, container: Any, sum_: Any, constant: Vector, multilabel: bool) -> None:
    """Set the outputs: the scores, which are a sum and a constant, and the labels as in ``predict``.

    A score of 0 has the label that is not positive. Of two classes that is the second one if the first is positive.
    """
    model = operator.raw_operator
    turned = model._turn < 0
    classes = model.classes_[::-1] if turned else model.classes_
    version, n_labels = container.target_opset, len(constant)
    names = [output.full_name for output in operator.outputs]
    scores = ops.OnnxAdd(sum_, constant, op_version=version, output_names=names[1:])
    positive = ops.OnnxCast(
        (ops.OnnxLess if turned else ops.OnnxGreater)(scores, np.zeros(1, dtype=constant.dtype), op_version=version),
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
    finish(scope, operator, container, product, model.intercept_.astype(dtype), model._multilabel)


def ranker_shapes(operator: Any) -> None:
    """The type of the output of a ranker: scores, (n, 1)."""
    rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = (DoubleTensorType if is_double(operator) else FloatTensorType)([rows, 1])


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
