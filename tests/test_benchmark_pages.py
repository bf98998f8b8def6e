"""What the pages of the benchmarks beyond memory and of solvers say of their rows."""

from __future__ import annotations

import pytest

from benchmarks import at_zero, files, from_file, limit, outofcore, outofcore_page, report, solvers_page, uses
from benchmarks.rows import read_rows
from metrimax.solvers import SOLVERS

STAMPED = {"date": "2026-01-01", "revision": "abcdef0", "processor": "a processor", "load": "0.50"}
ENVIRONMENT = {"env_cpu": "a processor", "env_cores": 2, "env_date": "2026-01-01", "env_load_average": 0.5}


def rows(apart=0.0, peak=10**8, shards=1.0, two=0.5):
    fit = {"set": "sparse", "size": 10**9, "job": "fit", "memory": 10**8, "n": 1000, "p": 10, "cuts": 3}
    fit |= {"objective": 2.0, "bound": 1.9, "iterations": 5, "passes": 10, "wall_seconds": 1.0, "cpu_seconds": 1.0}
    fit |= {"base_bytes": 10**7, "peak_bytes": 10**9}
    cpu = {f"{key}_{who}": 0.1 for key in ("first", "second") for who in ("driver", "loop", "busiest", "path", "cpu")}
    both = {"set": "sparse", "size": 10**9, "memory": 2 * 10**9, "first_wall": 1.0} | cpu
    made = [
        fit | {"way": "memory"},
        fit | {"way": "shards", "objective": 2.0 + apart, "peak_bytes": peak},
        both | {"job": "passes", "way": "shards", "second_wall": shards},
        both | {"job": "workers", "way": "dask", "second_wall": two},
    ]
    return [row | ENVIRONMENT for row in made]


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({}, None),
        ({"apart": 1e-5}, "objective and bound differ"),
        ({"peak": 10**9}, "peak memory 1.00 GB"),
        ({"shards": 1.6}, "all kept open: both products take 1.60 times"),
        ({"two": 0.7}, "two worker processes are 1.43 times as fast"),
    ],
)
def test_what_was_asked_for_is_met_or_missed(changes, missed):
    found = outofcore_page.verdicts(rows(**changes))
    assert [verdict.met for verdict in found].count(None) == 1
    wrong = [verdict for verdict in found if verdict.met is False]
    assert len(wrong) == (missed is not None)
    if missed:
        assert missed in wrong[0].text
        assert "**missed**" in outofcore_page.page(rows(**changes))


def test_the_page_is_that_of_the_rows():
    assert outofcore.PAGE.read_text() == outofcore_page.page(outofcore.read())


def solver_rows(auto, hybrid):
    """One cell, in which other solvers did not reach the gap."""
    cell = {"data": "a set", "part": "2", "n": "100", "p": "10", "measure": "f1", "C": "1", "factor": "10"}
    cell |= {"turns": "3", "sets": "130"} | STAMPED
    took = {"auto": auto, "hybrid": hybrid}
    return [
        cell | {"solver": name, "passes": took.get(name, "9"), "seconds": "0.001", "gap": "0" if name in took else "1"}
        for name in SOLVERS
    ]


def test_the_default_is_compared_with_the_best_that_reached_the_gap():
    page = solvers_page.page(solver_rows(auto="15", hybrid="10"), [])
    assert "| all | 1 | 1 | 0 | 1.50 | 1.00 |" in page
    assert "| a set | f1 | 10 | 1.50 | 10 | 1.00 | 1 | `auto` |" in page
    assert "| `auto` | 1 | 1.00 | 1.00 | 0 |" in page
    assert "| `hybrid` | 1 | 0.67 | 1.00 | 1 |" in page
    assert "| all | 1 | 0 | 0 | 1.00 | 1.00 |" in solvers_page.page(solver_rows(auto="10", hybrid="15"), [])


def test_the_page_on_solvers_says_when_and_of_how_many_sets():
    page = solvers_page.page(solver_rows(auto="15", hybrid="10"), [])
    assert "Measured on 2026-01-01 at revision `abcdef0` (a processor), at load averages of 0.5 to 0.5." in page
    assert "one of the 130 that" in page
    several = [row | {"data": name} for name in "abcde" for row in solver_rows(auto="15", hybrid="10")]
    assert "every 26th of the 130 that" in solvers_page.page(several, [])


def test_orders_of_rows_say_what_is_chance():
    cell = {"data": "a set", "measure": "f1", "factor": "10", "gap": "0"}
    passes = {"auto": (15, 10, 10), "hybrid": (10, 10, 14)}
    orders = [
        cell | {"solver": name, "order": str(k), "passes": str(one)}
        for name, found in passes.items()
        for k, one in enumerate(found)
    ]
    page = solvers_page.page(solver_rows(auto="15", hybrid="10"), orders)
    assert "in one order as in another in 1 of 1 cells" in page
    assert "The largest ratio is 1.5." in page
    assert "in 1 cells with the rows as they come, and in 0 by medians" in page


def test_the_page_on_solvers_is_that_of_the_rows():
    names = ("solvers", "solvers_orders", "ablation", "constants")
    rows = (solvers_page.read(report.RESULTS, name) for name in names)
    assert solvers_page.PAGE.read_text() == solvers_page.page(*rows)


def test_the_page_on_uses_is_that_of_the_rows():
    assert uses.PAGE.read_text() == uses.page(solvers_page.read(report.RESULTS, "uses"))


def test_the_page_on_uses_goes_by_medians_over_orders():
    seconds = {"auto": (0.04, 0.01, 0.02), "bundle": (0.01, 0.01, 0.01), "hybrid": (0.001, 0.03, 0.03)}
    rows = [
        {"data": "a set", "use": "hinge 1", "solver": solver, "order": str(order), "passes": "10", "seconds": str(one)}
        for solver, some in seconds.items()
        for order, one in enumerate(some)
    ]
    page = uses.page([row | STAMPED | {"gap": "reached"} for row in rows])
    assert "| hinge 1 | 1.00 / 2.00 | 1.00 / 1.00 | 1.00 / 3.00 |" in page
    assert "| a set | hinge 1 | 10 | 1.00 | 20 | 2.00 | 1.00 |" in page
    missed = uses.page([row | STAMPED | {"gap": "missed" if row["solver"] == "bundle" else "reached"} for row in rows])
    assert "| hinge 1 | 1.00 / 1.00 | nan / nan | 1.00 / 1.50 |" in missed


@pytest.mark.parametrize("written", [at_zero, limit], ids=["at_zero", "limit"])
def test_pages_of_one_table_are_those_of_their_rows(written):
    name = written.PAGE.with_suffix(".csv").name
    assert written.PAGE.read_text() == written.page(read_rows(report.RESULTS / name))


def test_the_page_on_files_is_that_of_the_rows():
    assert files.PAGE.read_text() == files.page(read_rows(files.CSV), read_rows(from_file.CSV))


def test_from_file_to_model_is_compared_with_liblinear():
    row = {"file": "svmlight", "mb": "100", "wall": "2", "repeats": "1"} | STAMPED
    quick = row | {"by": from_file.OWN, "cpu": "1", "peak_mb": "110"}
    peer = row | {"by": from_file.PEER, "cpu": "4", "peak_mb": "100"}
    assert "0.25 times the CPU seconds and 1.10 times the peak of memory, as wanted" in from_file.section([quick, peer])
    large = from_file.section([quick | {"peak_mb": "130"}, peer])
    assert "0.25 times the CPU seconds and 1.30 times the peak of memory, **more than wanted**" in large
    assert "| svmlight | 100 |" in from_file.section([quick])


def test_at_zero_shows_what_did_not_reach_the_gap():
    cell = {"data": "a set", "n": "9", "p": "2", "measure": "f1", "C": "1", "relative": "0.5"} | STAMPED
    rows = [
        cell | {"solver": name, "passes": "7", "seconds": "0.25", "gap": "1" if name == "lbfgs" else "0"}
        for name in at_zero.RUNS
    ]
    assert "| a set | 9 x 2 | f1 | 1 | 7 / 0.25 | 7 / 0.25 | 7 / 0.25 | - | 0.5000 |" in at_zero.page(rows)


def test_the_limit_tells_what_is_beside_the_products():
    row = {"X": "dense", "n": "9", "p": "2", "measure": "f1", "threads": "1", "passes": "7", "cpu": "3", "limit": "1"}
    row |= {"times": "3", "products": "1.5", "searches": "2.5"} | STAMPED
    page = " ".join(limit.page([row, row | {"times": "1.5"}]).split())
    assert "1 of 2 fits take more than 2 times the limit." in page
    assert "1.5 to 1.5 times what reading X takes" in page


def compared(competitor, seconds, mode="gap", reached=True):
    """A row of the comparison, of which some columns are the same."""
    row = {"task": "a set", "measure": "error", "C": 1.0, "c": 1.0, "mode": mode, "n_passes": 5.0, "gap": 1e-4}
    return row | {"competitor": competitor, "cpu_seconds": seconds, "reached": str(reached)}


def test_the_page_on_speed_lists_where_metrimax_is_slower():
    found = report.compare_section([compared("metrimax", 2.0), compared("dlib", 1.0), compared("LinearSVC", 6.0)])
    assert "| LinearSVC | error | measured | 1 | 1 | 3 | 3 | 3 |" in found
    assert "metrimax is slower in 1." in found
    assert "| a set | error | 1 | dlib | gap | 1 | 2 | 0.5 |" in found


def test_the_page_on_speed_is_that_of_the_rows():
    assert report.PAGE.read_text() == report.text(*report.load())


@pytest.mark.parametrize("page", [report.PAGE, solvers_page.PAGE], ids=lambda page: page.name)
def test_the_pages_are_for_reading(page):
    assert len(page.read_text().splitlines()) < 220
