"""Fitted models: their coefficients by name, and how far their probabilities can be relied on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from metrimax._validation import dense, is_whole
from metrimax.display._scores import chosen, labels_and_scores, last_step, new_axes, positive_class


class CoefficientDisplay:
    """The largest coefficients of a linear model, with the names of their features.

    Parameters
    ----------
    names : sequence of str
        The features.
    coefficients : array (number of names,)
        Their weights.
    title : str, default=""
        Of the plot.
    towards : str, default=""
        The class that positive coefficients speak for.

    Attributes
    ----------
    ax_, figure_
        Set by `plot`.

    Examples
    --------
    >>> from metrimax.display import CoefficientDisplay
    >>> CoefficientDisplay(["age", "amount"], [0.5, -1.5]).plot().ax_.get_xlabel()
    'coefficient'
    """

    def __init__(self, names: Any, coefficients: npt.ArrayLike, *, title: str = "", towards: str = "") -> None:
        self.names = [str(name) for name in names]
        self.coefficients = np.asarray(coefficients)
        self.title = title
        self.towards = towards

    @classmethod
    def from_estimator(
        cls, model: Any, *, feature_names: Any = None, label: int = 0, largest: int = 20, ax: Any = None
    ) -> CoefficientDisplay:
        """Draw the coefficients of a fitted linear model, or of a pipeline that ends with one.

        Parameters
        ----------
        model : estimator
            Fitted, with `coef_`; or a pipeline that ends with such a one.
        feature_names : sequence of str or None, default=None
            None for those that the model knows, or else ``x0``, ``x1`` and so on.
        label : int, default=0
            The row of `coef_`: the label, or the class.
        largest : int, default=20
            How many coefficients to draw, by their size.
        ax : matplotlib axes or None, default=None
            Where to draw.

        Returns
        -------
        CoefficientDisplay
            With `ax_` and `figure_`.
        """
        model, last = chosen(model), last_step(model)
        if not hasattr(last, "coef_"):
            raise TypeError(
                f"expected a linear model, with coef_, got {type(last).__name__}: train with kernel='linear', or see "
                "sklearn.inspection.permutation_importance, which is for any model"
            )
        rows = np.atleast_2d(dense(last.coef_))
        if not (is_whole(label) and 0 <= label < len(rows)):
            raise ValueError(f"expected label as a row of coef_, from 0 to {len(rows) - 1}, got {label!r}")
        coefficients = rows[label]
        if feature_names is None and last is not model and len(model.steps) > 1:
            feature_names = model[:-1].get_feature_names_out()
        if feature_names is None:
            feature_names = getattr(last, "feature_names_in_", [f"x{j}" for j in range(len(coefficients))])
        if len(feature_names) != len(coefficients):
            raise ValueError(f"expected {len(coefficients)} feature_names, got {len(feature_names)}")
        kept = np.argsort(-np.abs(coefficients), kind="stable")[:largest]
        kept = kept[np.argsort(coefficients[kept], kind="stable")]
        return cls(np.asarray(feature_names)[kept], coefficients[kept], towards=_towards(last, label)).plot(ax)

    def plot(self, ax: Any = None) -> CoefficientDisplay:
        """Draw one bar for each coefficient.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        CoefficientDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = new_axes(ax)
        colours = np.where(self.coefficients < 0, "C1", "C0")
        places = np.arange(len(self.names))
        ax.barh(places, self.coefficients, color=colours.tolist())
        ax.set_yticks(places, self.names)
        ax.axvline(0, color="grey", linewidth=0.8)
        ax.set(xlabel=f"coefficient, towards {self.towards}" if self.towards else "coefficient", title=self.title)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _towards(model: Any, label: int) -> str:
    """The class that positive coefficients speak for; those of two classes are for the second, whatever `pos_label`."""
    classes = np.asarray(getattr(model, "classes_", []))
    single = len(classes) == 2 and len(np.atleast_2d(dense(model.coef_))) == 1
    return str(classes[1 if single else label]) if len(classes) else ""


class ReliabilityDisplay:
    """How often examples are positive, over the probability that a model gives them.

    Parameters
    ----------
    predicted, observed : array (number of bins,)
        The mean probability, and the share of positives.
    counts : array (number of bins,)
        Examples in each bin.
    name : str or None, default=None
        For the legend.

    Attributes
    ----------
    ax_, figure_
        Set by `plot`.

    Examples
    --------
    >>> from metrimax.display import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.2, 0.7, 0.9], n_bins=2)
    >>> display.observed.tolist()
    [0.5, 0.5]
    """

    def __init__(
        self, predicted: npt.ArrayLike, observed: npt.ArrayLike, counts: npt.ArrayLike, *, name: str | None = None
    ) -> None:
        self.predicted = np.asarray(predicted)
        self.observed = np.asarray(observed)
        self.counts = np.asarray(counts)
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int = 10,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw the reliability of a fitted classifier on (X, y), rows that it was not trained on.

        Parameters
        ----------
        model : classifier
            Fitted, of two classes, with `predict_proba`:
            `MeasureEnsemble`, or a `MeasureSVC` inside scikit-learn's ``CalibratedClassifierCV``.
        X, y : arrays
            Rows and their labels.
        n_bins : int, default=10
            Bins of equally many examples.
        pos_label : label or None, default=None
            The class whose probability is drawn; None for the positive one of the model.
        name : str or None, default=None
            For the legend; None for the name of the class.
        ax : matplotlib axes or None, default=None
            Where to draw.

        Returns
        -------
        ReliabilityDisplay
            With `ax_` and `figure_`.
        """
        check_is_fitted(model)
        if not hasattr(model, "predict_proba"):
            raise TypeError(
                f"expected a model with predict_proba, got {type(model).__name__}: put it into CalibratedClassifierCV"
            )
        classes = np.asarray(model.classes_).tolist()
        pos_label = positive_class(model)[0] if pos_label is None else pos_label
        if pos_label not in classes:
            raise ValueError(f"expected pos_label among the classes {classes[:5]}, got {pos_label!r}")
        probability = np.asarray(model.predict_proba(X))[:, classes.index(pos_label)]
        name = type(model).__name__ if name is None else name
        return cls.from_predictions(y, probability, n_bins=n_bins, pos_label=pos_label, name=name, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        probability: npt.ArrayLike,
        *,
        n_bins: int = 10,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw the reliability of probabilities.

        Parameters
        ----------
        y_true, probability : array (n,)
            The labels, and what the model says of them.
        n_bins : int, default=10
            Bins of equally many examples.
        pos_label : label or None, default=None
            The positive class; None for the greater of the two.
        name : str or None, default=None
            For the legend.
        ax : matplotlib axes or None, default=None
            Where to draw.

        Returns
        -------
        ReliabilityDisplay
            With `ax_` and `figure_`.
        """
        labels, probability = labels_and_scores(y_true, probability, pos_label)
        if not ((probability >= 0) & (probability <= 1)).all():
            raise ValueError(
                f"expected probabilities from 0 to 1, got {probability.min():.3g} to {probability.max():.3g}: give "
                "the output of predict_proba, not scores"
            )
        bins = [part for part in np.array_split(np.argsort(probability, kind="stable"), n_bins) if len(part)]
        means = [(probability[part].mean(), labels[part].mean(), len(part)) for part in bins]
        return cls(*np.array(means).T, name=name).plot(ax)

    def plot(self, ax: Any = None) -> ReliabilityDisplay:
        """Draw the points with two standard errors, and the diagonal on which they should lie.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        ReliabilityDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = new_axes(ax)
        error = 2 * np.sqrt(np.maximum(self.observed * (1 - self.observed), 0) / self.counts)
        ax.plot([0, 1], [0, 1], linestyle=":", color="grey", label="as often as said")
        ax.errorbar(self.predicted, self.observed, yerr=error, marker="o", capsize=3, label=self.name)
        ax.set(xlabel="mean probability", ylabel="share of positives", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
