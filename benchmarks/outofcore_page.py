"""The page of `benchmarks.outofcore`, from its rows alone: what was asked for, what was measured, whether it is met."""

from __future__ import annotations

from typing import Any, NamedTuple

Row = dict[str, Any]

VECTORS = 16  # of length n: labels, scores, slopes and what the oracle sorts
PASS_BOUND = ("sparse",)  # a round on Covertype is too short for a second worker to pay
SAME, PASS, SPEEDUP = 1e-6, 1.5, 1.6


class Verdict(NamedTuple):
    """One requirement; ``met`` is None for what is shown without one."""

    name: str
    text: str
    met: bool | None

    def __str__(self) -> str:
        return f"{self.name}: {self.text}: {self.word}"

    @property
    def word(self) -> str:
        return {True: "met", False: "**missed**", None: "no aim"}[self.met]


def limit(row: Row) -> float:
    """The most memory that the driver of a fit may take."""
    held = row["memory"] if row["way"] == "shards" else 0
    return float(row["base_bytes"] + held + 8 * (VECTORS * row["n"] + 2 * row["cuts"] * row["p"]) + 64 * 2**20)


def verdicts(rows: list[Row]) -> list[Verdict]:
    found = []
    for name in dict.fromkeys(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        fits = {row["way"]: row for row in own if row["job"] == "fit"}
        for way in (way for way in fits if way != "memory" and "memory" in fits):
            apart = max(abs(fits[way][key] / fits["memory"][key] - 1) for key in ("objective", "bound"))
            text = f"{way}: objective and bound differ from those in memory by {apart:.1e} (at most {SAME:g})"
            found.append(Verdict(name, text, apart <= SAME))
            peak, most = fits[way]["peak_bytes"], limit(fits[way])
            text = f"{way}: peak memory {peak / 1e9:.2f} GB, the limit stated is {most / 1e9:.2f} GB"
            found.append(Verdict(name, text, peak <= most))
        found += [_pass(row) for row in own if row["job"] == "passes"]
        for row in own:
            if row["job"] == "workers":
                found += _speedup(row)
    return found


def _pass(row: Row) -> Verdict:
    wall, cpu = (row[f"second_{kind}"] / row[f"first_{kind}"] for kind in ("wall", "cpu"))
    all_open = row["memory"] > row["size"]
    how = "all kept open" if all_open else f"{row['memory'] / 1e9:.2f} GB open at most"
    text = (
        f"shards, {how}: both products take {wall:.2f} times the wall and {cpu:.2f} times the CPU seconds of those in "
        f"memory, {row['first_wall']:.3f} s (at most {PASS:g})"
    )
    return Verdict(row["set"], text, wall <= PASS)


def _speedup(row: Row) -> list[Verdict]:
    ratio = row["first_wall"] / row["second_wall"]
    aim = f" (at least {SPEEDUP:g})" if row["set"] in PASS_BOUND else ", not bound by its passes"
    text = (
        f"two worker processes are {ratio:.2f} times as fast as one{aim}: {row['first_wall']:.3f} s and "
        f"{row['second_wall']:.3f} s for both products"
    )
    made = [Verdict(row["set"], text, ratio >= SPEEDUP if row["set"] in PASS_BOUND else None)]
    spent = [
        f"{row[f'{key}_driver']:.3f} + {row[f'{key}_loop']:.3f} + {row[f'{key}_busiest']:.3f}"
        for key in ("first", "second")
    ]
    text = (
        f"CPU seconds per round of the driver, of scheduler and network, and of the busiest worker: {spent[0]} with "
        f"one, {spent[1]} with two, a ratio of {row['first_path'] / row['second_path']:.2f}"
    )
    return [*made, Verdict(row["set"], text, None)]


def page(rows: list[Row]) -> str:
    loads = [float(row["env_load_average"]) for row in rows]
    about = rows[-1]
    lines = [
        "# Beyond memory: measured",
        "",
        f"Made by `python -m benchmarks.outofcore` on {about['env_cores']} cores ({about['env_cpu']}), "
        f"{about['env_date']}, at load averages of {min(loads):.2f} to {max(loads):.2f}: above the number of cores, "
        "wall seconds say little, those of several processes least. Every measurement ran in a process of its own.",
        "",
        "F1, the intercept included; `shards` is a folder of mapped binary shards under a limit on memory of a fifth "
        "of the data, or four shards if that is more, `dask:2` the same shards read by two worker processes, each "
        "under that limit. Peaks are of the driver, and of the larger worker.",
        "",
        "| set | rows | GB | way | objective | bound | iterations | passes | wall s | CPU s | peak GB | limit GB "
        "| worker GB |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in (row for row in rows if row["job"] == "fit"):
        most = f"{limit(row) / 1e9:.2f}" if row["way"] != "memory" else ""
        worker = f"{row['worker_peak_bytes'] / 1e9:.2f}" if row.get("worker_peak_bytes") else ""
        lines.append(
            f"| {row['set']} | {row['n']:,} | {row['size'] / 1e9:.2f} | {row['way']} | {row['objective']:.9g} "
            f"| {row['bound']:.9g} | {row['iterations']} | {row['passes']} | {row['wall_seconds']:.1f} "
            f"| {row['cpu_seconds']:.1f} | {row['peak_bytes'] / 1e9:.2f} | {most} | {worker} |"
        )
    lines += ["", "| set | asked for and measured | |", "|---|---|---|"]
    lines += [f"| {verdict.name} | {verdict.text} | {verdict.word} |" for verdict in verdicts(rows)]
    return "\n".join([*lines, "", LIMIT, ""])


LIMIT = (
    "The limit stated is the interpreter with its packages, the `memory` given for rows (none on the driver of a "
    f"cluster), {VECTORS} vectors of length n, and the cuts twice; 64 MiB for the rest."
)
