"""The program behind docs/results/ensemble.md, on made-up tables."""

from __future__ import annotations

from experiments import ensemble
from experiments.harness import Options, Program


def test_a_quick_run_writes_the_page(tmp_path):
    options = Options(data=tmp_path, out=tmp_path, pages=tmp_path, quick=True)
    assert Program("ensemble", ensemble.tasks, ensemble.page).run(options) == 0
    page = (tmp_path / "ensemble.md").read_text(encoding="utf-8")
    assert "The gain is the ensemble's, not the training's" in page
    assert page.count("| made ") == 2
    assert "nan" not in page
