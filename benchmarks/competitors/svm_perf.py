"""SVM-perf, the original program, where SVM_PERF_LEARN names its ``svm_perf_learn``.

The name alone is not looked for: metrimax brings a command of that name itself.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.competitors import Answer
from benchmarks.data import Task

LOSSES = {"f1": 1, "error": 2, "prbep": 3, "roc_area": 10}
TIME_LIMIT = 200


class _Prepared:
    def __init__(self, task: Task, measure: str, C: float) -> None:
        from sklearn.datasets import dump_svmlight_file

        from benchmarks.judge import Judge

        self.task, self.loss = task, LOSSES[measure]
        self.c = Judge(task, measure).weight(C) / 100
        self._folder = tempfile.TemporaryDirectory()
        self.train = Path(self._folder.name) / "train"
        dump_svmlight_file(task.X, np.where(task.y, 1, -1), str(self.train), zero_based=False)

    def fit(self, setting: float) -> Answer:
        model = self.train.with_name("model")
        options = f"-c {self.c!r} -l {self.loss} -w 3 --b 1 -e {setting}".split()
        command = [os.environ["SVM_PERF_LEARN"], *options, str(self.train), str(model)]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIME_LIMIT).stdout
        seconds = re.search(r"Runtime in cpu-seconds: ([\d.]+)", said)
        n_iter = re.search(r"Number of iterations: (\d+)", said)
        if not seconds or not n_iter:
            raise RuntimeError(f"expected the run time in what svm_perf_learn printed, got: {said[-300:]}")
        iterations = int(n_iter[1])
        return Answer(self._weights(model), iterations, 2 * iterations, cpu_seconds=float(seconds[1]))

    def _weights(self, model: Path) -> np.ndarray:
        lines = model.read_text().splitlines()
        w = np.zeros(self.task.X.shape[1] + 1)
        for pair in lines[11].split("#")[0].split()[1:]:
            index, value = pair.split(":")
            w[int(index) - 1] = float(value)
        w[-1] = -float(lines[10].split()[0])
        return w


class Adapter:
    """``svm_perf_learn -w 3``; a setting is its ``-e``, in percent. Seconds are those it prints, without reading."""

    name = "SVM-perf"
    measures = frozenset(LOSSES)
    settings = (0.1, 0.03, 0.01)
    default = 0.1

    def missing(self) -> str | None:
        path = os.environ.get("SVM_PERF_LEARN")
        return None if path and Path(path).exists() else "set SVM_PERF_LEARN to the original svm_perf_learn"

    def version(self) -> str:
        return "3.00"

    def prepare(self, task: Task, measure: str, C: float) -> _Prepared:
        return _Prepared(task, measure, C)


ADAPTER = Adapter()
