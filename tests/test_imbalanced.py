"""The statistics of the imbalanced collections, and their page."""

import numpy as np
import pytest
from scipy.stats import f as f_distribution
from sklearn.metrics import f1_score

from experiments import imbalanced, summary
from experiments.critical_difference import cliques, friedman, nemenyi, plot
from experiments.harness import Options, Program
from experiments.imbalanced_page import VARIANTS, collect, luck, page, repeated, verdict


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (7, 2.949), (10, 3.164)])
def test_the_critical_difference_is_that_of_the_published_table(k, q):
    assert nemenyi(k, 30) == pytest.approx(q * np.sqrt(k * (k + 1) / 180), rel=5e-4)  # Demsar (2006), table 5


def test_friedman_on_the_published_example():
    # Demsar (2006), table 6: four variants of C4.5 on 14 data sets; chi2 = 9.28 and F = 3.69 there, ties uncorrected
    table = """0.763 0.768 0.771 0.798  0.599 0.591 0.590 0.569  0.954 0.971 0.968 0.967  0.628 0.661 0.654 0.657
    0.882 0.888 0.886 0.898  0.936 0.931 0.916 0.931  0.661 0.668 0.609 0.685  0.583 0.583 0.563 0.625
    0.775 0.838 0.866 0.875  1.000 1.000 1.000 1.000  0.940 0.962 0.965 0.962  0.619 0.666 0.614 0.669
    0.972 0.981 0.9751 0.975  0.957 0.978 0.946 0.970"""
    test = friedman(np.array(table.split(), dtype=float).reshape(14, 4))
    np.testing.assert_allclose(test.ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    n, k = 14, 4
    plain = 12 * n / (k * (k + 1)) * ((test.ranks**2).sum() - k * (k + 1) ** 2 / 4)
    assert plain == pytest.approx(9.28, abs=0.01)
    assert test.chi2 >= plain  # the correction for ties
    expected = f_distribution.sf((n - 1) * test.chi2 / (n * (k - 1) - test.chi2), k - 1, (k - 1) * (n - 1))
    assert test.p == pytest.approx(expected)
    assert test.difference == pytest.approx(1.25, abs=0.01)


def test_methods_that_are_always_equal():
    assert friedman(np.ones((5, 3))).p == 1
    assert friedman(np.tile([3.0, 2.0, 1.0], (6, 1))).p == 0
    with pytest.raises(ValueError, match="at least 3 methods"):
        friedman(np.ones((5, 2)))


def test_cliques_are_the_largest_groups_within_the_difference():
    assert cliques([3.0, 1.0, 1.5, 4.0], 1.6) == [(0, 1), (1, 2), (2, 3)]
    assert cliques([3.0, 1.0, 1.5, 4.0], 2.0) == [(0, 2), (2, 3)]
    assert cliques([1.0, 2.0, 3.0], 5.0) == [(0, 2)]
    assert cliques([1.0, 2.0, 3.0], 0.5) == []


def test_the_plot_is_written(tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    plot(tmp_path / "cd.png", list("abcde"), friedman(rng.random((20, 5))), title="t", emphasis=["a"])
    assert (tmp_path / "cd.png").stat().st_size > 2000


def test_the_program_from_data_to_page(tmp_path):
    pytest.importorskip("matplotlib")
    options = Options(data=tmp_path / "none", out=tmp_path, pages=tmp_path, quick=True)
    program = Program("imbalanced", imbalanced.tasks, page)
    assert program.run(options) == 0
    summary.page(options)  # with nothing from the other programs
    short = (tmp_path / "README.md").read_text()
    assert short.count("Not computed yet") == 2
    assert "4 imbalanced sets" in short
    text = (tmp_path / "imbalanced.md").read_text()
    assert "MeasureSVCCV" in text
    assert "LinearSVC + threshold" in text


def test_methods_without_all_sets_are_left_out_and_variants_are_told_apart(tmp_path):
    pytest.importorskip("matplotlib")

    def row(data, method, f1, half, seed="0"):
        key = {"data": data, "method": method, "f1": f1, "half": half, "measure": "f1", "seed": seed}
        return key | {"cpu_seconds": "1", "n": "100", "positives": "10"}

    methods = ("MeasureSVCCV", "LinearSVC", "LinearSVC + threshold")
    rows = [row(f"s{k}", m, str(0.9 - 0.1 * i), "development" if k % 2 else "confirmation")
            for k in range(4) for i, m in enumerate(methods)]  # fmt: skip
    assert not collect([]).enough
    results = collect([*rows, row("s0", "late", "1.0", "development")])
    assert results.enough
    assert results.missing == ["late"]
    assert results.best_baseline == "LinearSVC"
    np.testing.assert_allclose(results.ratios, 9)
    assert "before all baselines" in verdict(results)
    assert "wins 4, loses 0 and ties 0" in " ".join(verdict(results).split())
    variants = [row(f"s{k}", name, "0.95", "development") for k in range(4) for name in VARIANTS]
    beside = collect(rows + variants)  # better than the default, but part of no ranking
    assert set(beside.methods) == {*methods, *VARIANTS}
    assert beside.linear == list(methods)
    assert verdict(beside) == verdict(results)
    options = Options(out=tmp_path, pages=tmp_path)
    page(rows + variants, options)
    text = (tmp_path / "imbalanced.md").read_text()
    assert text.count("Not computed yet") == 1
    assert "nonlinear reference" not in text
    again = [
        row(f"s{k}", name, f1, "development" if k % 2 else "confirmation", "1")
        for k in range(3)
        for name, f1 in ((methods[0], "0.9"), (methods[1], "0.7"))
    ]
    assert repeated(rows + again) == [["LinearSVC", "3", "3/0/0, +15.0, p = 0.083", "1/0/0, +15.0", "2/0/0, +15.0"]]
    assert luck(rows, "LinearSVC") == ""
    said = luck(rows + again + [row("s3", m, "0.6", "development", "1") for m in methods], "LinearSVC")
    assert "`MeasureSVCCV` changes by 7.5 points on average over 4 sets, that of LinearSVC by 12.5" in said
    assert "changes on 0 of the 3 sets without a tie" in said
    third = [row(f"s{k}", methods[2], "0.1", "development" if k % 2 else "confirmation", "1") for k in range(2)]
    results = collect(rows + variants + again + third)  # of the first two sets all methods have both divisions
    np.testing.assert_array_equal(results.divisions, [2, 2, 1, 1])
    np.testing.assert_allclose(results.column(methods[2]), [0.4, 0.4, 0.7, 0.7])
    np.testing.assert_allclose(results.column(methods[1]), [0.75, 0.75, 0.8, 0.8])
    np.testing.assert_allclose(results.pair("MeasureSVC, hinge and place"), [[0.9] * 4, [0.95] * 4])
    assert text.count("| 0/4/0, -5.0 | 0/2/0, -5.0 | 0/2/0, -5.0 |") == len(VARIANTS)


def test_the_summary_says_what_is_missing(tmp_path):
    summary.page(Options(out=tmp_path, pages=tmp_path))
    assert (tmp_path / "README.md").read_text().count("Not computed yet") == 4


@pytest.mark.shared_data
def test_the_collections_are_read_and_cut(shared_data):
    options = Options(data=shared_data)
    found = imbalanced.names(options)
    assert len(found) == 116
    assert sum(half == "development" for _, half in found) == 58
    X, y = imbalanced.load("imblearn/coil_2000", options)
    assert X.shape == (4000, 85)
    assert y.sum() == round(586 / 9822 * 4000)
    X, y = imbalanced.load("keel_imbalanced/zoo-3", options)
    assert X.shape == (101, 16)
    assert y.sum() == 5


def test_the_quick_f1_is_f1():
    rng = np.random.default_rng(0)
    for rate in (0.0, 0.1, 0.5):
        y, called = rng.random(50) < 0.3, rng.random(50) < rate
        assert imbalanced.f1(y, called) == pytest.approx(f1_score(y, called, zero_division=0))
