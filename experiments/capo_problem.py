"""The data sets of Li, Tsang & Zhou (2013), section 5, and the auxiliary classifiers that stand in for theirs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from experiments import data
from experiments.harness import Options, Row
from metrimax import MeasureSVC
from metrimax.designs.kernel import KERNELS, Kernel, choose_gamma
from metrimax.measure import get_measure
from metrimax.training.choose import explore

MEASURES = {"Accuracy": "error", "F1": "f1", "PRBEP": "prbep", "AUC": "roc_area"}
DATASETS = {
    "IJCNN1": "ijcnn1",
    "Mitfaces": "faces",
    "Reuters": "moneyfx",
    "Splice": "splice",
    "USPS*": "usps:5+6+7+8+9",  # which are the positives, to go by the paper's PRBEP
}
OTHERS = (
    "satimage", "letter_img", "mammography", "pen_digits", "optical_digits", "coil_2000", "abalone", "wine_quality",
    "yeast_me2", "car_eval_34",
)  # fmt: skip
"""Sets of imbalanced-learn's collection, which the paper lacks; at most `ROWS` training examples are taken."""
ROWS = 2000
EXPONENTS = range(-7, 8)
"""The paper's C are two to these powers, in the units of SVM-perf."""
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The scales gamma of an RBF kernel that is searched over, in multiples of the default."""
CHOOSE_ON = 2000
"""Parameters are chosen on at most so many training examples; the classifier is then trained on all."""
LARGE = 10_000
"""Beyond this many examples SVC takes minutes, and a low-rank soft-margin SVM stands in for it."""


@dataclass
class Problem:
    """A data set, the kernel's scale, the measures, and what is tried for their parameters."""

    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    measures: dict[str, str] = field(default_factory=lambda: MEASURES)
    exponents: Sequence[int] = EXPONENTS
    widths: Sequence[float] = WIDTHS

    def __post_init__(self) -> None:
        self.gamma = choose_gamma("mean_distance", self.X)
        self.choose_on = np.arange(len(self.y))
        if len(self.y) > CHOOSE_ON:
            self.choose_on, _ = train_test_split(self.choose_on, train_size=CHOOSE_ON, random_state=0, stratify=self.y)

    def C(self, measure: str, value: float) -> float:
        """A C of the paper, which is that of SVM-perf, as one of this library: 100 C / (kappa n)."""
        return _unit(measure, self.y) * value

    def Cs(self, measure: str) -> list[float]:
        """The paper's grid, in the units of SVM-perf on the rows of the choice."""
        return [_unit(measure, self.y[self.choose_on]) * 2.0**e for e in self.exponents]

    def in_the_grid(self, measure: str, C: float) -> float:
        """What a C that was chosen is in those units."""
        return C / _unit(measure, self.y[self.choose_on])

    def part(self, share: float) -> Problem:
        """A random share of the training examples."""
        size = max(2, round(share * len(self.y)))
        if size >= len(self.y):
            return self
        kept, _ = train_test_split(np.arange(len(self.y)), train_size=size, random_state=0, stratify=self.y)
        return replace(self, X=self.X[kept], y=self.y[kept])


def _unit(measure: str, y: Any) -> float:
    """What 1 in the units of SVM-perf is in those of this library, on these rows."""
    return float(100 / (get_measure(measure).oracle(y).price * len(y)))


@lru_cache(maxsize=1)
def load(name: str, options: Options) -> Problem:
    if options.quick:
        X, Y, X_test, Y_test = data.collection("digits")
        y, y_test = Y[:100, 5:].any(axis=1), Y_test[:, 5:].any(axis=1)
        return Problem(name, X[:100], y, X_test[:200], y_test[:200], {"F1": MEASURES["F1"]}, (2, 4), (1.0,))
    if name in DATASETS:
        return Problem(name, *data.load(DATASETS[name], options.data, raw=True))
    X, y, X_test, y_test = data.load(f"imblearn/{name}", options.data, ROWS)
    X, X_test = (part.toarray() if hasattr(part, "toarray") else part for part in (X, X_test))
    return Problem(name, X, y, X_test, y_test)


def by_folds(make: Callable[[float], Any], measure: str, X: Any, y: Any, Cs: Sequence[float]) -> float:
    """The C whose scores of the rows held out do best, for a classifier that the library does not tune itself.

    As `MeasureSVCCV` chooses: five folds, all of whose test rows are judged together, and a grid that goes on by its
    own ratio while the best is on a border.
    """
    folds = list(StratifiedKFold(5).split(X, y))

    def rows(Cs: Any) -> list[Row]:
        return [
            {"param_C": C, "pooled_test_score": get_measure(measure).score(y, held_out(make(C), X, y, folds))}
            for C in Cs
        ]

    found = explore(rows, np.array(Cs), extend=True)
    return float(
        max(found, key=lambda row: (round(row["pooled_test_score"], 9), -abs(np.log(row["param_C"]))))["param_C"]
    )


def held_out(classifier: Any, X: Any, y: Any, folds: list[tuple[Any, Any]]) -> Any:
    """The score of every row, from the fold that held it out."""
    scores = np.zeros(len(y))
    for kept, left in folds:
        scores[left] = classifier.fit(X[kept], y[kept]).decision_function(X[left])
    return scores


class RBFNetwork(ClassifierMixin, BaseEstimator):
    """A few Gaussians per class at the centres of its clusters, and logistic regression on them: WEKA's default."""

    def __init__(self, n_clusters: int = 2) -> None:
        self.n_clusters = n_clusters

    def fit(self, X: Any, y: Any) -> RBFNetwork:
        self.classes_ = np.unique(y)
        means = [MiniBatchKMeans(self.n_clusters, random_state=0, n_init=3).fit(X[y == c]) for c in self.classes_]
        self.centres_ = np.vstack([m.cluster_centers_ for m in means])
        self.kernel_ = Kernel("rbf", choose_gamma("mean_distance", X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.output_ = LogisticRegression(C=1e4, max_iter=1000).fit(self.kernel_(X, self.centres_), y)
        return self

    def decision_function(self, X: Any) -> Any:
        return self.output_.decision_function(self.kernel_(X, self.centres_))

    def predict(self, X: Any) -> Any:
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def kernel_svm(kernel: str, gamma: float, n_components: int | None = 300) -> MeasureSVC:
    """A soft-margin SVM: with the error rate the problem of `MeasureSVC` is that of LinearSVC or SVC."""
    return MeasureSVC("error", kernel=kernel, gamma=gamma, n_components=n_components, random_state=0, n_threads=1)


def three(problem: Problem) -> dict[str, Any]:
    """In place of CVM, C4.5 and the RBF network of WEKA."""
    large = len(problem.y) > LARGE
    return {
        "svm": kernel_svm("rbf", problem.gamma, 500) if large else SVC(gamma=problem.gamma, C=1.0, cache_size=500),
        "dt": DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
        "nn": RBFNetwork(),
    }


def five(problem: Problem) -> dict[str, Any]:
    """Five kernels with their default parameters (section 5.3)."""
    return {kernel: kernel_svm(kernel, problem.gamma) for kernel in KERNELS}


def fifty(problem: Problem) -> dict[str, Any]:
    """Five kernels, ten scales each (section 5.4)."""
    scales = [(theta, 1.5**theta * problem.gamma) for theta in np.arange(-0.5, 4.1, 0.5)]
    return {f"{k} {theta}": kernel_svm(k, gamma) for k in KERNELS for theta, gamma in scales}


@dataclass
class Outputs:
    """Scores of auxiliaries, a column each: on the training set in-sample and out of fold, and on the test set."""

    names: list[str]
    inside: Any
    out_of_fold: Any
    test: Any
    seconds: dict[str, float]


def train(auxiliaries: dict[str, Any], problem: Problem, folds: int = 0) -> Outputs:
    """Train every auxiliary; with ``folds`` also their outputs out of fold."""
    inside, test, crossed, seconds = [], [], [], {}
    for name, auxiliary in auxiliaries.items():
        began = time.process_time()
        fitted = clone(auxiliary).fit(problem.X, problem.y)
        seconds[name] = time.process_time() - began
        inside.append(_score(fitted, problem.X))
        test.append(_score(fitted, problem.X_test))
        column = np.zeros(len(problem.y))
        if folds:
            for kept, left in StratifiedKFold(folds).split(column, problem.y):
                column[left] = _score(clone(auxiliary).fit(problem.X[kept], problem.y[kept]), problem.X[left])
        crossed.append(column)
    return Outputs(list(auxiliaries), *(np.column_stack(c) for c in (inside, crossed, test)), seconds)


def _score(fitted: Any, X: Any) -> Any:
    if hasattr(fitted, "decision_function"):
        return fitted.decision_function(X)
    return 2 * fitted.predict_proba(X)[:, 1] - 1
