"""``python -m experiments all --data DIR`` computes what is missing and writes every page; see experiments/harness.py.

python -m experiments all|NAME [--data DIR] [--out DIR] [--quick] [--jobs N]
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from experiments.harness import add_options

PROGRAMS = {
    "joachims2005": "Joachims (2005), Table 1 and Figure 1",
    "baselines": "what users do instead, on the same data",
    "linear": "MeasureSVCCV and MeasureSVC with their defaults beside logistic regression with a threshold",
    "constraints": "how constraints hold on new data, beside logistic regression with the same rule",
    "ensemble": "MeasureEnsemble beside boosting and forests with tuned thresholds, on 20 tables",
    "ranking": "NDCG, average precision and ROC area on queries, beside LightGBM; rare Reuters categories",
    "structured": "tagging, parsing and clustering against baselines on the same features",
    "xi_alpha": "Joachims (2000), xi-alpha estimates",
    "capo": "Li, Tsang & Zhou (2013), classifier adaptation",
    "capo_defaults": "CAPOClassifier's defaults beside its auxiliaries, on tables and imbalanced sets",
    "smoothing": "Zhang, Saha & Vishwanathan (2011), smoothing",
    "summary": "the one-page summary, from the CSV files of the others; what they took",
}
"""The programs, in the order in which `all` runs them."""


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
    name = parser.parse_args(argv[:1]).name
    if name != "all":
        return run(name, argv[1:])
    add_options(parser)
    parser.parse_args(argv)
    failed = []
    for name in PROGRAMS:
        try:
            run(name, argv[1:])
        except SystemExit as end:  # tasks that failed; the other programs do not depend on them
            if not isinstance(end.code, str):
                raise
            failed.append(end.code)
    if failed:
        raise SystemExit("\n".join(failed))


def run(name: str, argv: Sequence[str]) -> None:
    importlib.import_module(f"experiments.{name}").main(argv)


if __name__ == "__main__":
    main()
