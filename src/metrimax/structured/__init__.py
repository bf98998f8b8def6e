"""Structural support vector machines: outputs that are sequences, trees, clusterings, or anything of your own."""

from metrimax.structured.estimator import StructuredSVM
from metrimax.structured.problem import StructuredProblem

__all__ = ["StructuredProblem", "StructuredSVM"]
