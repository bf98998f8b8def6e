"""The state of a solver run as plain arrays, and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metrimax.protocols import Arrays, Cuts
from metrimax.solvers.bundle import _Best
from metrimax.solvers.model import Point


def pack(cuts: Cuts) -> Arrays:
    """Cuts and the point at which a run was, by name."""
    arrays: Arrays = {"losses": cuts.losses, "gram": cuts.gram}
    arrays |= {f"rows{k}": rows for k, rows in enumerate(cuts.rows)}
    if isinstance(cuts.best, _Best):
        point = cuts.best.point
        arrays |= {"rep": point.rep, "scores": point.scores, "best": np.array([point.square, cuts.best.risk])}
    elif isinstance(cuts.best, np.ndarray):
        arrays["alpha"] = cuts.best
    return arrays


def unpack(arrays: Arrays) -> Cuts:
    """What `pack` packed."""
    rows = tuple(arrays[f"rows{k}"] for k in range(len(arrays)) if f"rows{k}" in arrays)
    cuts = Cuts(arrays["losses"], arrays["gram"], rows)
    if "alpha" in arrays:
        return replace(cuts, best=arrays["alpha"])
    if "best" in arrays:
        square, risk = arrays["best"].tolist()
        # the objective is computed anew, for the C of the run that starts here
        return replace(cuts, best=_Best(Point(arrays["rep"], arrays["scores"], square), risk, 0.0))
    return cuts
