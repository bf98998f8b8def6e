"""
Supervised clustering
=====================

Learn from clustered sets how to cluster new ones: images of digits, tested on digits that training never showed."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from metrimax.structured import SupervisedClustering


def sets(classes, n, rng):
    """Sets of ten images of three digits, as 4 x 4 means of pixels."""
    images, digit = load_digits(return_X_y=True)
    images = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16) / 16
    chosen = [np.isin(digit, rng.choice(classes, size=3, replace=False)) for _ in range(n)]
    members = [rng.choice(np.flatnonzero(mask), size=10, replace=False) for mask in chosen]
    return [images[m] for m in members], [digit[m] for m in members]


def main():
    rng = np.random.default_rng(0)
    X, y = sets(range(5), 20, rng)
    X_test, y_test = sets(range(5, 10), 50, rng)
    apart = np.mean([np.mean(np.subtract.outer(c, c)[np.triu_indices(len(c), 1)] != 0) for c in y_test])
    print(f"pairs right if all are kept apart: {apart:.3f}")
    _, ax = plt.subplots()
    ax.barh("all apart", apart)
    for method in ("greedy", "relaxed"):
        model = SupervisedClustering(method=method, C=100.0).fit(X, y)
        print(f"{method:>8}: training {model.score(X, y):.3f}, test {model.score(X_test, y_test):.3f}; {model.status_}")
        ax.barh(method, model.score(X_test, y_test))

    ax.set(xlabel="pairs right, on digits that training never showed")
    plt.show()


if __name__ == "__main__":
    main()
