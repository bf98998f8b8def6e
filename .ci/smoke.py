"""A wheel works: train, predict, save, load and run the command, with what the wheel requires and nothing more."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import metrimax
from metrimax import MeasureRanker, MeasureSVC, _kernels, measures

X, benign = load_breast_cancer(return_X_y=True)
X, y = scale(X), 1 - benign

for name in measures():
    if name != "ndcg":  # of graded rankings, below
        model = MeasureSVC(name, C=1.0).fit(X, y)
        assert model.gap_ <= model.tol, f"{name}: {model.status_}"
model = MeasureSVC("f1").fit(X, y)
sparse = MeasureSVC("f1").fit(csr_matrix(X), y)
assert model.score(X, y) > 0.97
assert np.mean(model.predict(X) == sparse.predict(X)) > 0.99
MeasureRanker("ndcg").fit(X, y, groups=np.arange(len(y)) // 20)

with tempfile.TemporaryDirectory() as folder:
    data = Path(folder) / "train.svm"
    lines = (
        f"{label} " + " ".join(f"{j}:{value:.6f}" for j, value in enumerate(row, 1))
        for label, row in zip(y, X, strict=True)
    )
    data.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "metrimax"]
    subprocess.run([*command, "train", data, Path(folder) / "m.model"], check=True)
    subprocess.run([*command, "predict", data, Path(folder) / "m.model", "-o", Path(folder) / "out"], check=True)

print(f"metrimax {metrimax.__version__} on Python {sys.version.split()[0]}: {Path(_kernels.__file__).name} works")
