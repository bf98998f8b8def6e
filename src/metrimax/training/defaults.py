"""What is trained where the user leaves it open: losses, C, and where the threshold comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from metrimax.measure.base_loss import PAPER, Losses, wants_base_loss
from metrimax.measure.constrained import Constrained
from metrimax.measure.contingency import ContingencyMeasure
from metrimax.protocols import Measure, Vector

DEFAULT_C = 4.0
"""C where nobody gives one: suits text of unit length and features of scale 1 (docs/results/linear.md)."""

GRID: Vector = np.array([0.003, 0.03, 0.3, 3.0, 30.0])
"""What C is chosen from."""

RANKING_C = 1.0
"""As `DEFAULT_C`, for rankings within groups."""

RANKING_GRID: Vector = np.array([0.0003, 0.003, 0.03, 0.3, 3.0])
"""As `GRID`, for rankings within groups."""

BESIDE = 3.0
"""Weight of the logistic loss beside the risk where nobody gives one and no folds choose (docs/results/linear.md)."""

RULES = ("trained", "placed", "folds")
"""Where a threshold comes from: training itself, the scores of the training rows, or those of the folds."""

LOSS_NAMES = tuple(one.name for one in fields(Losses))
"""The names of `Losses` in parameters, settings and tables of results."""


def losses_of(settings: Mapping[str, Any]) -> Losses:
    """The losses that settings state."""
    return Losses(**{name: settings[name] for name in LOSS_NAMES})


class Family(NamedTuple):
    """What is chosen among: the losses, and where thresholds come from; those preferred among equals first."""

    losses: tuple[Losses, ...]
    thresholds: tuple[str, ...]

    def given(self, losses: Losses | None, threshold: str | None) -> Family:
        """The candidates with these losses, and this rule of the threshold; None leaves them open."""
        return Family(
            self.losses if losses is None else (losses,), self.thresholds if threshold is None else (threshold,)
        )


RISK_ALONE = Family((PAPER,), ("trained",))
"""The measure's own risk alone, as Joachims (2005) has it."""

BOTH, LOGISTIC = Losses(logistic=1.0), Losses(risk=0.0, logistic=1.0)
"""The measure's risk with a logistic loss beside it, and the logistic loss alone."""

RANKINGS = Family((Losses("even", logistic=1.0), Losses(0.0, logistic=1.0, balanced=True), PAPER), ("trained",))
"""What is chosen among for rankings within groups (docs/results/ranking.md)."""


def family(measure: Measure, scoring: Measure, *, together: bool = False) -> Family:
    """The candidates of a measure that is trained for, and of the one that chooses.

    They are logistic regression, and the sum of the measure's risk and the logistic loss. On 20 tables, the risk alone,
    sums with hinges, and balanced losses changed nothing that is significant. The threshold of the folds competes with
    that of training. Several classes of which the highest is called (``together``) have no thresholds of their own.
    """
    if not wants_base_loss(measure):
        return RISK_ALONE
    if isinstance(scoring, Constrained) and not together:
        return Family((BOTH, LOGISTIC), ("folds",))  # training scores are too good to keep a constraint by
    placed = isinstance(scoring, ContingencyMeasure) and not scoring.ranks and not together
    return Family((BOTH, LOGISTIC), ("trained", "folds") if placed else ("trained",))


def losses_without_folds(
    measure: Measure,
    *,
    risk: float | str = 1.0,
    hinge: float | None = None,
    logistic: float | None = None,
    balanced: bool = False,
    sums: bool = True,
) -> Losses:
    """The losses of a fit without folds.

    If neither hinge nor logistic is given, a logistic loss stands beside the risk of every measure but the error rate;
    if one is given, the other is 0. Without ``sums`` the solver knows the risk alone.
    """
    if hinge is None and logistic is None and sums and wants_base_loss(measure):
        logistic = BESIDE
    hinge, logistic = (0.0 if weight is None else weight for weight in (hinge, logistic))
    return Losses(risk, hinge, logistic, balanced)


def even_losses(
    risk: float | str | None = None,
    hinge: float | None = None,
    logistic: float | None = None,
    balanced: bool = False,
    *,
    sums: bool = True,
) -> Losses:
    """The losses of a ranking or an adaptation without folds: a logistic loss beside the risk, of even weights.

    If hinge or logistic is given, the other is 0, and the risk has its full weight. So it has without ``sums``, where
    the risk is all that is trained.
    """
    if hinge is None and logistic is None and sums:
        return Losses("even" if risk is None else risk, 0.0, 1.0, balanced)
    return Losses(1.0 if risk is None else risk, hinge or 0.0, logistic or 0.0, balanced)


def threshold_without_folds(measure: Measure, kind: str, *, sums: bool = True) -> str:
    """The rule of the threshold where nobody gives one: "auto", but "trained" where none is to be placed.

    Measures of rankings have a rule of their own, the error rate is trained as the plain SVM, and of several exclusive
    classes the highest score is called.
    """
    placed = sums and not measure.ranks and kind != "multiclass" and wants_base_loss(measure)
    return "auto" if placed else "trained"
