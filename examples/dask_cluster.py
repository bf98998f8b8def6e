"""
Rows on a Dask cluster
======================

Rows stay on the workers. Each pass sends a vector of weights there and brings back sums; the solution and its
certificate are those of a fit in memory.

Needs ``pip install "metrimax[dask]" "dask[array]"``. Here the cluster is two workers in this process.
"""

import sys
from importlib.util import find_spec

if find_spec("distributed") is None:
    print('distributed is not installed: pip install "metrimax[dask]"')
    sys.exit(0)

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client

from metrimax import MeasureSVC

# %%
# Twenty thousand rows in chunks of 2,500; one in twenty is positive.
rng = np.random.default_rng(0)
y = rng.random(20_000) < 0.05
X = rng.normal(size=(20_000, 30)) + 0.4 * y[:, None]

with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    spread = da.from_array(X, chunks=(2_500, 30))
    model = MeasureSVC("f1", C=0.1).fit(spread, y)
    scores = np.asarray(model.decision_function(spread))
local = MeasureSVC("f1", C=0.1).fit(X, y)
for name, fitted in {"on the cluster": model, "in memory": local}.items():
    print(f"{name:14} objective {fitted.objective_:.4f}, gap {fitted.gap_:.1e}")

# %%
# Scores of both, row by row, and the certificate of the fit on the cluster.
_, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
left.plot(local.decision_function(X)[::40], scores[::40], ".", markersize=3)
left.set(xlabel="score, trained in memory", ylabel="score, trained on the cluster")
passes = [record.n_passes for record in model.history_]
right.plot(passes, [record.objective for record in model.history_], "o-", label="objective")
right.plot(passes, [record.bound for record in model.history_], "s-", label="proven lower bound")
right.set(xlabel="passes over the rows", ylabel="units of the measure")
right.legend()
plt.tight_layout()
plt.show()
