"""The compiled iterations of the bundle method: whoever answers for the risk, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from metrimax import _kernels
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.protocols import Cut
from metrimax.risk import run
from metrimax.solvers import Bundle, Hybrid
from metrimax.solvers.hybrid import PAUSE, VAIN


def sample(n, p, seed=0, shift=1.0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    return rng.standard_normal((n, p)) + shift * y[:, None] / np.sqrt(p), y


class InPython:
    """An oracle without its kernel."""

    def __init__(self, oracle):
        self._oracle, self.n, self.price = oracle, oracle.n, oracle.price

    def __call__(self, scores):
        return self._oracle(scores)

    def mean_cut(self, scores, mu):
        return self._oracle.mean_cut(scores, mu)

    def line(self, scores, move):
        return self._oracle.line(scores, move)


@pytest.mark.parametrize(("n", "p"), [(200, 6), (40, 90)])
@pytest.mark.parametrize("solver", [Bundle(), Hybrid(), Hybrid(plain=2)], ids=["bundle", "hybrid", "plain"])
@pytest.mark.parametrize("measure", ["f1", "prbep", "roc_area", "error", "gmean", "average_precision"])
def test_a_risk_in_python_takes_the_same_way_as_its_kernel(measure, solver, n, p):
    X, y = sample(n, p)
    design, oracle = as_design(X, intercept_scaling=1.0), get_measure(measure).oracle(y)
    weight = 3 * oracle.price * oracle.n
    kernel, python = (
        run(design, [solver.steps(one, design, weight, tol=1e-4)])[0] for one in (oracle, InPython(oracle))
    )
    assert kernel.status.ok
    assert kernel.n_iter == python.n_iter
    np.testing.assert_array_equal(kernel.w, python.w)
    assert kernel.bound == python.bound


def steps(images=False, n=5, width=3):
    pool = _kernels.CutPool(n if images else width, images, 8)
    point = np.zeros(n if images else width)
    return _kernels.BundleSteps(pool, 1.0, 0.1, 0.02, 10, point, np.zeros(n), 0.0, 1.0)


def zero_risk(n=5):
    return get_measure("error").oracle(np.arange(n) < 2).compiled


def proposed(one, tol=1e-3):
    return one.propose([1.0], [np.array([-1.0, 0.0, 0.5])], [], 12, 1e-9, tol, False)


def test_a_gap_that_is_closed_asks_for_nothing():
    one = steps()
    assert len(proposed(one)) == 1
    assert one.bound == pytest.approx(0.4)  # with 0.8 of the cut and the rest of R >= 0
    assert proposed(steps(), tol=1.0) == []


def test_what_does_not_fit_is_refused():
    pool = _kernels.CutPool(3, False, 8)
    with pytest.raises(ValueError, match="entries: expected length 3, got 4"):
        _kernels.BundleSteps(pool, 1.0, 0.1, 0.02, 10, np.zeros(4), np.zeros(5), 0.0, 1.0)
    with pytest.raises(ValueError, match="as many entries as scores"):
        _kernels.BundleSteps(_kernels.CutPool(3, True, 8), 1.0, 0.1, 0.02, 10, np.zeros(3), np.zeros(5), 0.0, 1.0)
    with pytest.raises(ValueError, match="one pair or more, got 0"):
        _kernels.BundleSteps(pool, 1.0, 0.1, 0.02, 0, np.zeros(3), np.zeros(5), 0.0, 1.0)
    with pytest.raises(TypeError):
        _kernels.BundleSteps(pool, 1.0, 0.1, 0.02, 10, np.zeros(3, np.float32), np.zeros(5), 0.0, 1.0)
    with pytest.raises(ValueError, match="needs the slope at the best point"):
        steps().propose([], [], [], 12, 1e-9, 1e-3, True)
    with pytest.raises(ValueError, match="nothing was proposed"):
        steps().search(zero_risk(), [])
    with pytest.raises(ValueError, match="no search came before"):
        steps().cuts(zero_risk(), 0.0, None)
    one = steps()
    proposed(one)
    with pytest.raises(ValueError, match="no search came before"):
        one.cuts(zero_risk(), 0.0, None)
    with pytest.raises(ValueError, match="scores: expected length 1, got 2"):
        one.search(zero_risk(), [np.zeros(5), np.zeros(5)])
    with pytest.raises(ValueError, match="scores: expected length 5, got 4"):
        one.search(zero_risk(), [np.zeros(4)])
    with pytest.raises(ValueError, match="of another sample"):
        one.search(zero_risk(6), [np.zeros(5)])
    one.search(zero_risk(), [np.arange(5.0)])
    losses, slopes = one.cuts(zero_risk(), 0.0, 0.1)
    assert len(losses) == len(slopes) == 2


def test_an_oracle_that_answers_wrongly_is_told_so():
    class Short:
        def __call__(self, scores):
            return Cut(1.0, np.zeros(2))

    class Failing:
        def __call__(self, scores):
            raise RuntimeError("no such labelling")

    one = steps()
    proposed(one)
    with pytest.raises(ValueError, match="slope of a cut: expected length 5, got 2"):
        one.search(Short(), [np.arange(5.0)])
    with pytest.raises(RuntimeError, match="no such labelling"):
        one.search(Failing(), [np.arange(5.0)])


def test_directions_that_lead_nowhere_make_room_for_plain_iterations(monkeypatch):
    X, y = sample(600, 8, seed=1, shift=0.9)
    design, oracle, asked = as_design(X, intercept_scaling=1.0), get_measure("f1").oracle(y), []

    class Watched:
        shape = design.shape

        def products(self, product, vectors):
            asked.append(len(vectors))
            return design.products(product, vectors)

    class Useless(_kernels.BundleSteps):
        """Its directions are uphill."""

        def search(self, oracle, scores):
            for move in scores[1:]:
                move *= -1
            super().search(oracle, scores)

    monkeypatch.setattr(_kernels, "BundleSteps", Useless)
    weight = 100 * oracle.price * oracle.n
    [solution] = run(Watched(), [Hybrid().steps(oracle, design, weight, tol=1e-6)])
    assert solution.status.ok
    first, then = 2 * VAIN, 2 * (VAIN + PAUSE)  # two products an iteration
    assert asked[:first] == [2] * first
    assert asked[first:then] == [1] * (then - first)
    assert asked[then : then + 2] == [2, 2], "another try"
    assert asked[then + 2 :][: 4 * PAUSE] == [1] * min(4 * PAUSE, len(asked) - then - 2), "and twice as long a pause"
    [other] = run(design, [Bundle().steps(oracle, design, weight, tol=1e-6)])
    assert solution.objective == pytest.approx(other.objective, abs=2e-6 * weight)
