"""The imbalanced-learn and KEEL collections: F1 of default settings, and of settings chosen at the same price.

Features are standardised on the training part, for every method, in the same five stratified folds of every data set.
What chooses C (or a class weight) does so by five inner folds over one grid, and what places a threshold places it, on
the training part alone. The score of a data set is the F1 of the contingency tables added over the five folds, which
is defined however few positives a fold holds (Forman and Scholz 2010).

One division into folds decides little on sets with a dozen positives, so there are three; those of the default and the
baselines that came nearest to it are computed first.

The data sets are divided in two halves by name, every other one. The library's defaults were chosen on the first.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from experiments.data import _svm
from experiments.harness import Options, Program, Row, Task
from experiments.imbalanced_page import VARIANTS, page
from metrimax import MeasureSVC, MeasureSVCCV
from metrimax.measure import FBeta
from metrimax.measure.contingency import contingency
from metrimax.measure.place import place
from metrimax.training.path import GRID

COLLECTIONS = ("imblearn", "keel_imbalanced")
FOLDS = 5
REPEATS = (1, 2)
"""Further divisions into folds."""

TUNED = " + threshold"
BOOSTING = "HistGradientBoosting"
ROWS = 4000
"""Larger sets are cut to a stratified sample of this size, the same for all methods."""


class Sample(NamedTuple):
    X: Any
    y: Any


def names(options: Options) -> list[tuple[str, str]]:
    """The data sets and their halves: "development" for every other one by name, "confirmation" for the rest."""
    found = []
    for collection in COLLECTIONS:
        files = sorted(path.name.removesuffix(".svm.xz") for path in (options.data / collection).glob("*.svm.xz"))
        halves = ("development", "confirmation")
        found += [(f"{collection}/{name}", halves[k % 2]) for k, name in enumerate(files)]
    return found


@functools.lru_cache(maxsize=4)
def load(name: str, options: Options) -> Sample:
    if name.startswith("made"):
        X, y = make_classification(200, 6, weights=[0.85], flip_y=0.05, random_state=int(name[-1]))
        return Sample(X, y > 0)
    X, y = _svm(options.data / f"{name}.svm.xz")
    X, y = X.toarray(), y > 0
    if len(y) > ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=ROWS, stratify=y, random_state=0)
    return Sample(X, y)


class Chosen(ClassifierMixin, BaseEstimator):
    """The setting with the best F1 over inner folds: at its own threshold, and together with a threshold.

    The inner folds are those of `MeasureSVCCV`, and so is the number of fits; both choices are made from the same ones.
    The threshold is the best for the scores of all inner folds together, setting by setting.
    """

    def __init__(self, estimator: Any, settings: Any) -> None:
        self.estimator, self.settings = estimator, settings

    def fit(self, X: Any, y: Any) -> Chosen:
        self.classes_ = np.unique(y)
        splits = list(StratifiedKFold(FOLDS).split(X, y))
        options = []
        for setting in self.settings:
            model, scores = clone(self.estimator).set_params(**setting), np.empty(len(y))
            for train, test in splits:
                scores[test] = model.fit(X[train], y[train]).decision_function(X[test])
            own = float(np.mean([f1(y[test], scores[test] > 0) for _, test in splits]))
            threshold = place(FBeta(), y, scores)
            options.append((setting, own, threshold, f1(y, scores > threshold)))
        own, tuned = (max(options, key=lambda option, k=k: option[k]) for k in (1, 3))  # the first of equals
        self.models_ = [clone(self.estimator).set_params(**best[0]).fit(X, y) for best in (own, tuned)]
        self.thresholds_ = [0.0, tuned[2]]
        return self

    def predict_both(self, X: Any) -> list[Any]:
        pairs = zip(self.models_, self.thresholds_, strict=True)
        return [model.decision_function(X) > threshold for model, threshold in pairs]


def f1(y: Any, called: Any) -> float:
    """F1 of boolean labels; scikit-learn's own checks take longer than most of the fits here."""
    hits = float(np.count_nonzero(y & called))
    return 2 * hits / max(np.count_nonzero(y) + np.count_nonzero(called), 1)


def _tuned(make: Callable[[], Any]) -> Any:
    return TunedThresholdClassifierCV(make(), scoring=make_scorer(f1), cv=FOLDS)


CS = [{"C": float(C)} for C in GRID]
PRICES = [{"class_weight": {False: 1.0, True: float(j)}} for j in 2.0 ** np.arange(0, 6.5, 0.5)]  # as many as C's

PAPER = {"hinge": 0.0, "threshold": "trained", "standard_errors": 0.0}

LINEAR: dict[str, Callable[[], Any]] = {
    "LinearSVC": LinearSVC,
    "LinearSVC balanced": partial(LinearSVC, class_weight="balanced"),
    "LogisticRegression": partial(LogisticRegression, max_iter=1000),
    "LogisticRegression balanced": partial(LogisticRegression, max_iter=1000, class_weight="balanced"),
}
METHODS: dict[str, Callable[[], Any]] = {
    "MeasureSVCCV": partial(MeasureSVCCV, "f1", n_threads=1),
    "MeasureSVC": partial(MeasureSVC, "f1", n_threads=1),
    "MeasureSVC, hinge and place": partial(MeasureSVC, "f1", C=1.0, hinge=1.0, threshold="placed", n_threads=1),
    **{name + end: how for name, make in LINEAR.items() for end, how in (("", make), (TUNED, partial(_tuned, make)))},
    "LinearSVC, C chosen": partial(Chosen, LinearSVC(), CS),
    "LogisticRegression, C chosen": partial(Chosen, LogisticRegression(max_iter=1000), CS),
    "LinearSVC, cost chosen": partial(Chosen, LinearSVC(), PRICES),
    "MeasureSVCCV, best of the folds": partial(MeasureSVCCV, "f1", standard_errors=0.0, n_threads=1),
    "MeasureSVCCV, as in the paper": partial(MeasureSVCCV, "f1", **PAPER, n_threads=1),
    BOOSTING: partial(HistGradientBoostingClassifier, random_state=0),
    BOOSTING + TUNED: partial(_tuned, partial(HistGradientBoostingClassifier, random_state=0)),
}
"""What is compared; those that choose a setting also give a row with ``+ threshold``, from the same fits."""

NEAREST = ("MeasureSVCCV", "LinearSVC, cost chosen", "LogisticRegression, C chosen")
"""Whose further divisions into folds are computed first."""


def tasks(options: Options) -> Iterator[Task]:
    """Cheap methods on all sets first, then those that choose a setting, then the rest; small sets first."""
    if options.quick:
        sets = [(f"made {k}", "development" if k % 2 else "confirmation") for k in range(4)]
        stages = [(["MeasureSVCCV", "MeasureSVC", "LinearSVC", "LinearSVC + threshold"], (0,))]
    else:
        sizes = {name: (options.data / f"{name}.svm.xz").stat().st_size for name, _ in names(options)}
        sets = sorted(names(options), key=lambda pair: sizes[pair[0]])
        last = [name for name in METHODS if name.startswith((BOOSTING, "MeasureSVCCV, "))]
        chosen = [name for name in METHODS if name.endswith("chosen")]
        first = [name for name in METHODS if name not in last + chosen]
        others = [name for name in first + chosen if name not in (*NEAREST, *VARIANTS)]
        stages = [(first, (0,)), (chosen, (0,)), (list(NEAREST), REPEATS), (others, REPEATS), (last, (0,))]
    for (stage, seeds), (name, half) in ((stage, one) for stage in stages for one in sets):
        for method, seed in product(stage, seeds):
            key = {"data": name, "half": half, "measure": "f1", "method": method, "seed": seed}
            yield Task(key, partial(run, method, seed), prepare=partial(load, name, options))


def run(method: str, seed: int, sample: Sample) -> Iterator[Row]:
    """The contingency table of a method on one data set, over all folds of one division."""
    X, y = sample
    called = np.zeros((2, len(y)), dtype=bool)
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y))
    both = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # liblinear's 1000 rounds are what users have, too
        for train, test in folds:
            scaler = StandardScaler().fit(X[train])
            model = METHODS[method]().fit(scaler.transform(X[train]), y[train])
            both = isinstance(model, Chosen)
            inputs = scaler.transform(X[test])
            called[:, test] = model.predict_both(inputs) if both else model.predict(inputs)
    for end, predicted in zip(("", TUNED)[: 1 + both], called, strict=False):
        tp, fp, fn, tn = (int(count) for count in contingency(y, predicted))
        yield {
            "method": method + end,
            "n": len(y),
            "positives": int(y.sum()),
            **{"tp": tp, "fp": fp, "fn": fn, "tn": tn},
            "f1": f1(y, predicted),
            "f1_folds": float(np.mean([f1(y[test], predicted[test]) for _, test in folds])),
        }


main = Program("imbalanced", tasks, page).main

if __name__ == "__main__":
    main()
