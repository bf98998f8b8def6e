"""``svm_perf_learn``: trains as SVM-perf does, with its options, its printed lines and its model files.

The manual, with all differences, is ``docs/svmperf.md``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from metrimax.compat.options import Command, Option, OptionError, check_output, say

_OWN_SOLVER = "of the original's solver: accepted, without effect"
_KERNEL = "of kernels, which are not supported: accepted, without effect on the linear kernel"
_BASIS = "of basis vectors for kernels: accepted, without effect on the linear kernel"

OPTIONS: dict[str, Option] = {
    "-v": Option(int, 1, "verbosity, 0 to 3"),
    "-y": Option(int, 0, "verbosity of the original's QP solver: accepted, without effect"),
    "-c": Option(float, None, "C: trade-off between training error and margin; required", lambda c: c > 0, "C > 0"),
    "-p": Option(int, 1, "norm of the slack: 1 (2 is not supported)", lambda p: p in (1, 2), "1 or 2"),
    "-o": Option(int, 2, "rescaling: 2 margin (1, slack, is not supported)", lambda o: o in (1, 2), "1 or 2"),
    "-l": Option(
        int,
        2,
        "loss: 0 zero/one, 1 F1, 2 error rate, 3 PRBEP, 4 Prec@k, 5 Rec@k, 10 ROC area, 12 KLD, 13 NKLD, 16 MILLI, "
        "20 GM, 21 NAE, 22-25 Q-beta with recall, accuracy, F1, GM, 26 AE, 27 RAE",
    ),
    "-w": Option(
        int,
        9,
        "algorithm: 0, 1, 2, 3, 4 train any loss, 9 the error rate only; all of them solve the same problem here",
        lambda w: w in (0, 1, 2, 3, 4, 9),
        "0, 1, 2, 3, 4 or 9",
    ),
    "-e": Option(float, 0.1, "tolerance, in percentage points of the loss", lambda e: e > 0, "a number above 0"),
    "-k": Option(int, 100, _OWN_SOLVER),
    "-f": Option(int, 5, _OWN_SOLVER),
    "-b": Option(float, 100.0, _OWN_SOLVER, lambda b: 0 <= b <= 100, "0 to 100"),
    "-n": Option(int, 0, _OWN_SOLVER),
    "-q": Option(int, 10, _OWN_SOLVER),
    "-m": Option(int, 40, _OWN_SOLVER),
    "-h": Option(int, 100, _OWN_SOLVER),
    "-#": Option(int, 100000, _OWN_SOLVER),
    "-t": Option(int, 0, "kernel: 0 linear (others are not supported)", lambda t: 0 <= t <= 4, "0 to 4"),
    "-d": Option(int, 3, _KERNEL),
    "-g": Option(float, 1.0, _KERNEL),
    "-s": Option(float, 1.0, _KERNEL),
    "-r": Option(float, 1.0, _KERNEL),
    "-u": Option(str, "empty", _KERNEL),
    "-a": Option(str, "", "file for the dual variables, one per cut"),
    "-j": Option(
        float, 1.0, "beta of the losses 22 to 25", lambda j: 0 < j <= 1e100, "a number above 0, and at most 1e100"
    ),
    "-!": Option(float, 0.0, "accepted, without effect, as in the quantification patch"),
    "--b": Option(float, 1.0, "value of the bias feature; 0 for no bias"),
    "--p": Option(float, 0.0, "k of Prec@k and Rec@k as a fraction of the positives; 0 means 0.5 and 2"),
    "--t": Option(int, 0, "basis: 0 none (others are not supported)", lambda t: t in (0, 1, 2), "0, 1 or 2"),
    "--i": Option(int, 2, _BASIS),
    "--k": Option(int, 500, _BASIS),
    "--r": Option(int, 0, _BASIS),
    "--s": Option(int, 1, "shrinking in the original's -w 9: accepted, without effect"),
    "--f": Option(str, "", _BASIS),
}
FILES = ("example_file", "[model_file]")
_UNSUPPORTED = {
    ("-p", 2): "a squared slack (-p 2) is not supported: use -p 1",
    ("-o", 1): "slack rescaling (-o 1) is not supported: use -o 2",
    ("-t", 1): "polynomial kernels (-t 1) are not supported in training: use -t 0",
    ("-t", 2): "RBF kernels (-t 2) are not supported in training: use -t 0",
    ("-t", 3): "sigmoid kernels (-t 3) are not supported in training: use -t 0",
    ("-t", 4): "user-defined kernels (-t 4) are not supported: use -t 0",
    ("--t", 1): "a basis (--t 1) is not supported: use --t 0",
    ("--t", 2): "a basis (--t 2) is not supported: use --t 0",
    ("-l", 11): "average precision (-l 11) is not supported",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code, 0 or 1."""
    return Command("svm_perf_learn", OPTIONS, FILES, learn, "model was").run(argv)


def _check(options: dict[str, Any]) -> None:
    from metrimax.compat.losses import check_share, known

    for (name, value), message in _UNSUPPORTED.items():
        if options[name] == value:
            raise OptionError(message)
    if options["-c"] is None:
        raise OptionError("the option -c (C) is required")
    if not known(options["-l"]):
        raise OptionError(f"Unknown loss function {options['-l']}")
    if options["-w"] == 9 and options["-l"] != 2:
        raise OptionError(
            f"algorithm 9 (-w 9, the default) trains the error rate (-l 2) only: for -l {options['-l']} use -w 3"
        )
    try:
        check_share(options["-l"], options["--p"])
    except ValueError as error:
        raise OptionError(str(error)) from None


def learn(options: dict[str, Any], names: list[str]) -> int:
    """Read, train, report, write."""
    from metrimax.compat.training import read_examples, train, working_set
    from metrimax.io.files import write_bytes
    from metrimax.io.svmperf_model import format_svmperf_model

    _check(options)
    example_file, model_file = names if len(names) == 2 else (*names, "svm_struct_model")
    check_output("model_file", model_file, example_file=example_file)
    if options["-a"]:
        check_output("-a", options["-a"], example_file=example_file)
    say(options, "Reading training examples...")
    rows = read_examples(example_file)
    say(options, "done\n")
    positives = int((rows.labels > 0).sum())
    bias = abs(options["--b"])
    n_features = max(rows.highest, 0) + (bias > 0)
    counts = f"{rows.n} examples ({positives} pos / {rows.n - positives} neg)"
    say(options, f"Training set properties: {n_features} features, {counts}\n")
    began = time.process_time()
    trained = train(
        rows,
        code=options["-l"],
        c=options["-c"],
        epsilon=options["-e"],
        bias=bias,
        p=options["--p"],
        beta=options["-j"],
        callback=lambda record: say(options, _iteration(record, options["-e"])),
        name=example_file,
    )
    solution = trained.solution
    say(options, _iteration(solution.history[-1], options["-e"]))
    working = working_set(solution, options["-c"])
    say(options, _summary(trained, working, options["-c"]))
    say(options, f"Runtime in cpu-seconds: {time.process_time() - began:.2f}\n")
    if options["-a"]:
        write_bytes(options["-a"], "".join(f"{value:.18g}\n" for value in working.alphas).encode())
    say(options, "Compacting linear model...done\nWriting learned model...")
    model = format_svmperf_model(
        trained.w,
        0.0 - trained.bias_score,  # without bias 0, not -0
        highest=n_features + 1,
        n_cuts=len(working.alphas),
        indices=trained.indices,
    )
    write_bytes(model_file, model)
    say(options, "done\n")
    if not solution.status.ok:
        sys.stderr.write(f"svm_perf_learn: {solution.status}; the model was written\n")
        return 1
    return 0


def _iteration(record: Any, epsilon: float) -> str:
    gap = 100 * record.gap
    precision = 0.01 * min(gap, epsilon)
    state = f"NumConst={record.n_cuts}, SV={record.n_cuts}, CEps={gap:.4f}, QPEps={precision:.4f}"
    return f"Iter {record.iteration}: .*({state})\n"


def _summary(trained: Any, working: Any, c: float) -> str:
    solution = trained.solution
    square = float(trained.w @ trained.w + trained.bias_weight**2)
    return (
        f"Final epsilon on KKT-Conditions: {100 * max(solution.gap, 0.0):.5f}\n"
        f"Upper bound on duality gap: {max(solution.objective - solution.bound, 0.0):.5f}\n"
        f"Dual objective value: dval={solution.bound:.5f}\n"
        f"Primal objective value: pval={solution.objective:.5f}\n"
        f"Total number of constraints in final working set: {len(working.alphas)} (of {solution.n_iter + 1})\n"
        f"Number of iterations: {solution.n_iter}\n"
        f"Number of calls to 'find_most_violated_constraint': {solution.n_iter + 1}\n"
        f"Number of SV: {solution.n_support} \n"
        f"Norm of weight vector: |w|={square**0.5:.5f}\n"
        f"Value of slack variable (on working set): xi={working.slack:.5f}\n"
        f"Value of slack variable (global): xi={max(solution.objective - square / 2, 0.0) / c:.5f}\n"
        f"Norm of longest difference vector: ||Psi(x,y)-Psi(x,ybar)||={working.longest:.5f}\n"
    )
