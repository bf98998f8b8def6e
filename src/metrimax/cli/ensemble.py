"""``metrimax tune --kind ensemble``: a `MeasureEnsemble` of a table, in a file that runs no code when it is read.

Trees do not fit the model format of the linear classifiers, so skops stores the ensemble. Only the types of `TRUSTED`
are loaded. pandas reads the table, with its categories, text and gaps.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from metrimax.cli.main import OK, UsageError
from metrimax.cli.report import check_apart, check_threads, emit, parse_measure
from metrimax.io.data import Data, file_kind
from metrimax.io.files import FileError, check_writable, write_bytes
from metrimax.io.labels import show
from metrimax.io.models import LinearModel
from metrimax.io.tables import USUAL_TARGETS
from metrimax.measure import REGISTRY
from metrimax.protocols import Vector

LINEAR_ONLY = ("grid", "hinge", "logistic", "risk", "balanced", "threshold", "checkpoint", "dask", "index_base")
"""Options of ``tune`` that are refused for an ensemble."""

TRUSTED = {
    "functools.partial",  # of check_array, with which boosting checks its categories
    "sklearn.utils.validation.check_array",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
    "metrimax.estimators.ensemble.MeasureEnsemble",
    "metrimax.estimators._ensemble_members.Member",
    "metrimax.estimators._ensemble_members.Target",
    "metrimax.estimators._ensemble_members.Views",
    "metrimax.estimators._ensemble_rule.Rule",
    "metrimax.estimators._ensemble_stack.Stack",
    "metrimax.estimators._ensemble_table.MatrixEncoder",
    "metrimax.estimators._ensemble_table.Table",
} | {f"{kind.__module__}.{kind.__qualname__}" for kind in REGISTRY.values()}
"""Types that the file of an ensemble may hold in addition to those that skops trusts."""


@dataclass(frozen=True)
class EnsembleModel(LinearModel):
    """An ensemble with the interface of a linear model: scores, labels and classes, but no weights."""

    ensemble: Any = None

    @property
    def n_features(self) -> int:
        return len(self.feature_names or ())

    def scores(self, X: Any, n_threads: int | None = None) -> Vector:
        """Scores, (n, L)."""
        scores: Vector = self.ensemble.set_params(n_jobs=n_threads).decision_function(X)
        above: Vector = self.ensemble._turn * scores
        return above.reshape(len(scores), -1)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each member, on average over the labels."""
        return {name: own["weight"] for name, own in self.ensemble.report_["members"].items()}


def tune_ensemble(arguments: argparse.Namespace) -> int:
    """Train an ensemble on a table, write it, report."""
    skops = _needed("skops.io", "to write the model without pickle")
    check_threads(arguments)
    given = [name for name in LINEAR_ONLY if getattr(arguments, name) is not None]
    if given or arguments.model_format != "metrimax":
        option = given[0].replace("_", "-") if given else "model-format"
        raise UsageError(f"--{option} is for linear classifiers, not for --kind ensemble: leave it out")
    check_writable(arguments.model)
    check_apart("MODEL", arguments.model, DATA=arguments.data)
    measure = parse_measure(arguments.measure)
    frame = _table(arguments)
    missing = [name for name in arguments.drop if name not in frame.columns]
    if missing:
        names = ", ".join(map(str, frame.columns))
        raise FileError(f"{arguments.data}: no column {missing[0]!r} to drop: expected one of {names}")
    frame = frame.drop(columns=arguments.drop)
    target = _target(arguments.target, frame, arguments.data)
    y, positive = _labels(frame.pop(target), arguments.positive)
    from metrimax.estimators.ensemble import MeasureEnsemble  # scikit-learn takes a second to import

    model = MeasureEnsemble(
        measure,
        arguments.preset,
        cv=arguments.folds,
        pos_label=positive,
        n_jobs=arguments.threads,
        random_state=arguments.seed,
        verbose=not arguments.quiet,
    ).fit(frame, y)
    model.command_ = {"measure": arguments.measure, "target": target}
    write_bytes(arguments.model, skops.dumps(model))
    members = {
        f"{name}": f"{own['score']:.4f} +- {own['std']:.4f}, weight {own['weight']:.2f}"
        for name, own in model.report_["members"].items()
    }
    report = {
        "model": str(arguments.model),
        "measure": arguments.measure,
        "examples": len(y),
        "features": frame.shape[1],
        "classes": [show(label) for label in model._reader.classes.tolist()],  # the positive one of two last
        "score_on_other_data": model.report_["score"],
        "standard_error": model.report_["std"],
        "cpu_seconds": model.report_["cpu_seconds"],
    }
    emit(arguments, report | ({"members": model.report_["members"]} if arguments.json else members))
    return OK


def is_ensemble(path: str) -> bool:
    """Whether a model file is one that skops wrote: a ZIP archive with its schema. Archives of arrays are others."""
    if path == "-" or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return "schema.json" in archive.namelist()
    except zipfile.BadZipFile:
        return True  # `load_ensemble` says what is wrong with it


def load_ensemble(path: str) -> EnsembleModel:
    """Read the file of an ensemble. Types that are not in `TRUSTED` are refused before any object is made."""
    skops = _needed("skops.io", "to read the model")
    try:
        strange = sorted(set(skops.get_untrusted_types(file=path)) - TRUSTED)
    except (KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise FileError(f"{path}: expected the file of an ensemble, got another archive ({error})") from error
    if strange:
        raise FileError(
            f"{path}: expected the file of an ensemble, got one with {', '.join(strange[:5])}: it may run code when it "
            "is read; if you trust who made it, read it with skops.io.load"
        )
    model = skops.load(path, trusted=sorted(TRUSTED))
    kind = {"multilabel-indicator": "multilabel"}.get(model._reader.kind, model._reader.kind)
    L = len(model.threshold_)
    return EnsembleModel(
        coef=np.zeros((L, 0)),
        intercept=-model.threshold_,
        threshold=model.threshold_,
        classes=model._reader.classes.tolist(),
        kind=kind,
        measure=model.command_["measure"],
        index_base=None,
        feature_names=model.feature_names_in_.tolist(),
        target=model.command_["target"],
        training={"score_on_other_data": model.report_["score"], "standard_error": model.report_["std"]},
        ensemble=model,
    )


def read_table(arguments: argparse.Namespace, model: EnsembleModel) -> Data:
    """The columns of the model, and the labels if the table has them."""
    target = model.target if arguments.target is None else arguments.target
    table = model.ensemble._views.table
    values = {target: model.classes} | dict(zip(model.feature_names or (), table.categories, strict=True))
    text = [name for name, known in values.items() if known and all(isinstance(value, str) for value in known)]
    frame = _table(arguments, text)
    missing = [name for name in model.feature_names or () if name not in frame.columns]
    if missing:
        raise FileError(f"{arguments.data}: expected the columns of the model, got a table without {missing[0]!r}")
    labels = frame[target].to_numpy() if target in frame.columns and arguments.command != "predict" else None
    return Data(arguments.data, frame[model.feature_names], labels)


def _table(arguments: argparse.Namespace, text: Sequence[str | None] = ()) -> Any:
    """The table. Columns of ``text`` stay text, even if all values in this file are numbers."""
    kind = arguments.format or file_kind(arguments.data)
    if kind not in ("csv", "parquet") or (arguments.data == "-" and kind == "parquet"):
        raise UsageError(
            f"expected a table, .csv or .parquet, for an ensemble, got {arguments.data}: give --format csv if it is "
            "one; leave out --kind ensemble for other files"
        )
    pandas = _needed("pandas", "to read a table with categories and gaps")
    try:
        if kind == "parquet":
            return pandas.read_parquet(arguments.data)
        source = sys.stdin.buffer if arguments.data == "-" else arguments.data
        return pandas.read_csv(source, dtype=dict.fromkeys(text, str))
    except FileNotFoundError:
        raise
    except (ValueError, ImportError) as error:
        raise FileError(f"{arguments.data}: expected a table ({error})") from error


def _target(given: str | None, frame: Any, name: str) -> str:
    if given is None:
        found = [column for column in frame.columns if str(column).strip().lower() in USUAL_TARGETS]
        if len(found) == 1:
            return str(found[0])
    elif given in frame.columns:
        return given
    elif given.isdigit() and int(given) < frame.shape[1]:
        return str(frame.columns[int(given)])
    wanted = "a column called " + " or ".join(USUAL_TARGETS) if given is None else f"a column {given!r}"
    raise FileError(f"{name}: expected {wanted}: --target NAME says which column holds the labels")


def _labels(column: Any, positive: str | None) -> tuple[Any, Any]:
    """The labels, and which of two is positive. --positive with more labels: one against the rest."""
    y = column.to_numpy()
    if positive is None:
        return y, None
    classes = {show(label): label for label in dict.fromkeys(y.tolist())}
    if positive not in classes:
        raise UsageError(f"--positive {positive}: expected one of the labels: {', '.join(sorted(classes)[:50])}")
    if len(classes) == 2:
        return y, classes[positive]
    return np.where(y == classes[positive], positive, f"not {positive}"), positive


def _needed(module: str, why: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise UsageError(f"--kind ensemble needs {package} {why}: pip install 'metrimax[ensemble]'") from None
