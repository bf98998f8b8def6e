"""What the programs for the papers' figures rest on: text as Joachims represents it, data as it is, points of a run."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from experiments import capo_findings, constraints, joachims2005_findings, linear, linear_page, smoothing
from experiments.capo_causes import auc_of_labels
from experiments.capo_problem import CHOOSE_ON, Problem, by_folds
from experiments.data import documents, load, tfidf
from experiments.harness import Options, Program, Table
from experiments.smoothing_page import EPSILON, METHODS, SETS, Run
from experiments.stats import Comparison, verdict
from metrimax import MeasureSVC, MeasureSVCCV
from metrimax.measure import get_measure


def test_tfidf_takes_words_and_frequencies_from_the_training_part_alone():
    counts = sparse.csr_matrix(np.array([[2, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 5], [0, 3, 3, 3], [0, 4, 0, 1.0]]))
    X, X_test = tfidf(counts, np.array([0, 1, 2, 3]), np.array([4, 0]))
    assert X.shape == (4, 1), "only the first word is in three training documents"
    np.testing.assert_allclose(X.toarray().ravel(), [1, 1, 1, 0])
    np.testing.assert_allclose(X_test.toarray().ravel(), [0, 1])
    found = documents("made")
    X, _ = tfidf(found.counts, np.arange(150), np.arange(150, 300))
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1.0)
    assert X.indices.dtype == np.int32
    assert 0 < found.categories["first"].mean() < 0.5


def test_a_missing_file_is_named(tmp_path):
    for read in (documents, load):
        with pytest.raises(FileNotFoundError, match="METRIMAX_DATA"):
            read("20news", tmp_path)


@pytest.mark.shared_data
def test_raw_features_and_several_positive_classes(shared_data):
    X, *_ = load("splice", shared_data, raw=True)
    scaled, *_ = load("splice", shared_data)
    assert abs(scaled).max() == 1
    np.testing.assert_allclose(X / abs(X).max(axis=0), scaled)
    together, first, second = (load(f"usps:{name}", shared_data)[1] for name in ("5+6", "5", "6"))
    assert np.array_equal(together, first | second)
    faces, *_ = load("faces", shared_data)
    assert faces.min() > 0
    assert faces.max() == 1


@pytest.mark.parametrize("measure", ["prbep", "roc_area"])
@pytest.mark.parametrize("wide", [False, True])
def test_points_of_a_run_are_its_best_weights(measure, wide):
    """Each point's objective is that of its weights, whether the solver keeps weights or coefficients."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 60 if wide else 5))
    y = X[:, 0] + rng.normal(size=40) > 0.5
    design = smoothing.as_design(X, intercept_scaling=1.0, n_threads=1)
    oracle = get_measure(measure).oracle(y)
    weights = []
    problem = smoothing.Problem(design, oracle, 1.0, 0.1, lambda w: weights.append(w.copy()) or 0.0)
    weight = 0.1 * oracle.price * oracle.n
    for method in METHODS:
        weights.clear()
        points = smoothing.trace(method, 10.0, problem)
        assert len(points) == len(weights)
        for point, w in zip(points, weights, strict=True):
            scores = design.matvec(w)
            cut = oracle(scores)
            objective = w @ w / 2 / weight + max(0.0, cut.loss + cut.slope @ scores)
            assert objective == pytest.approx(point["objective"], rel=1e-6)
            assert point["bound"] <= points[-1]["objective"] + 1e-9
        seconds = [point["seconds"] for point in points]
        assert seconds == sorted(seconds)
    assert smoothing.trace("cutting plane", -1.0, problem)[-1]["iteration"] == 1, "the time limit"


def test_first_point_within_epsilon():
    points = [
        {"passes": k, "seconds": 2.0 * k, "objective": 1 + 1 / k**2, "test": k / 100, "C": 1} for k in range(1, 60)
    ]
    run = Run([{name: str(value) for name, value in point.items()} for point in points], 1.0)
    assert run.to_optimum() == next(k for k in range(1, 60) if 1 / k**2 <= EPSILON)
    assert run.to_optimum("seconds", within=0.5) == 4
    assert run.to_own_end() < run.to_optimum()
    assert Run(points, 0.9).to_optimum() == np.inf


def test_tasks_cover_every_method():
    for quick, panels in ((True, 1), (False, 2 * len(SETS))):
        found = [task.key["method"] for task in smoothing.tasks(Options(quick=quick))]
        assert found == panels * list(METHODS)


def test_linear_classifiers_with_their_defaults_beside_logistic_regression(tmp_path):
    options = Options(data=tmp_path / "none", out=tmp_path, pages=tmp_path, quick=True)
    program = Program("linear", linear.tasks, linear_page.page)
    assert program.run(options) == 0
    rows = Table(tmp_path / "linear.csv").rows
    assert all(Table(tmp_path / "linear.csv").has(task.key) for task in linear.tasks(options))  # none is run again
    duels = linear_page.duels(rows, "tables")
    assert {(duel.measure, duel.ours, duel.half) for duel in duels} == {
        (measure, ours, half)
        for measure in linear.MEASURES
        for ours in linear_page.OURS
        for half in ("all", *linear_page.HALVES)
    }
    both = next(duel for duel in duels if duel.half == "all")
    ours, theirs = (
        linear_page.values(rows, kind="tables", measure="f1", method=m) for m in (both.ours, linear_page.LOGISTIC)
    )
    assert both.means == (np.mean(list(ours.values())), np.mean(list(theirs.values())))
    assert both.result.wins == sum(ours[name] > theirs[name] for name in ours)
    text = (tmp_path / "linear.md").read_text()
    assert "was the result of 0 of " in text
    assert linear_page.nothing_learnt([{"method": "MeasureSVC", "learnt": "False"}]) == "1 of 1"
    assert linear_page.macro_f1(rows)[1][-1][0] == "mean of 1"
    without = [row for row in rows if (row["kind"], row["method"]) != ("labels", "MeasureSVC")]
    assert [line[2] for line in linear_page.macro_f1(without)[1]] == ["not yet"]


def test_the_threshold_of_folds_is_the_best_of_those_tried():
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.3
    scores = rng.normal(size=60) + y
    f1 = linear.MEASURES["f1"]
    best = max(f1.score(y, scores - at) for at in np.sort(scores))
    assert f1.score(y, scores - linear.threshold(f1, y, scores)) == pytest.approx(best)


def test_the_plain_threshold_of_constraints_is_the_best_on_its_own_scores():
    rng = np.random.default_rng(0)
    y = rng.random(300) < 0.3
    scores = np.round(rng.normal(size=300) + 1.5 * y, 1)
    for name in ("recall@precision=0.8", "precision@recall=0.8", "tpr@fpr=0.05"):
        measure = get_measure(name)
        z = scores > constraints.plain_threshold(measure, y, scores)
        table = (np.asarray(float(part.sum())) for part in (y & z, ~y & z, y & ~z, ~y & ~z))
        assert measure.table_score(*table) == pytest.approx(measure.score(y, scores))
    out_of_reach = constraints.plain_threshold(get_measure("recall@precision=0.9"), y, -scores)
    assert not (-scores > out_of_reach).any()


def test_a_c_of_the_paper_is_that_of_svm_perf():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) < 15
    found = Problem("made", X, y, X, y)
    for measure in found.measures.values():
        kappa = MeasureSVC(measure, hinge=0).fit(X, y).price_
        assert found.C(measure, 8.0) * kappa * 60 / 100 == pytest.approx(8.0)
        assert [found.in_the_grid(measure, C) for C in found.Cs(measure)] == pytest.approx(2.0 ** np.arange(-7, 8))


def test_a_part_for_the_choice_has_the_share_of_each_class():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2 * CHOOSE_ON, 2)), np.arange(2 * CHOOSE_ON) < CHOOSE_ON // 2
    found = Problem("made", X, y, X, y)
    assert len(found.choose_on) == CHOOSE_ON
    assert y[found.choose_on].mean() == y.mean()
    assert found.in_the_grid("error", found.Cs("error")[0]) == pytest.approx(2.0**-7)


@pytest.mark.parametrize("measure", ["error", "f1", "roc_area"])
def test_what_the_library_does_not_tune_is_tuned_as_it_would(measure):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + rng.normal(size=120) > 0.7
    Cs = [1e-4, 1e-3]
    risk = {"hinge": 0, "threshold": "trained", "n_threads": 1}
    tuned = MeasureSVCCV(measure, Cs=Cs, extend=True, **risk).fit(X, y)
    assert by_folds(lambda C: MeasureSVC(measure, C=C, **risk), measure, X, y, Cs) == pytest.approx(tuned.C_)


def test_accuracy_and_f1_fix_the_area_of_labels():
    rng = np.random.default_rng(2)
    for _ in range(20):
        y, called = rng.random(200) < 0.3, rng.random(200) < 0.4
        given = accuracy_score(y, called), f1_score(y, called), y.sum(), len(y)
        assert auc_of_labels(*given) == pytest.approx(roc_auc_score(y, called))


def test_comparisons_count_to_four_digits():
    found = capo_findings.Compared.of([(0.91231, 0.91234), (0.5, 0.4), (0.3, 0.4), (0.2, 0.4)])
    assert found == (1, 1, 2)
    assert str(found) == "1/1/2"


@pytest.mark.parametrize(("hits", "word"), [(3, "Agrees"), (2, "Agrees in part"), (1, "Does not agree")])
def test_a_verdict_goes_by_the_share_of_the_cases(hits, word):
    assert verdict(hits, 4) == word


def test_findings_are_counted_from_the_numbers():
    """Two collections, of which one is printed; the first measure gains most, the third loses."""
    ahead, behind = Comparison(5.0, 9, 1, 0, 0.01), Comparison(-1.0, 1, 2, 0, 0.7)
    ours = {"reuters": [ahead, behind, behind, ahead._replace(difference=1.0, p=0.5)], "other": [behind] * 4}
    printed = {"reuters": ((60.0, 70.0, 80.0, 90.0), (50.0, 70.0, 81.0, 89.0), ("9/1 **", "1/1", "1/2 *", "2/1"))}
    bins = [[0.0, 9.0], [0.0, -1.0], [0.0, 1.0], [0.0, 1.0]]
    cuts = {"reuters": ([10.0, 20.0, 30.0, 40.0], [10.0, 10.0, 10.0, 10.0])}
    text = " ".join(joachims2005_findings.findings(ours, printed, bins, cuts, {"reuters": (10.0, 50.0)}).split())
    assert "higher for 2 of 4 pairs of a collection and a measure, with a level of 0.9 or more for 1" in text
    assert "and lower for 2, 0 of them at that level; in the paper 2, 1, 1 and 1, without" in text
    assert "there in F1.* Agrees: on Reuters F1 +5.0, PRBEP -1.0, Rec@2p -1.0, ROC area +1.0 points" in text
    assert "(Figure 1).* Agrees: the rarest fifth gains more than the most frequent by F1 +9.0" in text
    assert "iterations (the slides).* Agrees in part: 2.21 times" in text
    assert "for F1 5 to 5 times fewer labellings" in text
    assert "Covertype" not in text
    assert not joachims2005_findings.findings({"other": [behind] * 4}, printed, bins, {}, {})
