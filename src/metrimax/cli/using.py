"""``metrimax predict``, ``measures`` and ``info``, and how models and data are matched."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from metrimax.cli.ensemble import is_ensemble, load_ensemble, read_table
from metrimax.cli.main import OK, UsageError
from metrimax.cli.report import check_apart, check_threads, emit, note, read
from metrimax.io.columns import as_json
from metrimax.io.data import Data
from metrimax.io.files import FileError, check_writable, is_standard_output, write_bytes
from metrimax.io.folders import holds_tables
from metrimax.io.labels import show, visible
from metrimax.io.models import LinearModel, load_model
from metrimax.io.tables import USUAL_TARGETS
from metrimax.measure import measures as registered
from metrimax.protocols import Labels


def measures(arguments: argparse.Namespace) -> int:
    """List the measures."""
    if arguments.json:
        sys.stdout.write(json.dumps(registered()) + "\n")
        return OK
    width = max(map(len, registered()))
    for name, line in registered().items():
        sys.stdout.write(f"{name:<{width}}  {line}\n")
    sys.stdout.write(
        "\nParameters: fbeta:beta=2, cost:fn=5,fp=1, partial_auc:beta=0.05; precision@100, recall@2p (twice the "
        "positives), ndcg@10\nMeasures of rankings are means over the groups of the examples, where these have a qid.\n"
    )
    return OK


def predict(arguments: argparse.Namespace) -> int:
    """Write labels or scores, one line per example."""
    check_apart("FILE", arguments.output, DATA=arguments.data, MODEL=arguments.model)
    check_writable(arguments.output)
    data, model = read_both(arguments)
    scores = model.scores(data.X, arguments.threads)
    as_scores = arguments.scores or model.kind == "ranking"
    names = [label for label in model.classes if isinstance(label, str)] if not (as_scores or arguments.json) else []
    broken = [label for label in names if set(label) & set("\r\n")]
    if broken:
        raise UsageError(
            f"expected labels that fit on a line, one for each example, got the model's {broken[0]!r:.100}: --json "
            "writes any label, --scores none"
        )
    moving = [label for label in names if visible(label, "\t") != label]
    if moving and is_standard_output(arguments.output):
        raise UsageError(
            f"expected labels that a terminal can show, got the model's {moving[0]!a:.100}: -o FILE and --json write "
            "any label, --scores none"
        )
    if arguments.json and as_scores:
        text = json.dumps({"scores": scores[:, 0].tolist() if len(model.coef) == 1 else scores.tolist()}) + "\n"
    elif arguments.json:
        labels = model.predict(scores)
        chosen = labels if model.kind == "multilabel" else [label for (label,) in labels]
        text = json.dumps({"labels": chosen}) + "\n"
    elif as_scores:
        text = "".join(" ".join(f"{value:.9g}" for value in row) + "\n" for row in scores)
    else:
        text = "".join(",".join(map(show, row)) + "\n" for row in model.predict(scores))
    write_bytes(arguments.output, text.encode())
    return OK


def info(arguments: argparse.Namespace) -> int:
    """Describe a model file."""
    model: LinearModel
    if is_ensemble(arguments.model):
        model = loaded = load_ensemble(arguments.model)
        shown = [f"{name} {weight:.2f}" for name, weight in loaded.weights.items()]
        inside: dict[str, Any] = {
            "weights": loaded.weights if arguments.json else shown,
            "threshold": model.threshold.tolist(),
        }
    else:
        model = load_model(arguments.model)
        inside = {
            "nonzero_weights": int(np.count_nonzero(model.coef)),
            "norm": float(np.linalg.norm(model.coef)),
            "intercept": model.intercept.tolist(),
            "threshold": model.threshold.tolist(),
            "index_base": model.index_base,
        }
    training = dict(model.training)
    results: dict[str, Any] = {
        "model": str(arguments.model),
        "kind": model.kind,
        "measure": model.measure or "unknown",
        "classes": model.classes if arguments.json else [show(c) for c in model.classes],
        "features": model.n_features,
        **inside,
    }
    if arguments.json:
        results["feature_names"] = model.feature_names
        results["columns"] = None if model.columns is None else as_json(model.columns)
        results["training"] = training
    else:
        labels = training.pop("labels", [])
        results |= {key: value for key, value in training.items() if isinstance(value, (int, float, str))}
        if len(labels) == 1 and isinstance(labels[0], dict):
            results |= {key: value for key, value in labels[0].items() if isinstance(value, (int, float, str))}
    emit(arguments, results)
    return OK


def read_both(arguments: argparse.Namespace) -> tuple[Data, LinearModel]:
    """DATA and MODEL, with the columns of DATA in the order of MODEL."""
    check_threads(arguments)
    if arguments.data == arguments.model == "-":
        raise UsageError("expected DATA or MODEL at standard input (-), not both: give a file for one of them")
    if is_ensemble(arguments.model):
        ensemble = load_ensemble(arguments.model)
        return read_table(arguments, ensemble), ensemble
    model = _model(arguments)
    if not holds_tables(Path(arguments.data), arguments.format):
        if model.columns is not None and arguments.command == "verify":
            raise UsageError(f"expected the table that the model was trained on, CSV or Parquet, got {arguments.data}")
        model = model.on_numbers()
    data = read(
        arguments,
        columns=model.columns,
        index_base=arguments.index_base if arguments.index_base is not None else model.index_base,
        n_features=model.n_features,
        feature_names=model.feature_names,
        target=arguments.target if arguments.target is not None else model.target,
        several=model.kind == "multilabel",
    )
    if arguments.target is None and model.target is not None and model.feature_names is None:
        _check_place(data, model.target)
    return data, model


def _model(arguments: argparse.Namespace) -> LinearModel:
    """MODEL. The error says so if DATA and MODEL were swapped."""
    try:
        return load_model(arguments.model)
    except FileError as error:
        try:
            load_model(arguments.data)
        except (FileError, OSError):
            raise error from None
        order = "MODEL DATA" if arguments.command == "verify" else "DATA MODEL"
        raise FileError(f"{error}; {arguments.data} is one: expected the order {order}") from None


def _check_place(data: Data, target: str) -> None:
    """Raise if the number of the label column may be that of a feature: models without names only store the number."""
    for name in data.feature_names or []:
        if name.strip().lower() in USUAL_TARGETS:
            raise UsageError(
                f"{data.name}: are the labels in the column {name!r}, or in column {target} (from 0), where they were "
                "when the model was trained on a table without header? Give --target, its name or number"
            )


def truth_of(arguments: argparse.Namespace, data: Data, model: LinearModel) -> Labels:
    """The labels as boolean columns, one per classifier of the model."""
    if data.labels is None or data.n == 0:
        raise FileError(f"{data.name}: expected labels, got none: for a table, --target NAME says where they are")
    if model.kind == "binary":
        return _positives(arguments, data, model)
    rows = _label_rows(data.labels)
    known = {_text(label): k for k, label in enumerate(model.classes)}
    known |= {show(label): k for k, label in enumerate(model.classes)}  # "1" and "1.0" may both be classes
    truth = np.zeros((len(rows), len(model.classes)), dtype=bool)
    strange = set()
    for i, labels in enumerate(rows):
        for label in labels:
            k = known.get(show(label))
            k = known.get(_text(label)) if k is None else k
            if k is None:
                strange.add(show(label))
            else:
                truth[i, k] = True
    if strange:
        note(
            arguments, f"labels unknown to the model, counted as none of its classes: {', '.join(sorted(strange)[:20])}"
        )
    return truth


def _label_rows(labels: Any) -> Any:
    """The labels of each example, one or several."""
    return labels if isinstance(labels, list) else [[label] for label in labels]


def _text(label: float | str) -> str:
    """A label as text, whether it was read as a number or as a string."""
    try:
        return f"{float(label):.17g}"
    except ValueError:
        return str(label)


def _positives(arguments: argparse.Namespace, data: Data, model: LinearModel) -> Labels:
    """One column: the label named by --positive, or the model's positive class, against the rest.

    Models of SVM-perf store no labels: numbers above 0 are positive.
    """
    positive = arguments.positive if arguments.positive is not None else show(model.classes[1])
    signs = not model.measure and model.classes == [-1, 1]
    if signs and arguments.positive is None and isinstance(data.labels, np.ndarray) and data.labels.dtype.kind == "f":
        return data.labels[:, None] > 0
    wanted = _text(positive)
    truth = np.array([any(_text(v) == wanted for v in labels) for labels in _label_rows(data.labels)])[:, None]
    if not truth.any():
        known = sorted({_text(v) for labels in _label_rows(data.labels) for v in labels})
        raise FileError(
            f"{data.name}: no example has the positive label {positive}, they have {', '.join(known[:10])}: give "
            "--positive LABEL"
        )
    return truth
