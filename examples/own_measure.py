"""
A measure of one's own
======================

A measure of one's own: any function of the contingency table, and a predicate for the tables that are admitted.

The function of tp, fp, fn, tn is a score or a loss; values beyond [0, 1] are scaled by its best and its worst value on
the sample. Its structure is looked at before training: it decides how the most violated labelling is searched for
(docs/measures.md).
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from metrimax import MeasureSVC
from metrimax.measure import TableFunction, get_measure


def net_benefit(tp, fp, fn, tn):
    """Finding a case is worth ten times what a false alarm costs."""
    return 10 * tp - fp


def fowlkes_mallows(tp, fp, fn, tn):
    """Geometric mean of precision and recall; 0 where nothing is called positive."""
    return tp / np.maximum(np.sqrt((tp + fp) * (tp + fn)), 1e-12)


def recall(tp, fp, fn, tn):
    return tp / (tp + fn)


def as_many_as_there_are(tp, fp, fn, tn):
    return fp == fn


def main():
    X, benign = load_breast_cancer(return_X_y=True)
    y = benign == 0
    X = X[:, :5]  # five of the thirty features: with all of them the classes are nearly separable
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)

    _, ax = plt.subplots()
    print(f"{'trained for':18}{'structure':>11}{'tp':>5}{'fp':>5}{'fn':>5}{'tn':>5}{'its value':>11}{'gap':>10}")
    for measure in ("error", net_benefit, fowlkes_mallows):
        model = MeasureSVC(measure, C=1.0).fit(X, y)
        called = model.predict(X_test)
        table = [int(np.sum(a & b)) for a in (y_test, ~y_test) for b in (called, ~called)]
        tp, fn, fp, tn = table
        name, structure = get_measure(measure).name, get_measure(measure).oracle(y).structure
        value = model.score(X_test, y_test)
        ax.plot(fp, fn, "o", label=f"trained for {name}")
        print(f"{name:18}{structure:>11}{tp:>5}{fp:>5}{fn:>5}{tn:>5}{value:>11.3f}{model.gap_:>10.1e}")

    # Recall over the labellings with as many predicted positives as there are: precision/recall break-even.
    own = MeasureSVC(TableFunction(recall, where=as_many_as_there_are), C=1.0, hinge=0.0, tol=1e-6).fit(X, y)
    built_in = MeasureSVC("prbep", C=1.0, hinge=0.0, tol=1e-6).fit(X, y)
    print(f"\nrecall where fp = fn: J = {own.objective_:.4f}; the built-in prbep: J = {built_in.objective_:.4f}")
    k = int(y_test.sum())
    # Such a function leaves the threshold open (predict would use 0), so the top of a batch is asked for.
    found = int(own.predict_top_k(X_test, k)[y_test].sum())
    print(f"of the {k} test examples with the highest scores, {found} are positive")

    ax.set(xlabel="false alarms on the test set", ylabel="cases missed")
    ax.legend()
    plt.show()


if __name__ == "__main__":
    main()
