"""
Recall at a precision that was promised
=======================================

Of the cases that are called, at least 80 in 100 must be real. As many real cases as possible are to be found.

The measure is recall where the promise is kept. A logistic loss beside it learns from every example.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import precision_recall_curve
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from metrimax import MeasureSVC, RecallAtPrecision

PROMISE = 0.8
X, y = make_classification(4000, 20, n_informative=6, n_clusters_per_class=2, weights=[0.9], random_state=0)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

# %%
# ``RecallAtPrecision`` is recall where the precision is high enough, and 0 elsewhere.
trained = MeasureSVC(RecallAtPrecision(PROMISE), C=1.0, logistic=3.0).fit(X, y)
plain = LinearSVC(C=0.01).fit(X, y)
print(f"{trained.status_}: gap {trained.gap_:.1e}")

# %%
# The threshold is placed on training scores for both: the most recall at the precision that was promised. On these data
# the plain SVM does about as well, which is common: try both.
_, ax = plt.subplots()
for name, model in {"recall at a precision": trained, "hinge loss": plain}.items():
    precision, found, threshold = precision_recall_curve(y, model.decision_function(X))
    kept = precision[:-1] >= PROMISE
    place = threshold[kept][np.argmax(found[:-1][kept])]
    called = model.decision_function(X_test) >= place
    point = (y_test[called].mean(), called[y_test == 1].mean())
    print(f"trained for {name:22} test precision {point[0]:.3f}, recall {point[1]:.3f}")
    precision, found, _ = precision_recall_curve(y_test, model.decision_function(X_test))
    (line,) = ax.plot(found, precision, label=f"trained for {name}")
    ax.plot(point[1], point[0], "o", color=line.get_color())

# %%
# Precision over recall on the test set; dots are where the thresholds came to lie. The promise is kept on the training
# sample, and on new data up to chance.
ax.axhline(PROMISE, color="grey", linestyle=":")
ax.set(xlabel="recall on the test set", ylabel="precision on the test set")
ax.legend()
plt.show()
