"""The measures: what is lost by a labelling, and the oracles that find the most violated one."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import re
from collections.abc import Callable
from typing import Any

from metrimax.measure.at_k import PRBEP, PrecisionAtK, RecallAtBudget, RecallAtK
from metrimax.measure.average_precision import AveragePrecision
from metrimax.measure.classification import (
    MCC,
    BalancedError,
    CohenKappa,
    CostModel,
    ErrorRate,
    FBeta,
    GMean,
    Jaccard,
    MinTPRTNR,
    QMean,
)
from metrimax.measure.constrained import Constrained, PrecisionAtRecall, RecallAtPrecision, TPRAtFPR
from metrimax.measure.contingency import ContingencyMeasure
from metrimax.measure.grouped import Grouped
from metrimax.measure.ndcg import NDCG
from metrimax.measure.own import TableFunction
from metrimax.measure.partial_auc import PartialAUC
from metrimax.measure.quantification import (
    AbsoluteError,
    KLDivergence,
    NormalisedKLDivergence,
    QMeasure,
    RelativeAbsoluteError,
)
from metrimax.measure.ranking import ROCArea
from metrimax.protocols import Measure

_CLASSES: tuple[type, ...] = (
    ErrorRate,
    CostModel,
    BalancedError,
    FBeta,
    Jaccard,
    GMean,
    QMean,
    CohenKappa,
    MCC,
    MinTPRTNR,
    PrecisionAtK,
    RecallAtK,
    RecallAtBudget,
    PRBEP,
    RecallAtPrecision,
    PrecisionAtRecall,
    TPRAtFPR,
    ROCArea,
    PartialAUC,
    AveragePrecision,
    NDCG,
    AbsoluteError,
    RelativeAbsoluteError,
    KLDivergence,
    NormalisedKLDivergence,
    QMeasure,
)
REGISTRY: dict[str, type] = {cls.name: cls for cls in _CLASSES} | {"f1": FBeta}  # type: ignore[attr-defined]

ALIASES = {
    "accuracy": "error",
    "auc": "roc_area",
    "auroc": "roc_area",
    "balanced_accuracy": "balanced_error",
    "cohen_kappa": "kappa",
    "map": "average_precision",
    "matthews_corrcoef": "mcc",
    "roc_auc": "roc_area",
}
"""Other names of the measures, as in scikit-learn; upper and lower case are the same."""

OTHER_NAMES = {
    "aupr": "average_precision",
    "auprc": "average_precision",
    "dice": "f1",
    "geometric_mean": "gmean",
    "gini": "roc_area",
    "hamming": "error",
    "hamming_loss": "error",
    "informedness": "balanced_error",
    "iou": "jaccard",
    "lift": "precision@10%",
    "lrap": "average_precision",
    "mrr": "average_precision",
    "pr_auc": "average_precision",
    "precision": "precision@recall=0.8",
    "profit": "cost:fn=50,fp=1",
    "recall": "recall@precision=0.9",
    "sensitivity": "recall@precision=0.9",
    "specificity": "tpr@fpr=0.01",
    "youden": "balanced_error",
    "zero_one_loss": "error",
}
"""Names that are not measures here, and the measure to suggest in the error message."""

OF_PROBABILITIES = ("brier", "cross_entropy", "log_loss", "mse", "neg_brier", "neg_log_loss")
"""Names of measures of probabilities; there is none here."""

AT_K = {"precision": "precision_at_k", "recall": "recall_at_k", "ndcg": "ndcg"}
"""Which measure is meant by a name followed by @ and k."""


CELLS = ["tp", "fp", "fn", "tn"]

LIMITS = {
    ("recall", "precision"): "recall_at_precision",
    ("precision", "recall"): "precision_at_recall",
    ("tpr", "fpr"): "tpr_at_fpr",
    ("recall", "budget"): "recall_at_budget",
}
"""Which measure is meant by a name, @, and what is limited, as in recall@precision=0.9."""


def canonical(name: str) -> tuple[str, dict[str, Any]]:
    """The registered name for one that a user has given, and the parameters that it holds: "precision@50",
    "recall@precision=0.9", "ROC_AUC", "cost:fn=50,fp=1".

    A name that is not known is returned unchanged.
    """
    before, colon, rest = name.partition(":")
    if colon:
        found, own = canonical(before)
        return (found, own | _parameters(name, rest)) if found in REGISTRY else (name, {})
    plain, at, k = name.strip().lower().partition("@")
    plain = ALIASES.get(plain, plain)
    limited, equals, level = k.partition("=")
    if equals and (plain, limited) in LIMITS:
        value = _number(level)
        if limited == "budget":
            return LIMITS[plain, limited], {"k": value}
        percent = _number(level.removesuffix("%")) if level.endswith("%") else "none"
        return LIMITS[plain, limited], {limited: value if isinstance(percent, str) else percent / 100}
    if at and not equals and (plain in AT_K or plain in AT_K.values()) and not k.startswith(("precision", "recall")):
        return AT_K.get(plain, plain), {"k": _number(k)}
    return (plain, {}) if plain in REGISTRY and not at else (name, {})


def _parameters(name: str, rest: str) -> dict[str, Any]:
    """What follows the colon of a name."""
    pairs = [part.partition("=") for part in rest.split(",")]
    if not all(equals and key.strip() for key, equals, _ in pairs):
        raise ValueError(f"expected NAME:KEY=VALUE,KEY=VALUE as in cost:fn=50,fp=1, got {name!r}")
    return {key.strip(): _number(value.strip()) for key, _, value in pairs}


def _number(text: str) -> float | str:
    """A whole number, another number, or the text as it is."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def measures() -> dict[str, str]:
    """Names of the measures that ``measure=`` takes, each with one line on what it is.

    Returns
    -------
    dict
        From the name to the line.

    Examples
    --------
    >>> from metrimax import measures
    >>> measures()["f1"]
    'F_beta, the weighted harmonic mean of precision and recall.'
    """
    return {name: (cls.__doc__ or "").strip().splitlines()[0] for name, cls in sorted(REGISTRY.items())}


def get_measure(measure: str | Measure | Callable[..., object], **options: Any) -> Measure:
    """The measure object for a name (with its parameters), a measure, or a function of (tp, fp, fn, tn).

    Parameters
    ----------
    measure : str, measure or callable
        A name, a measure, which is returned as it is, or a function of (tp, fp, fn, tn).
    **options : object
        Parameters of the measure, where it is given by name.

    Returns
    -------
    Measure
        The measure.

    Examples
    --------
    >>> from metrimax.measure import get_measure
    >>> get_measure("fbeta", beta=2)
    FBeta(beta=2, zero_division=1.0)
    """
    if isinstance(measure, str):
        name, own = canonical(measure)
        if name not in REGISTRY:
            known = ", ".join(sorted(REGISTRY))
            before = measure.partition(":")[0]
            raise ValueError(f"unknown measure {before!r}: expected one of {known}{_perhaps(before)}")
        parameters = inspect.signature(REGISTRY[name]).parameters
        if unknown := [key for key in own if key not in parameters]:
            takes = f"{name} takes {', '.join(parameters) or 'none'}"
            raise ValueError(f"unknown parameter {unknown[0]!r} in the measure {measure!r}: {takes}")
        made: Measure = REGISTRY[name](**own | options)
        return made
    if isinstance(measure, type):
        raise TypeError(f"expected a measure, got the class {measure.__name__}: call it, as in {measure.__name__}()")
    if all(hasattr(measure, part) for part in ("name", "loss", "score", "oracle", "threshold")):
        return measure  # type: ignore[return-value]
    if callable(measure):
        _check_function(measure)
        return TableFunction(measure)
    raise TypeError(
        "expected measure as a name, a measure object or a function of (tp, fp, fn, tn), got "
        f"{type(measure).__name__}: {measure!r}"
        + ("; give one of them, and let GridSearchCV try several" if isinstance(measure, (list, tuple)) else "")
    )


def _perhaps(name: str) -> str:
    """The end of an error message: the measure that an unknown name probably means."""
    if (call := re.match(r"(\w+)[=(]", name.lower())) and call[1] in REGISTRY:
        return "; parameters follow a colon, as in fbeta:beta=2 or cost:fn=50,fp=1"
    if "@" in name:
        limits = ", ".join(f"{one}@{other}=..." for one, other in LIMITS)
        return f"; {', '.join(AT_K)} take a k, as in precision@50 or precision@1%; there are {limits}"
    plain, mean = re.subn(r"_(macro|micro|weighted|samples)$", "", name.lower().replace("-", "_").replace(" ", "_"))
    plain = plain.removesuffix("_score")
    if mean and plain in (*REGISTRY, *ALIASES):
        return f"; {plain!r} is that of the positive class, and of several classes or labels their mean (macro)"
    if plain.startswith(OF_PROBABILITIES):
        return "; measures here judge labels and rankings, no probabilities"
    if re.fullmatch(r"f[0-9.]+", plain) and plain != "f1":
        return f"; perhaps FBeta({plain[1:]}) is meant, 'fbeta:beta={plain[1:]}'"
    others = ALIASES | OTHER_NAMES
    near = difflib.get_close_matches(plain, [*REGISTRY, *others], n=1, cutoff=0.75)
    near = near or [known for known in REGISTRY if plain.startswith(f"{known}_")]
    return f"; perhaps {others.get(near[0], near[0])!r} is meant" if near else ""


def _check_function(function: Callable[..., object]) -> None:
    """Raise unless the function takes (tp, fp, fn, tn); functions of (y_true, y_pred) and scorers do not."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some compiled functions have no signature
        return
    try:
        signature.bind("tp", "fp", "fn", "tn")
        fits = "y_true" not in signature.parameters  # a scorer may take four arguments
        names = list(signature.parameters)
        if sorted(names) == sorted(CELLS) and names != CELLS:
            raise ValueError(f"expected a measure as a function of (tp, fp, fn, tn), in this order, got {signature}")
    except TypeError:
        fits = False
    if not fits:
        name = TableFunction(function).name
        raise TypeError(
            f"expected a measure as a function of (tp, fp, fn, tn), got {name} of {signature}: write it as a function "
            f"of the contingency table, or choose one of {', '.join(sorted(REGISTRY))}{_perhaps(name)}"
        )


def ranking_measure(measure: str | Measure | Callable[..., object], **options: Any) -> Measure:
    """The measure of the ranking of one group of examples; those at k, given by name, compare whole rankings.

    Parameters
    ----------
    measure : str, measure or callable
        As for `get_measure`.
    **options : object
        Parameters of the measure, where it is given by name.

    Returns
    -------
    Measure
        A measure of the ranking of one group.

    Examples
    --------
    >>> from metrimax.measure import ranking_measure
    >>> ranking_measure("precision_at_k", k=5)
    PrecisionAtK(k=5, labellings='rankings', absolute=False)
    """
    if isinstance(measure, str) and REGISTRY.get(canonical(measure)[0]) in (PrecisionAtK, RecallAtK):
        options = {"labellings": "rankings"} | options  # a group with other than k positives has no shift to learn
    made = get_measure(measure, **options)
    if not made.ranks or isinstance(made, Constrained):  # which is trained with a threshold for all
        raise ValueError(
            f"expected a measure of rankings such as ndcg, average_precision or roc_area, got {made.name}: "
            "MeasureSVC trains for it"
        )
    return made


__all__ = [
    "MCC",
    "NDCG",
    "PRBEP",
    "REGISTRY",
    "AbsoluteError",
    "AveragePrecision",
    "BalancedError",
    "CohenKappa",
    "Constrained",
    "ContingencyMeasure",
    "CostModel",
    "ErrorRate",
    "FBeta",
    "GMean",
    "Grouped",
    "Jaccard",
    "KLDivergence",
    "MinTPRTNR",
    "NormalisedKLDivergence",
    "PartialAUC",
    "PrecisionAtK",
    "PrecisionAtRecall",
    "QMean",
    "QMeasure",
    "ROCArea",
    "RecallAtBudget",
    "RecallAtK",
    "RecallAtPrecision",
    "RelativeAbsoluteError",
    "TPRAtFPR",
    "TableFunction",
    "get_measure",
    "measures",
    "ranking_measure",
]
