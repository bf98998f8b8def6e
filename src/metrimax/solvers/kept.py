"""The state of a solver run as plain arrays, and back."""

from __future__ import annotations

import numpy as np

from metrimax.protocols import Arrays, Cuts, Point


def pack(cuts: Cuts) -> Arrays:
    """Cuts and the point at which a run was, by name."""
    arrays: Arrays = {"losses": cuts.losses, "gram": cuts.gram}
    arrays |= {f"rows{k}": rows for k, rows in enumerate(cuts.rows)}
    if cuts.best is not None:
        point, risk = cuts.best
        arrays |= {"rep": point.rep, "scores": point.scores, "best": np.array([point.square, risk])}
    return arrays


def unpack(arrays: Arrays) -> Cuts:
    """What `pack` packed."""
    rows = tuple(arrays[f"rows{k}"] for k in range(len(arrays)) if f"rows{k}" in arrays)
    best = None
    if "best" in arrays:
        square, risk = arrays["best"].tolist()
        best = Point(arrays["rep"], arrays["scores"], square), risk
    return Cuts(arrays["losses"], arrays["gram"], rows, best)
