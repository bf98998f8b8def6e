"""The highest output of a structured problem, found by looking at all of them."""

from __future__ import annotations

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
