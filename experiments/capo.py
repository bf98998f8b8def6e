"""Li, Tsang & Zhou (2013), Tables 2-5 and Figures 1-5: classifiers adapted to a measure.

    python -m experiments capo --data DIR [--out DIR] [--quick] [--jobs N] [--page]

Which outputs of the auxiliaries are the default of `CAPOClassifier` is decided on sets that the paper lacks (protocol
"default"). The page is written by `experiments.capo_page`. Times are CPU seconds of one thread.

One protocol for all sets and methods: five folds of at most `CHOOSE_ON` training rows choose the parameters, from the
paper's grids, which are extended while the best C is on a border; the classifier is then trained on all rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks.outofcore import resident
from experiments.capo_page import page
from experiments.capo_problem import (
    DATASETS,
    OTHERS,
    Outputs,
    Problem,
    by_folds,
    fifty,
    five,
    held_out,
    kernel_svm,
    load,
    three,
    train,
)
from experiments.harness import Options, Program, Row, Task
from metrimax import CAPOClassifier, CAPOClassifierCV, MeasureSVC, MeasureSVCCV
from metrimax.designs.kernel import Kernel, LowRank, kernel_design
from metrimax.measure import get_measure

SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
BASES = (250, 500, 1000, 2000)
COSTS = (0.25, 1.0, 4.0, 16.0, 64.0)
RISK: dict[str, Any] = {"hinge": 0, "threshold": "trained"}
"""The measure's risk alone, as in the paper."""


def tasks(options: Options) -> Iterator[Task]:
    """On the paper's data sets, and the default on others; some figures need one or two sets only."""
    quick = options.quick
    protocols: dict[str, tuple[Callable[[Problem], Iterator[Row]], Collection[str]]] = {
        "default": (adaptations, OTHERS),
        "table2": (table2, DATASETS),
        "table5": (table5, DATASETS),
        "width": (width, ("Mitfaces",)),
        "sweep": (sweep, ("USPS*", "Reuters")),
        "size": (partial(size, SHARES[-1:] if quick else SHARES), ("IJCNN1",)),
        "components": (partial(components, (20, 40) if quick else BASES), ("IJCNN1",)),
    }
    for protocol, (run, sets) in protocols.items():
        for data in sets if not quick else ("digits",) if protocol != "default" else ():  # which table2 does anyway
            yield Task({"data": data, "protocol": protocol, "seed": 0}, run, prepare=partial(load, data, options))
    if not quick:
        yield Task({"data": "IJCNN1", "protocol": "memory", "seed": 0}, partial(memory, "IJCNN1", options))


def columns(which: Collection[int]) -> list[tuple[str, int]]:
    """Columns of X as auxiliaries."""
    return [(f"f{k}", k) for k in which]


def capo(measure: str, which: Collection[int], C: float, **options: Any) -> CAPOClassifier:
    """CAPO on rows of which some columns are the outputs of the auxiliaries."""
    paper = {"outputs": "label", **RISK}
    return CAPOClassifier(columns(which), measure=measure, C=C, n_threads=1, **(paper | options))


def join(F: Any, X: Any) -> Any:
    return sparse.hstack([sparse.csr_matrix(F), X]).tocsr() if sparse.issparse(X) else np.hstack([F, X])


def adapt(problem: Problem, measure: str, F: Any, F_test: Any, keep: int | None = None, **options: Any) -> Row:
    """Choose C, and with ``keep`` some of the auxiliaries; train on all rows; test.

    With outputs that were computed once for all measures, `CAPOClassifierCV` has nothing to train again on its folds.
    """
    began = time.process_time()
    which = list(range(F.shape[1]))
    rows, grid = problem.choose_on, problem.Cs(measure)
    X, y = join(F[rows], problem.X[rows]), problem.y[rows]
    if "aux_weight" in options:  # fixed, which `CAPOClassifierCV` does not know
        C = by_folds(lambda C: capo(measure, which, C, **options), measure, X, y, grid)
    else:
        paper = {"outputs": "label", **RISK}
        search = CAPOClassifierCV(
            columns(which), measure, Cs=grid, Bs=[1.0], keep=keep, extend=True, n_threads=1, **(paper | options)
        ).fit(X, y)
        C, which = search.C_, search.estimators_
    seconds = time.process_time() - began
    F, F_test = F[:, which], F_test[:, which]
    clf = capo(measure, range(len(which)), C, **options).fit(join(F, problem.X), problem.y)
    return {
        "value": clf.score(join(F_test, problem.X_test), problem.y_test),
        "C": C,
        "c": problem.in_the_grid(measure, C),
        "seconds": seconds,
        "n_iter": clf.n_iter_,
        "flipped": sum(clf.report_["flipped"].values()),
        "chosen": " ".join(map(str, which)) if keep else "",
    }


def values(problem: Problem, scores: Any, y: Any, *, labels: bool = False) -> dict[str, float]:
    """All measures of given scores, or of the labels they stand for."""
    scores = np.where(scores > 0, 1.0, -1.0) if labels else np.ascontiguousarray(scores, dtype=float)
    return {name: get_measure(key).score(y, scores) for name, key in problem.measures.items()}


def auxiliary_rows(problem: Problem, outputs: Outputs) -> Iterator[Row]:
    """What the auxiliaries achieve by labels and scores: on the test set, and on the training set in two ways."""
    for k, name in enumerate(outputs.names):
        for where, F, y in (
            ("auxiliary", outputs.test, problem.y_test),
            ("in-sample", outputs.inside, problem.y),
            ("out-of-fold", outputs.out_of_fold, problem.y),
        ):
            for outcome, found in (
                ("label", values(problem, F[:, k], y, labels=True)),
                ("score", values(problem, F[:, k], y)),
            ):
                kind = f"auxiliary {outcome}" if where == "auxiliary" else f"auxiliary {outcome} {where}"
                for measure, value in found.items():
                    yield {"measure": measure, "method": name, "kind": kind, "value": value}
        yield {"method": name, "kind": "auxiliary training", "seconds": outputs.seconds[name]}


def adaptations(problem: Problem) -> Iterator[Row]:
    """CAPO with the auxiliaries one by one and together, on four kinds of their outputs, and with fixed weight."""
    outputs = train(three(problem), problem, folds=5)
    yield from auxiliary_rows(problem, outputs)
    groups = {name: [k] for k, name in enumerate(outputs.names)} | {"all": list(range(len(outputs.names)))}
    for measure, key in problem.measures.items():
        for name, which in groups.items():
            for source, F in (("in-sample", outputs.inside), ("out-of-fold", outputs.out_of_fold)):
                for kind in ("label", "score"):
                    row = adapt(problem, key, F[:, which], outputs.test[:, which], outputs=kind)
                    yield {"measure": measure, "method": name, "kind": f"{kind} {source}", **row}
            if len(which) == 1:
                row = adapt(problem, key, outputs.inside[:, which], outputs.test[:, which], aux_weight="fixed")
                yield {"measure": measure, "method": name, "kind": "fixed weight, label in-sample", **row}


def table2(problem: Problem) -> Iterator[Row]:
    """Tables 2 to 4: CAPO with three kinds of auxiliaries one by one and together, and what it is compared with."""
    yield from adaptations(problem)
    y = problem.y_test
    yield {"method": "test set", "examples": len(y), "positives": int(y.sum())}
    rows = problem.choose_on
    for measure, key in problem.measures.items():
        began = time.process_time()
        search = MeasureSVCCV(key, Cs=problem.Cs(key), extend=True, n_threads=1, **RISK)
        C = search.fit(problem.X[rows], problem.y[rows]).C_
        seconds = time.process_time() - began
        clf = MeasureSVC(key, C=C, n_threads=1, **RISK).fit(problem.X, problem.y)
        value = clf.score(problem.X_test, y)
        chosen = {"C": C, "c": problem.in_the_grid(key, C)}
        yield {"measure": measure, "method": "lin", "value": value, "seconds": seconds, "n_iter": clf.n_iter_} | chosen
    kernels = list(kernel_rows(problem))
    yield from kernels
    yield from cost_rows(problem, "cost lin", problem.X, problem.X_test)
    gamma = kernels[0]["width"] * problem.gamma  # of the error rate, whose problem is that of a cost model with j = 1
    mapped = kernel_design(
        Kernel("rbf", gamma), problem.X, n_components=min(500, len(problem.y) - 1), seed=0, n_threads=1
    )
    test = mapped.expansion(np.eye(mapped.shape[1])).scores(problem.X_test)
    yield from cost_rows(problem, "cost rbf", mapped.X, test)


def kernel_rows(problem: Problem) -> Iterator[Row]:
    """MeasureSVC with an RBF kernel, its width and C chosen together."""
    rows = problem.choose_on
    for measure, key in problem.measures.items():
        began = time.process_time()
        found = []
        for width in problem.widths:
            search = MeasureSVCCV(
                key, Cs=problem.Cs(key), extend=True, kernel="rbf", gamma=width * problem.gamma, n_threads=1, **RISK
            ).fit(problem.X[rows], problem.y[rows])
            found.append((search.best_score_, -abs(np.log(width)), width, search.C_))
        *_, width, C = max(found)
        seconds = time.process_time() - began
        began = time.process_time()
        clf = kernel_svm("rbf", width * problem.gamma, None).set_params(measure=key, C=C, **RISK)
        clf.fit(problem.X, problem.y)
        fit = time.process_time() - began
        kept = clf.kernel_kept_
        yield {
            "measure": measure,
            "method": "rbf",
            "value": clf.score(problem.X_test, problem.y_test),
            "C": C,
            "c": problem.in_the_grid(key, C),
            "width": width,
            "seconds": seconds,
            "fit": fit,
            "n_iter": clf.n_iter_,
            "kept": kept,
        }


def cost_rows(problem: Problem, name: str, X: Any, X_test: Any) -> Iterator[Row]:
    """A soft-margin SVM that weighs positives j times, j and C chosen for each measure from the same fits."""
    began = time.process_time()
    rows = problem.choose_on
    part, y = X[rows], problem.y[rows]
    folds = list(StratifiedKFold(5).split(part, y))

    def make(C: float, j: float) -> MeasureSVC:
        return MeasureSVC("error", C=C, class_weight={True: j, False: 1.0}, n_threads=1)

    tried = [(2.0**e, j) for e in problem.exponents[::2] for j in COSTS]
    held = [held_out(make(*pair), part, y, folds) for pair in tried]
    seconds = time.process_time() - began
    for measure, key in problem.measures.items():
        best = int(np.argmax([get_measure(key).score(y, scores) for scores in held]))
        C, j = tried[best]
        scores = make(C, j).fit(X, problem.y).decision_function(X_test)
        value = values(problem, scores, problem.y_test)[measure]
        yield {"measure": measure, "method": name, "value": value, "C": C, "j": j, "seconds": seconds}


def table5(problem: Problem) -> Iterator[Row]:
    """Table 5 and Figure 2: the delta function's share, and whether choosing the auxiliaries by the measure helps."""
    many = train(fifty(problem), problem)
    default = [many.names.index(f"{kernel} 0.0") for kernel in five(problem)]
    before = [values(problem, column, problem.y_test) for column in many.test.T]
    for measure, key in problem.measures.items():
        F, F_test = many.inside[:, default], many.test[:, default]
        for delta in ("linear", None, "rbf"):
            options = {"n_components": 300, "gamma": problem.gamma, "random_state": 0} if delta == "rbf" else {}
            yield {
                "measure": measure,
                "method": f"delta {delta}",
                **adapt(problem, key, F, F_test, delta=delta, **options),
            }
        row = adapt(problem, key, many.inside, many.test, keep=5)
        yield {"measure": measure, "method": "chosen", **row}
        chosen = [int(k) for k in row["chosen"].split()]
        for name, group in (("mean of default", default), ("mean of chosen", chosen)):
            yield {"measure": measure, "method": name, "value": np.mean([before[k][measure] for k in group])}
    yield {"method": "fifty", "seconds": sum(many.seconds.values())}
    yield {"method": "five", "seconds": sum(many.seconds[many.names[k]] for k in default)}


def width(problem: Problem) -> Iterator[Row]:
    """What the width of the auxiliary SVM does to it and to its adaptation; the paper takes the default width."""
    for times in problem.widths:
        svm = three(problem)["svm"].set_params(gamma=times * problem.gamma)
        outputs = train({"svm": svm}, problem)
        scores = outputs.test[:, 0]
        for kind, found in (
            ("auxiliary label", values(problem, scores, problem.y_test, labels=True)),
            ("auxiliary score", values(problem, scores, problem.y_test)),
        ):
            for measure, value in found.items():
                yield {"measure": measure, "method": "svm", "width": times, "kind": kind, "value": value}
        for measure, key in problem.measures.items():
            for kind in ("label", "score"):
                row = adapt(problem, key, outputs.inside, outputs.test, outputs=kind)
                yield {"measure": measure, "method": "svm", "width": times, "kind": f"{kind} in-sample", **row}


def sweep(problem: Problem) -> Iterator[Row]:
    """Figures 1, 3 and 4: C in the units of SVM-perf, and B at C = 1."""
    grid = [2.0**e for e in problem.exponents[1::2]]
    outputs, kinds = train(five(problem), problem), train(three(problem), problem)
    rbf = outputs.names.index("rbf")
    groups = {
        "CAPO1": (outputs.inside[:, [rbf]], outputs.test[:, [rbf]]),
        "CAPO5": (outputs.inside, outputs.test),
        "CAPO*": (kinds.inside, kinds.test),
    }
    data = {
        name: (join(F, problem.X), join(F_test, problem.X_test), F.shape[1]) for name, (F, F_test) in groups.items()
    }
    nystroem = kernel_design(
        Kernel("rbf", problem.gamma), problem.X, n_components=min(500, len(problem.y) - 1), seed=0, n_threads=1
    )
    mapped = nystroem.X, nystroem.expansion(np.eye(nystroem.shape[1])).scores(problem.X_test)
    for measure, key in problem.measures.items():
        for c in grid:
            C = problem.C(key, c)
            runs = {name: (capo(key, range(m), C, solver="bundle"), X, X_test) for name, (X, X_test, m) in data.items()}
            runs["lin"] = MeasureSVC(key, C=C, solver="bundle", n_threads=1, **RISK), problem.X, problem.X_test
            runs["rbf"] = MeasureSVC(key, C=C, solver="bundle", n_threads=1, **RISK), *mapped
            for name, run in runs.items():
                yield {"measure": measure, "method": name, "parameter": "C", "at": c, **fit_and_test(problem, *run)}
        for B in grid:
            for name in ("CAPO1", "CAPO5"):
                X, X_test, m = data[name]
                row = fit_and_test(problem, capo(key, range(m), problem.C(key, 1.0), B=B, solver="bundle"), X, X_test)
                yield {"measure": measure, "method": name, "parameter": "B", "at": B, **row}


def fit_and_test(problem: Problem, clf: Any, X: Any, X_test: Any) -> Row:
    began = time.process_time()
    clf.fit(X, problem.y)
    seconds = time.process_time() - began
    return {"value": clf.score(X_test, problem.y_test), "seconds": seconds, "n_iter": clf.n_iter_}


def size(shares: Sequence[float], whole: Problem) -> Iterator[Row]:
    """Figure 5: parts of IJCNN1, at B = 1 and C = 1 in the units of SVM-perf."""
    for share in shares:
        problem = whole.part(share)
        outputs = train(five(problem), problem)
        for measure, key in problem.measures.items():
            C = problem.C(key, 1.0)
            for name, which in (("CAPO1", [outputs.names.index("rbf")]), ("CAPO5", list(range(5)))):
                F, F_test = outputs.inside[:, which], outputs.test[:, which]
                clf = capo(key, range(len(which)), C)
                row = fit_and_test(problem, clf, join(F, problem.X), join(F_test, problem.X_test))
                before = sum(outputs.seconds[outputs.names[k]] for k in which)
                yield {"measure": measure, "method": name, "share": share, "auxiliaries": before, **row}
            lin, rbf = (
                MeasureSVC(key, C=C, n_threads=1, **RISK),
                kernel_svm("rbf", problem.gamma, None).set_params(measure=key, C=C, **RISK),
            )
            for name, clf in (("lin", lin), ("rbf", rbf)):
                row = fit_and_test(problem, clf, problem.X, problem.X_test)
                yield {"measure": measure, "method": name, "share": share, **row}


def components(sizes: Sequence[int], problem: Problem) -> Iterator[Row]:
    """IJCNN1 with an RBF kernel and F1 on a hold-out third: the size of the basis, and whether its choice matters."""
    X, X_held, y, y_held = train_test_split(problem.X, problem.y, test_size=1 / 3, random_state=0, stratify=problem.y)
    kernel = Kernel("rbf", problem.gamma)
    for size in sizes:
        for basis in ("random", "k-means++") if size <= 1000 else ("random",):
            began = time.process_time()
            if basis == "random":
                chosen = np.random.default_rng(0).choice(len(y), size, replace=False)
            else:
                chosen = np.unique(kmeans_plusplus(X, size, random_state=0)[1])
            design = LowRank(kernel, X, chosen, n_threads=1)
            clf = MeasureSVC("f1", C=10.0, n_threads=1, **RISK).fit(design.X, y)
            seconds = time.process_time() - began
            scores = design.expansion(clf.coef_[0]).scores(X_held) + clf.intercept_[0]
            value = get_measure("f1").score(y_held, scores)
            yield {"size": size, "basis": basis, "value": value, "kept": design.kept, "seconds": seconds}


def memory(name: str, options: Options) -> Iterator[Row]:
    """An RBF kernel and F1 in a process of its own: wall-clock seconds and peak memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        yield process.submit(alone, name, options).result()


def alone(name: str, options: Options) -> Row:
    problem = load(name, options)
    began = time.perf_counter()
    clf = MeasureSVC("f1", kernel="rbf", gamma="mean_distance", C=10.0, random_state=0, **RISK).fit(
        problem.X, problem.y
    )
    row = {"seconds": time.perf_counter() - began, "MiB": resident("VmHWM") / 2**20}
    return row | {"value": clf.score(problem.X_test, problem.y_test), "status": clf.status_.name}


main = Program("capo", tasks, page).main

if __name__ == "__main__":
    main()
