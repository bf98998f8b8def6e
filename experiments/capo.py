"""Reproduce Tables 2-5 and Figures 1-5 of Li, Tsang & Zhou (2013).

    python -m experiments.capo --data DIR [--quick] [--only table2 ...] [--sets Splice ...] [--page]

Writes docs/results/capo_*.csv (the rows of a data set replace those of an earlier run), the figures, and the page
docs/results/capo.md; ``--page`` writes the page and the figures anew from the CSV files. ``--quick`` takes a small part
of every set, for trying the program, and writes into build/capo instead. Times are CPU seconds of one thread.
"""

from __future__ import annotations

import argparse
import csv
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning

from experiments.capo_page import page
from experiments.capo_tasks import (
    DATASETS,
    GRIDS,
    MEASURES,
    Outputs,
    Task,
    fifty,
    five,
    kernel_svm,
    load,
    search,
    three,
    train,
)
from metrimax import CAPOClassifier, MeasureSVC
from metrimax.designs.kernel import Gram, Kernel, LowRank, kernel_design
from metrimax.measure import get_measure

SWEEP = [2.0**e for e in range(-6, 7, 2)]
SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
BASES = (250, 500, 1000, 2000)
COSTS = (0.25, 1.0, 4.0, 16.0)
Row = dict[str, Any]


def capo(measure: str, m: int, C: float, **options: Any) -> CAPOClassifier:
    """CAPO on rows whose first m columns are the scores of the auxiliaries."""
    columns = [(f"f{k}", k) for k in range(m)]
    return CAPOClassifier(columns, measure=measure, C=C, n_threads=1, **options)


def join(F: Any, X: Any) -> Any:
    return sparse.hstack([sparse.csr_matrix(F), X]).tocsr() if sparse.issparse(X) else np.hstack([F, X])


def choose(make: Callable[[float], Any], X: Any, task: Task, grid: tuple[float, ...]) -> tuple[float, float]:
    """The C that does best on the hold-out third, trained on the other two; and the CPU seconds of the choice."""
    began = time.process_time()
    inside, outside = task.inside, task.outside
    fit = X[inside], task.y[inside]
    C = search(lambda C: make(C).fit(*fit).score(X[outside], task.y[outside]), grid)
    return C, time.process_time() - began


def adapt(task: Task, measure: str, F: Any, F_test: Any, **options: Any) -> Row:
    """Choose C, train on all, test."""
    X = join(F, task.X)

    def make(C: float) -> CAPOClassifier:
        return capo(measure, F.shape[1], C, **options)

    C, seconds = choose(make, X, task, GRIDS["capo"])
    clf = make(C).fit(X, task.y)
    value = clf.score(join(F_test, task.X_test), task.y_test)
    return {
        "value": value,
        "C": C,
        "seconds": seconds,
        "n_iter": clf.n_iter_,
        "flipped": sum(clf.report_["flipped"].values()),
    }


def values(task: Task, scores: Any, *, labels: bool = False) -> dict[str, float]:
    """All measures of given test scores, or of the labels they stand for."""
    scores = np.where(scores > 0, 1.0, -1.0) if labels else np.ascontiguousarray(scores, dtype=float)
    return {name: get_measure(key).score(task.y_test, scores) for name, key in MEASURES.items()}


def auxiliary_rows(task: Task, outputs: Outputs) -> Iterator[Row]:
    """What the auxiliaries themselves achieve on the test set, by their labels and by their scores."""
    for k, name in enumerate(outputs.names):
        as_labels = values(task, outputs.test[:, k], labels=True)
        for measure, value in values(task, outputs.test[:, k]).items():
            yield {"measure": measure, "method": name, "kind": "auxiliary label", "value": as_labels[measure]}
            yield {"measure": measure, "method": name, "kind": "auxiliary score", "value": value}
        yield {"method": name, "kind": "auxiliary training", "seconds": outputs.seconds[name]}


def adaptations(task: Task, outputs: Outputs) -> Iterator[Row]:
    """CAPO with the auxiliaries one by one and together, on four kinds of their outputs, and with fixed weight."""
    groups = {name: [k] for k, name in enumerate(outputs.names)} | {"all": list(range(len(outputs.names)))}
    for measure, key in MEASURES.items():
        for name, which in groups.items():
            for source, F in (("in-sample", outputs.inside), ("out-of-fold", outputs.out_of_fold)):
                for kind in ("label", "score"):
                    row = adapt(task, key, F[:, which], outputs.test[:, which], outputs=kind)
                    yield {"measure": measure, "method": name, "kind": f"{kind} {source}", **row}
            if len(which) == 1:
                row = adapt(task, key, outputs.inside[:, which], outputs.test[:, which], aux_weight="fixed")
                yield {"measure": measure, "method": name, "kind": "fixed weight, label in-sample", **row}


def table2(task: Task) -> Iterator[Row]:
    """Tables 2 to 4: CAPO with three kinds of auxiliaries one by one and together, and what it is compared with."""
    outputs = train(three(task), task, folds=5)
    yield from auxiliary_rows(task, outputs)
    yield from adaptations(task, outputs)
    for measure, key in MEASURES.items():
        C, seconds = choose(lambda C, key=key: MeasureSVC(key, C=C, n_threads=1), task.X, task, GRIDS["lin"])
        clf = MeasureSVC(key, C=C, n_threads=1).fit(task.X, task.y)
        value = clf.score(task.X_test, task.y_test)
        yield {"measure": measure, "method": "lin", "value": value, "C": C, "seconds": seconds, "n_iter": clf.n_iter_}
    yield from kernel_rows(task)
    yield from cost_rows(task, "cost lin", task.X, task.X_test)
    nystroem = kernel_design(Kernel("rbf", task.gamma), task.X, n_components=min(500, len(task.y) - 1), seed=0)
    test = nystroem.expansion(np.eye(nystroem.shape[1])).scores(task.X_test)
    yield from cost_rows(task, "cost rbf", nystroem.X, test)


def kernel_rows(task: Task) -> Iterator[Row]:
    """MeasureSVC with an RBF kernel. The kernel's values are computed once for all measures and C."""
    began = time.process_time()
    design = kernel_design(Kernel("rbf", task.gamma), task.X, seed=0, n_threads=1)
    build = time.process_time() - began
    exact = isinstance(design, Gram)
    kernel = "precomputed" if exact else "linear"
    X = design._K.X if exact else design.X
    fitted, rows = [], []
    for measure, key in MEASURES.items():

        def make(C: float, key: str = key) -> MeasureSVC:
            return MeasureSVC(key, C=C, kernel=kernel, n_threads=1)

        began = time.process_time()
        inside = X[np.ix_(task.inside, task.inside)] if exact else X[task.inside]
        outside = X[np.ix_(task.outside, task.inside)] if exact else X[task.outside]
        fit, held = (inside, task.y[task.inside]), (outside, task.y[task.outside])
        C = search(lambda C, make=make, fit=fit, held=held: make(C).fit(*fit).score(*held), GRIDS["rbf"])
        seconds = time.process_time() - began
        began = time.process_time()
        clf = make(C).fit(X, task.y)
        weights = np.zeros(X.shape[1])
        weights[clf.support_ if exact else slice(None)] = (clf.kernel_coef_ if exact else clf.coef_)[0]
        fitted.append((weights, clf.intercept_[0] - clf.threshold_[0]))
        rows.append(
            {
                "measure": measure,
                "method": "rbf",
                "C": C,
                "seconds": seconds + build,
                "fit": time.process_time() - began + build,
                "n_iter": clf.n_iter_,
                "kind": "exact" if exact else f"low rank, {design.shape[1]} features, trace kept {design.kept:.4f}",
            }
        )
    scores = design.expansion(np.column_stack([w for w, _ in fitted])).scores(task.X_test)
    for k, row in enumerate(rows):
        row["value"] = get_measure(MEASURES[row["measure"]]).score(task.y_test, scores[:, k] + fitted[k][1])
        yield row


def cost_rows(task: Task, name: str, X: Any, X_test: Any) -> Iterator[Row]:
    """A soft-margin SVM that weighs positives j times, j and C chosen for each measure from the same fits."""
    began = time.process_time()
    inside, outside = task.inside, task.outside

    def make(C: float, j: float) -> MeasureSVC:
        return MeasureSVC("error", C=C, class_weight={True: j, False: 1.0}, n_threads=1)

    tried = [(C, j) for C in GRIDS["lin"][1:] for j in COSTS]
    fits = [make(*pair).fit(X[inside], task.y[inside]).decision_function(X[outside]) for pair in tried]
    seconds = time.process_time() - began
    for measure, key in MEASURES.items():
        best = int(np.argmax([get_measure(key).score(task.y[outside], s) for s in fits]))
        C, j = tried[best]
        scores = make(C, j).fit(X, task.y).decision_function(X_test)
        value = values(task, scores)[measure]
        yield {"measure": measure, "method": name, "value": value, "C": C, "j": j, "seconds": seconds}


def table5(task: Task) -> Iterator[Row]:
    """Table 5 and Figure 2: the delta function's share, and whether choosing the auxiliaries by the measure helps."""
    many = train(fifty(task), task)
    default = [many.names.index(f"{kernel} 0.0") for kernel in five(task)]
    before = {k: values(task, many.test[:, k]) for k in range(len(many.names))}
    for measure, key in MEASURES.items():
        F, F_test = many.inside[:, default], many.test[:, default]
        for delta in ("linear", None, "rbf"):
            options = {"n_components": 300, "gamma": task.gamma, "random_state": 0} if delta == "rbf" else {}
            yield {
                "measure": measure,
                "method": f"delta {delta}",
                **adapt(task, key, F, F_test, delta=delta, **options),
            }
        on_training = [get_measure(key).score(task.y, np.ascontiguousarray(s)) for s in many.inside.T]
        chosen = list(np.argsort(-np.array(on_training), kind="stable")[:5])
        row = adapt(task, key, many.inside[:, chosen], many.test[:, chosen])
        yield {"measure": measure, "method": "chosen", **row}
        for name, group in (("mean of default", default), ("mean of chosen", chosen)):
            yield {"measure": measure, "method": name, "value": np.mean([before[k][measure] for k in group])}
    yield {"method": "fifty", "seconds": sum(many.seconds.values())}
    yield {"method": "five", "seconds": sum(many.seconds[many.names[k]] for k in default)}


def sweep(task: Task) -> Iterator[Row]:
    """Figures 1, 3 and 4: C and B."""
    if task.name not in ("USPS*", "Reuters"):
        return
    outputs, kinds = train(five(task), task), train(three(task), task)
    rbf = outputs.names.index("rbf")
    groups = {
        "CAPO1": (outputs.inside[:, [rbf]], outputs.test[:, [rbf]]),
        "CAPO5": (outputs.inside, outputs.test),
        "CAPO*": (kinds.inside, kinds.test),
    }
    data = {name: (join(F, task.X), join(F_test, task.X_test), F.shape[1]) for name, (F, F_test) in groups.items()}
    nystroem = kernel_design(
        Kernel("rbf", task.gamma), task.X, n_components=min(500, len(task.y) - 1), seed=0, n_threads=1
    )
    mapped = nystroem.X, nystroem.expansion(np.eye(nystroem.shape[1])).scores(task.X_test)
    for measure, key in MEASURES.items():
        for C in SWEEP:
            runs = {name: (capo(key, m, C, solver="bundle"), X, X_test) for name, (X, X_test, m) in data.items()}
            runs["lin"] = MeasureSVC(key, C=C, solver="bundle", n_threads=1), task.X, task.X_test
            runs["rbf"] = MeasureSVC(key, C=C, solver="bundle", n_threads=1), *mapped
            for name, run in runs.items():
                yield {"measure": measure, "method": name, "parameter": "C", "at": C, **fit_and_test(task, *run)}
        for B in SWEEP:
            for name in ("CAPO1", "CAPO5"):
                X, X_test, m = data[name]
                row = fit_and_test(task, capo(key, m, 1.0, B=B, solver="bundle"), X, X_test)
                yield {"measure": measure, "method": name, "parameter": "B", "at": B, **row}


def fit_and_test(task: Task, clf: Any, X: Any, X_test: Any) -> Row:
    began = time.process_time()
    clf.fit(X, task.y)
    seconds = time.process_time() - began
    return {"value": clf.score(X_test, task.y_test), "seconds": seconds, "n_iter": clf.n_iter_}


def size(whole: Task) -> Iterator[Row]:
    """Figure 5: parts of IJCNN1, at C = B = 1."""
    if whole.name != "IJCNN1":
        return
    for share in SHARES:
        task = whole.part(share)
        outputs = train(five(task), task)
        for measure, key in MEASURES.items():
            for name, which in (("CAPO1", [outputs.names.index("rbf")]), ("CAPO5", list(range(5)))):
                F, F_test = outputs.inside[:, which], outputs.test[:, which]
                clf = capo(key, len(which), 1.0)
                row = fit_and_test(task, clf, join(F, task.X), join(F_test, task.X_test))
                yield {
                    "measure": measure,
                    "method": name,
                    "share": share,
                    "auxiliaries": aux_seconds(outputs, which),
                    **row,
                }
            lin, rbf = MeasureSVC(key, n_threads=1), kernel_svm("rbf", task.gamma, None).set_params(measure=key)
            yield {"measure": measure, "method": "lin", "share": share, **fit_and_test(task, lin, task.X, task.X_test)}
            yield {"measure": measure, "method": "rbf", "share": share, **fit_and_test(task, rbf, task.X, task.X_test)}


def aux_seconds(outputs: Outputs, which: list[int]) -> float:
    return sum(outputs.seconds[outputs.names[k]] for k in which)


def components(task: Task) -> Iterator[Row]:
    """IJCNN1 with an RBF kernel and F1 on a hold-out third: the size of the basis, and whether its choice matters."""
    if task.name != "IJCNN1":
        return
    X, X_held = task.X[task.inside], task.X[task.outside]
    y, y_held = task.y[task.inside], task.y[task.outside]
    kernel = Kernel("rbf", task.gamma)
    for size in BASES:
        for basis in ("random", "k-means++") if size <= 1000 else ("random",):
            began = time.process_time()
            if basis == "random":
                chosen = np.random.default_rng(0).choice(len(y), size, replace=False)
            else:
                chosen = np.unique(kmeans_plusplus(X, size, random_state=0)[1])
            design = LowRank(kernel, X, chosen, n_threads=1)
            clf = MeasureSVC("f1", C=10.0, n_threads=1).fit(design.X, y)
            seconds = time.process_time() - began
            scores = design.expansion(clf.coef_[0]).scores(X_held) + clf.intercept_[0]
            value = get_measure("f1").score(y_held, scores)
            yield {"size": size, "basis": basis, "value": value, "kept": design.kept, "seconds": seconds}


def memory(task: Task) -> Iterator[Row]:
    """IJCNN1 with an RBF kernel and F1 in a process of its own: wall-clock seconds and peak memory."""
    if task.name != "IJCNN1":
        return
    command = [sys.executable, "-m", "experiments.capo", *sys.argv[1:], "--alone"]
    yield dict(
        zip(
            ("seconds", "MiB", "value", "status"),
            subprocess.check_output(command, text=True).strip().split("|"),
            strict=True,
        )
    )


def alone(task: Task) -> None:
    began = time.perf_counter()
    clf = MeasureSVC("f1", kernel="rbf", gamma="mean_distance", C=10.0, random_state=0).fit(task.X, task.y)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{seconds:.1f}|{peak:.0f}|{clf.score(task.X_test, task.y_test):.4f}|{clf.status_.name}")


STAGES = {"table2": table2, "table5": table5, "sweep": sweep, "size": size, "components": components, "memory": memory}


def write(path: Path, name: str, rows: list[Row]) -> None:
    """Put the rows of one data set in place of its earlier ones; beside and renamed."""
    if path.exists():
        with path.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["data"] != name] + rows
    names = list(dict.fromkeys(key for row in rows for key in row))
    part = path.with_suffix(".part")
    with part.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
    part.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the data sets")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", choices=STAGES, default=list(STAGES), help="the parts to run")
    parser.add_argument("--sets", nargs="*", choices=DATASETS, default=list(DATASETS), help="the data sets to run")
    parser.add_argument("--page", action="store_true", help="only write the page, from the CSV files")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        return alone(load("IJCNN1", options.data, options.quick))
    root = Path(__file__).resolve().parents[1]
    folder = root / "build" / "capo" if options.quick else root / "docs" / "results"
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ConvergenceWarning)  # logistic regression of the RBF network
    for name in () if options.page else options.sets:
        task = load(name, options.data, options.quick)
        for stage in options.only:
            began = time.perf_counter()
            rows = [{"data": name, **row} for row in STAGES[stage](task)]
            if rows:
                write(folder / f"capo_{stage}.csv", name, rows)
                print(f"{name} {stage}: {time.perf_counter() - began:.0f} s", flush=True)
    page(folder)


if __name__ == "__main__":
    main()
