"""``python -m experiments all --data DIR`` computes what is missing and writes every page; see experiments/harness.py.

python -m experiments all|NAME [--data DIR] [--out DIR] [--quick] [--jobs N]
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

PROGRAMS = {
    "joachims2005": "Joachims (2005), Table 1 and Figure 1",
    "baselines": "what users do instead, on the same data",
    "ranking": "NDCG, average precision and ROC area on queries, beside LightGBM; rare Reuters categories",
}
"""The programs on the harness, in the order in which `all` runs them."""


def main(argv: Sequence[str] | None = None) -> None:
    argv = list(sys.argv[1:] if argv is None else argv)
    listing = "\n".join(f"  {name:14}{what}" for name, what in PROGRAMS.items())
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=f"programs:\n{listing}",
        epilog="Further options are those of the program: python -m experiments NAME --help.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=["all", *PROGRAMS], metavar="all|NAME")
    args = parser.parse_args(argv[:1])
    names = list(PROGRAMS) if args.name == "all" else [args.name]
    failed = []
    for name in names:
        try:
            importlib.import_module(f"experiments.{name}").main(argv[1:])
        except SystemExit as end:  # a program that failed does not stop the others
            if args.name != "all" or not end.code or not isinstance(end.code, str):
                raise
            failed.append(end.code)
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
