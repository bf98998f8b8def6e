"""docs/results/solvers.md and its figure, from benchmarks/results/solvers.csv and solvers_orders.csv.

    python -m benchmarks.solvers_page

Nothing is measured here: `benchmarks.solvers` writes the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.report import RESULTS, replace_text, table
from benchmarks.rows import read_rows
from benchmarks.timing import measured

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "solvers.md"
TOL = 1e-3
AIM = 1.3
"""A ratio to the best solver of a cell above which the cell is an outlier."""
NOTICED = 0.01
"""Seconds of the best solver from which on an outlier is listed: below that a user notices none."""
WORST = 10
UNITS = "passes", "seconds"
PARTS = {
    "1": "data that the solvers were developed on",
    "0": "data that the choice was also settled on",
    "2": "fresh data",
}
WIDTHS = {"up to 40 features": (0, 40), "41 to 1000": (40, 1000), "more (text)": (1000, np.inf)}
TIMES = {"below 2 ms": (0.0, 0.002), "2 to 10 ms": (0.002, NOTICED), "10 ms or more": (NOTICED, np.inf)}

Row: TypeAlias = dict[str, str]
Cell: TypeAlias = dict[str, Row]
Key: TypeAlias = tuple[str, str, str]

METHOD = """## How it was measured

A cell is a data set, a measure and C. The data sets are two-class problems, with at most 20,000 rows each. The
measures are F1, PRBEP, ROC area and the error rate. C is 1, 10 and 100 times the useful one: the C among 0.01, 0.1, 1,
10 and 100 that scores best on a held-out third of the training rows.

A pass is n rows of X read, for any number of vectors at a time. Scores read all rows. A pull-back reads the rows with a
slope. An epoch of coordinate descent reads the rows it visits.

Seconds are CPU seconds of one thread, the least of several turns. A turn is one run, or five runs of up to 4 ms each. A
solver that first took more than 4 times the least had one turn only. The machine was not idle, so compare seconds
within a cell only; passes can be compared everywhere.

A run ended after 20 s, after 200 passes (`cutting_plane`, `agm`) or 300 (`lbfgs`). A run that did not reach the gap is
not the best of its cell.

The rule of `auto` and the solvers were settled on all data sets but the fresh ones, so the numbers on the others
favour `auto`.
"""


def by_cell(rows: Iterable[Row]) -> dict[Key, Cell]:
    """The rows of every cell, by solver."""
    cells: dict[Key, Cell] = {}
    for row in rows:
        cells.setdefault((row["data"], row["measure"], row["factor"]), {})[row["solver"]] = row
    return cells


def reached(cell: Cell) -> Cell:
    """The solvers that reached the gap."""
    return {name: row for name, row in cell.items() if float(row["gap"]) <= TOL}


def best(cell: Cell, unit: str) -> float:
    return min(float(row[unit]) for row in reached(cell).values())


def ratio(cell: Cell, unit: str, solver: str = "auto") -> float:
    """What a solver took, relative to the best of those that reached the gap."""
    return float(cell[solver][unit]) / best(cell, unit) if solver in reached(cell) else np.inf


def page(rows: list[Row], orders: list[Row], ablation: Iterable[Row] = (), constants: Iterable[Row] = ()) -> str:
    """The page: finding, figure, parts of the rule, groups, outliers, chance, constants, method."""
    cells = by_cell(rows)
    parts = [
        "# Solvers: passes and seconds to a certified gap of 1e-3",
        _finding(cells),
        "![Share of the cells in which a solver is within a factor of the best](figures/solvers.png)",
        _when(rows),
        "Every row is in [solvers.csv](../../benchmarks/results/solvers.csv). `python -m benchmarks.solvers` measures "
        "them and writes\nthis page; `python -m benchmarks.solvers_page` writes the page alone.",
        "## One solver against another\n\n" + _solvers(cells),
        "## Where `auto` is not the best\n\n" + _groups(cells) + "\n" + _outliers(cells),
    ]
    if shares := list(ablation):
        parts.insert(5, "## What each part of the rule is worth\n\n" + _ablation(cells, shares))
    if orders:
        parts.append("## How much of that is chance\n\n" + _chance(cells, orders))
    if values := list(constants):
        parts.append("## What other values of the constants would do\n\n" + _constants(values))
    return "\n\n".join(part.rstrip("\n") for part in [*parts, METHOD]) + "\n"


def _names(cells: dict[Key, Cell]) -> list[str]:
    """The solvers in the order of the rows."""
    return list({name: None for cell in cells.values() for name in cell})


def _when(rows: list[Row]) -> str:
    """What was run, when, and how many of the data sets."""
    names, of = len({row["data"] for row in rows}), int(rows[0]["sets"])
    drawn = "all of" if names == of else f"every {of // names}th of" if names > 1 else "one of"
    turns = max(int(row["turns"] or 0) for row in rows)
    return (
        f"{measured(rows)}\nThe data sets are {drawn} the {of} that `benchmarks/solvers.py` lists; a solver had "
        f"{turns} turns at most."
    )


def _finding(cells: dict[Key, Cell]) -> str:
    solved = sum("auto" in reached(cell) for cell in cells.values())
    within = sum(_within(cell, "auto") for cell in cells.values())
    others = {name: sum(_within(cell, name) for cell in cells.values()) for name in _names(cells) if name != "auto"}
    second = max(others, key=lambda name: others[name])
    passes, seconds = (_mean(ratio(cell, unit) for cell in cells.values() if "auto" in reached(cell)) for unit in UNITS)
    return (
        f'`solver="auto"` reached the gap in {solved} of {len(cells)} cells. On average it takes {passes:.2f} times '
        f"the passes and {seconds:.2f} times\nthe seconds of the solver that is best in the cell. It is within {AIM} "
        f"times the best, in passes and in seconds, in {within}\ncells; the next, `{second}`, in {others[second]}. "
        "No single solver is good everywhere: that is why there is a choice."
    )


def _solvers(cells: dict[Key, Cell]) -> str:
    lines = []
    for name in _names(cells):
        both = [cell for cell in cells.values() if {name, "auto"} <= set(reached(cell))]
        means = [_mean(float(cell[name][unit]) / float(cell["auto"][unit]) for cell in both) for unit in UNITS]
        solved = sum(name in reached(cell) for cell in cells.values())
        within = sum(_within(cell, name) for cell in cells.values())
        lines.append([f"`{name}`", str(solved), *(f"{mean:.2f}" for mean in means), str(within)])
    nobody = sum(not any(_within(cell, name) for name in cell) for cell in cells.values())
    head = ["solver", "cells solved", "passes / auto's", "seconds / auto's", f"cells within {AIM} of the best"]
    return (
        "Ratios are geometric means over the cells that both solved. `dual_cd` is for the error rate only "
        f"({sum(key[1] == 'error' for key in cells)} cells).\n\n{table(head, lines)}\n"
        f"In {nobody} cells no solver is within {AIM} of the best in both passes and seconds."
    )


def _groups(cells: dict[Key, Cell]) -> str:
    groups: dict[str, Callable[[Cell], bool]] = {"all": lambda cell: True}
    groups |= {title: lambda cell, part=part: cell["auto"]["part"] == part for part, title in PARTS.items()}
    groups |= {
        name: lambda cell, span=span: span[0] < int(cell["auto"]["p"]) <= span[1] for name, span in WIDTHS.items()
    }
    groups |= {
        f"best of {name}": lambda cell, span=span: span[0] <= best(cell, "seconds") < span[1]
        for name, span in TIMES.items()
    }
    groups |= {
        name: lambda cell, name=name: cell["auto"]["measure"] == name for name in {key[1]: None for key in cells}
    }
    lines = []
    for name, belongs in groups.items():
        mine = [cell for cell in cells.values() if belongs(cell)]
        if mine:
            above = (str(sum(ratio(cell, unit) > AIM for cell in mine)) for unit in UNITS)
            means = (f"{_mean(ratio(cell, unit) for cell in mine):.2f}" for unit in UNITS)
            lines.append([name, str(len(mine)), *above, *means])
    head = ["cells", "number", f"above {AIM} in passes", "in seconds", "passes / best", "seconds / best"]
    return table(head, lines)


def _outliers(cells: dict[Key, Cell]) -> str:
    """The cells above the aim that a user may notice, and the worst of the others."""
    worst = {key: max(ratio(cell, unit) for unit in UNITS) for key, cell in cells.items()}
    above = sorted((key for key in cells if worst[key] > AIM), key=lambda key: -worst[key])
    long = [key for key in above if best(cells[key], "seconds") >= NOTICED]
    short = [key for key in above if key not in set(long)]
    return (
        f"`auto` takes more than {AIM} times the best in {len(above)} cells, in passes or in seconds. In {len(long)} "
        f"of them the best takes\n{1000 * NOTICED:g} ms or more; these are all here.\n\n{_rows(cells, long)}\n"
        f"The {min(WORST, len(short))} worst of the other {len(short)}:\n\n{_rows(cells, short[:WORST])}"
    )


def _rows(cells: dict[Key, Cell], keys: list[Key]) -> str:
    head = ["data", "measure", "times the useful C", "passes / best", "best passes", "seconds / best", "best ms", "by"]
    lines = []
    for key in keys:
        cell = cells[key]
        fastest = min(reached(cell).values(), key=lambda row: float(row["seconds"]))
        passes, seconds = (f"{ratio(cell, unit):.2f}" for unit in UNITS)
        least = f"{best(cell, 'passes'):.3g}", f"{1000 * best(cell, 'seconds'):.2g}"
        lines.append([*key, passes, least[0], seconds, least[1], f"`{fastest['solver']}`"])
    return table(head, lines)


def _within(cell: Cell, name: str) -> bool:
    return name in cell and all(ratio(cell, unit, name) <= AIM for unit in UNITS)


def _suits(cell: Cell, name: str) -> bool:
    """Whether a solver is for the measure of a cell: it read X."""
    return name in cell and float(cell[name]["passes"]) > 0


def _chance(cells: dict[Key, Cell], orders: list[Row]) -> str:
    """The same problems with their rows in other orders: each solver takes another number of passes."""
    passes: dict[Key, dict[str, list[float]]] = {}
    for row in orders:
        mine = passes.setdefault((row["data"], row["measure"], row["factor"]), {})
        mine.setdefault(row["solver"], []).append(float(row["passes"]) if float(row["gap"]) <= TOL else np.inf)
    runs = {key: mine for key, mine in passes.items() if key in cells}
    count = max(len(found) for mine in runs.values() for found in mine.values())
    spread = [max(mine["auto"]) / min(mine["auto"]) for mine in runs.values()]
    middle = {key: {name: float(np.median(found)) for name, found in mine.items()} for key, mine in runs.items()}
    first = sum(mine["auto"][0] > AIM * min(found[0] for found in mine.values()) for mine in runs.values())
    typical = sum(mine["auto"] > AIM * min(mine.values()) for mine in middle.values())
    names = ", ".join(f"`{name}`" for name in {name: None for mine in runs.values() for name in mine})
    return (
        f"The same cells were solved with their rows in {count} orders, by {names}\n"
        "([solvers_orders.csv](../../benchmarks/results/solvers_orders.csv)). The problem stays the same, but sums "
        "round differently and ties\nfall differently, so the path to the solution changes.\n\n"
        f"* `auto` takes more than {AIM} times as many passes in one order as in another in "
        f"{sum(one > AIM for one in spread)} of {len(spread)} cells, and more than\n  1.1 times in "
        f"{sum(one > 1.1 for one in spread)}. The largest ratio is {max(spread):.1f}.\n"
        f"* `auto` is above {AIM} times the best of these solvers in {first} cells with the rows as they come, and in "
        f"{typical} by medians\n  over the orders."
    )


def _ablation(cells: dict[Key, Cell], rows: list[Row]) -> str:
    """Medians over orders of the rows, with `auto` less one of its parts, relative to `auto`."""
    runs: dict[Key, dict[str, list[Row]]] = {}
    for row in rows:
        mine = runs.setdefault((row["data"], row["measure"], row["factor"]), {})
        mine.setdefault(row["variant"], []).append(row)

    def median(found: list[Row], unit: str) -> float:
        return float(
            np.median([float(row[unit]) if float(row[unit] or 0) and _closed(row) else np.inf for row in found])
        )

    passes = {key: {name: median(found, "passes") for name, found in mine.items()} for key, mine in runs.items()}
    seconds = {key: {name: median(found, "seconds") for name, found in mine.items()} for key, mine in runs.items()}
    fresh = {key for key in runs if cells[key]["auto"]["part"] == "2"}
    long = [key for key in runs if best(cells[key], "seconds") >= NOTICED]
    lines = []
    for name in {name: None for mine in runs.values() for name in mine if name != "auto"}:
        both = [key for key in runs if name in runs[key] and np.isfinite(passes[key][name])]
        beyond = sum(
            passes[key][name] > AIM * passes[key]["auto"] * _spread(runs[key]["auto"])
            for key in long
            if name in runs[key]
        )
        timed = [seconds[key][name] / seconds[key]["auto"] for key in both if np.isfinite(seconds[key][name])]
        lines.append(
            [
                f"`{name}`" if name in cells[both[0]] else name,
                str(sum(name in mine for mine in runs.values()) - len(both)),
                f"{_mean(passes[key][name] / passes[key]['auto'] for key in both):.2f}",
                f"{_mean(passes[key][name] / passes[key]['auto'] for key in both if key in fresh):.2f}",
                f"{_mean(timed):.2f}" if len(timed) > len(both) / 2 else "",
                str(beyond),
            ]
        )
    head = ["instead of `auto`", "missed", "passes / auto's", "on fresh data", "seconds / auto's", "beyond"]
    return (
        f"{len(runs)} of the cells, with the rows in several orders: medians over these, and geometric means over "
        "cells.\n`missed` counts cells not solved within four times the passes of `auto`. `beyond` counts, of "
        f"the {len(long)}\ncells of {1e3 * NOTICED:g} ms or more, those that take more than {AIM} times the passes of "
        "`auto`, beyond the spread\nover its orders. The help at w = 0 is for classes that overlap more than here "
        "([its page](at_zero.md)). Seconds were\nmeasured on a busy machine. `python -m benchmarks.ablation` measures "
        "the rows ([ablation.csv](../../benchmarks/results/ablation.csv)).\n\n" + table(head, lines)
    )


def _constants(rows: list[Row]) -> str:
    """Passes with other values of each constant, relative to those with the value in use."""
    usual = {_cell(row): row for row in rows if not row["constant"]}
    lines = []
    for name in {row["constant"]: None for row in rows if row["constant"]}:
        mine = [row for row in rows if row["constant"] == name]
        line = [f"`{name}`", str(len({_cell(row) for row in mine})), mine[0]["used"]]
        for value in {row["value"]: None for row in mine}:
            pairs = [(row, usual[_cell(row)]) for row in mine if row["value"] == value and _closed(usual[_cell(row)])]
            ratios = [float(row["passes"]) / float(own["passes"]) for row, own in pairs if _closed(row)]
            missed = f", {len(pairs) - len(ratios)} missed" if len(ratios) < len(pairs) else ""
            worse, better = sum(one > AIM for one in ratios), sum(one < 1 / AIM for one in ratios)
            line.append(f"{value}: {_mean(ratios):.2f} ({worse} worse, {better} better{missed})")
        lines.append(line)
    head = ["constant", "cells", "in use", "passes with less", "passes with more"]
    return (
        "Passes relative to those with the value in use, as geometric means; one constant is changed at a time. In "
        f"brackets: the\ncells that take more than {AIM} times the passes, or less than 1/{AIM} of them, and those not "
        "solved within four times the\npasses. The cells of `LINGER`, `LINGER_AT_K`, `ROUNDS` and `BESIDE` are those "
        "of [the page on w = 0](at_zero.md), the\nothers those above. `python -m benchmarks.constants` measures them "
        "([constants.csv](../../benchmarks/results/constants.csv)).\n\n" + table(head, lines)
    )


def _cell(row: Row) -> tuple[str, ...]:
    return row["data"], row["measure"], row["factor"], row["solver"]


def _closed(row: Row) -> bool:
    return float(row["gap"]) <= TOL


def _spread(rows: list[Row]) -> float:
    counts = [float(row["passes"]) for row in rows]
    return max(counts) / min(counts)


def _mean(ratios: Iterable[float]) -> float:
    """The geometric one."""
    found = list(ratios)
    return float(np.exp(np.mean(np.log(found)))) if found else np.nan


def read(folder: Path, name: str) -> list[Row]:
    """The rows of a CSV; none where it was not measured."""
    path = folder / f"{name}.csv"
    return read_rows(path) if path.exists() else []


def build(folder: Path = RESULTS, target: Path = PAGE) -> None:
    """Write the page from the rows in a folder, and the figure beside it."""
    from benchmarks import figures

    rows: list[Any] = read(folder, "solvers")
    replace_text(target, page(rows, *(read(folder, name) for name in ("solvers_orders", "ablation", "constants"))))
    cells = by_cell(rows)
    suited = {name: [cell for cell in cells.values() if _suits(cell, name)] for name in _names(cells)}
    ratios = {
        unit: {name: [ratio(cell, unit, name) for cell in mine] for name, mine in suited.items()} for unit in UNITS
    }
    figures.save(figures.profiles(ratios), target.parent / "figures" / "solvers.png")


if __name__ == "__main__":
    build()
