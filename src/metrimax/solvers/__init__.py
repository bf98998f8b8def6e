"""Solvers: they know risk, cuts and an inner product, and nothing of labels or data."""

from metrimax.solvers.bundle import Bundle, CuttingPlane
from metrimax.solvers.hybrid import Hybrid
from metrimax.solvers.path import along
from metrimax.solvers.smooth import AGM, LBFGS

SOLVERS = {"bundle": Bundle, "cutting_plane": CuttingPlane, "hybrid": Hybrid, "lbfgs": LBFGS, "agm": AGM}
AUTO = "hybrid"
"""What solver="auto" means, by the measurements of docs/results/solvers.md."""

__all__ = ["AGM", "AUTO", "LBFGS", "SOLVERS", "Bundle", "CuttingPlane", "Hybrid", "along"]
