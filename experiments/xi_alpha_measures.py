"""Leave-one-out of models trained for F1 and others: by retraining, by xi-alpha's rule, by the cuts without training.

Problem       min J(w) = 1/2 |w|^2 + C kappa n R(w), with multipliers m_k of cuts at labellings z_k, so that
              ``w = sum_i y_i alpha_i x_i``, ``alpha_i = C kappa m`` summed over the labellings that flip example i.
Without i     J' is the same for the n - 1 others, with its own kappa and n. The labellings z_k without i are labellings
              of these: with the same shares they give a point v and a lower bound of J'. The oracle gives J'(v).
Proof         ``|w' - v|^2 <= 2 (J'(v) - bound)``, so the sign of <w', x_i> is that of <v, x_i> where
              ``<v, x_i>^2 > 2 |x_i|^2 (J'(v) - bound)``, for v as for any other point. Nothing is trained anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from experiments.harness import Row
from metrimax import MeasureSVC
from metrimax.measure import get_measure
from metrimax.protocols import Labels, Measure, Vector

MEASURES = ("error", "balanced_error", "f1", "gmean")
CS = (0.1, 1.0)


class Cuts(NamedTuple):
    """What a fit proves its bound with: labellings of all examples, and their shares, which sum to 1 at most."""

    flips: Labels
    shares: Vector


def measures(part: Any, category: str, size: int) -> Iterator[Row]:
    """On the first documents of a training half: all the estimates beside retraining and a test set."""
    y, y_test = part.labels[category][0][:size], part.labels[category][1]
    X = np.column_stack([part.X[:size].toarray(), np.ones(size)])  # the intercept is a feature like any other
    for name in MEASURES:
        for C in CS:
            measure = get_measure(name)
            model = _machine(measure, C).fit(X, y)
            scores = part.X_test @ model.coef_[0][:-1] + model.coef_[0][-1]
            row = {"category": category, "n": size, "method": name, "C": C}
            yield row | {"holdout": measure.score(y_test, scores)} | _one(measure, model, X, y, C)


def _machine(measure: Measure, C: float) -> MeasureSVC:
    return MeasureSVC(
        measure, C=C, hinge=0, threshold="trained", fit_intercept=False, tol=1e-5, certificate=True, n_threads=1
    )


def _one(measure: Measure, model: MeasureSVC, X: Vector, y: Labels, C: float) -> Row:
    w, sign, squares = model.coef_[0], np.where(y, 1.0, -1.0), np.sum(X**2, axis=1)
    advantage = sign * (X @ w)
    truth = np.array([_without(measure, X, y, C, t) for t in range(len(y))])
    cuts = _cuts(model, measure, X, y)
    alpha = C * model.price_ * (cuts.shares @ cuts.flips)
    counted = {rho: advantage <= rho * alpha * squares for rho in (1, 2)}
    known = np.array([_decided(measure, X, y, C, t, cuts, w) for t in range(len(y))])
    assert np.array_equal(known[known != 0] < 0, truth[known != 0])  # what is proven is what retraining gives
    return {
        "training": _score(measure, y, advantage <= 0),
        "loo": _score(measure, y, truth),
        "rho1": _score(measure, y, counted[1]),
        "rho2": _score(measure, y, counted[2]),
        "mistakes": int(truth.sum()),
        "missed_rho1": int((truth & ~counted[1]).sum()),
        "missed_rho2": int((truth & ~counted[2]).sum()),
        "counted_rho1": int(counted[1].sum()),
        "counted_rho2": int(counted[2].sum()),
        "decided": int(np.count_nonzero(known)),
    }


def _without(measure: Measure, X: Vector, y: Labels, C: float, t: int) -> bool:
    """Whether the model trained on all the others gets example t wrong."""
    rest = np.arange(len(y)) != t
    model = _machine(measure, C).set_params(certificate=False).fit(X[rest], y[rest])
    return bool((X[t] @ model.coef_[0] > 0) != y[t])


def _score(measure: Measure, y: Labels, mistaken: Labels) -> float:
    return measure.score(y, np.where(mistaken ^ ~y, -1.0, 1.0))


def _cuts(model: MeasureSVC, measure: Measure, X: Vector, y: Labels) -> Cuts:
    """The labellings at the points of the certificate."""
    assert model.certificate_ is not None
    found = model.certificate_[0]
    assert found is not None
    points, shares = found
    oracle = measure.oracle(y)
    return Cuts(np.array([oracle(X @ point).slope != 0 for point in points]), np.asarray(shares))


def _decided(measure: Measure, X: Vector, y: Labels, C: float, t: int, cuts: Cuts, w: Vector) -> int:
    """1 where example t is proven to stay right without it, -1 where it is proven to be wrong, 0 where neither is.

    By the point of the cuts, or by the solution with the example, ``w``.
    """
    rest = np.arange(len(y)) != t
    X_rest, y_rest, sign = X[rest], y[rest], np.where(y[rest], 1.0, -1.0)
    oracle = measure.oracle(y_rest)
    weight = C * oracle.price * oracle.n
    flips = cuts.flips[:, rest]
    losses = np.array([measure.loss(y_rest, y_rest ^ flip) for flip in flips])
    v = weight / oracle.n * X_rest.T @ (sign * (cuts.shares @ flips))
    bound = weight * float(cuts.shares @ losses) - float(v @ v) / 2
    for point in (v, w):
        cut = oracle(X_rest @ point)
        value = float(point @ point) / 2 + weight * (cut.loss + float(cut.slope @ (X_rest @ point)))
        score = float(X[t] @ point) * (1 if y[t] else -1)
        if score**2 > 2 * float(X[t] @ X[t]) * max(0.0, value - bound) + 1e-12:
            return 1 if score > 0 else -1
    return 0
