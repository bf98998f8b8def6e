"""Solvers: they know risk, cuts and an inner product, and nothing of labels or data."""

from typing import Any

from metrimax.solvers.auto import Auto, side_by_side
from metrimax.solvers.bundle import Bundle, CuttingPlane, Hybrid
from metrimax.solvers.cut_model import kept_by_weights
from metrimax.solvers.dual_cd import DualCD
from metrimax.solvers.smooth import AGM, LBFGS

SOLVERS: dict[str, type[Any]] = {
    "auto": Auto,
    "bundle": Bundle,
    "cutting_plane": CuttingPlane,
    "hybrid": Hybrid,
    "lbfgs": LBFGS,
    "agm": AGM,
    "dual_cd": DualCD,
}

__all__ = [
    "AGM",
    "LBFGS",
    "SOLVERS",
    "Auto",
    "Bundle",
    "CuttingPlane",
    "DualCD",
    "Hybrid",
    "kept_by_weights",
    "side_by_side",
]
