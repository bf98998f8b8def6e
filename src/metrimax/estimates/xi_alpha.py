"""How good will it be? Estimates of a support vector machine's performance from its training sample alone.

`xi_alpha` reads them off the dual solution at no cost; `leave_one_out` is exact, and retrains only where the bound
leaves a doubt. What both need to know of a model, whatever its class, is a `Machine` (`metrimax.estimates.dual_view`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from metrimax.estimates.machines import machine
from metrimax.protocols import Labels
from metrimax.training.progress import ProgressLine


@dataclass(frozen=True)
class Estimate:
    """Estimates of the four measures from the numbers of mistakes on positives and on negatives.

    ``error = d/n``, ``recall = 1 - d+/n+``, ``precision = (n+ - d+) / (n+ - d+ + d-)``, ``f1 = (2n+ - 2d+) / (2n+ - d+
    + d-)``. A precision of 0/0 counts as 0.

    References
    ----------
    Joachims (2000), Definitions 1, 3, 4 and 5.
    """

    d_pos: int
    d_neg: int
    n_pos: int
    n_neg: int

    @classmethod
    def count(cls, mistaken: npt.NDArray[np.bool_], y: Labels, **more: Any) -> Self:
        """Count the mistakes on both classes."""
        d_pos, d_neg = int(np.count_nonzero(mistaken & y)), int(np.count_nonzero(mistaken & ~y))
        n_pos = int(np.count_nonzero(y))
        return cls(d_pos, d_neg, n_pos, len(y) - n_pos, **more)

    @property
    def table(self) -> tuple[int, int, int, int]:
        """``tp, fp, fn, tn``."""
        return self.n_pos - self.d_pos, self.d_neg, self.d_pos, self.n_neg - self.d_neg

    @property
    def error(self) -> float:
        return (self.d_pos + self.d_neg) / (self.n_pos + self.n_neg)

    @property
    def recall(self) -> float:
        return 1 - self.d_pos / self.n_pos

    @property
    def precision(self) -> float:
        found = self.n_pos - self.d_pos
        return found / (found + self.d_neg) if found else 0.0

    @property
    def f1(self) -> float:
        return (2 * self.n_pos - 2 * self.d_pos) / (2 * self.n_pos - self.d_pos + self.d_neg)

    def as_dict(self) -> dict[str, float]:
        """The four estimates by name."""
        return {"error": self.error, "recall": self.recall, "precision": self.precision, "f1": self.f1}

    def __str__(self) -> str:
        return (
            f"error {100 * self.error:.2f} %, recall {100 * self.recall:.1f} %, "
            f"precision {100 * self.precision:.1f} %, F1 {100 * self.f1:.1f} %"
        )


@dataclass(frozen=True)
class XiAlpha(Estimate):
    """Xi-alpha estimates.

    Attributes
    ----------
    error, recall, precision, f1 : float
    d_pos, d_neg : int
        Positives and negatives with ``rho alpha_i R2 + xi_i >= m_i`` (m_i: the margin to keep, 1 for the error rate).
    R2, rho : float
    stable : bool
        Whether there is an unbounded support vector. Without one, the threshold of a machine with a free bias is
        not determined, and its estimates mean nothing.
    proven : bool
        Whether the counts are proven bounds of the leave-one-out mistakes, up to the solver's tolerance.
    """

    R2: float
    rho: float
    stable: bool
    proven: bool

    def __str__(self) -> str:
        bound = "a proven bound on leave-one-out" if self.proven else "an estimate, not a bound"
        unstable = "" if self.stable else "; unstable: no unbounded support vector, do not trust it"
        return f"xi-alpha (rho = {self.rho:g}, R2 = {self.R2:.4g}; {bound}{unstable}): {super().__str__()}"


@dataclass(frozen=True)
class LeaveOneOut(Estimate):
    """Exact leave-one-out measures.

    Attributes
    ----------
    error, recall, precision, f1 : float
    d_pos, d_neg : int
        Positives and negatives that are misclassified when left out of the training.
    n_retrained : int
        How many examples had to be left out in earnest.
    n_undecided : int
        Of these, how many ended so near to the hyperplane that rounding decides.
    mistakes : ndarray of bool (n,)
        Which examples are misclassified when left out; never those without weight.
    seconds : float
    """

    n_retrained: int
    n_undecided: int
    mistakes: npt.NDArray[np.bool_]
    seconds: float

    def __str__(self) -> str:
        return (
            f"leave-one-out ({self.n_retrained} of {self.n_pos + self.n_neg} retrained, {self.seconds:.1f} s): "
            + super().__str__()
        )


def xi_alpha(
    model: Any, X: Any, y: Any, rho: float = 1.0, *, R2: float | None = None, sample_weight: Any = None
) -> XiAlpha:
    """Estimate error, recall, precision and F1 from a trained SVM and its training sample, without resampling.

    An example that would be misclassified if it were left out of the training has ``2 alpha_i R2 + xi_i >= 1``, so
    counting these bounds the leave-one-out mistakes (Lemma 1). ``rho = 1`` in the place of 2 is nearer to the truth
    for text.

    Parameters
    ----------
    model : fitted MeasureSVC (error, cost or balanced error), LinearSVC(loss="hinge") or SVC
        For two classes; a MeasureSVC without kernel, hinge and placed threshold. If the model does not
        keep its multipliers, its dual problem is solved here.
    X : array or sparse matrix (n, p)
        The sample that the model was trained on.
    y : array (n,)
        Its labels.
    rho : float, default=1.0
        2 gives the proven bound; so does 1 without an intercept.
    R2 : float or None, default=None
        An upper bound of ``K(x, x) - K(x, x')`` for all x, x'. None computes it from X: exactly for small samples, and
        beyond from the ranges of the features (linear and RBF kernels).
    sample_weight : array (n,) or None
        The weights that the model was trained with. What is counted are examples, whatever they weigh; one without
        weight is not in the sample.

    Notes
    -----
    Exactly: a hyperplane through the origin of its feature space obeys the bound with rho = 1 and ``K(x, x)`` for R2,
    whether it is stable or not. The regularised intercept of `MeasureSVC` is a feature of that space, so what is
    proven is ``rho R2 >= max K(x, x) + intercept_scaling^2``; where the largest ``K(x, x) - K(x, x')`` does not give
    that with rho = 2, the R2 computed here is raised until it does. For unit-length text with the default intercept it
    is 1. Without an intercept, R2 is the largest ``K(x, x)``.

    References
    ----------
    Joachims, T. (2000). Estimating the generalization performance of a SVM efficiently. ICML.
    Jaakkola, T. & Haussler, D. (1999). Probabilistic kernel regression models. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax import MeasureSVC, xi_alpha
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(500) < 0.3
    >>> X = rng.normal(size=(500, 4)) + 2.0 * y[:, None]
    >>> model = MeasureSVC("error", C=0.1, solver="dual_cd").fit(X, y)
    >>> bound = xi_alpha(model, X, y, rho=2)
    >>> bound.proven, bound.stable, bound.error >= xi_alpha(model, X, y).error
    (True, True, True)
    """
    if not 0 < rho < np.inf:
        raise ValueError(f"expected a finite rho > 0 (1 to estimate, 2 to bound), got {rho!r}")
    if R2 is not None and not 0 <= R2 < np.inf:
        raise ValueError(f"expected a finite R2 >= 0, an upper bound of K(x, x) - K(x, x'), or None, got {R2!r}")
    m = machine(model, X, y, sample_weight)
    radius = m.R2() if R2 is None else float(R2)
    doubtful = m.doubtful(rho, radius)
    proven = m.proven(rho, radius)
    return XiAlpha.count(doubtful[m.counted], m.y[m.counted], R2=radius, rho=float(rho), stable=m.stable, proven=proven)


def leave_one_out(
    model: Any, X: Any, y: Any, *, tol: float = 1e-10, sample_weight: Any = None, verbose: int = 1
) -> LeaveOneOut:
    """Exact leave-one-out estimates of error, recall, precision and F1, retraining only where it can matter.

    Most examples need no retraining: those that the bound behind `xi_alpha` clears stay right when left out, and those
    that the machine misclassifies although it was trained on them stay wrong. The others are left out one by one, the
    training starting from the full solution and ending as soon as the duality gap decides the sign of the score.

    Parameters
    ----------
    model : fitted MeasureSVC (error, cost or balanced error), LinearSVC(loss="hinge") or SVC
        For two classes; a MeasureSVC without kernel, hinge and placed threshold.
    X : array or sparse matrix (n, p)
        The sample that the model was trained on.
    y : array (n,)
        Its labels.
    sample_weight : array (n,) or None
        The weights that the model was trained with. What is counted are examples, whatever they weigh; one without
        weight is not in the sample.
    tol : float, default=1e-10
        The gap, relative to the objective, below which a sign that is still open is taken as it is.
    verbose : int, default=1
        1 shows a line of progress, if standard error is a terminal.

    Notes
    -----
    "Left out" means that the example's term leaves the objective; C and the weights of the others stay as they are.
    With alpha and w at a duality gap g, ``K = |x_i|^2`` (the constant feature included) and s the score,

        y_i s_i > sqrt(alpha_i^2 K^2 + 2 g K)   stays right,        y_i s_i < -sqrt(2 g K)   stays wrong,

    which holds for any gap and needs no stability. For a free bias (SVC) Lemma 1 supposes that the machine stays stable
    without the example, which fails on some samples; so every support vector on its right side is left out, and
    retraining starts from nothing, since libsvm knows no start.

    References
    ----------
    Joachims (2000), Lemma 1 and the question left open in section 7.
    """
    began = time.perf_counter()
    m = machine(model, X, y, sample_weight)
    wrong, doubtful = m.settle()
    mistakes = wrong.copy()
    left_out = np.flatnonzero(doubtful)
    n_undecided = 0
    with ProgressLine("leave-one-out") as line:
        for done, t in enumerate(left_out):
            if verbose:
                line.show(f"{done} of {len(left_out)} retrained, {time.perf_counter() - began:.1f} s")
            score, decided = m.score_without(int(t), tol)
            mistakes[t] = (score > 0) != m.y[t]
            n_undecided += not decided
    return LeaveOneOut.count(
        mistakes[m.counted],
        m.y[m.counted],
        n_retrained=len(left_out),
        n_undecided=n_undecided,
        mistakes=mistakes,
        seconds=time.perf_counter() - began,
    )


__all__ = ["Estimate", "LeaveOneOut", "XiAlpha", "leave_one_out", "xi_alpha"]
