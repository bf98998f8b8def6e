"""Matrices and slopes for the tests of designs."""


def random_matrix(rng, n, p, dtype):
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.4)
    X[n // 2] = 0  # an empty row
    return X.astype(dtype)


def coefficients(rng, *shape):
    """Slopes as oracles return them: many zeros, and rows that are zero throughout."""
    c = rng.standard_normal(shape) * (rng.random(shape) < 0.5)
    c[rng.random(shape[0]) < 0.3] = 0
    return c
