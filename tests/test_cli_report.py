"""``metrimax evaluate`` and ``--report``: the table, measures with intervals, and the page."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics
from test_cli import Capture, run_json, svmlight
from test_cli_columns import people
from test_tables import refused, write

from metrimax.cli import evaluating, main, training, tuning
from metrimax.cli.report import parse_measure
from metrimax.io.models import LinearModel, save_model
from metrimax.training.choose import Chosen


def sample(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.2
    return np.round(rng.normal(size=(n, 2)) + y[:, None], 3), y


@pytest.fixture
def judged(tmp_path: Path) -> tuple[Path, Path, np.ndarray, np.ndarray]:
    """Data, a model made by hand, the truth and the scores."""
    X, y = sample(1500)
    (tmp_path / "t.svm").write_text(svmlight(X, ["1" if v else "-1" for v in y]))
    save_model(tmp_path / "m", LinearModel(np.ones((1, 2)), np.full(1, -1.5), np.zeros(1), [-1, 1], measure="f1"))
    return tmp_path / "t.svm", tmp_path / "m", y, X.sum(axis=1) - 1.5


def test_names_say_what_the_numbers_are(judged: tuple[Path, Path, np.ndarray, np.ndarray], capsys: Capture) -> None:
    data, model, y, scores = judged
    values = run_json(capsys, "evaluate", data, model)
    called = scores > 0
    tn, fp, fn, tp = metrics.confusion_matrix(y, called).ravel()
    assert [values[name] for name in ("tp", "fp", "fn", "tn")] == [tp, fp, fn, tn]
    for name, of in {
        "precision": metrics.precision_score,
        "recall": metrics.recall_score,
        "f1": metrics.f1_score,
        "accuracy": metrics.accuracy_score,
        "balanced_accuracy": metrics.balanced_accuracy_score,
        "mcc": metrics.matthews_corrcoef,
    }.items():
        assert values[name] == pytest.approx(of(y, called)), name
    assert values["roc_area"] == pytest.approx(metrics.roc_auc_score(y, scores))
    assert values["ae"] == pytest.approx(abs(fp - fn) / len(y))  # a loss, under the name of one
    assert {"error", "fbeta", "precision_at_k"}.isdisjoint(values)
    assert {"precision@1p", "recall@2p", "ndcg@10"} <= values.keys()
    constrained = {"recall@precision=0.9", "precision@recall=0.9", "tpr@fpr=0.01", "recall@budget=10%"}
    assert constrained <= values.keys()  # as --measure takes them
    assert all(parse_measure(name) for name in constrained)
    assert main(["evaluate", str(data), str(model)]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"^tp: +{tp}  \(positive, called so\)$", out, re.M)
    assert re.search(r"^f1: +0\.\d+  \(0\.\d+ to 0\.\d+\)$", out, re.M)


@pytest.mark.parametrize("name", ["f1", "accuracy", "roc_area", "average_precision", "precision"])
def test_intervals_are_those_of_resampling(
    judged: tuple[Path, Path, np.ndarray, np.ndarray], capsys: Capture, name: str
) -> None:
    data, model, y, scores = judged
    low, high = run_json(capsys, "evaluate", data, model)["intervals"][name]  # type: ignore[index]
    of = {
        "f1": lambda y, s: metrics.f1_score(y, s > 0),
        "accuracy": lambda y, s: metrics.accuracy_score(y, s > 0),
        "precision": lambda y, s: metrics.precision_score(y, s > 0),
        "roc_area": metrics.roc_auc_score,
        "average_precision": metrics.average_precision_score,
    }[name]
    rng = np.random.default_rng(1)
    rows = [rng.integers(len(y), size=len(y)) for _ in range(400)]
    values = [of(y[r], scores[r]) for r in rows]
    assert high - low == pytest.approx(np.diff(np.quantile(values, [0.025, 0.975]))[0], rel=0.35)
    assert low < of(y, scores) < high


def test_large_samples_are_resampled_in_part(
    judged: tuple[Path, Path, np.ndarray, np.ndarray], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model, *_ = judged
    whole = run_json(capsys, "evaluate", data, model)["intervals"]["roc_area"]  # type: ignore[index]
    monkeypatch.setattr(evaluating, "ROWS", 1000)
    part = run_json(capsys, "evaluate", data, model)["intervals"]["roc_area"]  # type: ignore[index]
    assert part[1] - part[0] == pytest.approx(whole[1] - whole[0], rel=0.4)
    monkeypatch.setattr(evaluating, "ROWS", 900)  # too few to say anything
    assert "roc_area" not in run_json(capsys, "evaluate", data, model)["intervals"]  # type: ignore[operator]


def test_several_classes_have_a_table_each(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = np.round(rng.normal(size=(300, 3)) + 2 * np.eye(3)[y], 3)
    (tmp_path / "t.svm").write_text(svmlight(X, [str(v) for v in y]))
    run_json(capsys, "train", tmp_path / "t.svm", tmp_path / "m")
    values = run_json(capsys, "evaluate", tmp_path / "t.svm", tmp_path / "m", "--report", tmp_path / "r.html")
    assert main(["predict", str(tmp_path / "t.svm"), str(tmp_path / "m")]) == 0
    called = np.array(capsys.readouterr().out.split(), dtype=int)
    assert values["accuracy"] == pytest.approx((called == y).mean())
    assert values["f1"] == pytest.approx(metrics.f1_score(y, called, average="macro"))
    assert values["labels"]["2"]["tp"] == ((y == 2) & (called == 2)).sum()  # type: ignore[index]
    low, high = values["intervals"]["accuracy"]  # type: ignore[index]
    assert low < values["accuracy"] < high  # type: ignore[operator]
    assert "Label by label" in (tmp_path / "r.html").read_text()
    assert "Measures are means over 3 labels" in (tmp_path / "r.html").read_text()
    (tmp_path / "two.svm").write_text(svmlight(X[y < 2], [str(v) for v in y[y < 2]]))
    values = run_json(capsys, "evaluate", tmp_path / "two.svm", tmp_path / "m", "--report", tmp_path / "r.html")
    assert "Measures are means over 2 of 3 labels: the others have no positives or" in (tmp_path / "r.html").read_text()
    f1 = metrics.f1_score(y[y < 2], called[y < 2], average=None, labels=[0, 1])
    assert values["f1"] == pytest.approx(f1.mean())


class Page(HTMLParser):
    """Tags opened and closed, and what they refer to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone(tmp_path: Path, capsys: Capture) -> None:
    table = write(tmp_path / "people.csv", people())
    model, report = tmp_path / "m", tmp_path / "<r>&.html"
    options = ["--target", "verdict", "--positive", "bad"]
    assert main(["tune", str(table), str(model), *options, "--folds", "3", "--report", str(report)]) == 0
    assert f"report written to {report}" in capsys.readouterr().err
    text = report.read_text()
    page = Page(text)
    assert page.open == []
    assert len(page.sources) == 4  # threshold, precision and recall, ROC, coefficients
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.sources)
    assert all(b"<svg" in base64.b64decode(source.partition(",")[2]) for source in page.sources)
    for said in (
        "found (tp)",
        "expect a little less on others",
        "was trained without it, on the other folds",
        "proven lower bound",
    ):
        assert said in text
    assert main(["evaluate", str(table), str(model), "--report", str(report), "-q"]) == 0
    assert "expect less on others" not in report.read_text()


def test_the_page_of_tune_shows_rows_held_out(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classes, and labels: what the page shows is what chose, by the same measure."""
    shown: list[evaluating.Judged] = []
    monkeypatch.setattr(training, "write_report", lambda arguments, data, model, judged, **_: shown.append(judged))
    kept: list[tuple[object, list[Chosen]]] = []
    finish = tuning.finish
    monkeypatch.setattr(
        tuning, "finish", lambda a, task, chosen, *rest: kept.append(chosen) or finish(a, task, chosen, *rest)
    )
    X, y = sample(400)
    other = X[:, 0] > 1
    for labels in (["1" if v else "-1" for v in y], [f"{int(v)},{2 + int(w)}" for v, w in zip(y, other, strict=True)]):
        (tmp_path / "t.svm").write_text(svmlight(X, labels))
        assert (
            main(["tune", str(tmp_path / "t.svm"), str(tmp_path / "m"), "--grid", "0.1,1", "--report", "r", "-q"]) == 0
        )
        judged, chosen = shown.pop(), kept.pop()
        assert judged.values["f1"] == pytest.approx(np.mean([one.score for one in chosen]), abs=0.02)


def test_the_page_of_a_constraint_draws_it_over_thresholds(tmp_path: Path, capsys: Capture) -> None:
    X, y = sample(300)
    data, report = tmp_path / "t.svm", tmp_path / "r.html"
    data.write_text(svmlight(X, ["1" if v else "-1" for v in y]))
    run_json(capsys, "tune", data, tmp_path / "m", "--measure", "recall@precision=0.7", "--grid", "1")
    values = run_json(capsys, "evaluate", data, tmp_path / "m", "--report", report)
    said = re.search(r"recall@precision=0.7 is ([0-9.]+) at the model&#x27;s threshold", report.read_text())
    kept = values["tp"] / (values["tp"] + values["fp"]) >= 0.7
    assert said
    assert float(said[1]) == pytest.approx(values["recall"] if kept else 0, abs=1e-3)
    assert "It is 0 where the constraint is broken." in report.read_text()


def test_the_page_escapes_names(tmp_path: Path, capsys: Capture) -> None:
    evil = "<script>alert(1)</script>"
    text = people(header=f"age,city,income,active,{evil}").replace("Rome", "<b>Rome").replace(",bad", ",<i>bad")
    table = write(tmp_path / "people.csv", text)
    report = tmp_path / "r.html"
    options = ["--target", evil, "--positive", "<i>bad", "--report", str(report), "--hinge", "1"]
    assert main(["train", str(table), str(tmp_path / "m"), *options]) == 0
    assert "<script" not in report.read_text()
    assert "<i>bad" not in report.read_text()
    assert "&lt;i&gt;bad" in report.read_text()
    Page(report.read_text())


def test_rankings_have_a_page(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{int(x > 0.5)} qid:{k // 10} 1:{x:.3f} 2:{rng.normal():.3f}" for k, x in enumerate(rng.normal(size=200))]
    data = write(tmp_path / "q.svm", "\n".join(lines) + "\n")
    report = tmp_path / "r.html"
    run_json(capsys, "train", data, tmp_path / "m", "--measure", "ndcg@10", "--report", report)
    values = run_json(capsys, "evaluate", data, tmp_path / "m", "--report", report)
    low, high = values["intervals"]["ndcg@10"]  # type: ignore[index]
    assert low <= values["ndcg@10"] <= high  # type: ignore[operator]
    assert "ndcg@10" in report.read_text()
    assert f" in {values['groups']} groups. Measures are means over groups" in report.read_text()
    assert "resampling the groups of this data" in report.read_text()
    assert len(Page(report.read_text()).sources) == 1


def test_reports_that_cannot_be(
    judged: tuple[Path, Path, np.ndarray, np.ndarray], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model, *_ = judged
    said = refused(capsys, "evaluate", data, model, "--report", "-", code=2)
    assert "expected a file, got standard output" in said
    assert "would take the place of MODEL" in refused(capsys, "evaluate", data, model, "--report", model, code=2)
    assert "cannot be written" in refused(capsys, "evaluate", data, model, "--report", data.parent / "no" / "r.html")
    monkeypatch.setattr("metrimax.cli.page.find_spec", lambda name: None)
    said = refused(capsys, "train", data, model, "--report", data.with_name("r.html"), code=2)
    assert "--report draws with matplotlib, which is not installed: pip install 'metrimax[plot]'" in said
