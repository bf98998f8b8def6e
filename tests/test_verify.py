"""`metrimax.verify`: it confirms what is true, and finds what was changed."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse

from metrimax import MeasureRanker, MeasureSVC, MeasureSVCCV, verify
from metrimax.designs import as_design
from metrimax.measure import REGISTRY, get_measure
from metrimax.training.certificate import Certificate, certify, simplex_multipliers
from metrimax.training.lockstep import run

rng = np.random.default_rng(7)
y = rng.random(120) < 0.3
X = rng.normal(size=(120, 4)) + 0.7 * y[:, None]
several = np.column_stack([y, X[:, 1] > 1, X[:, 2] + rng.normal(size=120) > 1]).astype(int)
classes = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.3, 0.8])]
groups = np.repeat(np.arange(12), 10)
grades = np.clip(np.round(X @ [1.0, 0.5, -1.0, 0.0] + rng.normal(size=120)), 0, 3)
PLACED = {"hinge": 1.0, "threshold": "placed"}


def failed(model, *data, **more) -> set[str]:
    """The names of the checks that fail."""
    found = verify(model, *data, **more)
    names = {check.name for checks in found.labels for check in checks if check.holds is False}
    assert bool(found) == found.holds == (not names)
    assert str(found).startswith("Holds: " if found else "Does not hold: ")
    return names


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- what is true


@pytest.mark.parametrize("certificate", [False, True])
@pytest.mark.parametrize("measure", sorted(REGISTRY))
def test_every_measure(measure, certificate):
    for options in ({}, PLACED, {"fit_intercept": False}, {"intercept_scaling": 3.0}):
        model = MeasureSVC(measure, C=0.5, certificate=certificate, **options).fit(X, y)
        assert failed(model, X, y) == set()
        assert model.gap_ <= 1e-3
        assert (model.certificate_ is not None) == certificate


@pytest.mark.parametrize("certificate", [False, True])
def test_every_kind_of_estimator_and_data(certificate):
    weight = rng.integers(0, 4, size=120).astype(float)
    more = {"certificate": certificate}
    assert failed(MeasureSVC("f1", **more).fit(X, several), X, several) == set()
    assert failed(MeasureSVC("f1", **PLACED, **more).fit(X, classes), X, classes) == set()
    assert failed(MeasureSVC("f1", **more).fit(X, y, weight), X, y, weight) == set()
    assert failed(MeasureSVC("roc_area", **more).fit(X, y, weight / 3), X, y, weight / 3) == set()
    assert failed(MeasureSVC("error", class_weight="balanced", **more).fit(X, y), X, y) == set()
    assert failed(MeasureSVC("f1", C=0.5, **more).fit(sparse.csr_matrix(X), y), sparse.csr_matrix(X), y) == set()
    assert failed(MeasureSVC("f1", **more).fit(X.astype(np.float32), y), X.astype(np.float32), y) == set()
    assert failed(MeasureSVC("f1", kernel="rbf", **more).fit(X, y), X, y) == set()
    assert failed(MeasureSVC("prbep", kernel="rbf", fit_intercept=False, **more).fit(X, y), X, y) == set()
    wide = rng.normal(size=(120, 300))
    assert failed(MeasureSVC("f1", **more).fit(wide, y), wide, y) == set()
    for measure in ("f1", "balanced_error", "roc_area"):
        assert failed(MeasureSVCCV(measure, Cs=[0.1, 1.0], **more).fit(X, y), X, y) == set()
    for measure in ("ndcg", "average_precision", "roc_area", "precision_at_k", "prbep"):
        ranker = MeasureRanker(measure, k=3, **more).fit(X, grades, groups=groups)
        assert failed(ranker, X, grades, groups=groups) == set()


@pytest.mark.parametrize("certificate", [False, True])
def test_losses_beside_the_risk(certificate):
    for losses in ({"logistic": 1.0}, {"risk": 0.0, "logistic": 1.0}, {"risk": 0.0, "hinge": 1.0, "balanced": True}):
        model = MeasureSVC("f1", C=0.5, certificate=certificate, threshold="placed", **losses).fit(X, y)
        assert failed(model, X, y) == set()
        model.trained_with_["C"] = 0.51
        assert "objective" in failed(model, X, y)


@pytest.mark.parametrize("solver", ["hybrid", "bundle", "cutting_plane", "lbfgs", "agm", "dual_cd"])
def test_every_solver(solver):
    measure = "error" if solver == "dual_cd" else "prbep"
    assert failed(MeasureSVC(measure, solver=solver, tol=1e-4).fit(X, y), X, y) == set()


def test_labels_that_do_not_vary():
    fixed = several.copy()
    fixed[:, 1] = 0
    model = MeasureSVC("f1", certificate=True).fit(X, fixed)
    assert failed(model, X, fixed) == set()
    assert failed(model, X, several) == {"label"}


def test_it_outlives_a_pickle():
    model = pickle.loads(pickle.dumps(MeasureSVC("f1", certificate=True).fit(X, y)))
    assert failed(model, X, y) == set()


# --- what is not


@pytest.mark.parametrize("certificate", [False, True])
@pytest.mark.parametrize("measure", ["f1", "roc_area", "prbep", "average_precision", "error"])
def test_changes_are_found(measure, certificate):
    options = {"certificate": certificate, "C": 0.5, **({} if measure == "error" else {"threshold": "placed"})}
    model = MeasureSVC(measure, **options).fit(X, y)
    weight = 0.5 * model.price_ * len(y)
    assert failed(model, X, y) == set()

    def changed(**values):
        other = pickle.loads(pickle.dumps(model))
        vars(other).update(values)
        return failed(other, X, y)

    for j in range(4):
        coef = model.coef_.copy()
        coef[0, j] *= 1.01
        assert "objective" in changed(coef_=coef)
    assert "objective" in changed(trained_intercept_=model.trained_intercept_ + 0.01)
    assert changed(objective_=model.objective_ * 1.001) == {"objective"}
    assert "gap" in changed(dual_bound_=model.dual_bound_ + 1e-4 * weight), "the bound alone"
    false = model.objective_ - 1e-6 * weight  # and the gap with it, so that they agree
    assert "bound" in changed(dual_bound_=false, gap_=1e-6)
    assert changed(dual_bound_=model.objective_ * 1.01) >= {"gap", "bound"}
    assert changed(threshold_=model.threshold_ + 0.01) == {"threshold", "intercept"}
    moved = {"threshold_": model.threshold_ + 0.01, "intercept_": model.intercept_ - 0.01}
    assert "threshold" in changed(**moved)
    assert changed(intercept_=model.intercept_ + 1e-6) == {"intercept"}
    assert "objective" in changed(trained_with_=model.trained_with_ | {"C": 0.6})


def test_other_data_are_found():
    model = MeasureSVC("f1", certificate=True).fit(X, y)
    assert failed(model, np.roll(X, 1, axis=0), y) >= {"objective"}
    assert failed(model, X + 0.001, y) >= {"objective"}
    assert failed(model, X, ~y) >= {"objective"}
    assert failed(model, X[:-1], y[:-1]) >= {"objective"}
    assert failed(model, X, classes) == {"label"}
    assert failed(model, X, y, np.full(120, 2.0)) >= {"objective"}
    ranker = MeasureRanker("ndcg").fit(X, grades, groups=groups)
    assert failed(ranker, X, grades, groups=groups[::-1] // 2) >= {"objective"}


def test_a_certificate_that_was_changed_proves_less_and_never_more():
    model = MeasureSVC("f1", C=0.5, certificate=True).fit(X, y)
    best = MeasureSVC("f1", C=0.5, tol=1e-7).fit(X, y)
    points, multipliers = model.certificate_[0]
    oracle, design = get_measure("f1").oracle(y, None), as_design(X, intercept_scaling=1.0)
    weight = 0.5 * oracle.price * len(y)
    for _ in range(50):
        share = rng.random(len(multipliers))
        twisted = Certificate(points + rng.normal(size=points.shape), share / share.sum())
        (bound,) = run(design, [twisted.bound(oracle, design, weight)])
        assert bound <= best.objective_ + 1e-9
    for wrong in (
        (points, 2 * multipliers),
        (points, -multipliers),
        (points[:, 1:], multipliers),
        (points[1:], multipliers),
    ):
        model.certificate_ = [wrong]
        assert failed(model, X, y) == {"bound"}
    model.certificate_ = [(points[1:], multipliers[1:])]
    assert failed(model, X, y) == {"bound"}, "one of its points is gone"


def test_estimators_that_cannot_be_verified():
    with pytest.raises(TypeError, match="expected a fitted MeasureSVC"):
        verify(object(), X, y)
    with pytest.raises(TypeError, match="Nystroem"):
        verify(MeasureSVC("f1", kernel="rbf", n_components=20, random_state=0).fit(X, y), X, y)


# --- the parts


def test_multipliers_are_those_of_another_solver():
    cvxpy = pytest.importorskip("cvxpy")
    for size in (1, 3, 12):
        A, b = rng.normal(size=(size, 5)), rng.normal(size=size)
        alpha = simplex_multipliers(A @ A.T, b, np.zeros(size), 1e-10)
        assert (alpha >= 0).all()
        assert alpha.sum() <= 1 + 1e-12
        z = cvxpy.Variable(size, nonneg=True)
        problem = cvxpy.Problem(cvxpy.Maximize(b @ z - cvxpy.sum_squares(A.T @ z) / 2), [cvxpy.sum(z) <= 1])
        problem.solve(solver="CLARABEL")
        assert b @ alpha - np.sum((A.T @ alpha) ** 2) / 2 == pytest.approx(problem.value, abs=1e-7)


def test_multipliers_of_cuts_without_length():
    """The loss of the best one is the bound, whatever the others are."""
    assert simplex_multipliers(np.zeros((3, 3)), np.array([0.2, 0.5, 0.5]), np.zeros(3), 1e-10)[1:].sum() == 1
    long = np.diag([0.0, 1e17])
    np.testing.assert_allclose(simplex_multipliers(long, np.array([0.3, 1.0]), np.zeros(2), 1e-10), [1, 0], atol=1e-12)


@pytest.mark.parametrize("measure", ["f1", "roc_area", "average_precision", "mcc"])
@pytest.mark.parametrize("level", [0.0, 1.0])
@pytest.mark.filterwarnings("ignore")
def test_rows_that_are_all_alike(measure, level):
    """All slopes are zero, or those of the intercept, and w = 0 is optimal."""
    rows, labels = np.full((9, 2), level), np.arange(9) < 4
    assert verify(MeasureSVC(measure, hinge=0, fit_intercept=False).fit(rows, labels), rows, labels)


@pytest.mark.parametrize("measure", ["f1", "roc_area", "average_precision", "mcc"])
def test_the_run_of_its_own_ends_at_the_optimum(measure):
    model = MeasureSVC(measure, C=0.5, tol=1e-7, hinge=0).fit(X, y)
    oracle, design = get_measure(measure).oracle(y, None), as_design(X, intercept_scaling=1.0)
    weight = 0.5 * oracle.price * len(y)
    goal = model.dual_bound_ - 1e-6 * weight
    (found,) = run(design, [certify(oracle, design, weight, np.zeros(5), goal=goal)])
    assert goal <= found.bound <= model.objective_ * (1 + 1e-12)
    assert found.least >= model.dual_bound_
