"""A bounded run of the fuzzer; METRIMAX_FUZZ_SECONDS makes it longer, and ``python tests/fuzz_files.py`` is by hand."""

from __future__ import annotations

import os

import fuzz_files
import pytest


def test_fuzz(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = os.environ.get("METRIMAX_FUZZ_SECONDS", "5")
    assert fuzz_files.main(["--seconds", seconds]) == 0
    assert "mutated lines" in capsys.readouterr().out
