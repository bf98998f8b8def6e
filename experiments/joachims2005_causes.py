"""Why two averages of Joachims (2005) are more than two points away: what its protocol leaves open, varied.

Rows of `experiments.joachims2005` with the protocol "variant", each a macro-average of F1. Every variant is trained
along a whole grid, on two thirds of the training set and on all of it; what a rule then chooses is looked up. The best
on the test set shows how much any rule could gain; it chooses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from experiments.data import Collection
from experiments.harness import Options, Row, Task
from experiments.holdout import decision, split, train, value

FEATURES = ("divided by the greatest", "in [0, 1]", "in [-1, 1]", "standardised", "of unit length")
WIDE = tuple(2.0**k for k in range(-6, 16))
"""All that the grid of Covertype can be extended to."""
CS, COSTS = tuple(2.0**k for k in range(-4, 7, 2)), (1.0, 2.0, 8.0, 32.0, 128.0)
INTERCEPTS = (1.0, 3.0)
"""The constant feature: with 3 its weight, the intercept, is regularised a ninth as much."""
RULES: dict[str, Callable[[Any], int]] = {
    "first": lambda equals: int(equals[0]),
    "middle": lambda equals: int(equals[(len(equals) - 1) // 2]),
    "last": lambda equals: int(equals[-1]),
}
"""Which of the settings that do equally well on the held-out part, in the order of C and, within C, of j."""
ONE, BEST = "one setting for all classes", "best on the test set"

Tables = Callable[[Any, Any, Any, Any], Any]


def tasks(options: Options, read: Callable[[str, Options, int], tuple[Collection, bool]]) -> Iterator[Task]:
    key = {"protocol": "variant", "measure": "f1"}
    for seed in range(5):
        for features in FEATURES:
            own = key | {"data": "covtype/first", "seed": seed, "method": f"direct, features {features}"}
            yield Task(own, partial(direct, features), partial(read, "covtype/first", options, seed))
    for constant in INTERCEPTS:
        own = key | {"data": "reuters", "seed": 0, "method": f"cost model, constant feature {constant:g}"}
        yield Task(own, partial(cost_model, constant), partial(read, "reuters", options, 0))


def direct(features: str, prepared: tuple[Collection, bool]) -> Iterator[Row]:
    """F1 trained directly, along all C, on features scaled in one of several ways."""

    def table(X: Any, Y: Any, X_test: Any, Y_test: Any) -> Any:
        paths = train("f1", X, Y, [WIDE] * Y.shape[1])
        return judged([decision(path, X_test) for path in paths], Y, Y_test)

    yield from rows(table, scaled(features, prepared[0]))


def cost_model(constant: float, prepared: tuple[Collection, bool]) -> Iterator[Row]:
    """The soft-margin SVM with costs, along all C and j."""

    def table(X: Any, Y: Any, X_test: Any, Y_test: Any) -> Any:
        found = []
        for j in COSTS:
            weights = [np.where(y, j, 1.0) for y in Y.T]
            paths = train("error", X, Y, [CS] * Y.shape[1], weights=weights, tol=1e-2, constant=constant)
            found.append(judged([decision(path, X_test, constant=constant) for path in paths], Y, Y_test))
        return np.stack(found, axis=1).reshape(-1, Y.shape[1])  # C first, then j

    yield from rows(table, prepared[0])


def judged(scores: list[Any], Y: Any, Y_test: Any) -> Any:
    """F1, settings by classes; not a number where a class is absent from one of the parts."""
    found = np.full((scores[0].shape[1], len(scores)), np.nan)
    for label, own in enumerate(scores):
        if Y[:, label].any():
            found[:, label] = [value("f1", Y_test[:, label], column) for column in own.T]
    return found


def rows(table: Tables, data: Collection) -> Iterator[Row]:
    """The macro-average of F1 on the test set by every rule of choice."""
    inside, outside = split(data.Y, 0)
    held = table(data.X[inside], data.Y[inside], data.X[outside], data.Y[outside])
    test = np.nan_to_num(table(*data))
    usable = np.isfinite(held).all(axis=0)
    classes = np.arange(held.shape[1])
    for name, rule in RULES.items():
        best = [rule(np.flatnonzero(own >= own.max() - 1e-12)) for own in held.T[usable]]
        chosen = np.full(len(classes), Counter(best).most_common(1)[0][0])
        chosen[usable] = best
        yield {"label": name, "value": float(test[chosen, classes].mean())}
    yield {"label": ONE, "value": float(test[held[:, usable].mean(axis=1).argmax()].mean())}
    yield {"label": BEST, "value": float(test.max(axis=0).mean())}


def scaled(features: str, data: Collection) -> Collection:
    """The features, which come divided by the greatest of the training part, brought to another scale by that part."""
    X, Y, X_test, Y_test = data
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    mean, spread = X.mean(axis=0), X.std(axis=0)
    span, spread = (np.where(width > 0, width, 1.0) for width in (span, spread))
    move: Callable[[Any], Any] = {
        "divided by the greatest": lambda part: part,
        "in [0, 1]": lambda part: (part - low) / span,
        "in [-1, 1]": lambda part: 2 * (part - low) / span - 1,
        "standardised": lambda part: (part - mean) / spread,
        "of unit length": lambda part: part / np.linalg.norm(part, axis=1)[:, None],
    }[features]
    return Collection(move(X), Y, move(X_test), Y_test)
