"""Data in folders: shards as a design, their files, and what is said about those that are not as they should be."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import textwrap
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from shard_folders import KINDS, N, P, make_problem, svmlight, write_folder

from metrimax import MeasureSVC, open_dataset
from metrimax.cli import main
from metrimax.designs import Dense, Sharded, as_design
from metrimax.io.converting import convert
from metrimax.io.data import load_data
from metrimax.io.files import FileError
from metrimax.io.models import load_model
from metrimax.io.writing import ShardWriter


@pytest.fixture(scope="module")
def problem():
    return make_problem()


@pytest.fixture(params=[*KINDS, "converted"])
def folder(request, problem, tmp_path):
    if request.param == "converted":
        convert(write_folder("svmlight", tmp_path / "text", *problem), tmp_path / "data", shard_size=8000)
        return tmp_path / "data"
    return write_folder(request.param, tmp_path / "data", *problem)


# --- as a design


@pytest.mark.parametrize("L", [None, 3])
@pytest.mark.parametrize("memory", ["100MB", 180_000])
def test_products(folder, problem, memory, L):
    X, y = problem
    dataset = open_dataset(folder, memory=memory, n_threads=2)
    rng = np.random.default_rng(1)
    many = () if L is None else (L,)
    w, slope = rng.normal(size=(P, *many)), rng.normal(size=(N, *many))
    assert dataset.shape == X.shape
    assert_array_equal(dataset.labels, y)
    for _ in range(2):  # the second time some shards are open
        assert_allclose(dataset.matvec(w), X @ w, atol=1e-12)
        assert_allclose(dataset.rmatvec(slope), X.T @ slope, atol=1e-11)


class Rows:
    """A shard in memory that counts how often it is opened and how much is open."""

    def __init__(self, X, log):
        self.X, self.log, self.name, self.rows = X, log, "rows", len(X)
        self.held = self.peak = X.nbytes

    def load(self, n_threads):
        self.log.append(self)
        return Dense(self.X.copy(), n_threads)

    def prefetch(self):
        pass

    def check(self):
        pass


@settings(deadline=None, max_examples=30)
@given(
    sizes=st.lists(st.integers(0, 7), min_size=1, max_size=9),
    threads=st.integers(1, 4),
    room=st.integers(0, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_division_into_shards(sizes, threads, room, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(sizes), 3))
    starts = np.concatenate(([0], np.cumsum(sizes)))
    log = []
    shards = [Rows(X[a:b], log) for a, b in pairwise(starts)]
    largest = max(shard.peak for shard in shards)
    design = Sharded(shards, 3, memory=largest + room * 24 + 1, n_threads=threads)
    assert design.shape == X.shape
    w, slope = rng.normal(size=3), rng.normal(size=len(X)) * (rng.random(len(X)) < 0.5)
    assert_allclose(design.matvec(w), X @ w, atol=1e-12)
    assert_allclose(design.rmatvec(slope), X.T @ slope, atol=1e-12)
    assert sum(shards[k].held for k in design._open) + design._threads * largest <= design.memory


def test_shards_without_slope_are_not_opened_and_those_that_fit_stay_open():
    log = []
    shards = [Rows(np.ones((10, 2)), log) for _ in range(6)]
    design = Sharded(shards, 2, memory=4 * 160, n_threads=2)
    slope = np.zeros(60)
    slope[25] = 1.0
    assert_array_equal(design.rmatvec(slope), [1.0, 1.0])
    assert log == [shards[2]]
    design.matvec(np.ones(2))
    opened = len(log)
    design.matvec(np.ones(2))
    assert len(log) - opened == 6 - 2  # two in use at a time leave room for two
    assert design.bytes_read == 13 * 160


def test_products_do_not_depend_on_which_thread_is_quicker():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 7))
    design = Sharded([Rows(X[k : k + 10], []) for k in range(0, 500, 10)], 7, memory=10**6, n_threads=3)
    slope = rng.normal(size=500)
    first = design.rmatvec(slope)
    for _ in range(20):
        assert_array_equal(design.rmatvec(slope), first)


def test_a_dataset_can_be_sent_to_another_process(folder, problem):
    dataset = open_dataset(folder)
    w = np.ones(P)
    dataset.matvec(w)
    assert_allclose(pickle.loads(pickle.dumps(dataset)).matvec(w), problem[0] @ w, atol=1e-12)


# --- training


@pytest.mark.parametrize("measure", ["f1", "roc_area", "error"])
def test_the_fit_is_that_of_the_matrix(folder, problem, measure):
    X, y = problem
    inside = MeasureSVC(measure, tol=1e-7).fit(X, y)
    dataset = open_dataset(folder, memory=180_000)
    outside = MeasureSVC(measure, tol=1e-7).fit(dataset)
    assert outside.objective_ == pytest.approx(inside.objective_, rel=1e-6)
    assert outside.dual_bound_ == pytest.approx(inside.dual_bound_, rel=1e-6)
    assert outside.status_.ok
    assert_array_equal(outside.classes_, inside.classes_)
    assert outside.n_features_in_ == P
    assert_allclose(outside.decision_function(dataset), outside.decision_function(X), atol=1e-10)
    assert outside.score(dataset) == pytest.approx(inside.score(X, y), abs=1e-3)


def test_weights_classes_and_other_labels(folder, problem):
    X, y = problem
    dataset = open_dataset(folder)
    weight = np.random.default_rng(0).integers(0, 3, size=N)
    expected = MeasureSVC(tol=1e-6).fit(X, y, weight)
    assert MeasureSVC(tol=1e-6).fit(dataset, sample_weight=weight).objective_ == pytest.approx(
        expected.objective_, rel=1e-5
    )
    three = np.arange(N) % 3
    assert MeasureSVC("error", max_iter=3000).fit(dataset, three).coef_.shape == (3, P)


def test_estimator_errors(folder, problem):
    dataset = open_dataset(folder)
    with pytest.raises(ValueError, match="linear"):
        MeasureSVC(kernel="rbf").fit(dataset)
    with pytest.raises(ValueError, match="as many labels as the 400 rows"):
        MeasureSVC().fit(dataset, np.ones(3))
    with pytest.raises(ValueError, match="brings no labels"):
        MeasureSVC().fit(as_design(problem[0]))
    with pytest.raises(ValueError, match="requires y"):
        MeasureSVC().fit(problem[0])
    clf = MeasureSVC(tol=0.1).fit(problem[0][:, :5], problem[1])
    with pytest.raises(ValueError, match="expected 5 features"):
        clf.predict(dataset)
    with pytest.raises(ValueError, match="true labels"):
        clf.score(problem[0][:, :5])


# --- the command


def test_train_predict_evaluate_and_tune_on_folders(folder, problem, tmp_path, capsys):
    X, y = problem
    model = tmp_path / "model"
    assert main(["train", str(folder), str(model), "--tol", "1e-6", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["objective"][0] == pytest.approx(MeasureSVC(tol=1e-6).fit(X, y).objective_, rel=1e-5)
    assert main(["predict", str(folder), str(model), "--scores"]) == 0
    scores = np.array(capsys.readouterr().out.split(), dtype=float)
    trained = load_model(model)
    assert_allclose(scores, X @ trained.coef[0] + trained.intercept, atol=1e-7)
    assert main(["evaluate", str(folder), str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["f1"] == pytest.approx(result["training_score"])
    assert main(["tune", str(folder), str(model), "--grid", "0.1,1", "--folds", "2", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["cross_validation"]
    assert len(steps) == 2 * 2 * 2  # losses, C, thresholds
    assert {step["C"] for step in steps} == {0.1, 1.0}


def test_tuning_on_a_folder_is_tuning_on_the_file(problem, tmp_path, capsys):
    (tmp_path / "all.svm").write_text(svmlight(*problem))
    folder = write_folder("svmlight", tmp_path / "parts", *problem)
    scores = []
    for data in (tmp_path / "all.svm", folder):
        tuning = ["--grid", "0.01,1", "--folds", "2", "--tol", "1e-7", "--json"]
        assert main(["tune", str(data), str(tmp_path / "model"), *tuning]) == 0
        scores.append([step["score"] for step in json.loads(capsys.readouterr().out)["cross_validation"]])
    assert_allclose(scores[0], scores[1], atol=1e-2)


# --- converting


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_convert_text_in_small_pieces(problem, tmp_path, base, ending):
    import gzip
    import lzma

    X, y = problem
    X = X.copy()
    if base == 0:
        X[: N // 2, 0] = 0  # the index 0 turns up late
        X[-1, 0] = 1.0
    text = svmlight(X, y, base).encode()
    file = tmp_path / f"all.svm{ending}"
    file.write_bytes({"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[ending](text))
    manifest = convert(file, tmp_path / "shards", shard_size="5kB")
    dataset = open_dataset(tmp_path / "shards")
    assert len(dataset.shards) > 5
    assert manifest["index_base"] == dataset.index_base == base
    assert_allclose(dataset.matvec(np.eye(P)), X)
    assert_array_equal(dataset.labels, y)
    whole = load_data(file)
    assert whole.X.shape == dataset.shape


@pytest.mark.parametrize("kind", KINDS)
def test_convert_folders(kind, problem, tmp_path, capsys):
    source = write_folder(kind, tmp_path / "source", *problem)
    arguments = ["convert", str(source), str(tmp_path / "out"), "--shard-size", "10kB", "--dtype", "float32", "--json"]
    assert main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["examples"], result["features"]) == (N, P)
    dataset = open_dataset(tmp_path / "out")
    assert_allclose(dataset.matvec(np.eye(P)), problem[0].astype(np.float32), rtol=1e-7)
    assert_array_equal(dataset.labels, problem[1])
    assert max(shard.held for shard in dataset.shards) < 3 * 10_000


def test_convert_several_labels_and_strings(tmp_path):
    (tmp_path / "several.svm").write_text("1,3 1:1\n3 2:1\n2 1:1 2:1\n1,2 3:1\n")
    convert(tmp_path / "several.svm", tmp_path / "several", shard_size=20)
    dataset = open_dataset(tmp_path / "several")
    assert [list(row) for row in dataset.labels] == [[1, 3], [3], [2], [1, 2]]
    assert_array_equal(dataset.y, [[1, 0, 1], [0, 0, 1], [0, 1, 0], [1, 1, 0]])
    assert MeasureSVC("error").fit(dataset).coef_.shape == (3, 3)
    (tmp_path / "names.csv").write_text("label,a,b\nspam,1,2\nham,3,4\nspam,0,1\n")
    convert(tmp_path / "names.csv", tmp_path / "names")
    dataset = open_dataset(tmp_path / "names")
    assert list(dataset.labels) == ["spam", "ham", "spam"]
    assert dataset.feature_names == ["a", "b"]
    assert list(MeasureSVC().fit(dataset).feature_names_in_) == ["a", "b"]


@pytest.mark.parametrize("size", [20, 40, 10_000])
def test_rows_without_a_label_among_rows_of_several(tmp_path, size):
    """What a piece of the text, or one of several files, does not show by itself, another does."""
    lines = ["1 1:1", "2:1", "3 1:2", " 1:3", "2:5", "1:4", "1,3 2:2", "3 1:7", "2:9"]
    (tmp_path / "all.svm").write_text("\n".join(lines) + "\n")
    (tmp_path / "parts").mkdir()
    for k in range(3):
        (tmp_path / "parts" / f"{k}.svm").write_text("\n".join(lines[3 * k : 3 * k + 3]) + "\n")
    expected = [list(row) for row in load_data(tmp_path / "all.svm").labels]
    assert expected == [[1], [], [3], [], [], [], [1, 3], [3], []]
    convert(tmp_path / "all.svm", tmp_path / "shards", shard_size=size)
    convert(tmp_path / "parts", tmp_path / "other", shard_size=size)
    for name in ("shards", "parts", "other"):
        dataset = open_dataset(tmp_path / name)
        assert [list(row) for row in dataset.labels] == expected
        assert_array_equal(dataset.matvec(np.eye(2))[:, 0], [1, 0, 2, 3, 0, 4, 0, 7, 0])


def test_rows_without_a_label_among_rows_of_one(tmp_path, capsys):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "1.svm").write_text("1 1:1\n0 2:1\n")
    (tmp_path / "parts" / "2.svm").write_text("1 1:1\n2:1\n")
    said = r"expected a label for every row, for none has several, got none for row 3 \(from 0\)"
    with pytest.raises(FileError, match=rf"parts: {said}"):
        open_dataset(tmp_path / "parts")
    with pytest.raises(FileError, match=rf"out: {said}"):
        convert(tmp_path / "parts", tmp_path / "out", shard_size=10)
    assert not (tmp_path / "out").exists()
    assert open_dataset(tmp_path / "parts", labels=False).labels is None
    # a model of several labels says that a row may have none
    (tmp_path / "train.svm").write_text("1 1:1\n0,1 2:1\n2:3\n0 1:1 2:2\n")
    model = str(tmp_path / "m")
    assert main(["train", str(tmp_path / "train.svm"), model]) == 0
    for data in ("parts", "parts/2.svm"):
        assert main(["evaluate", str(tmp_path / data), model]) == 0
    (counts,) = re.findall(r"^positives: +(.*)$", capsys.readouterr().out, flags=re.MULTILINE)[-1:]
    assert counts == "0, 1"


def test_a_conversion_that_fails_leaves_nothing(tmp_path, problem, capsys):
    text = svmlight(*problem)
    (tmp_path / "bad.svm").write_text(text + "1 2:x\n")
    with pytest.raises(FileError, match=r"bad\.svm: line 401"):
        convert(tmp_path / "bad.svm", tmp_path / "out", shard_size=2000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.svm"]
    (tmp_path / "empty.svm").write_text("")
    with pytest.raises(FileError, match="got none"):
        convert(tmp_path / "empty.svm", tmp_path / "out")
    (tmp_path / "good.svm").write_text(text)
    assert main(["convert", str(tmp_path / "good.svm"), str(tmp_path)]) == 1
    assert "exists already" in capsys.readouterr().err
    (tmp_path / "cut.svm.gz").write_bytes(b"\x1f\x8b\x08\x00" + b"\x00" * 20)
    with pytest.raises(FileError, match="damaged or cut off"):
        convert(tmp_path / "cut.svm.gz", tmp_path / "out")
    with pytest.raises(FileError, match="No such file"):
        convert(tmp_path / "absent.svm", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_convert_zstandard(problem, tmp_path):
    compress = pytest.importorskip("zstandard").ZstdCompressor().compress
    X, y = problem
    halves = [compress(svmlight(X[rows], y[rows]).encode()) for rows in (slice(0, 150), slice(150, N))]
    file = tmp_path / "all.svm.zst"
    file.write_bytes(halves[0] + compress(b"") + halves[1])  # one file may hold several frames
    convert(file, tmp_path / "shards", shard_size="5kB")
    dataset = open_dataset(tmp_path / "shards")
    assert_allclose(dataset.matvec(np.eye(P)), X)
    assert_array_equal(dataset.labels, y)
    end = len(halves[0])
    for cut in (end // 2, end - 1, end + 2, end + len(halves[1]) // 2, end + len(halves[1]) - 1):
        file.write_bytes((halves[0] + halves[1])[:cut])
        with pytest.raises(FileError, match=r"all\.svm\.zst: the zstd data are damaged or cut off \(the last"):
            convert(file, tmp_path / "out", shard_size="5kB")
    file.write_bytes(halves[0] + b"no frame")
    with pytest.raises(FileError, match="damaged or cut off"):
        convert(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.posix
def test_convert_stopped_by_kill_leaves_no_folder(tmp_path):
    """A reader never sees a folder that is half there."""
    program = """
        import os, signal, sys
        from metrimax.io.writing import ShardWriter
        import numpy as np
        with ShardWriter(sys.argv[1], shard_size=1000) as writer:
            for _ in range(5):
                writer.add(np.ones((50, 4)), np.ones(50))
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "out")])
    assert done.returncode == -9
    assert not (tmp_path / "out").exists()
    with ShardWriter(tmp_path / "out") as writer:  # the next one sweeps away what it left
        writer.add(np.ones((2, 3)), np.ones(2))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
