"""SVM-perf's losses: the argmax against all labellings, with the formulas written out once more."""

from __future__ import annotations

import itertools
from math import exp, floor, log, sqrt

import numpy as np
import pytest

from metrimax.compat.losses import StoredTableOracle, loss_for

CODES = (0, 1, 2, 3, 4, 5, 12, 13, 16, 20, 21, 22, 23, 24, 25, 26, 27)


def delta(code: int, a: int, b: int, c: int, d: int, k: int, beta: float) -> float | None:
    """Delta in SVM-perf's units; None where the labelling is not searched."""
    P, N = a + c, b + d
    n = P + N
    f1 = 2 * a / (2 * a + b + c) if a else 0.0
    gm = sqrt(a / P * d / N)
    share = 1 - abs(c - b) / max(P, N)
    p, ph = (P + 0.5) / (n + 1), (a + b + 0.5) / (n + 1)
    q, qh = (N + 0.5) / (n + 1), (c + d + 0.5) / (n + 1)
    kld = p * log(p / ph) + q * log(q / qh) if a + b != P else 0.0

    def Q(part: float) -> float | None:
        below = beta**2 * part + share
        return None if below == 0 else 100 * (1 - (1 + beta**2) * share * part / below)

    restricted = {
        3: 100 * (1 - a / P) if a + b == P else None,
        4: 100 * (1 - (a / (a + b) if a + b else 0)) if a + b >= k else None,
        5: 100 * (1 - a / P) if a + b <= k else None,
    }
    if code in restricted:
        return restricted[code]
    return {
        0: float(b + c > 0),
        1: 100 * (1 - f1),
        2: 100 * (b + c) / n,
        12: kld,
        13: 100 - 200 / (1 + exp(kld)),
        16: 100.0 * (b + c) * abs(b - c),
        20: 100 * (1 - gm),
        21: 100 * abs(c - b) / max(P, N),
        22: Q(a / P),
        23: Q((a + d) / n),
        24: Q(f1),
        25: Q(gm),
        26: 100 * abs(c - b) / n,
        27: 50 * (abs(c - b) / (P + 0.5) + abs(c - b) / (N + 0.5)),
    }[code]


def brute_force(code: int, y: np.ndarray, s: np.ndarray, k: int, beta: float) -> float:
    """xi: the most violated labelling with a positive loss, or 0."""
    best = 0.0
    for z in map(np.array, itertools.product([False, True], repeat=len(y))):
        a, b, c, d = (int(v.sum()) for v in (y & z, ~y & z, y & ~z, ~y & ~z))
        loss = delta(code, a, b, c, d, k, beta)
        if loss is not None and loss > 1e-11:
            best = max(best, loss - 100 / len(y) * (s[y & ~z].sum() - s[~y & z].sum()))
    return best


@pytest.mark.parametrize("code", CODES)
def test_argmax_equals_brute_force(code: int) -> None:
    rng = np.random.default_rng(code)
    shares = {4: (0, 0.3, 1), 5: (0, 1, 3)}.get(code, (0,))
    for trial in range(40):
        n = int(rng.integers(2, 8))
        y = rng.random(n) < rng.random()
        y[:2] = True, False
        s = rng.normal(size=n) * rng.choice([0, 0.3, 2, 20])
        s = np.round(s) if trial % 3 == 0 else s
        n_pos = int(y.sum())
        for p in shares:
            beta = float(rng.choice([0.5, 1, 2]))
            k = max(1, floor((p or {4: 0.5, 5: 2}.get(code, 0)) * n_pos))
            cut = loss_for(code, n=n, n_pos=n_pos, p=p, beta=beta).oracle(y)(s)
            expected = brute_force(code, y, s, k, beta)
            assert 100 * (cut.loss + cut.slope @ s) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("code", [22, 25])
def test_stored_table_equals_the_plain_scan(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y = rng.random(120) < 0.3
    stored = loss_for(code, n=120, n_pos=int(y.sum())).oracle(y)
    monkeypatch.setattr(StoredTableOracle, "most", 0)
    monkeypatch.setattr(StoredTableOracle, "block", 500)
    scanned = loss_for(code, n=120, n_pos=int(y.sum())).oracle(y)
    for scale in (0.1, 1.0, 10.0):
        s = scale * rng.normal(size=120)
        values = [cut.loss + cut.slope @ s for cut in (stored(s), scanned(s))]
        assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize("code", [4, 5, 12, 26])
def test_line_equals_cuts(code: int) -> None:
    """The line search's short cut has to respect what is not a candidate."""
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.4
    oracle = loss_for(code, n=60, n_pos=int(y.sum())).oracle(y)
    s, move = rng.normal(size=(2, 60))
    along = oracle.line(s, move)
    for t in np.linspace(0, 2, 9):
        cut = oracle(s + t * move)
        assert along(t)[0] == pytest.approx(cut.loss + cut.slope @ (s + t * move), abs=1e-12)


def test_bad_codes() -> None:
    with pytest.raises(ValueError, match="unknown loss code 7"):
        loss_for(7, n=5, n_pos=2)
    with pytest.raises(ValueError, match="--p of at most 1 for Prec@k"):
        loss_for(4, n=5, n_pos=2, p=2)
    with pytest.raises(ValueError, match="--p of at least 1 for Rec@k"):
        loss_for(5, n=5, n_pos=2, p=0.5)
