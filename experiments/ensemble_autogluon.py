"""AutoGluon on one table: ``python ensemble_autogluon.py PRESET SECONDS TABLE.npz OUT.npz``.

It needs other versions of packages than ours, so `experiments.ensemble` starts it with the interpreter that
``METRIMAX_AUTOGLUON`` names (``pip install autogluon.tabular[lightgbm,xgboost]`` there). TABLE has X, y and X_test; OUT
gets the labels and the probabilities of X_test, and the CPU seconds of the fit. One core; the threshold is that of
AutoGluon for F1.

SECONDS are CPU seconds: `time.time` is replaced by a clock that stands still while other programs have the core. So
AutoGluon gets as far on a busy machine as on a quiet one.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time

import numpy as np
import pandas as pd


def cpu_seconds() -> float:
    """Of this process and of the children that have ended."""
    return sum(os.times()[:4])


def main(preset: str, seconds: str, table: str, out: str) -> None:
    began = time.time() - cpu_seconds()
    time.time = lambda: began + cpu_seconds()
    from autogluon.tabular import TabularPredictor  # with that clock

    given = np.load(table)
    frame = pd.DataFrame(given["X"]).add_prefix("x")
    with tempfile.TemporaryDirectory() as folder:
        start = cpu_seconds()
        predictor = TabularPredictor("y", problem_type="binary", eval_metric="f1", path=folder, verbosity=0)
        predictor.fit(frame.assign(y=given["y"]), presets=preset, time_limit=float(seconds), num_cpus=1, num_gpus=0)
        used = cpu_seconds() - start
        test = pd.DataFrame(given["X_test"]).add_prefix("x")
        np.savez(
            out,
            called=predictor.predict(test).to_numpy(dtype=bool),
            p=predictor.predict_proba(test)[True].to_numpy(dtype=float),
            cpu_seconds=used,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
