"""`StructuredSVM`: the structural support vector machine as an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from metrimax._validation import check_weights
from metrimax.estimators._base import CertifiedEstimator
from metrimax.protocols import Callback, Solution, Status
from metrimax.solvers import Bundle, CuttingPlane
from metrimax.structured.problem import Inference, StructuredProblem
from metrimax.structured.training import Cached, StructuredRisk, solve_cuts
from metrimax.training.label import FittedLabel


class StructuredSVM(CertifiedEstimator):
    """Structural support vector machine: learns to predict outputs of any kind.

    Minimises ``J(w) = 1/2 |w|^2 + C n R(w)``, where R is the mean over the n examples of

        max over outputs z of  loss(y, z) + w @ (joint_feature(x, z) - joint_feature(x, y))

    a convex upper bound of the mean loss of the predictions ``argmax over z of w @ joint_feature(x, z)``. Every
    solution comes with a lower bound on the optimum.

    Parameters
    ----------
    problem : StructuredProblem
        Features, loss and the two argmaxes: four methods of your own, or one of the problems of this package.
    C : float, default=1.0
        Weight of one unit of loss of one example. (Joachims, Finley and Yu, 2009, write C/n for it.)
    tol : float, default=1e-3
        Largest duality gap, in units of the mean loss.
    max_iter : int, default=1000
        Largest number of iterations.
    solver : {"cached", "bundle", "cutting_plane"}, default="cached"
        "cached" stores the constraints that it finds, and where there are more weights than examples it drops those
        that no longer matter. The problem over the stored constraints is solved before the argmax is called again. So
        there is one pass over the examples per iteration, and there are few iterations. The other two only keep one cut
        of each pass, the mean of the most violated constraints. "cutting_plane" is the 1-slack algorithm of Joachims,
        Finley and Yu (2009). "bundle" adds a line search, each point of which is one more pass.
    rescaling : {"margin", "slack"}, default="margin"
        "slack" multiplies the margin violation by the loss instead of adding the loss to it; the problem must define
        `slack_rescaled_argmax`.
    n_jobs : int or None, default=None
        How many argmaxes run at a time, in threads if the problem ``releases_gil``, otherwise in processes; -1 for all
        cores.
    verbose : int, default=0
        1 shows a line with the gap during the fit, or a new line every five seconds if standard error is no terminal.
    callback : callable or None, default=None
        Called with a `Record` after each iteration. Returning True stops the fit.

    Attributes
    ----------
    coef_ : ndarray (p,)
        w.
    objective_, dual_bound_ : float
        J at the solution, and a proven lower bound of the least J.
    gap_ : float
        ``(objective_ - dual_bound_) / (C n)``.
    n_iter_, n_passes_ : int
        Iterations, and passes over all examples.
    n_support_ : int
        Cuts with a weight above 0 in the solution.
    price_ : float
        kappa: 1 for structured problems.
    status_ : Status
        How the fit ended; its value is a sentence.
    history_ : list of Record
        ``n_passes`` counts passes over the examples, ``n_cuts`` the stored constraints or cuts.
    problem_ : StructuredProblem
        The problem that was trained.

    Notes
    -----
    With exact inference the certificate holds for the problem as given. With a relaxed argmax it holds for the relaxed
    problem, whose risk bounds the exact one from above. With an approximate argmax ``dual_bound_`` still holds, but
    ``objective_`` may be too low, and `status_` says that the gap proves nothing.

    References
    ----------
    Tsochantaridis, Joachims, Hofmann & Altun (2005). Large margin methods for structured and interdependent output
    variables. JMLR. Joachims, Finley & Yu (2009). Cutting-plane training of structural SVMs. Machine Learning.

    Examples
    --------
    Several classes as outputs (Crammer and Singer, 2001):

    >>> import numpy as np
    >>> from metrimax.structured import StructuredProblem, StructuredSVM
    >>> class MultiClass(StructuredProblem):
    ...     def joint_feature(self, x, y):
    ...         return np.outer(np.arange(3) == y, x).ravel()
    ...     def loss(self, y, z):
    ...         return float(y != z)
    ...     def loss_augmented_argmax(self, x, y, w):
    ...         return np.argmax(w.reshape(3, -1) @ x + (np.arange(3) != y))
    ...     def argmax(self, x, w):
    ...         return np.argmax(w.reshape(3, -1) @ x)
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=60)
    >>> X = rng.normal(size=(60, 2)) + 4 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    >>> X = np.column_stack((X, np.ones(60)))
    >>> svm = StructuredSVM(MultiClass(), C=1.0).fit(X, y)
    >>> svm.gap_ <= 1e-3, -svm.score(X, y) < 0.05
    (True, True)
    """

    problem_: StructuredProblem

    _solvers: ClassVar[dict[str, type[Any]]] = {"cached": Cached, "bundle": Bundle, "cutting_plane": CuttingPlane}

    def __init__(
        self,
        problem: StructuredProblem | None = None,
        *,
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 1000,
        solver: str = "cached",
        rescaling: str = "margin",
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.problem = problem
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.rescaling = rescaling
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Train on a sequence of inputs and a sequence of their outputs.

        Parameters
        ----------
        X : sequence
            Inputs of the kind that the problem takes.
        y : sequence
            Their outputs.

        Returns
        -------
        self
            The fitted estimator.
        """
        solver = self._solver()
        if self.rescaling not in ("margin", "slack"):
            raise ValueError(f"unknown rescaling {self.rescaling!r}: expected one of margin, slack")
        self._check_lengths(X, y)
        fitted = self._unfitted()
        inputs = fitted._learn(X, y)
        outputs = fitted._outputs(y, inputs)
        own = fitted.problem_.losses(outputs, outputs)
        if own.any():
            i = int(np.flatnonzero(own)[0])
            raise ValueError(f"example {i}: expected a loss of 0 for the true output itself, got {own[i]!r}")
        solution = self._solve(solver, fitted.problem_, inputs, outputs)
        self._renew(fitted)
        self.coef_ = solution.w
        self._store_certificate([FittedLabel(solution, 1.0, 0.0)], single=True)
        self._warn([solution])
        return self

    def predict(self, X: Sequence[Any]) -> list[Any]:
        """The outputs with the highest ``w @ joint_feature(x, z)``, as a list.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        list
            Outputs.
        """
        check_is_fitted(self)
        return self._names(self.problem_.outputs(self._inputs(X), self.coef_, n_jobs=self.n_jobs))

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Minus the mean loss of the predictions: higher is better.

        Parameters
        ----------
        X : sequence
            Inputs.
        y : sequence
            Their outputs.

        Returns
        -------
        float
            0 at best.
        """
        return -float(self._losses(X, y).mean())

    def _losses(self, X: Sequence[Any], y: Sequence[Any]) -> Any:
        """The losses of the predictions."""
        check_is_fitted(self)
        self._check_lengths(X, y)
        inputs = self._inputs(X)
        predicted = self.problem_.outputs(inputs, self.coef_, n_jobs=self.n_jobs)
        return self.problem_.losses(self._outputs(y, inputs), self._compared(predicted))

    def _learn(self, X: Sequence[Any], y: Sequence[Any]) -> Sequence[Any]:
        """Set the attributes that are learnt before training, at least ``problem_``; return X as `_inputs` does."""
        if not isinstance(self.problem, StructuredProblem):
            raise TypeError(
                f"expected problem as an instance of a subclass of metrimax.structured.StructuredProblem, "
                f"got {self.problem!r}"
            )
        if self.problem.inference not in get_args(Inference):
            raise ValueError(
                f"expected inference of {type(self.problem).__name__} as one of {', '.join(get_args(Inference))}, "
                f"got {self.problem.inference!r}"
            )
        self.problem_ = self.problem
        return self._inputs(X)

    def _inputs(self, X: Sequence[Any]) -> Sequence[Any]:
        """X in the form that the problem expects."""
        return _by_position(X)

    def _outputs(self, y: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
        """The outputs y in the form that the problem expects."""
        return _by_position(y)

    def _compared(self, outputs: list[Any]) -> list[Any]:
        """Predicted outputs in the form that the problem's loss compares with true ones."""
        return outputs

    def _names(self, outputs: list[Any]) -> list[Any]:
        """The problem's outputs in the form that the user expects."""
        return outputs

    def _solve(self, solver: Any, problem: StructuredProblem, X: Sequence[Any], Y: Sequence[Any]) -> Solution:
        oracle = StructuredRisk(problem, X, Y, rescaling=self.rescaling, n_jobs=self.n_jobs)  # type: ignore[arg-type]
        weight = float(self.C) * len(X)
        check_weights([weight])
        with self._progress() as callback:
            if isinstance(solver, Cached):
                solution = solver.solve(oracle, weight, tol=self.tol, callback=callback)
            else:
                solution = solve_cuts(solver, oracle, weight, tol=self.tol, callback=callback)
        if solution.status is Status.TRIVIAL and solution.objective == 0:  # no output costs anything
            solution = replace(solution, status=Status.CONVERGED)
        if problem.inference == "approximate" and solution.status in (Status.CONVERGED, Status.TRIVIAL, Status.STALLED):
            return replace(solution, status=Status.UNCERTIFIED)
        if problem.inference == "relaxed" and solution.status is Status.CONVERGED:
            return replace(solution, status=Status.RELAXED)
        return solution

    @staticmethod
    def _check_lengths(X: Sequence[Any], y: Sequence[Any]) -> None:
        for name, given in (("X", X), ("y", y)):
            if not hasattr(given, "__len__"):
                raise ValueError(f"expected {name} as a sequence, one element for every example, got {given!r:.100}")
        if len(X) != len(y):
            raise ValueError(f"expected as many outputs as inputs, got {len(X)} inputs and {len(y)} outputs")
        if not len(X):
            raise ValueError("expected at least one example, got none")


def _by_position(values: Any) -> Sequence[Any]:
    """The values as a sequence by position: ``[i]`` of a pandas object would look up the index."""
    return values.to_numpy() if hasattr(values, "iloc") else values  # type: ignore[no-any-return]
