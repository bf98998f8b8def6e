"""svm_perf_learn and svm_perf_classify: options, printed lines, files and exit codes of SVM-perf."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metrimax.compat import svm_perf_classify, svm_perf_learn
from metrimax.compat.reporting import report
from metrimax.compat.training import read_examples, solve, train, working_set
from metrimax.io.data import csr
from metrimax.io.files import FileError
from metrimax.io.svmlight import read_svmlight
from metrimax.io.svmperf_model import parse_svmperf_model

Capture = pytest.CaptureFixture[str]


def examples(seed: int = 0, n: int = 200) -> str:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    X = rng.normal(size=(n, 5)) + 1.5 * y[:, None]
    return "".join(
        f"{'+1' if label else '-1'} " + " ".join(f"{j + 1}:{value:.5f}" for j, value in enumerate(row)) + " # note\n"
        for row, label in zip(X, y, strict=True)
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.dat").write_text(examples())
    (tmp_path / "test.dat").write_text(examples(1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def learn(capsys: Capture, *arguments: str, code: int = 0) -> str:
    assert svm_perf_learn.main(arguments) == code
    said = capsys.readouterr()
    assert (said.err == "") == (code == 0)
    return said.out if code == 0 else said.err


def classify(capsys: Capture, *arguments: str) -> str:
    assert svm_perf_classify.main(arguments) == 0
    return capsys.readouterr().out


def test_a_script_of_svm_perf(folder: Path, capsys: Capture) -> None:
    """Learn, classify, and parse what is printed, with default file names."""
    out = learn(capsys, "-c", "1", "train.dat")
    lines = out.split("\n")
    assert lines[0] == "Reading training examples...done"
    assert re.fullmatch(r"Training set properties: 6 features, 200 examples \(\d+ pos / \d+ neg\)", lines[1])
    iterations = [line for line in lines if line.startswith("Iter ")]
    assert all(
        re.fullmatch(r"Iter \d+: \.\*\(NumConst=\d+, SV=\d+, CEps=\d+\.\d{4}, QPEps=\d+\.\d{4}\)", line)
        for line in iterations
    )
    values = {name: float(v) for name, v in re.findall(r"(dval|pval|\|w\||xi)=([0-9.]+)", out)}
    epsilon = float(re.search(r"Final epsilon on KKT-Conditions: (\d+\.\d{5})\n", out)[1])  # type: ignore[index]
    gap = float(re.search(r"Upper bound on duality gap: (\d+\.\d{5})\n", out)[1])  # type: ignore[index]
    assert epsilon <= 0.1
    assert values["pval"] - values["dval"] == pytest.approx(gap, abs=2e-5)
    # the objective again, from the weights in the model file and the definition of the loss
    model = parse_svmperf_model("m", (folder / "svm_struct_model").read_bytes())
    rows = read_svmlight(folder / "train.dat")
    w, b = model.linear().coef[0], model.b
    s = csr(rows, 1, 5).matvec(w) - b
    xi = 100 / rows.n * np.maximum(0, 1 - np.sign(rows.labels) * s).sum()
    assert values["pval"] == pytest.approx((w @ w + b * b) / 2 + xi, rel=1e-5)
    assert values["|w|"] == pytest.approx(np.sqrt(w @ w + b * b), rel=1e-5)
    for name in (
        "Total number of constraints in final working set: ",
        "Number of iterations: ",
        "Number of calls to 'find_most_violated_constraint': ",
        "Number of SV: ",
        "Value of slack variable (on working set): xi=",
        "Value of slack variable (global): xi=",
        "Norm of longest difference vector: ||Psi(x,y)-Psi(x,ybar)||=",
        "Runtime in cpu-seconds: ",
    ):
        assert f"\n{name}" in out

    out = classify(capsys, "test.dat", "svm_struct_model")
    test = read_svmlight(folder / "test.dat")
    scores = csr(test, 1, 5).matvec(w) - b
    printed = (folder / "svm_predictions").read_text().split("\n")
    assert all(re.fullmatch(r"-?\d+\.\d{8}", line) for line in printed[:-1])
    np.testing.assert_allclose([float(v) for v in printed[:-1]], scores, atol=1e-6)
    shown = dict(re.findall(r"^(\w+) *: +([0-9.]+)$", out, flags=re.M))
    assert list(shown)[:7] == ["Accuracy", "Precision", "Recall", "F1", "PRBEP", "ROCArea", "AvgPrec"]
    y = test.labels > 0
    assert float(shown["Accuracy"]) == pytest.approx(100 * ((scores > 0) == y).mean(), abs=0.006)
    metrics = pytest.importorskip("sklearn.metrics")
    assert float(shown["F1"]) == pytest.approx(100 * metrics.f1_score(y, scores > 0), abs=0.006)
    assert float(shown["ROCArea"]) == pytest.approx(100 * metrics.roc_auc_score(y, scores), abs=0.006)
    assert float(shown["AvgPrec"]) == pytest.approx(100 * metrics.average_precision_score(y, scores), abs=0.006)
    assert re.search(r"^Average loss on test set: \d+\.\d{4}$", out, flags=re.M)
    assert "Zero/one-error on test set: 100.00% (0 correct, 1 incorrect, 1 total)\nNOTE: " in out


def test_verbosity_zero(folder: Path, capsys: Capture) -> None:
    assert learn(capsys, "-v", "0", "-c", "1", "train.dat", "model") == ""
    out = classify(capsys, "-v", "0", "test.dat", "model", "predictions")
    assert out.startswith("NOTE: ")  # with the measures, printed at every verbosity
    assert (folder / "predictions").exists()


@pytest.mark.parametrize("code", [0, 1, 3, 4, 5, 10, 12, 13, 16, 20, 21, 22, 23, 24, 25, 26, 27])
def test_every_loss_trains(folder: Path, capsys: Capture, code: int) -> None:
    out = learn(capsys, "-c", "0.1" if code == 16 else "1", "-w", "3", "-l", str(code), "-e", "1", "train.dat", "model")
    assert "Primal objective value: pval=" in out
    classify(capsys, "test.dat", "model")


def test_a_share_beyond_all_examples(folder: Path, capsys: Capture) -> None:
    """k of Rec@k is at most n, however large --p."""
    for p, model in (("1000", "some"), ("1e308", "all")):
        learn(capsys, "-c", "1", "-w", "3", "-l", "5", "--p", p, "train.dat", model)
    assert (folder / "some").read_text() == (folder / "all").read_text()


def test_bias(folder: Path, capsys: Capture) -> None:
    learn(capsys, "-c", "1", "--b", "0", "train.dat", "without")
    text = (folder / "without").read_text().split("\n")
    assert text[10].startswith("0 # threshold b")
    assert text[7] == "6 # highest feature index "
    learn(capsys, "-c", "1", "--b", "10", "train.dat", "with")
    assert (folder / "with").read_text().split("\n")[7] == "7 # highest feature index "
    learn(capsys, "-c", "1", "--b", "-10", "train.dat", "negative")
    first, second = (parse_svmperf_model("m", (folder / name).read_bytes()) for name in ("with", "negative"))
    assert first.b == second.b


def test_dual_variables(folder: Path, capsys: Capture) -> None:
    learn(capsys, "-c", "2", "-e", "0.001", "-w", "3", "-a", "alphas", "train.dat", "model")
    alphas = np.array((folder / "alphas").read_text().split(), dtype=float)
    assert alphas.min() >= 0
    assert alphas.sum() == pytest.approx(2, rel=1e-6)  # the slack is above zero, so its multiplier is not
    rows = read_examples(str(folder / "train.dat"))
    trained = train(rows, code=2, c=2, epsilon=0.001)
    working = working_set(trained.solution, 2)
    assert working.slack == pytest.approx(
        (trained.solution.objective - trained.solution.w @ trained.solution.w / 2) / 2, abs=0.01
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.dat"], r"the option -c \(C\) is required"),
        (["-c", "-1", "train.dat"], "option -c: expected C > 0, got -1"),
        (["-c", "x", "train.dat"], "option -c: expected a finite number, got 'x'"),
        (["-c", "1"], "expected example_file"),
        (["-c"], "option -c: expected a value after it"),
        (["-c", "1", "a", "b", "c"], "expected example_file"),
        (["-c", "1", "-z", "3", "train.dat"], "unknown option -z"),
        (["-c", "1", "-l", "1", "train.dat"], "use -w 3"),
        (["-c", "1", "-l", "7", "-w", "3", "train.dat"], "Unknown loss function"),
        (["-c", "1", "-w", "5", "train.dat"], "option -w: expected 0, 1, 2, 3, 4 or 9, got 5"),
        (["-c", "1", "-e", "0", "train.dat"], "option -e: expected a number above 0"),
        (["-c", "1", "-l", "11", "-w", "3", "train.dat"], "-l 11.* is not supported"),
        (["-c", "1", "-t", "2", "train.dat"], "RBF kernels .* are not supported"),
        (["-c", "1", "-o", "1", "train.dat"], "slack rescaling .* is not supported"),
        (["-c", "1", "-p", "2", "-w", "0", "train.dat"], "squared slack .* is not supported"),
        (["-c", "1", "--t", "1", "train.dat"], "a basis .* is not supported"),
        (["-c", "1", "-w", "3", "-l", "4", "--p", "2", "train.dat"], "--p of at most 1"),
        (["-c", "1", "-w", "3", "-l", "5", "--p", "0.5", "train.dat"], "--p of at least 1"),
        (["-c", "1", "none.dat"], "none.dat: No such file"),
        (["-c", "1", "one.dat"], "one.dat: expected examples of both classes, .* got 2 examples of the positive class"),
        (["-c", "1", "train.dat", "no/model"], "no/model: cannot be written: No such file"),
        (["-c", "1", "-a", "no/alphas", "train.dat"], "no/alphas: cannot be written: No such file"),
        (["-c", "1", "train.dat", "./train.dat"], "./train.dat would take the place of example_file: give model_file"),
        (["-c", "1", "-a", "train.dat", "train.dat"], "train.dat would take the place of example_file: give -a"),
        (["-c", "1", "blank.dat"], "line 2, column 1: expected an example, got a blank line"),
        (["-c", "1", "empty.dat"], "expected examples, got none"),
        (["-c", "1", "zero.dat"], "line 1, column 3: expected a feature index of at least 1"),
        (["-c", "1", "several.dat"], "expected one label on every line"),
        (["-c", "1", "large.dat"], "large.dat: example 2, feature 3: expected a value within the range of a 32-bit"),
    ],
)
def test_refusals(folder: Path, capsys: Capture, arguments: list[str], message: str) -> None:
    (folder / "one.dat").write_text("1 1:1\n1 2:1\n")
    (folder / "blank.dat").write_text("1 1:1\n\n-1 2:1\n")
    (folder / "empty.dat").write_text("# nothing\n")
    (folder / "zero.dat").write_text("1 0:1\n")
    (folder / "several.dat").write_text("1,2 1:1\n-1 1:2\n")
    (folder / "large.dat").write_text("1 1:1\n-1 1:2 3:1e300\n")
    said = learn(capsys, *arguments, code=1)
    assert re.search(message, said), said
    assert not (folder / "svm_struct_model").exists()
    assert (folder / "train.dat").read_text() == examples()


def test_outputs_are_checked_before_the_work(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metrimax.compat.training.solve", lambda *_, **__: pytest.fail("trained before the check"))
    learn(capsys, "-c", "1", "train.dat", "no/model", code=1)
    learn(capsys, "-c", "1", "-a", "no/alphas", "train.dat", code=1)


def test_help(capsys: Capture) -> None:
    for program in (svm_perf_learn, svm_perf_classify):
        assert program.main(["-?"]) == 0
        assert "usage: svm_perf_" in capsys.readouterr().out


def test_what_svm_perf_accepts(folder: Path, capsys: Capture) -> None:
    """Label 0 is negative, magnitudes do not matter, qid, sid and cost are ignored, a last line needs no end."""
    (folder / "odd.dat").write_text("# head\n3 qid:1 1:1 #c\n0 sid:4 1:-1\n-7.5 cost:2 2:1\n1 1:2 99999999:1")
    out = learn(capsys, "-c", "1", "odd.dat", "model")
    assert "4 examples (2 pos / 2 neg)" in out
    assert "100000000 features" in out  # few of which get a weight in memory
    out = classify(capsys, "odd.dat", "model")
    assert "(4 examples)" in out


def test_classify_refusals(folder: Path, capsys: Capture) -> None:
    learn(capsys, "-c", "1", "train.dat", "model")
    (folder / "old").write_text("SVM-light Version V6.01\n")
    (folder / "large.dat").write_text("1 1:1\n-1 1:2 3:1e300\n")
    for arguments, message in (
        (["test.dat"], "expected test_file model_file"),
        (["-v", "x", "test.dat", "model"], "option -v: expected a whole number"),
        (["test.dat", "old"], "expected 'SVM-light Version V6.20'"),
        (["none.dat", "model"], "No such file"),
        (["test.dat", "model", "no/such/place"], "cannot be written"),
        (["test.dat", "model", "model"], "model would take the place of model_file: give output_file another name"),
        (["test.dat", "model", "./test.dat"], "./test.dat would take the place of test_file"),
        (["large.dat", "model"], "large.dat: example 2, feature 3: expected a value within the range of a 32-bit"),
    ):
        assert svm_perf_classify.main(arguments) == 1
        assert message in capsys.readouterr().err


def test_values_are_rounded_to_32_bits(folder: Path, capsys: Capture) -> None:
    """By both programs, as in SVM-perf."""
    model = "SVM-light Version V6.20\n0 #\n3 #\n1 #\n1 #\n1 #\nempty#\n3 #\n1 #\n2 #\n0 #\n1 1:1 #\n"
    (folder / "model").write_text(model)
    (folder / "one.dat").write_text("1 1:16777217\n-1 1:0.1\n")
    classify(capsys, "one.dat", "model", "out")
    assert (folder / "out").read_text() == "16777216.00000000\n0.10000000\n"


def test_ties_count_as_ranked_wrongly() -> None:
    y = np.array([True, False, True, False])
    _, text = report(y, np.array([1.0, 1.0, 0.0, 0.0]))
    shown = dict(re.findall(r"^(\w+) *: +([0-9.]+)$", text, flags=re.M))
    assert (shown["ROCArea"], shown["PRBEP"]) == ("25.00", "50.00")
    assert shown["AvgPrec"] == "50.00"
    assert shown["AE"] == "100.00"  # as many called as there are
    _, text = report(np.array([True, True]), np.array([1.0, -1.0]))
    assert "ROCArea   :   nan" in text


def test_installed_commands(folder: Path) -> None:
    scripts = Path(sys.executable).parent
    if not (scripts / "svm_perf_learn").exists():
        pytest.skip("the commands are not installed beside this Python")
    subprocess.run(
        [scripts / "svm_perf_learn", "-c", "1", "train.dat", "m"], check=True, timeout=60, capture_output=True
    )
    done = subprocess.run(
        [scripts / "svm_perf_classify", "test.dat", "m", "p"], timeout=60, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "Accuracy" in done.stdout


def test_examples_of_the_reader() -> None:
    with pytest.raises(FileError, match="No such file"):
        read_examples("none")


FILES = {
    "reuters": "reuters21578/tfidf_full_{}.svm.xz",
    "svmperf_example1": "svmperf_example1/{}.svm.xz",
    "optdigits": "optdigits/{}.svm.xz",
}


@pytest.mark.shared_data
@pytest.mark.parametrize("task", ["reuters:ship", "svmperf_example1", "optdigits:8"])
def test_recall_at_k_as_svm_perf_answered(shared_data: Path, golden: Path, task: str) -> None:
    """-l 5, which only the drop-in has: objectives, and the measures printed for the test set."""
    found = [
        row for row in json.loads((golden / "svmperf.json").read_text()) if row["task"] == task and row["loss"] == 5
    ]
    assert found
    name, _, positive = task.partition(":")
    data = [read_svmlight(shared_data / FILES[name].format(part)) for part in ("train", "test")]
    width = max(rows.highest for rows in data)
    truth = []
    for rows in data:
        if name == "reuters":
            table = [line.split("\t") for line in (shared_data / "reuters21578/categories.tsv").read_text().split("\n")]
            label = next(float(cells[0]) for cells in table if positive in cells[1:])
            row = np.repeat(np.arange(rows.n), np.diff(rows.label_starts))
            truth.append(np.isin(np.arange(rows.n), row[rows.labels == label]))
        else:
            truth.append(rows.labels == float(positive) if positive else rows.labels > 0)
    for row in found:
        if "primal" not in row or row["C_perf"] > 10:
            continue
        assert truth[0].sum() == row["pos"]
        solution = solve(csr(data[0], 1, width), truth[0], code=5, c=row["C_perf"], epsilon=row["eps_percent"])
        slack = 2 * row["eps_percent"] * row["C_perf"]
        assert row["dual"] - slack <= solution.objective <= row["primal"] + slack
        assert solution.bound <= row["primal"] * (1 + 1e-6)
        if row["C_perf"] == 10:
            scores = csr(data[1], 1, width).matvec(solution.w[:-1]) + solution.w[-1]
            shown = dict(re.findall(r"^(\w+) *: +([0-9.]+)$", report(truth[1], scores)[1], flags=re.M))
            assert float(shown["ROCArea"]) == pytest.approx(row["test"]["ROCArea"], abs=1)


@pytest.mark.shared_data
@pytest.mark.parametrize("loss", [1, 2, 3, 5, 10])
def test_the_commands_answer_as_svm_perf_did(
    shared_data: Path, golden: Path, tmp_path: Path, capsys: Capture, loss: int
) -> None:
    """The example that comes with it: objective, bound, no more iterations, and the measures for the test set."""
    rows = json.loads((golden / "svmperf.json").read_text())
    found = [row for row in rows if (row["task"], row["loss"]) == ("svmperf_example1", loss)]
    assert len(found) == 4
    train, test = (str(shared_data / FILES["svmperf_example1"].format(part)) for part in ("train", "test"))
    model, predictions = str(tmp_path / "model"), str(tmp_path / "predictions")
    for row in found:
        options = ["-w", "3", "-l", str(loss), "-c", str(row["C_perf"]), "-e", str(row["eps_percent"])]
        out = learn(capsys, *options, train, model)
        assert f" {row['n']} examples ({row['pos']} pos / " in out
        dual, primal = (float(re.search(rf"{name}=(\S+)", out)[1]) for name in ("dval", "pval"))  # type: ignore[index]
        slack = row["eps_percent"] * row["C_perf"]
        assert row["dual"] - 1e-4 <= primal <= row["primal"] + slack
        assert dual <= row["primal"] + 1e-4
        assert int(re.search(r"Number of iterations: (\d+)", out)[1]) <= row["iterations"]  # type: ignore[index]
        out = classify(capsys, test, model, predictions)
        shown = dict(re.findall(r"^([\w ]+?) *: +([0-9.]+)$", out, flags=re.M))
        for name, value in row["test"].items():
            assert float(shown[name]) == pytest.approx(value, abs=1), name
