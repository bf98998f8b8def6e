"""
Ordered classes: a structured problem of one's own
==================================================

A problem of one's own: ordered classes, where a mistake costs as much as it is far away.

How far will diabetes progress in a year, in five levels? The same machine is trained for the number of levels missed by
and, as usual, for the share of right answers. There are few outputs, so that the argmaxes try all of them.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from metrimax.structured import StructuredProblem, StructuredSVM


class Levels(StructuredProblem):
    """One of K ordered levels, with a weight vector for each; ``price[y, z]`` is what z costs where y is true."""

    def __init__(self, price):
        self.price = price

    def scores(self, x, w):
        return w.reshape(len(self.price), -1) @ x

    def joint_feature(self, x, y):
        return np.outer(np.arange(len(self.price)) == y, x).ravel()

    def loss(self, y, z):
        return self.price[y, z]

    def argmax(self, x, w):
        return int(np.argmax(self.scores(x, w)))

    def loss_augmented_argmax(self, x, y, w):
        return int(np.argmax(self.scores(x, w) + self.price[y]))

    def slack_rescaled_argmax(self, x, y, w):  # only needed for rescaling="slack"
        scores = self.scores(x, w)
        return int(np.argmax(self.price[y] * (1 + scores - scores[y])))


def main():
    X, progress = load_diabetes(return_X_y=True)
    X = np.column_stack((20 * X, np.ones(len(X))))
    y = np.digitize(progress, np.quantile(progress, [0.2, 0.4, 0.6, 0.8]))
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:300], order[300:]
    distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5))).astype(float)
    _, ax = plt.subplots()
    for name, price, rescaling in (
        ("right or wrong", np.minimum(distance, 1), "margin"),
        ("distance", distance, "margin"),
        ("distance, slack rescaling", distance, "slack"),
    ):
        svm = StructuredSVM(Levels(price), C=0.1, rescaling=rescaling).fit(X[train], y[train])
        missed = Levels(distance).losses(y[test], svm.predict(X[test]))
        print(
            f"trained for {name:26} missed by {missed.mean():.3f} levels, {np.mean(missed == 0):.3f} right, "
            f"{np.mean(missed > 1):.3f} by more than one; gap {svm.gap_:.1e}"
        )
        ax.plot(np.arange(5), np.bincount(missed.astype(int), minlength=5), "o-", label=f"trained for {name}")
        assert svm.status_.ok

    ax.set(xlabel="levels missed by", ylabel="test examples")
    ax.legend()
    plt.show()


if __name__ == "__main__":
    main()
