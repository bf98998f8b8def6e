"""
Kernels: F1 on classes that no line separates
=============================================

A rare class inside a ring. The same measure, trained with a linear function and with a Gaussian kernel.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrimax import MeasureSVC

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 2))
y = np.hypot(*X.T) + 0.15 * rng.normal(size=len(X)) < 0.5

# %%
# A line finds nothing better than equal scores for all, of which the library warns.
# Exact Gram matrices are used while they fit into ``cache_size``; beyond it a few examples span the map.
models = {name: MeasureSVC("f1", kernel=name, C=1.0).fit(X, y) for name in ("linear", "rbf")}
for name, model in models.items():
    print(f"{name:7} F1 {model.score(X, y):.3f} on the training sample, gap {model.gap_:.1e}")

# %%
# Where each of them says yes.
a, b = np.meshgrid(np.linspace(-3, 3, 120), np.linspace(-3, 3, 120))
_, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ax.contourf(
        a,
        b,
        model.decision_function(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape) > 0,
        levels=[0.5, 1],
        alpha=0.3,
    )
    ax.scatter(*X.T, c=y, s=8, cmap="coolwarm")
    ax.set_title(f"{name}: F1 {model.score(X, y):.2f}")
plt.show()
