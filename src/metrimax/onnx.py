"""Export to ONNX: ``import metrimax.onnx`` registers converters with skl2onnx, then ``skl2onnx.to_onnx`` works.

`MeasureSVC` and `MeasureSVCCV` convert, alone or in a pipeline, with two classes, several, or label indicator matrices;
linear, or with any kernel but a function of one's own and precomputed values. The model has two outputs: the labels of
`predict`, and the scores of `decision_function` as a matrix (n, L).

Scores are computed in the type of the input: with float32 a score that is zero up to rounding may get the other label.

Examples
--------
>>> import numpy as np
>>> import metrimax.onnx
>>> from skl2onnx import to_onnx  # doctest: +SKIP
>>> onnx_model = to_onnx(model, X[:1].astype(np.float32))  # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx import update_registered_converter
from skl2onnx.algebra import onnx_ops as ops
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

from metrimax._validation import dense
from metrimax.designs.kernel import Expansion
from metrimax.estimators.svc import MeasureSVC
from metrimax.estimators.svc_cv import MeasureSVCCV


def _shapes(operator: Any) -> None:
    """The types of the outputs: labels, and scores in the type of the input."""
    model, rows = operator.raw_operator, operator.inputs[0].get_first_dimension()
    n_labels = len(model.intercept_)
    labels = [rows, n_labels] if model._multilabel else [rows]
    text = not model._multilabel and model.classes_.dtype.kind in "UOS"
    operator.outputs[0].type = (StringTensorType if text else Int64TensorType)(labels)
    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    operator.outputs[1].type = (DoubleTensorType if double else FloatTensorType)([rows, n_labels])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Scores as ``decision_function`` has them, and the labels that ``predict`` makes of them."""
    model, version = operator.raw_operator, container.target_opset
    dtype = np.float64 if isinstance(operator.inputs[0].type, DoubleTensorType) else np.float32
    X = operator.inputs[0]
    if not isinstance(X.type, (DoubleTensorType, FloatTensorType)):
        X = ops.OnnxCast(X, to=1, op_version=version)  # of whole numbers: 1 is float32
    if model._expansion is None:
        features, W = X, model.coef_.T
    else:
        features, W = _kernel_values(X, model._expansion, dtype, version), model._expansion.coefficients
        W = W.reshape(len(W), -1)
    product = ops.OnnxMatMul(features, np.ascontiguousarray(W, dtype=dtype), op_version=version)
    names = [output.full_name for output in operator.outputs]
    scores = ops.OnnxAdd(product, model.intercept_.astype(dtype), op_version=version, output_names=names[1:])
    positive = ops.OnnxCast(
        ops.OnnxGreater(scores, np.zeros(1, dtype=dtype), op_version=version),
        to=7,  # int64
        op_version=version,
        **({"output_names": names[:1]} if model._multilabel else {}),
    )
    if model._multilabel:
        labels = positive
    else:
        choice = positive if model._binary else ops.OnnxArgMax(scores, axis=1, keepdims=0, op_version=version)
        flat = ops.OnnxReshape(choice, np.array([-1], dtype=np.int64), op_version=version)
        text = model.classes_.dtype.kind in "UOS"
        classes = np.array(model.classes_, dtype=np.str_ if text else np.int64)
        labels = ops.OnnxGather(classes, flat, axis=0, op_version=version, output_names=names[:1])
    labels.add_to(scope, container)
    scores.add_to(scope, container)


def _kernel_values(X: Any, expansion: Expansion, dtype: type[np.floating[Any]], version: int) -> Any:
    """The kernel between rows of X and the basis, as `metrimax.designs.kernel.Kernel` has it."""
    kernel = expansion.kernel
    if kernel is None or callable(kernel.name):
        raise NotImplementedError(
            "expected a kernel with a name to convert to ONNX, got precomputed values or a function: "
            "train with kernel='rbf', 'poly' or another name"
        )
    basis = np.asarray(dense(expansion.basis), dtype=np.float64)

    def constant(value: Any) -> Any:
        return np.atleast_1d(np.asarray(value, dtype=dtype))

    def op(name: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ops, f"Onnx{name}")(*inputs, op_version=version, **options)

    if kernel.name == "poly":
        products = op("MatMul", X, constant(kernel.gamma * basis.T))
        return op("Pow", op("Add", products, constant(kernel.coef0)), constant(kernel.degree))
    centre = basis.mean(axis=0)  # little may be left of large numbers: distances are taken about the mean
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


for _estimator in (MeasureSVC, MeasureSVCCV):
    update_registered_converter(_estimator, f"Metrimax{_estimator.__name__}", _shapes, _convert)
