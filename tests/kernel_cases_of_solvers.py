"""What the bindings of the solvers take and what they refuse, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from kernel_calls import (
    HOW,
    N,
    Y,
    bundle_steps,
    csr,
    descend,
    dual_cd,
    full,
    hinges,
    pair_cd,
    proposed,
    quasi_newton,
    searched,
    table_search,
)

from metrimax import _kernels

SOLVERS: dict[str, tuple[list[Callable[[], Any]], list[Callable[[], Any]]]] = {
    "HingeSum": (
        [hinges, lambda: hinges(0, 0, 0, 0)],
        [lambda name=name: hinges(**{name: 1}) for name in ("squares", "sign", "margin", "upper")],
    ),
    "row_squares": (
        [lambda: _kernels.row_squares(csr(2, [0, 2], [0, 1, 2]), 1.0)],
        [lambda: _kernels.row_squares(_kernels.dense_matrix(full(3, 2), fortran=True), 0.0)],
    ),
    "dual_cd": (
        [dual_cd, lambda: dual_cd(bias=1.0, w=4), lambda: dual_cd(rows=())],
        [
            lambda: dual_cd(size=1),
            lambda: dual_cd(size=3),
            lambda: dual_cd(alpha=1),
            lambda: dual_cd(w=2),
            lambda: dual_cd(bias=1.0),
            lambda: dual_cd(rows=(0, 2)),
            lambda: dual_cd(rows=(-1,)),
            lambda: dual_cd(_kernels.dense_matrix(full(3, 2), fortran=True)),
        ],
    ),
    "pair_cd": (
        [pair_cd, lambda: pair_cd(rows=()), lambda: pair_cd(_kernels.dense_matrix(full(2, 2)), w=2, gram=True)],
        [
            lambda: pair_cd(size=1),
            lambda: pair_cd(size=3),
            lambda: pair_cd(alpha=1),
            lambda: pair_cd(w=2),
            lambda: pair_cd(rows=(0, 2)),
            lambda: pair_cd(rows=(-1,)),
            lambda: pair_cd(gram=True),
            lambda: pair_cd(_kernels.dense_matrix(full(2, 3)), gram=True),
        ],
    ),
    "dual_working": (
        [lambda: _kernels.dual_working(*(full(0) for _ in range(5)))],
        [lambda k=k: _kernels.dual_working(*(full(2 if k == j else 3) for j in range(5))) for k in range(5)],
    ),
    "CutPool": (
        [
            lambda: _kernels.CutPool(0, True, 0),
            lambda: _kernels.CutPool(3, True, 1).append([1.0], [full(3)], [full(3)]),
        ],
        [
            lambda: _kernels.CutPool(3, False, 1).append([1.0], [full(2)], []),
            lambda: _kernels.CutPool(3, False, 1).append([1.0], [full(4)], []),
            lambda: _kernels.CutPool(3, False, 1).append([1.0], [], []),
            lambda: _kernels.CutPool(3, False, 1).append([1.0], [full(3)], [full(3)]),
            lambda: _kernels.CutPool(3, True, 1).append([1.0], [full(3)], []),
            lambda: _kernels.CutPool(3, True, 1).append([1.0], [full(3)], [full(2)]),
            lambda: _kernels.CutPool(3, False, 1).begin(full(2), full(2, 2), [full(1, 3)]),
            lambda: _kernels.CutPool(3, False, 1).begin(full(2), full(2, 1), [full(2, 3)]),
            lambda: _kernels.CutPool(3, False, 1).begin(full(2), full(2, 2), [full(2, 2)]),
            lambda: _kernels.CutPool(3, False, 1).begin(full(2), full(2, 2), []),
            lambda: _kernels.CutPool(3, True, 1).begin(full(2), full(2, 2), [full(2, 3)]),
            lambda: _kernels.CutPool(3, True, 1).minimise(np.nan, 1e-3),
        ],
    ),
    "QuasiNewton": (
        [lambda: quasi_newton(3, 3, 3, 3), lambda: quasi_newton(3, 0, 3, 0), lambda: quasi_newton(0, 0, 0, 0)],
        [
            lambda: _kernels.QuasiNewton(1.0, 0),
            lambda: _kernels.QuasiNewton(1.0, 2**40),
            lambda: _kernels.QuasiNewton(0.0, 3),
            lambda: quasi_newton(3, 2, 3, 2),
            lambda: quasi_newton(3, 0, 2, 0),
            lambda: quasi_newton(3, 3, 3, 2),
            lambda: quasi_newton(3, 0, 3, 3),
        ],
    ),
    "BundleSteps": (
        [searched, lambda: searched().cuts(table_search(), 0.0, 0.0)],
        [
            lambda: bundle_steps(entries=2),
            lambda: bundle_steps(_kernels.CutPool(3, True, 4)),
            lambda: bundle_steps(memory=0),
            lambda: bundle_steps(memory=2**40),
            lambda: bundle_steps(lam=0.0),
            lambda: bundle_steps().propose([1.0], [full(2)], [], **HOW),
            lambda: bundle_steps().propose([1.0], [], [], **HOW),
            lambda: bundle_steps().propose([1.0], [full(3)], [full(3)], **HOW),
            lambda: proposed().search(table_search(), []),
            lambda: proposed().search(table_search(), [full(N - 1)]),
            lambda: proposed().search(table_search(), [full(N), full(N)]),
            lambda: proposed().search(_kernels.TopSearch(Y[:-1].copy(), 2, 1.0, -0.5), [full(N)]),
            lambda: searched().cuts(_kernels.TopSearch(Y[:-1].copy(), 2, 1.0, -0.5), 0.0, None),
            lambda: bundle_steps().search(table_search(), [full(N)]),
            lambda: bundle_steps().cuts(table_search(), 0.0, None),
        ],
    ),
    "dot": ([lambda: _kernels.dot(full(0), full(0))], [lambda k=k: _kernels.dot(full(3), full(k)) for k in (0, 2, 4)]),
    "combine": (
        [lambda: _kernels.combine([1.0], [full(0)])],
        [
            lambda: _kernels.combine([], []),
            lambda: _kernels.combine([1.0], [full(2), full(2)]),
            lambda: _kernels.combine([1.0, 1.0], [full(2), full(1)]),
        ],
    ),
    "rows_read": (
        [lambda: _kernels.rows_read([full(0)])],
        [lambda: _kernels.rows_read([]), lambda: _kernels.rows_read([full(3), full(2), full(3)])],
    ),
    "line_search": (
        [lambda: _kernels.line_search(lambda t: (t, 1.0), (1.0, 0.0, 0.0, 1.0), 0.0, None, 1e-3, 1.0)],
        [],
    ),
    "descend": (
        [lambda: descend(2, 3, 2, 3), lambda: descend(0, 0, 0, 0)],
        [lambda: descend(2, 3, 1, 3), lambda: descend(2, 3, 2, 2), lambda: descend(2, 3, 2, 3, images=True)],
    ),
    "simplex_qp": (
        [lambda: _kernels.simplex_qp(full(3, 3), full(2), 1.0, np.ones(2), 1e-3, 10)],
        [
            lambda: _kernels.simplex_qp(full(2, 2), full(0), 1.0, full(0), 1e-3, 10),
            lambda: _kernels.simplex_qp(full(2, 2), full(2), 1.0, np.ones(1), 1e-3, 10),
            lambda: _kernels.simplex_qp(full(2, 2), full(3), 1.0, np.ones(3), 1e-3, 10),
            lambda: _kernels.simplex_qp(full(3, 2), full(3), 1.0, np.ones(3), 1e-3, 10),
        ],
    ),
}
