"""Means of cuts in the bundle method and along C: fewer iterations on many features, never a lost certificate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.protocols import Cut
from metrimax.solvers import Auto, Bundle, Hybrid
from metrimax.training.lockstep import run
from metrimax.training.path import along


class Other:
    """An oracle with another mean of cuts: ``mean(oracle, scores, mu)``; the means asked for are noted."""

    def __init__(self, oracle, mean):
        self._oracle, self._mean, self.asked = oracle, mean, []

    def __getattr__(self, name):
        return getattr(self._oracle, name)

    @property
    def can(self):
        return replace(self._oracle.can, compiled=None)

    def __call__(self, scores):
        self.asked.append(None)
        return self._oracle(scores)

    def mean_cut(self, scores, mu):
        self.asked.append(mu)
        return self._mean(self._oracle, scores, mu)


def exact(oracle, scores, mu):
    return oracle(scores)


def useless(oracle, scores, mu):
    """A plane under every risk, but one that is known."""
    return Cut(0.0, np.zeros(len(scores)))


def text(n=400, p=2000, words=12):
    """Rows of a few words each, of which some tell the classes apart."""
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.2
    rows = np.repeat(np.arange(n), words)
    columns = (p * rng.random(n * words) ** 3).astype(int)
    columns[y[rows] & (rng.random(n * words) < 0.2)] //= 4
    return sparse.csr_matrix((np.full(n * words, words**-0.5), (rows, columns)), shape=(n, p)), y


def problem(X, y, measure="f1"):
    return as_design(X, intercept_scaling=1.0), get_measure(measure).oracle(y)


@pytest.mark.parametrize("measure", ["f1", "prbep"])
@pytest.mark.parametrize("solver", [Bundle(), Hybrid(), Hybrid(plain=8)], ids=["bundle", "hybrid", "plain"])
def test_means_that_say_nothing_new_do_not_stop_a_run(solver, measure):
    rng = np.random.default_rng(1)
    y = rng.random(150) < 0.3
    design, oracle = problem(rng.normal(size=(150, 5)) + 0.6 * y[:, None], y, measure)
    weight = 4 * oracle.price * oracle.n
    [truth] = run(design, [Bundle().steps(oracle, design, weight, tol=1e-7)])
    [solution] = run(design, [solver.steps(Other(oracle, useless), design, weight, tol=1e-5)])
    assert solution.status.ok
    assert solution.objective / weight == pytest.approx(truth.objective / weight, abs=1e-5)


def test_the_cut_is_exact_after_an_iteration_of_little_use_and_else_a_mean_within_the_gap():
    design, oracle = problem(*text())
    other = Other(oracle, useless)  # every mean is of little use: each is followed by an exact cut
    [solution] = run(design, [Bundle().steps(other, design, 64 * oracle.price * oracle.n, tol=1e-2)])
    gaps = [record.gap for record in solution.history]
    before = [np.inf, *gaps]
    wanted = [gap if gap <= 0.99 * last else None for gap, last in zip(gaps[:-1], before, strict=False)]
    zero = sum(record.objective == oracle(np.zeros(design.shape[0])).loss for record in solution.history)
    assert other.asked[: zero + 2] == [None] * (zero + 2)  # at w = 0, and ahead of it for as long as it was the best
    assert other.asked[zero + 2 :] == wanted[zero:]
    assert 0 < other.asked.count(None) < len(other.asked)


@pytest.mark.parametrize("measure", ["f1", "prbep"])
def test_on_many_features_a_mean_stands_for_many_cuts(measure):
    design, oracle = problem(*text(), measure)
    weight = 16 * oracle.price * oracle.n
    [means, cuts] = (
        run(design, [Bundle().steps(given, design, weight, tol=1e-3)])[0] for given in (oracle, Other(oracle, exact))
    )
    assert means.status.ok
    assert cuts.status.ok
    assert means.n_iter < 0.8 * cuts.n_iter


def test_a_path_on_many_features_takes_few_passes_and_keeps_every_certificate():
    design, oracle = problem(*text())
    weights = np.exp2(np.arange(-6.0, 7.0)) * oracle.price * oracle.n
    [path] = run(design, [along(Auto(), oracle, design, weights, tol=1e-3)])
    alone = [run(design, [Auto().steps(oracle, design, weight, tol=1e-3)])[0] for weight in weights]
    for weight, point, one in zip(weights, path, alone, strict=True):
        assert point.gap <= 1e-3
        assert abs(point.objective - one.objective) <= 1e-3 * weight
    assert sum(point.n_passes for point in path) < 0.85 * sum(one.n_passes for one in alone)
