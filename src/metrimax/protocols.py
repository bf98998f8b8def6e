"""The architecture on one page: what the rooms of the library say to each other.

For every measure the risk touches the data only through the scores ``s = X w``::

    R(w) = max over cuts of  loss + <slope, X w>,        gradient = X' slope

A *measure* (through its *oracle*) knows labels and scores and never sees X. A *design* knows X and never
sees labels. A *solver* knows neither: it asks for products with X and for cuts, and combines them.

Conventions
-----------
* ``n`` examples, ``p`` weights (the intercept included), ``L`` labels solved side by side.
* ``scores`` and ``slope`` have shape (n,), weights ``w`` have shape (p,); all float64.
* Several at once are columns: ``W`` is (p, L), ``S`` is (n, L).
* Labels inside the library are boolean: True for the positive class.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Rows = npt.NDArray[np.intp]


class Cut(NamedTuple):
    """A lower bound of the risk: ``R(s) >= loss + slope @ s`` for all scores, with equality where it was computed."""

    loss: float
    slope: Vector


Line = Callable[[float], tuple[float, float]]
"""The risk along a line of scores, ``R(s + t m)``, and its slope in t."""

Smooth = Callable[[Vector, float], tuple[float, Cut]]
"""(scores, mu) -> a smoothed risk, at most mu below the risk, and the mean of cuts whose slope is its gradient."""


class Hinges(NamedTuple):
    """A risk that is a sum over examples: ``R(s) = 1/n sum_i weight_i max(0, margin_i - sign_i s_i)``."""

    sign: Vector
    margin: Vector
    weight: Vector


class Kink(NamedTuple):
    """Labellings that all have the loss R(0): one class is all wrong, and the examples of the other one are free.

    Every mean of them is a cut with that loss, ``R(s) >= loss - 1/n sum_i (base_i + share_i weight_i) sign_i s_i``:
    shares are 1 in the one class, and from 0 to 1 for the free examples (if there is a ``total``, so that the weights
    that flip add up to it). ``base`` is what the other terms of a sum add to every such cut; None stands for zeros.
    """

    loss: float
    sign: Vector
    weight: Vector
    free: npt.NDArray[np.int64]
    total: float | None = None
    base: Vector | None = None


class Working(NamedTuple):
    """The examples that coordinate descent visits, the limits of the gradient beyond which it sets them aside, and the
    sum of the hinges of the others.
    """

    rows: npt.NDArray[np.int64]
    low: float
    high: float
    others: float


class Epochs(NamedTuple):
    """What coordinate descent did: passes over the data, whether the projected gradient is as small as was asked, an
    estimate of the gap (not a proof), and the examples that are left to visit.
    """

    passes: float
    reached: bool
    gap: float
    left: Working


@dataclass(frozen=True)
class Capabilities:
    """What an oracle offers beyond its protocol; None where it does not.

    What takes time or memory is a function that computes it. An oracle that wraps others passes on what still holds.
    Solvers look here and nowhere else.
    """

    compiled: Any = None  #: a compiled oracle (`_kernels.Risk`) with the same answers, which the kernels call instead
    smooth: Callable[[], Smooth | None] | None = None  #: a smoothed risk, for L-BFGS and the accelerated method
    hinges: Callable[[], Hinges] | None = None  #: the risk as a sum over examples, for dual coordinate descent
    mistakes: Callable[[], Hinges] | None = None  #: the hinges of the error rate, on which a solver may start
    kink: Callable[[], Kink | None] | None = None  #: labellings that all have the loss R(0): the way out of w = 0
    within: Callable[[Rows], Oracle] | None = None  #: the risk of the labellings in which only some rows may flip
    at_k: float | None = None  #: k, where every labelling has k predicted positives
    base: float | None = None  #: the base losses of the best constant score


class Oracle(Protocol):
    """The most violated labelling of one sample under one measure."""

    @property
    def n(self) -> float:
        """Number of examples, or their total weight."""

    @property
    def price(self) -> float:
        """kappa: the price of one mistake relative to the error rate's 1/n, at least 1."""

    @property
    def can(self) -> Capabilities:
        """What it offers beyond this protocol; ``Capabilities()`` if nothing."""

    def __call__(self, scores: Vector) -> Cut:
        """Return the cut that attains ``R(scores)``."""

    def mean_cut(self, scores: Vector, mu: float) -> Cut:
        """A mean of cuts, at most ``mu`` below ``R(scores)`` there; its slope changes less abruptly than a cut's."""

    def line(self, scores: Vector, move: Vector) -> Line:
        """The risk along ``scores + t move``, cheaper than by cuts where possible."""


class Measure(Protocol):
    """A performance measure: its name, its loss and score, and its oracle on a sample."""

    @property
    def name(self) -> str: ...

    @property
    def ranks(self) -> bool:
        """Whether `score` looks at the order of the scores, and not only at their signs."""

    def loss(self, y: Labels, z: npt.ArrayLike, sample_weight: Vector | None = None) -> float:
        """D(z) in [0, 1] of the labelling ``z`` (of the scores ``z`` for a ranking measure)."""

    def score(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        """The measure itself, higher is better, for real-valued scores (positive means the positive class)."""

    def oracle(self, y: Labels, sample_weight: Vector | None = None) -> Oracle: ...

    def threshold(self, y: Labels, scores: Vector, sample_weight: Vector | None = None) -> float:
        """The score above which an example is called positive; fixed when the model is fitted."""


Product = Literal["scores", "pull"]
"""``X v`` or ``X' v``."""


class RowAccess(Protocol):
    """A matrix in memory: products with several vectors in one pass, and its rows one by one; or a kernel's values."""

    def with_constant(self, value: float) -> RowAccess:
        """The same rows with the intercept's feature, of that value, appended."""

    def products(self, product: Product, vectors: list[Vector]) -> list[Vector]:
        """The product with each vector (contiguous, float64), reading X once for several where that is quicker."""

    def some(self, rows: Rows) -> tuple[RowAccess, Rows] | None:
        """A copy of some rows, ascending, and the features that it has; None where there are no rows in memory.

        What is left out is zero in all of these rows. If there are more features than rows, so there are in the copy.
        """

    @property
    def in_order(self) -> bool:
        """Whether each row is contiguous in memory; if not, `dual_epochs` copies X first, or there are no rows."""

    def squares(self) -> Vector:
        """Squared lengths of the rows."""

    def mean_square(self) -> float:
        """Mean of the squared lengths."""

    def square(self, w: Vector, slope: Vector, scores: Vector) -> float:
        """``|w|^2`` for ``w = X' slope`` with ``scores = X w``."""

    def dual_epochs(
        self,
        hinges: Hinges,
        upper: Vector,
        alpha: Vector,
        w: Vector,
        *,
        tol: float,
        max_passes: float,
        gap: float = -np.inf,
        working: Working | None = None,
    ) -> Epochs:
        """Coordinate descent on the dual of ``1/2 |w|^2 + sum_i upper_i max(0, margin_i - sign_i <w, x_i>)``.

        Updates ``alpha`` and ``w = X' (sign * alpha)`` in place. Ends when the projected gradient is within ``tol``,
        the estimated gap is ``gap`` or less, or ``max_passes`` times n rows were visited. With ``working`` only its
        rows are visited, less those that shrinking removes on the way; the result then says nothing about the other
        rows. Its rows are reordered; the remaining ones come first, for the next call.
        """

    def pair_epochs(
        self, hinges: Hinges, alpha: Vector, w: Vector, working: npt.NDArray[np.int64], *, tol: float, max_passes: float
    ) -> float:
        """Pair descent on the same dual with ``sum_i sign_i alpha_i = 0``: for a free bias. Returns the passes.

        ``hinges.weight`` are the upper bounds. ``w`` has no weight for the intercept, which would stay zero. Ends when
        no pair of the rows ``working`` is violated by more than ``tol``, or after ``max_passes`` times n visits.
        """


@runtime_checkable
class Multiplies(Protocol):
    """The data as a linear map. ``w`` may be one vector (p,) or one per label (p, L), and so may ``slope``."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def matvec(self, w: Vector) -> Vector:
        """``X w``: scores, (n,) or (n, L)."""

    def rmatvec(self, slope: Vector) -> Vector:
        """``X' slope``: (p,) or (p, L). Rows where the slope is zero are not read."""


@runtime_checkable
class Design(Multiplies, Protocol):
    """A linear map that says whether its rows can be accessed; `as_design` makes one."""

    @property
    def rows(self) -> RowAccess | None:
        """Access to a matrix in memory; None where only the two products are available."""


Offered = TypeVar("Offered")


def made(maker: Callable[[], Offered | None] | None) -> Offered | None:
    """The value of one of the `Capabilities`; None where it is not offered."""
    return None if maker is None else maker()


def required(offered: Offered | None, what: str) -> Offered:
    """A capability that a solver needs; raises where it is not offered."""
    if offered is None:
        raise ValueError(what)
    return offered


class Ask(NamedTuple):
    """The products that a solver asks for, in one pass: ``X v`` ("scores") or ``X' v`` ("pull") for each vector v.

    The answer is a list, one vector for each.
    """

    product: Product
    vectors: list[Vector]


Result = TypeVar("Result")

Asking = Generator[Ask, list[Vector], Result]
"""A computation that asks for products on its way: it yields `Ask`, is sent the answers, and returns a result."""


class Status(Enum):
    """How a run ended; the value is the sentence the user reads."""

    CONVERGED = "converged: the duality gap is within tol"
    TRIVIAL = (
        "w = 0 is optimal up to tol: nothing is learnt from these features at this C or below (where classes overlap "
        "the risk alone may learn nothing at any C: leave hinge and logistic out, or let MeasureSVCCV choose; "
        "for the first ranks of a ranking train roc_area or average_precision; otherwise raise C)"
    )
    UNCHANGED = (
        "w = 0 is optimal up to tol: the auxiliary classifiers stand as they are "
        "(raise C to let the delta function correct them)"
    )
    APPROXIMATE = (
        "converged on a low-rank approximation of the kernel: the duality gap is within tol for the approximate "
        "problem, not for the exact kernel (kernel_kept_ says how close; raise cache_size or n_components)"
    )
    RELAXED = (
        "converged on the relaxed problem: the duality gap is within tol for a risk over fractional outputs too, which "
        "bounds the exact risk from above"
    )
    UNCERTIFIED = (
        "the approximate argmax finds nothing better any more: the bound holds, but the true objective may be above "
        "the one reported, so that the gap proves nothing (use exact or relaxed inference for a certificate)"
    )
    MAX_ITER = "stopped at max_iter before the duality gap reached tol"
    STALLED = "stopped: no further progress in floating point before the duality gap reached tol"
    CALLBACK = "stopped by the callback"
    ONE_CLASS = "only one class: the prediction is constant"

    def __str__(self) -> str:
        return self.value

    @classmethod
    def reached(cls, w: Vector) -> Status:
        """What a gap within the tolerance means, for weights without those that are free."""
        return cls.CONVERGED if w.any() else cls.TRIVIAL

    @property
    def ok(self) -> bool:
        """Whether the certificate is within the tolerance asked for."""
        return self not in (Status.UNCERTIFIED, Status.MAX_ITER, Status.STALLED, Status.CALLBACK)

    @property
    def missed(self) -> bool:
        """Whether the run missed the tolerance without being told to stop."""
        return self in (Status.MAX_ITER, Status.STALLED)


class Record(NamedTuple):
    """One line of the history of a run, in units of the measure (objective and bound divided by C kappa n).

    ``n_passes`` counts the rows of X that were read, in units of n: all of them for scores, those with a slope for a
    pull-back, those visited by an epoch of coordinate descent; once for however many vectors.
    """

    iteration: int
    n_passes: float
    objective: float
    bound: float
    n_cuts: int
    seconds: float

    @property
    def gap(self) -> float:
        return max(0.0, self.objective - self.bound)  # rounding may take it below zero


class Point(NamedTuple):
    """A weight vector: its representation in the cut model, its scores, and its squared length.

    Scores that are not needed yet are empty (the cut model computes them later); the length of a mere direction is NaN.
    """

    rep: Vector
    scores: Vector
    square: float = np.nan


@dataclass(frozen=True)
class Cuts:
    """Cuts kept as data, valid for every C: their losses, their Gram matrix, and the arrays that hold their vectors.

    For data with more rows than columns ``rows`` is one array, with ``R(w) >= losses[k] + rows[0][k] @ w``; otherwise
    two, slopes and the scores of their pull-backs: ``R(w) >= losses[k] + rows[0][k] @ (X w)``.
    """

    losses: Vector
    gram: Vector
    rows: tuple[Vector, ...]
    #: the last point of the run and the risk there, where the next run may start
    best: tuple[Point, float] | None = None
    pool: Any = field(default=None, repr=False, compare=False)  #: the kernel that holds them
    given: bool = False  #: whether the next run may take that kernel over instead of copying it
    n_passes: float = 0.0  #: passes spent on them, where these count for the run that starts from them
    seconds: float = 0.0  #: seconds spent on them
    history: tuple[Record, ...] = ()  #: the run so far, where the next one continues it at the same C
    #: weights found and their objective, where the run does not continue from them
    held: tuple[Vector, float] | None = None
    #: the solver's own state, so that a resumed run continues as if never stopped
    schedule: Arrays = field(default_factory=dict, repr=False)

    def elsewhere(self) -> Cuts:
        """The cuts for a run at another C, without the history of this one."""
        return replace(self, n_passes=0.0, seconds=0.0, history=(), held=None, schedule={})

    def __getstate__(self) -> dict[str, Any]:
        """The data alone."""
        return self.__dict__ | {"pool": None, "given": False}


@dataclass(frozen=True)
class Solution:
    """A point, its value, a lower bound on the optimum, and how it was reached.

    ``objective`` and ``bound`` are in units of J, ``1/2 |w|^2 + C kappa n R(w)``;
    ``gap = (objective - bound) / (C kappa n)`` is in units of the measure.
    """

    w: Vector
    objective: float
    bound: float
    gap: float
    n_iter: int
    n_passes: float
    n_support: int
    status: Status
    history: list[Record] = field(repr=False)
    cuts: Cuts | None = field(repr=False)
    dual_coef: Vector | None = field(default=None, repr=False)
    """With a dual solver, the multipliers of the examples times their labels: ``w = X' dual_coef``."""

    def parted(self) -> tuple[Solution, Cuts | None]:
        """The solution without its cuts, and the cuts, which the next run takes over."""
        return replace(self, cuts=None), None if self.cuts is None else replace(self.cuts, given=True)

    def __post_init__(self) -> None:
        if -1e-9 * abs(self.objective) <= self.objective - self.bound <= 0:  # as near as rounding allows
            object.__setattr__(self, "bound", self.objective)
            object.__setattr__(self, "gap", 0.0)


Callback = Callable[[Record], Any]
"""Called after every iteration; returning True stops the run."""


Keep = Callable[[Record, Callable[[], Cuts]], None]
"""Called after every iteration, before the callback: ``state()`` returns the current state of the run."""


Steps = Asking[Solution]
"""A run of a solver. It is a generator so that many labels can run in lockstep, and one pass over X serves them all."""


class Solver(Protocol):
    """A way to minimise ``1/2 |w|^2 + weight R(w)``; ``weight`` is C kappa n."""

    def steps(
        self,
        oracle: Oracle,
        design: Design,
        weight: float,
        *,
        tol: float,
        start: Cuts | None = None,
        callback: Callback | None = None,
        keep: Keep | None = None,
    ) -> Steps: ...
