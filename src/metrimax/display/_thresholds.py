"""Scores and the threshold on them: a measure over thresholds, precision and recall at the one chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.metrics import precision_recall_curve
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from metrimax.display._scores import labels_and_scores, last_step, new_axes, positive_class, scores_of
from metrimax.measure import Constrained, get_measure
from metrimax.measure.contingency import ContingencyMeasure
from metrimax.protocols import Labels, Vector

PLACES = 200  # thresholds in a picture


class ThresholdDisplay:
    """A measure over thresholds, with the threshold that the classifier has.

    Parameters
    ----------
    thresholds : array (m,)
        Examples with a score above it are called positive.
    values : array (m,)
        The measure at each threshold.
    folds : array (number of folds, m) or None, default=None
        The measure on each fold; what lies between the lowest and the highest is shaded.
    chosen : float or None, default=None
        The threshold to mark.
    name : str, default="score"
        What the measure is called.

    Attributes
    ----------
    ax_, figure_
        Set by `plot`.

    Examples
    --------
    >>> from metrimax.display import ThresholdDisplay
    >>> display = ThresholdDisplay.from_predictions([0, 0, 1, 1], [-2.0, 0.5, 0.4, 3.0], measure="f1")
    >>> float(display.values.max().round(2))
    0.8
    """

    def __init__(
        self,
        thresholds: npt.ArrayLike,
        values: npt.ArrayLike,
        *,
        folds: npt.ArrayLike | None = None,
        chosen: float | None = None,
        name: str = "score",
    ) -> None:
        self.thresholds = np.asarray(thresholds)
        self.values = np.asarray(values)
        self.folds = None if folds is None else np.asarray(folds)
        self.chosen = chosen
        self.name = name

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, measure: Any = None, cv: Any = None, ax: Any = None
    ) -> ThresholdDisplay:
        """Draw the measure of a fitted classifier on (X, y).

        Parameters
        ----------
        model : classifier
            Fitted, of two classes.
        X, y : arrays
            Rows that it was not trained on; with ``cv`` those of the training.
        measure : str, measure, callable or None, default=None
            A measure of the contingency table; None for the one that the model was trained for. One with a constraint
            is 0 at the thresholds that break it.
        cv : int, splitter or None, default=None
            With it the model is trained again on each of the folds, and drawn is what it says of the rows held out.
        ax : matplotlib axes or None, default=None
            Where to draw.

        Returns
        -------
        ThresholdDisplay
            With `ax_` and `figure_`.
        """
        scores, threshold = scores_of(model, X)
        fold = None
        if cv is not None:
            scores, fold = _held_out(model, X, y, cv, scores)
        measure = getattr(last_step(model), "measure", "f1") if measure is None else measure
        return cls.from_predictions(
            y, scores, measure=measure, threshold=threshold, fold=fold, pos_label=positive_class(model)[0], ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        scores: npt.ArrayLike,
        *,
        measure: Any = "f1",
        threshold: float | None = 0.0,
        fold: npt.ArrayLike | None = None,
        pos_label: Any = None,
        ax: Any = None,
    ) -> ThresholdDisplay:
        """Draw the measure of scores.

        Parameters
        ----------
        y_true, scores : array (n,)
            The labels, and the scores of examples that the model was not trained on.
        measure : str, measure or callable, default="f1"
            A measure of the contingency table.
        threshold : float or None, default=0.0
            The threshold to mark.
        fold : array (n,) or None, default=None
            The fold of each example, for the spread.
        pos_label : label or None, default=None
            The positive class; None for the greater of the two.
        ax : matplotlib axes or None, default=None
            Where to draw.

        Returns
        -------
        ThresholdDisplay
            With `ax_` and `figure_`.
        """
        judge = get_measure(measure)
        if not isinstance(judge, ContingencyMeasure) or (judge.ranks and not isinstance(judge, Constrained)):
            raise ValueError(
                f"expected a measure of the contingency table, got {judge.name!r}, which judges a ranking and knows no "
                "threshold: give another measure, such as measure='f1'"
            )
        labels, scores = labels_and_scores(y_true, scores, pos_label)
        known = np.unique(scores)
        places = np.concatenate([[known[0] - 1e-9 * np.ptp(known)], (known[:-1] + known[1:]) / 2])
        if len(places) > PLACES:  # most of the few positives may stand among the highest scores
            of_positives = places[np.searchsorted(known, np.sort(scores[labels]))]
            shares = np.linspace(0, 1, PLACES // 2)
            kept = [np.quantile(part, shares, method="nearest") for part in (places, of_positives)]
            places = np.unique(np.concatenate(kept))
        if threshold is not None and places[0] < threshold < known[-1]:
            places = np.union1d(places, threshold)  # the curve has its value there
        folds = None
        if fold is not None:
            parts = [np.asarray(fold) == one for one in np.unique(fold)]
            folds = [_curve(judge, labels[part], scores[part], places) for part in parts]
        name = measure if isinstance(measure, str) else judge.name
        return cls(places, _curve(judge, labels, scores, places), folds=folds, chosen=threshold, name=name).plot(ax)

    def plot(self, ax: Any = None) -> ThresholdDisplay:
        """Draw the curve, a band from the lowest to the highest fold, and a dotted line at the threshold chosen.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        ThresholdDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = new_axes(ax)
        ax.plot(self.thresholds, self.values, label="all rows")
        if self.folds is not None:
            low, high = np.nanmin(self.folds, axis=0), np.nanmax(self.folds, axis=0)
            ax.fill_between(self.thresholds, low, high, alpha=0.2, label=f"{len(self.folds)} folds, lowest to highest")
        if self.chosen is not None:
            ax.axvline(self.chosen, linestyle=":", color="grey", label="threshold chosen")
        ax.set(xlabel="threshold", ylabel=self.name)
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self


class OperatingPointDisplay:
    """Precision over recall, with the point at which the classifier works.

    Parameters
    ----------
    precision, recall : array (m,)
        The curve.
    point : pair of float or None, default=None
        Recall and precision of the labels predicted.
    name : str or None, default=None
        What the curve is called in the legend.

    Attributes
    ----------
    ax_, figure_
        Set by `plot`.

    Examples
    --------
    >>> from metrimax.display import OperatingPointDisplay
    >>> OperatingPointDisplay.from_predictions([0, 0, 1, 1], [-2.0, 0.5, 0.4, 3.0]).point
    (1.0, 0.6666666666666666)
    """

    def __init__(
        self,
        precision: npt.ArrayLike,
        recall: npt.ArrayLike,
        *,
        point: tuple[float, float] | None = None,
        name: str | None = None,
    ) -> None:
        self.precision = np.asarray(precision)
        self.recall = np.asarray(recall)
        self.point = point
        self.name = name

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, name: str | None = None, ax: Any = None
    ) -> OperatingPointDisplay:
        """Draw the curve of a fitted classifier on (X, y), rows that it was not trained on.

        Parameters
        ----------
        model : classifier
            Fitted, of two classes.
        X, y : arrays
            Rows and their labels.
        name : str or None, default=None
            For the legend; None for the name of the class.
        ax : matplotlib axes or None, default=None
            Where to draw.

        Returns
        -------
        OperatingPointDisplay
            With `ax_` and `figure_`.
        """
        scores, threshold = scores_of(model, X)
        name = type(last_step(model)).__name__ if name is None else name
        return cls.from_predictions(
            y, scores, threshold=threshold, pos_label=positive_class(model)[0], name=name, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        scores: npt.ArrayLike,
        *,
        threshold: float = 0.0,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> OperatingPointDisplay:
        """Draw the curve of scores.

        Parameters
        ----------
        y_true, scores : array (n,)
            The labels, and the scores of examples that the model was not trained on.
        threshold : float, default=0.0
            Examples with a score above it are called positive.
        pos_label : label or None, default=None
            The positive class; None for the greater of the two.
        name : str or None, default=None
            For the legend.
        ax : matplotlib axes or None, default=None
            Where to draw.

        Returns
        -------
        OperatingPointDisplay
            With `ax_` and `figure_`.
        """
        labels, scores = labels_and_scores(y_true, scores, pos_label)
        precision, recall, _ = precision_recall_curve(labels, scores)
        called = scores > threshold
        hits = int((labels & called).sum())
        point = (hits / int(labels.sum()), hits / int(called.sum())) if called.any() else None
        return cls(precision, recall, point=point, name=name).plot(ax)

    def plot(self, ax: Any = None) -> OperatingPointDisplay:
        """Draw the curve, and a dot where the classifier works.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        OperatingPointDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = new_axes(ax)
        [line] = ax.step(self.recall, self.precision, where="post", label=self.name)
        if self.point is not None:
            recall, precision = self.point
            said = f"precision {precision:.2f}, recall {recall:.2f}"
            ax.plot(recall, precision, "o", markersize=9, color=line.get_color(), label=said)
        ax.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.05))
        if self.name is not None or self.point is not None:
            ax.legend(loc="lower left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _curve(measure: ContingencyMeasure, labels: Labels, scores: Vector, places: Vector) -> Vector:
    """The measure of the tables at the places; nan where it admits none."""
    pos, neg = np.sort(scores[labels]), np.sort(scores[~labels])
    tp = len(pos) - np.searchsorted(pos, places, side="right").astype(np.float64)
    fp = len(neg) - np.searchsorted(neg, places, side="right").astype(np.float64)
    table = tp, fp, len(pos) - tp, len(neg) - fp
    values = np.asarray(measure.table_score(*table), dtype=np.float64)
    allowed = measure.admissible(*table)
    return values if allowed is None else np.where(allowed, values, np.nan)


def _held_out(model: Any, X: Any, y: Any, cv: Any, scores: Vector) -> tuple[Vector, npt.NDArray[np.intp]]:
    """Scores of the rows by models that were trained without them, and the folds of the rows."""
    y = np.asarray(y)
    found, fold = np.full(len(scores), np.nan), np.full(len(scores), -1)
    for k, (train, test) in enumerate(check_cv(cv, y, classifier=True).split(X, y)):
        one = clone(model).fit(_safe_indexing(X, train), y[train])
        found[test], _ = scores_of(one, _safe_indexing(X, test))
        fold[test] = k
    if (fold < 0).any():
        raise ValueError(f"expected cv to hold out every row once, got {(fold < 0).sum()} rows that it never holds out")
    return found, fold
