"""Typical mistakes on the command line: what is said names the place and the remedy."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from test_cli import Capture, svmlight
from test_cli_columns import people

from metrimax.cli import main

HAVE = "age,city,income,active,verdict"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Path:
    """Files as people have them, and two models: of a table with text, and of svmlight text."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.5
    X = np.round(rng.normal(size=(60, 3)) + 2 * y[:, None], 3)
    lines = people(60).splitlines(keepends=True)
    files = {
        "people.csv": people(120),
        "header.csv": lines[0],
        "bare.csv": "".join(lines[1:]),
        "one.csv": lines[0] + "".join(line for line in lines[1:] if line.endswith(",good\n")),
        "unlabelled.csv": "".join(line.rpartition(",")[0] + "\n" for line in lines),
        "gap.csv": people(60).replace(",bad\n", ",\n", 1),
        "semicolons.csv": people(60).replace(",", ";"),
        "ragged.csv": people(60) + "1,2,3\n",
        "quotes.csv": people(60) + '"1,2,3\n',
        "twice.csv": people(60, header="age,age,income,active,verdict"),
        "index.csv": people(60, header=",city,income,active,verdict"),
        "utf16.csv": "",
        "empty.csv": "",
        "table.txt": people(60),
        "t.svm": svmlight(X, ["1" if v else "-1" for v in y]),
        "wide.svm": "1 1:1 2:1\n-1 1:2 900:1\n",
        "nan.svm": "1 1:nan\n-1 1:2\n",
        "nolabel.svm": "1:1 2:2\n1:2 2:1\n",
        "falling.svm": "1 2:1 1:1\n-1 1:2\n",
        "words.svm": "spam 1:1\nham 1:2\n",
        "halfqid.svm": "1 qid:1 1:1\n0 1:2\n",
        "junk.npz": "not an archive",
        "t.tsv": people(60).replace(",", "\t"),
        "one.tsv": people(60).replace(",", "\t"),
        "t.jsonl": '{"age": 3, "verdict": "good"}\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "utf16.csv").write_text(people(60), encoding="utf-16")
    (tmp_path / "a_folder").mkdir()
    target = ["--target", "verdict"]
    assert main(["train", "people.csv", "table.model", *target, "--positive", "bad", "-q"]) == 0
    assert main(["train", "t.svm", "text.model", "-q"]) == 0
    capsys.readouterr()
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("train people.csv m --target verdict --metric f1", 2, "--metric f1; perhaps --measure is meant"),
        ("tune people.csv m --target verdict --mesure f1", 2, "perhaps --measure is meant"),
        ("tune people.csv m --target verdict --cv 3", 2, "perhaps --folds is meant"),
        ("train people.csv m --folds 3", 2, "--folds is an option of tune"),
        ("train people.csv m --kind ensemble", 2, "--kind is an option of tune"),
        ("evaluate people.csv table.model --measure f1", 2, "--measure is an option of train, tune"),
        ("predict people.csv table.model --positive=bad", 2, "--positive is an option of train, tune, evaluate"),
        ("info table.model people.csv", 2, "unrecognized arguments: people.csv"),
        ("evaluate people.csv table.model --positive Bad --target verdict", 1, "they have bad, good: give --positive"),
        ("train people.csv m --target verdict --measure recall@precision=90", 2, "90 % is 0.9"),
        ("train people.csv m --target verdict --measure fbeta:gamma=2", 2, "fbeta takes beta, zero_division"),
        ("train people.csv m --target verdict --measure cost=50", 2, "parameters follow a colon"),
        ("train people.csv m --target verdict --measure sensitivity", 2, "perhaps 'recall@precision=0.9' is meant"),
        ("tune people.csv m --target verdict --grid 1:2", 2, "expected --grid as LOW:HIGH:STEPS"),
        ("tune people.csv m --target verdict --folds 1000", 2, "give fewer --folds"),
        ("train people.csv m --target verdict --memory lots", 2, "such as '500MB' or '2GiB', got 'lots'"),
        ("evaluate people.csv table.model --report no/x.html --target verdict", 1, "no/x.html: cannot be written"),
        ("convert people.csv out --target verdict", 1, "encode text and fill gaps where DATA is a single table"),
        ("tune t.svm m --kind ensemble", 2, "leave out --kind ensemble for other files"),
        ("train people.csv m --dask local", 2, "make one with 'metrimax convert'"),
        ("train people.csv m --target verdict --checkpoint people.csv", 1, "cannot be a folder for checkpoints"),
        ("predict t.svm table.model", 1, "give the table itself"),
        ("train semicolons.csv m --target verdict", 1, "pandas.read_csv(FILE, sep=';', decimal=',')"),
        ("train nothere.csv m", 1, "nothere.csv: No such file"),
        ("train people.csv m", 1, "which column holds the labels? Give --target NAME"),
        ("train people.csv m --target fraud", 1, f"no column 'fraud': expected one of {HAVE.replace(',', ', ')}"),
        ("train people.csv m --target verdict --positive Bad", 1, "no label Bad: expected one of bad, good"),
        ("train people.csv m --target verdict --drop town", 1, "no column 'town' to drop: expected one of"),
        ("train people.csv m --target verdict --drop verdict", 1, "holds the labels and cannot be dropped"),
        ("train people.csv m --target city", 1, "line 6 holds '': expected labels; fill it in, or remove the row"),
        ("train people.csv people.csv --target verdict", 2, "people.csv would take the place of DATA"),
        ("train people.csv no/m --target verdict", 1, "no/m: cannot be written: No such file"),
        ("train people.csv a_folder --target verdict", 1, "a_folder: cannot be written: Is a directory"),
        ("train header.csv m --target verdict", 1, "expected examples to train on, got none"),
        ("train bare.csv m --target verdict", 1, "no column 'verdict'"),
        ("train one.csv m --target verdict", 1, "expected examples of two classes at least, got only good"),
        (
            "train unlabelled.csv m --target verdict",
            1,
            "no column 'verdict': expected one of age, city, income, active",
        ),
        ("train gap.csv m --target verdict", 1, "holds '': expected labels; fill it in, or remove the row"),
        ("train semicolons.csv m", 1, "expected comma-separated values, got 'age;city;income;active;verdict'"),
        ("train ragged.csv m --target verdict", 1, "line 62: expected 5 values, got 3"),
        ("train quotes.csv m --target verdict", 1, "quotes.csv: line 62"),
        ("train twice.csv m --target verdict", 1, "got 'age' more than once: rename them"),
        ("train index.csv m --target verdict", 1, "leave them out with --drop 0"),
        ("train utf16.csv m --target verdict", 1, "expected UTF-8 text"),
        ("train empty.csv m", 1, "expected rows of comma-separated values, got an empty file"),
        ("train table.txt m", 1, "it was read as svmlight text: for a table give --format csv"),
        ("train t.svm m --format csv", 1, "t.svm: "),
        ("train t.svm m --target verdict --drop a", 1, "--drop is for the columns of tables"),
        ("train nan.svm m", 1, "line 1, column 5"),
        ("train nolabel.svm m", 1, "nolabel.svm: expected labels, got none"),
        ("train falling.svm m", 1, "line 1, column"),
        ("train words.svm m", 1, "expected a label (a finite decimal number), got 'spam'"),
        ("train halfqid.svm m", 1, "qid"),
        ("train junk.npz m", 1, "junk.npz"),
        ("train a_folder m", 1, "expected a folder of shards, got an empty folder"),
        ("train t.svm m --measure accuracyy", 2, "perhaps 'error' is meant"),
        ("train t.svm m --measure f1:beta", 2, "expected NAME:KEY=VALUE"),
        ("train t.svm m --measure f1:gamma=2", 2, "--measure f1:gamma=2"),
        ("train t.svm m --measure precision@0", 2, "expected k as a whole number of at least 1"),
        ("train t.svm m --measure fbeta:beta=-1", 2, "beta"),
        ("train t.svm m -C -1", 2, "expected a finite -C > 0, got -1"),
        ("train t.svm m -C many", 2, "invalid float value: 'many'"),
        ("train t.svm m --tol 0", 2, "expected a finite --tol > 0"),
        ("train t.svm m --max-iter 0", 2, "expected --max-iter of at least 1"),
        ("train t.svm m --threads 0", 2, "expected --threads of at least 1"),
        ("train t.svm m --dask local", 2, "make one with 'metrimax convert'"),
        ("train t.svm m --report -", 2, "expected a file, got standard output"),
        ("train t.svm", 2, "the following arguments are required: MODEL"),
        ("trian t.svm m", 2, "invalid choice: 'trian'"),
        ("tune t.svm m --folds 1", 2, "expected --folds of at least 2"),
        ("tune t.svm m --folds 50", 2, "give fewer --folds"),
        ("tune t.svm m --grid 1:2", 2, "expected --grid as LOW:HIGH:STEPS"),
        ("tune t.svm m --grid 0,1", 2, "expected --grid as LOW:HIGH:STEPS"),
        ("tune t.svm m --kind ensemble", 2, "expected a table, .csv or .parquet, for an ensemble"),
        ("predict t.svm nothere.model", 1, "nothere.model: No such file"),
        ("predict text.model t.svm", 1, "text.model is one: expected the order DATA MODEL"),
        ("predict t.svm people.csv", 1, "people.csv: expected a model file"),
        ("predict t.svm table.model", 1, "expected a table, CSV or Parquet, for the model has columns of text (city, "),
        ("predict one.csv text.model", 1, "one.csv: "),
        ("predict unlabelled.csv table.model -o table.model", 2, "table.model would take the place of MODEL"),
        ("predict header.csv nothere.model", 1, "nothere.model"),
        ("evaluate unlabelled.csv table.model", 1, "expected labels, got none: for a table, --target NAME"),
        ("evaluate one.csv table.model", 1, "no example has the positive label bad, they have good: give --positive"),
        ("evaluate people.csv table.model --positive ugly", 1, "no example has the positive label ugly"),
        ("evaluate bare.csv table.model", 1, "expected the model's columns, but age, city, income, active not there"),
        ("verify t.svm text.model", 1, "text.model is one: expected the order MODEL DATA"),
        ("verify text.model people.csv", 1, "people.csv: "),
        ("convert people.csv a_folder/shards --target verdict", 1, "leave the column out (--drop 'city')"),
        ("convert t.svm a_folder --shard-size big", 2, "--shard-size"),
        ("info people.csv", 1, "people.csv: expected a model file"),
        ("train t.tsv m", 1, "write a table of the kind .tsv as CSV, with to_csv(FILE, index=False) of pandas"),
        ("train t.jsonl m", 1, "write a table of the kind .jsonl as CSV"),
        ("train t.tsv m --format csv", 1, r"pandas.read_csv(FILE, sep='\t') and to_csv(FILE, index=False)"),
        ("predict one.tsv table.model", 1, "with --format csv if its name does not end in .csv"),
        ("train people.csv m --target verdict --measure recall", 2, "perhaps 'recall@precision=0.9' is meant"),
        ("train people.csv m --target verdict --measure precision@200%", 2, "as a share of the sample such as '1%'"),
        ("train people.csv m --target verdict --drop age,city", 1, "repeat --drop for several columns"),
        ("demo --report -", 2, "expected a file, got standard output"),
    ],
)
def test_mistakes(folder: Path, capsys: Capture, command: str, code: int, said: str) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    try:
        found = main(command.split())
    except SystemExit as end:  # of argparse
        found = int(str(end.code))
    told = capsys.readouterr()
    assert said in told.err
    assert found == code
    assert "Traceback" not in told.err
    assert told.out == ""
    assert before == {
        path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()
    }  # nothing was written


def test_a_table_at_standard_input(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --format csv it is read as the file is."""
    assert main(["predict", "unlabelled.csv", "table.model"]) == 0
    expected = capsys.readouterr().out
    text = io.TextIOWrapper(io.BytesIO((folder / "unlabelled.csv").read_bytes()))
    monkeypatch.setattr("sys.stdin", text)
    assert main(["predict", "-", "table.model", "--format", "csv"]) == 0
    assert capsys.readouterr().out == expected
    assert len(expected.splitlines()) == 60
