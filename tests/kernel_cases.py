"""What every binding takes and what it refuses, by its name: calls that fit, and calls that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from kernel_calls import (
    FAR,
    NEG,
    POS,
    RISKS,
    SCORES,
    N,
    Y,
    by_mistakes,
    cky,
    count_smoothing,
    counts,
    csr,
    flips,
    full,
    groups,
    linear_smoothing,
    pair_search,
    plane_smoothing,
    queue,
    ramp,
    row_smoothing,
    rules,
    svmlight,
    table_loss,
    table_of_numbers,
    table_search,
    top_ranking,
    viterbi,
    weighted_flips,
    weighted_search,
    working_sets,
)
from kernel_cases_of_solvers import SOLVERS

from metrimax import _kernels

# By the name of the binding: what fits, and what does not.
CASES: dict[str, tuple[list[Callable[[], Any]], list[Callable[[], Any]]]] = {
    "as_columns": (
        [lambda: _kernels.as_columns([full(3), full(3)]), lambda: _kernels.as_columns([])],
        [lambda: _kernels.as_columns([full(3), full(2)]), lambda: _kernels.as_columns([full(0), full(1)])],
    ),
    "column_sums": ([lambda: _kernels.column_sums(full(0, 3)), lambda: _kernels.column_sums(full(3, 0))], []),
    "add_row": (
        [lambda: _kernels.add_row(full(2, 3), full(3)), lambda: _kernels.add_row(full(0, 3), full(3))],
        [lambda k=k: _kernels.add_row(full(2, 3), full(k)) for k in (0, 2, 4)],
    ),
    "transpose": ([lambda: _kernels.transpose(full(0, 3)), lambda: _kernels.transpose(full(33, 40))], []),
    "dense_matrix": ([lambda: _kernels.dense_matrix(full(0, 0)), lambda: _kernels.dense_matrix(full(2, 3))], []),
    "csr_matrix": (
        [lambda: csr(2, [0, 2], [0, 1, 2]), lambda: csr(0, [], [0]), lambda: csr(0, [], [0, 0], n_cols=0)],
        [
            lambda: csr(2, [0, 2], []),
            lambda: csr(1, [0, 2], [0, 1, 2]),
            lambda: csr(3, [0, 2], [0, 1, 2]),
            lambda: csr(2, [0, 3], [0, 1, 2]),
            lambda: csr(2, [0, -1], [0, 1, 2]),
            lambda: csr(2, [0, 2], [0, 1, 3]),
            lambda: csr(2, [0, 2], [1, 1, 2]),
            lambda: csr(2, [0, 2], [0, 3, 2]),
            lambda: csr(1, [0, 2], [0, 1, 2], trusted=True),
            lambda: csr(2, [0, 2], [0, 1, 3], trusted=True),
            lambda: csr(2, [0, 2], [-1, 1, 2], trusted=True),
            lambda: csr(2, [0, 2], [], trusted=True),
        ],
    ),
    "Matrix": (
        [
            lambda: csr(2, [0, 2], [0, 1, 2]).products(False, [full(3), full(3)], 0.0, 2),
            lambda: _kernels.dense_matrix(full(2, 3)).products(True, [], 1.0, 2),
            lambda: _kernels.dense_matrix(full(0, 3)).columns(True, full(0, 4), 2),
        ],
        [
            call
            for X in (csr(2, [0, 2], [0, 1, 2]), _kernels.dense_matrix(full(2, 3)))
            for call in (
                lambda X=X: X.products(False, [full(3), full(2)], 0.0, 1),
                lambda X=X: X.products(False, [full(3)], 1.0, 1),  # one more for the bias
                lambda X=X: X.products(True, [full(3)], 0.0, 1),
                lambda X=X: X.products(True, [full(1)], 1.0, 1),
                lambda X=X: X.columns(False, full(2, 2), 1),
                lambda X=X: X.columns(True, full(3, 2), 1),
                lambda X=X: X.columns(True, full(0, 2), 1),
            )
        ],
    ),
    "Risk": (
        [lambda make=make: make().cut(SCORES, 0.1) for make in RISKS.values()],
        [lambda make=make, k=k: make().cut(full(k)) for make in RISKS.values() for k in (0, N - 1, N + 1)],
    ),
    "Line": (
        [lambda make=make: _kernels.Line(make(), SCORES, SCORES)(0.5) for make in RISKS.values()],
        [
            lambda make=make, k=k, other=other: _kernels.Line(make(), full(k), full(other))
            for make in RISKS.values()
            for k, other in ((N, N - 1), (N - 1, N), (0, 0), (N + 1, N + 1))
        ],
    ),
    "FlipClass": (
        [flips, weighted_flips],
        [
            lambda: weighted_flips(weights=full(0)),
            lambda: weighted_flips(units=-1),
            lambda: weighted_flips(units=2**60),
        ],
    ),
    "TableLoss": ([lambda: table_loss("count", full(0), full(3))], []),
    "TableSearch": (
        [
            table_search,
            lambda: table_search(first=full(1), second=full(1), m_low=2),
            lambda: table_search(rising=True),
            lambda: table_search(structure="max", first=full(3), second=full(5), rising=True),
            lambda: weighted_search(weights=full(N)).cut(SCORES, 0.1),
            lambda: weighted_search(units=0, first=full(1)).cut(SCORES, 0.1),
        ],
        [
            lambda: table_search(pos=FAR),
            lambda: table_search(neg=FAR),
            lambda: table_search(size=5),
            lambda: table_search(size=-1),
            lambda: table_search(first=full(N)),
            lambda: table_search(first=full(0), second=full(0)),
            lambda: table_search(m_low=1),
            lambda: table_search(m_low=-1),
            lambda: table_search(first=full(1), second=full(1), m_low=2, rising=True),
            lambda: table_search(structure="max", first=full(2), second=full(5)),
            lambda: table_search(structure="hypot", first=full(3), second=full(6)),
            lambda: table_search(structure="product", first=full(0), second=full(0)),
            lambda: table_search(structure="max", first=np.broadcast_to(0.0, 3), second=full(5)),
            lambda: table_search(structure="sum", first=full(3), second=full(5)),
            lambda: weighted_search(structure="fraction", first=full(2)),
            lambda: weighted_search(units=4),
            lambda: weighted_search(weights=np.ones(N - 1)),
            lambda: weighted_search(weights=np.full(N, np.nan)),
            lambda: weighted_search(weights=np.full(N, -1.0)),
        ],
    ),
    "TopSearch": (
        [lambda: _kernels.TopSearch(Y, N, 1.0, -0.5)],
        [lambda k=k: _kernels.TopSearch(Y, k, 1.0, -0.5) for k in (-1, 0, N + 1)]
        + [lambda: _kernels.TopSearch(Y[:0], 1, 1.0, -0.5)],
    ),
    "PairClass": (
        [lambda: _kernels.PairClass(POS, 1.0, full(0)), lambda: _kernels.PairClass(POS, 1.0, full(2))],
        [lambda k=k: _kernels.PairClass(POS, 1.0, full(k)) for k in (1, 3)],
    ),
    "PairSearch": (
        [pair_search, lambda: pair_search(w=full(2), v=full(4))],
        [
            lambda: pair_search(pos=FAR),
            lambda: pair_search(neg=FAR),
            lambda: pair_search(size=5),
            lambda: pair_search(pos=full(0, dtype=np.uint32)),
        ],
    ),
    "CountSmoothing": (
        [count_smoothing, lambda: count_smoothing(loss=counts(n_pos=2, m_low=2, u=full(5), v=full(5)))],
        [
            lambda: count_smoothing(pos=FAR),
            lambda: count_smoothing(neg=FAR),
            lambda: count_smoothing(size=5),
            lambda: count_smoothing(pos=full(0, dtype=np.uint32)),
            lambda: count_smoothing(loss=counts(u=full(0), v=full(0))),
            lambda: count_smoothing(loss=counts(m_low=1)),
            lambda: count_smoothing(step=0.0),
        ],
    ),
    "LinearSmoothing": (
        [linear_smoothing, lambda: linear_smoothing(loss=(1.0, 0.0))],
        [
            lambda: linear_smoothing(pos=FAR),
            lambda: linear_smoothing(size=5),
            lambda: linear_smoothing(pos=full(0, dtype=np.uint32)),
            lambda: linear_smoothing(step=0.0),
            lambda: linear_smoothing(loss=(0.0, 0.0)),
            lambda: linear_smoothing(loss=(-1.0, 1.0)),
            lambda: linear_smoothing(loss=(np.nan, 1.0)),
        ],
    ),
    "RowSmoothing": (
        [row_smoothing, lambda: row_smoothing(g=full(1))],
        [
            lambda: row_smoothing(neg=FAR),
            lambda: row_smoothing(size=5),
            lambda: row_smoothing(pos=full(0, dtype=np.uint32)),
            lambda: row_smoothing(step=np.nan),
            lambda: row_smoothing(g=full(0)),
            lambda: row_smoothing(g=full(N)),
        ],
    ),
    "PlaneSmoothing": (
        [plane_smoothing, lambda: plane_smoothing().smooth(SCORES, 0.1, full(2), full(2), full(2))],
        [
            lambda: plane_smoothing(neg=FAR),
            lambda: plane_smoothing(size=5),
            lambda: plane_smoothing(step=-1.0),
            lambda: plane_smoothing().smooth(SCORES, 0.1, full(1), full(1), full(1)),
            lambda: plane_smoothing().smooth(SCORES, 0.1, full(2), full(3), full(2)),
            lambda: plane_smoothing().smooth(SCORES, 0.1, full(2), full(2), full(1)),
        ],
    ),
    "Queue": ([queue, lambda: queue(0)], [lambda: queue(2, -1), lambda: queue(2, 2**60)]),
    "CountLoss": (
        [counts, lambda: counts(u=full(0), v=full(0))],
        [
            lambda: counts(u=full(6)),
            lambda: counts(v=full(0)),
            lambda: counts(m_low=-1),
            lambda: counts(m_low=2**62),
            lambda: counts(n_pos=-1),
        ],
    ),
    "collect": (
        [
            lambda: _kernels.collect(SCORES, POS, 1.0, -np.inf, np.inf),
            lambda: _kernels.collect(full(0), POS[:0], 1, 0, 1),
        ],
        [lambda k=k: _kernels.collect(full(k), NEG, 1.0, -np.inf, np.inf) for k in (0, 5)]
        + [lambda: _kernels.collect(SCORES, FAR, 1.0, -np.inf, np.inf)],
    ),
    "mark": (
        [
            lambda: _kernels.mark(SCORES, POS, 1.0, (1, 0.3), 1.0, full(N)),
            lambda: _kernels.mark(SCORES, POS, 1.0, (9, 9.0), 1.0, full(N)),
        ],
        [
            lambda: _kernels.mark(SCORES, POS, 1.0, (1, 0.3), 1.0, full(N - 1)),
            lambda: _kernels.mark(full(2), POS, 1.0, (1, 0.3), 1.0, full(2)),
            lambda: _kernels.mark(SCORES, FAR, 1.0, (1, 0.3), 1.0, full(N)),
        ],
    ),
    "count_argmax": (
        [
            lambda q=q, c=c: _kernels.count_argmax(q, q, c)
            for q in (queue(0), queue(3, 5), queue(9))
            for c in (counts(), counts(m_low=90), counts(n_pos=0), counts(u=full(0), v=full(0)))
        ],
        [],
    ),
    "count_bounds": (
        [lambda: _kernels.count_bounds(counts(), 4)],
        [
            lambda: _kernels.count_bounds(counts(), 3),
            lambda: _kernels.count_bounds(counts(), 0),
            lambda: _kernels.count_bounds(counts(n_pos=0), 4),
            lambda: _kernels.count_bounds(counts(m_low=1), 4),
            lambda: _kernels.count_bounds(counts(u=full(0), v=full(0)), 4),
        ],
    ),
    "monge_argmax": (
        [lambda: _kernels.monge_argmax("max", queue(), queue(), full(3), full(3))],
        [
            lambda: _kernels.monge_argmax("max", queue(), queue(), full(2), full(3)),
            lambda: _kernels.monge_argmax("max", queue(), queue(), full(3), full(2)),
            lambda: _kernels.monge_argmax("max", queue(2, 1), queue(), full(3), full(3)),
            lambda: _kernels.monge_argmax("max", queue(), queue(0), full(0), full(0)),
            lambda: _kernels.monge_argmax("sum", queue(), queue(), full(3), full(3)),
        ],
    ),
    "Ramp": ([ramp, lambda: ramp(0), lambda: ramp(4, 4)], [lambda: ramp(4, 3), lambda: ramp(4, 5), lambda: ramp(0, 1)]),
    "ramp_sums": (
        [
            lambda: _kernels.ramp_sums(ramp(), full(2), np.ones(2)),
            lambda: _kernels.ramp_sums(ramp(0), full(0), full(0)),
        ],
        [lambda k=k: _kernels.ramp_sums(ramp(), full(2), np.ones(k)) for k in (0, 1, 3)],
    ),
    "ramp_thresholds": (
        [
            lambda: _kernels.ramp_thresholds(ramp(), ramp(), full(2), full(2), np.ones(2)),
            lambda: _kernels.ramp_thresholds(ramp(), ramp(), full(1), np.full(1, np.nan), np.ones(1)),
        ],
        [lambda k=k: _kernels.ramp_thresholds(ramp(), ramp(), full(2), full(k), np.ones(2)) for k in (0, 1, 3)]
        + [lambda k=k: _kernels.ramp_thresholds(ramp(), ramp(), full(2), full(2), np.ones(k)) for k in (0, 1, 3)],
    ),
    "PrecisionSearch": (
        [RISKS["PrecisionSearch"]],
        [
            lambda: _kernels.PrecisionSearch(FAR, NEG, 1.0, N),
            lambda: _kernels.PrecisionSearch(POS, FAR, 1.0, N),
            lambda: _kernels.PrecisionSearch(POS, NEG, 1.0, N - 1),
            lambda: _kernels.PrecisionSearch(POS, NEG, 1.0, -1),
            lambda: _kernels.PrecisionSearch(POS[:0], NEG, 1.0, N),
        ],
    ),
    "interleave": (
        [lambda: _kernels.interleave(full(0), full(3), 1.0), lambda: _kernels.interleave(full(3), full(0), 1.0)],
        [],
    ),
    "TopRankingSearch": (
        [top_ranking, lambda: top_ranking(discounts=0).cut(full(3)), lambda: top_ranking((), (), 0, 0, 0).cut(full(0))],
        [
            lambda: top_ranking(of=(0, 1)),
            lambda: top_ranking(of=(0, 1, 3)),
            lambda: top_ranking(of=(0, 1, -1)),
            lambda: top_ranking(grades=(0, 1, 2)),
            lambda: top_ranking(grades=(0, 1, -1)),
            lambda: top_ranking(gains=1),
            lambda: top_ranking(size=-1),
            lambda: top_ranking(range(30), range(30), 30, 30, 30),
        ],
    ),
    "BaseLosses": (
        [lambda: _kernels.BaseLosses(full(0), 1.0, 1.0).cut(full(0))],
        [lambda: _kernels.BaseLosses(full(3), -1.0, 1.0), lambda: _kernels.BaseLosses(full(3), 1.0, -1.0)],
    ),
    "MeanOfGroups": (
        [groups],
        [
            lambda: groups(range(N - 1)),
            lambda: groups((0, 1, 2, 3, 4, 4)),
            lambda: groups((0, 1, 2, 3, 4, -1)),
            lambda: groups(starts=(1,)),
            lambda: groups(starts=(-1,)),
            lambda: groups(starts=(0, 0)),
            lambda: groups(starts=(), risks=[]),
        ],
    ),
    "SumOfRisks": (
        [RISKS["SumOfRisks"]],
        [
            lambda: _kernels.SumOfRisks([pair_search(), pair_search(N + 1)], [1.0, 1.0]),
            lambda: _kernels.SumOfRisks([pair_search()], []),
            lambda: _kernels.SumOfRisks([], []),
        ],
    ),
    "NumberReader": (
        [lambda text=text: table_of_numbers(text) for text in (b"", b"\n", b"1,a", b"1,\n\n2,b\r\n\n")],
        [lambda text=text: table_of_numbers(text) for text in (b"1", b"1,2,3", b"x,1", b"1,a\n2")],
    ),
    "SvmlightReader": (
        [lambda text=text: svmlight(text) for text in (b"", b"\n", b"1 2:3")],
        [lambda: svmlight(b"1 12:3")],
    ),
    "viterbi": (
        [viterbi, lambda: viterbi((0, 2), offsets=(0,)), lambda: viterbi(offsets=(0, 0, 3, 3))],
        [
            lambda: viterbi((3, 0), (0, 0), 0),
            lambda: viterbi(transition=(1, 2)),
            lambda: viterbi(start=1),
            lambda: viterbi(offsets=()),
            lambda: viterbi(offsets=(0, 4)),
            lambda: viterbi(offsets=(1, 3)),
            lambda: viterbi(offsets=(0, 4, 3)),
            lambda: viterbi(offsets=(0, -1, 3)),
        ],
    ),
    "viterbi_by_mistakes": (
        [by_mistakes],
        [
            lambda: by_mistakes((0, 2), truth=0),
            lambda: by_mistakes(truth=2),
            lambda: by_mistakes(start=3),
            lambda: by_mistakes(transition=(2, 1)),
        ],
    ),
    "BinaryRules": (
        [rules, lambda: rules((), (), ())],
        [
            lambda: rules(parent=(0, 0)),
            lambda: rules(right=()),
            lambda: rules(left=(2,)),
            lambda: rules(right=(-1,)),
            lambda: rules((0, 0), (1, 0), (0, 0)),
        ],
    ),
    "cky": (
        [cky, lambda: cky(weight=(4, 1)), lambda: cky(roots=(1, 0))],
        [
            lambda: cky(weight=(1, 0)),
            lambda: cky(weight=(2, 1)),
            lambda: cky(weight=(0, 1)),
            lambda: cky(roots=()),
            lambda: cky(lexical=(0, 2), gold=(0, 0)),
            lambda: cky(lexical=(2, 1)),
            lambda: cky(gold=(2, 1)),
            lambda: cky(gold=(1, 2)),
            lambda: cky(roots=(0, 2)),
            lambda: cky(roots=(-1,)),
            lambda: cky(price=np.inf),
            lambda: cky(price=np.nan),
        ],
    ),
    "WorkingSets": (
        [
            lambda: working_sets().ascend(0.1, 3),
            lambda: working_sets(examples=(2, 2), indptr=(0, 0, 3), indices=(0, 1, 3)).settle(),
            lambda: working_sets((), 0, (0,), (), 0).slacks(full(4)),
            lambda: _kernels.WorkingSets(1, 0, 1.0).weights(),
        ],
        [
            lambda: _kernels.WorkingSets(0, 2, 1.0),
            lambda: _kernels.WorkingSets(2, 2, 0.0),
            lambda: _kernels.WorkingSets(2, 2, np.nan),
            lambda: _kernels.WorkingSets(1, 2**31, 1.0),
            lambda: working_sets().ascend(np.nan, 1),
            lambda: working_sets().slacks(full(3)),
            lambda: working_sets(losses=1),
            lambda: working_sets(examples=(0, 3)),
            lambda: working_sets(examples=(-1, 0)),
            lambda: working_sets(indptr=(0, 3)),
            lambda: working_sets(indptr=(0, 1, 2)),
            lambda: working_sets(indptr=(1, 1, 3)),
            lambda: working_sets(indptr=(0, 4, 3)),
            lambda: working_sets(indptr=(0, -1, 3)),
            lambda: working_sets(indices=(1, 0, 4)),
            lambda: working_sets(indices=(-1, 0, 3)),
            lambda: working_sets(indices=(1, 3, 0)),
            lambda: working_sets(indices=(1, 3, 3)),
            lambda: working_sets(data=2),
        ],
    ),
    **SOLVERS,
}
