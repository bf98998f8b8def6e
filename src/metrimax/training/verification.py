"""Check a model's objective, bound and threshold against the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metrimax.measure.base_loss import Losses
from metrimax.measure.place import place, place_if_it_pays
from metrimax.measure.plain import PlainOracle
from metrimax.protocols import Design, Labels, Measure, Vector
from metrimax.training.certificate import Certificate, certify
from metrimax.training.lockstep import run

ROUNDING = 1e-8
"""Numbers in units of the measure (J divided by C kappa n) that differ by less are equal. Over 1,000 fits of random
measures, data, C and tolerances the objective computed anew differed by 1.4e-12 at most.
"""


class Claim(NamedTuple):
    """What a model claims about one of its labels.

    ``w`` are the weights of the certificate's point, the intercept's last; ``rule`` is the way the threshold was found
    ("trained", "placed" or "auto"); ``constant`` is a label that did not vary in training.
    """

    w: Vector
    C: float
    losses: Losses
    price: float
    objective: float
    bound: float
    gap: float
    threshold: float
    rule: str
    constant: bool = False
    certificate: tuple[Vector, Vector] | None = None


class Check(NamedTuple):
    """One thing that was checked: whether it holds (None: it could not be checked), and a sentence about it."""

    name: str
    holds: bool | None
    says: str


@dataclass(frozen=True)
class Verification:
    """The result of a verification; true if everything that was checked holds.

    Attributes
    ----------
    labels : list of list of Check
        For every label of the model the checks of its objective, bound, gap and threshold.
    """

    labels: list[list[Check]]

    @property
    def holds(self) -> bool:
        return not any(check.holds is False for checks in self.labels for check in checks)

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        if len(self.labels) == 1:
            said = [check.says for check in self.labels[0]]
        else:
            said = [
                f"label {k}: {check.says}"
                for k, checks in enumerate(self.labels)
                for check in checks
                if check.holds is not True
            ]
            true = sum(all(check.holds is not False for check in checks) for checks in self.labels)
            said.insert(0, f"{true} of {len(self.labels)} labels hold")
        return f"{'Holds' if self.holds else 'Does not hold'}: {'; '.join(said)}."


def verify_label(
    measure: Measure,
    design: Design,
    labels: Labels,
    weight: Vector | None,
    claim: Claim,
    square: float,
    max_iter: int = 1000,
) -> list[Check]:
    """Check what is claimed of one label; ``square`` is the squared length of ``claim.w``.

    The objective is computed from the weights and the data. The bound is that of the stored certificate, computed anew;
    without one, cutting planes of their own search for a proof of the bound, or for a point below it.
    """
    used = labels if weight is None else labels[weight > 0]
    if used.min() == used.max():
        return [_constant(claim, bool(used[0]))]
    if claim.constant:
        return [Check("label", False, "the label varies in these data but did not in training: these are other data")]
    oracle = PlainOracle(measure, labels, weight, claim.losses)
    units = claim.C * oracle.unit
    scores = design.matvec(claim.w)
    objective = 0.5 * square + units * oracle.risk(scores)
    checks = [_objective(claim, objective, units, oracle)]
    if checks[0].holds:
        checks += [_gap(claim, units), _bound(claim, oracle, design, units, max_iter)]
    return [*checks, _threshold(measure, labels, scores, weight, claim)]


def _constant(claim: Claim, positive: bool) -> Check:
    called = claim.threshold < 0
    if claim.constant and not claim.w.any() and called == positive:
        return Check("label", True, "the label does not vary, and is predicted as the constant it is")
    return Check("label", False, "the label does not vary in these data: the model was trained on others, or changed")


def _objective(claim: Claim, objective: float, units: float, oracle: PlainOracle) -> Check:
    by = "over all tables or pairs" if oracle.exhaustive else "by the library's search"
    if not abs(claim.price - oracle.price) <= 1e-9 * oracle.price:
        return Check(
            "objective",
            False,
            f"the price of one mistake is {oracle.price:.9g} on these data, {claim.price:.9g} is stated: the labels, "
            "their weights or the measure are others",
        )
    if abs(objective - claim.objective) <= ROUNDING * units:
        return Check("objective", True, f"the objective is {objective:.9g}, as stated (computed {by})")
    return Check(
        "objective",
        False,
        f"the objective of the weights on these data is {objective:.9g}, {claim.objective:.9g} is stated: the weights, "
        "the parameters or the data are others (the bound was not checked)",
    )


def _gap(claim: Claim, units: float) -> Check:
    gap = (claim.objective - claim.bound) / units
    if not claim.bound <= claim.objective + ROUNDING * units:
        return Check("gap", False, f"the bound {claim.bound:.9g} is above the objective, which it cannot be")
    if abs(gap - claim.gap) <= ROUNDING:
        return Check("gap", True, f"the gap is {max(gap, 0.0):.3g}, as stated")
    return Check("gap", False, f"the gap between objective and bound is {gap:.3g}, {claim.gap:.3g} is stated")


def _bound(claim: Claim, oracle: PlainOracle, design: Design, units: float, max_iter: int) -> Check:
    by = "cuts made from the measure's definition" if oracle.defined else "cuts of the library's search"
    least = claim.bound - ROUNDING * units
    if claim.certificate is not None:
        try:
            certificate = Certificate(*claim.certificate)
            (proven,) = run(design, [certificate.bound(oracle, design, units)])
        except ValueError as error:
            return Check("bound", False, f"the certificate is invalid: {error}")
        number = len(certificate.multipliers)
        if proven >= least:
            return Check(
                "bound",
                True,
                f"no weights have an objective below {claim.bound:.9g}: the certificate proves it by {number} {by}",
            )
        return Check(
            "bound",
            False,
            f"the certificate proves a bound of {proven:.9g}, {claim.bound:.9g} is stated: one of them was changed",
        )
    (found,) = run(design, [certify(oracle, design, units, claim.w, goal=least, max_iter=max_iter)])
    if found.bound >= least:
        return Check(
            "bound",
            True,
            f"no weights have an objective below {claim.bound:.9g}: cutting planes of their own prove it by "
            f"{len(found.certificate.multipliers)} {by}",
        )
    if found.least < least:
        return Check(
            "bound",
            False,
            f"there are weights with an objective of {found.least:.9g}, below the bound {claim.bound:.9g}",
        )
    return Check(
        "bound",
        False,
        f"the bound {claim.bound:.9g} was not confirmed: {max_iter} iterations prove {found.bound:.9g}; allow more of "
        "them, or train with a certificate",
    )


def _threshold(measure: Measure, labels: Labels, scores: Vector, weight: Vector | None, claim: Claim) -> Check:
    if measure.ranks:
        placed = measure.threshold(labels, scores, weight)
    elif claim.rule in ("placed", "auto"):
        placed = (place if claim.rule == "placed" else place_if_it_pays)(measure, labels, scores, weight)
    elif claim.rule == "trained":
        placed = 0.0
    else:
        return Check(
            "threshold", None, f"the threshold was not checked: its rule {claim.rule!r} needs more than the data"
        )
    if abs(placed - claim.threshold) <= ROUNDING * max(1.0, float(np.abs(scores).max())):
        return Check("threshold", True, f"the threshold is {claim.threshold:.9g}, as its rule puts it")
    return Check(
        "threshold", False, f"the rule puts the threshold at {placed:.9g}, the model has {claim.threshold:.9g}"
    )
