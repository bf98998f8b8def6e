"""Commands that are killed wherever they touch the disk: what was there before is there, or the whole new."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from metrimax import open_dataset
from metrimax.io.models import load_model

pytestmark = pytest.mark.posix

PROGRAM = """
    import os, signal, sys

    number, at = 0, int(sys.argv[1])

    def counted(call):
        def touch(*arguments, **options):
            global number
            number += 1
            if number == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)
        return touch

    from metrimax.cli import main
    from metrimax.io.checkpoints import Checkpoint

    Checkpoint.__init__.__kwdefaults__["minutes"] = 0.0
    for name in ("fsync", "replace", "mkdir", "unlink", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))
    sys.exit(main(sys.argv[2:]))
"""


def killed(folder: Path, at: int, *arguments: str) -> bool:
    """Whether the command did not get to its end."""
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(at), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def write_rows(folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{1 if x > 0 else -1} 1:{x:.3f} 2:{z:.3f}" for x, z in rng.normal(size=(60, 2))]
    (folder / "a.svm").write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("command", [["train"], ["tune", "--grid", "1,2", "--folds", "2"]], ids=lambda c: c[0])
def test_a_model_is_the_old_or_the_new(tmp_path: Path, command: list[str]) -> None:
    write_rows(tmp_path)
    assert not killed(tmp_path, 0, "train", "a.svm", "m", "-C", "0.01")
    old = (tmp_path / "m").read_bytes()
    arguments = [*command, "a.svm", "m"]
    for at in range(1, 100):
        if not killed(tmp_path, at, *arguments):
            break
        load_model(tmp_path / "m")
        (tmp_path / "m").write_bytes(old)
    assert at > 3  # the check, the file, its name, the folder
    assert (tmp_path / "m").read_bytes() != old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svm", "m"]


def test_a_folder_of_shards_is_there_or_not(tmp_path: Path) -> None:
    write_rows(tmp_path)
    arguments = ["convert", "a.svm", "out"]
    complete = 0
    for at in range(1, 100):
        if not killed(tmp_path, at, *arguments):
            break
        if (tmp_path / "out").exists():  # killed behind the rename
            complete += 1
            assert open_dataset(tmp_path / "out").shape == (60, 2)
            (tmp_path / "out").rename(tmp_path / f"out-{at}")
    assert at > 5
    assert complete < at - 1
    assert open_dataset(tmp_path / "out").shape == (60, 2)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_state_is_never_half(tmp_path: Path) -> None:
    """Killed again and again the training gets to its end, each time from where it was."""
    write_rows(tmp_path)
    arguments = ["train", "a.svm", "m", "--tol", "1e-9", "--checkpoint", "state"]
    for at in range(7, 40, 4):
        if not killed(tmp_path, at, *arguments):
            break
        if (tmp_path / "m").exists():  # the model was in its place already
            load_model(tmp_path / "m")
            assert not killed(tmp_path, 0, *arguments)
            break
    else:
        assert not killed(tmp_path, 0, *arguments)
    load_model(tmp_path / "m")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svm", "m"]
