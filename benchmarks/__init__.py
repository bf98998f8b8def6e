"""Measurements of speed: ``python -m benchmarks --help``. Not part of the installed package."""
