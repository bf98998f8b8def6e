"""Xi-alpha: the performance of a support vector machine, estimated from its dual solution without more training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from metrimax.estimates.dual_view import dual_view
from metrimax.estimates.estimate import Estimate


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
        Whether the counts bound the leave-one-out mistakes: every example that is not counted provably stays right when
        it is left out, even though training ended with a duality gap.
    """

    R2: float
    rho: float
    stable: bool
    proven: bool

    def __str__(self) -> str:
        bound = "a proven bound on leave-one-out" if self.proven else "an estimate, not a bound"
        unstable = "" if self.stable or self.proven else "; unstable: no unbounded support vector, so do not rely on it"
        return f"xi-alpha (rho = {self.rho:g}, R2 = {self.R2:.4g}; {bound}{unstable}): {super().__str__()}"


def xi_alpha(
    model: Any, X: Any, y: Any, rho: float = 1.0, *, R2: float | None = None, sample_weight: Any = None
) -> XiAlpha:
    """Estimate error, recall, precision and F1 from a trained SVM and its training sample, without resampling.

    Most examples that are misclassified when left out of the training have ``2 alpha_i R2 + xi_i >= 1``. So the number
    of examples with that property bounds the leave-one-out mistakes (Lemma 1); ``proven`` says whether it does so on
    this sample. For text, ``rho = 1`` instead of 2 is nearer to the truth.

    Parameters
    ----------
    model : fitted MeasureSVC (error, cost or balanced error), LinearSVC(loss="hinge") or SVC
        For two classes; a MeasureSVC without base loss and placed threshold. If the model does not
        keep its multipliers, its dual problem is solved here.
    X : array or sparse matrix (n, p)
        The sample that the model was trained on.
    y : array (n,)
        Its labels.
    rho : float, default=1.0
        2 gives a proven bound for MeasureSVC and LinearSVC; so does 1 without an intercept. For a free bias see the
        Notes.
    R2 : float or None, default=None
        An upper bound of ``K(x, x) - K(x, x')`` for all x, x'. None computes it from X: exactly for small samples, from
        the ranges of the features for large ones (linear and RBF kernels).
    sample_weight : array (n,) or None
        The weights that the model was trained with. All examples count alike, whatever their weights; examples of
        weight 0 are not in the sample.

    Returns
    -------
    XiAlpha
        The estimates ``error``, ``recall``, ``precision`` and ``f1``, with their assumptions.

    Notes
    -----
    For a hyperplane through the origin of its feature space the bound holds with rho = 1 and ``K(x, x)`` for R2,
    whether it is stable or not. The regularised intercept of `MeasureSVC` is a feature of that space, so the proof
    needs ``rho R2 >= max K(x, x) + intercept_scaling^2``. If the largest ``K(x, x) - K(x, x')`` is too small for
    that with rho = 2, the R2 computed here is raised. For unit-length text with the default intercept it is 1. Without
    an intercept, R2 is the largest ``K(x, x)``.

    The bias of an SVC, and of ``MeasureSVC(intercept_scaling="free")``, is free. Lemma 1 then supposes that the
    threshold is determined without the example, too, and there are samples where it is not and the bound fails. So
    every example that is not counted is checked one by one: it is cleared if the unbounded support vectors have room to
    take over its multiplier (`metrimax.estimates.free_machine.FreeMachine.cleared`; kernel functions and matrices are
    taken to be positive semi-definite). With few unbounded support vectors nothing is proven; `leave_one_out` is exact.

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
    if not 0 < rho < math.inf:
        raise ValueError(f"expected a finite rho > 0 (1 to estimate, 2 to bound), got {rho!r}")
    if R2 is not None and not 0 <= R2 < math.inf:
        raise ValueError(f"expected a finite R2 >= 0, an upper bound of K(x, x) - K(x, x'), or None, got {R2!r}")
    machine = dual_view(model, X, y, sample_weight)
    radius = machine.R2() if R2 is None else float(R2)
    doubtful = machine.doubtful(rho, radius)
    proven = machine.proves(doubtful)
    if not proven and machine.bounds(rho, radius):  # the training ended too far from the optimum
        machine.polish()
        doubtful = machine.doubtful(rho, radius)
        proven = machine.proves(doubtful)
    counted = machine.counted
    return XiAlpha.count(
        doubtful[counted], machine.y[counted], R2=radius, rho=float(rho), stable=machine.stable, proven=proven
    )
