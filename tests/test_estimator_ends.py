"""Fits that stop early, that are interrupted, that are given nonsense: what the user is told, and what is left."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from paper import PAPER
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import f1_score, make_scorer

from metrimax import FBeta, MeasureRanker, MeasureSVC, MeasureSVCCV, PrecisionAtK, path
from metrimax.measure import TableFunction, get_measure
from metrimax.protocols import Status

# --- runs that do not reach their end


def test_a_gap_not_reached_is_said(binary):
    X, y = binary
    svc = MeasureSVC("f1", C=100, max_iter=2, tol=1e-6)
    with pytest.warns(ConvergenceWarning, match="the gap is") as caught:
        svc.fit(X, y)
    assert f"the gap is {svc.gap_:.3g}, tol 1e-06" in str(caught[0].message)
    assert svc.status_ is Status.MAX_ITER
    assert svc.n_iter_ == 2
    assert caught[0].filename == __file__


def test_what_helps_where_floating_point_ends(binary):
    X, y = binary
    advice = r"Scale the features \(or set intercept_scaling to the length of a row\), lower C, or raise tol\.$"
    with pytest.warns(ConvergenceWarning, match=advice):
        assert MeasureSVC("f1", C=1e6, tol=1e-12).fit(1e6 * X, y).status_ is Status.STALLED


def test_long_rows_and_a_constant_feature_of_their_length():
    """A fit that stalls beside a constant feature of 1 says what to do."""
    rng = np.random.default_rng(0)
    y = rng.random(300) < 0.3
    X = rng.normal(size=(300, 4)) + y[:, None]
    with pytest.warns(ConvergenceWarning, match="set intercept_scaling to the length of a row"):
        assert MeasureSVC("f1", C=1.0).fit(1e8 * X, y).status_ is Status.STALLED
    long = MeasureSVC("f1", C=1.0, intercept_scaling=1e6).fit(1e6 * X, y)
    assert long.status_ is Status.CONVERGED


@pytest.mark.parametrize("measure", ["error", "f1", "roc_area", "balanced_error"])
def test_at_a_tiny_C_no_gap_is_negative_and_w_of_0_is_warned_about(binary, measure):
    X, y = binary
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        svc = MeasureSVC(measure, C=1e-12).fit(X, y)
    told = any("w = 0 is optimal up to tol" in str(warning.message) for warning in caught)
    assert told == (svc.status_ is Status.TRIVIAL) == (not svc.coef_.any())
    assert svc.status_.ok
    assert svc.gap_ >= 0
    assert svc.dual_bound_ <= svc.objective_
    assert all(record.bound <= record.objective * (1 + 1e-12) for record in svc.history_)


def test_a_fit_forgets_what_earlier_fits_have_learnt(binary):
    X, y = binary
    model = MeasureSVC("error", hinge=0, solver="dual_cd", certificate=True).fit(X, y)
    assert model.certificate_ is not None
    assert model.dual_coef_.shape == (1, len(y))
    model.set_params(solver="bundle", certificate=False, kernel="rbf").fit(X, y)
    assert model.certificate_ is None
    assert not hasattr(model, "dual_coef_")
    assert not hasattr(model, "coef_")


def test_masks_and_dates_are_no_numbers(binary):
    X, y = binary
    model = MeasureSVC("f1").fit(X, y)
    masked, dates = np.ma.masked_array(X, mask=X > 2), (1e6 * X).astype("datetime64[s]")
    for bad, message in (
        (masked, r"X without masked values, got \d+ of them: leave these rows out, or fill them in"),
        (dates, r"numbers in X, got datetime64\[s\]: turn dates and times into numbers"),
        (dates - dates[0], r"numbers in X, got timedelta64\[s\]"),
    ):
        for call in (lambda X: MeasureSVC().fit(X, y), model.predict, lambda X: MeasureSVCCV(cv=2).fit(X, y)):
            with pytest.raises(ValueError, match=message):
                call(bad)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="numbers in X, got datetime64"):
        MeasureSVC().fit(pandas.DataFrame(dates), y)
    with pytest.raises(ValueError, match="y without masked values"):
        MeasureSVC().fit(X, np.ma.masked_array(y, mask=X[:, 0] > 1))
    np.testing.assert_allclose(MeasureSVC("f1").fit(np.ma.masked_array(X, mask=False), y).coef_, model.coef_)


@pytest.mark.parametrize("measure", ["f1", "jaccard", "prbep"])
@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_when_no_c_helps(measure, noise):
    """Exactly where no direction gives the positives a higher mean than as many of the highest negatives."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + noise * rng.normal(size=300) > 1.8
    negatives = np.column_stack([X[~y], np.ones((~y).sum())])
    wanted = np.append(X[y].sum(axis=0), y.sum())  # a mixture of negatives, none of them more than once
    mixed = linprog(np.zeros(len(negatives)), A_eq=negatives.T, b_eq=wanted, bounds=(0, 1)).success
    assert mixed == (noise == 1.0)
    statuses = [MeasureSVC(measure, C=C, tol=1e-5, **PAPER).fit(X, y).status_ for C in (1.0, 1e4)]
    assert statuses == [Status.TRIVIAL if mixed else Status.CONVERGED] * 2


def test_gaps_missed_in_the_folds_are_said_once(binary):
    X, y = binary
    many = {"Cs": [0.1, 1.0, 10.0], "cv": 3, "max_iter": 2, "tol": 1e-9, "hinge": 0.0}
    for options, fits in (({}, 9), ({"selection": "holdout"}, 3)):
        with pytest.warns(ConvergenceWarning) as caught:
            model = MeasureSVCCV("f1", **many | options).fit(X, y)
        folds, last = [str(one.message) for one in caught]
        worst = model.cv_results_["max_gap"].max()
        assert folds.startswith(f"stopped at max_iter before the duality gap reached tol ({fits} of {fits} fits that")
        assert f"the gap is {worst:.3g}, tol 1e-09" in folds
        assert "fits" not in last  # that of the model itself
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MeasureSVCCV("f1", **many, callback=lambda record: True).fit(X, y)  # whoever stops it knows


def test_gaps_missed_along_a_path_are_said_once(binary):
    X, y = binary
    with pytest.warns(UserWarning, match=r"^stopped at max_iter .* for 3 of 3 C: the gap is ") as caught:
        found = path(X, y, Cs=[10.0, 0.1, 1.0], max_iter=2, tol=1e-9)
    assert len(caught) == 1
    assert f"is {found.gaps.max():.3g} at C = {found.Cs[found.gaps.argmax()]:g}," in str(caught[0].message)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path(X, y, Cs=[0.1, 1.0])


def test_a_worthless_classifier_is_said():
    """Where classes overlap w = 0 is the optimum for F1 at any C, and nobody is called positive."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    y = X[:, 0] + rng.normal(size=1000) > 2
    with pytest.warns(UserWarning, match=r"w = 0 is optimal .* leave hinge and logistic .* the same score.$") as caught:
        svc = MeasureSVC("f1", hinge=0).fit(X, y)
    assert svc.status_ is Status.TRIVIAL
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=r"\(1 of 2 labels\)"):
        MeasureSVC("f1", hinge=0).fit(X, np.column_stack([y, X[:, 0] > 0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert MeasureSVC("f1").fit(X, y).score(X, y) > 0.3
        assert MeasureSVC("f1", hinge=1, threshold="placed").fit(X, y).score(X, y) > 0.3
        few = MeasureSVC("error", C=1e-6).fit(X, X[:, 0] > 0)  # w = 0 would do, but this w is another one
    assert few.status_ is Status.CONVERGED
    assert few.score(X, X[:, 0] > 0) > 0.9


def test_without_standard_error_nothing_is_shown(binary, monkeypatch):
    X, y = binary
    monkeypatch.setattr(sys, "stderr", None)  # as in a process without a console
    assert MeasureSVC("f1", verbose=1).fit(X, y).status_.ok


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"intercept_scaling": "a"}, "expected intercept_scaling as a positive number, 'free' or None, got 'a'"),
        ({"intercept_scaling": -1.0}, r"\(intercept_scaling\) must be a positive and finite number, got -1"),
        ({"kernel": "rbf", "gamma": None}, "expected gamma as a number, 'scale' or 'mean_distance', got None"),
        ({"checkpoint": 3}, "expected checkpoint as the name of a folder, a Checkpoint or None, got 3"),
        ({"C": 1e308}, "expected C such that .* from 1e-300 to 1e.300, got inf: lower C"),
        ({"C": 1e-310}, "expected C such that .* from 1e-300 to 1e.300, got .*: raise C"),
        ({"C": 1e308, "measure": "error", "solver": "dual_cd"}, "expected C such that"),
    ],
)
def test_parameters_that_cannot_be_meant(binary, wrong, said):
    with pytest.raises((ValueError, TypeError), match=said):
        MeasureSVC(**wrong).fit(*binary)


@pytest.mark.parametrize("name", ["fbeta", "q"])
@pytest.mark.parametrize("beta", [1e-100, 1e100])
def test_beta_may_be_large_or_small_but_not_beyond(binary, name, beta):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        assert MeasureSVC(get_measure(name, beta=beta)).fit(*binary).status_.ok
    for wrong in (beta**2, np.nan, np.inf, 0, "two"):
        with pytest.raises(ValueError, match="expected a finite beta > 0, from 1e-100 to 1e100, got"):
            get_measure(name, beta=wrong)


def test_a_gap_not_reached_for_some_labels_is_said(labels):
    X, Y = labels
    with pytest.warns(ConvergenceWarning, match=r"\(3 of 3 labels\)"):
        MeasureSVC("f1", C=100, max_iter=2, tol=1e-6).fit(X, Y)


@pytest.mark.parametrize("C", [10.0, np.float64(10.0)])
def test_the_callback_stops_the_fit(binary, C):
    X, y = binary
    records = []

    def callback(record):
        records.append(record)
        return record.gap < 0.3

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svc = MeasureSVC("f1", C=C, tol=1e-7, callback=callback).fit(X, y)
    assert svc.status_ is Status.CALLBACK
    assert svc.n_iter_ == len(records)
    assert records[-1].gap < 0.3 <= records[-2].gap
    assert svc.gap_ == pytest.approx(records[-1].gap)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(binary, stop):
    X, y = binary
    svc = MeasureSVC("f1").fit(pd.DataFrame(X, columns=list("abcdef")), y)
    before = {key: value for key, value in vars(svc).items() if key.endswith("_")}

    def interrupt(record):
        raise stop

    svc.set_params(callback=interrupt)
    with pytest.raises(stop):
        svc.fit(X[:, :4], y)
    after = {key: value for key, value in vars(svc).items() if key.endswith("_")}
    assert before.keys() == after.keys()
    assert all(after[key] is value or after[key] == value for key, value in before.items())
    assert svc.predict(pd.DataFrame(X, columns=list("abcdef"))).shape == y.shape
    fresh = MeasureSVC("f1", callback=interrupt)
    with pytest.raises(stop):
        fresh.fit(X, y)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


SCRIPT = """
import numpy as np
from metrimax import MeasureSVC
rng = np.random.default_rng(0)
y = rng.random(500) < 0.2
for verbose in (0, 1):
    MeasureSVC(verbose=verbose).fit(rng.normal(size=(500, 5)) + y[:, None], y)
"""


def test_lines_without_control_characters_are_written_to_a_pipe():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    assert done.stdout == b""
    assert done.stderr.startswith(b"MeasureSVC(f1): iteration ")
    assert done.stderr.endswith(b"\n")
    assert b"\r" not in done.stderr
    assert b"\x1b" not in done.stderr


@pytest.mark.posix
def test_progress_is_shown_on_a_terminal():
    import os
    import pty

    leader, follower = pty.openpty()
    done = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    try:
        while piece := os.read(leader, 4096):
            shown += piece
    except OSError:  # Linux says so when the other side has closed
        pass
    os.close(leader)
    assert done.wait() == 0
    assert b"MeasureSVC(f1): iteration 1, gap " in shown
    assert shown.endswith(b"\r\x1b[K")  # the line is wiped at the end


# --- bad input: a clear error each

GOOD = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) < 6


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.where(np.eye(20, 3) > 0, np.nan, GOOD[0]), GOOD[1], "NaN"),
        (np.where(np.eye(20, 3) > 0, np.inf, GOOD[0]), GOOD[1], "infinity"),
        (GOOD[0], np.ones(20), "one class"),
        (GOOD[0][:0], GOOD[1][:0], "minimum of 1 is required"),
        (GOOD[0][:, :0], GOOD[1], "0 feature"),
        (GOOD[0], GOOD[1][:7], "inconsistent numbers of samples"),
        (GOOD[0][:, 0], GOOD[1], "Expected 2D array"),
        (GOOD[0][None], GOOD[1], "dim 3"),
        (GOOD[0], np.linspace(0, 1, 20), "continuous"),
        (GOOD[0], np.column_stack([np.arange(20) % 3, np.arange(20) % 2]), "multiclass-multioutput"),
        (GOOD[0], np.where(np.arange(20) == 3, np.nan, 1.0), "NaN"),
        (GOOD[0] + 1j, GOOD[1], "[Cc]omplex"),
        (np.full((20, 2), "a"), GOOD[1], "could not convert"),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        MeasureSVC().fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"C": 0}, ValueError, "C > 0"),
        ({"C": -1.0}, ValueError, "C > 0"),
        ({"C": np.inf}, ValueError, "C > 0"),
        ({"C": np.nan}, ValueError, "C > 0"),
        ({"C": "1"}, ValueError, "C > 0"),
        ({"tol": 0}, ValueError, "tol > 0"),
        ({"tol": -1e-3}, ValueError, "tol > 0"),
        ({"tol": None}, ValueError, "tol > 0"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"max_iter": True}, ValueError, "max_iter"),
        ({"max_iter": 1.5}, ValueError, "max_iter"),
        ({"measure": "f7"}, ValueError, "unknown measure 'f7'"),
        ({"measure": 7}, TypeError, "expected measure as a name"),
        ({"measure": FBeta}, TypeError, "call it"),
        ({"measure": PrecisionAtK(21)}, ValueError, "k = 21 is more than the 20 examples"),
        ({"measure": lambda tp, fp, fn, tn: tp * np.nan}, ValueError, "returned nan"),
        ({"measure": lambda tp, fp, fn, tn: np.ones(3)}, ValueError, "expected the same shape"),
        ({"measure": lambda tp, fp, fn, tn: 0 * fn}, ValueError, "a score or a loss"),
        ({"measure": TableFunction(lambda tp, fp, fn, tn: tp / (tp + fp))}, ValueError, "returned nan"),
        ({"measure": f1_score}, TypeError, r"a function of \(tp, fp, fn, tn\), got f1_score of \(y_true, y_pred"),
        ({"measure": make_scorer(f1_score)}, TypeError, r"got _Scorer of \(estimator, X, y_true"),
        ({"measure": lambda model, X, y_true, weight=None: 1.0}, TypeError, r"got <lambda> of \(model, X, y_true, w"),
        ({"measure": lambda tp, fp: tp}, TypeError, r"got <lambda> of \(tp, fp\): write it as a function of"),
        ({"solver": ["auto"]}, ValueError, "unknown solver"),
        ({"solver": "newton"}, ValueError, "unknown solver 'newton': expected one of auto, bundle, cutting_plane"),
        ({"intercept_scaling": 0.0}, ValueError, "positive and finite"),
        ({"intercept_scaling": -1.0}, ValueError, "positive and finite"),
        ({"fit_intercept": "no"}, ValueError, "expected fit_intercept as True or False, got 'no'"),
        ({"callback": 3}, TypeError, "expected callback as a function of a Record, or None, got 3"),
        ({"n_threads": 0}, ValueError, "n_threads"),
        ({"class_weight": "heavy"}, ValueError, "class_weight"),
        ({"class_weight": {False: -1.0, True: 1.0}}, ValueError, "[Nn]egative"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with np.errstate(all="ignore"), pytest.raises(error, match=message):
        MeasureSVC(**parameters).fit(*GOOD)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.where(np.arange(20) == 3, -1.0, 1.0), "[Nn]egative"),
        (np.where(np.arange(20) == 3, np.nan, 1.0), "NaN"),
        (np.where(np.arange(20) == 3, np.inf, 1.0), "infinity"),
        (np.ones(19), "sample_weight"),
        (np.ones((20, 2)), "1D array"),
        (np.zeros(20), "above zero|[Zz]ero|zero weights"),
        ((~GOOD[1]).astype(float), "no positive example"),
        (GOOD[1].astype(float), "no negative example"),
        (np.full(20, 1e299), r"a sum from 1e-60 to 1e\+60, got 2e\+300: divide"),
        (np.full(20, 1e308), "got inf: divide"),
        (np.full(20, 1e-301), "got 2e-300: divide"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        MeasureSVC().fit(*GOOD, sample_weight=weight)


def test_weights_that_no_measure_can_be_computed_with():
    for ask in (
        lambda: MeasureSVC("kappa", class_weight={False: 1e100, True: 1.0}).fit(*GOOD),
        lambda: MeasureSVC("kappa").fit(*GOOD).score(*GOOD, np.full(20, 1e299)),
        lambda: MeasureRanker("roc_area").fit(*GOOD, sample_weight=np.full(20, 1e-301)),
    ):
        with pytest.raises(ValueError, match="divide them by their mean"):
            ask()


def test_predicting_with_what_was_not_fitted():
    with pytest.raises(NotFittedError):
        MeasureSVC().predict(GOOD[0])
    svc = MeasureSVC().fit(*GOOD)
    with pytest.raises(ValueError, match="expecting 3 features"):
        svc.predict(GOOD[0][:, :2])
    with pytest.raises(ValueError, match="NaN"):
        svc.predict(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match=r"inconsistent|length|shape"):
        svc.score(GOOD[0], GOOD[1][:5])


def test_a_users_function_that_fails_in_the_middle_of_a_run(binary):
    """The search meets a table that the probe has seen too: NaN anywhere is found before the run begins."""
    X, y = binary
    calls = []

    def sometimes(tp, fp, fn, tn):
        calls.append(1)
        return tp / (tp + fn) if len(calls) < 45 else np.full(np.shape(tp), np.nan)

    svc = MeasureSVC("f1").fit(X, y)
    before = svc.coef_
    svc.set_params(measure=get_measure(sometimes), tol=1e-9)
    with pytest.raises(ValueError, match="returned nan"):
        svc.fit(X, y)
    assert svc.coef_ is before


def test_warnings_point_at_the_line_that_called(binary):
    """Not at a file of this library, or of joblib, through which the call went."""
    X, y = binary
    rng = np.random.default_rng(0)
    overlapping = X[:, 0] + 3 * rng.normal(size=len(y)) > 5
    folds = {"Cs": [1.0], "cv": 2}
    for estimator, labels, text in (
        (MeasureSVC("recall_at_k"), y, "exactly k positives"),
        (MeasureSVCCV("recall_at_k", **folds), y, "exactly k positives"),
        (MeasureSVCCV("f1", hinge=0.0, threshold="trained", **folds), overlapping, "w = 0 is optimal"),
        (MeasureSVCCV("f1", max_iter=2, tol=1e-9, **folds), y, "stopped at max_iter"),
    ):
        with pytest.warns(UserWarning, match=text) as caught:
            estimator.fit(X, labels)
        assert {warning.filename for warning in caught} == {__file__}


def test_a_gap_within_tol_is_not_said_to_be_above():
    """The sum with a base loss is solved beyond tol, here as far as floating point allows."""
    rng = np.random.default_rng(3)
    y = rng.random(300) < 0.3
    X = rng.normal(size=(300, 5)) + 0.3 * y[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = MeasureSVC("f1", C=0.01, logistic=1, tol=1e-11).fit(X, y)
    assert model.gap_ <= 1e-11
    assert model.status_ is Status.CONVERGED
