"""The pictures of ``--report``, each an image inside the page."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure  # without pyplot: no display, no global state

from metrimax.cli.main import UsageError
from metrimax.cli.report import parse_measure
from metrimax.display import CoefficientDisplay, OperatingPointDisplay, ThresholdDisplay
from metrimax.io.labels import show
from metrimax.io.models import LinearModel
from metrimax.measure.constrained import Constrained
from metrimax.measure.contingency import ContingencyMeasure

if TYPE_CHECKING:
    from metrimax.cli.evaluating import Judged

GREY = "#8a94a3"
LARGEST = 15
"""How many coefficients are drawn."""


def _axes() -> Any:
    axes = Figure(figsize=(4.6, 3.4), layout="constrained").subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e9edf1")
    axes.set_axisbelow(True)
    return axes


def _picture(axes: Any, words: str, said: str) -> str:
    """The image with an alternative text, and a line below it."""
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "metrimax"}):  # the same bytes for the same numbers
        axes.figure.savefig(file, format="svg", metadata={"Date": None})
    code = base64.b64encode(file.getvalue()).decode()
    image = f"<img alt='{html.escape(words)}' src='data:image/svg+xml;base64,{code}'>"
    return f"{image}<p class='soft'>{html.escape(said)}</p>"


def threshold(model: LinearModel, judged: Judged) -> str:
    """The measure that the model was trained for over thresholds, or F1 if that is a measure of rankings.

    A measure with a constraint is 0 where it is broken.
    """
    name, measure = "f1", parse_measure("f1")
    if model.measure:
        try:
            own = parse_measure(model.measure)
        except UsageError:  # a name that another program gave
            own = measure
        if isinstance(own, Constrained) or (isinstance(own, ContingencyMeasure) and not own.ranks):
            name, measure = model.measure, own
    axes = _axes()
    truth, scores = judged.truth[:, 0], judged.scores[:, 0]
    display = ThresholdDisplay.from_predictions(truth, scores, measure=measure, ax=axes)
    axes.set(ylabel=name, xlabel="threshold on the score (the model's is 0)")
    axes.legend(frameon=False, fontsize=9)
    if isinstance(measure, Constrained):
        table = tuple(np.asarray(float(count)) for count in judged.tables[0])
        now, zero = float(measure.table_score(*table)), " It is 0 where the constraint is broken."
    else:
        now, zero = measure.score(truth, scores), ""
    best = max(float(np.nanmax(display.values)), now)
    said = f"{name} is {now:.3f} at the model's threshold; the highest on this data is {best:.3f}.{zero}"
    return _picture(axes, f"{name} over thresholds", said)


def precision_recall(judged: Judged) -> str:
    """Precision over recall, with the point of the model's threshold."""
    axes = _axes()
    OperatingPointDisplay.from_predictions(judged.truth[:, 0], judged.scores[:, 0], ax=axes)
    axes.axhline(float(judged.truth.mean()), color=GREY, linestyle=":", linewidth=1)
    axes.legend(frameon=False, fontsize=9, loc="best")
    said = "The dot is the model's threshold. The dotted line is the precision of random predictions."
    return _picture(axes, "precision over recall", said)


def roc(judged: Judged) -> str:
    """The ROC curve, with the point of the model's threshold."""
    truth, scores = judged.truth[:, 0], judged.scores[:, 0]
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)  # equal scores get the same label
    tpr = np.concatenate(([0.0], np.cumsum(truth[order])[ends] / truth.sum()))
    fpr = np.concatenate(([0.0], np.cumsum(~truth[order])[ends] / (~truth).sum()))
    tp, fp, fn, tn = judged.tables[0]
    at = fp / (fp + tn), tp / (tp + fn)
    axes = _axes()
    axes.plot(fpr, tpr)
    axes.plot(*at, "o", markersize=9, color="C0", label=f"found {at[1]:.2f}, false alarms {at[0]:.3f}")
    axes.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1)
    axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.01, 1.01), ylim=(0, 1.03))
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    return _picture(axes, "ROC curve", f"The area under the curve is {judged.values['roc_area']:.3f}.")


def coefficients(model: LinearModel) -> str:
    """The largest coefficients; for several classifiers their root mean square."""
    weights = model.coef[0] if len(model.coef) == 1 else np.sqrt((model.coef**2).mean(axis=0))
    if not weights.any():
        return "<p>All are 0: nothing was learnt.</p>"
    names = model.feature_names or [f"feature {j + (model.index_base or 0)}" for j in range(model.n_features)]
    kept = np.argsort(-np.abs(weights), kind="stable")[:LARGEST]
    kept = kept[np.argsort(weights[kept], kind="stable")]
    axes = _axes()
    CoefficientDisplay([f"{names[j]:.30}" for j in kept], weights[kept]).plot(axes)
    towards = f"coefficient, towards {show(model.classes[1]):.20}" if model.kind == "binary" else "coefficient"
    axes.set(xlabel=towards if len(model.coef) == 1 else "root mean square over the labels")
    scaled = model.columns is not None and any(column.scale != 1 for column in model.columns)
    said = f"{len(kept)} of {model.n_features:,} features. " + (
        "Numbers were standardised, so sizes can be compared."
        if scaled
        else "Sizes can be compared only between features of the same scale."
    )
    return _picture(axes, "largest coefficients", said)
