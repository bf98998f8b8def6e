"""Error, recall, precision and F1 from the numbers of mistakes on both classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from metrimax.protocols import Labels


@dataclass(frozen=True)
class Estimate:
    """Estimates of the four measures from the numbers of mistakes on positives and on negatives.

    ``error = d/n``, ``recall = 1 - d+/n+``, ``precision = (n+ - d+) / (n+ - d+ + d-)``, ``f1 = (2n+ - 2d+) / (2n+ - d+
    + d-)``. A precision of 0/0 counts as 0.

    References
    ----------
    Joachims (2000), Definitions 1, 3, 4 and 5.
    """

    d_pos: int
    d_neg: int
    n_pos: int
    n_neg: int

    @classmethod
    def count(cls, mistaken: npt.NDArray[np.bool_], y: Labels, **more: Any) -> Self:
        """Count the mistakes on both classes."""
        d_pos, d_neg = int(np.count_nonzero(mistaken & y)), int(np.count_nonzero(mistaken & ~y))
        n_pos = int(np.count_nonzero(y))
        return cls(d_pos, d_neg, n_pos, len(y) - n_pos, **more)

    @property
    def table(self) -> tuple[int, int, int, int]:
        """``tp, fp, fn, tn``."""
        return self.n_pos - self.d_pos, self.d_neg, self.d_pos, self.n_neg - self.d_neg

    @property
    def error(self) -> float:
        return (self.d_pos + self.d_neg) / (self.n_pos + self.n_neg)

    @property
    def recall(self) -> float:
        return 1 - self.d_pos / self.n_pos

    @property
    def precision(self) -> float:
        found = self.n_pos - self.d_pos
        return found / (found + self.d_neg) if found else 0.0

    @property
    def f1(self) -> float:
        return (2 * self.n_pos - 2 * self.d_pos) / (2 * self.n_pos - self.d_pos + self.d_neg)

    def as_dict(self) -> dict[str, float]:
        """The four estimates by name."""
        return {"error": self.error, "recall": self.recall, "precision": self.precision, "f1": self.f1}

    def __str__(self) -> str:
        return (
            f"error {100 * self.error:.2f} %, recall {100 * self.recall:.1f} %, "
            f"precision {100 * self.precision:.1f} %, F1 {100 * self.f1:.1f} %"
        )
