"""Solvers: they know risk, cuts and an inner product, and nothing of labels or data."""

from typing import Any

from metrimax.solvers.bundle import Bundle, CuttingPlane
from metrimax.solvers.dual_cd import DualCD
from metrimax.solvers.path import along

SOLVERS: dict[str, type[Any]] = {"bundle": Bundle, "cutting_plane": CuttingPlane, "dual_cd": DualCD}

__all__ = ["SOLVERS", "Bundle", "CuttingPlane", "DualCD", "along"]
