"""
Recall at a precision that was promised
=======================================

Of the cases that are called, at least 80 in 100 must be real. As many real cases as possible are to be found.

The measure is recall where the promise is kept. `MeasureSVCCV` places the threshold on scores out of fold, with a
margin.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_curve
from sklearn.model_selection import train_test_split

from metrimax import MeasureSVCCV, RecallAtPrecision

PROMISE = 0.8
X, y = make_classification(4000, 20, n_informative=6, n_clusters_per_class=2, weights=[0.9], random_state=0)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

# %%
# ``RecallAtPrecision`` is recall where the precision is high enough, and 0 elsewhere.
trained = MeasureSVCCV(RecallAtPrecision(PROMISE)).fit(X, y)
plain = LogisticRegression().fit(X, y)
print(f"{trained.status_}: gap {trained.gap_:.1e}")

# %%
# Logistic regression gets the best threshold on its training scores, without a margin.
precision, found, threshold = precision_recall_curve(y, plain.decision_function(X))
kept = precision[:-1] >= PROMISE
place = threshold[kept][np.argmax(found[:-1][kept])]
calls = {
    "MeasureSVCCV": (trained, trained.predict(X_test) == 1),
    "logistic regression": (plain, plain.decision_function(X_test) >= place),
}
_, ax = plt.subplots()
for name, (model, called) in calls.items():
    point = (y_test[called].mean(), called[y_test == 1].mean())
    print(f"{name:20} test precision {point[0]:.3f}, recall {point[1]:.3f}")
    precision, found, _ = precision_recall_curve(y_test, model.decision_function(X_test))
    (line,) = ax.plot(found, precision, label=name)
    ax.plot(point[1], point[0], "o", color=line.get_color())

# %%
# Precision over recall on the test set; dots are where the thresholds came to lie.
ax.axhline(PROMISE, color="grey", linestyle=":")
ax.set(xlabel="recall on the test set", ylabel="precision on the test set")
ax.legend()
plt.show()
