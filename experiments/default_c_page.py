"""The page of `experiments.default_c`: docs/results/default_c.md."""

from __future__ import annotations

import numpy as np

from experiments.harness import Options, Row, Table, markdown, select, write
from metrimax import MeasureSVC

TITLES = {
    "webkb": "WebKB, 4 classes",
    "ohsumed": "Ohsumed, 5 categories",
    "20news": "20 Newsgroups, 20 groups",
    "sector": "Sector, every fifth class",
    "usps": "USPS, 10 digits",
    "imbalanced": "imbalanced sets, development half",
    "digits": "digits of scikit-learn",
    "reuters": "Reuters, 90 categories (held-out third)",
    "optdigits": "Optdigits, 10 classes (held-out third)",
}
MEASURES = {"f1": "F1", "prbep": "PRBEP", "roc_area": "ROC area", "error": "accuracy"}
Curve = dict[float, float]  #: percent by C


def curves(rows: list[Row], measure: str) -> dict[str, Curve]:
    """For every collection the mean over its folds, by C."""
    found: dict[str, Curve] = {}
    for data in TITLES:
        by_C: dict[float, list[float]] = {}
        for row in select(rows, data=data, measure=measure):
            by_C.setdefault(float(row["C"]), []).append(100 * float(row["value"]))
        if by_C:
            found[data] = {C: float(np.mean(values)) for C, values in sorted(by_C.items())}
    return found


def losses(found: dict[str, Curve], grid: list[float]) -> Curve:
    """By C, the points lost to the best C of each collection, averaged over collections."""
    return {C: float(np.mean([max(own[c] for c in grid) - own[C] for own in found.values()])) for C in grid}


def page(rows: list[Row], options: Options) -> None:
    grid = sorted({float(row["C"]) for row in rows})
    counts = sorted(len({row["seed"] for row in select(rows, data=data)}) for data in {row["data"] for row in rows})
    folds = f"{counts[0]} of 3" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]} of 3"
    held = select(Table(options.out / "joachims2005.csv").rows, protocol="held-out part")
    rows = rows + [row for row in held if row["data"] in TITLES and float(row["C"]) in grid]
    default, parts, lost = MeasureSVC().C, [], {}
    for measure, title in MEASURES.items():
        found = curves(rows, measure)
        if not found:
            continue
        lost[title] = losses(found, grid)
        lines = [[TITLES[data], *(_marked(own, C, grid) for C in grid)] for data, own in found.items()]
        lines.append(["points lost to the best C, mean", *(f"{lost[title][C]:.2f}" for C in grid)])
        parts.append(f"## {title}\n\n{markdown(['collection', *(f'C = {C:g}' for C in grid)], lines)}")
    mean = {C: float(np.mean([own[C] for own in lost.values()])) for C in grid}
    table = markdown(
        ["points lost", *(f"C = {C:g}" for C in grid)],
        [[title, *(f"{own[C]:.2f}" for C in grid)] for title, own in lost.items()]
        + [["all four", *(f"{mean[C]:.2f}" for C in grid)]],
    )
    least = min(grid, key=lambda C: mean[C])
    said = f"The least loss over all measures is at C = {least:g} ({mean[least]:.2f} points); the default is "
    said += f"{default:g} ({mean[default]:.2f}); with C = 1 it would be {mean[1.0]:.2f}."
    write(options.pages / "default_c.md", "\n".join([INTRODUCTION.format(folds=folds), table, said, "", *parts]))


def _marked(own: Curve, C: float, grid: list[float]) -> str:
    best = max(own[c] for c in grid)
    return f"**{own[C]:.1f}**" if own[C] == best else f"{own[C]:.1f}"


INTRODUCTION = """# The default C

Made by `python -m experiments default_c --data DIR`; the numbers are in
[default_c.csv](../../experiments/results/default_c.csv).

`MeasureSVC` comes with one C for all measures, a plain number. Which one, is asked of training examples alone:
cross-validation (folds computed: {folds}) on WebKB and Ohsumed, on the training parts of 20 Newsgroups, Sector
and USPS, and on the development half of the [imbalanced sets](imbalanced.md); beside them what
[Joachims' protocol](joachims2005.md) found on the held-out third of the training parts of Reuters and Optdigits. One
class against the rest, macro-averages in percent, all other settings as they come. Test figures of Reuters with C = 1
and C = 4 had been seen before this was run; they are not used here.

Whoever has the time takes `MeasureSVCCV`: the best C differs between collections by more than any default can cover.
Text of unit length wants it larger for F1, where a small C leaves the threshold off; dense features, and rankings, want
it smaller.
"""
