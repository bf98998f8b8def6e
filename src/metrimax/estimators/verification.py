"""`metrimax.verify`: check what a fitted estimator states, on the data it was trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from metrimax._validation import dense
from metrimax.designs import as_design
from metrimax.designs.kernel import Gram, LowRank
from metrimax.estimators._base import labels_of
from metrimax.estimators._targets import check_weight, encode, weights_of
from metrimax.estimators.ranker import MeasureRanker
from metrimax.estimators.svc import MeasureSVC
from metrimax.measure import get_measure
from metrimax.protocols import Design, Status, Vector
from metrimax.training.defaults import losses_of
from metrimax.training.verification import Check, Claim, Verification, verify_label


def verify(
    estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None, max_iter: int = 1000
) -> Verification:
    """Check the objective, the bound and the threshold of a fitted estimator on the data it was trained on.

    Only what the estimator states is used. The objective is computed from the weights, by the definition of the
    measure. With ``certificate=True`` in the estimator, the bound is computed from its certificate, in two passes over
    the data. Without it, a cutting plane method proves a bound anew, which takes about as long as the fit
    (docs/certificate.md). The threshold is placed again.

    Parameters
    ----------
    estimator : MeasureSVC, MeasureSVCCV or MeasureRanker
        The fitted estimator.
    X, y, sample_weight, groups
        The data it was fitted on.
    max_iter : int, default=1000
        Largest number of iterations of the cutting plane method.

    Returns
    -------
    Verification
        True if all checks hold. Its `str` is a sentence, and ``labels`` has the single checks.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax import MeasureSVC, verify
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(300) < 0.2
    >>> X = rng.normal(size=(300, 4)) + y[:, None]
    >>> clf = MeasureSVC("f1").fit(X, y)
    >>> bool(verify(clf, X, y))
    True
    >>> clf.dual_bound_ += 1
    >>> bool(verify(clf, X, y))
    False
    """
    if not isinstance(estimator, (MeasureSVC, MeasureRanker)) or hasattr(estimator, "aux_weights_"):
        raise TypeError(
            f"expected a fitted MeasureSVC, MeasureSVCCV or MeasureRanker, got {type(estimator).__name__} (a "
            "CAPOClassifier does not store the training outputs of its auxiliaries)"
        )
    check_is_fitted(estimator)
    if isinstance(estimator, MeasureRanker):
        return _verify_ranker(estimator, X, y, sample_weight, groups, max_iter)
    y = labels_of(X, y)
    X = estimator._check_rows(X)
    kind, classes, labels = encode(y, estimator.pos_label)
    if kind != estimator._target or not np.array_equal(classes, estimator.classes_):
        return Verification([[Check("label", False, "the classes of y are others than those of the model")]])
    weight = weights_of(estimator.class_weight, y, sample_weight, labels)
    features = estimator._features(X)
    if isinstance(features, LowRank):
        raise TypeError(
            "expected a linear or an exact kernel, got one approximated by Nystroem features, which are not "
            "stored: raise cache_size, or train on the features (sklearn's Nystroem)"
        )
    if np.any(vars(estimator).get("dropped_", 0.0)):
        raise TypeError(
            "expected a model with all its weights, got one from which sparsify has dropped some: what it states is "
            "that of all weights; verify it before, or fit it again"
        )
    (scaling,) = {own["intercept_scaling"] for own in _settings(estimator, 1)}
    if scaling == "free":
        raise TypeError(
            "expected a model whose intercept is regularised, got one with intercept_scaling='free', whose bound needs "
            "its multipliers: compare objective_ and dual_bound_ with scikit-learn's SVC"
        )
    design = as_design(features, intercept_scaling=scaling)
    measure = get_measure(estimator.measure)
    checked = []
    for k, claim in enumerate(_claims(estimator, features)):
        square = _square(features, claim.w, estimator.fit_intercept)
        own = verify_label(measure, design, np.ascontiguousarray(labels[:, k]), weight, claim, square, max_iter)
        checked.append([*own, _intercept(estimator, k)])
    return Verification(checked)


def _claims(model: MeasureSVC, features: Design) -> list[Claim]:
    """What a fitted model states, label by label."""
    stated = [np.atleast_1d(values) for values in (model.price_, model.objective_, model.dual_bound_, model.gap_)]
    statuses = model.status_ if isinstance(model.status_, list) else [model.status_]
    W = model._turn * (dense(model.coef_) if model._expansion is None else _coefficients(model, features))
    certificates = model.certificate_ or [None] * len(W)
    claims = []
    for k, (own, with_) in enumerate(zip(W, _settings(model, len(W)), strict=True)):
        scaling = with_["intercept_scaling"]
        bias = [] if scaling is None else [model._turn * model.trained_intercept_[k] / scaling]
        price, objective, bound, gap = (float(values[k]) for values in stated)
        claims.append(
            Claim(
                w=np.append(own, bias),
                C=with_["C"],
                losses=losses_of(with_),
                price=price,
                objective=objective,
                bound=bound,
                gap=gap,
                threshold=float(model._turn * model.threshold_[k]),
                rule=with_["threshold"],
                constant=statuses[k] is Status.ONE_CLASS,
                certificate=certificates[k],
            )
        )
    return claims


def _settings(model: MeasureSVC, n_labels: int) -> list[dict[str, Any]]:
    """The settings of each label."""
    stated = model.trained_with_
    assert stated is not None  # it is fitted
    return stated if isinstance(stated, list) else [stated] * n_labels


def _coefficients(model: MeasureSVC, features: Design) -> Vector:
    """The coefficients of all examples of an exact kernel, (L, n)."""
    W = np.zeros((len(model.kernel_coef_), features.shape[0]))
    if len(model.support_) and model.support_.max() < W.shape[1]:  # fewer examples are other data
        W[:, model.support_] = model.kernel_coef_
    return W


def _square(features: Design, w: Vector, fit_intercept: bool) -> float:
    own = w[:-1] if fit_intercept else w
    inner = features.matvec(np.ascontiguousarray(own)) if isinstance(features, Gram) else own
    return float(own @ inner) + (float(w[-1]) ** 2 if fit_intercept else 0.0)


def _intercept(model: MeasureSVC, k: int) -> Check:
    rule, trained, threshold = (float(a[k]) for a in (model.intercept_, model.trained_intercept_, model.threshold_))
    if rule == trained - threshold:
        return Check("intercept", True, "the intercept of the rule is the trained one less the threshold")
    return Check(
        "intercept",
        False,
        f"the intercept of the rule is {rule:.9g}, not {trained:.9g} - {threshold:.9g}: it was changed",
    )


def _verify_ranker(
    model: MeasureRanker, X: Any, y: Any, sample_weight: Any, groups: Any, max_iter: int
) -> Verification:
    """`verify` for a ranking, which has no threshold."""
    grouped, labels, design = model.stated(X, y, groups)
    with_ = model.trained_with_
    assert isinstance(with_, dict)  # it is fitted
    scaling = with_["intercept_scaling"]
    w = np.append(model.coef_, [] if scaling is None else model.trained_intercept_ / scaling)
    claim = Claim(
        w=w,
        C=with_["C"],
        losses=losses_of(with_),
        price=model.price_,
        objective=model.objective_,
        bound=model.dual_bound_,
        gap=model.gap_,
        threshold=0.0,
        rule="trained",
        certificate=None if model.certificate_ is None else model.certificate_[0],
    )
    weight = check_weight(sample_weight, labels)
    return Verification([verify_label(grouped, design, labels, weight, claim, float(w @ w), max_iter)])
