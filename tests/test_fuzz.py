"""Bounded runs of the fuzzers; METRIMAX_FUZZ_SECONDS makes them longer, and SECURITY.md says how by hand."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import fuzz_binary
import fuzz_files
import pytest

from metrimax.io.data import load_data
from metrimax.io.files import FileError
from metrimax.io.models import load_model

FOUND = sorted((Path(__file__).parent / "data" / "fuzz").iterdir())


@pytest.mark.parametrize(("fuzzer", "said"), [(fuzz_files, "mutated lines"), (fuzz_binary, "mutated checkpoints")])
def test_fuzz(fuzzer: ModuleType, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = os.environ.get("METRIMAX_FUZZ_SECONDS", "5")
    assert fuzzer.main(["--seconds", seconds]) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.name)
def test_what_was_found_is_refused(file: Path) -> None:
    if file.suffix == ".parquet":
        pytest.importorskip("pyarrow")
    with pytest.raises(FileError, match=file.name):
        (load_model if file.suffix == ".model" else load_data)(file)
