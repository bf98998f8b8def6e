"""Plain NumPy and Python versions of what the library computes: slow, obvious, and the gold standard of the tests."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from metrimax.measure import (
    REGISTRY,
    CostModel,
    FBeta,
    PrecisionAtK,
    PrecisionAtRecall,
    QMeasure,
    RecallAtK,
    RecallAtPrecision,
    TableFunction,
    TPRAtFPR,
    get_measure,
)

# --- measures: D of one table, written from the definitions, in scalars


def f_beta(beta: float) -> Callable[..., float]:
    def loss(tp: float, fp: float, fn: float, tn: float) -> float:
        if fp == fn == 0:
            return 0.0
        if tp == 0:
            return 1.0
        precision, recall = tp / (tp + fp), tp / (tp + fn)
        return 1 - 1 / (1 / (1 + beta**2) / precision + beta**2 / (1 + beta**2) / recall)

    return loss


def error(tp: float, fp: float, fn: float, tn: float) -> float:
    return 1 - (tp + tn) / (tp + fp + fn + tn)


def cost(c_fn: float, c_fp: float) -> Callable[..., float]:
    def loss(tp: float, fp: float, fn: float, tn: float) -> float:
        return (c_fn * fn + c_fp * fp) / (c_fn * (tp + fn) + c_fp * (fp + tn))

    return loss


def balanced_error(tp: float, fp: float, fn: float, tn: float) -> float:
    return 1 - (tp / (tp + fn) + tn / (tn + fp)) / 2


def jaccard(tp: float, fp: float, fn: float, tn: float) -> float:
    return (fp + fn) / (tp + fp + fn)


def gmean(tp: float, fp: float, fn: float, tn: float) -> float:
    return 1 - math.sqrt(tp / (tp + fn) * tn / (tn + fp))


def qmean(tp: float, fp: float, fn: float, tn: float) -> float:
    return math.sqrt(((fn / (tp + fn)) ** 2 + (fp / (fp + tn)) ** 2) / 2)


def min_tpr_tnr(tp: float, fp: float, fn: float, tn: float) -> float:
    return 1 - min(tp / (tp + fn), tn / (tn + fp))


def cohen_kappa(tp: float, fp: float, fn: float, tn: float) -> float:
    n = tp + fp + fn + tn
    observed = (tp + tn) / n
    expected = (tp + fn) / n * (tp + fp) / n + (fp + tn) / n * (fn + tn) / n
    return (1 - (observed - expected) / (1 - expected)) / 2


def mcc(tp: float, fp: float, fn: float, tn: float) -> float:
    margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return 0.5 if margins == 0 else (1 - (tp * tn - fp * fn) / math.sqrt(margins)) / 2


def prbep(tp: float, fp: float, fn: float, tn: float) -> float:
    return 1 - tp / (tp + fn)


def precision_loss(tp: float, fp: float, fn: float, tn: float) -> float:
    return 1.0 if tp + fp == 0 else fp / (tp + fp)


def recall_at(k: Callable[[float], float]) -> Callable[..., float]:
    def loss(tp: float, fp: float, fn: float, tn: float) -> float:
        most = min(k(tp + fn), tp + fn)
        return 1 - min(tp, most) / most

    return loss


def plain_recall(tp: float, fp: float, fn: float, tn: float) -> float:
    return fn / (tp + fn)


def recall_if_precision(least: float) -> Callable[..., float]:
    def loss(tp: float, fp: float, fn: float, tn: float) -> float:
        return 1.0 if tp + fp == 0 or tp / (tp + fp) < least - 1e-9 else fn / (tp + fn)

    return loss


def precision_if_recall(least: float) -> Callable[..., float]:
    def loss(tp: float, fp: float, fn: float, tn: float) -> float:
        return 1.0 if tp / (tp + fn) < least - 1e-9 else fp / (tp + fp)

    return loss


def tpr_if_fpr(most: float) -> Callable[..., float]:
    def loss(tp: float, fp: float, fn: float, tn: float) -> float:
        return 1.0 if fp / (fp + tn) > most + 1e-9 else fn / (tp + fn)

    return loss


def ae(tp: float, fp: float, fn: float, tn: float) -> float:
    n = tp + fp + fn + tn
    return abs((tp + fp) / n - (tp + fn) / n)


def rae(tp: float, fp: float, fn: float, tn: float) -> float:
    def value(d: float) -> float:
        return (d / (tp + fn + 0.5) + d / (fp + tn + 0.5)) / 2

    return value(abs(fp - fn)) / value(max(tp + fn, fp + tn))


def _kld(n_pos: float, n_neg: float, predicted: float) -> float:
    n = n_pos + n_neg
    p, q = (n_pos + 0.5) / (n + 1), (n_neg + 0.5) / (n + 1)
    return p * math.log(p / ((predicted + 0.5) / (n + 1))) + q * math.log(q / ((n - predicted + 0.5) / (n + 1)))


def kld(tp: float, fp: float, fn: float, tn: float) -> float:
    n_pos, n_neg = tp + fn, fp + tn
    return _kld(n_pos, n_neg, tp + fp) / max(_kld(n_pos, n_neg, m) for m in (0, n_pos + n_neg))


def nkld(tp: float, fp: float, fn: float, tn: float) -> float:
    return 1 - 2 / (1 + math.exp(_kld(tp + fn, fp + tn, tp + fp)))


def q_beta(beta: float) -> Callable[..., float]:
    def loss(tp: float, fp: float, fn: float, tn: float) -> float:
        g = 1 - abs(fp - fn) / max(tp + fn, fp + tn)
        m = tp / (tp + fn)
        return 1.0 if g == 0 and m == 0 else 1 - (1 + beta**2) * g * m / (beta**2 * m + g)

    return loss


class Case(NamedTuple):
    """A measure and what it should be: its loss, and which tables are admissible for n+ and n-."""

    name: str
    measure: object
    loss: Callable[..., float]
    admissible: Callable[..., bool] = lambda tp, fp, fn, tn: True
    reported: Callable[[float], float] = lambda d: 1 - d  # the score from the loss

    @property
    def top(self) -> bool:
        """Whether only labellings with a given number of positives count."""
        return isinstance(self.measure, tuple(REGISTRY[n] for n in ("prbep", "precision_at_k", "recall_at_k")))


# --- users' functions


def wavy(tp, fp, fn, tn):
    """A loss without any structure: neither Monge nor linear in tp for a given number of positives."""
    i, j = fn / (fn + tp), fp / (fp + tn)
    return np.clip(0.5 * (i + j) * (1 + 0.4 * np.sin(9 * i + 3) * np.cos(7 * j)) * (1 - 0.3 * i * j), 0, 1)


def bumpy(tp, fp, fn, tn):
    """A score that turns Monge and its opposite: the product of both rates, raised."""
    return 1 - (fn / (fn + tp)) * (fp / (fp + tn)) * 0.5 - 0.5 * np.maximum(fn / (fn + tp), fp / (fp + tn)) ** 3


def monge_only(tp, fp, fn, tn):
    """A loss that is Monge and nothing more special."""
    i, j = fn / (fn + tp), fp / (fp + tn)
    return ((i + j + i**2) / 3) ** 0.6


def user_f1(tp, fp, fn, tn):
    return np.where(tp > 0, 2 * tp / np.maximum(2 * tp + fp + fn, 1e-300), 0.0)


def few_positives(tp, fp, fn, tn):
    return tp + fp <= tp + fn  # no more called positive than there are


def _is(function: Callable[[float], float]) -> Callable[..., bool]:
    return lambda tp, fp, fn, tn: tp + fp == function(tp + fn)


CORRELATION = {"reported": lambda d: 1 - 2 * d}
CASES = [
    Case("error", get_measure("error"), error),
    Case("cost", get_measure("cost"), error),
    Case("cost_5_1", CostModel(5, 1), cost(5, 1)),
    Case("cost_0_1", CostModel(0, 1), cost(0, 1)),
    Case("balanced_error", get_measure("balanced_error"), balanced_error),
    Case("fbeta", get_measure("fbeta"), f_beta(1)),
    Case("f1", get_measure("f1"), f_beta(1)),
    Case("f0.5", FBeta(0.5), f_beta(0.5)),
    Case("f2", FBeta(2), f_beta(2)),
    Case("f10", FBeta(10), f_beta(10)),
    Case("jaccard", get_measure("jaccard"), jaccard),
    Case("gmean", get_measure("gmean"), gmean),
    Case("qmean", get_measure("qmean"), qmean),
    Case("kappa", get_measure("kappa"), cohen_kappa, **CORRELATION),
    Case("mcc", get_measure("mcc"), mcc, **CORRELATION),
    Case("min_tpr_tnr", get_measure("min_tpr_tnr"), min_tpr_tnr),
    Case("prbep", get_measure("prbep"), prbep, _is(lambda p: p)),
    Case("precision_at_k", get_measure("precision_at_k"), precision_loss, _is(lambda p: p)),
    Case("precision_at_2", PrecisionAtK(2), precision_loss, _is(lambda p: 2)),
    Case("precision_at_half", PrecisionAtK("0.5p"), precision_loss, _is(lambda p: max(1, p // 2))),
    Case("precision_at_least_1", PrecisionAtK(1, "at_least"), precision_loss, lambda tp, fp, fn, tn: tp + fp >= 1),
    Case("precision_at_most_2", PrecisionAtK(2, "at_most"), precision_loss, lambda tp, fp, fn, tn: tp + fp <= 2),
    Case("recall_at_1", RecallAtK(1), recall_at(lambda p: 1), _is(lambda p: 1)),
    Case("recall_at_2", RecallAtK(2), recall_at(lambda p: 2), _is(lambda p: 2)),
    Case(
        "recall_at_k",
        get_measure("recall_at_k"),
        recall_at(lambda p: 2 * p),
        lambda tp, fp, fn, tn: tp + fp == min(2 * (tp + fn), tp + fp + fn + tn),
    ),
    Case(
        "recall_at_most_2p",
        RecallAtK("2p", "at_most"),
        recall_at(lambda p: 2 * p),
        lambda tp, fp, fn, tn: tp + fp <= 2 * (tp + fn),
    ),
    Case("recall_at_least_2", RecallAtK(2, "at_least"), recall_at(lambda p: 2), lambda tp, fp, fn, tn: tp + fp >= 2),
    Case("plain_recall_at_1", RecallAtK(1, denominator="positives"), plain_recall, _is(lambda p: 1)),
    Case("plain_recall_at_2", RecallAtK(2, denominator="positives"), plain_recall, _is(lambda p: 2)),
    Case(
        "plain_recall_at_most_1",
        RecallAtK(1, "at_most", "positives"),
        plain_recall,
        lambda tp, fp, fn, tn: tp + fp <= 1,
    ),
    Case(
        "plain_recall_at_least_1",
        RecallAtK(1, "at_least", "positives"),
        plain_recall,
        lambda tp, fp, fn, tn: tp + fp >= 1,
    ),
    Case("recall_at_precision", get_measure("recall_at_precision"), recall_if_precision(0.9)),
    Case("recall_at_precision_0.5", RecallAtPrecision(0.5), recall_if_precision(0.5)),
    Case("recall_at_precision_2/3", get_measure("recall@precision=0.6667"), recall_if_precision(0.6667)),
    Case("precision_at_recall", get_measure("precision_at_recall"), precision_if_recall(0.9)),
    Case("precision_at_recall_0.5", PrecisionAtRecall(0.5), precision_if_recall(0.5)),
    Case("tpr_at_fpr", get_measure("tpr_at_fpr"), tpr_if_fpr(0.01)),
    Case("tpr_at_fpr_0.4", TPRAtFPR(0.4), tpr_if_fpr(0.4)),
    Case("ae", get_measure("ae"), ae),
    Case("rae", get_measure("rae"), rae),
    Case("kld", get_measure("kld"), kld),
    Case("nkld", get_measure("nkld"), nkld),
    Case("q", get_measure("q"), q_beta(1)),
    Case("q2", QMeasure(2), q_beta(2)),
    Case("user_wavy", TableFunction(wavy), wavy),
    Case("user_bumpy", get_measure(bumpy), lambda *t: 1 - bumpy(*t)),
    Case("user_monge", get_measure(monge_only), monge_only),
    Case("user_f1", get_measure(user_f1), f_beta(1)),
    Case("user_where", TableFunction(user_f1, where=few_positives), f_beta(1), few_positives),
]


@lru_cache(maxsize=400)
def loss_table(name: str, n_pos: int, n_neg: int) -> np.ndarray:
    """D of every table, (n+ + 1, n- + 1), rows by fn and columns by fp; -inf where it is not admissible."""
    case = next(c for c in CASES if c.name == name)
    table = np.full((n_pos + 1, n_neg + 1), -np.inf)
    for i in range(n_pos + 1):
        for j in range(n_neg + 1):
            cells = float(n_pos - i), float(j), float(i), float(n_neg - j)
            if case.admissible(*cells):
                table[i, j] = case.loss(*cells)
    return table


# --- the risk (SPEC: R(w) = max(0, max over z of D(z) + 1/(2n) sum of s_i (z_i - y_i)))


@lru_cache
def labellings(n: int) -> np.ndarray:
    """All 2^n labellings, one per row."""
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)


def labelling_losses(case: Case, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All admissible labellings and their losses."""
    Z = labellings(len(y))
    fn, fp = (~Z & y).sum(axis=1), (Z & ~y).sum(axis=1)
    losses = loss_table(case.name, int(y.sum()), int((~y).sum()))[fn, fp]
    return Z[losses > -np.inf], losses[losses > -np.inf]


def risk_by_labellings(case: Case, y: np.ndarray, scores: np.ndarray) -> float:
    """R over all 2^n labellings."""
    Z, losses = labelling_losses(case, y)
    signs = 2.0 * Z - 1 - (2.0 * y - 1)
    return max(0.0, float((losses + signs @ scores / (2 * len(y))).max(initial=0.0)))


def risk_by_tables(case: Case, y: np.ndarray, scores: np.ndarray) -> float:
    """R over all tables: for a given one, the lowest positives and the highest negatives flip."""
    n = len(y)
    P = np.concatenate(([0.0], np.cumsum(-np.sort(scores[y]) / n)))
    N = np.concatenate(([0.0], np.cumsum(np.sort(scores[~y])[::-1] / n)))
    return max(0.0, float((loss_table(case.name, len(P) - 1, len(N) - 1) + P[:, None] + N).max()))


def roc_risk(y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The mean hinge over all pairs of a positive and a negative."""
    weight = np.ones(len(y)) if weight is None else weight
    hinge = np.maximum(0, 1 - (scores[y][:, None] - scores[~y][None, :]))
    pairs = weight[y][:, None] * weight[~y][None, :]
    return float((hinge * pairs).sum() / pairs.sum())


def fits(case: Case, n_pos: int, n_neg: int) -> bool:
    """Whether the measure is defined on such a sample (a number k may ask for more examples than there are)."""
    k = getattr(case.measure, "k", 0) if case.top else 0
    return isinstance(k, str) or k <= n_pos + n_neg


# --- products


def matvec(X, w):
    """``X w`` for a dense X; w may be (p,) or (p, L)."""
    return np.asarray(X, dtype=np.float64) @ w


def rmatvec(X, slope):
    """``X' slope`` for a dense X; slope may be (n,) or (n, L)."""
    return np.asarray(X, dtype=np.float64).T @ slope


def with_intercept(X, value):
    """X with a last column that is ``value`` throughout."""
    return np.hstack([X, np.full((len(X), 1), value, dtype=X.dtype)])


def csr_is_sound(indices, indptr, n_cols):
    """Whether a CSR structure can be read without leaving its arrays."""
    return (
        len(indptr) > 0
        and indptr[0] == 0
        and indptr[-1] == len(indices)
        and all(a <= b for a, b in itertools.pairwise(indptr))
        and all(0 <= j < n_cols for j in indices)
    )
