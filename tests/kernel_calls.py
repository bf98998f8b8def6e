"""Calls of the compiled kernels with small arguments that fit, any of which can be given another size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metrimax import _kernels

N = 6  # examples of the sample
Y = np.array([True, False, True, False, False, False])
POS, NEG = (np.flatnonzero(y).astype(np.uint32) for y in (Y, ~Y))
SCORES = np.array([0.3, -0.2, 0.9, 0.4, -1.0, 0.1])


def full(*shape: int, dtype: Any = np.float64) -> Any:
    """An array of its own memory, so that the sanitizer knows where it ends."""
    return np.zeros(shape, dtype=dtype)


BY_COUNT, NONE = full(N + 1), full(0)


def flips(members: Any = POS, sign: float = 1.0) -> Any:
    return _kernels.FlipClass(members, sign=sign, step=1 / N, low=-np.inf, high=np.inf)


def weighted_flips(members: Any = POS, sign: float = 1.0, weights: Any = None, units: int = 3) -> Any:
    weights = np.full(N, 0.75) if weights is None else weights
    return _kernels.FlipClass.weighted(members, sign=sign, step=1 / N, weights=weights, units=units)


def weighted_search(weights: Any = None, units: int = 3, structure: str = "max", first: Any = None) -> Any:
    first = full(4) if first is None else first
    second = full(4) if structure == "max" else np.array([1.0, 0.0, 0.0])
    pos, neg = weighted_flips(POS, 1.0, weights, units), weighted_flips(NEG, -1.0)
    return _kernels.TableSearch(N, pos, neg, table_loss(structure, first, second))


def table_loss(structure: str, first: Any, second: Any, m_low: int = 0, rising: bool = False) -> Any:
    return _kernels.TableLoss(structure, first, second, m_low=m_low, top=1.0, rising=rising)


def table_search(
    size: int = N,
    pos: Any = POS,
    neg: Any = NEG,
    structure: str = "count",
    first: Any = BY_COUNT,
    second: Any = BY_COUNT,
    m_low: int = 0,
    rising: bool = False,
) -> Any:
    loss = table_loss(structure, first, second, m_low, rising)
    return _kernels.TableSearch(size, flips(pos), flips(neg, -1.0), loss)


def pair_search(size: int = N, pos: Any = POS, neg: Any = NEG, w: Any = NONE, v: Any = NONE) -> Any:
    return _kernels.PairSearch(size, _kernels.PairClass(pos, 1.0, w), _kernels.PairClass(neg, -1.0, v), 8.0)


def queue(size: int = 2, first: int = 0) -> Any:
    return _kernels.Queue(np.arange(float(size)), first, 0.0, 0.1)


def counts(n_pos: int = 2, m_low: int = 0, u: Any = BY_COUNT, v: Any = BY_COUNT) -> Any:
    return _kernels.CountLoss(n_pos, m_low, u, v)


def count_smoothing(size: int = N, pos: Any = POS, neg: Any = NEG, loss: Any = None, step: float = 1 / N) -> Any:
    classes = _kernels.PairClass(pos, 1.0, NONE), _kernels.PairClass(neg, -1.0, NONE)
    return _kernels.CountSmoothing(size, *classes, step, counts() if loss is None else loss)


def linear_smoothing(size: int = N, pos: Any = POS, neg: Any = NEG, step: float = 1 / N, loss: Any = (0.5, 0.1)) -> Any:
    classes = _kernels.PairClass(pos, 1.0, NONE), _kernels.PairClass(neg, -1.0, NONE)
    return _kernels.LinearSmoothing(size, *classes, (step, 1 / N), loss)


def row_smoothing(size: int = N, pos: Any = POS, neg: Any = NEG, step: float = 1 / N, g: Any = None) -> Any:
    classes = _kernels.PairClass(pos, 1.0, NONE), _kernels.PairClass(neg, -1.0, NONE)
    g = 1 / (1 + np.arange(len(neg) + 1.0)) if g is None else g
    return _kernels.RowSmoothing(size, *classes, (step, 1 / N), 1 / max(1, len(pos)), g)


def plane_smoothing(size: int = N, pos: Any = POS, neg: Any = NEG, step: float = 1 / N) -> Any:
    classes = _kernels.PairClass(pos, 1.0, NONE), _kernels.PairClass(neg, -1.0, NONE)
    return _kernels.PlaneSmoothing(size, *classes, (step, 1 / N))


def csr(data: Any, indices: Any, indptr: Any, n_cols: int = 3, trusted: bool = False) -> Any:
    indices, indptr = np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)
    return _kernels.csr_matrix(np.ones(data), indices, indptr, n_cols, trusted=trusted)


def ramp(size: int = 4, weights: int = 0) -> Any:
    return _kernels.Ramp(np.arange(float(size)), np.ones(weights))


def hinges(squares: int = 2, sign: int = 2, margin: int = 2, upper: int = 2) -> Any:
    sizes = {"squares": squares, "sign": sign, "margin": margin, "upper": upper}
    return _kernels.HingeSum(**{name: np.ones(size) for name, size in sizes.items()})


def dual_cd(
    matrix: Any = None, size: int = 2, alpha: int = 2, w: int = 3, rows: tuple[int, ...] = (0, 1), bias: float = 0.0
) -> Any:
    matrix = csr(2, [0, 2], [0, 1, 2]) if matrix is None else matrix
    working = np.array(rows, dtype=np.int64), -np.inf, np.inf, 0.0
    return _kernels.dual_cd(
        matrix, bias, hinges(size, size, size, size), full(alpha), full(w), working,
        again=True, tol=1e-3, gap=0.0, max_visits=10,
    )  # fmt: skip


def pair_cd(
    matrix: Any = None, size: int = 2, alpha: int = 2, w: int = 3, rows: tuple[int, ...] = (0, 1), gram: bool = False
) -> Any:
    matrix = csr(2, [0, 2], [0, 1, 2]) if matrix is None else matrix
    return _kernels.pair_cd(
        matrix, hinges(size, size, size, size), full(alpha), full(w), np.array(rows, dtype=np.int64),
        tol=1e-3, max_visits=10, gram=gram,
    )  # fmt: skip


def bundle_steps(pool: Any = None, entries: int = 3, scores: int = N, memory: int = 5, lam: float = 1.0) -> Any:
    pool = pool or _kernels.CutPool(3, False, 4)
    return _kernels.BundleSteps(
        pool, lam, (full(entries), full(scores), 0.0), 1.0, stride=0.1, accuracy=0.01, memory=memory
    )


HOW: dict[str, Any] = {"patience": 5, "precision": 1e-9, "tol": 1e-3, "quasi_newton": False}


def proposed() -> Any:
    steps = bundle_steps()
    steps.propose([1.0], [np.ones(3)], [], **HOW)
    return steps


def searched() -> Any:
    steps = proposed()
    steps.search(table_search(), [np.arange(float(N))])
    return steps


def quasi_newton(*sizes: int) -> Any:
    return _kernels.QuasiNewton(1.0, 5).direction(*(full(size) for size in sizes))


def descend(point: int, scores: int, move: int, way: int, images: bool = False) -> Any:
    return _kernels.descend(
        lambda t: (0.0, 0.0), 1.0, (full(point), full(scores), 0.0), 0.0, (full(move), full(way)),
        images=images, tangent=(0.0, 0.0), accuracy=1e-3,
    )  # fmt: skip


def top_ranking(of: Any = (0, 1, 2), grades: Any = (0, 1, 1), gains: int = 2, discounts: int = 2, size: int = 3) -> Any:
    arrays = np.array(of, dtype=np.int64), np.array(grades, dtype=np.int64)
    return _kernels.TopRankingSearch(*arrays, full(gains), full(discounts), 0.1, size)


def groups(order: Any = range(N), starts: Any = (0,), risks: Any = None) -> Any:
    risks = [pair_search()] if risks is None else risks
    return _kernels.MeanOfGroups(np.array(order, dtype=np.int64), np.array(starts, dtype=np.int64), risks)


def rules(parent: Any = (0,), left: Any = (1,), right: Any = (1,), symbols: int = 2) -> Any:
    return _kernels.BinaryRules(*(np.array(side, dtype=np.int32) for side in (parent, left, right)), symbols)


def cky(
    weight: tuple[int, int] = (1, 1),
    lexical: tuple[int, int] = (2, 2),
    roots: tuple[int, ...] = (0,),
    gold: tuple[int, int] = (2, 2),
    price: float = 0.5,
) -> Any:
    tops = np.array(roots, dtype=np.int32)
    return _kernels.cky(rules(), full(*weight), full(*lexical), tops, full(*gold, dtype=np.int32), price)


def viterbi(
    unary: tuple[int, int] = (3, 2),
    transition: tuple[int, int] = (2, 2),
    start: int = 2,
    offsets: Any = (0, 3),
) -> Any:
    return _kernels.viterbi(
        full(*unary), full(*transition), full(start), np.array(offsets, dtype=np.int64), n_threads=2
    )


def by_mistakes(
    unary: tuple[int, int] = (3, 2), transition: tuple[int, int] = (2, 2), start: int = 2, truth: int = 3
) -> Any:
    return _kernels.viterbi_by_mistakes(full(*unary), full(*transition), full(start), full(truth, dtype=np.int32))


def working_sets(
    examples: Any = (0, 2), losses: int = 2, indptr: Any = (0, 1, 3), indices: Any = (1, 0, 3), data: int = 3
) -> Any:
    sets = _kernels.WorkingSets(3, 4, 1.0)
    numbers = (np.array(values, dtype=np.int64) for values in (examples, indptr, indices))
    one, two, three = numbers
    sets.append(one, full(losses), two, three, full(data) + 1.0)
    return sets


FAR = np.array([0, N], dtype=np.uint32)  # one beyond the sample
RISKS: dict[str, Callable[[], Any]] = {
    "TableSearch": table_search,
    "weighted TableSearch": weighted_search,
    "TableSearch of a fraction": lambda: weighted_search(structure="fraction", first=np.array([0.0, 0.1, 0.1])),
    "TopSearch": lambda: _kernels.TopSearch(Y, 2, 1.0, -0.5),
    "PairSearch": pair_search,
    "PrecisionSearch": lambda: _kernels.PrecisionSearch(POS, NEG, 1.0, N),
    "TopRankingSearch": lambda: top_ranking(range(N), [0, 1, 1, 0, 0, 1], size=N),
    "MeanOfGroups": groups,
    "SumOfRisks": lambda: _kernels.SumOfRisks([pair_search(), table_search()], [1.0, 0.5]),
    "BaseLosses": lambda: _kernels.BaseLosses(np.where(Y, 0.2, -0.1), 1.0, 1.0),
}


def svmlight(text: bytes) -> Any:
    """What is read of a text, which comes in two pieces."""
    reader = _kernels.SvmlightReader(allow_blank=True, light_tags=False, least=0, most=9, n_threads=3)
    reader.feed(np.frombuffer(b"1 1:1\n", np.uint8))
    reader.feed(np.frombuffer(text, np.uint8))
    return reader.finish()


def table_of_numbers(text: bytes, is_text: tuple[int, ...] = (0, 1)) -> Any:
    """What is read of a table."""
    reader = _kernels.NumberReader(np.array(is_text, np.uint8), n_threads=3)
    reader.feed(np.frombuffer(text, np.uint8))
    return reader.finish()
