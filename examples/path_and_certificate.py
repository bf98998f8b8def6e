"""
A path over C, and its certificate
==================================

A path over C with a certificate for each point, and what the certificate and the history say."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from metrimax import MeasureSVC, path


def main():
    X, digit = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, digit == 9, test_size=0.5, stratify=digit == 9, random_state=0)

    # Cuts of the risk do not depend on C, so every point of the path starts from those of the points before it.
    result = path(X, y, measure="f1", Cs=np.logspace(-3, 2, 6))
    scores = result.decision_function(X_test)
    scale = result.Cs * result.price * len(y)  # C kappa n: J in units of the measure
    print("       C   J / (C kappa n)   lower bound       gap   passes   test F1   status")
    for k, solution in enumerate(result.solutions):
        f1 = f1_score(y_test, scores[:, k] > 0)
        print(
            f"{result.Cs[k]:8g}{solution.objective / scale[k]:>18.5f}{solution.bound / scale[k]:>14.5f}"
            f"{solution.gap:>10.1e}{solution.n_passes:>9.1f}{f1:>10.3f}   {solution.status.name}"
        )

    # One fit, at a tolerance of its own. Each record of the history is in units of the measure.
    model = MeasureSVC("f1", C=1.0, tol=1e-4, hinge=0.0, intercept_scaling=1.0).fit(X, y)
    print("\niteration   passes   objective     bound       gap   cuts")
    for record in model.history_[:: max(1, len(model.history_) // 8)] + model.history_[-1:]:
        print(
            f"{record.iteration:>9}{record.n_passes:>9.1f}{record.objective:>12.5f}{record.bound:>10.5f}"
            f"{record.gap:>10.1e}{record.n_cuts:>7}"
        )
    print(f"\n{model.status_}; {model.n_support_} cuts carry the solution")

    # The objective needs no trust: J(w) = 1/2 |w|^2 + C kappa n R(w), the intercept being one of the weights.
    w = np.append(model.coef_, model.trained_intercept_ / model.intercept_scaling)
    risk = (model.objective_ - w @ w / 2) / (model.C * model.price_ * len(y))
    print(f"F1 loss on the training sample {1 - model.score(X, y):.4f}, at most the risk R(w) = {risk:.4f}")

    _, ax = plt.subplots()
    passes = [record.n_passes for record in model.history_]
    ax.plot(passes, [record.objective for record in model.history_], label="objective")
    ax.plot(passes, [record.bound for record in model.history_], label="proven lower bound")
    ax.set(xlabel="passes over the data", ylabel="units of the measure")
    ax.legend()
    plt.show()


if __name__ == "__main__":
    main()
