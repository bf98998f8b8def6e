"""Tables and archives as the metrimax command reads them: headers, missing labels, labels read in two ways."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from test_cli import Capture, run_json
from test_tables import refused

from metrimax.cli import main
from metrimax.io.data import load_data
from metrimax.io.dataset import open_dataset
from metrimax.io.files import FileError
from metrimax.io.labels import show
from metrimax.io.models import load_model


def table(header: str | None, labels: tuple[str, ...] = ("0", "1"), seed: int = 0, n: int = 200) -> str:
    """Three features and a label, of which the second feature says most."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(labels), n)
    X = rng.normal(size=(n, 3)) + np.outer(y, [0.3, 2.0, 0.1])
    rows = [",".join(f"{v:.4f}" for v in row) + f",{labels[k]}" for row, k in zip(X, y, strict=True)]
    return "\n".join(rows if header is None else [header, *rows]) + "\n"


def write_parquet(path: Path, names: list[str], columns: list[list[object]]) -> Path:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_arrays([arrow.array(c) for c in columns], names=names), path)
    return path


# headers


def test_names_that_occur_twice_are_refused(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "dup.csv").write_text(table("a,a,c,label"))
    said = refused(capsys, "train", tmp_path / "dup.csv", tmp_path / "m")
    assert "dup.csv: expected columns of different names, got 'a' more than once: rename them" in said
    assert not (tmp_path / "m").exists()
    file = write_parquet(tmp_path / "dup.parquet", ["a", "a", "label"], [[1.0, 2.0], [3.0, 4.0], [0, 1]])
    with pytest.raises(FileError, match="columns of different names, got 'a' more than once"):
        load_data(file)


@pytest.mark.parametrize("extra", [[], ["--target", "3"], ["--target", "label"]])
def test_numbers_as_names(tmp_path: Path, capsys: Capture, extra: list[str]) -> None:
    (tmp_path / "num.csv").write_text(table("0,1,2,label"))
    trained = run_json(capsys, "train", tmp_path / "num.csv", tmp_path / "m", *extra)
    assert (trained["examples"], trained["classes"]) == (200, [0.0, 1.0])
    assert load_model(tmp_path / "m").feature_names == ["0", "1", "2"]
    rows = [line.rpartition(",")[0] for line in (tmp_path / "num.csv").read_text().split("\n")[:-1]]
    (tmp_path / "new.csv").write_text("\n".join(rows) + "\n")  # without labels: no name but numbers
    assert main(["predict", str(tmp_path / "num.csv"), str(tmp_path / "m")]) == 0
    predicted = capsys.readouterr().out
    assert len(predicted.split()) == 200
    assert main(["predict", str(tmp_path / "new.csv"), str(tmp_path / "m")]) == 0
    assert capsys.readouterr().out == predicted


def test_numbers_as_names_above_strings(tmp_path: Path) -> None:
    (tmp_path / "num.csv").write_text(table("0,1,2,verdict", ("ham", "spam")))
    data = load_data(tmp_path / "num.csv", target="verdict")
    assert (data.n, set(data.labels), data.feature_names) == (200, {"ham", "spam"}, ["0", "1", "2"])  # type: ignore[arg-type]


@pytest.mark.parametrize("labels", [("0", "1"), ("ham", "spam"), ("y", "n"), ("label", "other")])
def test_tables_without_header(tmp_path: Path, labels: tuple[str, ...]) -> None:
    (tmp_path / "t.csv").write_text(table(None, labels))
    data = load_data(tmp_path / "t.csv", target="3")
    assert (data.n, data.X.shape, data.feature_names) == (200, (200, 3), None)
    assert set(map(str, data.labels)) <= {*labels, "0.0", "1.0"}  # type: ignore[arg-type]


@pytest.mark.parametrize("target", ["0", "2"])
def test_a_number_as_target_is_no_name_among_values(tmp_path: Path, target: str) -> None:
    (tmp_path / "t.csv").write_text("0,5,2\n1,6,3\n0,7,2\n")
    assert load_data(tmp_path / "t.csv", target=target).n == 3


@pytest.mark.parametrize("cell", ["", "?", "NA"])
def test_a_missing_value_in_the_first_row_makes_no_header(tmp_path: Path, cell: str) -> None:
    (tmp_path / "t.csv").write_text(f"1,{cell},0\n2,3,1\n3,4,0\n")
    with pytest.raises(FileError, match="line 1, column '1': expected a finite number"):
        load_data(tmp_path / "t.csv", target="2")


# missing labels


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1", "", "0"], "line 3 holds '': expected labels"),
        (["1", " ", "0"], "line 3 holds ' ': expected labels"),
        (["1", "nan", "0"], "line 3 holds nan: expected labels"),
        (["1", "0", "inf"], "line 4 holds inf: expected labels"),
        (["spam", "ham", ""], "line 4 holds '': expected labels"),
        (["spam", "NaN", "ham"], "line 3 holds 'NaN': expected labels"),
    ],
)
def test_missing_labels_of_csv(tmp_path: Path, capsys: Capture, cells: list[str], message: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,label\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells)))
    assert f"t.csv: {message}; fill it in, or remove the row" in refused(capsys, "train", file, tmp_path / "m")


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (["a", None, "b"], "None"),
        ([1, None, 0], "nan"),
        ([1.0, float("nan"), 0.0], "nan"),
        ([True, None, False], "None"),
    ],
)
def test_missing_labels_of_parquet(tmp_path: Path, capsys: Capture, column: list[object], shown: str) -> None:
    file = write_parquet(tmp_path / "t.parquet", ["x", "label"], [[0.0, 1.0, 2.0], column])
    said = refused(capsys, "train", file, tmp_path / "m")
    assert f"t.parquet: row 1 (from 0) holds {shown}: expected labels" in said


@pytest.mark.parametrize("kind", ["csv", "bare", "npz", "parquet"])
@pytest.mark.parametrize("some", [True, False])
def test_predictions_need_no_labels(tmp_path: Path, capsys: Capture, kind: str, some: bool) -> None:
    """A column of labels that is empty, or filled in here and there."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.round(rng.normal(size=(60, 2)) + 2 * y[:, None], 3)
    known = [some and k < 20 for k in range(60)]
    train, new = tmp_path / f"train.{kind}", tmp_path / f"new.{kind}"
    if kind == "npz":
        np.savez(train, X=X, y=y)
        np.savez(new, X=X, y=np.where(known, y, np.nan))
    elif kind == "parquet":
        columns = [X[:, 0].tolist(), X[:, 1].tolist()]
        write_parquet(train, ["a", "b", "label"], [*columns, y.tolist()])
        write_parquet(
            new, ["a", "b", "label"], [*columns, [int(v) if k else None for v, k in zip(y, known, strict=True)]]
        )
    else:
        train, new = train.with_suffix(".csv"), new.with_suffix(".csv")
        head = "a,b,label\n" if kind == "csv" else ""
        rows = list(zip(X.tolist(), y, known, strict=True))
        train.write_text(head + "".join(f"{a},{b},{v}\n" for (a, b), v, _ in rows))
        new.write_text(head + "".join(f"{a},{b},{v if k else ''}\n" for (a, b), v, k in rows))
    extra = ["--target", "2"] if kind == "bare" else []
    assert main(["train", str(train), str(tmp_path / "m"), *extra]) == 0
    capsys.readouterr()
    said = []
    for data in (train, new):
        assert main(["predict", str(data), str(tmp_path / "m")]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    wanted = "expected labels; fill" if some else "expected labels, got none"
    assert wanted in refused(capsys, "evaluate", new, tmp_path / "m")


def test_an_empty_file_of_a_folder_has_labels(tmp_path: Path) -> None:
    for name, rows in (("a", "1,0\n2,1\n"), ("b", "")):
        (tmp_path / f"{name}.csv").write_text("x,label\n" + rows)
    assert open_dataset(tmp_path).labels.tolist() == [0.0, 1.0]  # type: ignore[union-attr]


# labels that are numbers in one file and strings in another


def test_labels_by_their_text(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "three.csv").write_text(table("a,b,c,label", ("1", "2", "other")))
    (tmp_path / "two.csv").write_text(table("a,b,c,label", ("1", "2")))
    (tmp_path / "numbers.csv").write_text(table("a,b,c,label", ("1", "2", "3")))
    run_json(capsys, "train", tmp_path / "three.csv", tmp_path / "m")
    run_json(capsys, "train", tmp_path / "numbers.csv", tmp_path / "n")
    for data, model in (("two.csv", "m"), ("three.csv", "n")):
        assert main(["evaluate", str(tmp_path / data), str(tmp_path / model), "--json"]) == 0
        said = capsys.readouterr()
        values = json.loads(said.out)
        assert sum(values["positives"]) == (200 if data == "two.csv" else sum(values["positives"][:2]))
        assert all(values["positives"][:2])
        assert "unknown to the model, counted as none of its classes: 1" not in said.err


def test_labels_of_two_classes_by_their_text(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "one.csv").write_text("a,label\n" + "".join(f"{k % 2},{'1.0' if k % 2 else 'x'}\n" for k in range(40)))
    (tmp_path / "new.csv").write_text("a,label\n" + "".join(f"{k % 2},{k % 2}\n" for k in range(40)))
    run_json(capsys, "train", tmp_path / "one.csv", tmp_path / "m", "--positive", "1.0")
    assert run_json(capsys, "evaluate", tmp_path / "new.csv", tmp_path / "m")["positives"] == 20


def test_a_target_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("1,0,5\n2,1,6\n")
    for target in (1, "1", np.int64(1)):
        dataset = open_dataset(tmp_path, target=target)
        assert dataset.y.tolist() == load_data(tmp_path / "1.csv", target=target).labels.tolist() == [0.0, 1.0]
    with pytest.raises(FileError, match="no column '3': expected one of 0, 1, 2, or a number from 0"):
        open_dataset(tmp_path, target=3)


@pytest.mark.parametrize("lines", ["1 1:1\n2:1\n-1 2:3\n", "1 qid:1 1:1\n1 2:1\n2:2\n"])
def test_text_with_some_labels_or_groups_is_predicted(tmp_path: Path, capsys: Capture, lines: str) -> None:
    """Nobody asks for them there."""
    (tmp_path / "train.svm").write_text("1 1:1\n-1 2:1\n" * 9)
    (tmp_path / "new.svm").write_text(lines)
    assert main(["train", str(tmp_path / "train.svm"), str(tmp_path / "m")]) == 0
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "new.svm"), str(tmp_path / "m")]) == 0
    assert capsys.readouterr().out == "1\n-1\n-1\n"
    assert ": expected a " in refused(capsys, "evaluate", tmp_path / "new.svm", tmp_path / "m")
    data = load_data(tmp_path / "new.svm", labels=False)
    assert (data.n, data.labels, data.groups) == (3, None, None)


def test_labels_with_decimals_are_written_as_they_were_read(tmp_path: Path, capsys: Capture) -> None:
    """0.1, not 0.10000000000000001, which among names would be another label."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "1.csv").write_text("a,label\n1,0.1\n2,-2.50\n")
    (tmp_path / "parts" / "2.csv").write_text("a,label\n1,0.1\n2,other\n")
    assert open_dataset(tmp_path / "parts").labels.tolist() == ["0.1", "-2.5", "0.1", "other"]  # type: ignore[union-attr]
    trained = str(tmp_path / "parts" / "1.csv")
    assert main(["train", trained, str(tmp_path / "m"), "-C", "1000"]) == 0
    assert "classes:        -2.5, 0.1\n" in capsys.readouterr().out
    assert main(["predict", trained, str(tmp_path / "m")]) == 0
    assert capsys.readouterr().out == "0.1\n-2.5\n"
    assert [show(label) for label in (1.0, -3.0, 2.0**53, 1e-7, 1 / 3, "1.0")] == [
        "1",
        "-3",
        "9007199254740992",
        "1e-07",
        "0.3333333333333333",
        "1.0",
    ]
