"""The smoothed risk of measures by count in NumPy, slow and obvious: the standard of the compiled one."""

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
    values, losses, slopes = [], [], []
    for lo, hi, u_least, v_least in pieces:
        centre = (lo + hi) / 2 / n
        q = 2 * quadratic / max(max(lo * (1 - 2 * centre), hi * (1 - 2 * centre)) + n * centre**2, 0.5)
        merit = scores / n + v_least * y

        def called(multiplier, merit=merit, q=q, centre=centre):
            return np.clip(centre + (merit - multiplier) / q, 0, 1)

        low = high = 0.0
        if not lo <= called(0.0).sum() <= hi:
            target = lo if called(0.0).sum() < lo else hi
            reach = np.abs(merit).max() + q
            low, high = -reach, reach  # where all are called positive, and none
            for _ in range(200):
                middle = (low + high) / 2
                low, high = (middle, high) if called(middle).sum() > target else (low, middle)
        share = called((low + high) / 2)
        losses.append(u_least + v_least * share[y].sum())
        slopes.append((share - y) / n)
        values.append(losses[-1] + slopes[-1] @ scores - q / 2 * ((share - centre) ** 2).sum())
    values = np.array(values)
    if len(pieces) == 1:
        return values[0], losses[0], slopes[0]
    T = entropy / np.log(len(pieces))
    pi = np.exp((values - values.max()) / T)
    value = values.max() + T * np.log(pi.sum()) - entropy
    pi /= pi.sum()
    return value, pi @ np.array(losses), pi @ np.array(slopes)
