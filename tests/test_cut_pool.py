"""The compiled pool of cuts against NumPy and the quadratic program by itself."""

import numpy as np
import pytest

from metrimax import _kernels


class Reference:
    """The same pool, written out."""

    def __init__(self, width, K):
        self.K = K
        self.losses, self.rows, self.idle = [0.0], [np.zeros(width)], [0]
        self.alpha = np.ones(1)

    @property
    def gram(self):
        rows = np.stack(self.rows)
        return rows @ self.K @ rows.T

    def append(self, losses, vectors):
        self.losses += losses
        self.rows += vectors
        self.idle += [0] * len(losses)
        self.alpha = np.concatenate((self.alpha, np.zeros(len(losses))))

    def minimise(self, lam, tol):
        _kernels.simplex_qp(self.gram, np.array(self.losses), 1 / lam, self.alpha, tol, 10_000)
        self.idle = [0 if share else idle + 1 for share, idle in zip(self.alpha, self.idle, strict=True)]
        w = -self.alpha @ np.stack(self.rows) / lam
        square = w @ self.K @ w
        return w, square, self.alpha @ self.losses - lam / 2 * square

    def prune(self, patience):
        keep = [k == 0 or idle <= patience for k, idle in enumerate(self.idle)]
        if len(keep) > patience:
            self.losses, self.rows, self.idle, self.alpha = (
                [value for value, kept in zip(values, keep, strict=True) if kept]
                for values in (self.losses, self.rows, self.idle, self.alpha)
            )
            self.alpha = np.array(self.alpha)


@pytest.mark.parametrize("images", [False, True], ids=["weights", "images"])
@pytest.mark.parametrize("share", [0.05, 1.0], ids=["sparse", "dense"])
@pytest.mark.parametrize("room", [1, 64], ids=["growing", "roomy"])
def test_pool_is_that_of_the_reference(images, share, room):
    rng = np.random.default_rng(0)
    width, lam, patience = 40, 0.3, 3
    X = rng.normal(size=(width, 60))
    K = X @ X.T / 60 if images else np.eye(width)
    pool, reference = _kernels.CutPool(width, images, room), Reference(width, K)
    for k in range(40):
        count = 1 + k % 3
        vectors = [rng.normal(size=width) * (rng.random(width) < share) for _ in range(count)]
        losses = list(rng.random(count))
        reference.prune(patience)
        reference.append(losses, vectors)
        pool.append(losses, vectors, [K @ vector for vector in vectors] if images else [], patience)
        w, image, square, bound = pool.minimise(lam, 1e-13)
        expected = reference.minimise(lam, 1e-13)
        np.testing.assert_allclose(w, expected[0], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose((square, bound), expected[1:], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(image, K @ w if images else np.empty(0), rtol=1e-9, atol=1e-9)
        assert pool.size == len(reference.rows)
        order = np.argsort(pool.losses), np.argsort(reference.losses)  # the last ones move into the gaps
        np.testing.assert_allclose(pool.losses[order[0]], np.array(reference.losses)[order[1]])
        np.testing.assert_allclose(pool.rows[0][order[0]], np.stack(reference.rows)[order[1]])
        gram = reference.gram[np.ix_(order[1], order[1])]
        np.testing.assert_allclose(pool.gram[np.ix_(order[0], order[0])], gram, rtol=1e-9, atol=1e-9)
    assert 1 < pool.size < 80, "some were dropped, and some kept"


@pytest.mark.parametrize("offset", [1e3, 1e5, 1e8])
def test_rounding_in_images_that_nearly_cancel_does_not_raise_the_bound(offset):
    """As for features with a common part that is much larger than what tells them apart."""
    rng = np.random.default_rng(0)
    n, lam = 30, 1e-5
    X = rng.normal(size=(n, 40)) + offset
    exact = X.astype(np.longdouble)
    for _ in range(20):
        pool = _kernels.CutPool(n, True, 1)
        slopes = [rng.choice([-1.0, 0.0, 1.0], size=n) / n for _ in range(12)]
        pool.append(list(rng.random(12)), slopes, [X @ (X.T @ slope) for slope in slopes])
        bound = pool.minimise(lam, 1e-12)[-1]
        w = exact.T @ (pool.alpha.astype(np.longdouble) @ np.stack([np.zeros(n), *slopes]))
        assert bound <= max(0.0, float(pool.alpha @ pool.losses - w @ w / (2 * lam))) + 1e-12
    assert pool.longest == pytest.approx(np.linalg.norm(pool.rows[1], axis=1).max())


def test_pool_goes_on_from_another():
    rng = np.random.default_rng(1)
    first, second = (_kernels.CutPool(5, True, 2) for _ in range(2))
    vectors = list(rng.normal(size=(4, 5)))
    first.append([0.1, 0.2, 0.3, 0.4], vectors, [2 * vector for vector in vectors])
    losses, gram, rows = first.losses[1:], np.ascontiguousarray(first.gram[1:, 1:]), [part[1:] for part in first.rows]
    second.begin(losses, gram, rows)
    for mine, theirs in zip(
        (second.losses, second.gram, *second.rows), (first.losses, first.gram, *first.rows), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip(second.minimise(1.0, 1e-12), first.minimise(1.0, 1e-12), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_bound_is_never_below_that_of_the_zero_cut():
    """Long vectors that nearly cancel: rounding makes more of the sum than there is."""
    rng = np.random.default_rng(0)
    vectors = list(rng.normal(size=(60, 50)) + 1e6 * rng.normal(size=(60, 1)))
    pool = _kernels.CutPool(50, False, 64)
    pool.append(list(rng.random(60)), vectors, [], 12)
    for lam in (1e-2, 1e-4, 1e-8):
        assert pool.minimise(lam, 1e-9)[-1] >= 0


def test_views_outlive_a_pool_that_grows():
    pool = _kernels.CutPool(3, False, 1)
    pool.append([1.0], [np.ones(3)], [])
    before = pool.rows[0], pool.gram, pool.losses
    for _ in range(50):
        pool.append([0.0], [np.zeros(3)], [])
    del pool
    np.testing.assert_array_equal(before[0], [[0, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(before[1], [[0, 0], [0, 3]])
    np.testing.assert_array_equal(before[2], [0, 1])


def test_what_does_not_fit_is_refused():
    pool = _kernels.CutPool(3, True, 4)
    one, matrix = np.ones(3), np.ones((1, 1))
    with pytest.raises(ValueError, match="entries: expected length 2, got 1"):
        pool.append([1.0, 2.0], [one], [one])
    with pytest.raises(ValueError, match="images: expected length 1, got 0"):
        pool.append([1.0], [one], [])
    with pytest.raises(ValueError, match="expected length 3, got 2"):
        pool.append([1.0], [one], [one[:2]])
    with pytest.raises(ValueError, match="rows: expected length 2, got 1"):
        pool.begin(np.ones(1), matrix, [np.ones((1, 3))])
    with pytest.raises(ValueError, match="columns of rows: expected length 3, got 2"):
        pool.begin(np.ones(1), matrix, [np.ones((1, 3)), np.ones((1, 2))])
    with pytest.raises(ValueError, match="rows of gram: expected length 1, got 2"):
        pool.begin(np.ones(1), np.ones((2, 2)), [np.ones((1, 3))] * 2)
    with pytest.raises(ValueError, match="too large"):
        pool.append([1.0], [one * 1e200], [one * 1e200])
