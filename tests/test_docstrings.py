"""Docstrings of public names, by numpydoc's rules; which of them is in pyproject.toml (tool.numpydoc_validation)."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.validate import validate

from tests.test_docs import NAMES

CHECKS = set(
    tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "numpydoc_validation"
    ]["checks"]
)
PUBLIC = [f"{module}.{name}" for module, names in NAMES.items() for name in names]
CALLED = (
    "fit",
    "predict",
    "decision_function",
    "predict_top_k",
    "predict_proba",
    "plot",
    "from_estimator",
    "from_predictions",
)


BY_SUMMARY = "metrimax.MeasureEnsemble."  # its methods have one line each, and the parameters of MeasureSVC's


def methods() -> list[str]:
    """What users call of estimators and displays."""
    found = []
    for name in PUBLIC:
        module, _, last = name.rpartition(".")
        thing = getattr(import_module(module), last)
        if isinstance(thing, type) and (hasattr(thing, "fit") or hasattr(thing, "plot")):
            found += [f"{name}.{method}" for method in (*CALLED, "score") if hasattr(thing, method)]
    return found


def faults(name: str, checks: set[str]) -> list[str]:
    return [f"{code}: {text}" for code, text in validate(name)["errors"] if code in checks]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_described(name):
    assert faults(name, CHECKS) == []


@pytest.mark.parametrize("name", methods())
def test_methods_are_described(name):
    assert faults(name, {"GL08", "SS01"} if name.startswith(BY_SUMMARY) else CHECKS - {"EX01"}) == []


def test_a_fault_is_found():
    assert faults("metrimax.training.label.fit_label", CHECKS)
