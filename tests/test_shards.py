"""Data in folders: shards as a design, their files, and what is said about those that are not as they should be."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import textwrap
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from metrimax import MeasureSVC, open_dataset
from metrimax.cli import main
from metrimax.designs import CSR, Dense, Sharded, as_design
from metrimax.io.converting import convert
from metrimax.io.data import load_data
from metrimax.io.files import FileError
from metrimax.io.models import load_model
from metrimax.io.shards import MANIFEST, ShardWriter, parse_size, part_file

N, P = 400, 30


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = rng.random(N) < 0.25
    X = (rng.normal(size=(N, P)) + 0.8 * y[:, None]) * (rng.random((N, P)) < 0.4)
    X[:, P - 1] = 0
    X[3, P - 1] = 1.5  # the last column occurs in one shard only
    return X, y.astype(float)


def svmlight(X, y, base=1):
    rows = []
    for x, label in zip(X, y, strict=True):
        rows.append(" ".join([f"{label:g}", *(f"{j + base}:{x[j]!r}" for j in np.flatnonzero(x))]))
    return "\n".join(rows).replace("np.float64(", "").replace(")", "") + "\n"


def write_folder(kind, folder, X, y, pieces=5):
    """The same rows as a folder of each kind."""
    folder.mkdir()
    for k, rows in enumerate(np.array_split(np.arange(len(X)), pieces)):
        stem = folder / f"part-{k}"
        A, S = X[rows], sparse.csr_array(X[rows])
        if kind == "npy":
            np.save(f"{stem}.X.npy", A)
            np.save(f"{stem}.y.npy", y[rows])
        elif kind == "npy-csr":
            for part in ("data", "indices", "indptr"):
                np.save(f"{stem}.{part}.npy", getattr(S, part))
            np.save(f"{stem}.y.npy", y[rows])
        elif kind == "npz":
            np.savez(f"{stem}.npz", data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=y[rows])
        elif kind == "svmlight":
            (folder / f"part-{k}.svm").write_text(svmlight(A, y[rows]))
        elif kind == "parquet":
            pandas = pytest.importorskip("pandas")
            pytest.importorskip("pyarrow")
            pandas.DataFrame(A, columns=[f"f{j}" for j in range(A.shape[1])]).assign(label=y[rows]).to_parquet(
                f"{stem}.parquet"
            )
    return folder


KINDS = ["npy", "npy-csr", "npz", "svmlight", "parquet"]


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
    assert len(json.loads(capsys.readouterr().out)["cross_validation"]) == 2


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


def test_convert_stopped_by_kill_leaves_no_folder(tmp_path):
    """A reader never sees a folder that is half there."""
    program = """
        import os, signal, sys
        from metrimax.io.shards import ShardWriter
        import numpy as np
        with ShardWriter(sys.argv[1], shard_size=1000) as writer:
            for _ in range(5):
                writer.add(np.ones((50, 4)), np.ones(50))
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "out")])
    assert done.returncode == -9
    assert not (tmp_path / "out").exists()


# --- faults


@pytest.fixture
def shards(problem, tmp_path):
    convert(write_folder("svmlight", tmp_path / "text", *problem), tmp_path / "data", shard_size=8000)
    return tmp_path / "data"


def spoil(path, change):
    array = np.load(path)
    change(array)
    np.save(path, array)


def test_a_shard_that_is_missing_cut_off_or_damaged_is_named(shards):
    victim = part_file(shards / "shard-00002", "data")
    content = victim.read_bytes()
    victim.unlink()
    with pytest.raises(FileError, match=r"shard-00002\.data\.npy: missing"):
        open_dataset(shards)
    victim.write_bytes(content[:-8])
    with pytest.raises(FileError, match=r"shard-00002\.data\.npy: cut off"):
        open_dataset(shards)
    victim.write_bytes(content[:-3] + b"\x01" + content[-2:])
    with pytest.raises(FileError, match=r"shard-00002\.data\.npy: damaged: its checksum"):
        MeasureSVC().fit(open_dataset(shards))
    victim.write_bytes(b"no numbers".ljust(len(content)))
    with pytest.raises(FileError, match=r"shard-00002\.data\.npy: no NumPy array"):
        MeasureSVC().fit(open_dataset(shards, verify=False))
    victim.write_bytes(content)
    labels = part_file(shards / "shard-00001", "y")
    spoil(labels, lambda y: y.__setitem__(0, 7.0))
    with pytest.raises(FileError, match=r"shard-00001\.y\.npy: damaged"):
        open_dataset(shards)


def test_bad_numbers_are_found_where_they_are(shards, problem, tmp_path):
    spoil(part_file(shards / "shard-00003", "data"), lambda data: data.__setitem__(2, np.nan))
    with pytest.raises(FileError, match=r"shard-00003: row 0, column \d+ \(from 0\) holds nan"):
        MeasureSVC().fit(open_dataset(shards, verify=False))
    spoil(part_file(shards / "shard-00003", "indices"), lambda indices: indices.__setitem__(0, 10**6))
    with pytest.raises(FileError, match="shard-00003: bad CSR matrix: column index 1000000"):
        MeasureSVC().fit(open_dataset(shards, verify=False))
    dense = write_folder("npy", tmp_path / "dense", *problem)
    spoil(dense / "part-1.X.npy", lambda X: X.__setitem__((4, 2), np.inf))
    with pytest.raises(FileError, match=r"part-1: row 4, column 2 \(from 0\) holds inf"):
        MeasureSVC().fit(open_dataset(dense))


@pytest.mark.parametrize("open_before", [True, False])
def test_a_shard_that_changes_or_goes_away_during_a_fit(shards, open_before):
    dataset = open_dataset(shards, memory="1MB" if open_before else 30_000)
    w = np.ones(P)
    dataset.matvec(w)
    victim = part_file(shards / "shard-00001", "indices")
    spoil(victim, lambda indices: indices.__setitem__(0, 10**6))
    with pytest.raises(FileError, match="shard-00001: has changed since it was opened"):
        dataset.matvec(w)
    victim.unlink()
    with pytest.raises(FileError, match=r"shard-00001\.indices\.npy: No such file"):
        dataset.matvec(w)


def test_text_shards_that_change_or_go_away(problem, tmp_path):
    folder = write_folder("svmlight", tmp_path / "text", *problem)
    dataset = open_dataset(folder, memory=150_000)
    dataset.matvec(np.ones(P))
    dataset._open.clear()
    (folder / "part-4.svm").write_text("1 1:1\n")
    with pytest.raises(FileError, match=r"part-4\.svm: has changed since it was opened: 80 rows, now 1"):
        dataset.matvec(np.ones(P))
    dataset._open.clear()
    (folder / "part-4.svm").unlink()
    with pytest.raises(FileError, match=r"part-4\.svm: No such file"):
        dataset.matvec(np.ones(P))


def test_folders_that_are_no_data(tmp_path, problem):
    X, y = problem
    with pytest.raises(FileError, match="got nothing"):
        open_dataset(tmp_path / "absent")
    (tmp_path / "file").write_text("1 1:1\n")
    with pytest.raises(FileError, match="got a file"):
        open_dataset(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="empty folder"):
        open_dataset(tmp_path / "empty")
    mixed = write_folder("svmlight", tmp_path / "mixed", X, y)
    (mixed / "table.csv").write_text("a,label\n1,2\n")
    with pytest.raises(FileError, match=r"table\.csv: taken for csv, but part-0\.svm for svmlight|part-0"):
        open_dataset(mixed)
    arrays = write_folder("npy", tmp_path / "arrays", X, y)
    (arrays / "README").write_text("?")
    with pytest.raises(FileError, match=r"README: expected NAME\.X\.npy"):
        open_dataset(arrays)
    (arrays / "README").unlink()
    np.save(arrays / "part-2.X.npy", X[:80, :4])
    with pytest.raises(FileError, match="part-2: expected 30 columns, as in the first shard, got 4"):
        open_dataset(arrays)
    np.save(arrays / "part-2.X.npy", X[:80])
    np.save(arrays / "part-2.y.npy", y[:79])
    with pytest.raises(FileError, match=r"part-2\.y\.npy: expected 80 labels"):
        open_dataset(arrays)
    (arrays / "part-2.y.npy").unlink()
    with pytest.raises(FileError, match="some shards have labels"):
        open_dataset(arrays)
    (arrays / "part-2.X.npy").rename(arrays / "part-2.data.npy")
    with pytest.raises(FileError, match="dense and sparse shards are mixed"):
        open_dataset(arrays)
    sparse_arrays = write_folder("npy-csr", tmp_path / "sparse_arrays", X, y)
    (sparse_arrays / "part-2.indices.npy").unlink()
    with pytest.raises(FileError, match=r"part-2\.indices\.npy is missing"):
        open_dataset(sparse_arrays)
    objects = tmp_path / "objects"
    objects.mkdir()
    np.save(objects / "a.X.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(FileError, match="holds pickled objects"):
        open_dataset(objects)


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "metrimax-shards"}', '{"format": "x", "version": 3}'])
def test_bad_manifests(shards, content):
    (shards / MANIFEST).write_text(content)
    with pytest.raises(FileError, match=r"metrimax\.json: (damaged|expected metrimax-shards)"):
        open_dataset(shards)


def test_sizes():
    assert [parse_size(size) for size in (7, "1kB", "2 MiB", "1.5G")] == [7, 1000, 2 << 20, 1_500_000_000]
    for size in ("", "lots", 0, "-3MB", "1XB"):
        with pytest.raises(ValueError, match="expected a size"):
            parse_size(size)


def test_a_limit_below_one_shard_is_an_error(shards):
    with pytest.raises(ValueError, match=r"needs up to .* bytes of memory, more than the 1,000 allowed"):
        open_dataset(shards, memory=1000)


def test_the_writer_refuses_what_does_not_fit_together(tmp_path):
    def write(*blocks):
        with ShardWriter(tmp_path / "out") as writer:
            for block in blocks:
                writer.add(*block)
            writer.finish()

    with pytest.raises(FileError, match="of one width"):
        write([np.ones((2, 3))], [np.ones((2, 4))])
    with pytest.raises(FileError, match="of one kind"):
        write([np.ones((2, 3))], [sparse.csr_array(np.ones((2, 3)))])
    with pytest.raises(FileError, match="some rows have labels"):
        write([np.ones((2, 3)), np.ones(2)], [np.ones((2, 3))])
    assert not list(tmp_path.iterdir())


def test_a_model_with_more_columns_than_the_shards(tmp_path):
    convert_from = tmp_path / "narrow.svm"
    convert_from.write_text("1 1:1\n-1 2:1\n")
    convert(convert_from, tmp_path / "narrow")
    dataset = open_dataset(tmp_path / "narrow", n_features=5)
    assert_array_equal(dataset.matvec(np.arange(5.0)), [0, 1])
    with pytest.raises(FileError, match="expected 1 features, those of the model, got 2"):
        open_dataset(tmp_path / "narrow", n_features=1)


# --- memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits on address space are kept on Linux only")
def test_training_on_more_data_than_the_process_may_have(tmp_path):
    """120 MB of rows under a limit that leaves 64 MB above what the interpreter has taken."""
    rng = np.random.default_rng(0)
    n, p, pieces = 10_000, 50, 30
    with ShardWriter(tmp_path / "data", shard_size=8 * n * p) as writer:
        for _ in range(pieces):
            y = rng.random(n) < 0.1
            writer.add(rng.normal(size=(n, p)) + 0.3 * y[:, None], y.astype(float))
        writer.finish()
    program = """
        import resource, sys
        import numpy as np
        from metrimax import MeasureSVC, open_dataset
        from metrimax.designs import Sharded
        taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        limit = taken + 64 * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        dataset = open_dataset(sys.argv[1], memory="10MiB", n_threads=2)
        assert sum(shard.held for shard in dataset.shards) > 115e6
        clf = MeasureSVC("f1", C=0.01, tol=1e-2).fit(dataset)
        try:
            np.concatenate([np.load(f"{shard.stem}.X.npy") for shard in dataset.shards])
        except MemoryError:
            print(clf.objective_, clf.gap_)
    """
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "data")],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    _, gap = map(float, done.stdout.split())
    assert gap <= 1e-2


def test_csr_of_a_shard_is_checked_once(shards, monkeypatch):
    from metrimax.designs import linear

    checked = []
    monkeypatch.setattr(linear._kernels, "csr_check", lambda *a: checked.append(a))
    dataset = open_dataset(shards, memory=30_000)
    for _ in range(3):
        dataset.matvec(np.ones(P))
    assert len(checked) == len(dataset.shards)
    assert isinstance(dataset.shards[0].load(1), CSR)
