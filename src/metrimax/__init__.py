"""Linear classifiers trained for the measure they are judged by.

The public names load on first use, so that ``import metrimax`` imports neither scikit-learn nor matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metrimax.c_path import path
    from metrimax.capo import CAPOClassifier
    from metrimax.cv import MeasureSVCCV
    from metrimax.estimation import leave_one_out, xi_alpha
    from metrimax.estimators import MeasureSVC
    from metrimax.io.dataset import open_dataset
    from metrimax.measure import CostModel, FBeta, PrecisionAtK, RecallAtK, measures
    from metrimax.ranker import MeasureRanker

__version__ = "0.1.0"

_HOME = {
    "CAPOClassifier": "metrimax.capo",
    "MeasureRanker": "metrimax.ranker",
    "MeasureSVC": "metrimax.estimators",
    "MeasureSVCCV": "metrimax.cv",
    "path": "metrimax.c_path",
    "leave_one_out": "metrimax.estimation",
    "measures": "metrimax.measure",
    "open_dataset": "metrimax.io.dataset",
    "FBeta": "metrimax.measure",
    "PrecisionAtK": "metrimax.measure",
    "RecallAtK": "metrimax.measure",
    "CostModel": "metrimax.measure",
    "xi_alpha": "metrimax.estimation",
}

__all__ = [
    "CAPOClassifier",
    "CostModel",
    "FBeta",
    "MeasureRanker",
    "MeasureSVC",
    "MeasureSVCCV",
    "PrecisionAtK",
    "RecallAtK",
    "__version__",
    "leave_one_out",
    "measures",
    "open_dataset",
    "path",
    "xi_alpha",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
