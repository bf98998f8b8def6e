"""What is believed of a checkpoint, and that fits may share a folder."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from metrimax import MeasureSVC, MeasureSVCCV
from metrimax.designs import as_design
from metrimax.io.checkpoints import Checkpoint
from metrimax.io.npy import read_archive
from metrimax.measure import get_measure
from metrimax.protocols import Record
from metrimax.training.lockstep import run
from metrimax.training.resume import identity


class Stop(Exception):
    pass


def stop_at(iteration):
    def callback(record):
        if record.iteration >= iteration:
            raise Stop

    return callback


def problem(n=300, p=8, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    return rng.normal(size=(n, p)) + 0.4 * y[:, None], y


FORMS = {
    "dense": lambda X: X,
    "csr": sparse.csr_array,
    "float32": lambda X: X.astype(np.float32),
    "wide": lambda X: X.reshape(-1, 8 * len(X) // 40)[:40],
}


def stopped(clf, X, y, folder, at=6):
    """A fit that was stopped; its file."""
    with pytest.raises(Stop):
        clone(clf).set_params(checkpoint=Checkpoint(folder, minutes=0), callback=stop_at(at)).fit(X, y)
    (kept,) = folder.iterdir()
    return kept


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("factor", [0.1, -1.0, 1 + 1e-6])
def test_other_rows_are_told_by_their_scale_too(form, intercept, factor, tmp_path):
    X, y = problem()
    X = FORMS[form](X)
    y = y[: X.shape[0]]
    clf = MeasureSVC("f1", C=1.0, tol=1e-6, fit_intercept=intercept)
    stopped(clf, X, y, tmp_path)
    straight = clone(clf).fit(factor * X, y)
    again = clone(clf).set_params(checkpoint=tmp_path).fit(factor * X, y)
    assert again.history_[0].iteration == 1
    assert again.objective_ == pytest.approx(straight.objective_, rel=1e-6)
    assert again.dual_bound_ <= straight.objective_ * (1 + 1e-12)
    assert clone(clf).set_params(checkpoint=tmp_path).fit(X, y).history_[0].iteration > 6  # which is still there


def test_what_a_kernel_does_to_vectors_has_its_scale(tmp_path):
    X, y = problem(80)
    clf = MeasureSVC("f1", C=1.0, tol=1e-6, kernel="rbf", gamma=0.1)
    stopped(clf, X, y, tmp_path)
    assert clone(clf).set_params(checkpoint=tmp_path, gamma=0.2).fit(X, y).history_[0].iteration == 1
    assert clone(clf).set_params(checkpoint=tmp_path).fit(X, y).history_[0].iteration > 6


CHANGES = {
    "losses up": lambda a: a["losses"].__iadd__(1),
    "one loss up": lambda a: a["losses"].__setitem__(-1, a["losses"][-1] + 0.5),
    "rows longer": lambda a: a["rows0"].__imul__(10),
    "rows turned": lambda a: a["rows0"].__imul__(-1),
    "one row longer": lambda a: a["rows0"][-1].__imul__(100),
    "nan": lambda a: a["rows0"].__setitem__((0, 0), np.nan),
    "infinite point": lambda a: a["rep"].__setitem__(0, np.inf),
    "fewer losses": lambda a: a.update(losses=a["losses"][:-1]),
    "no losses": lambda a: a.update(losses=np.empty(0)),
    "a long point": lambda a: a.update(rep=np.zeros(10_000)),
    "a short point": lambda a: a.update(rep=a["rep"][:-1]),
    "no point": lambda a: a.pop("rep"),
    "other type": lambda a: a.update(rows0=a["rows0"].astype(np.float32)),
    "three dimensions": lambda a: a.update(rows0=a["rows0"][None]),
    "pairs longer": lambda a: a.update(schedule_pairs=1e3 * a.get("schedule_pairs", a["rows0"])),
    "pairs turned": lambda a: a.update(schedule_pairs=-a.get("schedule_pairs", a["rows0"])[::-1]),
    "pairs of nan": lambda a: a.update(schedule_pairs=np.nan * a.get("schedule_pairs", a["rows0"])),
    "flat pairs": lambda a: a.update(schedule_pairs=a.get("schedule_pairs", a["rows0"]).ravel()),
    "whole pace": lambda a: a.update(schedule_pace=np.arange(4)),
    "wild pace": lambda a: a.update(schedule_pace=np.array([-1e300, 1e300, -7.0, 1.0])),
    "images longer": lambda a: a.update(rows1=1.1 * a.get("rows1", a["rows0"])),
}


@pytest.mark.parametrize("shape", ["tall", "wide"])
@pytest.mark.parametrize("solver", ["bundle", "lbfgs", "auto", "hybrid"])
@pytest.mark.parametrize("change", CHANGES)
def test_contents_are_not_believed(change, solver, shape, tmp_path):
    """With the right checksum: the file was written by this library, with a state that no run had."""
    X, y = problem(300, 8) if shape == "tall" else problem(40, 60)
    clf = MeasureSVC("roc_area", C=1.0, tol=1e-5, solver=solver)
    straight = clone(clf).fit(X, y)
    kept = stopped(clf, X, y, tmp_path, 4)
    arrays = read_archive(kept, kept.read_bytes())
    probe = arrays.pop("probe")
    del arrays["about"]
    CHANGES[change](arrays)
    problem_name, _, weight = kept.name.removesuffix(".npz").partition("-")
    again = Checkpoint(tmp_path).begin(problem_name, float(weight), probe)
    again.save(arrays, Record(4, 4.0, 1.0, 0.0, 3, 0.1))
    again.release()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        after = clone(clf).set_params(checkpoint=tmp_path).fit(X, y)
    if after.history_[0].iteration == 1:
        assert any("the fit starts anew" in str(one.message) for one in said)
    scale = after.price_ * len(y)
    assert after.dual_bound_ <= straight.objective_ * (1 + 1e-9)
    assert after.dual_bound_ <= after.objective_
    assert after.objective_ == pytest.approx(straight.objective_, abs=2e-5 * scale)


@pytest.mark.parametrize("solver", ["auto", "hybrid", "cutting_plane", "agm"])
def test_no_number_of_a_file_makes_a_bound(solver, tmp_path):
    """Every array, whatever it is for, made greater or less, with the right checksum."""
    X, y = problem(200, 4)
    clf = MeasureSVC("roc_area", C=0.3, tol=1e-4, solver=solver)
    straight = clone(clf).fit(X, y)
    kept = stopped(clf, X, y, tmp_path, 3)
    raw = kept.read_bytes()
    name, _, weight = kept.name.removesuffix(".npz").partition("-")
    for part in sorted(read_archive(kept, raw).keys() - {"about", "probe"}):
        for change in (1.0, -1.0, 1e3, -1e3):
            tmp_path.mkdir(exist_ok=True)
            arrays = read_archive(kept, raw)
            probe = arrays.pop("probe")
            del arrays["about"]
            arrays[part] = arrays[part] + change
            again = Checkpoint(tmp_path).begin(name, float(weight), probe)
            again.save(arrays, Record(3, 3.0, 1.0, 0.0, 3, 0.1))
            again.release()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                after = clone(clf).set_params(checkpoint=tmp_path).fit(X, y)
            assert after.dual_bound_ <= straight.objective_ * (1 + 1e-9), (part, change)
            assert after.objective_ >= straight.dual_bound_ * (1 - 1e-9), (part, change)
            assert after.gap_ <= 1e-4, (part, change)


def test_changed_files_are_noticed(tmp_path):
    X, y = problem()
    clf = MeasureSVC("f1", C=1.0, tol=1e-3)
    kept = stopped(clf, X, y, tmp_path)
    with np.load(kept) as archive:
        arrays = dict(archive)
    for name in ("losses", "rows0", "rep", "probe"):
        tmp_path.mkdir(exist_ok=True)
        np.savez(kept, **(arrays | {name: arrays[name] + 1e-3}))
        with pytest.warns(UserWarning, match="damaged.*checksum.*starts anew"):
            after = clone(clf).set_params(checkpoint=tmp_path).fit(X, y)
        assert after.history_[0].iteration == 1


def test_a_bound_above_the_objective_is_not_told(tmp_path, monkeypatch):
    """Even where every check of the state is passed."""
    X, y = problem()
    clf = MeasureSVC("f1", C=1.0, tol=1e-5)
    straight = clone(clf).fit(X, y)
    kept = stopped(clf, X, y, tmp_path)
    arrays = read_archive(kept, kept.read_bytes())
    probe = arrays.pop("probe")
    del arrays["about"]
    arrays["losses"] += 0.5
    name, _, weight = kept.name.removesuffix(".npz").partition("-")
    again = Checkpoint(tmp_path).begin(name, float(weight), probe)
    again.save(arrays, Record(4, 4.0, 1.0, 0.0, 3, 0.1))
    again.release()
    monkeypatch.setattr("metrimax.training.trust.ROUNDING", 1e9)
    monkeypatch.setattr("metrimax.training.resume.above", lambda bound, objective: bound > objective + 1e-9)
    with pytest.warns(UserWarning, match="a bound above the objective.*the fit starts anew"):
        after = clone(clf).set_params(checkpoint=tmp_path).fit(X, y)
    assert after.objective_ == pytest.approx(straight.objective_, rel=1e-4)
    assert after.dual_bound_ <= after.objective_


def test_one_pass_tells_the_rows(tmp_path):
    X, y = problem()
    oracle = get_measure("f1").oracle(y)
    (name, probe), (same, other), (scaled, _) = (
        run(design, [identity(("f1",), (y, None), oracle, design)])[0]
        for design in map(as_design, (X, sparse.csr_array(X), 3 * X))
    )
    assert name == same != scaled
    np.testing.assert_allclose(probe, other, rtol=1e-12)


def fits_in_threads(folder, X, y, rounds):
    failures, results = [], []

    def fit(C):
        for _ in range(rounds):
            try:
                clf = MeasureSVC("f1", C=C, tol=1e-4, checkpoint=folder, n_threads=1).fit(X, y)
                results.append((C, clf.objective_, clf.dual_bound_))
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=fit, args=(C,)) for C in (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    return results


def test_fits_in_threads_share_a_folder(tmp_path):
    X, y = problem(600)
    shared = Checkpoint(tmp_path / "state", minutes=0)
    results = fits_in_threads(shared, X, y, 6)
    assert len(results) == 36
    for C, objective, bound in results:
        straight = MeasureSVC("f1", C=C, tol=1e-4).fit(X, y)
        assert bound <= straight.objective_ * (1 + 1e-9)
        assert objective >= straight.dual_bound_ * (1 - 1e-9)
    assert not (tmp_path / "state").exists()


def test_stopped_fits_of_several_C_find_their_own(tmp_path):
    X, y = problem(600)
    place = Checkpoint(tmp_path, minutes=0)
    stops = {0.1: 4, 1.0: 7, 10.0: 9}
    for C, at in stops.items():
        with pytest.raises(Stop):
            MeasureSVC("f1", C=C, tol=1e-6, checkpoint=place, callback=stop_at(at)).fit(X, y)
    assert len(list(tmp_path.iterdir())) == 3
    for C, at in stops.items():
        assert MeasureSVC("f1", C=C, tol=1e-6, checkpoint=place).fit(X, y).history_[0].iteration == at + 1
    assert not tmp_path.exists()


def test_two_of_the_same_run_have_a_file_each(tmp_path):
    probe, record = np.ones(4), Record(1, 2, 3.0, 2.0, 1, 0.5)
    first, second = (Checkpoint(tmp_path).begin("one", 1.0, probe) for _ in range(2))
    first.save({"losses": np.ones(1)}, record)
    second.save({"losses": np.ones(2)}, record)
    first.remove()
    second.release()  # as when it is killed
    third = Checkpoint(tmp_path).begin("one", 1.0, probe)
    assert len(third.load()[0]["losses"]) == 2
    third.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_grid_search_shares_a_folder(tmp_path):
    X, y = problem(240)
    clf = MeasureSVC("f1", checkpoint=Checkpoint(tmp_path / "state", minutes=0))
    search = GridSearchCV(clf, {"C": [0.1, 1.0, 10.0]}, n_jobs=3, cv=4, error_score="raise").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert not (tmp_path / "state").exists()


def test_folds_in_processes_leave_nothing(tmp_path):
    X, y = problem(240)
    clf = MeasureSVCCV("f1", Cs=[0.1, 1.0], n_jobs=2, cv=2, checkpoint=Checkpoint(tmp_path / "state", minutes=0))
    clf.fit(X, y)
    assert not (tmp_path / "state").exists()


TRAIN = """
    import sys, time
    import numpy as np
    from metrimax import MeasureSVC

    def tell(record):
        print(record.iteration, flush=True)
        time.sleep(0.01)

    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.1
    X = rng.normal(size=(2000, 30)) + 0.5 * y[:, None]
    Y = np.column_stack([y, X[:, 0] > 1]).astype(int) if sys.argv[1] == "several" else y
    clf = MeasureSVC(tol=1e-6, checkpoint=sys.argv[2], callback=tell).fit(X, Y)
    print("done")
"""


@pytest.mark.posix
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("labels", ["one", "several"])
def test_signals_save_the_state_first(how, labels, tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(TRAIN), labels, str(tmp_path / "state")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        for line in process.stdout:
            if line == "done\n":
                break
            if int(line) == 12:
                process.send_signal(how)
    assert process.returncode == (128 + how if how == signal.SIGTERM else -how)
    assert len(list((tmp_path / "state").glob("*.npz"))) == (1 if labels == "one" else 2)
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(again.stdout.split()[0]) > 10
    assert again.stdout.split()[-1] == "done"
    assert not (tmp_path / "state").exists()
