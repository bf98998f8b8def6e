"""Model files of both formats: round trips, and what is said of bad ones."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import stat
import zlib
from pathlib import Path

import numpy as np
import pytest

from metrimax.io.files import FileError, write_bytes
from metrimax.io.models import LinearModel, load_model, save_model
from metrimax.io.svmlight import parse_svmlight
from metrimax.io.svmperf_model import VERSION, format_svmperf_model, parse_svmperf_model


def example(kind: str = "binary") -> LinearModel:
    rng = np.random.default_rng(0)
    L = 1 if kind == "binary" else 3
    classes = [-1.0, 1.0] if kind == "binary" else ["a", "b", "ü"]
    return LinearModel(
        rng.normal(size=(L, 4)),
        rng.normal(size=L),
        rng.normal(size=L),
        classes,
        kind,
        "fbeta:beta=2",
        1,
        ["w", "x", "y", "z é"],
        "label",
        {"C": 1.5, "labels": [{"gap": 1e-4}]},
    )


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel"])
def test_round_trip(tmp_path: Path, kind: str) -> None:
    model = example(kind)
    save_model(tmp_path / "m", model)
    back = load_model(tmp_path / "m")
    for name in ("coef", "intercept", "threshold"):
        np.testing.assert_array_equal(getattr(back, name), getattr(model, name))
    for name in ("classes", "kind", "measure", "index_base", "feature_names", "target", "training"):
        assert getattr(back, name) == getattr(model, name), name
    X = np.random.default_rng(1).normal(size=(6, 4))
    np.testing.assert_allclose(back.scores(X), X @ model.coef.T + model.intercept)


def rewrite(path: Path, change: object, body: bytes | None = None) -> None:
    """Save a model with some entries of its header replaced (None: left out)."""
    save_model(path, example())
    first, header, old = path.read_bytes().split(b"\n", 2)
    entries = json.loads(header)
    for key, value in change.items():  # type: ignore[attr-defined]
        entries[key] = value
    write_sealed(path, first, json.dumps(entries).encode(), old if body is None else body)


def write_sealed(path: Path, first: bytes, header: bytes, body: bytes) -> None:
    """A file of the present version with the checksum of its content."""
    rest = header + b"\n" + body
    digest = hashlib.sha256(rest).hexdigest().encode()
    path.write_bytes(b" ".join([*first.split()[:2], digest]) + b"\n" + rest)


ARRAYS = [
    {"name": "coef", "dtype": "<f8", "shape": [1, 4]},
    {"name": "intercept", "dtype": "<f8", "shape": [1]},
    {"name": "threshold", "dtype": "<f8", "shape": [1]},
]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "forest"}, "expected kind as one of binary, multiclass, multilabel, ranking, got 'forest'"),
        ({"kind": "multiclass"}, "expected 1 classes for a multiclass model"),
        ({"classes": [1, 2, 3]}, "expected 2 classes"),
        ({"classes": [1, "b"]}, "all numbers or all strings"),
        ({"classes": [True, False]}, "all numbers or all strings"),
        ({"classes": ["b", "b"]}, "expected different classes"),
        ({"feature_names": ["a"]}, "expected feature_names as 4 strings or null"),
        ({"index_base": 2}, "expected index_base 0, 1 or null, got 2"),
        ({"measure": 3}, "the entry 'measure' of the header is missing or of the wrong type"),
        ({"training": None}, "the entry 'training'"),
        ({"arrays": []}, "expected the arrays coef, intercept, threshold"),
        ({"arrays": [{**ARRAYS[0], "dtype": "|O"}, *ARRAYS[1:]]}, r"expected arrays of type '<f8', got '\|O'"),
        ({"arrays": [{**ARRAYS[0], "shape": [1, -4]}, *ARRAYS[1:]]}, r"got \[1, -4\]"),
        ({"arrays": [{**ARRAYS[0], "shape": [10**12, 10**12]}, *ARRAYS[1:]]}, "the file was cut off"),
        ({"arrays": [{**ARRAYS[0], "shape": [1, 3]}, *ARRAYS[1:]]}, "8 bytes behind the last array"),
        ({"arrays": [{**ARRAYS[0], "shape": [2, 2]}, *ARRAYS[1:]]}, r"expected coef of shape \(L, p\)"),
    ],
)
def test_bad_headers(tmp_path: Path, change: dict[str, object], message: str) -> None:
    rewrite(tmp_path / "m", change)
    with pytest.raises(FileError, match=message):
        load_model(tmp_path / "m")


def test_bad_values(tmp_path: Path) -> None:
    rewrite(tmp_path / "m", {}, np.array([0, 0, 0, np.nan, 0, 0]).tobytes())
    with pytest.raises(FileError, match="the array coef holds NaN or infinite values"):
        load_model(tmp_path / "m")


def test_every_cut_and_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m"
    save_model(path, example())
    raw = path.read_bytes()
    for size in range(len(raw)):
        path.write_bytes(raw[:size])
        with pytest.raises(FileError):
            load_model(path)
    for at in range(len(raw)):
        for bit in (1, 2, 16, 128):
            path.write_bytes(raw[:at] + bytes([raw[at] ^ bit]) + raw[at + 1 :])
            with pytest.raises(FileError):
                load_model(path)


def test_what_a_header_says_cannot_be_changed_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "m"
    save_model(path, example())
    raw = path.read_bytes()
    changed = raw.replace(b'"index_base": 1', b'"index_base": 0')
    assert changed != raw
    path.write_bytes(changed)
    with pytest.raises(FileError, match="the checksum of the file is wrong: it is damaged or was changed"):
        load_model(path)


@pytest.mark.parametrize("version", [1, 2])
def test_an_entry_that_is_there_twice(tmp_path: Path, version: int) -> None:
    path = tmp_path / "m"
    save_model(path, example())
    _, header, body = path.read_bytes().split(b"\n", 2)
    twice = header.replace(b'"kind":', b'"kind": "multilabel", "crc32": %d, "kind":' % zlib.crc32(body))
    if version == 1:
        path.write_bytes(b"\n".join([b"metrimax-model 1", twice, body]))
    else:
        write_sealed(path, b"metrimax-model 2", twice, body)
    with pytest.raises(FileError, match=r"the header is no JSON \(the entry 'kind' is there twice\)"):
        load_model(path)
    plain = header.replace(b'"kind":', b'"crc32": %d, "kind":' % zlib.crc32(body))
    path.write_bytes(b"\n".join([b"metrimax-model 1", plain, body]))
    load_model(path)
    path.write_bytes(b"\n".join([b"metrimax-model 1", plain, body[:-1] + b"@"]))
    with pytest.raises(FileError, match="the checksum of the arrays is wrong"):
        load_model(path)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "expected a model file"),
        (pickle.dumps([1]), "expected a model file"),
        (b"metrimax-model\n{}\n", "the file is damaged"),
        (b"metrimax-model x\n{}\n", "the file is damaged"),
        (b"metrimax-model 99\n{}\n", "expected a version of the model format up to 3, got 99: update metrimax"),
        (b"metrimax-model 1\n{", "ends inside its header"),
        (b"metrimax-model 1\n{\n", "the header is no JSON"),
        (b"metrimax-model 1\n[1]\n", "the header is no JSON object"),
        (b"metrimax-model 1\n" + b"[" * 100_000 + b"\n", "the header is no JSON"),
        (b'metrimax-model 1\n{"a": NaN}\n', "NaN is not allowed"),
        (b'metrimax-model 1\n{"a": 1e999}\n', "1e999 is not allowed"),
        (b"\xff" * 1000, "expected a model file"),
    ],
)
def test_bad_files(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "m").write_bytes(raw)
    with pytest.raises(FileError, match=message):
        load_model(tmp_path / "m")


def test_svmperf_format_is_the_documented_one() -> None:
    w = np.array([0.5, 0.0, -1.25, 1 / 3])
    text = format_svmperf_model(w, -0.125, highest=6, n_cuts=7).decode()
    assert text == (
        "SVM-light Version V6.20\n"
        "0 # kernel type\n"
        "3 # kernel parameter -d \n"
        "1 # kernel parameter -g \n"
        "1 # kernel parameter -s \n"
        "1 # kernel parameter -r \n"
        "empty# kernel parameter -u \n"
        "6 # highest feature index \n"
        "7 # number of training documents \n"
        "2 # number of support vectors plus 1 \n"
        "-0.125 # threshold b, each following line is a SV (starting with alpha*y)\n"
        "1 1:0.5 3:-1.25 4:0.33333334 #\n"
    )


def svmperf(vectors: str, kernel: int = 0, b: float = 0.5, count: int = 2, highest: int = 5) -> bytes:
    head = f"{VERSION}\n{kernel} # kernel type\n2 # kernel parameter -d \n0.5 # kernel parameter -g \n"
    head += "2 # kernel parameter -s \n1 # kernel parameter -r \nempty# kernel parameter -u \n"
    head += f"{highest} # highest feature index \n3 # number of training documents \n"
    return (head + f"{count} # number of support vectors plus 1 \n{b} # threshold b, each\n{vectors}").encode()


def test_svmperf_models_are_read(tmp_path: Path) -> None:
    model = parse_svmperf_model("m", svmperf("2 1:1 3:0.5 #\n-1 qid:3 3:1 4:1 #note\n", count=3)).linear()
    np.testing.assert_allclose(model.coef, [[2, 0, 0, -1]])
    assert model.intercept.tolist() == [-0.5]
    (tmp_path / "m").write_bytes(format_svmperf_model(np.zeros(3), 1.0, highest=5, n_cuts=0))
    empty = load_model(tmp_path / "m")
    np.testing.assert_array_equal(empty.coef, [[0]])


@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_svmperf_kernels(kernel: int) -> None:
    model = parse_svmperf_model("m", svmperf("2 1:1 3:0.5 #\n-1 3:1 4:1 #\n", kernel, count=3, highest=4))
    S = np.array([[1, 0, 0.5, 0], [0, 0, 1, 1]])
    X = np.random.default_rng(0).normal(size=(5, 6))  # two features beyond the highest: cut off
    inner = X[:, :4] @ S.T
    squares = ((X[:, None, :4] - S[None]) ** 2).sum(axis=2)
    K = {1: (2 * inner + 1) ** 2, 2: np.exp(-0.5 * squares), 3: np.tanh(2 * inner + 1)}[kernel]
    lines = "".join("1 " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row)) + "\n" for row in X.tolist())
    rows = parse_svmlight(np.frombuffer(lines.encode(), np.uint8), "x")
    np.testing.assert_allclose(model.scores(rows), K @ [2, -1] - 0.5)
    with pytest.raises(FileError, match="kernel: only svm_perf_classify reads such models"):
        model.linear()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"SVM-light Version V6.01\n", "line 1: expected 'SVM-light Version V6.20', got 'SVM-light Version V6.01'"),
        (b"SVM-light Version V6.20\n0 # kernel type\n", "ends inside its header, after 2 lines"),
        (svmperf("1 1:1 #\n").replace(b"0 # kernel", b"x # kernel"), "line 2: expected '<int> # kernel type', got 'x'"),
        (svmperf("1 1:1 #\n").replace(b"0.5 # thr", b"inf # thr"), "line 11: expected '<float> # threshold b"),
        (svmperf("1 1:1 #\n", kernel=7), "line 2: expected a kernel type from 0 to 4, got 7"),
        (svmperf("1 1:1 #\n", highest=-1), "line 8: expected a highest feature index"),
        (svmperf("1 1:1 #\n", count=5), "line 10 promises 4 support vectors, got 1: the file was cut off"),
        (svmperf("1 1:x #\n"), "line 12, column 5: expected a value"),
        (svmperf("1 0:1 #\n"), "expected a feature index of at least 1, got 0"),
    ],
)
def test_bad_svmperf_models(raw: bytes, message: str) -> None:
    with pytest.raises(FileError, match=message):
        parse_svmperf_model("m", raw)


def test_user_kernel() -> None:
    model = parse_svmperf_model("m", svmperf("1 1:1 #\n", kernel=4))
    with pytest.raises(FileError, match="user-defined kernel"):
        model.scores(parse_svmlight(np.frombuffer(b"1 1:1\n", np.uint8), "x"))


@pytest.mark.posix
def test_files_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(path, b"newer")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.posix
def test_writing_through_links_and_to_devices(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()
    write_bytes("/dev/null", b"gone")
    assert not Path("/dev/null").is_file()
    with pytest.raises(FileError, match="cannot be written: No such file"):
        write_bytes(tmp_path / "no" / "such", b"")
