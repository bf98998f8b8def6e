"""The harness of the experiments: what is kept, what is computed again, what failure costs; and the statistics."""

from __future__ import annotations

import csv
import itertools
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from scipy import stats as scipy_stats

from experiments import imbalanced, summary
from experiments.harness import Options, Program, Table, Task, compute, data_frame, markdown, select, spent
from experiments.stats import average_ranks, compare


def count_up(path, name, data=None):
    with path.open("a") as log:
        log.write(f"{name}\n")
    yield {"value": 0.5, "data": data}
    yield {"value": 1 / 3, "cpu_seconds": 7.0}


def burn(seconds):
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass


def fail(data=None):
    raise ArithmeticError("no such luck")


def nothing():
    return []


def options(tmp_path, **changes):
    return Options(data=tmp_path, out=tmp_path / "out", pages=tmp_path / "out", **changes)


def program(tmp_path, names=("a", "b"), extra=(), pages=None):
    log = tmp_path / "log"

    def tasks(_):
        return [
            *extra,
            *(Task({"method": n, "seed": 0}, partial(count_up, log, n), prepare=partial(str, "d")) for n in names),
        ]

    return Program("trial", tasks, lambda rows, _: None if pages is None else pages.append(len(rows)))


@pytest.mark.parametrize("jobs", [1, 2])
def test_rows_have_key_value_seconds_and_versions(tmp_path, jobs):
    assert program(tmp_path).run(options(tmp_path, jobs=jobs)) == 0
    with (tmp_path / "out" / "trial.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["method"] for row in rows) == ["a", "a", "b", "b"]
    first, second = select(rows, method="a", seed=0)
    assert first["data"] == "d"
    assert first["value"] == "0.5"
    assert "metrimax" in first["versions"]
    assert float(first["cpu_seconds"]) >= 0
    assert float(first["wall_seconds"]) > 0
    assert second["value"] == "0.333333"
    assert second["cpu_seconds"] == "7"


def test_resumes(tmp_path):
    pages = []
    program(tmp_path, pages=pages).run(options(tmp_path))
    program(tmp_path, "abc", pages=pages).run(options(tmp_path))
    assert (tmp_path / "log").read_text().split() == ["a", "b", "c"]
    assert pages == [4, 6]
    program(tmp_path, pages=pages).run(options(tmp_path, quick=True))  # anew, always
    assert (tmp_path / "log").read_text().split() == ["a", "b", "c", "a", "b"]
    assert pages == [4, 6, 4]


def test_a_failing_task_is_reported_and_loses_no_other(tmp_path, capsys):
    pages = []
    bad = [Task({"method": "bad", "seed": 0}, fail), Task({"method": "empty", "seed": 0}, nothing)]
    trial = program(tmp_path, extra=bad, pages=pages)
    assert trial.run(options(tmp_path)) == 2
    said = capsys.readouterr().err
    assert "'bad'" in said
    assert "no such luck" in said
    assert "no rows" in said
    assert not pages, "a page from incomplete rows"
    assert {row["method"] for row in Table(tmp_path / "out" / "trial.csv").rows} == {"a", "b"}
    with pytest.raises(SystemExit, match="2 tasks failed"):
        trial.main(["--data", str(tmp_path), "--out", str(tmp_path / "out")])
    assert (tmp_path / "log").read_text().split() == ["a", "b"]


def test_the_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    table = Table(tmp_path / "t.csv")
    table.add([{"a": 1}])
    before = table.path.read_bytes()

    class Interrupted:
        def __init__(self, *args, **kwargs): ...
        def writeheader(self): ...
        def writerows(self, rows):
            raise KeyboardInterrupt

    monkeypatch.setattr("experiments.harness.csv.DictWriter", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.add([{"a": 2}])
    assert table.path.read_bytes() == before


def test_new_columns_and_keys(tmp_path):
    table = Table(tmp_path / "t.csv")
    table.add([{"a": 1, "C": 0.1}])
    table.add([{"a": 2, "b": "x,y"}])
    again = Table(table.path)
    assert again.rows == [{"a": "1", "C": "0.1", "b": ""}, {"a": "2", "C": "", "b": "x,y"}]
    assert again.has({"a": 1, "C": 0.1})
    assert not again.has({"a": 1, "C": 0.2})
    assert not again.has({"d": 1})


def test_says_where_data_is_missing(tmp_path, capsys):
    with pytest.raises(SystemExit):
        program(tmp_path).main(["--data", str(tmp_path / "absent")])
    assert "--data" in capsys.readouterr().err


def test_markdown():
    assert markdown(["a", "b"], [(1, "x")]) == "| a | b |\n| --- | --- |\n| 1 | x |\n"


def test_data_frame():
    rows = [{"part": "a", "n": "3", "value": "0.5", "b": "", "kind": "x,y"}, {"part": "a", "n": "4", "value": "nan"}]
    found = data_frame([*rows, {"part": "b", "n": "5", "b": "1"}], part="a")
    assert list(found.columns) == ["part", "n", "value", "kind"], "columns of other rows, or without values"
    assert found.n.tolist() == [3, 4]
    assert found.value.isna().tolist() == [False, True]
    assert found.kind[0] == "x,y"


def signed_rank_p(d):
    """The two-tailed p-value by all assignments of signs to the ranks."""
    d = np.asarray(d)
    ranks = scipy_stats.rankdata(abs(d))
    total = ranks.sum() / 2
    seen = abs(ranks[d > 0].sum() - total)
    signs = np.array(list(itertools.product([0, 1], repeat=len(d))))
    return np.mean(abs(signs @ ranks - total) >= seen - 1e-9)


def test_compare_counts_and_tests():
    rng = np.random.default_rng(0)
    a = rng.normal(size=10)
    b = a + rng.normal(size=10) + 0.5
    a[3] = b[3]
    result = compare(a, b)
    assert (result.wins, result.losses, result.ties) == ((a > b).sum(), (a < b).sum(), 1)
    assert result.difference == pytest.approx(a.mean() - b.mean())
    assert result.p == pytest.approx(signed_rank_p(np.delete(a - b, 3)))
    assert result.p == pytest.approx(scipy_stats.wilcoxon(a, b).pvalue)
    assert compare(a, a) == (0.0, 0, 0, 10, 1.0)
    tied = compare([1, 2, 3, 4, 5, 6.0], [0, 1, 2, 3, 4, 5.0])  # all differences equal: the approximation
    assert (tied.wins, tied.stars) == (6, "**")
    assert tied.p == pytest.approx(0.0143, abs=1e-3)
    with pytest.raises(ValueError, match="same length"):
        compare([1.0], [1.0, 2.0])


def test_average_ranks():
    results = [[0.9, 0.8, 0.7], [0.5, 0.5, 0.9], [0.1, 0.3, 0.2]]
    np.testing.assert_allclose(average_ranks(results), [(1 + 2.5 + 3) / 3, (2 + 2.5 + 1) / 3, (3 + 1 + 2) / 3])
    with pytest.raises(ValueError, match="without gaps"):
        average_ranks([[1.0, np.nan]])


def test_spent_counts_a_task_once_and_rows_with_seconds_of_their_own_each():
    def row(cpu, wall):
        return {"cpu_seconds": cpu, "wall_seconds": wall}

    rows = [row("2", "3"), row("2", "3"), row("0.5", "1"), row("0.25", "1"), row("2", "4"), row("", "")]
    assert spent(rows) == (3, pytest.approx(4.75), 0, 1, pytest.approx(8.0))
    whole = [row("2", "5") | {"task_cpu_seconds": "9"}, row("3", "5") | {"task_cpu_seconds": "9"}]
    both = spent(rows + whole)
    assert both == (4, pytest.approx(13.75), 1, 1, pytest.approx(17.0)), "not the parts, where the whole is known"


def test_the_cpu_time_of_a_task_is_that_of_all_it_does(tmp_path):
    """Reading the data and processes of its own count, and a row that has seconds of its own cannot hide them."""

    def read():
        burn(0.1)

    def run(_):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            pool.submit(burn, 0.2).result()
        yield {"cpu_seconds": 0.0, "task_cpu_seconds": 0.0}

    _, [row], error = compute(0, Task({"method": "a"}, run, prepare=read))
    assert not error
    assert row["cpu_seconds"] == 0.0
    assert row["task_cpu_seconds"] >= 0.25


def test_the_summary_says_what_is_missing(tmp_path):
    summary.page(Options(out=tmp_path, pages=tmp_path))
    assert (tmp_path / "README.md").read_text().count("Not computed yet") == 3


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
