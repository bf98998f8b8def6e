"""The program behind docs/results/ensemble.md, on made-up tables."""

from __future__ import annotations

from experiments import ensemble
from experiments.ensemble_page import BASE, ENSEMBLE, MEASURES, REPORT, page
from experiments.harness import Options, Program


def test_a_quick_run_writes_the_page(tmp_path):
    options = Options(data=tmp_path, out=tmp_path, pages=tmp_path, quick=True)
    assert Program("ensemble", ensemble.tasks, ensemble.page).run(options) == 0
    page = (tmp_path / "ensemble.md").read_text(encoding="utf-8")
    assert "The gain is the ensemble's, not the training's" in page
    assert page.count("| made ") == 2
    assert 'Members of "fast", 8 splits of 2 tables' in page
    assert "nan" not in page


def made_row(data, half, method, measure, score):
    key = {"data": data, "half": half, "method": method, "measure": measure}
    return key | {"score": score, "cpu_seconds": 3.0 if method == "slow" else 1.0, "variant": ""}


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


def test_an_estimate_is_judged_in_standard_errors(tmp_path):
    key = {"data": "one", "half": "development", "method": REPORT, "variant": "", "cpu_seconds": 1.0}
    told = {"estimate": 0.5, "fold_score": 0.51, "score": 0.55, "error": 0.04, "jackknife": 0.0, "test_error": 0.03}
    rows = [made_row("one", "development", name, measure, 0.5) for name in (BASE, ENSEMBLE) for measure in MEASURES]
    away = {"estimate": 0.35, "jackknife": 0.04}
    for measure in MEASURES:
        rows += [key | told | {"measure": measure, "seed": 1}, key | told | away | {"measure": measure, "seed": 2}]
    page(rows, Options(pages=tmp_path))
    text = (tmp_path / "ensemble.md").read_text(encoding="utf-8")
    error = f"{((1 + 16) / 2) ** 0.5:.2f}"
    alone = f"{((25 / 9 + 16) / 2) ** 0.5:.2f}"
    assert f"| development | F1 | 42.5 | 51.0 | 55.0 | 4.0 | {alone} | {error} | 1 of 2 | 1 of 2 |" in text
    assert "Default members, 2 splits of 1 tables:" in text
