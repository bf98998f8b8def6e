"""
All plots on one page
=====================

A threshold curve, the operating point, convergence, the path over C, coefficients by name, and the reliability of
probabilities. Each display draws a fitted model (``from_estimator``) and lends its axes (``ax=``).
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import train_test_split

from metrimax import MeasureSVC, MeasureSVCCV
from metrimax.display import (
    CoefficientDisplay,
    ConvergenceDisplay,
    OperatingPointDisplay,
    PathDisplay,
    ReliabilityDisplay,
    ThresholdDisplay,
)

rng = np.random.default_rng(0)
names = ["amount", "age", "distance", "weekday", "visits", "rebate"]
X = pd.DataFrame(rng.normal(size=(4000, 6)), columns=names)
risk = X @ [1.5, -1.0, 0.8, 0.0, 0.3, -0.4] + rng.logistic(size=4000)
y = np.where(risk > np.quantile(risk, 0.9), "fraud", "a payment")
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = MeasureSVCCV("f1").fit(X, y)

# %%
# **The measure over thresholds.** The model is trained again on each of five folds. The band spans the folds: within it
# the threshold could as well be elsewhere.
ThresholdDisplay.from_estimator(model, X, y, cv=5)
plt.show()

# %%
# **Precision and recall**, with the point at which the model works.
OperatingPointDisplay.from_estimator(model, X_test, y_test)
plt.show()

# %%
# **The path over C**: what the folds say of every candidate, with the C that was chosen.
PathDisplay.from_estimator(model)
plt.show()

# %%
# **Convergence**: the objective falls, the proven bound rises, and the fit ends when they meet.
ConvergenceDisplay.from_estimator(MeasureSVC("f1", C=1.0, tol=1e-4, solver="bundle").fit(X, y))
plt.show()

# %%
# **Coefficients** carry the names of the columns.
CoefficientDisplay.from_estimator(model)
plt.show()

# %%
# **Reliability.** Scores are no probabilities; scikit-learn's calibration makes them so.
calibrated = CalibratedClassifierCV(MeasureSVC("f1"), cv=5).fit(X, y)
ReliabilityDisplay.from_estimator(calibrated, X_test, y_test)
plt.show()
