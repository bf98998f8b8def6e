"""What one round costs in communication, by number of rows, features and workers: three protocols, simulated.

python -m benchmarks.communication      # writes benchmarks/results/communication.csv and the tables of docs/scaling.md

The protocols run on generated scores split over the workers, message by message, and have to return what a single
machine returns; a message of b bytes takes ``latency + b / bandwidth``, a machine sends and receives one at a time, and
workers talk at the same time as others do. Where n is too large to generate, the number of exchanges is that of the
largest run (for the selection, and one more for every further factor of the number of bins).
"""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rows import write_rows

ROOT = Path(__file__).resolve().parents[1]
CSV = ROOT / "benchmarks" / "results" / "communication.csv"
PAGE = ROOT / "docs" / "scaling.md"
LATENCY, BANDWIDTH = 0.5e-3, 1.25e9  # 10 Gbit/s, half a millisecond
BINS = 4096
FEW = 10_000


class Network:
    """A driver and workers; counts bytes through the driver and the seconds of a round."""

    def __init__(self, workers: int) -> None:
        self.workers, self.seconds, self.through_driver, self.rounds = workers, 0.0, 0, 0

    def exchange(self, out: int, back: int) -> None:
        """The driver sends ``out`` bytes to each worker and receives ``back`` from all of them together."""
        size = out * self.workers + back
        self.through_driver += size
        self.seconds += 2 * LATENCY + size / BANDWIDTH
        self.rounds += 1

    def tree(self, size: int) -> None:
        """A vector of ``size`` bytes from the driver to all, or summed from all to the driver."""
        levels = max(1, math.ceil(math.log2(self.workers + 1)))
        self.through_driver += size  # one child talks to the driver
        self.seconds += levels * (LATENCY + size / BANDWIDTH)


def gathered(parts: list[np.ndarray], k: int, network: Network) -> float:
    """The k-th highest score by bringing all scores to the driver: what the library does."""
    network.exchange(0, 8 * sum(map(len, parts)))
    return float(np.partition(np.concatenate(parts), -k)[-k])


def selected(parts: list[np.ndarray], k: int, network: Network) -> float:
    """The same by histograms: each round every worker counts its candidates in bins; the driver keeps one bin."""
    low, high = min(part.min() for part in parts), max(part.max() for part in parts)
    network.exchange(8, 16 * network.workers)
    above = 0
    while True:
        edges = np.linspace(low, high, BINS + 1)
        inside = [part[(part >= low) & (part <= high)] for part in parts]
        counts = sum(np.histogram(part, edges)[0] for part in inside)
        network.exchange(16, 4 * BINS * network.workers)
        from_top = above + np.cumsum(counts[::-1])
        bin_ = BINS - 1 - int(np.searchsorted(from_top, k))
        above = int(from_top[BINS - 1 - bin_] - counts[bin_])
        low, high = edges[bin_], edges[bin_ + 1]
        if counts[bin_] <= FEW or low >= high:
            left = np.concatenate([part[(part >= low) & (part <= high)] for part in parts])
            network.exchange(16, 8 * len(left))
            return float(np.partition(left, -(k - above))[-(k - above)])


def summed(parts: list[np.ndarray], k: int, network: Network) -> float:
    """The multiplier of a smoothed measure at k, ``sum_i clip((s_i - nu)/mu, 0, 1) = k``, by sums alone (bisection)."""
    mu = 0.05
    low, high = min(part.min() for part in parts) - mu, max(part.max() for part in parts)
    network.exchange(8, 16 * network.workers)
    while high - low > 1e-9 * max(abs(low), abs(high), 1e-300):
        tries = np.linspace(low, high, 66)[1:-1]  # 64 at a time: a round is latency, not bytes
        sums = sum(np.array([np.clip((part - nu) / mu, 0, 1).sum() for nu in tries]) for part in parts)
        network.exchange(8 * 64, 8 * 64 * network.workers)
        enough = np.flatnonzero(sums >= k)
        low, high = (
            (low if not len(enough) else tries[enough[-1]]),
            (high if len(enough) == 64 else tries[len(enough)]),
        )
    return (low + high) / 2


PROTOCOLS = {"all scores": gathered, "selection": selected, "sums": summed}


def simulate(n: int, workers: int, seed: int = 0) -> list[dict[str, Any]]:
    """The oracle's part of a round, by every protocol, on n generated scores."""
    rng = np.random.default_rng(seed)
    scores = np.concatenate([rng.normal(size=n - n // 20), rng.normal(2.0, 1.0, size=n // 20)])
    rng.shuffle(scores)
    parts, k = np.array_split(scores, workers), n // 20
    rows, answers = [], {}
    for name, protocol in PROTOCOLS.items():
        network = Network(workers)
        answers[name] = protocol(parts, k, network)
        rows.append(
            {
                "n": n,
                "workers": workers,
                "protocol": name,
                "rounds": network.rounds,
                "driver_bytes": network.through_driver,
                "seconds": network.seconds,
            }
        )
    if answers["selection"] != answers["all scores"]:
        raise RuntimeError("the selection did not find the k-th score")
    total = sum(np.clip((part - answers["sums"]) / 0.05, 0, 1).sum() for part in parts)
    if abs(total - k) > 1e-4 * k:
        raise RuntimeError("the sums did not find the multiplier")
    return rows


def whole_round(n: float, p: float, workers: int, rounds: dict[str, int]) -> list[dict[str, Any]]:
    """A round for any n: w out, the oracle's part, X' slope back; memory on the driver."""
    rows = []
    for name in PROTOCOLS:
        network = Network(workers)
        network.tree(int(8 * p))
        if name == "all scores":
            network.exchange(0, int(8 * n))
            network.exchange(0, int(8 * n))  # the slope goes out again
        else:
            size = 4 * BINS if name == "selection" else 8 * 64
            more = math.ceil(math.log(max(1.0, n / 1e6), BINS)) if name == "selection" else 0  # bins of bins
            for _ in range(rounds[name] + more):
                network.exchange(16, size * workers)
        network.tree(int(8 * p))
        rows.append(
            {
                "n": n,
                "p": p,
                "workers": workers,
                "protocol": name,
                "driver_bytes": network.through_driver,
                "seconds": network.seconds,
                "driver_memory": 8 * (16 * n if name == "all scores" else 0) + 8 * 40 * p,
                "compute": 2 * n * 60 / 4e8 / workers,
            }
        )
    return rows


def tables(small: list[dict[str, Any]], large: list[dict[str, Any]]) -> str:
    lines = [
        "| rows | workers | protocol | exchanges | bytes through the driver | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for row in small:
        lines.append(
            f"| 10^{math.log10(row['n']):.0f} | {row['workers']} | {row['protocol']} | {row['rounds']} "
            f"| {row['driver_bytes']:,} | {row['seconds']:.4f} |"
        )
    lines += [
        "",
        "| rows | features | workers | protocol | GB through the driver | communication s | products s | driver GB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in large:
        lines.append(
            f"| 10^{math.log10(row['n']):.0f} | 10^{math.log10(row['p']):.0f} | {row['workers']} | {row['protocol']} "
            f"| {row['driver_bytes'] / 1e9:.3g} | {row['seconds']:.3g} | {row['compute']:.3g} "
            f"| {row['driver_memory'] / 1e9:.3g} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=float, default=1e6, help="number of scores generated at most")
    options = parser.parse_args()
    sizes = [int(n) for n in (1e4, 1e5, 1e6, 1e7) if n <= options.largest]
    small = [row for n in sizes for workers in (4, 64) for row in simulate(n, workers)]
    rounds = {name: max(row["rounds"] for row in small if row["protocol"] == name) for name in PROTOCOLS}
    large = [
        row
        for n, p, workers in ((1e6, 1e4, 4), (1e8, 1e4, 16), (1e9, 1e6, 64), (1e10, 1e6, 256))
        for row in whole_round(n, p, workers, rounds)
    ]
    write_rows(CSV, small + large)
    marks = r"(<!-- communication -->\n).*?(<!-- end -->)"
    text = PAGE.read_text()
    PAGE.write_text(re.sub(marks, lambda m: m[1] + tables(small, large) + "\n" + m[2], text, flags=re.S))


if __name__ == "__main__":
    main()
