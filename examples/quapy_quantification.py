"""
Quantification with QuaPy
=========================

Quantification with QuaPy: how many of a batch are positive, without SVM-perf's binary.

An SVM trained for a loss of quantification, a plain one, and both under prevalences that the training set did not have.
Needs ``pip install quapy``.
"""

import sys
from importlib.util import find_spec

if find_spec("quapy") is None:
    print("quapy is not installed: pip install quapy")
    sys.exit(0)

import matplotlib.pyplot as plt
import numpy as np
import quapy
from quapy.data import LabelledCollection
from quapy.method.aggregative import CC, newSVMAE, newSVMKLD, newSVMQ
from quapy.method.base import newOneVsAll
from quapy.model_selection import GridSearchQ
from quapy.protocol import UPP
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.svm import LinearSVC

import metrimax.compat.quapy

metrimax.compat.quapy.install()  # from now on QuaPy trains with this library wherever it would call SVM-perf
quapy.environ["SAMPLE_SIZE"] = 100

X, benign = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
training, test = LabelledCollection(X[:, [1, 4, 9]], 1 - benign).split_stratified(0.5, random_state=0)
print("breast cancer by three features, mean absolute error of the share of positives over 200 batches:")
figure, ax = plt.subplots()
for name, quantifier in {
    "plain SVM, counted": CC(LinearSVC(C=1, max_iter=100_000)),
    "SVM for Q": newSVMQ(C=1),
    "SVM for KLD": newSVMKLD(C=1),
    "SVM for AE": newSVMAE(C=1),
}.items():
    quantifier.fit(*training.Xy)
    batches = UPP(test, repeats=200, random_state=0)()
    errors = [np.abs(quantifier.predict(batch) - share).mean() for batch, share in batches]
    print(f"  {name:<20} {np.mean(errors):.3f}")
    ax.barh(name, np.mean(errors))
ax.set(xlabel="mean absolute error of the share of positives")
figure.tight_layout()
plt.show()

X, digit = load_digits(return_X_y=True)
training, validation = LabelledCollection(X / 16, digit % 3).split_stratified(0.6, random_state=0)
search = GridSearchQ(
    newOneVsAll(newSVMAE()),
    {"binary_quantifier__classifier__C": [0.1, 1, 10]},
    protocol=UPP(validation, repeats=20, random_state=0),
    error="mae",
    n_jobs=1,
).fit(*training.Xy)
print(f"digits modulo 3, one against the rest: best {search.best_params_}, error {search.best_score_:.3f}")
