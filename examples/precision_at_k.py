"""
Precision at k: only so many can be looked at
=============================================

A team can look at 50 cases a day. What counts is how many of the 50 with the highest scores are real.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from metrimax import MeasureSVCCV, PrecisionAtK

X, y = make_classification(4000, 20, n_informative=5, n_clusters_per_class=3, weights=[0.95], random_state=1)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

# %%
# ``predict_top_k`` calls exactly k examples of a batch positive.
trained = MeasureSVCCV(PrecisionAtK(50), cv=3).fit(X, y)
found = int(y_test[trained.predict_top_k(X_test, 50) == 1].sum())
print(f"of the 50 test cases with the highest scores {found} are real; gap {trained.gap_:.1e}")

# %%
# Precision among the first k, for every k, beside a plain SVM. On these data the plain one does as well: try both, and
# let a hold-out decide.
_, ax = plt.subplots()
k = np.arange(1, 201)
for name, model in {"precision at 50": trained, "hinge loss": LinearSVC(C=0.01).fit(X, y)}.items():
    ranked = y_test[np.argsort(-model.decision_function(X_test), kind="stable")]
    ax.plot(k, np.cumsum(ranked)[:200] / k, label=f"trained for {name}")
ax.axvline(50, color="grey", linestyle=":")
ax.set(xlabel="k", ylabel="precision among the first k")
ax.legend()
plt.show()
