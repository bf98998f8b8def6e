"""From the rows to ratios, and from ratios to whether what was aimed at is met."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def ratios(rows: list[Row]) -> list[Row]:
    """Each comparison at equal objective as one row: the competitor's seconds over metrimax's."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["task"], row["measure"], row["C"]), []).append(row)
    out = []
    for group in groups.values():
        own = {row["mode"]: row for row in group if row["competitor"] == "metrimax"}
        for row in group:
            if row["competitor"] in ("metrimax", "TunedThreshold") or row["cpu_seconds"] == "":
                continue
            name, mode = row["competitor"], row["mode"]
            finished = row["reached"] != "False"
            if mode == "default":
                pairs = [("match default", own.get(f"match default {name}"))]
            elif mode == "recorded":
                pairs = [("match recorded", own.get("match recorded SVM-perf") if finished else own["gap"])]
            elif mode == "estimated":
                pairs = [("estimated", own["gap"])]
            else:
                pairs = [("gap", own["gap"]), ("match gap", own.get(f"match gap {name}"))]
            out += [_ratio(row, label, mine, finished) for label, mine in pairs if mine is not None]
    return out


def _ratio(row: Row, label: str, mine: Row, finished: bool) -> Row:
    notes = [] if finished else ["it did not reach that gap" if row["mode"] == "gap" else "it did not finish"]
    if mine["reached"] == "False":
        notes.append("metrimax did not reach it")
    return {
        **{key: row[key] for key in ("task", "measure", "C", "c", "competitor")},
        "mode": label,
        "other_seconds": row["cpu_seconds"],
        "own_seconds": mine["cpu_seconds"],
        "ratio": row["cpu_seconds"] / mine["cpu_seconds"],
        "n_passes": mine["n_passes"],
        "other_gap": row["gap"],
        "own_gap": mine["gap"],
        "finished": finished,
        "note": "; ".join(notes),
    }


def _span(values: list[float]) -> str:
    values = sorted(values)
    middle = values[len(values) // 2]
    return f"median {middle:.3g}, {values[0]:.3g} to {values[-1]:.3g} ({len(values)})"


def _aim(text: str, values: list[float], met: Any) -> list[str]:
    if not values:
        return [text, "not measured", ""]
    good = sum(map(met, values))
    verdict = "yes" if good == len(values) else "no" if good == 0 else f"{good} of {len(values)}"
    return [text, _span(values), verdict]


def verdicts(parts: dict[str, list[Row]]) -> list[list[str]]:
    """One line per aim: what was aimed at, what was measured, whether it is met."""
    found = ratios(parts["compare"])

    def against(competitor: str, task: str, measure: str, modes: tuple[str, ...], c: float = 0) -> list[float]:
        return [
            row["ratio"]
            for row in found
            if row["competitor"] == competitor
            and row["task"].startswith(task)
            and row["measure"] == measure
            and row["mode"] in modes
            and (not c or abs(row["c"] / c - 1) < 1e-6)
        ]

    perf = ("gap", "match recorded", "estimated")
    lines = [
        _aim(f"SVM-perf, {task} {measure}{f' at c={c:g}' if c else ''}: its seconds / metrimax's >= {least}",
             against("SVM-perf", task, measure, perf, c), lambda ratio, least=least: ratio >= least)
        for task, measure, c, least in (
            ("reuters", "f1", 0, 10),
            ("ijcnn1", "f1", 0, 100),
            ("ijcnn1", "prbep", 0, 20),
            ("ijcnn1", "roc_area", 0, 3),
            ("optdigits", "f1", 10, 50),
        )
    ]  # fmt: skip
    solved = [
        row["gap"]
        for row in parts["compare"]
        if row["competitor"] == "metrimax"
        and row["mode"] == "gap"
        and row["measure"] == "f1"
        and (row["task"], round(row["c"])) in {("splice", 10), ("optdigits:8", 100)}
    ]
    lines.append(_aim("Splice F1 at c=10, Optdigits F1 at c=100 solved: gap <= 1e-3", solved, lambda gap: gap <= 1e-3))
    for mode in ("gap", "match gap", "match default"):
        lines.append(
            _aim(f"error rate, LinearSVC ({mode}): its seconds / metrimax's >= 1/2",
                 against("LinearSVC", "", "error", (mode,)), lambda ratio: ratio >= 0.5)
        )  # fmt: skip
        lines.append(
            _aim(f"ROC area, dlib ({mode}): its seconds / metrimax's >= 1",
                 against("dlib", "", "roc_area", (mode,)), lambda ratio: ratio >= 1)
        )  # fmt: skip
    lines.append(_labels(parts["labels"]))
    share = [
        row["fraction"] for row in parts["products"] if row["L"] == 1 and row["nnz"] >= 1e6 and row["fraction"] != ""
    ]
    lines.append(_aim("products, one vector, 10^6 non-zeros and more: share of the triad's bandwidth >= 0.6", share,
                      lambda value: value >= 0.6))  # fmt: skip
    for solver in dict.fromkeys(row["solver"] for row in parts["shares"]):
        parted: dict[bool, list[float]] = {True: [], False: []}
        for row in parts["shares"]:
            if row["solver"] == solver:
                parted[row["task"].startswith(("reuters", "sparse"))].append(row["argmax_to_products"])
        lines.append(_aim(f"argmax / products on text <= 1 ({solver})", parted[True], lambda value: value <= 1))
        lines.append(_aim(f"argmax / products on 20 to 64 dense columns <= 2 ({solver})", parted[False],
                          lambda value: value <= 2))  # fmt: skip
    model = [row["qp_seconds"] / row["seconds"] for row in parts["shares"]]
    lines.append(_aim("model and quadratic program: share of the time < 1/2", model, lambda value: value < 0.5))
    lines.append(_aim("path of 13 points / its hardest point alone <= 3", [row["ratio"] for row in parts["path"]],
                      lambda value: value <= 3))  # fmt: skip
    memory = [row["vectors"] for row in parts["scale"] if row["n"] >= 1e5]
    lines.append(_aim("memory beyond X and the cuts, vectors of length n < 10", memory, lambda value: value < 10))
    return lines


def _labels(rows: list[Row]) -> list[str]:
    seconds = {(row["problem"], row["competitor"], row["measure"]): row["cpu_seconds"] for row in rows}
    values = [
        own / seconds[problem, "OneVsRest(LinearSVC)", "error"]
        for (problem, competitor, measure), own in seconds.items()
        if competitor == "metrimax" and measure == "f1" and not problem.startswith("generated")
    ]
    return _aim("90 Reuters categories for F1 / OneVsRest(LinearSVC) < 2", values, lambda value: value < 2)
