"""One oracle, asked by several threads at once, gives each of them what it gives one thread alone."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from kernel_calls import HOW, bundle_steps, full

from metrimax import _kernels
from metrimax.measure import CostModel, Grouped, PrecisionAtK, RecallAtK, get_measure
from metrimax.protocols import made

N, THREADS, ROUNDS = 3000, 6, 12

NAMES = ["error", "balanced_error", "f1", "prbep", "gmean", "roc_area", "average_precision", "ndcg", "partial_auc"]
MEASURES = {name: lambda name=name: get_measure(name) for name in NAMES} | {
    "precision at 50": lambda: PrecisionAtK(50),
    "recall at 50": lambda: RecallAtK(50),
    "cost": lambda: get_measure(CostModel(2.0, 1.0)),
    "grouped roc_area": lambda: Grouped(get_measure("roc_area"), np.arange(N) // 500),
    "grouped ndcg": lambda: Grouped(get_measure("ndcg"), np.arange(N) // 500),
}


@pytest.fixture
def impatient():
    """Threads that change every few instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def sample(weighted):
    rng = np.random.default_rng(0)
    y = rng.random(N) < 0.2
    weight = rng.integers(1, 4, size=N).astype(float) if weighted else None
    return y, weight, list(rng.normal(size=(8, N)) + 0.5 * (2 * y - 1))


def in_threads(ask, points):
    """What ``ask(k)`` returns for every point, asked by all threads in different orders."""

    def worker(start):
        return [(k := (start + (start + 1) * step) % points, ask(k)) for step in range(ROUNDS)]

    with ThreadPoolExecutor(THREADS) as pool:
        return [answer for answers in pool.map(worker, range(THREADS)) for answer in answers]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MEASURES)
def test_cuts_and_lines(name, weighted, impatient):
    y, weight, scores = sample(weighted)
    oracle = MEASURES[name]().oracle(y, weight)

    def ask(k):
        cut = oracle(scores[k])
        value, rise = oracle.line(scores[k], scores[0])(0.5)
        return cut.loss + cut.slope @ scores[k], value, rise

    alone = [ask(k) for k in range(len(scores))]
    for k, answer in in_threads(ask, len(scores)):
        np.testing.assert_allclose(answer, alone[k], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["error", "f1", "gmean", "roc_area"])
def test_smoothed_risks(name, impatient):
    y, _, scores = sample(False)
    y, scores = y[:300], [s[:300].copy() for s in scores]
    smooth = made(get_measure(name).oracle(y).can.smooth)

    def ask(k):
        value, cut = smooth(scores[k], 0.05)
        return np.append(cut.slope, value)

    alone = [ask(k) for k in range(len(scores))]
    for k, answer in in_threads(ask, len(scores)):
        np.testing.assert_allclose(answer, alone[k], rtol=1e-9, atol=1e-12)


def answered(ask):
    """How often many threads were answered: served, or told that what they ask is in use."""
    told = []

    def worker(_):
        for _ in range(50):
            try:
                ask()
                told.append("")
            except RuntimeError as error:
                told.append(str(error))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(worker, range(THREADS)))
    assert all("belongs to one run" in message for message in told if message)
    return len(told)


def test_what_belongs_to_one_run_refuses_a_second_thread(impatient):
    """And breaks nothing: under the address sanitizer as well."""
    rng = np.random.default_rng(0)
    pool = _kernels.CutPool(400, False, 2)
    vectors = list(rng.normal(size=(20, 400)))

    def ask():
        pool.append([0.1] * 20, vectors, [], 3)
        pool.minimise(1.0, 1e-9)
        assert len(pool.losses) > 0

    assert answered(ask) == 50 * THREADS
    matrix, one = _kernels.QuasiNewton(1.0, 5), rng.normal(size=200_000)
    assert answered(lambda: matrix.direction(one, full(0), one, full(0))) == 50 * THREADS
    sets, n, p = _kernels.WorkingSets(400, 50, 1.0), 400, 50
    entries = np.arange(n + 1) * p, np.tile(np.arange(p), n), rng.normal(size=n * p)
    sets.append(np.arange(n), np.ones(n), *entries)
    assert answered(lambda: sets.ascend(1e-12, 3)) == 50 * THREADS
    assert np.isfinite(sets.settle())


def test_an_oracle_cannot_ask_the_steps_that_ask_it():
    steps = bundle_steps()
    steps.propose([1.0], [np.ones(3)], [], **HOW)

    class Nosy:
        def __call__(self, scores):
            steps.forget()

        def line(self, scores, move):
            return lambda t: steps.forget()

    with pytest.raises(RuntimeError, match="BundleSteps is in use"):
        steps.search(Nosy(), [np.arange(6.0)])


def test_a_second_thread_is_told_while_the_first_is_served():
    entered, leave = threading.Event(), threading.Event()
    steps = bundle_steps()
    steps.propose([1.0], [np.ones(3)], [], **HOW)
    oracle = get_measure("error").oracle(np.arange(6) < 2)

    class Slow:
        def __call__(self, scores):
            return oracle(scores)

        def line(self, scores, move):
            entered.set()
            leave.wait(10)
            return oracle.line(scores, move)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(steps.search, Slow(), [np.arange(6.0)])
        assert entered.wait(10)
        with pytest.raises(RuntimeError, match="belongs to one run"):
            steps.forget()
        leave.set()
        running.result()
    steps.forget()
