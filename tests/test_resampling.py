"""The table of estimators of performance: hold-out, cross-validation, bootstrap, the VC bound and xi-alpha."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from metrimax import MeasureSVC
from metrimax.estimates.resampling import MEASURES, estimator_table


def sample(n, p):
    rng = np.random.default_rng(7)
    y = (rng.random(n) < 0.3).astype(int)
    return rng.normal(size=(n, p)) + 0.8 * y[:, None], y


def test_estimator_table():
    X, y = sample(150, 3)
    model = MeasureSVC("error", C=0.5, solver="dual_cd").fit(X, y)
    with pytest.raises(ValueError, match="expected n_bootstrap as a whole number of at least 1, got 0"):
        estimator_table(model, X, y, n_bootstrap=0)
    rows = {row["estimator"].split(",")[0]: row for row in estimator_table(model, X, y, k=5, n_bootstrap=5)}
    assert list(rows) == [
        "training error", "hold-out", "Hoeffding bound of the hold-out", "5-fold cross-validation", "bootstrap",
        "VC bound", "xi-alpha", "leave-one-out",
    ]  # fmt: skip
    training = np.mean(model.predict(X) != y)
    assert rows["training error"]["error"] == training
    d = 4
    bound = training + 2 * np.sqrt((d * (np.log(2 * 150 / d) + 1) - np.log(0.05 / 4)) / 150)
    assert rows["VC bound"]["error"] == pytest.approx(bound)
    assert np.isnan(rows["VC bound"]["f1"])
    deviation = rows["Hoeffding bound of the hold-out"]["error"] - rows["hold-out"]["error"]
    assert deviation == pytest.approx(np.sqrt(np.log(40) / 100))
    assert np.isnan(rows["Hoeffding bound of the hold-out"]["f1"])
    for name in ("hold-out", "5-fold cross-validation", "bootstrap", "leave-one-out"):
        assert rows[name]["error"] == pytest.approx(training, abs=0.12)
        assert set(rows[name]) == {"estimator", *MEASURES, "seconds"}
    kernel = SVC(kernel="rbf").fit(X, y)
    table = estimator_table(kernel, X, y, k=3, n_bootstrap=2, exact=False)
    assert np.isnan(next(row["error"] for row in table if row["estimator"].startswith("VC")))
    # overfitting: the bootstrap must correct the training error upwards
    noise = np.random.default_rng(0)
    Z, labels = noise.normal(size=(60, 40)), noise.random(60) < 0.5
    fitted = MeasureSVC("error", C=100.0, solver="dual_cd").fit(Z, labels)
    corrected = {
        row["estimator"].split(",")[0]: row["error"] for row in estimator_table(fitted, Z, labels, exact=False)
    }
    assert corrected["training error"] < 0.05
    assert corrected["bootstrap"] > corrected["training error"] + 0.1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("model", [MeasureSVC("error", C=0.5), SVC()])
def test_estimator_table_of_any_form_of_X(model):
    X, y = sample(60, 3)

    def table(X, y):
        rows = estimator_table(model.fit(X, y), X, y, k=3, n_bootstrap=2)
        return [[row[name] for name in MEASURES] for row in rows]

    names = pd.Series(np.where(y, "yes", "no"), index=np.arange(60)[::-1])
    for form in (pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(60)[::-1]), X.tolist()):
        np.testing.assert_array_equal(table(form, names), table(X, y))


def test_estimator_table_of_a_kernel_that_is_given():
    X, y = sample(60, 3)
    linear, given = SVC(kernel="linear").fit(X, y), SVC(kernel="precomputed").fit(X @ X.T, y)
    tables = [estimator_table(linear, X, y, k=3, n_bootstrap=2), estimator_table(given, X @ X.T, y, k=3, n_bootstrap=2)]
    for one, other in zip(*tables, strict=True):
        assert one["estimator"].startswith("VC") or one["error"] == pytest.approx(other["error"])


def test_estimator_table_of_what_has_no_estimates_trains_nothing():
    X, y = sample(60, 3)
    model = MeasureSVC("error", logistic=1.0).fit(X, y)
    trained = mock.patch.object(MeasureSVC, "fit", side_effect=AssertionError("trained"))
    with trained, pytest.raises(ValueError, match="expected a MeasureSVC with hinge=0"):
        estimator_table(model, X, y)
