"""Shards that are not as they should be, limits on memory that are kept."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from shard_folders import P, make_problem, svmlight, write_folder

from metrimax import MeasureSVC, open_dataset
from metrimax.cli import main
from metrimax.designs import CSR
from metrimax.io.converting import convert
from metrimax.io.files import FileError
from metrimax.io.limits import parse_size
from metrimax.io.sealing import SEAL, sealed
from metrimax.io.shards import MANIFEST, map_array, part_file
from metrimax.io.writing import ShardWriter


@pytest.fixture(scope="module")
def problem():
    return make_problem()


@pytest.fixture
def shards(problem, tmp_path):
    convert(write_folder("svmlight", tmp_path / "text", *problem), tmp_path / "data", shard_size=8000)
    return tmp_path / "data"


def spoil(path, change):
    array = np.load(path)
    change(array)
    np.save(path, array)


def test_a_shard_that_is_missing_cut_off_or_damaged_is_named(shards):
    victim = part_file(shards / "shard-00002", "data")
    content = victim.read_bytes()
    victim.unlink()
    with pytest.raises(FileError, match=r"shard-00002\.data\.npy: missing"):
        open_dataset(shards)
    victim.write_bytes(content[:-8])
    with pytest.raises(FileError, match=r"shard-00002\.data\.npy: cut off"):
        open_dataset(shards)
    victim.write_bytes(content[:-3] + b"\x01" + content[-2:])
    with pytest.raises(FileError, match=r"shard-00002\.data\.npy: damaged: its checksum"):
        MeasureSVC().fit(open_dataset(shards))
    victim.write_bytes(b"no numbers".ljust(len(content)))
    with pytest.raises(FileError, match=r"shard-00002\.data\.npy: no NumPy array"):
        MeasureSVC().fit(open_dataset(shards, verify=False))
    victim.write_bytes(content)
    labels = part_file(shards / "shard-00001", "y")
    spoil(labels, lambda y: y.__setitem__(0, 7.0))
    with pytest.raises(FileError, match=r"shard-00001\.y\.npy: damaged"):
        open_dataset(shards)


def test_bad_numbers_are_found_where_they_are(shards, problem, tmp_path):
    spoil(part_file(shards / "shard-00003", "data"), lambda data: data.__setitem__(2, np.nan))
    with pytest.raises(FileError, match=r"shard-00003: row 0, column \d+ \(from 0\) holds nan"):
        MeasureSVC().fit(open_dataset(shards, verify=False))
    spoil(part_file(shards / "shard-00003", "indices"), lambda indices: indices.__setitem__(0, 10**6))
    with pytest.raises(FileError, match="shard-00003: bad CSR matrix: column index 1000000"):
        MeasureSVC().fit(open_dataset(shards, verify=False))
    dense = write_folder("npy", tmp_path / "dense", *problem)
    spoil(dense / "part-1.X.npy", lambda X: X.__setitem__((4, 2), np.inf))
    with pytest.raises(FileError, match=r"part-1: row 4, column 2 \(from 0\) holds inf"):
        MeasureSVC().fit(open_dataset(dense))


@pytest.mark.parametrize("open_before", [True, False])
def test_a_shard_that_changes_or_goes_away_during_a_fit(shards, open_before):
    dataset = open_dataset(shards, memory="1MB" if open_before else 30_000)
    w = np.ones(P)
    dataset.matvec(w)
    victim = part_file(shards / "shard-00001", "indices")
    spoil(victim, lambda indices: indices.__setitem__(0, 10**6))
    with pytest.raises(FileError, match="shard-00001: has changed since it was opened"):
        dataset.matvec(w)
    victim.unlink()
    with pytest.raises(FileError, match=r"shard-00001\.indices\.npy: No such file"):
        dataset.matvec(w)


def test_text_shards_that_change_or_go_away(problem, tmp_path):
    folder = write_folder("svmlight", tmp_path / "text", *problem)
    dataset = open_dataset(folder, memory=150_000)
    dataset.matvec(np.ones(P))
    dataset._open.clear()
    (folder / "part-4.svm").write_text("1 1:1\n")
    with pytest.raises(FileError, match=r"part-4\.svm: has changed since it was opened"):
        dataset.matvec(np.ones(P))
    dataset._open.clear()
    (folder / "part-4.svm").unlink()
    with pytest.raises(FileError, match=r"part-4\.svm: No such file"):
        dataset.matvec(np.ones(P))


def test_a_text_shard_that_keeps_its_rows_but_not_its_numbers(problem, tmp_path):
    X, y = problem
    folder = write_folder("svmlight", tmp_path / "text", X, y)
    dataset = open_dataset(folder, memory=150_000)
    copied = pickle.loads(pickle.dumps(dataset))  # as on a machine that has files of its own, of another time
    (folder / "part-4.svm").write_text(svmlight(2 * X[320:], y[320:]))
    with pytest.raises(FileError, match=r"part-4\.svm: has changed since it was opened"):
        dataset.matvec(np.ones(P))
    copied.matvec(np.ones(P))
    copied._open.clear()
    (folder / "part-4.svm").write_text(svmlight(3 * X[320:], y[320:]))
    with pytest.raises(FileError, match=r"part-4\.svm: has changed since it was opened"):
        copied.matvec(np.ones(P))


def test_text_files_without_entries_or_rows(tmp_path):
    (tmp_path / "a.svm").write_text("# nothing yet\n")
    (tmp_path / "b.svm").write_text("1\n-1\n")
    assert open_dataset(tmp_path).shape == (2, 0)
    (tmp_path / "c.svm").write_text("1 2:3\n")
    dataset = open_dataset(tmp_path)
    assert_array_equal(dataset.matvec(np.ones(2)), [0, 0, 3])
    assert_array_equal(dataset.labels, [1, -1, 1])


@pytest.mark.parametrize(
    ("part", "array", "said"),
    [
        ("y_starts", np.array([0, 1, 2]), r"y_starts\.npy: expected 4 whole numbers from 0 up to 3"),
        ("y_starts", np.array([1, 1, 2, 3]), r"y_starts\.npy: expected 4 whole numbers"),
        ("y_starts", np.array([0, 1, 2, 4]), r"y_starts\.npy: expected 4 whole numbers"),
        ("y_starts", np.array([0, 2, 1, 3]), r"y_starts\.npy: expected 4 whole numbers"),
        ("y_starts", np.array([0.0, 1.0, 2.0, 3.0]), r"y_starts\.npy: expected 4 whole numbers .* float64"),
        ("y", np.ones((3, 2)), r"y_starts\.npy: expected 4 whole numbers"),
        ("y", np.array([1, np.nan, 2]), r"y\.npy: row 1 \(from 0\) holds nan: expected labels"),
        ("indices", np.array(["0", "1", "0"]), r"indices\.npy: expected whole numbers in one dimension, got .*<U1"),
        ("indptr", np.array(3), r"indptr\.npy: expected whole numbers in one dimension, got shape \(\)"),
        ("indptr", np.empty(0, dtype=np.int32), r"indptr\.npy: expected whole numbers in one dimension, got shape"),
        ("indices", np.array([0, 1, 0], dtype=np.uint32), "both be int32 or both int64, got uint32"),
    ],
)
def test_arrays_that_do_not_fit_together(tmp_path, part, array, said):
    parts = {
        "data": np.ones(3),
        "indices": np.array([0, 1, 0], dtype=np.int32),
        "indptr": np.arange(4, dtype=np.int32),
        "y": np.array([1.0, 2.0, 1.0]),
        "y_starts": np.arange(4),
    }
    for name, value in (parts | {part: array}).items():
        np.save(tmp_path / f"a.{name}.npy", value)
    with pytest.raises(FileError, match=said):
        open_dataset(tmp_path).matvec(np.ones(2))


def test_folders_that_are_no_data(tmp_path, problem):
    X, y = problem
    with pytest.raises(FileError, match="got nothing"):
        open_dataset(tmp_path / "absent")
    (tmp_path / "file").write_text("1 1:1\n")
    with pytest.raises(FileError, match="got a file"):
        open_dataset(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="empty folder"):
        open_dataset(tmp_path / "empty")
    mixed = write_folder("svmlight", tmp_path / "mixed", X, y)
    (mixed / "table.csv").write_text("a,label\n1,2\n")
    with pytest.raises(FileError, match=r"table\.csv: taken for csv, but part-0\.svm for svmlight|part-0"):
        open_dataset(mixed)
    arrays = write_folder("npy", tmp_path / "arrays", X, y)
    (arrays / "README").write_text("?")
    with pytest.raises(FileError, match=r"README: expected NAME\.X\.npy"):
        open_dataset(arrays)
    (arrays / "README").unlink()
    np.save(arrays / "part-2.X.npy", X[:80, :4])
    with pytest.raises(FileError, match="part-2: expected 30 columns, as in the first shard, got 4"):
        open_dataset(arrays)
    np.save(arrays / "part-2.X.npy", X[:80])
    np.save(arrays / "part-2.y.npy", y[:79])
    with pytest.raises(FileError, match=r"part-2\.y\.npy: expected 80 labels"):
        open_dataset(arrays)
    (arrays / "part-2.y.npy").unlink()
    with pytest.raises(FileError, match="some rows have labels"):
        open_dataset(arrays)
    (arrays / "part-2.X.npy").rename(arrays / "part-2.data.npy")
    with pytest.raises(FileError, match="dense and sparse shards are mixed"):
        open_dataset(arrays)
    sparse_arrays = write_folder("npy-csr", tmp_path / "sparse_arrays", X, y)
    (sparse_arrays / "part-2.indices.npy").unlink()
    with pytest.raises(FileError, match=r"part-2\.indices\.npy is missing"):
        open_dataset(sparse_arrays)
    objects = tmp_path / "objects"
    objects.mkdir()
    np.save(objects / "a.X.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(FileError, match="holds pickled objects"):
        open_dataset(objects)


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "metrimax-shards"}', '{"format": "x", "version": 3}'])
def test_bad_manifests(shards, content):
    (shards / MANIFEST).write_text(content)
    with pytest.raises(FileError, match=r"metrimax\.json: (damaged|expected metrimax-shards)"):
        open_dataset(shards)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"feature_names": 5}, "expected feature_names as 30 strings or null, got 5"),
        ({"feature_names": [1] * P}, "expected feature_names as 30 strings"),
        ({"feature_names": ["a"]}, "expected feature_names as 30 strings"),
        ({"parts": ["X", "X"]}, "expected the parts"),
        ({"parts": [["X"]]}, "expected the parts"),
        ({"columns": -1}, r"expected a number of columns below 2\^48, got -1"),
        ({"columns": 2**60}, r"expected a number of columns below 2\^48, got 1152921504606846976"),
        ({"columns": float("inf")}, "Infinity is not allowed"),
        ({"index_base": "1"}, "expected index_base as a whole number"),
        ({"shards": []}, "expected shards, got none"),
        ({"shards": [{"name": 5, "rows": 1, "files": {}}]}, "expected the name of a shard and its rows, got 5 and 1"),
        *(
            ({"shards": [{"name": name, "rows": 1, "files": {}}]}, "expected the name of a shard and its rows")
            for name in ("", "a/..", "../b", "/tmp/b", "a\0", "\ud800", "a" * 300)
        ),
        ({"shards": [{"name": "a", "rows": -1, "files": {}}]}, "expected the name of a shard and its rows"),
        ({"shards": [{"name": "a", "rows": 1, "files": {"X": 5}}]}, "TypeError"),
    ],
)
def test_manifests_that_no_writer_wrote(shards, change, said):
    manifest = json.loads((shards / MANIFEST).read_text())
    del manifest[SEAL]
    (shards / MANIFEST).write_text(json.dumps(sealed(manifest | change)))
    with pytest.raises(FileError, match=rf"metrimax\.json: damaged.*{said}.*convert the data again"):
        open_dataset(shards)
    (shards / MANIFEST).write_text("[" * 100_000)
    with pytest.raises(FileError, match=r"metrimax\.json: damaged"):
        open_dataset(shards)


def test_a_folder_by_its_relative_name_stays_where_it_is(shards, tmp_path, monkeypatch):
    monkeypatch.chdir(shards.parent)
    dataset = open_dataset(shards.name)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert dataset.matvec(np.ones(P)).shape == (400,)


def test_folders_that_may_not_be_read(shards, tmp_path, monkeypatch):
    def refused(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(FileError, match=r"data: expected a folder to read, got an error \(Permission denied\)"):
        open_dataset(shards)
    with pytest.raises(FileError, match="text: expected a folder to read"):
        convert(tmp_path / "text", tmp_path / "out")
    with pytest.raises(FileError, match="data: cannot be written: Permission denied"):
        convert(tmp_path / "text", shards)


def test_sizes():
    assert [parse_size(size) for size in (7, "1kB", "2 MiB", "1.5G")] == [7, 1000, 2 << 20, 1_500_000_000]
    for size in ("", "lots", 0, "-3MB", "1XB"):
        with pytest.raises(ValueError, match="expected a size"):
            parse_size(size)


def test_sizes_on_the_command_line(shards, tmp_path, capsys):
    assert main(["train", str(shards), str(tmp_path / "model"), "--memory", "much"]) == 2
    assert main(["convert", str(shards), str(tmp_path / "out"), "--shard-size", "0"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert "--memory: expected a size" in errors[0]
    assert "--shard-size: expected a size" in errors[1]


def test_a_limit_below_one_shard_is_an_error(shards):
    with pytest.raises(ValueError, match=r"needs up to .* bytes of memory, more than the 1,000 allowed"):
        open_dataset(shards, memory=1000)


def test_a_model_with_more_columns_than_the_shards(tmp_path):
    convert_from = tmp_path / "narrow.svm"
    convert_from.write_text("1 1:1\n-1 2:1\n")
    convert(convert_from, tmp_path / "narrow")
    dataset = open_dataset(tmp_path / "narrow", n_features=5)
    assert_array_equal(dataset.matvec(np.arange(5.0)), [0, 1])
    with pytest.raises(FileError, match="expected 1 features, those of the model, got 2"):
        open_dataset(tmp_path / "narrow", n_features=1)


# --- memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits on address space are kept on Linux only")
def test_training_on_more_data_than_the_process_may_have(tmp_path):
    """120 MB of rows under a limit that leaves 88 MB above what the interpreter has taken."""
    rng = np.random.default_rng(0)
    n, p, pieces = 10_000, 50, 30
    with ShardWriter(tmp_path / "data", shard_size=8 * n * p) as writer:
        for _ in range(pieces):
            y = rng.random(n) < 0.1
            writer.add(rng.normal(size=(n, p)) + 0.3 * y[:, None], y.astype(float))
        writer.finish()
    program = """
        import resource, sys
        import numpy as np
        from metrimax import MeasureSVC, open_dataset
        from metrimax.designs import Sharded
        taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        limit = taken + 88 * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        dataset = open_dataset(sys.argv[1], memory="10MiB", n_threads=2)
        assert sum(shard.held for shard in dataset.shards) > 115e6
        clf = MeasureSVC("f1", C=0.01, tol=1e-2).fit(dataset)
        try:
            np.concatenate([np.load(f"{shard.stem}.X.npy") for shard in dataset.shards])
        except MemoryError:
            print(clf.objective_, clf.gap_)
    """
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "data")],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    _, gap = map(float, done.stdout.split())
    assert gap <= 1e-2


def test_csr_of_a_shard_is_checked_once(shards, monkeypatch):
    checked = []

    def counted(*arguments, check):
        checked.append(check)
        return CSR(*arguments, check=check)

    monkeypatch.setattr("metrimax.io.shards.CSR", counted)
    dataset = open_dataset(shards, memory=30_000)
    for _ in range(3):
        dataset.matvec(np.ones(P))
    assert sum(checked) == len(dataset.shards) < len(checked)
    assert isinstance(dataset.shards[0].load(1), CSR)


def test_a_header_is_read_again_where_the_parser_failed(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(3.0))
    read, failures = np.lib.format.read_array_header_1_0, [SystemError("AST constructor recursion depth mismatch")] * 3

    def fails(file):
        found = read(file)
        if failures:
            raise failures.pop()
        return found

    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", fails)
    np.testing.assert_array_equal(map_array(path), [0, 1, 2])
    failures.extend([SystemError("broken for good")] * 10)
    with pytest.raises(SystemError, match="for good"):
        map_array(path)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), [",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{[]: 1}",
        "   'descr'\n 1",
        "((((((",
    ],
)
def test_a_header_that_is_damaged(tmp_path, header):
    """NumPy parses it as Python, which has errors of its own."""
    text = header.encode().ljust(117) + b"\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(24))
    with pytest.raises(FileError, match=r"x\.npy: no NumPy array \(.*: the file is damaged"):
        map_array(tmp_path / "x.npy")


def test_rows_without_a_with_block(tmp_path):
    with pytest.raises(FileError, match="expected rows inside a with block, which writes the folder as a whole"):
        ShardWriter(tmp_path / "data").add(np.eye(2))
    assert not list(tmp_path.iterdir())
