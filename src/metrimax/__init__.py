"""Linear classifiers trained for the measure they are judged by.

The public names load on first use, so that ``import metrimax`` imports neither scikit-learn nor matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metrimax.estimates.leave_one_out import leave_one_out
    from metrimax.estimates.xi_alpha import xi_alpha
    from metrimax.estimators.capo import CAPOClassifier
    from metrimax.estimators.capo_cv import CAPOClassifierCV
    from metrimax.estimators.ensemble import MeasureEnsemble
    from metrimax.estimators.ranker import MeasureRanker
    from metrimax.estimators.ranker_cv import MeasureRankerCV
    from metrimax.estimators.svc import MeasureSVC
    from metrimax.estimators.svc_cv import MeasureSVCCV
    from metrimax.estimators.verification import verify
    from metrimax.io.dataset import open_dataset
    from metrimax.measure import (
        NDCG,
        CostModel,
        FBeta,
        PrecisionAtK,
        PrecisionAtRecall,
        RecallAtBudget,
        RecallAtK,
        RecallAtPrecision,
        TableFunction,
        TPRAtFPR,
        measures,
    )
    from metrimax.training.path import path

__version__ = "0.2.0"

_HOME = {
    "CAPOClassifier": "metrimax.estimators.capo",
    "CAPOClassifierCV": "metrimax.estimators.capo_cv",
    "MeasureEnsemble": "metrimax.estimators.ensemble",
    "MeasureRanker": "metrimax.estimators.ranker",
    "MeasureRankerCV": "metrimax.estimators.ranker_cv",
    "MeasureSVC": "metrimax.estimators.svc",
    "MeasureSVCCV": "metrimax.estimators.svc_cv",
    "path": "metrimax.training.path",
    "leave_one_out": "metrimax.estimates.leave_one_out",
    "measures": "metrimax.measure",
    "open_dataset": "metrimax.io.dataset",
    "CostModel": "metrimax.measure",
    "FBeta": "metrimax.measure",
    "NDCG": "metrimax.measure",
    "PrecisionAtK": "metrimax.measure",
    "PrecisionAtRecall": "metrimax.measure",
    "RecallAtBudget": "metrimax.measure",
    "RecallAtK": "metrimax.measure",
    "RecallAtPrecision": "metrimax.measure",
    "TPRAtFPR": "metrimax.measure",
    "TableFunction": "metrimax.measure",
    "verify": "metrimax.estimators.verification",
    "xi_alpha": "metrimax.estimates.xi_alpha",
}

__all__ = [
    "NDCG",
    "CAPOClassifier",
    "CAPOClassifierCV",
    "CostModel",
    "FBeta",
    "MeasureEnsemble",
    "MeasureRanker",
    "MeasureRankerCV",
    "MeasureSVC",
    "MeasureSVCCV",
    "PrecisionAtK",
    "PrecisionAtRecall",
    "RecallAtBudget",
    "RecallAtK",
    "RecallAtPrecision",
    "TPRAtFPR",
    "TableFunction",
    "__version__",
    "leave_one_out",
    "measures",
    "open_dataset",
    "path",
    "verify",
    "xi_alpha",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        from difflib import get_close_matches

        near = get_close_matches(name, __all__, n=1)
        perhaps = f"; perhaps {near[0]} is meant" if near else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{perhaps}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
