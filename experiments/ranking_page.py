"""The page of `experiments.ranking`, from its rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.harness import Options, Row, markdown, select, write
from experiments.stats import compare

NAMES = {
    "ndcg": "NDCG@10 trained",
    "ndcg of all ranks": "NDCG of all ranks trained",
    "average_precision": "AP trained",
    "roc_area": "ROC area trained",
    "MeasureRankerCV": "`MeasureRankerCV`",
    "lambdarank": "LightGBM, lambdarank",
}
RARE_METHODS = {
    "average_precision": "AP trained",
    "roc_area": "ROC area trained",
    "roc_area to 1e-5": "ROC area trained to a gap of 1e-5",
}
TITLES = {
    "rank_lightgbm": "LightGBM's example",
    "rank_mq2008_fold1test": "MQ2008",
    "rank_ohsumed_letor3_fold1test": "OHSUMED",
    "generated": "generated",
}


def page(rows: list[Row], options: Options) -> None:
    """Write ranking.md."""
    text = HEAD
    for measure in ("NDCG@10", "AP"):
        text += f"\n### {measure}\n\n" + _queries(rows, measure)
    text += AFTER_QUERIES + BASE + _held_out(rows) + AFTER_BASE
    if any(select(rows, protocol="rare")):
        text += RARE + _rare(rows) + _verdict(rows)
    write(options.pages / "ranking.md", text)


def _values(rows: list[Row], **key: object) -> Sequence[float]:
    return [float(row["value"]) for row in select(rows, **key)]


def _held_out(rows: list[Row]) -> str:
    names = ("risk alone", "risk and logistic", "logistic alone")
    table = []
    for data, title in TITLES.items():
        for measure in ("NDCG@10", "AP"):
            own = list(select(rows, method="MeasureRankerCV", data=data, measure=measure))
            if own:
                table.append([title, measure, *(f"{np.mean([float(row[name]) for row in own]):.4f}" for name in names)])
    return markdown(["queries", "measure", *names], table)


def _queries(rows: list[Row], measure: str) -> str:
    methods = [m for m in NAMES if any(select(rows, protocol="queries", method=m))]
    table = []
    for data in TITLES:
        means = []
        for method in methods:
            own = list(select(rows, protocol="queries", data=data, method=method, measure=measure))
            weights = [float(row["queries"]) for row in own]
            means.append(np.average([float(row["value"]) for row in own], weights=weights) if own else np.nan)
        if not np.isnan(means).all():
            best = np.nanmax(means)
            table.append([TITLES[data], *(f"**{m:.4f}**" if m == best else f"{m:.4f}" for m in means)])
    return markdown(["queries", *(NAMES[m] for m in methods)], table)


def _rare(rows: list[Row]) -> str:
    """One line per range of sizes: the measure after training for average precision, and for ROC area to both gaps."""
    methods = [m for m in RARE_METHODS if any(select(rows, protocol="rare", method=m))]
    text = ""
    for measure in ("AP", "ROC area"):
        table = []
        for low, high in ((5, 100), (5, 10), (11, 30), (31, 100)):
            values = {
                method: [
                    float(row["value"])
                    for row in select(rows, protocol="rare", method=method, measure=measure)
                    if low <= int(row["positives"]) <= high
                ]
                for method in methods
            }
            line: list[object] = [f"{low} to {high}", len(values[methods[0]])]
            for method in methods:
                line.append(f"{np.mean(values[method]):.4f}")
                if method != methods[0]:
                    c = compare(values[methods[0]], values[method])
                    line += [f"{c.wins}/{c.ties}/{c.losses}", f"{c.p:.2g}"]
            table.append(line)
        header = ["training documents", "categories", f"{measure}, {RARE_METHODS[methods[0]]}"]
        for method in methods[1:]:
            header += [f"{measure}, {RARE_METHODS[method]}", "AP trained won/equal/lost", "p"]
        text += markdown(header, table) + "\n"
    return text


def _verdict(rows: list[Row]) -> str:
    first, *others = (m for m in RARE_METHODS if any(select(rows, protocol="rare", method=m)))
    direct = _values(rows, protocol="rare", method=first, measure="AP")
    text = (
        f"Over all {len(direct)} categories the mean average precision after training for it is {np.mean(direct):.4f}."
    )
    for method in others:
        c = compare(direct, _values(rows, protocol="rare", method=method, measure="AP"))
        sign = "more than" if c.difference > 0 else "less than or equal to"
        text += (
            f" That is {abs(c.difference):.4f} {sign} with {RARE_METHODS[method]} (signed-rank test, p = {c.p:.2g})."
        )
    seconds = {m: float(next(select(rows, protocol="rare", method=m))["cpu_seconds"]) for m in (first, *others)}
    spent = ", ".join(f"{RARE_METHODS[m]} {s:.0f}" for m, s in seconds.items())
    return f"{text}\n\nCPU seconds for the choice of C and the training, on a machine with other work to do: {spent}.\n"


HEAD = """# Ranking measures

Written by `python -m experiments ranking --data DIR`; the rows are in `experiments/results/ranking.csv`. Definitions:
[measures](../measures.md#rankings-and-groups).

## Queries

`MeasureRanker`, a linear function trained for one of four measures, beside `LGBMRanker`, an ensemble of trees
(learning rate 0.05). All settings are chosen on the training queries, in three folds, by the value in the table: C from
10⁻³ to 10² (compared at a gap of 10⁻²), and 4 to 31 leaves with 25 to 400 trees. LightGBM's example has 201 queries to
train and 50 to test on. Of MQ2008 (156 queries) and OHSUMED (22 queries, features scaled query by query) only one file
was at hand; they are divided by query into five folds, of which each is tested once. The values are means over queries;
queries without a relevant document, or with nothing else, are left out. Average precision and ROC area call every grade
above 0 relevant.
"""

AFTER_QUERIES = """
The test parts are small: with 50 queries or fewer, differences of one or two hundredths mean little. On OHSUMED, with
about 150 documents to a query, the bound on NDCG@10 is too far above it to say anything, and w = 0 is optimal: the rows
say `TRIVIAL`, and scores that are all equal are judged by their mean. NDCG of all ranks has no such trouble. It was
added to the table after that had been seen, and its training scores; its C is chosen like that of the others.
"""

BASE = """
### Do base losses help a ranking?

`MeasureRankerCV`, trained for the value in the tables, chooses between the risk alone (which the columns before have),
the risk beside a logistic loss, and a balanced logistic loss alone, with C from 0.0003 to 3, by five folds. The best C
of each, on training queries held out:

"""

AFTER_BASE = """
A base loss repairs NDCG@10 of OHSUMED, whose bound says nothing, and MQ2008 prefers the logistic loss. On test queries
there is no other gain that so few of them could show; on LightGBM's example `MeasureRankerCV` is behind the risk alone.
The candidates were chosen on the training queries of LightGBM's example and on other folds of the two other sets.
Hinges of single examples were worse there than logistic losses and are no candidates; they stay available as `hinge`.
"""

RARE = """
## Rare categories of Reuters

Reuters-21578, ModApte split, 9603 documents to train and 3299 to test on: one ranking of documents for every category
with 5 to 100 training documents, and at least one in the test part. C by a hold-out of a third of the training
documents, by average precision for all methods, from a grid that extends itself; the first of equals is taken. A
gap of 10⁻³, the default, is a thousandth of the pairs, or ten negatives above every positive: ROC area is therefore
also trained to 10⁻⁵, while C is chosen too. That column was added after the first results had been seen.

"""
