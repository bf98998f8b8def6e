"""Competitors, one adapter each.

An adapter offers

* ``name``; ``measures``: those it can train for; ``settings``: its accuracy settings from loose to tight; ``default``;
* ``missing()``: why it cannot run here, or None;  ``version()``;
* ``prepare(task, measure, C)``: whatever need not be timed (conversion of the data), returning an object whose
  ``fit(setting)`` is timed and returns an `Answer`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Answer(NamedTuple):
    """Weights (the intercept last; None where the competitor has no such objective), and what it says of its run."""

    w: np.ndarray | None
    n_iter: int | None = None
    n_passes: int | None = None
    bound: float | None = None
    test_score: float | None = None
    cpu_seconds: float | None = None


def registry() -> dict[str, Any]:
    """All adapters by name; importing them imports none of the competitors."""
    from benchmarks.competitors import (
        dlib_oca,
        linear_svc,
        logistic_regression,
        metrimax_svc,
        svm_perf,
        tuned_threshold,
    )

    modules = (metrimax_svc, linear_svc, tuned_threshold, dlib_oca, svm_perf)
    adapters: list[Any] = [*(module.ADAPTER for module in modules), *logistic_regression.ADAPTERS]
    return {adapter.name: adapter for adapter in adapters}


__all__ = ["Answer", "registry"]
