"""The page of `experiments.linear`: docs/results/linear.md."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from experiments.harness import Options, Row, markdown, select, write
from experiments.stats import Comparison, compare

HALVES = ("development", "confirmation")
LOGISTIC = "logistic regression + threshold"
METHODS = ("MeasureSVCCV", "MeasureSVC", LOGISTIC)
OURS = METHODS[:2]
TITLES = {
    "f1": "F1",
    "balanced_error": "balanced accuracy",
    "mcc": "MCC",
    "prbep": "PRBEP",
    "precision_at_half_p": "precision at p/2",
    "average_precision": "average precision",
    "roc_area": "ROC area",
}
KINDS = {"tables": "20 tables", "imbalanced": "imbalanced sets", "text": "categories of text"}


class Duel(NamedTuple):
    """One of ours against logistic regression, over the problems that both have."""

    kind: str
    measure: str
    half: str
    ours: str
    problems: int
    means: tuple[float, float]  #: in percent
    result: Comparison

    def cells(self) -> list[str]:
        one, other = self.means
        won = f"{self.result.wins}/{self.result.losses}/{self.result.ties}"
        numbers = [f"{one:.1f}", f"{other:.1f}", f"{one - other:+.1f}", won, f"{self.result.p:.2g}"]
        return [TITLES[self.measure], self.half, self.ours, str(self.problems), *numbers]


def values(rows: Iterable[Row], **where: str) -> dict[str, float]:
    """The values of the problems, in percent."""
    return {row["data"]: 100 * float(row["value"]) for row in select(rows, **where)}


def duels(rows: list[Row], kind: str) -> list[Duel]:
    """All comparisons of a kind of problems: both halves, and all together."""
    found = []
    for measure in TITLES:
        other = values(rows, kind=kind, measure=measure, method=LOGISTIC)
        for ours in OURS:
            own = values(rows, kind=kind, measure=measure, method=ours)
            halves = {row["data"]: row["half"] for row in select(rows, kind=kind)}
            for half in ("all", *HALVES):
                names = sorted(n for n in own.keys() & other.keys() if half in ("all", halves[n]))
                if names:
                    a, b = np.array([own[n] for n in names]), np.array([other[n] for n in names])
                    means = float(a.mean()), float(b.mean())
                    found.append(Duel(kind, measure, half, ours, len(names), means, compare(a, b, digits=6)))
    return found


def macro_f1(rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """The collections with several labels: a line for each, and the mean over those that all methods have."""
    settings = ("C = 1", "C = 10")
    methods = [*OURS, *(f"{LOGISTIC}, {setting}" for setting in settings)]
    found = {method: values(rows, kind="labels", method=method) for method in OURS}
    found |= {f"{LOGISTIC}, {own}": values(rows, kind="labels", method=LOGISTIC, setting=own) for own in settings}
    names = sorted(set().union(*found.values()))
    complete = [name for name in names if all(name in own for own in found.values())]
    lines = [
        [name.rpartition("/")[2], *(f"{found[m][name]:.1f}" if name in found[m] else "not yet" for m in methods)]
        for name in names
    ]
    if complete:
        means = (np.mean([found[m][name] for name in complete]) for m in methods)
        lines.append([f"mean of {len(complete)}", *(f"{mean:.1f}" for mean in means)])
    return ["collection", *methods], lines


def nothing_learnt(rows: list[Row]) -> str:
    """How often w = 0."""
    own = [row for row in rows if row["method"] in OURS and row.get("learnt")]
    return f"{sum(row['learnt'] == 'False' for row in own)} of {len(own)}"


def seconds(rows: list[Row]) -> str:
    """CPU seconds of a fit for F1 on a table, in the mean."""
    parts = []
    for method in OURS:
        spent = [float(row["cpu_seconds"]) for row in select(rows, kind="tables", measure="f1", method=method)]
        if spent:
            parts.append(f"{np.mean(spent):.2g} for `{method}`")
    return " and ".join(parts)


def page(rows: list[Row], options: Options) -> None:
    header = ["measure", "half", "trained for it", "problems", "ours", "theirs", "ahead", "won/lost/tied", "p"]
    parts = []
    for kind, title in KINDS.items():
        own = duels(rows, kind)
        if own:
            parts += [f"## {title.capitalize()}\n", markdown(header, [duel.cells() for duel in own])]
    head, lines = macro_f1(rows)
    parts += ["## Several labels\n", "Macro-F1 in percent.\n", markdown(head, lines)]
    text = TEXT.format(nothing=nothing_learnt(rows), seconds=seconds(rows))
    write(options.pages / "linear.md", text + "\n" + "\n".join(parts))


TEXT = """# Linear classifiers with their defaults

Made by `python -m experiments linear --data DIR`; the numbers are in
[linear.csv](../../experiments/results/linear.csv).

`MeasureSVCCV(measure)` and `MeasureSVC(measure)`, with all defaults, beside what users do instead: logistic regression
that chooses C by log-loss (four C, three folds), with the threshold that is best for the measure on scores of five
folds. Measures of rankings need no threshold. Percent on test rows; the tests are Wilcoxon's, over problems. Problems
of one collection of text share their documents, so that their p-values are too small.

* **Tables**: 60 % to train on, standardised, one split.
* **Imbalanced sets**: every fourth of imbalanced-learn's and KEEL's by name that has ten positives to train on, at most
  2000 rows, divided in the same way.
* **Text**: categories of WebKB, Ohsumed and 20 Newsgroups, 3000 documents to train on.
* **Several labels**: the 90 labels of Reuters (ModApte) and three multi-label sets; logistic regression with the C of
  the column, and for each label the threshold of three folds.

**What was chosen on what.** Every other problem by name is in the development half. The candidates and the grid of
`MeasureSVCCV`, and for `MeasureSVC` C = 4, the weight 3 of the logistic loss and the rule of its threshold, were chosen
on other splits of all 20 tables, and on Reuters: so on these two the confirmation half shows new rows of tables that
had been looked at, not new tables. The imbalanced sets and the text of this page decided nothing about these defaults.
The confirmation halves were looked at once, in the run that made this page first. After it, only the solvers changed,
and how candidates are compared where there are several labels: for that, all four collections of several labels were
looked at.

w = 0, a classifier that has learnt nothing, was the result of {nothing} fits of ours. CPU seconds of a fit for F1 on a
table, in the mean: {seconds}.
"""
