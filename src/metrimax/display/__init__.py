"""Pictures, as scikit-learn's displays are. Only this room and `metrimax.cli.pictures` import matplotlib."""

from metrimax.display._models import CoefficientDisplay, ReliabilityDisplay
from metrimax.display._paths import ConvergenceDisplay, EstimateDisplay, LearningCurveDisplay, PathDisplay
from metrimax.display._thresholds import OperatingPointDisplay, ThresholdDisplay

__all__ = [
    "CoefficientDisplay",
    "ConvergenceDisplay",
    "EstimateDisplay",
    "LearningCurveDisplay",
    "OperatingPointDisplay",
    "PathDisplay",
    "ReliabilityDisplay",
    "ThresholdDisplay",
]
