"""Tables as users have them: headers of numbers, other separators, labels and groups that are missing or no numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cli import Capture, numbers, run, run_json

from metrimax.cli import main
from metrimax.io.columns import Column, Learn
from metrimax.io.compressed import blocks
from metrimax.io.data import Data, encode, file_kind, load_data
from metrimax.io.dataset import open_dataset
from metrimax.io.files import FileError
from metrimax.io.models import load_model
from metrimax.io.tables import Wanted, _read_any, _read_plain, read_csv


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def rows(n: int = 30) -> list[tuple[float, float, str]]:
    return [(k % 7 + 0.5, 3.0 * (k % 2), "spam" if k % 2 else "ham") for k in range(n)]


def refused(capsys: Capture, *arguments: object, code: int = 1) -> str:
    assert main([str(a) for a in arguments]) == code
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    return said.err


def predicted(capsys: Capture, *arguments: object) -> str:
    assert main(["predict", *map(str, arguments)]) == 0
    return capsys.readouterr().out


# headers


def test_numbers_of_columns_above_strings(tmp_path: Path) -> None:
    body = "".join(f"{a},{b},{label}\n" for a, b, label in rows())
    file = write(tmp_path / "t.csv", "0,1,verdict\n" + body)
    data = load_data(file, target="2")
    assert (data.n, set(data.labels), data.feature_names) == (30, {"ham", "spam"}, ["0", "1"])  # type: ignore[arg-type]
    bare = load_data(write(tmp_path / "b.csv", "0,1,spam\n" + body), target="2")
    assert (bare.n, bare.feature_names) == (31, None)  # a label that occurs again is one


@pytest.mark.parametrize("label", [0, 2])
@pytest.mark.parametrize("shards", [False, True])
def test_predictions_without_header_and_without_labels(
    tmp_path: Path, capsys: Capture, label: int, shards: bool
) -> None:
    cells = [[str(a), str(b)] for a, b, _ in rows()]
    new = "".join(",".join(row) + "\n" for row in cells)
    for row, (_, _, name) in zip(cells, rows(), strict=True):
        row.insert(label, name)
    (tmp_path / "new").mkdir()
    train = write(tmp_path / "train.csv", "".join(",".join(row) + "\n" for row in cells))
    write(tmp_path / "new" / "new.csv", new)
    assert main(["train", str(train), str(tmp_path / "m"), "--target", str(label)]) == 0
    capsys.readouterr()
    data = tmp_path / "new" if shards else tmp_path / "new" / "new.csv"
    assert predicted(capsys, data, tmp_path / "m") == predicted(capsys, train, tmp_path / "m")
    assert "expected labels, got none" in refused(capsys, "evaluate", data, tmp_path / "m")
    other = write(tmp_path / "other.csv", "a,label\n1,2\n3,4\n")  # as wide as the model, but one is the label
    refused(capsys, "predict", other, tmp_path / "m")


def test_the_number_of_a_target_is_no_feature_of_another_table(tmp_path: Path, capsys: Capture) -> None:
    body = [(f"{a}", f"{b}", f"{int(b)}") for a, b, _ in rows()]
    train = write(tmp_path / "t.csv", "a,b,label\n" + "".join(",".join(row) + "\n" for row in body))
    other = write(tmp_path / "o.csv", "label,a,b\n" + "".join(f"{c},{a},{b}\n" for a, b, c in body))
    assert main(["train", str(train), str(tmp_path / "m"), "--target", "2"]) == 0
    capsys.readouterr()
    assert "expected labels, got none: for a table, --target" in refused(capsys, "evaluate", other, tmp_path / "m")
    assert main(["evaluate", str(other), str(tmp_path / "m"), "--target", "label"]) == 0


@pytest.mark.parametrize(
    "text", ["a;b;label\n1,5;2;x\n", "a;b;label\n1.5;2;x\n", "1;2;0\n3;4;1\n", "a\tlabel\n1\t0\n", "a|label\n1|0\n"]
)
def test_other_separators(tmp_path: Path, capsys: Capture, text: str) -> None:
    file = write(tmp_path / "t.csv", text)
    said = refused(capsys, "train", file, tmp_path / "m", "--target", "label")
    assert "expected comma-separated values, got " in said
    assert "as the first row: write the table with commas" in said


def test_names_in_capitals() -> None:
    assert [file_kind(name) for name in ("T.CSV", "t.Csv.GZ", "x.NPZ", "x.PARQUET", "x.SVM")] == [
        *("csv", "csv", "npz", "parquet", "svmlight")
    ]


# cells


def test_digits_with_underscores_are_names(tmp_path: Path, capsys: Capture) -> None:
    """Python reads 1_2 as 12."""
    body = "".join(f"{a},{'1_1' if b else '1_2'}\n" for a, b, _ in rows())
    assert set(load_data(write(tmp_path / "t.csv", "a,label\n" + body)).labels) == {"1_1", "1_2"}  # type: ignore[arg-type]
    days = "".join(f"2020_01_{day:02},{'xy'[day % 2]}\n" for day in range(1, 13))
    file = write(tmp_path / "d.csv", "day,label\n" + days)
    said = refused(capsys, "train", file, tmp_path / "m")
    assert "column 'day': expected numbers, or text of at most 100 different values that occur again, got 12" in said
    assert "different texts in 12 rows, such as '2020_01_01', '2020_01_02', '2020_01_03': " in said
    assert "leave it out with --drop 'day'" in said


def test_dates_of_parquet_are_no_numbers(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    days = arrow.array([0, 86_400_000], arrow.timestamp("ms"))
    parquet.write_table(arrow.table({"day": days, "label": [0, 1]}), tmp_path / "t.parquet")
    with pytest.raises(
        FileError, match=r"column 'day': expected numbers or text, got timestamp\[ms\]: leave it out with --drop 'day'"
    ):
        load_data(tmp_path / "t.parquet")


def test_numbers_of_rows_are_no_features(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"a": [1.0, 5.0, 2.0], "label": [0, 1, 0], "__index_level_0__": [7, 3, 9], "id": [1, 2, 3]}
    index = json.dumps({"index_columns": ["__index_level_0__", "id", {"kind": "range"}]})

    def load(about: str, **options: Any) -> Data:
        table = arrow.table(columns).replace_schema_metadata({"pandas": about})
        parquet.write_table(table, tmp_path / "t.parquet")
        return load_data(tmp_path / "t.parquet", **options)

    data = load(index)
    assert data.feature_names == ["a"]
    np.testing.assert_array_equal(data.X, [[1], [5], [2]])
    assert load(index, target="id").feature_names == ["a", "label"]
    assert load(index, feature_names=["id", "a"]).X.shape == (3, 2)  # what a model was trained on
    for other in ("{", "[]", '{"index_columns": 3}', '{"index_columns": [["a"], 0]}'):
        assert load(other).feature_names == ["a", "__index_level_0__", "id"]

    (tmp_path / "t.csv").write_text(",a,label\n0,1,x\n1,5,y\n2,2,x\n")
    with pytest.raises(FileError, match=r"a name for every column, got none for column 0 \(from 0\).*index=False"):
        load_data(tmp_path / "t.csv")
    assert load_data(tmp_path / "t.csv", feature_names=["a"]).X.shape == (3, 1)


def test_labels_that_floats_do_not_tell_apart(tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv", "a,label\n1,9007199254740993\n2,9007199254740992\n3,0\n")
    with pytest.raises(FileError, match="labels that floating-point numbers tell apart, below"):
        encode(load_data(file))
    np.savez(tmp_path / "t.npz", X=np.eye(2), y=np.array([2**60, 2**60 + 1]))
    with pytest.raises(FileError, match="give names, or smaller numbers"):
        encode(load_data(tmp_path / "t.npz"))


def test_labels_of_arrays_in_a_folder(tmp_path: Path) -> None:
    np.save(tmp_path / "a.X.npy", np.eye(3))
    np.save(tmp_path / "a.y.npy", np.array([b"ham", b"spam", b"ham"]))
    assert open_dataset(tmp_path).labels.tolist() == ["ham", "spam", "ham"]  # type: ignore[union-attr]
    np.save(tmp_path / "a.y.npy", np.array(["ham", "", "spam"]))
    with pytest.raises(FileError, match=r"a.y.npy: row 1 \(from 0\) holds '': expected labels"):
        open_dataset(tmp_path)


# nothing to train on, or to read


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "a,label\n", "expected examples to train on, got none"),
        ("t.svm", "", "expected examples to train on, got none"),
        ("t.csv", "label\nx\ny\n", "expected features, got none\n"),
        ("t.txt", "1.5,2,0\n2.5,1,1\n", "expected features, got none; it was read as svmlight text: for a table give"),
    ],
)
def test_nothing_to_train_on(tmp_path: Path, capsys: Capture, name: str, text: str, message: str) -> None:
    for command in ("train", "tune"):
        assert message in refused(capsys, command, write(tmp_path / name, text), tmp_path / "m")


# groups and labels that are missing


def test_missing_groups(tmp_path: Path, capsys: Capture) -> None:
    """Rows without a group are no group of their own."""
    body = "".join(f"{a},{int(b > 0)},{'' if k == 4 else k // 10}\n" for k, (a, b, _) in enumerate(rows()))
    file = write(tmp_path / "t.csv", "a,label,qid\n" + body)
    said = refused(capsys, "train", file, tmp_path / "m", "--measure", "roc_area")
    assert "t.csv: line 6 holds '': expected groups (qid); fill it in, or remove the row" in said
    np.savez(tmp_path / "t.npz", X=np.eye(3), y=[0, 1, 0], qid=[1, 1, np.nan])
    with pytest.raises(FileError, match=r"row 2 \(from 0\) holds nan: expected groups \(qid\)"):
        load_data(tmp_path / "t.npz")
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"a": [1.0, 2.0], "label": [0, 1], "qid": ["u", None]}), tmp_path / "t.parquet")
    with pytest.raises(FileError, match=r"row 1 \(from 0\) holds None: expected groups"):
        load_data(tmp_path / "t.parquet")
    for name in ("t.csv", "t.npz", "t.parquet"):
        assert load_data(tmp_path / name, labels=False).groups is None


@pytest.mark.parametrize("kind", ["csv", "svm", "npy"])
def test_predictions_of_a_folder_need_no_labels(tmp_path: Path, capsys: Capture, kind: str) -> None:
    """One file has labels, another has none, a third some."""
    folder = tmp_path / "new"
    folder.mkdir()
    train = write(tmp_path / "train.csv", "a,b,label\n" + "".join(f"{a},{b},{int(b > 0)}\n" for a, b, _ in rows()))
    if kind == "svm":
        train = write(tmp_path / "t.svm", "".join(f"{int(b > 0)} 1:{a} 2:{b}\n" for a, b, _ in rows()))
    for part, known in enumerate(([True] * 10, [False] * 10, [True] * 5 + [False] * 5)):
        own = rows()[10 * part : 10 * part + 10]
        labels = [str(int(b > 0)) if k else "" for (_, b, _), k in zip(own, known, strict=True)]
        if kind == "csv":
            body = "".join(f"{a},{b},{y}\n" for (a, b, _), y in zip(own, labels, strict=True))
            write(folder / f"{part}.csv", "a,b,label\n" + body)
        elif kind == "svm":
            body = "".join(f"{int(b > 0) if part != 1 else ''} 1:{a} 2:{b}\n" for a, b, _ in own)
            write(folder / f"{part}.svm", body)
        else:
            np.save(folder / f"{part}.X.npy", np.array([[a, b] for a, b, _ in own]))
            np.save(folder / f"{part}.y.npy", np.array([float(y or "nan") for y in labels]))
    assert main(["train", str(train), str(tmp_path / "m")]) == 0
    assert load_model(tmp_path / "m").n_features == 2
    capsys.readouterr()
    assert predicted(capsys, folder, tmp_path / "m") == predicted(capsys, train, tmp_path / "m")
    with pytest.raises(FileError, match="labels"):
        open_dataset(folder)
    assert open_dataset(folder, labels=False).labels is None


def test_labels_that_are_numbers_in_one_file_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "a,label\n1,1\n2,2\n")
    write(tmp_path / "b.csv", "a,label\n1,1\n2,x\n")
    write(tmp_path / "c.csv", "a,label\n")
    assert open_dataset(tmp_path).labels.tolist() == ["1", "2", "1", "x"]  # type: ignore[union-attr]


# CSV and Parquet, as they should be and not


def test_csv(tmp_path: Path, capsys: Capture) -> None:
    X, y = numbers()
    table = tmp_path / "spam.csv"
    rows = [f"{a},{b},{'spam' if v else 'ham'},{c},{d}" for (a, b, c, d), v in zip(X, y, strict=True)]
    table.write_text("a,b,verdict,c,d\n" + "\n".join(rows) + "\n")
    assert main(["train", str(table), str(tmp_path / "m")]) == 1
    assert "which column holds the labels? Give --target NAME" in capsys.readouterr().err
    run(capsys, "train", table, tmp_path / "m", "--target", "verdict")
    model = load_model(tmp_path / "m")
    assert (model.classes, model.feature_names) == (["ham", "spam"], ["a", "b", "c", "d"])
    new = tmp_path / "new.csv"
    new.write_text("d,c,b,a\n" + "\n".join(f"{d},{c},{b},{a}" for a, b, c, d in X) + "\n")  # other order, no labels
    assert run(capsys, "predict", new, tmp_path / "m") == run(capsys, "predict", table, tmp_path / "m")
    assert run_json(capsys, "evaluate", table, tmp_path / "m")["f1"] > 0.7  # type: ignore[operator]
    new.write_text("a,b,c\n1,2,3\n")
    assert main(["predict", str(new), str(tmp_path / "m")]) == 1
    assert "expected the model's columns, but d not there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,label\n1,x\n2\n", "line 3: expected 2 values, got 1"),
        ("a,label\n1,x\nred,y\n", "line 3, column 'a': expected a finite number, got 'red'"),
        ("a,label\n1,x\n,y\n", "line 3, column 'a': expected a finite number, got ''"),
        ("a,label\n1,x\ninf,y\n", "line 3, column 'a': expected a finite number, got 'inf'"),
        ('a,label\n1,"x\n', "line 2: unexpected end of data"),
        ("", "got an empty file"),
        ("1,2,3\n4,5,6\n", "which column holds the labels"),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(FileError, match=message):
        load_data(tmp_path / "t.csv")


def test_csv_without_header_and_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,0.5,2\n0,1.5,3\n")
    data = load_data(tmp_path / "t.csv", target="0")
    assert data.labels.tolist() == [1.0, 0.0]  # type: ignore[union-attr]
    np.testing.assert_array_equal(data.X, [[0.5, 2], [1.5, 3]])
    with pytest.raises(FileError, match="no column '7': expected one of 0, 1, 2"):
        load_data(tmp_path / "t.csv", target="7")
    for encoding, said in (("latin-1", "got a bad byte at position 2"), ("utf-16", "at position 0")):
        (tmp_path / "t.csv").write_bytes("größe,label\n1,2\n".encode(encoding))
        with pytest.raises(FileError, match=f"expected UTF-8 text, .*{said}: save the table as UTF-8"):
            load_data(tmp_path / "t.csv")
    without_a_mark = "a,label\n1,2\n".encode("utf-16-le")
    for raw in (without_a_mark, b"a\0,label\n1,2\n"):
        (tmp_path / "t.csv").write_bytes(raw)
        with pytest.raises(FileError, match=r"expected UTF-8 text, got characters of value 0, .*: save it as UTF-8"):
            load_data(tmp_path / "t.csv")


def test_parquet(tmp_path: Path, capsys: Capture) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y = numbers()
    columns = {f"x{k}": X[:, k] for k in range(4)} | {"label": np.where(y, "yes", "no")}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    run(capsys, "train", tmp_path / "t.parquet", tmp_path / "m")
    assert load_model(tmp_path / "m").classes == ["no", "yes"]
    parquet.write_table(arrow.table({"label": y, "a": ["x"] * len(y)}), tmp_path / "bad.parquet")
    with pytest.raises(FileError, match="column 'a': expected numbers"):
        load_data(tmp_path / "bad.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(FileError):
        load_data(tmp_path / "bad.parquet")


def test_plain_tables_are_read_as_all_are(tmp_path):
    """What the compiled reader takes is what the reader of all tables makes of it, and it takes no others."""
    rng = np.random.default_rng(0)
    path, taken = tmp_path / "a.csv", 0
    numbers = ["1", "-2.5", "1e3", " 3 ", "+4", ".5", "6.", "0.1234567890123456789", "1e-400"]
    others = ["", "na", "nan", "inf", "1e400", "1_0", "0x10", '"7"', "no", "é"]

    def outcome(table):
        if table is None:
            return None
        groups, labels = (None if part is None else part.tolist() for part in (table.groups, table.labels))
        return repr((table.X.tolist(), labels, groups, table.names, table.columns, list(table.remarks)))

    for _ in range(1500):
        k, n = rng.integers(1, 5), rng.integers(0, 5)
        rows = [rng.choice(numbers, k).tolist() for _ in range(n)]
        if n and rng.random() < 0.2:
            rows[rng.integers(n)][rng.integers(k)] = str(rng.choice(others))
        head = rng.permutation(["label", "a", "b", "qid", "c", "0"])[:k].tolist()
        if "label" in head and rng.random() < 0.5:
            for row in rows:
                row[head.index("label")] = str(rng.choice(["yes", "é", "1"]))
        end = str(rng.choice(["\n", "\r\n", "\r"], p=[0.7, 0.25, 0.05]))
        raw = end.join(",".join(row) for row in ([head] if rng.random() < 0.8 else []) + rows) + end
        for old, new, share in ((end, end + end, 0.1), (",", "", 0.05), (",", ",,", 0.05), (end, "", 0.05)):
            raw = raw.replace(old, new, int(rng.integers(1, 3))) if rng.random() < share else raw
        if rng.random() < 0.1:  # a blank line somewhere
            raw = end.join([*(parts := raw.split(end))[: (at := rng.integers(len(parts)))], "", *parts[at:]])
        text = (
            (b"\xef\xbb\xbf" if rng.random() < 0.1 else b"") + raw.encode() + (b"\xff" if rng.random() < 0.03 else b"")
        )
        path.write_bytes(text)
        wanted = Wanted(
            target=rng.choice([None, "label", "0"]),
            names=["b", "a"] if rng.random() < 0.2 else None,
            columns=Learn(bool(rng.integers(2))) if rng.random() < 0.5 else None,
            drop=["c"] if rng.random() < 0.1 else [],
            labelled=bool(rng.random() < 0.8),
        )
        plain = outcome(_read_plain(path, wanted, blocks(path, int(rng.integers(1, 40)))))
        if plain is not None:
            taken += 1
            assert plain == outcome(_read_any(path, wanted, text))
    assert taken > 200


def test_numbers_in_a_column_that_was_text_in_training_are_its_values(tmp_path):
    path = write(tmp_path / "new.csv", "zip,a\n01,2\n3,4\n02,6\n")
    columns = [Column("zip", ("01", "02", "x")), Column("a", center=1.0, scale=2.0)]
    table = read_csv(path, Wanted(names=["zip", "a"], columns=columns))
    np.testing.assert_array_equal(table.X, [[1, 0, 0, 0.5], [0, 0, 0, 1.5], [0, 1, 0, 2.5]])


def test_a_long_table_in_pieces(tmp_path):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30_000, 5)), rng.choice(["ham", "spam, cheap"], 30_000)
    lines = [f"{label},{','.join(map(repr, row))}" for label, row in zip(y, X.tolist(), strict=True)]
    text = "label,a,b,c,d,e\n" + "\n".join(lines).replace("spam, cheap", "spam") + "\n\n"
    path = write(tmp_path / "a.csv", text)
    for columns in (None, Learn(True)):
        wanted = Wanted(columns=columns, n_threads=3)
        table = _read_plain(path, wanted, blocks(path))
        assert table is not None
        scaled = X if columns is None else (X - X.mean(axis=0)) / X.std(axis=0)
        np.testing.assert_allclose(
            table.X, scaled, rtol=0 if columns is None else 1e-9, atol=0 if columns is None else 1e-12
        )
        assert table.labels.tolist() == [label[:4].rstrip() for label in y]
    for name in ("b", "e"):  # a model asks for its own columns in its own order
        table = _read_plain(path, Wanted(names=[name, "a"]), blocks(path, 10_000))
        np.testing.assert_array_equal(table.X, X[:, [ord(name) - ord("a"), 0]])
    table = _read_plain(path, Wanted(names=["d", "a", "b"]), blocks(path, 10_000))
    np.testing.assert_array_equal(table.X, X[:, [3, 0, 1]])
    write(path, text.rstrip() + "\nham,1,2,x,4,5\n")
    assert _read_plain(path, Wanted(), blocks(path)) is None
    with pytest.raises(FileError, match="line 30002, column 'c': expected a finite number, got 'x'"):
        load_data(path)
