"""The page of the table of solvers, from its rows: what it shows first, the cells after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from metrimax.solvers import SOLVERS

TOL = 1e-3
AIM = 1.3
"""Times the best single solver that the default may take at most."""
UNITS = "passes", "seconds"
PARTS = {
    "1": "Data that the solvers were developed on",
    "0": "Data that the choice was also settled on",
    "2": "Fresh data",
}
WIDTHS = {"up to 40 features": (0, 40), "41 to 1000": (40, 1000), "more (text)": (1000, np.inf)}
TIMES = {"below 2 ms": (0.0, 0.002), "2 to 10 ms": (0.002, 0.01), "10 ms or more": (0.01, np.inf)}

Row: TypeAlias = dict[str, str]
Cell: TypeAlias = dict[str, Row]
Key: TypeAlias = tuple[str, str, str]


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


def page(rows: list[Row], orders: list[Row], measured: list[str]) -> str:
    """The page; ``measured`` says how the rows were."""
    cells = by_cell(rows)
    lines = ["# Passes and seconds to a certified gap of 1e-3", ""]
    lines += ["Made by `python -m benchmarks.solvers`; the numbers are in [solvers.csv](solvers.csv).", ""]
    lines += ["## What it shows", "", *_summary(cells), ""]
    if orders:
        lines += ["## How much of that is chance", "", *_chance(cells, orders), ""]
    lines += ["## How it was measured", "", *measured, ""]
    for part, title in PARTS.items():
        mine = {key: cell for key, cell in cells.items() if cell["auto"]["part"] == part}
        if mine:
            lines += [f"## {title}", "", *_cells(mine), ""]
    return "\n".join(lines)


def _summary(cells: dict[Key, Cell]) -> list[str]:
    solved = sum("auto" in reached(cell) for cell in cells.values())
    lines = [f"* The default reached the gap in {solved} of {len(cells)} cells."]
    for name in list(SOLVERS)[1:]:
        both = [cell for cell in cells.values() if {name, "auto"} <= set(reached(cell))]
        if both:
            passes, seconds = (
                _mean(float(cell["auto"][unit]) / float(cell[name][unit]) for cell in both) for unit in UNITS
            )
            lines.append(
                f"* Against `{name}`, which reached it in {len(both)}: {passes:.2f} times its passes, {seconds:.2f} "
                "times its seconds (geometric means over these)."
            )
    within = {name: sum(_within(cell, name) for cell in cells.values()) for name in SOLVERS}
    nobody = sum(not any(_within(cell, name) for name in SOLVERS) for cell in cells.values())
    lines.append(
        f"* Within {AIM} times the best of all solvers in passes and in seconds: "
        + ", ".join(f"`{name}` in {count}" for name, count in within.items())
        + f". In {nobody} cells no solver is within that of both."
    )
    lines += [
        "",
        f"Cells in which the default takes more than {AIM} times the best, and its mean ratio to the best:",
        "",
    ]
    lines += [
        "| cells | number | above in passes | in seconds | passes / best | seconds / best |",
        "|---|---|---|---|---|---|",
    ]
    groups: dict[str, Callable[[Cell], bool]] = {"all": lambda cell: True}
    groups |= {PARTS[part].lower(): lambda cell, part=part: cell["auto"]["part"] == part for part in PARTS}
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
    for name, belongs in groups.items():
        mine = [cell for cell in cells.values() if belongs(cell)]
        if mine:
            above = (str(sum(ratio(cell, unit) > AIM for cell in mine)) for unit in UNITS)
            means = (f"{_mean(ratio(cell, unit) for cell in mine):.2f}" for unit in UNITS)
            lines.append("| " + " | ".join([name, str(len(mine)), *above, *means]) + " |")
    lines += ["", "All of these, worst first (times the best, of so many passes and milliseconds):", ""]
    for unit in UNITS:
        over = sorted(
            ((ratio(cell, unit), key) for key, cell in cells.items() if ratio(cell, unit) > AIM), reverse=True
        )
        which = (f"{' '.join(key)}C {times:.2f} ({_value(cells[key], unit)})" for times, key in over)
        lines.append(f"* {unit}: " + ("; ".join(which) or "none") + ".")
    return lines


def _value(cell: Cell, unit: str) -> str:
    return f"{best(cell, unit) * (1000 if unit == 'seconds' else 1):.2g}"


def _within(cell: Cell, name: str) -> bool:
    return all(ratio(cell, unit, name) <= AIM for unit in UNITS)


def _chance(cells: dict[Key, Cell], orders: list[Row]) -> list[str]:
    """The same problems with their rows in other orders: no solver is told, and each takes another number of passes."""
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
    return [
        f"The same cells with their rows in {count} orders, by {names} where they are for the measure (the numbers are",
        "in [solvers_orders.csv](solvers_orders.csv)). It is the same problem, but sums round otherwise and ties go",
        "otherwise, and the way to the solution is another one.",
        "",
        f"* The default takes more than {AIM} times as many passes in one order as in another in "
        f"{sum(one > AIM for one in spread)} of {len(spread)} cells (1.1 times in {sum(one > 1.1 for one in spread)}; "
        f"at most {max(spread):.2f} times).",
        f"* It is above {AIM} times the best of these solvers in {first} cells with the rows as they come, and in "
        f"{typical} by the medians over the orders.",
    ]


def _cells(cells: dict[Key, Cell]) -> list[str]:
    lines = ["| data | n x p | measure | C | " + " | ".join(SOLVERS) + " | auto/best passes | seconds |"]
    lines += ["|---" * (6 + len(SOLVERS)) + "|"]
    for (data, measure, _), cell in cells.items():
        head = cell["auto"]
        values = (
            f"{float(cell[name]['passes']):.3g} / {float(cell[name]['seconds']):.2g}" if name in reached(cell) else "-"
            for name in SOLVERS
        )
        ratios = (f"{ratio(cell, unit):.2f}" for unit in UNITS)
        row: list[Any] = [data, f"{head['n']} x {head['p']}", measure, f"{float(head['C']):g}", *values, *ratios]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def _mean(ratios: Iterable[float]) -> float:
    """The geometric one."""
    return float(np.exp(np.mean(np.log(list(ratios)))))
