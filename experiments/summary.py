"""docs/results/README.md: what the experiments say, on one page, from their CSV files. Nothing is computed here.

A collection or a comparison whose rows are not there yet is named as missing, not left out silently.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import NamedTuple

from experiments import baselines_page, headline, joachims2005_page, linear_page
from experiments.harness import Options, Row, Table, add_options, markdown, options_of, spent, write
from experiments.holdout import MEASURES
from experiments.stats import Comparison, compare


class Line(NamedTuple):
    """Training for the measure against something else, on one collection."""

    collection: str
    measure: str
    ours: str
    other: str
    values: tuple[float, float]  #: means in percent
    result: Comparison

    @property
    def difference(self) -> float:
        return self.values[0] - self.values[1]

    def cells(self) -> list[str]:
        one, other = self.values
        duel = f"{self.result.wins}/{self.result.losses}/{self.result.ties}"
        numbers = [f"{one:.1f}", f"{other:.1f}", f"{self.difference:+.1f}", duel, f"{self.result.p:.2g}"]
        return [self.collection, self.measure, self.ours, self.other, *numbers]


def paper_lines(rows: list[Row]) -> list[Line]:
    """Joachims (2005): direct training against the cost model, both by hold-out."""
    lines = []
    for data, title in joachims2005_page.TITLES.items():
        for measure, name in MEASURES.items():
            pair = [joachims2005_page.results(rows, data, m, measure) for m in joachims2005_page.METHODS]
            if all(len(values) for values in pair) and len(pair[0]) == len(pair[1]):
                means = (float(pair[0].mean()), float(pair[1].mean()))
                result = joachims2005_page.comparison(rows, data, measure)
                lines.append(
                    Line(title, name, "direct, C by hold-out", "cost model, C and j by hold-out", means, result)
                )
    return lines


def user_lines(rows: list[Row], other: list[Row]) -> list[Line]:
    """Direct training against the best of what users do instead, chosen with hindsight."""
    joined = baselines_page.joined(rows, other)
    lines = []
    for data, title in joachims2005_page.TITLES.items():
        for measure, name in MEASURES.items():
            found = baselines_page.results(joined, data, measure)
            if baselines_page.REFERENCE not in found or len(found) == 1:
                continue
            ours, best = found[baselines_page.REFERENCE], baselines_page.best(found)
            means = (float(ours.mean()), float(found[best].mean()))
            result = compare(ours, found[best], digits=6)
            lines.append(Line(title, name, "direct, C by hold-out", baselines_page.label(best), means, result))
    return lines


def default_lines(rows: list[Row]) -> list[Line]:
    """`MeasureSVCCV` with its defaults against logistic regression with a threshold, on the confirmation halves."""
    return [
        Line(
            f"{duel.problems} {linear_page.KINDS[kind].removeprefix('20 ')}",
            linear_page.TITLES[duel.measure],
            f"{duel.ours}, defaults",
            linear_page.LOGISTIC,
            duel.means,
            duel.result,
        )
        for kind in linear_page.KINDS
        for duel in linear_page.duels(rows, kind)
        if duel.half == "confirmation" and duel.ours == linear_page.OURS[0]
    ]


COSTS = [
    "program",
    "tasks",
    "CPU minutes",
    "minutes by the clock",
    "tasks recorded whole",
    "rows without a record",
    "versions",
]


def versions(rows: list[Row]) -> list[str]:
    """The versions of metrimax that have computed the rows, as far as they say it."""
    return sorted(set(re.findall(r"metrimax (\S+)", " ".join(row.get("versions") or "" for row in rows))))


def costs(options: Options) -> list[list[str]]:
    """What every program takes: its tasks and CPU minutes, to go by its rows; kept in cpu.csv, too."""
    lines = []
    for path in sorted(options.out.glob("*.csv")):
        if path.stem != "cpu" and (rows := Table(path).rows):
            took = spent(rows)
            minutes = [f"{seconds / 60:.1f}" for seconds in (took.seconds, took.clock)]
            counts = [str(took.whole), str(took.unknown)]
            lines.append([path.stem, str(took.tasks), *minutes, *counts, " ".join(versions(rows))])
    if lines:
        head = [name.lower().replace(" ", "_") for name in COSTS]
        write(options.out / "cpu.csv", "\n".join(",".join(line) for line in [head, *lines]) + "\n")
    return lines


def page(options: Options) -> None:
    tables = {name: Table(options.out / f"{name}.csv").rows for name in ("joachims2005", "baselines", "linear")}
    paper, users = paper_lines(tables["joachims2005"]), user_lines(tables["baselines"], tables["joachims2005"])
    defaults = default_lines(tables["linear"])
    headline.draw(options)
    judged = paper + users + defaults
    lines = costs(options)
    least, most = (sum(float(line[column]) for line in lines) / 60 for column in (2, 3))
    header = ["collection", "measure", "trained for it", "against", "ours", "theirs", "ahead", "won/lost/tied", "p"]

    def block(own: Sequence[Line]) -> str:
        return markdown(header, [line.cells() for line in own]) if own else "Not computed yet.\n"

    write(
        options.pages / "README.md",
        TEXT.format(
            paper=block(paper),
            users=block(users),
            defaults=block(defaults),
            costs=markdown(COSTS, lines),
            least=f"{least:.1f}",
            most=f"{most:.1f}",
            elsewhere=elsewhere(judged),
            ahead=_count(judged, ahead=True),
            behind=_count(judged, ahead=False),
            total=len(judged),
        ),
    )


def elsewhere(lines: Sequence[Line]) -> str:
    """What is ahead of training for the measure, with p <= 0.05, and where."""
    places: dict[str, list[str]] = {}
    for line in lines:
        if line.result.p <= 0.05 and line.difference < 0:
            where = f"{line.collection}, {line.measure} ({-line.difference:.1f} points)"
            places.setdefault(line.other, []).append(where)
    return "".join(f"* **{other}**: {'; '.join(where)}.\n" for other, where in places.items()) or "Nowhere.\n"


def _count(lines: Sequence[Line], *, ahead: bool) -> int:
    return sum(line.result.p <= 0.05 and (line.difference > 0) == ahead for line in lines)


TEXT = """# Does training for the measure pay?

Made by `python -m experiments summary` from the CSV files in [experiments/results](../../experiments/results); every
number below is computed from them. Of {total} comparisons, those of the next three sections, training for the measure
is ahead in {ahead} and behind in {behind} with p <= 0.05 (two-tailed Wilcoxon signed-rank test over classes or data
sets); the rest are undecided. The best baseline was picked by its test results, in its own favour, and may be
nonlinear.

![Macro-F1 over CPU seconds on Reuters; F1 of boosting and of MeasureEnsemble on tables](figures/summary.png)

## Against the cost model, as in the paper

Direct training and an SVM whose positives count j times; C, and j, by hold-out. Percent, macro-averaged over classes.
The paper's own numbers beside ours, and where they differ: [Joachims (2005)](joachims2005.md).

{paper}
## Against what users do instead

Direct training, C by hold-out, against the best of `LinearSVC`, `LogisticRegression`, boosting, balanced and
cost-sensitive ones, with and without a tuned threshold: [the whole tables](baselines.md).

{users}
## With the defaults

`MeasureSVCCV(measure)`, with all defaults, against logistic regression that chooses C, with the threshold that is best
on scores out of fold; the confirmation halves of the problems. What was chosen on what, all problems, `MeasureSVC`, and
collections of many labels: [linear classifiers with their defaults](linear.md).

{defaults}
## Where something else is the better choice

All places where a baseline is ahead with p <= 0.05. Two reasons cover most of them. Where classes overlap so much that
no linear labelling is nearly right, the risk depends on the most violated labelling alone, and its minimum may be at
w = 0; a cost model adds up its mistakes one by one and does not end there. The risk beside a logistic loss, which
`MeasureSVC` and `MeasureSVCCV` train by default, is between the two ([measured](linear.md)). And where a nonlinear
classifier fits the data, no linear one catches up by its training: [`CAPOClassifier`](capo.md) adapts such a classifier
to the measure, and `kernel=` makes ours nonlinear.

{elsewhere}
## What else was measured

* [CAPO](capo.md): adapting classifiers of any kind to a measure, and [its defaults](capo_defaults.md).
* [Constraints](constraints.md): does a precision of 0.9 that was asked for hold on new data?
* [Xi-alpha](xi_alpha.md): estimating recall, precision and F1 without a test set.
* [Smoothing](smoothing.md): smoothed risks and their solvers.
* [Speed](speed.md) against other programs, and the [solvers](solvers.md) against each other.

## What it takes

`python -m experiments all --data DIR` computes everything from nothing in {least} to {most} hours, one task after the
other; what has its rows already is not computed again. The first number is the CPU time of one core that is on record.
The second is the time by the clock, on two cores that were busy with other work. Rows of an earlier version stay until
they are deleted.

Every task that is run records its whole CPU time. Rows that are older have that of their own training alone, without
the search for its parameters, or none. They have the minutes of their task by the clock, without reading the data. So
a program takes as long as the table says where all of its tasks are recorded whole, and between the two columns where
they are not ([cpu.csv](../../experiments/results/cpu.csv)). `python -m experiments all --quick --out DIR` runs all of
them from nothing on small parts of the data, into a folder of their own.

{costs}"""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments summary")
    add_options(parser)
    page(options_of(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
