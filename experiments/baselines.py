"""What users do instead of training for the measure, on the collections of Joachims (2005).

    python -m experiments baselines --data DIR [--out DIR] [--quick] [--jobs N] [--page]

Every method with its own defaults, without and with a threshold tuned for F1 (`TunedThresholdClassifierCV`, 3 folds);
and, for the linear ones, with C and threshold from the same hold-out that `experiments.joachims2005` gives to direct
training, whose results the page shows beside these. (`MeasureSVC` and `MeasureSVCCV` with their defaults:
`experiments.linear`.) Settings that a class is too small for (fewer than 3 positives
for 3 folds) fall back on the untuned threshold.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from experiments.baselines_page import page
from experiments.data import Collection
from experiments.harness import Options, Program, Row, Task
from experiments.holdout import GRID, MEASURES, Chosen, best_threshold, value, values
from experiments.joachims2005 import part_for_choice, read

SETS = (("reuters", 1), ("optdigits", 1), ("covtype/first", 3), ("covtype/1000", 3), ("covtype", 1))
LINEAR = {
    "LinearSVC": LinearSVC(),
    "LinearSVC, balanced": LinearSVC(class_weight="balanced"),
    "LogisticRegression": LogisticRegression(max_iter=1000),
    "LogisticRegression, balanced": LogisticRegression(max_iter=1000, class_weight="balanced"),
}
FOLDS = 3


def dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X


BOOSTING = {
    "HistGradientBoosting": make_pipeline(
        FunctionTransformer(dense, accept_sparse=True), HistGradientBoostingClassifier(random_state=0)
    )
}


def tasks(options: Options) -> Iterator[Task]:
    sets = SETS
    if options.quick:
        sets = (("optdigits" if options.have_data else "digits", 1),)
    for data, draws in sets:
        text = data == "reuters"
        for seed in range(draws):
            prepare = partial(read, data, options, seed)
            key = {"data": data, "seed": seed}
            default = key | {"protocol": "default"}
            for name, model in (LINEAR if text else LINEAR | BOOSTING).items():
                yield Task(default | {"method": name}, partial(plain_and_tuned, model), prepare)
            for name in list(LINEAR)[: 2 if text else 4]:
                yield Task(key | {"protocol": "hold-out", "method": name}, partial(held_out, LINEAR[name]), prepare)
            if text and libmultilabel() is not None:
                for how in ("1vsrest", "cost_sensitive", "thresholding"):
                    yield Task(default | {"method": f"LibMultiLabel {how}"}, partial(multilabel, how), prepare)


def libmultilabel() -> Any:
    """The linear part of LibMultiLabel, where it is installed."""
    try:
        import libmultilabel.linear as linear
    except ImportError:
        return None
    return linear


def rows_of(data: Collection, scores: Any, threshold: str, **more: Any) -> Iterator[Row]:
    """A row per class, with all measures of the scores; a threshold changes nothing but F1."""
    for label, y in enumerate(data.Y_test.T):
        found = values(y, scores[:, label])
        yield {"threshold": threshold, "label": label, "positives": int(data.Y[:, label].sum()), **found, **more}


def decide(model: Any, X: Any) -> Any:
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    share = model.predict_proba(X)[:, 1]
    return np.log(np.maximum(share, 1e-300)) - np.log(np.maximum(1 - share, 1e-300))


def plain_and_tuned(model: Any, prepared: tuple[Collection, bool]) -> Iterator[Row]:
    """The model as it is, and with a threshold chosen for F1 by cross-validation; seconds of both."""
    data = prepared[0]
    plain, tuned = np.full((2, *data.Y_test.shape), -1.0)
    spent = np.zeros(2)
    for label, y in enumerate(data.Y.T):
        if not y.any():
            continue
        with warnings.catch_warnings(), Clock() as clock:
            warnings.simplefilter("ignore")  # folds with few positives; the fallback is documented
            fitted = model.fit(data.X, y)
        plain[:, label] = tuned[:, label] = decide(fitted, data.X_test)
        spent += clock.seconds
        if y.sum() >= FOLDS:
            with warnings.catch_warnings(), Clock() as clock:
                warnings.simplefilter("ignore")
                kind = "decision_function" if hasattr(model, "decision_function") else "predict_proba"
                search = TunedThresholdClassifierCV(fitted, scoring="f1", cv=FOLDS, response_method=kind, refit=True)
                search.fit(data.X, y)
            at = search.best_threshold_
            tuned[:, label] -= at if kind == "decision_function" else np.log(at / (1 - at))
            spent[1] += clock.seconds
    yield from rows_of(data, plain, "as trained", cpu_seconds=spent[0])
    yield from rows_of(data, tuned, "tuned", cpu_seconds=spent[1])


def held_out(model: Any, prepared: tuple[Collection, bool]) -> Iterator[Row]:
    """C by hold-out, for F1 with and without a threshold that does best on the held-out part."""
    data, quick = prepared
    X, Y, X_held, Y_held = part_for_choice(data, 0)
    found: dict[float, Any] = {}

    def evaluate(which: int, settings: list[tuple[float, ...]]) -> Any:
        for (C,) in settings:
            if C not in found:
                found[C] = np.array([one(C, label) for label in range(Y.shape[1])])
        return [found[C][:, which] for (C,) in settings]

    def one(C: float, label: int) -> tuple[float, float, float]:
        if not (Y[:, label].any() and Y_held[:, label].any()):
            return np.nan, np.nan, 0.0
        scores = fit(model, C, X, Y[:, label]).decision_function(X_held)
        return value("f1", Y_held[:, label], scores), *best_threshold(Y_held[:, label], scores)

    for which, threshold in enumerate(("as trained", "tuned")):
        selected = Chosen(partial(evaluate, which), (0.25, 1.0, 4.0) if quick else GRID)
        scores = np.full(data.Y_test.shape, -1.0)
        for label, (C,) in enumerate(selected.settings):
            if data.Y[:, label].any():
                scores[:, label] = fit(model, C, data.X, data.Y[:, label]).decision_function(data.X_test)
                scores[:, label] -= found[C][label, 2] if which else 0.0
        yield from rows_of(data, scores, threshold, most_C=selected.most[0])


def fit(model: Any, C: float, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.set_params(C=C).fit(X, y)


def only(measure: str, data: Collection, scores: Any, **more: Any) -> Iterator[Row]:
    """Rows with the measure trained for, and no other."""
    for row in rows_of(data, scores, "as trained", **more):
        yield row | {name: "" for name in MEASURES if name != measure}


class Labels(sparse.csc_matrix):  # type: ignore[misc]
    """Labels that can be counted along the axis 2, as LibMultiLabel 0.10.0 does in `train_thresholding`.

    SciPy took that for the axis 0 of a CSC matrix, by accident, and refuses it today.
    """

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        return super().sum(0 if axis == 2 else axis, dtype=dtype, out=out)


def multilabel(how: str, prepared: tuple[Collection, bool]) -> Iterator[Row]:
    """One of LibMultiLabel's ways to train, with its defaults; its labels are compared, not its rankings."""
    data, linear = prepared[0], libmultilabel()
    np.random.seed(0)  # noqa: NPY002 - its cross-validation uses the global generator
    Y = Labels(data.Y.astype(float))
    model = getattr(linear, f"train_{how}")(Y, data.X, options="-m 1", verbose=False)
    yield from only("f1", data, np.asarray(linear.predict_values(model, data.X_test)))


class Clock:
    """CPU seconds of a block."""

    def __enter__(self) -> Clock:
        self._began = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.process_time() - self._began


main = Program("baselines", tasks, page).main
