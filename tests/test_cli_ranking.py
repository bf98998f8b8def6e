"""Groups in files (qid) and the metrimax command: rankings trained, kept as models, judged per group."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from test_cli import Capture, run, run_json, svmlight

from metrimax import MeasureRanker, open_dataset
from metrimax.cli import main
from metrimax.io.converting import convert
from metrimax.io.data import load_data
from metrimax.io.files import FileError
from metrimax.io.models import LinearModel, load_model, save_model
from metrimax.measure import NDCG, Grouped, PrecisionAtK


def queries() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Twenty queries of twelve documents with grades from 0 to 2, in no order."""
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(100, 120), 12))
    X = np.round(rng.normal(size=(240, 4)), 4)
    y = np.clip(np.round(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=240)), 0, 2)
    return X, y, groups


@pytest.fixture
def letor(tmp_path: Path) -> Path:
    """A file as the LETOR sets have it: qid behind the grade, and a comment with the name of the document."""
    X, y, groups = queries()
    lines = svmlight(X, [f"{grade:g} qid:{q}" for grade, q in zip(y, groups, strict=True)]).splitlines()
    (tmp_path / "train.svm").write_text("".join(f"{line} #docid = GX{k}-01\n" for k, line in enumerate(lines)))
    return tmp_path / "train.svm"


def written(path: Path, kind: str) -> Path:
    X, y, groups = queries()
    file = path.with_name(f"train.{kind}")
    if kind == "npz":
        np.savez(file, X=X, y=y, qid=groups)
    elif kind == "csv":
        rows = (f"{q},{','.join(map(str, x))},{grade:g}\n" for q, x, grade in zip(groups, X, y, strict=True))
        file.write_text("qid,a,b,c,d,label\n" + "".join(rows))
    elif kind == "parquet":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame(X, columns=list("abcd")).assign(qid=groups, label=y).to_parquet(file)
    else:  # folders
        if kind == "files":
            lines = path.read_text().splitlines(keepends=True)
            file.mkdir()
            (file / "a.svm").write_text("".join(lines[:100]))
            (file / "b.svm").write_text("".join(lines[100:]))
        else:
            convert(path, file, shard_size=2000)
    return file


@pytest.mark.parametrize("kind", ["svm", "npz", "csv", "parquet", "files", "shards"])
def test_every_kind_of_data_has_groups(letor: Path, capsys: Capture, kind: str) -> None:
    X, y, groups = queries()
    file = written(letor, kind) if kind != "svm" else letor
    model = letor.with_name("m")
    trained = run_json(capsys, "train", file, model, "--measure", "ndcg@5", "-C", "0.5", "--no-scaling")
    same = MeasureRanker("ndcg", k=5, C=0.5).fit(sparse.csr_matrix(X), y, groups)
    assert trained["groups"] == 20
    assert "classes" not in trained
    assert trained["objective"] == [pytest.approx(same.objective_, rel=1e-3)]
    assert trained["training_score"] == pytest.approx(Grouped(NDCG(5), groups).score(y, X @ load_model(model).coef[0]))
    assert load_model(model).coef.shape == (1, 4)  # the groups are no feature


def test_evaluate_predict_and_info(letor: Path, capsys: Capture) -> None:
    X, y, groups = queries()
    model = letor.with_name("m")
    run(capsys, "train", letor, model, "-m", "average_precision")
    scores = X @ load_model(model).coef[0] + load_model(model).intercept
    judged = run_json(capsys, "evaluate", letor, model)
    assert judged["groups"] == 20
    assert judged["groups_judged"] == 20
    for name, value in {
        "ndcg@3": Grouped(NDCG(3), groups).score(y, scores),
        "ndcg": Grouped(NDCG(None), groups).score(y, scores),
        "precision@5": Grouped(PrecisionAtK(5), groups).score(y > 0, scores),
        "average_precision": MeasureRanker("average_precision").fit(X, y, groups).score(X, y, groups),
    }.items():
        assert judged[name] == pytest.approx(value, abs=1e-9), name
    lines = np.array(run(capsys, "predict", letor, model).split(), dtype=float)
    np.testing.assert_allclose(lines, scores, rtol=1e-7)
    np.testing.assert_allclose(run_json(capsys, "predict", letor, model)["scores"], scores, rtol=1e-12)
    assert run_json(capsys, "info", model)["kind"] == "ranking"
    # the files of SVM-perf hold a ranking too: for them it is a linear function like others
    run(capsys, "train", letor, letor.with_name("p"), "-m", "average_precision", "--model-format", "svmperf")
    np.testing.assert_allclose(load_model(letor.with_name("p")).coef[0], load_model(model).coef[0], rtol=1e-6)


def test_what_a_measure_cannot_judge_is_left_out(tmp_path: Path, capsys: Capture) -> None:
    X, y, groups = queries()
    file, model = tmp_path / "a.svm", tmp_path / "m"
    file.write_text(svmlight(X, [f"{1 if grade else -1} qid:{q}" for grade, q in zip(y, groups, strict=True)]))
    run(capsys, "train", file, model, "-m", "roc_area")
    assert main(["evaluate", str(file), str(model)]) == 0
    out, err = capsys.readouterr()
    assert "left out: ndcg@1 (ndcg: expected grades from 0 to 60 in y, got values from -1 to 1: " in err
    assert "roc_area" in out
    assert "ndcg" not in out
    file.write_text(svmlight(X, [f"1 qid:{q}" for q in groups]))
    assert main(["evaluate", str(file), str(model)]) == 2
    assert "expected a group with examples of different grades, got none" in capsys.readouterr().err


def test_data_without_groups_are_one_group(letor: Path, capsys: Capture) -> None:
    model, plain = letor.with_name("m"), letor.with_name("plain.svm")
    run(capsys, "train", letor, model, "-m", "ndcg@10")
    X, y, _ = queries()
    plain.write_text(svmlight(X, [f"{grade:g}" for grade in y]))
    assert main(["evaluate", str(plain), str(model), "--json"]) == 0
    out, err = capsys.readouterr()
    assert "has no groups (qid)" in err
    assert f'"ndcg@10": {NDCG(10).score(y, X @ load_model(model).coef[0])}' in out


def test_tune_holds_out_whole_groups(letor: Path, capsys: Capture) -> None:
    arguments = ("-m", "ndcg@5", "--grid", "0.01,1", "--folds", "4", "--tol", "1e-6")  # so that all find the same w
    in_memory = run_json(capsys, "tune", letor, letor.with_name("m"), *arguments)
    in_shards = run_json(capsys, "tune", written(letor, "shards"), letor.with_name("n"), *arguments)
    for one, other in zip(in_memory["cross_validation"], in_shards["cross_validation"], strict=True):  # type: ignore[call-overload]
        assert one["score"] == pytest.approx(other["score"], abs=0.01)
    X, y, groups = queries()
    fold = (np.random.default_rng(0).permutation(20) % 4)[groups - 100]
    values = []
    for k in range(4):
        ranker = MeasureRanker("ndcg", k=5, C=1.0, tol=1e-6).fit(X[fold != k], y[fold != k], groups[fold != k])
        values.append(ranker.score(X[fold == k], y[fold == k], groups[fold == k]))
    assert in_memory["cross_validation"][1]["score"] == pytest.approx(np.mean(values), abs=0.01)  # type: ignore[index]


def test_groups_left_aside(letor: Path, capsys: Capture) -> None:
    model = letor.with_name("m")
    assert main(["train", str(letor), str(model), "-m", "f1", "--positive", "2"]) == 0
    assert "f1 does not rank" in capsys.readouterr().err
    assert load_model(model).kind == "binary"
    run(capsys, "train", letor, model, "-m", "roc_area", "--positive", "2", "--no-groups")
    assert load_model(model).kind == "binary"
    run(capsys, "train", letor, model, "-m", "roc_area", "--positive", "2")
    X, y, groups = queries()
    same = MeasureRanker("roc_area").fit(sparse.csr_matrix(X), y == 2, groups)
    np.testing.assert_allclose(load_model(model).coef[0], same.coef_, rtol=1e-9)


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("ndcg@0", "expected k as a whole number"),
        ("f1@5", "precision, recall, ndcg take a k"),
        ("ndcg@x", "expected k"),
    ],
)
def test_bad_k(letor: Path, capsys: Capture, measure: str, message: str) -> None:
    assert main(["train", str(letor), str(letor.with_name("m")), "-m", measure]) == 2
    assert message in capsys.readouterr().err


def test_precision_at_k_of_groups_compares_rankings(letor: Path, capsys: Capture) -> None:
    X, y, groups = queries()
    trained = run_json(capsys, "train", letor, letor.with_name("m"), "-m", "precision@3")
    same = MeasureRanker("precision_at_k", k=3).fit(sparse.csr_matrix(X), y, groups)
    assert trained["objective"] == [pytest.approx(same.objective_, rel=1e-3)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [("a.svm", "1,2 qid:1 1:1\n", "several"), ("a.csv", "qid,a,label\n1,1,good\n1,2,bad\n", "names")],
)
def test_grades_must_be_numbers(tmp_path: Path, capsys: Capture, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    assert main(["train", str(tmp_path / name), str(tmp_path / "m"), "-m", "ndcg"]) == 1
    assert f"its grade, to rank the examples of groups (qid), got {message}" in capsys.readouterr().err


def test_the_column_of_groups_may_be_the_target(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("QID,a,label\n1,0.5,3\n2,1.5,4\n")
    data = load_data(tmp_path / "a.csv")
    assert data.feature_names == ["a"]
    assert data.groups.tolist() == ["1", "2"]  # type: ignore[union-attr]
    data = load_data(tmp_path / "a.csv", target="QID")
    assert data.feature_names == ["a", "label"]
    assert data.groups is None


def test_groups_of_the_wrong_length(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((3, 1)), y=np.ones(3), qid=np.ones(2))
    with pytest.raises(FileError, match="expected qid with 3 entries"):
        load_data(tmp_path / "a.npz")
    folder = tmp_path / "shards"
    folder.mkdir()
    np.save(folder / "a.X.npy", np.ones((3, 1)))
    np.save(folder / "a.qid.npy", np.ones(2))
    with pytest.raises(FileError, match="expected 3 groups"):
        open_dataset(folder)
    np.save(folder / "a.qid.npy", np.ones(3))
    np.save(folder / "b.X.npy", np.ones((3, 1)))
    with pytest.raises(FileError, match=r"some rows have groups \(qid\)"):
        open_dataset(folder)


def test_a_ranking_has_no_classes(tmp_path: Path) -> None:
    path = tmp_path / "m"
    save_model(path, LinearModel(np.ones((1, 2)), np.zeros(1), np.zeros(1), [], "ranking", "ndcg@10"))
    assert load_model(path).kind == "ranking"
    save_model(path, LinearModel(np.ones((1, 2)), np.zeros(1), np.zeros(1), [0, 1], "ranking", "ndcg@10"))
    with pytest.raises(FileError, match="expected 0 classes for a ranking model"):
        load_model(path)


def test_a_ranker_takes_a_dataset_with_its_groups(letor: Path) -> None:
    X, y, groups = queries()
    dataset = open_dataset(written(letor, "shards"))
    ranker = MeasureRanker("ndcg", k=5).fit(dataset)
    same = MeasureRanker("ndcg", k=5).fit(sparse.csr_matrix(X), y, groups)
    assert ranker.objective_ == pytest.approx(same.objective_, rel=1e-3)
    np.testing.assert_allclose(ranker.predict(dataset), X @ ranker.coef_)
    assert ranker.score(dataset, dataset.y, dataset.groups) == pytest.approx(ranker.score(X, y, groups))
    alone = MeasureRanker("ndcg", k=5).fit(dataset, groups=np.zeros(240))
    assert alone.objective_ != pytest.approx(ranker.objective_, rel=0.01)
    with pytest.raises(ValueError, match="expected 2 features, got 4"):
        MeasureRanker("ndcg").fit(X[:, :2], y, groups).predict(dataset)


@pytest.mark.shared_data
def test_a_file_of_letor(shared_data: Path, tmp_path: Path, capsys: Capture) -> None:
    file = shared_data / "rank_mq2008_fold1test" / "test.svm.xz"
    trained = run_json(capsys, "train", file, tmp_path / "m", "-m", "ndcg@10", "-C", "0.1")
    judged = run_json(capsys, "evaluate", file, tmp_path / "m")
    assert trained["groups"] == judged["groups"] == 156
    assert trained["training_score"] == pytest.approx(judged["ndcg@10"])
    data = load_data(file)
    chance = Grouped(NDCG(10), data.groups).score(data.labels, np.random.default_rng(0).normal(size=data.n))
    assert judged["ndcg@10"] > chance + 0.2  # type: ignore[operator]
