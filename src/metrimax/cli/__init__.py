"""The ``metrimax`` command."""

from metrimax.cli.main import main

__all__ = ["main"]
