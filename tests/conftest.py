"""Where the tests find the data that is too large for the repository, and what happens where it is absent.

METRIMAX_DATA          the data folder; by default ``shared/data`` next to the repository
METRIMAX_GOLDEN        results of other programs to compare with; by default ``golden`` next to the data folder
METRIMAX_REQUIRE_DATA  set to 1, a test that needs an absent folder fails instead of being skipped
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("METRIMAX_DATA") or ROOT.parent / "shared" / "data")
GOLDEN = Path(os.environ.get("METRIMAX_GOLDEN") or DATA.parent / "golden")


@pytest.hookimpl
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("shared_data") is None:
        return
    for name, folder in (("METRIMAX_DATA", DATA), ("METRIMAX_GOLDEN", GOLDEN)):
        if not folder.is_dir():
            reason = f"no folder {folder}: set {name} to where it is"
            if os.environ.get("METRIMAX_REQUIRE_DATA") == "1":
                pytest.fail(f"{reason} (METRIMAX_REQUIRE_DATA=1)", pytrace=False)
            pytest.skip(reason)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The data folder. For tests marked ``shared_data``."""
    return DATA


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of other programs' results. For tests marked ``shared_data``."""
    return GOLDEN
