"""Pictures, after the pattern of scikit-learn's displays. The only module that imports matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from metrimax.estimators.svc_cv import MeasureSVCCV
from metrimax.measure import get_measure

NAMES = {"error": "error", "recall": "recall", "precision": "precision", "f1": "F1"}


class EstimateDisplay:
    """An estimate against the hold-out, over C.

    Parameters
    ----------
    Cs : array (number of C,)
    estimate, holdout : array (number of C,)
        The score by which C is chosen, and the score on data not trained on.
    name : str
        What the score is called.
    chosen : float or None, default=None
        The C to mark; None for that of the highest estimate.

    Attributes
    ----------
    ax_, figure_
        Set by `plot`.
    """

    def __init__(
        self,
        Cs: npt.ArrayLike,
        estimate: npt.ArrayLike,
        holdout: npt.ArrayLike,
        *,
        name: str = "score",
        chosen: float | None = None,
    ) -> None:
        self.Cs = np.asarray(Cs)
        self.estimate = np.asarray(estimate)
        self.holdout = np.asarray(holdout)
        self.name = name
        self.chosen = chosen

    @classmethod
    def from_estimator(
        cls, model: MeasureSVCCV, X: Any, y: Any, X_test: Any, y_test: Any, *, ax: Any = None
    ) -> EstimateDisplay:
        """Draw the path of a fitted `MeasureSVCCV`, trained on (X, y), against its scores on (X_test, y_test).

        For every C a model is trained on (X, y) once more, with the losses that were the best for it; its threshold is
        placed on the training scores where that of the folds was.
        """
        if not isinstance(model, MeasureSVCCV):
            raise TypeError(f"expected a fitted MeasureSVCCV, got {type(model).__name__}")
        check_is_fitted(model)
        table = model.cv_results_
        scoring = model.measure if model.scoring is None else model.scoring
        estimates, held = [], []
        for C in model.Cs_.tolist():
            of_C = np.flatnonzero(table["param_C"] == C)
            best = of_C[np.argmax(table["pooled_test_score"][of_C])]
            names = ("risk", "hinge", "logistic", "balanced")
            losses = {name: table[f"param_{name}"][best].item() for name in names if f"param_{name}" in table}
            placed = "trained" if table["param_threshold"][best] == "trained" else "placed"
            one = model.plain(C=C, threshold=placed, checkpoint=None, **losses).fit(X, y)
            estimates.append(table["pooled_test_score"][best])
            held.append(one.set_params(measure=scoring).score(X_test, y_test))
        name = scoring if isinstance(scoring, str) else get_measure(scoring).name
        chosen = float(np.median(model.C_))
        return cls(model.Cs_, estimates, held, name=name, chosen=chosen).plot(ax=ax)

    def plot(self, ax: Any = None) -> EstimateDisplay:
        """Draw both curves, C on a logarithmic axis, and a dotted line at the C chosen."""
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        ax.plot(self.Cs, self.estimate, marker="o", label="estimate")
        ax.plot(self.Cs, self.holdout, marker="s", label="hold-out")
        chosen = self.chosen
        if chosen is None and not np.isnan(self.estimate).all():
            chosen = self.Cs[int(np.nanargmax(self.estimate))]
        if chosen is not None:
            ax.axvline(chosen, linestyle=":", color="grey")
        ax.set(xscale="log", xlabel="C", ylabel=self.name)
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self


class LearningCurveDisplay:
    """Mean and standard deviation of an estimate and of the hold-out, over the size of the training sample.

    Parameters
    ----------
    sizes : array (number of sizes,)
    curves : mapping from measure to array (number of sizes, 4)
        Mean estimate, mean hold-out, and their standard deviations.
    title : str

    Attributes
    ----------
    axes_, figure_
        Set by `plot`.

    References
    ----------
    Joachims (2000), Figures 4-6.
    """

    def __init__(self, sizes: npt.ArrayLike, curves: Mapping[str, npt.ArrayLike], *, title: str = "") -> None:
        self.sizes = np.asarray(sizes)
        self.curves = {name: np.asarray(values) for name, values in curves.items()}
        self.title = title

    @classmethod
    def from_repeats(
        cls, sizes: npt.ArrayLike, pairs: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]], *, title: str = ""
    ) -> LearningCurveDisplay:
        """From the (estimate, hold-out) of every single run, for each measure, and the run's training size."""
        runs = np.asarray(sizes)
        grid = np.unique(runs)
        curves = {}
        for name, pair in pairs.items():
            values = np.column_stack([np.asarray(part, dtype=np.float64) for part in pair])
            parts = [values[runs == size] for size in grid]
            curves[name] = np.array(
                [[*part.mean(axis=0), *part.std(axis=0, ddof=min(1, len(part) - 1))] for part in parts]
            )
        return cls(grid, curves, title=title)

    def plot(self, axes: Any = None) -> LearningCurveDisplay:
        """Draw one panel per measure, in percent: means above, standard deviations (dashed) below."""
        if axes is None:
            _, axes = plt.subplots(1, len(self.curves), figsize=(4.5 * len(self.curves), 3.6), layout="constrained")
        axes = np.ravel(axes)
        for ax, (name, values) in zip(axes, self.curves.items(), strict=True):
            for column, (label, marker) in enumerate((("xi-alpha", "o"), ("hold-out", "s"))):
                ax.plot(self.sizes, 100 * values[:, column], marker=marker, color=f"C{column}", label=label)
                ax.plot(self.sizes, 100 * values[:, column + 2], marker=marker, color=f"C{column}", linestyle="--",
                        label=f"{label}, deviation")  # fmt: skip
            ax.set(xscale="log", xlabel="training examples", ylabel=f"{NAMES.get(name, name)} (%)", title=self.title)
            ax.set_xticks(self.sizes, [str(size) for size in self.sizes])
            ax.minorticks_off()
            ax.set_ylim(bottom=0)
            ax.legend(fontsize="small")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self
