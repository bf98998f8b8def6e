"""The writer of shards: what it takes, what it refuses, and how it ends."""

from __future__ import annotations

import abc
import io
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from metrimax import open_dataset
from metrimax.io.compressed import read_bytes
from metrimax.io.files import FileError, check_writable, write_bytes
from metrimax.io.writing import ShardWriter, save_array


def test_the_writer_refuses_what_does_not_fit_together(tmp_path):
    def write(*blocks, **about):
        with ShardWriter(tmp_path / "out") as writer:
            for block in blocks:
                writer.add(*block)
            writer.finish(**about)

    with pytest.raises(FileError, match="of one width"):
        write([np.ones((2, 3))], [np.ones((2, 4))])
    with pytest.raises(FileError, match="of one kind"):
        write([np.ones((2, 3))], [sparse.csr_array(np.ones((2, 3)))])
    with pytest.raises(FileError, match="some rows have labels"):
        write([np.ones((2, 3)), np.ones(2)], [np.ones((2, 3))])
    with pytest.raises(FileError, match=r"expected feature_names as a list of 3 strings, one per column, got \['a'\]"):
        write([np.ones((2, 3))], feature_names=["a"])
    with pytest.raises(FileError, match="expected feature_names as a list of 3 strings"):
        write([np.ones((2, 3))], feature_names=[1, 2, 3])
    for rows, came in ((np.ones(2), r"shape \(2,\)"), (1j * np.ones((2, 3)), "type complex128"), ([[1.0]], "list")):
        with pytest.raises(FileError, match=f"expected rows as a matrix of real numbers, .* got .*{came}"):
            write([rows])
    with pytest.raises(FileError, match="expected 2 labels, one per row, got 3"):
        write([np.ones((2, 3)), np.ones(3)])
    with pytest.raises(FileError, match="expected 2 groups, one per row, got 1"):
        write([np.ones((2, 3)), np.ones(2), [4]])
    with pytest.raises(FileError, match=r"expected labels as numbers or strings, .* got an array of shape \(2, 2\)"):
        write([np.ones((2, 3)), np.eye(2)])
    with pytest.raises(FileError, match=r"expected labels as numbers or strings, .* type object"):
        write([np.ones((2, 3)), np.array(["a", None], dtype=object)])
    with pytest.raises(FileError, match="expected rows to write, got none"):
        write()
    with pytest.raises(ValueError, match="expected dtype as float32, float64 or None, got 'int8'"):
        ShardWriter(tmp_path / "out", dtype="int8")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_the_writer_takes_sparse_matrices_of_any_form(tmp_path, form):
    X = np.arange(16.0).reshape(4, 4) % 3
    with ShardWriter(tmp_path / "out", shard_size="1kB") as writer:
        writer.add(sparse.csr_array(X).asformat(form), [1, 0, 1, 0])
    dataset = open_dataset(tmp_path / "out")
    assert_array_equal(dataset.matvec(np.eye(4)), X)
    assert_array_equal(dataset.y, [1, 0, 1, 0])  # one label for each row, though in a list


@pytest.mark.parametrize("labels", [["b", "a"], np.array(["b", "a"], dtype=object)])
def test_the_writer_takes_names_as_lists_and_objects(tmp_path, labels):
    with ShardWriter(tmp_path / "out") as writer:
        writer.add(np.ones((2, 1)), labels, groups=["q", "q"])
    dataset = open_dataset(tmp_path / "out")
    assert dataset.labels.tolist() == ["b", "a"]
    assert dataset.groups.tolist() == ["q", "q"]


def test_a_writer_that_is_not_told_to_finish_does(tmp_path):
    with ShardWriter(tmp_path / "out") as writer:
        writer.add(np.ones((2, 3)), np.ones(2))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert open_dataset(tmp_path / "out").shape == (2, 3)
    with pytest.raises(FileError, match="expected rows to write, got none"), ShardWriter(tmp_path / "none"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.posix
@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o700), (0o002, 0o775)])
def test_a_folder_is_open_to_whom_the_user_lets_in(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        with ShardWriter(tmp_path / "out") as writer:
            writer.add(np.ones((2, 3)))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == mode


def test_names_as_long_as_the_system_allows(tmp_path):
    for name in ("a" * 255, "\u00e4" * 127):
        with ShardWriter(tmp_path / name) as writer:
            writer.add(np.ones((2, 3)))
        assert [entry.name for entry in tmp_path.iterdir()] == [name]
        shutil.rmtree(tmp_path / name)
        write_bytes(tmp_path / name, b"text")
        check_writable(str(tmp_path / name))
        assert (tmp_path / name).read_bytes() == b"text"
        assert [entry.name for entry in tmp_path.iterdir()] == [name]
        (tmp_path / name).unlink()


@pytest.mark.posix
def test_a_disk_that_is_full(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n" * 1000)
    program = f"ulimit -f 4; {sys.executable} -m metrimax convert a.svm out"
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "metrimax convert: out: cannot be written: File too large\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svm"]


@pytest.mark.parametrize("array", [np.ones((2, 3)), np.array(["a", "bc"]), np.arange(4, dtype=np.int32), np.empty(0)])
def test_an_interruption_is_not_taken_for_another_error(tmp_path, monkeypatch, array):
    """NumPy asks whether files are paths, and is mistaken where the answer is an exception."""
    usual = abc.ABCMeta.__instancecheck__

    def interrupted(cls, instance):
        if cls is os.PathLike:
            raise KeyboardInterrupt
        return usual(cls, instance)

    monkeypatch.setattr(abc.ABCMeta, "__instancecheck__", interrupted)
    save_array(tmp_path / "a.npy", array)
    raw = read_bytes(tmp_path / "a.npy")
    monkeypatch.undo()
    loaded = np.load(io.BytesIO(raw.tobytes()))
    assert loaded.dtype == array.dtype
    np.testing.assert_array_equal(loaded, array)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_one(tmp_path, there):
    """Shards go where it leads, be it to an empty folder or to a name that is free."""
    if there:
        (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with ShardWriter(tmp_path / "link") as writer:
        writer.add(np.ones((2, 3)))
    assert (tmp_path / "link").is_symlink()
    assert open_dataset(tmp_path / "real").shape == (2, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_folders_that_nothing_can_be_renamed_to(tmp_path, monkeypatch):
    """They are refused before anything is written, not when all is."""
    monkeypatch.chdir(tmp_path)
    for name in (".", str(tmp_path)):
        with pytest.raises(FileError, match="expected a folder to make, got the current one or a mounted one"):
            ShardWriter(name)
    (tmp_path / "volume").mkdir()
    monkeypatch.setattr(Path, "is_mount", lambda path: path.name == "volume")
    with pytest.raises(FileError, match="volume: expected a folder to make"):
        ShardWriter("volume")
