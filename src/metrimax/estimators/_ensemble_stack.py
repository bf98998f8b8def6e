"""How the members of an ensemble become one score: calibrated log-odds, weighted.

For one label, with z_m the score of member m out of fold::

    calibrated:  c_m = slope_m z_m + offset_m         one logistic fit per member
    combined:    s = sum_m weight_m c_m + bias        weight >= 0, minimises
                                                      sum_i log(1 + exp(-y_i s_i)) + SHRINKAGE/2 |weight - 1/M|^2

Weights that may not be negative, near equal where the data do not say otherwise, are what holds on other data: members
are alike, and the difference of two of them is mostly noise.

Log-loss prefers a member with good probabilities to an overconfident one that ranks better. So a measure of rankings
may ask for more of one member (`choose_stack`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from metrimax.protocols import Labels, Vector

SHRINKAGE = 5.0
"""Of the weights towards equal ones. From 2 to 10 nothing changes by more than 0.1 points on average over 10 tables;
100 costs 0.7 points of F1, and equal weights 1.4.
"""

SMOOTHING = 0.01
"""The share of a member's probability that is replaced by the rate of the class, so that a forest's 0 and 1 have
log-odds. From 0.005 to 0.05 nothing changes by more than 0.1 points of average precision on average over 10 tables; but
0.05 costs a point where boosting is right to be sure, and 0.005 two where there are 50 positives.
"""

MIXES = (0.5, 1.0)
"""Shares that `choose_stack` may give to one member."""


class Stack(NamedTuple):
    """The score of an ensemble for one label: ``scores @ coef + intercept`` of what the members say."""

    slopes: Vector
    offsets: Vector
    weights: Vector
    bias: float

    @property
    def coef(self) -> Vector:
        """What the scores of the members are multiplied with."""
        product: Vector = self.slopes * self.weights
        return product

    @property
    def intercept(self) -> float:
        return float(self.offsets @ self.weights) + self.bias

    def __call__(self, scores: Vector) -> Vector:
        """The log-odds of the label from the scores (n, M) of the members."""
        combined: Vector = scores @ self.coef + self.intercept
        return combined


def log_odds(probability: Vector, rate: float) -> Vector:
    """Log-odds of a member's probabilities, pulled in towards the rate of the class."""
    towards = min(max(rate, 1e-6), 1 - 1e-6)  # a class that is not there has log-odds, too
    p = (1 - SMOOTHING) * np.clip(probability, 0.0, 1.0) + SMOOTHING * towards
    odds: Vector = np.log(p) - np.log1p(-p)
    return odds


def fit_stack(scores: Vector, y: Labels, sample_weight: Vector) -> Stack:
    """Calibrate and weight members by their scores (n, M) on examples that they were not trained on."""
    n_members = scores.shape[1]
    if y.all() or not y.any():
        # nothing to learn, and the constant that the class is
        zero = np.zeros(n_members)
        return Stack(zero, zero, np.full(n_members, 1 / n_members), 10.0 if y.all() else -10.0)
    slopes, offsets = np.ones(n_members), np.zeros(n_members)
    for m in range(n_members):
        scale = float(np.std(scores[:, m])) or 1.0
        coef, offset = _logistic_fit(scores[:, [m]] / scale, y, sample_weight, np.array([scale]), 1 / scale**2)
        slopes[m], offsets[m] = coef[0] / scale, offset
    calibrated = scores * slopes + offsets
    weights, bias = _logistic_fit(calibrated, y, sample_weight, np.full(n_members, 1 / n_members), SHRINKAGE)
    return Stack(slopes, offsets, weights, bias)


def choose_stack(
    scores: Vector,
    y: Labels,
    sample_weight: Vector,
    value: Callable[[Labels, Vector, Vector], float],
    parts: Sequence[npt.NDArray[np.intp]],
) -> Stack:
    """The stack of `fit_stack`, or one with more of a single member if ``value`` is higher so in each of the parts.

    ``value`` is a measure of rankings, of labels, scores and weights. Each of the ``parts`` of the rows is judged by a
    stack that was learnt from the others. By chance alone, one candidate is better in all of five parts once in 32
    times.
    """
    plain = fit_stack(scores, y, sample_weight)
    n_members = scores.shape[1]
    if n_members < 2 or any(y[part].all() or not y[part].any() for part in parts):
        return plain
    candidates = [(0.0, 0), *((share, m) for m in range(n_members) for share in MIXES)]
    values = np.empty((len(candidates), len(parts)))
    for k, part in enumerate(parts):
        others = np.concatenate([other for j, other in enumerate(parts) if j != k])
        learnt = fit_stack(scores[others], y[others], sample_weight[others])
        for c, (share, m) in enumerate(candidates):
            values[c, k] = value(y[part], _mixed(learnt, share, m)(scores[part]), sample_weight[part])
    better = (values > values[0]).all(axis=1)
    if not better.any():
        return plain
    stack = _mixed(plain, *candidates[int(np.argmax(np.where(better, values.mean(axis=1), -np.inf)))])
    # as probable as it was: the mixture is calibrated again
    [scale], bias = _logistic_fit(stack(scores)[:, None], y, sample_weight, np.ones(1), SHRINKAGE)
    return stack._replace(weights=stack.weights * scale, bias=stack.bias * scale + bias)


def _mixed(stack: Stack, share: float, member: int) -> Stack:
    """The stack with a share of its weight given to one member."""
    weights = (1 - share) * stack.weights
    weights[member] += share * stack.weights.sum()
    return stack._replace(weights=weights)


def _logistic_fit(Z: Vector, y: Labels, weight: Vector, centre: Vector, penalty: float) -> tuple[Vector, float]:
    """Non-negative coefficients and the free intercept of a logistic regression shrunk towards ``centre``."""
    sign = np.where(y, 1.0, -1.0)

    def objective(point: Vector) -> tuple[float, Vector]:
        margin = sign * (Z @ point[:-1] + point[-1])
        away = point[:-1] - centre
        value = float(weight @ np.logaddexp(0.0, -margin)) + penalty / 2 * float(away @ away)
        pull = -weight * sign * (0.5 - 0.5 * np.tanh(0.5 * margin))
        return value, np.append(Z.T @ pull + penalty * away, pull.sum())

    bounds = [(0.0, None)] * Z.shape[1] + [(None, None)]
    found = minimize(objective, np.append(centre, 0.0), jac=True, method="L-BFGS-B", bounds=bounds)
    return found.x[:-1], float(found.x[-1])
