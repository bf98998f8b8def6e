"""Columns of shards: those of a model, under the same names, in the same order, counted from the same index."""

from __future__ import annotations

import json
import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from shard_folders import svmlight

from metrimax import MeasureRanker, MeasureSVC, MeasureSVCCV, open_dataset
from metrimax.cli import main
from metrimax.io.converting import convert
from metrimax.io.files import FileError
from metrimax.io.writing import ShardWriter

NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.3, 1.0, -1.0)
    return rng.normal(size=(200, 3)) + y[:, None] * [2.0, -1.0, 0.0], y


def run(capsys, *arguments):
    """The exit code of a command, and what it wrote."""
    code = main([str(argument) for argument in arguments])
    written = capsys.readouterr()
    return code, written.err if code else written.out


def table(path, X, y, order):
    rows = np.column_stack([y, X[:, [NAMES.index(name) for name in order]]])
    path.write_text(
        "\n".join([",".join(["label", *order]), *(",".join(map(str, row)) for row in rows.tolist())]) + "\n"
    )
    return path


def shards(folder, X, y, names):
    with ShardWriter(folder) as writer:
        writer.add(X, y)
        writer.finish(feature_names=names)
    return folder


def test_a_folder_that_counts_from_another_index(problem, tmp_path, capsys):
    X, y = problem
    later = X * [0, 1, 1]  # the first feature, 0, never occurs
    (tmp_path / "t0.svm").write_text(svmlight(X, y, base=0))
    (tmp_path / "t1.svm").write_text(svmlight(later, y, base=0))
    model = tmp_path / "t0.model"
    assert run(capsys, "train", tmp_path / "t0.svm", model)[0] == 0
    _, expected = run(capsys, "evaluate", tmp_path / "t1.svm", model, "--json")
    convert(tmp_path / "t1.svm", tmp_path / "guessed")
    for options in ([], ["--index-base", "0"]):
        for command in ("evaluate", "predict"):
            code, said = run(capsys, command, tmp_path / "guessed", model, *options)
            assert code == 1
            assert "guessed: expected 0 as the index of the first feature, got a folder that counts from 1" in said
            assert "convert the text again with --index-base 0" in said
    convert(tmp_path / "t1.svm", tmp_path / "told", index_base=0)
    for options in ([], ["--index-base", "0"]):
        code, found = run(capsys, "evaluate", tmp_path / "told", model, *options, "--json")
        assert code == 0
        assert json.loads(found)["f1"] == json.loads(expected)["f1"]
    assert open_dataset(tmp_path / "guessed").index_base == 1
    with pytest.raises(
        FileError, match="expected 1 as the index of the first feature, got a folder that counts from 0"
    ):
        open_dataset(tmp_path / "told", index_base=1)


def test_a_folder_with_the_columns_in_another_order(problem, tmp_path, capsys):
    model = tmp_path / "abc.model"
    assert run(capsys, "train", table(tmp_path / "abc.csv", *problem, "abc"), model)[0] == 0
    _, expected = run(capsys, "evaluate", tmp_path / "abc.csv", model, "--json")
    for order, difference in (
        ("cba", "expected 'a' as column 0 (from 0), got 'c'"),
        ("acb", "expected 'b' as column 1 (from 0), got 'c'"),
        ("ab", "expected 3 columns, got 2"),
    ):
        convert(table(tmp_path / f"{order}.csv", *problem, order), tmp_path / order)
        code, said = run(capsys, "evaluate", tmp_path / order, model)
        assert code == 1
        assert f"{order}: its columns are not those of the model: {difference}; convert the data again" in said
    convert(tmp_path / "abc.csv", tmp_path / "abc")
    (tmp_path / "files").mkdir()
    table(tmp_path / "files" / "cba.csv", *problem, "cba")  # not converted: columns are taken by name
    for data in ("abc", "files", "cba.csv"):
        code, found = run(capsys, "evaluate", tmp_path / data, model, "--json")
        assert code == 0
        assert json.loads(found)["f1"] == json.loads(expected)["f1"]


def test_folders_that_know_nothing_of_their_columns(problem, tmp_path):
    folder = shards(tmp_path / "plain", *problem, None)
    dataset = open_dataset(folder, feature_names=NAMES, index_base=1, n_features=3)
    assert_array_equal(dataset.matvec(np.eye(3)), problem[0])
    named = shards(tmp_path / "named", *problem, NAMES)
    assert open_dataset(named, index_base=0, feature_names=NAMES).feature_names == NAMES
    assert open_dataset(named, n_features=3).feature_names == NAMES


def test_estimators_compare_the_names_of_columns(problem, tmp_path):
    X, y = problem
    train = open_dataset(shards(tmp_path / "train", X, y, NAMES))
    turned = open_dataset(shards(tmp_path / "turned", X[:, ::-1], y, NAMES[::-1]))
    narrow = open_dataset(shards(tmp_path / "narrow", X[:, :2], y, NAMES[:2]))
    plain = open_dataset(shards(tmp_path / "plain", X, y, None))
    clf = MeasureSVC().fit(train)
    assert clf.score(train) == clf.score(plain) > 0.9
    message = "The feature names should match those that were passed during fit: expected "
    for use in (clf.score, clf.predict, clf.decision_function):
        with pytest.raises(ValueError, match=message + r"'a' as column 0 \(from 0\), got 'c'"):
            use(turned)
    with pytest.raises(ValueError, match=message + "3 columns, got 2"):
        clf.predict(narrow)
    ranker = MeasureRanker(tol=0.1).fit(train, y > 0, groups=np.repeat(np.arange(20), 10))
    with pytest.raises(ValueError, match=message):
        ranker.decision_function(turned)
    assert MeasureSVC().fit(plain).predict(turned).shape == (200,)  # as for an array, there is nothing to compare
    pandas = pytest.importorskip("pandas")
    framed = MeasureSVC().fit(pandas.DataFrame(X, columns=NAMES), y)
    assert_array_equal(framed.predict(train), clf.predict(train))
    with pytest.raises(ValueError, match=message):
        framed.predict(turned)


@pytest.mark.parametrize("make", [MeasureSVC, partial(MeasureSVCCV, Cs=[1.0]), partial(MeasureRanker, "roc_area")])
def test_estimators_compare_the_index_of_the_first_feature(problem, tmp_path, make):
    """Feature 1 is the first column of the one folder and the second of the other."""
    X, y = problem
    for base in (0, 1):
        (tmp_path / f"{base}.svm").write_text(svmlight(X, y, base=base))
        convert(tmp_path / f"{base}.svm", tmp_path / f"from-{base}")
    zero, one = (open_dataset(tmp_path / f"from-{base}") for base in (0, 1))
    model = pickle.loads(pickle.dumps(make().fit(one)))
    assert model.score(one) > 0.8
    for use in (model.predict, model.score):
        with pytest.raises(ValueError, match=r"expected 1 as the index of the first feature, .* count from 0"):
            use(zero)
    assert_array_equal(model.predict(X), model.predict(one))  # an array does not say how it counts
    model.fit(X, y)
    assert_array_equal(model.predict(zero), model.predict(one))
