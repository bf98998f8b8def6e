"""What oracles that wrap others say they can do holds for the risk that they are."""

import numpy as np
import pytest

from metrimax.designs import as_design
from metrimax.measure import get_measure
from metrimax.measure.base_loss import Losses
from metrimax.measure.grouped import Grouped
from metrimax.measure.hinge_sum import HingeSum
from metrimax.measure.shifted import Shifted
from metrimax.protocols import Capabilities, made
from metrimax.solvers import Auto, Bundle, DualCD
from metrimax.training.lockstep import run

KINDS = ["sum", "three", "base", "logistic", "scaled", "shift", "both", "groups"]
MEASURES = ["f1", "error", "balanced_error", "prbep", "roc_area", "jaccard"]


def sample(n=40, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    return y, rng.normal(size=n), rng.normal(size=n), rng


def wrapped(measure, y, offset):
    own = get_measure(measure).oracle(y)
    groups = Grouped(get_measure(measure), np.arange(len(y)) % 2)
    together = groups.oracle(groups.labels(y))
    return {
        "sum": Losses(hinge=0.7).oracle(own, y, None),
        "three": Losses(risk=2.0, hinge=0.7, logistic=1.3).oracle(own, y, None),
        "base": Losses(risk=0.0, hinge=0.7, logistic=1.3, balanced=True).oracle(own, y, None),
        "logistic": Losses(risk=0.0, logistic=1.0).oracle(own, y, None),
        "scaled": Losses(risk=2.0).oracle(own, y, None),
        "shift": Shifted(own, offset),
        "both": Shifted(Losses(hinge=0.7).oracle(own, y, None), offset),
        "groups": together,
    }


def risk(oracle, scores):
    cut = oracle(scores)
    return cut.loss + cut.slope @ scores


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("measure", MEASURES)
def test_hinges_are_the_risk(measure, kind):
    y, scores, offset, _ = sample()
    oracle = wrapped(measure, y, offset)[kind]
    hinges = made(oracle.can.hinges)
    assert (hinges is not None) == (kind in ("shift", "scaled") and measure in ("error", "balanced_error"))
    if hinges is not None:
        assert risk(HingeSum(hinges), scores) == pytest.approx(risk(oracle, scores))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("mu", [0.3, 0.01])
def test_the_smoothed_risk_is_below_by_no_more_than_mu_and_its_cut_is_its_gradient(measure, kind, mu):
    y, scores, offset, rng = sample()
    oracle = wrapped(measure, y, offset)[kind]
    smooth = made(oracle.can.smooth)
    value, cut = smooth(scores, mu)
    assert -1e-12 <= risk(oracle, scores) - value <= mu + 1e-12
    move = rng.normal(size=len(y))
    step = 1e-6
    rise = (smooth(scores + step * move, mu)[0] - smooth(scores - step * move, mu)[0]) / (2 * step)
    assert rise == pytest.approx(cut.slope @ move, abs=1e-4)
    for _ in range(20):
        other = 3 * rng.normal(size=len(y))
        assert cut.loss + cut.slope @ other <= risk(oracle, other) + 1e-12


@pytest.mark.parametrize("losses", [{"hinge": 0.7}, {"risk": 2.0, "logistic": 0.5}, {"risk": 3.0}])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", ["f1", "prbep", "jaccard", "gmean"])
def test_every_mean_at_the_kink_of_a_sum_is_a_plane_under_it_that_touches_at_zero(measure, weighted, losses):
    y, _, _, rng = sample()
    weight = np.where(y, 2.0, 1.0) if weighted else None
    oracle = Losses(**losses).oracle(get_measure(measure).oracle(y, weight), y, weight)
    kink = made(oracle.can.kink)
    assert kink is not None
    assert kink.loss == pytest.approx(risk(oracle, np.zeros(len(y))))
    for _ in range(50):
        share = np.ones(len(y))
        share[kink.free] = rng.random(len(kink.free))
        if kink.total is not None:
            share[kink.free] *= kink.total / (share * kink.weight)[kink.free].sum()
            if share.max() > 1:
                continue
        slope = -kink.sign * (kink.base + share * kink.weight) / oracle.n
        scores = rng.normal(size=len(y)) * 10 ** rng.uniform(-3, 1)
        assert kink.loss + slope @ scores <= risk(oracle, scores) + 1e-12


def test_a_wrapper_names_the_kernel_of_its_own_risk_alone():
    y, scores, offset, _ = sample()
    oracles = wrapped("f1", y, offset)
    assert oracles["shift"].can.compiled is None
    for kind in ("sum", "groups"):
        loss, slope = oracles[kind].can.compiled.cut(scores)
        assert loss + slope @ scores == pytest.approx(risk(oracles[kind], scores))


def test_there_is_no_kink_beside_given_scores():
    y, _, offset, _ = sample()
    assert Shifted(get_measure("f1").oracle(y), offset).can.kink is None


def test_coordinate_descent_corrects_given_scores():
    y, _, offset, rng = sample(200)
    design = as_design(rng.normal(size=(200, 5)) + y[:, None], intercept_scaling=1.0)
    oracle = Shifted(get_measure("error").oracle(y), offset)
    bundle, dual = (
        run(design, [solver.steps(oracle, design, 0.5 * oracle.n, tol=1e-6)])[0] for solver in (Bundle(), DualCD())
    )
    assert bundle.status.ok
    assert dual.status.ok
    assert dual.objective == pytest.approx(bundle.objective, rel=1e-5)
    assert dual.bound <= bundle.objective * (1 + 1e-9)


def test_an_oracle_that_offers_nothing_is_trained_all_the_same():
    y, _, _, rng = sample(100)
    own = get_measure("f1").oracle(y)

    class Bare:
        n, price, can = own.n, own.price, Capabilities()
        line, mean_cut = own.line, own.mean_cut

        def __call__(self, scores):
            return own(scores)

    design = as_design(rng.normal(size=(100, 300)), intercept_scaling=1.0)
    weight = 10 * own.price * own.n
    bare, helped = (run(design, [Auto().steps(one, design, weight, tol=1e-4)])[0] for one in (Bare(), own))
    assert bare.status.ok
    assert helped.status.ok
    assert abs(bare.objective - helped.objective) <= 2e-4 * weight
