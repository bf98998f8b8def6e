"""`MeasureEnsemble` beside what else is good on tables, on 20 tables and imbalanced sets; what each of its parts gains.

A stratified 60 % of each table are for training. Baselines tune their threshold by `TunedThresholdClassifierCV`. The
members of the ensemble are trained once per table and combined for every measure: the folds and the random states do
not depend on the measure, so that this is what a fit for each measure gives. The ablation leaves out one part at a
time.

The tables are divided in two halves by name, every other one. The members and constants were chosen on the first, with
another split.

What `report_` says is compared with the test rows of several splits.
"""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import RandomizedSearchCV, TunedThresholdClassifierCV, train_test_split

from experiments.data import _svm
from experiments.ensemble_page import ABLATION, ENSEMBLE, FAST, REPORT, REPORT_FAST, page
from experiments.harness import Options, Program, Row, Task
from metrimax import MeasureEnsemble
from metrimax.estimators._ensemble_folds import CrossFit
from metrimax.estimators._ensemble_members import Member, preset
from metrimax.estimators._ensemble_rule import CURVE, OutOfFold, Rule
from metrimax.estimators._ensemble_stack import Stack
from metrimax.measure import get_measure
from metrimax.training.threshold import choose_threshold

SEED = 11
SEEDS = {REPORT: [11], REPORT_FAST: [11, 12, 13, 14]}
"""Splits, where there are several."""
IMBALANCED = ("abalone", "abalone_19", "car_eval_34", "coil_2000", "libras_move", "oil", "optical_digits", "satimage",
              "yeast_me2", "yeast_ml8")  # fmt: skip
"""Sets of imbalanced-learn's collection of at most 10,000 rows."""
SCORERS = {"f1": "f1", "balanced_error": "balanced_accuracy", "mcc": "matthews_corrcoef"}
RANKINGS = {"average_precision": average_precision_score, "roc_area": roc_auc_score}


class Sample(NamedTuple):
    X: Any
    y: Any
    X_test: Any
    y_test: Any


@functools.lru_cache(maxsize=2)
def load(name: str, options: Options, seed: int = SEED) -> Sample:
    if name.startswith("made"):
        X, y = make_classification(300, 6, weights=[0.8], flip_y=0.05, random_state=int(name[-1]))
    elif name.startswith("imblearn/"):
        X, y = _svm(options.data / f"{name}.svm.xz")
        X = X.toarray()
    else:
        found = np.load(options.data / "tables20" / f"{name}.npz")
        X, y = found["X"].astype(float), found["y"]
    X, X_test, y, y_test = train_test_split(X, y > 0, test_size=0.4, stratify=y, random_state=seed)
    return Sample(X, y, X_test, y_test)


def tasks(options: Options) -> Iterator[Task]:
    names = sorted(path.stem for path in (options.data / "tables20").glob("*.npz"))
    names = ["made 0", "made 1"] if options.quick else names
    halves = {name: ("development", "confirmation")[k % 2] for k, name in enumerate(names)}
    others = [] if options.quick else [f"imblearn/{name}" for name in IMBALANCED]
    methods = [*list(METHODS)[:3], REPORT_FAST] if options.quick else METHODS  # the dearest last
    for method in methods:
        for name in (*names, *others):
            half = halves.get(name, "imbalanced")
            if method not in WITH_AUTOGLUON or (AUTOGLUON and half != "development"):
                for seed in SEEDS.get(method, [SEED]):
                    key = {"data": name, "half": half, "method": method, "seed": seed}
                    yield Task(key, METHODS[method], prepare=partial(load, name, options, seed))


def tuned(estimator: Any, sample: Sample, measures: tuple[str, ...] = tuple(SCORERS)) -> Iterator[Row]:
    """A classifier with its threshold tuned for each of the measures, and its ranking."""
    for measure in measures:
        scoring = SCORERS[measure]
        began = time.process_time()
        model = TunedThresholdClassifierCV(estimator, scoring=scoring).fit(sample.X, sample.y)
        seconds = time.process_time() - began
        called = np.where(model.predict(sample.X_test), 1.0, -1.0)
        yield {"measure": measure, "score": get_measure(measure).score(sample.y_test, called), "cpu_seconds": seconds}
    yield from _rankings(model.predict_proba(sample.X_test)[:, 1], sample)


def _rankings(scores: Any, sample: Sample) -> Iterator[Row]:
    for measure, score in RANKINGS.items():
        yield {"measure": measure, "score": score(sample.y_test, scores), "cpu_seconds": 0.0}


def lightgbm(sample: Sample) -> Iterator[Row]:
    from lightgbm import LGBMClassifier  # not needed by anything else

    yield from tuned(LGBMClassifier(random_state=0, n_jobs=1, verbose=-1), sample)


def searched_lightgbm(n_settings: int, sample: Sample) -> Iterator[Row]:
    """The best of so many random settings by its average precision on 3 folds; then the threshold."""
    from lightgbm import LGBMClassifier

    settings = {
        "num_leaves": [3, 7, 15, 31, 63],
        "learning_rate": [0.01, 0.02, 0.05, 0.1],
        "n_estimators": [50, 100, 200],
        "min_child_samples": [5, 10, 20, 50],
        "subsample": [0.5, 0.8, 1.0],
        "subsample_freq": [1],
        "colsample_bytree": [0.5, 0.8, 1.0],
        "reg_lambda": [0.0, 1.0, 10.0],
    }
    model = LGBMClassifier(random_state=0, n_jobs=1, verbose=-1)
    began = time.process_time()
    search = RandomizedSearchCV(model, settings, n_iter=n_settings, scoring="average_precision", cv=3, random_state=0)
    best = search.fit(sample.X, sample.y).best_params_
    seconds = time.process_time() - began
    for row in tuned(model.set_params(**best), sample):
        yield row | {"cpu_seconds": row["cpu_seconds"] + seconds}


def autogluon(preset: str, limit: int, sample: Sample) -> Iterator[Row]:
    """AutoGluon for F1, in the environment that METRIMAX_AUTOGLUON names."""
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "table.npz", Path(folder) / "out.npz"
        np.savez(table, X=sample.X, y=sample.y, X_test=sample.X_test)
        program = Path(__file__).with_name("ensemble_autogluon.py")
        command = [AUTOGLUON, str(program), preset, str(limit), str(table), str(out)]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        found = np.load(out)
        called = np.where(found["called"], 1.0, -1.0)
        score = get_measure("f1").score(sample.y_test, called)
        yield {"measure": "f1", "score": score, "cpu_seconds": float(found["cpu_seconds"])}
        yield from _rankings(found["p"], sample)


def stacking(sample: Sample) -> Iterator[Row]:
    """scikit-learn's own ensemble of the same members: for F1 alone, for it takes long."""
    members = preset("default", sample.X, np.zeros(sample.X.shape[1], dtype=bool))
    stack = StackingClassifier([(m.name, m.estimator) for m in members], LogisticRegression(), cv=5)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TunedThresholdClassifierCV(stack, scoring="f1", cv=3, random_state=0).fit(sample.X, sample.y)
    seconds = time.process_time() - began
    called = np.where(model.predict(sample.X_test), 1.0, -1.0)
    yield {"measure": "f1", "score": get_measure("f1").score(sample.y_test, called), "cpu_seconds": seconds}
    yield from _rankings(model.predict_proba(sample.X_test)[:, 1], sample)


class Recorded(MeasureEnsemble):
    """An ensemble that stores the scores of its members out of fold, and their models."""

    def _report(
        self, seen: OutOfFold, parts: Any, members: list[Member], fits: dict[str, CrossFit], *rest: Any
    ) -> dict[str, Any]:  # fmt: skip
        models = {member.name: fits[member.name].models for member in members}
        self.recorded = seen.target, seen.scores, models, parts
        return super()._report(seen, parts, members, fits, *rest)


class Scored(NamedTuple):
    """Members trained on a sample: what they know of its rows, and their scores of the test rows (K, n, 1, M)."""

    model: Recorded
    seen: Any  #: `OutOfFold` for a measure
    parts: Any
    test: Any


def scored(estimators: str | None, sample: Sample) -> Scored:
    model = Recorded("f1", estimators, random_state=0).fit(sample.X, sample.y)
    target, scores, models, parts = model.recorded
    views = model._views(sample.X_test, {member.view for member in model._members})
    test = [[target.read(m.name, own, views[m.view]) for own in models[m.name]] for m in model._members]
    weight = np.ones(len(scores))
    return Scored(
        model, lambda measure: OutOfFold(measure, target, scores, weight), parts, np.moveaxis(np.array(test), 0, -1)
    )


def ensemble(estimators: str | None, sample: Sample) -> Iterator[Row]:
    """The class itself for F1; the other measures, and the parts, from the same members."""
    began = time.process_time()
    members = scored(estimators, sample)
    seconds = time.process_time() - began
    names = [member.name for member in members.model._members]
    for variant in [""] if estimators else ["", *ABLATION]:
        used = [k for k, name in enumerate(names) if variant not in (f"without {name}", f"{names[0]} alone")]
        used = [0] if variant == f"{names[0]} alone" else used
        for measure in (*SCORERS, *RANKINGS):
            own = get_measure(measure)
            seen = members.seen(own)
            seen = seen._replace(scores=seen.scores[:, :, used])
            rule = varied(seen.learn(np.arange(len(seen.scores))), variant, seen.scores, sample.y, measure)
            above = rule(members.test.mean(axis=0)[:, :, used])[:, 0]
            row = {"variant": variant, "measure": measure, "cpu_seconds": seconds}
            yield row | {"score": RANKINGS.get(measure, own.score)(sample.y_test, above)}


def reported(estimators: str | None, sample: Sample) -> Iterator[Row]:
    """What `report_` says of an ensemble; and on the test rows, its models of one fold on average, and itself."""
    members = scored(estimators, sample)
    rows = np.arange(len(sample.y))
    trained = len(rows) * (1 - 1 / len(members.parts))
    for measure in (*SCORERS, *RANKINGS):
        own = get_measure(measure)
        seen = members.seen(own)
        told = seen.estimate(members.parts, range(seen.scores.shape[2]), 0, trained)
        alone = seen.estimate(members.parts, range(seen.scores.shape[2]), 0, np.inf)
        rule = seen.learn(rows)
        above = rule(members.test.mean(axis=0))[:, 0]
        folds = [own.score(sample.y_test, rule(test)[:, 0]) for test in members.test]
        yield {
            "measure": measure,
            "score": own.score(sample.y_test, above),
            "fold_score": np.mean(folds),
            "estimate": told.score,
            "error": told.std,
            "jackknife": alone.std,
            "test_error": spread(own, sample.y_test, above),
        }


def spread(measure: Any, y: Any, scores: Any) -> float:
    """The standard error of a measure by the jackknife, 20 groups of rows left out one by one."""
    groups = np.random.default_rng(0).permutation(len(y)) % 20
    without = [measure.score(y[groups != g], scores[groups != g]) for g in range(20)]
    return float(np.sqrt(19 * np.var(without)))


def varied(rule: Rule, variant: str, scores: Any, y: Any, measure: str) -> Rule:
    """The rule with one of its parts replaced."""
    [stack] = rule.stacks
    if variant == "equal weights":
        M = len(stack.weights)
        equal = Stack(np.ones(M), np.zeros(M), np.full(M, 1 / M), 0.0)
        rule = Rule([equal], rule.thresholds)
    if variant not in ("equal weights", "best threshold as it is"):
        return rule
    above = rule._replace(thresholds=np.zeros(1))(scores)[:, 0]
    if variant == "equal weights":
        return rule._replace(thresholds=np.array([choose_threshold(get_measure(measure), y, above, prior=CURVE)]))
    places = np.unique(above)
    places = (places[1:] + places[:-1]) / 2
    best = max(places, key=lambda place: get_measure(measure).score(y, above - place))
    return rule._replace(thresholds=np.array([best]))


METHODS: dict[str, Any] = {
    "HistGradientBoosting + threshold": partial(tuned, HistGradientBoostingClassifier(random_state=0)),
    ENSEMBLE: partial(ensemble, None),
    FAST: partial(ensemble, "fast"),
    REPORT_FAST: partial(reported, "fast"),
    REPORT: partial(reported, None),
    "LightGBM + threshold": lightgbm,
    "RandomForest + threshold": partial(tuned, RandomForestClassifier(random_state=0), measures=("f1",)),
    "tuned LightGBM + threshold": partial(searched_lightgbm, 20),
    "tuned LightGBM (40 settings) + threshold": partial(searched_lightgbm, 40),
    "StackingClassifier + threshold": stacking,
    "AutoGluon medium_quality": partial(autogluon, "medium_quality", 120),
    "AutoGluon good_quality": partial(autogluon, "good_quality", 120),
}
WITH_AUTOGLUON = list(METHODS)[-2:]
"""They run on what chose nothing: the confirmation half and the imbalanced sets."""
AUTOGLUON = os.environ.get("METRIMAX_AUTOGLUON", "")
"""The Python of an environment with AutoGluon; without it these rows are left out."""

main = Program("ensemble", tasks, page).main
