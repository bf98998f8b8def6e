"""F1 trained directly, beside a plain SVM and a plain SVM with a tuned threshold, on data that comes with scikit-learn.

Two problems with a rare positive class. In the first the classes overlap, so that a plain SVM, which counts errors,
calls too few examples positive; training for F1 mends that, as a tuned threshold does. In the second it does not pay:
the plain SVM has the better F1 on the test half, by its higher precision.

Every method chooses its C in the same way: the best F1 on a third of the training half, then a fit on all of that
half. What is shown is the mean over three random halvings, with the standard deviation of F1; the seconds are those of
the choice of C and the fits, per halving.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import precision_recall_fscore_support
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from metrimax import MeasureSVC

HALVINGS = 3
CS = [0.01, 0.1, 1.0, 10.0]


def methods():
    """Name, model, and what its C is called."""
    plain = LinearSVC(loss="hinge", max_iter=20_000, random_state=0)
    tuned = TunedThresholdClassifierCV(plain, scoring="f1", thresholds=25, cv=3, random_state=0)
    return [
        ("LinearSVC", plain, "C"),
        ("LinearSVC, tuned threshold", tuned, "estimator__C"),
        ("MeasureSVC(measure='f1')", MeasureSVC(measure="f1"), "C"),
    ]


def problems():
    diabetes, progression = load_diabetes(return_X_y=True)
    digits, digit = load_digits(return_X_y=True)
    return [
        ("diabetes: the fastest 15 % of progressions", diabetes, progression >= np.quantile(progression, 0.85)),
        ("digits: an 8 or not", digits, digit == 8),
    ]


def choose_C(model, name):
    """The model with its C chosen on a third of what it is given, fitted on all of it; features to unit variance."""
    third = StratifiedShuffleSplit(1, test_size=1 / 3, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model)
    return GridSearchCV(pipeline, {f"{pipeline.steps[-1][0]}__{name}": CS}, scoring="f1", cv=third)


def compare(X, y):
    halvings = list(StratifiedShuffleSplit(HALVINGS, test_size=0.5, random_state=0).split(X, y))
    print(f"  {'':28}{'F1 on the test half':>20}{'precision':>11}{'recall':>9}{'seconds':>9}")
    for title, model, name in methods():
        rows = []
        for train, test in halvings:
            began = time.perf_counter()
            search = choose_C(model, name).fit(X[train], y[train])
            seconds = time.perf_counter() - began
            predicted = search.predict(X[test])
            precision, recall, f1, _ = precision_recall_fscore_support(
                y[test], predicted, average="binary", zero_division=0
            )
            rows.append((f1, precision, recall, seconds))
        f1, precision, recall, seconds = np.mean(rows, axis=0)
        print(f"  {title:28}{f1:>12.3f} ± {np.std(rows, axis=0)[0]:.3f}{precision:>11.3f}{recall:>9.3f}{seconds:>9.2f}")
    return search.best_estimator_[-1]


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)  # LinearSVC at the greatest C; MeasureSVC says it by its status
    for title, X, y in problems():
        print(f"{title} ({len(y)} examples, {y.mean():.0%} positive)\n")
        model = compare(X, y)
        print(f"\n  The last of the classifiers trained for F1, at C = {model.C:g} (kappa = {model.price_:.2f}):")
        print(f"  objective {model.objective_:.4f}, no classifier has less than {model.dual_bound_:.4f}; ", end="")
        print(f"gap {model.gap_:.1e} in units of F1")
        print(f"  {model.n_iter_} iterations, {model.n_passes_} passes over the data; {model.status_}\n")


if __name__ == "__main__":
    main()
