"""
Xi-alpha against a hold-out
===========================

An estimate of F1 from one fit on all data, beside what a test set says, along C.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from metrimax import MeasureSVC, xi_alpha

X, benign = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(scale(X), benign == 0, test_size=0.5, stratify=benign, random_state=0)

# %%
# Xi-alpha needs the dual solution of the plain SVM, which is ``measure="error"`` with the solver ``dual_cd``.
Cs = np.logspace(-3, 1, 7)
estimate, test = [], []
for C in Cs:
    model = MeasureSVC("error", C=C, solver="dual_cd").fit(X, y)
    estimate.append(xi_alpha(model, X, y).f1)
    test.append(f1_score(y_test, model.predict(X_test)))
    print(f"C {C:7.3f}: estimate {estimate[-1]:.3f}, test {test[-1]:.3f}")

# %%
# The estimate is pessimistic, the more so the smaller C is: trust it to be safe, not to be exact.
_, ax = plt.subplots()
ax.semilogx(Cs, estimate, "o-", label="xi-alpha, no test set")
ax.semilogx(Cs, test, "s-", label="test set")
ax.set(xlabel="C", ylabel="F1")
ax.legend()
plt.show()
