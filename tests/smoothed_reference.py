"""Smoothed risks in NumPy, slow and obvious: the standard of the compiled ones."""

from __future__ import annotations

import numpy as np


def count_pieces(u, v, m_low, n_pos, miss):
    """Ranges of m, as long as the least u and the least v of each miss no more than that: lo, hi, u and v."""
    first = 0
    while first < len(u):
        end = first + 1
        while end < len(u):
            us, vs = u[first : end + 1], v[first : end + 1]
            if np.ptp(us) + np.ptp(vs) * min(m_low + end, n_pos) > miss:
                break
            end += 1
        yield m_low + first, m_low + end - 1, u[first:end].min(), v[first:end].min()
        first = end


def smoothed_count_risk(y, scores, u, v, m_low, mu):
    """The smoothed risk of ``D = u[m] + v[m] tp``: every piece by bisection, then the entropy over the pieces."""
    n, n_pos = len(y), int(y.sum())
    pieces = list(count_pieces(u, v, m_low, n_pos, 0.2 * mu))
    quadratic, entropy = (0.5 * mu, 0.3 * mu) if len(pieces) > 1 else (0.8 * mu, 0.0)
    mixture = []
    for lo, hi, u_least, v_least in pieces:
        centre = (lo + hi) / 2 / n
        q = 2 * quadratic / max(max(lo * (1 - 2 * centre), hi * (1 - 2 * centre)) + n * centre**2, 0.5)
        merit = scores / n + v_least * y

        def called(multiplier, merit=merit, q=q, centre=centre):
            return np.clip(centre + (merit - multiplier) / q, 0, 1)

        multiplier = 0.0
        if not lo <= called(0.0).sum() <= hi:
            target = lo if called(0.0).sum() < lo else hi
            multiplier = bisect(lambda at: called(at).sum(), target, np.abs(merit).max() + q)
        share = called(multiplier)
        loss, slope = u_least + v_least * share[y].sum(), (share - y) / n
        mixture.append((loss + slope @ scores - q / 2 * ((share - centre) ** 2).sum(), loss, slope))
    return mixed(mixture, entropy)


def bisect(total, target, reach):
    """Where a total that falls with its argument, from -reach to reach, is at a target."""
    low, high = -reach, reach
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if total(middle) > target else (low, middle)
    return (low + high) / 2


def mixed(pieces, entropy):
    """The entropy over pieces, each with value, loss and slope."""
    values, losses, slopes = (np.array(one) for one in zip(*pieces, strict=True))
    if len(values) == 1:
        return values[0], losses[0], slopes[0]
    T = entropy / np.log(len(values))
    pi = np.exp((values - values.max()) / T)
    value = values.max() + T * np.log(pi.sum()) - entropy
    pi /= pi.sum()
    return value, pi @ losses, pi @ slopes


def smoothed_row_risk(y, scores, rise, g, mu):
    """The smoothed risk of ``D = 1 - g[j] (1 - rise fn)`` for j false positives, g falling."""
    n, n_pos, n_neg = len(y), int(y.sum()), int((~y).sum())
    cost = np.where(y, scores, -scores) / n
    ranges, first = [], 0
    for j in range(1, len(g) + 1):
        if j == len(g) or g[first] - g[j] > 0.2 * mu:
            ranges.append((first, j - 1, g[first]))
            first = j
    quadratic, entropy = (0.5 * mu, 0.3 * mu) if len(ranges) > 1 else (0.8 * mu, 0.0)
    pieces = []
    for lo, hi, top in ranges:
        centre = (lo + hi) / 2 / n_neg
        reach = n_pos / 4 + max(lo * (1 - 2 * centre), hi * (1 - 2 * centre)) + n_neg * centre**2
        q = 2 * quadratic / max(reach, 0.5)
        free = np.where(y, 0.5 + (top * rise - cost) / q, centre - cost / q)

        def wrong(multiplier, free=free, q=q):
            return np.clip(free[~y] - multiplier / q, 0, 1).sum()

        multiplier = 0.0
        if not lo <= wrong(0.0) <= hi:
            target = lo if wrong(0.0) < lo else hi
            multiplier = bisect(wrong, target, 2 * (np.abs(cost).max() + q))
        share = np.clip(free - ~y * multiplier / q, 0, 1)
        loss = 1 - top * (1 - rise * share[y].sum())
        prox = q / 2 * ((share - np.where(y, 0.5, centre)) ** 2).sum()
        pieces.append((loss - share @ cost - prox, loss, np.where(y, -share, share) / n))
    return mixed(pieces, entropy)


def smoothed_plane_risk(y, scores, planes, mu):
    """The smoothed risk of the highest of planes ``c - a tp - b tn``."""
    n, n_pos, n_neg = len(y), int(y.sum()), int((~y).sum())
    cost = np.where(y, scores, -scores) / n
    a, b = (np.sort(one)[len(one) // 2] for one in planes[1:])
    a, b = max(a, 1e-3 * b), max(b, 1e-3 * a)
    q = 4 * mu / (a * n_pos + b * n_neg) * np.where(y, a, b)
    pieces = []
    for c_k, a_k, b_k in zip(*planes, strict=True):
        share = np.clip(0.5 + (np.where(y, a_k, b_k) - cost) / q, 0, 1)
        loss = c_k - a_k * (1 - share[y]).sum() - b_k * (1 - share[~y]).sum()
        prox = (q / 2 * (share - 0.5) ** 2).sum()
        pieces.append((loss - share @ cost - prox, loss, np.where(y, -share, share) / n))
    return mixed(pieces, 0.4 * mu)
