"""The compiled iterations of the bundle method: whoever answers for the risk, and what they refuse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from metrimax import _kernels
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.protocols import Capabilities, Cut
from metrimax.solvers import Bundle, Hybrid
from metrimax.training.lockstep import run


def sample(n, p, seed=0, shift=1.0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    return rng.standard_normal((n, p)) + shift * y[:, None] / np.sqrt(p), y


class InPython:
    """An oracle without its kernel."""

    def __init__(self, oracle):
        self._oracle, self.n, self.price, self.can = oracle, oracle.n, oracle.price, Capabilities()

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


HOW = {"patience": 12, "precision": 1e-9, "tol": 1e-3, "quasi_newton": False}


def steps(pool=None, n=5, risk=1.0):
    pool = pool or _kernels.CutPool(3, False, 8)
    point = np.zeros(len(pool.rows[0][0])), np.zeros(n), 0.0
    return _kernels.BundleSteps(pool, 1.0, point, risk, stride=0.1, accuracy=0.02, memory=10)


def zero_risk(n=5):
    return get_measure("error").oracle(np.arange(n) < 2).compiled


def proposed(one, tol=1e-3):
    return one.propose(
        [1.0], [np.array([-1.0, 0.0, 0.5])], [], patience=12, precision=1e-9, tol=tol, quasi_newton=False
    )


def test_a_gap_that_is_closed_asks_for_nothing():
    one = steps()
    assert len(proposed(one)) == 1
    assert one.bound == pytest.approx(0.4)  # with 0.8 of the cut and the rest of R >= 0
    assert proposed(steps(), tol=1.0) == []


def test_what_does_not_fit_is_refused():
    pool = _kernels.CutPool(3, False, 8)

    def begun(entries, scores, pool=pool, memory=10):
        return _kernels.BundleSteps(pool, 1.0, (entries, scores, 0.0), 1.0, stride=0.1, accuracy=0.02, memory=memory)

    with pytest.raises(ValueError, match="entries: expected length 3, got 4"):
        begun(np.zeros(4), np.zeros(5))
    with pytest.raises(ValueError, match="as many entries as scores"):
        begun(np.zeros(3), np.zeros(5), _kernels.CutPool(3, True, 8))
    with pytest.raises(ValueError, match="memory of 1 to 1000 pairs"):
        begun(np.zeros(3), np.zeros(5), memory=0)
    with pytest.raises(TypeError):
        begun(np.zeros(3, np.float32), np.zeros(5))
    with pytest.raises(ValueError, match="needs the slope at the best point"):
        steps().propose([], [], [], **HOW | {"quasi_newton": True})
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
    one.search(zero_risk(), [np.arange(5.0)])
    losses, slopes = one.cuts(zero_risk(), 0.0, 0.1)
    assert len(losses) == len(slopes) == 2
    proposed(one)
    with pytest.raises(ValueError, match="sample of the oracle: expected length 5, got 6"):
        one.search(zero_risk(6), [np.zeros(5)])


def test_vectors_with_images_need_no_scores():
    pool = _kernels.CutPool(5, True, 8)
    one, slope, image = steps(pool), np.linspace(-1, 1, 5), np.linspace(-2, 2, 5)
    with pytest.raises(ValueError, match="images: expected length 1, got 0"):
        one.propose([1.0], [slope], [], **HOW)
    assert len(one.propose([1.0], [slope], [image], **HOW)) == 1
    with pytest.raises(ValueError, match="scores: expected length 0, got 1"):
        one.search(zero_risk(), [np.zeros(5)])
    one.search(zero_risk(), [])
    assert len(one.cuts(zero_risk(), 0.0, None)[0]) == 1


def test_cuts_that_were_given_stay_until_a_program_has_seen_them():
    """On a path they were idle for the last C; the next one may want them."""
    pool = _kernels.CutPool(3, False, 8)
    one = steps(pool)
    proposed(one)
    pool.append([0.1] * 4, list(np.eye(4, 3)), [])
    for _ in range(3):
        pool.minimise(1.0, 1e-9)
    size = pool.size
    steps(pool).propose([], [], [], **HOW | {"patience": 1})
    assert pool.size == size
    steps(pool).propose([0.2], [np.ones(3)], [], **HOW | {"patience": 1})
    assert pool.size < size + 1, "with a new one they make room"


class Answering:
    """An oracle that answers what it is told to: a cut, or an error to raise; and its line."""

    def __init__(self, cut, along=None):
        self._cut, self._along = cut, along

    def __call__(self, scores):
        if isinstance(self._cut, Exception):
            raise self._cut
        return self._cut

    def line(self, scores, move):
        return lambda t: self._along


@pytest.mark.parametrize(
    ("oracle", "error", "message"),
    [
        (Answering(Cut(1.0, np.zeros(2))), ValueError, "slope of a cut: expected length 5, got 2"),
        (Answering(Cut(1.0, [0.0] * 5)), TypeError, "slope of a cut as an array of float64, got <class 'list'>"),
        (Answering(Cut("1", np.zeros(5))), TypeError, "loss of a cut as a number, got <class 'str'>"),
        (
            Answering(Cut(0.4, np.linspace(-1, 0, 5)), "risk"),
            TypeError,
            "two numbers of a risk along a line, value and rise, got <class 'str'>",
        ),
        (Answering(RuntimeError("no such labelling")), RuntimeError, "no such labelling"),
    ],
)
def test_an_oracle_that_answers_wrongly_is_told_so(oracle, error, message):
    one = steps()
    proposed(one)
    with pytest.raises(error, match=message):
        one.search(oracle, [np.arange(5.0)])
    with pytest.raises(ValueError, match="nothing was proposed"):  # there is no going on from there
        one.search(zero_risk(), [np.arange(5.0)])
    with pytest.raises(ValueError, match="no search came before"):
        one.cuts(zero_risk(), 0.0, None)


def test_cuts_are_asked_for_once():
    one = steps()
    proposed(one)
    one.search(zero_risk(), [np.arange(5.0)])
    one.cuts(zero_risk(), 0.0, None)
    with pytest.raises(ValueError, match="no search came before"):
        one.cuts(zero_risk(), 0.0, None)


def test_the_last_iteration_asks_for_no_cut():
    X, y = sample(200, 6)
    design, oracle = as_design(X, intercept_scaling=1.0), InPython(get_measure("f1").oracle(y))
    asked = []
    oracle.mean_cut = lambda scores, mu: asked.append(mu) or oracle._oracle.mean_cut(scores, mu)
    for most in (0, 3):
        asked.clear()
        [solution] = run(design, [Bundle(most).steps(oracle, design, 30 * oracle.n, tol=1e-9)])
        assert solution.n_iter == most
        assert len(asked) <= max(most - 1, 0)
        assert (solution.n_passes > most) == (most > 0)
        assert solution.n_passes <= 2 * most


def test_directions_that_lead_nowhere_make_room_for_plain_iterations(monkeypatch):
    X, y = sample(600, 8, seed=1, shift=0.9)
    design, oracle, asked = as_design(X, intercept_scaling=1.0), get_measure("f1").oracle(y), []

    class Watched:
        shape = design.shape
        rows = property(lambda self: self)

        def products(self, product, vectors):
            asked.append(len(vectors))
            return design.rows.products(product, vectors)

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
    runs = [(count, len(list(group))) for count, group in itertools.groupby(asked[:-2])]
    runs = list(itertools.dropwhile(lambda group: group[0] == 1 or group[1] <= 2, runs))  # the way out of w = 0
    assert [count for count, _ in runs[:4]] == [2, 1, 2, 1], "a pause after directions in vain, and another try"
    assert runs[1][1] > runs[0][1] > 2
    assert runs[2][1] < runs[0][1], "which is given up sooner"
    assert runs[3][1] > runs[1][1] or len(runs) == 4, "and a longer pause"
    [other] = run(design, [Bundle().steps(oracle, design, weight, tol=1e-6)])
    assert solution.objective == pytest.approx(other.objective, abs=2e-6 * weight)


def with_pairs(images):
    """Steps of a run after a few iterations, its pool, and what gives more steps from the same point."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 20)), rng.random(80) < 0.4
    K = X @ X.T
    oracle = get_measure("f1").oracle(y).can.compiled
    width = 80 if images else 20
    pool = _kernels.CutPool(width, images, 40)

    def made():
        point = np.zeros(width), np.zeros(80), 0.0
        return _kernels.BundleSteps(pool, 1e-4, point, 1.0, stride=0.1, accuracy=0.02, memory=5)

    steps = made()
    losses, slopes = [1.0], [oracle.cut(np.zeros(80))[1]]
    for _ in range(9):
        vectors = slopes if images else [X.T @ slope for slope in slopes]
        scored = [K @ slope for slope in slopes] if images else []
        moves = steps.propose(losses, vectors, scored, patience=50, precision=1e-12, tol=0.0, quasi_newton=True)
        if not moves:
            break
        steps.search(oracle, [] if images else [X @ move for move in moves])
        losses, slopes = steps.cuts(oracle, 1e-3, 1e-3)
    return steps, made


@pytest.mark.parametrize("images", [False, True])
def test_pairs_are_kept_to_go_on_with(images):
    steps, made = with_pairs(images)
    kept = steps.kept()
    other = made()
    assert list(other.kept()) == ["pace"]
    other.go_on(kept["pace"], kept["pairs"])
    assert sorted(kept) == sorted(other.kept()) == ["pace", "pairs"]
    for name, values in other.kept().items():
        np.testing.assert_array_equal(values, kept[name])
    assert len(kept["pairs"]) == (2 if images else 1) * 2 * (1 + 5)  # the last point and gradient, five pairs
    assert other.in_vain == steps.in_vain


@pytest.mark.parametrize("images", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda pace, pairs: (pace[:3], pairs),
        lambda pace, pairs: (np.full(4, np.nan), pairs),
        lambda pace, pairs: (pace, pairs[:-1]),
        lambda pace, pairs: (pace, pairs[:0]),
        lambda pace, pairs: (pace, np.vstack([pairs] * 8)),
        lambda pace, pairs: (pace, np.ascontiguousarray(pairs[:, :-1])),
        lambda pace, pairs: (pace, pairs + np.inf),
    ],
)
def test_pairs_that_do_not_fit_are_left_alone(images, change):
    steps, made = with_pairs(images)
    kept, other, fresh = steps.kept(), made(), made().kept()
    pace, pairs = change(kept["pace"].copy(), kept["pairs"].copy())
    other.go_on(pace, pairs)
    assert list(other.kept()) == ["pace"]
    fits = pace.shape == (4,) and np.isfinite(pace).all()  # then it is of use without pairs
    np.testing.assert_array_equal(other.kept()["pace"][:3], (kept if fits else fresh)["pace"][:3])
