"""`MeasureSVCCV` with its defaults beside linear classifiers that choose their own C, for six measures.

    python -m experiments linear --data DIR [--out DIR] [--quick] [--jobs N] [--page]

Both choose from the same seven C, by the same five folds and the same measure; for F1 and balanced accuracy the linear
classifiers also come with a threshold for the scores of all folds together, chosen along with C. Large sets are cut.
Problems are divided in two halves, by class, category or name: a change of the defaults is decided on the first of
them and has to hold on the second.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from experiments import imbalanced
from experiments.baselines import Clock
from experiments.data import OHSUMED, Split, _scaled, _svm, collection, load
from experiments.harness import Options, Program, Row, Task
from experiments.linear_page import HALVES, OURS, page
from metrimax import MeasureSVCCV, PrecisionAtK, RecallAtK
from metrimax.measure import get_measure
from metrimax.measure.place import place

CS = 4.0 ** np.arange(-3, 4)
FOLDS = 5
LARGE = 20_000
"""Of Covertype, to train on and to test on."""
CATEGORIES = 16
"""Of Reuters, of all sizes."""


MEASURES: dict[str, Any] = {
    "f1": get_measure("f1"),
    "prbep": get_measure("prbep"),
    "recall_at_2p": RecallAtK("2p", labellings="at_most"),
    "precision_at_half_p": PrecisionAtK("0.5p", labellings="at_least"),
    "balanced_accuracy": get_measure("balanced_error"),
    "roc_area": get_measure("roc_area"),
}
LINEAR = {
    "LinearSVC": LinearSVC(),
    "LinearSVC, balanced": LinearSVC(class_weight="balanced"),
    "LogisticRegression": LogisticRegression(max_iter=300),
    "LogisticRegression, balanced": LogisticRegression(max_iter=300, class_weight="balanced"),
}


def tasks(options: Options) -> Iterator[Task]:
    for data, half in problems(options):
        for fold in range(3 if data.startswith("imb") else 1):
            for method in (OURS, *LINEAR):
                key = {"data": data, "fold": fold, "half": half, "method": method}
                yield Task(key, partial(run, method), partial(read, data, fold, options))


def problems(options: Options) -> list[tuple[str, str]]:
    """The problems and their halves, those of the second half first."""
    if options.quick:
        return [("made:0", HALVES[0]), ("made:1", HALVES[1])]
    found = [(f"covtype/1000:{seed}:{k}", (k + seed) % 2) for seed in range(2) for k in range(7)]
    found += [(f"optdigits:{k}", k % 2) for k in range(10)]
    found += [(f"ohsumed:{name}", k % 2) for k, name in enumerate(OHSUMED)]
    found += [(f"usps:{k}", k % 2) for k in range(10)]
    found += [("ijcnn1", 0)] + [(f"covtype:{k}", k % 2) for k in range(1, 8)]
    found += [(f"reuters:{k}", at % 2) for at, k in enumerate(categories(options))]
    for which, half in enumerate(("development", "confirmation")):
        names = [name for name, own in imbalanced.names(options) if own == half]
        some = np.random.default_rng(7).permutation(names)[: len(names) // 3]
        found += [(f"imb:{name}", which) for name in sorted(some)]
    usable = [(data, HALVES[half]) for data, half in found if enough(data, options)]
    return sorted(usable, key=lambda pair: pair[1] == HALVES[0])


def categories(options: Options) -> Any:
    """Labels of Reuters, from the most frequent to those with five examples."""
    data = collection("reuters", options.data)
    counts, tested = data.Y.sum(axis=0), data.Y_test.sum(axis=0)
    usable = [k for k in np.argsort(-counts, kind="stable") if counts[k] >= FOLDS and tested[k] >= 2]
    return np.array(usable)[np.linspace(0, len(usable) - 1, CATEGORIES).astype(int)]


def enough(data: str, options: Options) -> bool:
    """Whether every fold has a positive to train on, and some are tested."""
    if data.startswith("covtype/1000"):
        _, y, _, y_test = read(data, 0, options)
        return bool(y.sum() >= FOLDS and y_test.sum() >= 3)
    return not data.startswith("imb") or bool(imbalanced.load(data[4:], options).y.sum() >= 9)


def read(data: str, fold: int, options: Options) -> Split:
    base, _, which = data.partition(":")
    if base in ("imb", "made"):
        return divided(data, fold, options)
    if base == "covtype/1000":
        seed, _, label = which.partition(":")
        drawn = collection(base, options.data, int(seed))
        return drawn.X, drawn.Y[:, int(label)], drawn.X_test, drawn.Y_test[:, int(label)]
    if base == "covtype":
        X, y, X_test, y_test = covertype(options)
        return X, y == int(which), X_test, y_test == int(which)
    if base == "reuters":
        whole = collection("reuters", options.data)
        return whole.X, whole.Y[:, int(which)], whole.X_test, whole.Y_test[:, int(which)]
    X, y, X_test, y_test = load(data, options.data, {"usps": 3000, "ijcnn1": 10_000, "ohsumed": 5000}.get(base))
    return X, y, X_test[:LARGE], y_test[:LARGE]


@functools.lru_cache(maxsize=1)
def covertype(options: Options) -> Split:
    X, y = _svm(options.data / "covtype/covtype.svm.xz")
    order = np.random.default_rng(5).permutation(len(y))
    train, test = order[:LARGE], order[LARGE : 2 * LARGE]
    X, X_test = (part.toarray() for part in _scaled(X[train], X[test]))
    return X, y[train], X_test, y[test]


def divided(data: str, fold: int, options: Options) -> Split:
    """One of three folds of an imbalanced set, of at most 2000 examples, standardised."""
    if data.startswith("made"):
        X, y = make_classification(200, 6, weights=[0.85], flip_y=0.05, random_state=int(data[5:]))
        y = y > 0
    else:
        X, y = imbalanced.load(data[4:], options)
    if len(y) > 2000:
        X, _, y, _ = train_test_split(X, y, train_size=2000, stratify=y, random_state=0)
    train, test = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))[fold]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def run(method: str, split: Split) -> Iterator[Row]:
    y = split[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # liblinear's 1000 rounds are what users have, too; w = 0 counts as it is
        if method in LINEAR:
            yield from chosen(LINEAR[method], method, split)
            return
        for name, measure in MEASURES.items():
            if name == "recall_at_2p" and 2 * y.sum() > len(y):  # 1 whatever the scores are
                continue
            yield {"measure": name, **direct(measure, split)}


def direct(measure: Any, split: Split) -> Row:
    X, y, X_test, y_test = split
    with Clock() as clock:
        model = MeasureSVCCV(measure, Cs=CS, n_threads=1).fit(X, y)
    found = value(measure, y_test, model.decision_function(X_test))
    return {"value": found, "C": model.C_, "cpu_seconds": clock.seconds}


def chosen(estimator: Any, method: str, split: Split) -> Iterator[Row]:
    """C by the mean over the folds, for every measure; and C with a threshold, by the scores of all folds together."""
    X, y, X_test, y_test = split
    folds = list(StratifiedKFold(FOLDS).split(np.zeros(len(y)), y))
    out, final = np.empty((len(CS), len(y))), np.empty((len(CS), len(y_test)))
    for k, C in enumerate(CS):
        model = clone(estimator).set_params(C=C)
        for train, test in folds:
            out[k, test] = model.fit(X[train], y[train]).decision_function(X[test])
        final[k] = model.fit(X, y).decision_function(X_test)
    for name, measure in MEASURES.items():
        if name == "recall_at_2p" and 2 * y.sum() > len(y):
            continue
        means = [np.mean([value(measure, y[test], scores[test]) for _, test in folds]) for scores in out]
        best = int(np.argmax(means))
        yield {"measure": name, "value": value(measure, y_test, final[best]), "C": CS[best]}
        if not measure.ranks:
            places = [place(measure, y, scores) for scores in out]
            pairs = zip(out, places, strict=True)
            best = int(np.argmax([value(measure, y, scores - at) for scores, at in pairs]))
            found = value(measure, y_test, final[best] - places[best])
            yield {"method": method + imbalanced.TUNED, "measure": name, "value": found, "C": CS[best]}


def value(measure: Any, y: Any, scores: Any) -> float:
    """The measure of scores, above 0 for the positive class."""
    if isinstance(measure, RecallAtK) and 2 * y.sum() >= len(y):
        return 1.0
    return float(measure.score(y, np.ascontiguousarray(scores, dtype=float)))


main = Program("linear", tasks, page).main
