"""The metrimax command: what it writes where, its exit codes, its files."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from metrimax.cli import main
from metrimax.io.models import load_model
from metrimax.protocols import Record
from metrimax.training.progress import ProgressLine

Capture = pytest.CaptureFixture[str]


def numbers(seed: int = 0, n: int = 300, p: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.2
    return np.round(rng.normal(size=(n, p)) + 1.5 * y[:, None], 4), y


def svmlight(X: np.ndarray, labels: list[str], base: int = 1) -> str:
    rows = (" ".join(f"{j + base}:{v:g}" for j, v in enumerate(row) if v) for row in X)
    return "".join(f"{label} {row}\n" for label, row in zip(labels, rows, strict=True))


def test_the_package_is_the_command() -> None:
    run = [sys.executable, "-m", "metrimax"]
    done = subprocess.run([*run, "measures"], capture_output=True, text=True, check=True)
    assert "roc_area" in done.stdout
    assert subprocess.run([*run, "nonsense"], capture_output=True, check=False).returncode == 2


@pytest.fixture
def train(tmp_path: Path) -> Path:
    X, y = numbers()
    (tmp_path / "train.svm").write_text(svmlight(X, ["1" if v else "-1" for v in y]))
    return tmp_path / "train.svm"


def run(capsys: Capture, *arguments: object, code: int = 0) -> str:
    assert main([str(a) for a in arguments]) == code
    return capsys.readouterr().out


def run_json(capsys: Capture, *arguments: object, code: int = 0) -> dict[str, object]:
    return json.loads(run(capsys, *arguments, "--json", code=code))


def test_train_predict_evaluate_info(train: Path, capsys: Capture) -> None:
    X, y = numbers()
    model = train.with_name("m.model")
    trained = run_json(capsys, "train", train, model, "--measure", "f1", "-C", "2")
    assert trained["gap"] <= 1e-3  # type: ignore[operator]
    assert trained["classes"] == [-1.0, 1.0]
    from scipy import sparse

    from metrimax import MeasureSVC

    X = sparse.csr_matrix(X)
    same = MeasureSVC("f1", C=2.0).fit(X, y)
    assert trained["objective"] == [pytest.approx(same.objective_, rel=1e-9)]
    labels = run(capsys, "predict", train, model).split()
    assert labels == ["1" if v else "-1" for v in same.predict(X)]
    scores = np.array(run(capsys, "predict", train, model, "--scores").split(), dtype=float)
    np.testing.assert_allclose(scores, same.decision_function(X), rtol=1e-7, atol=1e-7)
    assert run_json(capsys, "predict", train, model, "--scores")["scores"] == pytest.approx(scores.tolist(), rel=1e-7)
    values = run_json(capsys, "evaluate", train, model)
    assert values["f1"] == pytest.approx(same.score(X, y))
    assert values["positives"] == int(y.sum())
    assert {"roc_area", "prbep", "mcc", "kld", "accuracy", "balanced_accuracy"} <= values.keys()
    assert values["accuracy"] == pytest.approx(np.mean(same.predict(X) == y))
    assert main(["evaluate", str(train), str(model)]) == 0
    assert "higher is better, except for ae, cost, kld, nkld, rae" in capsys.readouterr().err
    described = run(capsys, "info", model)
    assert "measure:" in described
    assert "f1" in described
    assert run_json(capsys, "info", model)["training"]["C"] == 2.0  # type: ignore[index]


def test_output_file_and_quiet(train: Path, capsys: Capture) -> None:
    model, out = train.with_name("m"), train.with_name("labels")
    run(capsys, "train", train, model, "-q")
    assert run(capsys, "predict", train, model, "-o", out) == ""
    assert len(out.read_text().split()) == 300


def test_standard_input_and_compression(train: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(train.read_bytes())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(packed)))
    piped = run_json(capsys, "train", "-", train.with_name("a"))
    plain = run_json(capsys, "train", train, train.with_name("b"))
    assert piped["objective"] == plain["objective"]


def test_measures(capsys: Capture) -> None:
    from metrimax.measure import measures

    listed = run(capsys, "measures")
    assert all(f"\n{name} " in "\n" + listed for name in measures())
    assert run_json(capsys, "measures") == measures()


@pytest.mark.parametrize(
    "measure",
    [
        "fbeta:beta=2",
        "cost:fn=5,fp=1",
        "precision_at_k:k=10",
        "recall_at_k:k=2p",
        "recall_at_k:k=2,denominator=positives,labellings=at_least",
    ],
)
def test_measures_with_parameters(train: Path, capsys: Capture, measure: str) -> None:
    run(capsys, "train", train, train.with_name("m"), "-m", measure)
    assert load_model(train.with_name("m")).measure == measure


def test_warnings_are_remarks(train: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def warned(*_: object) -> int:
        for _ in range(3):
            warnings.warn("mind the gap", UserWarning, stacklevel=1)
        return 0

    monkeypatch.setattr("metrimax.cli.training.train", warned)
    assert main(["train", str(train), "m"]) == 0
    assert capsys.readouterr().err == "metrimax train: mind the gap\n"


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["-C", "0"], "expected a finite -C > 0, got 0.0"),
        (["-C", "nan"], "expected a finite -C > 0"),
        (["--tol", "-1"], "expected a finite --tol > 0"),
        (["--max-iter", "0"], "expected --max-iter of at least 1"),
        (["--threads", "0"], "expected --threads of at least 1"),
        (["--measure", "f3"], "unknown measure 'f3'"),
        (["--measure", "fbeta:gamma=2"], "fbeta takes beta, zero_division"),
        (["--measure", "fbeta:beta=-2"], "expected a finite beta > 0"),
        (["--measure", "fbeta:beta=1e300"], "expected a finite beta > 0, from 1e-100 to 1e100, got 1e+300"),
        (["--measure", "q:beta=1e200"], "expected a finite beta > 0, from 1e-100 to 1e100, got 1e+200"),
        (["--measure", "fbeta:beta=two"], "expected a finite beta > 0, from 1e-100 to 1e100, got 'two'"),
        (["--measure", "fbeta:2"], "expected NAME:KEY=VALUE"),
        (["--measure", "nothing:beta=2"], "unknown measure 'nothing'"),
    ],
)
def test_usage_errors(train: Path, capsys: Capture, extra: list[str], message: str) -> None:
    assert main(["train", str(train), str(train.with_name("m")), *extra]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""
    assert not train.with_name("m").exists()


def test_argparse_errors_are_usage_errors(capsys: Capture) -> None:
    for arguments in ([], ["dance"], ["train"], ["train", "a", "b", "-C", "x"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_failures(train: Path, capsys: Capture) -> None:
    missing = train.with_name("none")
    assert main(["train", str(missing), "m"]) == 1
    assert f"{missing}: No such file" in capsys.readouterr().err
    bad = train.with_name("bad.svm")
    bad.write_text("1 1:1\n-1 1:x\n")
    assert main(["train", str(bad), str(train.with_name("m"))]) == 1
    assert f"{bad}: line 2, column 6: expected a value" in capsys.readouterr().err
    bad.write_text("1 1:1\n1 1:2\n")
    assert main(["train", str(bad), str(train.with_name("m"))]) == 1
    assert "expected examples of two classes at least, got only 1" in capsys.readouterr().err
    bad.write_text("1:1\n2:1\n")
    assert main(["train", str(bad), str(train.with_name("m"))]) == 1
    assert "expected labels, got none" in capsys.readouterr().err
    assert main(["train", str(train), str(train / "no" / "m")]) == 1
    assert "cannot be written" in capsys.readouterr().err
    assert main(["predict", str(train), str(train)]) == 1
    assert "expected a model file" in capsys.readouterr().err


def test_not_converged_is_3_and_the_model_is_written(train: Path, capsys: Capture) -> None:
    model = train.with_name("m")
    assert main(["train", str(train), str(model), "--max-iter", "1", "--tol", "1e-9"]) == 3
    assert "stopped at max_iter" in capsys.readouterr().err
    assert load_model(model).training["labels"][0]["status"] == "max_iter"


def test_interrupt_writes_nothing(train: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("metrimax.cli.training.run", interrupted)
    assert main(["train", str(train), str(train.with_name("m"))]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert not train.with_name("m").exists()


def test_trivial_solutions_are_said(train: Path, capsys: Capture) -> None:
    noise = train.with_name("noise.svm")
    X = np.random.default_rng(0).normal(size=(400, 2))
    noise.write_text(svmlight(X, ["1" if k % 40 == 0 else "-1" for k in range(400)]))
    assert main(["train", str(noise), str(train.with_name("m")), "-C", "1e-6", "--hinge", "0"]) == 4
    said = capsys.readouterr().err
    assert "nothing was learnt: all weights are 0, and every example gets the same score" in said
    assert f"try 'metrimax tune {noise} {train.with_name('m')} --measure f1'" in said
    assert train.with_name("m").exists()
    assert main(["tune", str(noise), str(train.with_name("m")), "--grid", "1e-6", "--hinge", "0"]) == 4
    assert "try larger values of C (--grid 1:1000:4)" in capsys.readouterr().err
    assert main(["train", str(train), str(train.with_name("m")), "-m", "error", "-C", "1e-6"]) == 0
    assert "nothing was learnt" not in capsys.readouterr().err  # up to tol it is, but another w was found


def test_index_base_is_kept(tmp_path: Path, capsys: Capture) -> None:
    X, y = numbers()
    labels = ["1" if v else "0" for v in y]
    for base in (0, 1):
        (tmp_path / f"{base}.svm").write_text(svmlight(X, labels, base))
        run(capsys, "train", tmp_path / f"{base}.svm", tmp_path / f"{base}.m")
    zero, one = load_model(tmp_path / "0.m"), load_model(tmp_path / "1.m")
    np.testing.assert_array_equal(zero.coef, one.coef)
    assert (zero.index_base, one.index_base) == (0, 1)
    short = tmp_path / "short.svm"
    short.write_text("1 2:1\n0 3:1 9:5\n")  # no feature 0 here: the model still says how to count; 9 has no weight
    scores = np.array(run(capsys, "predict", short, tmp_path / "0.m", "--scores").split(), dtype=float)
    expected = zero.coef[0, [2, 3]] + zero.intercept - zero.threshold
    np.testing.assert_allclose(scores, expected, rtol=1e-7)
    short.write_text("1 0:1\n")
    assert main(["predict", str(short), str(tmp_path / "1.m")]) == 1
    assert "line 1, column 3: expected a feature index of at least 1, got 0" in capsys.readouterr().err


def test_several_classes_and_positive(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 3)) + 3 * np.eye(3)[y]
    path = tmp_path / "three.svm"
    path.write_text(svmlight(X, [str(v) for v in y]))
    out = run_json(capsys, "train", path, tmp_path / "m")
    assert out["classes"] == [0.0, 1.0, 2.0]
    predicted = np.array(run(capsys, "predict", path, tmp_path / "m").split(), dtype=int)
    assert (predicted == y).mean() > 0.9
    values = run_json(capsys, "evaluate", path, tmp_path / "m")
    assert values["accuracy"] == pytest.approx((predicted == y).mean())
    run(capsys, "train", path, tmp_path / "one", "--positive", "2")
    one = load_model(tmp_path / "one")
    assert (one.kind, one.classes) == ("binary", [-2.0, 2.0])
    assert run_json(capsys, "evaluate", path, tmp_path / "one")["positives"] == int((y == 2).sum())
    assert main(["train", str(path), str(tmp_path / "x"), "--positive", "7"]) == 1
    assert "no label 7: expected one of 0, 1, 2" in capsys.readouterr().err


def test_several_labels(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    Y = rng.random((300, 3)) < 0.4
    X = rng.normal(size=(300, 3)) + 4.0 * Y
    path = tmp_path / "multi.svm"
    path.write_text(svmlight(X, [",".join(str(k + 1) for k in np.flatnonzero(row)) for row in Y]))
    run(capsys, "train", path, tmp_path / "m")
    lines = run(capsys, "predict", path, tmp_path / "m").split("\n")[:-1]
    predicted = np.array([[str(k + 1) in line.split(",") for k in range(3)] for line in lines])
    assert (predicted == Y).mean() > 0.9
    values = run_json(capsys, "evaluate", path, tmp_path / "m")
    assert values["positives"] == Y.sum(axis=0).tolist()
    assert main(["train", str(path), str(tmp_path / "p"), "--model-format", "svmperf"]) == 2
    assert "give --positive LABEL" in capsys.readouterr().err


def test_tune(train: Path, capsys: Capture) -> None:
    out = run_json(
        capsys, "tune", train, train.with_name("m"), "-m", "error", "--grid", "0.001,0.1,10", "--folds", "3", "-q"
    )
    steps = {step["C"]: step["score"] for step in out["cross_validation"]}  # type: ignore[attr-defined]
    assert list(steps) == [0.001, 0.1, 10.0]
    assert steps[out["C"]] == max(steps.values())
    assert load_model(train.with_name("m")).training["C"] == out["C"]
    for extra in (["--grid", "0:1:3"], ["--grid", "a"], ["--folds", "1"]):
        assert main(["tune", str(train), "m", *extra]) == 2
    capsys.readouterr()


def test_svmperf_model_format(train: Path, capsys: Capture) -> None:
    ours, theirs = train.with_name("a"), train.with_name("b")
    run(capsys, "train", train, ours, "-m", "prbep")
    run(capsys, "train", train, theirs, "-m", "prbep", "--model-format", "svmperf")
    assert theirs.read_text().startswith("SVM-light Version V6.20\n")
    scores = [np.array(run(capsys, "predict", train, m, "--scores").split(), dtype=float) for m in (ours, theirs)]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)
    assert run_json(capsys, "evaluate", train, theirs)["prbep"] > 0.5  # type: ignore[operator]
    assert "unknown" in run(capsys, "info", theirs)


def test_progress_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        monkeypatch.setattr("sys.stderr", stream)
        clock = iter(range(100))
        monkeypatch.setattr("metrimax.training.progress.time.monotonic", lambda clock=clock: next(clock))
        with ProgressLine("fitting", 1e-3) as line:
            for k in range(1, 4):
                line(Record(k, 2 * k, 0.1**k, 0.0, k, float(k)))
    assert pipe.getvalue() == ""
    assert (
        "fitting: iteration 2, gap 1.00e-02 (until 0.001), 2.0 s, about 1 s, 1 iterations left" in terminal.getvalue()
    )
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with ProgressLine("fitting", 1e-3) as line:
        for k in range(1, 4):
            line(Record(k, 2 * k, 1 - 1e-6 * k, 0.0, k, float(k)))
    assert "iteration 3" in terminal.getvalue()
    assert "left" not in terminal.getvalue()  # not millions of iterations, by a rate that nobody knows yet
    files, terminal = SimpleNamespace(bytes_read=2_500_000_000), Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("metrimax.training.progress.time.monotonic", lambda: 1.0)
    ProgressLine("fitting", 1e-3, files)(Record(1, 2, 0.1, 0.0, 1, 1.0))
    assert "1.0 s, 2.50 GB read" in terminal.getvalue()


def test_nothing_heavy_is_imported(train: Path) -> None:
    """A command that starts slowly is not used: NumPy and nothing else, and not even that for help."""
    model = train.with_name("m")
    for arguments in (["--help"], ["measures"], ["train", str(train), str(model)], ["predict", str(train), str(model)]):
        code = (
            "import sys\nfrom metrimax.cli import main\n"
            f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
            "heavy = {'scipy', 'sklearn', 'matplotlib', 'pandas'} & set(sys.modules)\n"
            f"heavy |= {{'numpy'}} & set(sys.modules) if {arguments == ['--help']} else set()\n"
            "sys.exit(bool(heavy) and 9)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (arguments, done.stderr)


@pytest.mark.posix
def test_broken_pipe_is_quiet(train: Path) -> None:
    command = f"{sys.executable} -c 'from metrimax.cli import main; raise SystemExit(main())' measures | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr


def test_demo(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    from metrimax.cli import comparison

    few = [comparison.Result("theirs", 0.5, 0.1), comparison.Result("ours", 0.6, 0.2)]
    monkeypatch.setattr(comparison, "compare_table", lambda: few)
    monkeypatch.setattr(comparison, "MODULES", ["threading", "pathlib", "zipfile"])
    report = tmp_path / "demo.html"
    assert main(["demo", "--report", str(report)]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("This takes about ten seconds")
    assert "3 modules" in told.out
    assert all(name in told.out for name in ("MeasureSVCCV", "LinearSVC", "theirs", "ours"))
    assert told.err.endswith(f"3. Report of the label 'threading': {report}\n")
    assert "Which docstrings are from the module threading?" in report.read_text()
    found = run_json(capsys, "demo", "--report", report)
    assert found["table"] == {"theirs": 0.5, "ours": 0.6}
    assert len(found["text"]) == 3  # type: ignore[arg-type]


def test_demo_without_matplotlib_or_sources(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    from metrimax.cli import comparison

    monkeypatch.setattr(comparison, "compare_table", lambda: [comparison.Result("ours", 0.6, 0.2)])
    monkeypatch.setattr(comparison, "docstrings", lambda: ([], []))
    monkeypatch.setattr("metrimax.cli.demo.find_spec", lambda name: None)
    assert main(["demo", "--report", str(tmp_path / "demo.html")]) == 0
    told = capsys.readouterr().err
    assert "no text, because this Python comes without the source of its library" in told
    assert "no report without matplotlib (pip install 'metrimax[plot]')" in told
    assert not (tmp_path / "demo.html").exists()


def test_the_table_of_the_demo() -> None:
    """What it says of the two ways of scikit-learn; ours is left to the tests of the ensemble."""
    from metrimax.cli import comparison

    texts, labels = comparison.docstrings()
    assert len(texts) == len(labels) > 1000
    assert min(labels.count(module) for module in comparison.MODULES) >= 10


def test_the_source_of_datetime_moved_in_python_3_12(tmp_path: Path) -> None:
    from metrimax.cli import comparison

    (tmp_path / "datetime.py").write_text("from _pydatetime import *\n")
    (tmp_path / "_pydatetime.py").write_text(f'def strptime():\n    "{"string to date " * 5}"\n')
    assert comparison.docstrings(tmp_path)[1] == ["datetime"]


def test_demo_threshold_is_the_best_one() -> None:
    from metrimax.cli.comparison import best_threshold

    rng = np.random.default_rng(0)
    y = rng.random(40) < 0.3
    scores = rng.normal(size=40) + y

    def f1(threshold: float) -> float:
        called = scores > threshold
        return 2 * float((called & y).sum()) / float(called.sum() + y.sum())

    assert f1(best_threshold(y, scores)) == max(f1(t) for t in np.append(scores, scores.min() - 1))
