"""The state of a solver run as plain arrays, and back."""

from __future__ import annotations

import numpy as np

from metrimax.protocols import Arrays, Cuts, Point


def pack(cuts: Cuts) -> Arrays:
    """Cuts and the point at which a run was, by name; nothing that can be computed from them."""
    arrays: Arrays = {"losses": cuts.losses}
    arrays |= {f"rows{k}": rows for k, rows in enumerate(cuts.rows)}
    return arrays if cuts.best is None else arrays | {"rep": cuts.best[0].rep}


def unpack(arrays: Arrays) -> Cuts:
    """What `pack` packed: the Gram matrix, and the scores and the risk of the point, are not numbers yet."""
    rows = tuple(arrays[f"rows{k}"] for k in range(len(arrays)) if f"rows{k}" in arrays)
    best = (Point(arrays["rep"], np.empty(0)), np.nan) if "rep" in arrays else None
    losses = arrays["losses"]
    return Cuts(losses, np.full((losses.size, losses.size), np.nan), rows, best)
