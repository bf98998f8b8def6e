"""The package as a whole: its public names, what importing it costs, and the types of its compiled part."""

from __future__ import annotations

import ast
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

import metrimax
from metrimax import _kernels


def test_version():
    assert metrimax.__version__ == importlib.metadata.version("metrimax")


def test_public_names():
    assert len(metrimax.__all__) <= 24
    assert dir(metrimax) == sorted(metrimax.__all__)
    for name in metrimax.__all__:
        assert getattr(metrimax, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = metrimax.nothing


@pytest.mark.parametrize("module", ["metrimax", "metrimax.measure", "metrimax.designs", "metrimax.solvers"])
def test_import_is_light(module):
    code = f"import sys, {module}; sys.exit(any(name in sys.modules for name in ('sklearn', 'matplotlib', 'pandas')))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_stub_names_every_kernel():
    """After adding a kernel: ``make stub``."""
    package = Path(metrimax.__file__).parent
    tree = ast.parse((package / "_kernels.pyi").read_text(encoding="utf-8"))
    described = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert described == {name for name in dir(_kernels) if not name.startswith("_")}
    assert (package / "py.typed").exists()
