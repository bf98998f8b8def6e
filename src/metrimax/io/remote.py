"""Shards that the workers of a Dask cluster read."""

from __future__ import annotations

from functools import partial
from typing import Any

from metrimax.designs.dask import DaskDesign
from metrimax.io.dataset import Dataset, Labelled


class DaskDataset(Labelled, DaskDesign):
    """Rows in files that the workers of a Dask cluster read, labels on the driver. See `metrimax.open_dataset`."""


def on_workers(dataset: Dataset, client: Any = None) -> DaskDataset:
    """The same shards, each opened by a worker: as a function of the file, so that what is lost can be read again."""
    remote = DaskDataset([partial(shard.load, 1) for shard in dataset.shards], client=client)
    remote.describe(dataset)
    return remote
