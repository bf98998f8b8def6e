"""
ROC area, average precision, partial area
=========================================

Three measures of rankings. Each weighs another part of the ranking, and each is trained directly.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split

from metrimax import MeasureSVC
from metrimax.measure import PartialAUC

X, y = make_classification(3000, 20, n_informative=6, n_clusters_per_class=3, weights=[0.93], random_state=3)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

# %%
# Partial area: only false positive rates up to 0.1 count. On these data the three differ by little, which is common.
_, ax = plt.subplots()
for name, measure in {
    "ROC area": "roc_area",
    "average precision": "average_precision",
    "partial area": PartialAUC(0, 0.1),
}.items():
    scores = MeasureSVC(measure, C=1.0, hinge=0.0).fit(X, y).decision_function(X_test)
    area, ap = roc_auc_score(y_test, scores), average_precision_score(y_test, scores)
    part = PartialAUC(0, 0.1).score(y_test == 1, scores)
    print(f"trained for {name:18} ROC area {area:.3f}, average precision {ap:.3f}, partial area {part:.3f}")
    ax.plot(*roc_curve(y_test, scores)[:2], label=f"trained for {name}")
ax.axvspan(0, 0.1, alpha=0.1)
ax.set(xlabel="false positive rate", ylabel="true positive rate")
ax.legend()
plt.show()
