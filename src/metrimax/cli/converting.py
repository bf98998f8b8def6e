"""``metrimax convert``."""

from __future__ import annotations

import argparse

from metrimax.cli.main import OK
from metrimax.cli.report import check_threads, emit, size
from metrimax.io.converting import convert as write_shards
from metrimax.training.progress import ProgressLine


def convert(arguments: argparse.Namespace) -> int:
    """Make a folder of binary shards."""
    check_threads(arguments)
    with ProgressLine("converting") as line:
        manifest = write_shards(
            arguments.data,
            arguments.folder,
            shard_size=size("--shard-size", arguments.shard_size),
            dtype=arguments.dtype,
            kind=arguments.format,
            target=arguments.target,
            drop=arguments.drop,
            index_base=arguments.index_base,
            memory=size("--memory", arguments.memory),
            n_threads=arguments.threads,
            progress=None if arguments.quiet else line.show,
        )
    emit(
        arguments,
        {
            "folder": str(arguments.folder),
            "examples": manifest["rows"],
            "features": manifest["columns"],
            "shards": len(manifest["shards"]),
            "bytes": sum(about["bytes"] for shard in manifest["shards"] for about in shard["files"].values()),
        },
    )
    return OK
