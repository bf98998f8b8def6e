"""`CAPOClassifier` with its defaults beside its auxiliary alone: tables and imbalanced sets, with and without folds.

    python -m experiments capo_defaults --data DIR [--out DIR] [--quick] [--jobs N] [--page]

60 % of the rows, at most 2000, are trained on and at most 4000 others tested on, features standardised. The outputs of
each auxiliary are computed once for all measures, as `CAPOClassifier` computes them, and given to it as a column. Every
other set by name is for development: the defaults were chosen on these and have to hold on the rest.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from experiments import imbalanced
from experiments.data import Split
from experiments.harness import Options, Program, Row, Task, markdown, select, write
from experiments.stats import compare
from metrimax import CAPOClassifier
from metrimax.estimators._auxiliary import AuxiliaryOutputs, unseen
from metrimax.measure import get_measure

AUXILIARIES = {
    "boosting": partial(HistGradientBoostingClassifier, max_iter=60, random_state=0),
    "forest": partial(RandomForestClassifier, 60, random_state=0),
    "SVM": SVC,
}
MEASURES = {
    "f1": "F1",
    "mcc": "MCC",
    "balanced_error": "balanced accuracy",
    "error": "accuracy",
    "prbep": "PRBEP",
    "average_precision": "AP",
    "roc_area": "ROC area",
}
WAYS = {"cv=5": ("score", True), "cv=None": ("label", False)}
"""What the outputs are by default, and whether they are out of fold."""
TRAINED, TESTED, POSITIVES = 2000, 4000, 30
COLLECTIONS = {"tables20": "20 tables", "imbalanced": "imbalanced-learn and KEEL"}


def tasks(options: Options) -> Iterator[Task]:
    for collection, name, half in sets(options):
        for auxiliary in AUXILIARIES:
            key = {"collection": collection, "data": name, "half": half, "auxiliary": auxiliary}
            yield Task(key, partial(run, auxiliary), partial(read, collection, name, options))


def sets(options: Options) -> Iterator[tuple[str, str, str]]:
    """Collection, name and half; imbalanced sets with at least 30 positives."""
    if options.quick:
        yield from (("imbalanced", f"made:{k}", half) for k, half in enumerate(("development", "confirmation")))
        return
    tables = sorted(path.stem for path in (options.data / "tables20").glob("*.npz"))
    for k, name in enumerate(tables):
        yield "tables20", name, ("development", "confirmation")[k % 2]
    for name, half in imbalanced.names(options):
        if imbalanced.load(name, options).y.sum() >= POSITIVES:
            yield "imbalanced", name, half


@functools.lru_cache(maxsize=2)
def read(collection: str, name: str, options: Options) -> Split:
    if collection == "tables20":
        table = np.load(options.data / "tables20" / f"{name}.npz")
        X, y = table["X"].astype(float), table["y"]
    else:
        X, y = imbalanced.load(name, options)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    some = np.random.default_rng(0).permutation(len(X))[:TRAINED]
    scaler = StandardScaler().fit(X[some])
    return scaler.transform(X[some]), y[some], scaler.transform(X_test[:TESTED]), y_test[:TESTED]


def run(name: str, split: Split) -> Iterator[Row]:
    X, y, X_test, y_test = split
    auxiliary = AUXILIARIES[name]()
    fitted = auxiliary.fit(X, y)
    folds = list(StratifiedKFold(5).split(X, y))
    for way, (kind, out_of_fold) in WAYS.items():
        problem = AuxiliaryOutputs(np.array([False, True]), y[:, None], y, False, kind)
        f = unseen(auxiliary, X, problem, folds, {}) if out_of_fold else problem.output(fitted, X)
        test = problem.output(fitted, X_test)
        for measure in MEASURES:
            judge = get_measure(measure)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf = CAPOClassifier([("a", X.shape[1])], measure, outputs=kind, n_threads=1)
                clf.fit(np.hstack([X, f]), y)
            yield {
                "way": way,
                "measure": measure,
                "auxiliary_alone": judge.score(y_test, test[:, 0]),
                "adapted": judge.score(y_test, clf.decision_function(np.hstack([X_test, test]))),
                "changed": clf.report_["changed"],
                "status": clf.status_.name,
                "positives": int(y.sum()),
            }


def page(rows: list[Row], options: Options) -> None:
    """Write capo_defaults.md."""
    text = HEAD
    for collection, title in COLLECTIONS.items():
        for half in ("development", "confirmation"):
            own = list(select(rows, collection=collection, half=half))
            if own:
                count = len({row["data"] for row in own})
                text += f"\n## {title}, {half}: {count} sets\n\n" + _table(own)
    write(options.pages / "capo_defaults.md", text)


def _table(rows: list[Row]) -> str:
    lines = []
    for way in WAYS:
        for measure, title in MEASURES.items():
            own = list(select(rows, way=way, measure=measure))
            before, after = (np.array([float(r[c]) for r in own]) for c in ("auxiliary_alone", "adapted"))
            by = [f"{np.mean((after - before)[[r['auxiliary'] == a for r in own]]):+.3f}" for a in AUXILIARIES]
            of_sets = [
                [np.mean([float(r[c]) for r in select(own, data=name)]) for name in sorted({r["data"] for r in own})]
                for c in ("adapted", "auxiliary_alone")
            ]
            found = compare(*of_sets)
            unchanged = sum(r["changed"] == "False" for r in own)
            sets = f"{found.wins}/{found.ties}/{found.losses}"
            worst = f"{np.min(after - before):+.3f}"
            means = [f"{values.mean():.3f}" for values in (before, after)]
            lines.append([way, title, *means, *by, sets, f"{found.p:.2g}", worst, f"{unchanged} of {len(own)}"])
    names = [f"{a}, mean change" for a in AUXILIARIES]
    return markdown(
        ["outputs", "measure", "auxiliary", "adapted", *names, "sets better/equal/worse", "p", "worst", "unchanged"],
        lines,
    )


HEAD = """# CAPO's defaults

`CAPOClassifier` with its defaults beside its auxiliary alone: does adaptation ever cost? Written by
`python -m experiments capo_defaults --data DIR`; the rows are in `experiments/results/capo_defaults.csv`.

Auxiliaries are `HistGradientBoostingClassifier` (60 rounds), `RandomForestClassifier` (60 trees) and `SVC`, one at a
time. 60 % of the rows, at most 2000, are trained on, the rest, at most 4000, tested on; features are standardised.
`cv=5` is the default: scores out of fold. `cv=None`: labels of the auxiliary on the examples that it was trained on. A
set counts once in better/equal/worse, by its mean over the three auxiliaries; p is that of the signed-rank test. The
worst change is that of one auxiliary on one set. "Unchanged": `report_["changed"]` is False, and a warning was given.
PRBEP, AP and ROC area of auxiliaries are those of their scores with `cv=5` and of their labels with `cv=None`.

Losses, outputs, folds and threshold were chosen on the development halves. The confirmation half of the 20 tables was
looked at twice: with the risk at its full weight, and after `risk="even"` had been chosen on the development halves.
"""

main = Program("capo_defaults", tasks, page).main

if __name__ == "__main__":
    main()
