"""The dual view of a fitted model: its multipliers and slacks, from the model and its training sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, column_or_1d

from metrimax._validation import dense
from metrimax.designs.kernel import Kernel, LowRank, basis_size
from metrimax.estimates.free_machine import FreeMachine, PairMachine, SVCMachine
from metrimax.estimates.machines import HingeMachine
from metrimax.estimates.radius import as_vector
from metrimax.estimates.sample import GramSample, KernelSample, LinearSample, Sample
from metrimax.estimators._base import refuse_design
from metrimax.estimators._targets import turned, weights_of
from metrimax.estimators.svc import MeasureSVC
from metrimax.measure import get_measure
from metrimax.measure.hinge_sum import HingeSum
from metrimax.protocols import Design, Hinges, Labels, Vector, made
from metrimax.solvers import DualCD
from metrimax.training.lockstep import run


def dual_view(model: Any, X: Any, y: Any, sample_weight: Any = None) -> HingeMachine | FreeMachine:
    """Read a fitted model, together with the sample that it was trained on."""
    if not isinstance(model, (SVC, LinearSVC, MeasureSVC)):
        raise _no_estimate(model)
    check_is_fitted(model)
    refuse_design(X, "the estimate needs the rows; MeasureSVCCV with selection='holdout' does not")
    given, X = X, check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    y = column_or_1d(y)
    if len(y) != X.shape[0]:
        raise ValueError(f"expected one label per row of X, got {len(y)} labels and {X.shape[0]} rows")
    if len(model.classes_) != 2 or getattr(model, "_multilabel", False):
        raise ValueError(
            f"expected a model for two classes, got {len(model.classes_)}: train and estimate one class against the "
            "rest at a time"
        )
    if turned(model.classes_, getattr(model, "pos_label", None)):
        raise ValueError(
            f"expected a model without pos_label, got pos_label={model.pos_label!r}: train on y == {model.pos_label!r}"
        )
    positive = np.asarray(y == model.classes_[1])
    if not np.all(positive | (y == model.classes_[0])) or positive.all() or not positive.any():
        raise ValueError(f"expected labels of both classes {model.classes_.tolist()} in y, got {np.unique(y).tolist()}")
    class_weight = model.class_weight
    if isinstance(model, SVC):  # scikit-learn balances by the numbers of rows, also with weights
        class_weight = dict(zip(model.classes_.tolist(), model.class_weight_.tolist(), strict=True))
    weight = weights_of(class_weight, y, sample_weight, X)
    weight = np.ones(len(y)) if weight is None else weight
    scores = model.decision_function(given)  # a data frame keeps its names
    if isinstance(model, SVC):
        return _from_svc(model, X, positive, weight, scores)
    if isinstance(model, LinearSVC):
        if model.loss != "hinge":
            raise _no_estimate(model)
        errors = Hinges(np.where(positive, 1.0, -1.0), np.ones(len(y)), weight * model.C)
        return _from_hinges(model, LinearSample(X), errors, scores)
    oracle = get_measure(model.measure).oracle(positive, weight)
    hinges = made(oracle.can.hinges)
    if hinges is None:
        raise _no_estimate(model)
    _refuse_other_machines(model)
    hinges = hinges._replace(weight=hinges.weight * float(getattr(model, "C_", None) or model.C) * oracle.price)
    _refuse_other_objective(model, hinges, scores)
    return _from_hinges(model, _sample(model, X), hinges, scores)


def _no_estimate(model: Any) -> ValueError:
    if isinstance(model, Pipeline):
        return ValueError(
            "expected a fitted classifier, and X as it was trained on, got a pipeline: give its last step, model[-1], "
            "and model[:-1].transform(X)"
        )
    return ValueError(
        "expected a fitted MeasureSVC(measure='error', 'cost' or 'balanced_error'), LinearSVC(loss='hinge') or "
        f"SVC, got {model!r}: the estimate is for hinge losses that add up over the examples"
    )


def _refuse_other_machines(model: MeasureSVC) -> None:
    """Raise unless the model is a hyperplane in the space of X or of its kernel, trained for its measure alone."""
    if hasattr(model, "aux_weights_"):
        came, remedy = "auxiliaries beside X", "judge it by cross-validation"
    elif (losses := model.losses()).base:  # what cross-validation took for None
        beside = {"hinge": losses.hinge, "logistic": losses.logistic}
        came = " and ".join(f"{name}={weight!r}" for name, weight in beside.items() if weight)
        remedy = "train with hinge=0"
    elif model.threshold == "placed" or np.any(model.threshold_):
        came, remedy = "a placed threshold", "train with threshold='trained'"
    else:
        return
    raise ValueError(
        f"expected a MeasureSVC with hinge=0 and threshold='trained', got a {type(model).__name__} with {came}, "
        f"for which there is no estimate: {remedy}"
    )


def _refuse_other_objective(model: MeasureSVC, hinges: Hinges, scores: Vector) -> None:
    """Raise unless the model's objective, computed on this sample, is the one that the model states."""
    bias = 0.0 if model._is_free else float(model.trained_intercept_[0]) / (_bias(model) or 1.0)
    if model._expansion is None:
        square = float(np.sum(dense(model.coef_) ** 2))
    else:
        if model.support_.max(initial=-1) >= len(scores):
            raise _other_sample(model.support_.max() + 1, len(scores))
        square = float(model.kernel_coef_[0] @ (scores[model.support_] - model.intercept_[0]))
    half = 0.5 * (square + bias**2)
    slack = np.maximum(0.0, hinges.margin - hinges.sign * scores)
    objective = half + float(hinges.weight @ slack)
    if not np.isclose(objective, model.objective_, rtol=1e-5):
        raise ValueError(
            "expected the sample, weights and parameters that the model was trained with, got others: "
            f"its objective on them is {objective:g}, and was {model.objective_:g} in training; give the same X, y "
            "and sample_weight, or train on these; if sparsify has dropped weights, fit again"
        )


def _from_svc(model: SVC, X: Any, y: Labels, weight: Vector, scores: Vector) -> SVCMachine:
    if not weight.all():
        raise ValueError(
            f"expected weights above zero with scikit-learn's SVC, got {np.count_nonzero(weight == 0)} that are zero, "
            "which it does not count among its examples: leave these out, and train again"
        )
    if model.shape_fit_[0] != len(y):
        raise _other_sample(model.shape_fit_[0], len(y))
    coefficients, support, upper = as_vector(model.dual_coef_), model.support_, model.C * weight
    kept = model.support_vectors_  # none, if the kernel is a matrix or a function
    other = np.any((coefficients > 0) != y[support]) or (kept.shape[0] and abs(X[support] - kept).max() > 0)
    if other or np.any(np.abs(coefficients) > upper[support] * (1 + 1e-6)):
        raise _other_sample(model.shape_fit_[0], len(y))
    alpha = np.zeros(len(y))
    alpha[support] = np.abs(coefficients)
    kernel, options = model.kernel, {"gamma": model._gamma, "degree": model.degree, "coef0": model.coef0}
    named = {} if callable(kernel) else {"filter_params": True, **options}

    def values(A: Any, B: Any) -> Vector:
        found: Vector = dense(pairwise_kernels(A, B, metric=kernel, **named))
        return found

    sample: Sample
    if kernel in ("linear", "precomputed"):
        sample = (LinearSample if kernel == "linear" else GramSample)(X)
    else:
        rbf = kernel == "rbf" and model._gamma > 0
        sample = KernelSample(X, Kernel("rbf", model._gamma) if rbf else Kernel(values))
    return SVCMachine(y, alpha, upper, np.ones(len(y)), scores, sample, float(model.intercept_[0]), model, weight)


def _bias(model: Any) -> float:
    """The value of the constant feature; 0 without one."""
    return float(model.intercept_scaling or 1.0) if model.fit_intercept else 0.0


def _sample(model: MeasureSVC, X: Any) -> Sample:
    """X with the model's kernel; or the features that were trained in its place, which stay what they are."""
    if model._expansion is None:
        return LinearSample(X)
    kernel = model._expansion.kernel
    if kernel is None:
        return GramSample(X)
    if basis_size(X, model.cache_size, model.n_components) < X.shape[0]:
        return LinearSample(LowRank(kernel, X, model.support_, X.dtype).X)
    return KernelSample(X, kernel)


def _from_hinges(model: Any, sample: Sample, hinges: Hinges, scores: Vector) -> HingeMachine | PairMachine:
    """The machine of a `MeasureSVC` or `LinearSVC`; ``hinges.weight`` holds the upper bounds of the multipliers."""
    free = isinstance(model, MeasureSVC) and model._is_free
    bias = 1.0 if free else _bias(model)
    design = sample.design(bias, n_threads=getattr(model, "n_threads", None))
    kept = getattr(model, "dual_coef_", None)
    if kept is None:
        alpha, w = _solve(design, hinges, min(model.tol, 1e-4))
    else:
        if kept.shape[1] != design.shape[0]:
            raise _other_sample(kept.shape[1], design.shape[0])
        alpha, w = np.abs(kept[0]), design.rmatvec(kept[0])
        if free:
            w[-1] = model.intercept_[0]
        same = np.allclose(design.matvec(w), scores, atol=1e-6 * max(1.0, float(np.abs(scores).max())))
        if np.any(hinges.sign * kept[0] < 0) or not same:
            raise _other_sample(kept.shape[1], design.shape[0])
    y, scores = hinges.sign > 0, design.matvec(w)
    if free:
        return PairMachine(y, alpha, hinges.weight, hinges.margin, scores, sample, float(w[-1]), design)
    return HingeMachine(y, alpha, hinges.weight, hinges.margin, scores, sample, design, w, bias)


def _solve(design: Design, hinges: Hinges, tol: float) -> tuple[Vector, Vector]:
    """Multipliers and weights, to a gap of tol times the sum of the upper bounds."""
    oracle = HingeSum(hinges)
    solution: Any = run(design, [DualCD().steps(oracle, design, oracle.n, tol=tol)])[0]
    return np.abs(solution.dual_coef), solution.w


def _other_sample(trained: int, came: int) -> ValueError:
    return ValueError(
        f"expected the sample that the model was trained on ({trained} examples), with its weights, got another one "
        f"({came} examples): the estimate is made from the multipliers of the training examples"
    )
