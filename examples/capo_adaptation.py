"""
CAPO: adapting other classifiers to a measure
=============================================

A tree and naive Bayes were trained for accuracy. CAPO learns what to make of their answers, for F1.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from metrimax import CAPOClassifier

X, y = make_classification(2000, 15, n_informative=6, weights=[0.9], flip_y=0.05, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

# %%
# The auxiliaries are trained on folds, so that their answers are those on examples they have not seen.
auxiliaries = [("tree", DecisionTreeClassifier(max_depth=5, random_state=0)), ("bayes", GaussianNB())]
adapted = CAPOClassifier(auxiliaries, "f1", cv=3).fit(X, y)
f1 = {name: f1_score(y_test, model.fit(X, y).predict(X_test)) for name, model in auxiliaries}
f1["CAPO"] = f1_score(y_test, adapted.predict(X_test))
print({name: round(value, 3) for name, value in f1.items()}, f"gap {adapted.gap_:.1e}")

# %%
# F1 on the test set.
_, ax = plt.subplots()
ax.barh(list(f1), list(f1.values()))
ax.set(xlabel="F1 on the test set")
plt.show()
