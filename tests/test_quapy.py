"""The class that QuaPy expects of SVM-perf, with the real package."""

from __future__ import annotations

import copy
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from metrimax.compat.quapy import SVMperf, install


def sample(seed: int = 0, n: int = 400, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, n, p=[0.7, 0.3] if classes == 2 else None)
    return rng.normal(size=(n, 6)) + 2.0 * np.eye(6)[y], y


@pytest.fixture(scope="module")
def quapy() -> Any:
    """QuaPy with our class in the place of its own."""
    qp = pytest.importorskip("quapy", reason="quapy is not installed: pip install 'metrimax[quapy]'")
    import quapy.classification.svmperf as home
    import quapy.method.aggregative as aggregative

    before = home.SVMperf, aggregative.SVMperf, qp.environ["SVMPERF_HOME"]
    install()
    qp.environ["SAMPLE_SIZE"] = 50
    yield qp
    home.SVMperf, aggregative.SVMperf = before[:2]
    qp.environ["SVMPERF_HOME"] = before[2]


@pytest.mark.parametrize("loss", sorted(SVMperf.valid_losses))
def test_every_loss(loss: str) -> None:
    X, y = sample()
    clf = SVMperf("ignored", C=10, loss=loss, host_folder="too").fit(X, y)
    assert clf.gap_ <= 0.1
    assert clf.n_classes_ == 2
    assert isinstance(clf.classes_, np.ndarray)
    scores = clf.decision_function(X, y)
    assert scores.shape == (len(y),)
    np.testing.assert_array_equal(clf.predict(X), (scores > 0).astype(int))
    if loss in ("f1", "q", "qacc", "qf1", "qgm"):
        assert clf.score(X, y) > 0.85


def test_sparse_equals_dense() -> None:
    from scipy import sparse

    X, y = sample()
    dense, csr = SVMperf(C=1, loss="kld").fit(X, y), SVMperf(C=1, loss="kld").fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(dense.decision_function(X), csr.decision_function(sparse.csr_matrix(X)), atol=0.05)


def test_string_labels_copies_and_pickles() -> None:
    X, y = sample()
    labels = np.array(["no", "yes"])[y]
    clf = SVMperf(None, C=1, loss="nkld")
    for before in (clf, copy.deepcopy(clf), pickle.loads(pickle.dumps(clf))):
        with pytest.raises(NotFittedError):
            check_is_fitted(before)
        with pytest.raises(NotFittedError):
            before.predict(X)
    clf.fit(X, labels)
    expected = clf.predict(X)
    assert set(expected) == {"no", "yes"}
    for after in (copy.deepcopy(clf), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(after.predict(X), expected)
    duplicate = copy.deepcopy(clf)
    del clf  # nothing on disk to go with it
    np.testing.assert_array_equal(duplicate.predict(X), expected)


def test_refusals() -> None:
    X, y = sample()
    with pytest.raises(ValueError, match="unknown loss 'auc': expected one of 01, f1"):
        SVMperf(loss="auc").fit(X, y)
    with pytest.raises(ValueError, match="finite C > 0"):
        SVMperf(C=0).fit(X, y)
    with pytest.raises(ValueError, match="labels of two classes, got 3"):
        SVMperf().fit(*sample(classes=3))


def test_losses_are_open_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SVMperf.valid_losses, "gm", 20)
    assert SVMperf(C=1, loss="gm").fit(*sample()).gap_ <= 0.1


def test_scikit_learn_contract() -> None:
    from sklearn.base import clone
    from sklearn.utils.estimator_checks import check_estimator

    assert clone(SVMperf(C=3, loss="q")).get_params() == SVMperf(C=3, loss="q").get_params()
    results = check_estimator(SVMperf(C=1, loss="f1"), on_fail=None)
    failed = {r["check_name"]: str(r["exception"])[:200] for r in results if r["status"] == "failed"}
    assert not failed


def test_new_functions(quapy: Any) -> None:
    from quapy.method import aggregative

    X, y = sample(n=600)
    makers = ("newSVMQ", "newSVMKLD", "newSVMNKLD", "newSVMAE", "newSVMRAE")
    quantifiers = [getattr(aggregative, name)(C=10) for name in makers]
    quantifiers += [aggregative.newELM(loss=loss, C=10) for loss in ("f1", "qgm")]
    for quantifier in quantifiers:
        assert isinstance(quantifier.classifier, SVMperf)
        quantifier.fit(X[:400], y[:400])
        assert quantifier.predict(X[400:]) == pytest.approx(
            quapy.functional.prevalence_from_labels(y[400:], [0, 1]), abs=0.1
        )
        copied = copy.deepcopy(quantifier)
        np.testing.assert_array_equal(copied.predict(X[400:]), quantifier.predict(X[400:]))


def test_string_labels_in_quapy(quapy: Any) -> None:
    from quapy.method import aggregative

    X, y = sample()
    quantifier = aggregative.newSVMQ(C=10)
    quantifier.fit(X, np.array(["no", "yes"])[y])
    assert quantifier.predict(X) == pytest.approx([1 - y.mean(), y.mean()], abs=0.06)


def test_one_against_all_and_grid_search(quapy: Any) -> None:
    from quapy.data import LabelledCollection
    from quapy.method import aggregative
    from quapy.method.base import newOneVsAll
    from quapy.model_selection import GridSearchQ
    from quapy.protocol import UPP

    collection = LabelledCollection(*sample(n=600, classes=3))
    training, validation = collection.split_stratified(0.6, random_state=0)
    search = GridSearchQ(
        newOneVsAll(aggregative.newSVMAE()),
        {"binary_quantifier__classifier__C": [0.1, 10]},
        protocol=UPP(validation, repeats=10, random_state=0),
        error="mae",
        n_jobs=1,
        raise_errors=True,
    )
    search.fit(*training.Xy)
    assert search.best_params_["binary_quantifier__classifier__C"] in (0.1, 10)
    assert search.predict(validation.X) == pytest.approx(validation.prevalence(), abs=0.1)


def test_quapys_own_wrapper_runs_our_commands(quapy: Any, tmp_path: Path) -> None:
    """QuaPy's wrapper around the binaries, unchanged, with our programs in SVMPERF_HOME."""
    import importlib

    import quapy.classification.svmperf as home

    scripts = Path(sys.executable).parent
    if not (scripts / "svm_perf_learn").exists():
        pytest.skip("the commands are not installed beside this Python")
    original = importlib.reload(home).SVMperf
    install()
    assert original is not SVMperf
    X, y = sample(n=150)
    theirs = original(str(scripts), C=1, loss="kld", host_folder=str(tmp_path)).fit(X, y)
    ours = SVMperf(C=1, loss="kld").fit(X, y)
    assert (theirs.predict(X) == ours.predict(X)).mean() > 0.97
