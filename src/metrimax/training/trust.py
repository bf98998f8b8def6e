"""The state of a run as arrays, and checks of a state from a file against the data.

Everything that can be computed is computed again: risk and scores of the saved point, lengths, the Gram matrix of the
cuts. Cuts are compared with the risk at scores of several sizes, and the images of slopes by their products with a
random vector. Of the numbers in a file only counts are used, never a bound or an objective. The schedule of a solver,
its quasi-Newton pairs among it, decides where the run looks next, and nothing else.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metrimax import _kernels
from metrimax._validation import warn
from metrimax.protocols import Arrays, Ask, Asking, Cuts, Design, Oracle, Point, Vector
from metrimax.solvers import kept_by_weights

ROUNDING = 1e-8
"""The share of their size by which sums in another order may differ."""


def pack(cuts: Cuts) -> Arrays:
    """The cuts and the current point of a run as named arrays, without what can be computed from them."""
    arrays: Arrays = {"losses": cuts.losses}
    arrays |= {f"rows{k}": rows for k, rows in enumerate(cuts.rows)}
    arrays |= {f"schedule_{name}": values for name, values in cuts.schedule.items()}
    return arrays if cuts.best is None else arrays | {"rep": cuts.best[0].rep}


def unpack(arrays: Arrays) -> Cuts:
    """Undo `pack`; the Gram matrix, and scores and risk of the point, are NaN until they are computed."""
    rows = tuple(arrays[f"rows{k}"] for k in range(len(arrays)) if f"rows{k}" in arrays)
    best = (Point(arrays["rep"], np.empty(0)), np.nan) if "rep" in arrays else None
    losses, name = arrays["losses"], "schedule_"
    schedule = {key.removeprefix(name): values for key, values in arrays.items() if key.startswith(name)}
    schedule = {key: np.ascontiguousarray(values) for key, values in schedule.items() if values.dtype == np.float64}
    if schedule.get("pace", losses).ndim != 1 or schedule.get("pairs", losses[np.newaxis]).ndim != 2:
        schedule = {}
    return Cuts(losses, np.full((losses.size, losses.size), np.nan), rows, best, schedule=schedule)


def risk_at(oracle: Oracle, scores: Vector) -> float:
    """The risk of scores."""
    cut = oracle(scores)
    return cut.loss + _kernels.dot(cut.slope, scores)


def above(bound: float, objective: float) -> bool:
    """Whether a bound is above the objective, rounding aside."""
    return not bound <= objective + ROUNDING * max(1e-3, abs(objective))


def believed(arrays: Arrays, oracle: Oracle, design: Design) -> Asking[Cuts | None]:
    """The state, checked against the data; None, with a warning, where it does not fit them."""
    try:
        cuts = unpack(arrays)
        _check_shapes(cuts, design)
        if len(cuts.losses) == 0 and cuts.best is None:
            return cuts
        return (yield from _checked(cuts, oracle, design))
    except (ValueError, KeyError) as error:
        warn(f"the state that a checkpoint kept is not one of these data ({error}): the fit starts anew")
        return None


def _check_shapes(cuts: Cuts, design: Design) -> None:
    """Raise ValueError for shapes that no run can have saved."""
    n, p = design.shape
    if len(cuts.losses) == 0 and cuts.best is None:  # the multipliers of coordinate descent, and their upper bounds
        if [rows.shape for rows in cuts.rows] != [(n,)] * 2 or (cuts.rows[0] < 0).any():
            raise ValueError("expected a multiplier of 0 or more for each example, and its upper bound")
        return
    shapes = [(len(cuts.losses), p)] if kept_by_weights(design) else [(len(cuts.losses), n)] * 2
    point = None if cuts.best is None else cuts.best[0].rep.shape
    if cuts.losses.ndim != 1 or [rows.shape for rows in cuts.rows] != shapes or point != shapes[0][1:]:
        raise ValueError(f"expected cuts of shape {shapes[0]} and a point, got {[rows.shape for rows in cuts.rows]}")


def _checked(cuts: Cuts, oracle: Oracle, design: Design) -> Asking[Cuts]:
    """The cuts with their Gram matrix and point computed again; ValueError where a cut is above the risk."""
    assert cuts.best is not None
    rep, rows = cuts.best[0].rep, cuts.rows[0]
    mean = rows.mean(axis=0) if len(rows) else np.zeros_like(rep)
    by_weights = kept_by_weights(design)
    if by_weights:
        scores, along = yield Ask("scores", [rep, mean])
        square, gram = _kernels.dot(rep, rep), rows @ rows.T
    else:
        secret = np.random.default_rng().normal(size=len(rep))
        pulled = yield Ask("pull", [rep, mean, secret])
        scores, along, image = yield Ask("scores", pulled)
        square, gram = _kernels.dot(rep, scores), rows @ cuts.rows[1].T
        if not _images(rows, cuts.rows[1], secret, image):
            raise ValueError("its vectors are not products with X")
        cuts = replace(cuts, schedule=_checked_schedule(cuts.schedule, secret, image))
    size = float(np.sqrt(np.mean(along * along)))
    points = [(rep, scores, 1.0), (rep, scores, 10.0)]
    points += [(mean, along, share / size) for share in (-1.0, 1.0, 10.0) if size > 0]
    risk = np.inf
    for vector, own, share in [(rep, scores, 0.0), *points]:
        here = risk_at(oracle, share * own)
        risk = here if (vector is rep and share == 1) else risk
        planes = rows @ (share * vector) if by_weights else rows @ (share * own)
        slack = ROUNDING * (np.abs(cuts.losses) + np.abs(planes) + abs(here) + 1e-3)
        if not (cuts.losses + planes <= here + slack).all():
            raise ValueError("a cut is above the risk")
    return replace(cuts, gram=(gram + gram.T) / 2, best=(Point(rep, scores, square), risk))


def _images(rows: Vector, images: Vector, secret: Vector, image: Vector) -> bool:
    """Whether the images of rows have the products with a vector that the rows have with its image."""
    lengths = np.linalg.norm(images, axis=1) * np.linalg.norm(secret)
    lengths += np.linalg.norm(rows, axis=1) * np.linalg.norm(image)
    return bool((np.abs(images @ secret - rows @ image) <= ROUNDING * lengths).all())


def _checked_schedule(schedule: Arrays, secret: Vector, image: Vector) -> Arrays:
    """The schedule, without quasi-Newton pairs whose images are not theirs: a run can do without its directions."""
    pairs = schedule.get("pairs", np.empty((0, len(secret))))
    half = len(pairs) // 2
    if pairs.shape == (2 * half, len(secret)) and _images(pairs[:half], pairs[half:], secret, image):
        return schedule
    return {name: values for name, values in schedule.items() if name != "pairs"}
