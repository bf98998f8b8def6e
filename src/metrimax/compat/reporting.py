"""What ``svm_perf_classify`` prints about its predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrimax.compat.losses import loss_for
from metrimax.measure.contingency import contingency, of_one
from metrimax.protocols import Labels, Vector

_NOTE = (
    "NOTE: The loss reported above is the fraction of errors. The zero/one-error is\n"
    "      the multivariate zero/one-error regarding the whole prediction vector!\n"
)


PATCHED = {
    "Qb": 22,
    "Qb (Acc)": 23,
    "Qb (F1)": 24,
    "Qb (GM)": 25,
    "NAE": 21,
    "AE": 26,
    "RAE": 27,
    "GM": 20,
    "KLD": 12,
    "NKLD": 13,
}
"""The measures that the quantification patch adds, in the order of its report, by the codes of their losses."""


def report(y: Labels, scores: Vector) -> tuple[str, str]:
    """The lines on the loss, and the note with the measures, in percent."""
    tp, fp, fn, tn = contingency(y, scores > 0)
    wrong = fp + fn
    error = 100 * wrong / len(y)
    whole = 100.0 if wrong else 0.0
    loss = (
        f"Average loss on test set: {error:.4f}\n"
        f"Zero/one-error on test set: {whole:.2f}% ({int(wrong == 0)} correct, {int(wrong > 0)} incorrect, 1 total)\n"
    )
    precision, recall = _percent(tp, tp + fp), _percent(tp, tp + fn)
    values = {
        "Accuracy": 100 - error,
        "Precision": precision,
        "Recall": recall,
        "F1": _percent(2 * tp, 2 * tp + fp + fn),
        **ranking(y, scores),
        **quantification(tp, fp, fn, tn),
    }
    return loss, _NOTE + "".join(f"{name:<10}: {value:5.2f}\n" for name, value in values.items())


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


def ranking(y: Labels, scores: Vector) -> dict[str, float]:
    """PRBEP, ROC area and average precision in percent; ties count as ranked wrongly (negatives first)."""
    order = np.lexsort((y, -scores))
    ranked = y[order]
    n_pos, n_neg = int(y.sum()), int((~y).sum())
    hits = np.cumsum(ranked)
    at = np.flatnonzero(ranked)
    swapped = float((at + 1 - hits[at]).sum())  # negatives before each positive
    return {
        "PRBEP": _percent(float(hits[n_pos - 1]), n_pos) if n_pos else 0.0,
        "ROCArea": 100 - 100 * swapped / (n_pos * n_neg) if n_pos and n_neg else float("nan"),
        "AvgPrec": 100 * float((hits[at] / (at + 1)).mean()) if n_pos else 0.0,
    }


def quantification(tp: float, fp: float, fn: float, tn: float) -> dict[str, float]:
    """The measures that the quantification patch adds, each as 100 - Delta; beta is 1."""
    if tp + fn == 0 or fp + tn == 0:
        return {}
    n, n_pos = int(tp + fp + fn + tn), int(tp + fn)
    losses: dict[str, Any] = {name: loss_for(code, n=n, n_pos=n_pos) for name, code in PATCHED.items()}
    return {name: 100 - 100 * of_one(loss.table_loss, tp, fp, fn, tn) for name, loss in losses.items()}
