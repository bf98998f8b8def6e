"""What is written stays: in which order, with which rights, and beside whom."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from metrimax import MeasureSVC, open_dataset
from metrimax.io import locks
from metrimax.io.checkpoints import Checkpoint
from metrimax.io.files import check_writable, write_bytes
from metrimax.io.writing import ShardWriter


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done to the disk."""
    done: list[str] = []
    fsync, rename = os.fsync, os.replace

    def put(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def renamed(*names: Path) -> None:
        done.append("rename")
        rename(*names)

    monkeypatch.setattr("os.fsync", put)
    monkeypatch.setattr("os.replace", renamed)
    return done


@pytest.mark.posix
def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, order: list[str]) -> None:
    write_bytes(tmp_path / "a", b"text")
    assert order == ["file", "rename", "folder"]


@pytest.mark.posix
def test_shards_are_on_the_disk_before_they_have_their_name(tmp_path: Path, order: list[str]) -> None:
    with ShardWriter(tmp_path / "out") as writer:
        writer.add(np.ones((2, 3)), np.ones(2))
    assert order == ["file", "file", "file", "rename", "folder", "rename", "folder"]  # X, y and the manifest


@pytest.mark.posix
def test_threads_that_write_leave_the_mask_of_the_process(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:

        def write(k: int) -> None:
            for _ in range(50):
                write_bytes(tmp_path / f"file-{k}", b"text")

        threads = [threading.Thread(target=write, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert os.umask(0o027) == 0o027
        modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        assert modes == {0o640}
    finally:
        os.umask(before)


@pytest.mark.posix
def test_a_file_keeps_its_rights(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o600)
    write_bytes(tmp_path / "a", b"new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


WRITING = """
    import os, signal, sys
    from metrimax.io.files import replacing
    with replacing(sys.argv[1]) as file:
        file.write(b"half")
        file.flush()
        print("here", flush=True)
        if sys.argv[2] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdin.readline()
"""


@pytest.mark.posix
def test_what_a_killed_writer_leaves_is_swept_away_and_what_a_living_one_has_is_not(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(WRITING), str(tmp_path / "a")]
    (tmp_path / "a").write_text("before")
    (tmp_path / ".a.mine").mkdir()  # of somebody else
    done = subprocess.run([*command, "killed"], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "a").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 3
    with subprocess.Popen([*command, "alive"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "here\n"
        check_writable(tmp_path / "a")
        assert len(list(tmp_path.iterdir())) == 3  # the dead one's is gone
        process.communicate("\n")
    assert process.returncode == 0
    assert (tmp_path / "a").read_text() == "half"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.mine", "a"]


@pytest.fixture
def as_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """No locks; files that are open cannot be renamed or removed, folders cannot be opened, and none gives way."""
    opened, rename, remove = os.open, os.replace, os.unlink
    sharing = PermissionError("the file is used by a process")

    def free(path: Path | str) -> None:
        held = [os.path.realpath(entry.path) for entry in os.scandir("/proc/self/fd")]
        if os.path.realpath(path) in held:
            raise sharing

    def put(source: Path | str, target: Path | str) -> None:
        if os.path.isdir(target):
            raise sharing
        for path in (source, target):
            free(path)
        rename(source, target)

    def take_away(path: Path | str) -> None:
        free(path)
        remove(path)

    def enter(path: Path | str, *arguments: int) -> int:
        if os.path.isdir(path):
            raise sharing
        return opened(path, *arguments)

    monkeypatch.setattr(locks, "fcntl", None)
    for name, call in (("replace", put), ("unlink", take_away), ("open", enter)):
        monkeypatch.setattr(os, name, call)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs a list of the files that are open")
def test_files_where_what_is_open_cannot_be_renamed(tmp_path: Path, as_on_windows: None) -> None:
    for text in (b"old", b"new"):
        check_writable(tmp_path / "a")
        write_bytes(tmp_path / "a", text)
        assert (tmp_path / "a").read_bytes() == text
    (tmp_path / "there").mkdir()
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    for name in ("there", "new"):
        with ShardWriter(tmp_path / name) as writer:
            writer.add(X, y)
        assert open_dataset(tmp_path / name).shape == (60, 3)
    MeasureSVC(checkpoint=Checkpoint(tmp_path / "state", minutes=0)).fit(X, y)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "new", "there"]
