"""The figures of the speed page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import verdicts

Row = dict[str, Any]


def draw(parts: dict[str, list[Row]], folder: Path) -> list[tuple[str, str]]:
    """Draw what the rows allow; returns (part, name of the figure)."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for part, name, function in (
        ("compare", "speed-ratios", _ratios),
        ("shares", "speed-shares", _shares),
        ("products", "speed-products", _products),
        ("qp", "speed-qp", _qp),
        ("scale", "speed-scale", _scale),
    ):
        if parts[part]:
            figure = function(parts[part])
            figure.savefig(folder / f"{name}.png", dpi=80, bbox_inches="tight")
            made.append((part, name))
    return made


def _ratios(rows: list[Row]) -> Any:
    """Every comparison as a dot, one line per competitor, measure and what was equalised."""
    from matplotlib.figure import Figure

    groups: dict[str, list[Row]] = {}
    for row in verdicts.ratios(rows):
        groups.setdefault(f"{row['competitor']}, {row['measure']} ({row['mode']})", []).append(row)
    figure = Figure(figsize=(8, 0.32 * len(groups) + 1.2))
    axes = figure.subplots()
    for k, own in enumerate(groups.values()):
        for finished in (True, False):
            values = [row["ratio"] for row in own if row["finished"] is finished]
            axes.plot(values, [k] * len(values), "o" if finished else ">", alpha=0.6, color="C0" if finished else "C3")
    axes.set_yticks(range(len(groups)), groups)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="grey", linewidth=1)
    axes.set_xlabel("its CPU seconds / metrimax's (right of 1: metrimax is faster; a triangle: it did not finish)")
    axes.grid(axis="x", alpha=0.3)
    return figure


def _shares(rows: list[Row]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.35 * len(rows) + 1.2))
    axes = figure.subplots()
    left = [0.0] * len(rows)
    for part, label in (("products", "products"), ("argmax", "argmax"), ("qp", "model and QP"), ("other", "other")):
        share = [max(0.0, row[f"{part}_seconds"]) / row["seconds"] for row in rows]
        axes.barh(range(len(rows)), share, left=left, label=label)
        left = [a + b for a, b in zip(left, share, strict=True)]
    axes.set_yticks(range(len(rows)), [f"{row['task']} {row['measure']}, {row['solver']}" for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("share of the CPU seconds")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=4, frameon=False)
    return figure


def _products(rows: list[Row]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6))
    for axes, kind in zip(figure.subplots(1, 2, sharey=True), ("dense", "sparse"), strict=True):
        for product, line in (("X w", "-"), ("X'c", "--")):
            for k, dtype in enumerate(("float64", "float32")):
                for threads, marker in ((1, "o"), (2, "s")):
                    own = [
                        row
                        for row in rows
                        if (row["kind"], row["product"], row["dtype"]) == (kind, product, dtype)
                        and row["threads"] == threads
                        and row["L"] == 1
                    ]
                    x, y = [row["nnz"] for row in own], [row["fraction"] for row in own]
                    axes.plot(x, y, line + marker, color=f"C{k}", label=f"{product}, {dtype}, {threads} thr.")
        axes.axhline(0.6, color="grey", linewidth=1)
        axes.set(xscale="log", xlabel="non-zeros", title=kind, ylim=(0, None))
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("share of the triad's bandwidth")
    figure.axes[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _qp(rows: list[Row]) -> Any:
    from matplotlib.figure import Figure

    programs = list(dict.fromkeys(row["program"] for row in rows))
    figure = Figure(figsize=(10, 5.2), layout="constrained")
    grid = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    for axes, program in zip(grid, programs, strict=False):
        for k, solver in enumerate(("simplex_qp", "daqp", "piqp")):
            for start, line in (("cold", "-o"), ("warm", "--s")):
                own = [r for r in rows if (r["program"], r["solver"], r["start"]) == (program, solver, start)]
                if own:
                    times = [1e3 * row["seconds"] for row in own]
                    axes.plot([row["cuts"] for row in own], times, line, color=f"C{k}", label=f"{solver}, {start}")
        axes.set_title(program, fontsize=9)
        cuts = sorted({int(row["cuts"]) for row in rows})
        axes.set(xscale="log", yscale="log")
        axes.set_xticks(cuts, cuts)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    for axes in grid[3:]:
        axes.set_xlabel("cuts")
    for axes in grid[::3]:
        axes.set_ylabel("ms")
    grid[0].legend(fontsize=7)
    return figure


def _scale(rows: list[Row]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for kind, measure in dict.fromkeys((row["kind"], row["measure"]) for row in rows):
        own = [row for row in rows if (row["kind"], row["measure"]) == (kind, measure)]
        n = [row["n"] for row in own]
        left.plot(n, [1e3 * row["wall_seconds_per_pass"] for row in own], "-o", label=f"{kind}, {measure}")
        middle.plot(n, [row["wall_seconds"] for row in own], "-o")
        right.plot(n, [row["vectors"] for row in own], "-o")
    left.set(xscale="log", yscale="log", xlabel="n", title="ms per pass over X (argmax and QP included)")
    middle.set(xscale="log", yscale="log", xlabel="n", title="seconds in all")
    right.set(xscale="log", xlabel="n", title="memory beyond X and cuts (n-vectors)")
    right.axhline(10, color="grey", linewidth=1)
    for axes in (left, middle, right):
        axes.title.set_fontsize(9)
        axes.grid(alpha=0.3)
    left.legend(fontsize=7)
    return figure
