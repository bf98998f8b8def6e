"""Kernels as designs: the same classifier as with explicit features, exactly; and what happens beyond the memory."""

from __future__ import annotations

import numpy as np
import pytest
from paper import PAPER
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel, sigmoid_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from metrimax import MeasureSVC
from metrimax.designs import WithIntercept, as_design
from metrimax.designs.kernel import KERNELS, Gram, Kernel, LowRank, check_symmetric, choose_gamma, kernel_design
from metrimax.protocols import Status

rng = np.random.default_rng(7)
X = rng.normal(size=(150, 3))
y = X[:, 0] * X[:, 1] + 0.3 * X[:, 2] ** 2 + 0.2 * rng.normal(size=150) > 0.6
new = rng.normal(size=(40, 3))


def quadratic(X):
    """Explicit features of the kernel (x.y)^2."""
    return np.einsum("ij,ik->ijk", X, X).reshape(len(X), -1)


def test_kernels_by_definition():
    d = euclidean_distances(X, new)
    expected = {
        "rbf": np.exp(-0.3 * d**2),
        "poly": (0.3 * X @ new.T + 0.5) ** 3,
        "laplacian": np.exp(-np.sqrt(0.3) * d),
        "inverse_distance": 1 / (np.sqrt(0.3) * d + 1),
        "inverse_squared_distance": 1 / (0.3 * d**2 + 1),
    }
    assert set(expected) == set(KERNELS)
    for name, values in expected.items():
        kernel = Kernel(name, gamma=0.3, coef0=0.5)
        np.testing.assert_allclose(kernel(X, new), values, atol=1e-12)
        np.testing.assert_allclose(kernel(sparse.csr_matrix(X), sparse.csr_matrix(new)), values, atol=1e-12)
        np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(kernel(X, X)), atol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_positive_semidefinite(name):
    K = Kernel(name, gamma=0.7)(X, X)
    assert np.linalg.eigvalsh(K).min() > -1e-8 * np.abs(K).max()


def test_gamma():
    d2 = euclidean_distances(X, squared=True)
    assert choose_gamma("mean_distance", X) == pytest.approx(1 / d2.mean())
    assert choose_gamma("mean_distance", sparse.csr_matrix(X)) == pytest.approx(1 / d2.mean())
    assert choose_gamma("scale", X) == pytest.approx(1 / (3 * X.var()))
    assert choose_gamma(0.25, X) == 0.25
    assert choose_gamma("scale", np.ones((5, 2))) == 1.0  # no spread: any number will do
    with pytest.raises(ValueError, match="'mean_distance', got 'auto'"):
        choose_gamma("auto", X)


FAR = [(3000, np.float32), (10_000, np.float32), (1e6, np.float64)]


@pytest.mark.parametrize(("shift", "dtype"), FAR)
def test_far_from_the_origin(shift, dtype):
    """Nothing but the distances counts, and these are taken of the numbers as they came."""
    far = (X + shift).astype(dtype)
    near = far.astype(np.float64) - shift
    assert choose_gamma("scale", far) == pytest.approx(1 / (3 * near.var()), rel=1e-6)
    assert choose_gamma("mean_distance", far) == pytest.approx(1 / (2 * near.var(axis=0).sum()), rel=1e-6)
    for name in set(KERNELS) - {"poly"}:
        kernel = Kernel(name, gamma=0.3)
        np.testing.assert_allclose(kernel(far[:40], far), kernel(near[:40], near), atol=1e-7)
    options = {"kernel": "rbf", "tol": 1e-6}
    clf, same = (MeasureSVC("error", **options).fit(data, y) for data in (far, near))
    assert clf.status_ is Status.CONVERGED
    np.testing.assert_allclose(clf.decision_function(far), same.decision_function(near), atol=0.02)


def test_sparse_single_precision_counts_as_double():
    far = (X + 3000).astype(np.float32)
    thin, near = sparse.csr_matrix(far), far.astype(np.float64) - 3000
    assert choose_gamma("scale", thin) == pytest.approx(1 / (3 * near.var()), rel=1e-6)
    expected = Kernel("rbf", 0.3)(near, near)
    for A, B in ((thin, thin), (far, thin), (thin, far)):
        np.testing.assert_allclose(Kernel("rbf", 0.3)(A, B), expected, atol=1e-6)


def test_block_by_block(monkeypatch):
    """No array of all of X in double precision, and the same distances and gamma."""
    expected, scale = Kernel("rbf", 0.3)(new, X), choose_gamma("scale", X)
    monkeypatch.setattr("metrimax.designs.kernel.BLOCK", 200)
    for A, B in ((new, X), (sparse.csr_matrix(new), sparse.csr_matrix(X))):
        np.testing.assert_allclose(Kernel("rbf", 0.3)(A, B), expected, atol=1e-12)
        assert choose_gamma("scale", B) == pytest.approx(scale)


def test_gamma_of_a_constant_that_rounds():
    table = np.full((1000, 3), 0.1) + np.arange(3)
    assert choose_gamma("mean_distance", table) == 1.0
    assert choose_gamma("scale", table[:, :1]) == 1.0


def test_no_support_vector_at_all():
    clf = MeasureSVC("f1", kernel="rbf", C=1e-9).fit(X, y)
    np.testing.assert_array_equal(Kernel("rbf")(new, X[:0]), np.empty((40, 0)))
    assert np.isfinite(clf.decision_function(new)).all()


def designs():
    kernel = Kernel("poly", degree=2)
    yield "gram", kernel_design(kernel, X)
    yield "low rank", LowRank(kernel, X, np.arange(60))  # six features span the kernel: exact
    yield "intercept", WithIntercept(kernel_design(kernel, X), 2.0)


@pytest.mark.parametrize(("name", "design"), list(designs()), ids=lambda v: v if isinstance(v, str) else "")
def test_design_agrees_with_explicit_features(name, design):
    """X w and X' slope, told apart only by the coordinates of w."""
    phi = as_design(quadratic(X), intercept_scaling=2.0 if name == "intercept" else None)
    A, B = rng.normal(size=(2, 150))
    u, v = design.rmatvec(A), design.rmatvec(B)
    U, V = phi.rmatvec(A), phi.rmatvec(B)
    np.testing.assert_allclose(design.matvec(u), phi.matvec(U), rtol=1e-9, atol=1e-9)
    assert A @ design.matvec(v) == pytest.approx(U @ V)  # the inner product, as the solvers take it
    both = design.matvec(np.column_stack([u, v]))
    np.testing.assert_allclose(both, np.column_stack([phi.matvec(U), phi.matvec(V)]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("measure", ["f1", "error", "prbep", "roc_area"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_classifier_agrees_with_explicit_features(measure, fit_intercept):
    options = {"tol": 1e-13, "fit_intercept": fit_intercept, "intercept_scaling": 0.5, "C": 0.3, **PAPER}
    explicit = MeasureSVC(measure, **options).fit(quadratic(X), y)
    cases = {
        "gram": MeasureSVC(measure, kernel="poly", degree=2, gamma=1.0, **options),
        "low rank": MeasureSVC(measure, kernel="poly", degree=2, gamma=1.0, n_components=60, **options),
        "function": MeasureSVC(measure, kernel=lambda A, B: (A @ B.T) ** 2, **options),
    }
    for clf in cases.values():
        clf.fit(X, y)
        assert clf.objective_ == pytest.approx(explicit.objective_, rel=1e-6)
        assert clf.status_ is Status.CONVERGED
        assert clf.kernel_kept_ == 1
        np.testing.assert_allclose(clf.decision_function(new), explicit.decision_function(quadratic(new)), atol=1e-5)
    given = MeasureSVC(measure, kernel="precomputed", **options).fit((X @ X.T) ** 2, y)
    np.testing.assert_allclose(
        given.decision_function((new @ X.T) ** 2), cases["gram"].decision_function(new), atol=1e-9
    )


def test_several_labels_and_classes():
    Y = np.column_stack([y, X[:, 0] > 0, np.ones(150)]).astype(int)
    together = MeasureSVC("f1", kernel="rbf", tol=1e-8).fit(X, Y)
    for k in (0, 1):
        alone = MeasureSVC("f1", kernel="rbf", tol=1e-8).fit(X, Y[:, k])
        np.testing.assert_allclose(together.decision_function(new)[:, k], alone.decision_function(new), atol=1e-3)
    classes = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    assert MeasureSVC("f1", kernel="rbf", C=10).fit(X, classes).score(X, classes) > 0.9


def test_sparse_float32_and_dual_form():
    dense = MeasureSVC("f1", kernel="rbf", tol=1e-8).fit(X, y)
    thin = MeasureSVC("f1", kernel="rbf", tol=1e-8).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(thin.decision_function(sparse.csr_matrix(new)), dense.decision_function(new), atol=1e-3)
    single = MeasureSVC("f1", kernel="rbf", tol=1e-6).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.decision_function(new), dense.decision_function(new), atol=0.02)
    kernel = Kernel("rbf", choose_gamma("scale", X))
    scores = kernel(new, X[dense.support_]) @ dense.kernel_coef_[0] + dense.intercept_
    np.testing.assert_allclose(dense.decision_function(new), scores)
    assert not hasattr(dense, "coef_")
    assert hasattr(dense.set_params(kernel="linear").fit(X, y), "coef_")
    assert not hasattr(dense, "kernel_coef_")


def test_weights_mean_repetition():
    weight = rng.integers(0, 3, size=150)
    options = {"kernel": "rbf", "gamma": 0.5, "tol": 1e-10}
    weighted = MeasureSVC("f1", **options).fit(X, y, sample_weight=weight)
    repeated = MeasureSVC("f1", **options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    np.testing.assert_allclose(weighted.decision_function(new), repeated.decision_function(new), atol=1e-3)


def test_beyond_the_memory():
    """The Gram matrix of 150 examples has 180 kB; in 60 kB there is room for 50 columns, and the status says so."""
    clf = MeasureSVC("f1", kernel="rbf", cache_size=60_000 / 2**20, random_state=0).fit(X, y)
    assert clf.status_ is Status.APPROXIMATE
    assert clf.status_.ok
    assert "low-rank approximation" in str(clf.status_)
    assert 0.5 < clf.kernel_kept_ < 1
    assert len(clf.support_) <= 50
    design = kernel_design(Kernel("rbf", 0.5), X, cache_size=60_000 / 2**20, seed=0)
    K = Kernel("rbf", 0.5)(X, X)
    S = design.support
    best = K[:, S] @ np.linalg.pinv(K[np.ix_(S, S)], rcond=1e-12, hermitian=True) @ K[S]
    np.testing.assert_allclose(design.X @ design.X.T, best, atol=1e-6)
    assert design.kept == pytest.approx(np.trace(best) / 150, abs=1e-6)
    exact = MeasureSVC("f1", kernel="rbf").fit(X, y)
    assert clf.score(X, y) > exact.score(X, y) - 0.1


@pytest.mark.parametrize("measure", ["error", "f1", "roc_area"])
def test_more_examples_than_the_choice_of_solvers_calls_many(measure):
    """A Gram matrix has as many columns as examples, but no rows for dual coordinate descent."""
    big = rng.normal(size=(1200, 3))
    clf = MeasureSVC(measure, kernel="rbf").fit(big, (big**2).sum(axis=1) > 3)
    assert clf.status_ is Status.CONVERGED
    assert clf.score(big, (big**2).sum(axis=1) > 3) > 0.95


def test_same_seed_same_classifier():
    a, b, c = (MeasureSVC("f1", kernel="rbf", n_components=20, random_state=seed).fit(X, y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a.support_, b.support_)
    assert not np.array_equal(np.sort(a.support_), np.sort(c.support_))


def test_precomputed_in_cross_validation():
    K = Kernel("rbf", 0.5)(X, X)
    with_kernel = cross_val_score(MeasureSVC("f1", kernel="rbf", gamma=0.5), X, y, cv=3)
    np.testing.assert_allclose(
        cross_val_score(MeasureSVC("f1", kernel="precomputed"), K, y, cv=3), with_kernel, atol=0.05
    )
    search = GridSearchCV(MeasureSVC("f1"), {"kernel": ["linear", "rbf"], "C": [1.0]}, cv=3).fit(X, y)
    assert search.best_params_["kernel"] == "rbf"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "sigmoid"}, "unknown kernel 'sigmoid': expected linear, rbf"),
        ({"kernel": "rbf", "gamma": -1.0}, "finite gamma > 0, got -1.0"),
        ({"kernel": "poly", "degree": 1.5}, "degree as a whole number of at least 1, got 1.5"),
        ({"kernel": "rbf", "cache_size": 1e-9}, "room for a column of 150 kernel values"),
        ({"kernel": "rbf", "n_components": 0}, "n_components of at least 1"),
        ({"kernel": "rbf", "n_components": 2.5}, "n_components as a whole number or None, got 2.5"),
        ({"kernel": "rbf", "cache_size": None}, "cache_size as a number of megabytes, got None"),
        ({"kernel": "poly", "coef0": np.nan}, "coef0 as a finite number, got nan"),
        ({"kernel": "poly", "coef0": -5.0}, "positive semidefinite"),
        ({"kernel": "precomputed"}, r"square matrix, got shape \(150, 3\)"),
        ({"kernel": lambda A, B: np.ones(3)}, r"an array of shape \(150, 150\), got \(3,\)"),
        ({"kernel": lambda A, B: A[:, :1] - B[:, :1].T}, "symmetric kernel matrix"),
        ({"kernel": lambda A, B: -(A @ B.T)}, "positive semidefinite"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        MeasureSVC("f1", **options).fit(X, y)


@pytest.mark.parametrize("seed", range(8))
def test_a_kernel_that_is_not_definite_is_refused(seed):
    """Some fits met no w with w'Kw < 0 on their way, and reported lower bounds above their objective."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 60))
    X, y = rng.normal(size=(n, 3)), np.arange(n) % 3 == 0
    options = {"gamma": 10 ** rng.uniform(-1, 1), "coef0": rng.uniform(-1, 1)}
    K = sigmoid_kernel(X, **options)
    lowest = float(np.linalg.eigvalsh(K)[0])
    assert lowest < 0
    with pytest.raises(ValueError, match=f"eigenvalues from {lowest:.3g} to"):
        MeasureSVC("f1", kernel="precomputed").fit(K, y)
    with pytest.raises(ValueError, match="the kernel must be positive semidefinite"):
        MeasureSVC("f1", kernel=lambda A, B: sigmoid_kernel(A, B, **options)).fit(X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_that_are_definite_up_to_rounding_are_taken(dtype):
    X = np.random.default_rng(0).normal(size=(300, 2))
    for K in (X @ X.T, rbf_kernel(X).round(6), np.zeros((300, 300)), np.ones((300, 300)), np.eye(300)):
        Gram(K.astype(dtype))


def test_a_kernel_without_values():
    X, y = np.zeros((20, 2)), np.arange(20) % 2
    clf = MeasureSVC(kernel="poly", n_components=5).fit(X, y)
    assert clf.kernel_kept_ == 1.0
    assert clf.predict(X).shape == (20,)


def test_check_symmetric_keeps_the_matrix():
    K = Kernel("rbf")(X, X)
    assert check_symmetric(K) is K
    assert Gram(K).shape == (150, 150)


@parametrize_with_checks([MeasureSVC(kernel="rbf", gamma=1.0)])
def test_estimator_checks(estimator, check):
    if "check_sample_weight_equivalence" in str(check):
        estimator = clone(estimator).set_params(tol=1e-10, hinge=0.0)  # smooth losses end in rounding before
    check(estimator)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(20))
def test_where_nothing_but_the_intercept_is_learnt_rounding_is_no_negative_curvature(seed, dtype):
    """The coefficients then are such that K makes nothing of them but rounding, of either sign."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(24, 2)), np.arange(24) % 3 == 0
    for measure, hinge in (("mcc", 0.0), ("prbep", 1.0)):
        by_kernel = MeasureSVC(measure, C=10.0, hinge=hinge, kernel="precomputed").fit((X @ X.T).astype(dtype), y)
        linear = MeasureSVC(measure, C=10.0, hinge=hinge).fit(X, y)
        slack = 1e-9 if dtype is np.float64 else 1e-4
        assert by_kernel.dual_bound_ <= linear.objective_ * (1 + slack)
        assert linear.dual_bound_ <= by_kernel.objective_ * (1 + slack)
