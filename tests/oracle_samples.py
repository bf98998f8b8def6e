"""Samples for the tests of oracles."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

CASES = [pytest.param(case, id=case.name) for case in ref.CASES]
quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)

#: whole numbers make ties; the rest are scales at which rounding or pruning could go wrong
values = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-4, 4, allow_subnormal=False),
    st.sampled_from([0.0, -0.0, 1e-12, -1e-9, 1.0, -1.0, 1e8, -1e8, 1e5, 50.0, -50.0]),
)


@st.composite
def samples(draw, n_max=7):
    n = draw(st.integers(2, n_max))
    y = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda z: 0 < sum(z) < len(z))))
    scores, other = (np.array(draw(st.lists(values, min_size=n, max_size=n))) for _ in range(2))
    return y, scores, other


def close(a: float, b: float, scores: np.ndarray) -> bool:
    return abs(a - b) <= 1e-10 * (1 + np.abs(scores).max())


def value(cut, scores: np.ndarray) -> float:
    return cut.loss + float(cut.slope @ scores)


def large_sample(seed: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Sizes of classes and scores at many scales, some tied, as a solver meets them."""
    rng = np.random.default_rng(seed)
    n_pos, n_neg = rng.integers(1, 40), rng.integers(40, 120)
    y = rng.permutation(np.repeat([True, False], [n_pos, n_neg]))
    scores = scale * (rng.normal(size=len(y)) + rng.choice([0, 1, 2]) * np.where(y, 1, -1))
    return y, np.round(scores, 1) if seed % 3 == 0 else scores
