"""The metrimax command and those of SVM-perf where output cannot be written, and what they say of several classes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metrimax import MeasureSVC
from metrimax.cli import main
from metrimax.cli.main import build_parser
from metrimax.cli.training import _fold_by_fold, _folds, _load, _side_by_side
from metrimax.compat import svm_perf_learn
from metrimax.io.checkpoints import Checkpoint
from metrimax.io.converting import convert
from metrimax.io.files import FileError
from metrimax.io.models import LinearModel, load_model, save_model

Capture = pytest.CaptureFixture[str]
PROGRAMS = {
    "metrimax": "metrimax.cli",
    "svm_perf_learn": "metrimax.compat.svm_perf_learn",
    "svm_perf_classify": "metrimax.compat.svm_perf_classify",
}


@pytest.fixture
def folder(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    y = rng.random(80) < 0.4
    X = rng.normal(size=(80, 2)) + 1.5 * y[:, None]
    for base in (0, 1):
        rows = (f"{2 * v - 1} {base}:{a:.4f} {base + 1}:{b:.4f}\n" for (a, b), v in zip(X, y.astype(int), strict=True))
        (tmp_path / f"{base}.svm").write_text("".join(rows))
    assert main(["train", str(tmp_path / "1.svm"), str(tmp_path / "ours")]) == 0
    assert svm_perf_learn.main(["-c", "1", str(tmp_path / "1.svm"), str(tmp_path / "theirs")]) == 0
    capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_json(capsys: Capture, *arguments: object) -> dict[str, object]:
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def shell(program: str, rest: str) -> subprocess.CompletedProcess[str]:
    """A command as the shell runs it; the exit code is its own, not that of what it is piped into."""
    call = f"{sys.executable} -c 'from {PROGRAMS[program]} import main; raise SystemExit(main())' {rest}"
    command = ["bash", "-c", f"{call}; exit ${{PIPESTATUS[0]}}"]
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=buffered)


# the system fails


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("metrimax", "measures"),
        ("metrimax", "predict 1.svm ours"),
        ("metrimax", "info ours"),
        ("svm_perf_learn", "-c 1 1.svm model"),
        ("svm_perf_learn", "-?"),
        ("svm_perf_classify", "1.svm theirs out"),
        ("svm_perf_classify", "-v 0 1.svm theirs out"),
    ],
)
def test_no_space_left(folder: Path, program: str, arguments: str) -> None:
    done = shell(program, f"{arguments} > /dev/full")
    name = f"metrimax {arguments.split()[0]}" if program == "metrimax" else program
    assert done.stderr == f"{name}: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("program", "arguments"),
    [("metrimax", "measures"), ("svm_perf_learn", "-c 1 1.svm model"), ("svm_perf_classify", "1.svm theirs out")],
)
def test_a_reader_that_has_gone(folder: Path, program: str, arguments: str) -> None:
    done = shell(program, f"{arguments} | true")
    assert done.stderr == ""
    assert done.returncode == 1


def test_a_name_too_long(folder: Path, capsys: Capture) -> None:
    name = "a" * 300
    for arguments in (["train", name, "m"], ["predict", name, "ours"], ["train", "1.svm", name], ["info", name]):
        assert main(arguments) == 1
        assert capsys.readouterr().err.endswith("File name too long\n"), arguments


def test_a_class_beyond_every_float(tmp_path: Path, capsys: Capture) -> None:
    save_model(tmp_path / "m", LinearModel(np.ones((1, 1)), np.zeros(1), np.zeros(1), [0, 10**400]))
    with pytest.raises(FileError, match="expected the classes to be all numbers or all strings"):
        load_model(tmp_path / "m")
    assert main(["info", str(tmp_path / "m")]) == 1
    assert capsys.readouterr().err.startswith("metrimax info: ")


# output is looked at before training


@pytest.mark.parametrize("command", ["train", "tune"])
@pytest.mark.parametrize("model", ["none/m", "1.svm/m", "."])
def test_a_model_that_cannot_be_written_is_not_trained(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: str, model: str
) -> None:
    monkeypatch.setattr("metrimax.cli.training.run", None)  # training would fail otherwise
    assert main([command, "1.svm", model, "--checkpoint", "ck"]) == 1
    assert f"{model}: cannot be written: " in capsys.readouterr().err
    assert not (folder / "ck").exists()


def test_the_look_leaves_nothing_behind(folder: Path, capsys: Capture) -> None:
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert main(["train", "none.svm", "ours"]) == 1
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert main(["train", "1.svm", os.devnull]) == 0


def test_a_feature_0_has_no_place_in_a_model_of_svm_perf(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metrimax.cli.training.run", None)
    for command in ("train", "tune"):
        assert main([command, "0.svm", "m", "--model-format", "svmperf"]) == 2
        assert "SVM-perf's files count features from 1" in capsys.readouterr().err


def test_the_checkpoint_stays_until_the_model_is_written(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise FileError("m: cannot be written: No space left on device")

    monkeypatch.setattr("metrimax.cli.training.as_checkpoint", lambda name: Checkpoint(name, minutes=0.0))
    with monkeypatch.context() as broken:
        broken.setattr("metrimax.cli.training.save_model", full)
        assert main(["train", "1.svm", "m", "--checkpoint", "ck"]) == 1
    assert list((folder / "ck").iterdir())
    assert main(["train", "1.svm", "m", "--checkpoint", "ck"]) == 0
    assert not (folder / "ck").exists()


# several classes


@pytest.fixture
def three(tmp_path: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """Three classes on a line: that in the middle has no sign of its own, only a highest score."""
    rng = np.random.default_rng(1)
    y = rng.choice(3, 240, p=[0.3, 0.2, 0.5])
    X = np.round(rng.normal(size=(240, 2)) + np.column_stack([1.5 * y, y == 1]), 4)
    rows = "".join(f"{a},{b},{v}\n" for (a, b), v in zip(X, y, strict=True))
    (tmp_path / "y3.csv").write_text("a,b,label\n" + rows)
    return tmp_path / "y3.csv", X, y


@pytest.mark.parametrize("measure", ["error", "f1", "gmean", "roc_area"])
def test_the_training_score_is_that_of_evaluate(
    three: tuple[Path, np.ndarray, np.ndarray], capsys: Capture, measure: str
) -> None:
    file, X, y = three
    trained = run_json(capsys, "train", file, file.with_name("m"), "-m", measure, "--tol", "1e-5")
    values = run_json(capsys, "evaluate", file, file.with_name("m"))
    assert trained["training_score"] == pytest.approx(values[measure])
    same = MeasureSVC(measure, C=4.0, tol=1e-5).fit(X, y)
    assert trained["training_score"] == pytest.approx(same.score(X, y), abs=0.01)


@pytest.mark.parametrize("measure", ["error", "f1", "roc_area"])
@pytest.mark.parametrize("shards", [False, True])
def test_tune_judges_what_is_predicted(
    three: tuple[Path, np.ndarray, np.ndarray], capsys: Capture, measure: str, shards: bool
) -> None:
    file, X, y = three
    if shards:
        convert(file, file.with_name("shards"))
    data = file.with_name("shards") if shards else file
    options = ["-m", measure, "--folds", "3", "--tol", "1e-5", "-q"]
    arguments = build_parser().parse_args(["tune", str(data), "m", *options])
    task = _load(arguments)
    folds = _folds(task, 3, 0)
    scores = (_side_by_side if shards else _fold_by_fold)(arguments, task, [0.1, 4.0], folds)
    for fold in range(3):
        for c, C in enumerate([0.1, 4.0]):
            fitted = MeasureSVC(measure, C=C, tol=1e-5).fit(X[folds != fold], y[folds != fold])
            assert scores[fold, c] == pytest.approx(fitted.score(X[folds == fold], y[folds == fold]), abs=0.02)


@pytest.mark.parametrize("shards", [False, True])
def test_a_class_that_a_fold_does_not_train_is_never_called(
    three: tuple[Path, np.ndarray, np.ndarray], shards: bool
) -> None:
    file, X, y = three
    file.write_text(file.read_text() + "9,9,7\n")  # the only one of its class
    if shards:
        convert(file, file.with_name("shards"))
    data = file.with_name("shards") if shards else file
    arguments = build_parser().parse_args(
        ["tune", str(data), "m", "-m", "error", "--folds", "3", "--tol", "1e-5", "-q"]
    )
    task = _load(arguments)
    folds = _folds(task, 3, 0)
    scores = (_side_by_side if shards else _fold_by_fold)(arguments, task, [4.0], folds)
    fold = folds[-1]
    inside, outside = folds[:-1] != fold, folds[:-1] == fold
    fitted = MeasureSVC("error", C=4.0, tol=1e-5).fit(X[inside], y[inside])
    right = (fitted.predict(X[outside]) == y[outside]).sum()
    assert scores[fold, 0] == pytest.approx(right / (outside.sum() + 1), abs=0.02)
