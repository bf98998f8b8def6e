"""
Several labels at a time
========================

A label indicator matrix: every column is trained for F1, all in lockstep over one matrix X.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from metrimax import MeasureSVC

X, Y = make_multilabel_classification(1500, n_features=30, n_classes=8, n_labels=1, random_state=0)
X = X / X.std(axis=0)
X, X_test, Y, Y_test = train_test_split(X, Y, test_size=0.5, random_state=0)

# %%
# A plain SVM for each label, and the same trained for F1.
plain = OneVsRestClassifier(LinearSVC(C=0.01)).fit(X, Y)
trained = MeasureSVC("f1", C=1.0).fit(X, Y)
f1 = {
    name: f1_score(Y_test, model.predict(X_test), average=None, zero_division=0)
    for name, model in (("LinearSVC", plain), ("MeasureSVC", trained))
}
print({name: round(float(np.mean(values)), 3) for name, values in f1.items()}, "mean F1 on the test set")

# %%
# The rarer the label, the more the plain SVM leaves it out.
_, ax = plt.subplots()
order = np.argsort(Y.mean(axis=0))
for name, values in f1.items():
    ax.plot(Y.mean(axis=0)[order], values[order], "o", label=name)
ax.set(xlabel="share of positives", ylabel="F1 on the test set")
ax.legend()
plt.show()
