"""The program behind docs/results/ensemble.md, on made-up tables."""

from __future__ import annotations

from experiments import ensemble
from experiments.ensemble_page import BASE, ENSEMBLE, MEASURES, page
from experiments.harness import Options, Program


def test_a_quick_run_writes_the_page(tmp_path):
    options = Options(data=tmp_path, out=tmp_path, pages=tmp_path, quick=True)
    assert Program("ensemble", ensemble.tasks, ensemble.page).run(options) == 0
    page = (tmp_path / "ensemble.md").read_text(encoding="utf-8")
    assert "The gain is the ensemble's, not the training's" in page
    assert page.count("| made ") == 2
    assert "nan" not in page


def made_row(data, half, method, measure, score):
    told = {"estimate": score - 0.01, "error": 0.01, "test_error": 0.01} if method == ENSEMBLE else {}
    key = {"data": data, "half": half, "method": method, "measure": measure}
    return key | {"score": score, "cpu_seconds": 3.0 if method == "slow" else 1.0, "variant": ""} | told


def test_a_method_that_ran_on_some_tables_is_compared_on_these(tmp_path):
    scores = {"one": {BASE: 0.5, ENSEMBLE: 0.6, "slow": 0.7}, "two": {BASE: 0.5, ENSEMBLE: 0.5}}
    halves = {
        "one": "development",
        "two": "confirmation",
        "imblearn/three": "imbalanced",
        "imblearn/four": "imbalanced",
    }
    scores["imblearn/three"] = {BASE: 0.9, ENSEMBLE: 0.8}
    scores["imblearn/four"] = {BASE: 0.9, ENSEMBLE: 0.8, "dear": 0.7}
    rows = [
        made_row(data, halves[data], method, measure, score)
        for data, own in scores.items()
        for method, score in own.items()
        for measure in MEASURES
        if not (method == "slow" and measure == "mcc")
    ]
    page(rows, Options(pages=tmp_path))
    lines = (tmp_path / "ensemble.md").read_text(encoding="utf-8").splitlines()
    behind = "-10.0 (0/1) p 1"
    assert f"| slow | 1 | {behind} | {behind} |  | {behind} | {behind} | 3.0 |" in lines
    assert not any(line.startswith("| slow | 7") for line in lines)  # no mean of one table beside those of two
    assert f"| {BASE} | 2 | {' | '.join([behind.replace('/1', '/2').replace('p 1', 'p 0.16')] * 5)} | 1.0 |" in lines
    assert f"| dear | 1 | {' | '.join(['+10.0 (1/0) p 1'] * 5)} | 1.0 |" in lines  # of one imbalanced set
    assert "| F1 | 54.0 | 55.0 | +1.0 | 0.0 | 1.4 | 2 of 2 |" in lines
