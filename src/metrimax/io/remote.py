"""Shards that the workers of a Dask cluster read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from metrimax.designs.cluster import Cluster
from metrimax.designs.dask import DaskDesign
from metrimax.designs.sharded import Shard, Sharded
from metrimax.io.dataset import Dataset, Labelled

PER_THREAD = 2
"""Partitions for every thread of the workers: few, for each is a task in every product, but some to share out."""


class DaskDataset(Labelled, DaskDesign):
    """Rows in files that the workers of a Dask cluster read, labels on the driver. See `metrimax.open_dataset`."""


def on_workers(dataset: Dataset, client: Any = None) -> DaskDataset:
    """The same shards, opened by workers.

    A partition is some consecutive shards as a function of their files, so that one that is lost can be opened again.
    """
    cluster = Cluster(client)
    pieces = min(len(dataset.shards), PER_THREAD * max(1, sum(cluster.threads().values())))
    largest = max(shard.peak for shard in dataset.shards)
    each = max(largest, dataset.memory // PER_THREAD)
    groups = [[dataset.shards[k] for k in group] for group in np.array_split(np.arange(len(dataset.shards)), pieces)]
    remote = DaskDataset([partial(_open, group, dataset.n_cols, each) for group in groups], client=cluster)
    remote.describe(dataset.name, dataset)
    return remote


def _open(shards: Sequence[Shard], n_cols: int, memory: int) -> Sharded:
    return Sharded(shards, n_cols, memory=memory, n_threads=1)
