"""The compiled line search: the minimum to the accuracy asked for, whatever function gives the risk."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from metrimax import _kernels


class Planes:
    """The maximum of planes in t, counting how often it was asked."""

    def __init__(self, values, rises):
        self.values, self.rises = np.asarray(values, float), np.asarray(rises, float)
        self.asked = []

    def __call__(self, t):
        self.asked.append(t)
        k = np.argmax(self.values + t * self.rises)
        return float(self.values[k] + t * self.rises[k]), float(self.rises[k])

    def __getitem__(self, t):
        return float(np.max(self.values + t * self.rises))


numbers = st.floats(-3, 3, allow_nan=False)


@given(
    st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8), st.floats(0.1, 3), numbers, st.floats(0.1, 4),
    st.sampled_from([0.1, 1.0]), st.booleans(),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_least_value(planes, lam, cross, bend, reach, tangent):
    line = Planes(*zip(*planes, strict=True))
    square = 20.0  # longer than what any move takes off
    given_tangent = max(planes) if tangent else None  # the plane that is highest at 0, or what the line says there

    def phi(t):
        return lam / 2 * (square + 2 * t * cross + t * t * bend) + line[t]

    t, risk = _kernels.line_search(line, (lam, square, cross, bend), line[0.0], given_tangent, 1e-9, reach)
    assert risk == pytest.approx(line[t])
    far = 2 + 2 * (abs(cross) + 3 / lam) / bend  # beyond this the parabola only rises
    best = min(phi(0.0), minimize_scalar(phi, bounds=(0, far), method="bounded", options={"xatol": 1e-10}).fun)
    assert phi(t) <= best + 1e-6
    assert min(line.asked) >= 0


def test_ends_as_soon_as_the_accuracy_is_proven():
    line = Planes([1.0, 0.0], [-1.0, 1.0])
    loose = _kernels.line_search(line, (1.0, 0.0, 0.0, 1.0), 1.0, (1.0, -1.0), 10.0, 1.0)
    assert len(line.asked) == 1
    assert loose == (1.0, 1.0) or loose == (0.0, 1.0)


def test_the_search_widens_by_more_every_time():
    line = Planes([1.0], [-1.0])
    _kernels.line_search(line, (0.1, 0.0, 0.0, 1.0), 1.0, (1.0, -1.0), 1e-9, 0.01)
    widened = np.array(line.asked[: 1 + np.argmax(line.asked)])
    assert widened[-1] > 10, "the minimum"
    np.testing.assert_allclose(widened[1:] / widened[:-1], 2.0 ** np.arange(1, len(widened)))


@pytest.mark.parametrize("images", [False, True])
def test_descent_from_a_point(images):
    """Against the same search on numbers: what it takes from the vectors, and where it leaves them."""
    rng = np.random.default_rng(0)
    K = (lambda root: root @ root.T)(rng.normal(size=(9, 9))) if images else rng.normal(size=(23, 9))
    point, move = rng.normal(size=9), rng.normal(size=9)
    start, way = K @ point, K @ move
    dual = way if images else move
    parabola = 0.7, 50.0, point @ dual, move @ dual
    line, tangent = Planes([1.0, 0.0], [-40.0, 40.0]), (1.0, -40.0)
    t, risk = _kernels.line_search(line, parabola, line[0.0], tangent, 1e-9, 1.0)
    assert t > 0
    there, scores = point.copy(), start.copy()
    found = _kernels.descend(
        line, 0.7, (there, scores, 50.0), line[0.0], (move, way), images=images, tangent=tangent, accuracy=1e-9
    )
    np.testing.assert_allclose(found, (t, risk, 50.0 + 2 * t * parabola[2] + t**2 * parabola[3]), rtol=1e-12)
    np.testing.assert_allclose(there, point + t * move, rtol=1e-12)
    np.testing.assert_allclose(scores, start + t * way, rtol=1e-12)


def test_without_a_step_nothing_moves():
    line, point, move = Planes([1.0], [2.0]), np.ones(1), np.ones(1)
    how = {"images": False, "tangent": (1.0, 2.0), "accuracy": 1e-3}
    assert _kernels.descend(line, 1.0, (point, point, 1.0), 1.0, (move, move), **how) == (0.0, 1.0, 1.0)
    assert point == 1


def test_descent_refuses_vectors_that_do_not_fit():
    line, one, two = Planes([1.0], [-1.0]), np.ones(1), np.ones(2)
    for wrong, message in [
        ((one, two, two, two, False), "move: expected length 1, got 2"),
        ((one, two, one, one, False), "move_scores: expected length 2, got 1"),
        ((one, two, one, two, True), "as many entries as scores"),
    ]:
        point, scores, move, way, images = wrong
        with pytest.raises(ValueError, match=message):
            _kernels.descend(
                line, 1.0, (point, scores, 0.0), 1.0, (move, way), images=images, tangent=(1.0, -1.0), accuracy=1e-3
            )
    assert line.asked == []


def test_a_direction_that_rises_is_not_taken():
    line = Planes([1.0], [2.0])
    assert _kernels.line_search(line, (1.0, 1.0, 0.5, 1.0), 1.0, None, 1e-9, 1.0) == (0.0, 1.0)


def test_a_step_is_found_from_near_the_start():
    """Where searches begin after many without a step."""
    t, _ = _kernels.line_search(Planes([1.0, 0.0], [-1.0, 1.0]), (0.01, 0.0, 0.0, 1.0), 1.0, None, 1e-9, 1e-3)
    assert t == pytest.approx(0.5)


def test_what_the_risk_raises_comes_through():
    def line(t):
        raise ArithmeticError("no risk here")

    with pytest.raises(ArithmeticError, match="no risk here"):
        _kernels.line_search(line, (1.0, 0.0, 0.0, 1.0), 1.0, None, 1e-3, 1.0)
