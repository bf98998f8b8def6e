"""Small files that ask for much memory, and compressed ones that are damaged behind their first member."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from metrimax import open_dataset
from metrimax.cli import main
from metrimax.io.compressed import open_stream, read_bytes
from metrimax.io.converting import convert
from metrimax.io.data import load_data
from metrimax.io.files import FileError
from metrimax.io.limits import allowance
from metrimax.io.models import load_model
from metrimax.io.sealing import SEAL, sealed
from metrimax.io.shards import MANIFEST
from metrimax.io.writing import ShardWriter

MEMBERS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
ASKED = r"expected at most \d+ bytes from \d+ bytes of file, got .* set METRIMAX_LIMIT"

MEASURED = """
    import resource, sys
    from metrimax.cli import main
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code = main(sys.argv[1:])
    print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def peak(*arguments: object) -> tuple[int, int, str]:
    """Exit code, bytes that a command took beyond its start, and what it said."""
    command = [sys.executable, "-c", textwrap.dedent(MEASURED), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    code, taken = done.stdout.split()[-2:]
    return int(code), int(taken) * (1 if sys.platform == "darwin" else 1024), done.stderr


def columns_of_many_rows(path: Path) -> None:
    parts = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2]), "format": b"csc"}
    np.savez(path, shape=np.array([500_000_000, 2]), **parts)


@pytest.mark.posix
def test_a_small_archive_that_asks_for_much(tmp_path: Path) -> None:
    columns_of_many_rows(tmp_path / "a.npz")
    code, taken, said = peak("train", tmp_path / "a.npz", tmp_path / "m")
    assert code == 1
    assert "got a matrix of shape (500000000, 2), which takes 4000000000 or more" in said
    assert taken < 2e8


def zeros(path: Path, begin: bytes = b"") -> None:
    with gzip.open(path, "wb") as file:
        file.write(begin)
        for _ in range(1000):
            file.write(bytes(2**20))


@pytest.mark.posix
@pytest.mark.parametrize("begin", [b"", b"metrimax-model 2 0\n{}\n"])
def test_a_small_file_of_gzip_that_becomes_large(tmp_path: Path, begin: bytes) -> None:
    zeros(tmp_path / "bomb.gz", begin)
    for command in (["info", tmp_path / "bomb.gz"], ["train", tmp_path / "bomb.gz", tmp_path / "m"]):
        code, taken, said = peak(*command)
        assert code == 1
        assert taken < 8e8
        assert ("METRIMAX_LIMIT" in said) == (bool(begin) == (command[0] == "info"))  # lines are read as they come
    with pytest.raises(FileError, match="line 1" if begin else ASKED):
        convert(tmp_path / "bomb.gz", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["bomb.gz"]


def test_the_limit_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    text = b"1 1:1\n-1 2:1\n" * 100
    (tmp_path / "a.svm.gz").write_bytes(gzip.compress(text))
    assert load_data(tmp_path / "a.svm.gz").n == 200
    for limit in (len(text) - 1, f"{len(text) - 1}B"):
        with pytest.raises(FileError, match=ASKED):
            load_data(tmp_path / "a.svm.gz", limit=limit)
    with pytest.raises(FileError, match=ASKED):
        convert(tmp_path / "a.svm.gz", tmp_path / "out", limit=1000)
    with pytest.raises(FileError, match=ASKED):
        load_model(tmp_path / "a.svm.gz", limit=1000)
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.svm.gz").rename(tmp_path / "folder" / "a.svm.gz")
    with pytest.raises(FileError, match=ASKED):
        open_dataset(tmp_path / "folder", limit=1000)
    monkeypatch.setenv("METRIMAX_LIMIT", "1kB")
    assert main(["train", str(tmp_path / "folder"), str(tmp_path / "m")]) == 1
    assert "expected at most 1000 bytes" in capsys.readouterr().err
    monkeypatch.setenv("METRIMAX_LIMIT", "1MB")
    assert main(["train", str(tmp_path / "folder"), str(tmp_path / "m")]) == 0
    monkeypatch.setenv("METRIMAX_LIMIT", "much")
    with pytest.raises(ValueError, match="METRIMAX_LIMIT: expected a size"):
        allowance(0)


def test_a_feature_index_beyond_all_measure(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 2147483646:1\n-1 1:1\n")
    with pytest.raises(FileError, match=f"a feature index of 2147483646.*{ASKED[-10:]}"):
        load_data(tmp_path / "a.svm")
    assert load_data(tmp_path / "a.svm", n_features=5).X.shape == (2, 5)
    assert load_data(tmp_path / "a.svm", limit="32GiB").X.shape == (2, 2147483646)


def archive(path: Path, header: bytes, body: bytes, *, method: int = zipfile.ZIP_DEFLATED) -> None:
    """An archive with one array of this header."""
    with zipfile.ZipFile(path, "w", method) as file:
        length = len(header).to_bytes(2, "little")
        file.writestr("X.npy", b"\x93NUMPY\x01\x00" + length + header + body)


@pytest.mark.parametrize("shape", ["(10**9, 4)", "(1000000000000, 4)", "(0, 1000000000)", "(4, -1)", "(True, 4)"])
def test_shapes_that_the_bytes_are_not(tmp_path: Path, shape: str) -> None:
    archive(
        tmp_path / "a.npz", b"{'descr': '<f8', 'fortran_order': False, 'shape': %s, }\n" % shape.encode(), bytes(64)
    )
    with pytest.raises(FileError, match=r"a\.npz: "):
        load_data(tmp_path / "a.npz")


def test_archives_that_expand(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((10_000, 4000)))
    with pytest.raises(FileError, match=ASKED):
        load_data(tmp_path / "a.npz")
    assert load_data(tmp_path / "a.npz", limit="1GB").X.shape == (10_000, 4000)


def test_archives_read_as_numpy_reads_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    for given in (X, np.asfortranarray(X), X.astype(">f4"), X[:0], X.astype(np.float32)):
        np.savez(tmp_path / "a.npz", X=given, y=np.arange(len(given)) % 2)
        data = load_data(tmp_path / "a.npz")
        np.testing.assert_array_equal(data.X, given)
    np.savez_compressed(tmp_path / "a.npz", X=X, y=np.arange(20) % 2)
    np.testing.assert_array_equal(load_data(tmp_path / "a.npz").X, X)
    raw = (tmp_path / "a.npz").read_bytes()
    for at in range(30, len(raw), 7):
        (tmp_path / "a.npz").write_bytes(raw[:at] + bytes([raw[at] ^ 8]) + raw[at + 1 :])
        try:
            read = load_data(tmp_path / "a.npz")
        except FileError:
            continue
        np.testing.assert_array_equal(read.X, X)  # what zip does not look at


def test_tables_of_many_rows_in_few_bytes(tmp_path: Path) -> None:
    arrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    table = arrow.table({"a": np.zeros(40_000_000, dtype=np.int8), "label": np.zeros(40_000_000, dtype=np.int8)})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 10**6
    with pytest.raises(FileError, match=r"got 40000000 rows of 2 columns"):
        load_data(tmp_path / "a.parquet")


def test_a_manifest_of_too_many_columns(tmp_path: Path) -> None:
    with ShardWriter(tmp_path / "shards") as writer:
        writer.add(sparse.eye(4).tocsr(), [0, 1, 0, 1])
    file = tmp_path / "shards" / MANIFEST
    manifest = json.loads(file.read_text())
    del manifest[SEAL]
    file.write_text(json.dumps(sealed(manifest | {"columns": 2**40})))
    with pytest.raises(FileError, match=ASKED):
        open_dataset(tmp_path / "shards")


@pytest.mark.parametrize("ending", [*MEMBERS, "zst"])
def test_members_behind_the_first(tmp_path: Path, ending: str) -> None:
    """Each is read, and none is left out because it is damaged."""
    if ending == "zst":
        compress = pytest.importorskip("zstandard").ZstdCompressor(write_checksum=True).compress
    else:
        compress = MEMBERS[ending]
    texts = [b"1 1:1\n" * 50, b"-1 2:1\n" * 50]
    one, two = map(compress, texts)
    file = tmp_path / f"a.svm.{ending}"
    file.write_bytes(one + two)
    assert read_bytes(file).tobytes() == b"".join(texts)
    with open_stream(file) as stream:
        assert stream.read() == b"".join(texts)
    if ending in ("gz", "xz"):  # which may be padded
        file.write_bytes(one + bytes(8192) + two + bytes(4))
        assert read_bytes(file).tobytes() == b"".join(texts)
    spoilt = bytearray(two)
    spoilt[len(two) // 2] ^= 0x55
    for second in (bytes(spoilt), two[:-1], two[: len(two) // 2], two[:3], b"no member"):
        file.write_bytes(one + second)
        with pytest.raises(FileError, match="damaged or cut off"):
            read_bytes(file)
        with pytest.raises(FileError, match="damaged or cut off"):
            convert(file, tmp_path / "out")


def test_a_manifest_cannot_be_changed_unnoticed(tmp_path: Path) -> None:
    with ShardWriter(tmp_path / "shards") as writer:
        writer.add(sparse.eye(4).tocsr(), [0, 1, 0, 1])
        writer.finish(index_base=1)
    file = tmp_path / "shards" / MANIFEST
    text = file.read_text()
    assert open_dataset(tmp_path / "shards").index_base == 1
    for change in (('"index_base": 1', '"index_base": 0'), ('"version": 2', '"version": 1'), ("sha256", "sha255")):
        assert change[0] in text
        file.write_text(text.replace(*change))
        with pytest.raises(FileError, match="damaged, or no manifest of shards"):
            open_dataset(tmp_path / "shards")
    file.write_text(text.replace('"index_base": 1', '"index_base": 0, "index_base": 1'))
    with pytest.raises(FileError, match="the entry 'index_base' is there twice"):
        open_dataset(tmp_path / "shards")
    old = {key: value for key, value in json.loads(text).items() if key != SEAL}
    file.write_text(json.dumps(old | {"version": 1}))
    assert open_dataset(tmp_path / "shards").index_base == 1  # what version 1 wrote is still read


def test_memory_that_a_header_cannot_have(tmp_path: Path) -> None:
    """An archive of members of one name, of which NumPy would take the last."""
    content = io.BytesIO()
    np.save(content, np.ones((2, 2)))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("X.npy", content.getvalue())
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("X.npy", content.getvalue())
    with pytest.raises(FileError, match="two members have one name"):
        load_data(tmp_path / "a.npz")
