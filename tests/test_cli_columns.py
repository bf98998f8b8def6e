"""Tables as people have them: text, gaps and columns of any scale, kept in the model and met again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cli import Capture, run, run_json
from test_tables import refused, write

from metrimax.cli import main
from metrimax.io.columns import Column, Learn, feature_names
from metrimax.io.data import load_data
from metrimax.io.files import FileError
from metrimax.io.models import LinearModel, load_model, save_model

HEADER = "age,city,income,active,verdict"


def people(n: int = 300, seed: int = 0, header: str = HEADER) -> str:
    """Text, gaps, a column of large numbers; who is of age and from Rome is more often positive."""
    rng = np.random.default_rng(seed)
    lines = [header]
    for k in range(n):
        age, income = rng.integers(18, 80), round(1e6 * rng.lognormal())
        city = ("Rome", "Oslo", "Lima")[rng.integers(3)]
        positive = (age - 50) / 20 + 2 * (city == "Rome") - income / 4e6 + rng.normal() > 1.5
        cells = [str(age), city, str(income), "yes" if rng.random() < 0.5 else "no", "bad" if positive else "good"]
        if k % 10 == 3:
            cells[0] = "NA"
        if k % 15 == 4:
            cells[1] = ""
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path / "people.csv", people())


def trained(table: Path, *options: str) -> Path:
    model = table.with_name("m")
    assert main(["train", str(table), str(model), "--target", "verdict", "--positive", "bad", *options]) == 0
    return model


def test_text_and_gaps_become_features(table: Path, capsys: Capture) -> None:
    model = load_model(trained(table, "--hinge", "1"))
    said = capsys.readouterr().err
    assert "text became one column of 0 and 1 for each value: city (3), active (2)" in said
    assert "gaps were filled (numbers: the median) and marked by a column of their own: age (30), city (20)" in said
    assert "columns of numbers were standardised" in said
    assert model.feature_names == [
        "age",
        "age is missing",
        "city=Lima",
        "city=Oslo",
        "city=Rome",
        "city is missing",
        "income",
        "active=no",
        "active=yes",
    ]
    data = load_data(
        table,
        target="verdict",
        columns=model.columns,
        n_features=model.n_features,
        feature_names=model.feature_names,
    )
    X = np.asarray(data.X)
    cells = [line.split(",") for line in table.read_text().splitlines()[1:]]
    ages = np.array([float(row[0]) if row[0] != "NA" else np.nan for row in cells])
    filled = np.where(np.isnan(ages), np.nanmedian(ages), ages)
    np.testing.assert_allclose(X[:, 0], (filled - filled.mean()) / filled.std())
    np.testing.assert_array_equal(X[:, 1], np.isnan(ages))
    np.testing.assert_array_equal(X[:, 4], [row[1] == "Rome" for row in cells])
    np.testing.assert_array_equal(X[:, 5], [row[1] == "" for row in cells])


def test_new_tables_are_treated_alike(table: Path, capsys: Capture) -> None:
    model = trained(table, "--hinge", "1", "--threshold", "placed")
    capsys.readouterr()
    first = run_json(capsys, "evaluate", table, model)
    lines = [line.split(",") for line in table.read_text().splitlines()]
    order = [4, 2, 0, 3, 1]  # columns are taken by name
    shuffled = write(table.with_name("other.csv"), "\n".join(",".join(row[k] for k in order) for row in lines) + "\n")
    assert run_json(capsys, "evaluate", shuffled, model) == first
    rows = [",".join(row[:4]) for row in lines]  # no labels
    unlabelled = write(table.with_name("new.csv"), "\n".join(rows) + "\n")
    both = [run(capsys, "predict", file, model, "--scores") for file in (table, unlabelled)]
    assert both[0] == both[1]
    one = write(table.with_name("one.csv"), "\n".join(rows[:2]) + "\n")  # one row has no median of its own
    assert run(capsys, "predict", one, model, "--scores") == both[0].splitlines()[0] + "\n"


def test_unknown_texts_and_new_gaps_are_said(table: Path, capsys: Capture) -> None:
    model = trained(table, "--hinge", "1")
    capsys.readouterr()
    new = write(table.with_name("new.csv"), "age,city,income,active\n30,Bonn,,maybe\n40,Rome,1000000,yes\n")
    assert main(["predict", str(new), str(model), "--scores"]) == 0
    out = capsys.readouterr()
    assert "texts that the training table did not have count as none of its values: city (1, such as 'Bonn')" in out.err
    assert "active (1, such as 'maybe')" in out.err
    assert "gaps in columns that had none in training were filled" in out.err
    assert "income (1)" in out.err
    fitted = load_model(model)
    assert fitted.columns is not None
    age, income = fitted.columns[0], fitted.columns[2]
    x = np.zeros(fitted.n_features)
    x[0], x[6] = (30 - age.center) / age.scale, (income.fill - income.center) / income.scale
    assert float(out.out.splitlines()[0]) == pytest.approx(float(fitted.coef[0] @ x + fitted.intercept[0]), rel=1e-6)
    assert main(["predict", str(new), str(model), "-q"]) == 0
    assert capsys.readouterr().err == ""
    bad = write(table.with_name("bad.csv"), "age,city,income,active\nold,Rome,1,yes\n")
    said = refused(capsys, "predict", bad, model)
    assert "line 2, column 'age': expected a number, as in the table that the model was trained on, got 'old'" in said


def test_a_folder_of_tables_is_predicted_alike(table: Path, capsys: Capture) -> None:
    model = trained(table, "--hinge", "1")
    capsys.readouterr()
    whole = run(capsys, "predict", table, model, "--scores")
    folder = table.with_name("parts")
    folder.mkdir()
    lines = table.read_text().splitlines(keepends=True)
    write(folder / "a.csv", "".join(lines[:101]))
    write(folder / "b.csv", "".join([lines[0], *lines[101:]]))
    assert run(capsys, "predict", folder, model, "--scores") == whole
    write(folder / "c.csv", lines[0] + "30,Bonn,1,yes,bad\n")
    assert main(["predict", str(folder), str(model)]) == 0
    assert "c.csv: texts that the training table did not have" in capsys.readouterr().err
    said = refused(capsys, "train", folder, table.with_name("m2"), "--target", "verdict")
    assert "a.csv: line 2, column 'city': expected a finite number, got " in said
    assert "'metrimax train' and 'tune' encode text and fill gaps where DATA is a single table" in said
    said = refused(capsys, "convert", table, table.with_name("shards"), "--target", "verdict")
    assert "leave the column out (--drop 'city')" in said


def test_convert_can_leave_columns_out(table: Path, capsys: Capture) -> None:
    arguments = ["--target", "verdict", "--drop", "age", "--drop", "city", "--drop", "active"]
    made = run_json(capsys, "convert", table, table.with_name("shards"), *arguments)
    assert (made["examples"], made["features"]) == (300, 1)
    said = refused(capsys, "train", table.with_name("shards"), table.with_name("m"), "--drop", "income")
    assert "--drop is for tables, not for binary shards: give it to 'metrimax convert'" in said


def test_numbers_alone_are_scaled_by_the_rule(tmp_path: Path, capsys: Capture) -> None:
    """A model of a table of numbers also takes archives and shards of them, which are not standardised."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = np.round(np.column_stack([1e6 + 1e5 * (rng.normal(size=200) + y), 1e-3 * rng.normal(size=200)]), 6)
    rows = "".join(f"{a},{b},{v}\n" for (a, b), v in zip(X.tolist(), y, strict=True))
    table = write(tmp_path / "t.csv", "a,b,label\n" + rows)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    run_json(capsys, "train", table, tmp_path / "m", "-C", "1")
    run_json(capsys, "convert", table, tmp_path / "shards")
    scores = [
        np.array(run(capsys, "predict", tmp_path / name, tmp_path / "m", "--scores").split(), dtype=float)
        for name in ("t.csv", "t.npz", "shards")
    ]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-7)
    np.testing.assert_allclose(scores[0], scores[2], atol=1e-7)
    assert run_json(capsys, "verify", tmp_path / "m", table)["holds"]
    said = refused(capsys, "verify", tmp_path / "m", tmp_path / "t.npz", code=2)
    assert "expected the table that the model was trained on" in said


def test_archives_have_no_text(table: Path, capsys: Capture) -> None:
    model = trained(table, "--hinge", "1")
    capsys.readouterr()
    np.savez(table.with_name("t.npz"), X=np.ones((3, 4)))
    said = refused(capsys, "predict", table.with_name("t.npz"), model)
    assert "expected a table, CSV or Parquet, for the model has columns of text (city, active)" in said


def test_columns_of_any_scale_are_learnt_from(tmp_path: Path, capsys: Capture) -> None:
    """A column of millions beside one of thousandths: both say something, and both are used."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(400, 2))
    y = signal.sum(axis=1) + 0.3 * rng.normal(size=400) > 0.8
    X = signal * [1e6, 1e-3] + [5e6, 0.0]
    rows = "".join(f"{a!r},{b!r},{int(v)}\n" for (a, b), v in zip(X.tolist(), y, strict=True))
    table = write(tmp_path / "t.csv", "a,b,label\n" + rows)
    score = run_json(capsys, "train", table, tmp_path / "m")["training_score"]
    assert float(str(score)) > 0.85
    raw = ["train", str(table), str(tmp_path / "m"), "--no-scaling", "--json", "--max-iter", "200", "-q"]
    assert main(raw) in (0, 3, 4)
    assert json.loads(capsys.readouterr().out)["training_score"] < float(str(score)) - 0.02


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([f"id{k},{k % 2}" for k in range(40)], "got 40 different texts in 40 rows, such as 'id0', 'id1', 'id10'"),
        ([f"v{k % 101},{k % 2}" for k in range(404)], "got 101 different texts in 404 rows"),
        ([f"{k if k != 7 else 'seven'},{k % 2}" for k in range(40)], "got numbers, but 'seven' at line 9"),
    ],
)
def test_too_many_texts(tmp_path: Path, capsys: Capture, rows: list[str], message: str) -> None:
    table = write(tmp_path / "t.csv", "name,label\n" + "\n".join(rows) + "\n")
    said = refused(capsys, "train", table, tmp_path / "m")
    assert message in said
    assert "--drop 'name'" in said


def test_dropped_columns(table: Path, capsys: Capture) -> None:
    model = load_model(trained(table, "--drop", "city", "--drop", "3", "--hinge", "1"))
    assert model.feature_names == ["age", "age is missing", "income"]
    capsys.readouterr()
    said = refused(capsys, "train", table, table.with_name("m"), "--target", "verdict", "--drop", "town")
    assert "no column 'town' to drop: expected one of age, city, income, active, verdict" in said
    said = refused(capsys, "train", table, table.with_name("m"), "--target", "verdict", "--drop", "verdict")
    assert "the column 'verdict' holds the labels and cannot be dropped" in said
    bare = write(table.with_name("bare.csv"), "1,2,0\n2,1,1\n1,3,0\n")
    said = refused(capsys, "train", bare, table.with_name("m"), "--target", "2", "--drop", "0")
    assert "--drop needs a header" in said
    svm = write(table.with_name("t.svm"), "1 1:1\n-1 1:2\n")
    assert "--drop is for the columns of tables" in refused(capsys, "train", svm, table.with_name("m"), "--drop", "1")


def test_empty_columns_are_left_out(tmp_path: Path, capsys: Capture) -> None:
    table = write(tmp_path / "t.csv", "a,b,label\n1,,0\n2,NA,1\n1,?,0\n3,,1\n")
    run(capsys, "train", table, tmp_path / "m")
    assert load_model(tmp_path / "m").feature_names == ["a"]
    bare = write(tmp_path / "bare.csv", "1,,0\n2,,1\n1,,0\n3,,1\n")
    run(capsys, "train", bare, tmp_path / "m", "--target", "2")
    assert len(run(capsys, "predict", bare, tmp_path / "m").split()) == 4


def test_parquet(table: Path, capsys: Capture) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.read_csv(table, keep_default_na=True)
    frame["active"] = frame["active"].astype("category")
    frame.to_parquet(table.with_suffix(".parquet"))
    model = trained(table, "--hinge", "1")
    capsys.readouterr()
    scores = [run(capsys, "predict", table.with_suffix(s), model, "--scores") for s in (".csv", ".parquet")]
    assert scores[0] == scores[1]
    other = table.with_name("m2")
    assert main(["train", str(table.with_suffix(".parquet")), str(other), "--target", "verdict", "--hinge", "1"]) == 0
    assert load_model(other).columns == load_model(model).columns


def test_svmperf_files_hold_numbers_alone(table: Path, capsys: Capture) -> None:
    arguments = ["--target", "verdict", "--model-format", "svmperf"]
    assert "expected a finite number, got" in refused(capsys, "train", table, table.with_name("m"), *arguments)


def test_info_shows_the_columns(table: Path, capsys: Capture) -> None:
    model = trained(table, "--hinge", "1")
    capsys.readouterr()
    columns = run_json(capsys, "info", model)["columns"]
    assert columns[1] == {"name": "city", "values": ["Lima", "Oslo", "Rome"], "marked": True}  # type: ignore[index]


def test_from_python(table: Path) -> None:
    data = load_data(table, target="verdict", columns=Learn(scale=False))
    assert data.columns is not None
    assert data.feature_names == feature_names(data.columns)
    assert any("city (3)" in remark for remark in data.remarks)


COLUMNS = [Column("a", None, 1.0, 2.0, 3.0, True), Column("b", ("x", "y"))]


def kept(path: Path) -> Path:
    names = feature_names(COLUMNS)
    save_model(path, LinearModel(np.ones((1, 4)), np.zeros(1), np.zeros(1), ["n", "p"], "binary", "f1", None, names,
                                 columns=COLUMNS))  # fmt: skip
    return path


def test_model_files_keep_columns(tmp_path: Path) -> None:
    path = kept(tmp_path / "m")
    assert path.read_bytes().startswith(b"metrimax-model 3 ")
    assert load_model(path).columns == COLUMNS
    save_model(tmp_path / "plain", LinearModel(np.ones((1, 2)), np.zeros(1), np.zeros(1), ["n", "p"]))
    assert (tmp_path / "plain").read_bytes().startswith(b"metrimax-model 2 ")  # earlier readers take it


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.pop("columns"), "expected columns in version 3"),
        (lambda h: h.update(columns=None), "expected columns as a list of objects"),
        (lambda h: h.update(columns=[5]), "expected columns as a list of objects"),
        (lambda h: h["columns"][0].update(name=7), "expected a column with a name"),
        (lambda h: h["columns"][0].pop("marked"), "expected a column with a name"),
        (lambda h: h["columns"][0].update(scale=0), "expected finite numbers fill, center and scale > 0"),
        (lambda h: h["columns"][0].update(scale=-1.0), "expected finite numbers fill, center and scale > 0"),
        (lambda h: h["columns"][0].update(center=True), "expected finite numbers fill, center and scale > 0"),
        (lambda h: h["columns"][0].update(fill="1"), "expected finite numbers fill, center and scale > 0"),
        (lambda h: h["columns"][0].update(fill=10**400), "expected finite numbers fill, center and scale > 0"),
        (lambda h: h["columns"][1].update(name="a"), "expected columns of different names"),
        (lambda h: h["columns"][1].update(values="xy"), "expected the values of the column 'b' as texts"),
        (lambda h: h["columns"][1].update(values=["x", ""]), "expected the values of the column 'b' as texts"),
        (lambda h: h["columns"][1].update(values=["x", "x"]), "expected different values of the column 'b'"),
        (
            lambda h: h["columns"][1].update(values=["x"]),
            "expected columns that make the 4 features of the model, got 3",
        ),
        (lambda h: h.update(feature_names=["a", "b", "c", "d"]), "expected columns that make the 4 features"),
        (
            lambda h: h.update(feature_names=None, columns=[h["columns"][0], {**h["columns"][1], "name": "\ud800"}]),
            r"expected columns as text that can be written as UTF-8, got '\\ud800=x'",
        ),
    ],
)
def test_hostile_columns(tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str) -> None:
    path = kept(tmp_path / "hostile.model")
    first, header, body = path.read_bytes().split(b"\n", 2)
    entries = json.loads(header)
    change(entries)
    rest = json.dumps(entries).encode() + b"\n" + body
    path.write_bytes(b" ".join([*first.split()[:2], hashlib.sha256(rest).hexdigest().encode()]) + b"\n" + rest)
    with pytest.raises(FileError, match=f"hostile.model: {message}"):
        load_model(path)


def test_the_version_cannot_be_changed(tmp_path: Path) -> None:
    path = kept(tmp_path / "m")
    path.write_bytes(re.sub(rb"^metrimax-model 3", b"metrimax-model 2", path.read_bytes()))
    with pytest.raises(FileError, match="expected columns in version 3, and in no other, got version 2"):
        load_model(path)
