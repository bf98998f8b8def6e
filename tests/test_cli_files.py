"""Files that the metrimax command writes: not before it has all that belongs into them, and by names that are some."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from metrimax.cli import main, training, using
from metrimax.io.files import write_bytes

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n" * 9)
    monkeypatch.chdir(tmp_path)
    assert main(["train", "a.svm", "ours"]) == 0
    capsys.readouterr()
    return tmp_path


def refused(capsys: Capture, code: int, *arguments: str) -> str:
    """What the command says when it ends with this exit code."""
    try:
        ended: object = main(arguments)
    except SystemExit as end:  # of the parser
        ended = end.code
    assert ended == code
    return capsys.readouterr().err


@pytest.mark.parametrize("command", [["train"], ["tune", "--grid", "1,2", "--folds", "2"]])
def test_interrupted_while_the_training_is_judged(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """A pass over all data, before the model is written: "nothing was written" is then true."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "judged", interrupted)
    said = refused(capsys, 130, *command, "a.svm", "m")
    assert said.endswith(": interrupted; nothing was written\n")
    assert not (folder / "m").exists()


def test_predictions_that_cannot_be_written(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(using, "read", lambda *_, **__: pytest.fail("read before the check"))
    said = refused(capsys, 1, "predict", "a.svm", "ours", "-o", "no/such/place")
    assert said == "metrimax predict: no/such/place: cannot be written: No such file or directory\n"


def test_outputs_among_the_files_of_a_folder(folder: Path, capsys: Capture) -> None:
    """They would be read as data the next time, or take the place of some."""
    (folder / "data").mkdir()
    (folder / "link").symlink_to("data")
    text = (folder / "a.svm").read_text()
    (folder / "data" / "1.svm").write_text(text)
    for output in ("data/1.svm", "data/new", "link/1.svm"):
        said = refused(capsys, 2, "train", "data", output)
        assert said == (
            f"metrimax train: {output} would be one of the files of DATA: give MODEL a place outside that folder\n"
        )
        assert "give FILE a place" in refused(capsys, 2, "predict", "data", "ours", "-o", output)
    assert [path.name for path in (folder / "data").iterdir()] == ["1.svm"]
    assert (folder / "data" / "1.svm").read_text() == text
    assert main(["convert", "data", "shards"]) == 0
    for name in ("metrimax.json", "shard-00000.y.npy"):
        assert "would be one of the files of DATA" in refused(capsys, 2, "train", "shards", f"shards/{name}")
    for name in ("shards/model", "shards/model", "data/.model", "model"):  # beside what a manifest lists
        assert main(["train", "shards", name]) == 0


def test_standard_input_serves_one(folder: Path, capsys: Capture) -> None:
    for command in ("predict", "evaluate"):
        said = refused(capsys, 2, command, "-", "-")
        assert said == (
            f"metrimax {command}: expected DATA or MODEL at standard input (-), not both: give a file for one of them\n"
        )


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "", "m"],
        ["train", "a.svm", ""],
        ["tune", "", "m"],
        ["train", "a.svm", "m", "--checkpoint", ""],
        ["convert", "", "out"],
        ["convert", "a.svm", ""],
        ["predict", "", "ours"],
        ["predict", "a.svm", "ours", "-o", ""],
        ["evaluate", "a.svm", ""],
        ["info", ""],
        ["demo", "--report", ""],
    ],
)
def test_names_that_are_empty(folder: Path, capsys: Capture, arguments: list[str]) -> None:
    """A variable that is not set; the current folder was read in its place."""
    said = refused(capsys, 2, *arguments)
    assert said.endswith(": expected the name of a file, got an empty one: is a variable not set?\n")
    assert sorted(path.name for path in folder.iterdir()) == ["a.svm", "ours"]


def test_a_report_is_complete_or_not_there(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure")

    def full(self: object, file: object, **_: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise OSError(28, "No space left on device")

    (tmp_path / "a.svm").write_text("1 1:1\n-1 1:-1\n" * 10)
    report = tmp_path / "r.html"
    report.write_text("an older one")
    monkeypatch.setattr(figure.Figure, "savefig", full)
    assert main(["train", str(tmp_path / "a.svm"), str(tmp_path / "m"), "--report", str(report)]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert report.read_text() == "an older one"
    said = refused(capsys, 2, "demo", "--report", "-")
    assert "expected a file, got standard output" in said


def test_a_folder_for_checkpoints_that_cannot_be_written(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is seen before training, not when the first is due. One that becomes so later does not undo the training."""
    (folder / "state").mkdir()
    arguments = ["train", "a.svm", "m", "--checkpoint", "state"]
    with monkeypatch.context() as patch:
        patch.setattr("metrimax.io.files._file_beside", unwritable)
        patch.setattr(training, "check_writable", lambda _: None)
        said = refused(capsys, 1, *arguments)
    assert said.startswith("metrimax train: state/")
    assert said.endswith(".npz: cannot be written: Read-only file system\n")
    assert not (folder / "m").exists()
    monkeypatch.setattr(Path, "unlink", unwritable)
    assert main(arguments) == 0
    assert (folder / "m").exists()
    assert "status:         converged" in capsys.readouterr().out


def unwritable(*_: object, **__: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


def test_interrupted_when_a_file_has_just_got_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That there is nothing left to remove is not what ended it."""
    usual = os.replace

    def interrupted(old: str, new: str) -> None:
        usual(old, new)
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(tmp_path / "x", b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
