"""The parts of composed models: by skl2onnx's converters, and by our own where it has none that work."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from skl2onnx._supported_operators import sklearn_operator_name_map
from skl2onnx.algebra import onnx_ops as ops
from skl2onnx.algebra.onnx_operator import OnnxSubEstimator
from skl2onnx.common._registration import get_converter
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import QuantileTransformer

from metrimax._validation import dense
from metrimax.designs.kernel import Kernel
from metrimax.estimators.svc import MeasureSVC
from metrimax.estimators.svc_cv import MeasureSVCCV
from metrimax.onnx.classifiers import feature_scores, kernel_values
from metrimax.onnx.graph import Graph
from metrimax.protocols import Vector


def _last(graph: Graph, name: str, model: Any, X: Any) -> tuple[Any, Any]:
    """The last step of a pipeline, which goes step by step, and what that step is given."""
    if isinstance(model, FrozenEstimator):
        return _last(graph, name, model.estimator, X)
    if not isinstance(model, Pipeline):
        return model, X
    for _, step in model.steps[:-1]:
        X = X if step is None or step == "passthrough" else part(graph, name, step, X)
    return _last(graph, name, model.steps[-1][1], X)


def part(graph: Graph, name: str, model: Any, X: Any) -> Any:
    """The outputs of another estimator: of a classifier labels and probabilities."""
    model, X = _last(graph, name, model, X)
    if np.asarray(getattr(model, "classes_", ())).dtype.kind == "b":  # ONNX gathers whole numbers or text
        model = copy(model)
        model.classes_ = model.classes_.astype(np.int64)
    if type(model) is HistGradientBoostingClassifier:
        return _boosting(graph, name, model, X)
    if isinstance(model, LinearClassifierMixin) and not hasattr(model, "predict_proba"):  # skl2onnx: no doubles
        values = decisions(graph, name, model, X)
        return _labelled(graph, model, values), values
    if type(model) is QuantileTransformer and model.output_distribution == "normal":
        return _normal_scores(graph, model, X)
    if type(model) is Nystroem and model.kernel == "rbf":
        return _nystroem(graph, model, X)
    if type(model) is KNeighborsClassifier and model.weights != "uniform":  # skl2onnx 1.20 is off by up to 0.09
        raise NotImplementedError(
            f"{name!r} does not convert to ONNX: expected neighbours with weights='uniform', got {model.weights!r}, "
            "for which skl2onnx gives other probabilities"
        )
    if type(model) not in sklearn_operator_name_map:
        raise NotImplementedError(
            f"{name!r} does not convert to ONNX: there is no converter for {type(model).__name__}; leave it out, or "
            "take another estimator"
        )
    known = get_converter(sklearn_operator_name_map[type(model)]).get_allowed_options()
    options = {"zipmap": False} if known and "zipmap" in known else None  # LinearSVC has no such option
    return OnnxSubEstimator(model, X, op_version=graph.version, options=options)


def probabilities(graph: Graph, name: str, model: Any, X: Any) -> Any:
    """What ``predict_proba`` says."""
    return graph.floats(part(graph, name, model, X)[1])


def decisions(graph: Graph, name: str, model: Any, X: Any) -> Any:
    """What ``decision_function`` says, as a column for each class: of two classes, the first has the negative."""
    model, X = _last(graph, name, model, X)
    if type(model) is HistGradientBoostingClassifier:
        values = _boosting_values(graph, name, model, X)
    elif isinstance(model, LinearClassifierMixin):
        values = graph("MatMul", X, np.ascontiguousarray(dense(model.coef_).T, dtype=graph.dtype))
        values = graph("Add", values, graph.constant(model.intercept_))
    elif type(model) in (MeasureSVC, MeasureSVCCV):
        values = graph("Add", feature_scores(model, X, graph.dtype, graph.version), graph.constant(model.intercept_))
    else:
        raise NotImplementedError(
            f"{name!r} does not convert to ONNX: expected a linear model, HistGradientBoostingClassifier or MeasureSVC "
            f"where a decision_function counts, got {type(model).__name__}: train with outputs='label'"
        )
    return graph("Concat", graph("Neg", values), values, axis=1) if len(model.classes_) == 2 else values


def _boosting_values(graph: Graph, name: str, model: Any, X: Any) -> Any:
    """Trees that compare in float32: their thresholds are rounded down, so every float32 goes the way it did."""
    trees = [(k, tree.nodes) for stage in model._predictors for k, tree in enumerate(stage)]
    if model.is_categorical_ is not None:
        raise NotImplementedError(
            f"expected {name!r} without categorical features to convert it to ONNX: encode them before"
        )
    sizes = [len(nodes) for _, nodes in trees]
    nodes = np.concatenate([nodes for _, nodes in trees])
    tree_ids = np.repeat(np.arange(len(trees)), sizes)
    node_ids = np.concatenate([np.arange(size) for size in sizes])
    leaf = nodes["is_leaf"].astype(bool)
    start = np.ravel(model._baseline_prediction)
    raw = ops.OnnxTreeEnsembleRegressor_1(
        graph("Cast", X, to=1),
        op_version=1,
        n_targets=len(start),
        base_values=start.astype(np.float32).tolist(),
        nodes_treeids=tree_ids.tolist(),
        nodes_nodeids=node_ids.tolist(),
        nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_featureids=np.where(leaf, 0, nodes["feature_idx"]).astype(int).tolist(),
        nodes_values=_rounded_down(np.where(leaf, 0.0, nodes["num_threshold"])).tolist(),
        nodes_truenodeids=np.where(leaf, 0, nodes["left"]).astype(int).tolist(),
        nodes_falsenodeids=np.where(leaf, 0, nodes["right"]).astype(int).tolist(),
        nodes_missing_value_tracks_true=np.where(leaf, 0, nodes["missing_go_to_left"]).astype(int).tolist(),
        target_treeids=tree_ids[leaf].tolist(),
        target_nodeids=node_ids[leaf].tolist(),
        target_ids=np.repeat([k for k, _ in trees], sizes)[leaf].astype(int).tolist(),
        target_weights=nodes["value"][leaf].astype(np.float32).tolist(),
    )
    return graph.floats(raw)


def _boosting(graph: Graph, name: str, model: Any, X: Any) -> tuple[Any, Any]:
    """Labels and probabilities of boosting."""
    values = _boosting_values(graph, name, model, X)
    if len(model.classes_) == 2:
        positive = graph("Sigmoid", values)
        p = graph("Concat", graph("Sigmoid", graph("Neg", values)), positive, axis=1)
    else:
        p = graph("Softmax", values, axis=1)
    return _labelled(graph, model, p), p


def _labelled(graph: Graph, model: Any, values: Any) -> Any:
    """The class with the highest value of each row."""
    text = model.classes_.dtype.kind in "UOS"
    classes = model.classes_.astype(np.str_ if text else np.int64)
    return graph("Gather", classes, graph("ArgMax", values, axis=1, keepdims=0), axis=0)


def _rounded_down(values: Vector) -> Vector:
    """The greatest float32 that is not above."""
    near = values.astype(np.float32)
    down: Vector = np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)
    return down


def _nystroem(graph: Graph, model: Nystroem, X: Any) -> Any:
    """Features of the Gaussian kernel, in double precision: the normalisation has large entries."""
    basis = np.asarray(model.components_, dtype=np.float64)
    kernel = Kernel("rbf", gamma=1 / basis.shape[1] if model.gamma is None else float(model.gamma))
    values = kernel_values(graph("Cast", X, to=11), kernel, basis, np.float64, graph.version)
    features = graph("MatMul", values, np.ascontiguousarray(model.normalization_.T, dtype=np.float64))
    return graph.features(features, len(basis))


EDGE = 1e-7
"""QuantileTransformer's BOUNDS_THRESHOLD: quantiles and entries no nearer to an end than that are not at the end."""


def _normal_scores(graph: Graph, model: QuantileTransformer, X: Any) -> Any:
    """Quantiles by linear interpolation, and what the normal distribution has there, in double precision.

    The share u of an entry x is the sum of what each piece [q, q + width] of its column has below x. Of a piece of no
    width, a value that many rows have, half lies below x = q.
    """
    quantiles = np.asarray(model.quantiles_.T, dtype=np.float64)  # (p, q)
    steps, widths = np.diff(model.references_), np.diff(quantiles, axis=1)
    wide = widths > 1e-300
    x = graph("Cast", X, to=11)
    away = graph("Sub", graph("Unsqueeze", x, np.array([2])), quantiles[None, :, :-1])  # (n, p, q - 1)
    shares = graph("Clip", graph("Mul", away, (wide / np.where(wide, widths, 1.0))[None]), np.array(0.0), np.array(1.0))
    u = graph("MatMul", shares, steps[:, None])
    if not wide.all():
        below = graph("Mul", graph("Sign", away), np.where(wide, 0.0, 0.5)[None])
        below = graph("MatMul", below, steps[:, None])
        u = graph("Add", graph("Add", u, below), (np.where(wide, 0.0, 0.5) @ steps)[None, :, None])
    u = graph("Squeeze", u, np.array([2]))
    # in the type of the input, as scikit-learn does: next to a float32 the edge may be nothing
    above, below = (graph("Cast", graph(op, X, graph.constant(EDGE)), to=11) for op in ("Add", "Sub"))
    u = graph("Where", graph("Greater", above, quantiles[None, :, -1]), np.array([1.0]), u)
    u = graph("Where", graph("Less", below, quantiles[None, :, 0]), np.array([0.0]), u)
    end = EDGE - np.spacing(1)
    normal = _normal_quantile(graph, graph("Clip", u, np.array(end), np.array(1 - end)))
    return graph.features(normal, len(quantiles))


# Wichura (1988), Algorithm AS 241: The percentage points of the normal distribution. Applied Statistics 37(3), with 16
# digits. Ascending coefficients of numerator and denominator, about the median and towards the ends up to exp(-25).
MIDDLE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)  # fmt: skip
TAIL = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip


def _normal_quantile(graph: Graph, u: Any) -> Any:
    """The inverse of the normal distribution function, for u within [1e-10, 1 - 1e-10]."""

    def ratio(r: Any, coefficients: tuple[tuple[float, ...], ...]) -> Any:
        above, below = (_polynomial(graph, r, c) for c in coefficients)
        return graph("Div", above, below)

    q = graph("Sub", u, np.array([0.5]))
    middle = graph("Mul", q, ratio(graph("Sub", np.array([0.180625]), graph("Mul", q, q)), MIDDLE))
    nearer = graph("Min", u, graph("Sub", np.array([1.0]), u))
    r = graph("Sub", graph("Sqrt", graph("Neg", graph("Log", nearer))), np.array([1.6]))
    tail = graph("Mul", graph("Sign", q), ratio(r, TAIL))
    return graph("Where", graph("Greater", graph("Abs", q), np.array([0.425])), tail, middle)


def _polynomial(graph: Graph, r: Any, coefficients: tuple[float, ...]) -> Any:
    """By Horner's rule, of ascending coefficients."""
    value: Any = np.array([coefficients[-1]])
    for c in coefficients[-2::-1]:
        value = graph("Add", graph("Mul", r, value), np.array([c]))
    return value
