"""Exact leave-one-out: only examples whose result no bound proves are left out and retrained."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from metrimax.estimates.dual_view import dual_view
from metrimax.estimates.estimate import Estimate
from metrimax.training.progress import ProgressLine


@dataclass(frozen=True)
class LeaveOneOut(Estimate):
    """Exact leave-one-out measures.

    Attributes
    ----------
    error, recall, precision, f1 : float
    d_pos, d_neg : int
        Positives and negatives that are misclassified when left out of the training.
    n_retrained : int
        For how many examples the machine was retrained without them.
    n_undecided : int
        How many of these ended so near to the hyperplane that rounding decides.
    mistakes : ndarray of bool (n,)
        Which examples are misclassified when left out; False for examples of weight 0.
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


def leave_one_out(
    model: Any, X: Any, y: Any, *, tol: float = 1e-10, sample_weight: Any = None, verbose: int = 1
) -> LeaveOneOut:
    """Exact leave-one-out estimates of error, recall, precision and F1, retraining only where it can matter.

    Most examples need no retraining. The bound behind `xi_alpha` proves that many stay right when left out. Examples
    that the machine misclassifies although it was trained on them stay wrong. The others are left out one by one.
    Training then starts from the full solution, and ends as soon as the duality gap decides the sign of the score.

    Parameters
    ----------
    model : fitted MeasureSVC (error, cost or balanced error), LinearSVC(loss="hinge") or SVC
        For two classes; a MeasureSVC without base loss and placed threshold.
    X : array or sparse matrix (n, p)
        The sample that the model was trained on.
    y : array (n,)
        Its labels.
    tol : float, default=1e-10
        The gap, relative to the objective, at which training ends even if it has not proven the sign.
    sample_weight : array (n,) or None
        The weights that the model was trained with. All examples count alike, whatever their weights; examples of
        weight 0 are not in the sample.
    verbose : int, default=1
        1 shows a line of progress, if standard error is a terminal.

    Returns
    -------
    LeaveOneOut
        With the attributes ``error``, ``recall``, ``precision`` and ``f1``, and how many examples were retrained.

    Notes
    -----
    "Left out" means that the example's term leaves the objective; C and the weights of the others stay as they are.
    With alpha and w at a duality gap g, ``K = |x_i|^2`` (the constant feature included) and s the score,

        y_i s_i > sqrt(alpha_i^2 K^2 + 2 g K)   stays right,        y_i s_i < -sqrt(2 g K)   stays wrong,

    which holds for any gap and needs no stability. For a free bias an example stays right if the unbounded support
    vectors have room for its multiplier (`metrimax.estimates.free_machine.FreeMachine.cleared`). An SVC is trained from
    nothing without the others, since libsvm knows no start, and as exactly as its tolerance says.

    References
    ----------
    Joachims (2000), Lemma 1 and the question left open in section 7.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from metrimax import MeasureSVC, leave_one_out
    >>> X, species = load_iris(return_X_y=True)
    >>> X, y = X[50:], species[50:] == 2
    >>> model = MeasureSVC("error", C=1.0, solver="dual_cd", tol=1e-6).fit(X, y)
    >>> round(leave_one_out(model, X, y, verbose=0).error, 2)
    0.03
    """
    began = time.perf_counter()
    machine = dual_view(model, X, y, sample_weight)
    machine.polish()
    mistakes = machine.wrong()
    left_out = np.flatnonzero(machine.counted & ~mistakes & ~machine.cleared())
    n_undecided = 0
    with ProgressLine("leave-one-out") as line:
        for done, t in enumerate(left_out):
            if verbose:
                line.show(f"{done} of {len(left_out)} retrained, {time.perf_counter() - began:.1f} s")
            score, decided = machine.score_without(int(t), tol)
            mistakes[t] = (score > 0) != machine.y[t]
            n_undecided += not decided
    return LeaveOneOut.count(
        mistakes[machine.counted],
        machine.y[machine.counted],
        n_retrained=len(left_out),
        n_undecided=n_undecided,
        mistakes=mistakes,
        seconds=time.perf_counter() - began,
    )
