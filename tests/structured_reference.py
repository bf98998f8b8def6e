"""The highest output of a structured problem and its optimum, found by looking at all outputs."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from scipy import sparse


def highest(problem, x, y, w, outputs, rescaling):
    """The highest value of a constraint, by all outputs."""
    here = w @ dense(problem.joint_feature(x, y))
    margins = [(problem.loss(y, z), w @ dense(problem.joint_feature(x, z)) - here) for z in outputs]
    return max(loss + margin if rescaling == "margin" else loss * (1 + margin) for loss, margin in margins)


def value(problem, x, y, z, w, rescaling="margin"):
    return highest(problem, x, y, w, [z], rescaling)


def dense(feature):
    return feature.toarray().ravel() if sparse.issparse(feature) else feature


def optimum(problem, examples, C):
    """The least objective, by a conic solver over all constraints; the examples are (x, y, all outputs)."""
    losses, rows, owner = [], [], []
    for i, (x, y, outputs) in enumerate(examples):
        here = dense(problem.joint_feature(x, y))
        losses += [problem.loss(y, z) for z in outputs]
        rows += [dense(problem.joint_feature(x, z)) - here for z in outputs]
        owner += [i] * len(outputs)
    w, slack = cp.Variable(len(rows[0])), cp.Variable(len(examples), nonneg=True)
    limits = [slack[owner] >= np.array(losses) + np.array(rows) @ w]
    return cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + C * cp.sum(slack)), limits).solve(solver=cp.CLARABEL)
