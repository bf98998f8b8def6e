"""Rows on a Dask cluster of real processes, some of which die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'metrimax[dask]'")
import dask
import dask.array
from distributed import Client, LocalCluster

from metrimax import MeasureSVC, MeasureSVCCV, open_dataset
from metrimax.cli import main
from metrimax.designs import as_design
from metrimax.designs.cluster import Cluster, NoNews, Share, connect
from metrimax.designs.dask import DaskDesign, is_remote
from metrimax.io.shards import part_file
from metrimax.io.writing import ShardWriter

N, P = 1200, 12


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = rng.random(N) < 0.2
    return rng.normal(size=(N, P)) + 0.5 * y[:, None], y.astype(float)


@pytest.fixture(scope="module")
def environment():
    """Dask's nanny sets OMP_NUM_THREADS and others for this process, too; undone for the tests that follow."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(scope="module")
def cluster(environment):
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1, "distributed.comm.timeouts.connect": "5s"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as made,
        Client(made) as client,
    ):
        yield client


def blocks(problem, pieces=5):
    X, _ = problem
    return np.array_split(X, pieces)


def collections(kind, problem, client):
    X, y = problem
    if kind == "array":
        return dask.array.from_array(X, chunks=(250, 5)), dask.array.from_array(y, chunks=250)
    if kind == "sparse":
        made = [
            dask.array.from_delayed(dask.delayed(sparse.csr_array)(block), shape=block.shape, dtype=float)
            for block in blocks(problem)
        ]
        return dask.array.concatenate(made), y
    if kind == "dataframe":
        pandas = pytest.importorskip("pandas")
        frames = pytest.importorskip("dask.dataframe")
        table = pandas.DataFrame(X, columns=[f"f{j}" for j in range(P)]).assign(label=y)
        spread = frames.from_pandas(table, npartitions=4)
        return spread.drop(columns="label"), spread["label"]
    return client.scatter(blocks(problem)), y


@pytest.mark.parametrize("kind", ["array", "sparse", "dataframe", "futures"])
def test_products_and_fits(kind, problem, cluster):
    X, y = problem
    spread, labels = collections(kind, problem, cluster)
    design = as_design(spread)
    assert isinstance(design, DaskDesign)
    assert design.shape == X.shape
    rng = np.random.default_rng(1)
    for many in ((), (3,)):
        w, slope = rng.normal(size=(P, *many)), rng.normal(size=(N, *many))
        few = slope * (rng.random((N, *many)) < 0.1)
        assert_allclose(design.matvec(w), X @ w, atol=1e-12)
        assert_allclose(design.rmatvec(slope), X.T @ slope, atol=1e-11)
        assert_allclose(design.rmatvec(few), X.T @ few, atol=1e-11)
    assert_allclose(design.rmatvec(np.zeros(N)), 0)
    # the same arithmetic but for the order of sums, hence the same iterates
    inside = MeasureSVC(C=0.02, tol=1e-3).fit(X, y)
    outside = MeasureSVC(C=0.02, tol=1e-3).fit(spread, labels)
    assert outside.objective_ == pytest.approx(inside.objective_, rel=1e-6)
    assert outside.dual_bound_ == pytest.approx(inside.dual_bound_, rel=1e-6)
    assert_allclose(outside.decision_function(spread), outside.decision_function(X), atol=1e-10)
    if kind == "dataframe":
        assert list(outside.feature_names_in_) == [f"f{j}" for j in range(P)]
        assert outside.score(spread, labels) == pytest.approx(inside.score(X, y), abs=1e-3)


def test_traffic_is_what_the_documentation_says(problem, cluster):
    design = DaskDesign(cluster.scatter(blocks(problem, 4)))
    workers = len({share.worker for share in design.cluster.shares})
    before = design.bytes_moved
    design.matvec(np.ones(P))
    assert design.bytes_moved - before == 8 * (workers * P + N)
    before = design.bytes_moved
    design.rmatvec(np.ones(N))
    assert design.bytes_moved - before == 8 * (N + workers * P)
    slope = np.zeros(N)
    slope[:7] = 1.0
    before = design.bytes_moved
    design.rmatvec(slope)
    assert design.bytes_moved - before == 7 * 12 + 8 * P  # seven rows of one worker, and their positions


def test_many_sums_are_added_up_in_a_tree_and_tasks_have_names(problem, cluster):
    X, _ = problem
    design = DaskDesign([partial(as_design, block) for block in blocks(problem, 20)])
    design.cluster.shares = [Share(worker, [k]) for worker, parts in design.cluster.shares for k in parts]
    slope = np.arange(float(N))
    before = design.bytes_received
    assert_allclose(design.rmatvec(slope), X.T @ slope, rtol=1e-9)
    assert design.bytes_received - before == 3 * 8 * P  # twenty sums, by eights
    design.matvec(np.ones(P))
    shown = cluster.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    assert {"metrimax-part", "metrimax-scores", "metrimax-pull", "metrimax-add"} <= shown


def test_one_design_after_the_other_on_one_cluster(cluster):
    """A name that was used before, as an object's address is, would be answered with the rows of then."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = rng.normal(size=(30, 3))
        design = DaskDesign([dask.delayed(X[:10]), dask.delayed(X[10:])], client=cluster)
        assert_allclose(design.matvec(np.ones(3)), X.sum(axis=1))
        del design


def test_tasks_of_several_threads_have_different_names(cluster):
    tasks = Cluster(cluster)
    names = [[], []]

    def ask(mine):
        mine.extend(tasks.key("scores") for _ in range(5000))

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask, args=(mine,)) for mine in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
    assert len({*names[0], *names[1]}) == 10_000


def test_one_task_per_thread_however_many_partitions(problem, cluster):
    X, _ = problem
    design = as_design(dask.array.from_array(X, chunks=(50, P)))
    shares = design.cluster.shares
    assert sorted(k for share in shares for k in share.parts) == list(range(24))
    assert len(shares) == 2
    assert {len(share.parts) for share in shares} == {12}
    cluster.run_on_scheduler(lambda dask_scheduler: dask_scheduler.task_prefixes.pop("metrimax-scores", None))
    assert_allclose(design.matvec(np.ones(P)), X.sum(axis=1), atol=1e-12)
    counts = cluster.run_on_scheduler(
        lambda dask_scheduler: dict(dask_scheduler.task_prefixes["metrimax-scores"].state_counts)
    )
    assert counts["memory"] == 2


class Crew:
    """A client that knows only who is there and who holds what."""

    def __init__(self, threads, holders):
        self.threads, self.holders = threads, holders

    def nthreads(self):
        return self.threads

    def who_has(self, parts):
        return self.holders

    def sync(self, function, **options):
        return asyncio.run(function())


@pytest.mark.parametrize(
    ("threads", "holders", "expected"),
    [
        ({"a": 1, "b": 1}, "abab", {"a": [[0, 2]], "b": [[1, 3]]}),  # all where they are
        ({"a": 1, "b": 1}, "aaaa", {"a": [[0, 1]], "b": [[2, 3]]}),  # half of them to a worker that is new
        ({"a": 2, "b": 1}, "aaab", {"a": [[0, 2], [1]], "b": [[3]]}),  # each thread has its own
        ({"a": 1, "b": 1, "c": 1}, "a.", {"a": [[0]], "b": [[1]]}),  # one is nowhere, one worker has nothing to do
        ({}, "..", {"": [[0, 1]]}),  # nobody there: Dask waits for workers
    ],
)
def test_partitions_are_shared_out_evenly(threads, holders, expected):
    cluster = Cluster.__new__(Cluster)
    cluster.timeout = 1.0
    cluster.parts = [SimpleNamespace(key=k) for k in range(len(holders))]
    cluster.client = Crew(threads, {k: (worker,) for k, worker in enumerate(holders) if worker != "."})
    cluster.share_out()
    found = {}
    for worker, parts in cluster.shares:
        found.setdefault(worker, []).append(parts)
    assert found == expected


@pytest.mark.parametrize("direct", [True, False])
def test_with_and_without_a_way_to_the_workers(problem, cluster, monkeypatch, direct):
    """Where the driver cannot reach the workers, bytes go through the scheduler."""
    X, _ = problem
    reach = cluster.rpc.connect

    async def refuse(address, *arguments, **options):
        if address != cluster.scheduler.address:
            raise OSError(f"no route to {address}")
        return await reach(address, *arguments, **options)

    if not direct:
        monkeypatch.setattr(cluster.rpc, "connect", refuse)
    design = DaskDesign(cluster.scatter(blocks(problem)))
    assert design.cluster._direct is direct
    w = np.arange(float(P))
    assert_allclose(design.matvec(w), X @ w, atol=1e-12)
    assert_allclose(design.rmatvec(X @ w), X.T @ (X @ w), atol=1e-10)


def pid_of_worker(client, address):
    return client.run(os.getpid, workers=[address])[address]


@pytest.mark.posix
@pytest.mark.parametrize("kind", ["shards", "array"])
def test_kill_9_of_a_worker_during_a_fit(kind, problem, cluster, tmp_path):
    X, y = problem
    if kind == "shards":
        data, labels = shard_folder(tmp_path, problem), None
        data = open_dataset(data, dask=cluster)
    else:
        data, labels = as_design(dask.array.from_array(X, chunks=(200, P))), y
    victim = data.cluster.shares[0].worker
    pid = pid_of_worker(cluster, victim)
    seen = []

    def kill(record):
        seen.append(record.iteration)
        if len(seen) == 3:
            os.kill(pid, signal.SIGKILL)

    clf = MeasureSVC(C=0.02, tol=1e-3, callback=kill).fit(data, labels)
    assert len(seen) > 3
    expected = MeasureSVC(C=0.02, tol=1e-3).fit(X, y)
    assert clf.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    assert clf.dual_bound_ == pytest.approx(expected.dual_bound_, rel=1e-6)


def shard_folder(tmp_path, problem):
    with ShardWriter(tmp_path / "data", shard_size=20_000) as writer:
        writer.add(*problem)
        writer.finish()
    return tmp_path / "data"


def test_shards_read_by_workers(problem, cluster, tmp_path):
    X, y = problem
    dataset = open_dataset(shard_folder(tmp_path, problem), dask=cluster)
    clf = MeasureSVC(C=0.02, tol=1e-3).fit(dataset)
    assert clf.objective_ == pytest.approx(MeasureSVC(C=0.02, tol=1e-3).fit(X, y).objective_, rel=1e-6)
    assert clf.score(dataset) == pytest.approx(clf.score(X, y))
    assert "1200 rows" in repr(dataset)


def test_the_command_on_a_cluster(problem, cluster, tmp_path, capsys):
    folder = shard_folder(tmp_path, problem)
    address, model = cluster.scheduler.address, str(tmp_path / "model")
    results = []
    for command in (["train", "-C", "0.1"], ["tune", "--grid", "0.01,0.1", "--folds", "2"]):
        for extra in ([], ["--dask", address]):
            assert main([command[0], str(folder), model, *command[1:], "--json", *extra]) == 0
            results.append(json.loads(capsys.readouterr().out))
    for inside, outside in (results[:2], results[2:]):
        assert outside["objective"] == pytest.approx(inside["objective"], rel=1e-6)
        assert outside["C"] == inside["C"]


def test_the_command_says_what_is_wrong_with_a_cluster(problem, tmp_path, capsys):
    folder = shard_folder(tmp_path, problem)
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        assert main(["train", str(folder), str(tmp_path / "model"), "--dask", "tcp://127.0.0.1:9"]) == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in capsys.readouterr().err
    (tmp_path / "one.svm").write_text("1 1:1\n-1 2:1\n")
    assert main(["train", str(tmp_path / "one.svm"), str(tmp_path / "model"), "--dask", "local"]) == 2
    assert "--dask reads a folder of shards, and" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_choosing_C_on_a_cluster(problem, cluster):
    X, y = problem
    given = {"Cs": [0.01, 0.1], "cv": 2}
    inside = MeasureSVCCV(**given).fit(X, y)
    outside = MeasureSVCCV(**given).fit(dask.array.from_array(X, chunks=(300, P)), dask.array.from_array(y, chunks=300))
    assert outside.objective_ == pytest.approx(inside.objective_, rel=1e-3)
    assert_allclose(outside.cv_results_["mean_test_score"], inside.cv_results_["mean_test_score"], atol=0.02)


def test_bad_partitions_are_named(problem, cluster, tmp_path):
    folder = shard_folder(tmp_path, problem)
    victim = part_file(folder / "shard-00003", "X")
    content = victim.read_bytes()
    victim.write_bytes(content[:-8] + np.array([np.nan]).tobytes())
    with pytest.raises(ValueError, match=r"shard-00003\.X\.npy: damaged"):
        MeasureSVC().fit(open_dataset(folder, dask=cluster))
    with pytest.raises(ValueError, match=r"shard-00003: row \d+, column 11 \(from 0\) holds nan"):
        MeasureSVC().fit(open_dataset(folder, dask=cluster, verify=False))
    parts = blocks(problem)
    parts[3] = parts[3].copy()
    parts[3][4, 1] = np.inf
    with pytest.raises(ValueError, match=r"partition 3: row 4 \(from 0\) holds NaN or infinite"):
        DaskDesign(cluster.scatter(parts))
    parts[3] = sparse.csr_array(parts[3])
    with pytest.raises(ValueError, match=r"partition 3: row 4 \(from 0\) holds NaN or infinite"):
        DaskDesign(cluster.scatter(parts))
    with pytest.raises(ValueError, match="partition 1: expected 12 columns, as in partition 0, got 3"):
        DaskDesign(cluster.scatter([parts[0], parts[1][:, :3]]))
    with pytest.raises(TypeError, match="partition 0: X must hold real numbers"):
        DaskDesign(cluster.scatter([np.array([["a"]])]))
    with pytest.raises(ValueError, match="at least one partition"):
        DaskDesign([])
    with pytest.raises(ValueError, match="two dimensions"):
        DaskDesign(dask.array.ones(5))
    with pytest.raises(TypeError, match=r"expected a dask\.array or a dask\.dataframe"):
        DaskDesign(dask.delayed(3))
    assert not is_remote([1.0, 2.0])


def test_a_client_of_its_own_is_closed_where_partitions_do_not_fit(problem, cluster, monkeypatch):
    made = []

    def noted(client):
        made.append(connect(client))
        return made[-1]

    monkeypatch.setattr("metrimax.designs.cluster.connect", noted)
    X, _ = problem
    parts = [dask.delayed(X[:10]), dask.delayed(X[10:, :3])]
    with pytest.raises(ValueError, match=f"partition 1: expected {P} columns, as in partition 0, got 3"):
        DaskDesign(parts, client=cluster.scheduler.address)
    assert [client.status for client, _ in made] == ["closed"]


def test_a_client_that_is_closed_during_a_fit(problem, cluster):
    _, y = problem
    client = Client(cluster.scheduler.address, set_as_default=False)
    design = DaskDesign([dask.delayed(block) for block in blocks(problem)], client=client)

    def close(record):
        client.close()

    with pytest.raises(ConnectionError, match=r"or its client was closed \(closed\): start it, and fit again"):
        MeasureSVC("f1", callback=close).fit(design, y)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_cluster_that_is_closed_during_a_fit(problem, at_once):
    """Between two products or in the middle of one, when a client loses its parts."""
    X, y = problem
    local = LocalCluster(n_workers=1, processes=False, dashboard_address=None, silence_logs=50)
    client = Client(local, set_as_default=False)
    design = DaskDesign([dask.delayed(block) for block in np.array_split(X, 3)], client=client, timeout=10)

    def close(record):
        if record.iteration == 2:
            if at_once:
                local.close()
            else:
                threading.Timer(0.01, local.close).start()

    try:
        with pytest.raises(ConnectionError, match="the Dask scheduler has gone away, or its client was closed"):
            MeasureSVC("roc_area", C=1e3, tol=1e-13, callback=close).fit(design, y)
    finally:
        client.close()
        local.close()


def test_the_time_out_is_a_setting_of_dask(problem, cluster):
    parts = cluster.scatter(blocks(problem))
    assert DaskDesign(parts, client=cluster).cluster.timeout == 300
    for setting, seconds in ((7, 7), ("2m", 120)):
        with dask.config.set({"metrimax.timeout": setting}):
            assert DaskDesign(parts, client=cluster).cluster.timeout == seconds
    for setting in (0, "soon", None):
        with (
            dask.config.set({"metrimax.timeout": setting}),
            pytest.raises(ValueError, match=r"metrimax\.timeout as seconds > 0"),
        ):
            DaskDesign(parts, client=cluster)


def test_no_news_is_an_error_and_not_a_hang(problem, cluster):
    design = DaskDesign(cluster.map(np.copy, blocks(problem), pure=False), timeout=0.5)
    began = time.monotonic()
    with pytest.raises(NoNews, match="no news from the workers for"):
        design.cluster.results("slow", lambda: cluster.map(time.sleep, [15, 15.5], pure=False))
    assert time.monotonic() - began < 12


def test_grids_and_folds_with_joblib(problem, cluster):
    joblib = pytest.importorskip("joblib")
    from sklearn.model_selection import GridSearchCV

    X, y = problem
    grid = GridSearchCV(MeasureSVC(tol=1e-2), {"C": [0.1, 1.0]}, cv=2)
    expected = grid.fit(X, y).cv_results_["mean_test_score"]
    with joblib.parallel_backend("dask", client=cluster):
        found = grid.fit(X, y).cv_results_["mean_test_score"]
    assert_allclose(found, expected, atol=1e-12)
