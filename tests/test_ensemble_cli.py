"""``metrimax tune --kind ensemble``, and what reads its models."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from metrimax.cli import main

pytest.importorskip("skops")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with text and gaps, and the model of it."""
    place = tmp_path_factory.mktemp("ensemble")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"amount": rng.normal(size=240), "country": rng.choice(["DE", "FR", "XX"], 240)})
    table["kind"] = np.where((table["amount"] > 0) & (table["country"] == "FR"), "fraud", "legit")
    table.loc[::9, "amount"] = np.nan
    table.to_csv(place / "table.csv", index=False)
    options = ["--target", "kind", "--positive", "fraud", "--preset", "fast", "--folds", "2", "-q", "--json"]
    command = ["tune", str(place / "table.csv"), str(place / "model"), "--kind", "ensemble", *options]
    made = subprocess.run([sys.executable, "-m", "metrimax", *command], check=True, capture_output=True)
    assert 0.7 < json.loads(made.stdout)["score_on_other_data"] <= 1
    return place


def test_the_model_evaluates_and_predicts(folder, capsys):
    data, model = str(folder / "table.csv"), str(folder / "model")
    assert main(["evaluate", data, model, "--json", "-q"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["examples"] == 240
    assert results["f1"] > 0.8
    assert main(["predict", data, model]) == 0
    labels = capsys.readouterr().out.split()
    truth = pd.read_csv(data)["kind"]
    found = np.mean((truth == "fraud") & (np.array(labels) == "fraud")) / np.mean(truth == "fraud")
    assert found > 0.8
    assert main(["info", model, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["classes"] == ["legit", "fraud"]
    assert told["feature_names"] == ["amount", "country"]
    assert set(told["weights"]) == {"boosting", "extra_trees", "linear"}
    assert "norm" not in told
    assert main(["info", model]) == 0
    assert "boosting 0." in capsys.readouterr().out


def test_a_table_at_standard_input(folder, capsys, monkeypatch):
    assert main(["predict", str(folder / "table.csv"), str(folder / "model")]) == 0
    expected = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((folder / "table.csv").read_bytes())))
    assert main(["predict", "-", str(folder / "model"), "--format", "csv"]) == 0
    assert capsys.readouterr().out == expected


def test_an_ensemble_has_no_certificate(folder, capsys):
    assert main(["verify", str(folder / "model"), str(folder / "table.csv")]) == 2
    assert "is an ensemble, which has no certificate: verify is for linear models" in capsys.readouterr().err


def test_a_table_without_labels_is_predicted(folder, capsys, tmp_path):
    table = pd.read_csv(folder / "table.csv").drop(columns="kind")
    table[["country", "amount"]].to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(tmp_path / "new.csv"), str(folder / "model"), "--scores"]) == 0
    assert len(capsys.readouterr().out.split()) == len(table)
    table[["country"]].to_csv(tmp_path / "less.csv", index=False)
    assert main(["predict", str(tmp_path / "less.csv"), str(folder / "model")]) == 1
    assert "got a table without 'amount'" in capsys.readouterr().err


def test_text_stays_text_where_a_file_has_only_numbers(capsys, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"code": rng.choice(["007", "12", "x"], 120), "size": rng.normal(size=120)})
    table["label"] = np.where(table["code"] == "007", "1", np.where(rng.random(120) < 0.1, "none", "2"))
    table.loc[::7, "size"] = np.nan
    table.to_csv(tmp_path / "table.csv", index=False)
    model = str(tmp_path / "model")
    options = ["--kind", "ensemble", "--preset", "fast", "--folds", "2", "-q"]
    assert main(["tune", str(tmp_path / "table.csv"), model, *options]) == 0
    few = table[(table["code"] != "x") & (table["label"] != "none")]
    few.to_csv(tmp_path / "few.csv", index=False)
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "few.csv"), model]) == 0
    assert capsys.readouterr().out.split() == few["label"].tolist()
    assert main(["evaluate", str(tmp_path / "few.csv"), model, "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1


def test_files_with_other_types_are_refused(folder, capsys, tmp_path):
    import skops.io

    bad = tmp_path / "bad"
    skops.io.dump({"a": pd.Timestamp("2020-01-01")}, bad)
    assert main(["predict", str(folder / "table.csv"), str(bad)]) == 1
    assert "it may run code when it is read" in capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / "other", "w") as archive:
        archive.writestr("x", "y")
    assert main(["predict", str(folder / "table.csv"), str(tmp_path / "other")]) == 1
    assert "expected a model file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--hinge", "1"], "--hinge is for linear classifiers"),
        (["--model-format", "svmperf"], "--model-format is for linear classifiers"),
        (["--target", "none"], "expected a column 'none'"),
        (["--target", "kind", "--positive", "theft"], "--positive theft: expected one of the labels: fraud, legit"),
        ([], "expected a column called label or target"),
    ],
)
def test_what_is_wrong_is_said(folder, capsys, tmp_path, options, told):
    command = ["tune", str(folder / "table.csv"), str(tmp_path / "model"), "--kind", "ensemble", *options]
    assert main(command) in (1, 2)
    assert told in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_other_files_are_for_linear_classifiers(capsys, tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2\n")
    assert main(["tune", str(tmp_path / "a.svm"), str(tmp_path / "model"), "--kind", "ensemble"]) == 2
    assert "expected a table" in capsys.readouterr().err


def test_a_missing_package_is_named(folder, capsys, monkeypatch, tmp_path):
    from metrimax.cli import ensemble

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(ensemble, "import_module", missing)
    command = ["tune", str(folder / "table.csv"), str(tmp_path / "model"), "--kind", "ensemble"]
    assert main(command) == 2
    assert "needs skops to write the model without pickle: pip install 'metrimax[ensemble]'" in capsys.readouterr().err


def test_an_archive_of_arrays_is_no_ensemble(tmp_path, capsys):
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    assert main(["info", str(tmp_path / "arrays.npz")]) == 1
    assert "expected a model file" in capsys.readouterr().err
