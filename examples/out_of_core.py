"""
Out of core: rows on the disk
=============================

Rows are written to a folder of shards as they come, and trained on with a bound on the memory they take. Nothing is
lost: the certificate means what it means in memory.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from metrimax import MeasureSVC, open_dataset
from metrimax.io.writing import ShardWriter

# %%
# The folder appears when all of it is written.
rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp()) / "shards"
with ShardWriter(folder, shard_size=200_000) as writer:
    for _ in range(10):
        y = rng.random(1000) < 0.1
        writer.add(rng.normal(size=(1000, 20)) + 0.5 * y[:, None], y.astype(float))
    writer.finish()

# %%
# No more than a megabyte of rows is in memory at a time. The dataset brings its labels.
data = open_dataset(folder, memory="1MB")
model = MeasureSVC("f1", C=0.1).fit(data)
print(f"{data.shape[0]} rows, F1 {model.score(data):.3f}, gap {model.gap_:.1e} after {model.n_passes_:.0f} passes")

# %%
# What the passes over the disk bought.
_, ax = plt.subplots()
passes = [record.n_passes for record in model.history_]
ax.plot(passes, [record.objective for record in model.history_], "o-", label="objective")
ax.plot(passes, [record.bound for record in model.history_], "s-", label="proven lower bound")
ax.set(xlabel="passes over the data", ylabel="units of the measure")
ax.legend()
plt.show()
