"""What the pages of the benchmarks beyond memory and of solvers say of their rows."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks import outofcore, outofcore_page, solvers, solvers_page
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
    page = solvers_page.page(solver_rows(auto="15", hybrid="10"), [], [])
    assert "| all | 1 | 1 | 0 | 1.50 | 1.00 |" in page
    assert "* passes: a set f1 10C 1.50 (10)." in page
    assert "`auto` in 0" in page
    assert "`hybrid` in 1" in page
    assert "| all | 1 | 0 | 0 | 1.00 | 1.00 |" in solvers_page.page(solver_rows(auto="10", hybrid="15"), [], [])


def test_orders_of_rows_say_what_is_chance():
    cell = {"data": "a set", "measure": "f1", "factor": "10", "gap": "0"}
    passes = {"auto": (15, 10, 10), "hybrid": (10, 10, 14)}
    orders = [
        cell | {"solver": name, "order": str(k), "passes": str(one)}
        for name, found in passes.items()
        for k, one in enumerate(found)
    ]
    page = solvers_page.page(solver_rows(auto="15", hybrid="10"), orders, [])
    assert "in one order as in another in 1 of 1 cells (1.1 times in 1; at most 1.50 times)" in page
    assert "in 1 cells with the rows as they come, and in 0 by the medians" in page


def test_the_page_on_solvers_is_that_of_the_rows():
    results = Path(__file__).resolve().parents[1] / "docs" / "results"
    rows, orders = (list(csv.DictReader((results / name).open())) for name in ("solvers.csv", "solvers_orders.csv"))
    assert (results / "solvers.md").read_text() == solvers_page.page(rows, orders, solvers.measured())
