"""AutoGluon on one table: ``python ensemble_autogluon.py PRESET SECONDS TABLE.npz OUT.npz``.

It needs other versions of packages than ours, so `experiments.ensemble` starts it with the interpreter that
``METRIMAX_AUTOGLUON`` names (``pip install autogluon.tabular[lightgbm,xgboost]`` there). TABLE has X, y and X_test; OUT
gets the labels and the probabilities of X_test, and the CPU seconds of the fit. One core; the threshold is that of
AutoGluon for F1.
"""

from __future__ import annotations

import resource
import sys
import tempfile

import numpy as np
import pandas as pd
from autogluon.tabular import TabularPredictor


def main(preset: str, seconds: str, table: str, out: str) -> None:
    given = np.load(table)
    frame = pd.DataFrame(given["X"]).add_prefix("x")
    with tempfile.TemporaryDirectory() as folder:
        predictor = TabularPredictor("y", problem_type="binary", eval_metric="f1", path=folder, verbosity=0)
        predictor.fit(frame.assign(y=given["y"]), presets=preset, time_limit=float(seconds), num_cpus=1, num_gpus=0)
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        test = pd.DataFrame(given["X_test"]).add_prefix("x")
        np.savez(
            out,
            called=predictor.predict(test).to_numpy(dtype=bool),
            p=predictor.predict_proba(test)[True].to_numpy(dtype=float),
            cpu_seconds=sum(who.ru_utime + who.ru_stime for who in used),
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
