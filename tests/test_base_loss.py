"""Hinges and logistic losses beside a measure's risk, against brute force, a conic solver and scikit-learn."""

import itertools
from functools import partial

import cvxpy as cp
import numpy as np
import pytest
import reference as ref
import reference_rankings as ranked
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from metrimax import MeasureSVC, MeasureSVCCV, _kernels
from metrimax.designs import as_design
from metrimax.measure import Grouped, get_measure
from metrimax.measure.base_loss import Losses
from metrimax.protocols import Status
from metrimax.solvers import SOLVERS
from metrimax.training.lockstep import run

SUMS = {
    "hinge": Losses(hinge=0.7),
    "logistic": Losses(logistic=1.0),
    "half the risk and both, balanced": Losses(0.5, 0.3, 0.8, True),
    "logistic alone": Losses(risk=0.0, logistic=2.0),
    "both alone, balanced": Losses(0.0, 1.0, 0.5, True),
    "hinge alone": Losses(risk=0.0, hinge=0.6),
    "hinge alone, balanced": Losses(0.0, 1.5, 0.0, True),
    "risk": Losses(risk=3.0),
    "even": Losses(risk="even", logistic=1.0),
}
CASES = [*ref.CASES, *(case for case in ranked.RANKINGS if case.name in ("average_precision", "ndcg", "partial_auc"))]
CASES.append(ref.Case("roc_area", get_measure("roc_area"), None))

SVC = partial(MeasureSVC, intercept_scaling=1.0)  # with the intercept as written out below


def sample(seed=0, n=120, rate=0.2, shift=1.0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < rate
    return rng.normal(size=(n, 3)) + shift * y[:, None], y


def class_weights(losses, y, weight):
    """The weights of the examples in the base losses, written out."""
    weight = np.ones(len(y)) if weight is None else weight
    if not losses.balanced:
        return weight
    own = np.where(y, weight[y].sum(), weight[~y].sum())
    return weight * weight.sum() / (2 * own)


def written_out(losses, risk, price, y, scores, weight=None):
    """What C multiplies: ``risk`` is kappa n R of these scores, and ``price`` kappa."""
    of_risk = 1 / price if losses.risk == "even" else losses.risk
    margin, weight = np.where(y, scores, -scores), class_weights(losses, y, weight)
    hinge, logistic = np.maximum(0, 1 - margin), np.logaddexp(0, -margin)
    return of_risk * risk + weight @ (losses.hinge * hinge + losses.logistic * logistic)


@pytest.mark.parametrize("losses", SUMS.values(), ids=list(SUMS))
@pytest.mark.parametrize("name", ["f1", "gmean", "mcc", "prbep", "roc_area", "average_precision"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_risk_is_the_sum_of_all(name, losses, weighted):
    _, y = sample()
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, len(y)).astype(float) if weighted and name != "average_precision" else None
    oracle = get_measure(name).oracle(y, weight)
    both = losses.oracle(oracle, y, weight)

    def risk(s):
        cut = oracle(s)
        own = oracle.price * oracle.n * (cut.loss + cut.slope @ s)
        return written_out(losses, own, oracle.price, y, s, weight) / (both.price * both.n)

    for size in (0.1, 1.0, 100.0):
        scores, move, other = size * rng.normal(size=(3, len(y)))
        cut = both(scores)
        assert cut.loss + cut.slope @ scores == pytest.approx(risk(scores))
        assert cut.loss + cut.slope @ other <= risk(other) * (1 + 1e-12)  # a cut
        value, slope = both.line(scores, move)(0.5)
        assert value == pytest.approx(risk(scores + 0.5 * move))
        step = 1e-6
        ahead, behind = (both.line(scores, move)(t)[0] for t in (0.5 + step, 0.5 - step))
        assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-3, abs=1e-5 * size)
        mean = both.mean_cut(scores, 0.01)
        assert risk(scores) - 0.01 - 1e-12 <= mean.loss + mean.slope @ scores <= risk(scores) * (1 + 1e-12)
        assert mean.loss + mean.slope @ other <= risk(other) * (1 + 1e-12)
        if both.compiled is not None:  # what solvers ask in its place
            for mu, asked in ((0.0, cut), (0.01, mean)):
                loss, slopes = both.compiled.cut(scores, mu)
                assert loss == pytest.approx(asked.loss)
                np.testing.assert_allclose(slopes, asked.slope, atol=1e-14)
            assert _kernels.Line(both.compiled, scores, move)(0.5) == pytest.approx((value, slope))


@pytest.mark.parametrize("margin", [-1e308, -800.0, -40.0, -1.0, 0.0, 1e-300, 1.0, 40.0, 800.0, 1e308])
@pytest.mark.parametrize("positive", [True, False])
def test_no_margin_is_too_large_for_the_logistic_loss(margin, positive):
    sign = 1.0 if positive else -1.0
    kernel = _kernels.BaseLosses(np.array([sign]), 0.0, 1.0)
    scores = np.array([sign * margin])
    loss, slope = kernel.cut(scores)
    expected = np.logaddexp(0, -margin)
    flip = float(np.exp(-np.logaddexp(0, margin)))
    assert slope[0] == pytest.approx(-sign * flip, rel=1e-12)
    entropy = expected + flip * margin if abs(margin) < 30 else 0.0
    assert loss == pytest.approx(entropy, abs=1e-10)
    assert _kernels.Line(kernel, scores, np.zeros(1))(0.0) == pytest.approx((expected, 0.0), rel=1e-12)


def test_no_slope_of_the_logistic_loss_is_near_to_underflow():
    """Products of X with such slopes would take many times as long."""
    scores = np.linspace(-1000.0, 1000.0, 4001)
    for sign in (1.0, -1.0):
        _, slope = _kernels.BaseLosses(np.full(len(scores), sign), 0.0, 1.0).cut(scores)
        assert np.all((slope == 0) | (np.abs(slope) > 1e-45))
        assert np.abs(slope).max() == 1


def least(case, losses, X, y, C):
    """The least J with all labellings, rankings or pairs as constraints and the logistic losses as cones."""
    X1 = np.hstack([X, np.ones((len(X), 1))])
    w = cp.Variable(X1.shape[1])
    s, sign = X1 @ w, np.where(y > 0, 1.0, -1.0)
    oracle = case.measure.oracle(y)
    xi = cp.Variable(nonneg=True)
    constraints = []
    if isinstance(case, ref.Case) and case.loss is not None:
        Z, values = ref.labelling_losses(case, y)
        constraints = [values + (Z.astype(float) - y) @ s / len(y) <= xi]
        risk = xi
    elif isinstance(case, ref.Case):
        risk = cp.sum(cp.pos(1 - (X1[y][:, None] - X1[~y][None]).reshape(-1, X1.shape[1]) @ w)) / (y.sum() * (~y).sum())
    else:
        zero, unit = np.zeros(len(y)), np.eye(len(y))  # a term is affine in the scores
        rows = []
        for ranking in itertools.permutations(range(len(y))):
            value = case.term(y, zero, ranking)
            rows.append([value, *(case.term(y, one, ranking) - value for one in unit)])
        planes = np.unique(np.round(rows, 12), axis=0)
        constraints = [planes[:, 0] + planes[:, 1:] @ s <= xi]
        risk = xi
    weight = class_weights(losses, y > 0, None)
    hinges, logistic = cp.pos(1 - cp.multiply(sign, s)), cp.logistic(-cp.multiply(sign, s))
    base = losses.hinge * weight @ hinges + losses.logistic * weight @ logistic
    of_risk = oracle.n if losses.risk == "even" else losses.risk * oracle.price * oracle.n
    total = of_risk * risk + base
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + C * total), constraints)
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("losses", SUMS.values(), ids=list(SUMS))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_optimum_is_that_of_a_conic_solver(case, losses):
    ranks = isinstance(case, ranked.RankingCase | ranked.PartialCase)
    n = 6 if ranks else 8
    rng = np.random.default_rng(3)
    y = np.arange(n) < 3
    X = rng.normal(size=(n, 3)) + 0.7 * y[:, None]
    if ranks and case.graded:
        y = np.array([2, 1, 1, 0, 0, 0])
    C = 0.8
    expected = least(case, losses, X, y, C)
    oracle = losses.oracle(case.measure.oracle(y), y, None)
    design = as_design(X, intercept_scaling=1.0)
    weight = C * oracle.price * oracle.n
    (solution,) = run(design, [SOLVERS["auto"]().steps(oracle, design, weight, tol=1e-7)])
    assert solution.status.ok
    assert solution.bound <= expected * (1 + 1e-6)
    assert solution.objective >= expected * (1 - 1e-6)
    assert solution.objective - solution.bound <= 1e-7 * weight


@pytest.mark.parametrize("solver", ["auto", "bundle", "hybrid", "cutting_plane", "lbfgs", "agm"])
@pytest.mark.parametrize("losses", SUMS.values(), ids=list(SUMS))
@pytest.mark.parametrize("name", ["f1", "prbep", "roc_area"])
def test_every_solver_ends_at_the_optimum_of_weighted_examples(name, losses, solver):
    """Weights are repetitions: the conic solver has the repeated rows."""
    case = next(case for case in CASES if case.name == name)
    rng = np.random.default_rng(4)
    y, times = np.arange(6) < 2, np.array([2, 1, 1, 2, 1, 2])
    X = rng.normal(size=(6, 2)) + 0.7 * y[:, None]
    expected = least(case, losses, np.repeat(X, times, axis=0), np.repeat(y, times), 0.8)
    oracle = losses.oracle(case.measure.oracle(y, times.astype(float)), y, times.astype(float))
    design = as_design(X, intercept_scaling=1.0)
    weight, tol = 0.8 * oracle.price * oracle.n, 1e-5
    if solver in ("lbfgs", "agm") and losses == SUMS["hinge alone, balanced"]:  # error rates with fractional weights
        with pytest.raises(ValueError, match="no smoothed risk for this sample"):
            run(design, [SOLVERS[solver]().steps(oracle, design, weight, tol=tol)])
        return
    (solution,) = run(design, [SOLVERS[solver]().steps(oracle, design, weight, tol=tol)])
    assert solution.status.ok
    assert solution.bound <= expected * (1 + 1e-6)
    assert expected * (1 - 1e-6) <= solution.objective <= solution.bound + tol * weight * (1 + 1e-9)


@pytest.mark.parametrize("name", ["hybrid", "bundle", "cutting_plane", "auto"])
@pytest.mark.parametrize("losses", [Losses(hinge=2.0), Losses(logistic=1.0), Losses(risk=0.0, logistic=1.0)], ids=str)
def test_every_solver_of_cuts_takes_sums(name, losses):
    X, y = sample(2, n=60)
    given = {"risk": losses.risk, "hinge": losses.hinge, "logistic": losses.logistic}
    model = SVC("f1", C=0.1, solver=name, tol=1e-6, **given).fit(X, y)
    assert model.status_ is Status.CONVERGED
    w = np.append(model.coef_[0], model.trained_intercept_)
    scores = X @ w[:-1] + w[-1]
    own = model.price_ * len(y) * ref.risk_by_tables(next(c for c in ref.CASES if c.name == "f1"), y, scores)
    assert w @ w / 2 + 0.1 * written_out(losses, own, model.price_, y, scores) == pytest.approx(
        model.objective_, rel=1e-9
    )
    other = SVC("f1", C=0.1, tol=1e-6, **given).fit(X, y)
    assert model.dual_bound_ <= other.objective_ * (1 + 1e-12)


def regularised(X):
    """X with the constant feature, whose weight counts as the others do."""
    return np.hstack([X, np.ones((len(X), 1))])


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", ["f1", "roc_area"])
def test_the_logistic_loss_alone_is_logistic_regression(measure, balanced, weighted):
    X, y = sample(4, n=300)
    weight = np.random.default_rng(0).random(len(y)) if weighted else None
    model = SVC(measure, C=0.3, risk=0.0, logistic=1.0, balanced=balanced, tol=1e-12)
    model.fit(X, y, sample_weight=weight)
    losses = Losses(0.0, 0.0, 1.0, balanced)
    other = LogisticRegression(C=0.3, fit_intercept=False, tol=1e-10, max_iter=10_000)
    other.fit(regularised(X), y, sample_weight=class_weights(losses, y, weight))
    np.testing.assert_allclose(np.append(model.coef_, model.trained_intercept_), other.coef_[0], atol=1e-5)


@pytest.mark.parametrize("balanced", [False, True])
def test_hinges_alone_are_the_plain_svm(balanced):
    X, y = sample(4, n=300)
    model = SVC("f1", C=0.1, risk=0.0, hinge=2.0, balanced=balanced, tol=1e-7).fit(X, y)
    other = LinearSVC(loss="hinge", C=0.2, tol=1e-8, max_iter=10**6, class_weight="balanced" if balanced else None)
    other.fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3)
    np.testing.assert_allclose(model.trained_intercept_, other.intercept_, atol=1e-3)


def equal_scores(losses, oracle, y, C):
    """The least J if all scores are equal."""

    def objective(c):
        scores = np.full(len(y), c)
        cut = oracle(scores)
        own = oracle.price * oracle.n * (cut.loss + cut.slope @ scores)
        return c * c / 2 + C * written_out(losses, own, oracle.price, y, scores)

    return minimize_scalar(objective, bounds=(-9, 9), method="bounded", options={"xatol": 1e-6}).fun


@pytest.mark.parametrize("name", ["f1", "prbep", "kappa", "roc_area"])
@pytest.mark.parametrize("losses", [Losses(hinge=1.0), Losses("even", 0.0, 1.0), Losses(0.0, 0.0, 1.0, True)], ids=str)
@pytest.mark.parametrize("tol", [1e-2, 1e-3])
def test_the_gap_is_small_against_what_was_gained_over_equal_scores(name, losses, tol):
    X, y = sample(9, n=1500, rate=0.03, shift=0.6)
    oracle = get_measure(name).oracle(y)
    given = {"risk": losses.risk, "hinge": losses.hinge, "logistic": losses.logistic, "balanced": losses.balanced}
    for C in (0.01, 1.0):
        model = SVC(name, C=C, tol=tol, **given).fit(X, y)
        assert model.status_.ok
        assert model.gap_ <= tol
        share = 0.5 if losses.balanced else y.mean()
        entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
        base = C * len(y) * (2 * losses.hinge * share + losses.logistic * entropy)
        gained = equal_scores(losses, oracle, y, C) - model.objective_
        assert model.objective_ - model.dual_bound_ <= tol * max(1.001 * gained, 0.0) + tol * tol * base
        exact = SVC(name, C=C, tol=1e-6, **given).fit(X, y)
        w, best = (np.append(one.coef_, one.trained_intercept_) for one in (model, exact))
        assert ((w - best) ** 2).sum() / 2 <= model.objective_ - exact.dual_bound_


def test_a_rare_class_is_learnt_by_the_logistic_loss_at_the_default_tolerance():
    X, y = sample(10, n=4000, rate=0.004, shift=0.7)
    model = SVC("f1", C=0.1, risk=0.0, logistic=1.0).fit(X, y)
    other = LogisticRegression(C=0.1, fit_intercept=False, tol=1e-10).fit(regularised(X), y)
    expected = other.coef_[0]
    off = np.append(model.coef_, model.trained_intercept_) - expected
    assert np.linalg.norm(off) < 0.02 * np.linalg.norm(expected)
    assert np.linalg.norm(off[:-1]) < 0.05 * np.linalg.norm(expected[:-1])


def test_with_the_error_rate_hinges_add_to_C():
    X, y = sample(3)
    one = SVC("error", C=0.5, hinge=1.0, solver="bundle", tol=1e-6).fit(X, y)
    other = SVC("error", C=1.0, solver="bundle", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=0.02)
    double = SVC("f1", C=0.5, risk=2.0, hinge=0.0, solver="bundle", tol=1e-6).fit(X, y)
    once = SVC("f1", C=1.0, hinge=0.0, solver="bundle", tol=1e-6).fit(X, y)
    assert double.objective_ == pytest.approx(once.objective_, rel=1e-5)


def test_sums_of_several_labels_and_sparse_rows_are_those_of_one():
    X, y = sample(5, n=200)
    Y = np.column_stack([y, X[:, 0] > 0.5]).astype(int)
    several = SVC("f1", C=0.3, logistic=1.0, tol=1e-6).fit(sparse.csr_array(X.astype(np.float32)), Y)
    for k in range(2):
        one = SVC("f1", C=0.3, logistic=1.0, tol=1e-6).fit(X.astype(np.float32), Y[:, k])
        assert several.objective_[k] == pytest.approx(one.objective_, rel=1e-5)


def test_weights_are_repetitions_in_every_part():
    X, y = sample(6, n=60)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    given = {"C": 0.3, "hinge": 0.5, "logistic": 1.0, "balanced": True, "tol": 1e-7}
    weighted = SVC("f1", **given).fit(X, y, sample_weight=times.astype(float))
    copies = SVC("f1", **given).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.objective_ == pytest.approx(copies.objective_, rel=1e-6)


def test_groups_have_sums_too():
    _, y = sample(7, n=120)
    grouped = Grouped(get_measure("average_precision"), np.arange(len(y)) % 5)
    oracle = grouped.oracle(y)
    both = Losses(logistic=0.5).oracle(oracle, y, None)
    scores = np.random.default_rng(0).normal(size=len(y))
    cut, own = both(scores), oracle(scores)
    of_risk = oracle.price * oracle.n * (own.loss + own.slope @ scores)
    expected = written_out(Losses(logistic=0.5), of_risk, oracle.price, y, scores)
    assert both.price * both.n * (cut.loss + cut.slope @ scores) == pytest.approx(expected)


def test_the_paper_stands_where_hinge_is_zero():
    X, y = sample(8)
    models = [
        SVC("f1", C=0.2, **given).fit(X, y) for given in ({"hinge": 0}, {"logistic": 0}, {"hinge": 0.0, "risk": 1})
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        gap = (model.objective_ - model.dual_bound_) / (0.2 * model.price_ * len(y))
        assert model.gap_ == models[0].gap_ == pytest.approx(gap)
    assert MeasureSVCCV("f1", logistic=1.0).plain().losses() == Losses(logistic=1.0)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"hinge": -1.0}, "finite hinge >= 0, got -1.0"),
        ({"logistic": np.nan}, "finite logistic >= 0, got nan"),
        ({"risk": "1"}, "finite risk >= 0 or even, got '1'"),
        ({"risk": 0.0, "hinge": 0.0}, "expected a loss to train"),
    ],
)
def test_wrong_weights_say_what_was_expected(wrong, says):
    X, y = sample()
    with pytest.raises(ValueError, match=says):
        SVC("f1", **wrong).fit(X, y)
