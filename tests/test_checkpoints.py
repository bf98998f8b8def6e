"""Fits that were stopped, one way or another, and go on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone

from metrimax import MeasureSVC, MeasureSVCCV, PrecisionAtK, RecallAtK, open_dataset
from metrimax.cli import main
from metrimax.io.checkpoints import Checkpoint
from metrimax.io.files import FileError
from metrimax.io.writing import ShardWriter
from metrimax.protocols import Record


@pytest.fixture(scope="module")
def tall():
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.1
    return rng.normal(size=(2000, 30)) + 0.5 * y[:, None], y


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(1)
    y = rng.random(150) < 0.3
    X = rng.normal(size=(150, 1200)) * (rng.random((150, 1200)) < 0.05) + 0.02 * y[:, None]
    return sparse.csr_array(X), y


class Stop(Exception):
    pass


CALLBACK = "the callback stops it"


def stop_at(iteration, how=None):
    def callback(record):
        if record.iteration >= iteration and how is None:
            raise Stop
        return record.iteration >= iteration

    return callback


CASES = [
    ("tall", "f1", "auto"),
    ("tall", "f1", "cutting_plane"),
    ("tall", "prbep", "hybrid"),
    ("tall", "roc_area", "lbfgs"),
    ("tall", "f1", "agm"),
    ("tall", "error", "dual_cd"),
    ("wide", "f1", "bundle"),
    ("wide", "f1", "hybrid"),
    ("wide", "error", "auto"),
]


@pytest.mark.parametrize("solver", ["bundle", "auto"])
@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_a_fit_that_was_long_at_zero_goes_on(solver, share, tmp_path):
    """The pace of the searches, and the iterations that were without a step, are kept: one iteration is repeated."""
    rng = np.random.default_rng(0)
    y = rng.random(8000) < 0.1
    X = rng.normal(size=(8000, 40)) + 0.3 * y[:, None] * rng.normal(size=40)
    clf = MeasureSVC("f1", solver=solver, hinge=0.0, threshold="trained")
    whole = clone(clf).fit(X, y)
    assert whole.n_iter_ >= 8
    clf.set_params(checkpoint=Checkpoint(tmp_path / "state", minutes=0))
    with pytest.raises(Stop):
        clone(clf).set_params(callback=stop_at(max(1, round(share * whole.n_iter_)))).fit(X, y)
    assert clf.fit(X, y).n_iter_ <= whole.n_iter_ + 1
    assert clf.status_ is whole.status_


@pytest.mark.parametrize(("data", "measure", "solver"), CASES)
def test_a_stopped_fit_goes_on(data, measure, solver, request, tmp_path):
    X, y = request.getfixturevalue(data)
    C, tol = 0.03 if solver in ("cutting_plane", "agm") else 1.0, 1e-8 if measure == "error" else 1e-3
    clf = MeasureSVC(measure, solver=solver, tol=tol, C=C)
    whole = clone(clf).fit(X, y)
    clf.set_params(checkpoint=Checkpoint(tmp_path / "state", minutes=0))
    half = max(1, whole.n_iter_ // 2)
    with pytest.raises(Stop):
        clone(clf).set_params(callback=stop_at(half)).fit(X, y)
    assert len(list((tmp_path / "state").iterdir())) == 1
    again = clone(clf).fit(X, y)
    done = again.history_[0].iteration
    assert half < done <= half + 1  # it counts on from there
    assert again.n_passes_ >= again.history_[-1].n_passes > again.history_[0].n_passes > again.history_[0].iteration / 2
    assert again.n_iter_ <= 1.5 * whole.n_iter_ + 10  # and does not start over
    assert again.status_ is whole.status_
    assert abs(again.objective_ - whole.objective_) <= 1e-3 * clf.C * again.price_ * len(y)
    assert again.dual_bound_ <= whole.objective_ * (1 + 1e-12)
    assert again.objective_ >= whole.dual_bound_ * (1 - 1e-12)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("losses", [{"hinge": 1}, {"logistic": 1}, {"hinge": 0}])
@pytest.mark.parametrize(("solver", "stop"), [("auto", 12), ("auto", 30), ("hybrid", 12), ("bundle", 12)])
def test_going_on_takes_no_longer_than_starting_anew(tall, solver, stop, losses, tmp_path):
    """The quasi-Newton pairs and the schedule are kept: without them a run at the same point took twice as long."""
    X, y = tall
    clf = MeasureSVC("f1", C=1.0, tol=1e-5, solver=solver, **losses)
    fresh = clone(clf).fit(X, y).n_iter_
    with pytest.raises(Stop):
        clone(clf).set_params(checkpoint=tmp_path, callback=stop_at(stop)).fit(X, y)
    more = clone(clf).set_params(checkpoint=tmp_path).fit(X, y).n_iter_ - stop
    assert more <= 1.1 * fresh


def test_cuts_of_one_C_serve_another(tall, tmp_path):
    X, y = tall
    clf = MeasureSVC(tol=1e-4, checkpoint=Checkpoint(tmp_path / "state", minutes=0))
    with pytest.raises(Stop):
        clone(clf).set_params(callback=stop_at(20)).fit(X, y)
    other = clone(clf).set_params(C=0.5).fit(X, y)
    expected = MeasureSVC(C=0.5, tol=1e-4).fit(X, y)
    assert other.objective_ == pytest.approx(expected.objective_, abs=2e-4 * 0.5 * other.price_ * len(y))


def test_several_labels_keep_what_is_finished(tall, tmp_path):
    X, y = tall
    Y = np.column_stack([y, X[:, 0] > 1, X[:, 1] + X[:, 2] > 2]).astype(int)
    seen = []

    def late(record):
        seen.append(record)
        if len(seen) == 60:
            raise Stop

    clf = MeasureSVC(tol=1e-3, checkpoint=Checkpoint(tmp_path / "state", minutes=0))
    with pytest.raises(Stop):
        clone(clf).set_params(callback=late).fit(X, Y)
    again, whole = clone(clf).fit(X, Y), MeasureSVC(tol=1e-3).fit(X, Y)
    assert_allclose(again.objective_, whole.objective_, rtol=1e-2)
    assert all(history[0].iteration > 5 for history in again.history_)
    assert not (tmp_path / "state").exists()


def test_other_rows_other_labels_other_measures(tall, tmp_path):
    X, y = tall
    clf = MeasureSVC(checkpoint=Checkpoint(tmp_path, minutes=0))
    with pytest.raises(Stop):
        clone(clf).set_params(callback=stop_at(5)).fit(X, y)
    (kept,) = tmp_path.iterdir()
    changed = X.copy()
    changed[7, 3] += 1e-3
    for rows, labels, measure in ((changed, y, "f1"), (2 * X, y, "f1"), (X, ~y, "f1"), (X, y, "jaccard")):
        other = clone(clf).set_params(measure=measure).fit(rows, labels)
        assert other.history_[0].iteration == 1
        assert list(tmp_path.iterdir()) == [kept]
    content = kept.read_bytes()
    for damage in (content[: len(content) // 2], b"", content.replace(b"about", b"outab"), os.urandom(200)):
        tmp_path.mkdir(exist_ok=True)
        kept.write_bytes(damage)
        with pytest.warns(UserWarning, match="damaged, or no checkpoint of this version.*: the fit starts anew"):
            assert clone(clf).set_params(callback=stop_at(3, CALLBACK)).fit(X, y).history_[0].iteration == 1
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be a folder for checkpoints"):
        clone(clf).set_params(checkpoint=tmp_path / "file").fit(X, y)


@pytest.mark.filterwarnings("ignore:w = 0 is optimal")
@pytest.mark.parametrize(
    ("stopped", "other"),
    [
        (PrecisionAtK(5, labellings="at_least"), PrecisionAtK(5, labellings="at_most")),
        (RecallAtK(20, labellings="at_least"), RecallAtK(20, labellings="at_most")),
    ],
)
def test_cuts_of_other_labellings_are_not_taken(stopped, other, tmp_path):
    """Measures of one name, one price and one loss, whose risks are different maxima."""
    rng = np.random.default_rng(0)
    y = np.arange(40) < 12
    X = rng.normal(size=(40, 3)) + 0.7 * y[:, None]
    place = Checkpoint(tmp_path, minutes=0)
    with pytest.raises(Stop):
        MeasureSVC(stopped, C=1.0, tol=1e-6, checkpoint=place, callback=stop_at(6)).fit(X, y)
    after = MeasureSVC(other, C=1.0, tol=1e-6, checkpoint=place).fit(X, y)
    straight = MeasureSVC(other, C=1.0, tol=1e-6).fit(X, y)
    assert after.objective_ == pytest.approx(straight.objective_, rel=1e-4)
    assert after.dual_bound_ <= straight.objective_ * (1 + 1e-9)


def test_a_checkpoint_without_one_of_its_arrays(tall, tmp_path):
    X, y = tall
    clf = MeasureSVC(checkpoint=Checkpoint(tmp_path, minutes=0))
    with pytest.raises(Stop):
        clone(clf).set_params(callback=stop_at(5)).fit(X, y)
    (kept,) = tmp_path.iterdir()
    with np.load(kept) as archive:
        arrays = dict(archive)
    assert {"losses", "rows0", "rep"} < arrays.keys()
    for lost in sorted(arrays):
        tmp_path.mkdir(exist_ok=True)
        np.savez(kept, **{name: array for name, array in arrays.items() if name != lost})
        with pytest.warns(UserWarning, match=rf"damaged, or no checkpoint of this version \(.*{lost}.*starts anew"):
            clone(clf).set_params(callback=stop_at(2, CALLBACK)).fit(X, y)


def test_a_fit_that_ends_does_not_end_another(tmp_path):
    """The one would remove the folder that both share before the other has written anything."""
    state, probe = tmp_path / "of" / "both", np.ones(4)
    running, ending = Checkpoint(state), Checkpoint(state)
    run = running.begin("one", 1.0, probe)
    ending.begin("two", 1.0, probe)
    ending.clear()
    run.save({"losses": np.arange(3.0)}, Record(1, 2, 3.0, 2.0, 1, 0.5))
    arrays, record = run.load()
    assert_allclose(arrays["losses"], [0, 1, 2])
    assert record.n_passes == 2
    running.clear()
    assert not state.exists()
    state.write_text("no folder")
    with pytest.warns(UserWarning, match="both.*the fit goes on"):
        run.save({}, record)
    with pytest.raises(FileError, match="both: cannot be a folder for checkpoints"):
        running.begin("one", 1.0, probe)


def test_nothing_is_written_before_it_is_time_unless_the_fit_fails(tall, tmp_path):
    X, y = tall
    seen = []

    def look(record):
        seen.extend(path for path in (tmp_path / "state").iterdir() if path.suffix == ".npz")
        if record.iteration == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MeasureSVC(checkpoint=tmp_path / "state", callback=look).fit(X, y)
    assert seen == []
    (kept,) = (tmp_path / "state").iterdir()
    assert kept.suffix == ".npz"
    assert MeasureSVC(checkpoint=tmp_path / "state").fit(X, y).history_[0].iteration == 11


def test_a_disk_that_is_full(tall, tmp_path, monkeypatch):
    X, y = tall

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("metrimax.io.checkpoints.write_archive", full)
    with pytest.warns(UserWarning, match="the fit goes on") as said:
        clf = MeasureSVC(checkpoint=Checkpoint(tmp_path / "state", minutes=0)).fit(X, y)
    assert clf.status_.ok
    told = [str(one.message) for one in said]
    assert len(told) == 1
    assert re.search("No space left.*the fit goes on", told[0])
    assert not (tmp_path / "state").exists()


TRAIN = """
    import sys, time
    import numpy as np
    from metrimax import MeasureSVC, open_dataset
    from metrimax.io.checkpoints import Checkpoint

    def tell(record):
        print(record.iteration, flush=True)
        time.sleep(0.003)

    kind, folder, state = sys.argv[1:]
    data = open_dataset(folder, memory="200kB")
    X, y = (data, None) if kind == "shards" else (data.matvec(np.eye(data.shape[1])), data.labels)
    clf = MeasureSVC(tol=1e-4, checkpoint=Checkpoint(state, minutes=0), callback=tell)
    clf.fit(X, y)
    print("done", clf.objective_, clf.dual_bound_, clf.n_iter_, clf.history_[0].iteration)
"""


@pytest.mark.posix
@pytest.mark.parametrize("kind", ["memory", "shards"])
def test_kill_9_and_again(tall, tmp_path, kind):
    X, y = tall
    with ShardWriter(tmp_path / "data", shard_size=50_000) as writer:
        writer.add(X, y.astype(float))
        writer.finish()
    command = [sys.executable, "-c", textwrap.dedent(TRAIN), kind, str(tmp_path / "data"), str(tmp_path / "state")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) == 25:
                os.kill(process.pid, signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    word, objective, bound, _, first = done.stdout.splitlines()[-1].split()
    assert word == "done"
    assert int(first) >= 25
    expected = MeasureSVC(tol=1e-4).fit(X, y)
    scale = 1e-4 * expected.price_ * len(y)
    assert float(objective) == pytest.approx(expected.objective_, abs=scale)
    assert float(bound) == pytest.approx(expected.dual_bound_, abs=scale)
    assert not (tmp_path / "state").exists()


def test_the_command_goes_on(tall, tmp_path, capsys, monkeypatch):
    X, y = tall
    with ShardWriter(tmp_path / "data") as writer:
        writer.add(X, y.astype(float))
        writer.finish()
    monkeypatch.setattr("metrimax.io.checkpoints.MINUTES", 0.0)
    monkeypatch.setattr(Checkpoint.__init__, "__kwdefaults__", {"minutes": 0.0})
    count = [0]

    def killed(self, record):
        count[0] += 1
        if count[0] == 10:
            raise KeyboardInterrupt

    arguments = ["train", str(tmp_path / "data"), str(tmp_path / "model"), "--checkpoint", str(tmp_path / "state")]
    with monkeypatch.context() as patch:
        patch.setattr("metrimax.training.progress.ProgressLine.__call__", killed)
        assert main(arguments) == 130
    assert len(list((tmp_path / "state").iterdir())) == 1
    assert not (tmp_path / "model").exists()
    began = time.perf_counter()
    assert main(arguments) == 0
    assert time.perf_counter() > began
    assert not (tmp_path / "state").exists()
    dataset = open_dataset(tmp_path / "data")
    assert f"examples:       {dataset.shape[0]}" in capsys.readouterr().out


@pytest.mark.parametrize("cls", [MeasureSVC, MeasureSVCCV])
def test_features_that_are_drawn_are_drawn_again(tall, tmp_path, cls):
    """With random_state=None, too: those of the next fit have to be the same."""
    X, y = tall[0][:300], tall[1][:300]
    options = {"kernel": "rbf", "n_components": 20, "random_state": None, "tol": 1e-6}
    options |= {"C": 10.0} if cls is MeasureSVC else {"Cs": [10.0], "selection": "holdout"}
    with pytest.raises(Stop):
        cls(callback=stop_at(5), checkpoint=Checkpoint(tmp_path / "state", minutes=0), **options).fit(X, y)
    assert any((tmp_path / "state").rglob("*.npz"))
    cls(checkpoint=Checkpoint(tmp_path / "state", minutes=0), **options).fit(X, y)
    assert not (tmp_path / "state").exists()
