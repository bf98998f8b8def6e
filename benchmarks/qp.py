"""The small quadratic program over the cuts: ``simplex_qp`` against daqp and piqp.

    min over the simplex of  scale/2 a'Ga - b'a

on Gram matrices taken from real runs at 50, 200 and 500 cuts (no cut dropped), with the start the solver had there
(warm: the last solution and one new cut) and from a vertex (cold); and on made-up ones, rank-deficient, badly scaled.
``accuracy`` is the duality gap ``a'g - min g``, ``g = scale G a - b``, in units of the measure, of the answer
made feasible (clipped and normalised).
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from benchmarks import data
from benchmarks.products import best
from metrimax import _kernels
from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.solvers import SOLVERS
from metrimax.solvers.cut_model import CutModel
from metrimax.training.lockstep import run

# the plain cutting-plane algorithm, for it makes many cuts
REAL = (("optdigits:8", "f1", 100.0), ("splice", "f1", 10.0), ("usps:8", "roc_area", 100.0))
TOL = 1e-7


class Program(NamedTuple):
    """One quadratic program, and the start it had in its run."""

    name: str
    G: np.ndarray
    b: np.ndarray
    scale: float
    start: np.ndarray


def record(name: str, measure: str, c: float, sizes: tuple[int, ...]) -> list[Program]:
    """The programs of a real run, when it had so many cuts; none is dropped, since an iteration adds one cut."""
    task = data.load(name)
    oracle = get_measure(measure).oracle(task.y)
    programs: list[Program] = []
    minimiser = CutModel.minimiser

    def spy(model: CutModel, tol: float) -> Any:
        if model.size in sizes:
            pool = model._pool
            arrays = pool.gram.copy(), pool.losses.copy(), pool.alpha.copy()
            programs.append(Program(f"{name} {measure} c={c:g}", arrays[0], arrays[1], 1 / model.lam, arrays[2]))
        return minimiser(model, tol)

    design = as_design(task.X, intercept_scaling=1.0)
    with mock.patch.object(CutModel, "minimiser", spy), mock.patch("metrimax.solvers.cut_model.PATIENCE", max(sizes)):
        steps = SOLVERS["cutting_plane"]().steps(
            oracle, design, 100 * c, tol=1e-6, callback=lambda record: len(programs) == len(sizes)
        )
        run(design, [steps])
    return programs


def synthetic(size: int) -> list[Program]:
    """Rank 20; 8 decades between the lengths of the cuts; cuts that repeat each other up to 1e-7."""
    rng = np.random.default_rng(size)
    b = rng.random(size)
    start = np.zeros(size)
    start[0] = 1.0
    low = rng.normal(size=(size, 20))
    spread = rng.normal(size=(size, 2 * size)) * 10.0 ** rng.uniform(-4, 4, size=(size, 1))
    twins = np.repeat(rng.normal(size=(size // 2 + 1, size)), 2, axis=0)[:size]
    twins += 1e-7 * rng.normal(size=twins.shape)
    shapes = {"rank 20": low, "badly scaled": spread, "near-twins": twins}
    return [Program(name, A @ A.T, b, 1.0, start) for name, A in shapes.items()]


def accuracy(program: Program, a: np.ndarray) -> float:
    a = np.maximum(a, 0)
    if not np.isfinite(a).all() or not a.sum() > 0:
        return float("inf")
    a = a / a.sum()
    gradient = program.scale * (program.G @ a) - program.b
    return float(a @ gradient - gradient.min())


def _own(program: Program, warm: bool) -> Callable[[], np.ndarray]:
    first = np.zeros(len(program.b))
    first[0] = 1.0
    start = program.start if warm else first

    def solve() -> np.ndarray:
        a = start.copy()
        _kernels.simplex_qp(program.G, program.b, program.scale, a, TOL, 20 * len(a) + 100)
        return a

    return solve


def _daqp(program: Program, warm: bool) -> Callable[[], np.ndarray]:
    import daqp

    K = len(program.b)
    H = program.scale * program.G
    A = np.ones((1, K))
    upper, lower = np.append(np.full(K, 1e30), 1.0), np.append(np.zeros(K), 1.0)
    sense = np.zeros(K + 1, dtype=np.int32)
    sense[-1] = 5  # equality
    if warm:  # daqp starts from a working set: the bounds that hold
        sense[:K][program.start == 0] = 1

    def solve() -> np.ndarray:
        # H is singular as soon as there are more cuts than weights: a proximal term is the documented remedy
        x, *_ = daqp.solve(H, -program.b, A, upper, lower, sense.copy(), eps_prox=1e-6 * float(H.max()))
        return np.asarray(x)

    return solve


def _piqp(program: Program, warm: bool) -> Callable[[], np.ndarray]:
    import piqp

    K = len(program.b)
    H = program.scale * program.G

    def solve() -> np.ndarray:
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = TOL
        solver.settings.eps_rel = TOL
        solver.setup(P=H, c=-program.b, A=np.ones((1, K)), b=np.ones(1), x_l=np.zeros(K))
        solver.solve()
        return np.asarray(solver.result.x)

    return solve


SOLVERS_QP: dict[str, tuple[Any, tuple[bool, ...]]] = {
    "simplex_qp": (_own, (False, True)),
    "daqp": (_daqp, (False, True)),
    "piqp": (_piqp, (False,)),  # an interior-point method: no warm start
}


def measure(smoke: bool = False, **_: Any) -> list[dict[str, Any]]:
    sizes = (20,) if smoke else (50, 200, 500)
    real = [("dense:1000", "f1", 10.0)] if smoke else REAL
    programs = [program for case in real for program in record(*case, sizes)]
    programs += [program for size in sizes for program in synthetic(size)]
    rows = []
    for program in programs:
        for name, (make, starts) in SOLVERS_QP.items():
            if name != "simplex_qp" and importlib.util.find_spec(name) is None:
                continue
            for warm in starts:
                if warm and program.start[0] == 1.0:
                    continue
                rows.append(_measure(program, name, make(program, warm), warm, smoke))
        print(f"  qp {program.name} {len(program.b)} cuts", flush=True)
    return rows


def _measure(program: Program, name: str, solve: Callable[[], np.ndarray], warm: bool, smoke: bool) -> dict[str, Any]:
    a, failure, seconds = np.full(len(program.b), np.nan), "", float("nan")
    try:
        began = time.perf_counter()
        a = solve()
        seconds = time.perf_counter() - began
        if seconds < 0.3:
            seconds = best(solve, 0.0 if smoke else 0.1)
    except Exception as error:  # whatever a peer raises on a hard matrix is its result
        failure = f"{type(error).__name__}: {error}"
    eigenvalues = np.linalg.eigvalsh(program.G)
    return {
        "program": program.name,
        "cuts": len(program.b),
        "rank": int((eigenvalues > 1e-12 * eigenvalues[-1]).sum()),
        "solver": name,
        "start": "warm" if warm else "cold",
        "seconds": seconds,
        "accuracy": accuracy(program, a),
        "support": int((a > 1e-12).sum()),
        "failure": failure,
    }
