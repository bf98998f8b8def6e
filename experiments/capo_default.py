"""Which outputs of the auxiliaries should be the default of `CAPOClassifier`, decided on sets that the paper lacks.

    python -m experiments.capo_default --data DIR

Ten sets of imbalanced-learn's collection, a random half for training (at most 2000 examples) and the other for testing;
auxiliaries, measures and the choice of C as in `experiments.capo`. Writes docs/results/capo_default.csv; the page is
that of `experiments.capo`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from experiments import data
from experiments.capo import Row, adaptations, auxiliary_rows, write
from experiments.capo_tasks import Task, three, train

SETS = (
    "satimage", "letter_img", "mammography", "pen_digits", "optical_digits", "coil_2000", "abalone", "wine_quality",
    "yeast_me2", "car_eval_34",
)  # fmt: skip
ROWS = 2000


def rows(task: Task) -> Iterator[Row]:
    outputs = train(three(task), task, folds=5)
    yield from auxiliary_rows(task, outputs)
    yield from adaptations(task, outputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the data sets")
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS), help="the sets to run")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # logistic regression of the RBF network
    path = Path(__file__).resolve().parents[1] / "docs" / "results" / "capo_default.csv"
    for name in options.sets:
        began = time.process_time()
        X, y, X_test, y_test = data.load(f"imblearn/{name}", options.data, ROWS)
        X, X_test = (part.toarray() if hasattr(part, "toarray") else part for part in (X, X_test))
        write(path, name, [{"data": name, **row} for row in rows(Task(name, X, y, X_test, y_test))])
        print(f"{name}: {time.process_time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
