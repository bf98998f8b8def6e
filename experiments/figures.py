"""Figures: drawn without a display, small enough for the repository, written beside and renamed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def save(figure: Any, path: Path, *, bottom: float = 0.0, dpi: int = 100) -> None:
    """Write a PNG and close the figure; ``bottom`` is the share of its height that a legend needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if figure.get_layout_engine() is None:
        figure.tight_layout(rect=(0, bottom, 1, 1))
    part = path.with_suffix(".part")
    figure.savefig(part, dpi=dpi, format="png")
    plt.close(figure)
    part.replace(path)
