"""What the page of the out-of-core benchmark says of its rows."""

from __future__ import annotations

import pytest

from benchmarks import outofcore, outofcore_page

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
