"""Li, Tsang & Zhou (2013), Tables 2-5 and Figures 1-5: classifiers adapted to a measure.

    python -m experiments capo --data DIR [--out DIR] [--quick] [--jobs N] [--page]

Which outputs of the auxiliaries are the default of `CAPOClassifier` is decided on sets that the paper lacks (protocol
"default"). The page is written by `experiments.capo_page`. Times are CPU seconds of one thread.
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

from benchmarks.outofcore import resident
from experiments.capo_page import page
from experiments.capo_problem import (
    DATASETS,
    OTHERS,
    Outputs,
    Problem,
    fifty,
    five,
    kernel_svm,
    load,
    search,
    three,
    train,
)
from experiments.harness import Options, Program, Row, Task
from metrimax import CAPOClassifier, MeasureSVC
from metrimax.designs.kernel import Gram, Kernel, LowRank, kernel_design
from metrimax.measure import get_measure

SWEEP = [2.0**e for e in range(-6, 7, 2)]
SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
BASES = (250, 500, 1000, 2000)
COSTS = (0.25, 1.0, 4.0, 16.0)
RISK: dict[str, Any] = {"hinge": 0, "threshold": "trained"}
"""The measure's risk alone, as in the paper."""


def tasks(options: Options) -> Iterator[Task]:
    """On the paper's data sets, and the default on others; some figures need one or two sets only."""
    quick = options.quick
    protocols: dict[str, tuple[Callable[[Problem], Iterator[Row]], Collection[str]]] = {
        "default": (adaptations, OTHERS),
        "table2": (table2, DATASETS),
        "table5": (table5, DATASETS),
        "sweep": (partial(sweep, SWEEP[3:4] if quick else SWEEP), ("USPS*", "Reuters")),
        "size": (partial(size, SHARES[-1:] if quick else SHARES), ("IJCNN1",)),
        "components": (partial(components, (20, 40) if quick else BASES), ("IJCNN1",)),
    }
    for data in ("digits",) if quick else (*OTHERS, *DATASETS):
        for protocol, (run, sets) in protocols.items():
            if data in sets or (quick and protocol != "default"):  # which table2 does anyway
                key = {"data": data, "protocol": protocol, "seed": 0}
                yield Task(key, run, prepare=partial(load, data, options))
    if not quick:
        yield Task({"data": "IJCNN1", "protocol": "memory", "seed": 0}, partial(memory, "IJCNN1", options))


def capo(measure: str, m: int, C: float, **options: Any) -> CAPOClassifier:
    """CAPO on rows whose first m columns are the scores of the auxiliaries."""
    columns = [(f"f{k}", k) for k in range(m)]
    paper = {"outputs": "label", **RISK}
    return CAPOClassifier(columns, measure=measure, C=C, n_threads=1, **(paper | options))


def join(F: Any, X: Any) -> Any:
    return sparse.hstack([sparse.csr_matrix(F), X]).tocsr() if sparse.issparse(X) else np.hstack([F, X])


def choose(make: Callable[[float], Any], X: Any, problem: Problem, grid: tuple[float, ...]) -> tuple[float, float]:
    """The C that does best on the hold-out third, trained on the other two; and the CPU seconds of the choice."""
    began = time.process_time()
    inside, outside = problem.inside, problem.outside
    fit = X[inside], problem.y[inside]
    C = search(lambda C: make(C).fit(*fit).score(X[outside], problem.y[outside]), grid)
    return C, time.process_time() - began


def adapt(problem: Problem, measure: str, F: Any, F_test: Any, **options: Any) -> Row:
    """Choose C, train on all, test."""
    X = join(F, problem.X)

    def make(C: float) -> CAPOClassifier:
        return capo(measure, F.shape[1], C, **options)

    C, seconds = choose(make, X, problem, problem.grids["capo"])
    clf = make(C).fit(X, problem.y)
    value = clf.score(join(F_test, problem.X_test), problem.y_test)
    return {
        "value": value,
        "C": C,
        "seconds": seconds,
        "n_iter": clf.n_iter_,
        "flipped": sum(clf.report_["flipped"].values()),
    }


def values(problem: Problem, scores: Any, *, labels: bool = False) -> dict[str, float]:
    """All measures of given test scores, or of the labels they stand for."""
    scores = np.where(scores > 0, 1.0, -1.0) if labels else np.ascontiguousarray(scores, dtype=float)
    return {name: get_measure(key).score(problem.y_test, scores) for name, key in problem.measures.items()}


def auxiliary_rows(problem: Problem, outputs: Outputs) -> Iterator[Row]:
    """What the auxiliaries themselves achieve on the test set, by their labels and by their scores."""
    for k, name in enumerate(outputs.names):
        as_labels = values(problem, outputs.test[:, k], labels=True)
        for measure, value in values(problem, outputs.test[:, k]).items():
            yield {"measure": measure, "method": name, "kind": "auxiliary label", "value": as_labels[measure]}
            yield {"measure": measure, "method": name, "kind": "auxiliary score", "value": value}
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
    for measure, key in problem.measures.items():
        C, seconds = choose(
            lambda C, key=key: MeasureSVC(key, C=C, n_threads=1, **RISK), problem.X, problem, problem.grids["lin"]
        )
        clf = MeasureSVC(key, C=C, n_threads=1, **RISK).fit(problem.X, problem.y)
        value = clf.score(problem.X_test, problem.y_test)
        yield {"measure": measure, "method": "lin", "value": value, "C": C, "seconds": seconds, "n_iter": clf.n_iter_}
    yield from kernel_rows(problem)
    yield from cost_rows(problem, "cost lin", problem.X, problem.X_test)
    nystroem = kernel_design(Kernel("rbf", problem.gamma), problem.X, n_components=min(500, len(problem.y) - 1), seed=0)
    test = nystroem.expansion(np.eye(nystroem.shape[1])).scores(problem.X_test)
    yield from cost_rows(problem, "cost rbf", nystroem.X, test)


def kernel_rows(problem: Problem) -> Iterator[Row]:
    """MeasureSVC with an RBF kernel. The kernel's values are computed once for all measures and C."""
    began = time.process_time()
    design = kernel_design(Kernel("rbf", problem.gamma), problem.X, seed=0, n_threads=1)
    build = time.process_time() - began
    exact = isinstance(design, Gram)
    kernel = "precomputed" if exact else "linear"
    X = design._K.X if exact else design.X
    fitted, rows = [], []
    for measure, key in problem.measures.items():

        def make(C: float, key: str = key) -> MeasureSVC:
            return MeasureSVC(key, C=C, kernel=kernel, n_threads=1, **RISK)

        began = time.process_time()
        inside = X[np.ix_(problem.inside, problem.inside)] if exact else X[problem.inside]
        outside = X[np.ix_(problem.outside, problem.inside)] if exact else X[problem.outside]
        fit, held = (inside, problem.y[problem.inside]), (outside, problem.y[problem.outside])
        C = search(lambda C, make=make, fit=fit, held=held: make(C).fit(*fit).score(*held), problem.grids["rbf"])
        seconds = time.process_time() - began
        began = time.process_time()
        clf = make(C).fit(X, problem.y)
        weights = np.zeros(X.shape[1])
        weights[clf.support_ if exact else slice(None)] = (clf.kernel_coef_ if exact else clf.coef_)[0]
        fitted.append((weights, clf.intercept_[0]))
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
    scores = design.expansion(np.column_stack([w for w, _ in fitted])).scores(problem.X_test)
    for k, row in enumerate(rows):
        row["value"] = get_measure(problem.measures[row["measure"]]).score(problem.y_test, scores[:, k] + fitted[k][1])
        yield row


def cost_rows(problem: Problem, name: str, X: Any, X_test: Any) -> Iterator[Row]:
    """A soft-margin SVM that weighs positives j times, j and C chosen for each measure from the same fits."""
    began = time.process_time()
    inside, outside = problem.inside, problem.outside

    def make(C: float, j: float) -> MeasureSVC:
        return MeasureSVC("error", C=C, class_weight={True: j, False: 1.0}, n_threads=1)

    tried = [(C, j) for C in problem.grids["lin"][1:] for j in COSTS]
    fits = [make(*pair).fit(X[inside], problem.y[inside]).decision_function(X[outside]) for pair in tried]
    seconds = time.process_time() - began
    for measure, key in problem.measures.items():
        best = int(np.argmax([get_measure(key).score(problem.y[outside], s) for s in fits]))
        C, j = tried[best]
        scores = make(C, j).fit(X, problem.y).decision_function(X_test)
        value = values(problem, scores)[measure]
        yield {"measure": measure, "method": name, "value": value, "C": C, "j": j, "seconds": seconds}


def table5(problem: Problem) -> Iterator[Row]:
    """Table 5 and Figure 2: the delta function's share, and whether choosing the auxiliaries by the measure helps."""
    many = train(fifty(problem), problem)
    default = [many.names.index(f"{kernel} 0.0") for kernel in five(problem)]
    before = {k: values(problem, many.test[:, k]) for k in range(len(many.names))}
    for measure, key in problem.measures.items():
        F, F_test = many.inside[:, default], many.test[:, default]
        for delta in ("linear", None, "rbf"):
            options = {"n_components": 300, "gamma": problem.gamma, "random_state": 0} if delta == "rbf" else {}
            yield {
                "measure": measure,
                "method": f"delta {delta}",
                **adapt(problem, key, F, F_test, delta=delta, **options),
            }
        on_training = [get_measure(key).score(problem.y, np.ascontiguousarray(s)) for s in many.inside.T]
        chosen = list(np.argsort(-np.array(on_training), kind="stable")[:5])
        row = adapt(problem, key, many.inside[:, chosen], many.test[:, chosen])
        yield {"measure": measure, "method": "chosen", **row}
        for name, group in (("mean of default", default), ("mean of chosen", chosen)):
            yield {"measure": measure, "method": name, "value": np.mean([before[k][measure] for k in group])}
    yield {"method": "fifty", "seconds": sum(many.seconds.values())}
    yield {"method": "five", "seconds": sum(many.seconds[many.names[k]] for k in default)}


def sweep(values: Sequence[float], problem: Problem) -> Iterator[Row]:
    """Figures 1, 3 and 4: C and B."""
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
        for C in values:
            runs = {name: (capo(key, m, C, solver="bundle"), X, X_test) for name, (X, X_test, m) in data.items()}
            runs["lin"] = MeasureSVC(key, C=C, solver="bundle", n_threads=1, **RISK), problem.X, problem.X_test
            runs["rbf"] = MeasureSVC(key, C=C, solver="bundle", n_threads=1, **RISK), *mapped
            for name, run in runs.items():
                yield {"measure": measure, "method": name, "parameter": "C", "at": C, **fit_and_test(problem, *run)}
        for B in values:
            for name in ("CAPO1", "CAPO5"):
                X, X_test, m = data[name]
                row = fit_and_test(problem, capo(key, m, 1.0, B=B, solver="bundle"), X, X_test)
                yield {"measure": measure, "method": name, "parameter": "B", "at": B, **row}


def fit_and_test(problem: Problem, clf: Any, X: Any, X_test: Any) -> Row:
    began = time.process_time()
    clf.fit(X, problem.y)
    seconds = time.process_time() - began
    return {"value": clf.score(X_test, problem.y_test), "seconds": seconds, "n_iter": clf.n_iter_}


def size(shares: Sequence[float], whole: Problem) -> Iterator[Row]:
    """Figure 5: parts of IJCNN1, at C = B = 1."""
    for share in shares:
        problem = whole.part(share)
        outputs = train(five(problem), problem)
        for measure, key in problem.measures.items():
            for name, which in (("CAPO1", [outputs.names.index("rbf")]), ("CAPO5", list(range(5)))):
                F, F_test = outputs.inside[:, which], outputs.test[:, which]
                clf = capo(key, len(which), 1.0)
                row = fit_and_test(problem, clf, join(F, problem.X), join(F_test, problem.X_test))
                before = sum(outputs.seconds[outputs.names[k]] for k in which)
                yield {"measure": measure, "method": name, "share": share, "auxiliaries": before, **row}
            lin, rbf = (
                MeasureSVC(key, n_threads=1, **RISK),
                kernel_svm("rbf", problem.gamma, None).set_params(measure=key),
            )
            for name, clf in (("lin", lin), ("rbf", rbf)):
                row = fit_and_test(problem, clf, problem.X, problem.X_test)
                yield {"measure": measure, "method": name, "share": share, **row}


def components(sizes: Sequence[int], problem: Problem) -> Iterator[Row]:
    """IJCNN1 with an RBF kernel and F1 on a hold-out third: the size of the basis, and whether its choice matters."""
    X, X_held = problem.X[problem.inside], problem.X[problem.outside]
    y, y_held = problem.y[problem.inside], problem.y[problem.outside]
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
