"""Where the tests find the data that is too large for the repository, and what happens where it is absent.

METRIMAX_DATA          the data folder; by default ``shared/data`` next to the repository
METRIMAX_GOLDEN        results of other programs to compare with; by default ``golden`` next to the data folder
METRIMAX_REQUIRE_DATA  set to 1, a test that needs an absent folder fails instead of being skipped
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("METRIMAX_DATA") or ROOT.parent / "shared" / "data")
GOLDEN = Path(os.environ.get("METRIMAX_GOLDEN") or DATA.parent / "golden")


@pytest.hookimpl
def pytest_runtest_setup(item: pytest.Item) -> None:
    if os.name != "posix" and item.get_closest_marker("posix") is not None:
        pytest.skip("needs a POSIX system")
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


@pytest.fixture(scope="session")
def binary():
    X, y = make_classification(n_samples=150, n_features=6, weights=[0.75], class_sep=0.8, random_state=0)
    return X, y


@pytest.fixture(scope="session")
def three():
    return make_classification(n_samples=150, n_features=6, n_informative=4, n_classes=3, random_state=1)


@pytest.fixture(scope="session")
def labels():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 5))
    Y = (X[:, :3] + 0.3 * rng.normal(size=(90, 3)) > [0, 0.5, 1]).astype(int)
    return X, Y
