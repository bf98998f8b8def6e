"""Every binding checks every length, shape and index it relies on: what does not fit is a ValueError, and never read.

Run under the address sanitizer as well, where reading or writing beyond an array ends the run.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from kernel_calls import (
    POS,
    RISKS,
    SCORES,
    N,
    count_smoothing,
    counts,
    csr,
    flips,
    full,
    groups,
    linear_smoothing,
    pair_search,
    plane_smoothing,
    row_smoothing,
    table_search,
)
from kernel_cases import CASES

from metrimax import _kernels


def test_no_binding_is_left_out():
    public = {name for name in dir(_kernels) if not name.startswith("_")}
    assert public == set(CASES)


@pytest.mark.parametrize(("name", "case"), [(name, k) for name, cases in CASES.items() for k in range(len(cases[0]))])
def test_what_fits_is_taken(name, case):
    CASES[name][0][case]()


@pytest.mark.parametrize(("name", "case"), [(name, k) for name, cases in CASES.items() for k in range(len(cases[1]))])
def test_what_does_not_fit_is_refused(name, case):
    with pytest.raises(
        ValueError, match=r"expected|must|outside|do not fit|nothing was|no search|line 1|within"
    ) as error:
        CASES[name][1][case]()
    assert not isinstance(error.value, UnicodeError)


@pytest.mark.parametrize("make", RISKS.values(), ids=RISKS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -1e308])
def test_scores_that_are_no_numbers_lead_nowhere_else(make, value):
    """Sorts and searches among them stay inside their arrays; what they return is of no use."""
    for at in (slice(None), slice(0, 1), slice(2, 5)):
        scores = SCORES.copy()
        scores[at] = value
        risk = make()
        risk.cut(scores, 0.0)
        risk.cut(scores, 0.1)
        _kernels.Line(risk, SCORES, scores)(0.5)


def test_many_scores_that_are_no_numbers():
    """Enough of them for the sorts that are used for long arrays."""
    rng = np.random.default_rng(0)
    n = 3000
    y = rng.random(n) < 0.4
    pos, neg = (np.flatnonzero(one).astype(np.uint32) for one in (y, ~y))
    risks = [
        _kernels.PrecisionSearch(pos, neg, 1.0, n),
        pair_search(n, pos, neg),
        table_search(n, pos, neg, first=full(n + 1), second=full(n + 1)),
        _kernels.TopSearch(y, 100, 1.0, -0.5),
        _kernels.TopRankingSearch(np.arange(n), y.astype(np.int64), np.arange(2.0), np.ones(10) / 10, 1e-3, n),
    ]
    smoothings = [
        count_smoothing(n, pos, neg, counts(len(pos), 0, full(n + 1), full(n + 1)), 1 / n),
        linear_smoothing(n, pos, neg),
        row_smoothing(n, pos, neg),
    ]
    planes = plane_smoothing(n, pos, neg)
    for share in (0.01, 0.5, 1.0):
        for values in ([np.nan], [np.nan, np.inf, -np.inf], [np.inf], [1e308, -1e308]):
            scores = rng.normal(size=n)
            bad = rng.random(n) < share
            scores[bad] = rng.choice(values, size=int(bad.sum()))
            for risk in risks:
                risk.cut(scores)
                _kernels.Line(risk, rng.normal(size=n), scores)(0.1)
            for mu in (1e-3, 1.0):
                for smoothed in (*risks[1::2][:2], *smoothings):
                    smoothed.smooth(scores, mu)
                planes.smooth(scores, mu, np.ones(2), np.array([0.0, 1.0]), np.array([1.0, 0.0]))


TYPES = {
    "float32 for float64": lambda: _kernels.dot(full(3), full(3, dtype=np.float32)),
    "every second entry": lambda: _kernels.dot(full(3), full(6)[::2]),
    "two dimensions for one": lambda: _kernels.dot(full(3), full(3, 1)),
    "int64 for uint32": lambda: _kernels.collect(SCORES, POS.astype(np.int64), 1.0, 0.0, 1.0),
    "in a record": lambda: flips(POS.astype(np.int32)),
    "in a list": lambda: _kernels.as_columns([full(3), full(3, dtype=np.float32)]),
    "in a point": lambda: _kernels.BundleSteps(
        _kernels.CutPool(3, False, 4), 1.0, (full(3, dtype=np.float32), full(N), 0.0), 1.0,
        stride=0.1, accuracy=0.01, memory=5,
    ),
    "half of an integer": lambda: csr(1, [0], [0, 1], n_cols=2.5),  # type: ignore[arg-type]
    "no risk": lambda: groups(risks=[None]),
    "no risk either": lambda: _kernels.SumOfRisks([None], [1.0]),
    "an output that cannot be written": lambda: _kernels.add_row(np.broadcast_to(full(3), (2, 3)), full(3)),
    "what a line returns": lambda: _kernels.line_search(lambda t: 1.0, (1.0, 0.0, 0.0, 1.0), 0.0, None, 1e-3, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("case", TYPES)
def test_other_types_are_refused(case):
    """Never converted: an output would be written to a copy."""
    with pytest.raises(TypeError):
        TYPES[case]()


def test_arrays_that_are_not_aligned_are_refused():
    """The compiler takes it for granted that a double lies at a multiple of eight bytes."""
    aside = np.zeros(8 * 4 + 1, np.uint8)[1:].view(np.float64)
    assert not aside.flags.aligned
    with pytest.raises(TypeError):
        _kernels.dot(aside, full(4))
    with pytest.raises(TypeError):
        _kernels.dense_matrix(aside.reshape(2, 2))


def test_a_risk_cannot_be_made_of_nothing():
    assert inspect.isclass(_kernels.Risk)
    with pytest.raises(TypeError):
        _kernels.Risk()


def test_smoothed_risks_check_their_arguments():
    for search in (pair_search(), _kernels.TopSearch(SCORES > 0, 2, 1.0, -0.5), count_smoothing(), linear_smoothing()):
        with pytest.raises(ValueError, match="smooth: scores: expected length"):
            search.smooth(full(len(SCORES) + 1), 0.1)
        for mu in (0.0, -1.0, np.nan, np.inf):
            with pytest.raises(ValueError, match="smooth: mu: expected a positive number"):
                search.smooth(SCORES, mu)
