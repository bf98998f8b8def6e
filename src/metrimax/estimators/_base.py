"""What the estimators with a certificate share: the solver, the progress line, the checks, the certificate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from metrimax._validation import check_positive, check_whole, dense, is_number, refuse_missing, warn
from metrimax.designs import as_design, is_design
from metrimax.designs.dask import collected
from metrimax.estimators._checks import check_rows, check_sample
from metrimax.estimators._links import Documented
from metrimax.estimators._pickle import PlainState
from metrimax.estimators._refit import Refitted
from metrimax.io.folders import difference
from metrimax.protocols import Callback, Design, Measure, Record, Solution, Status, Vector
from metrimax.solvers import SOLVERS
from metrimax.training.label import FittedLabel, Training
from metrimax.training.progress import ProgressLine


def labels_of(X: Any, y: Any) -> npt.NDArray[Any]:
    """The labels as an array: those given, or else those of X, which a dataset has."""
    y = getattr(X, "y", None) if y is None else y
    if y is None:
        raise ValueError(f"expected y, the true labels, got None: {type(X).__name__} brings no labels")
    if isinstance(y, (list, tuple)):
        refuse_missing(y)  # before NumPy makes a string of a NaN among strings
    return np.asarray(dense(collected(y)))


def refuse_design(X: Any, reason: str) -> None:
    """Raise if X is a design, which does not give its rows."""
    if is_design(X):
        raise TypeError(f"expected X as an array or a sparse matrix, got {type(X).__name__}: {reason}")


def names_losses(model: Any) -> bool:
    """Whether the parameters of a model name its losses, so that there are none to choose."""
    return any(weight is not None for weight in (model.hinge, model.logistic, model.risk)) or bool(model.balanced)


def check_rule(threshold: Any, rules: tuple[str, ...]) -> None:
    """Raise unless the parameter ``threshold`` is one of these rules, or None."""
    if threshold is not None and threshold not in rules:
        more = "; MeasureSVCCV places it by folds" if threshold == "folds" else ""
        raise ValueError(f"unknown threshold {threshold!r}: expected one of {', '.join(rules)}, or None{more}")


def check_standard_errors(number: Any) -> None:
    """Raise unless the parameter ``standard_errors`` is a finite number >= 0, or None."""
    if number is not None and not (is_number(number) and 0 <= number < np.inf):
        raise ValueError(f"expected finite standard_errors >= 0, or None, got {number!r}")


def trained_with(training: Training, C: float, scaling: float | str | None = None) -> dict[str, Any]:
    """The problem that a model was trained for, in plain types: its ``trained_with_``."""
    settings = {"C": float(C), **asdict(training.losses), "threshold": training.rule}
    return settings | {"intercept_scaling": scaling}


class CertifiedEstimator(Documented, Refitted, PlainState, BaseEstimator):
    """An estimator with the parameters C, solver, tol, max_iter, verbose and callback, whose fits have certificates."""

    C: float
    solver: Any
    tol: float
    max_iter: int
    verbose: int
    callback: Callback | None
    trained_with_: dict[str, Any] | list[dict[str, Any]] | None = None
    certificate_: list[tuple[Vector, Vector] | None] | None = None
    index_base_: int  #: the index of the first feature in the training data, where they come from svmlight text

    _solvers: ClassVar[dict[str, type[Any]]] = SOLVERS

    def __copy__(self) -> Self:
        """A shallow copy. The default one calls `__getstate__`, which takes longer than the checks of a small fit."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def _solver(self) -> Any:
        """The solver that the parameters ask for, after a check of its parameters."""
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        check_whole("max_iter", self.max_iter)
        if not (self.callback is None or callable(self.callback)):
            raise TypeError(f"expected callback as a function of a Record, or None, got {self.callback!r}")
        given: Any = self.solver
        if type(given) in self._solvers.values():
            return replace(given, max_iter=int(self.max_iter))
        if not (isinstance(given, str) and given in self._solvers):
            names = ", ".join(self._solvers)
            raise ValueError(f"unknown solver {self.solver!r}: expected one of {names}, or such as LBFGS(mu=0.001)")
        return self._solvers[self.solver](max_iter=int(self.max_iter))

    @property
    def _sums(self) -> bool:
        """Whether the solver minimises sums of the risk and a base loss."""
        return bool(self.solver != "dual_cd")

    @contextmanager
    def _progress(
        self, measure: Measure | None = None, design: Design | None = None, part: str = ""
    ) -> Iterator[Callback | None]:
        """The callback for a run, with a line on the terminal if `verbose`. The line names the ``part``, if any."""
        if not self.verbose:
            yield self.callback
            return
        title = type(self).__name__
        if measure is not None:
            given = getattr(self, "measure", None)  # the user's name may differ from that of the class: F1 is an F_beta
            title = f"{title}({given if isinstance(given, str) else measure.name})"
        with ProgressLine(title + part, self.tol, design, lines=True) as line:

            def show(record: Record) -> Any:
                line(record)
                return self.callback(record) if self.callback is not None else None

            yield show

    def _check_sample(self, X: Any, y: Any) -> tuple[Self, Any, Any]:
        """X and y, checked; and before them an unfitted copy with the attributes that the checks set, for `_renew`."""
        checked = self._unfitted()
        if not is_design(X):
            return checked, *checked._check_arrays(X, y)
        X = as_design(X)
        return checked, X, checked._check_design(X, y)

    def _check_arrays(self, X: Any, y: Any) -> tuple[Any, Any]:
        return check_sample(self, X, y)

    def _check_design(self, X: Any, y: Any) -> npt.NDArray[Any]:
        """The labels of a design, after the checks that need no rows; a design checks its rows itself."""
        labels = labels_of(X, y)
        if len(labels) != X.shape[0]:
            raise ValueError(f"expected as many labels as the {X.shape[0]} rows of X, got {len(labels)}")
        self.n_features_in_ = X.shape[1]
        if getattr(X, "feature_names", None) is not None:
            self.feature_names_in_ = np.array(X.feature_names, dtype=object)
        if getattr(X, "index_base", None) is not None:
            self.index_base_ = X.index_base
        return labels

    def _check_rows(self, X: Any) -> Any:
        """X as a matrix or a design, after a check that its columns are those of `fit`."""
        if not is_design(X):
            return check_rows(self, X)
        X = as_design(X)
        names, known = getattr(X, "feature_names", None), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and list(names) != list(known):
            raise ValueError(
                f"The feature names should match those that were passed during fit: {difference(known, names)}; "
                "give the data with the columns in the order of feature_names_in_"
            )
        base, first = getattr(X, "index_base", None), getattr(self, "index_base_", None)
        if base is not None and first is not None and base != first:
            raise ValueError(
                f"expected {first} as the index of the first feature, as in the data passed during fit, got data that "
                f"count from {base}: open or convert them with index_base={first}"
            )
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"expected {self.n_features_in_} features, got {X.shape[1]}")
        return X

    def _store_certificate(self, fitted: list[FittedLabel], *, single: bool) -> None:
        """Set the attributes on the solutions and their certificates: single values, or one value for every label."""
        solutions = [label.solution for label in fitted]

        def each(values: list[Any]) -> Any:
            if single:
                return values[0]
            return np.array(values) if isinstance(values[0], (int, float)) else values

        self.price_ = each([label.price for label in fitted])
        self.objective_ = each([s.objective for s in solutions])
        self.dual_bound_ = each([s.bound for s in solutions])
        self.gap_ = each([s.gap for s in solutions])
        self.n_iter_ = each([s.n_iter for s in solutions])
        self.n_passes_ = each([s.n_passes for s in solutions])
        self.n_support_ = each([s.n_support for s in solutions])
        self.status_ = each([s.status for s in solutions])
        self.history_ = each([s.history for s in solutions])
        proofs = [label.certificate for label in fitted]
        if any(proof is not None for proof in proofs):
            self.certificate_ = [None if proof is None else (proof.points, proof.multipliers) for proof in proofs]

    def _warn(self, solutions: list[Solution]) -> None:
        """Warn of solutions whose gap is above tol, and of those that are optimal but give all examples one score."""
        self._warn_of_gaps(solutions, "labels")
        trivial = [s for s in solutions if s.status is Status.TRIVIAL]
        if trivial:
            warn(f"{_told(Status.TRIVIAL, trivial, solutions, 'labels')}: all examples get the same score.")

    def _warn_of_gaps(self, solutions: list[Solution], of: str) -> None:
        """Warn of solutions whose gap is above tol: how many there are, and the largest gap."""
        missed = [s for s in solutions if s.status.missed]
        if missed:
            worst = max(missed, key=lambda s: s.gap)
            more = "Scale the features (or set intercept_scaling to the length of a row), lower C, or raise tol"
            warn(
                f"{_told(worst.status, missed, solutions, of)}: the gap is {worst.gap:.3g}, tol {self.tol:g}. "
                f"{more if worst.status is Status.STALLED else f'{more} or max_iter'}.",
                ConvergenceWarning,
            )


def _told(status: Status, some: list[Solution], solutions: list[Solution], of: str) -> str:
    return status.value + ("" if len(solutions) == 1 else f" ({len(some)} of {len(solutions)} {of})")
