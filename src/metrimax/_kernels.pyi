"""
Compiled kernels. Private: the arguments are checked for type and length, not for meaning.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


def as_columns(vectors: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]:
    """Vectors of one length side by side, (n, L)."""

def column_sums(A: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
    """The sum of every column of A."""

def add_row(A: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], row: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
    """Add a row to all rows of A."""

def transpose(A: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]:
    """The transpose, in C-order."""

class Line:
    """The risk along a line of scores."""

    def __init__(self, risk: Risk, scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], move: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def __call__(self, t: float) -> tuple[float, float]:
        """The risk at t, and its slope there."""

class Risk:
    """
    The risk of the scores of a sample. Several threads may ask it at once.
    """

    def cut(self, scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], mu: float = 0.0) -> tuple[float, Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """
        Loss and slope of the cut at these scores; with mu > 0 it may be a mean of cuts within mu of it there.
        """

class FlipClass:
    """One class of a sample: its members, and what is known of their flips."""

    def __init__(self, members: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, sign: float, step: float, low: float, high: float) -> None:
        """
        `step` is the weight of one example divided by n. Costs below `low` flip in every optimum, costs from `high` on in none.
        """

    @staticmethod
    def weighted(members: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, sign: float, step: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], units: int) -> FlipClass:
        """
        A class of so many units, in which an example may flip in part. `step` is the weight of one unit divided by n, `weights` are those of all examples of the sample, in units.
        """

class TableLoss:
    """The loss of every contingency table of a sample."""

    def __init__(self, structure: str, first: Annotated[NDArray[numpy.float64], dict(shape=(None,), device='cpu', writable=False)], second: Annotated[NDArray[numpy.float64], dict(shape=(None,), device='cpu', writable=False)], *, m_low: int, top: float, rising: bool) -> None:
        """
        By count ('count'): u and v for every number of predicted positives from m_low on. By mistakes ('product', 'hypot', 'max'): A and B for every number of false negatives, and of false positives. 'fraction': the coefficients of 1, fn and fp above the line and below it, for a loss that is Monge.
        """

class TableSearch(Risk):
    """The most violated labelling of a sample."""

    def __init__(self, size: int, pos: FlipClass, neg: FlipClass, loss: TableLoss) -> None: ...

class TopSearch(Risk):
    """The most violated labelling with exactly k positives, without weights."""

    def __init__(self, y: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, u: float, v: float) -> None: ...

    def smooth(self, scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], mu: float) -> tuple[float, float, Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """
        The smoothed risk without R >= 0, no more than mu below: its value, and loss and slope of its plane.
        """

class PairClass:
    """One class of the pairs: its members, and their weights or none."""

    def __init__(self, members: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], sign: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class PairSearch(Risk):
    """The pairs inside the margin, of classes of which one is sorted."""

    def __init__(self, size: int, sorted: PairClass, other: PairClass, pairs: float) -> None: ...

    def smooth(self, scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], mu: float) -> tuple[float, float, Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """
        The smoothed risk, no more than mu below the risk: its value, and loss and slope of its plane.
        """

class Queue:
    """
    One class: the costs of its candidates, ascending, and what flips before them.
    """

    def __init__(self, costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: int, first_sum: float, step: float) -> None:
        """
        `first` units flip before the candidates, with that sum of costs; a unit weighs `step` of the sample.
        """

class CountLoss:
    """
    D = u[m - m_low] + v[m - m_low] tp, by the number m of predicted positives.
    """

    def __init__(self, n_pos: int, m_low: int, u: Annotated[NDArray[numpy.float64], dict(shape=(None,), device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), device='cpu', writable=False)]) -> None:
        """All in units."""

def collect(scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], members: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], sign: float, low: float, high: float) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], int, float]:
    """
    Costs sign * score in [low, high), in the order of the members; the number below low, and its sum.
    """

def mark(scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], members: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], sign: float, lowest: tuple[int, float], value: float, slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write value to the slope of the members of lowest cost sign * score: `lowest` says how many, and the highest of their costs.
    """

def count_argmax(pos: Queue, neg: Queue, loss: CountLoss) -> tuple[float, int, int]:
    """Best (value, fn, fp) of a loss by count."""

def count_bounds(loss: CountLoss, n_neg: int) -> tuple[float, float, float, float, float]:
    """
    The greatest D = u[m] + v[m] tp of all tables; the least and greatest rise of D by one more false negative, and by one more false positive.
    """

def monge_argmax(link: str, pos: Queue, neg: Queue, A: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], B: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, int, int]:
    """Best (value, fn, fp) of D = link(A[fn], B[fp])."""

class Ramp:
    """
    Costs of a class, ascending, and their weights or none, to be summed under ramps.
    """

    def __init__(self, costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class CountSmoothing:
    """The smoothed risk of a loss by count."""

    def __init__(self, size: int, pos: PairClass, neg: PairClass, step: float, loss: CountLoss) -> None:
        """
        Weights of members and the loss are in units of which each weighs `step` of the sample.
        """

    def smooth(self, scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], mu: float) -> tuple[float, float, Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """
        The smoothed risk, no more than mu below the risk: its value, and loss and slope of its plane.
        """

class LinearSmoothing:
    """The smoothed risk of a loss a fn + b fp."""

    def __init__(self, size: int, pos: PairClass, neg: PairClass, steps: Sequence[float], loss: Sequence[float]) -> None:
        """
        Weights of members and the losses of a flip are in units, of which each weighs a step of the sample.
        """

    def smooth(self, scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], mu: float) -> tuple[float, float, Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """
        The smoothed risk, no more than mu below the risk: its value, and loss and slope of its plane.
        """

class RowSmoothing:
    """The smoothed risk of 1 - g[j] (1 - rise fn), j the false positives."""

    def __init__(self, size: int, pos: PairClass, neg: PairClass, steps: Sequence[float], rise: float, g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Weights of members and the loss are in units, of which each weighs a step of the sample.
        """

    def smooth(self, scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], mu: float) -> tuple[float, float, Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """
        The smoothed risk, no more than mu below the risk: its value, and loss and slope of its plane.
        """

class PlaneSmoothing:
    """The smoothed risk of the highest of planes c - a tp - b tn."""

    def __init__(self, size: int, pos: PairClass, neg: PairClass, steps: Sequence[float]) -> None:
        """Weights of members are in units, of which each weighs a step."""

    def smooth(self, scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], mu: float, c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, float, Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """
        The smoothed risk, no more than mu below the risk: its value, and loss and slope of its plane.
        """

def ramp_sums(ramp: Ramp, t: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
    """Number and gain of the flips under each ramp (t, h)."""

def ramp_thresholds(pos: Ramp, neg: Ramp, tau: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], target: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
    """Thresholds t with count(neg, t) - count(pos, tau - t) = target."""

class CutPool:
    """
    Cuts of a risk, their Gram matrix, and the program over them. It belongs to one run.
    """

    def __init__(self, width: int, images: bool, room: int) -> None: ...

    def begin(self, losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], rows: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]]) -> None:
        """
        Start from the cuts of another pool: they take the place of all but the zero cut.
        """

    def append(self, losses: Sequence[float], entries: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], images: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], patience: int = 18446744073709551615) -> None:
        """
        Append cuts by their losses, vectors and, if there are any, images. Before that, those go that had no weight in more than so many solutions in a row.
        """

    def minimise(self, lam: float, tol: float) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], float, float]:
        """
        Minimise lam/2 |w|^2 + max_k (losses[k] + <rows[k], w>) to within tol; returns w, its image, its squared length and the lower bound that this proves.
        """

    @property
    def size(self) -> int: ...

    @property
    def longest(self) -> float:
        """
        The length of the longest image; of the longest vector where there are none.
        """

    @property
    def losses(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    @property
    def alpha(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    @property
    def gram(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]: ...

    @property
    def rows(self) -> list[Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]]: ...

class QuasiNewton:
    """The matrix of limited-memory BFGS. It belongs to one run."""

    def __init__(self, lam: float, memory: int) -> None: ...

    def direction(self, point: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], image: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slope_image: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """
        Minus the inverse Hessian times lam point + slope, and its image; learns from the last call.
        """

    def forget(self) -> None:
        """Do not compare the next gradient with the last one."""

class BundleSteps:
    """
    What the iterations of the bundle method do between products with X. They belong to one run.
    """

    def __init__(self, pool: CutPool, lam: float, point: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], float], risk: float, *, stride: float, accuracy: float, memory: int) -> None:
        """
        From a point (entries, scores, squared length) of this risk, which is moved in place.
        """

    def propose(self, losses: Sequence[float], entries: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], images: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], *, patience: int, precision: float, tol: float, quasi_newton: bool) -> list[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """
        Append cuts and minimise the model to within precision; returns the minimiser and, if asked for, the quasi-Newton direction by the last cut's slope. Nothing where the gap is within tol.
        """

    def search(self, oracle: object, scores: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]]) -> None:
        """
        Move the best point along the direction and towards the minimiser, whose scores these are (none where vectors have images).
        """

    def cuts(self, oracle: object, mu: float, at_best: float | None) -> tuple[list[float], list[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]]:
        """
        The cut that follows, within mu of the risk where it is taken, and one at the best point if asked for: losses and slopes.
        """

    def forget(self) -> None:
        """Do not compare the next gradient with the last one."""

    def kept(self) -> dict[str, NDArray[numpy.float64]]:
        """What `go_on` needs, by name; no pairs without a quasi-Newton matrix."""

    def go_on(self, pace: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], pairs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """
        Go on with the pace and the quasi-Newton pairs that another run kept, where they fit.
        """

    @property
    def bound(self) -> float: ...

    @property
    def square(self) -> float: ...

    @property
    def risk(self) -> float: ...

    @property
    def in_vain(self) -> int:
        """Quasi-Newton directions in a row that led nowhere."""

def dot(u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float:
    """
    u'v in the calling thread (a threaded BLAS spends more on its threads than they give).
    """

def combine(shares: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
    """The sum of the vectors, each times its share."""

def rows_read(slopes: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> float:
    """
    The share of the rows of X that a product of X' with these vectors reads: those where any is not zero.
    """

def line_search(line: Callable[[float], object], parabola: Sequence[float], risk: float, tangent: tuple[float, float] | None, accuracy: float, reach: float) -> tuple[float, float]:
    """
    Minimise lam/2 (square + 2 t cross + t^2 bend) + risk(t) over t >= 0, where line(t) is the risk at t and its rise, known at 0; returns t and the risk there.
    """

def descend(line: Callable[[float], object], lam: float, point: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], float], risk: float, move: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], *, images: bool, tangent: tuple[float, float], accuracy: float) -> tuple[float, float, float]:
    """
    Minimise lam/2 |point + t move|^2 + risk(t) over t >= 0 and go there, in place: point is (entries, scores, squared length), move (entries, scores). line(t) is the risk at t and its rise; known at 0 are the risk and a tangent to it. Returns t, the risk there and the squared length.
    """

def simplex_qp(G: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: float, a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], tol: float, max_changes: int) -> int:
    """
    Minimise scale/2 a'Ga - b'a over the simplex, in place from a feasible a; returns the changes made.
    """

class NumberReader:
    """Reads a table of plain numbers that comes in pieces of whole lines."""

    def __init__(self, is_text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], *, n_threads: int, text_size: int = 0) -> None: ...

    def feed(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bool:
        """
        Read a piece of the text; False where it is not plain, and nothing more is read then.
        """

    def finish(self) -> tuple[int, Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]]:
        """
        (number of rows, numbers row by row, cells of text one behind the other, where these begin and end).
        """

class SvmlightReader:
    """Reads svmlight text that comes in pieces of whole lines."""

    def __init__(self, *, allow_blank: bool, light_tags: bool, least: int, most: int, n_threads: int, lines_before: int = 0, text_size: int = 0) -> None: ...

    def feed(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Read a piece of the text. ValueError with line and column."""

    def finish(self, *, several: bool = False, unwanted: bool = False) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], int, int, int]:
        """
        (values, indices as written, indptr, labels, label_starts, qids, lowest and highest index, bytes read).
        """

class Matrix:
    """A data matrix X, dense or CSR, which keeps the arrays it was made of."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def products(self, pull: bool, vectors: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], bias: float, n_threads: int) -> list[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """X v, or X'v to pull, for each of several v."""

    def columns(self, pull: bool, V: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]:
        """X V, or X'V to pull, for the columns of V."""

    def some(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Matrix, Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]]:
        """
        Some rows of a CSR matrix as a matrix, and its features: those that are zero in all of these rows are left out, as long as there are more features than rows.
        """

@overload
def dense_matrix(X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], fortran: bool = False) -> Matrix: ...

@overload
def dense_matrix(X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], fortran: bool = False) -> Matrix:
    """
    A dense matrix in C-order; or the one whose transpose this is, where `fortran` says so.
    """

@overload
def csr_matrix(data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int, trusted: bool = False) -> Matrix: ...

@overload
def csr_matrix(data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int, trusted: bool = False) -> Matrix: ...

@overload
def csr_matrix(data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int, trusted: bool = False) -> Matrix: ...

@overload
def csr_matrix(data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_cols: int, trusted: bool = False) -> Matrix:
    """
    A CSR matrix, whose arrays must not change any more. ValueError unless its structure is sound; that of one that was found sound before may be trusted.
    """

class HingeSum:
    """A sum of hinges: upper_i max(0, margin_i - sign_i <w, x_i>)."""

    def __init__(self, *, squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], margin: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """By the squared lengths of the rows, and one number each per row."""

def row_squares(matrix: Matrix, bias: float) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
    """Squared lengths of the rows, bias^2 included."""

def dual_cd(matrix: Matrix, bias: float, hinges: HingeSum, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], working: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], float, float, float], *, again: bool, tol: float, gap: float, max_visits: int, gram: bool = False) -> tuple[int, bool, float, int, float, float, float]:
    """
    Dual coordinate descent in place on alpha, w and the rows of `working` (rows, low, high, others). With `gram` the matrix holds the kernel's values, and w stands for the scores of all examples. Returns the row visits, whether tol was reached, what the gap looks like, how many rows were not set aside, and the limits for the next call.
    """

def pair_cd(matrix: Matrix, hinges: HingeSum, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], working: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], *, tol: float, max_visits: int, gram: bool = False) -> tuple[int, bool, float]:
    """
    Pair descent with a free bias in place on alpha and w, over the rows `working`; `gram` as for `dual_cd`. Returns the row visits, whether the violation of pairs is within tol, and what it was when last looked at.
    """

def dual_working(sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], margin: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, float, Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], float, float, float]:
    """
    The sum of the hinges, the largest projected gradient, and whom coordinate descent visits next: rows, limits, and the sum of the hinges of the others.
    """

class PrecisionSearch(Risk):
    """The most violated ranking of average precision."""

    def __init__(self, pos: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], neg: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], ratio: float, size: int) -> None: ...

def interleave(pos: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], neg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], ratio: float) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """
    How many positives stand above each negative in the most violated ranking of average precision; scores descending.
    """

class TopRankingSearch(Risk):
    """
    The most violated ranking, for a loss of the grades at the first ranks. Examples may be repeated: `of`.
    """

    def __init__(self, of: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], grades: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], gains: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], discounts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: float, size: int) -> None: ...

class MeanOfGroups(Risk):
    """The mean of the risks of groups of a sample."""

    def __init__(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], risks: Sequence[object]) -> None: ...

class SumOfRisks(Risk):
    """A sum of risks, each so many times."""

    def __init__(self, risks: Sequence[object], times: Sequence[float]) -> None: ...

class BaseLosses(Risk):
    """
    Hinges and logistic losses of examples, whose shares have the signs of their labels.
    """

    def __init__(self, shares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], hinge: float, logistic: float) -> None: ...

def viterbi(unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], transition: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]:
    """The highest-scoring tags of every sequence."""

def viterbi_by_mistakes(unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], transition: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], truth: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C')]]:
    """
    For m = 0, 1, ...: the score and the tags of the highest sequence with m mistakes.
    """

class BinaryRules:
    """
    The rules parent -> left right of a grammar, ordered by their left symbol.
    """

    def __init__(self, parent: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], left: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], symbols: int) -> None:
        """By numbers below `symbols`."""

def cky(rules: BinaryRules, weight: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], lexical: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], roots: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], gold: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], price: float) -> tuple[float, Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]]:
    """
    The highest-scoring tree: its score, its nodes (rule, start, split, end) from the top, the labels of the words. `weight` has one row for all spans, or one for each at start * n + end - 1.
    """

class WorkingSets:
    """Constraints by example, their multipliers and the weights w."""

    def __init__(self, n: int, p: int, C: float) -> None: ...

    def append(self, examples: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Constraints as losses and CSR rows, each with the number of its example.
        """

    def ascend(self, precision: float, epochs: int) -> float:
        """
        Solve the examples' blocks one after the other; returns the gap per example before that.
        """

    def settle(self) -> float:
        """Sum w anew from the multipliers; returns the value of the dual."""

    def drop(self, patience: int) -> None:
        """Drop constraints without a share in more than so many calls in a row."""

    def slacks(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """The slack of every example at any w."""

    def weights(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """A copy of w."""

    @property
    def size(self) -> int:
        """Number of constraints."""

    @property
    def n_support(self) -> int:
        """Number of those with a share."""
