"""``metrimax verify``: models that hold, and models that were changed by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_cli import Capture, numbers, run, run_json, svmlight

from metrimax.io.models import load_model, save_model


@pytest.fixture
def data(tmp_path: Path) -> Path:
    X, y = numbers()
    (tmp_path / "data.svm").write_text(svmlight(X, ["1" if v else "-1" for v in y]))
    return tmp_path / "data.svm"


def failed(capsys: Capture, model: Path, data: Path, code: int = 1) -> set[str]:
    found = run_json(capsys, "verify", model, data, code=code)
    assert found["holds"] == (code == 0)
    return {check["name"] for checks in found["labels"] for check in checks if check["holds"] is False}  # type: ignore[attr-defined]


OPTIONS = [
    ["--measure", "f1"],
    ["--measure", "f1", "--hinge", "0", "--threshold", "trained"],
    ["--measure", "f1", "--hinge", "1", "--threshold", "placed"],
    ["--measure", "mcc", "--logistic", "1", "--risk", "even", "--balanced"],
    ["--measure", "roc_area", "--no-intercept"],
    ["--measure", "average_precision", "--intercept-scaling", "3"],
    ["--measure", "precision@10"],
]


@pytest.mark.parametrize("certificate", [[], ["--certificate"]])
@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_models_hold(data: Path, capsys: Capture, options: list[str], certificate: list[str]) -> None:
    model = data.with_name("m")
    run(capsys, "train", data, model, "-q", *options, *certificate)
    assert (load_model(model).certificates is not None) == bool(certificate)
    assert failed(capsys, model, data, 0) == set()
    assert run(capsys, "verify", model, data).splitlines()[1].startswith("holds:")


@pytest.mark.parametrize("certificate", [[], ["--certificate"]])
def test_rankings_tables_and_several_labels(tmp_path: Path, capsys: Capture, certificate: list[str]) -> None:
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(90, 3)), 3)
    grades = np.clip(np.round(X[:, 0] + rng.normal(size=90)), 0, 3).astype(int)
    lines = svmlight(X, [str(g) for g in grades]).splitlines()
    grouped = [line.replace(" ", f" qid:{i // 10} ", 1) for i, line in enumerate(lines)]
    (tmp_path / "mq.svm").write_text("\n".join(grouped) + "\n")
    (tmp_path / "classes.svm").write_text("\n".join(lines) + "\n")
    several = [",".join(sorted({str(g), str(int(x[1] > 0) + 7)})) for g, x in zip(grades, X, strict=True)]
    (tmp_path / "several.svm").write_text(svmlight(X, several))
    rows = [",".join(map(str, x)) + f",{'yes' if g else 'no'}" for g, x in zip(grades, X, strict=True)]
    (tmp_path / "table.csv").write_text("a,b,c,label\n" + "\n".join(rows) + "\n")
    for name, measure in (("mq.svm", "ndcg@5"), ("classes.svm", "f1"), ("several.svm", "f1"), ("table.csv", "mcc")):
        run(capsys, "train", tmp_path / name, tmp_path / "m", "-q", "--measure", measure, *certificate)
        assert failed(capsys, tmp_path / "m", tmp_path / name, 0) == set()
    run(
        capsys,
        "train",
        tmp_path / "classes.svm",
        tmp_path / "m",
        "-q",
        "--positive",
        "2",
        "--hinge",
        "0",
        *certificate,
        code=4,
    )
    assert failed(capsys, tmp_path / "m", tmp_path / "classes.svm", 0) == set()
    run(capsys, "train", tmp_path / "mq.svm", tmp_path / "m", "-q", "-m", "roc_area", "--positive", "2", *certificate)
    assert failed(capsys, tmp_path / "m", tmp_path / "mq.svm", 0) == set()


@pytest.mark.parametrize("certificate", [[], ["--certificate"]])
def test_changes_by_hand(data: Path, capsys: Capture, certificate: list[str]) -> None:
    path = data.with_name("m")
    options = ["--measure", "f1", "--hinge", "1", "--threshold", "placed"]
    run(capsys, "train", data, path, "-q", *options, *certificate)
    model = load_model(path)
    (label,) = model.training["labels"]

    def saved(**changes: object) -> Path:
        save_model(path, replace(model, **changes))  # type: ignore[arg-type]
        return path

    def stated(**changes: float) -> Path:
        return saved(training=model.training | {"labels": [label | changes]})

    coef = model.coef.copy()
    coef[0, 0] *= 1.01
    assert "objective" in failed(capsys, saved(coef=coef), data)
    assert "objective" in failed(capsys, saved(intercept=model.intercept + 0.01), data)
    assert failed(capsys, saved(threshold=model.threshold + 0.01, intercept=model.intercept - 0.01), data) == {
        "threshold"
    }
    assert "gap" in failed(capsys, stated(bound=label["bound"] * 1.0001), data)
    units = (label["objective"] - label["bound"]) / label["gap"]
    assert "bound" in failed(capsys, stated(bound=label["objective"] - 1e-6 * units, gap=1e-6), data)
    assert failed(capsys, stated(objective=label["objective"] * 1.001), data) == {"objective"}
    X, y = numbers()
    other = data.with_name("other.svm")
    other.write_text(svmlight(X + 0.01, ["1" if v else "-1" for v in y]))
    assert "objective" in failed(capsys, saved(), other)
    assert failed(capsys, saved(), data, 0) == set()
    raw = path.read_bytes()
    path.write_bytes(re.sub(rb'"bound": [0-9.e+]+', b'"bound": 1.5', raw))
    run(capsys, "verify", path, data, code=1)  # its checksum


def test_files_that_state_too_little(data: Path, capsys: Capture) -> None:
    model = data.with_name("m")
    run(capsys, "train", data, model, "-q", "--model-format", "svmperf")
    assert main_error(capsys, model, data).endswith("train it again\n")
    run(capsys, "train", data, model, "-q")
    whole = load_model(model)
    for changed in ({"C": "4"}, {"labels": [{}]}, {"labels": [1]}, {"labels": []}, {"intercept_scaling": -1.0}):
        save_model(model, replace(whole, training=whole.training | changed))
        assert "expected" in main_error(capsys, model, data)
    old = Path(__file__).parent / "data" / "version_1.model"
    assert "train it again" in main_error(capsys, old, data.with_name("t.csv"), "a,b,c,y\n1,2,3,0\n1,1,1,1\n")
    run(capsys, "train", data, model, "--certificate", "--model-format", "svmperf", code=2)


def main_error(capsys: Capture, model: Path, data: Path, text: str | None = None) -> str:
    if text is not None:
        data.write_text(text)
    from metrimax.cli import main

    assert main(["verify", str(model), str(data)]) == 1
    return capsys.readouterr().err


def test_damaged_certificates(data: Path, capsys: Capture) -> None:
    path = data.with_name("m")
    run(capsys, "train", data, path, "-q", "--certificate")
    model = load_model(path)
    assert model.certificates is not None
    ((points, multipliers),) = model.certificates  # type: ignore[misc]
    for wrong in (
        (points, 2 * multipliers),
        (points[:, 1:], multipliers),
        (points[:1], multipliers[:1]),
        (-points, multipliers),
    ):
        save_model(path, replace(model, certificates=[wrong]))
        assert failed(capsys, path, data) == {"bound"}
