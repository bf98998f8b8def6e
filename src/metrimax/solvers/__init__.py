"""Solvers: they know risk, cuts and an inner product, and nothing of labels or data."""

from metrimax.solvers.bundle import Bundle, CuttingPlane
from metrimax.solvers.path import along

SOLVERS = {"bundle": Bundle, "cutting_plane": CuttingPlane}

__all__ = ["SOLVERS", "Bundle", "CuttingPlane", "along"]
