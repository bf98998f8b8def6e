"""The class that QuaPy expects of SVM-perf, without a binary or temporary files.

QuaPy's explicit loss minimisers (``newELM``, ``newSVMQ``, ``newSVMKLD``, ...) take it after `install`::

    import metrimax.compat.quapy
    metrimax.compat.quapy.install()
    quantifier = quapy.method.aggregative.newSVMQ(C=1)
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from metrimax._validation import check_positive
from metrimax.compat.training import solve
from metrimax.designs import as_design
from metrimax.protocols import Vector
from metrimax.training.progress import ProgressLine


class SVMperf(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear classifier trained for one of SVM-perf's losses, with the interface of QuaPy's class of this name.

    Parameters
    ----------
    svmperf_base : object, optional
        Accepted and ignored: there is no binary.
    C : float, default=0.01
        SVM-perf's ``-c``: the problem is ``1/2 |w|^2 + C xi`` with xi in percent.
    verbose : bool, default=False
        Show a line with the gap while fitting, if standard error is a terminal.
    loss : str, default="01"
        A key of `valid_losses`.
    host_folder : object, optional
        Accepted and ignored: there are no temporary files.

    Attributes
    ----------
    valid_losses : dict
        SVM-perf's code of each loss; on the class, and open for more.
    classes_ : ndarray (2,)
    n_classes_ : int
    coef_ : ndarray (1, p)
    intercept_ : ndarray (1,)
    gap_ : float
        The duality gap in percentage points of the loss, at most 0.1.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.where(rng.random(200) < 0.3, "yes", "no")
    >>> X = rng.normal(size=(200, 3)) + 2.0 * (y == "yes")[:, None]
    >>> clf = SVMperf(loss="nkld", C=10).fit(X, y)
    >>> float(abs((clf.predict(X) == "yes").mean() - (y == "yes").mean())) < 0.05
    True
    """

    valid_losses: ClassVar[dict[str, int]] = {
        "01": 0,
        "f1": 1,
        "kld": 12,
        "nkld": 13,
        "q": 22,
        "qacc": 23,
        "qf1": 24,
        "qgm": 25,
        "mae": 26,
        "mrae": 27,
    }

    def __init__(
        self,
        svmperf_base: Any = None,
        C: float = 0.01,
        verbose: bool = False,
        loss: str = "01",
        host_folder: Any = None,
    ) -> None:
        self.svmperf_base = svmperf_base
        self.C = C
        self.verbose = verbose
        self.loss = loss
        self.host_folder = host_folder

    def fit(self, X: Any, y: Any) -> SVMperf:
        """Train on X (dense or sparse) and y, labels of two classes; the one that sorts last is the positive one.

        Parameters
        ----------
        X : ndarray or sparse matrix (n, p)
            The rows.
        y : array (n,)
            Two classes.

        Returns
        -------
        self
            The fitted estimator.
        """
        if self.loss not in self.valid_losses:
            raise ValueError(f"unknown loss {self.loss!r}: expected one of {', '.join(self.valid_losses)}")
        check_positive("C", self.C)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) != 2:
            raise ValueError(
                f"Only binary classification is supported: expected labels of two classes, got {len(classes)} class(es)"
            )
        code = self.valid_losses[self.loss]
        with ProgressLine(f"SVMperf({self.loss})", 1e-3) as line:
            solution = solve(X, codes == 1, code=code, c=float(self.C), callback=line if self.verbose else None)
        if not solution.status.ok:
            warnings.warn(f"{solution.status}: the gap is {100 * solution.gap:.3g} %", ConvergenceWarning, stacklevel=2)
        self.coef_ = solution.w[None, :-1]
        self.intercept_ = solution.w[-1:]
        self.gap_ = 100 * solution.gap
        self.n_classes_ = 2
        self.classes_ = classes
        return self

    def decision_function(self, X: Any, y: Any = None) -> Vector:
        """Scores, (n,); positive means the second of `classes_`. ``y`` is ignored.

        Parameters
        ----------
        X : ndarray or sparse matrix (n, p)
            The rows.
        y : object, default=None
            Ignored.

        Returns
        -------
        ndarray (n,)
            The scores.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scores: Vector = as_design(X).matvec(np.ascontiguousarray(self.coef_[0])) + self.intercept_[0]
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels: the second of `classes_` where the score is above 0.

        Parameters
        ----------
        X : ndarray or sparse matrix (n, p)
            The rows.

        Returns
        -------
        ndarray (n,)
            Classes.
        """
        called = (self.decision_function(X) > 0).astype(int)
        labels: npt.NDArray[Any] = self.classes_[called]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


def install() -> None:
    """Let QuaPy use this class wherever it uses SVM-perf; no SVMPERF_HOME is needed any more.

    Examples
    --------
    >>> import metrimax.compat.quapy
    >>> metrimax.compat.quapy.install()
    >>> from quapy.method.aggregative import newSVMQ
    >>> quantifier = newSVMQ(C=1)
    """
    import quapy
    import quapy.classification.svmperf
    import quapy.method.aggregative

    quapy.classification.svmperf.SVMperf = SVMperf
    quapy.method.aggregative.SVMperf = SVMperf
    if quapy.environ["SVMPERF_HOME"] is None:
        quapy.environ["SVMPERF_HOME"] = "metrimax"  # newELM insists on a value; it is not looked at
