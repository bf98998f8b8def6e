"""Converters for `CAPOClassifier` and `MeasureEnsemble`: parts.py converts their parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx.algebra import onnx_ops as ops
from sklearn.base import is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier

from metrimax.estimators._ensemble_members import Coded
from metrimax.estimators._ensemble_stack import SMOOTHING
from metrimax.onnx.classifiers import ENCODE, Type, feature_scores, finish, output_types, rows_of
from metrimax.onnx.graph import Graph
from metrimax.onnx.parts import decisions, part, probabilities
from metrimax.protocols import Array, Vector


def convert_capo(scope: Any, operator: Any, container: Any) -> None:
    """The weighted sum of the auxiliaries' outputs, and the delta function."""
    model, version = operator.raw_operator, container.target_opset
    X, dtype = rows_of(operator, version)
    whole = Graph(X, dtype, version)
    kept = np.setdiff1d(np.arange(model.n_features_in_), model._columns)
    rest = Graph(whole.columns(kept) if model._columns else X, dtype, version)
    n_labels = len(model.intercept_)
    total = None
    for k, (name, auxiliary) in enumerate(zip(model._names, model.estimators_, strict=True)):
        block = _auxiliary(whole, rest, name, auxiliary, model)
        mix = model._turn * model._mix[k * n_labels : (k + 1) * n_labels]
        term = whole("MatMul", block, np.ascontiguousarray(mix, dtype=dtype))
        total = term if total is None else whole("Add", total, term)
    if hasattr(model, "kernel_kept_"):
        total = whole("Add", total, feature_scores(model, rest.X, dtype, version))
    finish(scope, operator, container, total, model.intercept_.astype(dtype), model._multilabel)


def _auxiliary(whole: Graph, rest: Graph, name: str, auxiliary: Any, model: Any) -> Any:
    """The outputs (n, L) of an auxiliary, as in `metrimax.estimators._auxiliary.AuxiliaryOutputs`."""
    labels, classes = model._problem.outputs == "label", model._problem.classes  # the positive one of two is last
    if not hasattr(auxiliary, "fit"):  # the number of a column
        column = whole.columns([auxiliary])
        return whole.signs(column) if labels else column
    if is_regressor(auxiliary):
        values = rest("Reshape", part(rest, name, auxiliary, rest.X), np.array([-1, len(model.intercept_)]))
        return rest.signs(values) if labels else values
    if model._multilabel:
        raise NotImplementedError(f"expected two or more exclusive classes to convert {name!r} to ONNX, got labels")
    if labels:
        predicted = rest("Identity", part(rest, name, auxiliary, rest.X)[0])
        wanted = np.arange(len(classes))[1:] if len(classes) == 2 else np.arange(len(classes))
        text = classes.dtype.kind in "UOS"
        keys = {"keys_strings": classes.tolist()} if text else {"keys_int64s": classes.astype(int).tolist()}
        numbers = [float(k) for k in range(len(classes))]
        number = ops.OnnxLabelEncoder_2(predicted, values_floats=numbers, op_version=2, **keys)
        column = rest("Reshape", number, np.array([-1, 1], dtype=np.int64))
        near = rest(
            "Sub", np.full(1, 0.5, dtype=np.float32), rest("Abs", rest("Sub", column, wanted.astype(np.float32)[None]))
        )
        return rest.signs(rest.floats(near))
    selection = _selection(auxiliary, classes, rest.dtype)
    if hasattr(auxiliary, "decision_function"):
        values = rest("MatMul", decisions(rest, name, auxiliary, rest.X), selection)
        return rest("Add", values, rest.constant(selection.sum(axis=0) - 1))  # -1 for a class that it does not know
    block = rest("MatMul", probabilities(rest, name, auxiliary, rest.X), selection)
    return rest("Sub", rest("Mul", block, rest.constant(2.0)), rest.constant(1.0))


def _selection(model: Any, classes: Array, dtype: Type) -> Array:
    """A matrix that puts the columns of a model into the order of ``classes``; of two, only the second remains."""
    own = np.asarray(model.classes_)
    chosen: Array = (own[:, None] == classes[None]).astype(dtype)
    return np.ascontiguousarray(chosen[:, 1:] if len(classes) == 2 else chosen)


def ensemble_shapes(operator: Any) -> None:
    """The types of the outputs of an ensemble."""
    model = operator.raw_operator
    output_types(operator, model.classes_, len(model.threshold_), model._reader.separate)


def convert_ensemble(scope: Any, operator: Any, container: Any) -> None:
    """The weighted sum of the members' log-odds, each the mean over its folds, less the threshold."""
    model, version = operator.raw_operator, container.target_opset
    if model._views.categorical.any():
        names = [
            str(name) for name, other in zip(model.feature_names_in_, model._views.categorical, strict=True) if other
        ]
        raise NotImplementedError(
            f"expected an ensemble that was trained on numbers to convert to ONNX, got text or categories in {names}: "
            f"{ENCODE}"
        )
    X, dtype = rows_of(operator, version)
    given = Graph(X, dtype, version)
    encoder = model._views._encoder
    matrix, gaps = _matrix(given, encoder), encoder is not None and len(encoder._gapped) > 0
    total: Any = None
    for m, member in enumerate(model._members):
        for models in model.estimators_[m]:
            graph = matrix if member.view == "matrix" else given
            if gaps and graph is given and not isinstance(models[0], HistGradientBoostingClassifier):
                raise NotImplementedError(
                    f"{member.name!r} was trained on gaps (NaN), and skl2onnx does not pass them on: put a "
                    "SimpleImputer in front of the ensemble"
                )
            block = _log_odds(graph, member.name, models, model._reader)
            share = [model._turn * stack.coef[m] / len(model.estimators_[m]) for stack in model._rule.stacks]
            term = given("Mul", block, given.constant(share))
            total = term if total is None else given("Add", total, term)
    constant = model._turn * (np.array([stack.intercept for stack in model._rule.stacks]) - model.threshold_)
    finish(scope, operator, container, total, constant.astype(dtype), model._reader.separate)


def _matrix(graph: Graph, encoder: Any) -> Graph:
    """The view for members that take no gaps, as in `metrimax.estimators._ensemble_table.MatrixEncoder`."""
    if encoder is None:
        return graph
    matrix = graph("Where", graph("IsNaN", graph.X), graph.constant(encoder._medians), graph.X)  # all are numbers
    if len(encoder._gapped):
        gaps = graph.floats(graph("IsNaN", graph.columns(encoder._gapped)))
        matrix = graph("Concat", matrix, gaps, axis=1)
    return Graph(matrix, graph.dtype, graph.version)


def _log_odds(graph: Graph, name: str, models: list[Any], reader: Any) -> Any:
    """The scores (n, L) of the models of one fold, as in `metrimax.estimators._ensemble_members.Target.read`."""
    if len(models) == 1 and not reader.separate and not is_regressor(models[0]):
        return _odds(graph, name, models[0], reader.classes, reader.rates)
    columns = []
    for k, model in enumerate(models):
        if is_regressor(model):
            columns.append(graph("Reshape", part(graph, name, model, graph.X), np.array([-1, 1], dtype=np.int64)))
        else:
            columns.append(_odds(graph, name, model, np.array([0, 1]), reader.rates[k : k + 1]))
    return graph("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]


def _odds(graph: Graph, name: str, model: Any, classes: Array, rates: Vector) -> Any:
    """Log-odds of the probabilities of a classifier, after these are moved towards the rates of the classes."""
    if isinstance(model, Coded) or not hasattr(model, "predict_proba"):
        raise NotImplementedError(
            f"expected members with probabilities to convert to ONNX, got {name!r}, {type(model).__name__}: wrap it in "
            "sklearn.calibration.CalibratedClassifierCV"
        )
    selection = _selection(model, classes, graph.dtype)
    if isinstance(model, DummyClassifier):  # a fold had one class only
        ones = graph("Mul", graph.columns([0]), graph.constant(0.0))
        p = graph("Add", ones, graph.constant(model.class_prior_ @ selection))
    else:
        p = graph("MatMul", probabilities(graph, name, model, graph.X), selection)
    towards = SMOOTHING * np.clip(rates, 1e-6, 1 - 1e-6)
    p = graph("Add", graph("Mul", p, graph.constant(1 - SMOOTHING)), graph.constant(towards))
    return graph("Sub", graph("Log", p), graph("Log", graph("Sub", graph.constant(1.0), p)))
