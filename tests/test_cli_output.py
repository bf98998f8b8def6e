"""The metrimax command and those of SVM-perf where output cannot be written, and what they say of several classes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from test_cli import run_json
from test_streams import shell

from metrimax import MeasureSVC
from metrimax.cli import main
from metrimax.cli.arguments import build_parser
from metrimax.cli.training import load
from metrimax.cli.tuning import candidates_of, chooser
from metrimax.compat import svm_perf_learn
from metrimax.io.checkpoints import Checkpoint
from metrimax.io.converting import convert
from metrimax.io.files import FileError
from metrimax.io.models import LinearModel, load_model, save_model
from metrimax.training.folds import spread

Capture = pytest.CaptureFixture[str]


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


@pytest.mark.posix
@pytest.mark.parametrize(
    ("program", "arguments"),
    [("metrimax", "measures"), ("svm_perf_learn", "-c 1 1.svm model"), ("svm_perf_classify", "1.svm theirs out")],
)
def test_a_reader_that_has_gone(folder: Path, program: str, arguments: str) -> None:
    done = shell(program, f"{arguments} | true")
    assert done.stderr == ""
    assert done.returncode == (0 if program == "metrimax" else 1)


@pytest.mark.posix
@pytest.mark.parametrize("arguments", ["info ours", "evaluate 1.svm ours --report r.html", "train 1.svm m"])
def test_a_reader_that_has_seen_enough(folder: Path, arguments: str) -> None:
    """What ``| head -1`` does: the work is done, and the exit code says so."""
    done = shell("metrimax", f"{arguments} | true")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    if "r.html" in arguments:
        assert (folder / "r.html").exists()
    if "train" in arguments:
        assert load_model(folder / "m").n_features > 0


@pytest.mark.posix
def test_half_a_model_is_no_success(folder: Path) -> None:
    assert shell("metrimax", "train 1.svm - | true").returncode == 1


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


def forbid_training(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("cli.training", "training.folds"):
        monkeypatch.setattr(f"metrimax.{module}.run", None)


@pytest.mark.parametrize("command", ["train", "tune"])
@pytest.mark.parametrize("model", ["none/m", "1.svm/m", "."])
def test_a_model_that_cannot_be_written_is_not_trained(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: str, model: str
) -> None:
    forbid_training(monkeypatch)
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
    forbid_training(monkeypatch)
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
    assert trained["training_score"] == pytest.approx(values[{"error": "accuracy"}.get(measure, measure)])
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
    options = ["-m", measure, "--folds", "3", "--tol", "1e-5", "-q", "--no-scaling"]
    arguments = build_parser().parse_args(["tune", str(data), "m", *options])
    task = load(arguments)
    candidates = candidates_of(arguments, task)
    task, folds = task.with_intercept(arguments, candidates.losses), spread(task.labels, 3, 0)
    for row in chooser(arguments, task, folds, candidates).rows(np.array([0.1, 4.0])):
        for k, (train, test) in enumerate(folds):
            losses = {name: row[f"param_{name}"] for name in ("risk", "hinge", "logistic")}
            fitted = MeasureSVC(measure, C=row["param_C"], tol=1e-5, **losses).fit(X[train], y[train])
            assert row[f"split{k}_test_score"] == pytest.approx(fitted.score(X[test], y[test]), abs=0.02)


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
    task = load(arguments)
    candidates = candidates_of(arguments, task)
    task, folds = task.with_intercept(arguments, candidates.losses), spread(task.labels, 3, 0)
    (row,) = chooser(arguments, task, folds, candidates).rows(np.array([4.0]))
    (k,) = [k for k, fold in enumerate(folds) if len(y) in fold.test]
    inside, outside = folds[k].train, folds[k].test[folds[k].test < len(y)]
    fitted = MeasureSVC("error", C=4.0, tol=1e-5).fit(X[inside], y[inside])
    right = (fitted.predict(X[outside]) == y[outside]).sum()
    assert row[f"split{k}_test_score"] == pytest.approx(right / (len(outside) + 1), abs=0.02)


def test_one_of_several_classes(three: tuple[Path, np.ndarray, np.ndarray], capsys: Capture) -> None:
    """--positive judges one class by who is called, and by its own ranking."""
    file, X, y = three
    run_json(capsys, "train", file, file.with_name("m"))
    model = load_model(file.with_name("m"))
    scores = model.on_numbers().scores(X)
    values = run_json(capsys, "evaluate", file, file.with_name("m"), "--positive", "2")
    called = scores.argmax(axis=1) == 2
    assert values["positives"] == (y == 2).sum()
    assert values["accuracy"] == pytest.approx((called == (y == 2)).mean())
    assert values["f1"] == pytest.approx(2 * (called & (y == 2)).sum() / (called.sum() + (y == 2).sum()))
    pairs = scores[y == 2, 2][:, None] - scores[y != 2, 2]
    assert values["roc_area"] == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)
    assert main(["evaluate", str(file), str(file.with_name("m")), "--positive", "5"]) == 2
    assert "--positive 5: expected one of the model's: 0, 1, 2" in capsys.readouterr().err


# what models and options say


@pytest.mark.parametrize(("classes", "names"), [(["no", "yes"], ("no", "yes")), ([1, 2], ("1", "2"))])
def test_the_classes_of_a_model_without_measure(
    tmp_path: Path, capsys: Capture, classes: list[object], names: tuple[str, str]
) -> None:
    """Signs stand for classes in SVM-perf's files only."""
    rows = "".join(f"{k},{names[k % 2]}\n" for k in range(9))
    (tmp_path / "t.csv").write_text("a,label\n" + rows)
    model = LinearModel(np.ones((1, 1)), np.full(1, -4.5), np.zeros(1), classes, index_base=None, feature_names=["a"])
    save_model(tmp_path / "m", model)
    values = run_json(capsys, "evaluate", tmp_path / "t.csv", tmp_path / "m")
    assert (values["positives"], values["accuracy"]) == (4, pytest.approx(5 / 9))


def test_a_model_of_svm_perf_and_names(folder: Path, capsys: Capture) -> None:
    (folder / "t.csv").write_text("a,b,label\n" + "".join(f"{k},1,{'yes' if k > 4 else 'no'}\n" for k in range(9)))
    assert main(["evaluate", "t.csv", "theirs"]) == 1
    assert "no example has the positive label 1, they have" in capsys.readouterr().err
    assert run_json(capsys, "evaluate", "t.csv", "theirs", "--positive", "yes")["positives"] == 4


def test_scores_that_overflow(folder: Path, capsys: Capture) -> None:
    save_model("huge", LinearModel(np.full((1, 2), 1e308), np.zeros(1), np.zeros(1), [-1, 1]))
    (folder / "big.svm").write_text("1 1:9 2:9\n-1 1:9 2:-9\n")
    for command in ("predict", "evaluate"):
        assert main([command, "big.svm", "huge"]) == 1
        assert "expected finite scores, got [inf] for example 1" in capsys.readouterr().err


def test_a_model_in_the_place_of_its_data(folder: Path, capsys: Capture) -> None:
    (folder / "link").symlink_to("1.svm")
    before = (folder / "1.svm").read_bytes()
    for command in ("train", "tune"):
        for model in ("1.svm", "link"):
            assert main([command, "1.svm", model]) == 2
            assert f"{model} would take the place of DATA" in capsys.readouterr().err
    for output, what in (("link", "DATA"), ("ours", "MODEL")):
        assert main(["predict", "1.svm", "ours", "-o", output]) == 2
        assert f"{output} would take the place of {what}: give FILE another" in capsys.readouterr().err
    assert load_model("ours").n_features == 2
    assert (folder / "1.svm").read_bytes() == before


def test_a_grid_from_high_to_low(folder: Path, capsys: Capture) -> None:
    rising, falling = (run_json(capsys, "tune", "1.svm", "m", "--grid", grid) for grid in ("1:100:3", "100:1:3"))
    assert falling == rising
    assert {point["C"] for point in falling["cross_validation"]} == {1, 10, 100}  # type: ignore[attr-defined]


def test_a_seed_below_zero(folder: Path, capsys: Capture) -> None:
    assert main(["tune", "1.svm", "m", "--seed", "-1"]) == 2
    assert "expected --seed of at least 0, got -1" in capsys.readouterr().err


def test_too_many_folds_are_seen_before_training(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"{k % 2} qid:{k // 4} 1:{k % 5}\n" for k in range(24))
    (folder / "q.svm").write_text(rows)
    forbid_training(monkeypatch)
    assert main(["tune", "q.svm", "m", "--measure", "roc_area", "--folds", "7"]) == 2
    assert capsys.readouterr().err == "metrimax tune: a fold has examples of one class only: give fewer --folds\n"


def test_quiet_leaves_out_remarks(folder: Path, capsys: Capture) -> None:
    said = []
    for extra in ([], ["-q"]):
        assert main(["train", "1.svm", "m", "--measure", "precision@3", *extra]) == 0
        said.append(capsys.readouterr().err)
    assert "labellings with exactly k positives" in said[0]
    assert said[1] == ""


def test_the_report_of_the_demo(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be written, or nothing is trained."""
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("metrimax.cli.comparison.docstrings", None)
    assert main(["demo", "--report", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"metrimax demo: {tmp_path}: cannot be written: Is a directory\n"


@pytest.mark.parametrize("measure", ["fbeta:beta=2", "precision@7"])
def test_evaluate_has_the_measure_of_the_training(folder: Path, capsys: Capture, measure: str) -> None:
    trained = run_json(capsys, "train", "1.svm", "m", "--measure", measure)
    values = run_json(capsys, "evaluate", "1.svm", "m")
    assert values[measure] == pytest.approx(trained["training_score"])
    assert next(iter(values["intervals"])) == "precision"  # type: ignore[call-overload]


@pytest.mark.parametrize(("measure", "shown"), [("precision@8", "precision@4"), ("recall@budget=8", "recall@budget=4")])
def test_evaluate_takes_the_share_of_a_fixed_k(folder: Path, capsys: Capture, measure: str, shown: str) -> None:
    rows = (folder / "1.svm").read_text().splitlines()
    (folder / "half.svm").write_text("\n".join(rows[::2]) + "\n")
    assert len(rows) % 2 == 0
    run_json(capsys, "train", "1.svm", "m", "--measure", measure, "--tol", "1e-4")
    values = run_json(capsys, "evaluate", "half.svm", "m")
    assert main(["predict", "half.svm", "m", "--scores"]) == 0
    scores = np.array(capsys.readouterr().out.split(), dtype=float)
    y = np.array([row.startswith("1") for row in rows[::2]])
    found = y[np.argsort(-scores)[:4]].sum()
    assert values[shown] == pytest.approx(found / (4 if measure.startswith("p") else y.sum()))
    assert measure not in values


def test_evaluate_has_the_measure_of_a_ranking(folder: Path, capsys: Capture) -> None:
    (folder / "q.svm").write_text("".join(f"{k % 3} qid:{k // 8} 1:{k % 5} 2:{k % 3}.{k}\n" for k in range(40)))
    trained = run_json(capsys, "train", "q.svm", "m", "--measure", "ndcg@2")
    assert run_json(capsys, "evaluate", "q.svm", "m")["ndcg@2"] == pytest.approx(trained["training_score"])
    model = load_model("m")
    save_model("m", LinearModel(model.coef, model.intercept, model.threshold, [], "ranking", "a name of others"))
    assert "ndcg@3" in run_json(capsys, "evaluate", "q.svm", "m")


def test_a_measure_whose_numbers_overflow(folder: Path, capsys: Capture) -> None:
    measure = f"precision@{'9' * 400}"
    assert main(["train", "1.svm", "m", "--measure", measure]) == 1
    assert capsys.readouterr().err.startswith("metrimax train: a number is too large to compute with (")
    save_model("m", LinearModel(np.ones((1, 2)), np.zeros(1), np.zeros(1), [-1, 1], measure=measure))
    assert main(["evaluate", "1.svm", "m"]) == 0
    said = capsys.readouterr()
    assert "f1: " in said.out
    assert f"left out: {measure} (" in said.err


@pytest.mark.parametrize("C", ["1e308", "1e-310"])
def test_a_C_beyond_what_can_be_computed_with(folder: Path, capsys: Capture, C: str) -> None:
    assert main(["train", "1.svm", "m", "-C", C]) == 1
    assert "expected C such that its product with the size of the sample" in capsys.readouterr().err
    assert not Path("m").exists()


def test_a_label_that_does_not_fit_on_a_line(folder: Path, capsys: Capture) -> None:
    Path("t.csv").write_text(
        "a,label\n" + "".join(f'{k},"{"one" if k % 2 else "two" + chr(10) + "lines"}"\n' for k in range(20))
    )
    trained = run_json(capsys, "train", "t.csv", "m", "--measure", "error")
    assert trained["classes"] == ["one", "two\nlines"]
    assert main(["predict", "t.csv", "m"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert r"got the model's 'two\nlines': --json writes any label" in said.err
    assert set(run_json(capsys, "predict", "t.csv", "m")["labels"]) <= {"one", "two\nlines"}
    assert main(["predict", "t.csv", "m", "--scores"]) == 0


def test_the_number_of_a_column_where_another_is_called_label(folder: Path, capsys: Capture) -> None:
    """All that a model of a table without header knows of the labels is their place."""
    rows = [(k % 7, k % 2, k % 3) for k in range(40)]
    Path("bare.csv").write_text("".join("{},{},{}\n".format(*row) for row in rows))
    run_json(capsys, "train", "bare.csv", "m", "--target", "1", "--measure", "error")
    Path("named.csv").write_text("a,b,label\n" + "".join(f"{a},{b},{label}\n" for a, label, b in rows))
    for command in ("predict", "evaluate"):
        assert main([command, "named.csv", "m"]) == 2
        assert "are the labels in the column 'label', or in column 1 (from 0)" in capsys.readouterr().err
    same = run_json(capsys, "evaluate", "bare.csv", "m")
    assert run_json(capsys, "evaluate", "named.csv", "m", "--target", "label") == same
    assert run_json(capsys, "evaluate", "named.csv", "m", "--target", "1") != same
    Path("named.csv").write_text("a,label,b\n" + Path("bare.csv").read_text())
    assert run_json(capsys, "evaluate", "named.csv", "m") == same


def test_a_positive_label_by_its_value(folder: Path, capsys: Capture) -> None:
    one, other = (run_json(capsys, "train", "1.svm", "m", "--positive", label) for label in ("1", "+1"))
    assert one == other
    assert run_json(capsys, "train", "1.svm", "m", "--positive", "-1.0")["classes"] == [1, -1]


def test_names_do_not_move_the_cursor(tmp_path: Path, capsys: Capture) -> None:
    """What a file of somebody else says is shown as text, wherever it is quoted."""
    evil = "spam\x1b]0;owned\x07\x9b2J\u202e"
    rows = "".join(f"{x},{evil if x > 1 else 'ham'}\n" for x in (0.0, 0.5, 1.5, 2.0))
    (tmp_path / "a.csv").write_text("x,label\n" + rows)
    assert main(["train", str(tmp_path / "a.csv"), str(tmp_path / "m")]) == 0
    assert main(["info", str(tmp_path / "m")]) == 0
    assert main(["evaluate", str(tmp_path / "a.csv"), str(tmp_path / "m"), "--positive", evil]) == 0
    assert main(["train", str(tmp_path / "a.csv"), str(tmp_path / "m"), "--positive", "\x1b[2J"]) == 1
    assert main(["train", str(tmp_path / "a.csv"), str(tmp_path / "m"), "--target", "\x1b[2J"]) == 1
    assert main(["info", str(tmp_path / "\x1b[2J")]) == 1
    assert main(["predict", str(tmp_path / "a.csv"), str(tmp_path / "m")]) == 2
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert text.replace("\n", "").isprintable()
        assert "\\x1b" in text
    assert "expected labels that a terminal can show" in said.err
    assert main(["predict", str(tmp_path / "a.csv"), str(tmp_path / "m"), "-o", str(tmp_path / "out")]) == 0
    assert evil in (tmp_path / "out").read_text()
    assert main(["predict", str(tmp_path / "a.csv"), str(tmp_path / "m"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"][-1] == evil
