"""The metrimax command: the plain hinge loss beside a measure, placed thresholds, and what `tune` chooses by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from test_cli import Capture, numbers, run, run_json, svmlight

from metrimax import MeasureSVC, MeasureSVCCV
from metrimax.cli import main
from metrimax.io.converting import convert
from metrimax.io.models import load_model
from metrimax.training.folds import Fold


@pytest.fixture
def train(tmp_path: Path) -> Path:
    X, y = numbers()
    (tmp_path / "train.svm").write_text(svmlight(X, ["1" if v else "-1" for v in y]))
    return tmp_path / "train.svm"


def overlapping(folder: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """A rare class for which F1 alone learns nothing."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(600, 3)), 4)
    y = X[:, 0] + rng.normal(size=600) > 2
    (folder / "rare.svm").write_text(svmlight(X, [str(int(v)) for v in y]))
    return folder / "rare.svm", X, y


def test_hinge_and_threshold(tmp_path: Path, capsys: Capture) -> None:
    data, X, y = overlapping(tmp_path)
    plain = run_json(capsys, "train", data, tmp_path / "m", "-q", "--hinge", "0", "--threshold", "trained", code=4)
    assert (plain["hinge"], plain["threshold_rule"], plain["training_score"]) == (0.0, "trained", 0.0)
    for rule in ("trained", "placed"):
        options = ["--hinge", "1", "--threshold", rule, "--tol", "1e-6"]
        out = run_json(capsys, "train", data, tmp_path / "m", *options)
        fitted = MeasureSVC("f1", hinge=1.0, threshold=rule, tol=1e-6).fit(X, y)
        assert out["objective"] == [pytest.approx(fitted.objective_, rel=1e-5)]
        model = load_model(tmp_path / "m")
        assert model.threshold == pytest.approx(fitted.threshold_, abs=1e-2)
        assert (model.training["hinge"], model.training["threshold_rule"]) == (1.0, rule)
    shown = " ".join(run(capsys, "info", tmp_path / "m").split())
    assert f"threshold: {model.threshold[0]:.6g} " in shown  # where it is, and by which rule
    assert "threshold_rule: placed " in shown


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ([], {}),
        (["--hinge", "0"], {"hinge": 0.0}),
        (["--logistic", "0.5", "--balanced", "--threshold", "auto"], {"logistic": 0.5, "balanced": True}),
        (["--risk", "0"], {"risk": 0.0}),
        (["--risk", "even", "--hinge", "1"], {"risk": "even", "hinge": 1.0}),
        (["-m", "error"], {"measure": "error"}),
        (["-m", "average_precision"], {"measure": "average_precision"}),
    ],
)
def test_train_has_the_losses_and_the_defaults_of_the_estimator(
    tmp_path: Path, capsys: Capture, options: list[str], same: dict[str, Any]
) -> None:
    data, X, y = overlapping(tmp_path)
    fitted = MeasureSVC(**same, tol=1e-5).fit(X, y)
    convert(data, tmp_path / "shards")
    for where in (data, tmp_path / "shards"):
        code = 4 if same.get("hinge") == 0 else 0
        out = run_json(capsys, "train", where, tmp_path / "m", *options, "--tol", "1e-5", "-q", code=code)
        assert out["objective"] == [pytest.approx(fitted.objective_, rel=1e-4)]
        stated = load_model(tmp_path / "m").training | {"threshold": out["threshold_rule"]}
        assert {name: stated[name] for name in fitted.trained_with_} == fitted.trained_with_
        assert run_json(capsys, "verify", tmp_path / "m", where)["holds"]
    shown = " ".join(run(capsys, "info", tmp_path / "m").split())
    assert f"logistic: {fitted.trained_with_['logistic']:g} " in shown


def test_tune_chooses_as_the_estimator_does(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    data, X, y = overlapping(tmp_path)
    options = ["--grid", "0.01,0.1,1,10", "--folds", "4", "-q"]
    split = StratifiedKFold(4)
    folds = [Fold(*rows) for rows in split.split(X, y)]
    monkeypatch.setattr("metrimax.cli.tuning.spread", lambda *_: folds)
    for measure in ("f1", "error"):
        out = run_json(capsys, "tune", data, tmp_path / "m", *options, "-m", measure)
        fitted = MeasureSVCCV(measure, Cs=[0.01, 0.1, 1, 10], cv=split).fit(X, y)
        chosen = fitted.trained_with_
        assert [out[name] for name in ("C", "risk", "hinge", "logistic", "threshold_rule")] == [
            chosen[name] for name in ("C", "risk", "hinge", "logistic", "threshold")
        ]
        scores = [step["score"] for step in out["cross_validation"]]  # type: ignore[attr-defined]
        assert scores == pytest.approx(fitted.cv_results_["pooled_test_score"], abs=1e-6)
        model = load_model(tmp_path / "m")
        np.testing.assert_allclose(model.scores(X)[:, 0], fitted.decision_function(X), atol=1e-6)
    for name in ("logistic", "risk"):  # what is given leaves one candidate
        given = ["--logistic", "1", "--risk", "even" if name == "risk" else "1", "--balanced"]
        out = run_json(capsys, "tune", data, tmp_path / "m", *options, *given)
        steps = {tuple(step[key] for key in ("risk", "hinge", "logistic")) for step in out["cross_validation"]}  # type: ignore[attr-defined]
        assert steps == {("even" if name == "risk" else 1.0, 0.0, 1.0)}
        assert out["balanced"] is True
    out = run_json(capsys, "tune", data, tmp_path / "m", *options, "--hinge", "0", "--threshold", "trained", code=4)
    assert (out["hinge"], out["threshold_rule"], out["training_score"]) == (0.0, "trained", 0.0)


def test_tune_says_which_gaps_were_missed(train: Path, capsys: Capture) -> None:
    convert(train, train.with_name("shards"))
    for data in (train, train.with_name("shards")):
        options = ["--grid", "1,2", "--folds", "2", "--max-iter", "2", "--tol", "1e-9", "--hinge", "0"]
        assert main(["tune", str(data), str(train.with_name("m")), *options]) == 3
        told = [line for line in capsys.readouterr().err.splitlines() if "did not reach --tol" in line]
        assert len(told) == 1
        assert told[0].startswith("metrimax tune: 4 of these fits did not reach --tol: the largest gap is ")


def test_a_hinge_that_cannot_be_meant(train: Path, capsys: Capture) -> None:
    for value in ("-1", "nan", "inf"):
        assert main(["train", str(train), "m", "--hinge", value]) == 2
        assert f"expected a finite --hinge >= 0, got {value}" in capsys.readouterr().err
    assert main(["tune", str(train), "m", "--risk", "-1"]) == 2
    assert "expected a finite --risk >= 0, got -1" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["train", str(train), "m", "--risk", "odd"])
    assert "expected a number or 'even', got 'odd'" in capsys.readouterr().err
    assert main(["tune", str(train), str(train.with_name("m")), "--risk", "0"]) == 1
    assert "expected a loss to train" in capsys.readouterr().err
    ranking = train.with_name("q.svm")
    ranking.write_text("".join(f"{k % 2} qid:{k // 4} 1:{k % 5}\n" for k in range(24)))
    assert main(["train", str(ranking), "m", "-m", "roc_area", "--threshold", "placed"]) == 2
    assert "--threshold is for classes, not for rankings within groups" in capsys.readouterr().err


def test_the_best_candidates_are_shown(train: Path, capsys: Capture) -> None:
    assert main(["tune", str(train), str(train.with_name("m")), "--folds", "3"]) == 0
    told = capsys.readouterr()
    held = [line for line in told.err.splitlines() if "on rows held out: C " in line]
    scores = [float(line.rpartition(": ")[2].partition(" +-")[0]) for line in held]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert "held_out_score:" in told.out
    assert "tried:" in told.out
