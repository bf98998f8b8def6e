"""Curves of training: how a fit converged, what folds and estimates say over C and over sample sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from metrimax.display._scores import last_step, new_axes
from metrimax.estimators.svc_cv import MeasureSVCCV
from metrimax.measure import get_measure
from metrimax.protocols import Record
from metrimax.training.defaults import LOSS_NAMES

NAMES = {"error": "error", "recall": "recall", "precision": "precision", "f1": "F1"}


class EstimateDisplay:
    """An estimate against the hold-out, over C.

    Parameters
    ----------
    Cs : array (number of C,)
        The grid.
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

    Examples
    --------
    >>> from metrimax.display import EstimateDisplay
    >>> EstimateDisplay([0.1, 1.0, 10.0], [0.7, 0.8, 0.75], [0.68, 0.79, 0.77], name="F1").plot().ax_.get_ylabel()
    'F1'
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

        Parameters
        ----------
        model : MeasureSVCCV
            Fitted.
        X, y : arrays
            What it was trained on.
        X_test, y_test : arrays
            Rows that it was not trained on.
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        EstimateDisplay
            With `ax_` and `figure_`.
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
            losses = {name: table[f"param_{name}"][best].item() for name in LOSS_NAMES if f"param_{name}" in table}
            placed = "trained" if table["param_threshold"][best] == "trained" else "placed"
            one = model.plain(C=C, threshold=placed, checkpoint=None, **losses).fit(X, y)
            estimates.append(table["pooled_test_score"][best])
            held.append(one.set_params(measure=scoring).score(X_test, y_test))
        name = scoring if isinstance(scoring, str) else get_measure(scoring).name
        chosen = float(np.median(model.C_))
        return cls(model.Cs_, estimates, held, name=name, chosen=chosen).plot(ax=ax)

    def plot(self, ax: Any = None) -> EstimateDisplay:
        """Draw both curves, C on a logarithmic axis, and a dotted line at the C chosen.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        EstimateDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = new_axes(ax)
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
        Examples trained on.
    curves : mapping from measure to array (number of sizes, 4)
        Mean estimate, mean hold-out, and their standard deviations.
    title : str
        Of the whole plot.

    Attributes
    ----------
    axes_, figure_
        Set by `plot`.

    References
    ----------
    Joachims (2000), Figures 4-6.

    Examples
    --------
    >>> from metrimax.display import LearningCurveDisplay
    >>> curves = {"f1": [[0.5, 0.6, 0.1, 0.1], [0.6, 0.65, 0.05, 0.05]]}
    >>> len(LearningCurveDisplay([100, 200], curves).plot().axes_)
    1
    """

    def __init__(self, sizes: npt.ArrayLike, curves: Mapping[str, npt.ArrayLike], *, title: str = "") -> None:
        self.sizes = np.asarray(sizes)
        self.curves = {name: np.asarray(values) for name, values in curves.items()}
        self.title = title

    @classmethod
    def from_repeats(
        cls, sizes: npt.ArrayLike, pairs: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]], *, title: str = ""
    ) -> LearningCurveDisplay:
        """From the pairs (estimate, hold-out) of every run, for each measure, and the sizes of the training samples.

        Parameters
        ----------
        sizes : array (number of runs,)
            The training size of each run.
        pairs : mapping from measure to (array, array)
            The estimate and the hold-out of each run.
        title : str, default=""
            Of the whole plot.

        Returns
        -------
        LearningCurveDisplay
            Not drawn yet.
        """
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
        """Draw one panel per measure, in percent: means above, standard deviations (dashed) below.

        Parameters
        ----------
        axes : sequence of matplotlib axes or None, default=None
            One for each measure; None for a new figure.

        Returns
        -------
        LearningCurveDisplay
            Itself, with `axes_` and `figure_`.
        """
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


class ConvergenceDisplay:
    """The objective and its proven lower bound over the passes of a fit.

    Parameters
    ----------
    histories : list of lists of Record
        One for each label.

    Attributes
    ----------
    ax_, figure_
        Set by `plot`.

    Examples
    --------
    >>> from metrimax.display import ConvergenceDisplay
    >>> from metrimax.protocols import Record
    >>> records = [Record(1, 2.0, 1.0, 0.0, 1, 0.1), Record(2, 4.0, 0.5, 0.4, 2, 0.2)]
    >>> ConvergenceDisplay([records]).plot().ax_.get_xlabel()
    'passes over the data'
    """

    def __init__(self, histories: Sequence[Sequence[Record]]) -> None:
        self.histories = histories

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> ConvergenceDisplay:
        """Draw the `history_` of a fitted model.

        Parameters
        ----------
        model : estimator
            Fitted, with `history_`.
        ax : matplotlib axes or None, default=None
            Where to draw.

        Returns
        -------
        ConvergenceDisplay
            With `ax_` and `figure_`.
        """
        model = last_step(model)
        if not hasattr(model, "history_"):
            raise TypeError(
                f"expected a fitted MeasureSVC or MeasureRanker, with history_, got {type(model).__name__}: "
                "its training keeps none"
            )
        history = model.history_
        return cls([history] if isinstance(history[0], Record) else history).plot(ax)

    def plot(self, ax: Any = None) -> ConvergenceDisplay:
        """Draw objective and bound of one label; of several labels the gaps, on a logarithmic axis.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        ConvergenceDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = new_axes(ax)
        if len(self.histories) == 1:
            passes = [record.n_passes for record in self.histories[0]]
            objective, bound = ([getattr(one, name) for one in self.histories[0]] for name in ("objective", "bound"))
            ax.plot(passes, objective, marker=".", label="objective")
            ax.plot(passes, bound, marker=".", label="proven lower bound")
            ax.fill_between(passes, bound, objective, alpha=0.15, label="gap")
            ax.set(ylabel="units of the measure")
            ax.legend()
        else:
            for history in self.histories:
                passes, gaps = [one.n_passes for one in history], [one.gap for one in history]
                ax.plot(passes, np.maximum(gaps, 1e-16), linewidth=1)
            ax.set(yscale="log", ylabel=f"gap, one line for each of {len(self.histories)} labels")
        ax.set(xlabel="passes over the data")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class PathDisplay:
    """What the folds say of each candidate, over C.

    Parameters
    ----------
    curves : mapping from name to array (number of C, 3)
        For each kind of candidate: C, the mean and the standard deviation of its score over the folds.
    name : str, default="score"
        What the score is called.
    chosen : float or None, default=None
        The C to mark.

    Attributes
    ----------
    ax_, figure_
        Set by `plot`.

    Examples
    --------
    >>> from metrimax.display import PathDisplay
    >>> PathDisplay({"f1": [[0.1, 0.5, 0.1], [1.0, 0.6, 0.1]]}, chosen=1.0).plot().ax_.get_xscale()
    'log'
    """

    def __init__(
        self, curves: Mapping[str, npt.ArrayLike], *, name: str = "score", chosen: float | None = None
    ) -> None:
        self.curves = {label: np.asarray(values, dtype=np.float64) for label, values in curves.items()}
        self.name = name
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, model: MeasureSVCCV, *, ax: Any = None) -> PathDisplay:
        """Draw the `cv_results_` of a fitted `MeasureSVCCV`.

        Parameters
        ----------
        model : MeasureSVCCV
            Fitted.
        ax : matplotlib axes or None, default=None
            Where to draw.

        Returns
        -------
        PathDisplay
            With `ax_` and `figure_`.
        """
        model = last_step(model)
        if not isinstance(model, MeasureSVCCV):
            raise TypeError(f"expected a fitted MeasureSVCCV, got {type(model).__name__}")
        table = model.cv_results_
        kinds = [name for name in table if name.startswith("param_") and name != "param_C"]
        told = [name for name in kinds if len(set(table[name].tolist())) > 1]
        rows: dict[str, list[list[float]]] = {}
        for k, C in enumerate(table["param_C"].tolist()):
            values = (f"{name.removeprefix('param_')} {table[name][k]}" for name in told)
            spread = table["std_test_score"][k] if "std_test_score" in table else 0.0
            rows.setdefault(", ".join(values) or "score", []).append([C, table["pooled_test_score"][k], spread])
        scoring = model.measure if model.scoring is None else model.scoring
        name = scoring if isinstance(scoring, str) else get_measure(scoring).name
        return cls(
            {label: sorted(row) for label, row in rows.items()}, name=name, chosen=float(np.median(model.C_))
        ).plot(ax)

    def plot(self, ax: Any = None) -> PathDisplay:
        """Draw a line with one standard deviation for each kind of candidate, and a dotted line at the C chosen.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        PathDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = new_axes(ax)
        for label, values in self.curves.items():
            C, mean, spread = values.T
            ax.plot(C, mean, marker="o", label=label)
            ax.fill_between(C, mean - spread, mean + spread, alpha=0.1)
        if self.chosen is not None:
            ax.axvline(self.chosen, linestyle=":", color="grey", label="chosen")
        ax.set(xscale="log", xlabel="C", ylabel=self.name)
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
