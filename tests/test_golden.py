"""Objectives that SVM-perf reported on real data, and problems it did not finish."""

from __future__ import annotations

import json
import lzma
from functools import lru_cache
from io import BytesIO

import numpy as np
import pytest
from conftest import DATA, GOLDEN
from paper import PAPER
from sklearn.datasets import load_svmlight_file

from metrimax import MeasureSVC
from metrimax.measure import get_measure

MEASURES = {1: "f1", 2: "error", 3: "prbep", 10: "roc_area"}
TOL = 2e-4

pytestmark = pytest.mark.shared_data


def golden_rows() -> list[object]:
    path = GOLDEN / "svmperf.json"
    rows = json.loads(path.read_text()) if path.is_file() else []
    return [
        pytest.param(row, id=f"{row['task']}-{MEASURES[row['loss']]}-{row['C_perf']:g}")
        for row in rows
        if row["loss"] in MEASURES
    ]


@lru_cache
def load(task: str):
    """X and the boolean labels of a task, as the golden results name it."""
    name, _, label = task.partition(":")
    folder, stem = ("reuters21578", "tfidf_full_train") if name == "reuters" else (name, "train")
    text = BytesIO(lzma.decompress((DATA / folder / f"{stem}.svm.xz").read_bytes()))
    X, y = load_svmlight_file(text, zero_based=False, multilabel=name == "reuters")
    if name == "reuters":
        table = [line.split("\t") for line in (DATA / folder / "categories.tsv").read_text().splitlines()[1:]]
        number = next(float(row[0]) for row in table if row[1] == label)
        return X, np.array([number in labels for labels in y])
    return X, (y == float(label)) if label else (y > 0)


@pytest.mark.parametrize("row", golden_rows())
def test_objective_lies_between_svm_perfs_bounds(row):
    X, y = load(row["task"])
    measure = MEASURES[row["loss"]]
    scale = 100 * row["C_perf"]
    price = get_measure(measure).oracle(y).price
    svc = MeasureSVC(measure, C=scale / (len(y) * price), tol=TOL, **PAPER).fit(X, y)
    assert svc.price_ == price
    assert svc.status_.ok
    assert svc.gap_ <= TOL
    if "primal" not in row:
        assert row["not_finished_in_seconds"] > 0
        return
    assert len(y) == row["n"]
    assert y.sum() == row["pos"]
    slack = (TOL + row["eps_percent"] / 100) * scale
    assert row["dual"] - slack <= svc.objective_ <= row["primal"] + slack
    assert svc.dual_bound_ <= row["primal"] + slack
