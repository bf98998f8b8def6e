"""Model files, checkpoints, options and auxiliaries made to get past the checks: a clear error for each."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrimax import CAPOClassifier
from metrimax.cli import main
from metrimax.compat import svm_perf_classify, svm_perf_learn
from metrimax.io.checkpoints import Checkpoint, KeptRun
from metrimax.io.files import FileError
from metrimax.io.models import LinearModel, load_model, save_model
from metrimax.io.svmperf_model import VERSION, parse_svmperf_model
from metrimax.protocols import Record

Capture = pytest.CaptureFixture[str]


def spoilt(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """A model file whose header was changed."""
    model = LinearModel(np.ones((1, 2)), np.zeros(1), np.zeros(1), ["a", "b"], feature_names=["x", "y"], target="z")
    save_model(path, model)
    load_model(path)
    first, header, body = path.read_bytes().split(b"\n", 2)
    entries = json.loads(header)
    change(entries)
    rest = json.dumps(entries).encode() + b"\n" + body
    digest = hashlib.sha256(rest).hexdigest().encode()
    path.write_bytes(b" ".join([*first.split()[:2], digest]) + b"\n" + rest)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h["arrays"].insert(0, 5), "expected the arrays coef, intercept, threshold .* save the model again"),
        (lambda h: h["arrays"].append(None), "expected the arrays coef, intercept, threshold .* save the model again"),
        (lambda h: h["arrays"][0].update(shape=[0, 10**30]), "the array coef has the shape .* save the model again"),
        (lambda h: h["arrays"][0].update(shape=[10**4000] * 2), "the array coef has the shape .* save the model again"),
        (lambda h: h.update(index_base=1.0), r"expected index_base 0, 1 or null, got 1\.0: .* save the model again"),
        (lambda h: h.update(index_base=False), "expected index_base 0, 1 or null, got False"),
        (lambda h: h.update(classes=["\ud800", "b"]), r"expected classes as text .* got '\\ud800': .* train again"),
        (lambda h: h.update(feature_names=["x", "\udcff"]), r"expected feature_names as text .* got '\\udcff'"),
        (lambda h: h.update(target="\udcff"), r"expected target as text .* got '\\udcff'"),
        (lambda h: h.update(measure="\udcff"), r"expected measure as text .* got '\\udcff'"),
    ],
)
def test_headers(tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str) -> None:
    with pytest.raises(FileError, match=f"hostile.model: {message}"):
        load_model(spoilt(tmp_path / "hostile.model", change))


def svm_light(vector: str, *, kernel: int = 0, d: str = "3", g: str = "1", s: str = "1") -> bytes:
    header = f"{kernel} #\n{d} #\n{g} #\n{s} #\n1 #\nempty#\n3 #\n1 #\n2 #\n0 #\n"
    return f"{VERSION}\n{header}{vector} #\n".encode()


def refused(capsys: Capture, folder: Path, model: bytes, example: str = "1 1:1 2:1\n") -> str:
    """What svm_perf_classify says when it fails, having written nothing."""
    (folder / "m").write_bytes(model)
    (folder / "x").write_text(example)
    assert svm_perf_classify.main(["-v", "0", *(str(folder / name) for name in ("x", "m", "out"))]) == 1
    assert not (folder / "out").exists()
    told = capsys.readouterr().err
    assert str(folder / "m") in told
    return told


def test_weights_that_overflow(tmp_path: Path, capsys: Capture) -> None:
    raw = svm_light("1e200 1:1e200 2:-1e200")
    told = refused(capsys, tmp_path, raw)
    assert "expected finite weights, got inf for feature 1" in told
    assert "scale the features" in told
    with pytest.raises(FileError, match="m: expected finite weights"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("scale", "C", "largest"), [(1e80, "1", r"\d\.?\d*e-\d\d"), (1e-45, "1e100", r"\d\.?\d*e\+4\d")]
)
def test_weights_that_32_bits_do_not_hold(tmp_path: Path, capsys: Capture, scale: float, C: str, largest: str) -> None:
    """They would be written as 0 or inf: a model that calls nothing, or cannot be read."""
    (tmp_path / "x").write_text("".join(f"{label} 1:{label * scale}\n" for label in (1, -1, 1, -1)))
    arguments = ["train", str(tmp_path / "x"), str(tmp_path / "m"), "-C", C, "--no-intercept", "--model-format"]
    assert main([*arguments, "svmperf"]) == 1
    told = capsys.readouterr().err
    assert re.search(f"expected weights that 32-bit floats can hold, .* got {largest} as .*: scale the features", told)
    assert not (tmp_path / "m").exists()
    assert main([*arguments, "metrimax"]) == 0


@pytest.mark.parametrize(
    ("model", "example"),
    [
        (svm_light("1 1:1e300 2:-1e300"), "1 1:1e30 2:1e30\n"),
        (svm_light("1 1:1e200", kernel=1), "1 1:1\n"),
        (svm_light("0 1:1e200", kernel=1), "1 1:1\n"),
        (svm_light("1 1:-1", kernel=1, d="-1"), "1 1:1\n"),
        (svm_light("1 1:1", kernel=2, g="-1"), "1 1:1e30\n"),
        (svm_light("1 1:1e300 2:-1e300", kernel=3), "1 1:1e30 2:1e30\n"),
    ],
)
def test_scores_that_overflow(tmp_path: Path, capsys: Capture, model: bytes, example: str) -> None:
    told = refused(capsys, tmp_path, model, "1 3:1\n" + example)
    assert "expected finite scores, got " in told
    assert "for example 2" in told
    assert "scale the features" in told


def test_degrees(tmp_path: Path, capsys: Capture) -> None:
    told = refused(capsys, tmp_path, svm_light("1 1:1", kernel=1, d="9" * 400))
    assert "line 3: expected a kernel parameter -d from -2147483647 to 2147483647, got 9999" in told
    assert "(400 digits): correct the line" in told
    assert parse_svmperf_model("m", svm_light("1 1:1", kernel=1, d="2147483647")).d == 2147483647


@pytest.mark.parametrize("loss", ["22", "23", "24", "25"])
def test_beta(tmp_path: Path, capsys: Capture, loss: str) -> None:
    (tmp_path / "x").write_text("1 1:1\n-1 1:-1\n1 1:2\n-1 1:-3\n")
    arguments = ["-c", "1", "-w", "3", "-l", loss, "-j"]
    names = [str(tmp_path / "x"), str(tmp_path / "m")]
    assert svm_perf_learn.main([*arguments, "1e200", *names]) == 1
    told = capsys.readouterr().err
    assert "option -j: expected a number above 0, and at most 1e100, got 1e200\nsvm_perf_learn -? lists" in told
    assert not (tmp_path / "m").exists()
    assert svm_perf_learn.main([*arguments, "1e100", *names]) == 0


def kept_state(folder: Path) -> tuple[KeptRun, Path, bytes]:
    """A checkpoint with one array, its file, and the bytes of it."""
    run = Checkpoint(folder).begin("run", 1.0, np.arange(4.0))
    run.save({"gram": np.ones((60, 60))}, Record(*[0] * len(Record._fields)))
    [path] = folder.glob("*.npz")
    return run, path, path.read_bytes()


def test_flipped_bytes_of_a_checkpoint(tmp_path: Path) -> None:
    run, path, raw = kept_state(tmp_path)
    loaded = run.load()
    assert loaded is not None
    assert np.array_equal(loaded[0]["gram"], np.ones((60, 60)))
    refused = 0
    headers = [at for at in range(len(raw)) if raw.find(b"\x93NUMPY", at - 70, at) >= 0]  # read before their checksum
    for at in [*headers, *range(raw.index(b"PK\x01\x02"), len(raw))]:  # and the directory, which has none
        for flip in (1, 255):
            path.write_bytes(raw[:at] + bytes([raw[at] ^ flip]) + raw[at + 1 :])
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                loaded = run.load()
            if loaded is None:
                refused += 1
                assert any("the fit starts anew" in str(one.message) for one in said)
            else:  # a byte that nobody reads, such as a time
                assert np.array_equal(loaded[0]["gram"], np.ones((60, 60)))
    assert refused > 100


def test_a_checkpoint_that_does_not_decompress(tmp_path: Path) -> None:
    run, path, raw = kept_state(tmp_path)
    entry = raw.rindex(b"PK\x01\x02")  # the last in the archive's directory
    for method in (8, 12, 14):  # deflated, bzip2, LZMA
        path.write_bytes(raw[: entry + 10] + bytes([method]) + raw[entry + 11 :])
        with pytest.warns(UserWarning, match="damaged, or no checkpoint of this version .*: the fit starts anew"):
            assert run.load() is None


@pytest.mark.parametrize(
    "auxiliary", [LogisticRegression(), LinearRegression(), make_pipeline(StandardScaler(), LogisticRegression())]
)
def test_prefit_but_not_fitted(auxiliary: Any) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] > 0
    with pytest.raises(NotFittedError, match=r"expected '100%' as a fitted estimator, .* or set prefit=False"):
        CAPOClassifier([("100%", auxiliary)], prefit=True).fit(X, y)
    CAPOClassifier([("100%", clone(auxiliary).fit(X, y))], prefit=True).fit(X, y)


@pytest.mark.parametrize("flag", [True, False, np.True_])
@pytest.mark.parametrize("prefit", [True, False])
def test_a_flag_is_no_column(flag: Any, prefit: bool) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(
        TypeError, match=r"expected 'a' as an estimator or the number of a column of X, got .*(Tru|Fals)e"
    ):
        CAPOClassifier([("a", flag)], prefit=prefit).fit(X, X[:, 0] > 0)
