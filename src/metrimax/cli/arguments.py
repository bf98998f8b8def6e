"""The arguments of the ``metrimax`` command."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from typing import Any

THRESHOLDS = ("trained", "placed")  # those of the estimators; importing them would be slow
PRESETS = ("default", "fast", "best")

_EPILOG = """\
start here:
  metrimax demo                                     a demonstration on data that every installation has
  metrimax tune spam.csv spam.model --positive spam a table with a column 'label' (or --target NAME); chooses C
  metrimax train train.svm my.model --measure f1    svmlight/libsvm text, also .gz .xz .zst, or - for standard input
  metrimax evaluate test.svm my.model               every measure on other data
  metrimax predict new.svm my.model -o labels.txt   one label per line (--scores: real numbers)
  metrimax train mq.svm my.model --measure ndcg@10  rank the examples of every qid:
  metrimax tune table.csv my.model --kind ensemble  a nonlinear model of a table with categories, text and gaps
  metrimax convert huge.svm.gz shards               data larger than memory: 'metrimax train shards my.model'
  metrimax verify my.model train.svm                check objective, bound and threshold of a model
  metrimax measures                                 the measures for --measure

exit codes: 0 done; 1 failure (a bad file, ...), or a check of verify that failed; 2 wrong usage; 3 trained, but the
  duality gap did not reach --tol; 4 trained, but nothing was learnt
"""


_MEANT = {"--metric": "--measure", "--scoring": "--measure", "--cv": "--folds", "--label": "--target"}
"""Options as other programs call them."""


class _Parser(argparse.ArgumentParser):
    """A parser that names the option that is meant, or the command that has it, where one is not known."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        found, rest = self.parse_known_args(args, namespace)
        if not rest:
            return found
        [commands] = (action for action in self._actions if isinstance(action, argparse._SubParsersAction))
        options = {name: list(parser._option_string_actions) for name, parser in commands.choices.items()}
        wanted, own = rest[0].partition("=")[0], options[found.command]
        meant = _MEANT.get(wanted, wanted)
        near = [meant] if meant in own else difflib.get_close_matches(meant, own, n=1, cutoff=0.8)
        others = [name for name, names in options.items() if meant in names]
        text = f"unrecognized arguments: {' '.join(rest)}"
        if others and meant not in own:
            text += f"; {meant} is an option of {', '.join(others)}"
        elif near:
            text += f"; perhaps {near[0]} is meant"
        commands.choices[found.command].error(text)


def build_parser() -> argparse.ArgumentParser:
    """All arguments of all commands."""
    parser = _Parser(
        prog="metrimax",
        description="Train linear classifiers for the measure they are judged by: F1, PRBEP, ROC area and more.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"metrimax {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    for add in (_train, _convert, _tune, _predict, _evaluate, _verify, _measures, _info, _demo):
        add(commands)
    return parser


def _train(commands: Any) -> None:
    train = commands.add_parser("train", help="train a model", description="Train a model and write it to a file.")
    _data_arguments(train)
    train.add_argument("model", type=_name, metavar="MODEL", help="the file to write")
    _training_arguments(train)
    train.add_argument("-C", type=float, help="weight of one margin violation (default: 4; of rankings in groups: 1)")
    _loss_arguments(train, "the risk and --logistic 3, or 1 for rankings in groups; for the error rate the risk alone")
    train.add_argument(
        "--threshold",
        choices=(*THRESHOLDS, "auto"),
        help="trained: as training leaves it; placed: where the measure is best on DATA; auto: placed if that is "
        "better by more than the cost of one mistake in each class (default: auto; trained for the error rate and "
        "several classes)",
    )
    _common(train)


def _convert(commands: Any) -> None:
    convert = commands.add_parser(
        "convert",
        help="make binary shards of data larger than memory",
        description="Write a folder of binary row shards, which train, predict and evaluate take as DATA and map "
        "into memory. Text is read piece by piece, however long it is.",
    )
    _data_arguments(convert)
    _drop_argument(convert)
    convert.add_argument("folder", type=_name, metavar="FOLDER", help="the folder to make")
    convert.add_argument(
        "--shard-size", default="64MiB", metavar="SIZE", help="of a shard, about (default: %(default)s)"
    )
    convert.add_argument(
        "--dtype", choices=("float32", "float64"), help="of the values (default: as in DATA; text: float64)"
    )
    _common(convert)


def _tune(commands: Any) -> None:
    tune = commands.add_parser(
        "tune",
        help="choose C, then train",
        description="Choose C by cross-validation, train on all data, write the model.",
    )
    _data_arguments(tune)
    tune.add_argument("model", type=_name, metavar="MODEL", help="the file to write")
    _training_arguments(tune)
    tune.add_argument(
        "--grid",
        metavar="LOW:HIGH:STEPS",
        help="values of C with a constant ratio; or numbers, as in 0.1,1,10 "
        "(default: 0.003, 0.03, 0.3, 3, 30; of rankings in groups: 0.0003, 0.003, 0.03, 0.3, 3)",
    )
    _loss_arguments(tune, "the risk and a logistic loss, or the logistic loss alone, whichever is better in the folds")
    tune.add_argument(
        "--threshold",
        choices=(*THRESHOLDS, "folds"),
        help="trained: as training leaves it; placed: where the measure is best on DATA; folds: from the scores of the "
        "folds (default: trained or folds, whichever is better in the folds)",
    )
    tune.add_argument(
        "--kind",
        choices=("linear", "ensemble"),
        default="linear",
        help="a linear classifier, or boosting, forests and others combined for a table with categories, text and gaps "
        "(needs skops and pandas; default: %(default)s)",
    )
    tune.add_argument(
        "--preset", choices=PRESETS, default="default", help="members of an ensemble (default: %(default)s)"
    )
    tune.add_argument("--folds", type=int, default=5, help="number of folds (default: %(default)s)")
    tune.add_argument("--seed", type=int, default=0, help="of the folds (default: %(default)s)")
    _common(tune)


def _predict(commands: Any) -> None:
    predict = commands.add_parser(
        "predict", help="predict labels or scores", description="Predict, one line per example."
    )
    _data_arguments(predict, "that of the model's data")
    predict.add_argument("model", type=_name, metavar="MODEL", help="a model file, ours or SVM-perf's")
    predict.add_argument(
        "-o", "--output", type=_name, default="-", metavar="FILE", help="where to (default: standard output)"
    )
    predict.add_argument(
        "--scores", action="store_true", help="write scores (positive: the positive class) instead of labels"
    )
    _common(predict)


def _evaluate(commands: Any) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="report every measure of a model on data",
        description="Report every measure of a model on labelled data.",
    )
    _data_arguments(evaluate, "that of the model's data")
    evaluate.add_argument("model", type=_name, metavar="MODEL", help="a model file, ours or SVM-perf's")
    evaluate.add_argument("--positive", metavar="LABEL", help="this label against all others")
    _report_argument(evaluate, "on DATA")
    _common(evaluate)


def _verify(commands: Any) -> None:
    verify = commands.add_parser(
        "verify",
        help="check what a model states about its training",
        description="Compute the objective of MODEL on the DATA it was trained on, prove its bound, and place its "
        "threshold again, with independent code. Exit code 0 if all checks hold, 1 if not.",
    )
    verify.add_argument("model", type=_name, metavar="MODEL", help="a model file, with --certificate or without")
    _data_arguments(verify, "that of the model's data")
    verify.add_argument(
        "--max-iter", type=int, default=1000, help="most iterations to prove a bound (default: %(default)s)"
    )
    _common(verify)
    verify.set_defaults(positive=None)


def _measures(commands: Any) -> None:
    measures = commands.add_parser("measures", help="list the measures", description="List all measures.")
    _common(measures, threads=False)


def _info(commands: Any) -> None:
    info = commands.add_parser("info", help="describe a model file", description="Describe a model file.")
    info.add_argument("model", type=_name, metavar="MODEL", help="a model file, ours or SVM-perf's")
    _common(info, threads=False)


def _demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="train on rare labels of text and on a table, compare with scikit-learn, and write a report",
        description="Train on data that every installation has, compare, write a report if matplotlib is installed.",
    )
    demo.add_argument(
        "--report",
        type=_name,
        default="metrimax_demo.html",
        metavar="FILE",
        help="the page to write (default: %(default)s)",
    )
    _common(demo, threads=False)


def _name(text: str) -> str:
    """The name of a file. An empty name is refused, because the system takes it as the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("expected the name of a file, got an empty one: is a variable not set?")
    return text


def _data_arguments(parser: argparse.ArgumentParser, first: str = "0 if it occurs") -> None:
    parser.add_argument(
        "data",
        type=_name,
        metavar="DATA",
        help="svmlight text (plain, .gz, .xz, .bz2, .zst; - is standard input), .csv, .npz or .parquet; "
        "or a folder of such files or of binary shards, which may be larger than memory",
    )
    parser.add_argument(
        "--memory", default="1GiB", metavar="SIZE", help="most memory for the rows of a folder (default: %(default)s)"
    )
    parser.add_argument(
        "--format", choices=("svmlight", "csv", "npz", "parquet"), help="of DATA (default: by its name)"
    )
    parser.add_argument(
        "--target", metavar="COLUMN", help="column of a table that holds the labels: name, or number from 0"
    )
    parser.add_argument(
        "--index-base",
        type=int,
        choices=(0, 1),
        help=f"index of the first feature in svmlight text (default: {first})",
    )


def _report_argument(parser: argparse.ArgumentParser, where: str) -> None:
    parser.add_argument(
        "--report",
        type=_name,
        metavar="FILE",
        help=f"write a page (HTML) of what MODEL does {where}: table, curves, measures, coefficients, certificate "
        "(needs matplotlib)",
    )


def _drop_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="COLUMN",
        help="leave out a column of a table, such as an identifier: name, or number from 0; may be repeated",
    )


def _training_arguments(parser: argparse.ArgumentParser) -> None:
    _drop_argument(parser)
    _report_argument(parser, "on the data it was trained on")
    parser.add_argument(
        "--no-scaling",
        action="store_true",
        help="do not standardise the numbers of a table (default: mean 0 and standard deviation 1)",
    )
    parser.add_argument(
        "-m",
        "--measure",
        default="f1",
        metavar="NAME[@K][:KEY=VALUE,...]",
        help="what to train for, such as f1, prbep, roc_area, fbeta:beta=2, precision@100, ndcg@10 (default: f1)",
    )
    parser.add_argument("--positive", metavar="LABEL", help="train this label against all others")
    parser.add_argument(
        "--tol", type=float, default=1e-3, help="largest duality gap, in units of the measure (default: 0.001)"
    )
    parser.add_argument("--max-iter", type=int, default=10_000, help="most iterations (default: %(default)s)")
    parser.add_argument(
        "--no-groups", action="store_true", help="ignore qid: (default: measures of rankings are means over groups)"
    )
    parser.add_argument("--no-intercept", action="store_true", help="no constant feature")
    parser.add_argument(
        "--intercept-scaling",
        type=float,
        metavar="VALUE",
        help="value of the constant feature (default: 10; 1 for the measure's risk alone)",
    )
    parser.add_argument(
        "--checkpoint",
        type=_name,
        metavar="FOLDER",
        help="save the state of the training there every two minutes; after a crash the same command goes on from it",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="let the workers of a Dask cluster read the shards of a folder: the address of its scheduler, or "
        "'local' for one process per core; --memory is then for each thread of the workers",
    )
    parser.add_argument(
        "--certificate",
        action="store_true",
        help="store the proof of the bound in MODEL, for 'metrimax verify'; takes about as long as the training",
    )
    parser.add_argument(
        "--model-format", choices=("metrimax", "svmperf"), default="metrimax", help="of MODEL (default: metrimax)"
    )


def _loss_arguments(parser: argparse.ArgumentParser, default: str) -> None:
    """The options for base losses, as parameters of `MeasureSVC`."""
    parser.add_argument(
        "--hinge",
        type=float,
        metavar="VALUE",
        help=f"weight of a hinge loss that is added to the measure's risk, 0 for the risk alone (default: {default})",
    )
    parser.add_argument(
        "--logistic", type=float, metavar="VALUE", help="weight of a logistic loss that is added (default: see --hinge)"
    )
    parser.add_argument(
        "--risk",
        type=_weight,
        metavar="VALUE",
        help="weight of the measure's risk; with 0 only the base loss remains, 'even' is 1 / kappa (default: 1)",
    )
    parser.add_argument(
        "--balanced", action="store_true", default=None, help="give both classes equal weight in the base losses"
    )


def _weight(text: str) -> float | str:
    """A number, or "even"."""
    try:
        return text if text == "even" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number or 'even', got {text!r}") from None


def _common(parser: argparse.ArgumentParser, *, threads: bool = True) -> None:
    parser.add_argument("--json", action="store_true", help="results as JSON")
    if threads:
        parser.add_argument("--threads", type=int, metavar="N", help="most threads (default: all cores)")
        parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no notes")


def _version() -> str:
    from metrimax import __version__

    return __version__
