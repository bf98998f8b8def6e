"""``metrimax verify``: check what a model file states about its training."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from metrimax.cli.ensemble import is_ensemble
from metrimax.cli.main import FAILURE, OK, UsageError
from metrimax.cli.report import emit, parse_measure
from metrimax.cli.using import read_both, truth_of
from metrimax.designs import as_design
from metrimax.io.data import grades
from metrimax.io.files import FileError
from metrimax.io.models import LinearModel
from metrimax.measure import Grouped
from metrimax.measure.base_loss import Losses
from metrimax.training.verification import Claim, Verification, verify_label


def verify(arguments: argparse.Namespace) -> int:
    """Check a model on the data it was trained on; return 0 if all checks hold, otherwise 1."""
    if arguments.max_iter < 1:
        raise UsageError(f"expected --max-iter of at least 1, got {arguments.max_iter}")
    if is_ensemble(arguments.model):
        raise UsageError(f"{arguments.model} is an ensemble, which has no certificate: verify is for linear models")
    data, model = read_both(arguments)
    claims = _claims(arguments.model, model)
    scale = model.training["intercept_scaling"]
    design = as_design(data.X, intercept_scaling=scale, n_threads=arguments.threads)
    measure = parse_measure(model.measure, groups=model.kind == "ranking")
    if model.kind == "ranking":
        if data.groups is None:
            raise UsageError(f"{data.name}: expected groups (qid), as in training, got none")
        measure = Grouped(measure, data.groups)
        labels = measure.labels(grades(data, model.training.get("positive")))[:, np.newaxis]
    else:
        labels = truth_of(arguments, data, model)
    found = Verification(
        [
            verify_label(
                measure, design, np.ascontiguousarray(own), None, claim, float(claim.w @ claim.w), arguments.max_iter
            )
            for own, claim in zip(labels.T, claims, strict=True)
        ]
    )
    results: dict[str, Any] = {"model": str(arguments.model), "holds": found.holds}
    if arguments.json:
        results["labels"] = [[check._asdict() for check in checks] for checks in found.labels]
    else:
        results["verification"] = str(found)
    emit(arguments, results)
    return OK if found.holds else FAILURE


def _claims(name: str, model: LinearModel) -> list[Claim]:
    """The statements of a model file, label by label."""
    training, labels = model.training, model.training.get("labels")
    if not model.measure or "intercept_scaling" not in training or not isinstance(labels, list):
        raise FileError(
            f"{name}: expected a model that states its training (measure, intercept_scaling, objective and bound of "
            "every label), got one of SVM-perf or of an earlier version: train it again"
        )
    if len(labels) != len(model.coef) or not all(isinstance(own, dict) for own in labels):
        raise FileError(f"{name}: expected training['labels'] with an object for each of the {len(model.coef)} labels")
    scale = None if training["intercept_scaling"] is None else _number(name, training, "intercept_scaling")
    if scale is not None and not scale > 0:
        raise FileError(f"{name}: expected an intercept_scaling > 0, got {scale}")
    certificates = model.certificates or [None] * len(labels)
    return [
        Claim(
            w=coef if scale is None else np.append(coef, intercept / scale),
            C=_number(name, training | own, "C"),
            losses=_losses(name, training | own),
            threshold=float(threshold),
            rule=str((training | own).get("threshold_rule", "trained")),
            constant=own.get("status") == "one_class",
            certificate=certificate,
            **{key: _number(name, own, key) for key in ("price", "objective", "bound", "gap")},
        )
        for coef, intercept, threshold, own, certificate in zip(
            model.coef, model.trained_intercept, model.threshold, labels, certificates, strict=True
        )
    ]


def _losses(name: str, entries: dict[str, Any]) -> Losses:
    """The losses in a header; files of earlier versions only have hinges."""
    entries = {"risk": 1.0, "hinge": 0.0, "logistic": 0.0, "balanced": False} | entries
    weights = {key: _number(name, entries, key) for key in ("hinge", "logistic")}
    risk = entries["risk"] if entries["risk"] == "even" else _number(name, entries, "risk")
    return Losses(risk=risk, balanced=bool(entries["balanced"]), **weights)


def _number(name: str, entries: dict[str, Any], key: str) -> float:
    """An entry of a header. Raise unless it is a number."""
    value = entries.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FileError(f"{name}: expected {key!r} of the training as a number, got {value!r:.100}")
    return float(value)
