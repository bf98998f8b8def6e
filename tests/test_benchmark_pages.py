"""What the pages of the benchmarks beyond memory and of solvers say of their rows."""

from __future__ import annotations

import pytest

from benchmarks import outofcore, outofcore_page, report, solvers_page, uses
from metrimax.solvers import SOLVERS

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
    rows = (solvers_page.read(report.RESULTS, name) for name in ("solvers", "solvers_orders", "ablation"))
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
    page = uses.page([row | {"gap": "reached"} for row in rows])
    assert "| hinge 1 | 1.00 / 2.00 | 1.00 / 1.00 | 1.00 / 3.00 |" in page
    assert "| a set | hinge 1 | 10 | 1.00 | 20 | 2.00 | 1.00 |" in page
    missed = uses.page([row | {"gap": "missed" if row["solver"] == "bundle" else "reached"} for row in rows])
    assert "| hinge 1 | 1.00 / 1.00 | nan / nan | 1.00 / 1.50 |" in missed


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
    assert len(page.read_text().splitlines()) < 200
