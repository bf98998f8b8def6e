"""The figures of `experiments.capo`."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from experiments.capo_problem import MEASURES
from experiments.figures import save

STYLE = {
    "lin": {"color": "0.45", "marker": "o"},
    "rbf": {"color": "C1", "marker": "s"},
    "CAPO1": {"color": "C0", "marker": "^"},
    "CAPO5": {"color": "C2", "marker": "v"},
    "CAPO*": {"color": "C3", "marker": "D"},
}
LABELS = {"lin": "MeasureSVC linear", "rbf": "MeasureSVC RBF"}
WHAT = {"n_iter": "cuts", "value": "test performance", "seconds": "CPU seconds"}


def bars(tasks: list[tuple[str, str]], gains: list[tuple[float, float]], path: Path) -> None:
    """Figure 2: what choosing the auxiliaries improves, for themselves and for CAPO."""
    figure, axis = plt.subplots(figsize=(9, 3.2), layout="constrained")
    for k, (name, color) in enumerate((("mean of the auxiliaries", "0.6"), ("CAPO", "C0"))):
        axis.bar([i + 0.4 * k for i in range(len(gains))], [g[k] for g in gains], 0.4, label=name, color=color)
    names = [f"{data} {measure}" for data, measure in tasks]
    axis.set_xticks([i + 0.2 for i in range(len(gains))], names, rotation=60, ha="right", fontsize=7)
    axis.set_ylabel("relative improvement, %")
    axis.axhline(0, color="k", lw=0.5)
    axis.legend()
    save(figure, path, dpi=75)


def sweeps(frame: pd.DataFrame, folder: Path) -> None:
    """Figures 1, 3 and 4: over C and over B."""
    over_C = frame[frame.parameter == "C"]
    _grid(over_C[over_C.method.isin(("lin", "CAPO1", "CAPO*"))], ["n_iter"], folder / "capo_fig1.png", "C")
    _grid(over_C[over_C.method != "CAPO*"], ["value", "seconds"], folder / "capo_fig3.png", "C")
    flat = over_C[over_C["at"] == 1].groupby(["data", "measure", "method"]).mean(numeric_only=True)
    over_B = frame[frame.parameter == "B"]
    _grid(over_B, ["value", "seconds"], folder / "capo_fig4.png", "B", flat.reset_index())


def over_size(frame: pd.DataFrame, folder: Path) -> None:
    """Figure 5: over the size of the training set."""
    frame = frame.rename(columns={"share": "at"})
    _grid(frame, ["value", "seconds"], folder / "capo_fig5.png", "share of the training set")


def _grid(frame: pd.DataFrame, rows: list[str], path: Path, x: str, flat: pd.DataFrame | None = None) -> None:
    """A row of axes for every data set and quantity, a column for every measure."""
    measures = [measure for measure in MEASURES if measure in set(frame.measure)]
    kinds = [(name, row) for name in frame.data.unique() for row in rows]
    figure, axes = plt.subplots(
        len(kinds),
        len(measures),
        figsize=(9, 1.9 * len(kinds) + 0.4),
        layout="constrained",
        squeeze=False,
        sharex=True,
    )
    for a, (name, row) in enumerate(kinds):
        for axis, measure in zip(axes[a], measures, strict=True):
            here = frame[(frame.data == name) & (frame.measure == measure)]
            for method in STYLE:
                line = here[here.method == method].sort_values("at")
                if len(line):
                    axis.plot(line["at"], line[row], ms=3, lw=1, label=LABELS.get(method, method), **STYLE[method])
            if flat is not None and row == "value":
                for method in ("lin", "rbf"):
                    level = flat[(flat.data == name) & (flat.measure == measure) & (flat.method == method)][row]
                    if len(level):
                        color = STYLE[method]["color"]
                        axis.axhline(level.iloc[0], color=color, lw=1, ls="--", label=LABELS[method])
            axis.set_xscale("log", base=2)
            if row != "value":
                axis.set_yscale("log")
            axis.tick_params(which="both", labelsize=7)
            if a == 0:
                axis.set_title(measure, fontsize=9)
            if a == len(kinds) - 1:
                axis.set_xlabel(x, fontsize=8)
        axes[a][0].set_ylabel(f"{name}\n{WHAT[row]}", fontsize=8)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
    save(figure, path, dpi=75)
