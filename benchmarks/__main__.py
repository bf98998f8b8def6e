"""Run the measurements and write one CSV each.

python -m benchmarks --all --out benchmarks/results     # everything, about a quarter of an hour
python -m benchmarks --only compare --tasks ijcnn1      # a part
python -m benchmarks --smoke                            # ten seconds, generated data only: that nothing has rotted
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.rows import read_rows, write_rows

PARTS = ("compare", "shares", "products", "qp", "labels", "path", "scale", "smoothed")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true", help="every part (the default)")
    what.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"some of {', '.join(PARTS)}")
    what.add_argument("--smoke", action="store_true", help="every part on tiny generated data, nothing kept")
    parser.add_argument("--tasks", nargs="+", help="compare: these data sets only; the rows of the others stay")
    parser.add_argument("--measures", nargs="+", help="compare: these measures only; the rows of the others stay")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of the CSVs")
    parser.add_argument("--data", type=Path, help="the data folder (default: METRIMAX_DATA or ../shared/data)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each timing, the least counts (default 3)")
    parser.add_argument("--large", action="store_true", help="scale: up to 10^7 rows")
    return parser.parse_args(arguments)


def run(parts: tuple[str, ...], out: Path, options: dict[str, Any]) -> None:
    from benchmarks.timing import environment, stamp

    out.mkdir(parents=True, exist_ok=True)
    if parts == PARTS:
        (out / "environment.json").write_text(json.dumps(environment(), indent=2) + "\n")
    for part in parts:
        print(f"{part}:", flush=True)
        began, stamped = time.perf_counter(), stamp()
        rows = importlib.import_module(f"benchmarks.{part}").measure(**options)
        if not rows:
            raise SystemExit(f"{part}: nothing was measured; is the data folder there?")
        table, tasks = out / f"{part}.csv", options["tasks"]
        some = part == "compare" and (tasks or options["measures"]) and table.exists()
        again = {(row["task"], row["measure"]) for row in rows} if some else set()
        kept = [row for row in read_rows(table) if (row["task"], row["measure"]) not in again] if some else []
        write_rows(table, [*kept, *(row | stamped for row in rows)])
        print(f"{part}: {len(rows)} rows in {time.perf_counter() - began:.1f} s", flush=True)


def main() -> None:
    options = parse()
    if options.data is not None:
        os.environ["METRIMAX_DATA"] = str(options.data)
    settings = {"repeats": 1 if options.smoke else options.repeats, "smoke": options.smoke, "large": options.large}
    settings |= {"tasks": set(options.tasks or ()), "measures": set(options.measures or ())}
    if options.smoke:
        with tempfile.TemporaryDirectory() as folder:
            run(PARTS, Path(folder), settings)
            from benchmarks import report

            report.build(Path(folder), Path(folder) / "speed.md", draw=False)
        return
    run(tuple(options.only or PARTS), options.out, settings)


if __name__ == "__main__":
    sys.exit(main())
