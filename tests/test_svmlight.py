"""The svmlight reader: against a plain Python reader, scikit-learn's, and by what its errors say."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
from pathlib import Path

import numpy as np
import pytest
import svmlight_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from metrimax import _kernels
from metrimax.io.compressed import blocks, read_bytes
from metrimax.io.files import FileError
from metrimax.io.svmlight import Svmlight, parse_svmlight, read_svmlight


def parse(text: bytes, **options: object) -> Svmlight:
    return parse_svmlight(np.frombuffer(text, np.uint8), "text", **options)  # type: ignore[arg-type]


def as_examples(rows: Svmlight) -> list[tuple[list[float], int | None, list[tuple[int, float]]]]:
    out = []
    for i in range(rows.n):
        labels = rows.labels[rows.label_starts[i] : rows.label_starts[i + 1]].tolist()
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        features = list(zip(rows.indices[part].tolist(), rows.values[part].tolist(), strict=True))
        out.append((labels, int(rows.qids[i]) if len(rows.qids) else None, features))
    return out


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"[+-]?([0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
).filter(lambda text: np.isfinite(float(text)))
blanks = st.sampled_from([" ", "  ", "\t", " \t"])


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Valid files in many styles."""
    with_qid, several = draw(st.booleans()), draw(st.booleans())
    lines = []
    for _ in range(draw(st.integers(0, 6))):
        labels = draw(st.lists(numbers, min_size=0 if several else 1, max_size=3 if several else 1))
        indices = sorted(draw(st.sets(st.integers(0, reference.HIGHEST), max_size=5)))
        tokens = [",".join(labels)] if labels else []
        tokens += [f"qid:{draw(st.integers(-(2**62), 2**62))}"] if with_qid else []
        tokens += [f"{index}:{draw(numbers)}" for index in indices]
        text = draw(blanks).join(tokens) if draw(st.booleans()) else " ".join(tokens)
        lines.append(text + draw(st.sampled_from(["", " ", " # a comment: 1:2", "#"])))
        lines += draw(st.lists(st.sampled_from(["# only a comment", "", "  "]), max_size=1))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return (end.join(lines) + draw(st.sampled_from(["", end]))).encode()


@settings(max_examples=150, deadline=None)
@given(texts())
def test_equals_the_plain_reader(text: bytes) -> None:
    try:
        expected = reference.read(text)
    except reference.Bad as bad:
        with pytest.raises(FileError, match=f"text: line {bad.line}, column "):
            parse(text)
    else:
        assert as_examples(parse(text)) == expected


@settings(max_examples=150, deadline=None)
@given(numbers)
def test_numbers_are_rounded_correctly(text: str) -> None:
    assert parse(b"1 1:" + text.encode()).values.tolist() == [float(text)]


@pytest.mark.parametrize(
    "digits", ["4.9e-324", "2.2250738585072014e-308", "1.7976931348623157e308", "9007199254740993"]
)
def test_extreme_numbers(digits: str) -> None:
    assert parse(f"-{digits} 1:{digits}".encode()).labels.tolist() == [-float(digits)]


def test_numbers_below_the_smallest_are_zero() -> None:
    assert parse(b"1 1:1e-400 2:-1e-999999999999").values.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        (b"1 1:1\n1 2:3 2:4\n", 2, 7, "increasing feature indices, got 2 after 2"),
        (b"1 3:1 2:1", 1, 7, "increasing feature indices, got 2 after 3"),
        (b"one 1:1", 1, 1, "a label .* got 'one'"),
        (b"1 1:nan", 1, 5, "a value .* got 'nan'"),
        (b"1 1:inf", 1, 5, "a value .* got 'inf'"),
        (b"1 1:0x1p3", 1, 6, "a blank or the end of the line after the value, got 'x1p3'"),
        (b"1 1:1e", 1, 5, "a value"),
        (b"1 1:1e999", 1, 5, "within the range of a double"),
        (b"-1e400 1:1", 1, 1, "within the range of a double"),
        (b"1 1:", 1, 5, "got the end of the line"),
        (b"1 1:2,3", 1, 6, "got ',3'"),
        (b"1 1 2", 1, 4, "expected ':' after the feature index"),
        (b"1 :5", 1, 3, "expected index:value"),
        (b"1 -1:5", 1, 3, "expected index:value"),
        (b"1 1.5:5", 1, 4, "expected ':'"),
        (b"1 2147483647:5", 1, 3, "at most 2147483646"),
        (b"1 99999999999999999999999:5", 1, 3, "at most 2147483646"),
        (b"1, 1:5", 1, 3, "a label"),
        (b"1,,2 1:5", 1, 3, "a label"),
        (b"1 qid:x 1:5", 1, 7, "a qid"),
        (b"1 qid:1 qid:2", 1, 9, "a second"),
        (b"1 qid:99999999999999999999 1:1", 1, 7, "a qid"),
        (b"1 1:1 qid:3", 1, 7, "expected index:value, got 'qid:3'"),
        (b"1 cost:2 1:1", 1, 3, "expected index:value, got 'cost:2'"),
        (b"1 qid:1 1:1\n1 1:1\n", 2, 1, "expected a qid"),
        (b"1 1:1\n2:1\n", 2, 1, "expected a label"),
        (b"1 1:1 \x00", 1, 7, r"got '\?'"),
        (b"\xff\xfe1 1:1", 1, 1, r"got '\?\?1'"),
        (b"1 1:1\r2:1\n", 1, 6, "a blank or the end"),
    ],
)
def test_errors_say_where_and_what(text: bytes, line: int, column: int, problem: str) -> None:
    with pytest.raises(FileError, match=rf"^text: line {line}, column {column}: .*{problem}"):
        parse(text)


def test_options() -> None:
    with pytest.raises(FileError, match="line 2, column 1: expected an example, got a blank line"):
        parse(b"1 1:1\n\n1 1:1\n", allow_blank=False)
    assert parse(b"# c\n1 1:1\n", allow_blank=False).n == 1
    rows = parse(b"1 sid:3 cost:2.5 qid:7 1:1\n1 2:1\n", light_tags=True)
    assert (rows.qids.tolist(), rows.indices.tolist()) == ([], [1, 2])
    with pytest.raises(FileError, match="line 1, column 3: expected a feature index of at least 1, got 0"):
        parse(b"1 0:1", least=1)
    with pytest.raises(FileError, match="at most 9, got '10:1'"):
        parse(b"1 10:1", most=9)
    with pytest.raises(FileError, match="of at most 5, got '9:1'"):
        parse(b"1 9:1", most=5)


def test_unlabelled_files_are_read() -> None:
    rows = parse(b"1:2 3:4\n 2:1\n")
    assert (rows.n, len(rows.labels)) == (2, 0)
    assert parse(b"").n == 0


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
def test_threads_change_nothing(n_threads: int) -> None:
    rng = np.random.default_rng(0)
    lines = [
        f"{rng.integers(-1, 2)} qid:{k} " + " ".join(f"{j}:{rng.normal():.6g}" for j in range(1, rng.integers(2, 30)))
        for k in range(5000)
    ]
    text = "\n".join(lines).encode()
    assert len(text) > 7 * 2**16  # enough for seven pieces
    rows, expected = parse(text, n_threads=n_threads), parse(text, n_threads=1)
    for part, other in zip(rows, expected, strict=True):
        np.testing.assert_array_equal(part, other)
    for bad in (0, 1700, 4999):
        broken = "\n".join([*lines[:bad], lines[bad] + " x", *lines[bad + 1 :]]).encode()
        with pytest.raises(FileError, match=rf"line {bad + 1}, column {len(lines[bad]) + 2}: "):
            parse(broken, n_threads=n_threads)
    two = "\n".join([*lines[:10], "x", *lines[10:4000], "y"]).encode()
    with pytest.raises(FileError, match="line 11, column 1: "):  # the first error of the file, whoever finds his first
        parse(two, n_threads=n_threads)


def test_equals_scikit_learn(tmp_path: Path) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 20)) * (rng.random((50, 20)) < 0.3)
    y = rng.integers(0, 3, 50)
    datasets.dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=False, comment="hello")
    other, labels = datasets.load_svmlight_file(str(tmp_path / "a.svm"), zero_based=False)
    rows = read_svmlight(tmp_path / "a.svm")
    np.testing.assert_array_equal(rows.values, other.data)
    np.testing.assert_array_equal(rows.indices - 1, other.indices)
    np.testing.assert_array_equal(rows.indptr, other.indptr)
    np.testing.assert_array_equal(rows.labels, labels)


def test_kernel_refuses_what_is_no_bytes() -> None:
    reader = _kernels.SvmlightReader(allow_blank=True, light_tags=False, least=0, most=9, n_threads=1)
    with pytest.raises(TypeError):
        reader.feed(np.zeros(3))  # type: ignore[arg-type]


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_pieces_are_one_text(n_threads: int) -> None:
    """Wherever the text is cut, behind any line: the rows, the lines of errors, and what lines lack."""
    texts = [b"1 1:0.5\n\n# none\n-1 2:1 4:2\n1\n", b"1 qid:3 1:1\n2 qid:4 2:1\n", b"1,2 3:1\n7:1\n", b"1 1:1\n2:1\n"]
    texts += [b"1 1:1\n1 qid:1 1:1\n", b"1 qid:1 1:1\n1 1:1\n", b"1 1:1\n\n1 2:x\n", b"1 1:1\n2 2:2\n1 5:1"]

    def result(text: object, size: int = 0) -> object:
        try:
            rows = parse_svmlight(text, "text", n_threads=n_threads, text_size=size)  # type: ignore[arg-type]
        except FileError as error:
            return str(error)
        return [np.asarray(part).tolist() for part in rows]

    for text in texts:
        lines = [np.frombuffer(line, np.uint8) for line in text.splitlines(keepends=True)]
        whole = np.frombuffer(text, np.uint8)
        for size in (0, 5, len(text), 10**6):
            assert result(lines, size) == result(whole)
            for cut in range(len(lines) + 1):
                parts = [np.concatenate([whole[:0], *part]) for part in (lines[:cut], lines[cut:])]
                assert result(parts, size) == result(whole)


def test_files_longer_than_a_piece(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    lines = [f"{rng.integers(2)} {j}:{rng.random():.17g}\n" for j in rng.integers(1, 10**6, 60_000)]
    path, text = tmp_path / "a.svm", "".join(lines).encode()
    path.write_bytes(text)
    whole = parse_svmlight(np.frombuffer(text, np.uint8), "x", n_threads=1)
    for size in (100, 1 << 16, len(text)):
        for one, other in zip(parse_svmlight(blocks(path, size), "x"), whole, strict=True):
            np.testing.assert_array_equal(one, other)
    path.write_bytes(text + b"1 1:x\n")
    with pytest.raises(FileError, match="line 60001, column 5: expected a value"):
        parse_svmlight(blocks(path, 1 << 16), "x")


TEXT = b"1 1:0.5\n-1 2:1\n" * 100


@pytest.mark.parametrize("ending", ["gz", "xz", "bz2", "zst"])
def test_compressed_files(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if ending == "zst":
        zstandard = pytest.importorskip("zstandard")
        raw = zstandard.ZstdCompressor().compress(TEXT)
    else:
        raw = {"gz": gzip, "xz": lzma, "bz2": bz2}[ending].compress(TEXT)
    path = tmp_path / f"a.svm.{ending}"
    path.write_bytes(raw)
    assert read_bytes(path).tobytes() == TEXT
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert read_bytes("-").tobytes() == TEXT  # told by its first bytes, so without a name too
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(FileError, match=f"{re.escape(str(path))}: the .* data are damaged or cut off"):
        read_bytes(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file"):
        read_bytes(tmp_path / "none")
    with pytest.raises(FileError, match="Is a directory"):
        read_bytes(tmp_path)


def test_a_byte_order_mark(tmp_path):
    (tmp_path / "t.svm").write_bytes(b"\xef\xbb\xbf1 1:2\n-1 x\n")
    with pytest.raises(FileError, match="line 2, column 4: expected index:value"):
        read_svmlight(tmp_path / "t.svm")
    (tmp_path / "t.svm").write_bytes(b"\xef\xbb\xbf1 1:2\n-1\n")
    assert read_svmlight(tmp_path / "t.svm").labels.tolist() == [1, -1]
